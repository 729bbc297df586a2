//! `raddle events`: converts HEP events between ROOT files, packed data streams and HDF5; one file per subcommand.

pub mod bench;
pub mod convert;
pub mod dump;
pub mod inspect;
pub mod merge;

use crate::exit::Exit;
use crate::ranks::Ranks;
use raddle::Error;

/// Commands of `raddle events`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum EventsCommand {
    /// Write the events of ROOT files, packed data streams or HDF5 files in another layout
    Convert(convert::ConvertArgs),
    /// Show the contents of an event file: format, layout, products, sizes
    Inspect(inspect::InspectArgs),
    /// Print the values of events as text or JSON
    Dump(dump::DumpArgs),
    /// Concatenate the events of several files with the same layout
    Merge(merge::MergeArgs),
    /// Measure how fast events are written in each layout
    Bench(bench::BenchArgs),
}

impl EventsCommand {
    /// Returns whether ranks share the work.
    pub fn is_for_ranks(&self) -> bool {
        matches!(self, Self::Convert(_) | Self::Merge(_) | Self::Bench(_))
    }
}

/// Runs a subcommand. Collective for the subcommands that ranks share.
pub fn run(command: &EventsCommand, team: &Ranks) -> Result<Exit, Error> {
    match command {
        EventsCommand::Convert(arguments) => convert::run(arguments, team),
        EventsCommand::Inspect(arguments) => inspect::run(arguments),
        EventsCommand::Dump(arguments) => dump::run(arguments),
        EventsCommand::Merge(arguments) => merge::run(arguments, team),
        EventsCommand::Bench(arguments) => bench::run(arguments, team),
    }
}
