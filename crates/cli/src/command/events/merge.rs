//! `raddle events merge`: files of one layout, one behind the other.

use super::output::{Written, check_output, convert_options, open_all, write};
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::events::{Batch, Choice, EventCodec, EventForm, EventLayout, EventLayoutArgs, SelectionArgs};
use crate::options::inputs::InputArgs;
use crate::options::layout::Compression;
use crate::options::running::RunningArgs;
use crate::options::size::Size;
use crate::render::events;
use crate::team::{Team, agreed};
use crate::watching::Watching;
use raddle_core::communicator::Communicator;
use raddle_events::Converted;
use raddle_events::hdf5::{CompressionChoice, FileLayout};
use raddle_events::open::{OpenOptions, Opened, open};
use raddle_events::pds::{PdsCodec, PdsSource};
use raddle_merge::options::Watch;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// Options of `raddle events merge`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// What to merge.
    #[command(flatten)]
    pub inputs: InputArgs,

    /// File to write; it appears under this name only when it is complete
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long, help_heading = "Output")]
    force: bool,

    /// Compression of HDF5: fast, balanced, small, gzip:0-9 or none
    #[arg(short = 'c', long, value_name = "HOW", default_value_t = Compression::Balanced, help_heading = "Layout")]
    compress: Compression,

    /// Length of an HDF5 chunk before compression [default: 1MiB, less for thousands of datasets]
    #[arg(long, value_name = "SIZE", help_heading = "Layout")]
    chunk: Option<Size>,

    #[command(flatten)]
    running: RunningArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle events merge job*.pds -o all.pds      records are copied as they are stored
  raddle events merge job*.h5 -o all.h5        in the layout of the first; chunks are filled anew

Every input must have the same products. ROOT files are not written: convert them.";

/// Collective. Merges.
pub fn run(arguments: &MergeArgs, team: &Team) -> Result<Exit, Failure> {
    let MergeArgs { inputs, running, .. } = arguments;
    let inputs = team.paths_of_first(|| inputs.expand(&mut std::io::stdin().lock()))?;
    let watching = Watching::start_among(team, running, "events merge")?;
    watching.conclude(|watch| {
        let written = arguments.merge(&inputs, watch, team.ranks(), team.default_jobs())?;
        if team.leads() {
            let Some(written) = written else { return Ok(Exit::Done) };
            running.write_report(&written)?;
            if !running.telling.quiet {
                print(&events::written(&written))?;
            }
        }
        Ok(Exit::Done)
    })
}

impl MergeArgs {
    /// Collective. Merges these inputs; what was done, on rank 0 and where all ranks did it.
    ///
    /// # Errors
    /// Inputs that cannot be read or do not go together, an output that cannot be written.
    pub fn merge(
        &self,
        inputs: &[PathBuf],
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
        cores: usize,
    ) -> Result<Option<Written>, Failure> {
        let Self { output, force, running, .. } = self;
        let failed = |error| Failure::of_events(&error, Some(output));
        let opened = check_output(output, inputs, *force)
            .and_then(|()| open(&inputs[0], &OpenOptions { tree: None, raw: true }).map_err(failed));
        match agreed(ranks, "open the inputs", opened)? {
            // Copying is as fast as the disk is: one rank does it.
            Opened::Pds(_) => {
                let copied = match ranks.rank() {
                    0 => merge_streams(inputs, output, *force, watch).map(Some),
                    _ => Ok(None),
                };
                agreed(ranks, "copy the streams", copied)
            }
            Opened::Hdf5(file) => {
                let layout = layout_of(file.layout(), file.as_ref(), self);
                drop(file);
                let selection = SelectionArgs { tree: None, products: Vec::new(), raw: true };
                let source = open_all(inputs, &selection, &layout).map_err(failed);
                let source = agreed(ranks, "open the inputs", source)?;
                write(source.as_ref(), output, *force, &layout, convert_options(running, cores), watch, ranks).map(Some)
            }
            Opened::Tree(_) | Opened::Packed(_) | Opened::Ntuple(_) => {
                let what = format!("{}: ROOT files are not written", crate::render::escape::path(&inputs[0]));
                Err(Failure::new(Exit::InputRefused, &what)
                    .hint("raddle events convert takes many files too, and writes them in a layout of HDF5"))
            }
        }
    }
}

fn merge_streams(inputs: &[PathBuf], output: &Path, force: bool, watch: &Watch<'_>) -> Result<Written, Failure> {
    let failed = |error| Failure::of_events(&error, Some(output));
    let started = std::time::Instant::now();
    let streams = inputs.iter().map(|path| PdsSource::open(path)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let products = streams.first().map_or(0, |stream| raddle_events::Source::schema(stream).products.len() as u64);
    let summary = raddle_events::pds::merge(&streams, output, force, watch.observer, watch.cancel).map_err(failed)?;
    let elapsed_s = started.elapsed().as_secs_f64();
    Ok(Written {
        output: output.to_path_buf(),
        layout: "pds",
        events: summary.events,
        products,
        len_bytes: summary.len_bytes,
        datasets: None,
        chunks: None,
        left_out: Vec::new(),
        converted: Converted { entries: summary.events, elapsed_s, commit_s: elapsed_s, ..Converted::default() },
    })
}

/// The options that write as a file is written.
fn layout_of(layout: FileLayout, source: &dyn raddle_events::Source, arguments: &MergeArgs) -> EventLayoutArgs {
    let mut options = EventLayoutArgs {
        layout: EventLayout::Columns,
        batch: Batch::Events(NonZeroU64::MIN),
        compress: Some(arguments.compress),
        chunk: arguments.chunk,
        compat: None,
        codec: EventCodec(PdsCodec::None),
        choice: Choice::Events,
        serialize: None,
        profile: None,
    };
    let entries = source.len_entries();
    // Batches as long as those of the first file are in the mean, all but its last.
    let batch_of =
        |batches: u64| Batch::Events(NonZeroU64::new(entries.div_ceil(batches.max(1))).unwrap_or(NonZeroU64::MIN));
    match layout {
        FileLayout::Columns => {}
        FileLayout::Product => options.layout = EventLayout::Product,
        FileLayout::Event => options.layout = EventLayout::Event,
        FileLayout::Batch(batches) => {
            options.layout = EventLayout::Batch;
            options.batch = batch_of(batches);
        }
        FileLayout::FrameworkProduct => {
            options.layout = EventLayout::Product;
            options.compat = Some(EventForm::Cce);
        }
        FileLayout::FrameworkEvent(cce) | FileLayout::FrameworkBatch(cce) => {
            let is_batch = matches!(layout, FileLayout::FrameworkBatch(_));
            options.layout = if is_batch { EventLayout::Batch } else { EventLayout::Event };
            options.compat = Some(EventForm::Cce);
            options.codec = EventCodec(cce.codec);
            options.batch = Batch::Events(NonZeroU64::MIN.saturating_add(99));
            options.choice = match cce.choice {
                CompressionChoice::None => Choice::None,
                CompressionChoice::Events => Choice::Events,
                CompressionChoice::Batch => Choice::Batch,
                CompressionChoice::Both => Choice::Both,
            };
        }
    }
    options
}
