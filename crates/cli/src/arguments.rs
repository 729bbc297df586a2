//! The command line: commands and their help, nothing that acts.

use crate::command;
use crate::exit;
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
    about = "Many HDF5 files as they were produced in, the one file that should have existed out",
    long_about = "raddle writes the HDF5 file that should have existed: it takes the many small files that a detector, \
a simulation or a camera produced and concatenates their datasets along the first axis into one file, with chunks made \
for reading, at the speed of the machine, within a stated memory, and provably with the same values.\n\n\
Start with `raddle plan FOLDER`: it reads only metadata, shows what a merge would do and writes nothing. \
`raddle demo` shows everything on made-up data in a minute.",
    after_help = exit::HELP,
    styles = STYLES,
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show what merge would do: schema, differences between files, predicted size; writes nothing
    Plan(command::plan::PlanArgs),
    /// Merge many HDF5 files into one, dataset by dataset, along the first axis
    Merge(command::merge::MergeArgs),
    /// Append the rows of more files to a merged file, in place and as one step
    Append(command::append::AppendArgs),
    /// Rewrite one file with new chunks or another compression
    Rechunk(command::rechunk::RechunkArgs),
    /// Check that a merged file holds exactly what its inputs hold, or still holds what was written
    Verify(command::verify::VerifyArgs),
    /// Tell where the bytes of a file went, and what could be better
    Inspect(command::inspect::InspectArgs),
    /// Add, check and sort by partition keys: which rows of every table belong to which event
    Keys {
        /// What to do with them.
        #[command(subcommand)]
        command: command::keys::KeysCommand,
    },
    /// Write and read arrays in hierarchical Z order, which can be read at any resolution
    Idx {
        /// What to do.
        #[command(subcommand)]
        command: command::idx::IdxCommand,
    },
    /// Convert, inspect and merge files of HEP events: ROOT, packed data streams, HDF5
    Events {
        /// What to do with them.
        #[command(subcommand)]
        command: command::events::EventsCommand,
    },
    /// Measure HDF5 on this machine: which settings take how long, and what can be told
    Bench(command::bench::BenchArgs),
    /// Find the settings of HDF5 that help on this machine, and write them into a profile
    Tune(command::tune::TuneArgs),
    /// Start a program with settings of HDF5 that make it faster, without changing the program
    Apply(command::apply::ApplyArgs),
    /// Make a page with figures of what runs did, from their --report files
    Report(command::report::ReportArgs),
    /// Make NOvA-like files, merge and verify them, and compare with a loop in h5py
    Demo(command::demo::DemoArgs),
    /// Write a shell completion script to standard output
    #[command(hide = true)]
    Completions(command::completions::CompletionsArgs),
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Man(command::man::ManArgs),
}

impl Command {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Plan(_) => "plan",
            Self::Merge(_) => "merge",
            Self::Append(_) => "append",
            Self::Rechunk(_) => "rechunk",
            Self::Verify(_) => "verify",
            Self::Inspect(_) => "inspect",
            Self::Keys { .. } => "keys",
            Self::Idx { .. } => "idx",
            Self::Events { .. } => "events",
            Self::Bench(_) => "bench",
            Self::Tune(_) => "tune",
            Self::Apply(_) => "apply",
            Self::Report(_) => "report",
            Self::Demo(_) => "demo",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
        }
    }

    /// Whether ranks share its work; of any other, several would do the same at once.
    pub fn is_for_ranks(&self) -> bool {
        match self {
            Self::Plan(_)
            | Self::Merge(_)
            | Self::Append(_)
            | Self::Rechunk(_)
            | Self::Verify(_)
            | Self::Inspect(_) => true,
            Self::Keys { command } => command.is_for_ranks(),
            Self::Idx { command } => command.is_for_ranks(),
            Self::Events { command } => command.is_for_ranks(),
            _ => false,
        }
    }

    /// Whether every rank does it for itself: it becomes another program, which joins the others in its own way.
    pub fn is_each_rank_s(&self) -> bool {
        matches!(self, Self::Apply(_))
    }
}
