//! Pool of threads that are kept between pieces of work, for work that is too short to start threads for.
//!
//! Linux may place a new thread on the processor of its creator until the next tick of its scheduler. On two cores of
//! an AMD EPYC (2026-11-27), half of 40 threads began 2.97 ms after they were started, but 0.03 ms after they were
//! woken.
//!
//! Invariant: no work waits for a thread. A thread of the pool is reserved before it is given work; if none is free,
//! one is started.

use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZero;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` at the same time on up to `threads` threads, including this one.
///
/// # Panics
/// As for [`run_with_helpers`].
pub fn on_threads(threads: usize, work: impl Fn() + Sync) {
    run_with_helpers(threads.saturating_sub(1), &work, &work);
}

/// Calls `here` on this thread, and at the same time `work` on up to `others` other threads; returns the result of
/// `here` when all calls have ended. There may be fewer other threads, or none, if no more can be started.
///
/// # Panics
/// If a call panics, after all of them have ended.
pub fn run_with_helpers<R>(others: usize, work: impl Fn() + Sync, here: impl FnOnce() -> R) -> R {
    let pool = if others > 0 { Pool::of_process() } else { None };
    let Some(pool) = pool else { return beside_new_threads(others, &work, here) };
    pool.threads.in_place_scope(|scope| {
        let mut started = 0;
        while started < others
            && let Some(reserved) = pool.reserve()
        {
            let work = &work;
            scope.spawn(move |_| {
                let _reserved = reserved;
                work();
            });
            started += 1;
        }
        beside_new_threads(others - started, &work, here)
    })
}

fn beside_new_threads<R>(others: usize, work: &(impl Fn() + Sync), here: impl FnOnce() -> R) -> R {
    std::thread::scope(|scope| {
        for _ in 0..others {
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        here()
    })
}

/// Calls `work` on another thread, without waiting for its end.
///
/// # Errors
/// If no thread can be started.
pub fn start(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    match Pool::of_process().and_then(|pool| Some((pool, pool.reserve()?))) {
        Some((pool, reserved)) => pool.threads.spawn(move || {
            let _reserved = reserved;
            work();
        }),
        None => drop(std::thread::Builder::new().spawn(work)?),
    }
    Ok(())
}

/// Threads of this process, as many as it has cores.
struct Pool {
    threads: ThreadPool,
    /// Number of threads without work.
    idle: AtomicUsize,
}

impl Pool {
    /// Returns the threads of this process; `None` if they cannot be started, or another thread is starting them.
    ///
    /// Locks are only tried, because a lock that another thread held during a fork is never released in the new
    /// process.
    fn of_process() -> Option<&'static Self> {
        static POOL: RwLock<Option<(u32, &'static Pool)>> = RwLock::new(None);
        // The threads of a parent process do not exist in a forked one.
        let of_this = |known: &Option<(u32, &'static Self)>| {
            known.filter(|(process, _)| *process == std::process::id()).map(|(_, pool)| pool)
        };
        if let Some(pool) = of_this(&*POOL.try_read().ok()?) {
            return Some(pool);
        }
        let mut known = POOL.try_write().ok()?;
        if let Some(pool) = of_this(&known) {
            return Some(pool);
        }
        // They are used until the process ends.
        let pool = Box::leak(Box::new(Self::new()?));
        *known = Some((std::process::id(), pool));
        Some(pool)
    }

    fn new() -> Option<Self> {
        let count = std::thread::available_parallelism().map_or(1, NonZero::get);
        let builder = ThreadPoolBuilder::new().num_threads(count).thread_name(|number| format!("raddle-{number}"));
        // A panic in work that was started ends that work, as on a new thread.
        let threads = builder.panic_handler(|_| ()).build().ok()?;
        Some(Self { threads, idle: AtomicUsize::new(count) })
    }

    /// Reserves a thread without work, if there is one.
    fn reserve(&'static self) -> Option<ThreadPermit> {
        let less_one = |idle: usize| idle.checked_sub(1);
        self.idle.fetch_update(Ordering::Acquire, Ordering::Relaxed, less_one).ok()?;
        Some(ThreadPermit { pool: self })
    }
}

/// Right to use one thread of the pool.
struct ThreadPermit {
    pool: &'static Pool,
}

impl Drop for ThreadPermit {
    fn drop(&mut self) {
        self.pool.idle.fetch_add(1, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::mpsc::channel;
    use std::sync::{Barrier, Mutex};

    #[test]
    fn work_runs_on_all_threads_at_the_same_time() {
        for threads in [1, 2, 3, 40] {
            // Passed only if all threads arrive.
            let barrier = Barrier::new(threads);
            let calls = AtomicUsize::new(0);
            on_threads(threads, || {
                barrier.wait();
                calls.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(calls.into_inner(), threads);
        }
    }

    #[test]
    fn work_inside_of_work_waits_for_no_thread() {
        let threads = 2 * std::thread::available_parallelism().map_or(1, NonZero::get);
        let (outer, calls) = (Barrier::new(threads), AtomicUsize::new(0));
        on_threads(threads, || {
            outer.wait();
            let inner = Barrier::new(3);
            on_threads(3, || {
                inner.wait();
                calls.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(calls.into_inner(), 3 * threads);
    }

    #[test]
    fn started_work_runs_beside_this_thread() {
        let (to_work, from_here) = channel();
        let (to_here, from_work) = channel();
        start(move || to_here.send((from_here.recv(), std::thread::current().id())).expect("it is awaited"))
            .expect("a thread starts");
        to_work.send(7).expect("it is awaited");
        let (received, thread) = from_work.recv().expect("it is sent");
        assert_eq!(received, Ok(7));
        assert_ne!(thread, std::thread::current().id());
    }

    #[test]
    fn threads_are_used_again() {
        let calls = Mutex::new(HashMap::new());
        for _ in 0..200 {
            on_threads(2, || {
                *calls.lock().expect("no panic").entry(std::thread::current().id()).or_insert(0) += 1;
            });
        }
        let mut calls = calls.into_inner().expect("no panic");
        assert_eq!(calls.remove(&std::thread::current().id()), Some(200));
        // Other tests may use up the pool at times; then there are new threads, each of which is called once.
        assert!(calls.into_values().any(|calls| calls > 1), "only new threads");
    }

    #[test]
    fn a_panic_arrives_after_all_have_ended() {
        let calls = AtomicUsize::new(0);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            on_threads(4, || assert!(calls.fetch_add(1, Ordering::Relaxed) != 2, "the third fails"));
        }));
        assert!(panicked.is_err());
        assert_eq!(calls.load(Ordering::Relaxed), 4);
        on_threads(4, || {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.into_inner(), 8, "the threads still work");
    }
}
