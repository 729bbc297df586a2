//! `raddle events`: HEP events between ROOT files, packed data streams and HDF5, one file per subcommand.

pub mod bench;
pub mod convert;
pub mod dump;
pub mod inspect;
pub mod merge;
pub mod output;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::team::Team;

/// Commands of `raddle events`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum EventsCommand {
    /// Write the events of ROOT files, packed data streams or HDF5 files in another layout
    Convert(convert::ConvertArgs),
    /// Tell what a file of events holds: format, layout, products, sizes
    Inspect(inspect::InspectArgs),
    /// Print the values of events, as text or JSON
    Dump(dump::DumpArgs),
    /// Put the events of several files of one layout into one file
    Merge(merge::MergeArgs),
    /// Measure how fast events are written in each layout
    Bench(bench::BenchArgs),
}

impl EventsCommand {
    /// Whether ranks share the work.
    pub fn is_for_ranks(&self) -> bool {
        matches!(self, Self::Convert(_) | Self::Merge(_) | Self::Bench(_))
    }
}

/// Collective for the commands that ranks share. Runs one of them.
pub fn run(command: &EventsCommand, team: &Team) -> Result<Exit, Failure> {
    match command {
        EventsCommand::Convert(arguments) => convert::run(arguments, team),
        EventsCommand::Inspect(arguments) => inspect::run(arguments),
        EventsCommand::Dump(arguments) => dump::run(arguments),
        EventsCommand::Merge(arguments) => merge::run(arguments, team),
        EventsCommand::Bench(arguments) => bench::run(arguments, team),
    }
}
