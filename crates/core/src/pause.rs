//! Pauses between looks at something that others have to finish.
//!
//! A rank that waits for others leaves its core to their threads and its own, where blocking calls of MPI would spin.

use std::time::Duration;

/// Looks without a pause: most collectives of ranks that arrive together are done by then.
const EAGER_LOOKS: u32 = 100;

/// First pause between looks, and the longest: short against a round, which takes some 100 ms to encode.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// Leaves the core to others after that many looks, the longer the more they were.
pub fn pause_after(looks: u32) {
    match looks.checked_sub(EAGER_LOOKS) {
        None => std::thread::yield_now(),
        Some(doublings) => std::thread::sleep(PAUSES.0.saturating_mul(1 << doublings.min(16)).min(PAUSES.1)),
    }
}

/// Pauses of one wait.
#[derive(Debug, Default)]
pub struct Pauses {
    looks: u32,
}

impl Pauses {
    /// The next.
    pub fn take(&mut self) {
        pause_after(self.looks);
        self.looks = self.looks.saturating_add(1);
    }
}
