//! Preparation for forks: the new process has only the thread that forked, and would wait forever for a lock that
//! another thread held.
//!
//! A thread calls [`pause`] before it forks, then [`resume`] in the process that forked and [`resume_in_child`] in the
//! new one. Invariant: between [`pause`] and [`resume`], no other thread reads ahead, has a [`ReadGuard`] or calls
//! libhdf5.

use crate::ffi::{self, LibraryLock};
use raddle_core::pooled_file;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Threads of the process that may hold locks of a file.
#[derive(Debug)]
struct Threads {
    /// Number of threads that read ahead.
    running: usize,
    /// Number of values of [`ReadGuard`].
    reading: usize,
    /// Whether a call of [`pause`] waits.
    is_pausing: bool,
}

static THREADS: Mutex<Threads> = Mutex::new(Threads { running: 0, reading: 0, is_pausing: false });
/// Condition variable that is notified when a thread has ended or a pause is over.
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Number of values of [`ReadGuard`] of this thread. It is not 0 if a signal handler forks during a read.
    static THREAD_READS: Cell<usize> = const { Cell::new(0) };
    /// The pause of the thread that forks.
    static PAUSED: RefCell<Option<Pause>> = const { RefCell::new(None) };
}

/// Locks that are held during a fork.
struct Pause {
    threads: MutexGuard<'static, Threads>,
    library: LibraryLock,
}

fn threads() -> MutexGuard<'static, Threads> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that reads ahead.
pub(crate) struct BackgroundThread;

impl BackgroundThread {
    /// Counts another thread; `None` while none may start.
    pub fn new() -> Option<Self> {
        let mut threads = threads();
        (!threads.is_pausing).then(|| threads.running += 1).map(|()| Self)
    }

    pub fn is_paused() -> bool {
        threads().is_pausing
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        threads().running -= 1;
        CHANGED.notify_all();
    }
}

/// A read of an [`OpenFile`](crate::open_file::OpenFile) that several threads share. A fork waits until it has ended.
#[derive(Debug)]
pub struct ReadGuard {
    /// Marker that keeps the guard on its thread, because reads are counted per thread.
    _thread: PhantomData<*const ()>,
}

impl ReadGuard {
    /// Waits until no fork is pending.
    #[expect(clippy::new_without_default, reason = "it waits")]
    pub fn new() -> Self {
        let mut threads = threads();
        let thread_reads = THREAD_READS.get();
        while threads.is_pausing && thread_reads == 0 {
            threads = CHANGED.wait(threads).unwrap_or_else(PoisonError::into_inner);
        }
        threads.reading += 1;
        THREAD_READS.set(thread_reads + 1);
        Self { _thread: PhantomData }
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        THREAD_READS.set(THREAD_READS.get() - 1);
        threads().reading -= 1;
        CHANGED.notify_all();
    }
}

/// Waits until no thread reads ahead, no other thread has a [`ReadGuard`] and none calls libhdf5, and lets none start
/// until this thread calls [`resume`].
///
/// In Python, this thread must not hold the interpreter's lock during that time, because a read may wait for it.
pub fn pause() {
    let mut threads = threads();
    while threads.is_pausing {
        threads = CHANGED.wait(threads).unwrap_or_else(PoisonError::into_inner);
    }
    threads.is_pausing = true;
    while threads.running > 0 || threads.reading > THREAD_READS.get() {
        threads = CHANGED.wait(threads).unwrap_or_else(PoisonError::into_inner);
    }
    // This waits for work that calls libhdf5 without a `ReadGuard`, such as a merge.
    let library = ffi::exclude();
    PAUSED.set(Some(Pause { threads, library }));
}

/// Undoes the last [`pause`] of this thread in the process that forked.
pub fn resume() {
    if let Some(Pause { mut threads, library }) = PAUSED.take() {
        threads.is_pausing = false;
        drop((threads, library));
        CHANGED.notify_all();
    }
}

/// Undoes the last [`pause`] of this thread in the new process, and replaces what another thread had locked during the
/// fork.
pub fn resume_in_child() {
    pooled_file::after_fork();
    resume();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread;
    use std::time::Duration;

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn a_pause_waits_for_reads_and_lets_none_begin() {
        thread::scope(|scope| {
            let (paused, is_paused) = channel();
            let (resume_now, may_resume) = channel::<()>();
            let (began, has_begun) = channel();
            let read = ReadGuard::new();
            scope.spawn(move || {
                // Reads of the thread itself, as when a signal handler forks.
                let _nested = ReadGuard::new();
                pause();
                // Without a panic, which would not resume: a failed assertion of the other thread ends the channels.
                let _ = paused.send(());
                let _ = may_resume.recv_timeout(LONG);
                resume();
            });
            assert_eq!(is_paused.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
            drop(read);
            is_paused.recv_timeout(LONG).unwrap();
            scope.spawn(move || {
                let _read = ReadGuard::new();
                began.send(()).unwrap();
            });
            assert_eq!(has_begun.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
            resume_now.send(()).unwrap();
            has_begun.recv_timeout(LONG).unwrap();
        });
    }
}
