//! What the index of a dataset's chunks takes: as a whole, and while chunks are inserted.

use super::structures::{levels, tree_v2_len_bytes};
use super::{Compat, DatasetSpec, OutputLayout};
use crate::model::Dataspace;

/// The index of a dataset's chunks.
#[derive(Debug, Clone)]
pub(super) enum IndexModel {
    /// Nothing to index.
    None,
    /// The address stands in the layout message.
    Single,
    /// Version 1 B-tree.
    BtreeV1 { node_len_bytes: u64 },
    /// Fixed array with this many slots.
    FixedArray { slots: u64, slot_len_bytes: u64 },
    /// Extensible array.
    ExtensibleArray { slot_len_bytes: u64 },
    /// Version 2 B-tree.
    BtreeV2 { record_len_bytes: u64 },
}

impl IndexModel {
    pub fn new(compat: Compat, spec: &DatasetSpec) -> Self {
        let (OutputLayout::Chunked { chunk_shape }, Dataspace::Simple { dims, max_dims }) =
            (&spec.layout, &spec.dataspace)
        else {
            return Self::None;
        };
        let rank = chunk_shape.len() as u64;
        if matches!(compat, Compat::Earliest | Compat::V18) {
            // 24 bytes, 64 children and 65 keys; a key is size, filter mask and one offset more than dimensions.
            return Self::BtreeV1 { node_len_bytes: 24 + 64 * 8 + 65 * (8 + 8 * (rank + 1)) };
        }
        // Address; where chunks are filtered also their size and the mask.
        let chunk_len_bytes =
            chunk_shape.iter().fold(spec.datatype.class().len_bytes(), |len, &dim| len.saturating_mul(dim)).max(1);
        let size_len_bytes = match compat {
            // Layout 4: as many bytes as the size needs, and one more. Layout 5: always eight.
            Compat::V110 => (1 + (u64::from(chunk_len_bytes.ilog2()) + 8) / 8).min(8),
            _ => 8,
        };
        let slot_len_bytes = if spec.filters.is_empty() { 8 } else { 8 + size_len_bytes + 4 };
        match max_dims.iter().filter(|&&max| max == u64::MAX).count() {
            0 => {
                let slots = max_dims
                    .iter()
                    .zip(chunk_shape)
                    .fold(1_u64, |slots, (&max, &chunk)| slots.saturating_mul(max.div_ceil(chunk.max(1))));
                if slots <= 1 && dims == max_dims { Self::Single } else { Self::FixedArray { slots, slot_len_bytes } }
            }
            1 => Self::ExtensibleArray { slot_len_bytes },
            _ => Self::BtreeV2 { record_len_bytes: slot_len_bytes + 8 * rank },
        }
    }

    /// Length with `count` chunks inserted in order.
    pub fn len_bytes(&self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        match *self {
            Self::None | Self::Single => 0,
            // libhdf5 splits the last node 9:1 when it overflows, so nodes hold 57 of 64 when all come in order.
            Self::BtreeV1 { node_len_bytes } => {
                let mut nodes = 0_u64;
                let mut level = count;
                loop {
                    level = if level <= 64 { 1 } else { (level - 64).div_ceil(57) + 1 };
                    nodes = nodes.saturating_add(level);
                    if level == 1 {
                        return nodes.saturating_mul(node_len_bytes);
                    }
                }
            }
            // Header 28, block 18; beyond 1,024 slots, pages with checksums and a bit map of them.
            Self::FixedArray { slots, slot_len_bytes } => {
                let pages = slots.div_ceil(1024);
                slots.saturating_mul(slot_len_bytes).saturating_add(64 + pages.saturating_mul(5))
            }
            Self::ExtensibleArray { slot_len_bytes } => extensible_array_len_bytes(count, slot_len_bytes),
            Self::BtreeV2 { record_len_bytes } => tree_v2_len_bytes(2048, record_len_bytes, count, true),
        }
    }

