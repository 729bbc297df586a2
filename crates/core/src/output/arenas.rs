//! Arenas: runs of whole stripes of the output file, each reserved for the tiles of one lane, so that ranks share no
//! stripe.
//!
//! On a parallel file system, two machines that write to the same stripe wait for each other's locks. Tiles are
//! assigned to lanes and lanes to ranks; a lane fills one arena after another. The layout depends only on the plan and
//! the encoded sizes, in plan order, and not on the number of ranks or threads or the amount of memory. This module
//! holds plain data; `addresses` allocates the addresses. Invariant: no stripe holds tiles of two lanes.

use serde::{Deserialize, Serialize};

/// Minimum length of an arena, in average tiles. A tile that does not fit into the rest of an arena leaves half a tile
/// unused on average, which is then 1/64 of the output.
const ARENA_TILES: u64 = 32;

/// Minimum output per lane, in arenas. The last arena of a lane is half empty on average, which wastes another 1/64 of
/// the output. Together, these are about 3 %, the minimum for that number of lanes.
const ARENAS_PER_LANE: u64 = 32;

/// Maximum number of lanes: more than the ranks of any machine so far, and few enough for every rank to track all lane
/// ends.
const MAX_LANES: u64 = 4096;

/// Division of the output into arenas, by lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arenas {
    /// Alignment of both ends of an arena.
    pub stripe_len_bytes: u64,
    /// Length of an arena; an arena for a longer tile is longer.
    pub arena_len_bytes: u64,
    /// Number of lanes, which is the number of ranks that can write without sharing a stripe.
    pub lanes: u32,
}

impl Arenas {
    /// Chooses arenas for an output of about `stored_len_bytes` in `tiles` tiles, with the largest number of lanes that
    /// leaves at most about 3 % of the output unused.
    pub fn for_output(stripe_len_bytes: u64, stored_len_bytes: u64, tiles: u64) -> Self {
        let stripe_len_bytes = stripe_len_bytes.max(1);
        let tile_len_bytes = stored_len_bytes.div_ceil(tiles.max(1));
        let arena_len_bytes = tile_len_bytes.saturating_mul(ARENA_TILES).max(1);
        let longest = u64::MAX / stripe_len_bytes * stripe_len_bytes;
        let arena_len_bytes = arena_len_bytes.checked_next_multiple_of(stripe_len_bytes).unwrap_or(longest);
        let lanes = (stored_len_bytes / arena_len_bytes.saturating_mul(ARENAS_PER_LANE)).clamp(1, MAX_LANES);
        // A power of two is a multiple of the usual numbers of ranks, so each rank gets the same number of lanes.
        Self { stripe_len_bytes, arena_len_bytes, lanes: 1 << lanes.ilog2() }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn lanes_and_arenas_follow_from_the_output() {
        let mib = 1 << 20;
        let of = |stored, tiles| Arenas::for_output(mib, stored, tiles);
        // 1 TiB in tiles of 160 KiB: arenas of 32 tiles, in whole stripes.
        assert_eq!(
            of(mib << 20, (32_u64 << 20).div_ceil(5)),
            Arenas { stripe_len_bytes: mib, arena_len_bytes: 5 * mib, lanes: 4096 }
        );
        // 10 GiB.
        assert_eq!(of(10 << 30, 64 << 10), Arenas { stripe_len_bytes: mib, arena_len_bytes: 5 * mib, lanes: 64 });
        // Too small for two lanes; empty; beyond the address range.
        assert_eq!(of(10 * mib, 80).lanes, 1);
        assert_eq!(of(0, 0), Arenas { stripe_len_bytes: mib, arena_len_bytes: mib, lanes: 1 });
        assert_eq!(of(u64::MAX, 1).lanes, 1);
        assert_eq!(Arenas::for_output(0, 5, 1).stripe_len_bytes, 1);
    }
}
