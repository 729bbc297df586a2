//! Command line: commands and their help, without any actions.

use crate::command;
use crate::exit;
use crate::ranks::RankUse;
use clap::builder::styling::{AnsiColor, Styles};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// The whole command line.
#[derive(Debug, clap::Parser)]
#[command(
    name = "raddle",
    version,
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    override_usage = "raddle <COMMAND>\n       raddle --version [--verbose]",
    about = "Merge many HDF5 files into one file optimised for reading",
    long_about = "raddle merges the many small HDF5 files that a detector, a simulation or a camera produces into one file: \
it concatenates their datasets along the first axis and stores them in chunks laid out for reading, \
at hardware speed, within a fixed memory budget, and verifiably lossless.\n\n\
Start with `raddle plan FOLDER`: it reads metadata and a sample of the values, and shows what a merge would do, without writing anything. \
`raddle demo` merges and verifies generated files in a minute. \
`raddle doctor` shows what this machine has and lacks.",
    after_help = exit::HELP,
    styles = STYLES,
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Arguments {
    /// Print version
    #[arg(short = 'V', long)]
    pub version: bool,

    /// With --version, also print how this program was built and the libraries that it contains
    #[arg(short, long, requires = "version")]
    pub verbose: bool,

    /// Command to run; `None` only with --version.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// All commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show what merge would do (schema, differences between files, predicted size) without writing anything
    Plan(command::plan::PlanArgs),
    /// Merge many HDF5 files into one, dataset by dataset, along the first axis
    Merge(command::merge::MergeArgs),
    /// Append the rows of more files to a merged file, in place and atomically
    Append(command::append::AppendArgs),
    /// Rewrite files with new chunks or different compression
    Rechunk(command::rechunk::RechunkArgs),
    /// Merge files into several: one file per variable, or files of limited length
    Split(command::split::SplitArgs),
    /// Write the events of a file that satisfy conditions, with their rows in all tables
    Select(command::select::SelectArgs),
    /// Check that a merged file holds exactly the data of its inputs, or still holds what was written
    Verify(command::verify::VerifyArgs),
    /// Show how the bytes of a file are used, and what could be improved
    Inspect(command::inspect::InspectArgs),
    /// Write an index of a file, which lets searches skip blocks of rows
    Index(command::index::IndexArgs),
    /// Run an SQL query on tables of files; only with the Python package
    Sql(command::sql::SqlArgs),
    /// Add, check and sort by partition keys: which rows of every table belong to which event
    Keys {
        /// Subcommand.
        #[command(subcommand)]
        command: command::keys::KeysCommand,
    },
    /// Write and read arrays in hierarchical Z order, for reading at any resolution
    Idx {
        /// Subcommand.
        #[command(subcommand)]
        command: command::idx::IdxCommand,
    },
    /// Convert, inspect and merge files of HEP events: ROOT, packed data streams, HDF5
    Events {
        /// Subcommand.
        #[command(subcommand)]
        command: command::events::EventsCommand,
    },
    /// Benchmark HDF5 settings on this machine
    Bench(command::bench::BenchArgs),
    /// Find the HDF5 settings that help on this machine and write them to a profile
    Tune(command::tune::TuneArgs),
    /// Run a program with HDF5 settings that make it faster, without changing the program
    Apply(command::apply::ApplyArgs),
    /// Create a page with figures from the --report files of runs
    Report(command::report::ReportArgs),
    /// Generate NOvA-like files, merge and verify them, and compare with an h5py loop
    Demo(command::demo::DemoArgs),
    /// Show what this machine has and lacks, and how to get what is missing
    Doctor(command::doctor::DoctorArgs),
    /// Check that raddle works on this machine, with generated files
    SelfTest(command::self_test::SelfTestArgs),
    /// Write a shell completion script to standard output
    Completions(command::completions::CompletionsArgs),
    /// Write the manual pages to a folder
    Man(command::man::ManArgs),
    /// Print the licences of the software that this program contains
    Licenses,
}

impl Command {
    /// Returns what the command does with several ranks.
    pub fn rank_use(&self) -> RankUse {
        let is_shared = match self {
            Self::Apply(_) => return RankUse::Independent,
            Self::Plan(_)
            | Self::Merge(_)
            | Self::Append(_)
            | Self::Rechunk(_)
            | Self::Select(_)
            | Self::Verify(_)
            | Self::Inspect(_)
            | Self::Doctor(_) => true,
            Self::Keys { command } => command.is_for_ranks(),
            Self::Idx { command } => command.is_for_ranks(),
            Self::Events { command } => command.is_for_ranks(),
            _ => false,
        };
        if is_shared { RankUse::Shared } else { RankUse::OneProcess }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Columns of a narrow terminal.
    const MIN_COLUMNS: usize = 80;

    #[test]
    fn indented_lines_of_help_are_not_wrapped() {
        let mut commands = vec![Arguments::command()];
        let mut indented = 0;
        while let Some(command) = commands.pop() {
            let epilogue = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in epilogue.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= MIN_COLUMNS, "{}: {line}", command.get_name());
                indented += 1;
            }
            commands.extend(command.get_subcommands().cloned());
        }
        assert!(indented > 100, "{indented} lines");
    }

    #[test]
    fn every_command_is_listed() {
        let hidden: Vec<_> = Arguments::command()
            .get_subcommands()
            .filter(|command| command.is_hide_set())
            .map(|command| command.get_name().to_owned())
            .collect();
        assert!(hidden.is_empty(), "{hidden:?}");
    }
}
