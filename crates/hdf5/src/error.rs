//! Errors of reading and writing HDF5 files. Every variant names the file and the location in the file.

use crate::other_format::OtherFormat;
use std::path::PathBuf;

/// Result with [`Hdf5Error`] as its default error.
pub type Result<T, E = Hdf5Error> = std::result::Result<T, E>;

/// Error with the file that it concerns.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Hdf5Error {
    /// An operating system call failed.
    #[error("{}: {operation} failed: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The failed operation, for example `read 4096 bytes at 2048`.
        operation: String,
        /// Underlying error.
        source: std::io::Error,
    },
    /// The file has no HDF5 signature at 0, 512, 1024, ...
    #[error("{}: {}", path.display(), not_hdf5(*format))]
    NotHdf5 {
        /// Path of the file.
        path: PathBuf,
        /// The format of the file, if it was recognised.
        format: Option<OtherFormat>,
    },
    /// The file is shorter than its superblock states, or an address points beyond its end.
    #[error("{}: truncated: {what} needs bytes up to {end}, the file has {file_len_bytes}", path.display())]
    Truncated {
        /// Path of the file.
        path: PathBuf,
        /// The structure that lies beyond the end.
        what: String,
        /// End offset of the needed bytes.
        end: u64,
        /// Length of the file.
        file_len_bytes: u64,
    },
    /// The superblock is marked as open for writing.
    #[error("{}: marked as being written; if no program writes it (it may have crashed), run `h5clear -s` on it", path.display())]
    InUse {
        /// Path of the file.
        path: PathBuf,
    },
    /// A program holds the lock that libhdf5 takes on a file that it writes.
    #[error("{}: is open in another program, or in this one, for writing, and may lack values that are not flushed yet", path.display())]
    OpenForWriting {
        /// Path of the file.
        path: PathBuf,
    },
    /// The bytes violate the file format.
    #[error("{}: damaged at byte {address}: {what}", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Absolute file offset of the structure.
        address: u64,
        /// Description of the violation.
        what: String,
    },
    /// The file is valid, but this reader does not support it.
    #[error("{}: not supported{}: {what}", path.display(), at(*address))]
    Unsupported {
        /// Path of the file.
        path: PathBuf,
        /// Absolute file offset of the structure.
        address: u64,
        /// Description of the unsupported feature.
        what: String,
    },
    /// A chunk cannot be decoded.
    #[error("{}: chunk at byte {address} ({len_bytes} bytes) does not decode: {source}", path.display())]
    Chunk {
        /// Path of the file.
        path: PathBuf,
        /// Absolute file offset of the chunk.
        address: u64,
        /// Length of the stored chunk.
        len_bytes: u64,
        /// Underlying error.
        source: raddle_codec::CodecError,
    },
    /// Another error, with the object in which it occurred.
    #[error("{object}: {source}")]
    InObject {
        /// Path of the object in its file.
        object: String,
        /// Underlying error, which names the file.
        source: Box<Hdf5Error>,
    },
    /// A limit of the reader (depth, width, size) was exceeded, as in malicious files.
    #[error("{}: {what} exceeds the limit of {limit}", path.display())]
    Limit {
        /// Path of the file.
        path: PathBuf,
        /// The quantity that is too large.
        what: String,
        /// Largest allowed value.
        limit: u64,
    },
    /// Reading the chunks of a dataset takes more memory than the reader may use.
    #[error("{}: reading a chunk needs {needed} bytes of memory, {limit} are allowed; raise --memory", path.display())]
    Memory {
        /// Path of the file.
        path: PathBuf,
        /// Number of bytes needed.
        needed: u64,
        /// Number of bytes allowed.
        limit: u64,
    },
    /// A requested box does not lie in its dataset or does not fit its buffer: a bug in the caller.
    #[error("{}: box at {start:?} of {count:?} does not lie in {dims:?} or in its buffer", path.display())]
    BoxOutside {
        /// Path of the file.
        path: PathBuf,
        /// First element per dimension.
        start: Vec<u64>,
        /// Number of elements per dimension.
        count: Vec<u64>,
        /// Extent of the dataset.
        dims: Vec<u64>,
    },
    /// The file changed while it was being read.
    #[error("{}: changed while it was being read ({what}); run again when nothing writes it", path.display())]
    Changed {
        /// Path of the file.
        path: PathBuf,
        /// Property of the file that changed.
        what: &'static str,
    },
    /// A call to libhdf5 failed.
    #[error("{}: libhdf5 {operation} failed: {detail}", path.display())]
    Library {
        /// Path of the file.
        path: PathBuf,
        /// Name of the libhdf5 function, and the object.
        operation: String,
        /// Innermost message of libhdf5's error stack.
        detail: String,
    },
    /// A library that was to be loaded is not usable.
    #[error("{}: cannot be used as libhdf5: {why}", library.display())]
    Unusable {
        /// Path of the library, as the user gave it.
        library: PathBuf,
        /// Message of the loader or the library.
        why: String,
    },
    /// An MPI call failed in the libhdf5 being measured.
    #[error("MPI: {operation} failed: {detail}")]
    Mpi {
        /// The failed operation.
        operation: &'static str,
        /// Message of MPI.
        detail: String,
    },
    /// An object cannot be written as requested.
    #[error("{}: {object} cannot be written: {what}", path.display())]
    NotWritable {
        /// Path of the output file.
        path: PathBuf,
        /// Path of the object in the file, escaped.
        object: String,
        /// Reason why the object cannot be written.
        what: String,
    },
    /// The metadata region of an output may be too small for an operation, which was therefore not started. Wait until
    /// all raw data is placed, call `OutputFile::set_raw_end`, and repeat the operation.
    #[error("{}: metadata may need {needed_len_bytes} bytes, but only {left_len_bytes} are left in front", path.display())]
    MetadataRegionFull {
        /// Path of the output file.
        path: PathBuf,
        /// Upper bound of the bytes that the operation needs.
        needed_len_bytes: u64,
        /// Number of bytes left in the region.
        left_len_bytes: u64,
    },
    /// Raw data and metadata would have overlapped in an output; the file is lost.
    #[error("{}: {what} ({len_bytes} bytes at {address}); please report this", path.display())]
    Placement {
        /// Path of the output file.
        path: PathBuf,
        /// Absolute file offset of the first byte.
        address: u64,
        /// Length of the data that was to be placed.
        len_bytes: u64,
        /// Description of the conflict.
        what: &'static str,
    },
    /// The child process that ran libhdf5 on an input died.
    #[error("{}: libhdf5 crashed reading this file ({status}); the file is corrupt or malicious", path.display())]
    ReaderDied {
        /// Path of the file.
        path: PathBuf,
        /// Exit status or signal, as text.
        status: String,
    },
    /// The child process for libhdf5 did not start; the input is not at fault.
    #[error("{}: cannot be started as a reader of HDF5 files ({status})", executable.display())]
    ReaderNotStarted {
        /// Path of the executable.
        executable: PathBuf,
        /// Description of the failure.
        status: String,
    },
    /// A reference in the values points to no object of the file, for example because the object was deleted.
    #[error("{}: refers to byte {address}, where the file has no object; it may have been deleted", path.display())]
    Dangling {
        /// Path of the file.
        path: PathBuf,
        /// Absolute file offset to which the reference points.
        address: u64,
    },
    /// A reference in the values points to an object that the caller left out of the file's tree.
    #[error("{}: refers to the object at byte {address}, which is left out", path.display())]
    LeftOut {
        /// Path of the file.
        path: PathBuf,
        /// Absolute file offset of the object.
        address: u64,
    },
    /// The input refers to a file outside of its folder.
    #[error("{}: refers to {foreign}, outside of its folder", path.display())]
    ForeignFile {
        /// Path of the file.
        path: PathBuf,
        /// Path of the other file as stored in the input, escaped.
        foreign: String,
    },
    /// The input refers for values to a file that is about to be replaced.
    #[error("{}: refers for values to {foreign}, which would be replaced; name another output", path.display())]
    ReplacedSource {
        /// Path of the file.
        path: PathBuf,
        /// Path of the other file as stored in the input, escaped.
        foreign: String,
    },
    /// A source of a virtual dataset, or an external file, does not exist.
    #[error("{}: {missing} is missing; the file refers to it for values", path.display())]
    MissingSource {
        /// Path of the file.
        path: PathBuf,
        /// The missing file, or dataset in a file, as the input names it, escaped.
        missing: String,
    },
    /// Another program has changed what was read when the file was opened.
    #[error("{}: changed after it was opened, and values may have moved; open it again", path.display())]
    Stale {
        /// Path of the file.
        path: PathBuf,
    },
    /// A source of a virtual dataset does not have the length to which it was mapped.
    #[error("{}: refers to {mapped} elements of {changed}, which has {found} now", path.display())]
    ChangedSource {
        /// Path of the file.
        path: PathBuf,
        /// The dataset and the file that holds it, escaped.
        changed: String,
        /// Number of elements that the virtual dataset has from the source.
        mapped: u64,
        /// Number of elements of the source.
        found: u64,
    },
}

/// Describes a file that is not HDF5.
fn not_hdf5(format: Option<OtherFormat>) -> String {
    match format {
        Some(format) => format!("{}, not an HDF5 file", format.noun()),
        None => "not an HDF5 file (no signature found)".to_owned(),
    }
}

/// Formats a file offset for a message; address 0 means no particular place.
fn at(address: u64) -> String {
    if address == 0 { String::new() } else { format!(" (at byte {address})") }
}

impl Hdf5Error {
    /// Wraps the error with the object in which it occurred.
    #[must_use]
    pub fn in_object(self, object: impl Into<String>) -> Self {
        match self {
            Self::InObject { .. } => self,
            other => Self::InObject { object: object.into(), source: Box::new(other) },
        }
    }

    /// Returns whether values were not read because the reader must not open a file, whatever is in it.
    pub fn is_forbidden(&self) -> bool {
        match self {
            Self::ForeignFile { .. } | Self::ReplacedSource { .. } => true,
            Self::InObject { source, .. } => source.is_forbidden(),
            _ => false,
        }
    }

    /// Returns whether the bytes are valid but not supported by this reader.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Unsupported { .. } => true,
            Self::InObject { source, .. } => source.is_unsupported(),
            _ => false,
        }
    }
}
