//! Merges many small files of scientific data into a few that are laid out for reading, within a memory budget. The
//! result can be verified against the inputs.
//!
//! This crate is the library that the `raddle` command, the Python package and Rust programs share. Each operation is a
//! request, which is plain data: fields with the names and meanings of the command's options. A request is planned, and
//! the plan is run:
//!
//! ```
//! use raddle::{Context, MergeRequest};
//! # use raddle_testing::plain::make_columns;
//! # let folder = tempfile::tempdir()?;
//! # std::env::set_current_dir(folder.path())?;
//! # make_columns("run1.h5".as_ref(), &[("/rec/energy", &[1.0, 2.0])])?;
//! # make_columns("run2.h5".as_ref(), &[("/rec/energy", &[3.0])])?;
//!
//! let context = Context::default();
//! let planned = MergeRequest::new(["run1.h5", "run2.h5"], "all.h5").plan(&context)?;
//! assert_eq!(planned.summary()?.output.datasets[0].dims, [3]);
//! planned.run(&context)?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! | request | does |
//! |---|---|
//! | [`PlanRequest`] | describes the output of a merge, which is not written |
//! | [`MergeRequest`] | concatenates the datasets of many HDF5 files |
//! | [`RechunkRequest`] | rewrites one file with a new layout |
//! | [`SplitRequest`] | merges files into several: by variable, by rows or by size |
//! | [`SelectRequest`] | writes the events of a file that satisfy conditions |
//! | [`AppendRequest`] | adds the rows of more files to a merged file, in place |
//! | [`VerifyRequest`] | compares a merged file with its inputs or its digests |
//! | [`IndexRequest`] | writes an index, which lets searches skip blocks of rows |
//! | [`inspect()`] | reports how the bytes of a file are used |
//!
//! [`Context`] is the environment of a run: an observer of progress, a way to stop it, and the ranks that share it.
//! Failures are [`Error`]s with a kind for programs, a message, and advice.
#![forbid(unsafe_code)]

pub mod advice;
pub mod append;
pub mod arrays;
pub mod context;
pub mod error;
pub mod exit;
pub mod index;
pub mod inspect;
pub mod merge;
pub mod merge_index;
pub mod number;
pub mod options;
mod outputs;
pub mod plan;
pub mod preview;
pub mod rechunk;
pub mod references;
pub mod select;
pub mod split;
pub mod summary;
pub mod text;
pub mod tuned;
pub mod verify;

pub use append::AppendRequest;
pub use context::Context;
pub use error::Error;
pub use index::IndexRequest;
pub use inspect::inspect;
pub use merge::{MergeRequest, PlannedMerge};
pub use plan::PlanRequest;
pub use rechunk::RechunkRequest;
pub use select::SelectRequest;
pub use split::SplitRequest;
pub use verify::VerifyRequest;
