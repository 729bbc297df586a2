//! Slabs: boxes of whole chunks of an array, and the layout of a scratch file that holds their values tile by tile.
//!
//! The file holds the slabs in order. A slab holds its part of each tile, in plan order, as row-major values. The parts
//! of consecutive tiles that form a group are therefore one run of each slab. Invariant: every element of the array has
//! exactly one place in the file.

use super::groups::TileGroups;
use crate::plan::ArrayPlan;
use crate::plan::extent::{Extent, product};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Division of an array into boxes of whole chunks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slabs {
    /// Number of elements per axis of a slab; slabs at the far edges are clipped.
    pub shape: Vec<u64>,
}

impl Slabs {
    /// Chooses the largest slabs that fit into `limit_len_bytes`; each has at least one chunk.
    pub(super) fn choose(array: &ArrayPlan, chunk_shape: &[u64], limit_len_bytes: u64) -> Self {
        let rank = array.shape.len();
        let mut shape: Vec<u64> = chunk_shape.iter().zip(&array.shape).map(|(chunk, len)| *chunk.min(len)).collect();
        let len_bytes = |shape: &[u64]| product(shape).and_then(|count| count.checked_mul(array.element_len_bytes));
        for axis in (0..rank).rev() {
            let one = len_bytes(&shape).unwrap_or(u64::MAX).max(1);
            let chunks = (limit_len_bytes / one).clamp(1, array.shape[axis].div_ceil(shape[axis].max(1)));
            let is_whole = chunks * shape[axis] >= array.shape[axis];
            shape[axis] = (chunks * shape[axis]).min(array.shape[axis]);
            if !is_whole {
                break;
            }
        }
        Self { shape }
    }

    /// Returns the slabs as tiles of an array.
    fn grid(&self, array: &ArrayPlan) -> ArrayPlan {
        ArrayPlan {
            shape: array.shape.clone(),
            tile_shape: self.shape.clone(),
            element_len_bytes: array.element_len_bytes,
            ..ArrayPlan::default()
        }
    }

    /// Returns the number of slabs of `array`.
    pub fn count(&self, array: &ArrayPlan) -> u64 {
        self.grid(array).tile_count()
    }

    /// Returns the box of a slab of `array`.
    pub fn extent(&self, array: &ArrayPlan, slab: u64) -> Extent {
        self.grid(array).tile_extent(slab)
    }

    /// Returns the place of a slab in the scratch file, in bytes.
    pub fn offset_bytes(&self, array: &ArrayPlan, slab: u64) -> u64 {
        elements_before(&Extent::whole(&array.shape), &self.extent(array, slab)) * array.element_len_bytes
    }

    /// Returns the place of a group's values from one slab in the scratch file, in bytes; `None` if group and slab do
    /// not overlap.
    pub fn run_of(&self, array: &ArrayPlan, slab: u64, groups: TileGroups, group: u64) -> Option<Range<u64>> {
        let region = self.extent(array, slab);
        let part = region.intersection(&groups.extent(array, group))?;
        let start = self.offset_bytes(array, slab) + elements_before(&region, &part) * array.element_len_bytes;
        Some(start..start + part.element_count()? * array.element_len_bytes)
    }
}

/// Returns the number of elements of `region` in cells before `cell`, in the row-major order of the cells.
fn elements_before(region: &Extent, cell: &Extent) -> u64 {
    let mut before = 0;
    for axis in 0..region.rank() {
        let others = cell.count[..axis].iter().chain(&region.count[axis + 1..]);
        before += (cell.start[axis] - region.start[axis]) * others.product::<u64>();
    }
    before
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_element_has_one_place(
            axes in prop::collection::vec((1_u64..12, 1_u64..6, 1_u64..6), 1..4),
            (limit, axis, tiles) in (1_u64..400, 0_usize..3, 1_u64..4),
        ) {
            let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let chunk: Vec<u64> = axes.iter().map(|axis| axis.1.min(axis.0)).collect();
            let tile_shape: Vec<u64> = axes.iter().map(|axis| axis.2).collect();
            let groups = TileGroups { axis: axis.min(shape.len() - 1), tiles };
            let array = ArrayPlan { shape, tile_shape, element_len_bytes: 2, ..ArrayPlan::default() };
            let slabs = Slabs::choose(&array, &chunk, limit);
            let mut taken = vec![false; array.len_bytes() as usize];
            for slab in 0..slabs.count(&array) {
                let region = slabs.extent(&array, slab);
                let mut expected = slabs.offset_bytes(&array, slab);
                for group in 0..groups.count(&array) {
                    let Some(run) = slabs.run_of(&array, slab, groups, group) else { continue };
                    // Groups follow each other in the slab, and so do the tiles of a group.
                    prop_assert_eq!(run.start, expected);
                    let tiles = groups.tiles_of(&array, group).filter_map(|tile| array.tile_extent(tile).intersection(&region));
                    let len_bytes: u64 = tiles.map(|part| part.element_count().unwrap() * 2).sum();
                    prop_assert_eq!(run.end - run.start, len_bytes);
                    taken[run.start as usize..run.end as usize].iter_mut().for_each(|byte| *byte = true);
                    expected = run.end;
                }
            }
            prop_assert!(taken.into_iter().all(|byte| byte));
        }
    }
}
