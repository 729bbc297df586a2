//! Errors of planning, executing and verifying a merge. Every variant names the file or object and the remedy.

use crate::keys::KeyFault;
use crate::schema::join::Difference;
use crate::write::tile_observer::TileObserverError;
use raddle_core::engine::{Checkpoint, EngineError};
use raddle_core::error::CoreError;
use raddle_core::output::LockError;
use raddle_core::output::publish::{PublishError, PublishStep};
use raddle_core::output::scratch::ScratchError;
use raddle_core::ranks::communicator::AgreedError;
use raddle_core::report::progress::Watch;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::object_path::display_path;
use std::fmt::{Display, Formatter};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Result with this crate's error.
pub type Result<T, E = MergeError> = std::result::Result<T, E>;

/// An input that cannot be used, with the cause.
#[derive(Debug)]
pub struct BadInput {
    /// Path of the input, as specified by the caller.
    pub path: PathBuf,
    /// Cause.
    pub error: Hdf5Error,
}

/// An input without a value to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingKey {
    /// Path of the input, as specified by the caller.
    pub path: PathBuf,
    /// Path of the requested dataset, escaped for display.
    pub dataset: String,
    /// Description of the problem with the dataset.
    pub reason: &'static str,
}

/// Values that differ from the digests that their inputs hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedValues {
    /// Inputs that have rows of the dataset, as specified by the caller.
    pub inputs: Vec<PathBuf>,
    /// Path of the first such dataset, escaped for display.
    pub object: String,
    /// Rows that include all differences, if they are known.
    pub rows: Option<Range<u64>>,
    /// Number of other such datasets.
    pub others: u64,
}

impl Display for ChangedValues {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let cause = match &self.inputs[..] {
            [input] => {
                write!(f, "{}: ", input.display())?;
                "the file was damaged or changed"
            }
            _ => "one of the inputs was damaged or changed",
        };
        write!(f, "{}: ", self.object)?;
        match &self.rows {
            Some(rows) if rows.end - rows.start == 1 => write!(f, "row {} differs", rows.start)?,
            Some(rows) => write!(f, "rows {} to {} differ", rows.start, rows.end - 1)?,
            None => write!(f, "the values differ")?,
        }
        write!(f, " from what was written: {cause}")?;
        match self.others {
            0 => Ok(()),
            1 => write!(f, " (and another dataset)"),
            others => write!(f, " (and {others} other datasets)"),
        }
    }
}

