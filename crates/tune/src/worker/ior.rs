//! [`Kernel::Ior`]: consecutive bursts, dealt to the ranks round-robin or divided among them, with or without HDF5, and
//! read back.

use super::clock::{Clock, RunStage};
use super::{Done, KernelRun, Sample, check, io};
use crate::error::Result;
use crate::kernel::{Api, Kernel, ReadBack};
use raddle_core::random::Random;
use raddle_core::ranks::shares::even_share;
use raddle_hdf5::dynamic::{Element, MemoryValues};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Parameters of the kernel.
struct Bursts {
    api: Api,
    /// Elements of a burst.
    elements: u64,
    /// Bursts per dataset.
    count: u64,
    /// Number of blocks in which a rank writes its portion.
    blocks: u64,
    /// Number of ranks that divide a burst; 1 if each rank writes whole bursts.
    sharers: u64,
    datasets: u64,
    collective: bool,
}

impl Bursts {
    fn of(run: &KernelRun<'_>) -> Result<Self> {
        let Kernel::Ior { api, burst_len_bytes, bursts, blocks_per_burst, divided, datasets, collective, .. } =
            run.kernel
        else {
            return Err(super::not_this_kernel());
        };
        let sharers = if divided { run.team.size } else { 1 };
        let elements = burst_len_bytes / 8;
        Ok(Self { api, elements, count: bursts, blocks: blocks_per_burst, sharers, datasets, collective })
    }

    /// Returns the number of portions dealt to the ranks: bursts, or their parts.
    fn portions(&self) -> u64 {
        self.count * self.sharers
    }

    /// Returns the ranges of elements of the blocks of a portion.
    fn blocks(&self, portion: u64) -> impl Iterator<Item = Range<u64>> + Clone + use<> {
        let Range { start, end } = even_share(self.elements, portion % self.sharers, self.sharers);
        let (first, blocks) = (portion / self.sharers * self.elements + start, self.blocks);
        (0..blocks).map(move |block| {
            let Range { start: from, end: to } = even_share(end - start, block, blocks);
            first + from..first + to
        })
    }
}

fn name(dataset: u64) -> String {
    format!("Dataset-{dataset:04}")
}

/// Returns the values of a block. They are unique to the block, so that reading the wrong block is detected.
fn values(run: &KernelRun<'_>, dataset: u64, block: &Range<u64>) -> impl Iterator<Item = f64> + use<> {
    let mut random = Random::of(&[run.seed, 3, dataset, block.start]);
    let count = usize::try_from(block.end - block.start).unwrap_or(usize::MAX);
    std::iter::repeat_with(move || random.unit()).take(count)
}

/// Writes the file; returns `None` if it is not an HDF5 file.
pub(super) fn run<'a>(run: &KernelRun<'a>, clock: &mut Clock) -> Result<Option<Done<'a>>> {
    let bursts = Bursts::of(run)?;
    let local_portions = (0..bursts.portions()).filter(|portion| run.team.has(*portion));
    let local_blocks = local_portions.flat_map(|portion| bursts.blocks(portion));
    if bursts.api != Api::Hdf5 {
        let mut bytes = Vec::new();
        let mut write = |clock: &mut Clock, write_at: &dyn Fn(u64, &[u8]) -> Result<()>| {
            local_blocks.clone().try_for_each(|block| {
                bytes.clear();
                bytes.extend(values(run, 0, &block).flat_map(f64::to_le_bytes));
                clock.time(RunStage::Write, || write_at(block.start * 8, &bytes))
            })
        };
        return match (bursts.api, run.team.mpi()) {
            (Api::Mpiio, Some(mpi)) => {
                let file = clock.time(RunStage::Open, || Ok(mpi.create(run.path)?))?;
                write(clock, &|place, bytes| Ok(file.write_at(place, bytes, bursts.collective)?))?;
                clock.time(RunStage::Close, || Ok(file.close()?)).map(|()| None)
            }
            (Api::Mpiio, None) => Err(super::takes_ranks()),
            _ => {
                let failed = |source| io(run.path, "writing", source);
                let file = clock.time(RunStage::Open, || create_plain(run))?;
                write(clock, &|place, bytes| file.write_all_at(bytes, place).map_err(failed))?;
                close_plain(clock, file).map(|()| None)
            }
        };
    }
    let file = clock.time(RunStage::Open, || run.create())?;
    let mut block_values = Vec::new();
    for place in 0..bursts.datasets {
        let dims = [bursts.elements * bursts.count];
        let create = || run.create_dataset(&file, &name(place), Element::F64, &dims);
        let dataset = clock.time(RunStage::Objects, create)?;
        if bursts.collective && run.team.mpi().is_some() {
            dataset.together()?;
        }
        for block in local_blocks.clone() {
            block_values.clear();
            block_values.extend(values(run, place, &block));
            let (values, count) = (MemoryValues::F64(&block_values), block.end - block.start);
            clock.time(RunStage::Write, || Ok(dataset.write(values, &[block.start], &[count])?))?;
        }
        clock.time(RunStage::Objects, || Ok(dataset.close()?))?;
    }
    let (place, last) = (bursts.datasets - 1, bursts.blocks(bursts.portions() - 1).last());
    let sample = last.map(|block| Sample {
        name: name(place),
        values: values(run, place, &block).map(|value| value as f32).collect(),
        start: vec![block.start],
        count: vec![block.end - block.start],
    });
    Ok(Some(Done { file, sample }))
}

