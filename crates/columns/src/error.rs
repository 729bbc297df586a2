//! Errors of sources and sinks, and where they occurred: file, tree, branch or product, range of entries.
//!
//! Parsers of bytes do not know the location. They return a [`UnlocatedError`], to which the caller adds the
//! [`Location`].

use crate::schema::Serialization;
use raddle_codec::CodecError;
use raddle_core::CoreError;
use raddle_core::output::LockError;
use raddle_core::output::publish::{PublishError, PublishStep};
use raddle_core::ranks::communicator::AgreedError;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Result type of this crate.
pub type Result<T, E = ColumnsError> = std::result::Result<T, E>;

/// Location in the inputs, as precise as is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location {
    /// Path of the file; empty for generated events.
    pub path: PathBuf,
    /// Name of the tree, ntuple or other container in the file.
    pub tree: Option<String>,
    /// Name of the branch, field or product.
    pub branch: Option<String>,
    /// Entries that were being read.
    pub entries: Option<Range<u64>>,
}

impl Location {
    /// Creates a place that names a file.
    pub fn file(path: &Path) -> Self {
        Self { path: path.to_path_buf(), ..Self::default() }
    }

    /// Returns this place with the name of a tree added.
    pub fn tree(&self, name: &str) -> Self {
        Self { tree: Some(name.to_owned()), ..self.clone() }
    }

    /// Returns this place with the name of a branch or product added.
    pub fn branch(&self, name: &str) -> Self {
        Self { branch: Some(name.to_owned()), ..self.clone() }
    }

    /// Returns this place with a range of entries added.
    pub fn entries(&self, entries: Range<u64>) -> Self {
        Self { entries: Some(entries), ..self.clone() }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_os_str().is_empty() {
            true => formatter.write_str("generated events")?,
            false => write!(formatter, "{}", self.path.display().to_string().escape_debug())?,
        }
        if let Some(tree) = &self.tree {
            write!(formatter, ", tree {}", tree.escape_debug())?;
        }
        if let Some(branch) = &self.branch {
            write!(formatter, ", branch {}", branch.escape_debug())?;
        }
        if let Some(Range { start, end }) = &self.entries {
            write!(formatter, ", entries {start}..{end}")?;
        }
        Ok(())
    }
}

