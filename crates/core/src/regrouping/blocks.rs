//! Blocks: parts of inputs that are read with one call, along the borders of their chunks.
//!
//! Invariant: the blocks of a region are disjoint and cover the part of it that the inputs hold.

use crate::plan::ArrayPlan;
use crate::plan::extent::{Coordinates, Extent, values_len_bytes};

/// Usual length that blocks of small chunks are combined to: large enough for the cost of a call to be negligible,
/// small enough to stay in the cache of a core.
pub const TYPICAL_BLOCK_LEN_BYTES: u64 = 1 << 20;

/// Part of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputBlock {
    /// Number of the input.
    pub input: u32,
    /// Box of the block in the input's array.
    pub source: Extent,
    /// First element of the block in the output's array, per axis.
    pub target: Coordinates,
}

impl InputBlock {
    /// Returns the box of the block in the output's array.
    pub fn extent(&self) -> Extent {
        Extent { start: self.target.clone(), count: self.source.count.clone() }
    }

    /// Divides the block into parts of up to `limit_len_bytes`, or of one element.
    pub fn parts_within(self, element_len_bytes: u64, limit_len_bytes: u64) -> impl Iterator<Item = Self> {
        let parts = self.source.parts_within(element_len_bytes, limit_len_bytes);
        parts.map(move |source| {
            let place = |axis: usize| self.target[axis] + source.start[axis] - self.source.start[axis];
            let target = (0..source.rank()).map(place).collect();
            Self { input: self.input, source, target }
        })
    }
}

/// Returns the elements per axis of blocks of `chunk_shape` in an array of `shape`: as many chunks as fit into
/// `block_len_bytes`, at least one.
pub fn block_shape(shape: &[u64], chunk_shape: &[u64], element_len_bytes: u64, block_len_bytes: u64) -> Coordinates {
    let mut block: Coordinates = chunk_shape.iter().zip(shape).map(|(chunk, len)| *chunk.min(len)).collect();
    for axis in (0..block.len()).rev() {
        let len_bytes = values_len_bytes(&block, element_len_bytes).max(1);
        let chunks = (block_len_bytes / len_bytes).clamp(1, shape[axis].div_ceil(block[axis].max(1)).max(1));
        let whole = chunks * block[axis] >= shape[axis];
        block[axis] *= chunks;
        if !whole {
            break;
        }
    }
    block
}

/// Returns the blocks of a region of `array`, whose inputs have chunks of `chunk_shape`. A block has up to
/// `block_len_bytes`, or is a single longer chunk.
pub fn blocks(array: &ArrayPlan, region: &Extent, chunk_shape: &[u64], block_len_bytes: u64) -> Vec<InputBlock> {
    let shape = block_shape(&array.shape, chunk_shape, array.element_len_bytes, block_len_bytes);
    let mut blocks = Vec::new();
    for piece in array.pieces_in(region) {
        let cut = |axis: usize, start: u64| {
            // Blocks begin at multiples of their shape in the input, where its chunks begin as well.
            (start / shape[axis] + 1).saturating_mul(shape[axis]).min(piece.source.end(axis))
        };
        let mut start = piece.source.start.clone();
        loop {
            let count = (0..start.len()).map(|axis| cut(axis, start[axis]) - start[axis]).collect();
            let target = (0..start.len())
                .map(|axis| region.start[axis] + piece.target[axis] + start[axis] - piece.source.start[axis])
                .collect();
            blocks.push(InputBlock { input: piece.input, source: Extent { start: start.clone(), count }, target });
            let Some(axis) = (0..start.len()).rev().find(|&axis| cut(axis, start[axis]) < piece.source.end(axis))
            else {
                break;
            };
            start[axis] = cut(axis, start[axis]);
            start[axis + 1..].copy_from_slice(&piece.source.start[axis + 1..]);
        }
    }
    blocks
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::plan::Segment;
    use proptest::prelude::*;

    #[test]
    fn small_chunks_are_combined_and_large_ones_are_not() {
        let shape = |shape: &[u64], chunk_shape: &[u64], element_len_bytes, block_len_bytes| {
            block_shape(shape, chunk_shape, element_len_bytes, block_len_bytes).to_vec()
        };
        assert_eq!(shape(&[4000, 20_000], &[10, 20_000], 4, TYPICAL_BLOCK_LEN_BYTES), [10, 20_000]);
        assert_eq!(shape(&[1 << 20, 4], &[128, 4], 8, TYPICAL_BLOCK_LEN_BYTES), [32_768, 4]);
        assert_eq!(shape(&[1 << 20, 4], &[128, 4], 8, 16 << 10), [512, 4]);
        assert_eq!(shape(&[8, 8], &[2, 2], 1, TYPICAL_BLOCK_LEN_BYTES), [8, 8]);
    }

    proptest! {
        #[test]
        fn blocks_cover_a_region_once(
            rows in prop::collection::vec(1_u64..7, 1..4),
            others in prop::collection::vec((1_u64..6, 1_u64..4), 0..2),
            (chunk, element_len_bytes) in (1_u64..5, prop::sample::select(vec![1_u64, 1 << 18])),
            block_len_bytes in prop::sample::select(vec![1, 8, TYPICAL_BLOCK_LEN_BYTES]),
            ends in (0_u64..8, 1_u64..8),
        ) {
            let mut start = 0;
            let segments: Vec<Segment> = (0..).zip(&rows).map(|(input, &rows)| {
                start += rows;
                Segment { input, start: start - rows, rows, source_row: 0 }
            }).collect();
            let (mut shape, mut chunk_shape): (Vec<u64>, Vec<u64>) = others.into_iter().unzip();
            shape.insert(0, start);
            chunk_shape.insert(0, chunk);
            let array = ArrayPlan {
                tile_shape: shape.clone(),
                shape: shape.clone(),
                element_len_bytes,
                segments: segments.clone().into(),
                ..ArrayPlan::default()
            };
            let mut region = Extent::whole(&shape);
            region.start[0] = ends.0.min(start - 1);
            region.count[0] = ends.1.min(start - region.start[0]);
            let mut seen = std::collections::BTreeSet::new();
            for block in blocks(&array, &region, &chunk_shape, block_len_bytes) {
                let extent = block.extent();
                prop_assert!(region.contains(&extent) && !extent.is_empty());
                let segment = &segments[block.input as usize];
                prop_assert_eq!(block.source.start[0] + segment.start, extent.start[0]);
                prop_assert!(block.source.end(0) <= segment.rows);
                for number in 0..extent.element_count().unwrap() {
                    let (mut rest, mut at) = (number, extent.start.to_vec());
                    for axis in (0..at.len()).rev() {
                        at[axis] += rest % extent.count[axis];
                        rest /= extent.count[axis];
                    }
                    prop_assert!(seen.insert(at));
                }
            }
            prop_assert_eq!(Some(seen.len() as u64), region.element_count());
        }
    }
}
