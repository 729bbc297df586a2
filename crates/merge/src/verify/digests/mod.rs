//! Digests that allow an output to be checked without its inputs: digests of values for each block of rows, and of
//! structure for each object.
//!
//! [`blocks`] collects the digests of values during a merge, [`structure`] computes those of objects, [`stored`] reads
//! both back from a file, [`check`] compares a file with its own digests, and [`of_inputs`] compares an output with the
//! digests of its inputs. [`crate::verify::provenance`] describes
//! how they are stored. Invariant: a digest depends on what a reader sees, not on chunks, filters, threads or order of
//! work; the only exception, [`DigestForm::Stored`], is recorded in the file.

pub mod blocks;
mod boxed;
pub mod check;
pub(crate) mod column;
pub(crate) mod contents;
pub(crate) mod input_digests;
pub(crate) mod known_rows;
pub mod of_inputs;
pub mod stored;
pub mod structure;

pub use blocks::Digests;
pub use column::{ColumnDigests, DigestForm};
pub use contents::{Records, StoredColumn, StoredDigests};
pub use input_digests::{InputDigest, InputDigests};
