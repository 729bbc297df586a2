//! Groups of consecutive tiles of an array.
//!
//! A group is a box: a run of tiles along one axis, all tiles along the axes after it, and one tile along the axes
//! before it. Invariant: the groups of an array are disjoint, cover its tiles, and are in plan order.

use crate::plan::ArrayPlan;
use crate::plan::extent::{Coordinates, Extent};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Division of the tiles of an array into groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileGroups {
    /// Axis along which a group has a run of tiles.
    pub axis: usize,
    /// Number of tiles of the run; the last run of the axis may be shorter.
    pub tiles: u64,
}

impl TileGroups {
    /// Returns the number of tiles of `array` with the same position on the axes up to and including the axis of the
    /// runs.
    fn stride(self, array: &ArrayPlan) -> u64 {
        (self.axis + 1..array.shape.len()).map(|axis| array.tiles_along(axis)).product::<u64>().max(1)
    }

    /// Returns the number of runs along the axis.
    fn runs(self, array: &ArrayPlan) -> u64 {
        array.tiles_along(self.axis).div_ceil(self.tiles.max(1)).max(1)
    }

    /// Returns the number of groups of `array`.
    pub fn count(self, array: &ArrayPlan) -> u64 {
        let before: u64 = (0..self.axis).map(|axis| array.tiles_along(axis)).product();
        if array.tile_count() == 0 { 0 } else { before * self.runs(array) }
    }

    /// Returns the group of tile `index` of `array`.
    pub fn group_of(self, array: &ArrayPlan, index: u64) -> u64 {
        let (along, place) = (array.tiles_along(self.axis).max(1), index / self.stride(array));
        place / along * self.runs(array) + place % along / self.tiles.max(1)
    }

    /// Returns the tiles of a group of `array`.
    pub fn tiles_of(self, array: &ArrayPlan, group: u64) -> Range<u64> {
        let (along, runs, stride) = (array.tiles_along(self.axis), self.runs(array), self.stride(array));
        let (before, first) = (group / runs * along, group % runs * self.tiles);
        (before + first) * stride..(before + along.min(first + self.tiles)) * stride
    }

    /// Returns the box of a group in `array`.
    pub fn extent(self, array: &ArrayPlan, group: u64) -> Extent {
        let tiles = self.tiles_of(array, group);
        let start = array.tile_extent(tiles.start).start;
        let last = array.tile_extent(tiles.end.saturating_sub(1));
        let count = (0..start.len()).map(|axis| last.end(axis) - start[axis]).collect::<Coordinates>();
        Extent { start, count }
    }

    /// Returns the number of elements of the largest group of `array` per axis.
    pub fn shape(self, array: &ArrayPlan) -> Coordinates {
        let tiles = |axis: usize| match axis.cmp(&self.axis) {
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Equal => self.tiles,
            std::cmp::Ordering::Greater => u64::MAX,
        };
        (0..array.shape.len())
            .map(|axis| tiles(axis).saturating_mul(array.tile_shape[axis]).min(array.shape[axis]))
            .collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cases() -> impl Strategy<Value = (ArrayPlan, TileGroups)> {
        let axes = prop::collection::vec((1_u64..9, 1_u64..5), 1..4);
        (axes, 0_usize..3, 1_u64..6).prop_map(|(axes, axis, tiles)| {
            let (shape, tile_shape): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            let axis = axis.min(shape.len() - 1);
            let array = ArrayPlan { shape, tile_shape, element_len_bytes: 1, ..ArrayPlan::default() };
            (array, TileGroups { axis, tiles })
        })
    }

    proptest! {
        #[test]
        fn groups_cover_the_tiles_in_order((array, groups) in cases()) {
            let mut next = 0;
            for group in 0..groups.count(&array) {
                let tiles = groups.tiles_of(&array, group);
                prop_assert_eq!(tiles.start, next);
                prop_assert!(tiles.end > tiles.start);
                let extent = groups.extent(&array, group);
                let mut elements = 0;
                for index in tiles.clone() {
                    prop_assert_eq!(groups.group_of(&array, index), group);
                    prop_assert!(extent.contains(&array.tile_extent(index)));
                    elements += array.tile_extent(index).element_count().unwrap();
                }
                prop_assert_eq!(extent.element_count(), Some(elements));
                let largest = groups.shape(&array);
                prop_assert!((0..largest.len()).all(|axis| extent.count[axis] <= largest[axis]));
                next = tiles.end;
            }
            prop_assert_eq!(next, array.tile_count());
        }
    }
}
