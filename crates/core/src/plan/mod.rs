//! Plans, which state the pieces of inputs that form each tile of each array, as plain, serialisable values.
//!
//! How tiles are encoded and where they are placed is decided elsewhere. Invariant of a valid plan
//! ([`Plan::validate`]): the tiles of an array are disjoint and cover it, and the pieces of a tile are disjoint and
//! cover the tile's part of the array, so every element comes from exactly one element of one input. In an array of
//! boxes, some elements may come from no input. Pieces and tiles are never listed in full: a real job has 10^8 pairs of
//! input and array.

pub(crate) mod axes;
pub mod boxes;
pub mod extent;
pub mod lattice;
pub(crate) mod lines;
pub(crate) mod segments;

use crate::error::{CoreError, PlanFault, Result};
use crate::plan::boxes::{BoxPieces, Boxes};
use crate::plan::extent::{Coordinates, Extent, MAX_RANK, values_len_bytes};
pub use crate::plan::segments::{Segment, SegmentLists, Segments};
use serde::{Deserialize, Serialize};

/// An array of the output and its division into tiles.
///
/// An IDX field is an array with one axis: its samples in HZ order, with the blocks as tiles. If there are no segments,
/// the work knows the source of each element.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayPlan {
    /// Number of elements per axis.
    pub shape: Vec<u64>,
    /// Number of elements of a tile per axis; tiles at the far edges are clipped to the shape but encoded in full.
    pub tile_shape: Vec<u64>,
    /// Length of an element.
    pub element_len_bytes: u64,
    /// Axis along which inputs are concatenated.
    #[serde(default)]
    pub axis: usize,
    /// Runs of input rows along `axis`, in order and without gaps. Inputs without rows are omitted. The list may be
    /// empty; see [`ArrayPlan`].
    pub segments: Segments,
    /// Boxes of inputs that are not concatenated along one axis. An array with boxes has no segments.
    #[serde(default)]
    pub boxes: Boxes,
}

impl ArrayPlan {
    /// Creates an array without tiles (for example scalar, null or compact), which is committed in plan order like any
    /// other.
    pub fn untiled() -> Self {
        Self { shape: vec![0], tile_shape: vec![1], element_len_bytes: 1, ..Self::default() }
    }

    /// Returns the number of tiles along `axis`.
    pub fn tiles_along(&self, axis: usize) -> u64 {
        self.shape[axis].div_ceil(self.tile_shape[axis].max(1))
    }

    /// Returns the number of tiles.
    pub fn tile_count(&self) -> u64 {
        (0..self.shape.len()).fold(1u64, |count, axis| count.saturating_mul(self.tiles_along(axis)))
    }

    /// Returns the first element of tile `index` (row-major over the grid of tiles) per axis.
    pub fn tile_origin(&self, index: u64) -> Coordinates {
        let mut origin = Coordinates::from_elem(0, self.shape.len());
        let mut rest = index;
        for axis in (0..self.shape.len()).rev() {
            let along = self.tiles_along(axis).max(1);
            origin[axis] = (rest % along).saturating_mul(self.tile_shape[axis]);
            rest /= along;
        }
        origin
    }

    /// Returns the box of tile `index` in the array, clipped to the shape.
    pub fn tile_extent(&self, index: u64) -> Extent {
        let start = self.tile_origin(index);
        let count = (0..self.shape.len())
            .map(|axis| self.tile_shape[axis].min(self.shape[axis].saturating_sub(start[axis])))
            .collect();
        Extent { start, count }
    }

    /// Returns whether tile `index` is entirely inside the array and needs no padding.
    pub fn is_full(&self, index: u64) -> bool {
        self.tile_extent(index).count.as_slice() == self.tile_shape.as_slice()
    }

    /// Returns the length of a whole tile, as it is encoded.
    pub fn tile_len_bytes(&self) -> u64 {
        values_len_bytes(&self.tile_shape, self.element_len_bytes)
    }

