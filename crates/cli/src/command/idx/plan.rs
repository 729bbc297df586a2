//! `raddle idx plan`: simulates how many ranks would write a dataset, without any samples.

use crate::command::print;
use crate::exit::Exit;
use crate::options::running::VerbosityArgs;
use crate::options::size::Size;
use crate::render::idx_plan::{self, Plan, SimulatedBox};
use crate::render::quantity;
use crate::session::Session;
use crate::text_file::NO_FILES;
use raddle::Error;
use raddle_idx::dataset::header::{DEFAULT_BITS_PER_BLOCK, HeaderError};
use raddle_idx::dataset::sample::SampleType;
use raddle_idx::request::{BoxSize, Shape};
use raddle_idx::write::simulate::{planning_len_bytes, rank_grid, regular_partition, simulate};
use raddle_idx::{Field, Header, Phases, WriteOptions};
use std::num::NonZeroUsize;

/// Options of `raddle idx plan`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    /// Number of ranks
    #[arg(long, value_name = "N")]
    ranks: NonZeroUsize,

    /// Number of samples that each rank holds, slowest axis first, for example 60x60x60
    #[arg(long, value_name = "SHAPE")]
    per_rank: Shape,

    /// Number of ranks along each axis, slowest first [default: as equal as possible]
    #[arg(long, value_name = "SHAPE")]
    grid: Option<Shape>,

    /// Sample types of the fields: float32, float64[3]
    #[arg(long = "field", value_name = "TYPE", value_delimiter = ',', default_value = "float32", value_parser = sample)]
    fields: Vec<SampleType>,

    /// Base-2 logarithm of the samples per block [default: 15]
    #[arg(long, value_name = "N")]
    bits_per_block: Option<u32>,

    /// Blocks per file [default: 256]
    #[arg(long, value_name = "N")]
    blocks_per_file: Option<u64>,

    /// How samples are exchanged between ranks
    #[arg(long, value_name = "N", value_enum, default_value_t = PlannedPhases::Three)]
    phases: PlannedPhases,

    /// Power-of-two boxes to compare, as in `raddle idx write`; sizes are rounded up to powers of two
    #[arg(long = "box", value_name = "SIZE", value_delimiter = ',', default_value = "default,expanded")]
    imposed: Vec<BoxSize>,

    /// Number of ranks that produce and write blocks [default: all]
    #[arg(long, value_name = "N")]
    aggregators: Option<NonZeroUsize>,

    /// Threads of each rank
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZeroUsize,

    /// Memory of each rank for data derived from the samples [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    verbosity: VerbosityArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx plan --ranks 65536 --per-rank 15x15x15
      default and expanded boxes side by side
  raddle idx plan --ranks 65536 --per-rank 60x60x60 \\
    --field float32[4],float32[4] --phases two
  raddle idx plan --ranks 4096 --per-rank 30x30x30 --aggregators 256 --json

The plan is that of `raddle idx write` with this number of ranks and raw blocks, except that messages are only \
counted, not sent.";

fn sample(text: &str) -> Result<SampleType, String> {
    text.parse().map_err(|_| "not a type such as float32 or float64[3]".to_owned())
}

/// Exchange of samples between ranks. Writing in one phase sends nothing, so there is nothing to plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PlannedPhases {
    /// Parts of blocks are sent to the ranks that write them
    Two,
    /// Samples are first rearranged into power-of-two boxes
    Three,
}

impl PlannedPhases {
    /// Converts to the type of the writer.
    fn phases(self) -> Phases {
        match self {
            Self::Two => Phases::Two,
            Self::Three => Phases::Three,
        }
    }
}

/// Maximum memory for planning, which is enough for about 3 million ranks.
const MAX_LEN_BYTES: u64 = 4 << 30;

