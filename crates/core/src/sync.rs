//! Primitives for shared state, from std or, under `--cfg loom`, from loom, which explores every interleaving.
//!
//! Only for state that a model exercises; threads themselves come from std.

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
