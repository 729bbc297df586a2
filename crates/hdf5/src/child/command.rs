//! What is run to read a file with libhdf5: this program once more, with an argument that makes it call
//! [`serve`](super::serve).
//!
//! Invariant: what a program declares about itself holds for its whole life.

use super::READER_ARGUMENT;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderCommand {
    /// The program.
    pub executable: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

static OWN: OnceLock<ReaderCommand> = OnceLock::new();

impl ReaderCommand {
    /// What starts this program as a reader: what was declared, else its executable with [`READER_ARGUMENT`]. `None`
    /// where the system does not tell the executable.
    pub fn own() -> Option<Self> {
        OWN.get().cloned().or_else(|| std::env::current_exe().ok().map(Self::from))
    }

    /// Says what starts this program as a reader, where it lives inside of another one, such as an interpreter. The first
    /// word stands.
    pub fn declare_own(self) {
        // A second declaration would be of the same program.
        let _ = OWN.set(self);
    }
}

impl From<PathBuf> for ReaderCommand {
    /// `executable` with [`READER_ARGUMENT`].
    fn from(executable: PathBuf) -> Self {
        Self { executable, arguments: vec![READER_ARGUMENT.into()] }
    }
}
