//! Errors of inflating.

/// Result with [`InflateError`] as its default error.
pub type Result<T, E = InflateError> = std::result::Result<T, E>;

/// Reason why a stream could not be inflated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InflateError {
    /// The bytes are not a complete stream, or its checksum is wrong.
    #[error("{fault}")]
    Corrupt {
        /// Description of the problem.
        fault: &'static str,
    },
    /// The stream inflates to more bytes than the output has (a damaged chunk or a decompression bomb).
    #[error("the stream inflates to more than {limit_len_bytes} bytes")]
    TooLong {
        /// Length of the output.
        limit_len_bytes: usize,
    },
    /// No memory for the state of the decompressor.
    #[error("not enough memory for the state of a decompressor")]
    OutOfMemory,
}
