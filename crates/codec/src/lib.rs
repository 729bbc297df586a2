//! The HDF5 filter pipeline on byte buffers: pure functions with fixed output buffers and exact lengths.

use serde::{Deserialize, Serialize};

/// One filter of a pipeline, as the filter pipeline message stores it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Filter {
    /// Registered filter number.
    pub id: u16,
    /// Whether a chunk may go without it (`H5Z_FLAG_OPTIONAL`).
    pub optional: bool,
    /// Name as stored, without padding.
    pub name: Vec<u8>,
    /// Client data values.
    pub parameters: Vec<u32>,
}

/// Why bytes could not be decoded or encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// No decoder for this filter.
    #[error("filter {id} ({name}) is not known to raddle")]
    UnknownFilter {
        /// Registered filter number.
        id: u16,
        /// Name as stored in the file, or the registered one.
        name: String,
    },
}
