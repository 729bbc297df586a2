//! Objects of an output other than datasets: groups, committed datatypes, comments.

use super::output::OutputFile;
use super::{NewLink, TypeRef, datatype, properties};
use crate::error::Result;
use crate::ffi::{Call, Handle, Library};
use crate::model::{CreationOrder, TypeClass};
use hdf5_metno_sys::h5::herr_t;
use hdf5_metno_sys::h5g::H5Gcreate2;
use hdf5_metno_sys::h5i::{H5Iinc_ref, hid_t};
use hdf5_metno_sys::h5o::H5Olink;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5t::{H5Tcommit_anon, H5Tcommit2, H5Topen2};
use std::ffi::c_char;

unsafe extern "C" {
    fn raddle_set_comment(file: hid_t, object: *const c_char, comment: *const c_char) -> herr_t;
}

impl OutputFile {
    /// Creates a group; its parent must exist.
    pub fn create_group<'a>(
        &mut self,
        link: impl Into<NewLink<'a>>,
        link_order: CreationOrder,
        attribute_order: CreationOrder,
    ) -> Result<()> {
        let link = link.into();
        let _library = Library::lock();
        self.require(self.ledger.group_room().saturating_add(self.link_room(link, 0)))?;
        let result = self.linked(link, 0, |file, call, parent, name, link_list| {
            let creation = properties::group_creation(call, link_order, attribute_order)?;
            let name = call.c_string("H5Gcreate2", name)?;
            // SAFETY: valid handles and name, lock held; we own the group.
            let group = unsafe {
                let id = H5Gcreate2(parent, name.as_ptr(), link_list, creation.id(), H5P_DEFAULT);
                call.handle("H5Gcreate2", id)
            };
            // The next objects are likely to be created in this group.
            file.parent = Some((link.path.to_vec(), group?));
            file.ledger.grouped(link.path, link_order);
            file.ledger.created(link.path, attribute_order);
            Ok(())
        });
        self.settle(result)
    }

    /// Commits a datatype that [`OutputFile::commit_datatype`] will name later, so that objects created before its name
    /// can already refer to it by that path.
    pub fn commit_datatype_ahead(
        &mut self,
        path: &[u8],
        class: &TypeClass,
        attribute_order: CreationOrder,
    ) -> Result<()> {
        let _library = Library::lock();
        self.require(self.ledger.datatype_room(class))?;
        let file_path = self.shared_path();
        let call = Call::of_object(&file_path, path);
        let creation = properties::datatype_creation(call, attribute_order)?;
        let datatype = datatype::build(call, class)?;
        let file = self.id(call)?;
        // SAFETY: valid handles, lock held.
        let status = unsafe { H5Tcommit_anon(file, datatype.id(), creation.id(), H5P_DEFAULT) };
        let committed = call.status("H5Tcommit_anon", status).map(drop);
        self.settle(committed)?;
        self.ledger.created(path, attribute_order);
        self.unnamed_types.insert(path.to_vec(), datatype);
        Ok(())
    }

    /// Commits a datatype under a name, whose parent group must exist.
    pub fn commit_datatype<'a>(
        &mut self,
        link: impl Into<NewLink<'a>>,
        class: &TypeClass,
        attribute_order: CreationOrder,
    ) -> Result<()> {
        let link = link.into();
        let _library = Library::lock();
        self.require(self.ledger.datatype_room(class).saturating_add(self.link_room(link, 0)))?;
        let result = self.linked(link, 0, |file, call, parent, name, link_list| {
            if let Some(unnamed) = file.unnamed_types.get(link.path) {
                let name = call.c_string("H5Olink", name)?;
                // SAFETY: valid handles and name, lock held.
                let status = unsafe { H5Olink(unnamed.id(), parent, name.as_ptr(), link_list, H5P_DEFAULT) };
                call.status("H5Olink", status)?;
                file.unnamed_types.remove(link.path);
                return Ok(());
            }
            let creation = properties::datatype_creation(call, attribute_order)?;
            let datatype = datatype::build(call, class)?;
            let name = call.c_string("H5Tcommit2", name)?;
            // SAFETY: valid handles and name, lock held.
            let status =
                unsafe { H5Tcommit2(parent, name.as_ptr(), datatype.id(), link_list, creation.id(), H5P_DEFAULT) };
            call.status("H5Tcommit2", status)?;
            file.ledger.created(link.path, attribute_order);
            Ok(())
        });
        self.settle(result)
    }

    /// Sets the comment of an object.
    pub fn set_comment(&mut self, object: &[u8], comment: &[u8]) -> Result<()> {
        let _library = Library::lock();
        self.require(self.ledger.comment_room(comment.len() as u64))?;
        let path = self.shared_path();
        let call = Call::of_object(&path, object);
        let (name, text) = (call.c_string("H5Oset_comment", object)?, call.c_string("H5Oset_comment", comment)?);
        let id = self.id(call)?;
        // SAFETY: valid handle and strings, lock held.
        let status = unsafe { raddle_set_comment(id, name.as_ptr(), text.as_ptr()) };
        let result = call.status("H5Oset_comment_by_name", status).map(drop);
        self.settle(result)
    }

    /// Returns a handle of the type, creating or opening it.
    pub(super) fn datatype(&self, call: Call<'_>, datatype: &TypeRef) -> Result<Handle> {
        match datatype {
            TypeRef::Own(class) => datatype::build(call, class),
            TypeRef::Committed { path, .. } if self.unnamed_types.contains_key(path) => {
                let id = self.unnamed_types[path].id();
                // SAFETY: a valid handle, lock held; we own the second reference to it.
                unsafe {
                    call.status("H5Iinc_ref", H5Iinc_ref(id))?;
                    call.handle("H5Iinc_ref", id)
                }
            }
            TypeRef::Committed { path, .. } => {
                let name = call.c_string("H5Topen2", path)?;
                // SAFETY: valid handle and name, lock held; we own the identifier.
                unsafe { call.handle("H5Topen2", H5Topen2(self.id(call)?, name.as_ptr(), H5P_DEFAULT)) }
            }
        }
    }
}
