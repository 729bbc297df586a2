//! [`Kernel::Vpic`] and [`Kernel::Bdcats`]: eight variables of particles, written in one call each, and read in parts.

use super::clock::{Clock, RunStage};
use super::{Done, KernelRun, Sample, check};
use crate::error::Result;
use crate::kernel::{Kernel, VARIABLES};
use raddle_core::random::Random;
use raddle_core::ranks::shares::even_share;
use raddle_hdf5::dynamic::{Element, MemoryValues};
use std::ops::Range;

/// Number of particles generated together, so that a rank can generate its share alone.
const DRAWN: u64 = 1 << 16;

/// Returns the values of a variable for the particles in `range`.
fn values(seed: u64, variable: usize, range: Range<u64>) -> Vec<f32> {
    let mut values = Vec::with_capacity(usize::try_from(range.end - range.start).unwrap_or(0));
    let mut first = range.start / DRAWN * DRAWN;
    while first < range.end {
        let mut random = Random::of(&[seed, variable as u64, first]);
        let drawn = (first..(first + DRAWN).min(range.end)).map(|particle| (particle, random.normal() as f32));
        values.extend(drawn.filter(|(particle, _)| *particle >= range.start).map(|(_, value)| value));
        first += DRAWN;
    }
    values
}

/// Returns the end of the last variable as a sample to verify.
fn last(seed: u64, particles: u64) -> Sample {
    let place = VARIABLES.len() - 1;
    let start = particles.saturating_sub(DRAWN);
    let values = values(seed, place, start..particles);
    Sample { name: format!("Step#0/{}", VARIABLES[place]), values, start: vec![start], count: vec![particles - start] }
}

/// Writes the file.
pub(super) fn write<'a>(run: &KernelRun<'a>, clock: &mut Clock) -> Result<Done<'a>> {
    let (Kernel::Vpic { particles } | Kernel::Bdcats { particles, .. }) = run.kernel else {
        return Err(super::not_this_kernel());
    };
    let file = clock.time(RunStage::Open, || run.create())?;
    clock.time(RunStage::Objects, || Ok(file.create_group("Step#0")?))?;
    for (place, variable) in VARIABLES.iter().enumerate() {
        let path = format!("Step#0/{variable}");
        let dataset = clock.time(RunStage::Objects, || run.create_dataset(&file, &path, Element::F32, &[particles]))?;
        let share = run.team.share(particles);
        let part = values(run.seed, place, share.clone());
        clock.time(RunStage::Write, || {
            Ok(dataset.write(MemoryValues::F32(&part), &[share.start], &[part.len() as u64])?)
        })?;
        clock.time(RunStage::Objects, || Ok(dataset.close()?))?;
    }
    Ok(Done { file, sample: Some(last(run.seed, particles)) })
}

/// Reads the file and checks every value.
pub(super) fn read<'a>(run: &KernelRun<'a>, clock: &mut Clock) -> Result<Done<'a>> {
    let Kernel::Bdcats { particles, parts } = run.kernel else { return Err(super::not_this_kernel()) };
    let file = clock.time(RunStage::Open, || run.open())?;
    for (variable_place, variable) in VARIABLES.iter().enumerate() {
        let path = format!("Step#0/{variable}");
        let dataset = clock.time(RunStage::Objects, || Ok(file.open_dataset(&path)?))?;
        for place in (0..parts).filter(|place| run.team.has(*place)) {
            let Range { start, end } = even_share(particles, place, parts);
            let mut found = vec![0.0_f32; usize::try_from(end - start).unwrap_or(usize::MAX)];
            clock.time(RunStage::Read, || Ok(dataset.read_f32(&mut found, &[start], &[end - start])?))?;
            check(&path, &[start], values(run.seed, variable_place, start..end), &found)?;
        }
        clock.time(RunStage::Objects, || Ok(dataset.close()?))?;
    }
    Ok(Done { file, sample: Some(last(run.seed, particles)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_the_values_of_the_whole() {
        let all = values(7, 3, 0..3 * DRAWN + 5);
        for range in [0..1, 5..DRAWN, DRAWN - 1..2 * DRAWN + 1, 3 * DRAWN..3 * DRAWN + 5, 9..9] {
            let of_all = &all[range.start as usize..range.end as usize];
            assert_eq!(values(7, 3, range.clone()), of_all, "{range:?}");
        }
        assert_ne!(all[..9], values(7, 4, 0..9));
    }
}
