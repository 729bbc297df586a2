//! `raddle events inspect`: shows the contents of a file of events.

use super::output::{convert_options, mean_len_bytes};
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::running::RuntimeArgs;
use crate::render::events;
use crate::session::Session;
use raddle_core::engine::default_jobs;
use raddle_events::sinks::SizesSink;
use raddle_events::sources::open::{OpenOptions, OpenedSource, open};
use raddle_events::{Product, convert};
use raddle_merge::options::Watch;
use serde::Serialize;
use std::path::PathBuf;

/// Options of `raddle events inspect`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct InspectArgs {
    /// File to inspect
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Tree or RNTuple of a ROOT file, for example Events or 'folder/Events;1' [default: Events, or the only one]
    #[arg(long, value_name = "NAME")]
    tree: Option<String>,

    /// Show products as the stored bytes instead of columns
    #[arg(long)]
    raw: bool,

    /// Read objects of ROOT trees as the bytes of whole objects, even if they are split into branches
    #[arg(long, conflicts_with = "raw")]
    whole: bool,

    /// Read all events and show the size of each product
    #[arg(long)]
    sizes: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle events inspect run1.root            products with classes and types
  raddle events inspect run1.h5 --sizes      also their mean sizes
  raddle events inspect run1.pds --json | jq '.products[].name'";

/// Contents of a file of events.
#[derive(Debug, Clone, Serialize)]
pub struct EventsInspection {
    /// Path of the file.
    pub file: String,
    /// Format and layout, as text.
    pub format: String,
    /// Number of events.
    pub events: u64,
    /// Mean length of an event in memory.
    pub mean_len_bytes: u64,
    /// Products.
    pub products: Vec<InspectedProduct>,
    /// Branches that are not products, because they have no data or a different number of entries.
    pub unread: Vec<String>,
}

/// A product.
#[derive(Debug, Clone, Serialize)]
pub struct InspectedProduct {
    /// Name, class and form.
    #[serde(flatten)]
    pub product: Product,
    /// Form of the product, as text.
    pub r#type: String,
    /// Total length of its values in memory, if requested.
    pub len_bytes: Option<u64>,
    /// Reason why it is read as bytes instead of columns, if it had to be.
    pub as_bytes: Option<String>,
}

/// Inspects a file and prints the result.
pub fn run(arguments: &InspectArgs) -> Result<Exit, Failure> {
    let InspectArgs { json, running, .. } = arguments;
    let watching = Session::start(running, "events inspect", [&arguments.file])?;
    watching.conclude(|watch| {
        let inspection = arguments.inspect(watch)?;
        running.write_report(&inspection)?;
        print(&if *json { crate::render::json(&inspection) } else { events::inspection(&inspection) })?;
        Ok(Exit::Done)
    })
}

impl InspectArgs {
    /// Inspects the file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn inspect(&self, watch: &Watch<'_>) -> Result<EventsInspection, Failure> {
        let Self { file, tree, raw, whole, sizes, running, .. } = self;
        let failed = |error| Failure::of_events(&error, None);
        let opened = open(file, &OpenOptions { tree: tree.clone(), raw: *raw, whole: *whole }).map_err(failed)?;
        let source = opened.source();
        let mut inspection = EventsInspection {
            file: file.to_string_lossy().into_owned(),
            format: events::format_of(&opened),
            events: source.len_entries(),
            mean_len_bytes: mean_len_bytes(source),
            products: source.schema().products.iter().map(inspected).collect(),
            unread: Vec::new(),
        };
        if let OpenedSource::Tree(tree) = &opened {
            inspection.unread = tree.unread().iter().map(ToString::to_string).collect();
            for (unknown, why) in tree.unknown() {
                let found = inspection.products.iter_mut().find(|inspected| inspected.product.name == unknown.name);
                found.into_iter().for_each(|inspected| inspected.as_bytes = Some(why.clone()));
            }
        }
        if let OpenedSource::Whole(tree) = &opened {
            inspection.unread = tree.unread().iter().map(ToString::to_string).collect();
            inspection.unread.extend(tree.refused().map(|(product, why)| format!("{}: {why}", product.name)));
        }
        if let OpenedSource::Ntuple(ntuple) = &opened {
            inspection.unread = ntuple.unread().to_vec();
        }
        if *sizes {
            let sink = SizesSink::new(source.schema());
            let (_, lengths) =
                convert(source, sink, &convert_options(running, default_jobs()), watch.observer, watch.cancel)
                    .map_err(failed)?;
            let products = inspection.products.iter_mut().zip(lengths);
            products.for_each(|(product, len_bytes)| product.len_bytes = Some(len_bytes));
        }
        Ok(inspection)
    }
}

fn inspected(product: &Product) -> InspectedProduct {
    InspectedProduct { product: product.clone(), r#type: product.form.to_string(), len_bytes: None, as_bytes: None }
}
