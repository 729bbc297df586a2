//! `raddle events bench`: how fast events are written in each layout, as the framework's own test measures its outputers.

use super::output::write;
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::compression::Compression;
use crate::options::events::{Batch, Choice, EventCodec, EventForm, EventLayout, EventLayoutArgs};
use crate::options::running::RunningArgs;
use crate::options::size::Size;
use crate::render::events;
use crate::team::Team;
use crate::watching::Watching;
use raddle_core::cancel::CancelToken;
use raddle_core::progress::Silent;
use raddle_events::generated::{
    Empty, RandomOptions, RandomProducts, Repeated, SizeLaw, TestProducts, Waiting, parse_event_times,
};
use raddle_events::open::{OpenOptions, Opened, open};
use raddle_events::pds::PdsCodec;
use raddle_events::sinks::NullSink;
use raddle_events::{ConvertOptions, Converted, EventsError, Serialization, Serialized, Source, convert_among};
use raddle_merge::options::Watch;
use serde::Serialize;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `raddle events bench`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// Where events come from: random, test, empty, or a file whose first events are repeated from memory
    #[arg(long, value_name = "SOURCE", default_value = "random")]
    source: String,

    /// Events
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    events: u64,

    /// Products of random events
    #[arg(long, value_name = "N", default_value_t = 21)]
    products: usize,

    /// Mean length of random products, which are exponentially distributed
    #[arg(long, value_name = "SIZE", default_value = "286B")]
    product_size: Size,

    /// Events of a file that are held in memory
    #[arg(long, value_name = "N", default_value_t = 200)]
    repeat: u64,

    /// Layouts to write: null, columns, rntuple, product, event, batch, pds, and cce-product, cce-event, cce-batch
    #[arg(long, value_name = "LAYOUT", value_delimiter = ',', default_value = "null,columns,product,event,batch,pds")]
    sinks: Vec<String>,

    /// Numbers of threads to measure with
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2")]
    threads: Vec<NonZeroUsize>,

    /// Times to measure each, in turns; the median is told
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN.saturating_add(2))]
    rounds: NonZeroUsize,

    /// Wait for each event, in microseconds, as algorithms would
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    wait_event: u64,

    /// Wait for each event as long as FILE says: a number of microseconds for each, with white space between them, and again
    /// from the first when all are used up
    #[arg(long, value_name = "FILE")]
    wait_file: Option<PathBuf>,

    /// Wait for each byte, in nanoseconds
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0)]
    wait_byte: u64,

    /// Events of a batch: a number, or a size such as 4MiB of products
    #[arg(long, value_name = "N|SIZE", default_value_t = Batch::Events(NonZeroU64::MIN.saturating_add(99)))]
    batch: Batch,

    /// Compression of HDF5: fast, balanced, small, gzip:0-9, zstd:1-22, lz4 or none
    #[arg(short = 'c', long, value_name = "HOW", default_value_t = Compression::default())]
    compress: Compression,

    /// Compression of packed data streams, RNTuples and the framework's layouts: none, lz4, zstd, zstd:1-22, of RNTuples zlib, zlib:1-9
    #[arg(long, value_name = "CODEC", default_value_t = PdsCodec::Zstd(3).into())]
    codec: EventCodec,

    /// Folder for the files, which are removed [default: that of temporary files]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    running: RunningArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle events bench                                        10,000 random events of 21 products, all layouts
  raddle events bench --source run1.pds --sinks pds,batch --threads 1,2,4,8
  raddle events bench --products 1000 --events 1000 --sinks event,batch
  mpirun -n 4 raddle events bench --threads 1                4 ranks write each file together; a table of what each rank did

Times are those of the whole conversion, files made durable included. read, prepare, encode and write are shares of the \
threads' time, as is metadata: libhdf5 making objects at the end. What is left is waiting for each other and for the disk. Of ranks, messages is the time in \
collectives, waiting included; some of it is also in the other columns.";

