//! Division of one axis of an array, nearly always axis 0, into runs of input rows, in order.
//!
//! The columns of a table have the same runs, and a real job has the columns of thousands of tables from thousands of
//! inputs, so arrays with equal runs share one list. Invariant: lists are immutable.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A run of rows of an array that comes from one input; a row is an index on the array's axis of concatenation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// Number of the input.
    pub input: u32,
    /// First row of the run in the array.
    pub start: u64,
    /// Number of rows.
    pub rows: u64,
    /// First row of the run in the input; nonzero only if an array holds just the last rows of an input.
    pub source_row: u64,
}

/// The runs of an array, shared with other arrays that have equal runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<Segment>", into = "Vec<Segment>")]
pub struct Segments(Arc<[Segment]>);

impl Deref for Segments {
    type Target = [Segment];

    fn deref(&self) -> &[Segment] {
        &self.0
    }
}

impl Segments {
    /// Creates the runs of an array that consists of these runs of rows of one input.
    pub fn of_rows(input: u32, runs: &[Range<u64>]) -> Self {
        let mut start = 0;
        let segments = runs.iter().map(|run| {
            let segment = Segment { input, start, rows: run.end - run.start, source_row: run.start };
            start += segment.rows;
            segment
        });
        Self(segments.collect())
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> u64 {
        self.last().map_or(0, |last| last.start + last.rows)
    }
}

impl From<Vec<Segment>> for Segments {
    fn from(segments: Vec<Segment>) -> Self {
        Self(segments.into())
    }
}

impl From<Segments> for Vec<Segment> {
    fn from(segments: Segments) -> Self {
        segments.to_vec()
    }
}

/// Lists of runs created so far, used to store equal lists once.
#[derive(Debug, Default)]
pub struct SegmentLists {
    lists: HashSet<Arc<[Segment]>>,
    /// Most recently returned list: neighbouring arrays are nearly always columns of one table.
    last: Segments,
}

impl SegmentLists {
    /// Returns the list with these runs.
    pub fn share(&mut self, segments: &[Segment]) -> Segments {
        if *self.last != *segments {
            let list = self.lists.get(segments).cloned().unwrap_or_else(|| segments.into());
            self.lists.insert(Arc::clone(&list));
            self.last = Segments(list);
        }
        self.last.clone()
    }

    /// Returns the list with the runs of `segments`, which becomes that list if there is none.
    pub fn share_list(&mut self, segments: &Segments) -> Segments {
        if !Arc::ptr_eq(&self.last.0, &segments.0) && self.last != *segments {
            let list = self.lists.get(&segments.0).cloned().unwrap_or_else(|| Arc::clone(&segments.0));
            self.lists.insert(Arc::clone(&list));
            self.last = Segments(list);
        }
        self.last.clone()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn run(input: u32, start: u64, rows: u64) -> Segment {
        Segment { input, start, rows, source_row: 0 }
    }

    #[test]
    fn equal_lists_are_one_in_memory() {
        let mut lists = SegmentLists::default();
        let (one, two) = ([run(0, 0, 3), run(2, 3, 4)], [run(0, 0, 3)]);
        let first = lists.share(&one);
        let other = lists.share(&two);
        let again = lists.share(&one);
        assert_eq!((&*first, &*other), (one.as_slice(), two.as_slice()));
        assert!(Arc::ptr_eq(&first.0, &again.0));
        let equal = Segments::from(one.to_vec());
        assert!(Arc::ptr_eq(&first.0, &lists.share_list(&equal).0));
        let new = Segments::of_rows(4, &[2..5, 7..8]);
        assert!(Arc::ptr_eq(&new.0, &lists.share_list(&new).0) && Arc::ptr_eq(&new.0, &lists.share(&new).0));
        assert_eq!((new[1].start, new[1].source_row, new.row_count()), (3, 7, 4));
        assert!(lists.share(&[]).is_empty());
    }
}
