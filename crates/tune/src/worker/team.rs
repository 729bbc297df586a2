//! The processes that share a run: a single one, or MPI ranks.

use crate::error::Result;
use crate::kernel::ReadBack;
use crate::statistics::order_of_block;
use raddle_core::ranks::shares::even_share;
use raddle_hdf5::dynamic::DynamicMpi;
use std::ops::Range;

/// This process, as one of those that share a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Team<'a> {
    mpi: Option<&'a DynamicMpi>,
    pub rank: u64,
    pub size: u64,
}

impl<'a> Team<'a> {
    /// Returns the team of a single process.
    pub(super) const fn alone() -> Self {
        Self { mpi: None, rank: 0, size: 1 }
    }

    /// Returns the team of one of several ranks.
    pub(super) fn of(mpi: &'a DynamicMpi) -> Self {
        Self { mpi: Some(mpi), rank: u64::from(mpi.rank()), size: u64::from(mpi.size()) }
    }

    /// Returns the ranks; `None` if there are none.
    pub(super) fn mpi(&self) -> Option<&'a DynamicMpi> {
        self.mpi
    }

    /// Collective. Waits for all ranks.
    pub(super) fn wait(&self) -> Result<()> {
        self.mpi.map_or(Ok(()), |mpi| Ok(mpi.barrier()?))
    }

    /// Returns whether item `place` of those dealt round-robin belongs to this process.
    pub(super) fn has(&self, place: u64) -> bool {
        place % self.size == self.rank
    }

    /// Returns which of `count` round-robin items this process reads back, in order; `seed` determines random orders.
    pub(super) fn reads(&self, order: ReadBack, seed: u64, count: u64) -> Vec<u64> {
        match order {
            ReadBack::Shifted => (0..count).filter(|place| place % self.size == (self.rank + 1) % self.size).collect(),
            ReadBack::Random => {
                let drawn = order_of_block(seed, 0, usize::try_from(count).unwrap_or(usize::MAX));
                (0..).zip(drawn).filter(|(turn, _)| self.has(*turn)).map(|(_, place)| place as u64).collect()
            }
        }
    }

    /// Returns this process's share of `count` consecutive items; shares differ by at most one.
    pub(super) fn share(&self, count: u64) -> Range<u64> {
        even_share(count, self.rank, self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_read_once_and_by_another_rank() {
        for (size, count) in [(1, 5), (2, 8), (3, 7), (4, 2)] {
            for order in [ReadBack::Shifted, ReadBack::Random] {
                let mut all = Vec::new();
                for rank in 0..size {
                    let team = Team { mpi: None, rank, size };
                    let places = team.reads(order, 9, count);
                    let is_local = |place: &u64| team.has(*place);
                    assert!(
                        order == ReadBack::Random || size == 1 || !places.iter().any(is_local),
                        "{size} {places:?}"
                    );
                    all.extend(places);
                }
                all.sort_unstable();
                assert_eq!(all, (0..count).collect::<Vec<_>>(), "{order:?} of {size}");
            }
        }
        let alone = Team::alone().reads(ReadBack::Random, 9, 100);
        assert_ne!(alone, (0..100).collect::<Vec<_>>());
        assert_ne!(alone, Team::alone().reads(ReadBack::Random, 8, 100));
    }
}
