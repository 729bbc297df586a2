//! Owners: the rank that produces each part of a plan.
//!
//! All functions are pure functions of facts known to all ranks, so every rank computes the same answer without
//! communication. Invariant: assigning gives no rank more than its share plus a sixteenth of it, or its share plus the
//! most expensive item, unless other ranks lack the memory.

mod holders;
mod loads;

pub use holders::{Holders, MAX_HOLDERS, insert_largest};

use crate::ranks::communicator::Rank;
use crate::ranks::rounds::{Footprint, rounds};
use loads::{ItemLoad, RunLoads};
use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::ops::Range;

/// Share of each rank in a run, in units of the most expensive item. Items are assigned in runs, most expensive first.
/// The share is large enough for cheap items to even out expensive ones, and small enough for rounds, which are
/// consecutive items, to be balanced as well.
const RUN_SHARE: u64 = 16;

/// Fractions of the ranks' memory for a round that the items of a run may take, in sixteenths. The larger the fraction,
/// the better the costs are balanced; the smaller it is, the more likely a run fits into one round.
const ROUND_SIXTEENTHS: [u128; 4] = [16, 14, 12, 8];

/// Number of items that can be moved between ranks in the time it takes to produce one.
const MOVES_PER_COST: u128 = 10;

/// Divisor of a rank's share of a run. A rank may exceed its share by 1/16 to own items that it already holds.
const EXCESS: u128 = 16;

/// An item to assign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Item {
    /// Cost of producing the item, in any unit.
    pub cost: u64,
    /// Length of the item's data.
    pub len_bytes: u64,
    /// Ranks that hold parts of the item's data.
    pub holders: Holders,
}

/// Assigns items to `ranks` ranks. Each goes to the rank that holds most of it unless that would exceed the rank's
/// share; otherwise it goes to another holder or to the least loaded rank. Ranks then exchange items as long as this
/// lets them own more of what they hold. Every long run of consecutive items is balanced, not only the whole.
pub fn assign(items: &[Item], ranks: usize) -> Vec<u32> {
    assign_runs(items, ranks, &runs_by_cost(items, ranks), None)
}

/// Assigns items to the ranks of `quotas` and splits them into rounds as [`rounds`] does.
///
/// Long runs of items let ranks own what they hold, and short ones balance every round. The items are assigned in runs
/// of several lengths, and the fastest schedule is returned: the cost of the busiest rank of each round, and of moving
/// what other ranks hold.
pub fn assign_rounds(
    items: &[Item],
    needs: &[Footprint],
    quotas: &[u64],
    round_tiles: u64,
) -> (Vec<u32>, Vec<Range<usize>>) {
    let ranks = quotas.len().max(1);
    let schedule = |runs: &[Range<usize>], memory| {
        let owners = assign_runs(items, ranks, runs, memory);
        let rounds = rounds(&owners, needs, quotas, round_tiles);
        (owners, rounds)
    };
    let mut tried = vec![runs_by_cost(items, ranks)];
    let mut best = schedule(&tried[0], None);
    if best.1.len() > 1 {
        let mut least = schedule_cost(items, &best.0, &best.1, ranks);
        for sixteenths in ROUND_SIXTEENTHS {
            let limit_bytes = quotas.iter().map(|quota| u128::from(*quota)).sum::<u128>() * sixteenths / 16;
            let runs = runs_by_memory(needs, limit_bytes);
            if tried.contains(&runs) {
                continue;
            }
            let other = schedule(&runs, Some((needs, quotas)));
            let cost = schedule_cost(items, &other.0, &other.1, ranks);
            if cost < least {
                (best, least) = (other, cost);
            }
            tried.push(runs);
        }
    }
    best
}

