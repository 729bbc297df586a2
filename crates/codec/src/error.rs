//! Why bytes could not be decoded or encoded. The caller adds the file, the object and the chunk.

use crate::filter::KnownFilter;

/// Result of this crate.
pub type Result<T, E = CodecError> = std::result::Result<T, E>;

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
    /// A pipeline longer than HDF5 allows.
    #[error("{count} filters in one pipeline, HDF5 allows {limit}")]
    TooManyFilters {
        /// Filters in the pipeline.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Client data values that do not describe the filter.
    #[error("parameters of filter {filter} are wrong: {fault}")]
    Parameters {
        /// Filter.
        filter: KnownFilter,
        /// What is wrong.
        fault: &'static str,
    },
    /// Valid, but a variant of the filter that raddle does not know.
    #[error("filter {filter}: {feature} is not supported")]
    Unsupported {
        /// Filter.
        filter: KnownFilter,
        /// The variant.
        feature: &'static str,
    },
    /// The stored bytes contradict the filter's format.
    #[error("{filter} data is damaged: {fault}")]
    Corrupt {
        /// Filter.
        filter: KnownFilter,
        /// What is wrong.
        fault: &'static str,
    },
    /// The stored bytes end before the data does.
    #[error("{filter} data ends too early")]
    Truncated {
        /// Filter.
        filter: KnownFilter,
    },
    /// The decoded bytes are not those that were checksummed.
    #[error("{filter} checksum does not match: stored {stored:#010x}, computed {computed:#010x}")]
    Checksum {
        /// Filter.
        filter: KnownFilter,
        /// As stored.
        stored: u32,
        /// As computed from the bytes.
        computed: u32,
    },
    /// The data would decode to more bytes than the chunk can hold (a damaged chunk or a decompression bomb).
    #[error("{filter} data decodes to more than the {limit_len_bytes} bytes expected")]
    TooLong {
        /// Filter.
        filter: KnownFilter,
        /// Where decoding stopped.
        limit_len_bytes: usize,
    },
    /// The data decodes to a length that is not the declared one.
    #[error("{filter} data decodes to {actual_len_bytes} bytes, {expected_len_bytes} expected")]
    Length {
        /// Filter.
        filter: KnownFilter,
        /// As the chunk's shape demands.
        expected_len_bytes: usize,
        /// As found.
        actual_len_bytes: usize,
    },
    /// Not a zfp stream of this array in this mode.
    #[error("zfp data is damaged, or of another array or mode: {fault}")]
    Zfp {
        /// What is wrong.
        fault: &'static str,
    },
    /// A chunk without filters whose stored length is not the declared one.
    #[error("unfiltered chunk holds {actual_len_bytes} bytes, {expected_len_bytes} expected")]
    RawLength {
        /// As the chunk's shape demands.
        expected_len_bytes: usize,
        /// As stored.
        actual_len_bytes: usize,
    },
    /// A compression library could not get the memory for its state.
    #[error("no memory for the state of {filter}")]
    OutOfMemory {
        /// Filter.
        filter: KnownFilter,
    },
}
