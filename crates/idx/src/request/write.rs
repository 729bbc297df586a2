//! The request for an output: its path, its layout, and how ranks write it.

use super::sizes::{BoxSize, Shape};
use super::words::OutputCompression;
use crate::dataset::bitmask::Bitmask;
use crate::dataset::grid::Layout;
use crate::dataset::vectors::SplitVectors;
use crate::error::Result;
use crate::targets::zarr::Downsample;
use crate::write::options::{Phases, WriteOptions};
use crate::write::restructure::ImposedBox;
use raddle_core::output::durability::Durability;
use raddle_core::output::publish::IfExists;
use raddle_core::size::Size;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Request for a dataset or a folder of images, or for more time steps of a dataset.
///
/// [`crate::targets::begin`] begins the output.
///
/// # Examples
///
/// ```
/// use raddle_core::cancel::CancelToken;
/// use raddle_core::ranks::communicator::SingleProcess;
/// use raddle_core::report::progress::{Silent, Watch};
/// use raddle_idx::request::WriteRequest;
/// use raddle_idx::targets::{FieldSet, begin};
/// use raddle_idx::{BoxData, SampleBox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let request: WriteRequest = serde_json::from_str(r#"{"compress": "lz4", "bits_per_block": 8}"#)?;
/// let request = WriteRequest { output: folder.path().join("rho.idx"), ..request };
/// let fields = FieldSet { counts: vec![4, 3], fields: vec![("rho".to_owned(), "float32".parse()?)], ..FieldSet::default() };
/// let mut output = begin(&request, &fields, request.options(1, 2)?)?;
/// let whole = BoxData { region: SampleBox::new(&[0, 0], &[4, 3]), arrays: vec![vec![0; 4 * 3 * 4].into()] };
/// let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
/// let report = output.write_collective(None, vec![whole], &watch, &SingleProcess)?;
/// assert_eq!((report.files, report.sample_len_bytes), (1, 48));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct WriteRequest {
    /// File NAME.idx to write, with blocks in the folder NAME next to it; or a folder NAME.zarr
    #[cfg_attr(feature = "clap", arg(short, long, value_name = "OUT"))]
    pub output: PathBuf,

    /// Format [default: OME-Zarr if the output is named NAME.zarr, otherwise IDX]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FORMAT", value_enum))]
    pub format: Option<Format>,

    /// Replace the output if it exists
    #[cfg_attr(feature = "clap", arg(short, long, conflicts_with = "append"))]
    pub force: bool,

    /// Add time steps to an existing dataset
    #[cfg_attr(feature = "clap", arg(long))]
    pub append: bool,

    /// Do not sync to disk: if the machine (not just the program) crashes, data can be lost or corrupted
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_sync: bool,

    /// Compression of blocks or chunks: zip, lz4, zstd, zfp or none [default: zip for IDX, zstd for OME-Zarr]
    ///
    /// lz4 gives larger files but is faster; it is only available for IDX. zstd is only available for OME-Zarr, where
    /// zip is codec gzip. zfp, only for IDX, supports float32, float64, int32 and int64 on two or three axes: plain zfp
    /// is lossless, zfp:precision=N keeps about N bits of each number, and zfp:accuracy=X keeps floating-point numbers
    /// to within X. Other fields of the same dataset use zip; a dataset without a field that zfp supports is refused.
    #[cfg_attr(feature = "clap", arg(short, long, value_name = "HOW", help_heading = "Layout"))]
    pub compress: Option<OutputCompression>,

    /// Layout of a dataset with blocks.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub blocks: BlockLayout,

    /// Layout of a folder of images.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub image: ImageOptions,

    /// How samples are exchanged between ranks
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_enum, default_value_t, help_heading = "Ranks"))]
    pub phases: Phases,

    /// Power-of-two boxes of the first phase: default, expanded, cube, or samples per axis, slowest first, for example
    /// 64x64x64; other numbers are rounded up to powers of two
    #[cfg_attr(feature = "clap", arg(long = "box", value_name = "SIZE", help_heading = "Ranks"))]
    #[serde(rename = "box")]
    pub box_size: Option<BoxSize>,

    /// Number of ranks that produce and write blocks, whatever the number of files [default: all]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = "Ranks"))]
    pub aggregators: Option<NonZeroUsize>,

    /// Number of threads of each process; `None`: the default of the caller.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub jobs: Option<NonZeroUsize>,

    /// Memory for data derived from the samples; `None`: 1 GiB.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub memory: Option<Size>,

    /// Header keys of a dataset that are copied from the inputs. They are not an option.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip)]
    pub others: Vec<(String, String)>,

    /// Time steps of a dataset as input, ascending. A format that counts time steps from 0 numbers them again. They are
    /// not an option.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip)]
    pub input_steps: Vec<u64>,
}

