//! Strategies for files: a random schema, and several files with it that differ in rows, storage and format.
//!
//! Proptest draws and shrinks sketches; a sketch and the number of a file give its [`FileSpec`]. All files of a sketch
//! can be merged: they have the same paths, kinds, types, extents beyond axis 0, fill values and scalars.

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

/// Features that may occur in random files.
#[derive(Debug, Clone)]
pub struct SchemaOptions {
    /// Number of files.
    pub files: RangeInclusive<usize>,
    /// Maximum number of datasets in a file.
    pub max_datasets: usize,
    /// Maximum number of rows of a dataset in one file.
    pub max_rows: u64,
    /// Formats of files, drawn per file.
    pub formats: Vec<Format>,
    /// Whether to use types with variable-length values or references.
    pub file_local_types: bool,
    /// Whether to use hard, soft and external links.
    pub links: bool,
    /// Whether to use attributes.
    pub attributes: bool,
    /// Whether to use committed types.
    pub committed_types: bool,
    /// Whether to use scalar and null datasets.
    pub scalars: bool,
    /// Whether to use filters.
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

/// Generates files of one schema, which can be merged.
pub fn files(options: SchemaOptions) -> impl Strategy<Value = Vec<FileSpec>> {
    let most = *options.files.end();
    let variants = vec(sketch::variant(&options), most);
    (sketch::sketch(&options, most), variants, options.files).prop_map(|(sketch, variants, count)| {
        variants[..count].iter().enumerate().map(|(number, variant)| Sketch::file(&sketch, number, variant)).collect()
    })
}

/// Generates a single file.
pub fn file(options: SchemaOptions) -> impl Strategy<Value = FileSpec> {
    let options = SchemaOptions { files: 1..=1, ..options };
    files(options).prop_map(|mut files| files.remove(0))
}
