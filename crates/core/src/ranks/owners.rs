//! Owners: the rank that produces each part of a plan, and the rounds in which the ranks process it.
//!
//! All functions are pure functions of facts known to all ranks, so every rank computes the same answer without
//! communication. Invariants: dealing gives no rank more than its share plus a sixteenth of it, or its share plus the
//! most expensive item. Rounds are consecutive, cover everything, and hold at most the quota of each rank unless a
//! single item exceeds it.

use crate::ranks::communicator::Rank;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroUsize;
use std::ops::Range;

/// Maximum head start of an item's home over the least loaded rank, in units of the item's cost. Moving a piece costs
/// about a tenth of encoding it, so an imbalance of eight items would cost more than it saves.
const HOME_HEAD_START: u64 = 4;

/// Share of each rank in a run, in units of the most expensive item. Items are dealt in runs, most expensive first. The
/// share is large enough for cheap items to even out expensive ones, and small enough for rounds, which are consecutive
/// items, to be balanced as well.
const RUN_SHARE: u64 = 16;

/// A home may exceed its share of a run by this fraction (1/16).
const HOME_EXCESS: u128 = 16;

/// An item to deal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Cost of producing the item, in any unit.
    pub cost: u64,
    /// Rank that holds most of the item's data.
    pub home: Option<Rank>,
}

/// Deals items to `ranks` ranks. Each goes to its home unless that would exceed its share or get too far ahead of the
/// others; otherwise it goes to the least loaded rank. Every long run of consecutive items is balanced, not only the
/// whole, so that rounds are balanced too.
pub fn deal(items: impl IntoIterator<Item = Item>, ranks: usize) -> Vec<u32> {
    // Count even an item without cost, so that such items do not all end up on one rank.
    let items: Vec<Item> = items.into_iter().map(|item| Item { cost: item.cost.max(1), ..item }).collect();
    let dearest = items.iter().map(|item| item.cost).max().unwrap_or(1);
    let mut dealer = Assigner::new(ranks.max(1));
    let mut owners = vec![0; items.len()];
    let run_cost = u128::from(dearest) * u128::from(RUN_SHARE) * ranks.max(1) as u128;
    let (mut first, mut cost) = (0, 0_u128);
    let mut left: u128 = items.iter().map(|item| u128::from(item.cost)).sum();
    for (number, item) in items.iter().enumerate() {
        cost += u128::from(item.cost);
        left -= u128::from(item.cost);
        // A remainder at the end is too small for a separate run.
        if (cost >= run_cost && left >= run_cost) || number + 1 == items.len() {
            dealer.deal_run(&items[first..=number], cost, &mut owners[first..=number]);
            (first, cost) = (number + 1, 0);
        }
    }
    owners
}

/// Deals runs of items one after the other; within a run, the most expensive item first and equal ones in order.
#[derive(Clone)]
struct Assigner {
    loads: Vec<u64>,
    /// Queue of ranks: lowest load first, then lowest rank. Entries with an outdated load are stale and are dropped
    /// when found.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// Cost of all runs dealt so far.
    dealt: u128,
}

impl Assigner {
    fn new(ranks: usize) -> Self {
        Self { loads: vec![0; ranks], queue: (0..ranks).map(|rank| Reverse((0, rank))).collect(), dealt: 0 }
    }

    /// Deals a run of cost `cost`. A home may get as much as the busiest rank would get if homes were ignored, or
    /// slightly more than its share.
    fn deal_run(&mut self, run: &[Item], cost: u128, owners: &mut [u32]) {
        let ranks = self.loads.len() as u128;
        self.dealt += cost;
        let mut order: Vec<usize> = (0..run.len()).collect();
        order.sort_by_key(|&at| Reverse(run[at].cost));
        let mut homeless = self.clone();
        order.iter().for_each(|&at| owners[at] = homeless.give_to_lightest(run[at].cost));
        let busiest = homeless.loads.iter().copied().max().unwrap_or(0);
        let share = u64::try_from((self.dealt + cost / HOME_EXCESS) / ranks).unwrap_or(u64::MAX);
        let most = busiest.max(share);
        let dearest = order.first().map_or(0, |&at| run[at].cost);
        if cost / ranks < u128::from(dearest) * u128::from(HOME_HEAD_START) {
            // If each rank gets only a few items, those that fit at home are dealt before others of equal cost use up
            // the space.
            for equal in order.chunk_by(|&left, &right| run[left].cost == run[right].cost) {
                let at_home = |&at: &usize| match self.give_to_home(run[at], most, u64::MAX) {
                    Some(owner) => {
                        owners[at] = owner;
                        false
                    }
                    None => true,
                };
                let away: Vec<usize> = equal.iter().copied().filter(at_home).collect();
                away.into_iter().for_each(|at| owners[at] = self.give_to_lightest(run[at].cost));
            }
            return;
        }
        for at in order {
            let (least, _) = self.lightest();
            let head_start = least.saturating_add(run[at].cost.saturating_mul(HOME_HEAD_START));
            let at_home = self.give_to_home(run[at], most, head_start);
            owners[at] = at_home.unwrap_or_else(|| self.give_to_lightest(run[at].cost));
        }
    }

