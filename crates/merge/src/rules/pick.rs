//! Selection of elements by number, such as the elements of selected columns of a sparse matrix.
//!
//! During planning, the selected elements are counted once, in blocks, so that selected element `n` can later be
//! located by its block. Invariant: memory holds one block of numbers, and one count per block.

use raddle_hdf5::model::TypeClass;
use raddle_hdf5::number::NumberType;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Number of elements in a block: 256 KiB of 32-bit numbers.
pub(crate) const BLOCK_ELEMENTS: u64 = 1 << 16;

/// Selection of elements of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    /// Path of the dataset that has the number of each element.
    pub numbers: Vec<u8>,
    /// Whether elements with each number are taken.
    pub is_taken: Arc<[bool]>,
    /// Number of elements taken before each block, followed by the total.
    pub before: Arc<[u64]>,
    /// Number of elements in the input's dataset.
    pub stored: u64,
    /// Kind of the selected values.
    pub form: PickForm,
}

/// Elements of an input that must be counted.
#[derive(Debug, Clone)]
pub(crate) struct UncountedElements {
    /// Path of the dataset with the numbers of the elements.
    pub numbers: Vec<u8>,
    /// Number of the input.
    pub input: u32,
    /// Whether the element with each number is selected.
    pub is_taken: Arc<[bool]>,
}

/// Number of selected elements before each block, indexed by input and by the path of the dataset that numbers them.
pub(crate) type SelectedCounts = HashMap<(Vec<u8>, u32), Arc<[u64]>>;

/// Contents of a dataset with a [`Pick`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PickForm {
    /// Selected elements only.
    Elements,
    /// Positions of elements, in ascending order.
    Positions,
}

impl Pick {
    /// Returns the total number of elements taken.
    pub fn count(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Returns the block that holds taken element number `at`.
    pub(crate) fn block_of(&self, at: u64) -> u64 {
        (self.before.partition_point(|&before| before <= at) as u64).saturating_sub(1)
    }

    /// Returns the first element of a block, and the length of the block.
    pub(crate) fn block(&self, block: u64) -> (u64, u64) {
        let first = block * BLOCK_ELEMENTS;
        (first, BLOCK_ELEMENTS.min(self.stored.saturating_sub(first)))
    }

    /// Determines for each element of a block whether it is taken; the error is the first number that is out of range.
    pub(crate) fn taken(
        &self,
        class: &TypeClass,
        numbers: &[u8],
        scratch: &mut Vec<i64>,
        out: &mut Vec<bool>,
    ) -> Result<(), i64> {
        taken(&self.is_taken, class, numbers, scratch, out)
    }
}

/// Determines for each of `numbers` whether elements with that number are taken; the error is the first number that is
/// out of range.
pub(crate) fn taken(
    is_taken: &[bool],
    class: &TypeClass,
    numbers: &[u8],
    scratch: &mut Vec<i64>,
    out: &mut Vec<bool>,
) -> Result<(), i64> {
    let Some(number) = NumberType::of(class) else { return Err(-1) };
    number.decode_integers(numbers, scratch);
    out.clear();
    let Some(largest) = is_taken.len().checked_sub(1) else {
        return scratch.first().map_or(Ok(()), |&number| Err(number));
    };
    // A negative number becomes a large one when its sign is ignored.
    let mut is_within = true;
    out.extend(scratch.iter().map(|&number| {
        let at = number as u64 as usize;
        is_within &= at <= largest;
        is_taken[at.min(largest)]
    }));
    match is_within {
        true => Ok(()),
        false => Err(*scratch.iter().find(|&&number| number as u64 as usize > largest).unwrap_or(&-1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_found_by_its_block() {
        let pick = Pick {
            numbers: Vec::new(),
            is_taken: vec![true, false].into(),
            before: vec![0, 2, 2, 5].into(),
            stored: 2 * BLOCK_ELEMENTS + 7,
            form: PickForm::Elements,
        };
        assert_eq!([0, 1, 2, 4].map(|at| pick.block_of(at)), [0, 0, 2, 2]);
        assert_eq!((pick.count(), pick.block(2)), (5, (2 * BLOCK_ELEMENTS, 7)));
        let class = NumberType::Integer { len_bytes: 1, signed: false, is_big_endian: false }.class();
        let mut taken = Vec::new();
        assert_eq!(pick.taken(&class, &[0, 1, 0], &mut Vec::new(), &mut taken), Ok(()));
        assert_eq!(taken, [true, false, true]);
        assert_eq!(pick.taken(&class, &[0, 2], &mut Vec::new(), &mut taken), Err(2));
    }
}
