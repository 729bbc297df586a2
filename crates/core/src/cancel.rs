//! Cancellation: a flag set by a signal handler or another thread and checked between tiles.

use crate::error::{CoreError, Result};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

/// A flag that, once set, stays set. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    flag: Arc<AtomicBool>,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a token from an existing flag, for example one that a signal handler sets.
    pub fn on_flag(flag: Arc<AtomicBool>) -> Self {
        Self { flag }
    }

    /// Asks all work that checks this token to stop.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Returns whether [`CancelToken::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Returns an error if cancelled.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(CoreError::Cancelled) } else { Ok(()) }
    }
}
