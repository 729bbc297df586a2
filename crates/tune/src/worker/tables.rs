//! [`Kernel::Concat`] and [`Kernel::Read`]: tables to which inputs append rows, and tables read by ranges of rows.

use super::clock::{Clock, RunStage};
use super::{Done, KernelRun, Sample, check};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::statistics::order_of_block;
use raddle_core::random::Random;
use raddle_hdf5::dynamic::{Element, MemoryValues};
use std::ops::Range;

fn name(place: u64) -> String {
    format!("table{place:04}")
}

/// Returns rows of one table from one input: multiples of 1/8 around 0, like detector measurements.
fn values(seed: u64, table: u64, input: u64, rows: Range<u64>, columns: u64) -> Vec<f32> {
    let of_row = |row| {
        let mut random = Random::of(&[seed, table, input, row]);
        (0..columns).map(move |_| (random.normal() * 100.0).round() as f32 / 8.0)
    };
    rows.flat_map(of_row).collect()
}

/// Writes tables input by input; for a reading kernel, each table in one call.
pub(super) fn write<'a>(run: &KernelRun<'a>, clock: &mut Clock) -> Result<Done<'a>> {
    let (inputs, datasets, rows, columns) = match run.kernel {
        Kernel::Concat { inputs, datasets, rows, columns } => (inputs, datasets, rows, columns),
        Kernel::Read { datasets, rows, columns, .. } => (1, datasets, rows, columns),
        _ => return Err(super::not_this_kernel()),
    };
    let file = clock.time(RunStage::Open, || run.create())?;
    let dims = [inputs * rows, columns];
    let create = |table| run.create_dataset(&file, &name(table), Element::F32, &dims);
    let tables = clock.time(RunStage::Objects, || (0..datasets).map(create).collect::<Result<Vec<_>>>())?;
    for input in 0..inputs {
        for (place, table) in (0..).zip(&tables) {
            let table_values = values(run.seed, place, input, 0..rows, columns);
            clock.time(RunStage::Write, || {
                Ok(table.write(MemoryValues::F32(&table_values), &[input * rows, 0], &[rows, columns])?)
            })?;
        }
    }
    for table in tables {
        clock.time(RunStage::Close, || Ok(table.close()?))?;
    }
    let last = values(run.seed, datasets - 1, inputs - 1, 0..rows, columns);
    let (start, count) = (vec![(inputs - 1) * rows, 0], vec![rows, columns]);
    Ok(Done { file, sample: Some(Sample { name: name(datasets - 1), values: last, start, count }) })
}

/// Reads all tables range by range, each range from all tables before the next one, and checks every value.
pub(super) fn read<'a>(run: &KernelRun<'a>, clock: &mut Clock) -> Result<Done<'a>> {
    let Kernel::Read { datasets, rows, columns, rows_per_read, shuffled } = run.kernel else {
        return Err(super::not_this_kernel());
    };
    let file = clock.time(RunStage::Open, || run.open())?;
    let open = |table| Ok(file.open_dataset(&name(table))?);
    let tables = clock.time(RunStage::Objects, || (0..datasets).map(open).collect::<Result<Vec<_>>>())?;
    let ranges = usize::try_from(rows.div_ceil(rows_per_read)).unwrap_or(usize::MAX);
    let order = if shuffled { order_of_block(run.seed, 0, ranges) } else { (0..ranges).collect() };
    let mut found = Vec::new();
    for range in order {
        let first = range as u64 * rows_per_read;
        let count = rows_per_read.min(rows - first);
        found.resize(usize::try_from(count * columns).unwrap_or(usize::MAX), 0.0_f32);
        for (place, table) in (0..).zip(&tables) {
            clock.time(RunStage::Read, || Ok(table.read_f32(&mut found, &[first, 0], &[count, columns])?))?;
            check(&name(place), &[first, 0], values(run.seed, place, 0, first..first + count, columns), &found)?;
        }
    }
    for table in tables {
        clock.time(RunStage::Objects, || Ok(table.close()?))?;
    }
    let last = values(run.seed, datasets - 1, 0, 0..rows, columns);
    Ok(Done {
        file,
        sample: Some(Sample { name: name(datasets - 1), values: last, start: vec![0, 0], count: vec![rows, columns] }),
    })
}