    /// Returns the length of a row, which consists of all elements with the same index on axis 0.
    pub fn row_len_bytes(&self) -> u64 {
        values_len_bytes(self.shape.get(1..).unwrap_or(&[]), self.element_len_bytes)
    }

    /// Returns the length of the whole array, without padding.
    pub fn len_bytes(&self) -> u64 {
        values_len_bytes(&self.shape, self.element_len_bytes)
    }

    /// Returns whether tile `index` has elements that are in no input. This is possible only for an array of boxes.
    pub fn has_holes(&self, index: u64) -> bool {
        if self.boxes.is_empty() {
            return false;
        }
        let tile = self.tile_extent(index);
        let elements = |extent: &Extent| extent.element_count().unwrap_or(u64::MAX);
        let covered = self.pieces(index).fold(0u64, |sum, piece| sum.saturating_add(elements(&piece.source)));
        covered < elements(&tile)
    }

    /// Returns the number of elements that are in no input.
    pub fn hole_count(&self) -> u64 {
        if self.boxes.is_empty() {
            return 0;
        }
        let all = self.shape.iter().fold(1u64, |count, along| count.saturating_mul(*along));
        let counts = self.boxes.iter().map(|one| one.source.element_count().unwrap_or(u64::MAX));
        all.saturating_sub(counts.fold(0, u64::saturating_add))
    }

    /// Returns the pieces of tile `index`, in the order of the segments or boxes.
    pub fn pieces(&self, index: u64) -> Pieces<'_> {
        self.pieces_in(&self.tile_extent(index))
    }

    /// Returns the pieces of a box of the array, in the order of the segments. Positions are relative to the box.
    pub fn pieces_in(&self, region: &Extent) -> Pieces<'_> {
        let (first_row, empty) = (region.start.get(self.axis).copied().unwrap_or(0), region.is_empty());
        let from = self.segments.partition_point(|segment| segment.start.saturating_add(segment.rows) <= first_row);
        let segments = if empty { &[] } else { &self.segments[from..] };
        let boxes = self.boxes.pieces_in(region.clone());
        Pieces { segments: segments.iter(), boxes, axis: self.axis, region: region.clone() }
    }

    fn check(&self) -> Result<(), PlanFault> {
        if self.shape.is_empty() {
            return Err(PlanFault::NoAxis);
        }
        if self.shape.len() != self.tile_shape.len() {
            return Err(PlanFault::RankDiffers { shape: self.shape.len(), tile: self.tile_shape.len() });
        }
        if self.shape.len() > MAX_RANK {
            return Err(PlanFault::RankTooLarge(self.shape.len()));
        }
        if self.axis >= self.shape.len() {
            return Err(PlanFault::AxisOutOfRange { axis: self.axis, rank: self.shape.len() });
        }
        if self.tile_shape.contains(&0) || self.element_len_bytes == 0 {
            return Err(PlanFault::ZeroTile);
        }
        // The padded length is an upper bound of every product computed by the methods above.
        let mut padded = Some(self.element_len_bytes);
        for axis in 0..self.shape.len() {
            let along = self.tiles_along(axis).max(1).checked_mul(self.tile_shape[axis]);
            padded = padded.and_then(|len| len.checked_mul(along?));
        }
        if padded.is_none() {
            return Err(PlanFault::Overflow);
        }
        let mut expected = 0;
        for (number, segment) in self.segments.iter().enumerate() {
            if segment.start != expected {
                return Err(PlanFault::Segment { segment: number, start: segment.start, expected });
            }
            if segment.rows == 0 {
                return Err(PlanFault::EmptySegment(number));
            }
            expected = expected.checked_add(segment.rows).ok_or(PlanFault::Overflow)?;
        }
        if !self.boxes.is_empty() && !self.segments.is_empty() {
            return Err(PlanFault::BoxesAndSegments);
        }
        self.boxes.check(&self.shape)?;
        let along = self.shape[self.axis];
        if !self.segments.is_empty() && expected != along {
            return Err(PlanFault::Segment { segment: self.segments.len(), start: along, expected });
        }
        Ok(())
    }
}

