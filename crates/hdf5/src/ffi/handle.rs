//! An owned libhdf5 identifier.

use super::Library;
use hdf5_metno_sys::h5i::{H5Idec_ref, hid_t};

/// One reference to a libhdf5 object (file, group, dataset, datatype, property list, ...), released on drop.
///
/// The reference is released under the library's lock. A destructor cannot report a failed release: code that must know
/// (closing an output file) releases through [`Handle::into_raw`] and checks.
#[derive(Debug)]
pub struct Handle(hid_t);

impl Handle {
    /// Takes over the reference that a libhdf5 call returned; returns `None` if the call failed (a negative
    /// identifier).
    ///
    /// # Safety
    /// `id` must be negative, or an identifier whose reference is not released elsewhere.
    pub unsafe fn from_raw(id: hid_t) -> Option<Self> {
        (id >= 0).then(|| Self(id))
    }

    /// Returns the identifier, valid while `self` lives.
    pub fn id(&self) -> hid_t {
        self.0
    }

    /// Gives up ownership: the caller must release the reference.
    pub fn into_raw(self) -> hid_t {
        let id = self.0;
        std::mem::forget(self);
        id
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _library = Library::lock();
        // SAFETY: the lock is held and the reference is ours by the contract of `from_raw`; dropped only once.
        unsafe { H5Idec_ref(self.0) };
    }
}
