//! Statistics of a block of rows of a column: limits and sum of its values, and the values if few are distinct.
//!
//! Invariant: every value of the block lies within the limits, or is NaN and counted. Limits and distinct values of
//! strings are those of their first bytes. Statistics of two blocks together follow from those of each.

use crate::distinct::{DistinctValues, NumberCollector, PrefixCollector};
pub use crate::limits::{Limits, OrderedType, StringPrefix};
use crate::numbers::{Number, with_words};
use serde::{Deserialize, Serialize};

/// Number of values whose limits are determined at once: they stay in the first cache.
const BUFFER_WORDS: usize = 1024;
/// Number of values that are compared at once.
const LANES: usize = 16;

/// Statistics of the values of a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockStatistics {
    /// Limits of the values.
    pub limits: Limits,
    /// Distinct values; `None` if they are many or not known.
    pub distinct: Option<DistinctValues>,
    /// Sum of integers; `None` for other values, or if it is not known.
    pub sum: Option<i128>,
}

impl BlockStatistics {
    /// Statistics of no values.
    pub const EMPTY: Self = Self::of_limits(Limits::Empty);

    /// Returns statistics with limits only.
    pub const fn of_limits(limits: Limits) -> Self {
        Self { limits, distinct: None, sum: None }
    }

    /// Determines the statistics of values: numbers as stored, strings in their form.
    pub fn of(values: OrderedType, bytes: &[u8]) -> Self {
        match values {
            OrderedType::Number(number) => {
                let (mut collector, mut sum) = (NumberCollector::new(), 0);
                let parts = bytes.chunks(BUFFER_WORDS * number.len_bytes());
                let each = parts.map(|part| {
                    let (limits, more) = with_words!(number, part, |words| of_words(words, &mut collector));
                    sum += more;
                    limits
                });
                let limits = each.reduce(Limits::union).unwrap_or(Limits::Empty);
                Self::with(limits, collector.finish(number.is_integer()), number.is_integer().then_some(sum))
            }
            OrderedType::String(form) => {
                let mut strings = OfStrings::default();
                form.for_each(bytes, |text| strings.add(text));
                strings.finish()
            }
        }
    }

    /// Determines the statistics of strings.
    pub(crate) fn of_strings(some: &[&[u8]]) -> Self {
        let mut strings = OfStrings::default();
        some.iter().for_each(|text| strings.add(text));
        strings.finish()
    }

    fn with(limits: Limits, distinct: Option<DistinctValues>, sum: Option<i128>) -> Self {
        match limits {
            Limits::Empty => Self::EMPTY,
            limits => Self { limits, distinct, sum },
        }
    }

    /// Returns the statistics of the values of two blocks of the same type.
    #[must_use]
    pub fn union(self, other: &Self) -> Self {
        match (self.limits, other.limits) {
            (Limits::Empty, _) => other.clone(),
            (_, Limits::Empty) => self,
            (one, another) => {
                let distinct = self.distinct.zip(other.distinct.as_ref()).and_then(|(one, other)| one.union(other));
                let sum = self.sum.zip(other.sum).and_then(|(one, other)| one.checked_add(other));
                Self { limits: one.union(another), distinct, sum }
            }
        }
    }

    /// Returns the limits of the rows with each distinct value, including rows with NaN; `None` if the values are not
    /// known.
    pub(crate) fn of_each_value(&self) -> Option<Vec<Limits>> {
        let mut each = self.distinct.as_ref()?.each();
        if let Limits::Floats { nans: 1.., .. } = self.limits {
            each.push(Limits::Floats { min: f64::INFINITY, max: f64::NEG_INFINITY, nans: 1 });
        }
        Some(each)
    }

    /// Returns whether all parts can describe the same `rows` values.
    pub(crate) fn is_consistent(&self, rows: u64) -> bool {
        let has_room = match self.limits {
            Limits::Floats { nans, .. } => nans <= rows,
            _ => true,
        };
        let is_sum = |sum: i128| match self.limits {
            Limits::Integers { min, max } => {
                let rows = i128::from(rows);
                min.saturating_mul(rows).min(min) <= sum && sum <= max.saturating_mul(rows).max(max)
            }
            _ => false,
        };
        has_room
            && self.sum.is_none_or(is_sum)
            && self.distinct.as_ref().is_none_or(|distinct| distinct.fits(&self.limits))
    }

    /// Returns the first part that differs from other statistics of the same values, among the parts that both know.
    pub(crate) fn contradiction(&self, other: &Self) -> Option<&'static str> {
        let are_other_values =
            self.distinct.as_ref().zip(other.distinct.as_ref()).is_some_and(|(one, other)| one != other);
        let is_other_sum = self.sum.zip(other.sum).is_some_and(|(one, other)| one != other);
        match (self.limits == other.limits, are_other_values, is_other_sum) {
            (false, ..) => Some("other limits"),
            (_, true, _) => Some("other distinct values"),
            (.., true) => Some("a different sum"),
            _ => None,
        }
    }
}

/// Statistics of strings that are added one by one.
#[derive(Debug, Default)]
struct OfStrings {
    limits: Option<(StringPrefix, StringPrefix)>,
    distinct: PrefixCollector,
}

impl OfStrings {
    fn add(&mut self, text: &[u8]) {
        let prefix = StringPrefix::of(text);
        let (min, max) = self.limits.unwrap_or((prefix, prefix));
        self.limits = Some((min.min(prefix), max.max(prefix)));
        self.distinct.add(prefix);
    }

    fn finish(self) -> BlockStatistics {
        let limits = self.limits.map_or(Limits::Empty, |(min, max)| Limits::Strings { min, max });
        BlockStatistics::with(limits, self.distinct.finish(), None)
    }
}

