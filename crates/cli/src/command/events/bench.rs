//! `raddle events bench`: measures how fast events are written in each layout, in the same way as the framework's test
//! of its outputters.

use super::output::write;
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::events::{Batch, Choice, EventCodec, EventForm, EventLayout, EventLayoutArgs};
use crate::options::running::RuntimeArgs;
use crate::options::size::Size;
use crate::ranks::Ranks;
use crate::render::events;
use crate::session::Session;
use raddle::options::compression;
use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::Silent;
use raddle_events::pds::PdsCodec;
use raddle_events::sinks::NullSink;
use raddle_events::sources::generated::{
    CyclicSource, Empty, RandomOptions, RandomProducts, SizeLaw, TestProducts, ThrottledSource, parse_event_times,
};
use raddle_events::sources::open::{OpenOptions, OpenedSource, open};
use raddle_events::{
    ConvertOptions, Converted, EventsError, Serialization, SerializingSource, Source, convert_collective,
};
use raddle_merge::options::{Compress, Watch};
use serde::Serialize;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `raddle events bench`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// Source of events: random, test, empty, or a file whose first events are repeated from memory
    #[arg(long, value_name = "SOURCE", default_value = "random")]
    source: String,

    /// Number of events
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    events: u64,

    /// Number of products of random events
    #[arg(long, value_name = "N", default_value_t = 21)]
    products: usize,

    /// Mean length of random products, which are exponentially distributed
    #[arg(long, value_name = "SIZE", default_value = "286B")]
    product_size: Size,

    /// Number of events of a file to hold in memory
    #[arg(long, value_name = "N", default_value_t = 200)]
    repeat: u64,

    /// Layouts to write: null, columns, rntuple, product, event, batch, pds, and cce-product, cce-event, cce-batch
    #[arg(long, value_name = "LAYOUT", value_delimiter = ',', default_value = "null,columns,product,event,batch,pds")]
    sinks: Vec<String>,

    /// Numbers of threads to measure with
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2")]
    threads: Vec<NonZeroUsize>,

    /// Number of interleaved repetitions; the median is reported
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN.saturating_add(2))]
    rounds: NonZeroUsize,

    /// Time to wait for each event, in microseconds, to simulate algorithms
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    wait_event: u64,

    /// File with the time to wait for each event: whitespace-separated numbers of microseconds, repeated from the first
    /// when all are used
    #[arg(long, value_name = "FILE")]
    wait_file: Option<PathBuf>,

    /// Time to wait for each byte, in nanoseconds
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0)]
    wait_byte: u64,

    /// Length of a batch: a number of events, or a size such as 4MiB of products
    #[arg(long, value_name = "N|SIZE", default_value_t = Batch::Events(NonZeroU64::MIN.saturating_add(99)))]
    batch: Batch,

    /// Compression of HDF5.
    #[arg(short = 'c', long, value_name = "HOW", help = compression::EVENTS_HELP, default_value_t = Compress::default())]
    compress: Compress,

    /// Compression of packed data streams, RNTuples and the framework's layouts: none, lz4, zstd, zstd:1-22; for
    /// RNTuples also zlib, zlib:1-9
    #[arg(long, value_name = "CODEC", default_value_t = PdsCodec::Zstd(3).into())]
    codec: EventCodec,

    /// Folder for the files, which are removed afterwards [default: that of temporary files]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle events bench                                        10,000 random events of 21 products, all layouts
  raddle events bench --source run1.pds --sinks pds,batch --threads 1,2,4,8
  raddle events bench --products 1000 --events 1000 --sinks event,batch
  mpirun -n 4 raddle events bench --threads 1                4 ranks write each file together; a table of what each rank did

Times are those of the whole conversion, including syncing files to disk. read, prepare, encode and write are \
shares of the threads' time, as is metadata, the creation of objects by libhdf5 at the end. The rest is \
waiting for other threads and for the disk. For ranks, messages is the time in collectives, including waiting; \
part of it is also contained in the other columns.";

/// One measured conversion.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Layout.
    pub sink: String,
    /// Number of ranks that shared the events.
    pub number_of_ranks: usize,
    /// Number of threads of each rank.
    pub threads: usize,
    /// Length of the file.
    pub len_bytes: u64,
    /// Result of the round with the median time.
    #[serde(flatten)]
    pub converted: Converted,
}

