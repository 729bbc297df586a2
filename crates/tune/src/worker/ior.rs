//! [`Kernel::Ior`]: blocks one after the other, dealt to the ranks in turn, through HDF5 or without.

use super::clock::{Clock, Stage};
use super::{Done, Run, Sample, io};
use crate::error::Result;
use crate::kernel::{Api, Kernel};
use raddle_core::random::Random;
use raddle_hdf5::chosen::{Element, Values};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Writes the file; none of HDF5 where it is written without.
pub(super) fn run<'a>(run: &Run<'a>, clock: &mut Clock) -> Result<Option<Done<'a>>> {
    let Kernel::Ior { api, transfer_len_bytes, blocks, datasets, collective } = run.kernel else {
        return Err(super::not_this_kernel());
    };
    let elements = transfer_len_bytes / 8;
    let mut random = Random::of(&[run.seed, 3]);
    let values: Vec<f64> = (0..elements).map(|_| random.unit()).collect();
    if api != Api::Hdf5 {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let places = (0..blocks).filter(|block| run.team.has(*block)).map(|block| block * transfer_len_bytes);
        return match (api, run.team.mpi()) {
            (Api::Mpiio, Some(mpi)) => {
                let file = clock.time(Stage::Open, || Ok(mpi.create(run.path)?))?;
                for place in places {
                    clock.time(Stage::Write, || Ok(file.write_at(place, &bytes, collective)?))?;
                }
                clock.time(Stage::Close, || Ok(file.close()?)).map(|()| None)
            }
            (Api::Mpiio, None) => Err(super::takes_ranks()),
            _ => write_plain(run, clock, &bytes, places).map(|()| None),
        };
    }
    let file = clock.time(Stage::Open, || run.create())?;
    for place in 0..datasets {
        let dims = [elements * blocks];
        let create = || run.create_dataset(&file, &format!("Dataset-{place:04}"), Element::F64, &dims);
        let dataset = clock.time(Stage::Objects, create)?;
        if collective && run.team.mpi().is_some() {
            dataset.together()?;
        }
        for block in (0..blocks).filter(|block| run.team.has(*block)) {
            clock
                .time(Stage::Write, || Ok(dataset.write(Values::F64(&values), &[block * elements], &[elements])?))?;
        }
        clock.time(Stage::Objects, || Ok(dataset.close()?))?;
    }
    let sample = Sample {
        name: format!("Dataset-{:04}", datasets - 1),
        values: values.iter().map(|value| *value as f32).collect(),
        start: vec![(blocks - 1) * elements],
        count: vec![elements],
    };
    Ok(Some(Done { file, sample: Some(sample) }))
}

/// One file, made by the first and written by all.
fn write_plain(run: &Run<'_>, clock: &mut Clock, bytes: &[u8], places: impl Iterator<Item = u64>) -> Result<()> {
    let failed = |source| io(run.path, "writing", source);
    let file = clock.time(Stage::Open, || {
        let made = (run.team.rank == 0).then(|| File::create_new(run.path).map_err(failed)).transpose()?;
        run.team.wait()?;
        made.map_or_else(|| File::options().write(true).open(run.path).map_err(failed), Ok)
    })?;
    for place in places {
        clock.time(Stage::Write, || file.write_all_at(bytes, place).map_err(failed))?;
    }
    clock.time(Stage::Close, || {
        drop(file);
        Ok(())
    })
}
