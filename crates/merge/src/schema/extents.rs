//! Compact storage for the extents of a column: where each input stores its part.
//!
//! A real job has 10⁸ pairs of column and input. Most of its columns are empty in every input, and others are absent
//! from all inputs except one. Extents that are all equal are therefore stored once. Invariant: a stored extent equals
//! the added one, except that an extent without rows loses its address, which is never read, unless addresses are
//! explicitly kept.

use crate::schema::{InputExtent, UNALLOCATED};
use std::ops::Index;

/// Extents of a column, one per input, in input order.
#[derive(Debug, Clone)]
pub struct InputExtents {
    kept: KeptExtents,
    /// Expected number of extents.
    expected: usize,
}

#[derive(Debug, Clone)]
enum KeptExtents {
    /// An extent, and how often it is repeated.
    Same(InputExtent, usize),
    Each(Vec<InputExtent>),
}

impl InputExtents {
    /// Creates an empty list that expects `expected` extents.
    pub fn expecting(expected: usize) -> Self {
        Self { kept: KeptExtents::Same(InputExtent::absent(0), 0), expected }
    }

    /// Returns the number of inputs.
    pub fn len(&self) -> usize {
        match &self.kept {
            KeptExtents::Same(_, count) => *count,
            KeptExtents::Each(facts) => facts.len(),
        }
    }

    /// Returns whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the extent of the first input.
    pub fn first(&self) -> Option<&InputExtent> {
        self.iter().next()
    }

    /// Iterates over all extents in input order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &InputExtent> + DoubleEndedIterator + Clone {
        (0..self.len()).map(|input| &self[input])
    }

    /// Collects extents with their addresses, including extents without rows.
    pub fn with_addresses(facts: impl ExactSizeIterator<Item = InputExtent>) -> Self {
        let mut all = Self::expecting(facts.len());
        facts.for_each(|fact| all.push_exactly(fact));
        all
    }

    /// Adds the extent of the next input.
    pub fn push(&mut self, mut fact: InputExtent) {
        if fact.rows == 0 {
            fact.address = UNALLOCATED;
        }
        self.push_exactly(fact);
    }

    fn push_exactly(&mut self, fact: InputExtent) {
        match &mut self.kept {
            KeptExtents::Same(same, count) if *count == 0 || *same == fact => {
                (*same, *count) = (fact, *count + 1);
            }
            KeptExtents::Same(same, count) => {
                let mut facts = Vec::with_capacity(self.expected.max(*count + 1));
                facts.resize(*count, *same);
                facts.push(fact);
                self.kept = KeptExtents::Each(facts);
            }
            KeptExtents::Each(facts) => facts.push(fact),
        }
    }

    /// Adds copies of `fact` until there are `len` extents.
    pub fn fill_to(&mut self, len: usize, fact: InputExtent) {
        for _ in self.len()..len {
            self.push(fact);
        }
    }
}

impl Index<usize> for InputExtents {
    type Output = InputExtent;

    fn index(&self, input: usize) -> &InputExtent {
        match &self.kept {
            KeptExtents::Same(same, count) => {
                assert!(input < *count, "input {input} of {count}");
                same
            }
            KeptExtents::Each(facts) => &facts[input],
        }
    }
}

impl FromIterator<InputExtent> for InputExtents {
    fn from_iter<I: IntoIterator<Item = InputExtent>>(facts: I) -> Self {
        let facts = facts.into_iter();
        let mut all = Self::expecting(facts.size_hint().0);
        facts.for_each(|fact| all.push(fact));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn facts_are_what_was_pushed(rows in prop::collection::vec((0u64..3, 0u64..2), 0..12), absent in 0usize..3) {
            let fact = |(rows, address)| InputExtent { rows, address, stored_len_bytes: rows, template: 0 };
            let mut facts = InputExtents::expecting(3);
            facts.fill_to(absent, InputExtent::absent(0));
            rows.iter().for_each(|pair| facts.push(fact(*pair)));
            let read = |(rows, address)| if rows == 0 { fact((0, UNALLOCATED)) } else { fact((rows, address)) };
            let expected: Vec<InputExtent> = std::iter::repeat_n(InputExtent::absent(0), absent)
                .chain(rows.iter().map(|pair| read(*pair))).collect();
            prop_assert_eq!(facts.len(), expected.len());
            prop_assert_eq!(facts.is_empty(), expected.is_empty());
            prop_assert_eq!(facts.first(), expected.first());
            prop_assert!(facts.iter().eq(&expected));
            prop_assert!((0..expected.len()).all(|input| facts[input] == expected[input]));
            prop_assert!(expected.into_iter().collect::<InputExtents>().iter().eq(facts.iter()));
        }
    }

    #[test]
    fn equal_facts_take_no_memory_of_their_own() {
        let mut facts = InputExtents::expecting(1 << 40);
        facts.fill_to(1000, InputExtent { rows: 0, address: 7, stored_len_bytes: 0, template: 0 });
        assert!(matches!(facts.kept, KeptExtents::Same(InputExtent { address: UNALLOCATED, .. }, 1000)));
    }
}
