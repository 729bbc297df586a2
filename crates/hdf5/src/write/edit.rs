//! Edits an existing file without modifying it: libhdf5 opens its objects through the planning driver, and libhdf5's
//! changes are returned as a list of bytes to be written.
//!
//! New chunks are claimed as in a new file, at addresses after the file's old end, where new metadata goes as well.
//! Both are in the file before the changes are, but invisible to readers, because the superblock states the end of the
//! file. When and how the changes are written, and made atomic, is the caller's responsibility.
//!
//! Invariant: until the caller writes the changes, every byte below the old end is unchanged.

use super::driver::DriverHandle;
use super::overlay::{Change, Overlay};
use super::{Compat, OutputFile, not_writable, properties};
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle, Library};
use hdf5_metno_sys::h5d::{H5Dopen2, H5Dset_extent};
use hdf5_metno_sys::h5f::{H5F_ACC_RDWR, H5Fopen};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::H5Ldelete;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use std::ffi::c_int;
use std::fs::File;
use std::path::Path;

unsafe extern "C" {
    fn raddle_manages_space(file: hid_t) -> c_int;
}

/// Result of an edit.
#[derive(Debug)]
pub struct EditedFile {
    /// Changes below the old end, all of which must be applied together.
    pub changes: Vec<Change>,
    /// Length of the file, which it already has.
    pub file_len_bytes: u64,
    /// Length of the metadata after the new raw data.
    pub tail_len_bytes: u64,
    /// Number of chunks indexed at addresses chosen by the caller.
    pub claim_count: u64,
}

impl OutputFile {
    /// Opens the HDF5 file in `file`, which is open for reading and writing under `path` and `old_end` bytes long, for
    /// editing. Claims must lie between `old_end` and `raw_end`. Finish with [`OutputFile::finish_edit`]; if dropped
    /// instead, the file is unchanged except for bytes after `old_end`.
    pub fn edit(file: File, path: &Path, old_end: u64, raw_end: u64) -> Result<Self> {
        let io = |source| Hdf5Error::Io { path: path.to_path_buf(), operation: "prepare to edit".to_owned(), source };
        let overlay = Overlay::new(file.try_clone().map_err(io)?, old_end);
        let _library = Library::lock();
        let plan = DriverHandle::for_editing(&file, overlay, raw_end).map_err(io)?;
        let mut output = Self::around(file, path, Compat::Earliest, old_end);
        output.open(plan)?;
        let call = Call::of_file(path);
        // SAFETY: a valid handle, lock held.
        match unsafe { raddle_manages_space(output.id(call)?) } {
            0 => Ok(output),
            1 => {
                let what = "it uses paged or persistent free space; rewrite it with `h5repack -S FSM_AGGR`";
                Err(not_writable(call, what.to_owned()))
            }
            _ => Err(call.error("H5Pget_file_space_strategy")),
        }
    }

    /// Closes the file and opens it again, so that libhdf5 forgets the space freed so far. Otherwise the space of
    /// removed chunks would be reused for new ones, which could then not be claimed, although the old file still needs
    /// those bytes.
    pub fn forget_free_space(&mut self) -> Result<()> {
        let _library = Library::lock();
        let mut plan = self.close()?;
        plan.reopen();
        self.open(plan)
    }

    /// Writes libhdf5's pending changes and closes the file.
    pub fn finish_edit(mut self) -> Result<EditedFile> {
        let _library = Library::lock();
        let plan = self.close()?;
        let usage = plan.usage();
        let io =
            |source| Hdf5Error::Io { path: self.path().to_path_buf(), operation: "compare changes".to_owned(), source };
        let changes = plan.into_overlay().map(Overlay::into_changes).transpose().map_err(io)?.unwrap_or_default();
        Ok(EditedFile {
            changes,
            file_len_bytes: usage.end,
            tail_len_bytes: usage.tail_len_bytes,
            claim_count: usage.claim_count,
        })
    }

    /// Sets new dimensions of a chunked dataset. Chunks entirely outside of them are removed. No chunk may lie partly
    /// outside, because libhdf5 would read and rewrite it.
    pub fn resize_dataset(&mut self, path: &[u8], dims: &[u64]) -> Result<()> {
        let _library = Library::lock();
        let file_path = self.shared_path();
        let call = Call::of_object(&file_path, path);
        let name = call.c_string("H5Dopen2", path)?;
        let file = self.id(call)?;
        // SAFETY: valid handles and name, lock held; `dims` has one number per dimension of the dataset, which the
        // caller knows from the file.
        let resized = unsafe {
            let dataset = call.handle("H5Dopen2", H5Dopen2(file, name.as_ptr(), H5P_DEFAULT));
            dataset.and_then(|dataset| call.status("H5Dset_extent", H5Dset_extent(dataset.id(), dims.as_ptr())))
        };
        self.settle(resized.map(drop))
    }

    /// Removes a link, and the object as well if that was its last link.
    pub fn unlink(&mut self, path: &[u8]) -> Result<()> {
        let _library = Library::lock();
        let file_path = self.shared_path();
        let call = Call::of_object(&file_path, path);
        let name = call.c_string("H5Ldelete", path)?;
        let file = self.id(call)?;
        // SAFETY: valid handle and name, lock held.
        let status = unsafe { H5Ldelete(file, name.as_ptr(), H5P_DEFAULT) };
        let removed = call.status("H5Ldelete", status).map(drop);
        self.settle(removed)
    }

    fn open(&mut self, plan: DriverHandle) -> Result<()> {
        let path = self.shared_path();
        let call = Call::of_file(&path);
        let access = properties::file_access(call, &plan, self.compat())?;
        let name = call.c_string("H5Fopen", path.as_os_str().as_encoded_bytes())?;
        // SAFETY: valid list and name, lock held; we own the identifier. The driver ignores the name and uses the
        // descriptor in the plan.
        let id = unsafe { call.handle("H5Fopen", H5Fopen(name.as_ptr(), H5F_ACC_RDWR, access.id())) };
        let id: Handle = plan.check(&path).and(id)?;
        self.opened_with(id, plan);
        Ok(())
    }
}
