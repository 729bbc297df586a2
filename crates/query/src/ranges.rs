//! Sorted ranges of integers, in one of which a value must lie, such as the values of a long list.
//!
//! Invariant: the ranges are in ascending order, and between two of them lies at least one integer.

use crate::matches::Matches;
use crate::numbers::Number;

/// Ranges of integers, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<(i128, i128)>);

impl Ranges {
    /// Creates the union of `ranges`; a range whose end is below its start is empty.
    pub fn union(mut ranges: Vec<(i128, i128)>) -> Self {
        ranges.retain(|(low, high)| low <= high);
        ranges.sort_unstable();
        let mut joined: Vec<(i128, i128)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match joined.last_mut() {
                Some((_, end)) if low <= end.saturating_add(1) => *end = high.max(*end),
                _ => joined.push((low, high)),
            }
        }
        Self(joined)
    }

    /// Judges values that lie between `min` and `max`.
    pub fn judge(&self, min: i128, max: i128) -> Matches {
        let at = self.0.partition_point(|(_, high)| *high < min);
        match self.0.get(at) {
            Some((low, high)) => Matches::of(*low <= min && max <= *high, *low > max),
            None => Matches::None,
        }
    }

    /// Returns whether each value lies in one of the ranges.
    pub fn contain<N: Number>(&self, words: impl Iterator<Item = N>) -> Vec<bool> {
        // Ends beyond those of the type are moved to them; ranges that lie beyond are left out.
        let is_of_type =
            |(low, high): &&(i128, i128)| *low <= N::HIGHEST.to_integer() && *high >= N::LOWEST.to_integer();
        let ranges: Vec<(N, N)> =
            self.0.iter().filter(is_of_type).map(|(low, high)| (N::clamped(*low), N::clamped(*high))).collect();
        let is_in = |word: N| {
            let at = ranges.partition_point(|(_, last)| *last < word);
            ranges.get(at).is_some_and(|(first, _)| *first <= word)
        };
        words.map(is_in).collect()
    }
}
