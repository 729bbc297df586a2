//! Comparison of folders of images with inputs.

use super::image::{Image, Images};
use crate::compare::{ComparedArrays, StepRuns, Tolerance};
use crate::dataset::region::SampleBox;
use crate::error::Result;
use crate::inputs::InputLayout;
use crate::read::dataset::Readers;
use std::ops::Range;

impl ComparedArrays for Images {
    fn tolerance(&self, _: usize, _: &InputLayout) -> (Tolerance, String) {
        (Tolerance::Exact, String::new())
    }

    fn check_field(&self, field: usize, inputs: &InputLayout) -> Result<(), String> {
        let (name, sample) = &inputs.fields[field];
        let image = self.images.iter().find(|image| image.name() == name);
        let image = image.ok_or_else(|| format!("has no image {name}"))?;
        if image.number() != sample.number {
            return Err(format!("has image {name} of another type than {sample}"));
        }
        let steps = inputs.steps.iter().filter_map(|(step, _)| *step).max();
        let want = region_of(image, inputs, sample.count, &(0..inputs.rows()), steps, 0..sample.count as u64);
        match want {
            Some(want) if want.end == image.domain(0).end => Ok(()),
            _ => Err(format!("has image {name} of other samples than the inputs")),
        }
    }

    fn contents(&self, inputs: &InputLayout) -> Vec<(String, StepRuns)> {
        let of_image = |image: &Image| {
            // Inputs without steps have time as one of their axes, if at all.
            let has_steps = inputs.steps.iter().any(|(step, _)| step.is_some());
            let time = image.axes().iter().position(|axis| *axis == 't').filter(|_| has_steps);
            let run = time.map(|axis| (0, image.domain(0).end[axis].saturating_sub(1)));
            (image.name().to_owned(), vec![run])
        };
        self.images.iter().map(of_image).collect()
    }

    fn read_rows(
        &self,
        field: usize,
        time: Option<u64>,
        rows: &Range<u64>,
        inputs: &InputLayout,
        _: &Readers<'_>,
    ) -> Result<Vec<u8>> {
        let (name, sample) = &inputs.fields[field];
        let mut out = Vec::new();
        for image in self.images.iter().filter(|image| image.name() == name).take(1) {
            let (count, len) = (sample.count, sample.number.len_bytes());
            for component in 0..count {
                let only = component as u64..component as u64 + 1;
                let Some(region) = region_of(image, inputs, count, rows, time, only) else { continue };
                let numbers = image.read(0, &region)?;
                out.resize(numbers.len() * count, 0);
                for (sample, number) in out.chunks_mut(count * len).zip(numbers.chunks(len)) {
                    sample[component * len..][..len].copy_from_slice(number);
                }
            }
        }
        Ok(out)
    }
}

/// Returns the box of rows of inputs in an image's first level, restricted to some components; `None` if it has other
/// axes.
fn region_of(
    image: &Image,
    inputs: &InputLayout,
    components: usize,
    rows: &Range<u64>,
    step: Option<u64>,
    only: Range<u64>,
) -> Option<SampleBox> {
    let (of_samples, rank) = (inputs.region(rows), inputs.counts.len());
    let mut ranges: Vec<Range<u64>> = (0..rank).map(|axis| of_samples.start[axis]..of_samples.end[axis]).collect();
    if components > 1 {
        // Excludes time, if that is the slowest axis of the samples.
        let has_local_steps = step.is_none() && image.axes().last() == Some(&'t');
        ranges.insert(rank - usize::from(has_local_steps), only);
    }
    ranges.extend(step.map(|step| step..step + 1));
    let start: Vec<u64> = ranges.iter().map(|range| range.start).collect();
    let counts: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
    (ranges.len() == image.axes().len()).then(|| SampleBox::new(&start, &counts))
}
