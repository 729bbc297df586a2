//! The dataset to write: path, layout, and the distribution of work to ranks.

use super::inputs::{Shape, shape};
use super::zarr::ZarrArgs;
use crate::failure::Failure;
use crate::options::running::RuntimeArgs;
use raddle::options::profile::ProfileChoice;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::Watch;
use raddle_idx::dataset::bitmask::Bitmask;
use raddle_idx::dataset::bitmask::MAX_RANK;
use raddle_idx::dataset::compression::{Compression, ParseCompressionError};
use raddle_idx::dataset::grid::Layout;
use raddle_idx::dataset::sample::SampleType;
use raddle_idx::dataset::vectors::{FieldSplit, SplitVectors};
use raddle_idx::write::restructure::ImposedBox;
use raddle_idx::zarr::{ChunkCompression, ImageLayout, ZarrWriter};
use raddle_idx::{
    BlockSource, BoxData, Durability, Header, IdxError, IfExists, LayoutOptions, Phases, WriteOptions, WriteReport,
    Writer,
};
use raddle_tune::profile::IdxOption;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Options about the output.
#[derive(Debug, Clone, clap::Args)]
pub struct TargetArgs {
    /// File NAME.idx to write, with blocks in the folder NAME next to it; or a folder NAME.zarr
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// Format [default: OME-Zarr if the output is named NAME.zarr, otherwise IDX]
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<Format>,

    /// Replace the output if it exists
    #[arg(short, long, conflicts_with = "append")]
    force: bool,

    /// Add time steps to an existing dataset
    #[arg(long)]
    append: bool,

    /// Do not sync to disk: if the machine (not just the program) crashes, data can be lost or corrupted
    #[arg(long)]
    no_sync: bool,

    /// Compression of blocks or chunks: zip, lz4, zstd, zfp or none [default: zip for IDX, zstd for OME-Zarr]
    ///
    /// lz4 gives larger files but is faster; it is only available for IDX. zstd is only available for OME-Zarr, where
    /// zip is codec gzip. zfp, only for IDX, supports float32, float64, int32 and int64 on two or three axes (other
    /// fields use zip): plain zfp is lossless, zfp:precision=N keeps about N bits of each number, and zfp:accuracy=X
    /// keeps floating-point numbers to within X.
    #[arg(short, long, value_name = "HOW", help_heading = "Layout")]
    compress: Option<BlockCompression>,

    /// Order of samples in blocks [default: rows, which compresses better and is read faster]
    #[arg(long, value_name = "ORDER", value_enum, help_heading = "Layout")]
    order: Option<BlockOrder>,

    /// Axis that each level splits, coarsest first, 0 for x, such as V210210210 [default: as in OpenVisus, V012012012]
    #[arg(long, value_name = "V...", value_parser = Bitmask::parse, help_heading = "Layout")]
    bitmask: Option<Bitmask>,

    /// Base-2 logarithm of the samples per block [default: 15]
    #[arg(long, value_name = "N", help_heading = "Layout")]
    bits_per_block: Option<u32>,

    /// Blocks per file [default: 256]
    #[arg(long, value_name = "N", help_heading = "Layout")]
    blocks_per_file: Option<u64>,

    /// Vectors to write as one field per component, named NAME_0, NAME_1, ...
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Split::Never, help_heading = "Layout")]
    split_vectors: Split,

    /// Additional header keys, from the inputs.
    #[arg(skip)]
    others: Vec<(String, String)>,

    #[command(flatten)]
    zarr: ZarrArgs,

    /// How samples are exchanged between ranks
    #[arg(long, value_name = "N", value_enum, default_value_t = PhaseCount::Three, help_heading = "Ranks")]
    phases: PhaseCount,

    /// Power-of-two boxes of the first phase: default, expanded, cube, or samples per axis, slowest first, for example
    /// 64x64x64; other numbers are rounded up to powers of two
    #[arg(long = "box", value_name = "SIZE", value_parser = imposed, help_heading = "Ranks")]
    imposed: Option<Imposed>,

    /// Number of ranks that produce and write blocks, whatever the number of files [default: all]
    #[arg(long, value_name = "N", help_heading = "Ranks")]
    aggregators: Option<NonZeroUsize>,

    /// Use a profile for options not given on the command line; auto: the newest for this machine and file system
    ///
    /// The profile holds box, blocks per file and aggregators, as found by --tune of idx write.
    #[arg(long, value_name = "PROFILE", help_heading = "Layout")]
    profile: Option<ProfileChoice>,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// IDX: every sample is stored once and can be read at any resolution
    Idx,
    /// OME-Zarr: Zarr 3 with shards; each level has half the samples along each axis
    Zarr,
}

