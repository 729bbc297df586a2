//! `raddle keys`: partition keys of files, one file per subcommand.

pub mod add;
pub mod check;
pub mod events;
pub mod partition;
pub mod sort;
pub mod spill_index;

use crate::exit::Exit;
use crate::ranks::Ranks;
use raddle::Error;

/// Commands of `raddle keys`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum KeysCommand {
    /// Add NAME.seq, NAME.seq_cnt and NAME.offsets to every group of a file that has the ids
    Add(add::AddArgs),
    /// Add a column with the first value of another dataset to the index group
    SpillIndex(spill_index::SpillIndexArgs),
    /// Check that the key of the index group is 0, 1, 2, … and that no other key decreases
    Check(check::CheckArgs),
    /// Print which rows of every table each of several readers takes, without reading a key column
    Partition(partition::PartitionArgs),
    /// Print the sizes of events: minimum, median, maximum, a histogram
    Events(events::EventsArgs),
    /// List files sorted by the first values of some of their datasets
    Sort(sort::SortArgs),
}

impl KeysCommand {
    /// Returns whether ranks can share the work.
    pub fn is_for_ranks(&self) -> bool {
        matches!(self, Self::Add(_) | Self::SpillIndex(_))
    }
}

/// Runs a subcommand; collective if ranks share the work.
pub fn run(command: &KeysCommand, team: &Ranks) -> Result<Exit, Error> {
    match command {
        KeysCommand::Add(arguments) => add::run(arguments, team),
        KeysCommand::SpillIndex(arguments) => spill_index::run(arguments, team),
        KeysCommand::Check(arguments) => check::run(arguments),
        KeysCommand::Partition(arguments) => partition::run(arguments),
        KeysCommand::Events(arguments) => events::run(arguments),
        KeysCommand::Sort(arguments) => sort::run(arguments),
    }
}
