//! `raddle plan --simulate`: shows what each of many ranks would do.

use super::PlanArgs;
use crate::command::print;
use crate::exit::Exit;
use crate::options::simulation::SimulationParameters;
use crate::ranks::Ranks;
use crate::session::Session;
use raddle::Error;
use raddle_core::ranks::communicator::SingleProcess;
use raddle_demo::probe;
use raddle_merge::simulate::{Rates, SimulatedInputs, simulate};

/// Default rates: time of a core per object of an input, and of rank 0 per dataset and per chunk of the output, from
/// merging eight files of 16,000 datasets (docs/design/013). Message time and network bandwidth are those of common
/// clusters.
const USUAL: Rates = Rates {
    narrow_inflate_bytes_per_s: 0.0,
    narrow_deflate_bytes_per_s: 0.0,
    wide_inflate_bytes_per_s: 0.0,
    wide_deflate_bytes_per_s: 0.0,
    read_bytes_per_s: None,
    write_bytes_per_s: None,
    opens_per_s: None,
    network_bytes_per_s: 1e9,
    message_s: 5e-6,
    scan_object_s: 8e-6,
    commit_dataset_s: 62e-6,
    commit_chunk_s: 1.2e-6,
};

/// Simulates and prints the report.
pub(super) fn run(arguments: &PlanArgs, team: &Ranks) -> Result<Exit, Error> {
    let PlanArgs { request, standard_input, simulation, verbosity, json, .. } = arguments;
    let options = &request.options(team.default_jobs())?;
    let statistic = simulation.statistic()?;
    // Checked before anything that takes time.
    simulation.simulated(USUAL)?;
    let files = match statistic {
        Some(_) => Vec::new(),
        None => standard_input.expand(&request.inputs)?,
    };
    let session = Session::start(verbosity, "plan", &files)?;
    session.conclude(|watch| {
        let files = request.sorting.sort_collective(files, options, watch, &SingleProcess)?;
        let of_codec =
            |error| Error::of_merge(&raddle_merge::MergeError::Codec { object: "a probe".into(), source: error }, &[]);
        let narrow = probe::narrow(options.compress.compression()).map_err(of_codec)?;
        let wide = probe::wide(options.compress.compression()).map_err(of_codec)?;
        let SimulationParameters { machine, files: count, strategy } = simulation.simulated(Rates {
            narrow_inflate_bytes_per_s: narrow.inflate_bytes_per_s,
            narrow_deflate_bytes_per_s: narrow.deflate_bytes_per_s,
            wide_inflate_bytes_per_s: wide.inflate_bytes_per_s,
            wide_deflate_bytes_per_s: wide.deflate_bytes_per_s,
            ..USUAL
        })?;
        let simulated = statistic.map_or(SimulatedInputs::Files(&files), SimulatedInputs::Stated);
        let done = simulate(simulated, count, machine, strategy, options, watch);
        let done = done.map_err(|error| Error::of_merge(&error, &files))?;
        verbosity.write_report(&done)?;
        match *json {
            true => print(&crate::render::json(&done))?,
            false => print(&crate::render::simulation::text(&done))?,
        }
        Ok(Exit::Done)
    })
}