/// Compression of blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BlockCompression {
    /// A compression of IDX; deflate is codec gzip in OME-Zarr.
    OfIdx(Compression),
    /// Zstandard, for OME-Zarr only.
    Zstd,
}

impl FromStr for BlockCompression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "zstd" => Ok(Self::Zstd),
            "gzip" => Ok(Self::OfIdx(Compression::Zip)),
            _ => text
                .parse()
                .map(Self::OfIdx)
                .map_err(|error: ParseCompressionError| format!("{error}, or zstd in OME-Zarr")),
        }
    }
}

/// Order of samples in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BlockOrder {
    /// Rows of the block's lattice
    Rows,
    /// By HZ address, as in PIDX
    Hz,
}

/// Vectors to write as one field per component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Split {
    /// None: the components of a sample are stored together
    Never,
    /// Those that OpenVisus cannot read: samples of more than 32 bytes, except 64, 128, 256, 512 and 1024
    Wide,
    /// All
    All,
}

/// Exchange of samples between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PhaseCount {
    /// Every rank writes its own samples (only IDX with -c none)
    One,
    /// Parts of blocks are sent to the ranks that write them
    Two,
    /// Samples are first rearranged into power-of-two boxes
    Three,
}

impl PhaseCount {
    /// Converts to the type of the writer.
    pub fn phases(self) -> Phases {
        match self {
            Self::One => Phases::One,
            Self::Two => Phases::Two,
            Self::Three => Phases::Three,
        }
    }
}

/// Size of power-of-two boxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imposed {
    /// The longest share of any rank along each axis.
    Default,
    /// Twice the default.
    Expanded,
    /// The longest share along any axis, used for every axis.
    Cube,
    /// Explicit number of samples per axis, slowest first.
    Counts(Shape),
}

impl std::fmt::Display for Imposed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Expanded => formatter.write_str("expanded"),
            Self::Cube => formatter.write_str("cube"),
            Self::Counts(Shape(counts)) => {
                formatter.write_str(&counts.iter().map(u64::to_string).collect::<Vec<_>>().join("x"))
            }
        }
    }
}

impl Imposed {
    /// Converts to the type of the writer for samples with `axes` axes.
    ///
    /// # Errors
    /// If the number of axes differs.
    pub fn counts(&self, axes: usize) -> Result<ImposedBox, Failure> {
        match self {
            Self::Default => Ok(ImposedBox::Default),
            Self::Expanded => Ok(ImposedBox::Expanded),
            Self::Cube => Ok(ImposedBox::Cube),
            Self::Counts(Shape(counts)) if counts.len() == axes => {
                let mut of_axis = counts.iter().rev();
                Ok(ImposedBox::Counts(std::array::from_fn::<_, MAX_RANK, _>(|_| of_axis.next().copied().unwrap_or(1))))
            }
            Self::Counts(Shape(counts)) => {
                let named = counts.len();
                Err(Failure::usage(&format!("--box has {named} axes, but the samples have {axes}")))
            }
        }
    }
}

/// Parses the value of `--box`.
pub fn imposed(text: &str) -> Result<Imposed, String> {
    match text {
        "default" => Ok(Imposed::Default),
        "expanded" => Ok(Imposed::Expanded),
        "cube" => Ok(Imposed::Cube),
        _ => shape(text)
            .map(Imposed::Counts)
            .map_err(|_| "default, expanded, cube, or a size, for example 64x64x64".to_owned()),
    }
}

