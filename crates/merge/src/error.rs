//! Why a merge could not be planned, carried out or confirmed. Every variant says which file or object and what to do.

use crate::companion::CompanionError;
use crate::join::Difference;
use crate::keys::KeyFault;
use raddle_core::engine::{EngineError, Kept};
use raddle_core::error::CoreError;
use raddle_core::output::LockError;
use raddle_core::progress::Watch;
use raddle_hdf5::Hdf5Error;
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T, E = MergeError> = std::result::Result<T, E>;

/// An input that cannot be used, and why.
#[derive(Debug)]
pub struct BadInput {
    /// Path as given.
    pub path: PathBuf,
    /// Cause.
    pub error: Hdf5Error,
}

/// An input that has no value to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingKey {
    /// Path as given.
    pub path: PathBuf,
    /// The dataset asked for, escaped for display.
    pub dataset: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// An error of merge, rechunk or verify.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Nothing to do.
    #[error("no input files: {hint}")]
    NoInputs {
        /// What was looked at.
        hint: String,
    },
    /// A path, folder or list that cannot be read.
    #[error("{}: {source}", path.display())]
    Input {
        /// Path as given.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A pattern that is no glob.
    #[error("{pattern}: not a valid pattern: {source}")]
    Pattern {
        /// Pattern as given.
        pattern: String,
        /// Cause.
        source: globset::Error,
    },
    /// Patterns for what is to be merged that match nothing.
    #[error(
        "no object of the inputs matches --include {patterns}; a pattern with a slash counts from the root, one without is a whole name"
    )]
    NothingIncluded {
        /// The patterns.
        patterns: String,
    },
    /// A path that a list of one path per line cannot hold.
    #[error("{}: a list cannot hold a path with a line break; rename the file", path.display())]
    Unlistable {
        /// Path as given.
        path: PathBuf,
    },
    /// One file was given twice.
    #[error("{}: given twice (also as {}); remove one, or allow it with --duplicates keep or drop", path.display(), other.display())]
    Duplicate {
        /// Second path.
        path: PathBuf,
        /// First path.
        other: PathBuf,
    },
    /// Inputs that cannot be read; all of them, not only the first.
    #[error("{} of the inputs cannot be read; the first: {}", bad.len(), first(bad))]
    BadInputs {
        /// The inputs, in order.
        bad: Vec<BadInput>,
    },
    /// Inputs that cannot be sorted by first values; all of them.
    #[error("{} of the inputs have no value to sort by; the first: {}", missing.len(), first_missing(missing))]
    SortKeys {
        /// The inputs, in order.
        missing: Vec<MissingKey>,
    },
    /// Inputs whose objects do not fit together; all differences.
    #[error("the inputs do not fit together: {} difference(s); see the table, or choose --join inner or outer", differences.len())]
    Differences {
        /// The differences, by path.
        differences: Vec<Difference>,
    },
    /// A value of an input has no exact counterpart in the output.
    #[error("{}: {object}: {value} {reason}", input.display())]
    Inexact {
        /// The dataset, escaped for display.
        object: String,
        /// The input.
        input: PathBuf,
        /// The value.
        value: String,
        /// Why, and what to do.
        reason: String,
    },
    /// Inputs whose rows the file has already.
    #[error("{} of the inputs are in {} already; the first: {} (as {})", repeated.len(), file.display(), first_repeated(repeated).0.display(), first_repeated(repeated).1.display())]
    Repeated {
        /// The file.
        file: PathBuf,
        /// The inputs, and the paths under which the file knows them.
        repeated: Vec<(PathBuf, PathBuf)>,
    },
    /// An option contradicts what the file remembers of the merge that made it.
    #[error("{}: was merged with {known}, not with {given}; leave that option out, or merge all inputs again", path.display())]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// The option of the merge.
        known: String,
        /// The option that was given.
        given: String,
    },
    /// The output path cannot be used.
    #[error("{}: {reason}", path.display())]
    Output {
        /// Output path.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// Another process writes this output.
    #[error("{}: another raddle is writing it (lock {})", path.display(), lock.display())]
    Locked {
        /// Output path.
        path: PathBuf,
        /// Lock file.
        lock: PathBuf,
    },
    /// A part beside the output is not of this merge.
    #[error("{}: part {part} beside it was made otherwise: {subject} changed since ({})", output.display(), path.display())]
    PartDiffers {
        /// Output path.
        output: PathBuf,
        /// Number of the part.
        part: u32,
        /// Its file.
        path: PathBuf,
        /// What differs.
        subject: String,
    },
    /// Programs that read the file do not let it go.
    #[error("{}: is open in another program; nothing was changed", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused to write.
    #[error("{}: {operation} failed: {source}", path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// The dimensions claim more than inputs of their size can hold.
    #[error("{object}: {} and the others claim {needed} uncompressed bytes, the limit is {limit}; raise it with --max-output if the dimensions are meant to be that large", input.display())]
    OutputTooLong {
        /// Largest dataset.
        object: String,
        /// Input that has most of it.
        input: PathBuf,
        /// Uncompressed bytes of the output.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The inputs together have more rows or bytes than HDF5 can count.
    #[error("{object}: {} ({rows} rows) and the other inputs have {needed} {what}; HDF5 counts up to {limit} (2^63 - 1)", input.display())]
    Oversized {
        /// The dataset.
        object: String,
        /// Input that has most of it.
        input: PathBuf,
        /// Its rows.
        rows: u64,
        /// What is counted.
        what: &'static str,
        /// What the inputs have together.
        needed: u128,
        /// Most that can be counted.
        limit: u64,
    },
    /// Chunks of an input that take more memory to read than there is.
    #[error("{object}: reading its chunks in {}, {chunk_len_bytes} bytes each, needs {needed} bytes of memory, the budget is {limit}; raise --memory", input.display())]
    LongChunks {
        /// The dataset.
        object: String,
        /// An input with such chunks.
        input: PathBuf,
        /// Length of a decoded chunk.
        chunk_len_bytes: u64,
        /// Bytes that one thread needs.
        needed: u64,
        /// The budget.
        limit: u64,
    },
    /// A dataset that cannot be concatenated as asked.
    #[error("{object}: {reason}")]
    Object {
        /// Path of the object.
        object: String,
        /// Why, and what to do.
        reason: String,
    },
    /// Ids that cannot be keys; all tables.
    #[error("{} of the tables cannot get keys; the first: {}", faults.len(), first_fault(faults))]
    KeyFaults {
        /// What is wrong, by group.
        faults: Vec<KeyFault>,
    },
    /// The file holds no digests, or those of a version that wrote others.
    #[error("{}: holds no digests that this version can check (merged with --no-provenance, by an older raddle, or not by raddle); compare it with its inputs: --against", path.display())]
    NoDigests {
        /// The file.
        path: PathBuf,
    },
    /// The digests are of a later format.
    #[error("{}: its digests have format {found}, this version knows up to {known}; use a newer raddle", path.display())]
    DigestsNewer {
        /// The file.
        path: PathBuf,
        /// Format in the file.
        found: u64,
        /// Newest format known.
        known: u64,
    },
    /// The digests contradict themselves.
    #[error("{}: its digests are damaged: {what}", path.display())]
    DigestsDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        what: String,
    },
    /// Reading an input or writing the output through the HDF5 layer failed.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
    /// A chunk could not be encoded.
    #[error("{object}: {source}")]
    Codec {
        /// Path of the dataset.
        object: String,
        /// Cause.
        source: raddle_codec::CodecError,
    },
    /// The run stopped, but what it had placed is kept for the next one.
    #[error("{source}")]
    Resumable {
        /// Why it stopped.
        source: Box<MergeError>,
        /// Temporary file with the tiles.
        path: PathBuf,
        /// What is kept.
        kept: Kept,
    },
    /// What is made beside the output could not be made.
    #[error("{source}")]
    Companion {
        /// Cause; it names file and object.
        source: CompanionError,
    },
    /// The output has its name, what belongs beside it has not.
    #[error("{} is complete, but not what belongs beside it: {source}", output.display())]
    Unaccompanied {
        /// Output path.
        output: PathBuf,
        /// Cause; it names file and object.
        source: CompanionError,
    },
    /// Stopped by a signal.
    #[error("stopped before the end; nothing was published")]
    Cancelled,
    /// Memory, a plan that contradicts itself, ranks.
    #[error(transparent)]
    Core(CoreError),
    /// The engine stopped for a reason of its own.
    #[error("{object}: {reason}")]
    Engine {
        /// Dataset.
        object: String,
        /// Why.
        reason: String,
    },
}

