//! Classes of errors, by what the caller can do.

use super::IdxError;
use raddle_core::CoreError;

/// Classes of errors, by what the caller can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is invalid.
    Usage,
    /// The input or the existing data cannot be used.
    Input,
    /// The output cannot be written.
    Output,
    /// A limit was reached, such as memory or threads.
    Limit,
    /// Another process is writing the same dataset.
    Locked,
    /// An output differs from its inputs.
    Mismatch,
    /// The work was cancelled.
    Cancelled,
    /// Another rank encountered an error.
    RankFailed,
    /// A bug in raddle.
    Internal,
}

impl IdxError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            error if error.is_secondary() => ErrorKind::RankFailed,
            Self::Write { .. }
            | Self::Exists { .. }
            | Self::StepExists { .. }
            | Self::NotAFile { .. }
            | Self::Foreign { .. }
            | Self::IsInput { .. }
            | Self::OtherPreview { .. } => ErrorKind::Output,
            Self::Locked { .. } => ErrorKind::Locked,
            Self::Mismatch { .. } => ErrorKind::Mismatch,
            Self::SampleMemory { .. }
            | Self::Memory { .. }
            | Self::Core(CoreError::Memory { .. } | CoreError::Threads { .. }) => ErrorKind::Limit,
            Self::Core(CoreError::Cancelled) => ErrorKind::Cancelled,
            Self::Request { .. }
            | Self::Layout { .. }
            | Self::SeveralInputs
            | Self::NoInputs
            | Self::OnePhase { .. }
            | Self::Core(CoreError::PlansDiffer { .. }) => ErrorKind::Usage,
            Self::Target { is_of_options: true, .. } => ErrorKind::Usage,
            Self::Core(_) | Self::Engine { .. } => ErrorKind::Internal,
            _ => ErrorKind::Input,
        }
    }
}
