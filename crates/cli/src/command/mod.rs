//! The commands, one file each, with options, steps and exit code. Their output is formatted in [`crate::render`]; the
//! work itself is done by the other crates.

pub mod append;
pub mod apply;
pub mod bench;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod events;
pub mod idx;
pub mod index;
pub mod inspect;
pub mod keys;
pub mod licenses;
pub mod man;
pub mod merge;
pub mod plan;
pub mod rechunk;
pub mod report;
pub mod select;
pub mod self_test;
pub mod split;
pub mod sql;
pub mod tune;
pub mod verify;

use std::io::Write;

/// Writes a command's result to standard output.
pub(crate) fn print(text: &str) -> Result<(), raddle::Error> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(raddle::Error::standard_output)
}
