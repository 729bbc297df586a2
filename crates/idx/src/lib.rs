//! IDX: arrays in hierarchical Z order, which can be read at any resolution.
//!
//! Axes are numbered as in IDX, x first: axis 0 varies fastest in memory. In a numpy array `a[z, y, x]`, x is axis 0.
//! Terminals, HDF5 and MPI are handled elsewhere. Design decisions are in docs/design/018-idx.md.
#![forbid(unsafe_code)]

pub mod compare;
pub mod dataset;
mod error;
pub mod inputs;
pub mod kernel;
pub mod preview;
pub mod read;
pub mod request;
pub mod targets;
pub mod verify;
pub mod write;

pub use dataset::header::{Field, Header};
pub use dataset::layout::LayoutOptions;
pub use dataset::region::SampleBox;
pub use error::{ErrorKind, IdxError, Result, TimeFault, UpdateFault};
pub use raddle_core::output::durability::Durability;
pub use raddle_core::output::publish::IfExists;
pub use raddle_core::ranks::traffic::Traffic;
pub use read::dataset::{Dataset, Query, Readers};
pub use targets::zarr;
pub use write::exchange::BoxData;
pub use write::options::{Phases, WriteOptions, WriteReport};
pub use write::writer::{BlockSource, Writer};
