//! Writing of inputs into a box of existing time steps.

use super::array::RowArray;
use super::write::InputWrite;
use crate::dataset::bitmask::{AXES, Point};
use crate::dataset::header::Header;
use crate::dataset::region::SampleBox;
use crate::error::{IdxError, Result};
use crate::read::dataset::Dataset;
use crate::request::{AxisRange, RequestFault, restrict};
use crate::targets::open_dataset;
use crate::write::exchange::BoxData;
use crate::write::options::WriteReport;
use crate::write::writer::Writer;

/// A finished update of a dataset.
#[derive(Debug)]
pub struct Update {
    /// Header of the dataset.
    pub header: Header,
    /// Numbers of the fields that were written.
    pub fields: Vec<usize>,
    /// Box that was written.
    pub region: SampleBox,
    /// Reports of the time steps, or of the only write.
    pub reports: Vec<WriteReport>,
}

impl<A: RowArray> InputWrite<'_, A> {
    /// Collective. Writes the inputs into the box `into` of an existing dataset, the output of the request. Other
    /// samples and fields are kept, and each time step is replaced atomically.
    ///
    /// # Errors
    /// If the dataset cannot be read, has no such box or fields, or cannot be written; on every rank.
    pub fn update_collective(&self, into: &[AxisRange]) -> Result<Update, A::Error> {
        let layout = &self.inputs.layout;
        let prepare = || {
            let dataset = open_dataset(&self.request.output)?;
            let region = region(dataset.header(), into, &layout.counts)?;
            let fields = self.fields(&dataset)?;
            let mut options = self.request.options(self.default_jobs, layout.counts.len())?;
            options.memory_limit_bytes = self.memory_left(options.memory_limit_bytes)?;
            Ok((Writer::of_existing(&self.request.output, options)?, region, fields))
        };
        let (mut writer, region, fields) = self.agree("open the dataset", prepare())?;
        let mut reports = Vec::new();
        for (step, of_step) in &layout.steps {
            let patches = self.read_collective(of_step.clone())?;
            let patches = patches.into_iter().map(|patch| shifted(patch, &region.start)).collect();
            reports.push(writer.update_collective(*step, &fields, patches, self.watch, self.ranks)?);
        }
        Ok(Update { header: writer.header().clone(), fields, region, reports })
    }

    /// Returns the numbers of the fields that correspond to the inputs.
    fn fields(&self, dataset: &Dataset) -> Result<Vec<usize>> {
        let numbers = self.inputs.layout.fields.iter().map(|(name, sample)| {
            let number = dataset.field_named(name)?;
            match dataset.header().fields[number].sample {
                of_field if of_field == *sample => Ok(number),
                of_field => {
                    let reason = format!("field {name} has type {of_field}, but the input has type {sample}");
                    Err(IdxError::Input { place: dataset.path().display().to_string(), reason })
                }
            }
        });
        numbers.collect()
    }
}

/// Returns the box of the dataset, which must have the shape of the inputs.
fn region(header: &Header, into: &[AxisRange], counts: &[u64]) -> Result<SampleBox> {
    let mut region = SampleBox { start: header.start, end: header.end };
    restrict(&mut region, "into", into, header.rank)?;
    if let Some(axis) = (0..header.rank).find(|axis| region.end[*axis] > header.end[*axis]) {
        let fault = RequestFault::PastEnd { axis: AXES[axis], limit: header.end[axis] };
        return Err(IdxError::Request { option: "into", fault });
    }
    let wanted = &region.counts()[..header.rank];
    if counts != wanted {
        let shape = |counts: &[u64]| counts.iter().rev().map(u64::to_string).collect::<Vec<_>>().join(" x ");
        return Err(IdxError::InputCounts { inputs: shape(counts), region: shape(wanted) });
    }
    Ok(region)
}

/// Moves a patch of the inputs to its position in the dataset.
fn shifted<'p>(patch: BoxData<'p>, by: &Point) -> BoxData<'p> {
    let SampleBox { start, end } = patch.region;
    let moved = |point: Point| std::array::from_fn(|axis| point[axis] + by[axis]);
    BoxData { region: SampleBox { start: moved(start), end: moved(end) }, arrays: patch.arrays }
}
