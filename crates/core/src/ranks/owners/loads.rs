//! Loads of the ranks while the items of a run are given to them, and exchanged between them.

use super::Item;
use super::holders::Holders;
use crate::ranks::communicator::Rank;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum number of passes in which owners are exchanged, to bound the time. Each pass visits every item of a run
/// once.
const MAX_PASSES: usize = 8;

/// Maximum number of a rank's items that are considered for one exchange, to bound the time.
const MAX_EXCHANGES: usize = 64;

/// Cost and memory of an item.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ItemLoad {
    pub(super) cost: u64,
    pub(super) len_bytes: u64,
}

/// Loads of the ranks while a run is assigned.
pub(super) struct RunLoads<'a> {
    pub(super) loads: Vec<u64>,
    /// Memory that the items of this run take on each rank.
    used_bytes: Vec<u64>,
    /// Memory of each rank; empty without a limit.
    quotas: &'a [u64],
    /// Queue of ranks: lowest load first, then lowest rank. Entries with an outdated load are stale and are dropped
    /// when found. A rank without room is not in the queue.
    queue: BinaryHeap<Reverse<(u64, Rank)>>,
}

impl<'a> RunLoads<'a> {
    pub(super) fn new(loads: Vec<u64>, quotas: &'a [u64]) -> Self {
        let queue = loads.iter().enumerate().map(|(rank, load)| Reverse((*load, rank))).collect();
        Self { used_bytes: vec![0; loads.len()], loads, quotas, queue }
    }

    /// Returns whether a rank has memory for `gets` if it gives `gives` away.
    fn has_room(&self, rank: Rank, gives: ItemLoad, gets: ItemLoad) -> bool {
        let used_bytes = self.used_bytes[rank] - gives.len_bytes;
        let is_within = |quota: &u64| used_bytes == 0 || used_bytes.saturating_add(gets.len_bytes) <= *quota;
        self.quotas.get(rank).is_none_or(is_within)
    }

    /// Returns whether a rank may exchange `gives` for `gets`: it has room, and its load exceeds `most` only if it does
    /// not grow.
    fn may_exchange(&self, rank: Rank, gives: ItemLoad, gets: ItemLoad, most: u64) -> bool {
        let load = self.loads[rank];
        (load - gives.cost).saturating_add(gets.cost) <= most.max(load) && self.has_room(rank, gives, gets)
    }

    fn change(&mut self, rank: Rank, gives: ItemLoad, gets: ItemLoad) {
        self.loads[rank] = (self.loads[rank] - gives.cost).saturating_add(gets.cost);
        self.used_bytes[rank] = (self.used_bytes[rank] - gives.len_bytes).saturating_add(gets.len_bytes);
    }

    fn give(&mut self, rank: Rank, part: ItemLoad) -> u32 {
        self.change(rank, ItemLoad::default(), part);
        self.queue.push(Reverse((self.loads[rank], rank)));
        rank as u32
    }

    /// Assigns an item to the holder of the largest part that has room and whose load stays within `most`. Of several
    /// holders with equal parts, the least loaded one is chosen.
    pub(super) fn give_to_holder(&mut self, holders: &Holders, part: ItemLoad, most: u64) -> Option<u32> {
        let takes = |&(rank, _): &(Rank, u64)| {
            let load = self.loads.get(rank);
            load.is_some_and(|load| load.saturating_add(part.cost) <= most)
                && self.has_room(rank, ItemLoad::default(), part)
        };
        let (holder, _) =
            holders.iter().filter(takes).min_by_key(|&(rank, size)| (Reverse(size), self.loads[rank], rank))?;
        Some(self.give(holder, part))
    }

    /// Assigns an item to the least loaded rank that has room, or to the least loaded rank if none has.
    pub(super) fn give_to_lightest(&mut self, part: ItemLoad) -> u32 {
        loop {
            while let Some(Reverse((load, rank))) = self.queue.pop() {
                if self.loads[rank] == load && self.has_room(rank, ItemLoad::default(), part) {
                    return self.give(rank, part);
                }
            }
            // The run then takes several rounds.
            self.quotas = &[];
            self.queue = self.loads.iter().enumerate().map(|(rank, load)| Reverse((*load, rank))).collect();
        }
    }

    /// Moves items to ranks that hold more of their data, or exchanges them for other items of these ranks, as long as
    /// the ranks then own more of the data that they hold. Afterwards no load exceeds `most`, unless it was higher
    /// before and has not grown.
    pub(super) fn exchange(&mut self, run: &[Item], parts: &[ItemLoad], most: u64, owners: &mut [u32]) {
        let is_settled = |at: usize, owner: u32| run[at].holders.of_rank(owner as Rank) == run[at].holders.most();
        if (0..run.len()).all(|at| is_settled(at, owners[at])) {
            return;
        }
        let mut owned = vec![Vec::new(); self.loads.len()];
        owners.iter().enumerate().for_each(|(at, owner)| owned[*owner as usize].push(at));
        for _ in 0..MAX_PASSES {
            let mut is_changed = false;
            for at in 0..run.len() {
                let from = owners[at] as Rank;
                let Some((to, other)) = self.best_exchange(run, parts, (at, from), &owned, most) else { continue };
                let back = other.map_or(ItemLoad::default(), |other| parts[other]);
                self.change(from, parts[at], back);
                self.change(to, back, parts[at]);
                for (at, from, to) in std::iter::once((at, from, to)).chain(other.map(|other| (other, to, from))) {
                    owned[from].retain(|item| *item != at);
                    owned[to].push(at);
                    owners[at] = to as u32;
                }
                is_changed = true;
            }
            if !is_changed {
                break;
            }
        }
    }

    /// Returns the rank to which item `at` of rank `from` should move, and the item that this rank should return in
    /// exchange. `None` if no move helps.
    fn best_exchange(
        &self,
        run: &[Item],
        parts: &[ItemLoad],
        (at, from): (usize, Rank),
        owned: &[Vec<usize>],
        most: u64,
    ) -> Option<(Rank, Option<usize>)> {
        let kept = run[at].holders.of_rank(from);
        let (mut best, mut best_gain) = (None, 0);
        let better = run[at].holders.iter().take_while(|(_, size)| *size > kept);
        for (to, size) in better.filter(|(to, _)| *to < owned.len()) {
            let gain = i128::from(size) - i128::from(kept);
            if gain > best_gain && self.may_exchange(to, ItemLoad::default(), parts[at], most) {
                (best, best_gain) = (Some((to, None)), gain);
            }
            for &other in owned[to].iter().take(MAX_EXCHANGES) {
                let (holders, back) = (&run[other].holders, parts[other]);
                let gain = gain + i128::from(holders.of_rank(from)) - i128::from(holders.of_rank(to));
                if gain > best_gain
                    && self.may_exchange(to, back, parts[at], most)
                    && self.may_exchange(from, parts[at], back, most)
                {
                    (best, best_gain) = (Some((to, Some(other))), gain);
                }
            }
        }
        best
    }
}
