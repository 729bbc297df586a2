//! `raddle bench`: measures the settings that a workload compares, and reports verdicts.

use super::print;
use crate::exit::Exit;
use crate::options::measuring::MeasurementArgs;
use crate::options::running::VerbosityArgs;
use crate::planned;
use crate::render::{self, measurement, summary};
use crate::session::Session;
use crate::text_file::NO_FILES;
use raddle::Error;
use raddle_tune::workload::{Scale, Workload, preset_names};

/// Options of `raddle bench`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// Workload to measure: one of raddle's (see --list) or a TOML file
    #[arg(default_value = "tables")]
    workload: String,

    /// List raddle's workloads with their experiments
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    measuring: MeasurementArgs,

    /// Also predict tables of numbers for the process counts of the paper
    #[arg(long)]
    simulate: bool,

    /// Print the result as JSON, with every run
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    verbosity: VerbosityArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle bench --list
      what can be measured
  raddle bench occam-2005 --only chunk-gzip --scale tiny
      one experiment, in seconds
  raddle bench pidx-sc12 --scale tiny
      all figures of a paper, next to its own numbers
  raddle bench battle-layout --scratch /scratch --sync --report run.json \\
    && raddle report run.json
  raddle bench tables --hdf5 libhdf5_serial.so.103
      an HDF5 other than raddle's own

Every run is a separate process. Runs are organised in blocks in which every setting is measured once, in \
random order; a setting is compared with the default in the same blocks. A ratio below 1 means less time. If \
runs vary too much, the verdict is: cannot tell.";

/// Measures the workload and prints the result.
pub fn run(arguments: &BenchArgs) -> Result<Exit, Error> {
    if arguments.list {
        let all = preset_names().into_iter().map(|name| Workload::named(name, Scale::Small));
        let all = all.collect::<Result<Vec<_>, _>>().map_err(|error| Error::of_tune(&error))?;
        print(&measurement::workloads(&all))?;
        return Ok(Exit::Done);
    }
    let workload = arguments.measuring.workload(&arguments.workload)?;
    let session = Session::start(&arguments.verbosity, "bench", NO_FILES)?;
    session.conclude(|watch| {
        let planned = planned::carry_out(&workload.planned, arguments.simulate, watch.cancel)?;
        let mut done = arguments.measuring.measure(&workload, None, &session, watch)?;
        done.planned = planned;
        arguments.verbosity.write_report(&done)?;
        print(&if arguments.json {
            render::json(&done)
        } else {
            measurement::text(&done, arguments.measuring.max_blocks()) + &summary::text(&done)
        })?;
        Ok(Exit::Done)
    })
}