/// Fails if planning needs more memory than the limit or than is available.
fn check_memory(arguments: &PlanArgs, bits_per_block: u32) -> Result<(), Error> {
    let samples = raddle_core::plan::extent::product(&arguments.per_rank.0).unwrap_or(u64::MAX);
    let (ranks, fields) = (arguments.ranks.get() as u64, arguments.fields.len() as u64);
    let len_bytes = planning_len_bytes(ranks, samples, bits_per_block, fields);
    // Allocated at once and released again: a failing allocation in the middle would abort the program.
    let can_be_had = || Vec::<u8>::new().try_reserve_exact(len_bytes as usize).is_ok();
    if len_bytes <= MAX_LEN_BYTES && can_be_had() {
        return Ok(());
    }
    let (needed, limit) = (quantity::size(len_bytes), quantity::size(MAX_LEN_BYTES.min(len_bytes)));
    let what = match len_bytes > MAX_LEN_BYTES {
        true => format!("planning for this many ranks and blocks needs about {needed} of memory, more than {limit}"),
        false => format!("planning needs about {needed} of memory, which is not available"),
    };
    Err(Error::new(Exit::Limit, &what).hint("plan for fewer ranks, or with larger blocks (--bits-per-block)"))
}

/// Simulates and prints the result.
pub fn run(arguments: &PlanArgs) -> Result<Exit, Error> {
    let session = Session::start(&arguments.verbosity, "idx plan", NO_FILES)?;
    session.conclude(|watch| {
        let failed = |error| Error::of_idx(&error);
        let axes = arguments.per_rank.0.len();
        let reversed = |shape: &[u64]| shape.iter().rev().copied().collect::<Vec<u64>>();
        let ranks = arguments.ranks.get();
        check_memory(arguments, arguments.bits_per_block.unwrap_or(DEFAULT_BITS_PER_BLOCK))?;
        let grid = arguments.grid.as_ref().map_or_else(|| rank_grid(ranks as u64, axes), |grid| reversed(&grid.0));
        if grid.len() != axes || grid.iter().try_fold(1u64, |all, along| all.checked_mul(*along)) != Some(ranks as u64)
        {
            return Err(Error::usage(&format!("--grid needs numbers of ranks along {axes} axes with product {ranks}")));
        }
        let per_rank = reversed(&arguments.per_rank.0);
        let counts: Vec<u64> =
            grid.iter().zip(&per_rank).map(|(ranks, samples)| ranks.saturating_mul(*samples)).collect();
        let field = |(number, sample): (usize, &SampleType)| Field::new(&format!("field{number}"), *sample);
        let refused = |error: HeaderError| Error::usage(&error.to_string());
        let fields = arguments.fields.iter().enumerate().map(field).collect();
        let mut header = Header::new("simulated", &counts, fields).map_err(refused)?;
        let level = header.bitmask.max_level();
        if arguments.bits_per_block == Some(0) && level > 0 {
            return Err(refused(HeaderError::NoBitsPerBlock));
        }
        header.bits_per_block = arguments.bits_per_block.unwrap_or(header.bits_per_block).min(level);
        header.blocks_per_file = arguments.blocks_per_file.unwrap_or(header.blocks_per_file);
        header.check().map_err(refused)?;
        let partition = regular_partition(&grid, &per_rank);
        let mut boxes = Vec::new();
        // Without the first phase there are no boxes to compare.
        let compared =
            if arguments.phases == PlannedPhases::Two { &arguments.imposed[..1] } else { &arguments.imposed[..] };
        for imposed in compared {
            watch.cancel.check().map_err(|error| failed(error.into()))?;
            let options = WriteOptions {
                jobs: arguments.threads.get(),
                memory_limit_bytes: arguments.memory.map_or(1 << 30, |memory| memory.0),
                phases: arguments.phases.phases(),
                imposed: imposed.imposed(axes)?,
                aggregators: arguments.aggregators,
                ..WriteOptions::default()
            };
            let simulation = simulate(&header, &partition, &options).map_err(failed)?;
            let name = if arguments.phases == PlannedPhases::Two { "none".to_owned() } else { imposed.to_string() };
            boxes.push(SimulatedBox { imposed: name, simulation });
        }
        let fields = arguments.fields.iter().map(ToString::to_string).collect();
        let plan = Plan { grid: reversed(&grid), per_rank: arguments.per_rank.0.clone(), fields, boxes };
        arguments.verbosity.write_report(&plan)?;
        print(&if arguments.json { crate::render::json(&plan) } else { idx_plan::text(&plan) })?;
        Ok(Exit::Done)
    })
}
