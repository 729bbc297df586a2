//! Ranks that hold samples of a block or a shard.

use raddle_core::ranks::communicator::Rank;
use raddle_core::ranks::owners::insert_largest;
use smallvec::SmallVec;

/// Ranks that hold the most samples, and the number of ranks that hold any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SampleHolders {
    count: u32,
    /// Ranks and numbers of samples, as far as 32 bits hold them: there is one list for each block, nearly always of
    /// one or two ranks.
    largest: SmallVec<[(u32, u32); 2]>,
}

impl SampleHolders {
    /// Adds a rank, which must not have been added before, and the number of its samples.
    pub(crate) fn add(&mut self, rank: u32, samples: u64) {
        self.count += 1;
        insert_largest(&mut self.largest, (rank, u32::try_from(samples).unwrap_or(u32::MAX)));
    }

    /// Returns the number of ranks that hold samples.
    pub(crate) fn count(&self) -> u64 {
        self.count.into()
    }

    /// Returns the ranks that hold the most samples, with their numbers of samples, largest first.
    pub(crate) fn largest(&self) -> impl Iterator<Item = (Rank, u64)> + '_ {
        self.largest.iter().map(|(rank, samples)| (*rank as Rank, (*samples).into()))
    }
}
