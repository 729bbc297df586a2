//! Filter pipelines of an output, exactly as requested, whether libhdf5 knows the filters or not.
//!
//! Chunks arrive already encoded, so libhdf5 only records the name and parameters of a filter. Nevertheless `H5Dcreate`
//! fails for a mandatory filter that is not registered, and rewrites the parameters of some that are (`set_local` of
//! shuffle, n-bit and scale-offset). Therefore an unknown filter is registered under its number with a class that
//! refuses to run, and the parameters of known ones are compared with the requested ones after creation.
//!
//! Filters are registered per process: a class has one name at a time, and unregistering one flushes all open files.
//! libhdf5 looks up the name when it measures a dataset's header and again when it encodes it, which may be when the
//! file is closed. Invariants: a stand-in stays registered for the life of the process, and a dataset with a stand-in
//! is encoded before the lock under which it was created is released, because the next dataset may use a different name
//! for the filter.
//!
//! Numbers below 256 are reserved by libhdf5 and cannot be registered. Of these, szip is not built in, and is recorded
//! as optional even if it was mandatory. That makes no difference to readers, which check the filter mask of each
//! chunk.

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

/// Names of the stand-ins registered in libhdf5, which copies the class but not the string.
static STAND_INS: Mutex<BTreeMap<u16, CString>> = Mutex::new(BTreeMap::new());

/// Filter function of a stand-in. It always fails, so that no chunk can be written that claims to be filtered but is
/// not.
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

/// Registers a stand-in if one is needed; returns whether libhdf5 then has the filter.
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
    // SAFETY: lock held; libhdf5 copies the class, and the name lives until it is replaced, as happens here if the
    // number is already registered.
    call.status("H5Zregister", unsafe { H5Zregister((&raw const class).cast()) })?;
    stand_ins.insert(filter.id, name);
    Ok(true)
}

/// Makes libhdf5 encode the header of a newly created dataset if one of its filters has a stand-in. The caller has held
/// the lock since [`append`].
pub(super) fn encode_names(call: Call<'_>, dataset: &Handle, filters: &[Filter]) -> Result<()> {
    let stand_ins = STAND_INS.lock().unwrap_or_else(PoisonError::into_inner);
    if filters.iter().any(|filter| stand_ins.contains_key(&filter.id)) {
        // SAFETY: valid handle, lock held.
        call.status("H5Oflush", unsafe { H5Oflush(dataset.id()) })?;
    }
    Ok(())
}

/// Checks that the new dataset's pipeline is the requested one. The caller holds the lock.
pub(super) fn check(call: Call<'_>, dataset: &Handle, filters: &[Filter]) -> Result<()> {
    // Only these filters rewrite their parameters: shuffle (2), n-bit (5), scale-offset (6).
    if !filters.iter().any(|filter| matches!(filter.id, 2 | 5 | 6)) {
        return Ok(());
    }
    // SAFETY: valid handle, lock held; we own the new list.
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
                    "libhdf5 sets the parameters of filter {} to {values:?} for this type and chunk instead of {:?}",
                    filter.id, filter.parameters
                ),
            ));
        }
    }
    Ok(())
}
