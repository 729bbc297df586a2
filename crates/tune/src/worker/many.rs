//! [`Kernel::Many`]: small datasets with attributes, created and written, or opened and read; every rank has a part of
//! each.

use super::clock::{Clock, RunStage};
use super::{Done, KernelRun, Sample, check};
use crate::error::Result;
use crate::kernel::Kernel;
use raddle_core::random::Random;
use raddle_hdf5::dynamic::{Element, MemoryValues};

fn name(place: u64) -> String {
    format!("d{place:06}")
}

/// Returns the values of a dataset, which differ between datasets.
fn values(seed: u64, place: u64, elements: u64) -> Vec<f64> {
    let mut random = Random::of(&[seed, place]);
    (0..elements).map(|_| (random.below(1000) as f64) / 8.0).collect()
}

/// Returns the last of `datasets` as a sample to verify.
fn last(seed: u64, datasets: u64, elements: u64) -> Sample {
    let values = values(seed, datasets - 1, elements).iter().map(|value| *value as f32).collect();
    Sample { name: name(datasets - 1), values, start: vec![0], count: vec![elements] }
}

/// Writes the file, or reads one that was written before.
pub(super) fn run<'a>(run: &KernelRun<'a>, clock: &mut Clock) -> Result<Done<'a>> {
    let Kernel::Many { datasets, elements, attributes, reads } = run.kernel else {
        return Err(super::not_this_kernel());
    };
    let local = run.team.share(elements);
    if reads {
        let file = clock.time(RunStage::Open, || run.open())?;
        let mut read = vec![0.0_f32; usize::try_from(local.end - local.start).unwrap_or(usize::MAX)];
        for place in 0..datasets {
            let dataset = clock.time(RunStage::Objects, || Ok(file.open_dataset(&name(place))?))?;
            clock.time(RunStage::Read, || {
                Ok(dataset.read_f32(&mut read, &[local.start], &[local.end - local.start])?)
            })?;
            let expected = values(run.seed, place, elements).into_iter().map(|value| value as f32);
            check(&name(place), &[local.start], expected.skip(local.start as usize), &read)?;
            clock.time(RunStage::Objects, || Ok(dataset.close()?))?;
        }
        return Ok(Done { file, sample: Some(last(run.seed, datasets, elements)) });
    }
    let file = clock.time(RunStage::Open, || run.create())?;
    for place in 0..datasets {
        let values = values(run.seed, place, elements);
        let dataset = clock.time(RunStage::Objects, || {
            let dataset = run.create_dataset(&file, &name(place), Element::F64, &[elements])?;
            for attribute in 0..attributes {
                dataset.write_attribute(&format!("a{attribute}"), i32::try_from(place).unwrap_or(i32::MAX))?;
            }
            Ok(dataset)
        })?;
        let part = &values[local.start as usize..local.end as usize];
        clock.time(RunStage::Write, || {
            Ok(dataset.write(MemoryValues::F64(part), &[local.start], &[part.len() as u64])?)
        })?;
        clock.time(RunStage::Objects, || Ok(dataset.close()?))?;
    }
    Ok(Done { file, sample: Some(last(run.seed, datasets, elements)) })
}
