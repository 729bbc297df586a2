//! Description of a dataset, as reports contain it.

use crate::dataset::grid::Layout;
use crate::dataset::header::Field;
use crate::read::dataset::Dataset;
use raddle_core::plan::extent::product;
use serde::Serialize;

/// A field, as recorded in the header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldInfo {
    /// Name of the field.
    pub name: String,
    /// Type of the samples.
    pub sample: String,
    /// Compression named in the header; `none` if none is.
    pub compression: String,
    /// Order of the samples in blocks.
    pub order: Layout,
    /// Length of the samples of a time step, decoded.
    pub len_bytes: u64,
    /// Whether OpenVisus reads samples of this type.
    pub is_read_by_openvisus: bool,
}

/// Number of samples of all levels up to one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResolutionInfo {
    /// Highest level.
    pub resolution: u32,
    /// Number of samples along each axis, slowest first.
    pub shape: Vec<u64>,
}

/// Description of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatasetInfo {
    /// Path of the `.idx` file as text.
    pub path: String,
    /// Version of the format.
    pub version: u32,
    /// Number of samples along each axis, slowest first.
    pub shape: Vec<u64>,
    /// First sample along each axis, slowest first.
    pub start: Vec<u64>,
    /// Axis that each level splits.
    pub bitmask: String,
    /// Base-2 logarithm of the samples per block.
    pub bits_per_block: u32,
    /// Number of blocks per file.
    pub blocks_per_file: u64,
    /// Template of the names of files.
    pub files: String,
    /// Time steps, if there are any.
    pub steps: Vec<u64>,
    /// Fields.
    pub fields: Vec<FieldInfo>,
    /// Resolutions, coarsest first.
    pub resolutions: Vec<ResolutionInfo>,
    /// Other keys of the header.
    pub others: Vec<(String, String)>,
}

impl DatasetInfo {
    /// Describes a dataset with these time steps.
    pub fn of(dataset: &Dataset, steps: &[Option<u64>]) -> Self {
        let header = dataset.header();
        let of_axes = |of: &[u64]| of[..header.rank].iter().rev().copied().collect::<Vec<u64>>();
        let counts: Vec<u64> = header.start.iter().zip(header.end).map(|(start, end)| end - start).collect();
        let samples = product(&counts).unwrap_or(u64::MAX);
        let first = steps.first().copied().flatten();
        let field = |(number, field): (usize, &Field)| FieldInfo {
            name: field.name.clone(),
            sample: field.sample.to_string(),
            compression: field.attribute("default_compression").unwrap_or("none").to_owned(),
            order: dataset.stored_order(number, first).unwrap_or(header.likely_order(number)),
            len_bytes: samples.saturating_mul(field.sample.len_bytes() as u64),
            is_read_by_openvisus: field.sample.is_read_by_openvisus(),
        };
        let resolution = |resolution: u32| {
            let shape = header.grid(resolution).map_or(vec![0; header.rank], |grid| of_axes(&grid.counts));
            ResolutionInfo { resolution, shape }
        };
        Self {
            path: dataset.path().display().to_string(),
            version: header.version,
            shape: of_axes(&counts),
            start: of_axes(&header.start),
            bitmask: header.bitmask.to_string(),
            bits_per_block: header.bits_per_block,
            blocks_per_file: header.blocks_per_file,
            files: header.files.text().to_owned(),
            steps: steps.iter().filter_map(|step| *step).collect(),
            fields: header.fields.iter().enumerate().map(field).collect(),
            resolutions: (0..=header.bitmask.max_level()).map(resolution).collect(),
            others: header.others.clone(),
        }
    }
}
