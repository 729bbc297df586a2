//! Pauses between polls of something that others have to finish.
//!
//! A rank that waits yields its core to the threads of all ranks on it, whereas blocking MPI calls would spin.

use std::time::Duration;

/// Number of polls without a pause: most collectives of ranks that arrive together are done by then.
const EAGER_POLLS: u32 = 100;

/// First and longest pause between polls; short compared with a round, which takes about 100 ms to encode.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// Yields the core after `polls` polls; the pause grows with their number.
pub fn pause_after(polls: u32) {
    match polls.checked_sub(EAGER_POLLS) {
        None => std::thread::yield_now(),
        Some(doublings) => std::thread::sleep(PAUSES.0.saturating_mul(1 << doublings.min(16)).min(PAUSES.1)),
    }
}

/// Pauses of one wait.
#[derive(Debug, Default)]
pub struct Pauses {
    polls: u32,
}

impl Pauses {
    /// Takes the next pause.
    pub fn take(&mut self) {
        pause_after(self.polls);
        self.polls = self.polls.saturating_add(1);
    }
}
