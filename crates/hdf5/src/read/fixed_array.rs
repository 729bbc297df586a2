//! Chunk indexes of layout 4 for datasets of fixed maximum extent: fixed array (file format specification, VII.C) and
//! implicit (all chunks in a row, no index).

use super::array_order::{ArrayOrder, ElementForm, Elements};
use super::grid::{ChunkGrid, ChunkRange};
use super::index::{IndexReader, Protection, Visit, uint};
use crate::error::Result;
use std::ops::{ControlFlow, Range};

// Slots of the node cache.
const HEADER: usize = 0;
const BLOCK: usize = 1;
const PAGE: usize = 2;

/// Largest number of elements in one page or unpaged block, 2^20: libhdf5 makes pages of 2^10, and the length of a
/// page decides what one look-up reads.
const MAX_PAGE_BITS: u8 = 20;

const WHAT_HEADER: &str = "fixed array header";
const WHAT_BLOCK: &str = "fixed array data block";
const WHAT_PAGE: &str = "fixed array page";

/// Walks an implicit index: chunk `n` lies `n` chunk lengths behind the first.
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
    header_address: u64,
    block_address: u64,
    client: u8,
    form: ElementForm,
    count: u64,
    page_elements: u64,
}

impl FixedArray {
    /// Reads the header; `None` where no block was ever allocated.
    fn read(reader: &mut IndexReader<'_>, address: u64, grid: &ChunkGrid<'_>) -> Result<Option<Self>> {
        let (address_len, length_len) = (reader.encoding.address_len(), reader.encoding.length_len());
        let header_len = 8 + length_len + address_len + 4;
        reader.node(HEADER, address, header_len, Protection::Checksum, WHAT_HEADER)?;
        let bytes = reader.nodes.bytes(HEADER);
        reader.check_signature(bytes, b"FAHD", 0, address, WHAT_HEADER)?;
        let (client, element_len, page_bits) = (bytes[5], usize::from(bytes[6]), bytes[7]);
        let form = ElementForm::new(reader, grid, client, element_len, address, WHAT_HEADER)?;
        if page_bits > MAX_PAGE_BITS {
            return Err(reader.unsupported(address, format!("{WHAT_HEADER}: pages of 2^{page_bits} elements")));
        }
        let count = uint(bytes, 8, length_len);
        let Some(block_address) = reader.address(bytes, 8 + length_len) else { return Ok(None) };
        let page_elements = 1 << page_bits;
        Ok(Some(Self { header_address: address, block_address, client, form, count, page_elements }))
    }

    /// Visits the elements `numbers`.
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
        let element_len = self.form.len_bytes;
        let prefix_len = 6 + reader.encoding.address_len();
        if self.count <= self.page_elements {
            let content = prefix_len..prefix_len + self.count as usize * element_len;
            self.block(reader, content.end + 4)?;
            let bytes = &reader.nodes.bytes(BLOCK)[content];
            let part = &bytes[numbers.start as usize * element_len..numbers.end as usize * element_len];
            return elements.visit(reader, self.form, numbers.start, part);
        }
        // Which pages were written, one bit each, then the pages.
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
            if elements.visit(reader, self.form, from, part)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Loads the first `len` bytes of the data block: all of it, or the part before the pages.
    fn block(&self, reader: &mut IndexReader<'_>, len: usize) -> Result<()> {
        let address = self.block_address;
        let bytes = reader.node(BLOCK, address, len, Protection::Checksum, WHAT_BLOCK)?;
        let client = bytes[5];
        let bytes = reader.nodes.bytes(BLOCK);
        reader.check_signature(bytes, b"FADB", 0, address, WHAT_BLOCK)?;
        if client != self.client || reader.address(bytes, 6) != Some(self.header_address) {
            return Err(reader.malformed(address, format!("{WHAT_BLOCK}: belongs to another array")));
        }
        Ok(())
    }
}
