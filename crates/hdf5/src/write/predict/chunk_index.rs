//! Predicted length of a dataset's chunk index, in total and while chunks are inserted.

use super::extensible_array::ExtensibleArray;
use super::structures::{Fill, levels, tree_v2_capacity, tree_v2_len_bytes};
use super::{Compat, DatasetSpec, OutputLayout};
use crate::model::Dataspace;

/// Length of the nodes of version 2 B-trees that index chunks.
const NODE_V2_LEN_BYTES: u64 = 2048;

/// Kind of a dataset's chunk index, with its sizes.
#[derive(Debug, Clone)]
pub(super) enum IndexModel {
    /// No chunks to index.
    None,
    /// Single chunk, whose address is in the layout message.
    Single,
    /// Version 1 B-tree.
    BtreeV1 { node_len_bytes: u64 },
    /// Fixed array with this many slots.
    FixedArray { slots: u64, slot_len_bytes: u64 },
    /// Extensible array.
    ExtensibleArray(ExtensibleArray),
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
            // 24 bytes, 64 children and 65 keys; a key is a size, a filter mask and one more offset than dimensions.
            return Self::BtreeV1 { node_len_bytes: 24 + 64 * 8 + 65 * (8 + 8 * (rank + 1)) };
        }
        // Address; for filtered chunks also their size and mask.
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
            1 => Self::ExtensibleArray(ExtensibleArray::new(&spec.dataspace, chunk_shape, slot_len_bytes)),
            _ => Self::BtreeV2 { record_len_bytes: slot_len_bytes + 8 * rank },
        }
    }

    /// Returns the length of an index into which `count` chunks were inserted, in order of their origins.
    pub fn len_bytes(&self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        match self {
            Self::None | Self::Single => 0,
            // libhdf5 splits the last node 9:1 when it overflows, so nodes hold 57 of 64 entries if all are inserted in
            // order.
            Self::BtreeV1 { node_len_bytes } => {
                tree_v1_nodes(count, |entries| (entries - 64).div_ceil(57) + 1).saturating_mul(*node_len_bytes)
            }
            // Header 28, block 18; beyond 1,024 slots, pages with checksums and a bitmap of pages.
            Self::FixedArray { slots, slot_len_bytes } => {
                let pages = slots.div_ceil(1024);
                slots.saturating_mul(*slot_len_bytes).saturating_add(64 + pages.saturating_mul(5))
            }
            Self::ExtensibleArray(array) => array.len_bytes(count),
            Self::BtreeV2 { record_len_bytes } => {
                tree_v2_len_bytes(NODE_V2_LEN_BYTES, *record_len_bytes, count, Fill::InOrder)
            }
        }
    }

    /// Returns the maximum length of an index into which `count` chunks were inserted, whatever their order.
    fn len_bytes_in_any_order(&self, count: u64) -> u64 {
        match self {
            // Nodes split in halves, except for the first and the last of each level, which keep or pass on a tenth.
            Self::BtreeV1 { node_len_bytes } if count > 0 => {
                tree_v1_nodes(count, |entries| entries.div_ceil(32) + 1).saturating_mul(*node_len_bytes)
            }
            Self::BtreeV2 { record_len_bytes } if count > 0 => {
                tree_v2_len_bytes(NODE_V2_LEN_BYTES, *record_len_bytes, count, Fill::Least)
            }
            _ => self.len_bytes(count),
        }
    }

    /// Returns the maximum allocation for inserting the chunk at `origin`, in any order, into an index that holds at
    /// most `count` chunks.
    fn chunk_len_bytes(&self, origin: &[u64], is_first: bool, count: u64) -> u64 {
        match self {
            Self::None | Self::Single => 0,
            Self::FixedArray { .. } if is_first => self.len_bytes(1),
            Self::FixedArray { .. } => 0,
            Self::ExtensibleArray(array) => {
                array.chunk_len_bytes(origin).saturating_add(if is_first { array.head_len_bytes() } else { 0 })
            }
            Self::BtreeV1 { .. } | Self::BtreeV2 { .. } => self.split_len_bytes(count),
        }
    }

    /// Returns the maximum growth of a tree of at most `count` chunks for one more chunk: one node per level splits,
    /// and the root moves. Nodes are at least half full.
    fn split_len_bytes(&self, count: u64) -> u64 {
        match *self {
            Self::BtreeV1 { node_len_bytes } => node_len_bytes.saturating_mul(levels(count, 32) + 1),
            // The header is allocated with the first chunk.
            Self::BtreeV2 { record_len_bytes } => {
                let (leaf, inner) = tree_v2_capacity(NODE_V2_LEN_BYTES, record_len_bytes);
                NODE_V2_LEN_BYTES * (levels(count, (leaf.min(inner) / 2).max(2)) + 1) + 38
            }
            _ => 0,
        }
    }

    fn is_tree(&self) -> bool {
        matches!(self, Self::BtreeV1 { .. } | Self::BtreeV2 { .. })
    }
}

