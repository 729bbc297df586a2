//! Ranks that hold the data of an item.

use crate::ranks::communicator::Rank;
use smallvec::SmallVec;
use std::cmp::Reverse;

/// Maximum number of holders of an item that are considered as its owner. A block of a regular partition is held by
/// one, two, four or eight ranks, or by more that hold little each.
pub const MAX_HOLDERS: usize = 8;

/// Ranks that hold the largest parts of an item's data, with the sizes of these parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// Ranks with the sizes of their parts, the largest part first. Of equal parts, the part of the lowest rank comes
    /// first.
    largest: SmallVec<[(u32, u64); 2]>,
}

impl Holders {
    /// Returns the ranks with the largest sums of `parts`, at most [`MAX_HOLDERS`]; sorts `parts` by rank.
    pub fn of(parts: &mut [(Rank, u64)]) -> Self {
        parts.sort_unstable();
        let sums = parts.chunk_by(|left, right| left.0 == right.0).map(|of_rank| {
            let sum = of_rank.iter().fold(0, |sum: u64, (_, size)| sum.saturating_add(*size));
            (of_rank[0].0 as u32, sum)
        });
        let mut largest = SmallVec::new();
        sums.for_each(|sum| insert_largest(&mut largest, sum));
        Self { largest }
    }

    /// Returns the rank that holds the largest part.
    pub fn home(&self) -> Option<Rank> {
        self.largest.first().map(|(rank, _)| *rank as Rank)
    }

    /// Returns the size of the largest part.
    pub fn most(&self) -> u64 {
        self.largest.first().map_or(0, |(_, size)| *size)
    }

    /// Returns the size of the part that `rank` holds, or 0 if it is not one of the largest.
    pub fn of_rank(&self, rank: Rank) -> u64 {
        self.largest.iter().find(|(holder, _)| *holder as Rank == rank).map_or(0, |(_, size)| *size)
    }

    /// Returns the holders with the sizes of their parts, largest first.
    pub fn iter(&self) -> impl Iterator<Item = (Rank, u64)> + '_ {
        self.largest.iter().map(|(rank, size)| (*rank as Rank, *size))
    }
}

/// Inserts a part into `largest`, a list sorted by descending size and then by ascending rank, which keeps the first
/// [`MAX_HOLDERS`].
pub fn insert_largest<S: Copy + Ord, A: smallvec::Array<Item = (u32, S)>>(largest: &mut SmallVec<A>, part: (u32, S)) {
    let key = |(rank, size): (u32, S)| (Reverse(size), rank);
    let at = largest.partition_point(|other| key(*other) < key(part));
    if at < MAX_HOLDERS {
        largest.truncate(MAX_HOLDERS - 1);
        largest.insert(at, part);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn largest_parts() {
        assert_eq!(Holders::of(&mut []), Holders::default());
        let holders = Holders::of(&mut [(3, 5), (1, 4), (1, 2), (3, 1), (2, 9)]);
        assert_eq!(holders.iter().collect::<Vec<_>>(), [(2, 9), (1, 6), (3, 6)]);
        assert_eq!((holders.most(), holders.of_rank(3), holders.of_rank(7)), (9, 6, 0));
        let many = Holders::of(&mut (0..20).map(|rank| (rank, rank as u64)).collect::<Vec<_>>());
        assert_eq!(many.iter().map(|(rank, _)| rank).collect::<Vec<_>>(), [19, 18, 17, 16, 15, 14, 13, 12]);
    }
}
