//! User-defined link classes that libhdf5 must know while an output has links of them.
//!
//! Invariant: only classes that raddle registered are unregistered.

use crate::error::Result;
use crate::ffi::{Call, Library};
use hdf5_metno_sys::h5::herr_t;
use std::collections::BTreeSet;
use std::ffi::c_int;

unsafe extern "C" {
    fn raddle_provide_link_class(class: c_int) -> c_int;
    fn raddle_withdraw_link_class(class: c_int) -> herr_t;
}

/// User-defined link classes registered in libhdf5, so that links of these classes can be created.
#[derive(Default)]
pub(super) struct LinkClasses(BTreeSet<u8>);

impl LinkClasses {
    /// Registers a class unless it is registered already. The caller holds the lock.
    pub(super) fn provide(&mut self, call: Call<'_>, class: u8) -> Result<()> {
        // SAFETY: the caller holds the lock; the shim registers static functions.
        let provided = unsafe { raddle_provide_link_class(c_int::from(class)) };
        if call.status("H5Lregister", provided)? > 0 {
            self.0.insert(class);
        }
        Ok(())
    }
}

impl Drop for LinkClasses {
    fn drop(&mut self) {
        let _library = Library::lock();
        for &class in &self.0 {
            // SAFETY: lock held; registered by us, and links hold no reference to their class.
            let status = unsafe { raddle_withdraw_link_class(c_int::from(class)) };
            debug_assert!(status >= 0, "link class {class} was unregistered elsewhere");
        }
    }
}