/// Returns the cost of a schedule, in units of the items' cost divided by [`MOVES_PER_COST`] and the number of ranks.
fn schedule_cost(items: &[Item], owners: &[u32], rounds: &[Range<usize>], ranks: usize) -> u128 {
    let mut loads = vec![0_u64; ranks];
    let (mut busiest, mut moved) = (0, 0);
    for round in rounds {
        let of_round = || owners[round.clone()].iter().map(|owner| *owner as usize).zip(&items[round.clone()]);
        let mut most = 0;
        for (owner, item) in of_round() {
            loads[owner] = loads[owner].saturating_add(item.cost.max(1));
            most = most.max(loads[owner]);
            let away = item.len_bytes.saturating_sub(item.holders.of_rank(owner));
            moved += u128::from(item.cost) * u128::from(away) / u128::from(item.len_bytes.max(1));
        }
        of_round().for_each(|(owner, _)| loads[owner] = 0);
        busiest += u128::from(most);
    }
    busiest * ranks as u128 * MOVES_PER_COST + moved
}

/// Splits items into runs in which each rank has the share of [`RUN_SHARE`].
fn runs_by_cost(items: &[Item], ranks: usize) -> Vec<Range<usize>> {
    let dearest = items.iter().map(|item| item.cost).max().unwrap_or(0).max(1);
    let run_cost = u128::from(dearest) * u128::from(RUN_SHARE) * ranks.max(1) as u128;
    let mut left: u128 = items.iter().map(|item| u128::from(item.cost.max(1))).sum();
    let (mut runs, mut first, mut cost) = (Vec::new(), 0, 0_u128);
    for (number, item) in items.iter().enumerate() {
        cost += u128::from(item.cost.max(1));
        left -= u128::from(item.cost.max(1));
        // A remainder at the end is too small for a separate run.
        if (cost >= run_cost && left >= run_cost) || number + 1 == items.len() {
            runs.push(first..number + 1);
            (first, cost) = (number + 1, 0);
        }
    }
    runs
}

/// Splits items into runs that need about the same memory, at most `limit_bytes`.
fn runs_by_memory(needs: &[Footprint], limit_bytes: u128) -> Vec<Range<usize>> {
    let all: u128 = needs.iter().map(|need| u128::from(need.len_bytes)).sum();
    let limit_bytes = all.div_ceil(all.div_ceil(limit_bytes.max(1)).max(1));
    let (mut runs, mut first, mut len_bytes) = (Vec::new(), 0, 0);
    for (number, need) in needs.iter().enumerate() {
        len_bytes += u128::from(need.len_bytes);
        if len_bytes > limit_bytes && number > first {
            runs.push(first..number);
            (first, len_bytes) = (number, need.len_bytes.into());
        }
    }
    if first < needs.len() {
        runs.push(first..needs.len());
    }
    runs
}

/// Assigns consecutive runs, whose items respect `memory` as in [`Assigner::assign_run`].
fn assign_runs(
    items: &[Item],
    ranks: usize,
    runs: &[Range<usize>],
    memory: Option<(&[Footprint], &[u64])>,
) -> Vec<u32> {
    let (mut assigner, mut owners) = (Assigner::new(ranks.max(1)), vec![0; items.len()]);
    for run in runs {
        let memory = memory.map(|(needs, quotas)| (&needs[run.clone()], quotas));
        assigner.assign_run(&items[run.clone()], memory, &mut owners[run.clone()]);
    }
    owners
}

/// Assignment of runs of items, one after the other.
struct Assigner {
    loads: Vec<u64>,
    /// Cost of all runs assigned so far.
    assigned: u128,
}

impl Assigner {
    fn new(ranks: usize) -> Self {
        Self { loads: vec![0; ranks], assigned: 0 }
    }

