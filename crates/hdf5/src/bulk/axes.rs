//! Selections of elements along an axis.

use std::ops::Range;

/// Selected elements of one axis, in the requested order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxisSelection {
    /// `count` elements from `start`, each `step` after the previous one.
    Range {
        /// First element.
        start: u64,
        /// Number of elements.
        count: u64,
        /// Distance between elements, at least 1.
        step: u64,
    },
    /// Listed elements, in any order, possibly repeated.
    Listed(Vec<u64>),
}

impl AxisSelection {
    /// Selects all of an axis.
    pub fn all(dim: u64) -> Self {
        Self::Range { start: 0, count: dim, step: 1 }
    }

    /// Returns the number of selected elements.
    pub fn count(&self) -> u64 {
        match self {
            Self::Range { count, .. } => *count,
            Self::Listed(elements) => elements.len() as u64,
        }
    }

    /// Returns the start and length of a selection without gaps.
    pub(super) fn as_run(&self) -> Option<(u64, u64)> {
        match self {
            Self::Range { start, count, step } if *step == 1 || *count <= 1 => Some((*start, *count)),
            _ => None,
        }
    }

    /// Returns whether all elements are less than `dim`.
    pub(super) fn lies_in(&self, dim: u64) -> bool {
        match self {
            Self::Range { count: 0, .. } => true,
            Self::Range { start, count, step } => {
                let last = step.checked_mul(count - 1).and_then(|distance| distance.checked_add(*start));
                *step > 0 && last.is_some_and(|last| last < dim)
            }
            Self::Listed(elements) => elements.iter().all(|&element| element < dim),
        }
    }

    /// Returns the start and length of the shortest run that contains the elements at `positions` of the selection.
    pub(super) fn bounds(&self, positions: Range<u64>) -> (u64, u64) {
        if positions.is_empty() {
            return (0, 0);
        }
        match self {
            Self::Range { start, step, .. } => {
                (start + positions.start * step, (positions.end - positions.start - 1) * step + 1)
            }
            Self::Listed(elements) => {
                let part = &elements[positions.start as usize..positions.end as usize];
                let (low, high) =
                    part.iter().fold((u64::MAX, 0), |(low, high), &element| (low.min(element), high.max(element)));
                (low, high - low + 1)
            }
        }
    }
}

/// A selection in rising order, with the output position of each element.
#[derive(Debug)]
pub(super) struct SortedAxis {
    pub selection: AxisSelection,
    /// Position of each element in the output; `None` if it is the same as in the selection.
    places: Option<Vec<u64>>,
}

impl SortedAxis {
    pub fn new(selection: &AxisSelection) -> Self {
        match selection {
            AxisSelection::Listed(elements) if !elements.is_sorted() => {
                let mut places: Vec<u64> = (0..elements.len() as u64).collect();
                places.sort_by_key(|&place| elements[place as usize]);
                let sorted = places.iter().map(|&place| elements[place as usize]).collect();
                Self { selection: AxisSelection::Listed(sorted), places: Some(places) }
            }
            other => Self { selection: other.clone(), places: None },
        }
    }

    /// Returns the element at `position` and its place in the output.
    pub fn at(&self, position: u64) -> (u64, u64) {
        let place = self.places.as_ref().map_or(position, |places| places[position as usize]);
        match &self.selection {
            AxisSelection::Range { start, step, .. } => (start + position * step, place),
            AxisSelection::Listed(elements) => (elements[position as usize], place),
        }
    }

    /// Returns whether the elements and places at `positions` are consecutive.
    pub fn is_run(&self) -> bool {
        self.selection.as_run().is_some()
    }

    /// Splits the positions into groups that lie in one block of `block` elements each. Neighbouring groups are joined
    /// as long as they span at most `most` elements.
    pub fn groups(&self, block: u64, most: u64) -> Vec<Range<u64>> {
        let mut groups: Vec<Range<u64>> = Vec::new();
        let count = self.selection.count();
        let mut position = 0;
        while position < count {
            let block_end = (self.at(position).0 / block + 1).saturating_mul(block);
            let end = self.first_beyond(position, block_end);
            if let Some(last) = groups.last_mut()
                && self.selection.bounds(last.start..end).1 <= most
            {
                last.end = end;
            } else {
                groups.push(position..end);
            }
            position = end;
        }
        groups
    }

    /// Returns the first position after `position` whose element is not below `limit`.
    fn first_beyond(&self, position: u64, limit: u64) -> u64 {
        match &self.selection {
            AxisSelection::Range { start, count, step } => {
                (limit.saturating_sub(*start)).div_ceil(*step).clamp(position + 1, *count)
            }
            AxisSelection::Listed(elements) => {
                let rest = &elements[position as usize..];
                position + (rest.partition_point(|&element| element < limit) as u64).max(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_know_their_places() {
        let axis = SortedAxis::new(&AxisSelection::Listed(vec![7, 1, 7, 3]));
        let found: Vec<(u64, u64)> = (0..4).map(|position| axis.at(position)).collect();
        assert_eq!(found, [(1, 1), (3, 3), (7, 0), (7, 2)]);
        assert_eq!(axis.groups(2, 1), [0..1, 1..2, 2..4]);
        assert_eq!(axis.groups(2, 3), [0..2, 2..4]);
    }

    #[test]
    fn groups_cover_all_positions_once() {
        for (start, count, step) in [(0, 10, 1), (3, 7, 5), (9, 1, 100), (0, 1000, 3)] {
            let axis = SortedAxis::new(&AxisSelection::Range { start, count, step });
            for (block, most) in [(1, 1), (4, 4), (4, 100), (1000, 1000), (7, 1)] {
                let groups = axis.groups(block, most);
                assert_eq!(groups.first().unwrap().start, 0);
                assert_eq!(groups.last().unwrap().end, count);
                assert!(groups.windows(2).all(|pair| pair[0].end == pair[1].start));
                let longest = groups.iter().map(|group| axis.selection.bounds(group.clone()).1).max().unwrap();
                assert!(longest <= block.max(most), "{longest} of {block}, {most}");
            }
        }
    }

    #[test]
    fn bounds_are_checked() {
        assert!(AxisSelection::Range { start: 1, count: 3, step: 2 }.lies_in(6));
        assert!(!AxisSelection::Range { start: 1, count: 3, step: 2 }.lies_in(5));
        assert!(!AxisSelection::Range { start: u64::MAX, count: 2, step: u64::MAX }.lies_in(u64::MAX));
        assert!(!AxisSelection::Range { start: 0, count: 2, step: 0 }.lies_in(5));
        assert!(!AxisSelection::Listed(vec![0, 5]).lies_in(5));
    }
}
