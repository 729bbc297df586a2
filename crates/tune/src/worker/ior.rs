//! [`Kernel::Ior`]: blocks one after the other, dealt to the ranks in turn, through HDF5 or without, and read back.

use super::clock::{Clock, Stage};
use super::{Done, Run, Sample, check, io};
use crate::error::Result;
use crate::kernel::{Api, Kernel, ReadBack};
use raddle_core::random::Random;
use raddle_hdf5::chosen::{Element, Values};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The numbers of a kernel.
struct Blocks {
    api: Api,
    /// Of a block.
    elements: u64,
    /// Per dataset.
    count: u64,
    datasets: u64,
    collective: bool,
}

fn blocks(run: &Run<'_>) -> Result<Blocks> {
    let Kernel::Ior { api, transfer_len_bytes, blocks, datasets, collective, .. } = run.kernel else {
        return Err(super::not_this_kernel());
    };
    Ok(Blocks { api, elements: transfer_len_bytes / 8, count: blocks, datasets, collective })
}

fn name(dataset: u64) -> String {
    format!("Dataset-{dataset:04}")
}

/// Values of a block: those of every block are its own, so that one that is read in place of another shows.
fn values(run: &Run<'_>, dataset: u64, block: u64) -> impl Iterator<Item = f64> + use<> {
    let mut random = Random::of(&[run.seed, 3, dataset, block]);
    std::iter::repeat_with(move || random.unit())
}

fn bytes_of(values: impl Iterator<Item = f64>, elements: u64, bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.extend(values.take(usize::try_from(elements).unwrap_or(usize::MAX)).flat_map(f64::to_le_bytes));
}

/// Writes the file; none of HDF5 where it is written without.
pub(super) fn run<'a>(run: &Run<'a>, clock: &mut Clock) -> Result<Option<Done<'a>>> {
    let Blocks { api, elements, count, datasets, collective } = blocks(run)?;
    let own = (0..count).filter(|block| run.team.has(*block));
    if api != Api::Hdf5 {
        let mut bytes = Vec::new();
        let mut write = |clock: &mut Clock, write_at: &dyn Fn(u64, &[u8]) -> Result<()>| {
            own.clone().try_for_each(|block| {
                bytes_of(values(run, 0, block), elements, &mut bytes);
                clock.time(Stage::Write, || write_at(block * elements * 8, &bytes))
            })
        };
        return match (api, run.team.mpi()) {
            (Api::Mpiio, Some(mpi)) => {
                let file = clock.time(Stage::Open, || Ok(mpi.create(run.path)?))?;
                write(clock, &|place, bytes| Ok(file.write_at(place, bytes, collective)?))?;
                clock.time(Stage::Close, || Ok(file.close()?)).map(|()| None)
            }
            (Api::Mpiio, None) => Err(super::takes_ranks()),
            _ => {
                let failed = |source| io(run.path, "writing", source);
                let file = clock.time(Stage::Open, || create_plain(run))?;
                write(clock, &|place, bytes| file.write_all_at(bytes, place).map_err(failed))?;
                close_plain(clock, file).map(|()| None)
            }
        };
    }
    let file = clock.time(Stage::Open, || run.create())?;
    let mut block_values = Vec::new();
    for place in 0..datasets {
        let dims = [elements * count];
        let create = || run.create_dataset(&file, &name(place), Element::F64, &dims);
        let dataset = clock.time(Stage::Objects, create)?;
        if collective && run.team.mpi().is_some() {
            dataset.together()?;
        }
        for block in own.clone() {
            block_values.clear();
            block_values.extend(values(run, place, block).take(usize::try_from(elements).unwrap_or(usize::MAX)));
            let values = Values::F64(&block_values);
            clock.time(Stage::Write, || Ok(dataset.write(values, &[block * elements], &[elements])?))?;
        }
        clock.time(Stage::Objects, || Ok(dataset.close()?))?;
    }
    let last = values(run, datasets - 1, count - 1).take(usize::try_from(elements).unwrap_or(usize::MAX));
    let sample = Sample {
        name: name(datasets - 1),
        values: last.map(|value| value as f32).collect(),
        start: vec![(count - 1) * elements],
        count: vec![elements],
    };
    Ok(Some(Done { file, sample: Some(sample) }))
}

/// Reads the file that all ranks wrote, and checks every value.
pub(super) fn read_back(run: &Run<'_>, order: ReadBack, clock: &mut Clock) -> Result<()> {
    let Blocks { api, elements, count, datasets, collective } = blocks(run)?;
    let own = run.team.reads(order, run.seed, count);
    if api != Api::Hdf5 {
        let mut expected = Vec::new();
        let mut bytes = vec![0; usize::try_from(elements * 8).unwrap_or(usize::MAX)];
        let mut read = |clock: &mut Clock, read_at: &dyn Fn(u64, &mut [u8]) -> Result<()>| {
            own.iter().try_for_each(|&block| {
                clock.time(Stage::Read, || read_at(block * elements * 8, &mut bytes))?;
                bytes_of(values(run, 0, block), elements, &mut expected);
                check(&run.path.to_string_lossy(), &[block * elements], expected.iter().copied(), &bytes)
            })
        };
        return match (api, run.team.mpi()) {
            (Api::Mpiio, Some(mpi)) => {
                let file = clock.time(Stage::Open, || Ok(mpi.open(run.path)?))?;
                read(clock, &|place, bytes| Ok(file.read_at(place, bytes, collective)?))?;
                clock.time(Stage::Close, || Ok(file.close()?))
            }
            (Api::Mpiio, None) => Err(super::takes_ranks()),
            _ => {
                let failed = |source| io(run.path, "reading", source);
                let file = clock.time(Stage::Open, || File::open(run.path).map_err(failed))?;
                read(clock, &|place, bytes| file.read_exact_at(bytes, place).map_err(failed))?;
                close_plain(clock, file)
            }
        };
    }
    let file = clock.time(Stage::Open, || run.open())?;
    let mut found = vec![0.0; usize::try_from(elements).unwrap_or(usize::MAX)];
    for place in 0..datasets {
        let dataset = clock.time(Stage::Objects, || Ok(file.open_dataset(&name(place))?))?;
        if collective && run.team.mpi().is_some() {
            dataset.together()?;
        }
        for block in &own {
            let start = [block * elements];
            clock.time(Stage::Read, || Ok(dataset.read_f64(&mut found, &start, &[elements])?))?;
            check(&name(place), &start, values(run, place, *block), &found)?;
        }
        clock.time(Stage::Objects, || Ok(dataset.close()?))?;
    }
    clock.time(Stage::Close, || Ok(file.close()?))
}

/// One file, made by the first and opened by all.
fn create_plain(run: &Run<'_>) -> Result<File> {
    let failed = |source| io(run.path, "writing", source);
    let made = (run.team.rank == 0).then(|| File::create_new(run.path).map_err(failed)).transpose()?;
    run.team.wait()?;
    made.map_or_else(|| File::options().write(true).open(run.path).map_err(failed), Ok)
}

fn close_plain(clock: &mut Clock, file: File) -> Result<()> {
    clock.time(Stage::Close, || {
        drop(file);
        Ok(())
    })
}
