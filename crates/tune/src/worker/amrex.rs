//! [`Kernel::Amrex`]: boxes of unequal size, one after the other in their level's dataset.

use super::clock::{Clock, Stage};
use super::{Done, Run, Sample};
use crate::error::Result;
use crate::kernel::Kernel;
use raddle_core::random::Random;
use raddle_hdf5::chosen::{Element, Values};

/// Writes the file.
pub(super) fn run<'a>(run: &Run<'a>, clock: &mut Clock) -> Result<Done<'a>> {
    let Kernel::Amrex { levels, boxes, longest_edge, components } = run.kernel else {
        return Err(super::not_this_kernel());
    };
    let file = clock.time(Stage::Open, || run.create())?;
    let mut sample = None;
    for level in 0..levels {
        let mut random = Random::of(&[run.seed, level]);
        // From half of the longest edge on, as after regridding.
        let least = longest_edge.div_ceil(2);
        let mut edge = || least + random.below(longest_edge - least + 1);
        let lens: Vec<u64> = (0..boxes).map(|_| edge() * edge() * edge() * components).collect();
        let elements: u64 = lens.iter().sum();
        let group = format!("level_{level}");
        let dataset = clock.time(Stage::Objects, || {
            file.create_group(&group)?;
            run.create_dataset(&file, &format!("{group}/data"), Element::F64, &[elements])
        })?;
        let mut first = 0;
        for len in lens {
            let values: Vec<f64> = (0..len).map(|_| random.unit()).collect();
            clock.time(Stage::Write, || Ok(dataset.write(Values::F64(&values), &[first], &[len])?))?;
            let last = values.iter().map(|value| *value as f32).collect();
            let name = format!("{group}/data");
            sample = Some(Sample { name, values: last, start: vec![first], count: vec![len] });
            first += len;
        }
        clock.time(Stage::Objects, || Ok(dataset.close()?))?;
    }
    // A kernel without boxes is refused before.
    let sample = sample.ok_or_else(super::not_this_kernel)?;
    Ok(Done { file, sample })
}
