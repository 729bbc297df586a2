//! raddle's core: plans as plain data, and the single engine that executes them.
//!
//! A [`plan::Plan`] defines which pieces of which inputs form each tile. [`engine::Execution`] assembles, encodes and
//! places the tiles with a pool of threads, within one memory budget, on one or more ranks. It hands the claims back in
//! plan order, so that the caller can commit them to the output's metadata while the workers continue.
//!
//! This crate does not know about HDF5, MPI or terminals.
#![forbid(unsafe_code)]

pub mod cancel;
pub mod digest;
pub mod engine;
pub mod error;
pub mod machine;
pub mod memory;
#[cfg(all(test, loom))]
mod models;
pub mod output;
pub mod parallel;
pub mod path_text;
pub mod pause;
pub mod plan;
pub mod pooled_file;
pub mod random;
pub mod ranks;
pub mod regrouping;
pub mod report;
pub mod rows;
mod serde_text;
pub mod size;
mod sync;

pub use error::{CoreError, Result};
