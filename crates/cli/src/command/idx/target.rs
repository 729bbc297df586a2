//! The dataset that is to be written: where, in which layout, and how ranks go about it.

use super::inputs::{Shape, shape};
use crate::failure::Failure;
use crate::options::running::RunningArgs;
use raddle_idx::bitmask::MAX_RANK;
use raddle_idx::grid::Layout;
use raddle_idx::restructure::ImposedBox;
use raddle_idx::sample::SampleType;
use raddle_idx::{Existing, Header, LayoutOptions, Phases, WriteOptions, Writer};
use std::num::NonZeroUsize;
use std::path::PathBuf;

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
    #[arg(long = "box", value_name = "SIZE", default_value = "default", value_parser = imposed, help_heading = "Ranks")]
    imposed: Imposed,

    /// How many ranks make and write blocks, whatever the number of files [default: all]
    #[arg(long, value_name = "N", help_heading = "Ranks")]
    aggregators: Option<NonZeroUsize>,
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
enum PhaseCount {
    /// Every rank writes its own samples (only with -c none)
    One,
    /// Parts of blocks are sent to those that write them
    Two,
    /// Samples are brought into power-of-two boxes before
    Three,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Imposed {
    Default,
    Expanded,
    Counts(Shape),
}

fn imposed(text: &str) -> Result<Imposed, String> {
    match text {
        "default" => Ok(Imposed::Default),
        "expanded" => Ok(Imposed::Expanded),
        _ => shape(text)
            .map(Imposed::Counts)
            .map_err(|_| "default, expanded, or a size, for example 64x64x64".to_owned()),
    }
}

impl TargetArgs {
    /// The header of a dataset of `counts` samples per axis, x first.
    ///
    /// # Errors
    /// If the options do not fit the samples.
    pub fn header(&self, counts: &[u64], fields: &[(String, SampleType)], has_steps: bool) -> Result<Header, Failure> {
        let compression = match self.compress {
            BlockCompression::Zip => "zip",
            BlockCompression::Lz4 => "lz4",
            BlockCompression::None => "",
        };
        let layout = LayoutOptions {
            compression: compression.to_owned(),
            order: if self.order == BlockOrder::Hz { Layout::Hz } else { Layout::RowMajor },
            bits_per_block: self.bits_per_block,
            blocks_per_file: self.blocks_per_file,
        };
        layout.header(&self.output, counts, fields, has_steps).map_err(|error| Failure::usage(&error.to_string()))
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
        options.phases = match self.phases {
            PhaseCount::One => Phases::One,
            PhaseCount::Two => Phases::Two,
            PhaseCount::Three => Phases::Three,
        };
        options.aggregators = self.aggregators;
        options.imposed = match &self.imposed {
            Imposed::Default => ImposedBox::Default,
            Imposed::Expanded => ImposedBox::Expanded,
            Imposed::Counts(Shape(counts)) if counts.len() == axes => {
                let mut of_axis = counts.iter().rev();
                ImposedBox::Counts(std::array::from_fn::<_, MAX_RANK, _>(|_| of_axis.next().copied().unwrap_or(1)))
            }
            Imposed::Counts(Shape(counts)) => {
                let named = counts.len();
                return Err(Failure::usage(&format!("--box is a size along {named} axes, the samples have {axes}")));
            }
        };
        Ok(options)
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
