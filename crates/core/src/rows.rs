//! Rows of a table as ascending runs.
//!
//! Invariant: runs are not empty, and between two runs there is a row that belongs to neither.

use std::ops::Range;
use std::sync::Arc;

/// Rows of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    runs: Arc<[Range<u64>]>,
}

impl Rows {
    /// Creates rows from runs in ascending order; a run may be empty, or begin where the previous one ends.
    ///
    /// # Panics
    /// In debug builds, if a run begins before the end of the previous one.
    pub fn of(runs: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut joined: Vec<Range<u64>> = Vec::new();
        for run in runs.into_iter().filter(|run| !run.is_empty()) {
            match joined.last_mut() {
                Some(last) if last.end == run.start => last.end = run.end,
                last => {
                    debug_assert!(last.is_none_or(|last| last.end < run.start), "runs descend");
                    joined.push(run);
                }
            }
        }
        Self { runs: joined.into() }
    }

    /// Returns the runs of rows, in ascending order.
    pub fn runs(&self) -> &[Range<u64>] {
        &self.runs
    }

    /// Returns the number of rows.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }

    /// Returns the rows that both have.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let parts = self.runs.iter().flat_map(|run| {
            let common = move |of: &Range<u64>| run.start.max(of.start)..run.end.min(of.end);
            other.overlapping(run).iter().map(common)
        });
        Self { runs: parts.collect() }
    }

    /// Returns the shortest range that contains all rows in `range`; `None` if there are none.
    pub fn span(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let runs = self.overlapping(range);
        Some(runs.first()?.start.max(range.start)..runs.last()?.end.min(range.end))
    }

    /// Returns whether all rows of `range` are among the rows.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        range.is_empty()
            || self.overlapping(range).first().is_some_and(|run| run.start <= range.start && range.end <= run.end)
    }

    /// Clears the elements of `holds` whose rows are not in this set. `holds` has one element for each row, starting
    /// with `first`.
    pub fn restrict(&self, first: u64, holds: &mut [bool]) {
        let range = first..first + holds.len() as u64;
        let mut next = 0;
        for run in self.overlapping(&range) {
            let start = run.start.saturating_sub(first) as usize;
            holds[next..start].fill(false);
            next = (run.end.min(range.end) - first) as usize;
        }
        holds[next..].fill(false);
    }

    /// Returns the runs that have rows in `range`.
    fn overlapping(&self, range: &Range<u64>) -> &[Range<u64>] {
        let first = self.runs.partition_point(|run| run.end <= range.start);
        let behind = if range.is_empty() { first } else { self.runs.partition_point(|run| run.start < range.end) };
        self.runs.get(first..behind).unwrap_or_default()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flags(rows: &Rows) -> Vec<bool> {
        (0..40).map(|row| rows.runs().iter().any(|run| run.contains(&row))).collect()
    }

    fn of_flags(flags: &[bool]) -> Rows {
        Rows::of((0..).zip(flags).filter(|(_, flag)| **flag).map(|(row, _): (u64, _)| row..row + 1))
    }

    proptest! {
        #[test]
        fn rows_are_a_set(one in prop::collection::vec(any::<bool>(), 40), other in prop::collection::vec(any::<bool>(), 40), range in (0_u64..40, 0_u64..40)) {
            let rows = of_flags(&one);
            prop_assert_eq!(flags(&rows), one.clone());
            prop_assert_eq!(rows.count(), one.iter().filter(|flag| **flag).count() as u64);
            prop_assert!(rows.runs().windows(2).all(|pair| pair[0].end < pair[1].start));
            let common: Vec<bool> = one.iter().zip(&other).map(|(one, other)| one & other).collect();
            prop_assert_eq!(rows.intersection(&of_flags(&other)), of_flags(&common));
            let range = range.0..range.1.max(range.0);
            let within: Vec<u64> = range.clone().filter(|row| one[*row as usize]).collect();
            prop_assert_eq!(rows.span(&range), within.first().map(|first| *first..within.last().unwrap() + 1));
            prop_assert_eq!(rows.contains(&range), within.len() as u64 == range.end - range.start);
            let mut holds = other[range.start as usize..range.end as usize].to_vec();
            rows.restrict(range.start, &mut holds);
            prop_assert_eq!(&holds[..], &common[range.start as usize..range.end as usize]);
        }
    }

    #[test]
    fn adjacent_runs_are_joined() {
        assert_eq!(Rows::of([0..2, 2..2, 2..5, 7..8]).runs(), [0..5, 7..8]);
        assert!(Rows::default().span(&(0..9)).is_none() && !Rows::default().contains(&(0..1)));
    }
}
