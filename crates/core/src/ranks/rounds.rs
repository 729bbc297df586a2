//! Rounds in which ranks process the parts of a plan.
//!
//! All functions depend on facts known to all ranks only, so every rank computes the same answer without communication.
//! Invariants: rounds are consecutive, cover everything, and hold at most the quota of each rank unless a single item
//! exceeds it.

use std::ops::Range;

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

/// Returns for each n whether round n + 1 may begin before round n is done: no rank may then hold more than twice its
/// quota. Only an item that alone exceeds its owner's quota can prevent that.
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

    proptest! {
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
                let owned_lens = round.clone().filter(|at| owners[*at] == rank).map(|at| needs[at].len_bytes);
                owned_lens.sum::<u64>() <= quotas[rank as usize] * factor
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
                    let owned_lens: Vec<u64> = round.clone()
                        .filter(|at| owners[*at] == rank && needs[*at].len_bytes > 0)
                        .map(|at| needs[at].len_bytes).collect();
                    prop_assert!(owned_lens.iter().sum::<u64>() <= quotas[rank as usize] || owned_lens.len() == 1);
                }
                next = round.end;
            }
            prop_assert_eq!(next, items.len());
        }
    }
}
