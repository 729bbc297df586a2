//! Computation of a level by downsampling the previous one: every second sample, or the mean of a cell.
//!
//! Which rank holds which samples is planned in `pyramid`. Invariant: a sample depends only on the samples of its cell,
//! which are added in array order, so it is the same in whichever box it is computed.

use super::level::Level;
use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::region::SampleBox;
use crate::dataset::sample::{Number, SampleType};
use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::parallel::for_each;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// Bytes computed by a thread at a time: large compared with the cost of a lock.
const SLAB_LEN_BYTES: usize = 1 << 20;

/// Method by which a level is computed from the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Downsample {
    /// Every second sample
    ///
    /// Along spatial axes only: `a[::2]`.
    #[default]
    Subsample,
    /// The mean of up to 2 x 2 x 2 samples; integers are rounded to the nearest, ties to even
    ///
    /// A cell has two samples along each spatial axis, and fewer at the far end. Samples are added in array order as
    /// 64-bit floating-point numbers or exact integers.
    Average,
}

impl Downsample {
    /// Returns the name used in metadata.
    pub fn name(self) -> &'static str {
        match self {
            Self::Subsample => "subsample",
            Self::Average => "average",
        }
    }

    /// Returns the samples of `level` that can be computed from `region`, a box of the previous level, alone. For
    /// means, the region must not cut cells.
    pub(crate) fn target_box(self, region: &SampleBox, level: &Level) -> SampleBox {
        let first = |axis: usize| match self {
            Self::Subsample => region.start[axis].div_ceil(level.factors[axis]),
            Self::Average => region.start[axis] / level.factors[axis],
        };
        let end = |axis: usize| region.end[axis].div_ceil(level.factors[axis]);
        SampleBox { start: std::array::from_fn(first), end: std::array::from_fn(end) }
    }
}

/// Samples of a level, and the next level that is computed from them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LevelPair<'a> {
    pub(crate) downsample: Downsample,
    pub(crate) sample: SampleType,
    /// Level to compute.
    pub(crate) level: &'a Level,
    /// Region of the previous level that `samples` covers.
    pub(crate) region: &'a SampleBox,
    /// Samples of the region, x fastest.
    pub(crate) samples: &'a [u8],
}

impl LevelPair<'_> {
    /// Computes the samples of `target` and writes them to `out`. The cells of these samples lie in the region.
    ///
    /// # Errors
    /// If the run is cancelled.
    pub(crate) fn make(
        &self,
        target: &SampleBox,
        out: &mut [u8],
        threads: usize,
        cancel: &CancelToken,
    ) -> Result<(), CoreError> {
        let row_len_bytes = target.counts()[0] as usize * self.sample.len_bytes();
        if row_len_bytes == 0 || out.is_empty() {
            return Ok(());
        }
        let rows_at_once = (SLAB_LEN_BYTES / row_len_bytes).max(1);
        let slabs: Vec<(usize, Mutex<&mut [u8]>)> = out
            .chunks_mut(rows_at_once * row_len_bytes)
            .enumerate()
            .map(|(slab, bytes)| (slab * rows_at_once, Mutex::new(bytes)))
            .collect();
        for_each(
            &slabs,
            threads,
            cancel,
            || (),
            |(), (first, slab)| {
                let mut slab = slab.lock().unwrap_or_else(PoisonError::into_inner);
                for (row, out) in slab.chunks_mut(row_len_bytes).enumerate() {
                    self.make_row(target, first + row, out);
                }
                Ok(())
            },
        )
    }

    /// Computes row number `row` of `target`.
    fn make_row(&self, target: &SampleBox, row: usize, out: &mut [u8]) {
        let (counts, factors) = (target.counts(), &self.level.factors);
        let mut rest = row as u64;
        let mut at = target.start;
        for axis in 1..MAX_RANK {
            at[axis] += rest % counts[axis];
            rest /= counts[axis];
        }
        let cells = CellRow { first: target.start[0] * factors[0] - self.region.start[0], factor: factors[0] as usize };
        match self.downsample {
            Downsample::Subsample => {
                let from = self.row(&std::array::from_fn(|axis| at[axis] * factors[axis]));
                cells.pick(from, out, self.sample.len_bytes());
            }
            Downsample::Average => {
                let rows = self.rows_of_cells(&at);
                average_of(self.sample.number)(cells, &rows, self.sample.count, out);
            }
        }
    }

    /// Returns the row of the region that contains a sample, whose coordinate along x is ignored.
    fn row(&self, at: &Point) -> &[u8] {
        let counts = self.region.counts();
        let number =
            (1..MAX_RANK).rev().fold(0, |number, axis| number * counts[axis] + (at[axis] - self.region.start[axis]));
        let len_bytes = counts[0] as usize * self.sample.len_bytes();
        &self.samples[number as usize * len_bytes..][..len_bytes]
    }

    /// Returns the rows of the cells of an output row, in array order.
    fn rows_of_cells(&self, at: &Point) -> Vec<&[u8]> {
        let factors = &self.level.factors;
        let mut points: Vec<Point> = vec![std::array::from_fn(|axis| at[axis] * factors[axis])];
        for axis in 1..MAX_RANK {
            if factors[axis] == 2 && points[0][axis] + 1 < self.region.end[axis] {
                let mut others = points.clone();
                others.iter_mut().for_each(|point| point[axis] += 1);
                points.extend(others);
            }
        }
        points.sort_unstable_by_key(|point| std::array::from_fn::<u64, MAX_RANK, _>(|axis| point[MAX_RANK - 1 - axis]));
        points.iter().map(|point| self.row(point)).collect()
    }
}

