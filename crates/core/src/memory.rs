//! The memory budget of a run: permits are acquired before a buffer is allocated and released after it is freed.
//!
//! It is not an allocator; it only counts. Invariant: the sum of all permits never exceeds the limit. Waiters are
//! served in order of arrival, so small requests cannot starve a large one.

use crate::error::{CoreError, Result};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::sync::PoisonError;

/// A memory limit shared by all parts of a run. Clones share the limit.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit_bytes: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    used_bytes: u64,
    peak_bytes: u64,
    /// Tickets of waiters: the one being served, and the next to issue.
    serving: u64,
    next_ticket: u64,
}

impl MemoryBudget {
    /// Creates a budget of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        Self { shared: Arc::new(Shared { limit_bytes, state: Mutex::default(), changed: Condvar::new() }) }
    }

    /// Returns the limit in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.shared.limit_bytes
    }

    /// Returns the number of bytes currently under permits.
    pub fn used_bytes(&self) -> u64 {
        self.lock().used_bytes
    }

    /// Returns the number of bytes currently free.
    pub fn available_bytes(&self) -> u64 {
        self.limit_bytes() - self.used_bytes()
    }

    /// Returns the maximum number of bytes that permits have held at any time.
    pub fn peak_bytes(&self) -> u64 {
        self.lock().peak_bytes
    }

    /// Acquires a permit, waiting until it fits.
    ///
    /// # Errors
    /// If it can never fit; the message names `purpose`.
    pub fn acquire(&self, len_bytes: u64, purpose: &'static str) -> Result<Permit> {
        let mut state = self.lock();
        if len_bytes > self.limit_bytes() {
            return Err(self.refusal(&state, len_bytes, purpose));
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        while state.serving != ticket || len_bytes > self.limit_bytes() - state.used_bytes {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.serving += 1;
        self.shared.changed.notify_all();
        Ok(self.grant(&mut state, len_bytes))
    }

    /// Acquires a permit if it fits immediately and nobody is waiting.
    ///
    /// # Errors
    /// If it does not fit; the message names `purpose`.
    pub fn try_acquire(&self, len_bytes: u64, purpose: &'static str) -> Result<Permit> {
        let mut state = self.lock();
        if state.serving != state.next_ticket || len_bytes > self.limit_bytes() - state.used_bytes {
            return Err(self.refusal(&state, len_bytes, purpose));
        }
        Ok(self.grant(&mut state, len_bytes))
    }

    fn grant(&self, state: &mut State, len_bytes: u64) -> Permit {
        state.used_bytes += len_bytes;
        state.peak_bytes = state.peak_bytes.max(state.used_bytes);
        Permit { budget: self.clone(), len_bytes }
    }

    fn refusal(&self, state: &State, needed_bytes: u64, purpose: &'static str) -> CoreError {
        let limit_bytes = self.limit_bytes();
        CoreError::Memory { purpose, needed_bytes, available_bytes: limit_bytes - state.used_bytes, limit_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to hold `len_bytes` of memory, until dropped.
#[derive(Debug)]
pub struct Permit {
    budget: MemoryBudget,
    len_bytes: u64,
}

impl Permit {
    /// Returns the number of bytes it allows.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Releases all of the memory except `len_bytes`.
    pub fn shrink_to(&mut self, len_bytes: u64) {
        self.give_back(self.len_bytes.saturating_sub(len_bytes));
    }

    fn give_back(&mut self, len_bytes: u64) {
        self.len_bytes -= len_bytes;
        self.budget.lock().used_bytes -= len_bytes;
        self.budget.shared.changed.notify_all();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back(self.len_bytes);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn permits_count() {
        let budget = MemoryBudget::new(100);
        let mut first = budget.acquire(60, "a test").unwrap();
        let second = budget.try_acquire(40, "a test").unwrap();
        let refused = budget.try_acquire(1, "a test").unwrap_err().to_string();
        assert_eq!(refused, "a test needs 1 bytes of memory, 0 of the budget of 100 are free; raise --memory");
        first.shrink_to(10);
        drop(second);
        assert_eq!((budget.used_bytes(), budget.peak_bytes(), first.len_bytes()), (10, 100, 10));
        assert!(budget.acquire(101, "a test").is_err());
    }

    #[test]
    fn the_limit_holds_and_everybody_is_served() {
        let budget = MemoryBudget::new(10);
        let acquired_bytes = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (budget, acquired_bytes) = (&budget, &acquired_bytes);
                scope.spawn(move || {
                    for step in 0..200 {
                        let len = 1 + (thread * 31 + step * 7) % 10;
                        let permit = budget.acquire(len, "a test").unwrap();
                        assert!(acquired_bytes.fetch_add(len, Ordering::SeqCst) + len <= 10);
                        acquired_bytes.fetch_sub(len, Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert_eq!(budget.used_bytes(), 0);
    }
}
