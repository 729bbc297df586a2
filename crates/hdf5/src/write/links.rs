//! Links of an output: those created with objects, and soft, external, additional hard and user-defined links.

use super::output::OutputFile;
use super::properties;
use crate::error::Result;
use crate::ffi::{Call, Library};
use hdf5_metno_sys::h5::herr_t;
use hdf5_metno_sys::h5g::H5Gopen2;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::*;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use std::ffi::{c_char, c_int, c_void};

/// Location of a new object or link: its absolute path, and the character set of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewLink<'a> {
    /// Absolute path; all but its last part must exist.
    pub path: &'a [u8],
    /// Whether the name is marked UTF-8 (else ASCII).
    pub utf8: bool,
}

impl<'a> NewLink<'a> {
    /// Splits the path into the path of the parent (empty for the root group) and the name of the link.
    pub(super) fn split(self) -> (&'a [u8], &'a [u8]) {
        match self.path.iter().rposition(|&byte| byte == b'/') {
            Some(at) => (&self.path[..at], &self.path[at + 1..]),
            None => (b"", self.path),
        }
    }
}

impl<'a> From<&'a [u8]> for NewLink<'a> {
    fn from(path: &'a [u8]) -> Self {
        let mut link = Self { path, utf8: false };
        link.utf8 = !link.split().1.is_ascii();
        link
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for NewLink<'a> {
    fn from(path: &'a [u8; N]) -> Self {
        path.as_slice().into()
    }
}

impl<'a> From<&'a Vec<u8>> for NewLink<'a> {
    fn from(path: &'a Vec<u8>) -> Self {
        path.as_slice().into()
    }
}

unsafe extern "C" {
    fn raddle_create_user_link(
        group: hid_t,
        name: *const c_char,
        class: c_int,
        data: *const c_void,
        len_bytes: usize,
        list: hid_t,
    ) -> herr_t;
}

impl OutputFile {
    /// Creates a soft link with this target.
    pub fn soft_link<'a>(&mut self, link: impl Into<NewLink<'a>>, target: &[u8]) -> Result<()> {
        self.link(link.into(), target.len(), |_, call, parent, name, list| {
            let target = call.c_string("H5Lcreate_soft", target)?;
            // SAFETY: valid handles and strings; `link` holds the lock.
            let status = unsafe { H5Lcreate_soft(target.as_ptr(), parent, name, list, H5P_DEFAULT) };
            call.status("H5Lcreate_soft", status).map(drop)
        })
    }

    /// Creates an external link with this file and object name, without opening either.
    pub fn external_link<'a>(&mut self, link: impl Into<NewLink<'a>>, file: &[u8], object: &[u8]) -> Result<()> {
        self.link(link.into(), file.len() + object.len(), |_, call, parent, name, list| {
            let file = call.c_string("H5Lcreate_external", file)?;
            let object = call.c_string("H5Lcreate_external", object)?;
            // SAFETY: as above.
            let status = unsafe { H5Lcreate_external(file.as_ptr(), object.as_ptr(), parent, name, list, H5P_DEFAULT) };
            call.status("H5Lcreate_external", status).map(drop)
        })
    }

    /// Creates an additional link to the object at `existing`.
    pub fn hard_link<'a>(&mut self, link: impl Into<NewLink<'a>>, existing: &[u8]) -> Result<()> {
        self.link(link.into(), 0, |file, call, parent, name, list| {
            let existing = call.c_string("H5Lcreate_hard", existing)?;
            let id = file.id(call)?;
            // SAFETY: as above.
            let status = unsafe { H5Lcreate_hard(id, existing.as_ptr(), parent, name, list, H5P_DEFAULT) };
            call.status("H5Lcreate_hard", status).map(drop)
        })
    }

    /// Creates a link of a user-defined class (65 to 255; 64 is an external link) with the data unchanged.
    pub fn user_link<'a>(&mut self, link: impl Into<NewLink<'a>>, class: u8, data: &[u8]) -> Result<()> {
        self.link(link.into(), data.len(), |file, call, parent, name, list| {
            file.link_classes.provide(call, class)?;
            let class = c_int::from(class);
            // SAFETY: as above; libhdf5 copies the data.
            let status = unsafe {
                let (bytes, len) = (data.as_ptr().cast(), data.len());
                raddle_create_user_link(parent, name, class, bytes, len, list)
            };
            call.status("H5Lcreate_ud", status).map(drop)
        })
    }

    /// Runs `create` with the parent group of `link`, the last part of its path, and a link creation list.
    pub(super) fn linked<T>(
        &mut self,
        link: NewLink<'_>,
        target_len: usize,
        create: impl FnOnce(&mut Self, Call<'_>, i64, &[u8], i64) -> Result<T>,
    ) -> Result<T> {
        let path = self.shared_path();
        let call = Call::of_object(&path, link.path);
        let (parent_path, name) = link.split();
        if self.parent.as_ref().is_none_or(|(path, _)| path != parent_path) {
            let parent_name = call.c_string("H5Gopen2", if parent_path.is_empty() { b"/" } else { parent_path })?;
            let id = self.id(call)?;
            // SAFETY: valid handle and name, lock held; we own the group.
            let group = unsafe { call.handle("H5Gopen2", H5Gopen2(id, parent_name.as_ptr(), H5P_DEFAULT)) }?;
            self.parent = Some((parent_path.to_vec(), group));
        }
        let Some(parent) = self.parent.as_ref().map(|(_, group)| group.id()) else {
            return Err(call.error("H5Gopen2"));
        };
        let link_list = properties::link_creation(call, link.utf8)?;
        let created = create(self, call, parent, name, link_list.id())?;
        self.ledger.linked(parent_path, (name.len() + target_len) as u64);
        Ok(created)
    }

    /// Returns the space that a new link may take in its group; `target_len` is the length of its target text.
    pub(super) fn link_room(&self, link: NewLink<'_>, target_len: usize) -> u64 {
        let (parent, name) = link.split();
        self.ledger.link_room(parent, (name.len() + target_len) as u64)
    }

    fn link(
        &mut self,
        link: NewLink<'_>,
        target_len: usize,
        create: impl FnOnce(&mut Self, Call<'_>, hid_t, *const c_char, hid_t) -> Result<()>,
    ) -> Result<()> {
        let _library = Library::lock();
        self.require(self.link_room(link, target_len))?;
        let result = self.linked(link, target_len, |file, call, parent, name, list| {
            let name = call.c_string("H5Lcreate", name)?;
            create(file, call, parent, name.as_ptr(), list)
        });
        self.settle(result)
    }
}