/// Position of the cells of an output row in its source rows.
#[derive(Debug, Clone, Copy)]
struct CellRow {
    /// Index of the first sample.
    first: u64,
    /// Number of samples per cell: 1 or 2.
    factor: usize,
}

impl CellRow {
    /// Copies the first sample of each cell.
    fn pick(self, from: &[u8], out: &mut [u8], sample_len_bytes: usize) {
        let from = &from[self.first as usize * sample_len_bytes..];
        if self.factor == 1 {
            out.copy_from_slice(&from[..out.len()]);
            return;
        }
        for (to, cell) in out.chunks_exact_mut(sample_len_bytes).zip(from.chunks(2 * sample_len_bytes)) {
            to.copy_from_slice(&cell[..sample_len_bytes]);
        }
    }
}

/// Function that computes a row of means. Its arguments are the position of the cells, the source rows, the number of
/// components, and the output.
type AverageRow = fn(CellRow, &[&[u8]], usize, &mut [u8]);

fn average_of(number: Number) -> AverageRow {
    match number {
        Number::Uint8 => average::<u8>,
        Number::Int8 => average::<i8>,
        Number::Uint16 => average::<u16>,
        Number::Int16 => average::<i16>,
        Number::Uint32 => average::<u32>,
        Number::Int32 => average::<i32>,
        Number::Uint64 => average::<u64>,
        Number::Int64 => average::<i64>,
        Number::Float32 => average::<f32>,
        Number::Float64 => average::<f64>,
    }
}

fn average<T: Mean>(cells: CellRow, rows: &[&[u8]], components: usize, out: &mut [u8]) {
    let sample_len_bytes = T::LEN_BYTES * components;
    let first = cells.first as usize * sample_len_bytes;
    let cell_len_bytes = cells.factor * sample_len_bytes;
    for (number, out) in out.chunks_exact_mut(sample_len_bytes).enumerate() {
        let at = first + number * cell_len_bytes;
        for (component, out) in out.chunks_exact_mut(T::LEN_BYTES).enumerate() {
            let (mut sum, mut count) = (T::Sum::default(), 0);
            for row in rows {
                // The last cell of a row may hold only one sample.
                let cell = &row[at..row.len().min(at + cell_len_bytes)];
                for sample in cell.chunks_exact(sample_len_bytes) {
                    sum = T::add(sum, &sample[component * T::LEN_BYTES..]);
                    count += 1;
                }
            }
            T::put_mean(sum, count, out);
        }
    }
}

/// A number type whose mean can be computed.
trait Mean {
    const LEN_BYTES: usize;
    type Sum: Copy + Default;

    /// Adds the number at the start of `bytes` to the sum.
    fn add(sum: Self::Sum, bytes: &[u8]) -> Self::Sum;

    /// Writes the mean of `count` numbers.
    fn put_mean(sum: Self::Sum, count: u32, out: &mut [u8]);
}

macro_rules! mean {
    ($type:ty, $sum:ty, $mean:expr) => {
        impl Mean for $type {
            const LEN_BYTES: usize = size_of::<$type>();
            type Sum = $sum;

            fn add(sum: $sum, bytes: &[u8]) -> $sum {
                bytes.first_chunk().map_or(sum, |bytes| sum + <$type>::from_le_bytes(*bytes) as $sum)
            }

            fn put_mean(sum: $sum, count: u32, out: &mut [u8]) {
                let mean: fn($sum, u32) -> $sum = $mean;
                out.copy_from_slice(&(mean(sum, count) as $type).to_le_bytes());
            }
        }
    };
}

macro_rules! rounded {
    ($sum:ty) => {
        |sum, count| {
            let count = <$sum>::from(count);
            let (below, twice_rest) = (sum.div_euclid(count), 2 * sum.rem_euclid(count));
            let is_up = twice_rest > count || twice_rest == count && below % 2 != 0;
            below + <$sum>::from(is_up)
        }
    };
}

