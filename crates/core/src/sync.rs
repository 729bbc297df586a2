//! The primitives of shared state: std's, or under `--cfg loom` those whose every interleaving a model goes through.
//!
//! Only for state that a model exercises; threads themselves are std's.

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
