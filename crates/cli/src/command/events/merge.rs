//! `raddle events merge`: concatenates files with the same layout.

use super::output::{WrittenEvents, convert_options, print_needs, write};
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::events::{Batch, Choice, EventForm, EventLayout, EventLayoutArgs};
use crate::options::inputs::StandardInputArgs;
use crate::options::running::RuntimeArgs;
use crate::options::size::Size;
use crate::ranks::Ranks;
use crate::render::events;
use crate::session::Session;
use raddle::options::compression;
use raddle::options::output::check_output;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_events::hdf5::{CompressionChoice, FileLayout, Hdf5Options, Hdf5Sink, Hdf5Source, StoredEvents};
use raddle_events::pds::PdsSource;
use raddle_events::sources::open::{OpenOptions, OpenedSource, open};
use raddle_events::{ConcatSource, ConvertOptions, Converted, EventsError, Source, convert_collective};
use raddle_merge::options::{Compress, Watch};
use raddle_merge::published_path;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// Options of `raddle events merge`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// Files to merge.
    #[command(flatten)]
    pub inputs: raddle::options::Inputs,
    /// Option for a list on standard input.
    #[command(flatten)]
    pub standard_input: StandardInputArgs,

    /// File to write; it appears under this name only when it is complete
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long, help_heading = "Output")]
    force: bool,

    /// Compression of HDF5.
    #[arg(short = 'c', long, value_name = "HOW", help = compression::EVENTS_HELP, default_value_t = Compress::default(), help_heading = "Layout")]
    compress: Compress,

    /// Length of an HDF5 chunk before compression [default: 1MiB, less for thousands of datasets]
    #[arg(long, value_name = "SIZE", help_heading = "Layout")]
    chunk: Option<Size>,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle events merge job*.pds -o all.pds      records are copied as stored
  raddle events merge job*.h5 -o all.h5        in the layout of the first; chunks are rewritten, but
                                               data compressed in HEP-CCE's form is copied as stored

Every input must have the same products. ROOT files cannot be merged: convert them.";

/// Collective. Merges the inputs and reports.
pub fn run(arguments: &MergeArgs, team: &Ranks) -> Result<Exit, Failure> {
    let MergeArgs { running, .. } = arguments;
    let inputs = team.paths_of_first(|| arguments.standard_input.expand(&arguments.inputs))?;
    let watching = Session::start_collective(team, running, "events merge", inputs.iter().chain([&arguments.output]))?;
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
    /// Collective. Merges the inputs. Returns the result on rank 0, and on every rank if all took part.
    ///
    /// # Errors
    /// If inputs cannot be read or do not fit together, or the output cannot be written.
    pub fn merge(
        &self,
        inputs: &[PathBuf],
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
        cores: usize,
    ) -> Result<Option<WrittenEvents>, Failure> {
        let Self { force, running, .. } = self;
        let output = &published_path(&self.output);
        let failed = |error| Failure::of_events(&error, Some(output));
        let opened = check_output(&self.output, inputs, *force).and_then(|()| Inputs::open(inputs).map_err(failed));
        let merging = Merging { output, force: *force, watch, ranks, convert: convert_options(running, cores) };
        match ranks.agree("open the inputs", opened)? {
            // Copying is limited by the disk, so a single rank does it.
            Inputs::Streams(streams) => {
                let copied = match ranks.rank() {
                    0 => merging.copy_streams(&streams).map(Some),
                    _ => Ok(None),
                };
                ranks.agree("copy the streams", copied)
            }
            Inputs::Stored(stored) => merging.copy_stored(&stored, self.chunk).map(Some),
            Inputs::Hdf5(layout, sources) => {
                let layout = layout_of(layout, sources[0].len_entries(), self);
                print_needs(&layout, watch, ranks);
                let source = ranks.agree("join the inputs", ConcatSource::new(sources).map_err(failed))?;
                write(&source, output, *force, &layout, merging.convert, watch, ranks).map(Some)
            }
            Inputs::Root => {
                let what = format!("{}: ROOT files cannot be merged", crate::render::escape::path(&inputs[0]));
                Err(Failure::new(Exit::InputRefused, &what).hint(
                    "use raddle events convert, which also accepts several files and writes them in an HDF5 layout",
                ))
            }
        }
    }
}

/// Inputs, by the way they are merged.
enum Inputs {
    /// Packed data streams, whose records are copied.
    Streams(Vec<PdsSource>),
    /// Files whose stored events are copied.
    Stored(Box<StoredEvents>),
    /// HDF5 files whose chunks are filled again, in the layout of the first.
    Hdf5(FileLayout, Vec<Box<dyn Source>>),
    /// ROOT files, which cannot be merged.
    Root,
}