/// Output in progress: a dataset whose time steps appear one by one, or a folder that appears at the end.
#[derive(Debug)]
pub enum Output {
    /// IDX.
    Idx(Box<Writer>),
    /// OME-Zarr.
    Zarr(Box<ZarrWriter>),
}

impl Output {
    /// Collective. Writes a time step, or the only one.
    ///
    /// # Errors
    /// On every rank, if it cannot be written.
    pub fn write_collective(
        &mut self,
        step: Option<u64>,
        patches: Vec<BoxData<'_>>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport, IdxError> {
        match self {
            Self::Idx(writer) => writer.write_collective(step, patches, watch, ranks),
            Self::Zarr(writer) => writer.write_collective(patches, watch, ranks),
        }
    }

    /// Whether its blocks contain the same samples as those of `source`.
    pub fn has_blocks_of(&self, source: &BlockSource<'_>) -> bool {
        matches!(self, Self::Idx(writer) if source.has_blocks_of(writer.header()))
    }

    /// Collective. Writes a time step from the blocks of `source`, for which [`Output::has_blocks_of`] must be true.
    ///
    /// # Errors
    /// As for [`Output::write_collective`].
    pub fn rewrite_collective(
        &mut self,
        step: Option<u64>,
        source: &BlockSource<'_>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport, IdxError> {
        match self {
            Self::Idx(writer) => writer.rewrite_collective(step, source, watch, ranks),
            Self::Zarr(writer) => writer.write_collective(Vec::new(), watch, ranks),
        }
    }

    /// Collective. Publishes everything that only appears at the end, and returns a description of the written data.
    /// `report` is that of the last time step.
    ///
    /// # Errors
    /// On every rank, if it cannot be published.
    pub fn finish(
        self,
        report: Option<&mut WriteReport>,
        ranks: &dyn Communicator,
    ) -> Result<WrittenDataset, IdxError> {
        match (self, report) {
            (Self::Idx(writer), _) => Ok(WrittenDataset::Idx(Box::new(writer.header().clone()))),
            (Self::Zarr(writer), Some(report)) => {
                let form = writer.form().clone();
                writer.publish(report, ranks).map(|()| WrittenDataset::Zarr(Box::new(form)))
            }
            (Self::Zarr(writer), None) => Ok(WrittenDataset::Zarr(Box::new(writer.form().clone()))),
        }
    }
}

/// Description of the written data.
#[derive(Debug)]
pub enum WrittenDataset {
    /// IDX.
    Idx(Box<Header>),
    /// OME-Zarr folder.
    Zarr(Box<ImageLayout>),
}

impl TargetArgs {
    fn format(&self) -> Format {
        let is_zarr = self.output.extension().is_some_and(|ending| ending == "zarr");
        self.format.unwrap_or(if is_zarr { Format::Zarr } else { Format::Idx })
    }

    /// Returns the path of the output.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// Returns these options, with those not given taken from the profile, if one is named.
    ///
    /// # Errors
    /// If the profile does not exist or is invalid.
    pub fn with_profile(&self) -> Result<Self, Failure> {
        let mut target = self.clone();
        if let Some(choice) = target.profile.take() {
            let folder = self.output.parent().filter(|folder| !folder.as_os_str().is_empty());
            let is_zarr = self.format() == Format::Zarr;
            for (option, measured) in &choice.read(folder.unwrap_or(Path::new(".")))?.idx {
                // Shards have no blocks.
                if !(is_zarr && *option == IdxOption::BlocksPerFile) {
                    target.set(*option, &measured.value)?;
                }
            }
        }
        Ok(target)
    }

    pub(super) fn set_others(&mut self, others: &[(String, String)]) {
        self.others = others.to_vec();
    }

    /// Adopts the layout of the dataset of `header`, all of whose samples are copied, for options that were not given.
    pub(super) fn set_layout_of(&mut self, header: &Header) {
        if self.format() == Format::Idx {
            self.bitmask.get_or_insert_with(|| header.bitmask.clone());
            self.bits_per_block = self.bits_per_block.or(Some(header.bits_per_block).filter(|bits| *bits > 0));
            self.blocks_per_file.get_or_insert(header.blocks_per_file);
        }
    }

