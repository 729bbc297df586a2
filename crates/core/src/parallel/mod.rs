//! Execution of a list of jobs on several threads, outside the engine: comparing, digesting, reading blocks.
//!
//! Invariant: after an error or a cancellation no further job is begun, and the first error is returned.

pub mod ordered;
pub mod pool;

use crate::cancel::CancelToken;
use crate::error::CoreError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Calls `step` for each of `jobs`, in order, on up to `threads` threads with separate states.
///
/// # Errors
/// If a step fails: returns the first error. [`CoreError::Cancelled`] if the run is cancelled.
pub fn for_each<J: Sync, S, E: From<CoreError> + Send>(
    jobs: &[J],
    threads: usize,
    cancel: &CancelToken,
    state: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, &J) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure: Mutex<Option<E>> = Mutex::new(None);
    let work = || -> Result<(), E> {
        let mut state = state();
        while !stop.load(Ordering::Relaxed) {
            let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            cancel.check()?;
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
    pool::on_threads(threads.min(jobs.len()), work);
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Collects the results of `step` for each of `jobs`, in order, on up to `threads` threads with separate states.
///
/// # Errors
/// As for [`for_each`].
pub fn map<J: Sync, S, T: Send, E: From<CoreError> + Send>(
    jobs: &[J],
    threads: usize,
    cancel: &CancelToken,
    state: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, &J) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let results = Mutex::new(Vec::with_capacity(jobs.len()));
    let numbered: Vec<(usize, &J)> = jobs.iter().enumerate().collect();
    for_each(&numbered, threads, cancel, state, |state, &(number, job)| -> Result<(), E> {
        let result = step(state, job)?;
        results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        Ok(())
    })?;
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn results_are_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..1000).collect();
        for threads in [1, 3] {
            let square = |_: &mut (), job: &u64| Ok::<_, CoreError>(job * job);
            let squares = map(&jobs, threads, &CancelToken::new(), || (), square).unwrap();
            assert!(squares.into_iter().eq(jobs.iter().map(|job| job * job)));
            let fail = |_: &mut (), job: &u64| if *job == 5 { Err(CoreError::Cancelled) } else { Ok(*job) };
            assert!(map(&jobs, threads, &CancelToken::new(), || (), fail).is_err());
        }
    }

    #[test]
    fn every_job_is_done_once_and_an_error_ends_the_list() {
        let jobs: Vec<u64> = (0..1000).collect();
        let sum = AtomicU64::new(0);
        let add = |_: &mut (), job: &u64| {
            sum.fetch_add(*job, Ordering::Relaxed);
            Ok::<_, CoreError>(())
        };
        for_each(&jobs, 3, &CancelToken::new(), || (), add).unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), 499_500);
        let fail = |_: &mut (), job: &u64| if *job == 5 { Err(CoreError::Cancelled) } else { add(&mut (), job) };
        assert!(for_each(&jobs, 1, &CancelToken::new(), || (), fail).is_err());
        assert_eq!(sum.load(Ordering::Relaxed), 499_500 + 10);
        let cancelled = CancelToken::new();
        cancelled.cancel();
        assert!(matches!(for_each(&jobs, 2, &cancelled, || (), add), Err(CoreError::Cancelled)));
    }
}
