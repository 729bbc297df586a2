//! Phases: lists of jobs that all threads that need the result carry out together. A phase begins when all jobs of the
//! previous phase are done.
//!
//! Invariants: a job is done once; a job that failed is repeated by every thread that helps, so that each reports the
//! error; a thread waits only while others carry out jobs.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::sync::PoisonError;

/// Work in phases.
pub trait PhaseWork {
    /// Error of a phase or a job.
    type Error;

    /// Begins phase number `phase` and returns the number of its jobs; `None` if there are no more phases.
    ///
    /// # Errors
    /// If the phase cannot be begun. Every thread that helps tries again.
    fn begin(&mut self, phase: usize) -> Result<Option<usize>, Self::Error>;

    /// Carries out a job of phase number `phase`.
    ///
    /// # Errors
    /// If the job fails.
    fn carry_out(&mut self, phase: usize, job: usize) -> Result<(), Self::Error>;
}

/// Progress of work in phases, shared by threads.
#[derive(Debug, Default)]
pub struct Phases {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Number of phases that were begun.
    begun: usize,
    /// Jobs of the last phase that no thread has begun, last one first.
    waiting: Vec<usize>,
    /// Number of jobs of the last phase that are not done.
    undone: usize,
    is_complete: bool,
}

impl Phases {
    /// Creates the progress of work that is not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether all phases are complete.
    pub fn is_complete(&self) -> bool {
        self.lock().is_complete
    }

    /// Helps until all phases are complete. Returns false if `is_stopped`, which is polled, ended the wait.
    ///
    /// # Errors
    /// If a phase or a job fails.
    pub fn help<W: PhaseWork>(&self, work: &mut W, is_stopped: impl Fn() -> bool) -> Result<bool, W::Error> {
        let mut state = self.lock();
        while !state.is_complete {
            if is_stopped() {
                return Ok(false);
            }
            if let Some(job) = state.waiting.pop() {
                let phase = state.begun - 1;
                drop(state);
                let done = work.carry_out(phase, job);
                state = self.lock();
                if let Err(error) = done {
                    state.waiting.push(job);
                    self.changed.notify_all();
                    return Err(error);
                }
                state.undone -= 1;
                if state.undone == 0 {
                    self.changed.notify_all();
                }
                continue;
            }
            if state.undone > 0 {
                state = self.wait(state);
                continue;
            }
            match work.begin(state.begun)? {
                Some(jobs) => {
                    state.begun += 1;
                    state.waiting = (0..jobs).rev().collect();
                    state.undone = jobs;
                }
                None => state.is_complete = true,
            }
            self.changed.notify_all();
        }
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(not(loom))]
    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, super::store::STOP_POLL).unwrap_or_else(PoisonError::into_inner).0
    }

    #[cfg(loom)]
    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Phases that count their jobs, and check that the jobs of one phase are done before the next phase begins.
    struct CountedPhases<'a> {
        jobs: &'a [usize],
        done: &'a AtomicUsize,
        failing: Option<(usize, usize)>,
    }

    impl PhaseWork for CountedPhases<'_> {
        type Error = (usize, usize);

        fn begin(&mut self, phase: usize) -> Result<Option<usize>, Self::Error> {
            assert_eq!(self.done.load(Ordering::SeqCst), self.jobs[..phase].iter().sum::<usize>());
            Ok(self.jobs.get(phase).copied())
        }

        fn carry_out(&mut self, phase: usize, job: usize) -> Result<(), Self::Error> {
            assert!(job < self.jobs[phase]);
            if self.failing == Some((phase, job)) {
                return Err((phase, job));
            }
            // Long enough for the other threads to find no job left.
            std::thread::sleep(std::time::Duration::from_millis(1));
            self.done.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }

    type Outcome = Result<bool, (usize, usize)>;

    /// Returns the outcomes of helping threads and the number of jobs done.
    fn help(threads: usize, failing: Option<(usize, usize)>) -> (Vec<Outcome>, usize) {
        let (phases, done) = (Phases::new(), AtomicUsize::new(0));
        let outcomes = std::thread::scope(|scope| {
            let helper = || phases.help(&mut CountedPhases { jobs: &[3, 0, 40, 1], done: &done, failing }, || false);
            let helpers: Vec<_> = (0..threads).map(|_| scope.spawn(helper)).collect();
            helpers.into_iter().map(|helper| helper.join().unwrap()).collect()
        });
        assert_eq!(phases.is_complete(), failing.is_none());
        (outcomes, done.into_inner())
    }

    #[test]
    fn every_job_is_done_once_and_phases_do_not_overlap() {
        for threads in [1, 2, 5] {
            assert_eq!(help(threads, None), (vec![Ok(true); threads], 44));
        }
    }

    #[test]
    fn every_thread_reports_a_job_that_failed() {
        for threads in [1, 4] {
            let (outcomes, done) = help(threads, Some((2, 7)));
            assert_eq!(outcomes, vec![Err((2, 7)); threads]);
            assert!((3..43).contains(&done), "{done}");
        }
    }

    #[test]
    fn a_stopped_run_ends_the_wait() {
        let (phases, done) = (Phases::new(), AtomicUsize::new(0));
        let mut work = CountedPhases { jobs: &[3], done: &done, failing: None };
        assert_eq!(phases.help(&mut work, || done.load(Ordering::SeqCst) == 2), Ok(false));
        assert_eq!(done.load(Ordering::SeqCst), 2);
        assert!(!phases.is_complete());
        assert_eq!(phases.help(&mut work, || false), Ok(true));
    }
}
