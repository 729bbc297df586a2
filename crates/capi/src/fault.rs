//! Why a call failed: in words, and as the number that the caller gets.

use raddle_idx::header::HeaderError;
use raddle_idx::{ErrorKind, IdxError};
use std::path::PathBuf;

/// How a call ended. The numbers are those with which the command `raddle` ends, where it has them.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaddleIdxStatus {
    /// Everything asked for was done.
    Ok = 0,
    /// A defect of raddle itself.
    Internal = 1,
    /// The call makes no sense: an argument, or its time.
    Usage = 2,
    /// What is there or was given cannot be used: a file, a block, the boxes of the ranks.
    Input = 3,
    /// The output exists or could not be written.
    Output = 5,
    /// A limit was reached: memory, threads.
    Limit = 6,
    /// Another process writes the same dataset.
    Locked = 7,
    /// Another rank failed, which has its own status, or a function of the ranks did.
    Rank = 9,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A null pointer.
    #[error("{argument} is NULL")]
    Null { argument: &'static str },
    /// Not UTF-8.
    #[error("{argument} is not text in UTF-8")]
    NotText { argument: &'static str },
    /// Too few or many axes.
    #[error("{axes} axes; a dataset has 1 to {limit}")]
    Axes { axes: u32, limit: usize },
    /// An option that is none.
    #[error("there is no option {name:?}; there are {known}")]
    NoOption { name: String, known: &'static str },
    /// A value that an option cannot have.
    #[error("option {name} cannot be {value:?}; it is {wanted}")]
    OptionValue { name: &'static str, value: String, wanted: &'static str },
    /// A field of a type that is none.
    #[error(
        "field {field}: {components} components of type {number:?} are no samples; types are uint8, int8, uint16, int16, uint32, \
         int32, uint64, int64, float32 and float64"
    )]
    SampleType { field: String, number: String, components: u32 },
    /// Something that is fixed when the first step begins, or while a step is open.
    #[error("{what} cannot change {when}")]
    TooLate { what: &'static str, when: &'static str },
    /// Ranks that are none.
    #[error("rank {rank} of {size} ranks makes no sense")]
    NoRank { rank: i32, size: i32 },
    /// A field that is not there.
    #[error("there is no field {name:?}; the dataset has {known}")]
    NoField { name: String, known: String },
    /// A box that is not there.
    #[error("there is no box {number}; this rank holds {count}")]
    NoBox { number: u32, count: usize },
    /// A box beyond 64 bits.
    #[error("a box of {counts:?} samples from {start:?} on ends beyond 64 bits")]
    Box { start: Vec<u64>, counts: Vec<u64> },
    /// Samples of another length than their box has.
    #[error("field {field}: {got_bytes} bytes were given, a box of {counts:?} samples takes {want_bytes}")]
    Length { field: String, counts: Vec<u64>, got_bytes: u64, want_bytes: u64 },
    /// A field twice.
    #[error("field {field} of box {number} was given in this step already")]
    Twice { field: String, number: usize },
    /// No step.
    #[error("no step is open; raddle_idx_begin_step opens one")]
    NoStep,
    /// A step within another.
    #[error("a step is open; raddle_idx_end_step writes it")]
    StepOpen,
    /// A step that was not ended.
    #[error("the step that is open was given up; raddle_idx_end_step would have written it")]
    GivenUp,
    /// Steps with and without numbers.
    #[error("{}: a dataset has numbered steps or one without a number, not both", path.display())]
    Numbered { path: PathBuf },
    /// A field that was not given.
    #[error("field {field} of box {number} was not given in this step")]
    NotGiven { field: String, number: usize },
    /// A header that cannot be.
    #[error("{}: {source}", path.display())]
    Header { path: PathBuf, source: HeaderError },
    /// What `raddle_idx` says.
    #[error(transparent)]
    Idx(#[from] IdxError),
    /// A defect.
    #[error("internal error: {message}; please report this with what led to it")]
    Panic { message: String },
}

impl Fault {
    /// The number that the caller gets.
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

    /// The words, with what to do where that is not said yet.
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
