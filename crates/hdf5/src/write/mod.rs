//! Output files: objects created by libhdf5, raw data placed by the caller.
//!
//! [`OutputFile`] creates groups, datasets, attributes, links and committed datatypes through the planning driver
//! (`shim/planning_driver.c`), which keeps all metadata in one region at the front of the file and lets the caller
//! say where each compressed chunk lies ([`OutputDataset::insert`]). Raw bytes never enter libhdf5: whoever holds
//! them writes them with `pwrite` into the raw region, before or after the chunk is inserted.
//!
//! What this module is not for: deciding what goes where (that is a plan), compressing (raddle-codec), publishing the
//! file under its name (the caller fsyncs and renames what [`OutputFile::finish`] hands back).
//!
//! Invariants: the same calls in the same order give the same bytes (no time stamps, no unused bytes that are not
//! zero); an I/O error is never shown to libhdf5, which may crash on it, and always to the caller; a file that is
//! dropped without [`OutputFile::finish`] is never made to look complete.

mod attribute;
mod dataset;
mod dataspace;
mod datatype;
mod driver;
mod edit;
mod filters;
mod links;
mod mappings;
mod memory;
mod objects;
mod output;
mod overlay;
mod predict;
mod properties;

pub use attribute::AttributeSpec;
pub use dataset::{DatasetSpec, OutputDataset, OutputLayout};
pub use edit::EditedFile;
pub use links::NewLink;
pub use mappings::Mapping;
pub use output::{Compat, OutputFile, OutputOptions, WrittenFile};
pub use overlay::Change;
pub use predict::{HeapContent, MetadataPrediction, likely_len_bytes};

use crate::error::Hdf5Error;
use crate::ffi::Call;
use crate::model::TypeClass;
use std::sync::Arc;

/// The error of an object that cannot be written as asked for.
fn not_writable(call: Call<'_>, what: String) -> Hdf5Error {
    let (path, object) = (call.path.to_path_buf(), call.object.escape_ascii().to_string());
    Hdf5Error::NotWritable { path, object, what }
}

/// Type of a dataset or attribute to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeRef {
    /// The object's own.
    Own(Arc<TypeClass>),
    /// A datatype committed before.
    Committed {
        /// Its path in the output.
        path: Vec<u8>,
        /// What it is.
        class: Arc<TypeClass>,
    },
}

impl TypeRef {
    /// The type itself.
    pub fn class(&self) -> &Arc<TypeClass> {
        match self {
            Self::Own(class) | Self::Committed { class, .. } => class,
        }
    }
}