/// One measured conversion.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The layout.
    pub sink: String,
    /// Ranks that shared the events.
    pub number_of_ranks: usize,
    /// Threads of each.
    pub threads: usize,
    /// Length of the file.
    pub len_bytes: u64,
    /// The round of the median time.
    #[serde(flatten)]
    pub converted: Converted,
}

/// The report of a measurement.
#[derive(Debug, Serialize)]
struct Medians<'a> {
    measured: &'a [Measured],
}

/// Collective. Measures; the first rank reports.
pub fn run(arguments: &BenchArgs, team: &Team) -> Result<Exit, Failure> {
    let options =
        SinkOptions { batch: arguments.batch, compress: arguments.compress, chunk: None, codec: arguments.codec };
    let sinks = arguments.sinks.iter().map(|name| sink_of(name, &options)).collect::<Result<Vec<_>, _>>()?;
    let watching = Watching::start_among(team, &arguments.running, "events bench", [&arguments.source])?;
    watching.conclude(|watch| {
        let folder = Folder::make(arguments.folder.as_deref(), team)?;
        let opened = || {
            let recorded = arguments.wait_file.as_deref().map(recorded_times).transpose()?.unwrap_or_default();
            let source = source_of(arguments).map_err(|error| Failure::of_events(&error, None))?;
            Ok(waiting(source, arguments, recorded))
        };
        let source = team.agree("open the source", opened())?;
        let cases = || arguments.threads.iter().flat_map(|threads| sinks.iter().map(move |sink| (sink, *threads)));
        let mut rounds: Vec<Vec<Measured>> = cases().map(|_| Vec::new()).collect();
        for _ in 0..arguments.rounds.get() {
            for ((sink, threads), measured) in cases().zip(&mut rounds) {
                measured.push(measure(sink, source.as_ref(), threads, &folder, arguments, (watch, team))?);
            }
        }
        let medians: Vec<Measured> = rounds.into_iter().filter_map(median).collect();
        if !team.leads() {
            return Ok(Exit::Done);
        }
        arguments.running.write_report(&Medians { measured: &medians })?;
        print(&if arguments.json { crate::render::json(&medians) } else { events::bench(&medians) })?;
        Ok(Exit::Done)
    })
}

/// The folder of the files that are measured, which the first rank makes and removes.
struct Folder {
    path: PathBuf,
    _made: Option<tempfile::TempDir>,
}

impl Folder {
    /// Collective. Makes a folder in `parent`, or in that of temporary files.
    fn make(parent: Option<&Path>, team: &Team) -> Result<Self, Failure> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let mut made = None;
        let paths = team.paths_of_first(|| {
            let folder = tempfile::tempdir_in(&parent).map_err(|cause| Failure::writing(&parent, &cause))?;
            Ok(vec![made.insert(folder).path().to_path_buf()])
        })?;
        Ok(Self { path: paths.into_iter().next().unwrap_or(parent), _made: made })
    }
}

/// A sink by its name on the command line.
pub(crate) struct SinkChoice {
    name: String,
    /// None for the null sink.
    pub(crate) layout: Option<EventLayoutArgs>,
}

/// What the sinks of a measurement have in common.
pub(crate) struct SinkOptions {
    /// Events of a batch.
    pub(crate) batch: Batch,
    /// Compression of HDF5.
    pub(crate) compress: Compression,
    /// Length of an HDF5 chunk before compression.
    pub(crate) chunk: Option<Size>,
    /// Compression of everything else.
    pub(crate) codec: EventCodec,
}

/// The sink of this name.
///
/// # Errors
/// If the name is unknown.
pub(crate) fn sink_of(name: &str, options: &SinkOptions) -> Result<SinkChoice, Failure> {
    let (bare, compat) = match name.strip_prefix("cce-") {
        Some(bare) => (bare, Some(EventForm::Cce)),
        None => (name, None),
    };
    let layout = match bare {
        "null" if compat.is_none() => None,
        "columns" if compat.is_none() => Some(EventLayout::Columns),
        "pds" if compat.is_none() => Some(EventLayout::Pds),
        "rntuple" if compat.is_none() => Some(EventLayout::Rntuple),
        "product" => Some(EventLayout::Product),
        "event" => Some(EventLayout::Event),
        "batch" => Some(EventLayout::Batch),
        _ => {
            return Err(Failure::usage(&format!("{name:?} is not a format of events that can be measured")).hint(
                "there are null, columns, rntuple, product, event, batch, pds, cce-product, cce-event and cce-batch",
            ));
        }
    };
    let layout = layout.map(|layout| EventLayoutArgs {
        layout,
        batch: options.batch,
        compress: Some(options.compress),
        chunk: options.chunk,
        compat,
        codec: Some(options.codec),
        choice: Choice::Events,
        serialize: None,
        profile: None,
    });
    Ok(SinkChoice { name: name.to_owned(), layout })
}

