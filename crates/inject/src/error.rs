//! Errors before a program is started.

use std::path::PathBuf;

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, InjectError>;

/// Reason why settings cannot be applied to a program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InjectError {
    /// A file of raddle cannot be written or read.
    #[error("{}: {operation} failed: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Operation that failed.
        operation: &'static str,
        /// Underlying error.
        source: std::io::Error,
    },
    /// There is no program with this name.
    #[error("{name}: no such program")]
    NoProgram {
        /// Name of the program.
        name: String,
    },
    /// The program is a file without permission to execute it.
    #[error("{name}: the file is not executable")]
    NotExecutable {
        /// Name of the program.
        name: String,
    },
    /// The path cannot be preloaded: the dynamic linker separates paths with spaces and colons and supports no quoting.
    #[error("{}: objects cannot be preloaded from a folder with a space or a colon in its name", folder.display())]
    Separator {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// No folder was named, and the environment does not name a cache folder.
    #[error("no folder for the preloaded objects: neither XDG_CACHE_HOME nor HOME is set")]
    NoFolder,
    /// The system's dynamic linker cannot preload objects.
    #[error("settings can be applied to programs on Linux only")]
    System,
    /// The dynamic linker did not load the object into a program.
    #[error("{}: the dynamic linker does not preload it: {detail}", object.display())]
    Preload {
        /// Path of the object.
        object: PathBuf,
        /// Message of the dynamic linker, or how the program ended.
        detail: String,
    },
    /// The HDF5 source lacks a line that should be changed.
    #[error("{}: no line defines {definition}; is this the source of HDF5 1.10 or later?", path.display())]
    Source {
        /// Path of the source file.
        path: PathBuf,
        /// Name of the macro.
        definition: &'static str,
    },
}
