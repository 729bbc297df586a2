//! Digests by which an output can be checked without its inputs: of values, block of rows by block of rows, and of
//! structure, object by object.
//!
//! [`blocks`] gathers those of values while a merge runs, [`structure`] makes those of objects, [`stored`] reads both
//! back from a file, [`check`] compares a file with its own. How they lie in the file: [`crate::provenance`].
//! Invariant: a digest depends on what a reader sees, not on chunks, filters, threads or order of work; the only
//! exception, [`Form::Stored`], is said in the file.

pub mod blocks;
pub mod check;
pub mod stored;
pub mod structure;

pub use blocks::{ColumnDigests, Digests, Form};
