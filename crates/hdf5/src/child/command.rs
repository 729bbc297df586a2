//! Command that reads a file with libhdf5: this program itself, with an argument that makes it call
//! [`serve`](super::serve).
//!
//! Invariant: the command that a program declares for itself is fixed for the life of the process.

use super::READER_ARGUMENT;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderCommand {
    /// Path of the executable.
    pub executable: PathBuf,
    /// Arguments of the executable.
    pub arguments: Vec<OsString>,
}

/// Command that the program has declared for itself.
static DECLARED: OnceLock<ReaderCommand> = OnceLock::new();

impl ReaderCommand {
    /// Returns the command that starts this program as a reader: the declared one, otherwise its executable with
    /// [`READER_ARGUMENT`]. Returns `None` if the system does not reveal the executable.
    pub fn of_this_program() -> Option<Self> {
        DECLARED.get().cloned().or_else(|| std::env::current_exe().ok().map(Self::from))
    }

    /// Declares the command that starts this program as a reader, for use inside another program such as an
    /// interpreter. Only the first declaration counts.
    pub fn declare(self) {
        // A second declaration would be of the same program.
        let _ = DECLARED.set(self);
    }
}

impl From<PathBuf> for ReaderCommand {
    /// Runs `executable` with [`READER_ARGUMENT`].
    fn from(executable: PathBuf) -> Self {
        Self { executable, arguments: vec![READER_ARGUMENT.into()] }
    }
}
