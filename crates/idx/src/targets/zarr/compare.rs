//! Comparison of folders of images with inputs.

use super::image::{Image, Images};
use crate::compare::{ComparedArrays, StepRuns, Tolerance};
use crate::dataset::region::SampleBox;
use crate::dataset::time_steps::StepList;
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
            return Err(format!("has image {name} of a type other than {sample}"));
        }
        let steps = || inputs.steps.iter().filter_map(|(step, _)| *step);
        let missing = steps().find(|step| place_of(image, *step).is_none());
        if let Some(step) = missing.filter(|_| has_steps(image)) {
            return Err(format!("has image {name} without time step {step}; available: {}", step_list(image)));
        }
        let place = steps().next().map(|step| place_of(image, step).unwrap_or(0));
        // The time steps were checked, and the image may have others.
        let axes = image.axes().len() - usize::from(place.is_some());
        let want = region_of(image, inputs, sample.count, &(0..inputs.rows()), place, 0..sample.count as u64);
        match want {
            Some(want) if want.end[..axes] == image.domain(0).end[..axes] && (place.is_none() || has_steps(image)) => {
                Ok(())
            }
            _ => Err(format!("has image {name} of other samples than the inputs")),
        }
    }

    fn contents(&self, inputs: &InputLayout) -> Vec<(String, StepRuns)> {
        let of_image = |image: &Image| {
            // Inputs without steps have time as one of their axes, if at all.
            let are_steps = has_steps(image) && inputs.steps.iter().any(|(step, _)| step.is_some());
            let runs = match are_steps {
                true => step_list(image).runs().iter().copied().map(Some).collect(),
                false => vec![None],
            };
            (image.name().to_owned(), runs)
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
                // Its existence was checked before.
                let place = time.map(|step| place_of(image, step).unwrap_or(step));
                let Some(region) = region_of(image, inputs, count, rows, place, only) else { continue };
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

/// Returns whether the slowest axis of an image is time.
fn has_steps(image: &Image) -> bool {
    image.axes().last() == Some(&'t')
}

/// Returns the time steps along the slowest axis of an image.
fn step_list(image: &Image) -> StepList {
    match image.step_numbers() {
        Some(numbers) => StepList::of(numbers.iter().copied()),
        None => StepList::of_run(0, image.domain(0).end[image.axes().len() - 1].saturating_sub(1)),
    }
}

/// Returns the place of a time step along the slowest axis of an image; `None` if the image does not have it.
fn place_of(image: &Image, step: u64) -> Option<u64> {
    match image.step_numbers() {
        Some(numbers) => numbers.binary_search(&step).ok().map(|place| place as u64),
        None => Some(step).filter(|step| *step < image.domain(0).end[image.axes().len() - 1]),
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
