//! [`Kernel::Vpic`] and [`Kernel::Bdcats`]: eight variables of particles, written at once, and read in parts.

use super::clock::{Clock, Stage};
use super::team::part;
use super::{Done, Run, Sample};
use crate::error::Result;
use crate::kernel::{Kernel, VARIABLES};
use raddle_core::random::Random;
use raddle_hdf5::chosen::{Element, Values};
use std::ops::Range;

fn values(seed: u64, variable: usize, particles: u64) -> Vec<f32> {
    let mut random = Random::of(&[seed, variable as u64]);
    (0..particles).map(|_| random.normal() as f32).collect()
}

/// The last variable.
fn last(seed: u64, particles: u64) -> Sample {
    let place = VARIABLES.len() - 1;
    let values = values(seed, place, particles);
    Sample { name: format!("Step#0/{}", VARIABLES[place]), values, start: vec![0], count: vec![particles] }
}

/// Writes the file.
pub(super) fn write<'a>(run: &Run<'a>, clock: &mut Clock) -> Result<Done<'a>> {
    let (Kernel::Vpic { particles } | Kernel::Bdcats { particles, .. }) = run.kernel else {
        return Err(super::not_this_kernel());
    };
    let file = clock.time(Stage::Open, || run.create())?;
    clock.time(Stage::Objects, || Ok(file.create_group("Step#0")?))?;
    for (place, variable) in VARIABLES.iter().enumerate() {
        let own = values(run.seed, place, particles);
        let path = format!("Step#0/{variable}");
        let dataset = clock.time(Stage::Objects, || run.create_dataset(&file, &path, Element::F32, &[particles]))?;
        let share = run.team.share(particles);
        let part = &own[share.start as usize..share.end as usize];
        clock.time(Stage::Write, || Ok(dataset.write(Values::F32(part), &[share.start], &[part.len() as u64])?))?;
        clock.time(Stage::Objects, || Ok(dataset.close()?))?;
    }
    Ok(Done { file, sample: Some(last(run.seed, particles)) })
}

/// Reads it.
pub(super) fn read<'a>(run: &Run<'a>, clock: &mut Clock) -> Result<Done<'a>> {
    let Kernel::Bdcats { particles, parts } = run.kernel else { return Err(super::not_this_kernel()) };
    let file = clock.time(Stage::Open, || run.open())?;
    for variable in VARIABLES {
        let path = format!("Step#0/{variable}");
        let dataset = clock.time(Stage::Objects, || Ok(file.open_dataset(&path)?))?;
        for place in (0..parts).filter(|place| run.team.has(*place)) {
            let Range { start, end } = part(particles, place, parts);
            let mut own = vec![0.0_f32; usize::try_from(end - start).unwrap_or(usize::MAX)];
            clock.time(Stage::Read, || Ok(dataset.read_f32(&mut own, &[start], &[end - start])?))?;
        }
        clock.time(Stage::Objects, || Ok(dataset.close()?))?;
    }
    Ok(Done { file, sample: Some(last(run.seed, particles)) })
}
