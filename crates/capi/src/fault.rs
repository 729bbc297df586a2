//! Errors of calls: message and status code.

use raddle_core::CoreError;
use raddle_core::ranks::communicator::AgreedError;
use raddle_idx::dataset::header::HeaderError;
use raddle_idx::{ErrorKind, IdxError};
use std::path::PathBuf;

/// Result of a call. The numbers are the exit codes of the command `raddle`, where it has them.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaddleIdxStatus {
    /// The call succeeded.
    Ok = 0,
    /// A defect of raddle itself.
    Internal = 1,
    /// The call is invalid: because of an argument, or because it is not allowed at this time.
    Usage = 2,
    /// Existing or supplied data cannot be used: a file, a block, the boxes of the ranks.
    Input = 3,
    /// The output exists or could not be written.
    Output = 5,
    /// A limit was reached: memory, threads.
    Limit = 6,
    /// Another process writes the same dataset.
    Locked = 7,
    /// Another rank failed, which has its own status, or a function of the ranks failed.
    Rank = 9,
}

/// Error of a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// A pointer is null.
    #[error("{argument} is NULL")]
    Null { argument: &'static str },
    /// A string is not UTF-8.
    #[error("{argument} is not text in UTF-8")]
    NotText { argument: &'static str },
    /// There are too few or too many axes.
    #[error("{axes} axes; a dataset has 1 to {limit}")]
    Axes { axes: u32, limit: usize },
    /// The option does not exist.
    #[error("unknown option {name:?}; options are {known}")]
    NoOption { name: String, known: &'static str },
    /// The option does not accept the value.
    #[error("option {name} cannot be {value:?}; expected {wanted}")]
    OptionValue { name: &'static str, value: String, wanted: &'static str },
    /// The type or number of components of a field is invalid.
    #[error(
        "field {field}: {components} components of type {number:?} are not valid samples; types are uint8, int8, uint16, int16, uint32, \
         int32, uint64, int64, float32 and float64"
    )]
    SampleType { field: String, number: String, components: u32 },
    /// A field was added twice.
    #[error("field {field} was already added")]
    FieldTwice { field: String },
    /// A setting was changed too late: after the first step began, or while a step was open.
    #[error("{what} cannot change {when}")]
    TooLate { what: &'static str, when: &'static str },
    /// Number and count of the ranks are invalid.
    #[error("invalid rank {rank} of {size} ranks")]
    NoRank { rank: i32, size: i32 },
    /// The field does not exist.
    #[error("unknown field {name:?}; the dataset has {known}")]
    NoField { name: String, known: String },
    /// The box does not exist.
    #[error("box {number} does not exist; this rank holds {count}")]
    NoBox { number: u32, count: usize },
    /// The box exceeds 64 bits.
    #[error("a box of {counts:?} samples from {start:?} on ends beyond 64 bits")]
    Box { start: Vec<u64>, counts: Vec<u64> },
    /// The length of the samples does not match their box.
    #[error("field {field}: {got_bytes} bytes were given, but a box of {counts:?} samples needs {want_bytes}")]
    Length { field: String, counts: Vec<u64>, got_bytes: u64, want_bytes: u64 },
    /// A field was passed twice.
    #[error("field {field} of box {number} was already given in this step")]
    Twice { field: String, number: usize },
    /// No step is open.
    #[error("no step is open; raddle_idx_begin_step opens one")]
    NoStep,
    /// A step is already open.
    #[error("a step is open; raddle_idx_end_step writes it")]
    StepOpen,
    /// A step was not ended.
    #[error("the open step was discarded; raddle_idx_end_step would have written it")]
    GivenUp,
    /// Steps with and without numbers were mixed.
    #[error("{}: a dataset has numbered steps or one without a number, not both", path.display())]
    Numbered { path: PathBuf },
    /// A field was not passed.
    #[error("field {field} of box {number} was not given in this step")]
    NotGiven { field: String, number: usize },
    /// The header would be invalid.
    #[error("{}: {source}", path.display())]
    Header { path: PathBuf, source: HeaderError },
    /// Error of `raddle_idx`.
    #[error(transparent)]
    Idx(#[from] IdxError),
    /// A defect of raddle.
    #[error("internal error: {message}; please report this with what led to it")]
    Panic { message: String },
}

impl AgreedError for CallError {
    fn message(&self) -> String {
        self.to_string()
    }

    fn of_ranks(error: CoreError) -> Self {
        IdxError::Core(error).into()
    }
}

impl CallError {
    /// Returns the status for the caller.
    pub fn status(&self) -> RaddleIdxStatus {
        let kind = match self {
            Self::Idx(error) => error.kind(),
            Self::Panic { .. } => ErrorKind::Internal,
            _ => ErrorKind::Usage,
        };
        match kind {
            ErrorKind::Usage => RaddleIdxStatus::Usage,
            ErrorKind::Input => RaddleIdxStatus::Input,
            ErrorKind::Output => RaddleIdxStatus::Output,
            ErrorKind::Limit => RaddleIdxStatus::Limit,
            ErrorKind::Locked => RaddleIdxStatus::Locked,
            ErrorKind::RankFailed => RaddleIdxStatus::Rank,
            _ => RaddleIdxStatus::Internal,
        }
    }

    /// Returns the message, with advice if it does not contain any.
    pub fn message(&self) -> String {
        let advice = match self {
            Self::Idx(IdxError::Exists { .. }) => {
                "; set option force to replace it, append to add steps, or name another output"
            }
            Self::Idx(IdxError::OnePhase { .. }) => ", or set option compress to none",
            _ => "",
        };
        format!("{self}{advice}")
    }
}
