//! What can go wrong with events, and where: file, tree, branch or product, range of entries.
//!
//! Parsers of bytes know none of that: they return a [`Fault`], and whoever called them adds the [`Place`].

use crate::root::Apart;
use crate::schema::Serialization;
use raddle_codec::CodecError;
use raddle_core::CoreError;
use raddle_core::output::LockError;
use raddle_hdf5::Hdf5Error;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T, E = EventsError> = std::result::Result<T, E>;

/// Where in the inputs, as exactly as is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The file; empty for what is generated.
    pub path: PathBuf,
    /// Tree, ntuple or other container in the file.
    pub tree: Option<String>,
    /// Branch, field or product.
    pub branch: Option<String>,
    /// Entries that were being read.
    pub entries: Option<Range<u64>>,
}

impl Place {
    /// A file.
    pub fn file(path: &Path) -> Self {
        Self { path: path.to_path_buf(), ..Self::default() }
    }

    /// The same with a tree.
    pub fn tree(&self, name: &str) -> Self {
        Self { tree: Some(name.to_owned()), ..self.clone() }
    }

    /// The same with a branch or product.
    pub fn branch(&self, name: &str) -> Self {
        Self { branch: Some(name.to_owned()), ..self.clone() }
    }

    /// The same with entries.
    pub fn entries(&self, entries: Range<u64>) -> Self {
        Self { entries: Some(entries), ..self.clone() }
    }
}

impl std::fmt::Display for Place {
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

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventsError {
    /// The operating system refused.
    #[error("{}: {operation}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// Where text goes does not take it.
    #[error("the text cannot be written: {source}")]
    Text {
        /// Cause.
        source: std::io::Error,
    },
    /// The file is of another kind.
    #[error("{}: not {expected}: it begins with {found}", path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// What it was taken for.
        expected: &'static str,
        /// Its first bytes, escaped.
        found: String,
    },
    /// Bytes that cannot be read, or a block that contradicts its schema.
    #[error("{place}: {fault}")]
    Bad {
        /// Where.
        place: Box<Place>,
        /// What is wrong.
        fault: Fault,
    },
    /// There is no such tree, or other container.
    #[error("{place}: there is no such {kind}; there is {}", listed(there_is))]
    NoSuch {
        /// The file, and what was asked for.
        place: Box<Place>,
        /// What was asked for.
        kind: &'static str,
        /// Names of what there is.
        there_is: Vec<String>,
    },
    /// Entries beyond the end.
    #[error("{place}: there are {len_entries} entries")]
    NoSuchEntries {
        /// Source and entries asked for.
        place: Box<Place>,
        /// Entries that there are.
        len_entries: u64,
    },
    /// A product that ROOT split into branches, and that is not put together.
    #[error("{place}: the object cannot be put together: {why}")]
    Apart {
        /// The product.
        place: Box<Place>,
        /// Why it is not.
        why: Box<Apart>,
    },
    /// Baskets of something that is no tree.
    #[error("{place}: it stores no baskets; trees (TTree) of ROOT files do")]
    NoBaskets {
        /// The source.
        place: Box<Place>,
    },
    /// A product of a form that the sink cannot write.
    #[error("product {product} ({form}) cannot be written as {layout}: {needed}")]
    Form {
        /// The product.
        product: String,
        /// Its form.
        form: String,
        /// What the sink writes.
        layout: &'static str,
        /// What it takes.
        needed: &'static str,
    },
    /// Products serialised in two ways, where a file states one for all.
    #[error("product {product} is serialised as {got}, those before as {expected}; {layout} states one for all")]
    MixedSerialization {
        /// The product.
        product: String,
        /// How it is.
        got: Serialization,
        /// How the first is.
        expected: Serialization,
        /// What the sink writes.
        layout: &'static str,
    },
    /// A product that another input has in another form.
    #[error("{place}: it is {got}, in the inputs before {expected}")]
    FormDiffers {
        /// The input and the product.
        place: Box<Place>,
        /// How it is.
        got: String,
        /// How it is in the first input.
        expected: String,
    },
    /// A stream whose records cannot stand behind another stream's header.
    #[error("{place}: {what} differs from that of the first input")]
    StreamDiffers {
        /// The input.
        place: Box<Place>,
        /// What is different.
        what: &'static str,
    },
    /// A product that the first input lacks.
    #[error("{place}: the first input has no such product; it has {}", listed(there_is))]
    NotInFirst {
        /// The input and the product.
        place: Box<Place>,
        /// Names of what the first input has.
        there_is: Vec<String>,
    },
    /// Nothing would be left of products that not all inputs have in one form.
    #[error("no product is in all inputs in one form, and {} would all be left out: {first}", listed(products))]
    NothingInCommon {
        /// Names of the products.
        products: Vec<String>,
        /// Why the first would be.
        first: Box<EventsError>,
    },
    /// More than the format has room for.
    #[error("{place}: {what} of {got} does not fit {layout}, whose limit is {limit}")]
    Limit {
        /// Source, product and entries.
        place: Box<Place>,
        /// What is too great.
        what: &'static str,
        /// How great it is.
        got: u64,
        /// The limit.
        limit: u64,
        /// What the sink writes.
        layout: &'static str,
    },
    /// The output is there already.
    #[error("{}: the output exists; --force replaces it", path.display())]
    OutputExists {
        /// The output.
        path: PathBuf,
    },
    /// An input is not what it was when it was opened.
    #[error("{}: it changed while it was read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Another process writes the output.
    #[error("{}: another raddle is writing it (lock {})", path.display(), lock.display())]
    Locked {
        /// The output.
        path: PathBuf,
        /// Lock file.
        lock: PathBuf,
    },
    /// An HDF5 file could not be read or written.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
    /// Memory, cancellation, threads.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// A compressor could not work.
    #[error("cannot compress for {}: {source}", path.display())]
    Compress {
        /// The output.
        path: PathBuf,
        /// Cause.
        source: CodecError,
    },
}