    /// Whether an option was given or taken from a profile.
    pub fn has(&self, option: IdxOption) -> bool {
        match option {
            IdxOption::Box => self.imposed.is_some(),
            IdxOption::BlocksPerFile => self.blocks_per_file.is_some(),
            IdxOption::Aggregators => self.aggregators.is_some(),
        }
    }

    pub(super) fn set_box(&mut self, text: &str) -> Result<(), String> {
        self.imposed = Some(imposed(text)?);
        Ok(())
    }

    pub(super) fn set_blocks_per_file(&mut self, count: u64) {
        self.blocks_per_file = Some(count);
    }

    pub(super) fn set_aggregators(&mut self, count: NonZeroUsize) {
        self.aggregators = Some(count);
    }

    /// Sets the number of blocks per file in a header.
    pub(super) fn apply_blocks_per_file(&self, header: &mut Header) {
        header.blocks_per_file = self.blocks_per_file.unwrap_or(header.blocks_per_file);
    }

    /// Returns the header of the trial datasets that --tune writes.
    ///
    /// # Errors
    /// If the options do not fit the samples, or the output format has no header.
    pub(super) fn header_of_trials(
        &self,
        counts: &[u64],
        fields: &[(String, SampleType)],
        has_steps: bool,
    ) -> Result<Header, Failure> {
        match self.format() {
            Format::Idx => self.header(counts, fields, has_steps),
            Format::Zarr => Err(Failure::usage("--tune finds options of IDX, but the output is OME-Zarr")
                .hint("tune with an output NAME.idx and take its box and aggregators with --profile")),
        }
    }

    /// Sets the options for ranks, for samples with `axes` axes.
    ///
    /// # Errors
    /// If a box with a different number of axes was given.
    pub(super) fn apply_ranks(&self, mut options: WriteOptions, axes: usize) -> Result<WriteOptions, Failure> {
        options.aggregators = self.aggregators;
        options.imposed = self.imposed.as_ref().map_or(Ok(ImposedBox::Default), |imposed| imposed.counts(axes))?;
        Ok(options)
    }

    /// Begins writing `counts` samples per axis, x first, at `steps` time steps, given by the first and the last.
    ///
    /// # Errors
    /// If the options do not fit the samples, or a dataset to continue cannot be read or differs.
    pub fn begin(
        &self,
        counts: &[u64],
        fields: &[(String, SampleType)],
        steps: Option<(u64, u64)>,
        options: WriteOptions,
    ) -> Result<Output, Failure> {
        match self.format() {
            Format::Idx => {
                if let Some(option) = self.zarr.given() {
                    return Err(Failure::usage(&format!("{option} is an option of OME-Zarr, but the output is IDX"))
                        .hint("call the output NAME.zarr, or name the format with --format zarr"));
                }
                let header = self.header(counts, fields, steps.is_some())?;
                Ok(Output::Idx(Box::new(self.writer(header, options)?.split(self.split(fields)))))
            }
            Format::Zarr => {
                let form = self.form(counts, fields, steps)?;
                let writer = ZarrWriter::new(&self.output, form, options);
                writer.map(|writer| Output::Zarr(Box::new(writer))).map_err(|error| Failure::of_idx(&error))
            }
        }
    }

