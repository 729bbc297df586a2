//! Chunk index of layouts 1 to 3: B-tree version 1, node type 1 (file format specification, III.A.1).
//!
//! Invariant: leaf entries rise strictly in row-major order over the whole walk, levels decrease by one per step down,
//! and only a root may be empty. Each entry is therefore visited once: a cycle or a node with two parents is an error,
//! not a loop.

use super::grid::{ChunkGrid, ChunkRange};
use super::index_reader::{IndexReader, Protection, Visit, off_grid, uint};
use super::{ChunkRecord, MAX_RANK};
use crate::error::Result;
use std::ops::ControlFlow;

/// Number of entries of a node at libhdf5's default (`istore_k` = 32): one read of this size covers nearly every node.
const TYPICAL_ENTRIES: usize = 64;

const WHAT: &str = "chunk B-tree node";

pub(super) fn walk(
    reader: &mut IndexReader<'_>,
    root: u64,
    grid: &ChunkGrid<'_>,
    range: &ChunkRange,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>> {
    let mut walk = ChunkWalk { grid, range, visit, previous: [0; MAX_RANK], is_first: true };
    walk.node(reader, root, 0, None)
}

/// Returns the length of a key: stored size, filter mask, origin and one more offset (inside the element, always 0).
fn key_len(rank: usize) -> usize {
    8 + 8 * (rank + 1)
}

struct ChunkWalk<'a, 'v> {
    grid: &'a ChunkGrid<'a>,
    range: &'a ChunkRange,
    visit: &'a mut Visit<'v>,
    /// Coordinates of the previous entry, unless this is the first.
    previous: ChunkCoordinates,
    is_first: bool,
}

/// Coordinates of a chunk, in chunks per dimension.
type ChunkCoordinates = [u64; MAX_RANK];

/// Level, first key and last key of a node according to its parent. libhdf5 keeps them equal to those of the node;
/// without the comparison, a damaged key in a parent would silently hide chunks.
struct ExpectedNode {
    level: usize,
    low: ChunkCoordinates,
    high: ChunkCoordinates,
    /// Whether the node is at the left edge of the tree, which begins with the first chunk.
    is_leftmost: bool,
    /// Whether the node is at the right edge of the tree, which ends with the last chunk.
    is_rightmost: bool,
}

impl ChunkWalk<'_, '_> {
    /// Visits the node at `address`, `depth` steps below the root; `expected` is `None` for the root.
    fn node(
        &mut self,
        reader: &mut IndexReader<'_>,
        address: u64,
        depth: usize,
        expected: Option<&ExpectedNode>,
    ) -> Result<ControlFlow<()>> {
        let rank = self.grid.rank();
        let address_len = reader.encoding.address_len();
        let header_len = 8 + 2 * address_len;
        let key_len = key_len(rank);
        let entry_len = key_len + address_len;
        // Nodes of the same depth share a slot and have the same level, so a child never has its parent's slot.
        let slot = depth;
        let usual_len = header_len + TYPICAL_ENTRIES * entry_len + key_len;
        let bytes = reader.node_up_to(slot, address, header_len, usual_len, Protection::None, WHAT)?;
        if !bytes.starts_with(b"TREE") {
            return Err(reader.malformed(address, format!("{WHAT}: wrong signature")));
        }
        let (kind, level, entries) = (bytes[4], usize::from(bytes[5]), uint(bytes, 6, 2) as usize);
        let loaded_len = bytes.len();
        if kind != 1 || expected.is_some_and(|expected| expected.level != level) {
            return Err(reader.malformed(address, format!("{WHAT}: type {kind}, level {level} does not belong here")));
        }
        if entries == 0 && (level > 0 || expected.is_some()) {
            return Err(reader.malformed(address, format!("{WHAT}: empty")));
        }
        let needed_len = header_len + entries * entry_len + key_len;
        if loaded_len < needed_len {
            reader.node(slot, address, needed_len, Protection::None, WHAT)?;
        }
        if let Some(expected) = expected {
            let bytes = reader.nodes.bytes(slot);
            let ends = (self.scaled(bytes, header_len), self.scaled(bytes, header_len + entries * entry_len));
            if ends != (expected.low, expected.high) {
                return Err(reader.malformed(address, format!("{WHAT}: keys differ from those of its parent")));
            }
        }
        if level == 0 {
            // The usual ranks are passed as constants, so that the compiler unrolls the loops over axes.
            let bytes = reader.nodes.bytes(slot);
            let entries = bytes[header_len..].chunks_exact(entry_len).take(entries);
            return match rank {
                1 => self.leaf(reader, address, entries, 1),
                2 => self.leaf(reader, address, entries, 2),
                _ => self.leaf(reader, address, entries, rank),
            };
        }
        for entry in 0..entries {
            let at = header_len + entry * entry_len;
            let bytes = reader.nodes.bytes(slot);
            let child = ExpectedNode {
                level: level - 1,
                low: self.scaled(bytes, at),
                high: self.scaled(bytes, at + entry_len),
                is_leftmost: expected.is_none_or(|expected| expected.is_leftmost) && entry == 0,
                is_rightmost: expected.is_none_or(|expected| expected.is_rightmost) && entry + 1 == entries,
            };
            // The outermost keys of the tree are not used to skip subtrees. They are equal at all levels, so no
            // comparison would find damage. libhdf5 does not raise the last one when it adds a chunk at the end.
            let low = if child.is_leftmost { &[0; MAX_RANK] } else { &child.low };
            if self.range.misses(&low[..rank], (!child.is_rightmost).then_some(&child.high[..rank])) {
                continue;
            }
            let child_address = reader.defined_address(bytes, at + key_len, address, WHAT)?;
            if self.node(reader, child_address, depth + 1, Some(&child))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits the chunks of a leaf's `entries`.
    #[inline(always)]
    fn leaf<'b>(
        &mut self,
        reader: &IndexReader<'_>,
        address: u64,
        entries: impl Iterator<Item = &'b [u8]>,
        rank: usize,
    ) -> Result<ControlFlow<()>> {
        let key_len = key_len(rank);
        let (mut origin, mut scaled) = ([0; MAX_RANK], [0; MAX_RANK]);
        let (grid, bounds) = (self.grid, reader.chunk_bounds());
        for entry in entries {
            for (axis, (&shape, &max_dim)) in grid.chunk_shape[..rank].iter().zip(&grid.max_dims[..rank]).enumerate() {
                let coordinate = uint(entry, 8 + 8 * axis, 8);
                origin[axis] = coordinate;
                scaled[axis] = coordinate / shape;
                // A dataset that shrank leaves chunks beyond its extent, but no chunk may lie beyond the maximum
                // extent.
                if scaled[axis] * shape != coordinate || coordinate >= max_dim {
                    return Err(off_grid(reader, grid, &origin[..=axis]));
                }
            }
            if !self.is_first && scaled[..rank] <= self.previous[..rank] {
                return Err(reader.malformed(
                    address,
                    format!("{WHAT}: chunk at {:?} is out of order or listed twice", &origin[..rank]),
                ));
            }
            self.is_first = false;
            self.previous[..rank].copy_from_slice(&scaled[..rank]);
            if !self.range.contains(&scaled[..rank]) {
                continue;
            }
            let chunk = reader.defined_address(entry, key_len, address, WHAT)?;
            let len_bytes = uint(entry, 0, 4);
            if chunk < bounds.start || len_bytes > bounds.end.saturating_sub(chunk) {
                reader.check_chunk(chunk, len_bytes)?;
            }
            let filter_mask = uint(entry, 4, 4) as u32;
            let record = ChunkRecord { origin: &origin[..rank], address: chunk, len_bytes, filter_mask };
            if (self.visit)(&record).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the chunk coordinates of the key at `at`.
    fn scaled(&self, bytes: &[u8], at: usize) -> ChunkCoordinates {
        let mut scaled = [0; MAX_RANK];
        for (axis, (number, shape)) in scaled.iter_mut().zip(self.grid.chunk_shape).enumerate() {
            *number = uint(bytes, at + 8 + 8 * axis, 8) / shape;
        }
        scaled
    }
}
