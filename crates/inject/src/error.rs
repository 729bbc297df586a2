//! What can go wrong before a program is started.

use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, InjectError>;

/// Why settings cannot be given to a program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InjectError {
    /// A file of ours cannot be written or read.
    #[error("{}: {operation} failed: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was done to it.
        operation: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// No program of this name is found.
    #[error("{name}: no such program")]
    NoProgram {
        /// As given.
        name: String,
    },
    /// The dynamic linker separates paths with blanks and colons, and knows no way to quote them.
    #[error("{}: objects cannot be preloaded from a folder with a blank or a colon in its name", folder.display())]
    Separator {
        /// The folder.
        folder: PathBuf,
    },
    /// Neither a folder was given nor is there one for caches.
    #[error("no folder for the objects that programs are given: neither XDG_CACHE_HOME nor HOME is set")]
    NoFolder,
    /// This system has no dynamic linker that preloads.
    #[error("settings can be given to programs on Linux only")]
    System,
    /// The HDF5 source does not have a line that is to be changed.
    #[error("{}: no line defines {definition}; is this the source of HDF5 1.10 or later?", path.display())]
    Source {
        /// The source file.
        path: PathBuf,
        /// The macro.
        definition: &'static str,
    },
}
