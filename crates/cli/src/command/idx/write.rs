//! `raddle idx write`: writes arrays to a dataset that can be read at any resolution, or to an OME-Zarr folder with
//! levels.

use super::inputs::{ArrayArgs, Inputs};
use super::place::{Along, along};
use super::target::{TargetArgs, WrittenDataset};
use super::tuning::{Subject, Tried, save, tune};
use crate::arrays::{WholeFields, file_of};
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::running::RuntimeArgs;
use crate::ranks::Ranks;
use crate::render::{idx, quantity, zarr};
use crate::session::Session;
use raddle_core::report::progress::{Event, Stage, Watch};
use raddle_idx::{BlockSource, BoxData, IdxError, WriteOptions, WriteReport};
use serde::Serialize;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

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
        value_parser = along,
        conflicts_with_all = [
            "force", "append", "tune", "format", "compress", "order", "bitmask", "bits_per_block", "blocks_per_file",
            "split_vectors", "phases", "imposed", "profile"
        ]
    )]
    pub(super) into: Vec<Along>,

    #[command(flatten)]
    pub(super) arrays: ArrayArgs,

    #[command(flatten)]
    pub(super) running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle idx write run.h5:/rho -o rho.idx                    one dataset, one field
  raddle idx write rho.npy v.npy -o flow.idx --name rho,v    two fields
  raddle idx write v.npy -o v.idx --vector                   the last axis holds the components
  raddle idx write t*.raw -o t.idx --as steps --shape 64x128x128 --dtype float32
  raddle idx write run.h5:/rho -o rho.zarr                   an OME-Zarr folder of several levels
  raddle idx write old.idx -o new.idx -c lz4 --crop z=0:64   a part of a dataset, with different compression
  raddle idx write part.npy -o rho.idx --name rho --into z=8:16    replace the samples of a part
  mpirun -n 4 raddle idx write run.h5:/rho -o rho.idx        each rank reads and writes its share

The slowest axis of an array is the last one in IDX: a[z, y, x] has x as axis 0. The time steps of a run \
appear one by one, each complete; in an OME-Zarr folder they form axis t, and the folder appears when all are \
written. Each process or rank holds its share of one time step in memory.";

/// Collective. Writes the dataset.
pub fn run(arguments: &WriteArgs, team: &Ranks) -> Result<Exit, Failure> {
    let inputs = arguments.inputs.iter().map(|input| file_of(input));
    let files = inputs.chain([arguments.target.output()]);
    let watching = Session::start_collective(team, &arguments.running, "idx write", files)?;
    watching.conclude(|watch| {
        if !arguments.into.is_empty() {
            return arguments.update(team, watch);
        }
        let opened = arguments.arrays.open(&arguments.inputs, &arguments.running.execution.reader);
        let inputs = team.agree("open the inputs", opened)?;
        let numbers = || inputs.steps.iter().filter_map(|(step, _)| *step);
        let steps = numbers().min().zip(numbers().max());
        team.agree("look at the output", arguments.check_output(&inputs))?;
        let mut target = team.agree("read the profile", arguments.target.with_profile())?;
        target.set_others(&inputs.others);
        if let Some(whole) = &inputs.whole {
            target.set_layout_of(whole.dataset.header());
        }
        let ranks = team.ranks();
        if let Some(whole) = inputs.whole.as_ref().filter(|_| arguments.tune.is_none()) {
            let options = target.options(&arguments.running, team.default_jobs(), inputs.counts.len());
            let begun = options.and_then(|options| target.begin(&inputs.counts, &inputs.fields, steps, options));
            let mut output = team.agree("begin the output", begun)?;
            if output.has_blocks_of(&arguments.blocks_of(whole, None)) {
                let mut reports = Vec::new();
                for (step, _) in &inputs.steps {
                    let written = output.rewrite_collective(*step, &arguments.blocks_of(whole, *step), watch, ranks);
                    reports.push(written.map_err(|error| Failure::of_idx(&error))?);
                }
                let written = output.finish(reports.last_mut(), ranks).map_err(|error| Failure::of_idx(&error))?;
                if team.leads() {
                    tell(arguments, &written, &reports, &[])?;
                }
                return Ok(Exit::Done);
            }
        }
        let rows = share(inputs.rows(), ranks.rank(), ranks.size());
        let held_len_bytes = inputs.held_row_len_bytes().saturating_mul(rows.end - rows.start);
        let options = arguments.options(&target, team, inputs.counts.len(), held_len_bytes);
        let mut options = team.agree("fit the samples into memory", options)?;
        let mut first = None;
        let mut tuned = Vec::new();
        if let (Some(profile), Some((step, of_step))) = (&arguments.tune, inputs.steps.first()) {
            let header = target.header_of_trials(&inputs.counts, &inputs.fields, steps.is_some())?;
            let patches = team.agree("read the inputs", read(&inputs, of_step.clone(), &rows, watch))?;
            let (step, fields) = (*step, inputs.fields.as_slice());
            let subject = Subject { header: &header, fields, options: &options, step, patches: &patches };
            let found = tune(&target, &subject, team, watch)?;
            options = found.target.apply_ranks(options, inputs.counts.len())?;
            target = found.target;
            let saved = match profile {
                Some(path) if team.leads() => save(path, &found.tried, target.output()),
                _ => Ok(()),
            };
            team.agree("write the profile", saved)?;
            (first, tuned) = (Some(patches), found.tried);
        }
        let begun = target.begin(&inputs.counts, &inputs.fields, steps, options);
        let mut output = team.agree("begin the output", begun)?;
        let mut reports = Vec::new();
        for (step, of_step) in &inputs.steps {
            let patches = match first.take() {
                Some(patches) => patches,
                None => team.agree("read the inputs", read(&inputs, of_step.clone(), &rows, watch))?,
            };
            let written = output.write_collective(*step, patches, watch, ranks);
            reports.push(written.map_err(|error| Failure::of_idx(&error))?);
        }
        let written = output.finish(reports.last_mut(), ranks).map_err(|error| Failure::of_idx(&error))?;
        if team.leads() {
            tell(arguments, &written, &reports, &tuned)?;
        }
        Ok(Exit::Done)
    })
}

