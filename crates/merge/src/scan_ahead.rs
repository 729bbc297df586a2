//! The hand-over between the threads that scan and the one that joins: places out, results in input order.
//!
//! Invariant: at most a stated number of inputs are scanned and not yet joined, and nobody waits for a thread that has
//! stopped or panicked.

use crate::scan::ScannedInput;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Inputs scanned but not yet joined, a bounded number of them: hands out places to scan and results in input order.
pub(crate) struct ScanAhead {
    state: Mutex<ScanState>,
    changed: Condvar,
    count: usize,
    limit: usize,
}

#[derive(Default)]
struct ScanState {
    scanned: BTreeMap<usize, raddle_hdf5::Result<ScannedInput>>,
    next: usize,
    taken: usize,
    stopped: bool,
}

impl ScanAhead {
    pub(crate) fn new(count: usize, limit: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), count, limit }
    }

    fn state(&self) -> MutexGuard<'_, ScanState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, ScanState>) -> MutexGuard<'a, ScanState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The next place to scan, as soon as the join is near enough; `None` at the end.
    pub(crate) fn next(&self) -> Option<usize> {
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

    pub(crate) fn put(&self, place: usize, scanned: raddle_hdf5::Result<ScannedInput>) {
        self.state().scanned.insert(place, scanned);
        self.changed.notify_all();
    }

    /// The result of a place, when it is there; `None` once stopped.
    pub(crate) fn take(&self, place: usize) -> Option<raddle_hdf5::Result<ScannedInput>> {
        let mut state = self.state();
        loop {
            if let Some(scanned) = state.scanned.remove(&place) {
                state.taken = place + 1;
                self.changed.notify_all();
                return Some(scanned);
            }
            if state.stopped {
                return None;
            }
            state = self.wait(state);
        }
    }

    pub(crate) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }
}

/// Lets the joining thread go on to report a panic of a scanning one.
pub(crate) struct StopOnPanic<'a>(pub(crate) &'a ScanAhead);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_hdf5::Hdf5Error;

    fn refused(place: usize) -> raddle_hdf5::Result<ScannedInput> {
        let what = place.to_string();
        Err(Hdf5Error::Unsupported { path: "input".into(), address: 0, what })
    }

    #[test]
    fn results_come_in_input_order_and_never_too_far_ahead() {
        let (count, limit) = (100, 3);
        let ahead = ScanAhead::new(count, limit);
        let joined = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(place) = ahead.next() {
                        // `joined` may lag behind what was taken by the one that is being looked at.
                        assert!(place < joined.load(std::sync::atomic::Ordering::SeqCst) + 1 + limit);
                        ahead.put(place, refused(place));
                    }
                });
            }
            for place in 0..count {
                let Some(Err(Hdf5Error::Unsupported { what, .. })) = ahead.take(place) else { panic!() };
                assert_eq!(what, place.to_string());
                joined.store(place + 1, std::sync::atomic::Ordering::SeqCst);
            }
        });
        assert!(ahead.next().is_none());
    }

    #[test]
    fn a_panic_ends_the_wait() {
        let ahead = ScanAhead::new(2, 2);
        std::thread::scope(|scope| {
            let scanning = scope.spawn(|| {
                let _stop = StopOnPanic(&ahead);
                ahead.next();
                panic!("on purpose");
            });
            assert!(ahead.take(0).is_none());
            assert!(scanning.join().is_err());
        });
    }
}
