//! Why a dataset could not be read or written.

use crate::compression::BlockFault;
use crate::header::HeaderError;
use crate::restructure::PartitionFault;
use crate::steps::StepList;
use crate::zarr::ZarrFault;
use raddle_codec::CodecError;
use raddle_core::CoreError;
use raddle_core::engine::EngineError;
use raddle_core::output::LockError;
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T, E = IdxError> = std::result::Result<T, E>;

/// Why a dataset could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdxError {
    /// A file could not be read.
    #[error("cannot {operation} {}: {source}", path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot {operation} {}: {source}", path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// The header is refused.
    #[error("{}: {source}", path.display())]
    Header {
        /// The `.idx` file.
        path: PathBuf,
        /// Why.
        source: HeaderError,
    },
    /// A box cannot be written into an existing time step.
    #[error("{}: {fault}", path.display())]
    Update {
        /// The `.idx` file.
        path: PathBuf,
        /// Why.
        fault: UpdateFault,
    },
    /// A block is missing or damaged.
    #[error("{}: block {block} of field {field:?}: {source}", path.display())]
    Block {
        /// The file that holds the block, or should.
        path: PathBuf,
        /// Field.
        field: String,
        /// Number of the block.
        block: u64,
        /// Why.
        source: BlockFault,
    },
    /// Blocks of a version that is not read.
    #[error("{}: blocks of version {version} are not supported, only those of version 6", path.display())]
    BlockVersion {
        /// The `.idx` file.
        path: PathBuf,
        /// Version.
        version: u32,
    },
    /// A field whose samples are not the data but filtered over the levels.
    #[error("{}: field {field:?} has filter {filter:?}, which is not supported", path.display())]
    Filter {
        /// The `.idx` file.
        path: PathBuf,
        /// Field.
        field: String,
        /// Filter.
        filter: String,
    },
    /// A field that is to be written in a way that raddle does not know, or that its samples do not take.
    #[error(
        "field {field:?}: compression {compression:?} cannot be written; zip, lz4 and none can, and zfp for single \
         float32, float64, int32 or int64 numbers on two or three axes, slowest ones of length 1 not counted (with an \
         accuracy: for the first two)"
    )]
    Compression {
        /// Field.
        field: String,
        /// As named.
        compression: String,
    },
    /// A field that cannot be written without aggregation.
    #[error(
        "field {field:?}: blocks that several ranks write at once cannot be compressed; choose two or three phases"
    )]
    OnePhase {
        /// Field.
        field: String,
    },
    /// The boxes that ranks give are not the dataset, once.
    #[error("{}: {source}", path.display())]
    Partition {
        /// The `.idx` file.
        path: PathBuf,
        /// What is wrong with them.
        source: Box<PartitionFault>,
    },
    /// A step of other fields, counts or layout than the dataset has.
    #[error("{}: the dataset that is there has another {what}; name another output", path.display())]
    HeaderDiffers {
        /// The `.idx` file.
        path: PathBuf,
        /// What differs.
        what: &'static str,
    },
    /// A field that does not exist.
    #[error("{}: no field {field}, there are {count}", path.display())]
    NoField {
        /// The `.idx` file.
        path: PathBuf,
        /// Number of the field.
        field: usize,
        /// Fields.
        count: usize,
    },
    /// A resolution that does not exist.
    #[error("{}: resolution {resolution} is beyond the highest, {limit}", path.display())]
    NoResolution {
        /// The `.idx` file.
        path: PathBuf,
        /// As asked.
        resolution: u32,
        /// Highest.
        limit: u32,
    },
    /// A time step that does not exist, or is missing in the request.
    #[error("{}: {fault}", path.display())]
    NoTime {
        /// The `.idx` file.
        path: PathBuf,
        /// What does not fit.
        fault: TimeFault,
    },
    /// A box that reaches beyond the dataset.
    #[error("{}: the box goes from {axis} = {start} to before {end}; the dataset has samples {first} to before {limit} there",
        path.display())]
    BoxOutside {
        /// The `.idx` file.
        path: PathBuf,
        /// Name of the axis.
        axis: char,
        /// First sample of the box along it.
        start: u64,
        /// One past the last.
        end: u64,
        /// First sample of the dataset along it.
        first: u64,
        /// One past its last.
        limit: u64,
    },
    /// A box that holds no sample of the resolution.
    #[error("{}: the box from {start:?} to before {end:?} holds no samples of the dataset at resolution {resolution}",
        path.display())]
    EmptyBox {
        /// The `.idx` file.
        path: PathBuf,
        /// First sample.
        start: Vec<u64>,
        /// One past the last.
        end: Vec<u64>,
        /// Resolution.
        resolution: u32,
    },
    /// A buffer whose length is not that of the samples.
    #[error("{got_bytes} bytes given for the samples of field {field}, {want_bytes} are needed")]
    Buffer {
        /// Number of the field.
        field: usize,
        /// As given.
        got_bytes: u64,
        /// As needed.
        want_bytes: u64,
    },
    /// Not one array per field.
    #[error("{got} arrays for {want} fields")]
    Arrays {
        /// As given.
        got: usize,
        /// As needed.
        want: usize,
    },
    /// The output is there.
    #[error("{} exists", path.display())]
    Exists {
        /// Output.
        path: PathBuf,
    },
    /// The time step that is to be added is there.
    #[error("{}: this time step is there", path.display())]
    StepExists {
        /// Its folder, or a file of it.
        path: PathBuf,
    },
    /// The `.idx` file is none.
    #[error("{} is not a regular file; name another output", path.display())]
    NotAFile {
        /// The output.
        path: PathBuf,
    },
    /// What is to be replaced is not only a dataset.
    #[error("{} holds other things than blocks and is not replaced; move them away", path.display())]
    Foreign {
        /// Folder or file.
        path: PathBuf,
    },
    /// A folder that is to be replaced is the preview of another output, or does not say of which.
    #[error(
        "{} is not known to be the preview of this output{} and is not replaced",
        path.display(),
        owner.as_ref().map_or_else(String::new, |owner| format!(" but that of {}", owner.display()))
    )]
    OtherPreview {
        /// The folder.
        path: PathBuf,
        /// The output that it names.
        owner: Option<PathBuf>,
    },
    /// Another process writes the same dataset.
    #[error("{} is being written by another process (lock on {})", path.display(), lock.display())]
    Locked {
        /// The `.idx` file.
        path: PathBuf,
        /// What is locked.
        lock: PathBuf,
    },
    /// No memory for samples.
    #[error("no memory for {len_bytes} bytes of samples")]
    Memory {
        /// Length.
        len_bytes: u64,
    },
    /// An OME-Zarr folder that is refused, or that cannot be written as asked.
    #[error("{}: {source}", path.display())]
    Zarr {
        /// The folder, or the shard in it.
        path: PathBuf,
        /// Why.
        source: Box<ZarrFault>,
    },
    /// A chunk could not be compressed.
    #[error("cannot compress: {0}")]
    Encode(#[source] CodecError),
    /// Ranks, memory or cancellation.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The engine stopped for a reason of its own.
    #[error("{}: {reason}", path.display())]
    Engine {
        /// The `.idx` file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// Why a box cannot be written into an existing time step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateFault {
    /// A field whose other samples would be rounded again.
    #[error(
        "field {field:?} has compression {compression}, so samples outside the box would be rounded again; write the \
         whole time step again"
    )]
    Rounded {
        /// Field.
        field: String,
        /// As the header names it.
        compression: String,
    },
    /// Files that cannot be exchanged at once.
    #[error(
        "its file names ({template}) give a time step no folder of its own, so that it cannot be replaced at once; write the \
         dataset again as another output"
    )]
    NoFolder {
        /// Template of the files.
        template: String,
    },
    /// No box.
    #[error("no rank gives any samples")]
    NoSamples,
    /// A field given twice.
    #[error("field {field:?} is given twice")]
    FieldTwice {
        /// Field.
        field: String,
    },
}

