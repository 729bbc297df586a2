//! `--scalars stack`: a scalar dataset that differs between inputs becomes a one-dimensional dataset with one
//! element per input.
//!
//! Invariant: element `i` of a stack is the value of input `i`, or the fill value if that input lacks the dataset; a
//! scalar that is equal in all inputs that have it remains a scalar.

use raddle_hdf5::logical::append_null;
use raddle_hdf5::model::{Dataset, InlineData};
use std::ops::Range;

/// Values of a scalar that differ from the first one, with their input numbers, which ascend.
#[derive(Debug, Default)]
pub struct DifferingScalars(Vec<(u32, Vec<u8>)>);

impl DifferingScalars {
    /// Adds the value of the next input with a different value.
    pub fn push(&mut self, input: u32, value: Vec<u8>) {
        self.0.push((input, value));
    }

    /// Returns whether no value differs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of each input. `first` is the value of `dataset` in the inputs `present`, except for the
    /// values in `self`.
    pub fn values(self, dataset: &Dataset, first: &[u8], present: &[Range<u32>], inputs: u32) -> Vec<Vec<u8>> {
        let absent = absent_value(dataset);
        let mut differing = self.0.into_iter().peekable();
        let value = |input| match differing.next_if(|(other, _)| *other == input) {
            Some((_, value)) => value,
            None if present.iter().any(|run| run.contains(&input)) => first.to_vec(),
            None => absent.clone(),
        };
        (0..inputs).map(value).collect()
    }
}

/// Returns the canonical bytes of the fill value.
fn absent_value(dataset: &Dataset) -> Vec<u8> {
    let class = &dataset.datatype.class;
    match &dataset.fill.value {
        Some(InlineData::Canonical(value)) => value.clone(),
        Some(InlineData::Stored(value)) if !class.is_file_local() => value.clone(),
        _ => {
            let mut value = Vec::new();
            append_null(class, &mut value);
            value
        }
    }
}
