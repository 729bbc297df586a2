//! [`Kernel::Amrex`] and [`Kernel::Random`]: consecutive pieces of unequal length in datasets, dealt to the ranks
//! round-robin, and read back.

use super::clock::{Clock, RunStage};
use super::{Done, KernelRun, Sample, check};
use crate::error::Result;
use crate::kernel::{BURSTS, Kernel, ReadBack};
use raddle_core::random::Random;
use raddle_hdf5::dynamic::{Element, MemoryValues};

/// A dataset and the numbers of elements of its pieces.
struct Pieces {
    group: Option<String>,
    dataset: String,
    lens: Vec<u64>,
}

/// Returns the datasets of a kernel.
fn datasets(run: &KernelRun<'_>) -> Option<Vec<Pieces>> {
    match run.kernel {
        Kernel::Amrex { levels, boxes, longest_edge, components } => {
            let of = |level| {
                let mut random = Random::of(&[run.seed, level]);
                // At least half of the longest edge, as after regridding.
                let least = longest_edge.div_ceil(2);
                let mut edge = || least + random.below(longest_edge - least + 1);
                let lens = (0..boxes).map(|_| edge() * edge() * edge() * components).collect();
                let group = format!("level_{level}");
                Pieces { dataset: format!("{group}/data"), group: Some(group), lens }
            };
            Some((0..levels).map(of).collect())
        }
        // The pattern does not depend on the seed of the values: it is the same in all blocks.
        Kernel::Random { pattern, longest_len_bytes, datasets, .. } => {
            let mut random = Random::of(&[pattern, 11]);
            let count = 1 + random.below(datasets);
            let of = |place: u64| {
                let bursts = 1 + random.below(BURSTS);
                let mut len = || (longest_len_bytes as f64 / 8.0 * 1000_f64.powf(-random.unit())) as u64;
                Pieces {
                    group: None,
                    dataset: name_of_random(place),
                    lens: (0..bursts).map(|_| len().max(1)).collect(),
                }
            };
            Some((0..count).map(of).collect())
        }
        _ => None,
    }
}

/// Returns the name of a dataset of [`Kernel::Random`].
pub(super) fn name_of_random(place: u64) -> String {
    format!("Dataset-{place:04}")
}

/// Returns the values of a piece.
fn values(run: &KernelRun<'_>, dataset: u64, piece: u64) -> impl Iterator<Item = f64> + use<> {
    let mut random = Random::of(&[run.seed, dataset, piece]);
    std::iter::repeat_with(move || random.unit())
}

/// Returns the number of bytes of all pieces.
pub(super) fn len_bytes(run: &KernelRun<'_>) -> Option<u64> {
    Some(datasets(run)?.iter().flat_map(|dataset| &dataset.lens).sum::<u64>() * 8)
}

/// Writes the file.
pub(super) fn run<'a>(run: &KernelRun<'a>, clock: &mut Clock) -> Result<Done<'a>> {
    let Some(all) = datasets(run) else { return Err(super::not_this_kernel()) };
    let file = clock.time(RunStage::Open, || run.create())?;
    let mut sample = None;
    for (place, Pieces { group, dataset: name, lens }) in (0..).zip(all) {
        let dataset = clock.time(RunStage::Objects, || {
            group.iter().try_for_each(|group| file.create_group(group))?;
            run.create_dataset(&file, &name, Element::F64, &[lens.iter().sum()])
        })?;
        let mut first = 0;
        for (number, len) in (0..).zip(lens) {
            if run.team.has(number) {
                let values: Vec<f64> = (0..len).zip(values(run, place, number)).map(|(_, value)| value).collect();
                clock.time(RunStage::Write, || Ok(dataset.write(MemoryValues::F64(&values), &[first], &[len])?))?;
                let values = values.iter().map(|value| *value as f32).collect();
                sample = Some(Sample { name: name.clone(), values, start: vec![first], count: vec![len] });
            }
            first += len;
        }
        clock.time(RunStage::Objects, || Ok(dataset.close()?))?;
    }
    Ok(Done { file, sample })
}

/// Reads the file that all ranks wrote, and checks every value.
pub(super) fn read_back(run: &KernelRun<'_>, order: ReadBack, clock: &mut Clock) -> Result<()> {
    let Some(all) = datasets(run) else { return Err(super::not_this_kernel()) };
    let file = clock.time(RunStage::Open, || run.open())?;
    for (place, Pieces { dataset: name, lens, .. }) in (0..).zip(all) {
        let dataset = clock.time(RunStage::Objects, || Ok(file.open_dataset(&name)?))?;
        let ends = lens.iter().scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        let bounds: Vec<(u64, u64)> = ends.zip(&lens).map(|(end, len)| (end - len, *len)).collect();
        for number in run.team.reads(order, run.seed ^ place, lens.len() as u64) {
            let (first, len) = bounds[usize::try_from(number).unwrap_or(usize::MAX)];
            let mut found = vec![0.0; usize::try_from(len).unwrap_or(usize::MAX)];
            clock.time(RunStage::Read, || Ok(dataset.read_f64(&mut found, &[first], &[len])?))?;
            check(&name, &[first], values(run, place, number), &found)?;
        }
        clock.time(RunStage::Objects, || Ok(dataset.close()?))?;
    }
    clock.time(RunStage::Close, || Ok(file.close()?))
}
