//! IDX: arrays in hierarchical Z order, which can be read at any resolution.
//!
//! Axes are numbered as IDX does, x first: axis 0 runs fastest in memory. A numpy array `a[z, y, x]` has its x as axis 0.
//! Not here: terminals, HDF5, MPI. Decisions are in docs/design/018-idx.md.
#![forbid(unsafe_code)]

pub mod bitmask;
pub mod compression;
mod error;
pub mod grid;
pub mod header;
pub mod kernel;
mod reader;
pub mod sample;
pub mod template;
mod writer;

pub use error::{IdxError, Result};
pub use header::{Field, Header};
pub use reader::{Dataset, Query};
pub use writer::{Existing, Writer};