impl From<CoreError> for MergeError {
    fn from(error: CoreError) -> Self {
        match error {
            CoreError::Cancelled => Self::Cancelled,
            other => Self::Core(other),
        }
    }
}

impl From<LockError> for MergeError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { path, lock } => Self::Locked { path, lock },
            LockError::Io { path, operation, source } => Self::Write { path, operation, source },
        }
    }
}

fn first_missing(missing: &[MissingKey]) -> String {
    let text = |key: &MissingKey| format!("{}: {} {}", key.path.display(), key.dataset, key.reason);
    missing.first().map(text).unwrap_or_default()
}

fn first_repeated(repeated: &[(PathBuf, PathBuf)]) -> (&Path, &Path) {
    repeated.first().map_or((Path::new(""), Path::new("")), |(path, known)| (path, known))
}

fn first(bad: &[BadInput]) -> String {
    bad.first().map(|bad| bad.error.to_string()).unwrap_or_default()
}

fn first_fault(faults: &[KeyFault]) -> String {
    faults.first().map_or(String::new(), |fault| {
        format!("{} has {} in {} row(s), first row {}", fault.group, fault.kind.words(), fault.rows, fault.first_row)
    })
}

impl MergeError {
    /// Whether this only says that another rank met an error.
    pub fn is_echo(&self) -> bool {
        matches!(self, Self::Core(CoreError::RankFailed { .. } | CoreError::RankLeft { .. }))
    }