    /// Assigns an item to its home, if that has at most `head_start` before and `most` after it.
    fn give_to_home(&mut self, Item { cost, home }: Item, most: u64, head_start: u64) -> Option<u32> {
        let takes = |load: u64| load <= head_start && load.saturating_add(cost) <= most;
        let home = home.filter(|home| self.loads.get(*home).is_some_and(|&load| takes(load)))?;
        Some(self.give(home, cost))
    }

    fn give_to_lightest(&mut self, cost: u64) -> u32 {
        let (_, lightest) = self.lightest();
        self.give(lightest, cost)
    }

    fn give(&mut self, rank: Rank, cost: u64) -> u32 {
        self.loads[rank] = self.loads[rank].saturating_add(cost);
        self.queue.push(Reverse((self.loads[rank], rank)));
        rank as u32
    }

    /// Returns the lowest load and the first rank that has it.
    fn lightest(&mut self) -> (u64, Rank) {
        while let Some(Reverse((load, rank))) = self.queue.peek()
            && self.loads[*rank] != *load
        {
            self.queue.pop();
        }
        self.queue.peek().map_or((0, 0), |Reverse(entry)| *entry)
    }
}

/// Like [`deal`], but only `limit` of the ranks own items. The ranks are split into `limit` groups of neighbours, each
/// represented by its first rank, so an item stays near its home.
pub fn deal_to_some(items: impl IntoIterator<Item = Item>, ranks: usize, limit: Option<NonZeroUsize>) -> Vec<u32> {
    let ranks = ranks.max(1);
    let groups = limit.map_or(ranks, NonZeroUsize::get).min(ranks);
    let group_of = |rank: Rank| rank * groups / ranks;
    let items = items.into_iter().map(|item| Item { home: item.home.map(group_of), ..item });
    let mut owners = deal(items, groups);
    for owner in &mut owners {
        *owner = (*owner as usize * ranks).div_ceil(groups) as u32;
    }
    owners
}

/// Splits consecutive items into `parts` runs with costs as equal as whole items allow. Returns `parts` + 1 bounds; the
/// first is 0, the last is the number of items.
pub fn cut(costs: impl Iterator<Item = u64> + Clone, parts: usize) -> Vec<u64> {
    // Count even an item without cost, as in dealing.
    let costs = costs.map(|cost| u128::from(cost.max(1)));
    let (total, parts) = (costs.clone().sum::<u128>(), parts.max(1));
    let (mut bounds, mut before, mut items) = (vec![0], 0, 0);
    for cost in costs {
        // A run ends before an item that is more than half outside its share.
        while bounds.len() < parts && (2 * before + cost) * parts as u128 > 2 * total * bounds.len() as u128 {
            bounds.push(items);
        }
        before += cost;
        items += 1;
    }
    bounds.resize(parts, items);
    bounds.push(items);
    bounds
}

/// Returns the rank with the largest sum of shares, the lowest of equal ones; `None` without shares.
pub fn largest_share(shares: impl IntoIterator<Item = (Rank, u64)>) -> Option<Rank> {
    let mut sums: SmallVec<[(Rank, u64); 8]> = SmallVec::new();
    for (rank, share) in shares {
        match sums.iter_mut().find(|sum| sum.0 == rank) {
            Some(sum) => sum.1 = sum.1.saturating_add(share),
            None => sums.push((rank, share)),
        }
    }
    sums.into_iter().max_by_key(|(rank, share)| (*share, Reverse(*rank))).map(|(rank, _)| rank)
}

/// Resources that an item occupies during its round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Memory on the item's owner.
    pub len_bytes: u64,
    /// Number of tiles; all ranks together report their claims to rank 0.
    pub tiles: u64,
}