/// Reads the file that all ranks wrote, and checks every value.
pub(super) fn read_back(run: &KernelRun<'_>, order: ReadBack, clock: &mut Clock) -> Result<()> {
    let bursts = Bursts::of(run)?;
    let local_portions = run.team.reads(order, run.seed, bursts.portions());
    let local_blocks: Vec<Range<u64>> = local_portions.into_iter().flat_map(|portion| bursts.blocks(portion)).collect();
    let len = |block: &Range<u64>| usize::try_from(block.end - block.start).unwrap_or(usize::MAX);
    if bursts.api != Api::Hdf5 {
        let mut bytes = Vec::new();
        let mut read = |clock: &mut Clock, read_at: &dyn Fn(u64, &mut [u8]) -> Result<()>| {
            local_blocks.iter().try_for_each(|block| {
                bytes.resize(len(block) * 8, 0);
                clock.time(RunStage::Read, || read_at(block.start * 8, &mut bytes))?;
                let expected = values(run, 0, block).flat_map(f64::to_le_bytes);
                check(&run.path.to_string_lossy(), &[block.start * 8], expected, &bytes)
            })
        };
        return match (bursts.api, run.team.mpi()) {
            (Api::Mpiio, Some(mpi)) => {
                let file = clock.time(RunStage::Open, || Ok(mpi.open(run.path)?))?;
                read(clock, &|place, bytes| Ok(file.read_at(place, bytes, bursts.collective)?))?;
                clock.time(RunStage::Close, || Ok(file.close()?))
            }
            (Api::Mpiio, None) => Err(super::takes_ranks()),
            _ => {
                let failed = |source| io(run.path, "reading", source);
                let file = clock.time(RunStage::Open, || File::open(run.path).map_err(failed))?;
                read(clock, &|place, bytes| file.read_exact_at(bytes, place).map_err(failed))?;
                close_plain(clock, file)
            }
        };
    }
    let file = clock.time(RunStage::Open, || run.open())?;
    let mut found = Vec::new();
    for place in 0..bursts.datasets {
        let dataset = clock.time(RunStage::Objects, || Ok(file.open_dataset(&name(place))?))?;
        if bursts.collective && run.team.mpi().is_some() {
            dataset.together()?;
        }
        for block in &local_blocks {
            found.resize(len(block), 0.0);
            let (start, count) = ([block.start], [block.end - block.start]);
            clock.time(RunStage::Read, || Ok(dataset.read_f64(&mut found, &start, &count)?))?;
            check(&name(place), &start, values(run, place, block), &found)?;
        }
        clock.time(RunStage::Objects, || Ok(dataset.close()?))?;
    }
    clock.time(RunStage::Close, || Ok(file.close()?))
}

/// Opens the file on all ranks after the first has created it.
fn create_plain(run: &KernelRun<'_>) -> Result<File> {
    let failed = |source| io(run.path, "writing", source);
    let created = (run.team.rank == 0).then(|| File::create_new(run.path).map_err(failed)).transpose()?;
    run.team.wait()?;
    created.map_or_else(|| File::options().write(true).open(run.path).map_err(failed), Ok)
}

fn close_plain(clock: &mut Clock, file: File) -> Result<()> {
    clock.time(RunStage::Close, || {
        drop(file);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_all_of_the_dataset() {
        for (elements, count, blocks, sharers) in [(128, 1, 1, 1), (128, 3, 4, 1), (130, 2, 3, 4), (16, 1, 1, 16)] {
            let api = Api::Hdf5;
            let bursts = Bursts { api, elements, count, blocks, sharers, datasets: 1, collective: false };
            let all: Vec<Range<u64>> = (0..bursts.portions()).flat_map(|portion| bursts.blocks(portion)).collect();
            assert_eq!(all.len() as u64, count * blocks * sharers);
            assert!(all.iter().all(|block| block.start < block.end), "{all:?}");
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start), "{all:?}");
            assert_eq!((all[0].start, all[all.len() - 1].end), (0, elements * count));
        }
    }
}