/// Report of a measurement.
#[derive(Debug, Serialize)]
struct Medians<'a> {
    measured: &'a [Measured],
}

/// Collective. Measures every layout; the first rank reports.
pub fn run(arguments: &BenchArgs, team: &Ranks) -> Result<Exit, Failure> {
    let options =
        SinkOptions { batch: arguments.batch, compress: arguments.compress, chunk: None, codec: arguments.codec };
    let sinks = arguments.sinks.iter().map(|name| sink_of(name, &options)).collect::<Result<Vec<_>, _>>()?;
    let watching = Session::start_collective(team, &arguments.running, "events bench", [&arguments.source])?;
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

/// Folder of the measured files, created and removed by the first rank.
struct Folder {
    path: PathBuf,
    _made: Option<tempfile::TempDir>,
}

impl Folder {
    /// Collective. Creates a folder in `parent`, or in the folder of temporary files.
    fn make(parent: Option<&Path>, team: &Ranks) -> Result<Self, Failure> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let mut made = None;
        let paths = team.paths_of_first(|| {
            let folder = tempfile::tempdir_in(&parent).map_err(|cause| Failure::writing(&parent, &cause))?;
            Ok(vec![made.insert(folder).path().to_path_buf()])
        })?;
        Ok(Self { path: paths.into_iter().next().unwrap_or(parent), _made: made })
    }
}

/// Sink selected by its name on the command line.
pub(crate) struct SinkChoice {
    name: String,
    /// Layout; `None` for the null sink.
    pub(crate) layout: Option<EventLayoutArgs>,
}

/// Options shared by all sinks of a measurement.
pub(crate) struct SinkOptions {
    /// Length of a batch.
    pub(crate) batch: Batch,
    /// Compression of HDF5.
    pub(crate) compress: Compress,
    /// Length of an HDF5 chunk before compression.
    pub(crate) chunk: Option<Size>,
    /// Compression of formats other than HDF5.
    pub(crate) codec: EventCodec,
}

/// Returns the sink with this name.
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
                "available formats are null, columns, rntuple, product, event, batch, pds, cce-product, cce-event and cce-batch",
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
            let source = SerializingSource::new(OpenedSource::into_source(opened), Serialization::Root);
            return Ok(Box::new(CyclicSource::new(&source, arguments.repeat, events)?));
        }
    };
    // Held in memory, so that generating events is not measured.
    let kept = arguments.repeat.min(events);
    Ok(Box::new(CyclicSource::new(source.as_ref(), kept, events)?))
}

/// Wraps the source so that it waits as requested; `recorded` holds the times of individual events.
fn waiting(source: Box<dyn Source>, arguments: &BenchArgs, recorded: Vec<Duration>) -> Box<dyn Source> {
    let (event, byte) = (Duration::from_micros(arguments.wait_event), Duration::from_nanos(arguments.wait_byte));
    match event.is_zero() && byte.is_zero() && recorded.is_empty() {
        true => source,
        false => Box::new(ThrottledSource::new(source, event, byte).as_recorded(recorded)),
    }
}

/// Reads the event times from a file.
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
    (watch, team): (&Watch<'_>, &Ranks),
) -> Result<Measured, Failure> {
    let mut options = ConvertOptions { jobs: threads, ..ConvertOptions::default() };
    if let Some(memory) = arguments.running.execution.memory {
        options.memory_len_bytes = memory.0;
    }
    let (len_bytes, converted) = match &sink.layout {
        None => {
            let done = convert_collective(source, NullSink::default(), &options, &Silent, watch.cancel, team.ranks());
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

/// Returns a watch without progress bars, which would only flicker for many short conversions.
fn silent(cancel: &CancelToken) -> Watch<'_> {
    Watch { observer: &Silent, cancel }
}

/// Returns the round with the median time.
fn median(mut rounds: Vec<Measured>) -> Option<Measured> {
    rounds.sort_by(|a, b| a.converted.elapsed_s.total_cmp(&b.converted.elapsed_s));
    let middle = rounds.len() / 2;
    (!rounds.is_empty()).then(|| rounds.swap_remove(middle))
}
