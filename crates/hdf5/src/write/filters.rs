//! Filter pipelines of an output, exactly as asked for, known to libhdf5 or not.
//!
//! Chunks come already encoded, so libhdf5 needs a filter only to write its name and numbers down. It insists all
//! the same: `H5Dcreate` fails for a mandatory filter that is not registered, and rewrites the parameters of those
//! that are (`set_local` of shuffle, n-bit and scale-offset). So an unknown filter is registered under its number
//! for the life of the file, with a class that refuses to run; the parameters of known ones are compared after
//! creation with what was asked for. Numbers below 256 are libhdf5's own and cannot be registered: of these, szip
//! is not built in, and is written as optional where it was mandatory. That changes nothing for readers, who look at
//! each chunk's filter mask.

use super::not_writable;
use crate::error::Result;
use crate::ffi::{Call, Handle, Library};
use crate::model::Filter;
use hdf5_metno_sys::h5z::{H5Z_FLAG_MANDATORY, H5Z_FLAG_OPTIONAL};
use hdf5_metno_sys::h5z::{H5Z_class2_t, H5Zfilter_avail, H5Zregister, H5Zunregister};
use hdf5_metno_sys::{h5d::H5Dget_create_plist, h5p::H5Pget_filter2, h5p::H5Pset_filter};
use std::collections::HashMap;
use std::ffi::{CString, c_uint, c_void};

/// `H5Z_CLASS_T_VERS`.
const CLASS_VERSION: i32 = 1;

/// `H5Z_FILTER_RESERVED`.
const FIRST_FREE_NUMBER: u16 = 256;

/// Filters registered in libhdf5 so that their names can be written down.
#[derive(Default)]
pub(super) struct StandIns {
    // The name is kept beside: libhdf5 copies the class but not the string.
    classes: HashMap<u16, CString>,
}

/// The function of a stand-in: always fails, so that nobody can write a chunk that claims to be filtered and is not.
unsafe extern "C" fn refuse(
    _flags: c_uint,
    _parameter_count: usize,
    _parameters: *const c_uint,
    _len_bytes: usize,
    _buffer_len_bytes: *mut usize,
    _buffer: *mut *mut c_void,
) -> usize {
    0
}

impl StandIns {
    /// Appends `filters` to the pipeline of the dataset creation list. The caller holds the lock.
    pub fn append(&mut self, call: Call<'_>, creation: &Handle, filters: &[Filter]) -> Result<()> {
        for filter in filters {
            let registered = self.provide(call, filter)?;
            let flags = if filter.optional || !registered { H5Z_FLAG_OPTIONAL } else { H5Z_FLAG_MANDATORY };
            // SAFETY: valid handle, lock held; libhdf5 copies the parameters.
            let status = unsafe {
                let (count, values) = (filter.parameters.len(), filter.parameters.as_ptr());
                H5Pset_filter(creation.id(), i32::from(filter.id), flags, count, values)
            };
            call.status("H5Pset_filter", status)?;
        }
        Ok(())
    }

    /// Registers a stand-in where one is needed; whether libhdf5 knows the filter then.
    fn provide(&mut self, call: Call<'_>, filter: &Filter) -> Result<bool> {
        // SAFETY: lock held.
        let available = call.status("H5Zfilter_avail", unsafe { H5Zfilter_avail(i32::from(filter.id)) })?;
        if available > 0 && !self.classes.contains_key(&filter.id) {
            return Ok(true);
        }
        if filter.id < FIRST_FREE_NUMBER {
            return Ok(false);
        }
        let name = call.c_string("H5Zregister", &filter.name)?;
        if self.classes.get(&filter.id) == Some(&name) {
            return Ok(true);
        }
        let class = H5Z_class2_t {
            version: CLASS_VERSION,
            id: i32::from(filter.id),
            encoder_present: 1,
            decoder_present: 1,
            name: name.as_ptr(),
            can_apply: None,
            set_local: None,
            filter: Some(refuse),
        };
        // SAFETY: lock held; libhdf5 copies the class, the name lives in `self` until it is unregistered. Registering
        // the number again (another name in another dataset) replaces the class.
        call.status("H5Zregister", unsafe { H5Zregister((&raw const class).cast()) })?;
        self.classes.insert(filter.id, name);
        Ok(true)
    }

    /// Fails unless the new dataset's pipeline is the one asked for. The caller holds the lock.
    pub fn check(&self, call: Call<'_>, dataset: &Handle, filters: &[Filter]) -> Result<()> {
        // Only these rewrite their parameters: shuffle (2), n-bit (5), scale-offset (6).
        if !filters.iter().any(|filter| matches!(filter.id, 2 | 5 | 6)) {
            return Ok(());
        }
        // SAFETY: valid handle, lock held; the new list is ours.
        let creation = unsafe { call.handle("H5Dget_create_plist", H5Dget_create_plist(dataset.id())) }?;
        for (index, filter) in filters.iter().enumerate() {
            let mut flags: c_uint = 0;
            let mut values = vec![0_u32; filter.parameters.len().max(32)];
            let mut count = values.len();
            let mut config: c_uint = 0;
            // SAFETY: as above; libhdf5 writes at most `count` values and no name (length 0).
            let id = unsafe {
                H5Pget_filter2(
                    creation.id(),
                    index as c_uint,
                    &raw mut flags,
                    &raw mut count,
                    values.as_mut_ptr(),
                    0,
                    std::ptr::null_mut(),
                    &raw mut config,
                )
            };
            call.status("H5Pget_filter2", id)?;
            values.truncate(count);
            if id != i32::from(filter.id) || values != filter.parameters {
                return Err(not_writable(
                    call,
                    format!(
                        "libhdf5 gives filter {} the parameters {values:?} for this type and chunk, {:?} are asked for",
                        filter.id, filter.parameters
                    ),
                ));
            }
        }
        Ok(())
    }
}

impl Drop for StandIns {
    fn drop(&mut self) {
        let _library = Library::lock();
        for &id in self.classes.keys() {
            // A failure leaves a class that refuses to run: harmless, and its name must then stay alive.
            // SAFETY: lock held; the files that used the filter are closed before their stand-ins are dropped.
            let status = unsafe { H5Zunregister(i32::from(id)) };
            debug_assert!(status >= 0, "filter {id} is still in use");
        }
    }
}