/// Error of a source or a sink.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnsError {
    /// A system call failed.
    #[error("{}: {operation}: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Operation that failed.
        operation: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is in another format.
    #[error("{}: not {expected}: it begins with {found}", path.display())]
    OtherFormat {
        /// Path of the file.
        path: PathBuf,
        /// Expected formats.
        expected: String,
        /// First bytes of the file, escaped.
        found: String,
    },
    /// Bytes cannot be read, or a block contradicts its schema.
    #[error("{place}: {fault}")]
    Bad {
        /// Location of the fault.
        place: Box<Location>,
        /// Fault that was found.
        fault: UnlocatedError,
    },
    /// A tree, product or other container does not exist.
    #[error("{place}: no such {kind}; available: {}", listed(available))]
    NoSuch {
        /// The file, and the name that was requested.
        place: Box<Location>,
        /// Kind of object that was requested.
        kind: &'static str,
        /// Names of the existing objects.
        available: Vec<String>,
    },
    /// Requested entries lie beyond the end.
    #[error("{place}: only {len_entries} entries exist")]
    NoSuchEntries {
        /// Source and requested entries.
        place: Box<Location>,
        /// Number of existing entries.
        len_entries: u64,
    },
    /// Baskets were requested from a source other than a tree.
    #[error("{place}: it stores no baskets; only trees (TTree) of ROOT files do")]
    NoBaskets {
        /// Location of the source.
        place: Box<Location>,
    },
    /// Products that readers interpret as the ids of events differ from these ids.
    #[error(
        "{place}: it holds {held}, but the id of the event has {id}; readers of {layout} take this product for the ids"
    )]
    OtherIds {
        /// Output, product and entry.
        place: Box<Location>,
        /// Value of the product.
        held: i128,
        /// Number in the id.
        id: u64,
        /// Layout that the sink writes.
        layout: &'static str,
    },
    /// The sink cannot write a product of this form.
    #[error("product {product} ({form}) cannot be written as {layout}: {needed}")]
    Form {
        /// Name of the product.
        product: String,
        /// Form of the product.
        form: String,
        /// Layout that the sink writes.
        layout: &'static str,
        /// Requirement of the layout that the product does not meet.
        needed: &'static str,
    },
    /// Products have different serialisations, but the layout records a single one for all.
    #[error(
        "product {product} is serialised as {got}, but the products before it as {expected}; {layout} records one serialisation for all"
    )]
    MixedSerialization {
        /// Name of the product.
        product: String,
        /// Serialisation of the product.
        got: Serialization,
        /// Serialisation of the products before this one.
        expected: Serialization,
        /// Layout that the sink writes.
        layout: &'static str,
    },
    /// A limit of the format is exceeded.
    #[error("{place}: {what} of {got} does not fit {layout}, whose limit is {limit}")]
    Limit {
        /// Source, product and entries.
        place: Box<Location>,
        /// The quantity that is too large.
        what: &'static str,
        /// Value of the quantity.
        got: u64,
        /// Limit of the format.
        limit: u64,
        /// Layout that the sink writes.
        layout: &'static str,
    },
    /// The output already exists.
    #[error("{}: the output exists", path.display())]
    OutputExists {
        /// Path of the output.
        path: PathBuf,
    },
    /// An input has changed since it was opened.
    #[error("{}: it changed while it was being read", path.display())]
    Changed {
        /// Path of the file.
        path: PathBuf,
    },
    /// Another process is writing the output.
    #[error("{}: another raddle is writing it (lock {})", path.display(), lock.display())]
    Locked {
        /// Path of the output.
        path: PathBuf,
        /// Path of the lock file.
        lock: PathBuf,
    },
    /// Out of memory, cancelled, or a thread failed.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// A compressor failed.
    #[error("cannot compress for {}: {source}", path.display())]
    Compress {
        /// Path of the output.
        path: PathBuf,
        /// Cause.
        source: CodecError,
    },
    /// Error of one format, of a type that its crate defines.
    #[error(transparent)]
    Format(Box<dyn std::error::Error + Send + Sync>),
}

impl AgreedError for ColumnsError {
    fn message(&self) -> String {
        self.to_string()
    }

    fn of_ranks(error: CoreError) -> Self {
        error.into()
    }
}

impl From<LockError> for ColumnsError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { path, lock } => Self::Locked { path, lock },
            LockError::Io { path, operation, source } => Self::Io { path, operation, source },
        }
    }
}

impl From<PublishError> for ColumnsError {
    fn from(error: PublishError) -> Self {
        let (step, path, source) = match error {
            PublishError::Lock(error) => return error.into(),
            PublishError::Exists { path, .. } => return Self::OutputExists { path },
            PublishError::Io { step, path, source } => (step, path, source),
        };
        let operation = match step {
            PublishStep::Clear => "remove the file of a killed run",
            PublishStep::SyncName => "the file is complete and published, but syncing its folder failed",
            step => step.operation(),
        };
        Self::Io { path, operation, source }
    }
}

/// Lists at most a dozen names.
pub fn listed(names: &[String]) -> String {
    const MAX: usize = 12;
    let mut displayed: Vec<String> = names.iter().take(MAX).map(|name| name.escape_debug().to_string()).collect();
    if names.len() > MAX {
        displayed.push(format!("{} more", names.len() - MAX));
    }
    if displayed.is_empty() { "none".to_owned() } else { displayed.join(", ") }
}