/// Returns the number of nodes in a version 1 B-tree with 64 entries per node; `nodes` returns the number of nodes for
/// more entries than one holds.
fn tree_v1_nodes(count: u64, nodes: impl Fn(u64) -> u64) -> u64 {
    let (mut sum, mut level) = (0_u64, count);
    loop {
        level = if level <= 64 { 1 } else { nodes(level) };
        sum = sum.saturating_add(level);
        if level == 1 {
            return sum;
        }
    }
}

/// Metadata space for the chunks and values of one dataset while they are inserted.
#[derive(Debug)]
pub(in crate::write) struct IndexRoom {
    model: IndexModel,
    /// Number of chunks of the whole extent.
    chunk_count: u64,
    /// Maximum number of chunks in the index when the dataset was opened.
    initial: u64,
    inserted: u64,
    /// Number of chunks with reserved space that were not inserted yet, and the space left for them.
    promised: u64,
    promised_len_bytes: u64,
    last_origin: Vec<u64>,
}

impl IndexRoom {
    /// Creates the state for a dataset without chunks.
    pub fn of_created(compat: Compat, spec: &DatasetSpec) -> Self {
        let chunk_count = match &spec.layout {
            OutputLayout::Chunked { chunk_shape } => {
                let along = spec.dataspace.dims().iter().zip(chunk_shape);
                along.fold(1_u64, |count, (&dim, &chunk)| count.saturating_mul(dim.div_ceil(chunk.max(1))))
            }
            _ => 0,
        };
        let model = IndexModel::new(compat, spec);
        Self {
            model,
            chunk_count,
            initial: 0,
            inserted: 0,
            promised: 0,
            promised_len_bytes: 0,
            last_origin: Vec::new(),
        }
    }

    /// Creates the state for a dataset that may contain any chunks.
    pub fn of_opened(compat: Compat, spec: &DatasetSpec) -> Self {
        let created = Self::of_created(compat, spec);
        Self { initial: created.chunk_count, ..created }
    }

    /// Returns the space for `count` more chunks inserted in order. If the index already holds chunks, their order is
    /// unknown, which makes the nodes of trees emptier.
    pub fn for_expected(&self, count: u64) -> u64 {
        if (self.initial == 0 && self.inserted == 0) || !self.model.is_tree() {
            return self.model.len_bytes(count);
        }
        let each = self.model.split_len_bytes(self.chunk_count);
        each.saturating_mul(count).min(self.model.len_bytes_in_any_order(self.chunk_count))
    }

    /// Records the reservation of space for `count` more chunks.
    pub fn promise(&mut self, count: u64) {
        self.promised_len_bytes = self.for_expected(count);
        self.promised = count;
    }

    /// Returns the rest of the reserved space.
    pub fn promised_len_bytes(&self) -> u64 {
        self.promised_len_bytes
    }

    /// Returns the maximum space for all chunks of the extent, in any order.
    pub fn for_all(&self) -> u64 {
        self.model.len_bytes_in_any_order(self.chunk_count)
    }

    /// Returns whether space is reserved for the chunk at `origin`. In arrays, order does not matter.
    pub fn is_promised(&self, origin: &[u64]) -> bool {
        let in_order = self.last_origin.is_empty() || self.last_origin.as_slice() < origin;
        self.promised > 0 && (in_order || !self.model.is_tree())
    }

    /// Returns the maximum space for the chunk at `origin`, in any order.
    pub fn for_chunk(&self, origin: &[u64]) -> u64 {
        let count = self.initial.max(self.inserted);
        self.model.chunk_len_bytes(origin, self.inserted == 0, count)
    }

    /// Records that the chunk at `origin` was inserted and took `taken_len_bytes`.
    pub fn inserted(&mut self, origin: &[u64], taken_len_bytes: u64) {
        if self.is_promised(origin) {
            self.promised -= 1;
            let left = if self.promised == 0 { 0 } else { self.promised_len_bytes.saturating_sub(taken_len_bytes) };
            self.promised_len_bytes = left;
        }
        self.inserted += 1;
        if self.last_origin.as_slice() < origin {
            self.last_origin.clear();
            self.last_origin.extend_from_slice(origin);
        }
    }
}
