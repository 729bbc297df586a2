//! `raddle keys add`: adds partition keys to an existing file.

use crate::command::print;
use crate::exit::Exit;
use crate::options::running::RuntimeArgs;
use crate::ranks::Ranks;
use crate::render::keys;
use crate::session::Session;
use raddle::Error;
use raddle::merge::key_warnings;
use raddle::options::KeyOptions;
use raddle_merge::keys::DerivedSpec;
use raddle_merge::keys::rewrite::{plan_rewrite_collective, write_collective};
use raddle_merge::options::MergeOptions;
use std::path::{Path, PathBuf};

/// Options of `raddle keys add`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct AddArgs {
    /// File to add keys to
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Id columns of the index group, most significant first; the last one gives the key its name
    #[arg(
        short,
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        default_value = "/spill/run,/spill/subrun,/spill/evt"
    )]
    keys: Vec<String>,

    #[command(flatten)]
    making: KeyOptions,

    /// Replace existing keys
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
  raddle keys add all.h5
      keys for /spill/run, /spill/subrun, /spill/evt
  raddle keys add all.h5 -k /spill/evt --key-scope input
      event numbers restart in each input
  raddle keys add all.h5 --key-skip '/neutrino*' --force

The new file is written next to the old one and replaces it when complete, so the disk must have space for \
both. Compressed data is copied as stored; the record of inputs and the digests are kept.";

/// Collective. Adds the keys.
pub fn run(arguments: &AddArgs, team: &Ranks) -> Result<Exit, Error> {
    let spec = DerivedSpec::Keys(arguments.making.spec(&arguments.keys, arguments.force));
    rewrite(&arguments.file, spec, arguments.dry_run, &arguments.running, "keys add", team)
}

/// Collective. Adds the datasets of `spec` to a file; used by `add` and `spill-index`.
pub(super) fn rewrite(
    file: &Path,
    spec: DerivedSpec,
    dry_run: bool,
    running: &RuntimeArgs,
    command: &str,
    team: &Ranks,
) -> Result<Exit, Error> {
    let mut options = MergeOptions::new(file);
    running.apply_to_rank(team.default_jobs(), &mut options);
    let inputs = [file.to_path_buf()];
    let session = Session::start_collective(team, &running.verbosity, command, [file])?;
    session.conclude(|watch| {
        let failed = |error| Error::of_merge(&error, &inputs);
        let plan = plan_rewrite_collective(file, spec, &options, watch, team.ranks()).map_err(failed)?;
        if team.leads() {
            key_warnings(&plan.derived).iter().for_each(|warning| session.warn(warning));
        }
        let written = match dry_run {
            true => None,
            false => write_collective(&plan, watch, team.ranks()).map_err(failed)?,
        };
        if !team.leads() {
            return Ok(Exit::Done);
        }
        if let Some(written) = &written {
            running.write_report(written)?;
        }
        if !running.verbosity.quiet {
            print(&keys::added(file, &plan, written.as_ref()))?;
        }
        Ok(Exit::Done)
    })
}