/// Error in some bytes or in a block. Callers that know the location add it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnlocatedError {
    /// The bytes violate the format.
    #[error("damaged (at byte {address}): {structure}: {what}")]
    Damaged {
        /// Offset in the file, or in the decompressed record or object.
        address: u64,
        /// Structure that was being read.
        structure: &'static str,
        /// Description of the damage.
        what: String,
    },
    /// The file ends before something that it refers to.
    #[error("{structure} would end at byte {end}, but the file ends at {file_len_bytes}: it is truncated or damaged")]
    BeyondEnd {
        /// Structure to be read.
        structure: &'static str,
        /// Offset of the end of the structure.
        end: u64,
        /// Length of the file.
        file_len_bytes: u64,
    },
    /// The bytes are valid, but raddle does not support them.
    #[error("not supported (at byte {address}): {structure}: {what}")]
    Unsupported {
        /// Offset, as for [`UnlocatedError::Damaged`].
        address: u64,
        /// Structure that was being read.
        structure: &'static str,
        /// Description of the unsupported feature.
        what: String,
    },
    /// The bytes should be an object that ROOT serialised, but are not.
    #[error("damaged (at byte {address}): {structure}: no byte count at its start, with which ROOT serialises objects")]
    NoObject {
        /// Offset, as for [`UnlocatedError::Damaged`].
        address: u64,
        /// Structure that was being read.
        structure: &'static str,
    },
    /// Compressed bytes cannot be decoded.
    #[error("damaged (at byte {address}): {structure}: {source}")]
    Codec {
        /// Offset, as for [`UnlocatedError::Damaged`].
        address: u64,
        /// Structure that was being read.
        structure: &'static str,
        /// Cause.
        source: CodecError,
    },
    /// The operating system failed to read.
    #[error("cannot read {len_bytes} bytes at {address} ({structure}): {message}")]
    Unread {
        /// Offset in the file.
        address: u64,
        /// Number of bytes requested.
        len_bytes: u64,
        /// Structure to be read.
        structure: &'static str,
        /// Message of the operating system.
        message: String,
    },
    /// A block contradicts its schema.
    #[error("the block contradicts its schema: {0}")]
    Shape(#[from] Shape),
    /// A number does not fit the id of an event.
    #[error("{what} {value} does not fit the id of an event, which has 0 to {max}")]
    IdRange {
        /// Part of the id.
        what: &'static str,
        /// Stored number.
        value: i128,
        /// Maximum of the part.
        max: u64,
    },
    /// A value differs from the expected one.
    #[error("entry {entry} differs from what was expected: {what}")]
    Differs {
        /// Number of the first entry that differs.
        entry: u64,
        /// Description of the difference.
        what: &'static str,
    },
}

impl UnlocatedError {
    /// Turns the fault into an error at `place`.
    pub fn at(self, place: &Location) -> ColumnsError {
        ColumnsError::Bad { place: Box::new(place.clone()), fault: self }
    }
}

/// Contradiction between a block and its schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Shape {
    /// The number of columns differs from the number of products.
    #[error("{got} columns, {expected} expected")]
    Columns {
        /// Actual number of columns.
        got: usize,
        /// Number of columns that the schema requires.
        expected: usize,
    },
    /// The number of ids differs from the number of entries.
    #[error("{got} event ids for {expected} entries")]
    Ids {
        /// Actual number of ids.
        got: u64,
        /// Number of entries.
        expected: u64,
    },
    /// The number of buffers differs from the number that the form requires.
    #[error("{got} buffers, {expected} expected")]
    Buffers {
        /// Actual number of buffers.
        got: usize,
        /// Number of buffers that the form requires.
        expected: usize,
    },
    /// A buffer holds offsets instead of values, or values instead of offsets.
    #[error("buffer {buffer} is of the wrong kind")]
    Kind {
        /// Number of the buffer.
        buffer: usize,
    },
    /// A buffer has the wrong length, or its offsets do not begin with 0.
    #[error("buffer {buffer} has length {got}, {expected} expected")]
    Length {
        /// Number of the buffer.
        buffer: usize,
        /// Actual length of the buffer.
        got: u64,
        /// Length that the buffers above require.
        expected: u64,
    },
    /// Offsets decrease.
    #[error("the offsets of buffer {buffer} decrease")]
    Falling {
        /// Number of the buffer.
        buffer: usize,
    },
}
