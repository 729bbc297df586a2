//! Strategies for files: one random schema, several files of it that differ in rows, storage and format.
//!
//! Sketches are what proptest draws and shrinks; a sketch and the number of a file give its [`FileSpec`]. All files of
//! a sketch can be merged: same paths, kinds, types, extents beyond axis 0, fill values and scalars.

mod draw;
mod sketch;
mod types;

pub use draw::{Draw, Targets, push_value, push_zero};
pub use types::{file_local_type, fixed_type, full_integer};

use crate::spec::{FileSpec, Format};
use proptest::collection::vec;
use proptest::prelude::*;
use sketch::Sketch;
use std::ops::RangeInclusive;

/// What may occur in drawn files.
#[derive(Debug, Clone)]
pub struct SchemaOptions {
    /// Number of files.
    pub files: RangeInclusive<usize>,
    /// Most datasets in a file.
    pub max_datasets: usize,
    /// Most rows of a dataset in one file.
    pub max_rows: u64,
    /// Formats of files; each file draws its own.
    pub formats: Vec<Format>,
    /// Types with variable-length values or references.
    pub file_local_types: bool,
    /// Hard, soft and external links.
    pub links: bool,
    /// Attributes.
    pub attributes: bool,
    /// Committed types.
    pub committed_types: bool,
    /// Scalar and null datasets.
    pub scalars: bool,
    /// Filters.
    pub filters: bool,
}

impl Default for SchemaOptions {
    fn default() -> Self {
        Self {
            files: 1..=4,
            max_datasets: 6,
            max_rows: 40,
            formats: vec![Format::Earliest, Format::V18, Format::V110, Format::Latest],
            file_local_types: true,
            links: true,
            attributes: true,
            committed_types: true,
            scalars: true,
            filters: true,
        }
    }
}

/// Files of one schema, which can be merged.
pub fn files(options: SchemaOptions) -> impl Strategy<Value = Vec<FileSpec>> {
    let most = *options.files.end();
    let variants = vec(sketch::variant(&options), most);
    (sketch::sketch(&options, most), variants, options.files).prop_map(|(sketch, variants, count)| {
        variants[..count].iter().enumerate().map(|(number, variant)| Sketch::file(&sketch, number, variant)).collect()
    })
}

/// One file.
pub fn file(options: SchemaOptions) -> impl Strategy<Value = FileSpec> {
    let options = SchemaOptions { files: 1..=1, ..options };
    files(options).prop_map(|mut files| files.remove(0))
}
