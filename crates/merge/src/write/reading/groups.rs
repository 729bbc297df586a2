//! Groups of ranks that read inputs for each other.
//!
//! Invariant: a pure function of the groups and the number of inputs, the same on every rank. Each input has one reader
//! in each group, and one of these is its home rank.

use raddle_core::ranks::communicator::Rank;
use std::num::NonZeroUsize;

/// Assignment of inputs to the ranks that read them for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadingGroups {
    group_of: Vec<usize>,
    /// Ranks of each group.
    members: Vec<Vec<Rank>>,
    /// All ranks, group by group.
    order: Vec<Rank>,
    inputs: u64,
}

impl ReadingGroups {
    /// Creates groups of ranks with equal numbers in `machines`. Nodes are numbered from 0, and each has at least one
    /// rank.
    pub(crate) fn of_machines(machines: &[u32], inputs: usize) -> Self {
        Self::new(machines.iter().map(|machine| *machine as usize).collect(), inputs)
    }

    /// Creates groups of `size` consecutive ranks; the last group may be smaller.
    pub(crate) fn of_size(ranks: usize, size: NonZeroUsize, inputs: usize) -> Self {
        Self::new((0..ranks).map(|rank| rank / size).collect(), inputs)
    }

    fn new(group_of: Vec<usize>, inputs: usize) -> Self {
        let mut members = vec![Vec::new(); group_of.iter().max().map_or(0, |last| last + 1)];
        group_of.iter().enumerate().for_each(|(rank, group)| members[*group].push(rank));
        let order = members.concat();
        Self { group_of, members, order, inputs: inputs as u64 }
    }

    /// Returns the rank that reads `input` for `owner`.
    pub(crate) fn reader(&self, owner: Rank, input: u32) -> Rank {
        let home = self.home(input);
        let group = self.group_of[owner];
        let members = &self.members[group];
        if self.group_of[home] == group { home } else { members[input as usize % members.len()] }
    }

    /// Returns the rank that should write tiles of this input. Neighbouring inputs have the same or neighbouring home
    /// ranks.
    pub(crate) fn home(&self, input: u32) -> Rank {
        self.order[(u64::from(input) * self.order.len() as u64 / self.inputs.max(1)) as usize]
    }

    /// Returns whether each group lies within one node.
    pub(crate) fn are_within(&self, machines: &[u32]) -> bool {
        self.members.iter().all(|group| group.iter().all(|rank| machines[*rank] == machines[group[0]]))
    }

    /// Returns the number of ranks in the largest group.
    pub(crate) fn largest(&self) -> usize {
        self.members.iter().map(Vec::len).max().unwrap_or(1)
    }

    /// Returns the number of groups.
    pub(crate) fn count(&self) -> usize {
        self.members.len()
    }

    /// Returns the largest number of inputs that one rank reads.
    pub(crate) fn max_inputs(&self) -> u64 {
        let smallest = self.members.iter().map(Vec::len).min().unwrap_or(1).max(1);
        self.inputs.div_ceil(smallest as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_of_a_machine_share_all_inputs() {
        let groups = ReadingGroups::of_machines(&[0, 1, 0, 1], 8);
        assert_eq!((groups.count(), groups.largest(), groups.max_inputs()), (2, 2, 4));
        // Ranks 0, 2, 1, 3 are home to two inputs each.
        assert_eq!((0..8).map(|input| groups.home(input)).collect::<Vec<_>>(), [0, 0, 2, 2, 1, 1, 3, 3]);
        assert_eq!((0..8).map(|input| groups.reader(0, input)).collect::<Vec<_>>(), [0, 0, 2, 2, 0, 2, 0, 2]);
        assert_eq!((0..8).map(|input| groups.reader(3, input)).collect::<Vec<_>>(), [1, 3, 1, 3, 1, 1, 3, 3]);
    }

    proptest! {
        #[test]
        fn each_group_has_one_reader_of_each_input(ranks in 1_usize..40, size in 1_usize..50, inputs in 1_u32..200) {
            let groups = ReadingGroups::of_size(ranks, NonZeroUsize::new(size).unwrap(), inputs as usize);
            let mut read = vec![0_u64; ranks];
            for input in 0..inputs {
                prop_assert!(groups.home(input) < ranks);
                for group in 0..groups.count() {
                    let readers: Vec<Rank> =
                        groups.members[group].iter().map(|owner| groups.reader(*owner, input)).collect();
                    prop_assert!(readers.iter().all(|reader| *reader == readers[0]));
                    prop_assert!(groups.members[group].contains(&readers[0]));
                    read[readers[0]] += 1;
                }
                prop_assert_eq!(groups.reader(groups.home(input), input), groups.home(input));
            }
            // With one group every rank reads its share.
            if groups.count() == 1 {
                prop_assert!(read.iter().all(|count| *count <= groups.max_inputs()));
            }
        }
    }
}
