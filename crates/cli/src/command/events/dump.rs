//! `raddle events dump`: prints the values of events, for people and for programs.

use crate::exit::Exit;
use crate::options::running::RuntimeArgs;
use crate::session::Session;
use raddle::Error;
use raddle_core::engine::default_jobs;
use raddle_core::report::progress::Silent;
use raddle_events::formats::WriteOptions;
use raddle_events::request::{EntryRange, OpenedInputs, Selection};
use raddle_events::sinks::{ValuesFormat, ValuesSink};
use raddle_events::{ConvertOptions, EventsError, convert};
use raddle_merge::options::Watch;
use serde::Serialize;
use std::io::BufWriter;
use std::path::PathBuf;

/// Options of `raddle events dump`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DumpArgs {
    /// File of events
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Range of events, counted from 0: 0..10, or 1000.. for the rest
    #[arg(long, value_name = "A..B", default_value = "..", hide_default_value = true)]
    entries: EntryRange,

    /// Products whose names match, for example 'Muon_*'; may be given several times [default: all]
    #[arg(long, alias = "branches", value_name = "GLOB")]
    products: Vec<String>,

    /// Tree or RNTuple of a ROOT file, for example Events or 'folder/Events;1' [default: Events, or the only one]
    #[arg(long, value_name = "NAME")]
    tree: Option<String>,

    /// Show products as the stored bytes instead of columns
    #[arg(long)]
    raw: bool,

    /// Read objects of ROOT trees as the bytes of whole objects, even if they are split into branches
    #[arg(long, conflicts_with = "raw")]
    whole: bool,

    /// Maximum number of items of a list, and of bytes of an object, shown without --json
    #[arg(long, value_name = "N", default_value_t = 20)]
    items: usize,

    /// Print a JSON object per event, one per line, with all values in full
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle events dump run1.root --entries 0..3
  raddle events dump run1.h5 --products 'Muon_*' --items 5
  raddle events dump run1.root --json | jq '.products.Muon_pt[0]'

With --json a line is {\"entry\": 0, \"id\": {\"run\": …, \"lumi\": …, \"event\": …}, \"products\": {…}}, without id where the file has none. \
Numbers that JSON cannot represent are \"NaN\", \"Infinity\" and \"-Infinity\"; bytes, and strings that are not UTF-8, are {\"bytes\": \"00ff\"} in \
hexadecimal digits.";

/// Totals of the printed events, for the report.
#[derive(Debug, Clone, Serialize)]
struct DumpedEvents {
    /// Number of events.
    events: u64,
    /// Number of products.
    products: u64,
}

/// Prints the events.
pub fn run(arguments: &DumpArgs) -> Result<Exit, Error> {
    let session = Session::start(&arguments.running.verbosity, "events dump", [&arguments.file])?;
    session.conclude(|watch| {
        let dumped = arguments.dump(watch)?;
        arguments.running.write_report(&dumped)?;
        Ok(Exit::Done)
    })
}

impl DumpArgs {
    fn dump(&self, watch: &Watch<'_>) -> Result<DumpedEvents, Error> {
        let Self { file, entries, products, tree, raw, whole, items, json, running } = self;
        let failed = |error: EventsError| match error {
            EventsError::Text { source } => Error::standard_output(source),
            error => Error::of_events(&error, None),
        };
        let (tree, products) = (tree.clone(), products.clone());
        let selection = Selection { tree, products, raw: *raw, whole: *whole, ..Selection::default() };
        let OpenedInputs { source, .. } = selection.open(&[file], &WriteOptions::default()).map_err(failed)?;
        let products = selection.matching(source.as_ref()).map_err(failed)?;
        let schema = source.schema().select(&products);
        let format = match json {
            true => ValuesFormat::JsonLines,
            false => ValuesFormat::Text { max_items: *items },
        };
        let options = ConvertOptions {
            entries: Some(entries.of(source.len_entries())),
            products: Some(products),
            // The text is several times as long as the values.
            batch_len_bytes: 256 << 10,
            ..running.resources(default_jobs()).options(1)
        };
        let sink = ValuesSink::new(BufWriter::new(std::io::stdout()), &schema, format);
        // Progress bars would be mixed with the printed lines.
        let (_, events) = convert(source.as_ref(), sink, &options, &Silent, watch.cancel).map_err(failed)?;
        Ok(DumpedEvents { events, products: schema.products.len() as u64 })
    }
}