    /// Returns the form of the OME-Zarr folder to write.
    fn form(
        &self,
        counts: &[u64],
        fields: &[(String, SampleType)],
        steps: Option<(u64, u64)>,
    ) -> Result<ImageLayout, Failure> {
        let of_idx = [
            (self.append, "--append"),
            (self.order.is_some(), "--order"),
            (self.bitmask.is_some(), "--bitmask"),
            (self.bits_per_block.is_some(), "--bits-per-block"),
            (self.blocks_per_file.is_some(), "--blocks-per-file"),
            (self.split_vectors != Split::Never, "--split-vectors"),
        ];
        if let Some((_, option)) = of_idx.iter().find(|(is_given, _)| *is_given) {
            return Err(Failure::usage(&format!("{option} is an option of IDX, but the output is OME-Zarr")));
        }
        let compression = match self.compress {
            None | Some(BlockCompression::Zstd) => ChunkCompression::Zstd,
            Some(BlockCompression::OfIdx(Compression::Zip)) => ChunkCompression::Gzip,
            Some(BlockCompression::OfIdx(Compression::None)) => ChunkCompression::None,
            Some(BlockCompression::OfIdx(Compression::Lz4 | Compression::Zfp(_))) => {
                let what = "OME-Zarr is written with -c zstd, zip or none; Zarr has no codec lz4 or zfp";
                return Err(Failure::usage(what));
            }
        };
        let steps = match steps {
            None => None,
            Some((0, last)) => Some(last + 1),
            Some((first, _)) => {
                let what = format!("time steps of OME-Zarr are counted from 0, but the first one here is {first}");
                return Err(Failure::usage(&what).hint("leave out --step, and give all steps at once with --as steps"));
            }
        };
        self.zarr.form(&self.output, counts, fields, steps, compression)
    }

    /// Returns the header of a dataset of `counts` samples per axis, x first.
    fn header(&self, counts: &[u64], fields: &[(String, SampleType)], has_steps: bool) -> Result<Header, Failure> {
        let compression = match self.compress {
            None => Compression::Zip,
            Some(BlockCompression::OfIdx(compression)) => compression,
            Some(BlockCompression::Zstd) => {
                return Err(Failure::usage(
                    "IDX is written with -c zip, lz4, zfp or none; its readers do not support zstd",
                ));
            }
        };
        let layout = LayoutOptions {
            compression,
            order: if self.order == Some(BlockOrder::Hz) { Layout::Hz } else { Layout::RowMajor },
            bitmask: self.bitmask.clone(),
            bits_per_block: self.bits_per_block,
            blocks_per_file: self.blocks_per_file,
            split_vectors: self.which_vectors(),
        };
        let header = layout.header(&self.output, counts, fields, has_steps);
        let mut header = header.map_err(|error| Failure::usage(&error.to_string()))?;
        header.others.clone_from(&self.others);
        Ok(header)
    }

    fn which_vectors(&self) -> SplitVectors {
        match self.split_vectors {
            Split::Never => SplitVectors::Never,
            Split::Wide => SplitVectors::Wide,
            Split::All => SplitVectors::All,
        }
    }

    /// Returns how fields of the inputs are split into those of the dataset.
    pub(super) fn split(&self, fields: &[(String, SampleType)]) -> FieldSplit {
        FieldSplit::new(fields, self.which_vectors())
    }

    /// Returns the options for writing samples with `axes` axes.
    ///
    /// # Errors
    /// If a box with a different number of axes was given.
    pub fn options(&self, running: &RuntimeArgs, default_jobs: usize, axes: usize) -> Result<WriteOptions, Failure> {
        let mut options = WriteOptions { jobs: default_jobs, ..WriteOptions::default() };
        options.jobs = running.execution.jobs.map_or(options.jobs, NonZeroUsize::get);
        options.memory_limit_bytes = running.execution.memory.map_or(options.memory_limit_bytes, |memory| memory.0);
        options.existing = if self.force { IfExists::Replace } else { IfExists::Fail };
        options.durability = if self.no_sync { Durability::Unsynced } else { Durability::Synced };
        options.phases = self.phases.phases();
        self.apply_ranks(options, axes)
    }

    /// Creates a writer of the dataset, or of more steps of an existing one.
    fn writer(&self, header: Header, options: WriteOptions) -> Result<Writer, Failure> {
        let made = match self.append {
            true => Writer::resume(&self.output, &header, options),
            false => Writer::new(&self.output, header, options),
        };
        made.map_err(|error| Failure::of_idx(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_boxes() {
        assert_eq!(imposed("expanded"), Ok(Imposed::Expanded));
        assert_eq!(imposed("cube").map(|cube| cube.to_string()), Ok("cube".to_owned()));
        assert_eq!(imposed("64x32"), Ok(Imposed::Counts(Shape(vec![64, 32]))));
        assert!(imposed("64x0").is_err() && imposed("large").is_err());
    }
}
