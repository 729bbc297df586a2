//! Distinct values of a block, if there are few: they exclude values within the limits that the block does not have.
//!
//! Invariant: the distinct values of two blocks together are the union of both, so that a block may be assembled from
//! parts in any order.

use crate::limits::{Limits, StringPrefix};
use crate::numbers::Number;
use serde::{Deserialize, Serialize};

/// Largest number of distinct values that are kept: with more, a condition rarely excludes all of them.
pub const MAX_DISTINCT: usize = 16;
/// Number of places of a table of known words. Two words rarely share one, and 4 KiB stay in the first cache.
const SLOTS: usize = 512;
/// Odd number whose product has well mixed high bits: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Distinct values of a block, ascending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DistinctValues {
    /// Integers.
    Integers(Vec<i128>),
    /// Floating-point numbers without NaN. 0 stands for -0, too.
    Floats(Vec<f64>),
    /// Prefixes of strings.
    Strings(Vec<StringPrefix>),
}

impl DistinctValues {
    /// Returns the values of both blocks; `None` if there are more than [`MAX_DISTINCT`].
    #[must_use]
    pub fn union(self, other: &Self) -> Option<Self> {
        match (self, other) {
            (one, other) if one == *other => Some(one),
            (Self::Integers(one), Self::Integers(other)) => united(one, other).map(Self::Integers),
            (Self::Floats(one), Self::Floats(other)) => united(one, other).map(Self::Floats),
            (Self::Strings(one), Self::Strings(other)) => united(one, other).map(Self::Strings),
            _ => None,
        }
    }

    /// Returns each value as the limits of a block that has no other.
    pub(crate) fn each(&self) -> Vec<Limits> {
        match self {
            Self::Integers(values) => values.iter().map(|&one| Limits::Integers { min: one, max: one }).collect(),
            Self::Floats(values) => values.iter().map(|&one| Limits::Floats { min: one, max: one, nans: 0 }).collect(),
            Self::Strings(values) => values.iter().map(|&one| Limits::Strings { min: one, max: one }).collect(),
        }
    }

    /// Returns whether the known values can be all values of a block with these limits.
    pub(crate) fn fits(&self, limits: &Limits) -> bool {
        match (self, limits) {
            (Self::Integers(values), Limits::Integers { min, max }) => ascend(values) && are_ends(values, min, max),
            (Self::Floats(values), Limits::Floats { nans, .. }) if values.is_empty() => *nans > 0,
            (Self::Floats(values), Limits::Floats { min, max, .. }) => ascend(values) && are_ends(values, min, max),
            (Self::Strings(values), Limits::Strings { min, max }) => ascend(values) && are_ends(values, min, max),
            _ => false,
        }
    }
}

/// Returns whether values ascend and are at most [`MAX_DISTINCT`]. Several values of which one is NaN do not ascend.
fn ascend<T: PartialOrd>(values: &[T]) -> bool {
    values.len() <= MAX_DISTINCT && values.windows(2).all(|pair| pair[0] < pair[1])
}

fn are_ends<T: PartialEq>(values: &[T], min: &T, max: &T) -> bool {
    values.first() == Some(min) && values.last() == Some(max)
}

/// Merges two ascending lists.
fn united<T: PartialOrd + Copy>(one: Vec<T>, other: &[T]) -> Option<Vec<T>> {
    let mut all = one;
    for value in other {
        let at = all.partition_point(|known| known < value);
        if all.get(at) == Some(value) {
            continue;
        }
        if all.len() == MAX_DISTINCT {
            return None;
        }
        all.insert(at, *value);
    }
    Some(all)
}

/// Collector of the distinct numbers of a block, until there are too many.
#[derive(Debug)]
pub(crate) struct NumberCollector {
    /// Known words, each at its place, so that most words are recognised by one comparison.
    slots: [u64; SLOTS],
    /// All known words.
    words: Vec<u64>,
    integers: Vec<i128>,
    floats: Vec<f64>,
    is_full: bool,
}

impl NumberCollector {
    pub fn new() -> Self {
        let mut slots = [0; SLOTS];
        // A place must not hold a word that belongs there before it is known. Only 0 belongs to place 0.
        slots[0] = 1;
        Self { slots, words: Vec::new(), integers: Vec::new(), floats: Vec::new(), is_full: false }
    }

    /// Adds numbers, whose limits without NaN are `min` and `max`.
    pub fn add<N: Number>(&mut self, numbers: &[N], min: N, max: N) {
        if self.is_full {
            return;
        }
        // Most parts of sorted columns and of flags have one or two values, which the limits name.
        let is_named = match N::IS_INTEGER {
            true => max.to_integer() - min.to_integer() <= 1,
            false => min == max,
        };
        if is_named {
            self.know(min);
            self.know(max);
            return;
        }
        if N::IS_INTEGER && self.knows_all(min.to_integer(), max.to_integer()) {
            return;
        }
        for &number in numbers {
            if self.slots[slot_of(number.word())] != number.word() {
                self.know(number);
                if self.is_full {
                    return;
                }
            }
        }
    }