/// An error of merge, rechunk or verify.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There are no inputs.
    #[error("no input files: {hint}")]
    NoInputs {
        /// Description of the places that were searched.
        hint: String,
    },
    /// A path, folder or list cannot be read.
    #[error("{}: {source}", path.display())]
    Input {
        /// Path, as specified by the caller.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A pattern is not a valid glob.
    #[error("{pattern}: not a valid pattern: {source}")]
    Pattern {
        /// Pattern, as specified by the caller.
        pattern: String,
        /// Cause.
        source: globset::Error,
    },
    /// No object of the inputs matches the include patterns.
    #[error(
        "no object of the inputs matches --include {patterns}; a pattern with a slash is matched from the root, one without matches a whole name"
    )]
    NothingIncluded {
        /// The patterns, joined into one string.
        patterns: String,
    },
    /// The include and exclude patterns leave no object of the inputs.
    #[error("--include and --exclude leave out every object of the inputs")]
    NothingLeft,
    /// A path contains a line break, which a list with one path per line cannot hold.
    #[error("{}: a list cannot hold a path with a line break; rename the file", path.display())]
    Unlistable {
        /// Path with the line break.
        path: PathBuf,
    },
    /// The same file was listed twice.
    #[error("{}: given twice (also as {}); remove one, or allow it with --duplicates keep or drop", path.display(), other.display())]
    Duplicate {
        /// Path under which the file was listed again.
        path: PathBuf,
        /// Path under which the file was listed first.
        other: PathBuf,
    },
    /// Some inputs cannot be read.
    #[error("{} of the inputs cannot be read; the first: {}", bad.len(), first(bad))]
    BadInputs {
        /// The unreadable inputs, in input order.
        bad: Vec<BadInput>,
    },
    /// Some inputs have no first value to sort by.
    #[error("{} of the inputs have no value to sort by; the first: {}", missing.len(), first_missing(missing))]
    SortKeys {
        /// The inputs without a value, in input order.
        missing: Vec<MissingKey>,
    },
    /// Objects of the inputs do not fit together; lists all differences.
    #[error("the inputs do not fit together, number of differences: {}; see the table, or choose --join inner or outer", differences.len())]
    Differences {
        /// The differences, sorted by path.
        differences: Vec<Difference>,
    },
    /// A value of an input cannot be represented exactly in the output.
    #[error("{}: {object}: {value} {reason}", input.display())]
    Inexact {
        /// Path of the dataset, escaped for display.
        object: String,
        /// Path of the input.
        input: PathBuf,
        /// The value as text.
        value: String,
        /// Reason and remedy.
        reason: String,
    },
    /// Rows of some inputs are already in the file that is appended to.
    #[error("{} of the inputs are already in {}; the first: {} (as {})", repeated.len(), file.display(), first_repeated(repeated).0.display(), first_repeated(repeated).1.display())]
    Repeated {
        /// The file that is appended to.
        file: PathBuf,
        /// Paths of the inputs, each with the path recorded for it in the file.
        repeated: Vec<(PathBuf, PathBuf)>,
    },
    /// An option contradicts the file's record of the merge that wrote it.
    #[error("{}: was merged with {known}, not with {requested}; leave that option out, or merge all inputs again", path.display())]
    Contradiction {
        /// Path of the file.
        path: PathBuf,
        /// Option of the recorded merge.
        known: String,
        /// Option of this run.
        requested: String,
    },
    /// The output path cannot be used.
    #[error("{}: {reason}", path.display())]
    Output {
        /// Path of the output.
        path: PathBuf,
        /// Reason and remedy.
        reason: String,
    },
    /// Another process is writing this output.
    #[error("{}: another raddle is writing it (lock {})", path.display(), lock.display())]
    Locked {
        /// Path of the output.
        path: PathBuf,
        /// Path of the lock file.
        lock: PathBuf,
    },
    /// A part next to the output belongs to a different merge.
    #[error("{}: part {part} belongs to a different merge: {subject} changed since ({})", output.display(), path.display())]
    PartDiffers {
        /// Path of the output.
        output: PathBuf,
        /// Number of the part.
        part: u32,
        /// Path of the part's file.
        path: PathBuf,
        /// Subject that has changed since the part was written.
        subject: String,
    },
    /// The file is open in other programs.
    #[error("{}: is open in another program; nothing was changed", path.display())]
    InUse {
        /// Path of the file.
        path: PathBuf,
    },
    /// The operating system reported an error while writing.
    #[error("{}: {operation} failed: {source}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The operation that failed.
        operation: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// The dimensions claim more data than inputs of this size can hold.
    #[error("{object}: {} and the other inputs claim {needed} uncompressed bytes, the limit is {limit}; raise it with --max-output if the dimensions are meant to be that large", input.display())]
    OutputTooLong {
        /// Path of the largest dataset.
        object: String,
        /// Input with the most rows of the dataset.
        input: PathBuf,
        /// Uncompressed bytes of the output.
        needed: u64,
        /// Maximum number of bytes allowed.
        limit: u64,
    },
    /// The inputs together have more rows or bytes than HDF5 can count.
    #[error("{object}: {} ({rows} rows) and the other inputs have {needed} {what}; HDF5 can count up to {limit} (2^63 - 1)", input.display())]
    Oversized {
        /// Path of the dataset.
        object: String,
        /// Input with the most rows of the dataset.
        input: PathBuf,
        /// Number of rows of that input.
        rows: u64,
        /// Counted quantity: rows or bytes.
        what: &'static str,
        /// Total over all inputs.
        needed: u128,
        /// Largest number that HDF5 can count to.
        limit: u64,
    },
    /// Reading the chunks of an input needs more memory than the budget allows.
    #[error("{object}: reading its chunks in {}, {chunk_len_bytes} bytes each, needs {needed} bytes of memory, the budget is {limit}; raise --memory", input.display())]
    LongChunks {
        /// Path of the dataset.
        object: String,
        /// Path of an input with such chunks.
        input: PathBuf,
        /// Size of a decoded chunk.
        chunk_len_bytes: u64,
        /// Memory that one thread needs.
        needed: u64,
        /// The memory budget in bytes.
        limit: u64,
    },
    /// Writing the chunks of a dataset needs more memory than the budget allows.
    #[error(
        "{object}: writing its {tiles} chunks, {tile_len_bytes} bytes each, needs {needed} bytes of memory, the budget is {limit}; raise --memory"
    )]
    Tiles {
        /// Path of the dataset.
        object: String,
        /// Number of chunks.
        tiles: u64,
        /// Size of a chunk, uncompressed.
        tile_len_bytes: u64,
        /// Memory that one thread needs.
        needed: u64,
        /// The memory budget in bytes.
        limit: u64,
    },
    /// Reading inputs for other ranks, as requested, leaves too little memory.
    #[error("reading by files: {purpose} needs {needed} bytes of memory; {left} of {limit} are left")]
    ByFiles {
        /// Purpose of the memory.
        purpose: &'static str,
        /// Memory needed, in bytes.
        needed: u64,
        /// Memory left in the budget, in bytes.
        left: u64,
        /// The memory budget in bytes.
        limit: u64,
    },
    /// A dataset cannot be concatenated as requested.
    #[error("{object}: {reason}")]
    Object {
        /// Path of the object.
        object: String,
        /// Reason and remedy.
        reason: String,
    },
    /// Some ids cannot serve as keys; lists the faults of all tables.
    #[error("{} of the tables cannot get keys; the first: {}", faults.len(), first_fault(faults))]
    KeyFaults {
        /// Faults of the tables.
        faults: Vec<KeyFault>,
    },
    /// The file holds no digests, or only digests of a version that used another kind.
    #[error("{}: holds no digests that this version can check (merged with --no-provenance, by an older raddle, or not by raddle); compare it with its inputs: --against", path.display())]
    NoDigests {
        /// Path of the file.
        path: PathBuf,
    },
    /// The digests have a newer format than this version knows.
    #[error("{}: its digests have format {found}, this version knows up to {known}; use a newer raddle", path.display())]
    DigestsNewer {
        /// Path of the file.
        path: PathBuf,
        /// Format version found in the file.
        found: u64,
        /// Newest format version known.
        known: u64,
    },
    /// The digests are inconsistent.
    #[error("{}: its digests are damaged: {what}", path.display())]
    DigestsDamaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the inconsistency.
        what: String,
    },
    /// An input holds digests of its values, and the values differ from them.
    #[error("{0}")]
    ChangedValues(ChangedValues),
    /// The HDF5 layer failed to read an input or write the output.
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
    /// The run stopped, and its completed work is kept for the next run.
    #[error("{source}")]
    Resumable {
        /// Reason why the run stopped.
        source: Box<MergeError>,
        /// Temporary file that holds the tiles.
        path: PathBuf,
        /// Work that is kept for the next run.
        kept: Checkpoint,
    },
    /// The file of a tile observer could not be written.
    #[error("{source}")]
    TileObserver {
        /// Cause; it names the file and object.
        source: TileObserverError,
    },
    /// The output was published, but the tile observer's file was not.
    #[error("{} is complete, but the file that accompanies it could not be published: {source}", output.display())]
    Unaccompanied {
        /// Path of the output.
        output: PathBuf,
        /// Cause; it names the file and object.
        source: TileObserverError,
    },
    /// The run was stopped by a signal.
    #[error("stopped before the end; nothing was published")]
    Cancelled,
    /// Lack of memory, an inconsistent plan, or a failure in communication between ranks.
    #[error(transparent)]
    Core(CoreError),
    /// Another error of the engine.
    #[error("{object}: {reason}")]
    Engine {
        /// Path of the dataset or output.
        object: String,
        /// Description of the error.
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

impl AgreedError for MergeError {
    fn message(&self) -> String {
        self.to_string()
    }

    fn of_ranks(error: CoreError) -> Self {
        error.into()
    }

    fn is_cancellation(&self) -> bool {
        matches!(self, Self::Cancelled)
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

impl From<ScratchError> for MergeError {
    fn from(ScratchError { folder, operation, source }: ScratchError) -> Self {
        Self::Write { path: folder, operation, source }
    }
}

impl From<PublishError> for MergeError {
    fn from(error: PublishError) -> Self {
        let (step, path, source) = match error {
            PublishError::Lock(error) => return error.into(),
            PublishError::Exists { path, source } => (PublishStep::Rename, path, source),
            PublishError::Io { step, path, source } => (step, path, source),
        };
        let operation = match step {
            PublishStep::Clear => "remove an old part",
            PublishStep::SyncName => "the file is complete and published, but syncing its folder",
            step => step.operation(),
        };
        Self::Write { path, operation, source }
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
    /// Adds the object at `path` to an error of HDF5; other errors name theirs.
    pub(crate) fn in_object(self, path: &[u8]) -> Self {
        match self {
            Self::Hdf5(error) => Self::Hdf5(error.in_object(display_path(path))),
            other => other,
        }
    }

    /// Returns whether this error only reports that another rank failed.
    pub fn is_secondary(&self) -> bool {
        matches!(self, Self::Core(CoreError::RankFailed { .. } | CoreError::RankLeft { .. }))
    }

    /// Returns whether the same run may succeed next time, in which case its completed work is worth keeping: it was
    /// stopped, or the machine failed. Damaged or changed inputs do not count.
    pub(crate) fn is_resumable(&self) -> bool {
        let of_hdf5 = |error: &Hdf5Error| match error {
            Hdf5Error::InObject { source, .. } => matches!(**source, Hdf5Error::Io { .. }),
            error => matches!(error, Hdf5Error::Io { .. }),
        };
        match self {
            Self::Cancelled
            | Self::Write { .. }
            | Self::TileObserver { .. }
            | Self::LongChunks { .. }
            | Self::Tiles { .. }
            | Self::ByFiles { .. } => true,
            Self::Core(error) => matches!(error, CoreError::Memory { .. } | CoreError::Threads { .. }),
            Self::Hdf5(error) => of_hdf5(error),
            _ => false,
        }
    }

    /// Converts an error of a tile observer; returns [`MergeError::Cancelled`] if the run was cancelled.
    pub(crate) fn of_observer(source: TileObserverError, watch: &Watch<'_>) -> Self {
        if watch.cancel.is_cancelled() {
            return Self::Cancelled;
        }
        match source.downcast::<CoreError>() {
            Ok(error) => (*error).into(),
            Err(source) => Self::TileObserver { source },
        }
    }

    /// Converts an error of the engine; `output` is the file that the engine writes.
    pub(crate) fn from_engine(error: EngineError<MergeError>, output: &Path) -> Self {
        match error {
            EngineError::Tile { source, .. }
            | EngineError::Worker { source }
            | EngineError::Commit { source, .. }
            | EngineError::Regroup { source } => source,
            EngineError::Write { source, .. } => {
                Self::Write { path: output.to_path_buf(), operation: "write chunks", source }
            }
            EngineError::Recorded { source } => {
                Self::Write { path: output.to_path_buf(), operation: "resume from its journal", source }
            }
            EngineError::Core(error) => error.into(),
            other => Self::Engine { object: output.display().to_string(), reason: other.to_string() },
        }
    }
}
