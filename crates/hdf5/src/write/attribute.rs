//! Attributes of an output.

use super::{OutputFile, TypeRef, dataspace, datatype, memory, not_writable, properties};
use crate::error::Result;
use crate::ffi::{Call, Library};
use crate::model::Dataspace;
use hdf5_metno_sys::h5a::{H5Acreate2, H5Aget_type, H5Awrite};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5o::H5Oopen;
use hdf5_metno_sys::h5p::H5P_DEFAULT;

/// An attribute to be written.
#[derive(Debug, Clone, Copy)]
pub struct AttributeSpec<'a> {
    /// Name.
    pub name: &'a [u8],
    /// Whether the name is marked UTF-8 (else ASCII).
    pub utf8: bool,
    /// Type of one element.
    pub datatype: &'a TypeRef,
    /// Extent.
    pub dataspace: &'a Dataspace,
    /// All elements: stored bytes for fixed types, canonical bytes for file-local ones (references by path: what they
    /// refer to must exist).
    pub value: &'a [u8],
}

impl OutputFile {
    /// Writes an attribute of the object at `object` (`/` is the root group).
    ///
    /// Large attributes (64 KiB or more) and many of them go to dense storage, which the formats before HDF5 1.8
    /// ([`super::Compat::Earliest`]) do not have: a large one then fails.
    pub fn write_attribute(&mut self, object: &[u8], attribute: &AttributeSpec<'_>) -> Result<()> {
        let _library = Library::lock();
        self.require(self.ledger.attribute_room(object, attribute))?;
        let path = self.shared_path();
        let call = Call::of_object(&path, object);
        let result = call.c_string("H5Oopen", object).and_then(|name| {
            // SAFETY: valid handle and name, lock held; the object is ours.
            let handle = unsafe { call.handle("H5Oopen", H5Oopen(self.id(call)?, name.as_ptr(), H5P_DEFAULT)) }?;
            self.attach(call, handle.id(), attribute)
        });
        self.settle(result)?;
        self.ledger.attached(object, attribute);
        Ok(())
    }

    /// Writes an attribute of an open object. The caller holds the lock.
    pub(super) fn attach(&self, call: Call<'_>, object: hid_t, attribute: &AttributeSpec<'_>) -> Result<()> {
        let described = [call.object, b"@", attribute.name].concat();
        let call = Call::of_object(call.path, &described);
        let class = attribute.datatype.class();
        let count =
            attribute.dataspace.element_count().ok_or_else(|| not_writable(call, "its extent overflows".into()))?;
        let image = if class.is_file_local() {
            memory::Image::of_canonical(call, class, attribute.value, count, self.handle())?
        } else {
            let wanted_len_bytes = count.checked_mul(class.len_bytes());
            if wanted_len_bytes != Some(attribute.value.len() as u64) {
                let given = attribute.value.len();
                return Err(not_writable(call, format!("{given} bytes are given for {count} elements")));
            }
            memory::Image::of_stored(attribute.value.to_vec())
        };
        let datatype = self.datatype(call, attribute.datatype)?;
        let space = dataspace::build(call, attribute.dataspace)?;
        let creation = properties::attribute_creation(call, attribute.utf8)?;
        let name = call.c_string("H5Acreate2", attribute.name)?;
        // SAFETY: valid handles and name, lock held; the attribute is ours.
        let handle = unsafe {
            let id = H5Acreate2(object, name.as_ptr(), datatype.id(), space.id(), creation.id(), H5P_DEFAULT);
            call.handle("H5Acreate2", id)
        }?;
        if count > 0 {
            // As for datasets: fixed types in the attribute's own, file-local ones in memory form.
            let datatype = if class.is_file_local() {
                datatype::build(call, class)?
            } else {
                // SAFETY: valid handle, lock held; the identifier is ours.
                unsafe { call.handle("H5Aget_type", H5Aget_type(handle.id())) }?
            };
            // SAFETY: as above; the image has `count` elements in the memory form of the type, and libhdf5 copies
            // what they point to.
            let status = unsafe { H5Awrite(handle.id(), datatype.id(), image.bytes().as_ptr().cast()) };
            call.status("H5Awrite", status)?;
        }
        Ok(())
    }
}
