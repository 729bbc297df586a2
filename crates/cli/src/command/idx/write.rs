//! `raddle idx write`: arrays in, a dataset that can be read at any resolution out.

use super::inputs::{ArrayArgs, Inputs, Shape, shape};
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::running::RunningArgs;
use crate::render::{idx, quantity};
use crate::team::Team;
use crate::watching::Watching;
use raddle_core::progress::{Event, Stage, Watch};
use raddle_idx::bitmask::MAX_RANK;
use raddle_idx::header::Time;
use raddle_idx::restructure::ImposedBox;
use raddle_idx::template::{FileTemplate, TimeTemplate};
use raddle_idx::{Existing, Field, Header, IdxError, Patch, Phases, WriteOptions, WriteReport, Writer};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

/// Options of `raddle idx write`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct WriteArgs {
    /// FILE.h5:/DATASET, FILE.npy, or raw files with --shape and --dtype
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<String>,

    /// The .idx file to write; its blocks lie in the folder of that name beside it
    #[arg(short, long, value_name = "OUT.idx")]
    output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long, conflicts_with = "append")]
    force: bool,

    /// Add time steps to the dataset that is there
    #[arg(long)]
    append: bool,

    #[command(flatten)]
    arrays: ArrayArgs,

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

    #[command(flatten)]
    running: RunningArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx write run.h5:/rho -o rho.idx                    one dataset, one field
  raddle idx write rho.npy v.npy -o flow.idx --name rho,v    two fields
  raddle idx write v.npy -o v.idx --vector                   the last axis holds the components
  raddle idx write t*.raw -o t.idx --as steps --shape 64x128x128 --dtype float32
  mpirun -n 4 raddle idx write run.h5:/rho -o rho.idx        each rank reads and writes its share

The slowest axis of an array is its last one in IDX: a[z, y, x] has x as axis 0. The time steps of a run appear one by
one, each whole. A process or rank holds its share of one time step in memory.";

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

/// Collective. Writes the dataset.
pub fn run(arguments: &WriteArgs, team: &Team) -> Result<Exit, Failure> {
    let watching = Watching::start_among(team, &arguments.running, "idx write")?;
    watching.conclude(|watch| {
        let opened = arguments.arrays.open(&arguments.inputs, &arguments.running.reader);
        let inputs = team.agree("open the inputs", opened)?;
        let header = arguments.header(&inputs)?;
        let ranks = team.ranks();
        let rows = share(inputs.rows(), ranks.rank(), ranks.size());
        let held_len_bytes = inputs.row_len_bytes().saturating_mul(rows.end - rows.start);
        let options = team.agree("fit the samples into memory", arguments.options(team, &inputs, held_len_bytes))?;
        let mut writer = {
            let made = if arguments.append {
                Writer::resume(&arguments.output, &header, options)
            } else {
                Writer::new(&arguments.output, header, options)
            };
            team.agree("begin the output", made.map_err(|error| Failure::of_idx(&error)))?
        };
        let mut reports = Vec::new();
        for (step, of_step) in &inputs.steps {
            let read = read(&inputs, of_step.clone(), &rows, watch);
            let patches = team.agree("read the inputs", read)?;
            let written = writer.write_among(*step, patches, watch, ranks);
            reports.push(written.map_err(|error| Failure::of_idx(&error))?);
        }
        if team.leads() {
            tell(arguments, &writer, &reports)?;
        }
        Ok(Exit::Done)
    })
}

fn tell(arguments: &WriteArgs, writer: &Writer, reports: &[WriteReport]) -> Result<(), Failure> {
    arguments.running.write_report(&reports)?;
    if arguments.running.quiet { Ok(()) } else { print(&idx::written(writer.header(), reports)) }
}

/// The rows that rank number `rank` of `ranks` reads.
fn share(rows: u64, rank: usize, ranks: usize) -> Range<u64> {
    let bound = |rank: usize| (u128::from(rows) * rank as u128 / ranks as u128) as u64;
    bound(rank)..bound(rank + 1)
}

