//! `raddle idx write --into`: writes arrays into a box of existing time steps.

use super::place::{limit, open};
use super::write::{WriteArgs, read, share};
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::ranks::Ranks;
use crate::render::idx;
use raddle_core::report::progress::Watch;
use raddle_idx::dataset::bitmask::{AXES, Point};
use raddle_idx::dataset::sample::SampleType;
use raddle_idx::{BoxData, Header, SampleBox, WriteReport, Writer};
use serde::Serialize;

/// Report of a run.
#[derive(Debug, Serialize)]
struct Steps<'a> {
    steps: &'a [WriteReport],
}

impl WriteArgs {
    /// Collective. Writes the inputs into the dataset.
    pub(super) fn update(&self, team: &Ranks, watch: &Watch<'_>) -> Result<Exit, Failure> {
        let opened = self.arrays.open(&self.inputs, &self.running.execution.reader);
        let inputs = team.agree("open the inputs", opened)?;
        let ranks = team.ranks();
        let rows = share(inputs.rows(), ranks.rank(), ranks.size());
        let prepare = || {
            let dataset = open(self.target.output())?;
            let header = dataset.header();
            let region = self.region(header, &inputs.counts)?;
            let fields = self.fields(header, &inputs.fields)?;
            let held_len_bytes = inputs.held_row_len_bytes().saturating_mul(rows.end - rows.start);
            let options = self.options(&self.target, team, inputs.counts.len(), held_len_bytes)?;
            let writer = Writer::of_existing(self.target.output(), options);
            Ok((writer.map_err(|error| Failure::of_idx(&error))?, region, fields))
        };
        let (mut writer, region, fields) = team.agree("open the dataset", prepare())?;
        let mut reports = Vec::new();
        for (step, of_step) in &inputs.steps {
            let patches = team.agree("read the inputs", read(&inputs, of_step.clone(), &rows, watch))?;
            let patches = patches.into_iter().map(|patch| shifted(patch, &region.start)).collect();
            let written = writer.update_collective(*step, &fields, patches, watch, ranks);
            reports.push(written.map_err(|error| Failure::of_idx(&error))?);
        }
        if team.leads() {
            self.running.write_report(&Steps { steps: &reports })?;
            if !self.running.telling.quiet {
                print(&idx::updated(writer.header(), &fields, &region, &reports))?;
            }
        }
        Ok(Exit::Done)
    }

    /// Returns the box, which has the shape of the inputs.
    fn region(&self, header: &Header, counts: &[u64]) -> Result<SampleBox, Failure> {
        let mut region = SampleBox { start: header.start, end: header.end };
        limit("--into", &self.into, header.rank, (&mut region.start, &mut region.end))?;
        if let Some(axis) = (0..header.rank).find(|axis| region.end[*axis] > header.end[*axis]) {
            let (name, limit) = (AXES[axis], header.end[axis]);
            return Err(Failure::usage(&format!("--into extends past {name} = {limit}, where the dataset ends")));
        }
        let wanted = &region.counts()[..header.rank];
        if counts != wanted {
            let shape = |counts: &[u64]| counts.iter().rev().map(u64::to_string).collect::<Vec<_>>().join(" x ");
            let what =
                format!("the inputs have {} samples, but --into names a box of {}", shape(counts), shape(wanted));
            return Err(Failure::new(Exit::InputRefused, &what));
        }
        Ok(region)
    }

    /// Returns the numbers of the fields that correspond to the inputs.
    fn fields(&self, header: &Header, inputs: &[(String, SampleType)]) -> Result<Vec<usize>, Failure> {
        let path = self.target.output().display();
        let number = |(name, sample): &(String, SampleType)| {
            let refused = |what: String| Failure::new(Exit::InputRefused, &format!("{path}: {what}"));
            let Some(number) = header.field_index(name) else {
                let names: Vec<&str> = header.fields.iter().map(|field| field.name.as_str()).collect();
                return Err(refused(format!("no field {name}; it has {}", names.join(", ")))
                    .hint("name the fields of the inputs with --name"));
            };
            match header.fields[number].sample {
                of_field if of_field == *sample => Ok(number),
                of_field => Err(refused(format!("field {name} has type {of_field}, but the input has type {sample}"))),
            }
        };
        inputs.iter().map(number).collect()
    }
}

/// Moves a patch of the inputs to its position in the dataset.
fn shifted<'p>(patch: BoxData<'p>, by: &Point) -> BoxData<'p> {
    let SampleBox { start, end } = patch.region;
    let moved = |point: Point| std::array::from_fn(|axis| point[axis] + by[axis]);
    BoxData { region: SampleBox { start: moved(start), end: moved(end) }, arrays: patch.arrays }
}
