//! Files written and read with ordinary libhdf5 calls: the independent witness of raddle's tests.
//!
//! Uses only libhdf5's public functions and, of raddle, the lock and handles of `raddle_hdf5::ffi` and the names of
//! `raddle_hdf5::model`. In this process, so only for files that tests made or that raddle wrote, not for hostile
//! ones. Every public function holds the library's lock for its whole length.

mod make;
pub mod numbers;
mod read;
pub mod storage;
mod types;
mod values;

pub use make::{make, make_all};
pub use read::read;

use raddle_hdf5::ffi::Library;
use std::ffi::{CStr, c_char};

/// Takes a string that libhdf5 allocated: a copy of its bytes; none for null.
///
/// # Safety
/// `text` must be null or come from a libhdf5 call that hands the string to the caller.
unsafe fn take_string(_library: &Library, text: *mut c_char) -> Option<Vec<u8>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, zero-terminated by libhdf5 and ours; freed once, after the copy.
    unsafe {
        let bytes = CStr::from_ptr(text).to_bytes().to_vec();
        hdf5_metno_sys::h5::H5free_memory(text.cast());
        Some(bytes)
    }
}
