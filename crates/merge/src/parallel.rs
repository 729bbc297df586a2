//! Doing a list of jobs on several threads, outside of the engine: comparing, digesting.
//!
//! Invariant: after an error or a cancellation no further job is begun, and the first error is the one returned.

use crate::error::{MergeError, Result};
use raddle_core::cancel::CancelToken;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Calls `step` for each of `jobs`, in their order, on up to `threads` threads, each with a state of its own.
pub fn for_each<J: Sync, S>(
    jobs: &[J],
    threads: usize,
    cancel: &CancelToken,
    state: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, &J) -> Result<()> + Sync,
) -> Result<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure: Mutex<Option<MergeError>> = Mutex::new(None);
    let work = || -> Result<()> {
        let mut state = state();
        while !stop.load(Ordering::Relaxed) {
            let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            if cancel.is_cancelled() {
                return Err(MergeError::Cancelled);
            }
            step(&mut state, job)?;
        }
        Ok(())
    };
    let work = || {
        if let Err(error) = work() {
            stop.store(true, Ordering::Relaxed);
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(jobs.len()) {
            // Where no more threads can be had, those that are there do it all.
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_job_is_done_once_and_an_error_ends_the_list() {
        let jobs: Vec<u64> = (0..1000).collect();
        let sum = AtomicU64::new(0);
        let add = |_: &mut (), job: &u64| {
            sum.fetch_add(*job, Ordering::Relaxed);
            Ok(())
        };
        for_each(&jobs, 3, &CancelToken::new(), || (), add).unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), 499_500);
        let fail = |_: &mut (), job: &u64| if *job == 5 { Err(MergeError::Cancelled) } else { add(&mut (), job) };
        assert!(for_each(&jobs, 1, &CancelToken::new(), || (), fail).is_err());
        assert_eq!(sum.load(Ordering::Relaxed), 499_500 + 10);
        let cancelled = CancelToken::new();
        cancelled.cancel();
        assert!(matches!(for_each(&jobs, 2, &cancelled, || (), add), Err(MergeError::Cancelled)));
    }
}
