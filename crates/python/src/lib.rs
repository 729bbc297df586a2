//! raddle for Python: the module `raddle._core`, on which the pure-Python package `raddle` is built.
//!
//! Only plain values are exchanged: numbers, tuples, bytes, JSON and one-dimensional byte arrays. Everything that users
//! see (names, numpy types, docstrings) is defined in `python/raddle`, and the other crates do the work. Invariants:
//! the interpreter's lock is released while files are read or written; signals are checked several times a second; a
//! panic becomes an exception of the package.
#![deny(unsafe_code)]

mod allocator;
mod attached;
mod command;
mod describe;
mod errors;
mod events;
mod file;
mod fork;
mod idx;
mod ranks;
mod request;
mod reused;
mod run;
mod scan;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: allocator::LargePages = allocator::LargePages;

/// The compiled part of raddle.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::command::{declare_program, declare_sections, doctor, main};
    #[pymodule_export]
    use super::events::{Events, events_convert, events_inspect, events_merge, events_write};
    #[pymodule_export]
    use super::file::File;
    #[pymodule_export]
    use super::fork::{after_fork_in_child, after_fork_in_parent, before_fork};
    #[pymodule_export]
    use super::idx::{idx_info, idx_read, idx_write};
    #[pymodule_export]
    use super::run::{
        append, default_threads, inspect, merge, partition, plan, rechunk, references, select, split, verify,
    };

    #[pymodule_export]
    use super::scan::{
        QueryEvents, QueryIndex, condition_of, condition_text, find_events, index_of, scan, value_types, write_index,
    };

    /// Version of the crates.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