    /// Returns whether all integers from `min` to `max` are known.
    fn knows_all(&self, min: i128, max: i128) -> bool {
        max - min < MAX_DISTINCT as i128 && (min..=max).all(|one| self.integers.contains(&one))
    }

    fn know<N: Number>(&mut self, number: N) {
        let word = number.word();
        if !number.is_nan() && !self.words.contains(&word) {
            if self.words.len() == MAX_DISTINCT {
                self.is_full = true;
                return;
            }
            self.words.push(word);
            match N::IS_INTEGER {
                true => self.integers.push(number.to_integer()),
                // -0 becomes 0.
                false => self.floats.push(number.to_float() + 0.0),
            }
        }
        self.slots[slot_of(word)] = word;
    }

    /// Returns the values; `None` if there are too many. `is_integer` states their type.
    pub fn finish(mut self, is_integer: bool) -> Option<DistinctValues> {
        self.integers.sort_unstable();
        self.floats.sort_unstable_by(f64::total_cmp);
        (!self.is_full).then_some(match is_integer {
            true => DistinctValues::Integers(self.integers),
            false => DistinctValues::Floats(self.floats),
        })
    }
}

fn slot_of(word: u64) -> usize {
    (word.wrapping_mul(MULTIPLIER) >> (u64::BITS - SLOTS.ilog2())) as usize
}

/// Collector of the distinct prefixes of the strings of a block, until there are too many.
#[derive(Debug, Default)]
pub(crate) struct PrefixCollector {
    known: Vec<StringPrefix>,
    /// The previous prefix, which is often repeated.
    last: Option<StringPrefix>,
    is_full: bool,
}

impl PrefixCollector {
    pub fn add(&mut self, prefix: StringPrefix) {
        if self.is_full || self.last == Some(prefix) {
            return;
        }
        self.last = Some(prefix);
        if self.known.contains(&prefix) {
            return;
        }
        match self.known.len() < MAX_DISTINCT {
            true => self.known.push(prefix),
            false => self.is_full = true,
        }
    }

    /// Returns the prefixes; `None` if there are too many.
    pub fn finish(mut self) -> Option<DistinctValues> {
        self.known.sort_unstable();
        (!self.is_full).then_some(DistinctValues::Strings(self.known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of<N: Number>(numbers: &[N]) -> Option<DistinctValues> {
        let mut collector = NumberCollector::new();
        for part in numbers.chunks(7) {
            let numbers = part.iter().copied().filter(|number| !number.is_nan());
            let min = numbers.clone().reduce(|one, other| if other < one { other } else { one });
            let max = numbers.reduce(|one, other| if other > one { other } else { one });
            if let Some((min, max)) = min.zip(max) {
                collector.add(part, min, max);
            }
        }
        collector.finish(N::IS_INTEGER)
    }

    fn few<T: PartialOrd + Copy>(values: impl IntoIterator<Item = T>) -> Option<Vec<T>> {
        let mut values: Vec<T> = values.into_iter().collect();
        values.sort_by(|one, other| one.partial_cmp(other).unwrap());
        values.dedup();
        (values.len() <= MAX_DISTINCT).then_some(values)
    }

    proptest! {
        #[test]
        fn distinct_numbers_are_found(
            pool in prop_oneof![
                prop::collection::vec(-6_i64..9, 1..20),
                prop::collection::vec(prop_oneof![any::<i64>(), -20_i64..20], 1..20),
            ],
            drawn in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
            at in any::<prop::sample::Index>(),
        ) {
            let integers: Vec<i64> = drawn.iter().map(|one| pool[one.index(pool.len())]).collect();
            let expected = few(integers.iter().map(|&one| i128::from(one))).map(DistinctValues::Integers);
            prop_assert_eq!(of(&integers), expected.clone());
            let bytes: Vec<u8> = integers.iter().map(|&one| one as u8).collect();
            prop_assert_eq!(of(&bytes), few(bytes.iter().map(|&one| i128::from(one))).map(DistinctValues::Integers));
            let floats: Vec<f32> = integers.iter().map(|&one| match one {
                0 => -0.0,
                7 => f32::NAN,
                one => (one % 18) as f32 / 4.0,
            }).collect();
            let numbers = floats.iter().filter(|one| !one.is_nan()).map(|&one| f64::from(one));
            prop_assert_eq!(of(&floats), few(numbers).map(DistinctValues::Floats));

            // The same of two parts.
            let (one, other) = integers.split_at(at.index(integers.len() + 1));
            let parts = of(one).zip(of(other)).and_then(|(one, other)| one.union(&other));
            prop_assert_eq!(parts, expected);
        }
    }

    #[test]
    fn zero_is_found_although_places_begin_with_it() {
        assert_eq!(of(&[0_i64, 5, 9]), Some(DistinctValues::Integers(vec![0, 5, 9])));
        assert_eq!(of(&[3_i64, 5, 1, 9]), Some(DistinctValues::Integers(vec![1, 3, 5, 9])));
        assert_eq!(of(&[0.0, -0.0, 1.5, f64::NAN]), Some(DistinctValues::Floats(vec![0.0, 1.5])));
        assert_eq!(of(&[f64::NAN]), Some(DistinctValues::Floats(Vec::new())));
    }
}
