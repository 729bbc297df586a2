//! [`Kernel::Occam`]: rows of a field, over all levels, written to one dataset.

use super::clock::{Clock, RunStage};
use super::{Done, KernelRun, Sample};
use crate::error::Result;
use crate::kernel::{Data, Kernel};
use raddle_core::random::Random;
use raddle_hdf5::dynamic::{Element, MemoryValues};

/// Name of the dataset.
const NAME: &str = "temperature";

/// Writes the file.
pub(super) fn run<'a>(run: &KernelRun<'a>, clock: &mut Clock) -> Result<Done<'a>> {
    let Kernel::Occam { levels, rows, longitudes, rows_per_write, converts, data } = run.kernel else {
        return Err(super::not_this_kernel());
    };
    let file = clock.time(RunStage::Open, || run.create())?;
    let dims = [levels, rows, longitudes];
    let dataset = clock.time(RunStage::Objects, || run.create_dataset(&file, NAME, Element::F32, &dims))?;
    let field = Field::new(longitudes, data);
    let mut values = Vec::new();
    let mut wide = Vec::new();
    let mut random = Random::of(&[run.seed, 1]);
    for first_row in (0..rows).step_by(usize::try_from(rows_per_write).unwrap_or(usize::MAX)) {
        values.clear();
        for level in 0..levels {
            for row in first_row..first_row + rows_per_write {
                field.push_row(level, row, &mut random, &mut values);
            }
        }
        let (start, count) = ([0, first_row, 0], [levels, rows_per_write, longitudes]);
        if converts {
            wide.clear();
            wide.extend(values.iter().copied().map(f64::from));
            clock.time(RunStage::Write, || Ok(dataset.write(MemoryValues::F64(&wide), &start, &count)?))?;
        } else {
            clock.time(RunStage::Write, || Ok(dataset.write(MemoryValues::F32(&values), &start, &count)?))?;
        }
    }
    clock.time(RunStage::Close, || Ok(dataset.close()?))?;
    let (start, count) = (vec![0, rows - rows_per_write, 0], vec![levels, rows_per_write, longitudes]);
    Ok(Done { file, sample: Some(Sample { name: NAME.to_owned(), values, start, count }) })
}

/// A smooth field of temperatures in thousandths of a degree, with noise and land.
struct Field {
    /// Factor that each longitude contributes to the temperature.
    along: Vec<f64>,
    data: Data,
    /// Value of the wave below which there is land, whose values are 0. A sine is below `sin(pi (f - 1/2))` for a share
    /// `f` of its period.
    coast: f64,
}

impl Field {
    fn new(longitudes: u64, data: Data) -> Self {
        let along = (0..longitudes).map(|x| 1.0 + 0.1 * (x as f64 * 0.02).sin()).collect();
        Self { along, data, coast: (std::f64::consts::PI * (data.zero_fraction - 0.5)).sin() }
    }

    fn push_row(&self, level: u64, row: u64, random: &mut Random, values: &mut Vec<f32>) {
        let scale = 20.0 * (-(level as f64) / 20.0).exp() * (row as f64 * 0.01).cos();
        for (x, along) in self.along.iter().enumerate() {
            let wave = (x as f64 * 0.02 + row as f64 * 0.05).sin();
            let noise = random.below(self.data.noise) as f64;
            let is_land = self.data.zero_fraction > 0.0 && wave < self.coast;
            let value = if is_land { 0.0 } else { ((scale * along * 1000.0).round() + noise) / 1000.0 };
            values.push(value as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_share_of_land_that_is_asked_for() {
        for zero_fraction in [0.0, 0.33, 1.0] {
            let field = Field::new(3000, Data { noise: 8, zero_fraction });
            let (mut values, mut random) = (Vec::new(), Random::of(&[1]));
            (0..10).for_each(|row| field.push_row(0, row, &mut random, &mut values));
            let zeros = values.iter().filter(|value| **value == 0.0).count() as f64 / values.len() as f64;
            assert!((zeros - zero_fraction).abs() < 0.05, "{zero_fraction}: {zeros}");
        }
    }
}
