//! Chunk indexes of layout 4 for datasets of fixed maximum extent: fixed array (file format specification, VII.C) and
//! implicit (all chunks consecutive, without an index).

use super::array_blocks::ArrayHeader;
use super::array_order::{ArrayOrder, Elements};
use super::grid::{ChunkGrid, ChunkRange};
use super::index_reader::{IndexReader, NodeKind, Protection, Visit, uint};
use crate::error::Result;
use std::ops::{ControlFlow, Range};

// Slots of the node cache.
const HEADER: usize = 0;
const BLOCK: usize = 1;
const PAGE: usize = 2;

const HEADER_KIND: NodeKind = NodeKind { signature: b"FAHD", what: "fixed array header" };
const BLOCK_KIND: NodeKind = NodeKind { signature: b"FADB", what: "fixed array data block" };
const WHAT_PAGE: &str = "fixed array page";

/// Walks an implicit index: chunk `n` lies `n` chunk lengths after the first.
pub(super) fn walk_implicit(
    reader: &mut IndexReader<'_>,
    address: u64,
    grid: &ChunkGrid<'_>,
    range: &ChunkRange,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>> {
    let order = ArrayOrder::new(reader, grid, false)?;
    if grid.filtered {
        return Err(reader.malformed(address, "implicit chunk index on filtered chunks".to_owned()));
    }
    let mut elements = Elements { grid, range, order: &order, visit };
    order.for_each_run(range, |numbers| {
        for number in numbers {
            let offset = number.saturating_mul(grid.chunk_len_bytes);
            let chunk = address.saturating_add(offset);
            if elements.chunk(reader, number, chunk, grid.chunk_len_bytes, 0)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Walks a fixed array.
pub(super) fn walk(
    reader: &mut IndexReader<'_>,
    address: u64,
    grid: &ChunkGrid<'_>,
    range: &ChunkRange,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>> {
    let order = ArrayOrder::new(reader, grid, false)?;
    let Some(array) = FixedArray::read(reader, address, grid)? else { return Ok(ControlFlow::Continue(())) };
    let mut elements = Elements { grid, range, order: &order, visit };
    order.for_each_run(range, |numbers| array.run(reader, numbers, &mut elements))
}

struct FixedArray {
    header: ArrayHeader,
    block_address: u64,
    count: u64,
    page_elements: u64,
}

impl FixedArray {
    /// Reads the header; returns `None` if no block was ever allocated.
    fn read(reader: &mut IndexReader<'_>, address: u64, grid: &ChunkGrid<'_>) -> Result<Option<Self>> {
        let (address_len, length_len) = (reader.encoding.address_len(), reader.encoding.length_len());
        let header_len = 8 + length_len + address_len + 4;
        let header = ArrayHeader::read(reader, (HEADER, address, header_len), &HEADER_KIND, grid)?;
        let bytes = reader.nodes.bytes(HEADER);
        let page_elements = header.page_elements(reader, bytes[7])?;
        let count = uint(bytes, 8, length_len);
        let Some(block_address) = reader.address(bytes, 8 + length_len) else { return Ok(None) };
        Ok(Some(Self { header, block_address, count, page_elements }))
    }

    /// Visits the elements with the given numbers.
    fn run(
        &self,
        reader: &mut IndexReader<'_>,
        numbers: Range<u64>,
        elements: &mut Elements<'_, '_>,
    ) -> Result<ControlFlow<()>> {
        let numbers = numbers.start..numbers.end.min(self.count);
        if numbers.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let element_len = self.header.form.len_bytes;
        let prefix_len = 6 + reader.encoding.address_len();
        if self.count <= self.page_elements {
            let content = prefix_len..prefix_len + self.count as usize * element_len;
            self.block(reader, content.end + 4)?;
            let bytes = &reader.nodes.bytes(BLOCK)[content];
            let part = &bytes[numbers.start as usize * element_len..numbers.end as usize * element_len];
            return elements.visit(reader, self.header.form, numbers.start, part);
        }
        // A bitmap of written pages, followed by the pages.
        let pages = self.count.div_ceil(self.page_elements);
        let bitmap_len = usize::try_from(pages.div_ceil(8)).unwrap_or(usize::MAX);
        let block_len = prefix_len.saturating_add(bitmap_len).saturating_add(4);
        self.block(reader, block_len)?;
        let page_len = self.page_elements as usize * element_len + 4;
        for page in numbers.start / self.page_elements..(numbers.end - 1) / self.page_elements + 1 {
            let bit = reader.nodes.bytes(BLOCK)[prefix_len + (page / 8) as usize] & (0x80 >> (page % 8));
            if bit == 0 {
                continue;
            }
            let first = page * self.page_elements;
            let count = self.page_elements.min(self.count - first);
            let address = page
                .checked_mul(page_len as u64)
                .and_then(|offset| offset.checked_add(block_len as u64)?.checked_add(self.block_address))
                .unwrap_or(u64::MAX);
            let (from, to) = (numbers.start.max(first), numbers.end.min(first + count));
            let len = count as usize * element_len + 4;
            reader.node(PAGE, address, len, Protection::Checksum, WHAT_PAGE)?;
            let bytes = reader.nodes.bytes(PAGE);
            let part = &bytes[(from - first) as usize * element_len..(to - first) as usize * element_len];
            if elements.visit(reader, self.header.form, from, part)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Loads the first `len` bytes of the data block: all of it, or the part before the pages.
    fn block(&self, reader: &mut IndexReader<'_>, len: usize) -> Result<()> {
        self.header.block(reader, (BLOCK, self.block_address, len), &BLOCK_KIND)
    }
}
