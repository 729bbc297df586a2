//! A pause of all reading around a fork: the forked process has no threads but the one that forked, and would wait forever for
//! a lock that another one held.
//!
//! Invariant: between [`pause`] and [`resume`], no other thread reads ahead or is in a call of
//! [`WholeReader::read`](super::WholeReader::read).

use std::cell::{Cell, RefCell};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Threads of the process that may hold a lock.
#[derive(Debug)]
struct Threads {
    /// Threads that read ahead.
    running: usize,
    /// Calls of [`WholeReader::read`](super::WholeReader::read).
    reading: usize,
    /// Whether a call of [`pause`] waits.
    is_pausing: bool,
}

static THREADS: Mutex<Threads> = Mutex::new(Threads { running: 0, reading: 0, is_pausing: false });
/// Signalled when a thread has ended or a pause is over.
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Calls of [`WholeReader::read`](super::WholeReader::read) of this thread: more than none if a handler of a signal forks during a read.
    static OWN_READS: Cell<usize> = const { Cell::new(0) };
    /// The lock, held by the thread that forks.
    static PAUSED: RefCell<Option<MutexGuard<'static, Threads>>> = const { RefCell::new(None) };
}

fn threads() -> MutexGuard<'static, Threads> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running thread.
pub(super) struct Running;

impl Running {
    /// Counts another thread; `None` while none may start.
    pub fn new() -> Option<Self> {
        let mut threads = threads();
        (!threads.is_pausing).then(|| threads.running += 1).map(|()| Self)
    }

    pub fn is_paused() -> bool {
        threads().is_pausing
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        threads().running -= 1;
        CHANGED.notify_all();
    }
}

/// A call of [`WholeReader::read`](super::WholeReader::read).
pub(super) struct Reading;

impl Reading {
    /// Waits until no fork is pending.
    pub fn new() -> Self {
        let mut threads = threads();
        let own = OWN_READS.get();
        while threads.is_pausing && own == 0 {
            threads = CHANGED.wait(threads).unwrap_or_else(PoisonError::into_inner);
        }
        threads.reading += 1;
        OWN_READS.set(own + 1);
        Self
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        OWN_READS.set(OWN_READS.get() - 1);
        threads().reading -= 1;
        CHANGED.notify_all();
    }
}

/// Waits until no thread reads ahead and no other thread reads a dataset, and lets none start until this thread calls
/// [`resume`]. A process calls both around a fork, because a forked process has no other threads but would inherit the locks
/// that they held.
pub fn pause() {
    let mut threads = threads();
    while threads.is_pausing {
        threads = CHANGED.wait(threads).unwrap_or_else(PoisonError::into_inner);
    }
    threads.is_pausing = true;
    while threads.running > 0 || threads.reading > OWN_READS.get() {
        threads = CHANGED.wait(threads).unwrap_or_else(PoisonError::into_inner);
    }
    PAUSED.set(Some(threads));
}

/// Undoes the last [`pause`] of this thread.
pub fn resume() {
    if let Some(mut threads) = PAUSED.take() {
        threads.is_pausing = false;
        drop(threads);
        CHANGED.notify_all();
    }
}