/// A run of rows of one input that belongs to one tile, or to another box of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Number of the input.
    pub input: u32,
    /// Box of the piece in the input's array.
    pub source: Extent,
    /// Position of the piece's first element in the tile or box, per axis.
    pub target: Coordinates,
}

/// Iterator over the pieces of a tile or another box of an array; see [`ArrayPlan::pieces`].
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    segments: std::slice::Iter<'a, Segment>,
    boxes: BoxPieces<'a>,
    axis: usize,
    region: Extent,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let Some(segment) = self.segments.next() else { return self.boxes.next() };
        let axis = self.axis;
        let first = segment.start.max(self.region.start[axis]);
        let end = segment.start.saturating_add(segment.rows).min(self.region.end(axis));
        if first >= end {
            return None;
        }
        let mut source = self.region.clone();
        source.start[axis] = segment.source_row + (first - segment.start);
        source.count[axis] = end - first;
        let mut target = Coordinates::from_elem(0, self.region.rank());
        target[axis] = first - self.region.start[axis];
        Some(Piece { input: segment.input, source, target })
    }
}

/// A tile, identified by its array and its number in the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tile {
    /// Number of the array in the plan.
    pub array: u32,
    /// Number of the tile in the array, row-major over the grid of tiles.
    pub index: u64,
}

/// Consecutive tiles that are handed to a worker together and written with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Number of the first tile, counted across all arrays.
    pub first: u64,
    /// Number of tiles, at least one.
    pub tiles: u64,
    /// Length of the tiles before encoding.
    pub raw_len_bytes: u64,
}

/// Maximum number of tiles of a batch. Their claims (40 bytes each) then take 160 KiB, and the cost of handing out a
/// batch is negligible compared with the 0.1 µs that even the smallest tile takes.
pub const MAX_BATCH_TILES: u64 = 4096;

/// All arrays of an output, in the order in which they are placed and committed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Arrays, in the order in which they are committed.
    pub arrays: Vec<ArrayPlan>,
}

impl Plan {
    /// Checks everything that the other methods rely on.
    ///
    /// # Errors
    /// If an array contradicts itself. The error describes the first one.
    pub fn validate(&self) -> Result<()> {
        if u32::try_from(self.arrays.len()).is_err() {
            return Err(CoreError::Plan { array: self.arrays.len(), fault: PlanFault::TooManyArrays });
        }
        let mut total = Some(0u64);
        for (number, array) in self.arrays.iter().enumerate() {
            array.check().map_err(|fault| CoreError::Plan { array: number, fault })?;
            let padded = array.tile_count().checked_mul(array.tile_len_bytes());
            total = total.and_then(|total| total.checked_add(padded?));
            if total.is_none() {
                return Err(CoreError::Plan { array: number, fault: PlanFault::Overflow });
            }
        }
        Ok(())
    }

    /// Returns the number of tiles of all arrays.
    pub fn tile_count(&self) -> u64 {
        self.arrays.iter().fold(0u64, |count, array| count.saturating_add(array.tile_count()))
    }

    /// Returns the length of all tiles before encoding.
    pub fn raw_len_bytes(&self) -> u64 {
        self.arrays
            .iter()
            .fold(0u64, |len, array| len.saturating_add(array.tile_count().saturating_mul(array.tile_len_bytes())))
    }

    /// Returns tile number `ordinal`, counted across all arrays; `None` beyond the last. Searches linearly: use
    /// [`Plan::tile_index`] for many look-ups.
    pub fn tile(&self, ordinal: u64) -> Option<Tile> {
        let mut rest = ordinal;
        for (number, array) in (0u32..).zip(&self.arrays) {
            let count = array.tile_count();
            if rest < count {
                return Some(Tile { array: number, index: rest });
            }
            rest -= count;
        }
        None
    }

