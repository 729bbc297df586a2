//! The dataset that is to be written: where, in which layout, and how ranks go about it.

use super::inputs::{Shape, shape};
use crate::failure::Failure;
use crate::options::profile::ProfileChoice;
use crate::options::running::RunningArgs;
use raddle_idx::bitmask::MAX_RANK;
use raddle_idx::header::{HeaderError, Time};
use raddle_idx::restructure::ImposedBox;
use raddle_idx::sample::SampleType;
use raddle_idx::template::{FileTemplate, TimeTemplate};
use raddle_idx::{Existing, Field, Header, Phases, WriteOptions, Writer};
use raddle_tune::profile::IdxOption;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Options about the output.
#[derive(Debug, Clone, clap::Args)]
pub struct TargetArgs {
    /// The .idx file to write; its blocks lie in the folder of that name beside it
    #[arg(short, long, value_name = "OUT.idx")]
    output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long, conflicts_with = "append")]
    force: bool,

    /// Add time steps to the dataset that is there
    #[arg(long)]
    append: bool,

    /// How blocks are compressed
    #[arg(short, long, value_name = "HOW", value_enum, default_value_t = BlockCompression::Zip, help_heading = "Layout")]
    compress: BlockCompression,

    /// Order of samples in blocks; rows compress better and are read faster
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = BlockOrder::Rows, help_heading = "Layout")]
    order: BlockOrder,

    /// Base-2 logarithm of the samples per block [default: 15]
    #[arg(long, value_name = "N", help_heading = "Layout")]
    bits_per_block: Option<u32>,

    /// Blocks per file [default: 256]
    #[arg(long, value_name = "N", help_heading = "Layout")]
    blocks_per_file: Option<u64>,

    /// What samples go through between ranks
    #[arg(long, value_name = "N", value_enum, default_value_t = PhaseCount::Three, help_heading = "Ranks")]
    phases: PhaseCount,

    /// Power-of-two boxes of the first phase: default, expanded, or samples per axis, slowest first, for example 64x64x64
    #[arg(long = "box", value_name = "SIZE", value_parser = imposed, help_heading = "Ranks")]
    imposed: Option<Imposed>,

    /// How many ranks make and write blocks, whatever the number of files [default: all]
    #[arg(long, value_name = "N", help_heading = "Ranks")]
    aggregators: Option<NonZeroUsize>,

    /// Take what no option says from a profile; auto: the newest for this machine and file system
    ///
    /// Box, blocks per file and aggregators, as --tune of idx write finds them.
    #[arg(long, value_name = "PROFILE", help_heading = "Layout")]
    profile: Option<ProfileChoice>,
}

/// How blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BlockCompression {
    /// Deflate
    Zip,
    /// LZ4: larger, faster
    Lz4,
    /// Not at all
    None,
}

/// Order of samples in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BlockOrder {
    /// Rows of the block's lattice
    Rows,
    /// By HZ address, as PIDX
    Hz,
}

/// What samples go through between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PhaseCount {
    /// Every rank writes its own samples (only with -c none)
    One,
    /// Parts of blocks are sent to those that write them
    Two,
    /// Samples are brought into power-of-two boxes before
    Three,
}

impl PhaseCount {
    /// The same for the writer.
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
    /// The longest share along each axis.
    Default,
    /// Twice that.
    Expanded,
    /// Samples per axis, slowest first.
    Counts(Shape),
}

impl std::fmt::Display for Imposed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Expanded => formatter.write_str("expanded"),
            Self::Counts(Shape(counts)) => {
                formatter.write_str(&counts.iter().map(u64::to_string).collect::<Vec<_>>().join("x"))
            }
        }
    }
}

impl Imposed {
    /// The same for the writer of samples with so many axes.
    ///
    /// # Errors
    /// If it has not as many.
    pub fn counts(&self, axes: usize) -> Result<ImposedBox, Failure> {
        match self {
            Self::Default => Ok(ImposedBox::Default),
            Self::Expanded => Ok(ImposedBox::Expanded),
            Self::Counts(Shape(counts)) if counts.len() == axes => {
                let mut of_axis = counts.iter().rev();
                Ok(ImposedBox::Counts(std::array::from_fn::<_, MAX_RANK, _>(|_| of_axis.next().copied().unwrap_or(1))))
            }
            Self::Counts(Shape(counts)) => {
                let named = counts.len();
                Err(Failure::usage(&format!("--box is a size along {named} axes, the samples have {axes}")))
            }
        }
    }
}