/// Splits consecutive items into rounds with at most `quotas[rank]` bytes on each rank and at most `round_tiles` tiles
/// in total. An item that alone exceeds its owner's quota is the only item of that rank in its round.
pub fn rounds(owners: &[u32], needs: &[Footprint], quotas: &[u64], round_tiles: u64) -> Vec<Range<usize>> {
    let mut rounds = Vec::new();
    let mut used = vec![0u64; quotas.len()];
    let (mut first, mut tiles) = (0, 0u64);
    for (number, (owner, need)) in owners.iter().zip(needs).enumerate() {
        let owner = *owner as usize;
        let full = used[owner] > 0 && used[owner].saturating_add(need.len_bytes) > quotas[owner];
        if number > first && (full || tiles.saturating_add(need.tiles) > round_tiles) {
            rounds.push(first..number);
            used.fill(0);
            (first, tiles) = (number, 0);
        }
        used[owner] = used[owner].saturating_add(need.len_bytes);
        tiles = tiles.saturating_add(need.tiles);
    }
    if first < owners.len() {
        rounds.push(first..owners.len());
    }
    rounds
}

/// Returns for each n whether round n + 1 may begin before round n is done, because no rank then holds more than twice
/// its quota. Only an item that alone exceeds its owner's quota can prevent that.
pub fn overlaps(owners: &[u32], needs: &[Footprint], quotas: &[u64], rounds: &[Range<usize>]) -> Vec<bool> {
    let memory = |round: &Range<usize>| {
        let mut used = vec![0u64; quotas.len()];
        for at in round.clone() {
            let used = &mut used[owners[at] as usize];
            *used = used.saturating_add(needs[at].len_bytes);
        }
        used
    };
    rounds
        .windows(2)
        .map(|pair| {
            let (this, next) = (memory(&pair[0]), memory(&pair[1]));
            (0..quotas.len()).all(|rank| this[rank].saturating_add(next[rank]) <= quotas[rank].saturating_mul(2))
        })
        .collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_home_gets_its_items_unless_it_is_far_ahead() {
        let at = |home| Item { cost: 10, home: Some(home) };
        assert_eq!(deal([at(1), at(0), at(1), at(0)], 2), [1, 0, 1, 0]);
        // More than half of all.
        assert_eq!(deal([at(1), at(0), at(1), at(1)], 2), [1, 0, 1, 0]);
        let all_at_one = deal(vec![at(2); 100], 4);
        let count = |rank| all_at_one.iter().filter(|owner| **owner == rank).count();
        assert!((24..=27).contains(&count(2)) && (0..4).all(|rank| count(rank) >= 24), "{all_at_one:?}");
        // Every prefix of items is nearly balanced.
        let ahead =
            |end: usize| all_at_one[..end].iter().filter(|owner| **owner == 2).count() as f64 - end as f64 / 4.0;
        assert!((0..100).all(|end| ahead(end) <= 5.0), "{all_at_one:?}");
        assert_eq!(deal([at(7)], 2), [0]);
    }

    /// Returns the loads of the ranks and the number of items at home.
    fn dealt(items: &[Item], ranks: usize) -> (Vec<u64>, usize) {
        let owners = deal(items.iter().copied(), ranks);
        let mut loads = vec![0; ranks];
        owners.iter().zip(items).for_each(|(&owner, item)| loads[owner as usize] += item.cost.max(1));
        (loads, owners.iter().zip(items).filter(|(owner, item)| item.home == Some(**owner as usize)).count())
    }

    #[test]
    fn a_few_dear_items_are_balanced() {
        // Blocks of fields of one, one, three and eleven numbers, three or four blocks per rank.
        for ranks in [8, 64, 1000] {
            let blocks = ranks * 27 / 32;
            let fields = [1, 1, 3, 11].into_iter();
            let items: Vec<Item> = fields
                .flat_map(|cost| {
                    (0..blocks).map(move |block| Item { cost: 10 * cost, home: Some(block * ranks / blocks / 2) })
                })
                .collect();
            let (loads, at_home) = dealt(&items, ranks);
            let mean = loads.iter().sum::<u64>() / ranks as u64;
            let most = *loads.iter().max().unwrap();
            assert!(10 * most <= 11 * mean, "{most} of {mean} on {ranks} ranks");
            assert!(at_home > items.len() / 4, "{at_home} of {}", items.len());
        }
    }

    #[test]
    fn some_ranks_own_for_their_neighbours() {
        let at = |home| Item { cost: 1, home: Some(home) };
        let limit = NonZeroUsize::new;
        assert_eq!(deal_to_some((0..7).map(at), 7, limit(3)), [0, 0, 0, 3, 3, 5, 5]);
        assert_eq!(deal_to_some((0..3).map(at), 3, limit(9)), [0, 1, 2]);
        assert_eq!(deal_to_some((0..3).map(at), 3, None), deal((0..3).map(at), 3));
        assert_eq!(deal_to_some((0..4).map(at), 4, limit(1)), [0; 4]);
    }

    #[test]
    fn shares() {
        assert_eq!(largest_share([]), None);
        assert_eq!(largest_share([(3, 5), (1, 4), (1, 2), (3, 1)]), Some(1));
    }

    proptest! {
        #[test]
        fn dealing_balances(costs in prop::collection::vec(0u64..100, 0..200), ranks in 1usize..9) {
            let owners = deal(costs.iter().map(|cost| Item { cost: *cost, home: None }), ranks);
            let mut loads = vec![0; ranks];
            for (owner, cost) in owners.iter().zip(&costs) {
                loads[*owner as usize] += cost.max(&1);
            }
            let (most, least) = (loads.iter().max().unwrap(), loads.iter().min().unwrap());
            prop_assert!(most - least <= 100);
        }

        #[test]
        fn homes_do_not_unbalance(
            items in prop::collection::vec((0u64..100, prop::option::of(0usize..9)), 0..400),
            ranks in 1usize..9,
        ) {
            let items: Vec<Item> = items.into_iter().map(|(cost, home)| Item { cost, home }).collect();
            let (loads, _) = dealt(&items, ranks);
            let share = loads.iter().sum::<u64>() / ranks as u64 + 1;
            let dearest = items.iter().map(|item| item.cost).max().unwrap_or(0).max(1);
            let bound = (share + share / HOME_EXCESS as u64).max(share + dearest);
            prop_assert!(loads.iter().all(|&load| load <= bound), "{:?} of {}", loads, bound);
        }

        #[test]
        fn runs_are_balanced(costs in prop::collection::vec(0u64..100, 0..200), parts in 1usize..9) {
            let bounds = cut(costs.iter().copied(), parts);
            prop_assert_eq!((bounds.len(), bounds[0], bounds[parts]), (parts + 1, 0, costs.len() as u64));
            let total: u64 = costs.iter().map(|cost| cost.max(&1)).sum();
            for run in bounds.windows(2) {
                prop_assert!(run[0] <= run[1]);
                let cost: u64 = costs[run[0] as usize..run[1] as usize].iter().map(|cost| cost.max(&1)).sum();
                prop_assert!(cost.abs_diff(total / parts as u64) <= 101, "{:?} {}", bounds, cost);
            }
        }

        #[test]
        fn rounds_cover_all_within_quotas(
            items in prop::collection::vec((0u32..4, 0u64..60, 1u64..20), 0..80),
            quotas in prop::collection::vec(1u64..100, 4),
            round_tiles in 1u64..100,
        ) {
            let owners: Vec<_> = items.iter().map(|item| item.0).collect();
            let needs: Vec<_> = items.iter().map(|item| Footprint { len_bytes: item.1, tiles: item.2 }).collect();
            let mut next = 0;
            let rounds = rounds(&owners, &needs, &quotas, round_tiles);
            let within = |round: &Range<usize>, factor: u64| (0..4u32).all(|rank| {
                let own = round.clone().filter(|at| owners[*at] == rank).map(|at| needs[at].len_bytes);
                own.sum::<u64>() <= quotas[rank as usize] * factor
            });
            for (number, overlap) in overlaps(&owners, &needs, &quotas, &rounds).into_iter().enumerate() {
                prop_assert_eq!(overlap, within(&(rounds[number].start..rounds[number + 1].end), 2));
                prop_assert!(overlap || !within(&rounds[number], 1) || !within(&rounds[number + 1], 1));
            }
            for round in rounds {
                prop_assert_eq!(round.start, next);
                prop_assert!(!round.is_empty());
                let tiles: u64 = needs[round.clone()].iter().map(|need| need.tiles).sum();
                prop_assert!(tiles <= round_tiles || round.len() == 1);
                for rank in 0..4u32 {
                    let own: Vec<u64> = round.clone()
                        .filter(|at| owners[*at] == rank && needs[*at].len_bytes > 0)
                        .map(|at| needs[at].len_bytes).collect();
                    prop_assert!(own.iter().sum::<u64>() <= quotas[rank as usize] || own.len() == 1);
                }
                next = round.end;
            }
            prop_assert_eq!(next, items.len());
        }
    }
}