    /// Builds an index from tile numbers to tiles and back.
    pub fn tile_index(&self) -> TileIndex {
        let mut first = Vec::with_capacity(self.arrays.len() + 1);
        let mut next = 0u64;
        for array in &self.arrays {
            first.push(next);
            next = next.saturating_add(array.tile_count());
        }
        first.push(next);
        TileIndex { first }
    }

    /// Splits the tiles into batches of at most `target_len_bytes` before encoding, or of a single longer tile, and of
    /// at most [`MAX_BATCH_TILES`] tiles. A batch may contain tiles of several arrays.
    pub fn batches(&self, target_len_bytes: u64) -> Vec<Batch> {
        self.batches_within(target_len_bytes, &|_| 0)
    }

    /// Like [`Plan::batches`], but never combines arrays that differ in `file_of`.
    pub(crate) fn batches_within(&self, target_len_bytes: u64, file_of: &dyn Fn(u32) -> u32) -> Vec<Batch> {
        let mut batches = Vec::new();
        let mut batch = Batch { first: 0, tiles: 0, raw_len_bytes: 0 };
        let mut file = 0;
        for (number, array) in (0u32..).zip(&self.arrays) {
            if batch.tiles > 0 && file_of(number) != file && array.tile_count() > 0 {
                let next = batch.first + batch.tiles;
                batches.push(std::mem::replace(&mut batch, Batch { first: next, tiles: 0, raw_len_bytes: 0 }));
            }
            file = if array.tile_count() > 0 { file_of(number) } else { file };
            let (tile_len, mut rest) = (array.tile_len_bytes().max(1), array.tile_count());
            while rest > 0 {
                let fit = target_len_bytes.saturating_sub(batch.raw_len_bytes) / tile_len;
                let take = if batch.tiles == 0 { fit.max(1) } else { fit }.min(rest).min(MAX_BATCH_TILES - batch.tiles);
                if take == 0 {
                    let next = batch.first + batch.tiles;
                    batches.push(std::mem::replace(&mut batch, Batch { first: next, tiles: 0, raw_len_bytes: 0 }));
                    continue;
                }
                batch.tiles += take;
                batch.raw_len_bytes = batch.raw_len_bytes.saturating_add(take.saturating_mul(tile_len));
                rest -= take;
            }
        }
        if batch.tiles > 0 {
            batches.push(batch);
        }
        batches
    }
}

/// Index of tile numbers; see [`Plan::tile_index`].
#[derive(Debug, Clone)]
pub struct TileIndex {
    /// Number of the first tile of each array, followed by the total number of tiles.
    first: Vec<u64>,
}

impl TileIndex {
    /// Returns the number of tiles.
    pub fn tile_count(&self) -> u64 {
        self.first.last().copied().unwrap_or(0)
    }

    /// Returns tile number `ordinal`; `None` beyond the last.
    pub fn tile(&self, ordinal: u64) -> Option<Tile> {
        if ordinal >= self.tile_count() {
            return None;
        }
        // The last array that starts at or before the tile: arrays without tiles share the start of the next.
        let array = self.first.partition_point(|first| *first <= ordinal) - 1;
        Some(Tile { array: u32::try_from(array).ok()?, index: ordinal - self.first[array] })
    }

    /// Returns the tile after `tile` in plan order. After the last tile, the result names an array that does not exist.
    pub fn next(&self, tile: Tile) -> Tile {
        let mut next = Tile { array: tile.array, index: tile.index + 1 };
        while let Some((first, end)) = self.tiles_of(next.array)
            && next.index >= end - first
        {
            next = Tile { array: next.array + 1, index: 0 };
        }
        next
    }

    /// Returns the tiles of `batch`, in order.
    pub fn tiles_in(&self, batch: &Batch) -> impl Iterator<Item = Tile> {
        let tiles = std::iter::successors(self.tile(batch.first), |tile| Some(self.next(*tile)));
        tiles.take(batch.tiles as usize)
    }

