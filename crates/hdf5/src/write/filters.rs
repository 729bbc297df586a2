//! Filter pipelines of an output, exactly as asked for, known to libhdf5 or not.
//!
//! Chunks come already encoded, so libhdf5 needs a filter only to write its name and numbers down. It insists all
//! the same: `H5Dcreate` fails for a mandatory filter that is not registered, and rewrites the parameters of those
//! that are (`set_local` of shuffle, n-bit and scale-offset). So an unknown filter is registered under its number
//! with a class that refuses to run; the parameters of known ones are compared after creation with what was asked for.
//!
//! Filters are the process's: a class has one name at a time, and the end of one flushes all open files. libhdf5 looks a
//! name up when it measures a dataset's header and again when it encodes it, which may be at the file's end. Invariants:
//! a stand-in stays for the life of the process, and a dataset that one stands in for is encoded before the lock under
//! which it was made is given up, for the next may name the filter otherwise.
//!
//! Numbers below 256 are libhdf5's own and cannot be registered: of these, szip
//! is not built in, and is written as optional where it was mandatory. That changes nothing for readers, who look at
//! each chunk's filter mask.

use super::not_writable;
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::Filter;
use hdf5_metno_sys::h5z::{H5Z_FLAG_MANDATORY, H5Z_FLAG_OPTIONAL};
use hdf5_metno_sys::h5z::{H5Z_class2_t, H5Zfilter_avail, H5Zregister};
use hdf5_metno_sys::{h5d::H5Dget_create_plist, h5o::H5Oflush, h5p::H5Pget_filter2, h5p::H5Pset_filter};
use std::collections::BTreeMap;
use std::ffi::{CString, c_uint, c_void};
use std::sync::{Mutex, PoisonError};

/// `H5Z_CLASS_T_VERS`.
const CLASS_VERSION: i32 = 1;

/// `H5Z_FILTER_RESERVED`.
const FIRST_FREE_NUMBER: u16 = 256;

/// The names of filters that are registered in libhdf5 so that they can be written down: it copies the class but not the
/// string.
static STAND_INS: Mutex<BTreeMap<u16, CString>> = Mutex::new(BTreeMap::new());

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

/// Appends `filters` to the pipeline of the dataset creation list. The caller holds the lock.
pub(super) fn append(call: Call<'_>, creation: &Handle, filters: &[Filter]) -> Result<()> {
    for filter in filters {
        let is_known = provide(call, filter)?;
        let flags = if filter.optional || !is_known { H5Z_FLAG_OPTIONAL } else { H5Z_FLAG_MANDATORY };
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
fn provide(call: Call<'_>, filter: &Filter) -> Result<bool> {
    let mut stand_ins = STAND_INS.lock().unwrap_or_else(PoisonError::into_inner);
    if !stand_ins.contains_key(&filter.id) {
        // SAFETY: lock held.
        let available = call.status("H5Zfilter_avail", unsafe { H5Zfilter_avail(i32::from(filter.id)) })?;
        if available > 0 || filter.id < FIRST_FREE_NUMBER {
            return Ok(available > 0);
        }
    }
    let name = call.c_string("H5Zregister", &filter.name)?;
    if stand_ins.get(&filter.id) == Some(&name) {
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
    // SAFETY: lock held; libhdf5 copies the class, and the name lives until another takes its place, as it does here where
    // the number is registered already.
    call.status("H5Zregister", unsafe { H5Zregister((&raw const class).cast()) })?;
    stand_ins.insert(filter.id, name);
    Ok(true)
}

/// Has the header of a dataset encoded that was just made, if a stand-in names one of its filters. The caller has held the
/// lock since [`append`].
pub(super) fn encode_names(call: Call<'_>, dataset: &Handle, filters: &[Filter]) -> Result<()> {
    let stand_ins = STAND_INS.lock().unwrap_or_else(PoisonError::into_inner);
    if filters.iter().any(|filter| stand_ins.contains_key(&filter.id)) {
        // SAFETY: valid handle, lock held.
        call.status("H5Oflush", unsafe { H5Oflush(dataset.id()) })?;
    }
    Ok(())
}

/// Fails unless the new dataset's pipeline is the one asked for. The caller holds the lock.
pub(super) fn check(call: Call<'_>, dataset: &Handle, filters: &[Filter]) -> Result<()> {
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
