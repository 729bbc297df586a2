//! Division of one axis of an array, nearly always axis 0, into runs of input rows, in order.
//!
//! The columns of a table have the same runs, and a real job has the columns of thousands of tables from thousands of
//! inputs, so arrays with equal runs share one list. Invariant: lists are immutable.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::Deref;
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
        assert!(lists.share(&[]).is_empty());
    }
}