/// How a time step that was asked for, or none, does not fit a dataset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeFault {
    /// It has no time steps.
    #[error("has no time steps, and time step {asked} was asked for")]
    None {
        /// As asked.
        asked: u64,
    },
    /// It has no time steps, and one was to be added.
    #[error("has no time steps, so that none can be added to it")]
    NotAdded,
    /// It has time steps and none was named.
    #[error("has time steps, of which one must be named")]
    Unnamed,
    /// It has others.
    #[error("has no time step {asked}; those there are: {there}")]
    Absent {
        /// As asked.
        asked: u64,
        /// The time steps that it has.
        there: StepList,
    },
}

impl From<LockError> for IdxError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { path, lock } => Self::Locked { path, lock },
            LockError::Io { path, operation, source } => Self::Write { path, operation, source },
        }
    }
}

/// What an error means for who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked makes no sense.
    Usage,
    /// What is there, or was given, cannot be used.
    Input,
    /// The output cannot be written.
    Output,
    /// A limit was reached: memory, threads.
    Limit,
    /// Another process writes the same dataset.
    Locked,
    /// The work was cancelled.
    Cancelled,
    /// Another rank met an error.
    RankFailed,
    /// A defect.
    Internal,
}

impl IdxError {
    /// Of which kind it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            error if error.is_echo() => ErrorKind::RankFailed,
            Self::Write { .. }
            | Self::Exists { .. }
            | Self::StepExists { .. }
            | Self::NotAFile { .. }
            | Self::Foreign { .. }
            | Self::OtherPreview { .. } => ErrorKind::Output,
            Self::Locked { .. } => ErrorKind::Locked,
            Self::Memory { .. } | Self::Core(CoreError::Memory { .. } | CoreError::Threads { .. }) => ErrorKind::Limit,
            Self::Core(CoreError::Cancelled) => ErrorKind::Cancelled,
            Self::OnePhase { .. } | Self::Core(CoreError::PlansDiffer { .. }) => ErrorKind::Usage,
            Self::Zarr { source, .. } if source.is_of_options() => ErrorKind::Usage,
            Self::Core(_) | Self::Engine { .. } => ErrorKind::Internal,
            _ => ErrorKind::Input,
        }
    }

    /// Why the engine stopped while it wrote `path`.
    pub(crate) fn of_engine(path: &Path, error: EngineError<Self>) -> Self {
        let path = path.to_path_buf();
        match error {
            EngineError::Tile { source, .. }
            | EngineError::Worker { source }
            | EngineError::Commit { source, .. }
            | EngineError::Bring { source } => source,
            EngineError::Write { source, .. } => Self::Write { path, operation: "write blocks of", source },
            EngineError::Core(error) => error.into(),
            other => Self::Engine { path, reason: other.to_string() },
        }
    }

    /// Whether this only says that another rank met an error.
    pub fn is_echo(&self) -> bool {
        matches!(self, Self::Core(CoreError::RankFailed { .. } | CoreError::RankLeft { .. }))
    }
}
