//! HDF5 for raddle: the only crate that parses HDF5 bytes or calls libhdf5.
//!
//! Inputs are read without libhdf5: [`native`] reads metadata in safe Rust and [`read`] decodes raw data. Anything the
//! native reader does not support is left to libhdf5 in a [`child`] process, so that a malicious file cannot crash the
//! program. Outputs are created by libhdf5 through the planning driver of [`mod@write`]: raw data never passes through
//! the library.

pub mod ahead;
pub mod bulk;
pub mod child;
pub mod default_format;
pub mod dimensions;
pub mod dynamic;
pub mod error;
pub mod ffi;
pub mod fork;
pub mod heap;
pub mod inspect;
pub mod logical;
pub mod metadata;
pub mod model;
pub mod native;
pub mod netcdf;
pub mod number;
pub mod object_path;
pub mod open_file;
pub mod other_format;
pub mod paths;
pub mod ranges;
pub mod read;
pub mod references;
pub mod reuse;
pub mod source;
mod staleness;
pub mod string_forms;
pub mod wire_error;
pub mod write;

pub use error::{Hdf5Error, Result};
