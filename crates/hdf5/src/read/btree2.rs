//! Chunk index of layout 4 for several unlimited dimensions: B-tree version 2, records of type 10 and 11 (file format
//! specification, III.A.2).
//!
//! Invariant: as for version 1, records increase strictly in the order of the walk, and the depth is the one in the
//! header, so each record is visited once.

use super::grid::{ChunkGrid, ChunkRange};
use super::index_reader::{IndexReader, NodeKind, Visit, off_grid, uint};
use super::{ChunkRecord, MAX_RANK};
use crate::error::Result;
use crate::native::btree_v2::{Level, levels};
use crate::native::cursor::encoded_len;
use std::ops::ControlFlow;

/// Deepest accepted tree: nodes hold at least 2 records, so 2^40 chunks fit.
const MAX_DEPTH: u16 = 40;

/// Slot of the header in the node cache; nodes use the slot of their depth.
const HEADER: usize = MAX_DEPTH as usize + 1;

const HEADER_KIND: NodeKind = NodeKind { signature: b"BTHD", what: "B-tree 2 header" };
const WHAT_NODE: &str = "B-tree 2 node";

/// Walks a version 2 B-tree.
pub(super) fn walk(
    reader: &mut IndexReader<'_>,
    address: u64,
    grid: &ChunkGrid<'_>,
    range: &ChunkRange,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>> {
    let Some(tree) = Tree::read(reader, address, grid)? else { return Ok(ControlFlow::Continue(())) };
    let mut walk = ChunkWalk { grid, range, visit, tree, previous: None };
    let (root, records, depth) = (walk.tree.root, walk.tree.root_records, walk.tree.levels.len() - 1);
    walk.node(reader, root, records, depth)
}

struct Tree {
    kind: u8,
    root: u64,
    root_records: usize,
    node_len: usize,
    record_len: usize,
    /// Width of record counts in child pointers.
    count_len: usize,
    /// Levels of the tree, leaves first.
    levels: Vec<Level>,
}

impl Tree {
    /// Reads the header; returns `None` if the tree is empty.
    fn read(reader: &mut IndexReader<'_>, address: u64, grid: &ChunkGrid<'_>) -> Result<Option<Self>> {
        let (address_len, length_len) = (reader.encoding.address_len(), reader.encoding.length_len());
        let header_len = 16 + address_len + 2 + length_len + 4;
        reader.node_of(&HEADER_KIND, HEADER, address, header_len)?;
        let bytes = reader.nodes.bytes(HEADER);
        let kind = bytes[5];
        let (node_len, record_len) = (uint(bytes, 6, 4) as usize, uint(bytes, 10, 2) as usize);
        let depth = uint(bytes, 12, 2) as u16;
        let scaled_len = 8 * grid.rank();
        let fits = match kind {
            10 => !grid.filtered && record_len == address_len + scaled_len,
            // The stored size takes 1 to 8 bytes, the mask 4.
            11 => grid.filtered && (address_len + scaled_len + 5..=address_len + scaled_len + 12).contains(&record_len),
            _ => false,
        };
        let malformed = |what: String| reader.malformed(address, format!("{}: {what}", HEADER_KIND.what));
        if !fits || depth > MAX_DEPTH {
            return Err(malformed(format!(
                "type {kind}, records of {record_len} bytes, depth {depth} do not suit the dataset"
            )));
        }
        let root_records = uint(bytes, 16 + address_len, 2) as usize;
        let Some(root) = reader.address(bytes, 16) else { return Ok(None) };
        if root_records == 0 {
            return Ok(None);
        }
        let levels = levels(node_len as u64, record_len as u64, depth, &reader.encoding)
            .ok_or_else(|| malformed(format!("nodes of {node_len} bytes hold no record of {record_len}")))?;
        let count_len = encoded_len(levels[0].max_records);
        Ok(Some(Self { kind, root, root_records, node_len, record_len, count_len, levels }))
    }
}

struct ChunkWalk<'a, 'v> {
    grid: &'a ChunkGrid<'a>,
    range: &'a ChunkRange,
    visit: &'a mut Visit<'v>,
    tree: Tree,
    /// Coordinates of the previous record.
    previous: Option<[u64; MAX_RANK]>,
}

impl ChunkWalk<'_, '_> {
    /// Visits the node at `address` with `records` records, `depth` levels above the leaves.
    fn node(
        &mut self,
        reader: &mut IndexReader<'_>,
        address: u64,
        records: usize,
        depth: usize,
    ) -> Result<ControlFlow<()>> {
        let address_len = reader.encoding.address_len();
        let record_len = self.tree.record_len;
        let level = self.tree.levels[depth];
        if records == 0 || records as u64 > level.max_records {
            return Err(reader.malformed(address, format!("{WHAT_NODE}: {records} records do not fit it")));
        }
        // Only the used part of a node is meaningful; the checksum follows it.
        let children = if depth == 0 { 0 } else { records + 1 };
        let len = 6 + records * record_len + children * level.pointer_len + 4;
        if len > self.tree.node_len {
            return Err(reader.malformed(address, format!("{WHAT_NODE}: {records} records do not fit it")));
        }
        let signature = if depth == 0 { b"BTLF" } else { b"BTIN" };
        reader.node_of(&NodeKind { signature, what: WHAT_NODE }, depth, address, len)?;
        let bytes = reader.nodes.bytes(depth);
        if bytes[5] != self.tree.kind {
            return Err(reader.malformed(address, format!("{WHAT_NODE}: type {}, not the tree's", bytes[5])));
        }
        let rank = self.grid.rank();
        let scaled_at = |bytes: &[u8], record: usize| {
            let mut scaled = [0; MAX_RANK];
            let at = 6 + (record + 1) * record_len - 8 * rank;
            for (axis, number) in scaled[..rank].iter_mut().enumerate() {
                *number = uint(bytes, at + 8 * axis, 8);
            }
            scaled
        };
        // Children and records alternate: child 0, record 0, child 1, ...; a leaf has records only.
        for item in 0..=records {
            if depth > 0 {
                let bytes = reader.nodes.bytes(depth);
                let low = item.checked_sub(1).map_or([0; MAX_RANK], |before| scaled_at(bytes, before));
                let high = (item < records).then(|| scaled_at(bytes, item));
                if !self.range.misses(&low[..rank], high.as_ref().map(|high| &high[..rank])) {
                    let at = 6 + records * record_len + item * level.pointer_len;
                    let child = reader.defined_address(bytes, at, address, WHAT_NODE)?;
                    let child_records = uint(bytes, at + address_len, self.tree.count_len) as usize;
                    if self.node(reader, child, child_records, depth - 1)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            if item < records {
                let bytes = reader.nodes.bytes(depth);
                let scaled = scaled_at(bytes, item);
                let at = 6 + item * record_len;
                if self.record(reader, address, &bytes[at..at + record_len], &scaled)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn record(
        &mut self,
        reader: &IndexReader<'_>,
        node_address: u64,
        record: &[u8],
        scaled: &[u64; MAX_RANK],
    ) -> Result<ControlFlow<()>> {
        let rank = self.grid.rank();
        if let Some(previous) = &self.previous
            && scaled[..rank] <= previous[..rank]
        {
            return Err(reader.malformed(
                node_address,
                format!("{WHAT_NODE}: chunk number {:?} is out of order or listed twice", &scaled[..rank]),
            ));
        }
        self.previous = Some(*scaled);
        for (axis, &number) in scaled[..rank].iter().enumerate() {
            let origin = number.saturating_mul(self.grid.chunk_shape[axis]);
            if origin >= self.grid.max_dims[axis] {
                return Err(off_grid(reader, self.grid, &[origin]));
            }
        }
        if !self.range.contains(&scaled[..rank]) {
            return Ok(ControlFlow::Continue(()));
        }
        let address_len = reader.encoding.address_len();
        let address = reader.defined_address(record, 0, node_address, WHAT_NODE)?;
        let (len_bytes, filter_mask) = if self.tree.kind == 11 {
            let size_len = record.len() - address_len - 4 - 8 * rank;
            (uint(record, address_len, size_len), uint(record, address_len + size_len, 4) as u32)
        } else {
            (self.grid.chunk_len_bytes, 0)
        };
        reader.check_chunk(address, len_bytes)?;
        let mut origin = [0; MAX_RANK];
        for axis in 0..rank {
            // Inside the range and therefore below the extent: no overflow.
            origin[axis] = scaled[axis] * self.grid.chunk_shape[axis];
        }
        Ok((self.visit)(&ChunkRecord { origin: &origin[..rank], address, len_bytes, filter_mask }))
    }
}
