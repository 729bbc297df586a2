//! Output files, with objects created by libhdf5 and raw data placed by the caller.
//!
//! [`OutputFile`] creates groups, datasets, attributes, links and committed datatypes through the planning driver
//! (`shim/planning_driver.c`), which keeps all metadata in one region at the front of the file and accepts from the
//! caller the address of each compressed chunk ([`OutputDataset::insert`]). Raw data never passes through libhdf5:
//! callers write it with `pwrite` to the raw region, before or after the chunk is inserted.
//!
//! This module does not decide where data goes (that is a plan), compress (raddle-codec), or publish the file under its
//! name (the caller fsyncs and renames the file returned by [`OutputFile::finish`]).
//!
//! Invariants: the same calls in the same order produce the same bytes (no time stamps, unused bytes are zero); an I/O
//! error is never reported to libhdf5, which may crash on it, and always to the caller; a file that is dropped without
//! [`OutputFile::finish`] never looks complete.

mod attribute;
mod dataset;
mod dataspace;
mod datatype;
mod driver;
mod edit;
mod filters;
mod link_classes;
mod links;
mod mappings;
mod memory;
mod objects;
mod options;
mod output;
mod overlay;
mod predict;
mod properties;
mod specs;

pub use dataset::OutputDataset;
pub use edit::EditedFile;
pub use links::NewLink;
pub use mappings::VirtualMapping;
pub use options::{Compat, OutputOptions};
pub use output::{OutputFile, WrittenFile};
pub use overlay::Change;
pub use predict::{HeapContent, MetadataPrediction, likely_len_bytes};
pub use specs::{AttributeSpec, DatasetSpec, OutputLayout};

use crate::error::Hdf5Error;
use crate::ffi::Call;
use crate::model::TypeClass;
use std::sync::Arc;

/// Creates the error for an object that cannot be written as requested.
fn not_writable(call: Call<'_>, what: String) -> Hdf5Error {
    let (path, object) = (call.path.to_path_buf(), call.object.escape_ascii().to_string());
    Hdf5Error::NotWritable { path, object, what }
}

/// Type of a dataset or attribute to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeRef {
    /// A private type of the object.
    Own(Arc<TypeClass>),
    /// A previously committed datatype.
    Committed {
        /// Path of the committed datatype in the output.
        path: Vec<u8>,
        /// Type with which it was committed.
        class: Arc<TypeClass>,
    },
}

impl TypeRef {
    /// Returns the type, whether private or committed.
    pub fn class(&self) -> &Arc<TypeClass> {
        match self {
            Self::Own(class) | Self::Committed { class, .. } => class,
        }
    }
}