mean!(u8, i64, rounded!(i64));
mean!(i8, i64, rounded!(i64));
mean!(u16, i64, rounded!(i64));
mean!(i16, i64, rounded!(i64));
mean!(u32, i64, rounded!(i64));
mean!(i32, i64, rounded!(i64));
mean!(u64, i128, rounded!(i128));
mean!(i64, i128, rounded!(i128));
mean!(f32, f64, quotient);
mean!(f64, f64, quotient);

/// Returns the mean, with a single NaN pattern: which NaN an addition gives is unspecified, but files must be equal.
fn quotient(sum: f64, count: u32) -> f64 {
    let mean = sum / f64::from(count);
    if mean.is_nan() { f64::NAN } else { mean }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(counts: &[u64], factors: &[u64]) -> Level {
        let point = |of: &[u64]| std::array::from_fn(|axis| of.get(axis).copied().unwrap_or(1));
        Level { counts: point(counts), factors: point(factors), spacing: point(factors) }
    }

    fn downsampled(downsample: Downsample, sample: &str, level: &Level, region: SampleBox, samples: &[u8]) -> Vec<u8> {
        let sample: SampleType = sample.parse().unwrap();
        let target = downsample.target_box(&region, level);
        let mut out = vec![0; target.sample_count().unwrap() as usize * sample.len_bytes()];
        let halving = LevelPair { downsample, sample, level, region: &region, samples };
        halving.make(&target, &mut out, 2, &CancelToken::new()).unwrap();
        out
    }

    #[test]
    fn every_second_sample() {
        let row: Vec<u8> = (0..10).collect();
        let whole = level(&[3, 1], &[2, 2]);
        assert_eq!(
            downsampled(Downsample::Subsample, "uint8", &whole, SampleBox::new(&[0, 0], &[5, 2]), &row),
            [0, 2, 4]
        );
        // The box begins at odd coordinates; its first samples are not in the level.
        assert!(
            downsampled(Downsample::Subsample, "uint8", &whole, SampleBox::new(&[1, 1], &[4, 1]), &row[..4]).is_empty()
        );
        assert_eq!(
            downsampled(Downsample::Subsample, "uint8", &whole, SampleBox::new(&[1, 0], &[4, 1]), &row[..4]),
            [1, 3]
        );
        let pairs = level(&[2], &[2]);
        assert_eq!(
            downsampled(Downsample::Subsample, "uint8[2]", &pairs, SampleBox::new(&[0], &[3]), &row[..6]),
            [0, 1, 4, 5]
        );
    }

    #[test]
    fn means_of_cells_and_of_what_is_left_of_them() {
        let whole = level(&[2, 2], &[2, 2]);
        let samples = [0, 1, 10, 2, 4, 20, 100, 102, 7];
        let region = SampleBox::new(&[0, 0], &[3, 3]);
        // (0 + 1 + 2 + 4) / 4 = 1.75; (10 + 20) / 2; (100 + 102) / 2.
        assert_eq!(downsampled(Downsample::Average, "uint8", &whole, region, &samples), [2, 15, 101, 7]);
        let halves: Vec<u8> = [1i16, 2, 3, 4, -1, -2, -3, -4].iter().flat_map(|number| number.to_le_bytes()).collect();
        let got = downsampled(Downsample::Average, "int16", &level(&[4], &[2]), SampleBox::new(&[0], &[8]), &halves);
        let want: Vec<u8> = [2i16, 4, -2, -4].iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(got, want, "ties go to the even number");
        let large: Vec<u8> = [u64::MAX, u64::MAX - 2].iter().flat_map(|number| number.to_le_bytes()).collect();
        let got = downsampled(Downsample::Average, "uint64", &level(&[1], &[2]), SampleBox::new(&[0], &[2]), &large);
        assert_eq!(got, (u64::MAX - 1).to_le_bytes());
        let floats: Vec<u8> = [1.5f32, 2.0, f32::NAN].iter().flat_map(|number| number.to_le_bytes()).collect();
        let got = downsampled(Downsample::Average, "float32", &level(&[2], &[2]), SampleBox::new(&[0], &[3]), &floats);
        assert_eq!(got[..4], 1.75f32.to_le_bytes());
        assert!(f32::from_le_bytes(got[4..].try_into().unwrap()).is_nan());
    }

    #[test]
    fn axes_that_are_not_halved_stay() {
        let steps = level(&[1, 3], &[2, 1]);
        let region = SampleBox::new(&[0, 0], &[2, 3]);
        assert_eq!(downsampled(Downsample::Average, "uint8", &steps, region, &[1, 3, 5, 7, 9, 11]), [2, 6, 10]);
        assert_eq!(downsampled(Downsample::Subsample, "uint8", &steps, region, &[1, 3, 5, 7, 9, 11]), [1, 5, 9]);
    }
}
