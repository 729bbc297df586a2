//! Attributes of an output.

use super::output::OutputFile;
use super::specs::AttributeSpec;
use super::{dataspace, datatype, memory, not_writable, properties};
use crate::error::Result;
use crate::ffi::{Call, Handle, Library};
use hdf5_metno_sys::h5a::{H5Acreate2, H5Aget_type, H5Awrite};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5o::H5Oopen;
use hdf5_metno_sys::h5p::H5P_DEFAULT;

/// Upper bound of the other header growth that a new attribute may cause: the object's modification time, and a pointer
/// to dense storage.
const OTHER_GROWTH_LEN_BYTES: u64 = 256;

impl OutputFile {
    /// Writes an attribute of the object at `object` (`/` is the root group).
    ///
    /// Large attributes (64 KiB or more) and large numbers of attributes go to dense storage. The formats before HDF5
    /// 1.8 ([`super::Compat::Earliest`]) do not have it, so writing a large attribute fails in them.
    pub fn write_attribute(&mut self, object: &[u8], attribute: &AttributeSpec<'_>) -> Result<()> {
        self.write_attributes(object, std::slice::from_ref(attribute))
    }

    /// Writes attributes of the object at `object`, in this order, as [`OutputFile::write_attribute`] does.
    ///
    /// All attributes are created before any value is written: values stored outside the header in between would split
    /// the header into many pieces, all of which libhdf5 searches for each further attribute.
    pub fn write_attributes(&mut self, object: &[u8], attributes: &[AttributeSpec<'_>]) -> Result<()> {
        let _library = Library::lock();
        self.require(self.ledger.attributes_room(object, attributes))?;
        let path = self.shared_path();
        let call = Call::of_object(&path, object);
        let result = call.c_string("H5Oopen", object).and_then(|name| {
            // SAFETY: valid handle and name, lock held; we own the object.
            let handle = unsafe { call.handle("H5Oopen", H5Oopen(self.id(call)?, name.as_ptr(), H5P_DEFAULT)) }?;
            self.attach(call, handle.id(), attributes)
        });
        self.settle(result)?;
        self.ledger.attached(object, attributes);
        Ok(())
    }

    /// Writes attributes of an open object. The caller holds the lock.
    pub(super) fn attach(&self, call: Call<'_>, object: hid_t, attributes: &[AttributeSpec<'_>]) -> Result<()> {
        let described = |attribute: &AttributeSpec<'_>| [call.object, b"@", attribute.name].concat();
        let mut created = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            created.push(self.make(Call::of_object(call.path, &described(attribute)), object, attribute)?);
        }
        for (attribute, (handle, image)) in attributes.iter().zip(&created) {
            fill(Call::of_object(call.path, &described(attribute)), handle, image, attribute)?;
        }
        Ok(())
    }

    /// Creates an attribute and returns it with the value to be written.
    fn make(&self, call: Call<'_>, object: hid_t, attribute: &AttributeSpec<'_>) -> Result<(Handle, memory::Image)> {
        let class = attribute.datatype.class();
        let count =
            attribute.dataspace.element_count().ok_or_else(|| not_writable(call, "its extent overflows".into()))?;
        let image = if class.is_file_local() {
            memory::Image::of_canonical(call, class, attribute.value, count, self.handle())?
        } else {
            let wanted_len_bytes = count.checked_mul(class.len_bytes());
            if wanted_len_bytes != Some(attribute.value.len() as u64) {
                let got = attribute.value.len();
                return Err(not_writable(call, format!("got {got} bytes for {count} elements")));
            }
            memory::Image::of_stored(attribute.value.to_vec())
        };
        let datatype = self.datatype(call, attribute.datatype)?;
        let space = dataspace::build(call, attribute.dataspace)?;
        let creation = properties::attribute_creation(call, attribute.utf8)?;
        let name = call.c_string("H5Acreate2", attribute.name)?;
        let growth_len_bytes = attribute.message_len_bytes(self.compat()).saturating_add(OTHER_GROWTH_LEN_BYTES);
        let handle = self.growing(growth_len_bytes, || {
            let (name, datatype, space) = (name.as_ptr(), datatype.id(), space.id());
            // SAFETY: valid handles and name, lock held; we own the attribute.
            unsafe { call.handle("H5Acreate2", H5Acreate2(object, name, datatype, space, creation.id(), H5P_DEFAULT)) }
        })?;
        Ok((handle, image))
    }
}

/// Writes the value of an attribute. The caller holds the lock.
fn fill(call: Call<'_>, handle: &Handle, image: &memory::Image, attribute: &AttributeSpec<'_>) -> Result<()> {
    if attribute.dataspace.element_count() == Some(0) {
        return Ok(());
    }
    // As for datasets: fixed types use the attribute's own type, file-local ones the memory form.
    let class = attribute.datatype.class();
    let datatype = if class.is_file_local() {
        datatype::build(call, class)?
    } else {
        // SAFETY: a valid handle, lock held; we own the type.
        unsafe { call.handle("H5Aget_type", H5Aget_type(handle.id())) }?
    };
    // SAFETY: as above; the image holds all elements in the memory form of the type, and libhdf5 copies the data that
    // they point to.
    let status = unsafe { H5Awrite(handle.id(), datatype.id(), image.bytes().as_ptr().cast()) };
    call.status("H5Awrite", status).map(drop)
}
