//! Errors of reading and writing datasets.

mod faults;
mod kind;

pub use faults::{TimeFault, UpdateFault};
pub use kind::ErrorKind;

use crate::dataset::compression::BlockFault;
use crate::dataset::header::HeaderError;
use crate::request::RequestFault;
use crate::write::restructure::PartitionFault;
use raddle_codec::CodecError;
use raddle_core::CoreError;
use raddle_core::engine::EngineError;
use raddle_core::output::publish::{PublishError, PublishStep};
use raddle_core::output::{LockError, folder_of};
use raddle_core::ranks::communicator::AgreedError;
use std::path::{Path, PathBuf};

/// Result type of this crate.
pub type Result<T, E = IdxError> = std::result::Result<T, E>;

/// Reason why a dataset could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdxError {
    /// A file could not be read.
    #[error("cannot {operation} {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Operation that failed.
        operation: &'static str,
        /// Underlying error.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot {operation} {}: {source}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Operation that failed.
        operation: &'static str,
        /// Underlying error.
        source: std::io::Error,
    },
    /// The header is invalid.
    #[error("{}: {source}", path.display())]
    Header {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Underlying error.
        source: HeaderError,
    },
    /// A box cannot be written into an existing time step.
    #[error("{}: {fault}", path.display())]
    Update {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Description of the fault.
        fault: UpdateFault,
    },
    /// A block is missing or damaged.
    #[error("{}: block {block} of field {field:?}: {source}", path.display())]
    Block {
        /// The file that holds the block, or should hold it.
        path: PathBuf,
        /// Name of the field.
        field: String,
        /// Number of the block.
        block: u64,
        /// Underlying error.
        source: BlockFault,
    },
    /// The blocks have a format version that is not supported.
    #[error("{}: blocks of version {version} are not supported, only those of version 6", path.display())]
    BlockVersion {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Version found.
        version: u32,
    },
    /// A field stores its samples filtered across levels.
    #[error("{}: field {field:?} has filter {filter:?}, which is not supported", path.display())]
    Filter {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Name of the field.
        field: String,
        /// Name of the filter.
        filter: String,
    },
    /// A field cannot be written with the requested compression: raddle does not support it, or it does not take
    /// samples of this type.
    #[error(
        "field {field:?}: compression {compression:?} cannot be written; zip, lz4 and none can, and zfp for single \
         float32, float64, int32 or int64 numbers on two or three axes, slowest ones of length 1 not counted (with an \
         accuracy: for the first two)"
    )]
    Compression {
        /// Name of the field.
        field: String,
        /// Requested compression.
        compression: String,
    },
    /// A compressed field cannot be written in one phase.
    #[error(
        "field {field:?}: blocks that several ranks write at once cannot be compressed; choose two or three phases"
    )]
    OnePhase {
        /// Name of the field.
        field: String,
    },
    /// The boxes of the ranks do not cover the dataset exactly once.
    #[error("{}: {source}", path.display())]
    Partition {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Fault of the boxes.
        source: Box<PartitionFault>,
    },
    /// The existing dataset has other fields, counts or layout than the step to be written.
    #[error("{}: the existing dataset has a different {what}; name another output", path.display())]
    HeaderDiffers {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Description of the difference.
        what: &'static str,
    },
    /// A field does not exist.
    #[error("{}: no field {field}; the dataset has {count}", path.display())]
    NoField {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Number of the field.
        field: usize,
        /// Number of fields.
        count: usize,
    },
    /// No field has the name.
    #[error("{}: no field {field}; it has {}", path.display(), available.join(", "))]
    NoFieldNamed {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Requested name.
        field: String,
        /// Names of the dataset's fields.
        available: Vec<String>,
    },
    /// A resolution does not exist.
    #[error("{}: resolution {resolution} is beyond the highest, {limit}", path.display())]
    NoResolution {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Requested resolution.
        resolution: u32,
        /// Highest resolution.
        limit: u32,
    },
    /// A time step does not exist, or the request must name one.
    #[error("{}: {fault}", path.display())]
    NoTime {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Description of the fault.
        fault: TimeFault,
    },
    /// A box reaches beyond the dataset.
    #[error("{}: the box goes from {axis} = {start} to before {end}; the dataset has samples {first} to before {limit} there",
        path.display())]
    BoxOutside {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Name of the axis.
        axis: char,
        /// First sample of the box along the axis.
        start: u64,
        /// End of the box along the axis, exclusive.
        end: u64,
        /// First sample of the dataset along the axis.
        first: u64,
        /// End of the dataset along the axis, exclusive.
        limit: u64,
    },
    /// A box contains no sample of the resolution.
    #[error("{}: the box from {start:?} to before {end:?} holds no samples of the dataset at resolution {resolution}",
        path.display())]
    EmptyBox {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// First sample of the box.
        start: Vec<u64>,
        /// End of the box, exclusive.
        end: Vec<u64>,
        /// Resolution of the request.
        resolution: u32,
    },
    /// An option of a request does not fit the others, the samples or the dataset.
    #[error("{option} {fault}")]
    Request {
        /// Name of the option, with `_` between words.
        option: &'static str,
        /// Description of the fault.
        fault: RequestFault,
    },
    /// The requested layout does not fit the samples.
    #[error(transparent)]
    Layout {
        /// Underlying error.
        source: HeaderError,
    },
    /// An IDX dataset is not the only input.
    #[error("an IDX dataset must be the only input, because it already has fields and time steps")]
    SeveralInputs,
    /// There are no inputs.
    #[error("no inputs are given")]
    NoInputs,
    /// An input cannot be used.
    #[error("{place}: {reason}")]
    Input {
        /// Path of the input, and of the dataset in it.
        place: String,
        /// Description of the fault.
        reason: String,
    },
    /// The inputs do not have the shape of the box to write.
    #[error("the inputs have {inputs} samples, but into names a box of {region}")]
    InputCounts {
        /// Number of samples of the inputs, slowest axis first.
        inputs: String,
        /// Number of samples of the box, slowest axis first.
        region: String,
    },
    /// The output is one of the inputs.
    #[error("{} is the input, or has its blocks", path.display())]
    IsInput {
        /// Path of the output.
        path: PathBuf,
    },
    /// The samples of a time step leave no memory.
    #[error("the samples of one time step take {needed_len_bytes} bytes of memory; the budget is {limit_bytes}")]
    SampleMemory {
        /// Length of this process's samples.
        needed_len_bytes: u64,
        /// Memory budget.
        limit_bytes: u64,
    },
    /// An output of another format was found.
    #[error("{}: has format {format}, but only IDX can be read here", path.display())]
    OtherFormat {
        /// Path of the file or folder.
        path: PathBuf,
        /// Title of its format.
        format: &'static str,
        /// Programs that read the format.
        readers: &'static str,
    },
    /// An output does not have the fields, counts or time steps of the inputs.
    #[error("{}: {reason}", path.display())]
    Mismatch {
        /// Path of the output.
        path: PathBuf,
        /// Description of the difference.
        reason: String,
    },
    /// The length of a buffer does not match the samples.
    #[error("the buffer for the samples of field {field} has {got_bytes} bytes, but {want_bytes} are needed")]
    Buffer {
        /// Number of the field.
        field: usize,
        /// Length of the buffer.
        got_bytes: u64,
        /// Length needed.
        want_bytes: u64,
    },
    /// The number of arrays is not the number of fields.
    #[error("{got} arrays for {want} fields")]
    Arrays {
        /// Number of arrays passed.
        got: usize,
        /// Number of fields.
        want: usize,
    },
    /// The output already exists.
    #[error("{} exists", path.display())]
    Exists {
        /// Path of the output.
        path: PathBuf,
    },
    /// The time step to add already exists.
    #[error("{}: this time step already exists", path.display())]
    StepExists {
        /// Folder or file of the time step.
        path: PathBuf,
    },
    /// The `.idx` path does not name a regular file.
    #[error("{} is not a regular file; name another output", path.display())]
    NotAFile {
        /// Path of the output.
        path: PathBuf,
    },
    /// The output to replace contains other files than a dataset's.
    #[error("{} contains files that are not blocks, so it is not replaced; move them away", path.display())]
    Foreign {
        /// Folder or file.
        path: PathBuf,
    },
    /// A folder to replace is the preview of another output, or does not name its output.
    #[error(
        "{} is not replaced, because it is not known to be the preview of this output{}",
        path.display(),
        owner.as_ref().map_or_else(String::new, |owner| format!(" ; it is the preview of {}", owner.display()))
    )]
    OtherPreview {
        /// Path of the folder.
        path: PathBuf,
        /// The output that the folder names.
        owner: Option<PathBuf>,
    },
    /// Another process is writing the same dataset.
    #[error("{} is being written by another process (lock on {})", path.display(), lock.display())]
    Locked {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Path of the lock file.
        lock: PathBuf,
    },
    /// There is no memory for samples.
    #[error("no memory for {len_bytes} bytes of samples")]
    Memory {
        /// Length requested.
        len_bytes: u64,
    },
    /// Data of a format other than IDX are refused, or cannot be written as requested.
    #[error("{}: {source}", path.display())]
    Target {
        /// Path of the output, or of a file in it.
        path: PathBuf,
        /// Whether the fault is in the request, not in existing data.
        is_of_options: bool,
        /// Fault of the format.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A chunk could not be compressed.
    #[error("cannot compress: {0}")]
    Encode(#[source] CodecError),
    /// An error of ranks, memory or cancellation.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The engine stopped for another reason.
    #[error("{}: {reason}", path.display())]
    Engine {
        /// Path of the `.idx` file.
        path: PathBuf,
        /// Description of the error.
        reason: String,
    },
}

impl AgreedError for IdxError {
    fn message(&self) -> String {
        self.to_string()
    }

    fn of_ranks(error: CoreError) -> Self {
        error.into()
    }
}

impl From<LockError> for IdxError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { path, lock } => Self::Locked { path, lock },
            LockError::Io { path, operation, source } => Self::Write { path, operation, source },
        }
    }
}

impl From<PublishError> for IdxError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Lock(error) => error.into(),
            PublishError::Exists { path, .. } => Self::Exists { path },
            PublishError::Io { step: PublishStep::SyncName, path, source } => {
                Self::Write { path: folder_of(&path).to_path_buf(), operation: "fsync", source }
            }
            PublishError::Io { step, path, source } => Self::Write { path, operation: step.operation(), source },
        }
    }
}

impl IdxError {
    /// Converts the error of an engine that was writing `path`.
    pub(crate) fn of_engine(path: &Path, error: EngineError<Self>) -> Self {
        let path = path.to_path_buf();
        match error {
            EngineError::Tile { source, .. }
            | EngineError::Worker { source }
            | EngineError::Commit { source, .. }
            | EngineError::Regroup { source } => source,
            EngineError::Write { source, .. } => Self::Write { path, operation: "write blocks of", source },
            EngineError::Core(error) => error.into(),
            other => Self::Engine { path, reason: other.to_string() },
        }
    }

    /// Returns whether this error only reports that another rank failed.
    pub fn is_secondary(&self) -> bool {
        matches!(self, Self::Core(CoreError::RankFailed { .. } | CoreError::RankLeft { .. }))
    }
}