fn source_of(arguments: &BenchArgs) -> Result<Box<dyn Source>, EventsError> {
    let events = arguments.events;
    let source: Box<dyn Source> = match arguments.source.as_str() {
        "random" => Box::new(RandomProducts::new(RandomOptions {
            len_entries: events,
            products: arguments.products,
            size: SizeLaw::Exponential { mean_len_bytes: arguments.product_size.0 },
            seed: 1,
        })),
        "test" => Box::new(TestProducts::new(events, Some(Serialization::Root))),
        "empty" => Box::new(Empty::new(events)),
        path => {
            let opened = open(Path::new(path), &OpenOptions { raw: true, ..OpenOptions::default() })?;
            let source = Serialized::new(Opened::into_source(opened), Serialization::Root);
            return Ok(Box::new(Repeated::new(&source, arguments.repeat, events)?));
        }
    };
    // Held in memory: making events is not what is measured.
    let kept = arguments.repeat.min(events);
    Ok(Box::new(Repeated::new(source.as_ref(), kept, events)?))
}

/// The source, waiting as was asked for; `recorded` has the times of single events.
fn waiting(source: Box<dyn Source>, arguments: &BenchArgs, recorded: Vec<Duration>) -> Box<dyn Source> {
    let (event, byte) = (Duration::from_micros(arguments.wait_event), Duration::from_nanos(arguments.wait_byte));
    match event.is_zero() && byte.is_zero() && recorded.is_empty() {
        true => source,
        false => Box::new(Waiting::new(source, event, byte).as_recorded(recorded)),
    }
}

/// The times of events that a file has.
fn recorded_times(path: &Path) -> Result<Vec<Duration>, Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::InputRefused, &format!("--wait-file {}: {why}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|cause| refused(&cause))?;
    parse_event_times(&text).map_err(|error| refused(&error))
}

fn measure(
    sink: &SinkChoice,
    source: &dyn Source,
    threads: NonZeroUsize,
    folder: &Folder,
    arguments: &BenchArgs,
    (watch, team): (&Watch<'_>, &Team),
) -> Result<Measured, Failure> {
    let mut options = ConvertOptions { jobs: threads, ..ConvertOptions::default() };
    if let Some(memory) = arguments.running.memory {
        options.memory_len_bytes = memory.0;
    }
    let (len_bytes, converted) = match &sink.layout {
        None => {
            let done = convert_among(source, NullSink::default(), &options, &Silent, watch.cancel, team.ranks());
            (0, done.map_err(|error| Failure::of_events(&error, None))?.0)
        }
        Some(layout) => {
            let path = folder.path.join("events");
            let written = write(source, &path, true, layout, options, &silent(watch.cancel), team.ranks())?;
            (written.len_bytes, written.converted)
        }
    };
    let number_of_ranks = team.ranks().size();
    Ok(Measured { sink: sink.name.clone(), number_of_ranks, threads: threads.get(), len_bytes, converted })
}

/// Bars for each of many short conversions would only flicker.
fn silent(cancel: &CancelToken) -> Watch<'_> {
    Watch { observer: &Silent, cancel }
}

/// The round with the median time.
fn median(mut rounds: Vec<Measured>) -> Option<Measured> {
    rounds.sort_by(|a, b| a.converted.elapsed_s.total_cmp(&b.converted.elapsed_s));
    let middle = rounds.len() / 2;
    (!rounds.is_empty()).then(|| rounds.swap_remove(middle))
}
