//! Claims: address ranges of the output taken before its metadata exists, and their collection into arrays in plan
//! order.
//!
//! `addresses` allocates the ranges. Invariant of `Collector`: every array is committed exactly once, in plan order,
//! with the claims of all its tiles in tile order; arrays without tiles are committed at their position.

use crate::plan::{Tile, TileIndex};
use serde::{Deserialize, Serialize};

/// Location of a tile in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// Tile that the address belongs to.
    pub tile: Tile,
    /// Address of the tile's first byte.
    pub address: u64,
    /// Stored length.
    pub len_bytes: u64,
    /// Bit i set: filter i of the pipeline was skipped.
    pub filter_mask: u32,
}

/// Order in which addresses are assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Plan order: the output is identical for any number of threads and ranks.
    #[default]
    Ordered,
    /// In completion order: no tile waits for another. Values are identical but addresses vary from run to run. With
    /// several ranks, which exchange sizes anyway, this is the same as `Ordered`.
    Unordered,
}

/// Claims of an array whose tiles are all placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedArray<'a> {
    /// Number of the array in the plan.
    pub array: u32,
    /// Claims in tile order; tiles consisting only of fill values have none.
    pub claims: &'a [Claim],
    /// Number of tiles consisting only of fill values.
    pub fill_tiles: u64,
}

/// Collector that gathers the claims of consecutive tiles into arrays.
#[derive(Debug)]
pub(crate) struct Collector<'a> {
    index: &'a TileIndex,
    /// First tile not yet collected.
    next: u64,
    /// First array not yet committed.
    array: u32,
    claims: Vec<Claim>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(index: &'a TileIndex) -> Self {
        Self { index, next: 0, array: 0, claims: Vec::new() }
    }

    /// Takes the claims of the next `tiles` tiles and commits the arrays they complete. With zero tiles, commits the
    /// arrays without tiles that come next.
    pub(crate) fn collect<E>(
        &mut self,
        tiles: u64,
        claims: &[Claim],
        commit: &mut dyn FnMut(PlacedArray<'_>) -> Result<(), E>,
    ) -> Result<(), (u32, E)> {
        self.next += tiles;
        let mut rest = claims;
        while let Some((first, end)) = self.index.tiles_of(self.array) {
            let here = rest.iter().take_while(|claim| claim.tile.array == self.array).count();
            let (mine, others) = rest.split_at(here);
            rest = others;
            if end > self.next {
                self.claims.extend_from_slice(mine);
                break;
            }
            // An array contained in the batch is committed directly from the batch's claims.
            let all = if self.claims.is_empty() {
                mine
            } else {
                self.claims.extend_from_slice(mine);
                self.claims.as_slice()
            };
            let fill_tiles = (end - first).saturating_sub(all.len() as u64);
            commit(PlacedArray { array: self.array, claims: all, fill_tiles }).map_err(|error| (self.array, error))?;
            self.claims.clear();
            self.array += 1;
        }
        Ok(())
    }

    /// Returns whether every array has been committed.
    pub(crate) fn is_complete(&self) -> bool {
        self.array as usize == self.index.array_count()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::plan::{ArrayPlan, Plan};

    fn array(tiles: u64) -> ArrayPlan {
        ArrayPlan { shape: vec![tiles], tile_shape: vec![1], element_len_bytes: 1, ..ArrayPlan::default() }
    }

    #[test]
    fn arrays_are_committed_in_turn_whatever_the_batches() {
        let plan = Plan { arrays: [0, 3, 0, 0, 1, 4, 0].map(array).to_vec() };
        let index = plan.tile_index();
        for cut in 1..=8 {
            let mut seen = Vec::new();
            let mut collector = Collector::new(&index);
            let mut commit = |done: PlacedArray<'_>| {
                let tiles: Vec<_> = done.claims.iter().map(|claim| claim.tile.index).collect();
                assert!(done.claims.iter().all(|claim| claim.tile.array == done.array));
                seen.push((done.array, tiles, done.fill_tiles));
                Ok::<_, ()>(())
            };
            collector.collect(0, &[], &mut commit).unwrap();
            let mut first = 0;
            while first < 8 {
                let end = (first + cut).min(8);
                // Tile 1 of array 1 is fill.
                let claims: Vec<_> = (first..end)
                    .filter(|ordinal| *ordinal != 1)
                    .map(|ordinal| Claim {
                        tile: index.tile(ordinal).unwrap(),
                        address: ordinal,
                        len_bytes: 1,
                        filter_mask: 0,
                    })
                    .collect();
                collector.collect(end - first, &claims, &mut commit).unwrap();
                first = end;
            }
            assert!(collector.is_complete());
            assert_eq!(
                seen,
                [
                    (0, vec![], 0),
                    (1, vec![0, 2], 1),
                    (2, vec![], 0),
                    (3, vec![], 0),
                    (4, vec![0], 0),
                    (5, vec![0, 1, 2, 3], 0),
                    (6, vec![], 0)
                ]
            );
        }
    }

    #[test]
    fn an_error_of_the_caller_names_the_array() {
        let plan = Plan { arrays: vec![array(0), array(1)] };
        let index = plan.tile_index();
        let mut collector = Collector::new(&index);
        let refuse = &mut |done: PlacedArray<'_>| if done.array == 1 { Err("full") } else { Ok(()) };
        assert_eq!(collector.collect(0, &[], refuse), Ok(()));
        assert_eq!(collector.collect(1, &[], refuse), Err((1, "full")));
        assert!(!collector.is_complete());
    }
}
