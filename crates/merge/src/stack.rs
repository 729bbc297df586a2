//! `--scalars stack`: a scalar dataset that differs between inputs becomes one dimension with an element per input.
//!
//! Invariant: element `i` of a stack is the value of input `i`, the fill value where that input lacks the dataset; a
//! scalar that is equal wherever it is stays a scalar.

use crate::schema::Role;
use raddle_hdf5::logical::append_null;
use raddle_hdf5::model::{Dataset, Dataspace, InlineData, Layout};
use std::ops::Range;

/// Values that differ from the first one, by number of the input, ascending.
#[derive(Debug, Default)]
pub struct Differing(Vec<(u32, Vec<u8>)>);

impl Differing {
    /// Adds the value of the next input that differs.
    pub fn push(&mut self, input: u32, value: Vec<u8>) {
        self.0.push((input, value));
    }

    /// Makes a stack of `role`, whose value is that of the inputs `present` but for those in `self`. Nothing changes
    /// where no value differs.
    pub fn stack(self, role: &mut Role, present: &[Range<u32>], inputs: u32) {
        let Role::Constant { dataset, value: first, .. } = role else { return };
        if self.0.is_empty() {
            return;
        }
        let absent = absent_value(dataset);
        let mut differing = self.0.into_iter().peekable();
        let mut stacked = Vec::with_capacity(first.len() * inputs as usize);
        for input in 0..inputs {
            match differing.next_if(|(other, _)| *other == input) {
                Some((_, value)) => stacked.extend_from_slice(&value),
                None if present.iter().any(|run| run.contains(&input)) => stacked.extend_from_slice(first),
                None => stacked.extend_from_slice(&absent),
            }
        }
        *first = stacked;
        let dims = vec![u64::from(inputs)];
        dataset.dataspace = Dataspace::Simple { max_dims: dims.clone(), dims };
        // One run: a header has no room for the values of thousands of inputs.
        dataset.layout = Layout::Contiguous { address: None, len_bytes: 0 };
    }
}

/// Canonical bytes of the fill value.
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