/// What `--box` takes.
pub fn imposed(text: &str) -> Result<Imposed, String> {
    match text {
        "default" => Ok(Imposed::Default),
        "expanded" => Ok(Imposed::Expanded),
        _ => shape(text)
            .map(Imposed::Counts)
            .map_err(|_| "default, expanded, or a size, for example 64x64x64".to_owned()),
    }
}

impl TargetArgs {
    /// The `.idx` file.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// The same with what no option says from the profile, if one is named.
    ///
    /// # Errors
    /// If there is no such profile, or it makes no sense.
    pub fn with_profile(&self) -> Result<Self, Failure> {
        let mut target = self.clone();
        if let Some(choice) = target.profile.take() {
            let folder = self.output.parent().filter(|folder| !folder.as_os_str().is_empty());
            for (option, measured) in &choice.read(folder.unwrap_or(Path::new(".")))?.idx {
                target.set(*option, &measured.value)?;
            }
        }
        Ok(target)
    }

    /// Whether an option was given, or taken from a profile.
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

    /// Writes the number of blocks per file into a header.
    pub(super) fn apply_blocks_per_file(&self, header: &mut Header) {
        header.blocks_per_file = self.blocks_per_file.unwrap_or(header.blocks_per_file);
    }

    /// Writes what ranks do into the options for samples of so many axes.
    ///
    /// # Errors
    /// If a box is named that has not as many.
    pub(super) fn apply_ranks(&self, mut options: WriteOptions, axes: usize) -> Result<WriteOptions, Failure> {
        options.aggregators = self.aggregators;
        options.imposed = self.imposed.as_ref().map_or(Ok(ImposedBox::Default), |imposed| imposed.counts(axes))?;
        Ok(options)
    }

    /// The header of a dataset of `counts` samples per axis, x first.
    ///
    /// # Errors
    /// If the options do not fit the samples.
    pub fn header(&self, counts: &[u64], fields: &[(String, SampleType)], has_steps: bool) -> Result<Header, Failure> {
        let layout = if self.order == BlockOrder::Hz { "hzorder" } else { "row_major" };
        let compression = match self.compress {
            BlockCompression::Zip => Some("zip"),
            BlockCompression::Lz4 => Some("lz4"),
            BlockCompression::None => None,
        };
        let field = |(name, sample): &(String, SampleType)| {
            let field = Field::new(name, *sample).with("default_layout", layout);
            compression.into_iter().fold(field, |field, name| field.with("default_compression", name))
        };
        let refused = |error: HeaderError| Failure::usage(&error.to_string());
        let stem = self.output.file_stem().unwrap_or_default().to_string_lossy();
        if self.output.extension().is_none_or(|ending| ending != "idx") || stem.is_empty() {
            return Err(Failure::usage("the output is the dataset's .idx file: -o NAME.idx"));
        }
        let mut header = Header::new(&stem, counts, fields.iter().map(field).collect()).map_err(refused)?;
        let level = header.bitmask.max_level();
        header.bits_per_block = self.bits_per_block.unwrap_or(header.bits_per_block).min(level);
        self.apply_blocks_per_file(&mut header);
        header.files = FileTemplate::for_name(&stem, level - header.bits_per_block).map_err(|e| refused(e.into()))?;
        if has_steps {
            let template = TimeTemplate::parse("time_%04d/").map_err(|error| refused(error.into()))?;
            header.time = Some(Time { range: None, template });
        }
        header.check().map_err(refused)?;
        Ok(header)
    }

    /// How to write samples of so many axes.
    ///
    /// # Errors
    /// If a box is named that has not as many.
    pub fn options(&self, running: &RunningArgs, default_jobs: usize, axes: usize) -> Result<WriteOptions, Failure> {
        let mut options = WriteOptions { jobs: default_jobs, ..WriteOptions::default() };
        options.jobs = running.jobs.map_or(options.jobs, NonZeroUsize::get);
        options.memory_limit_bytes = running.memory.map_or(options.memory_limit_bytes, |memory| memory.0);
        options.existing = if self.force { Existing::Replace } else { Existing::Refuse };
        options.phases = self.phases.phases();
        self.apply_ranks(options, axes)
    }

    /// A writer of the dataset, or of more steps of the one that is there.
    ///
    /// # Errors
    /// If the header cannot be written, or the one that is there cannot be read or is another.
    pub fn writer(&self, header: Header, options: WriteOptions) -> Result<Writer, Failure> {
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
        assert_eq!(imposed("64x32"), Ok(Imposed::Counts(Shape(vec![64, 32]))));
        assert!(imposed("64x0").is_err() && imposed("large").is_err());
    }
}
