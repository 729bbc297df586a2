//! The ground that every call into libhdf5 stands on: one lock, owned identifiers, errors as values.
//!
//! libhdf5 is built without its own lock, so one process-wide lock guards every call: hold a [`Library`] while
//! calling. The lock may be taken again by the thread that holds it, which lets [`Handle`] release itself whoever
//! drops it. Nothing here knows about files or objects; that is `write` (outputs) and `child` (hostile inputs).
//!
//! Invariant: no call of libhdf5 happens before [`Library::lock`] has initialised it: errors are never printed, no
//! plugin is ever loaded, and no exit handler of the library runs.

mod call;
mod handle;

pub use call::Call;
pub use handle::Handle;

use parking_lot::ReentrantMutexGuard;
use std::ffi::c_int;
use std::sync::OnceLock;

unsafe extern "C" {
    fn raddle_library_initialize() -> c_int;
}

/// The right to call libhdf5, held by one thread at a time.
pub struct Library {
    // The lock of the bindings themselves: another crate of the same program that uses them is excluded as well.
    _guard: ReentrantMutexGuard<'static, ()>,
}

impl Library {
    /// Waits for the lock; the first call also sets the library up.
    ///
    /// # Panics
    /// If libhdf5 cannot start (out of memory): there is nothing that this process could do with it.
    pub fn lock() -> Self {
        static READY: OnceLock<c_int> = OnceLock::new();
        let guard = hdf5_metno_sys::LOCK.lock();
        // SAFETY: the function takes nothing and the lock is held; OnceLock makes this the only call.
        let step = *READY.get_or_init(|| unsafe { raddle_library_initialize() });
        assert_eq!(step, 0, "libhdf5 does not start (step {step})");
        Self { _guard: guard }
    }
}