    /// Assigns a run, the most expensive items first. A holder may get as much as the busiest rank would get if holders
    /// were ignored, or slightly more than its share. With `memory`, the needs of the items and the quotas of the
    /// ranks, no rank exceeds its quota if others have room.
    fn assign_run(&mut self, run: &[Item], memory: Option<(&[Footprint], &[u64])>, owners: &mut [u32]) {
        // Count even an item without cost, so that such items do not all end up on one rank.
        let part = |(at, item): (usize, &Item)| ItemLoad {
            cost: item.cost.max(1),
            len_bytes: memory.map_or(0, |(needs, _)| needs[at].len_bytes),
        };
        let parts: Vec<ItemLoad> = run.iter().enumerate().map(part).collect();
        let quotas = memory.map_or(&[][..], |(_, quotas)| quotas);
        let cost: u128 = parts.iter().map(|part| u128::from(part.cost)).sum();
        self.assigned += cost;
        let mut order: Vec<usize> = (0..run.len()).collect();
        order.sort_by_key(|&at| (Reverse(parts[at].cost), Reverse(run[at].holders.most())));
        let mut unheld = RunLoads::new(self.loads.clone(), quotas);
        order.iter().for_each(|&at| owners[at] = unheld.give_to_lightest(parts[at]));
        let busiest = unheld.loads.iter().copied().max().unwrap_or(0);
        let share = u64::try_from((self.assigned + cost / EXCESS) / self.loads.len() as u128).unwrap_or(u64::MAX);
        let most = busiest.max(share);
        let mut assigned = RunLoads::new(std::mem::take(&mut self.loads), quotas);
        for equal in order.chunk_by(|&left, &right| parts[left].cost == parts[right].cost) {
            // Items that one rank mostly holds come first; the others fill the remaining space.
            let mut away = Vec::new();
            for &at in equal {
                match assigned.give_to_holder(&run[at].holders, parts[at], most) {
                    Some(owner) => owners[at] = owner,
                    None => away.push(at),
                }
            }
            away.into_iter().for_each(|at| owners[at] = assigned.give_to_lightest(parts[at]));
        }
        assigned.exchange(run, &parts, most, owners);
        self.loads = assigned.loads;
    }
}

/// Ranks that own items. If not all ranks do, the ranks are split into groups of neighbours. The first rank of each
/// group then owns items for all of them, so that an item stays near its holders.
#[derive(Debug, Clone, Copy)]
pub struct OwningRanks {
    ranks: usize,
    groups: usize,
}

impl OwningRanks {
    /// Chooses at most `limit` of `ranks` ranks; without a limit, chooses all ranks.
    pub fn new(ranks: usize, limit: Option<NonZeroUsize>) -> Self {
        let ranks = ranks.max(1);
        Self { ranks, groups: limit.map_or(ranks, NonZeroUsize::get).min(ranks) }
    }

    /// Returns the ranks that own items.
    pub fn iter(self) -> impl Iterator<Item = Rank> {
        (0..self.groups).map(move |group| (group * self.ranks).div_ceil(self.groups))
    }

    /// Assigns items as [`assign_rounds`] does, with the quotas of all ranks.
    pub fn assign_rounds(
        self,
        items: impl IntoIterator<Item = Item>,
        needs: &[Footprint],
        quotas: &[u64],
        round_tiles: u64,
    ) -> (Vec<u32>, Vec<Range<usize>>) {
        let of_group = |item: Item| {
            if self.groups == self.ranks {
                return item;
            }
            let group_of = |(rank, size): (Rank, u64)| (rank * self.groups / self.ranks, size);
            let mut parts: Vec<_> = item.holders.iter().map(group_of).collect();
            Item { holders: Holders::of(&mut parts), ..item }
        };
        let items: Vec<Item> = items.into_iter().map(of_group).collect();
        let first: Vec<Rank> = self.iter().collect();
        let quotas: Vec<u64> = first.iter().map(|rank| quotas.get(*rank).copied().unwrap_or(0)).collect();
        let (mut owners, rounds) = assign_rounds(&items, needs, &quotas, round_tiles);
        owners.iter_mut().for_each(|owner| *owner = first[*owner as usize] as u32);
        (owners, rounds)
    }
}

