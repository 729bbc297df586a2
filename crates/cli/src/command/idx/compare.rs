//! Comparing a dataset with the arrays that it was made of.

use super::inputs::Inputs;
use crate::exit::Exit;
use crate::failure::Failure;
use raddle_core::CoreError;
use raddle_idx::{Dataset, IdxError, Query, Readers};
use serde::Serialize;
use std::path::PathBuf;

/// Rows of samples that are compared at once, in bytes.
const PIECE_LEN_BYTES: u64 = 64 << 20;

/// A field that is not equal to its input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unequal {
    /// Field.
    pub field: String,
    /// Time step.
    pub time: Option<u64>,
    /// Its input.
    pub input: PathBuf,
    /// Samples that differ.
    pub samples: u64,
}

/// The fields that differ from `inputs`, bit by bit.
///
/// # Errors
/// If the dataset has other fields, counts or time steps, or either side cannot be read.
pub fn compare(dataset: &Dataset, inputs: &Inputs, readers: &Readers<'_>) -> Result<Vec<Unequal>, Failure> {
    let header = dataset.header();
    let path = dataset.path().display();
    let refused = |why: &str| Failure::new(Exit::Mismatch, &format!("{path}: {why}"));
    let whole = inputs.region(&(0..inputs.rows()));
    if (whole.start, whole.end) != (header.start, header.end) {
        return Err(refused("has other samples than the inputs"));
    }
    let mut unequal = Vec::new();
    for (time, of_step) in &inputs.steps {
        for (field, input) in of_step.clone().enumerate() {
            let (name, sample) = &inputs.fields[field];
            let number = header.field_index(name).ok_or_else(|| refused(&format!("has no field {name}")))?;
            if header.fields[number].sample != *sample {
                return Err(refused(&format!("has field {name} of another type than {sample}")));
            }
            let array = &inputs.arrays[input];
            let rows_at_once = (PIECE_LEN_BYTES / array.row_len_bytes().max(1)).max(1);
            let (mut row, mut samples) = (0, 0);
            while row < inputs.rows() {
                readers.cancel.check().map_err(|error: CoreError| Failure::of_idx(&IdxError::Core(error)))?;
                let rows = row..inputs.rows().min(row + rows_at_once);
                let region = inputs.region(&rows);
                let query = Query { time: *time, start: region.start, end: region.end, ..dataset.whole(number) };
                let got = dataset.read_by(&query, readers).map_err(|error| Failure::of_idx(&error))?;
                let want = array.read_rows(rows.clone())?;
                let len = sample.len_bytes();
                samples += got.chunks(len).zip(want.chunks(len)).filter(|(got, want)| got != want).count() as u64;
                row = rows.end;
            }
            if samples > 0 {
                let (field, input) = (name.clone(), array.path.clone());
                unequal.push(Unequal { field, time: *time, input, samples });
            }
        }
    }
    Ok(unequal)
}
