//! Lengths of structures with many entries: version 2 B-trees, fractal heaps, global heaps.

/// Fill level of the nodes of a version 2 B-tree.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fill {
    /// Records inserted in order. As measured, libhdf5 shifts records to the left neighbour before it splits a node, so
    /// that nodes are nine tenths full.
    InOrder,
    /// Records inserted in random order: two thirds full, as measured.
    NoOrder,
    /// Minimum: a node splits in halves, and one of its records moves up.
    Least,
}

/// Returns the number of records of a leaf and of an inner node. In addition to each record, an inner node stores an
/// address and up to three bytes of counts.
pub(super) fn tree_v2_capacity(node_len_bytes: u64, record_len_bytes: u64) -> (u64, u64) {
    ((node_len_bytes - 10) / record_len_bytes, (node_len_bytes - 10) / (record_len_bytes + 11))
}

/// Returns the length of a version 2 B-tree: a header of 38 bytes, and nodes of `node_len_bytes` with records of
/// `record_len_bytes`.
pub(super) fn tree_v2_len_bytes(node_len_bytes: u64, record_len_bytes: u64, count: u64, fill: Fill) -> u64 {
    let filled = |capacity: u64| match fill {
        Fill::InOrder => capacity * 9 / 10,
        Fill::NoOrder => capacity * 6 / 10,
        Fill::Least => (capacity / 2).saturating_sub(1),
    };
    let (leaf, inner) = tree_v2_capacity(node_len_bytes, record_len_bytes);
    let mut level = if count <= leaf { 1 } else { count.div_ceil(filled(leaf).max(1)) };
    let mut nodes = level;
    while level > 1 {
        level = if level <= inner { 1 } else { level.div_ceil(filled(inner).max(2)) };
        nodes = nodes.saturating_add(level);
    }
    38_u64.saturating_add(nodes.saturating_mul(node_len_bytes))
}

/// Lengths of a fractal heap.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FractalHeap {
    /// Length of all of it.
    pub len_bytes: u64,
    /// The part of it that the indirect block takes.
    pub list_len_bytes: u64,
}

impl FractalHeap {
    /// Computes the lengths of a heap: a header of 146 bytes, a free-space header and list of about 100 bytes, and
    /// blocks in rows of four. There are two rows of blocks of `first_block_len_bytes`, then each row has blocks of
    /// twice the size, up to 64 KiB. Each block loses 22 bytes and the remainder into which the next object does not
    /// fit. From the second block on, an indirect block lists them; its number of rows doubles as it grows.
    pub fn new(first_block_len_bytes: u64, content_len_bytes: u64) -> Self {
        let (mut left, mut blocks_len_bytes, mut count) = (content_len_bytes, 0_u64, 0_u64);
        while left > 0 {
            let row = count / 4;
            let len_bytes = (first_block_len_bytes << row.saturating_sub(1).min(16)).min(64 * 1024);
            // Once blocks have 64 KiB, the rest is a division.
            let blocks = if len_bytes == 64 * 1024 { left.div_ceil(len_bytes - 64) } else { 1 };
            blocks_len_bytes = blocks_len_bytes.saturating_add(blocks.saturating_mul(len_bytes));
            left = left.saturating_sub(blocks.saturating_mul(len_bytes - 64));
            count = count.saturating_add(blocks);
        }
        let rows = count.div_ceil(4).checked_next_power_of_two().unwrap_or(count);
        let list_len_bytes = if count > 1 { 32_u64.saturating_add(rows.saturating_mul(32)) } else { 0 };
        let len_bytes = 246_u64.saturating_add(blocks_len_bytes).saturating_add(list_len_bytes);
        Self { len_bytes, list_len_bytes }
    }
}

/// Returns the length of the global heap collections for values that take `content_len_bytes` with their headers (16
/// bytes) and padding.
///
/// A collection of 4 KiB is closed when the next value does not fit into its remainder; a value longer than a
/// collection gets one of its own length. So each collection except the last, together with the first value of the
/// next, holds more than its length: all collections take at most twice the length of the values.
pub(super) fn heap_len_bytes(content_len_bytes: u64, value_count: u64) -> u64 {
    content_len_bytes.saturating_mul(2).saturating_add(value_count.saturating_mul(16)).saturating_add(4096)
}

/// Returns the number of levels of a tree whose nodes have at least `children` children.
pub(super) fn levels(count: u64, children: u64) -> u64 {
    let (mut levels, mut reach) = (1, children);
    while reach < count {
        reach = reach.saturating_mul(children);
        levels += 1;
    }
    levels
}
