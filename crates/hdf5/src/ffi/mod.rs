//! Foundation of all calls to libhdf5: one lock, owned identifiers, errors as values.
//!
//! libhdf5 is built without its own lock, so one process-wide lock guards every call: hold a [`Library`] while calling.
//! The lock is reentrant, so that a [`Handle`] can release itself wherever it is dropped. Files and objects are the
//! concern of `write` (outputs) and `child` (untrusted inputs).
//!
//! Invariant: [`Library::lock`] initialises libhdf5 before its first call: errors are never printed, no plug-in is ever
//! loaded, and no exit handler of the library runs.

mod call;
mod handle;

pub use call::Call;
pub use handle::Handle;

use hdf5_metno_sys::h5::H5get_libversion;
use parking_lot::ReentrantMutexGuard;
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

unsafe extern "C" {
    fn raddle_library_initialize() -> c_int;
    /// Version of zlib, with which libhdf5 is linked (zlib.h).
    fn zlibVersion() -> *const c_char;
}

/// Returns names and versions of libhdf5 and of the library that it inflates with.
pub fn library_versions() -> Vec<(&'static str, String)> {
    let _library = Library::lock();
    let (mut major, mut minor, mut release) = (0, 0, 0);
    // SAFETY: the function writes three numbers; the lock is held.
    let status = unsafe { H5get_libversion(&mut major, &mut minor, &mut release) };
    let hdf5 = (status >= 0).then(|| ("HDF5", format!("{major}.{minor}.{release}")));
    // SAFETY: the function takes nothing and returns a string constant.
    let zlib = unsafe { CStr::from_ptr(zlibVersion()) };
    hdf5.into_iter().chain([("zlib", zlib.to_string_lossy().into_owned())]).collect()
}

/// Lock that is held by the only thread that waits for the lock of libhdf5.
static NEXT: Mutex<()> = Mutex::new(());

fn next() -> MutexGuard<'static, ()> {
    NEXT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock of libhdf5, held by a thread that forks.
///
/// No other thread is in the queue of the lock. `parking_lot` hands a lock that was held for a long time to a thread in
/// its queue, and the new process does not have that thread.
pub(crate) struct LibraryLock {
    // Released first.
    _guard: ReentrantMutexGuard<'static, ()>,
    _next: MutexGuard<'static, ()>,
}

/// Waits until no other thread calls libhdf5.
pub(crate) fn exclude() -> LibraryLock {
    let next = next();
    LibraryLock { _guard: hdf5_metno_sys::LOCK.lock(), _next: next }
}

/// Permission to call libhdf5, held by one thread at a time.
pub struct Library {
    // The lock of the bindings, so that another crate of the same program that uses them is excluded as well.
    _guard: ReentrantMutexGuard<'static, ()>,
}

impl Library {
    /// Waits for the lock; the first call also initialises the library.
    ///
    /// # Panics
    /// If libhdf5 cannot be initialised (out of memory), which a process cannot recover from.
    pub fn lock() -> Self {
        static READY: OnceLock<c_int> = OnceLock::new();
        let guard = hdf5_metno_sys::LOCK.try_lock().unwrap_or_else(|| {
            let _next = next();
            hdf5_metno_sys::LOCK.lock()
        });
        // SAFETY: the function takes nothing and the lock is held; OnceLock makes this the only call.
        let step = *READY.get_or_init(|| unsafe { raddle_library_initialize() });
        assert_eq!(step, 0, "libhdf5 cannot be initialised (step {step})");
        Self { _guard: guard }
    }
}