impl From<LockError> for EventsError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { path, lock } => Self::Locked { path, lock },
            LockError::Io { path, operation, source } => Self::Io { path, operation, source },
        }
    }
}

impl EventsError {
    /// Whether it only says that another rank failed.
    pub fn is_echo(&self) -> bool {
        matches!(self, Self::Core(CoreError::RankFailed { .. } | CoreError::RankLeft { .. }))
    }
}

/// What layouts of bytes need of a product, and columns do not have.
pub(crate) const NEEDS_BYTES: &str =
    "it holds the bytes of serialised objects; columns, as RNTuples store them too, have none";

/// At most a dozen names.
fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    let mut shown: Vec<String> = names.iter().take(MOST).map(|name| name.escape_debug().to_string()).collect();
    if names.len() > MOST {
        shown.push(format!("{} more", names.len() - MOST));
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// What is wrong with some bytes, or with a block. The place is added where it is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes contradict the format.
    #[error("damaged (at byte {address}): {structure}: {what}")]
    Damaged {
        /// Offset in the file, or in the record or object that was decompressed.
        address: u64,
        /// What was being read.
        structure: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The file ends before what it refers to.
    #[error("{structure} would end at byte {end}, the file at {file_len_bytes}: it was cut or is damaged")]
    BeyondEnd {
        /// What was to be read.
        structure: &'static str,
        /// Where that would end.
        end: u64,
        /// Length of the file.
        file_len_bytes: u64,
    },
    /// Valid, but not known to raddle.
    #[error("not supported (at byte {address}): {structure}: {what}")]
    Unsupported {
        /// As for [`Fault::Damaged`].
        address: u64,
        /// What was being read.
        structure: &'static str,
        /// What is not known.
        what: String,
    },
    /// Compressed bytes that cannot be decoded.
    #[error("damaged (at byte {address}): {structure}: {source}")]
    Codec {
        /// As for [`Fault::Damaged`].
        address: u64,
        /// What was being read.
        structure: &'static str,
        /// Cause.
        source: CodecError,
    },
    /// The operating system could not read.
    #[error("reading {len_bytes} bytes at {address} ({structure}): {message}")]
    Unread {
        /// Offset in the file.
        address: u64,
        /// Bytes asked for.
        len_bytes: u64,
        /// What was to be read.
        structure: &'static str,
        /// The system's words.
        message: String,
    },
    /// A block that contradicts its schema.
    #[error("the block contradicts its schema: {0}")]
    Shape(#[from] Shape),
    /// A value that is not the expected one.
    #[error("entry {entry} differs from what was expected: {what}")]
    Differs {
        /// The first entry that differs.
        entry: u64,
        /// How.
        what: &'static str,
    },
}

impl Fault {
    /// The error that says the same of a place.
    pub fn at(self, place: &Place) -> EventsError {
        EventsError::Bad { place: Box::new(place.clone()), fault: self }
    }
}

/// How a block contradicts its schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Shape {
    /// Another number of columns than there are products.
    #[error("{got} columns, {expected} expected")]
    Columns {
        /// As found.
        got: usize,
        /// As the schema demands.
        expected: usize,
    },
    /// Another number of ids than there are entries.
    #[error("{got} event ids for {expected} entries")]
    Ids {
        /// As found.
        got: u64,
        /// As there are entries.
        expected: u64,
    },
    /// Another number of buffers than the form has.
    #[error("{got} buffers, {expected} expected")]
    Buffers {
        /// As found.
        got: usize,
        /// As the form demands.
        expected: usize,
    },
    /// Offsets in place of values, or values in place of offsets.
    #[error("buffer {buffer} is of the other kind")]
    Kind {
        /// Number of the buffer.
        buffer: usize,
    },
    /// A buffer of another length, or offsets that do not begin with 0.
    #[error("buffer {buffer} has length {got}, {expected} expected")]
    Length {
        /// Number of the buffer.
        buffer: usize,
        /// As found.
        got: u64,
        /// As the buffers above demand.
        expected: u64,
    },
    /// Offsets that fall.
    #[error("the offsets of buffer {buffer} fall")]
    Falling {
        /// Number of the buffer.
        buffer: usize,
    },
}
