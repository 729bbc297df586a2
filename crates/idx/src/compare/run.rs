//! Comparison of an output with its inputs, piece by piece.

use super::compared::{ComparedArrays, Tolerance};
use super::outcome::{Comparison, RoundedField, UncomparedSteps, Unequal};
use crate::dataset::sample::Number;
use crate::error::IdxError;
use crate::inputs::{InputLayout, Inputs, RowArray};
use crate::read::dataset::Readers;
use std::collections::BTreeSet;
use std::path::Path;

/// Length of the rows of samples compared at once.
const PIECE_LEN_BYTES: u64 = 64 << 20;

/// Compares the fields of the output at `path` with `inputs`. Most are expected to be identical bit by bit.
///
/// # Errors
/// If the output has other fields, counts or time steps, or either side cannot be read.
pub fn compare<A: RowArray>(
    path: &Path,
    output: &(impl ComparedArrays + ?Sized),
    inputs: &Inputs<A>,
    readers: &Readers<'_>,
) -> Result<Comparison, A::Error> {
    let (mut comparison, layout) = (Comparison::default(), &inputs.layout);
    for (time, of_step) in &layout.steps {
        for (field, input) in of_step.clone().enumerate() {
            let refused = |reason: String| IdxError::Mismatch { path: path.to_path_buf(), reason };
            output.check_field(field, layout).map_err(refused)?;
            let array = &inputs.arrays[input];
            let (tolerance, compression) = output.tolerance(field, layout);
            let difference = FieldDifference::of(output, array, (field, *time), (layout, tolerance), readers)?;
            let (field, time) = (layout.fields[field].0.clone(), *time);
            if difference.samples > 0 {
                let (input, samples) = (array.path().to_path_buf(), difference.samples);
                comparison.unequal.push(Unequal { field, time, input, samples });
            } else if tolerance != Tolerance::Exact {
                let largest_difference = difference.largest;
                comparison.rounded.push(RoundedField { field, time, compression, largest_difference });
            }
        }
    }
    comparison.not_compared = not_compared(output, layout);
    Ok(comparison)
}

/// Difference of a field from its input at a time step.
#[derive(Debug, Clone, Copy, Default)]
struct FieldDifference {
    /// Number of samples that differ by more than the tolerance.
    samples: u64,
    /// Largest difference between two numbers.
    largest: f64,
}

impl FieldDifference {
    fn of<A: RowArray>(
        output: &(impl ComparedArrays + ?Sized),
        array: &A,
        (field, time): (usize, Option<u64>),
        (layout, tolerance): (&InputLayout, Tolerance),
        readers: &Readers<'_>,
    ) -> Result<Self, A::Error> {
        let sample = layout.fields[field].1;
        let rows_at_once = (PIECE_LEN_BYTES / array.row_len_bytes().max(1)).max(1);
        let (mut row, mut found) = (0, Self::default());
        while row < layout.rows() {
            readers.cancel.check().map_err(IdxError::Core)?;
            let rows = row..layout.rows().min(row + rows_at_once);
            let got = output.read_rows(field, time, &rows, layout, readers)?;
            let want = array.read_rows(rows.clone())?;
            let len = sample.len_bytes();
            for (got, want) in got.chunks(len).zip(want.chunks(len)).filter(|(got, want)| got != want) {
                let is_allowed = differences(sample.number, got, want).all(|difference| {
                    found.largest = found.largest.max(difference);
                    tolerance.allows(difference)
                });
                found.samples += u64::from(!is_allowed);
            }
            row = rows.end;
        }
        Ok(found)
    }
}

/// Returns the differences between the numbers of two samples that differ.
fn differences<'s>(number: Number, one: &'s [u8], other: &'s [u8]) -> impl Iterator<Item = f64> + use<'s> {
    let numbers = one.chunks(number.len_bytes()).zip(other.chunks(number.len_bytes()));
    let differing = numbers.filter(|(one, other)| one != other);
    differing.map(move |(one, other)| (number.value_of(one) - number.value_of(other)).abs())
}

/// Returns the parts of the output that correspond to none of `inputs`.
fn not_compared(output: &(impl ComparedArrays + ?Sized), inputs: &InputLayout) -> Vec<UncomparedSteps> {
    let steps: BTreeSet<u64> = inputs.steps.iter().filter_map(|(step, _)| *step).collect();
    let mut left = Vec::new();
    for (field, runs) in output.contents(inputs) {
        let is_input = inputs.fields.iter().any(|(name, _)| *name == field);
        for run in runs {
            match run {
                _ if !is_input => left.push(UncomparedSteps { field: field.clone(), time: run }),
                Some(run) => left.extend(
                    gaps(run, &steps)
                        .into_iter()
                        .map(|time| UncomparedSteps { field: field.clone(), time: Some(time) }),
                ),
                None => {}
            }
        }
    }
    left
}

/// Removes `steps` from a run of steps and returns the remaining runs.
fn gaps((first, last): (u64, u64), steps: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let (mut gaps, mut from) = (Vec::new(), Some(first));
    for step in steps.range(first..=last) {
        gaps.extend(from.filter(|from| from < step).map(|from| (from, step - 1)));
        from = step.checked_add(1);
    }
    gaps.extend(from.filter(|from| *from <= last).map(|from| (from, last)));
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_is_left() {
        let left = |run, steps: &[u64]| gaps(run, &steps.iter().copied().collect());
        assert_eq!(left((0, 9), &[]), [(0, 9)]);
        assert_eq!(left((0, 9), &[0, 4, 5, 9, 12]), [(1, 3), (6, 8)]);
        assert_eq!(left((3, 3), &[3]), []);
        assert_eq!(left((u64::MAX - 1, u64::MAX), &[u64::MAX]), [(u64::MAX - 1, u64::MAX - 1)]);
    }
}