/// Splits consecutive items into `parts` runs with costs as equal as whole items allow. Returns `parts` + 1 bounds; the
/// first is 0, the last is the number of items.
pub fn cut(costs: impl Iterator<Item = u64> + Clone, parts: usize) -> Vec<u64> {
    // Count even an item without cost, as in assigning.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(cost: u64, parts: &[(Rank, u64)]) -> Item {
        Item { cost, len_bytes: cost, holders: Holders::of(&mut parts.to_vec()) }
    }

    #[test]
    fn a_holder_gets_its_items_unless_it_is_far_ahead() {
        let at = |home| item(10, &[(home, 10)]);
        assert_eq!(assign(&[at(1), at(0), at(1), at(0)], 2), [1, 0, 1, 0]);
        // More than half of all.
        assert_eq!(assign(&[at(1), at(0), at(1), at(1)], 2), [1, 0, 1, 0]);
        let all_at_one = assign(&vec![at(2); 100], 4);
        let count = |rank| all_at_one.iter().filter(|owner| **owner == rank).count();
        assert!((24..=27).contains(&count(2)) && (0..4).all(|rank| count(rank) >= 24), "{all_at_one:?}");
        assert_eq!(assign(&[at(7)], 2), [0]);
    }

    #[test]
    fn rounds_are_balanced() {
        let needs = vec![Footprint { len_bytes: 10, tiles: 1 }; 400];
        // Each hundred items are held by one of four ranks, which has memory for eight at a time.
        let items: Vec<Item> = (0..400).map(|at| item(10, &[(at / 100, 10)])).collect();
        let (owners, rounds) = assign_rounds(&items, &needs, &[80; 4], 1000);
        assert!((13..=16).contains(&rounds.len()), "{rounds:?}");
        for round in &rounds {
            let of_round = |rank| owners[round.clone()].iter().filter(|owner| **owner == rank).count();
            let counts = [0, 1, 2, 3].map(of_round);
            assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 2, "{counts:?}");
        }
        // If held items alternate between ranks, all stay.
        let items: Vec<Item> = (0..400).map(|at| item(10, &[(at % 4, 10)])).collect();
        let (owners, rounds) = assign_rounds(&items, &needs, &[80; 4], 1000);
        assert_eq!((owners, rounds.len()), ((0..400).map(|at| at % 4).collect(), 13));
        // Rounds of at most 30 tiles.
        let (_, rounds) = assign_rounds(&items, &needs, &[80; 4], 30);
        assert_eq!(rounds.len(), 14);
        assert_eq!(assign_rounds(&[], &[], &[80; 4], 30), (vec![], vec![]));
    }

    #[test]
    fn equal_holders_share() {
        // Two ranks hold half of each item.
        let halves = vec![item(10, &[(0, 5), (1, 5)]); 4];
        assert_eq!(assign(&halves, 2), [0, 1, 0, 1]);
        let halves: Vec<Item> = (0..8).map(|at| item(10, &[(at / 2 * 2, 5), (at / 2 * 2 + 1, 5)])).collect();
        assert_eq!(assign(&halves, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn items_are_exchanged() {
        // Every rank may own one item. The first is given to rank 0, which is the only holder of the second.
        let items = [item(10, &[(0, 6), (1, 5)]), item(10, &[(0, 6)]), item(10, &[])];
        assert_eq!(assign(&items, 3), [1, 0, 2]);
    }

    /// Loads of ranks, and bytes that are not sent because their holder owns the item.
    struct DealtLoads {
        loads: Vec<u64>,
        kept: u64,
    }

    fn assigned(items: &[Item], ranks: usize) -> DealtLoads {
        let owners = assign(items, ranks);
        let mut loads = vec![0; ranks];
        owners.iter().zip(items).for_each(|(&owner, item)| loads[owner as usize] += item.cost.max(1));
        let kept = owners.iter().zip(items).map(|(&owner, item)| item.holders.of_rank(owner as usize)).sum();
        DealtLoads { loads, kept }
    }

    #[test]
    fn a_few_dear_items_are_balanced() {
        // Blocks of fields of one, one, three and eleven numbers, three or four blocks per rank.
        for ranks in [8, 64, 1000] {
            let blocks = ranks * 27 / 32;
            let fields = [1, 1, 3, 11].into_iter();
            let items: Vec<Item> = fields
                .flat_map(|cost| (0..blocks).map(move |block| item(10 * cost, &[(block * ranks / blocks / 2, cost)])))
                .collect();
            let DealtLoads { loads, kept } = assigned(&items, ranks);
            let mean = loads.iter().sum::<u64>() / ranks as u64;
            let most = *loads.iter().max().unwrap();
            assert!(10 * most <= 11 * mean, "{most} of {mean} on {ranks} ranks");
            let all: u64 = items.iter().map(|item| item.cost / 10).sum();
            assert!(2 * kept > all * 9 / 10, "{kept} of {all}");
        }
    }

    #[test]
    fn some_ranks_own_for_their_neighbours() {
        let owners = |count: usize, ranks, limit| {
            let items = (0..count).map(|home| item(1, &[(home, 1)]));
            let needs = vec![Footprint { len_bytes: 1, tiles: 1 }; count];
            let owning = OwningRanks::new(ranks, NonZeroUsize::new(limit));
            owning.assign_rounds(items, &needs, &vec![100; ranks], 100).0
        };
        assert_eq!(owners(7, 7, 3), [0, 0, 0, 3, 3, 5, 5]);
        assert_eq!(owners(3, 3, 9), [0, 1, 2]);
        assert_eq!(owners(3, 3, 0), [0, 1, 2]);
        assert_eq!(owners(4, 4, 1), [0; 4]);
        assert_eq!(OwningRanks::new(7, NonZeroUsize::new(3)).iter().collect::<Vec<_>>(), [0, 3, 5]);
    }

    proptest! {
        #[test]
        fn dealing_balances(costs in prop::collection::vec(0u64..100, 0..200), ranks in 1usize..9) {
            let DealtLoads { loads, .. } = assigned(&costs.iter().map(|cost| item(*cost, &[])).collect::<Vec<_>>(), ranks);
            let (most, least) = (loads.iter().max().unwrap(), loads.iter().min().unwrap());
            prop_assert!(most - least <= 100);
        }

        #[test]
        fn any_items_are_assigned_in_rounds(
            items in prop::collection::vec(
                (0u64..100, 0u64..60, 1u64..5, prop::collection::vec((0usize..9, 0u64..50), 0..5)), 0..200,
            ),
            quotas in prop::collection::vec(1u64..300, 1..9),
            limit in 0usize..9,
        ) {
            let needs: Vec<_> = items.iter().map(|of| Footprint { len_bytes: of.1, tiles: of.2 }).collect();
            let items: Vec<_> = items.iter().map(|(cost, _, _, parts)| item(*cost, parts)).collect();
            let owning = OwningRanks::new(quotas.len(), NonZeroUsize::new(limit));
            let (owners, got) = owning.assign_rounds(items.iter().cloned(), &needs, &quotas, 50);
            prop_assert!(owners.iter().all(|owner| owning.iter().any(|rank| rank == *owner as usize)));
            prop_assert_eq!(&got, &rounds(&owners, &needs, &quotas, 50));
            // The schedule costs no more than an assignment without regard to rounds.
            if limit == 0 {
                let cost = |owners: &[u32]| {
                    schedule_cost(&items, owners, &rounds(owners, &needs, &quotas, 50), quotas.len())
                };
                prop_assert!(cost(&owners) <= cost(&assign(&items, quotas.len())));
            }
        }

        #[test]
        fn holders_do_not_unbalance(
            items in prop::collection::vec((0u64..100, prop::collection::vec((0usize..9, 0u64..50), 0..5)), 0..400),
            ranks in 1usize..9,
        ) {
            let items: Vec<Item> = items.iter().map(|(cost, parts)| item(*cost, parts)).collect();
            let DealtLoads { loads, .. } = assigned(&items, ranks);
            let share = loads.iter().sum::<u64>() / ranks as u64 + 1;
            let dearest = items.iter().map(|item| item.cost).max().unwrap_or(0).max(1);
            let bound = (share + share / EXCESS as u64).max(share + dearest);
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
    }
}
