//! Files written and read with ordinary libhdf5 calls, as an independent reference for raddle's tests.
//!
//! This module uses only public libhdf5 functions and, from raddle, the lock and handles of `raddle_hdf5::ffi` and
//! the names of `raddle_hdf5::model`. Files are read in this process, so only files made by tests or raddle may be
//! read, not hostile ones. Every public function holds the library's lock throughout.

mod make;
pub mod numbers;
mod read;
pub mod storage;
mod types;
mod values;

pub use make::{make, make_all, make_columns};
pub use read::read;

use raddle_hdf5::ffi::Library;
use std::ffi::{CStr, c_char};

/// Copies and frees a string that libhdf5 allocated; `None` for null.
///
/// # Safety
/// `text` must be null or a string whose ownership a libhdf5 call passed to the caller.
unsafe fn take_string(_library: &Library, text: *mut c_char) -> Option<Vec<u8>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, zero-terminated by libhdf5 and owned by us; freed once, after the copy.
    unsafe {
        let bytes = CStr::from_ptr(text).to_bytes().to_vec();
        hdf5_metno_sys::h5::H5free_memory(text.cast());
        Some(bytes)
    }
}
