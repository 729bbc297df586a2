//! HDF5 for raddle: the only crate that parses HDF5 bytes or calls libhdf5.
//!
//! Inputs are read without libhdf5: [`native`] reads metadata in safe Rust, [`read`] decodes raw data; what the native
//! reader does not know goes to libhdf5 in a [`child`] process, so that a hostile file cannot take the program down.
//! Outputs are made by libhdf5 through the planning driver of [`write`]: raw bytes never enter the library.

pub mod bulk;
pub mod child;
pub mod chosen;
pub mod dimensions;
pub mod error;
pub mod ffi;
pub mod heap;
pub mod inspect;
pub mod logical;
pub mod metadata;
pub mod model;
pub mod native;
pub mod other_format;
pub mod paths;
pub mod ranges;
pub mod read;
pub mod references;
pub mod sent_error;
pub mod source;
pub mod stock;
pub mod write;

pub use error::{Hdf5Error, Result};
