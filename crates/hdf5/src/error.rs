//! What can go wrong between raddle and an HDF5 file; every variant names the file and says where.

use crate::other_format::OtherFormat;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T, E = Hdf5Error> = std::result::Result<T, E>;

/// An error with the file it belongs to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Hdf5Error {
    /// The operating system refused.
    #[error("{}: {operation} failed: {source}", path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// What was being done, for example `read 4096 bytes at 2048`.
        operation: String,
        /// Cause.
        source: std::io::Error,
    },
    /// No HDF5 signature at 0, 512, 1024, ...
    #[error("{}: {}", path.display(), not_hdf5(*format))]
    NotHdf5 {
        /// File.
        path: PathBuf,
        /// What it is, where that is known.
        format: Option<OtherFormat>,
    },
    /// The file is shorter than its superblock says, or something points beyond its end.
    #[error("{}: truncated: {what} needs bytes up to {end}, the file has {file_len_bytes}", path.display())]
    Truncated {
        /// File.
        path: PathBuf,
        /// What lies beyond the end.
        what: String,
        /// End of the bytes needed.
        end: u64,
        /// Length of the file.
        file_len_bytes: u64,
    },
    /// The superblock is marked as open for writing.
    #[error("{}: marked as being written; if no program writes it (it may have crashed), run `h5clear -s` on it", path.display())]
    InUse {
        /// File.
        path: PathBuf,
    },
    /// Bytes that contradict the format.
    #[error("{}: damaged at byte {address}: {what}", path.display())]
    Malformed {
        /// File.
        path: PathBuf,
        /// Absolute file offset of the structure.
        address: u64,
        /// What is wrong.
        what: String,
    },
    /// Valid, but beyond what this reader knows.
    #[error("{}: not supported{}: {what}", path.display(), at(*address))]
    Unsupported {
        /// File.
        path: PathBuf,
        /// Absolute file offset of the structure.
        address: u64,
        /// What is not known.
        what: String,
    },
    /// A chunk that does not decode.
    #[error("{}: chunk at byte {address} ({len_bytes} bytes) does not decode: {source}", path.display())]
    Chunk {
        /// File.
        path: PathBuf,
        /// Absolute file offset of the chunk.
        address: u64,
        /// Stored length.
        len_bytes: u64,
        /// Cause.
        source: raddle_codec::CodecError,
    },
    /// Another error, met while working on a named object.
    #[error("{object}: {source}")]
    InObject {
        /// Path of the object in its file.
        object: String,
        /// Cause; it names the file.
        source: Box<Hdf5Error>,
    },
    /// A limit of the reader was reached (depth, width, size), which hostile files do.
    #[error("{}: {what} exceeds the limit of {limit}", path.display())]
    Limit {
        /// File.
        path: PathBuf,
        /// What is too large.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The chunks of a dataset take more memory than the reader may use.
    #[error("{}: reading a chunk needs {needed} bytes of memory, {limit} are allowed; raise --memory", path.display())]
    Memory {
        /// File.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// A box was asked for that does not lie in its dataset or in the buffer for it: a defect of the caller.
    #[error("{}: box at {start:?} of {count:?} does not lie in {dims:?} or in its buffer", path.display())]
    BoxOutside {
        /// File.
        path: PathBuf,
        /// First element per dimension.
        start: Vec<u64>,
        /// Elements per dimension.
        count: Vec<u64>,
        /// Extent of the dataset.
        dims: Vec<u64>,
    },
    /// The file changed while it was being read.
    #[error("{}: changed while it was being read ({what}); run again when nothing writes it", path.display())]
    Changed {
        /// File.
        path: PathBuf,
        /// What changed.
        what: &'static str,
    },
    /// libhdf5 refused a call.
    #[error("{}: libhdf5 {operation} failed: {detail}", path.display())]
    Library {
        /// File.
        path: PathBuf,
        /// Function and object.
        operation: String,
        /// Innermost message of libhdf5's error stack.
        detail: String,
    },
    /// A library that was to be loaded cannot be used.
    #[error("{}: cannot be used as libhdf5: {why}", library.display())]
    Unusable {
        /// The library, as the user named it.
        library: PathBuf,
        /// What the loader or the library says.
        why: String,
    },
    /// The MPI of a libhdf5 that is to be measured refused.
    #[error("MPI: {operation} failed: {detail}")]
    Mpi {
        /// What was being done.
        operation: &'static str,
        /// What MPI says.
        detail: String,
    },
    /// An object cannot be written as asked for.
    #[error("{}: {object} cannot be written: {what}", path.display())]
    NotWritable {
        /// Output file.
        path: PathBuf,
        /// Path of the object in it, escaped.
        object: String,
        /// Why not.
        what: String,
    },
    /// The metadata region of an output is too full for an operation, which was not begun: wait until all raw data
    /// is placed, call `OutputFile::set_raw_end`, and do it again.
    #[error("{}: {needed_len_bytes} bytes of metadata may be needed, {left_len_bytes} are left in front", path.display())]
    MetadataRegionFull {
        /// Output file.
        path: PathBuf,
        /// Upper bound of what the operation needs.
        needed_len_bytes: u64,
        /// What is left of the region.
        left_len_bytes: u64,
    },
    /// Raw data and metadata would have met in an output; the file is lost.
    #[error("{}: {what} ({len_bytes} bytes at {address}); please report this", path.display())]
    Placement {
        /// Output file.
        path: PathBuf,
        /// Absolute file offset.
        address: u64,
        /// Length.
        len_bytes: u64,
        /// What happened.
        what: &'static str,
    },
    /// The child process that runs libhdf5 on an input died.
    #[error("{}: crashes libhdf5 ({status}); the file is damaged or hostile", path.display())]
    ReaderDied {
        /// File.
        path: PathBuf,
        /// Exit status or signal, in words.
        status: String,
    },
    /// The child process that runs libhdf5 does not come up: not the input's fault.
    #[error("{}: does not start as a reader of HDF5 files ({status})", executable.display())]
    ReaderNotStarted {
        /// Executable.
        executable: PathBuf,
        /// What happened, in words.
        status: String,
    },
    /// A reference among values leads to an object that the caller left out of the file's tree.
    #[error("{}: refers to the object at byte {address}, which is left out", path.display())]
    LeftOut {
        /// File.
        path: PathBuf,
        /// Absolute file offset of the object.
        address: u64,
    },
    /// A file that the input refers to lies outside of its folder.
    #[error("{}: refers to {foreign}, outside of its folder", path.display())]
    ForeignFile {
        /// File.
        path: PathBuf,
        /// The other file as the input names it, escaped.
        foreign: String,
    },
    /// A source of a virtual dataset, or an external file, is not there.
    #[error("{}: {missing} is missing, to which it refers for values", path.display())]
    MissingSource {
        /// File.
        path: PathBuf,
        /// The file, or dataset in a file, as the input names it, escaped.
        missing: String,
    },
}

/// What a file is that is not HDF5.
fn not_hdf5(format: Option<OtherFormat>) -> String {
    match format {
        Some(format) => format!("{}, not an HDF5 file", format.noun()),
        None => "not an HDF5 file (no signature found)".to_owned(),
    }
}

/// Where in a file something was found; address 0 stands for nowhere in particular.
fn at(address: u64) -> String {
    if address == 0 { String::new() } else { format!(" (at byte {address})") }
}

impl Hdf5Error {
    /// The same error, with the object it was met in.
    #[must_use]
    pub fn in_object(self, object: impl Into<String>) -> Self {
        match self {
            Self::InObject { .. } => self,
            other => Self::InObject { object: object.into(), source: Box::new(other) },
        }
    }

    /// Whether the bytes are fine and only this reader does not know them.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Unsupported { .. } => true,
            Self::InObject { source, .. } => source.is_unsupported(),
            _ => false,
        }
    }
}
