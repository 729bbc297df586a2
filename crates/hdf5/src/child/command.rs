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

/// Command that starts this program again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnProgram {
    /// Path of the executable.
    pub executable: PathBuf,
    /// Arguments of the executable that precede those of the program.
    pub arguments: Vec<OsString>,
}

/// Command that the program has declared for itself.
static DECLARED: OnceLock<OwnProgram> = OnceLock::new();

impl OwnProgram {
    /// Returns the declared command or, if none was declared, the running executable without arguments.
    ///
    /// # Errors
    /// If the system does not reveal the executable.
    pub fn find() -> std::io::Result<Self> {
        let of_executable = || Ok(Self { executable: std::env::current_exe()?, arguments: Vec::new() });
        DECLARED.get().cloned().map_or_else(of_executable, Ok)
    }

    /// Declares the command, for use inside another program such as an interpreter. Only the first declaration counts.
    pub fn declare(self) {
        // A second declaration would be of the same program.
        let _ = DECLARED.set(self);
    }

    /// Returns the executable, and its arguments followed by `argument`.
    pub fn with(mut self, argument: &str) -> (PathBuf, Vec<OsString>) {
        self.arguments.push(argument.into());
        (self.executable, self.arguments)
    }
}

impl ReaderCommand {
    /// Returns the command that starts this program as a reader. Returns `None` if the system does not reveal the
    /// executable.
    pub fn of_this_program() -> Option<Self> {
        let (executable, arguments) = OwnProgram::find().ok()?.with(READER_ARGUMENT);
        Some(Self { executable, arguments })
    }
}

impl From<PathBuf> for ReaderCommand {
    /// Creates a command that runs `executable` with [`READER_ARGUMENT`].
    fn from(executable: PathBuf) -> Self {
        Self { executable, arguments: vec![READER_ARGUMENT.into()] }
    }
}