    /// What inserting one more chunk may allocate, in any order.
    fn step_len_bytes(&self, count: u64) -> u64 {
        match *self {
            Self::None | Self::Single => 0,
            // One node per level splits, and the root moves; nodes are at least half full.
            Self::BtreeV1 { node_len_bytes } => node_len_bytes * (levels(count, 32) + 1),
            Self::FixedArray { .. } => {
                if count == 0 {
                    self.len_bytes(1)
                } else {
                    0
                }
            }
            // The inserted position may lie in any block of the array; blocks grow with the position's square root.
            Self::ExtensibleArray { .. } => 4096_u64.saturating_add(self.len_bytes(count.saturating_mul(2)) / 4),
            Self::BtreeV2 { .. } => 2048 * (levels(count, 10) + 2),
        }
    }
}

/// Header 72 and index block with 4 slots, 6 addresses of data blocks and 25 of super blocks; then super blocks of
/// growing numbers of data blocks: super block `k` has `2^(k / 2)` blocks of `16 * 2^((k + 1) / 2)` slots, each 22
/// bytes and its slots (in pages of 1,024 with 4 bytes of checksum beyond). The first four need no block of their own.
fn extensible_array_len_bytes(count: u64, slot_len_bytes: u64) -> u64 {
    let mut len_bytes = 72 + 18 + 4 * slot_len_bytes + 8 * (6 + 25);
    let mut reached = 4_u64;
    for k in 0..58_u32 {
        if reached >= count {
            break;
        }
        let (blocks, slots) = (1_u64 << (k / 2), 16_u64 << k.div_ceil(2));
        if k >= 4 {
            let page_bits = if slots > 1024 { blocks.saturating_mul(slots / 1024 / 8 + 1) } else { 0 };
            len_bytes = len_bytes.saturating_add(22 + blocks * 8 + page_bits);
        }
        let used = (count - reached).div_ceil(slots).min(blocks);
        let pages = if slots > 1024 { slots / 1024 } else { 0 };
        let block = slots.saturating_mul(slot_len_bytes).saturating_add(22 + pages * 4);
        len_bytes = len_bytes.saturating_add(used.saturating_mul(block));
        reached = reached.saturating_add(blocks.saturating_mul(slots));
    }
    len_bytes
}

/// The room that one dataset's chunks and values take as they come.
#[derive(Debug)]
pub(in crate::write) struct IndexRoom {
    model: IndexModel,
    inserted: u64,
    /// Promised to be free for chunks that come in order, and what they take.
    expected: u64,
    expected_len_bytes: u64,
    last_origin: Vec<u64>,
}

impl IndexRoom {
    pub fn new(compat: Compat, spec: &DatasetSpec) -> Self {
        Self {
            model: IndexModel::new(compat, spec),
            inserted: 0,
            expected: 0,
            expected_len_bytes: 0,
            last_origin: Vec::new(),
        }
    }

    /// What `count` chunks take in an index that is empty, of an extent of `positions` chunks: the others are fill
    /// value and not stored, but an extensible array reaches up to the last that is.
    pub fn for_first(&self, count: u64, positions: u64) -> u64 {
        match self.model {
            IndexModel::ExtensibleArray { .. } if count > 0 => self.model.len_bytes(positions.max(count)),
            _ => self.model.len_bytes(count),
        }
    }

    /// `count` chunks of so many positions are promised to have room.
    pub fn expect(&mut self, count: u64, positions: u64) {
        self.expected = count;
        self.expected_len_bytes = self.for_first(count, positions);
    }

    /// What is still promised of it.
    pub fn promised_len_bytes(&self) -> u64 {
        self.expected_len_bytes.saturating_sub(self.model.len_bytes(self.inserted.min(self.expected)))
    }

    /// What any further chunks up to `count` in all may take.
    pub fn for_all(&self, count: u64) -> u64 {
        self.model.len_bytes(count).saturating_add(self.model.step_len_bytes(count))
    }

    /// What the chunk at `origin` may take beyond the promise: nothing for an expected one in order.
    pub fn for_chunk(&self, origin: &[u64]) -> u64 {
        let in_order = self.last_origin.is_empty() || self.last_origin.as_slice() < origin;
        if in_order && self.inserted < self.expected { 0 } else { self.model.step_len_bytes(self.inserted) }
    }

    pub fn inserted(&mut self, origin: &[u64]) {
        self.inserted += 1;
        if self.last_origin.as_slice() < origin {
            self.last_origin.clear();
            self.last_origin.extend_from_slice(origin);
        }
    }
}