/// Report of a run: one entry per time step, or a single one for a dataset without steps.
#[derive(Debug, Serialize)]
struct Steps<'a> {
    steps: &'a [WriteReport],
    /// Settings tried first, with --tune.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tuned: &'a [Tried],
}

fn tell(
    arguments: &WriteArgs,
    written: &WrittenDataset,
    reports: &[WriteReport],
    tuned: &[Tried],
) -> Result<(), Failure> {
    arguments.running.write_report(&Steps { steps: reports, tuned })?;
    match written {
        _ if arguments.running.telling.quiet => Ok(()),
        WrittenDataset::Idx(header) => print(&format!("{}{}", lines(tuned), idx::written(header, reports))),
        WrittenDataset::Zarr(form) => print(&zarr::written(form, reports)),
    }
}

/// Formats the tried settings, one per line.
fn lines(tuned: &[Tried]) -> String {
    let line = |of: &Tried| {
        let measured = of.ratio.zip(of.interval).map_or(String::new(), |(ratio, [low, high])| {
            format!(": {ratio:.2} times as long ({low:.2} to {high:.2}, {} blocks)", of.blocks)
        });
        let taken = if of.is_taken { ", taken" } else { "" };
        format!("{} {}: {}{taken}{measured}\n", of.option.name().replace('_', " "), of.value, of.verdict.words())
    };
    tuned.iter().map(line).collect()
}

/// Returns the rows that rank number `rank` of `ranks` reads.
pub(super) fn share(rows: u64, rank: usize, ranks: usize) -> Range<u64> {
    let bound = |rank: usize| (u128::from(rows) * rank as u128 / ranks as u128) as u64;
    bound(rank)..bound(rank + 1)
}

/// Reads this rank's share of a time step, as a box.
pub(super) fn read(
    inputs: &Inputs,
    of_step: Range<usize>,
    rows: &Range<u64>,
    watch: &Watch<'_>,
) -> Result<Vec<BoxData<'static>>, Failure> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let begun = Instant::now();
    watch.observer.event(&Event::StageStarted { stage: Stage::Read, total_bytes: None });
    let mut arrays = Vec::new();
    for array in &inputs.arrays[of_step] {
        watch.cancel.check().map_err(|error| Failure::of_idx(&IdxError::Core(error)))?;
        let values = array.read_rows(rows.clone())?;
        watch.observer.event(&Event::Advanced { stage: Stage::Read, bytes: values.len() as u64, items: 1 });
        arrays.push(values.into());
    }
    watch.observer.event(&Event::StageFinished { stage: Stage::Read, elapsed_s: begun.elapsed().as_secs_f64() });
    Ok(vec![BoxData { region: inputs.region(rows), arrays }])
}

impl WriteArgs {
    /// Returns the input as a source of blocks at a time step.
    fn blocks_of<'w>(&self, whole: &'w WholeFields, time: Option<u64>) -> BlockSource<'w> {
        let missing_as_default = self.arrays.missing_as_default;
        BlockSource { dataset: &whole.dataset, time, fields: &whole.fields, missing_as_default }
    }

    /// Refuses to overwrite an input.
    fn check_output(&self, inputs: &Inputs) -> Result<(), Failure> {
        if inputs.arrays.iter().any(|array| array.is_of_output(self.target.output())) {
            let what = format!("{} is the input, or has its blocks", self.target.output().display());
            return Err(Failure::new(Exit::Output, &what).hint("name another output"));
        }
        Ok(())
    }

    /// Returns the options for a rank that holds `held_len_bytes` of samples.
    pub(super) fn options(
        &self,
        target: &TargetArgs,
        team: &Ranks,
        axes: usize,
        held_len_bytes: u64,
    ) -> Result<WriteOptions, Failure> {
        let mut options = target.options(&self.running, team.default_jobs(), axes)?;
        let limit_bytes = options.memory_limit_bytes;
        options.memory_limit_bytes = limit_bytes.checked_sub(held_len_bytes).ok_or_else(|| {
            let (held, limit) = (quantity::size(held_len_bytes), quantity::size(limit_bytes));
            let what = format!("the samples of one time step take {held} of memory; the budget is {limit}");
            Failure::new(Exit::Limit, &what).hint("raise --memory, or share the work among ranks with mpirun")
        })?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_evenly() {
        let shares: Vec<_> = (0..4).map(|rank| share(10, rank, 4)).collect();
        assert_eq!(shares, [0..2, 2..5, 5..7, 7..10]);
        assert!(share(1, 0, 2).is_empty() && share(1, 1, 2) == (0..1));
    }
}
