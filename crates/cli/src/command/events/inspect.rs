//! `raddle events inspect`: shows the contents of an event file.

use crate::command::print;
use crate::exit::Exit;
use crate::options::running::RuntimeArgs;
use crate::render::events;
use crate::session::Session;
use raddle::Error;
use raddle_core::engine::default_jobs;
use raddle_events::InspectRequest;
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

/// Inspects a file and prints the result.
pub fn run(arguments: &InspectArgs) -> Result<Exit, Error> {
    let InspectArgs { file, tree, raw, whole, sizes, json, running } = arguments;
    let session = Session::start(&running.verbosity, "events inspect", [file])?;
    session.conclude(|watch| {
        let request = InspectRequest {
            file: file.clone(),
            tree: tree.clone(),
            raw: *raw,
            whole: *whole,
            sizes: *sizes,
            resources: running.resources(default_jobs()),
        };
        let inspection = request.run(watch).map_err(|error| Error::of_events(&error, None))?;
        running.write_report(&inspection)?;
        print(&if *json { crate::render::json(&inspection) } else { events::inspection(&inspection) })?;
        Ok(Exit::Done)
    })
}