    /// Whether the same run may do better next time, so that what it placed is worth keeping: it was stopped, or the
    /// machine failed it. Inputs that are damaged or change are not of that kind.
    pub fn is_resumable(&self) -> bool {
        let of_hdf5 = |error: &Hdf5Error| match error {
            Hdf5Error::InObject { source, .. } => matches!(**source, Hdf5Error::Io { .. }),
            error => matches!(error, Hdf5Error::Io { .. }),
        };
        match self {
            Self::Cancelled | Self::Write { .. } | Self::Companion { .. } | Self::LongChunks { .. } => true,
            Self::Core(error) => matches!(error, CoreError::Memory { .. } | CoreError::Threads { .. }),
            Self::Hdf5(error) => of_hdf5(error),
            _ => false,
        }
    }

    /// Why what is made beside the output failed: that the run was stopped, where it was.
    pub(crate) fn of_companion(source: CompanionError, watch: &Watch<'_>) -> Self {
        if watch.cancel.is_cancelled() {
            return Self::Cancelled;
        }
        match source.downcast::<CoreError>() {
            Ok(error) => (*error).into(),
            Err(source) => Self::Companion { source },
        }
    }

    /// The engine's error in terms of this crate; `output` is the file that the engine writes.
    pub fn from_engine(error: EngineError<MergeError>, output: &Path) -> Self {
        match error {
            EngineError::Tile { source, .. }
            | EngineError::Worker { source }
            | EngineError::Commit { source, .. }
            | EngineError::Bring { source } => source,
            EngineError::Write { source, .. } => {
                Self::Write { path: output.to_path_buf(), operation: "write chunks", source }
            }
            EngineError::Recorded { source } => {
                Self::Write { path: output.to_path_buf(), operation: "go on from its journal", source }
            }
            EngineError::Core(error) => error.into(),
            other => Self::Engine { object: output.display().to_string(), reason: other.to_string() },
        }
    }
}
