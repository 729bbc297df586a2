//! Errors of decoding and encoding. The caller adds the file, the object and the chunk.

use crate::filter::KnownFilter;
use raddle_inflate::InflateError;

/// Result with [`CodecError`] as its default error.
pub type Result<T, E = CodecError> = std::result::Result<T, E>;

/// Reason why bytes could not be decoded or encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// There is no decoder for this filter.
    #[error("filter {id} ({name}) is not supported by raddle")]
    UnknownFilter {
        /// Registered filter number.
        id: u16,
        /// Name as stored in the file, otherwise the registered one.
        name: String,
    },
    /// A pipeline is longer than HDF5 allows.
    #[error("{count} filters in one pipeline, HDF5 allows {limit}")]
    TooManyFilters {
        /// Number of filters in the pipeline.
        count: usize,
        /// Maximum number of filters.
        limit: usize,
    },
    /// The client data values do not describe the filter.
    #[error("parameters of filter {filter} are wrong: {fault}")]
    Parameters {
        /// Filter with the parameters.
        filter: KnownFilter,
        /// Description of the problem.
        fault: &'static str,
    },
    /// The data is valid, but uses a variant of the filter that raddle does not support.
    #[error("filter {filter}: {feature} is not supported")]
    Unsupported {
        /// Filter of the data.
        filter: KnownFilter,
        /// Unsupported variant.
        feature: &'static str,
    },
    /// The stored bytes violate the filter's format.
    #[error("{filter} data is damaged: {fault}")]
    Corrupt {
        /// Filter of the data.
        filter: KnownFilter,
        /// Description of the problem.
        fault: &'static str,
    },
    /// The stored bytes end before the data does.
    #[error("{filter} data ends too early")]
    Truncated {
        /// Filter of the data.
        filter: KnownFilter,
    },
    /// The decoded bytes do not match their checksum.
    #[error("{filter} checksum does not match: stored {stored:#010x}, computed {computed:#010x}")]
    Checksum {
        /// Filter with the checksum.
        filter: KnownFilter,
        /// Stored checksum.
        stored: u32,
        /// Checksum computed from the bytes.
        computed: u32,
    },
    /// The data would decode to more bytes than the chunk can hold (a damaged chunk or a decompression bomb).
    #[error("{filter} data decodes to more than the {limit_len_bytes} bytes expected")]
    TooLong {
        /// Filter of the data.
        filter: KnownFilter,
        /// Length at which decoding stopped.
        limit_len_bytes: usize,
    },
    /// The length of the decoded data differs from the declared one.
    #[error("{filter} data decodes to {actual_len_bytes} bytes, {expected_len_bytes} expected")]
    Length {
        /// Filter of the data.
        filter: KnownFilter,
        /// Length required by the chunk's shape.
        expected_len_bytes: usize,
        /// Actual length.
        actual_len_bytes: usize,
    },
    /// The bytes are not a zfp stream of this array in this mode.
    #[error("zfp data is damaged, or belongs to a different array or mode: {fault}")]
    Zfp {
        /// Description of the problem.
        fault: &'static str,
    },
    /// The stored length of an unfiltered chunk differs from the declared one.
    #[error("unfiltered chunk holds {actual_len_bytes} bytes, {expected_len_bytes} expected")]
    RawLength {
        /// Length required by the chunk's shape.
        expected_len_bytes: usize,
        /// Stored length.
        actual_len_bytes: usize,
    },
    /// A compression library could not allocate memory for its state.
    #[error("not enough memory for the state of {filter}")]
    OutOfMemory {
        /// Filter of the library.
        filter: KnownFilter,
    },
}

impl From<InflateError> for CodecError {
    fn from(error: InflateError) -> Self {
        let filter = KnownFilter::Deflate;
        match error {
            InflateError::Corrupt { fault } => Self::Corrupt { filter, fault },
            InflateError::TooLong { limit_len_bytes } => Self::TooLong { filter, limit_len_bytes },
            InflateError::OutOfMemory => Self::OutOfMemory { filter },
        }
    }
}
