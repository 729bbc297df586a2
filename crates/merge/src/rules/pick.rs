//! Elements of which only those with certain numbers are taken, as those of a sparse matrix whose columns are selected.
//!
//! What is taken is counted once, in blocks, when the plan is made: where element `n` of those lies is then found by its
//! block. Invariant: memory holds one block of numbers, and a count for each block.

use raddle_hdf5::model::TypeClass;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::number::NumberType;

/// Elements of a block: 256 KiB of 32-bit numbers.
pub(crate) const BLOCK_ELEMENTS: u64 = 1 << 16;

/// Which elements of an input are taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    /// Path of the dataset that has the number of each element.
    pub numbers: Vec<u8>,
    /// Of each number, whether elements that have it are taken.
    pub is_taken: Arc<[bool]>,
    /// Elements taken before each block, and in all.
    pub before: Arc<[u64]>,
    /// Elements that the input has.
    pub stored: u64,
    /// What is picked.
    pub form: PickForm,
}

/// What a dataset with a [`Pick`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PickForm {
    /// The elements.
    Elements,
    /// Positions of elements, in ascending order.
    Positions,
}

impl Pick {
    /// Elements taken in all.
    pub fn count(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// The block that has the element that is taken as number `at`.
    pub(crate) fn block_of(&self, at: u64) -> u64 {
        (self.before.partition_point(|&before| before <= at) as u64).saturating_sub(1)
    }

    /// First element of a block, and how many it has.
    pub(crate) fn block(&self, block: u64) -> (u64, u64) {
        let first = block * BLOCK_ELEMENTS;
        (first, BLOCK_ELEMENTS.min(self.stored.saturating_sub(first)))
    }

    /// Sets of each element of a block whether it is taken; the first number beyond what they count is an error.
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

/// Sets of each number whether elements that have it are taken; the first one beyond what they count is an error.
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
    // A negative number is a large one without its sign.
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