/// Format of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// IDX: every sample is stored once and can be read at any resolution
    Idx,
    /// OME-Zarr: Zarr 3 with shards; each level has half the samples along each axis
    Zarr,
}

impl Format {
    /// All formats, in order of precedence.
    pub const ALL: [Self; 2] = [Self::Idx, Self::Zarr];
}

/// Options of datasets with blocks, which only IDX has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct BlockLayout {
    /// Order of samples in blocks [default: rows, which compresses better and is read faster]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ORDER", value_enum, help_heading = "Layout"))]
    pub order: Option<Layout>,

    /// Axis that each level splits, coarsest first, 0 for x, such as V210210210 [default: as in OpenVisus, V012012012]
    #[cfg_attr(feature = "clap", arg(long, value_name = "V...", help_heading = "Layout"))]
    pub bitmask: Option<Bitmask>,

    /// Base-2 logarithm of the samples per block [default: 15]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = "Layout"))]
    pub bits_per_block: Option<u32>,

    /// Blocks per file [default: 256]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = "Layout"))]
    pub blocks_per_file: Option<u64>,

    /// Vectors to write as one field per component, named NAME_0, NAME_1, ...
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "WHICH", value_enum, default_value_t, help_heading = "Layout")
    )]
    pub split_vectors: SplitVectors,
}

/// Options of folders of images, which only OME-Zarr has. All axes are slowest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "OME-Zarr"))]
pub struct ImageOptions {
    /// Number of samples of a chunk along each axis, slowest first, for example 64x64x64 [default: up to 1 MiB, equal
    /// in space]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    pub chunk: Option<Shape>,

    /// Number of samples of a shard, which is a file of whole chunks [default: up to 32 MiB]; one shard per worker is
    /// held in memory
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    pub shard: Option<Shape>,

    /// Number of levels, each with half the samples along x, y and z [default: until a level is a single chunk]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub levels: Option<u32>,

    /// How each level is computed from the previous one [default: subsample]
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW", value_enum))]
    pub downsample: Option<Downsample>,

    /// Names of the axes of the inputs, slowest first: a subset of t, c, z, y and x in this order [default: the last
    /// ones]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAMES"))]
    pub axes: Option<String>,

    /// Distance between samples along each axis, slowest first, for example 2,0.5,0.5
    #[cfg_attr(feature = "clap", arg(long, value_name = "NUMBERS", value_delimiter = ','))]
    pub spacing: Vec<f64>,

    /// Unit of the distances along x, y and z, for example micrometer
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub unit: Option<String>,
}

impl WriteRequest {
    /// Returns the options of a writer of samples with `axes` axes. `default_jobs` is the number of threads if the
    /// request does not name one.
    ///
    /// # Errors
    /// If the size of boxes has a different number of axes.
    pub fn options(&self, default_jobs: usize, axes: usize) -> Result<WriteOptions> {
        let default = WriteOptions::default();
        Ok(WriteOptions {
            jobs: self.jobs.map_or(default_jobs, NonZeroUsize::get),
            memory_limit_bytes: self.memory.map_or(default.memory_limit_bytes, |memory| memory.0),
            existing: if self.force { IfExists::Replace } else { IfExists::Fail },
            durability: if self.no_sync { Durability::Unsynced } else { Durability::Synced },
            phases: self.phases,
            imposed: self.imposed(axes)?,
            aggregators: self.aggregators,
            ..default
        })
    }

    /// Returns the size of the power-of-two boxes for samples with `axes` axes.
    ///
    /// # Errors
    /// If the value has a different number of axes.
    pub fn imposed(&self, axes: usize) -> Result<ImposedBox> {
        self.box_size.as_ref().map_or(Ok(ImposedBox::Default), |size| size.imposed(axes))
    }
}