    /// Returns the number of `tile`.
    pub fn ordinal(&self, tile: Tile) -> Option<u64> {
        let (first, end) = self.tiles_of(tile.array)?;
        (tile.index < end - first).then(|| first + tile.index)
    }

    /// Returns the number of the first tile of `array`, and of the first tile after it.
    pub fn tiles_of(&self, array: u32) -> Option<(u64, u64)> {
        let array = array as usize;
        Some((*self.first.get(array)?, *self.first.get(array + 1)?))
    }

    /// Returns the number of arrays.
    pub fn array_count(&self) -> usize {
        self.first.len() - 1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn array(shape: &[u64], tile_shape: &[u64], rows: &[u64]) -> ArrayPlan {
        let mut start = 0;
        let mut segments = Vec::new();
        for (input, rows) in (0..).zip(rows) {
            if *rows > 0 {
                segments.push(Segment { input, start, rows: *rows, source_row: 0 });
            }
            start += rows;
        }
        ArrayPlan {
            shape: shape.to_vec(),
            tile_shape: tile_shape.to_vec(),
            element_len_bytes: 2,
            axis: 0,
            segments: segments.into(),
            boxes: Boxes::default(),
        }
    }

    #[test]
    fn a_plan_that_contradicts_itself_is_refused() {
        let fault = |array: ArrayPlan| match (Plan { arrays: vec![array] }).validate() {
            Err(CoreError::Plan { array: 0, fault }) => fault,
            other => panic!("{other:?}"),
        };
        let good = array(&[5, 3], &[2, 3], &[2, 0, 3]);
        assert!(Plan { arrays: vec![good.clone(), ArrayPlan::untiled()] }.validate().is_ok());
        assert_eq!(fault(ArrayPlan { shape: vec![], ..good.clone() }), PlanFault::NoAxis);
        assert_eq!(
            fault(ArrayPlan { tile_shape: vec![2], ..good.clone() }),
            PlanFault::RankDiffers { shape: 2, tile: 1 }
        );
        assert_eq!(fault(ArrayPlan { tile_shape: vec![2, 0], ..good.clone() }), PlanFault::ZeroTile);
        assert_eq!(fault(ArrayPlan { element_len_bytes: u64::MAX, ..good.clone() }), PlanFault::Overflow);
        assert_eq!(fault(ArrayPlan { axis: 2, ..good.clone() }), PlanFault::AxisOutOfRange { axis: 2, rank: 2 });
        assert_eq!(
            fault(ArrayPlan { shape: vec![6, 3], ..good.clone() }),
            PlanFault::Segment { segment: 2, start: 6, expected: 5 }
        );
        let mut gap = good.clone();
        let mut segments = gap.segments.to_vec();
        segments[1].start = 3;
        gap.segments = segments.into();
        assert_eq!(fault(gap), PlanFault::Segment { segment: 1, start: 3, expected: 2 });
        let mut empty = good;
        let mut segments = empty.segments.to_vec();
        segments.insert(1, Segment { input: 1, start: 2, rows: 0, source_row: 0 });
        empty.segments = segments.into();
        assert_eq!(fault(empty), PlanFault::EmptySegment(1));
    }

    #[test]
    fn batches_cut_between_tiles_and_join_small_arrays() {
        let plan = Plan {
            arrays: vec![
                array(&[10], &[4], &[10]), // 3 tiles of 8 bytes
                ArrayPlan::untiled(),
                array(&[1], &[1], &[1]),    // 1 tile of 2 bytes
                array(&[64], &[32], &[64]), // 2 tiles of 64 bytes: larger than the target
                array(&[2], &[1], &[1, 1]), // 2 tiles of 2 bytes
            ],
        };
        let cut: Vec<_> = plan.batches(18).iter().map(|b| (b.first, b.tiles, b.raw_len_bytes)).collect();
        assert_eq!(cut, [(0, 2, 16), (2, 2, 10), (4, 1, 64), (5, 1, 64), (6, 2, 4)]);
    }

    #[test]
    fn batches_of_tiny_tiles_are_cut_by_their_number() {
        let plan = Plan { arrays: vec![array(&[10_000], &[1], &[10_000])] };
        let cut: Vec<_> = plan.batches(u64::MAX).iter().map(|batch| batch.tiles).collect();
        assert_eq!(cut, [MAX_BATCH_TILES, MAX_BATCH_TILES, 10_000 - 2 * MAX_BATCH_TILES]);
    }

    fn arrays() -> impl Strategy<Value = ArrayPlan> {
        let rows = prop::collection::vec(0u64..6, 0..7);
        let others = prop::collection::vec((0u64..6, 1u64..5), 0..3);
        (rows, others, 1u64..7, 0usize..3).prop_map(|(rows, others, tile_rows, axis)| {
            let axis = axis.min(others.len());
            let (mut shape, mut tile_shape): (Vec<u64>, Vec<u64>) = others.into_iter().unzip();
            shape.insert(axis, rows.iter().sum());
            tile_shape.insert(axis, tile_rows);
            ArrayPlan { axis, ..array(&shape, &tile_shape, &rows) }
        })
    }

    proptest! {
        #[test]
        fn every_element_is_covered_exactly_once(plan in arrays()) {
            let whole = Plan { arrays: vec![plan.clone()] };
            prop_assert!(whole.validate().is_ok());
            let mut covered = std::collections::BTreeMap::<Vec<u64>, (u32, u64)>::new();
            for index in 0..plan.tile_count() {
                let extent = plan.tile_extent(index);
                let mut elements = 0;
                for piece in plan.pieces(index) {
                    elements += piece.source.element_count().unwrap();
                    for number in 0..piece.source.element_count().unwrap() {
                        let mut rest = number;
                        let mut at = vec![0; plan.shape.len()];
                        for axis in (0..at.len()).rev() {
                            at[axis] = rest % piece.source.count[axis];
                            rest /= piece.source.count[axis];
                        }
                        let row = piece.source.start[plan.axis] + at[plan.axis];
                        for (axis, at) in at.iter_mut().enumerate() {
                            *at += piece.target[axis] + extent.start[axis];
                            prop_assert!(*at < plan.shape[axis]);
                            prop_assert!(*at < extent.end(axis));
                        }
                        prop_assert!(covered.insert(at, (piece.input, row)).is_none());
                    }
                }
                prop_assert_eq!(elements, extent.element_count().unwrap());
            }
            prop_assert_eq!(covered.len() as u64, plan.shape.iter().product::<u64>());
            for (at, (input, row)) in covered {
                let segment = plan.segments.iter().find(|s| s.input == input).unwrap();
                prop_assert_eq!(at[plan.axis], segment.start + row);
                prop_assert!(row < segment.rows);
            }
        }

        #[test]
        fn batches_cover_every_tile_once(arrays in prop::collection::vec(arrays(), 0..6), target in 1u64..200) {
            let plan = Plan { arrays };
            let index = plan.tile_index();
            let mut next = 0;
            for batch in plan.batches(target) {
                prop_assert_eq!(batch.first, next);
                prop_assert!(batch.tiles > 0);
                let mut len = 0;
                let mut walked = index.tile(next).unwrap();
                for ordinal in next..next + batch.tiles {
                    let tile = index.tile(ordinal).unwrap();
                    prop_assert_eq!(walked, tile);
                    walked = index.next(walked);
                    prop_assert_eq!(plan.tile(ordinal), Some(tile));
                    prop_assert_eq!(index.ordinal(tile), Some(ordinal));
                    len += plan.arrays[tile.array as usize].tile_len_bytes();
                }
                prop_assert_eq!(len, batch.raw_len_bytes);
                prop_assert!(len <= target || batch.tiles == 1);
                next += batch.tiles;
            }
            prop_assert_eq!(next, plan.tile_count());
            prop_assert_eq!(index.tile(next), None);
        }
    }
}
