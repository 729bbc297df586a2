//! Hand-over of results, in order, from threads that work ahead to the thread that consumes them.
//!
//! Invariant: the number of places handed out and not yet consumed is bounded, and no thread waits for one that has
//! stopped or panicked.

use crate::error::CoreError;
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// Results, each of which waits until the results of all lower numbers have been taken.
#[derive(Debug)]
pub struct InOrder<T> {
    waiting: BTreeMap<u64, T>,
    next: u64,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), next: 0 }
    }
}

impl<T> InOrder<T> {
    /// Adds the result of a number.
    pub fn put(&mut self, number: u64, result: T) {
        self.waiting.insert(number, result);
    }

    /// Removes the result with the lowest number and returns it with this number; `None` until that result has been
    /// added.
    pub fn take_next(&mut self) -> Option<(u64, T)> {
        let (number, result) = (self.next, self.waiting.remove(&self.next)?);
        self.next += 1;
        Some((number, result))
    }

    /// Discards all results that wait.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}

/// Bounded queue of results that are not consumed yet.
#[derive(Debug)]
pub struct OrderedQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    count: usize,
    limit: usize,
}

#[derive(Debug)]
struct State<T> {
    results: BTreeMap<usize, T>,
    next: usize,
    taken: usize,
    stopped: bool,
}

impl<T: Send> OrderedQueue<T> {
    /// Creates a queue for `count` places, of which at most `limit` may be produced but not yet consumed.
    pub fn new(count: usize, limit: usize) -> Self {
        let state = State { results: BTreeMap::new(), next: 0, taken: 0, stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), count, limit }
    }

    /// Runs `work` on up to `threads` threads, where it takes places and puts results, and `take` on this thread, where
    /// it consumes the results. An error of `take` stops the others.
    ///
    /// # Errors
    /// If `take` fails. [`CoreError::Threads`] if no thread can be started.
    pub fn run<R, E: From<CoreError>>(
        &self,
        threads: usize,
        work: impl Fn() + Sync,
        take: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let work = || {
            let _stop = StopOnPanic(self);
            work();
        };
        let mut no_thread = None;
        let taken = std::thread::scope(|scope| {
            for number in 0..threads.min(self.count) {
                if let Err(source) = std::thread::Builder::new().spawn_scoped(scope, work) {
                    // If no more threads can be started, the existing ones do all the work.
                    if number == 0 {
                        no_thread = Some(source);
                        self.stop();
                    }
                    break;
                }
            }
            take().inspect_err(|_| self.stop())
        });
        no_thread.map_or(taken, |source| Err(CoreError::Threads { source }.into()))
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next place to work on, waiting until consumption has caught up; `None` at the end.
    pub fn next(&self) -> Option<usize> {
        let mut state = self.state();
        while !state.stopped && state.next < self.count && state.next >= state.taken + self.limit {
            state = self.wait(state);
        }
        if state.stopped || state.next == self.count {
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    /// Adds the result of a place.
    pub fn put(&self, place: usize, result: T) {
        self.state().results.insert(place, result);
        self.changed.notify_all();
    }

    /// Waits for the result of a place and returns it; `None` once stopped.
    pub fn take(&self, place: usize) -> Option<T> {
        let mut state = self.state();
        loop {
            if let Some(result) = state.results.remove(&place) {
                state.taken = place + 1;
                self.changed.notify_all();
                return Some(result);
            }
            if state.stopped {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// Stops handing out places and wakes all waiting threads.
    pub fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }
}

/// Guard that stops the queue when a working thread panics, so that the consuming thread can report it.
struct StopOnPanic<'a, T: Send>(&'a OrderedQueue<T>);

impl<T: Send> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_come_in_order_and_never_too_far_ahead() {
        let (count, limit) = (100, 3);
        let (ahead, taken) = (OrderedQueue::new(count, limit), AtomicUsize::new(0));
        let work = || {
            while let Some(place) = ahead.next() {
                // `taken` may lag behind by the result that is being checked.
                assert!(place < taken.load(Ordering::SeqCst) + 1 + limit);
                ahead.put(place, place.to_string());
            }
        };
        let take = || {
            for place in 0..count {
                assert_eq!(ahead.take(place), Some(place.to_string()));
                taken.store(place + 1, Ordering::SeqCst);
            }
            Ok::<_, CoreError>(count)
        };
        assert_eq!(ahead.run(4, work, take).unwrap(), count);
        assert!(ahead.next().is_none());
    }

    #[test]
    fn results_wait_for_those_before_them() {
        let mut results = InOrder::default();
        results.put(1, "b");
        assert_eq!(results.take_next(), None);
        results.put(0, "a");
        assert_eq!(
            (results.take_next(), results.take_next(), results.take_next()),
            (Some((0, "a")), Some((1, "b")), None)
        );
        results.put(2, "c");
        results.clear();
        assert_eq!(results.take_next(), None);
    }

    #[test]
    fn an_error_of_the_taker_ends_the_work() {
        let ahead = OrderedQueue::new(1000, 2);
        let work = || {
            while let Some(place) = ahead.next() {
                ahead.put(place, place);
            }
        };
        let taken = ahead.run(3, work, || ahead.take(0).map_or(Ok(()), |_| Err(CoreError::Cancelled)));
        assert!(matches!(taken, Err(CoreError::Cancelled)));
        assert!(ahead.next().is_none());
    }

    #[test]
    fn a_panic_ends_the_wait() {
        let ahead = OrderedQueue::<()>::new(2, 2);
        let work = || {
            ahead.next();
            panic!("on purpose");
        };
        let ended = AtomicUsize::new(0);
        let take = || {
            assert!(ahead.take(0).is_none());
            ended.store(1, Ordering::SeqCst);
            Ok::<_, CoreError>(())
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ahead.run(1, work, take))).is_err());
        assert_eq!(ended.into_inner(), 1);
    }
}
