//! raddle's core: plans as plain data, and the single engine that executes them.
//!
//! A [`plan::Plan`] defines which pieces of which inputs form each tile. [`engine::execute`] assembles, encodes and
//! places the tiles with a pool of threads, within one memory budget, on one or more ranks. It hands the claims back in
//! plan order, so that the caller can commit them to the output's metadata while the workers continue.
//!
//! This crate does not know about HDF5, MPI or terminals.
#![forbid(unsafe_code)]

mod addresses;
pub mod arenas;
pub mod cancel;
pub mod claims;
pub mod communicator;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod datasets;
pub mod digest;
pub mod engine;
pub mod error;
pub mod extent;
pub mod flusher;
pub mod journal;
pub mod lattice;
pub mod memory;
pub mod message;
#[cfg(all(test, loom))]
mod models;
pub mod output;
pub mod owners;
pub mod parallel;
pub mod pause;
pub mod pieces;
pub mod plan;
pub mod pooled_file;
pub mod progress;
pub mod random;
pub mod read_back;
pub mod received;
pub mod regroup;
pub mod report;
mod segments;
pub mod size;
pub mod spread;
pub mod stripes;
mod sync;
pub mod threads;
pub mod timed;
pub mod traffic;

pub use error::{CoreError, Result};
