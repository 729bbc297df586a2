//! `raddle keys spill-index`: adds an id that is constant in a file as a column of the index group.

use crate::exit::Exit;
use crate::options::running::RuntimeArgs;
use crate::ranks::Ranks;
use raddle::Error;
use raddle_merge::keys::DerivedSpec;
use raddle_merge::keys::FirstValueSpec;
use std::path::PathBuf;

/// Options of `raddle keys spill-index`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SpillIndexArgs {
    /// Dataset whose first value is used
    #[arg(value_name = "DATASET")]
    dataset: String,

    /// File to add the column to
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Group with one row per event
    #[arg(long, value_name = "PATH", default_value = "/spill")]
    group: String,

    /// Replace the column if it exists
    #[arg(short, long)]
    force: bool,

    /// Show what would be added without writing anything
    #[arg(short = 'n', long)]
    dry_run: bool,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle keys spill-index /rec.hdr/cycle run11981.h5
      /spill/cycle, filled with the first value of /rec.hdr/cycle

A warning reports where the dataset has other values. The file is replaced as by raddle keys add.";

/// Collective. Adds the column.
pub fn run(arguments: &SpillIndexArgs, team: &Ranks) -> Result<Exit, Error> {
    let spec = DerivedSpec::FirstValue(FirstValueSpec {
        dataset: arguments.dataset.clone(),
        group: arguments.group.clone(),
        replace: arguments.force,
    });
    super::add::rewrite(&arguments.file, spec, arguments.dry_run, &arguments.running, "keys spill-index", team)
}
