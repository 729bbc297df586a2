//! Extensible arrays, which index the chunks of datasets with one unlimited dimension: position of a chunk in the
//! array, and length of the array.
//!
//! Whole blocks are allocated when the first of their slots is set, in whatever order slots are set, so the position of
//! a chunk matters, not the number of chunks before it. Positions refer to the maximum extent: adjacent chunks of a
//! dataset that may also grow along a second, limited, axis are far apart in the array.

use crate::model::Dataspace;

/// Number of slots in the index block itself.
const SLOTS_IN_INDEX_BLOCK: u64 = 4;

/// Number of slots above which data blocks are divided into pages, each with a checksum of 4 bytes.
const SLOTS_PER_PAGE: u64 = 1024;

/// Number of the first super blocks that are not stored separately: the index block holds the addresses of their data
/// blocks.
const SUPER_BLOCKS_IN_INDEX_BLOCK: u32 = 4;

/// Number of super blocks for which libhdf5 reserves space: chunks have 32-bit numbers, and the first data block has 16
/// slots.
const SUPER_BLOCK_COUNT: u32 = 29;

/// Extensible array that indexes a dataset's chunks.
#[derive(Debug, Clone)]
pub(super) struct ExtensibleArray {
    slot_len_bytes: u64,
    chunk_shape: Vec<u64>,
    /// Distance between neighbours along each axis, in slots.
    strides: Vec<u64>,
    /// End position of the chunks of the present extent.
    end: u64,
}

/// Sizes of super block `number`, which has `2^(number / 2)` data blocks of `16 * 2^((number + 1) / 2)` slots.
struct SuperBlock {
    number: u32,
    blocks: u64,
    slots_per_block: u64,
}

impl SuperBlock {
    fn new(number: u32) -> Self {
        Self { number, blocks: 1 << (number / 2), slots_per_block: 16 << number.div_ceil(2) }
    }

    fn pages_per_block(&self) -> u64 {
        if self.slots_per_block > SLOTS_PER_PAGE { self.slots_per_block / SLOTS_PER_PAGE } else { 0 }
    }

    /// Returns the length of the super block itself: 22 bytes for signature, version, class, address of the header,
    /// offset and checksum; an address per data block; and a bit per page, in whole bytes for each data block.
    fn super_block_len_bytes(&self) -> u64 {
        if self.number < SUPER_BLOCKS_IN_INDEX_BLOCK {
            return 0;
        }
        22 + self.blocks * (8 + self.pages_per_block().div_ceil(8))
    }

    /// Returns the length of a data block: the same 22 bytes, the slots, and a checksum per page.
    fn data_block_len_bytes(&self, slot_len_bytes: u64) -> u64 {
        22 + self.slots_per_block * slot_len_bytes + self.pages_per_block() * 4
    }
}

impl ExtensibleArray {
    pub fn new(dataspace: &Dataspace, chunk_shape: &[u64], slot_len_bytes: u64) -> Self {
        let (dims, max_dims) = match dataspace {
            Dataspace::Simple { dims, max_dims } => (dims.as_slice(), max_dims.as_slice()),
            _ => (&[][..], &[][..]),
        };
        // The unlimited axis comes first, the others follow in their order; limited ones have room for their maximum
        // number of chunks.
        let unlimited = max_dims.iter().position(|&max| max == u64::MAX);
        let mut strides = vec![1; chunk_shape.len()];
        let mut stride = 1_u64;
        for axis in (0..max_dims.len()).rev().filter(|&axis| Some(axis) != unlimited) {
            strides[axis] = stride;
            stride = stride.saturating_mul(max_dims[axis].div_ceil(chunk_shape[axis].max(1)));
        }
        if let Some(axis) = unlimited {
            strides[axis] = stride;
        }
        let mut array = Self { slot_len_bytes, chunk_shape: chunk_shape.to_vec(), strides, end: 0 };
        if !dims.contains(&0) {
            let last: Vec<u64> = dims.iter().map(|&dim| dim - 1).collect();
            array.end = array.place(&last).saturating_add(1);
        }
        array
    }

    /// Returns the position of the chunk that contains an element.
    fn place(&self, element: &[u64]) -> u64 {
        let along = element.iter().zip(&self.chunk_shape).zip(&self.strides);
        along.fold(0, |place: u64, ((&at, &chunk), &stride)| {
            place.saturating_add((at / chunk.max(1)).saturating_mul(stride))
        })
    }

    /// Returns the length of the header (72) and of the index block with its slots, 6 addresses of data blocks, and the
    /// addresses of super blocks.
    pub fn head_len_bytes(&self) -> u64 {
        let addresses = 6 + u64::from(SUPER_BLOCK_COUNT - SUPER_BLOCKS_IN_INDEX_BLOCK);
        72 + 18 + SLOTS_IN_INDEX_BLOCK * self.slot_len_bytes + 8 * addresses
    }

    /// Returns the maximum space for the chunk at `origin` in addition to the header and index block: a data block and
    /// a super block.
    pub fn chunk_len_bytes(&self, origin: &[u64]) -> u64 {
        self.place_len_bytes(self.place(origin))
    }

    fn place_len_bytes(&self, place: u64) -> u64 {
        let mut reached = SLOTS_IN_INDEX_BLOCK;
        if place < reached {
            return 0;
        }
        let mut len_bytes = 0;
        for number in 0..SUPER_BLOCK_COUNT {
            let block = SuperBlock::new(number);
            len_bytes = block.super_block_len_bytes() + block.data_block_len_bytes(self.slot_len_bytes);
            reached += block.blocks * block.slots_per_block;
            if place < reached {
                break;
            }
        }
        // libhdf5 refuses positions beyond the last super block.
        len_bytes
    }

    /// Returns the maximum length with `count` chunks of the extent, in any order and at any position: all blocks of
    /// the extent, or one per chunk if these are fewer (later blocks are longer).
    pub fn len_bytes(&self, count: u64) -> u64 {
        let each = self.place_len_bytes(self.end.saturating_sub(1));
        self.full_len_bytes().min(self.head_len_bytes().saturating_add(count.saturating_mul(each)))
    }

    /// Returns the length with all chunks of the extent.
    pub fn full_len_bytes(&self) -> u64 {
        let mut len_bytes = self.head_len_bytes();
        let mut reached = SLOTS_IN_INDEX_BLOCK;
        for block in (0..SUPER_BLOCK_COUNT).map(SuperBlock::new) {
            if reached >= self.end {
                break;
            }
            let used = (self.end - reached).div_ceil(block.slots_per_block).min(block.blocks);
            let blocks_len_bytes = used * block.data_block_len_bytes(self.slot_len_bytes);
            len_bytes += block.super_block_len_bytes() + blocks_len_bytes;
            reached += block.blocks * block.slots_per_block;
        }
        len_bytes
    }
}
