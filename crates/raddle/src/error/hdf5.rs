//! Errors of HDF5 files.

use super::Error;
use crate::exit::Exit;
use raddle_codec::CodecError;
use raddle_hdf5::Hdf5Error;
use std::io::ErrorKind;
use std::path::PathBuf;

impl Error {
    /// Converts the error of opening or reading a single file; the kind follows from the fault.
    pub fn of_file(error: &Hdf5Error) -> Self {
        Self { file_fault: Some(fault_of(error)), ..Self::of_input(error) }
    }

    /// Converts the error of reading an HDF5 file.
    pub fn of_input(error: &Hdf5Error) -> Self {
        let failure = Self::new(exit_of_hdf5(error, None), &error.to_string()).caused_by(errno_of(error));
        match error {
            Hdf5Error::InObject { source, .. } if matches!(**source, Hdf5Error::ForeignFile { .. }) => {
                failure.hint("copy the values with `raddle merge --follow-foreign-files` and read the copy")
            }
            Hdf5Error::NotHdf5 { format: Some(format), .. } => failure.hint(format.remedy()),
            _ => failure,
        }
    }
}

/// Returns the exit of an HDF5 error: that of an input, unless the error names a file that is not an input and must be
/// the output.
pub(super) fn exit_of_hdf5(error: &Hdf5Error, inputs: Option<&[PathBuf]>) -> Exit {
    match error {
        Hdf5Error::InObject { source, .. } => exit_of_hdf5(source, inputs),
        Hdf5Error::Io { source, .. } if is_exhaustion(source) => Exit::Limit,
        Hdf5Error::Memory { .. } | Hdf5Error::Chunk { source: CodecError::OutOfMemory { .. }, .. } => Exit::Limit,
        Hdf5Error::Limit { .. } => Exit::InputRefused,
        Hdf5Error::ReplacedSource { .. } => Exit::Output,
        Hdf5Error::OpenForWriting { .. } => Exit::Locked,
        Hdf5Error::Io { path, .. } | Hdf5Error::Library { path, .. }
            if inputs.is_some_and(|inputs| !inputs.contains(path)) =>
        {
            Exit::Output
        }
        _ => Exit::InputRefused,
    }
}

/// Returns the operating system's error number that caused an HDF5 error.
pub(super) fn errno_of(error: &Hdf5Error) -> Option<i32> {
    match error {
        Hdf5Error::InObject { source, .. } => errno_of(source),
        Hdf5Error::Io { source, .. } => source.raw_os_error(),
        _ => None,
    }
}

/// Returns whether the machine ran out of memory or open files.
pub(super) fn is_exhaustion(error: &std::io::Error) -> bool {
    /// `EMFILE` and `ENFILE` on Linux; the standard library has no kind for them.
    const TOO_MANY_OPEN_FILES: [i32; 2] = [24, 23];
    error.kind() == ErrorKind::OutOfMemory
        || error.raw_os_error().is_some_and(|code| TOO_MANY_OPEN_FILES.contains(&code))
}

/// Returns the fault of a file as a single word.
fn fault_of(error: &Hdf5Error) -> &'static str {
    match error {
        Hdf5Error::InObject { source, .. } => fault_of(source),
        Hdf5Error::Io { .. } => "io",
        Hdf5Error::NotHdf5 { .. } => "not_hdf5",
        Hdf5Error::Truncated { .. } => "truncated",
        Hdf5Error::InUse { .. } => "in_use",
        Hdf5Error::OpenForWriting { .. } => "locked",
        Hdf5Error::Chunk { source: CodecError::OutOfMemory { .. }, .. } => "limit",
        Hdf5Error::Malformed { .. } | Hdf5Error::Chunk { .. } => "damaged",
        Hdf5Error::Unsupported { .. } | Hdf5Error::LeftOut { .. } | Hdf5Error::Dangling { .. } => "unsupported",
        Hdf5Error::Limit { .. } | Hdf5Error::Memory { .. } => "limit",
        Hdf5Error::Changed { .. } | Hdf5Error::Stale { .. } => "changed",
        Hdf5Error::BoxOutside { .. } => "internal",
        _ => "library",
    }
}