/// Returns the limits and the sum of at most [`BUFFER_WORDS`] numbers, and adds the numbers to a collector.
fn of_words<N: Number>(words: impl Iterator<Item = N>, collector: &mut NumberCollector) -> (Limits, i128) {
    let mut buffer = [N::LOWEST; BUFFER_WORDS];
    let mut count = 0;
    for (place, word) in buffer.iter_mut().zip(words) {
        *place = word;
        count += 1;
    }
    // Independent lanes, so that the compiler can use vector instructions.
    let (mut low, mut high, mut nans) = ([N::HIGHEST; LANES], [N::LOWEST; LANES], [0_u32; LANES]);
    let mut take = |lane: usize, word: N| {
        // False for NaN, which therefore changes neither limit.
        low[lane] = if word < low[lane] { word } else { low[lane] };
        high[lane] = if word > high[lane] { word } else { high[lane] };
        nans[lane] += u32::from(word.is_nan());
    };
    let (whole, rest) = buffer[..count].as_chunks::<LANES>();
    for words in whole {
        words.iter().enumerate().for_each(|(lane, word)| take(lane, *word));
    }
    rest.iter().enumerate().for_each(|(lane, word)| take(lane, *word));
    let nans = nans.iter().map(|nans| u64::from(*nans)).sum();
    let least = low.into_iter().reduce(|one, other| if other < one { other } else { one });
    let greatest = high.into_iter().reduce(|one, other| if other > one { other } else { one });
    if let (Some(min), Some(max), true) = (least, greatest, nans < count as u64) {
        collector.add(&buffer[..count], min, max);
    }
    let limits = match (least, greatest) {
        _ if count == 0 => Limits::Empty,
        (Some(min), Some(max)) if N::IS_INTEGER => Limits::Integers { min: min.to_integer(), max: max.to_integer() },
        (Some(min), Some(max)) if nans < count as u64 => {
            Limits::Floats { min: min.to_float(), max: max.to_float(), nans }
        }
        _ => Limits::Floats { min: f64::INFINITY, max: f64::NEG_INFINITY, nans },
    };
    (limits, N::sum(&buffer[..count]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strings::StringForm;
    use proptest::prelude::*;
    use raddle_hdf5::number::NumberType;

    fn of(number: NumberType, bytes: &[u8]) -> Limits {
        BlockStatistics::of(OrderedType::Number(number), bytes).limits
    }

    #[test]
    fn strings_are_limited_by_their_prefixes() {
        let limits = |strings: &[u8], len_bytes| {
            BlockStatistics::of(OrderedType::String(StringForm::Padded { len_bytes }), strings).limits
        };
        let [far, near] = [b"far\0".as_slice(), b"near"].map(StringPrefix::of);
        assert_eq!(limits(b"nearfar\0near", 4), Limits::Strings { min: far, max: near });
        assert_eq!((limits(b"", 4), limits(b"", 0)), (Limits::Empty, Limits::Empty));
    }

    fn drawn(any: u64) -> f64 {
        let extremes = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MAX];
        extremes.get((any % 40) as usize).copied().unwrap_or(any as i64 as f64)
    }

    proptest! {
        #[test]
        fn any_number_of_values(words in prop::collection::vec(any::<u64>(), 0..3000)) {
            let floats: Vec<f64> = words.iter().map(|&word| drawn(word)).collect();
            let bytes: Vec<u8> = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
            let found = of(NumberType::Float { len_bytes: 8, is_big_endian: false }, &bytes);
            let numbers: Vec<f64> = floats.iter().copied().filter(|value| !value.is_nan()).collect();
            let (min, max) = (numbers.iter().copied().reduce(f64::min), numbers.iter().copied().reduce(f64::max));
            let nans = (floats.len() - numbers.len()) as u64;
            let expected = match (min, max) {
                (Some(min), Some(max)) => Limits::Floats { min, max, nans },
                _ if nans > 0 => Limits::Floats { min: f64::INFINITY, max: f64::NEG_INFINITY, nans },
                _ => Limits::Empty,
            };
            prop_assert_eq!(found, expected);

            let bytes: Vec<u8> = words.iter().flat_map(|value| value.to_be_bytes()).collect();
            let found = of(NumberType::Integer { len_bytes: 8, signed: true, is_big_endian: true }, &bytes);
            let integers = words.iter().map(|&word| i128::from(word as i64));
            let limits = integers.clone().min().zip(integers.max());
            prop_assert_eq!(found, limits.map_or(Limits::Empty, |(min, max)| Limits::Integers { min, max }));
        }
    }

    #[test]
    fn limits_are_of_the_stored_numbers() {
        let float = |is_big_endian| NumberType::Float { len_bytes: 4, is_big_endian };
        let bytes: Vec<u8> = [1.5_f32, f32::NAN, -2.0, f32::NAN].iter().flat_map(|value| value.to_be_bytes()).collect();
        assert_eq!(of(float(true), &bytes), Limits::Floats { min: -2.0, max: 1.5, nans: 2 });
        let nan = f32::NAN.to_le_bytes();
        assert!(matches!(of(float(false), &nan), Limits::Floats { nans: 1, min, max } if min > max));
        let unsigned = NumberType::Integer { len_bytes: 8, signed: false, is_big_endian: false };
        let bytes = [u64::MAX.to_le_bytes(), 3_u64.to_le_bytes()].concat();
        assert_eq!(of(unsigned, &bytes), Limits::Integers { min: 3, max: i128::from(u64::MAX) });
        assert_eq!(of(unsigned, &[]), Limits::Empty);
    }
}
