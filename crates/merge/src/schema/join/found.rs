//! Differences found so far. Their number is limited: an attribute may have a different value in each of 100,000
//! inputs.
//!
//! Invariant: every input stays in the list of the difference that it belongs to, whether its value is shown or not.

use super::DifferenceKind;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Maximum number of values shown for one expected value.
const SHOWN_VALUES: usize = 3;
/// Maximum number of differences of one kind per object; further attributes are not named.
const MAX_DIFFERENCES: usize = 512;

/// A difference between an object of some inputs and its model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FoundDifference {
    pub path: Vec<u8>,
    pub kind: DifferenceKind,
    pub expected: String,
    pub found: String,
}

/// Differences with the inputs that have them.
#[derive(Debug, Default)]
pub(super) struct FoundDifferences(BTreeMap<FoundDifference, Vec<u32>>);

impl FoundDifferences {
    /// Adds a difference of one input.
    pub fn add(&mut self, path: &[u8], kind: DifferenceKind, expected: String, found: String, input: u32) {
        let found = FoundDifference { path: path.to_vec(), kind, expected, found }.bounded(&self.0);
        self.0.entry(found).or_default().push(input);
    }

    /// Adds a difference that has not been found before, with all inputs that have it.
    pub fn insert(&mut self, found: FoundDifference, inputs: Vec<u32>) {
        self.0.insert(found, inputs);
    }

    /// Removes all other kinds of differences if there is one of `kind`.
    pub fn keep_only_if_any(&mut self, kind: DifferenceKind) {
        if self.0.keys().any(|found| found.kind == kind) {
            self.0.retain(|found, _| found.kind == kind);
        }
    }

    /// Removes all differences and returns them in the order of their paths.
    pub fn take(&mut self) -> BTreeMap<FoundDifference, Vec<u32>> {
        std::mem::take(&mut self.0)
    }
}

impl FoundDifference {
    /// Returns this difference, or one of "yet other values" if `known` already holds enough for its object.
    fn bounded(self, known: &BTreeMap<Self, Vec<u32>>) -> Self {
        if !matches!(self.kind, DifferenceKind::Value | DifferenceKind::Attributes) || known.contains_key(&self) {
            return self;
        }
        let others = |found: Self| Self { found: "yet other values".to_owned(), ..found };
        let alike = |other: &Self| other.path == self.path && other.kind == self.kind;
        let from = |expected: &str| Self { expected: expected.to_owned(), found: String::new(), ..self.clone() };
        let after = |start: Self| known.range((Bound::Included(start), Bound::Unbounded)).map(|(found, _)| found);
        let has_value = |other: &&Self| alike(other) && other.expected == self.expected;
        if after(from(&self.expected)).take_while(has_value).take(SHOWN_VALUES).count() == SHOWN_VALUES {
            return others(self);
        }
        if after(from("")).take_while(|other| alike(other)).take(MAX_DIFFERENCES).count() == MAX_DIFFERENCES {
            return others(Self { expected: "the first input's".to_owned(), ..self });
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(found: impl Iterator<Item = (String, String)>) -> Vec<(String, String, usize)> {
        let mut known = FoundDifferences::default();
        for (input, (expected, found)) in (1..).zip(found) {
            known.add(b"/x", DifferenceKind::Attributes, expected, found, input);
        }
        known.take().into_iter().map(|(found, inputs)| (found.expected, found.found, inputs.len())).collect()
    }

    #[test]
    fn few_values_are_shown_and_all_inputs_counted() {
        let found = all_of((1..=500).map(|run| ("run = 0".to_owned(), format!("run = {}", run % 100))));
        let row = |found: &str, inputs| ("run = 0".to_owned(), found.to_owned(), inputs);
        assert_eq!(found, [row("run = 1", 5), row("run = 2", 5), row("run = 3", 5), row("yet other values", 485)]);
    }

    #[test]
    fn differences_of_an_object_are_bounded() {
        let found = all_of((0..5000).map(|place| (format!("a[{place}] = 0"), format!("a[{place}] = 1"))));
        assert_eq!((found.len(), found.iter().map(|row| row.2).sum::<usize>()), (MAX_DIFFERENCES + 1, 5000));
        assert_eq!(found.last().unwrap().1, "yet other values");
    }
}
