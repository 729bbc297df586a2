//! What can go wrong with workloads, runs and profiles; every variant names the file or setting and what to do.

use crate::knob::{Knob, Value};
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T, E = TuneError> = std::result::Result<T, E>;

/// An error of measuring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The operating system refused.
    #[error("{}: {operation} failed: {source}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// A profile or workload that is no TOML of this form.
    #[error("{}: not a {what} of this version: {source}", path.display())]
    Form {
        /// File.
        path: PathBuf,
        /// `profile` or `workload`.
        what: &'static str,
        /// Cause, with line and column.
        source: Box<toml::de::Error>,
    },
    /// A profile that a newer raddle wrote.
    #[error("{}: a profile of form {found}, this raddle knows form {known}: use the raddle that wrote it, or a newer one", path.display())]
    Newer {
        /// File.
        path: PathBuf,
        /// Its form.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// A value that the setting cannot have.
    #[error("{knob} cannot be {value}: it is {}", knob.kind())]
    Value {
        /// Setting.
        knob: Knob,
        /// Value.
        value: Value,
    },
    /// A setting under a heading that is not its own.
    #[error("{}: {knob} belongs under [{belongs}.{knob}]", path.display())]
    Heading {
        /// File.
        path: PathBuf,
        /// Setting.
        knob: Knob,
        /// Where it should be.
        belongs: &'static str,
    },
    /// Not a version of HDF5.
    #[error("{text:?} is no version of HDF5: give two numbers, for example 1.10")]
    Reader {
        /// What was given.
        text: String,
    },
}
