//! IDX: arrays in hierarchical Z order, which can be read at any resolution.
//!
//! Axes are numbered as in IDX, x first: axis 0 varies fastest in memory. In a numpy array `a[z, y, x]`, x is axis 0.
//! Terminals, HDF5 and MPI are handled elsewhere. Design decisions are in docs/design/018-idx.md.
#![forbid(unsafe_code)]

pub mod bitmask;
pub mod check;
mod collective_read;
pub mod compression;
mod durability;
mod error;
mod exchange;
mod files;
pub mod grid;
pub mod header;
pub mod kernel;
mod layout;
pub mod npy;
mod one_phase;
mod options;
pub mod preview;
mod publish;
mod reader;
pub mod region;
pub mod restructure;
pub mod sample;
pub mod simulate;
mod slabs;
pub mod step_plan;
mod stored;
pub mod template;
pub mod time_steps;
pub mod vectors;
mod work;
mod writer;
pub mod zarr;
mod zfp;

pub use durability::Durability;
pub use error::{ErrorKind, IdxError, Result, TimeFault, UpdateFault};
pub use exchange::BoxData;
pub use header::{Field, Header};
pub use layout::LayoutOptions;
pub use options::{Phases, WriteOptions, WriteReport};
pub use publish::IfExists;
pub use raddle_core::traffic::Traffic;
pub use reader::{Dataset, Query, Readers};
pub use region::SampleBox;
pub use writer::{BlockSource, Writer};
