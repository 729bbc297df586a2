//! [`Kernel::Ior`]: blocks one after the other, through HDF5 or without.

use super::clock::{Clock, Stage};
use super::{Done, Run, Sample, io};
use crate::error::Result;
use crate::kernel::{Api, Kernel};
use raddle_core::random::Random;
use raddle_hdf5::chosen::{Element, Values};
use std::io::Write;

/// Writes the file; none of HDF5 where it is written without.
pub(super) fn run<'a>(run: &Run<'a>, clock: &mut Clock) -> Result<Option<Done<'a>>> {
    let Kernel::Ior { api, transfer_len_bytes, blocks, datasets } = run.kernel else {
        return Err(super::not_this_kernel());
    };
    let elements = transfer_len_bytes / 8;
    let mut random = Random::of(&[run.seed, 3]);
    let values: Vec<f64> = (0..elements).map(|_| random.unit()).collect();
    if api == Api::Posix {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let failed = |source| io(run.path, "writing", source);
        let mut file = clock.time(Stage::Open, || std::fs::File::create_new(run.path).map_err(failed))?;
        for _ in 0..blocks {
            clock.time(Stage::Write, || file.write_all(&bytes).map_err(failed))?;
        }
        clock.time(Stage::Close, || {
            drop(file);
            Ok(())
        })?;
        return Ok(None);
    }
    let file = clock.time(Stage::Open, || run.create())?;
    for place in 0..datasets {
        let dims = [elements * blocks];
        let create = || run.create_dataset(&file, &format!("Dataset-{place:04}"), Element::F64, &dims);
        let dataset = clock.time(Stage::Objects, create)?;
        for block in 0..blocks {
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
    Ok(Some(Done { file, sample }))
}
