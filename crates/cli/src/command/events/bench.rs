//! `raddle events bench`: measures how fast events are written in each layout, in the same way as the framework's test
//! of its outputters.

use crate::command::print;
use crate::exit::Exit;
use crate::options::running::RuntimeArgs;
use crate::options::size::Size;
use crate::ranks::Ranks;
use crate::render::events;
use crate::session::Session;
use raddle::Error;
use raddle::options::compression::EVENTS_HELP;
use raddle_events::formats::{Batch, EventCodec, EventCompression};
use raddle_events::pds::PdsCodec;
use raddle_events::request::{BenchSink, MeasuredConversion};
use raddle_events::{BenchRequest, ColumnsError, EventsError};
use raddle_hdf5::Hdf5Error;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

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
    sinks: Vec<BenchSink>,

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
    #[arg(long, value_name = "N|SIZE", default_value_t = Batch::default())]
    batch: Batch,

    #[arg(short = 'c', long, value_name = "HOW", help = EVENTS_HELP, default_value_t = EventCompression::default())]
    compress: EventCompression,

    /// Compression of packed data streams, RNTuples and the framework's layouts: none, lz4, zstd, zstd:1-22; for
    /// RNTuples also zlib, zlib:1-9
    #[arg(long, value_name = "CODEC", default_value_t = PdsCodec::Zstd(3).into())]
    codec: EventCodec,

    /// Folder for the files, which are removed afterwards [default: the one for temporary files]
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
  raddle events bench
      10,000 random events of 21 products, all layouts
  raddle events bench --source run1.pds --sinks pds,batch --threads 1,2,4,8
  raddle events bench --products 1000 --events 1000 --sinks event,batch
  mpirun -n 4 raddle events bench --threads 1
      4 ranks write each file together; a table of what each rank did

Times are those of the whole conversion, including syncing files to disk. read, prepare, encode and write are \
shares of the threads' time, as is metadata, the creation of objects by libhdf5 at the end. The rest is \
waiting for other threads and for the disk. For ranks, messages is the time in collectives, including waiting; \
part of it is also contained in the other columns.";

/// Report of a measurement.
#[derive(Debug, Serialize)]
struct Medians<'a> {
    measured: &'a [MeasuredConversion],
}

/// Collective. Measures every layout; the first rank reports.
pub fn run(arguments: &BenchArgs, team: &Ranks) -> Result<Exit, Error> {
    let session = Session::start_collective(team, &arguments.running.verbosity, "events bench", [&arguments.source])?;
    session.conclude(|watch| {
        let medians = arguments.request().run(watch, team.ranks()).map_err(|error| arguments.failure(&error))?;
        if !team.leads() {
            return Ok(Exit::Done);
        }
        arguments.running.write_report(&Medians { measured: &medians })?;
        print(&if arguments.json { crate::render::json(&medians) } else { events::bench(&medians) })?;
        Ok(Exit::Done)
    })
}

impl BenchArgs {
    /// Converts an error. Every file except the source is an output.
    fn failure(&self, error: &EventsError) -> Error {
        let path = match error {
            EventsError::Columns(ColumnsError::Io { path, .. })
            | EventsError::Hdf5(Hdf5Error::Io { path, .. } | Hdf5Error::Library { path, .. }) => Some(path.as_path()),
            _ => None,
        };
        Error::of_events(error, path.filter(|path| *path != Path::new(&self.source)))
    }

    fn request(&self) -> BenchRequest {
        BenchRequest {
            source: self.source.clone(),
            events: self.events,
            products: self.products,
            product_size: self.product_size,
            repeat: self.repeat,
            sinks: self.sinks.clone(),
            threads: self.threads.clone(),
            rounds: self.rounds,
            wait_event: self.wait_event,
            wait_file: self.wait_file.clone(),
            wait_byte: self.wait_byte,
            batch: self.batch,
            compress: self.compress,
            codec: self.codec,
            folder: self.folder.clone(),
            memory: self.running.execution.memory,
        }
    }
}