/// The share of a time step, as a box.
fn read(
    inputs: &Inputs,
    of_step: Range<usize>,
    rows: &Range<u64>,
    watch: &Watch<'_>,
) -> Result<Vec<Patch<'static>>, Failure> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let begun = Instant::now();
    watch.observer.event(&Event::StageStarted { stage: Stage::Read, total_bytes: None });
    let mut arrays = Vec::new();
    for array in &inputs.arrays[of_step] {
        watch.cancel.check().map_err(|error| Failure::of_idx(&IdxError::Core(error)))?;
        let values = array.read_rows(rows.clone())?;
        watch.observer.event(&Event::Advanced { stage: Stage::Read, bytes: values.len() as u64, items: 1 });
        arrays.push(values.into());
    }
    watch.observer.event(&Event::StageFinished { stage: Stage::Read, elapsed_s: begun.elapsed().as_secs_f64() });
    Ok(vec![Patch { region: inputs.region(rows), arrays }])
}

impl WriteArgs {
    fn header(&self, inputs: &Inputs) -> Result<Header, Failure> {
        let layout = if self.order == BlockOrder::Hz { "hzorder" } else { "row_major" };
        let compression = match self.compress {
            BlockCompression::Zip => Some("zip"),
            BlockCompression::Lz4 => Some("lz4"),
            BlockCompression::None => None,
        };
        let field = |(name, sample): &(String, _)| {
            let field = Field::new(name, *sample).with("default_layout", layout);
            compression.into_iter().fold(field, |field, name| field.with("default_compression", name))
        };
        let fields = inputs.fields.iter().map(field).collect();
        let refused = |error: raddle_idx::header::HeaderError| Failure::usage(&error.to_string());
        let stem = self.output.file_stem().unwrap_or_default().to_string_lossy();
        if self.output.extension().is_none_or(|ending| ending != "idx") || stem.is_empty() {
            return Err(Failure::usage("the output is the dataset's .idx file: -o NAME.idx"));
        }
        let mut header = Header::new(&stem, &inputs.counts, fields).map_err(refused)?;
        let level = header.bitmask.max_level();
        header.bits_per_block = self.bits_per_block.unwrap_or(header.bits_per_block).min(level);
        header.blocks_per_file = self.blocks_per_file.unwrap_or(header.blocks_per_file);
        header.files = FileTemplate::for_name(&stem, level - header.bits_per_block).map_err(|e| refused(e.into()))?;
        if inputs.steps.iter().any(|(step, _)| step.is_some()) {
            let template = TimeTemplate::parse("time_%04d/").map_err(|error| refused(error.into()))?;
            header.time = Some(Time { range: None, template });
        }
        header.check().map_err(refused)?;
        Ok(header)
    }

    fn options(&self, team: &Team, inputs: &Inputs, held_len_bytes: u64) -> Result<WriteOptions, Failure> {
        let mut options = WriteOptions { jobs: team.default_jobs(), ..WriteOptions::default() };
        if let Some(jobs) = self.running.jobs {
            options.jobs = jobs.get();
        }
        let limit_bytes = self.running.memory.map_or(options.memory_limit_bytes, |memory| memory.0);
        options.memory_limit_bytes = limit_bytes.checked_sub(held_len_bytes).ok_or_else(|| {
            let (held, limit) = (quantity::size(held_len_bytes), quantity::size(limit_bytes));
            let what = format!("the samples of one time step take {held} of memory; the budget is {limit}");
            Failure::new(Exit::Limit, &what).hint("raise --memory, or share the work among ranks with mpirun")
        })?;
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
            Imposed::Counts(Shape(counts)) if counts.len() == inputs.counts.len() => {
                let mut of_axis = counts.iter().rev();
                ImposedBox::Counts(std::array::from_fn::<_, MAX_RANK, _>(|_| of_axis.next().copied().unwrap_or(1)))
            }
            Imposed::Counts(Shape(counts)) => {
                let axes = quantity::counted(inputs.counts.len() as u64, "axis");
                return Err(Failure::usage(&format!("--box has {} numbers for {axes}", counts.len())));
            }
        };
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_evenly() {
        let shares: Vec<_> = (0..4).map(|rank| share(10, rank, 4)).collect();
        assert_eq!(shares, [0..2, 2..5, 5..7, 7..10]);
        assert!(share(1, 0, 2).is_empty() && share(1, 1, 2) == (0..1));
    }

    #[test]
    fn sizes_of_boxes() {
        assert_eq!(imposed("expanded"), Ok(Imposed::Expanded));
        assert_eq!(imposed("64x32"), Ok(Imposed::Counts(Shape(vec![64, 32]))));
        assert!(imposed("64x0").is_err() && imposed("large").is_err());
    }
}
