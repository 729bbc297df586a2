//! `raddle idx write`: writes arrays to a dataset that can be read at any resolution, or to an OME-Zarr folder with
//! levels.

use super::target::TargetArgs;
use super::tuning::{Subject, TriedSetting, apply_ranks, save, tune};
use crate::command::print;
use crate::exit::Exit;
use crate::options::running::RuntimeArgs;
use crate::ranks::Ranks;
use crate::render::targets;
use crate::session::Session;
use raddle::Error;
use raddle::arrays::{self, ArraySource, file_of};
use raddle_idx::WriteReport;
use raddle_idx::inputs::{FinishedOutput, InputWrite};
use raddle_idx::request::{AxisRange, InputRequest};
use raddle_idx::targets::{format_of, target};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Options of `raddle idx write`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct WriteArgs {
    /// FILE.h5:/DATASET, FILE.npy, raw files with --shape and --dtype, or one IDX dataset NAME.idx
    #[arg(value_name = "INPUT", required = true)]
    pub(super) inputs: Vec<String>,

    #[command(flatten)]
    pub(super) target: TargetArgs,

    /// First write the first time step in several ways, and use the fastest; =FILE saves the result in a profile
    ///
    /// Covers box, blocks per file and aggregators, unless an option or profile sets them. Takes as long as about ten
    /// to fifty writes of a time step, in a hidden folder next to the output.
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, require_equals = true, conflicts_with = "append", help_heading = "Layout")]
    tune: Option<Option<PathBuf>>,

    /// Write the inputs into a box of an existing dataset: ranges of samples per axis, end excluded; other axes are
    /// whole
    ///
    /// The inputs are fields of the dataset, named with --name, and have the shape of the box; --step selects the time
    /// step. Other samples and fields are kept, and the step is replaced atomically. The layout of the dataset is used.
    #[arg(
        long,
        value_name = "x=0:64,z=5:9",
        value_delimiter = ',',
        conflicts_with_all = [
            "force", "append", "tune", "format", "compress", "order", "bitmask", "bits_per_block", "blocks_per_file",
            "split_vectors", "phases", "box_size", "profile"
        ]
    )]
    pub(super) into: Vec<AxisRange>,

    #[command(flatten)]
    pub(super) arrays: InputRequest,

    #[command(flatten)]
    pub(super) running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx write run.h5:/rho -o rho.idx
      one dataset, one field
  raddle idx write rho.npy v.npy -o flow.idx --name rho,v
      two fields
  raddle idx write v.npy -o v.idx --vector
      the last axis holds the components
  raddle idx write t*.raw -o t.idx --as steps --shape 64x128x128 --dtype float32
  raddle idx write run.h5:/rho -o rho.zarr
      an OME-Zarr folder of several levels
  raddle idx write old.idx -o new.idx -c lz4 --crop z=0:64
      a part of a dataset, with different compression
  raddle idx write part.npy -o rho.idx --name rho --into z=8:16
      replace the samples of a part
  mpirun -n 4 raddle idx write run.h5:/rho -o rho.idx
      each rank reads and writes its share

The slowest axis of an array is the last one in IDX: a[z, y, x] has x as axis 0. The time steps of a run \
appear one by one, each complete; in an OME-Zarr folder they form axis t, and the folder appears when all are \
written. Each process or rank holds its share of one time step in memory.";

/// Collective. Writes the dataset.
pub fn run(arguments: &WriteArgs, team: &Ranks) -> Result<Exit, Error> {
    let inputs = arguments.inputs.iter().map(|input| file_of(input));
    let files = inputs.chain([arguments.target.request.output.as_path()]);
    let session = Session::start_collective(team, &arguments.running.verbosity, "idx write", files)?;
    session.conclude(|watch| {
        let opened = arrays::open(&arguments.arrays, &arguments.inputs, &arguments.running.execution.reader);
        let inputs = team.agree("open the inputs", opened)?;
        if !arguments.into.is_empty() {
            return arguments.update(&inputs, team, watch);
        }
        let checked = inputs.check_output(&arguments.target.request).map_err(Error::from);
        team.agree("look at the output", checked)?;
        let mut request = team.agree("read the profile", arguments.target.request(&arguments.running))?;
        inputs.complete(&mut request);
        let write = InputWrite {
            inputs: &inputs,
            request: &request,
            default_jobs: team.default_jobs(),
            watch,
            ranks: team.ranks(),
        };
        let (written, tuned) = match &arguments.tune {
            Some(profile) => tune_and_write(&write, profile.as_deref(), team)?,
            None => (write.write_collective()?, Vec::new()),
        };
        if team.leads() {
            arguments.running.write_report(&Steps { steps: &written.reports, tuned: &tuned })?;
            if !arguments.running.verbosity.quiet {
                print(&format!("{}{}", lines(&tuned), targets::written(&written)))?;
            }
        }
        Ok(Exit::Done)
    })
}

/// Collective. Writes the first time step in several ways, then all time steps in the fastest.
fn tune_and_write(
    write: &InputWrite<'_, ArraySource>,
    profile: Option<&Path>,
    team: &Ranks,
) -> Result<(FinishedOutput, Vec<TriedSetting>), Error> {
    let InputWrite { inputs, request, watch, .. } = *write;
    let options = write.options()?;
    let header = target(format_of(request)).header_of_trials(request, &inputs.field_set())?;
    let Some((step, of_step)) = inputs.layout.steps.first() else {
        return Ok((write.write_steps(options, None)?, Vec::new()));
    };
    let patches = write.read_collective(of_step.clone())?;
    let fields = inputs.layout.fields.as_slice();
    let subject = Subject { header: &header, fields, options: &options, step: *step, patches: &patches };
    let found = tune(request, &subject, team, watch)?;
    let saved = match profile {
        Some(path) if team.leads() => save(path, &found.tried, &request.output),
        _ => Ok(()),
    };
    team.agree("write the profile", saved)?;
    let options = apply_ranks(&found.request, options, header.rank)?;
    let write = InputWrite { request: &found.request, ..*write };
    Ok((write.write_steps(options, Some(patches))?, found.tried))
}

/// Report of a run: one entry per time step, or a single one for a dataset without steps.
#[derive(Debug, Serialize)]
struct Steps<'a> {
    steps: &'a [WriteReport],
    /// Settings tried first, with --tune.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tuned: &'a [TriedSetting],
}

/// Formats the tried settings, one per line.
fn lines(tuned: &[TriedSetting]) -> String {
    let line = |of: &TriedSetting| {
        let measured = of.ratio.zip(of.interval).map_or(String::new(), |(ratio, [low, high])| {
            format!(": {ratio:.2} times as long ({low:.2} to {high:.2}, {} blocks)", of.blocks)
        });
        let taken = if of.is_taken { ", taken" } else { "" };
        format!("{} {}: {}{taken}{measured}\n", of.option.name().replace('_', " "), of.value, of.verdict.words())
    };
    tuned.iter().map(line).collect()
}
