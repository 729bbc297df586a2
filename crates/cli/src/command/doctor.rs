//! `raddle doctor`: shows what this machine and this raddle have and lack.

use super::print;
use crate::doctor::{self, Report};
use crate::exit::Exit;
use crate::ranks::Ranks;
use crate::render;
use raddle::Error;
use std::path::PathBuf;

/// Options of `raddle doctor`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Folder in which to try what raddle does with outputs; nothing remains in it
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  raddle doctor
      this build, the machine, and the current folder
  raddle doctor --folder /scratch/me
      whether outputs can be written there
  mpirun -n 4 raddle doctor
      how ranks are started; only with a raddle that is built with MPI

Each line has a mark. ok: as it should be. note: usable, but worth knowing. missing: the line names what needs \
it, and how to get it; everything else works. broken: raddle cannot work without it, and the exit code gives \
its kind: 5 for the folder, 6 for open files, 2 for environment variables. The \
command of the Python package also lists the Python packages with which it works.";

/// Collective. Collects the report; the first rank prints it.
pub fn run(arguments: &DoctorArgs, team: &Ranks) -> Result<Exit, Error> {
    if !team.leads() {
        return Ok(Exit::Done);
    }
    let report = Report::of(&arguments.folder, team, doctor::added_sections());
    print(&if arguments.json { render::json(&report) } else { render::doctor::text(&report) })?;
    Ok(Exit::of_code(report.exit_code))
}