impl Inputs {
    fn open(paths: &[PathBuf]) -> Result<Self, EventsError> {
        let options = OpenOptions { raw: true, ..OpenOptions::default() };
        let layout = match open(&paths[0], &options)? {
            OpenedSource::Pds(_) => {
                return Ok(Self::Streams(paths.iter().map(|path| PdsSource::open(path)).collect::<Result<_, _>>()?));
            }
            OpenedSource::Hdf5(file) => file.layout(),
            OpenedSource::Tree(_) | OpenedSource::Whole(_) | OpenedSource::Packed(_) | OpenedSource::Ntuple(_) => {
                return Ok(Self::Root);
            }
        };
        let (mut files, mut others): (Vec<Hdf5Source>, Vec<Box<dyn Source>>) = (Vec::new(), Vec::new());
        for path in paths {
            match open(path, &options)? {
                OpenedSource::Hdf5(file) if others.is_empty() => files.push(*file),
                other => others.push(other.into_source()),
            }
        }
        if others.is_empty() {
            match StoredEvents::join(files)? {
                Ok(stored) => return Ok(Self::Stored(Box::new(stored))),
                Err(given_back) => files = given_back,
            }
        }
        let files = files.into_iter().map(|file| Box::new(file) as Box<dyn Source>);
        Ok(Self::Hdf5(layout, files.chain(others).collect()))
    }
}

/// Parameters shared by all ways of merging.
struct Merging<'m> {
    output: &'m Path,
    force: bool,
    watch: &'m Watch<'m>,
    ranks: &'m dyn Communicator,
    convert: ConvertOptions,
}

impl Merging<'_> {
    fn copy_streams(&self, streams: &[PdsSource]) -> Result<WrittenEvents, Failure> {
        let Self { output, force, watch, .. } = self;
        let started = std::time::Instant::now();
        let summary = raddle_events::pds::merge(streams, output, *force, watch.observer, watch.cancel)
            .map_err(|error| Failure::of_events(&error, Some(output)))?;
        let elapsed_s = started.elapsed().as_secs_f64();
        Ok(WrittenEvents {
            output: output.to_path_buf(),
            layout: "pds",
            events: summary.events,
            products: streams.first().map_or(0, |stream| stream.schema().products.len() as u64),
            len_bytes: summary.len_bytes,
            datasets: None,
            chunks: None,
            left_out: Vec::new(),
            converted: Converted { entries: summary.events, elapsed_s, commit_s: elapsed_s, ..Converted::default() },
        })
    }

    /// Collective. Copies the stored events.
    fn copy_stored(&self, stored: &StoredEvents, chunk: Option<Size>) -> Result<WrittenEvents, Failure> {
        let Self { output, force, watch, ranks, convert } = self;
        let failed = |error| Failure::of_events(&error, Some(output));
        let source = stored.source();
        let hdf5 = Hdf5Options {
            chunk_len_bytes: chunk.and_then(|size| NonZeroU64::new(size.0)),
            expected_len_bytes: source.batch_len_bytes(0..source.len_entries()),
            replace: *force,
            ..Hdf5Options::default()
        };
        let sink = Hdf5Sink::begin_stored_collective(output, stored, &hdf5, *ranks).map_err(failed)?;
        let (mut converted, summary) =
            convert_collective(source, sink, convert, watch.observer, watch.cancel, *ranks).map_err(failed)?;
        converted.metadata_s = summary.metadata_s;
        Ok(WrittenEvents {
            output: output.to_path_buf(),
            layout: stored.layout_name(),
            events: summary.events,
            products: stored.len_products() as u64,
            len_bytes: summary.len_bytes,
            datasets: Some(summary.datasets),
            chunks: Some(summary.chunks),
            left_out: Vec::new(),
            converted,
        })
    }
}

/// Returns the options that reproduce the layout of a file.
fn layout_of(layout: FileLayout, entries: u64, arguments: &MergeArgs) -> EventLayoutArgs {
    let mut options = EventLayoutArgs {
        layout: EventLayout::Columns,
        batch: Batch::Events(NonZeroU64::MIN),
        compress: Some(arguments.compress),
        chunk: arguments.chunk,
        compat: None,
        codec: None,
        choice: Choice::Events,
        serialize: None,
        profile: None,
    };
    // Use the mean batch length of the first file, without its last batch.
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
            options.codec = Some(cce.codec.into());
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
