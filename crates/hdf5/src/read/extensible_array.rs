//! Chunk index of layout 4 for one unlimited dimension: extensible array (file format specification, VII.D).
//!
//! Elements 0 and up lie in the index block, then in data blocks that it points to, then in data blocks that super
//! blocks point to. Super block `s` has `2^(s/2)` data blocks of `2^((s+1)/2)` times the smallest block's elements
//! (integer division). The first few super blocks are not stored: the index block points to their data blocks directly.
//! Large data blocks are split into pages, and their super block records which pages were written.

use super::array_blocks::ArrayHeader;
use super::array_order::{ArrayOrder, Elements};
use super::grid::{ChunkGrid, ChunkRange};
use super::index_reader::{IndexReader, NodeKind, Protection, Visit, uint};
use crate::error::Result;
use std::ops::{ControlFlow, Range};

// Slots of the node cache.
const HEADER: usize = 0;
const INDEX_BLOCK: usize = 1;
const SUPER_BLOCK: usize = 2;
const DATA_BLOCK: usize = 3;
const PAGE: usize = 4;

const HEADER_KIND: NodeKind = NodeKind { signature: b"EAHD", what: "extensible array header" };
const INDEX_KIND: NodeKind = NodeKind { signature: b"EAIB", what: "extensible array index block" };
const SUPER_KIND: NodeKind = NodeKind { signature: b"EASB", what: "extensible array super block" };
const DATA_KIND: NodeKind = NodeKind { signature: b"EADB", what: "extensible array data block" };
const WHAT_PAGE: &str = "extensible array page";

/// Walks an extensible array.
pub(super) fn walk(
    reader: &mut IndexReader<'_>,
    address: u64,
    grid: &ChunkGrid<'_>,
    range: &ChunkRange,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>> {
    let order = ArrayOrder::new(reader, grid, true)?;
    let Some(array) = ExtensibleArray::read(reader, address, grid)? else { return Ok(ControlFlow::Continue(())) };
    let mut elements = Elements { grid, range, order: &order, visit };
    order.for_each_run(range, |numbers| array.run(reader, numbers, &mut elements))
}

struct ExtensibleArray {
    header: ArrayHeader,
    index_address: u64,
    /// Index of the largest element ever set, plus one.
    count: u64,
    /// Size of element offsets in block headers.
    offset_len: usize,
    index_elements: u64,
    /// Number of elements of the smallest data block, a power of two.
    min_elements: u64,
    page_elements: u64,
    super_blocks: u32,
    /// Number of super blocks whose data blocks the index block points to.
    index_super_blocks: u32,
    /// Number of data blocks that the index block points to.
    index_data_blocks: u64,
}

/// Position and size of a super block, from the rule in the module documentation.
#[derive(Debug, Clone, Copy)]
struct SuperBlock {
    number: u32,
    /// First element and first data block, counted after those in the index block.
    first_element: u64,
    first_block: u64,
    blocks: u64,
    block_elements: u64,
}

impl SuperBlock {
    fn end_element(&self) -> u64 {
        self.first_element.saturating_add(self.blocks.saturating_mul(self.block_elements))
    }
}

impl ExtensibleArray {
    /// Reads the header; returns `None` if no element was ever set.
    fn read(reader: &mut IndexReader<'_>, address: u64, grid: &ChunkGrid<'_>) -> Result<Option<Self>> {
        let (address_len, length_len) = (reader.encoding.address_len(), reader.encoding.length_len());
        let header_len = 12 + 6 * length_len + address_len + 4;
        let header = ArrayHeader::read(reader, (HEADER, address, header_len), &HEADER_KIND, grid)?;
        let bytes = reader.nodes.bytes(HEADER);
        let (count_bits, index_elements, min_elements, min_pointers) = (bytes[7], bytes[8], bytes[9], bytes[10]);
        let what = HEADER_KIND.what;
        let sound = (1..=64).contains(&count_bits)
            && min_elements.is_power_of_two()
            && min_pointers.is_power_of_two()
            && min_elements.ilog2() <= u32::from(count_bits);
        if !sound {
            return Err(reader.malformed(
                address,
                format!("{what}: 2^{count_bits} elements, blocks of {min_elements}, {min_pointers} pointers"),
            ));
        }
        let page_elements = header.page_elements(reader, bytes[11])?;
        let count = uint(bytes, 12 + 4 * length_len, length_len);
        let Some(index_address) = reader.address(bytes, 12 + 6 * length_len) else { return Ok(None) };
        let super_blocks = 1 + u32::from(count_bits) - min_elements.ilog2();
        let index_super_blocks = 2 * min_pointers.ilog2();
        Ok(Some(Self {
            header,
            index_address,
            count,
            offset_len: usize::from(count_bits).div_ceil(8),
            index_elements: u64::from(index_elements),
            min_elements: u64::from(min_elements),
            page_elements,
            super_blocks,
            index_super_blocks: index_super_blocks.min(super_blocks),
            index_data_blocks: 2 * (u64::from(min_pointers) - 1),
        }))
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
        self.index_block(reader)?;
        let prefix_len = 6 + reader.encoding.address_len();
        if numbers.start < self.index_elements {
            let to = numbers.end.min(self.index_elements) as usize;
            let bytes = &reader.nodes.bytes(INDEX_BLOCK)[prefix_len..];
            let part = &bytes[numbers.start as usize * self.header.form.len_bytes..to * self.header.form.len_bytes];
            if elements.visit(reader, self.header.form, numbers.start, part)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        // From here on, elements and blocks are counted after those in the index block.
        let behind = numbers.start.saturating_sub(self.index_elements)..numbers.end.saturating_sub(self.index_elements);
        let mut block =
            SuperBlock { number: 0, first_element: 0, first_block: 0, blocks: 1, block_elements: self.min_elements };
        while block.number < self.super_blocks && block.first_element < behind.end {
            if block.end_element() > behind.start && self.super_block(reader, &block, &behind, elements)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let number = block.number + 1;
            // There are at most 65 super blocks, so both powers fit 64 bits.
            block = SuperBlock {
                number,
                first_element: block.end_element(),
                first_block: block.first_block + block.blocks,
                blocks: 1 << (number / 2),
                block_elements: self.min_elements.saturating_mul(1 << number.div_ceil(2)),
            };
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits the elements in the data blocks of super block `block`.
    fn super_block(
        &self,
        reader: &mut IndexReader<'_>,
        block: &SuperBlock,
        behind: &Range<u64>,
        elements: &mut Elements<'_, '_>,
    ) -> Result<ControlFlow<()>> {
        let address_len = reader.encoding.address_len();
        let in_index = block.number < self.index_super_blocks;
        // Number of pages of a data block and length of the bitmap of written pages; both 0 if the block is not paged.
        let pages =
            if block.block_elements > self.page_elements { block.block_elements / self.page_elements } else { 0 };
        let map_len = usize::try_from(pages.div_ceil(8)).unwrap_or(usize::MAX);
        let (slot, maps_at, addresses_at) = if in_index {
            if pages > 0 {
                return Err(reader.unsupported(self.index_address, format!("{}: paged data blocks", INDEX_KIND.what)));
            }
            let elements_len = self.index_elements as usize * self.header.form.len_bytes;
            (INDEX_BLOCK, 0, 6 + address_len + elements_len + block.first_block as usize * address_len)
        } else {
            let pointer = self.index_data_blocks as usize + (block.number - self.index_super_blocks) as usize;
            let at =
                6 + address_len + self.index_elements as usize * self.header.form.len_bytes + pointer * address_len;
            let Some(address) = reader.address(reader.nodes.bytes(INDEX_BLOCK), at) else {
                return Ok(ControlFlow::Continue(()));
            };
            let maps_at = 6 + address_len + self.offset_len;
            let blocks = usize::try_from(block.blocks).unwrap_or(usize::MAX);
            let addresses_at = maps_at.saturating_add(blocks.saturating_mul(map_len));
            let len = addresses_at.saturating_add(blocks.saturating_mul(address_len)).saturating_add(4);
            self.header.block(reader, (SUPER_BLOCK, address, len), &SUPER_KIND)?;
            self.check_offset(reader, SUPER_BLOCK, address, (block.first_element, None), &SUPER_KIND)?;
            (SUPER_BLOCK, maps_at, addresses_at)
        };
        let first = behind.start.saturating_sub(block.first_element) / block.block_elements;
        let end = (behind.end.min(block.end_element()) - block.first_element).div_ceil(block.block_elements);
        for data_block in first..end {
            let at = addresses_at + data_block as usize * address_len;
            let Some(address) = reader.address(reader.nodes.bytes(slot), at) else { continue };
            let data = DataBlock {
                address,
                first_element: block.first_element + data_block * block.block_elements,
                elements: block.block_elements,
                pages,
                map_at: maps_at,
                first_page: data_block * pages,
                also_begins_with: in_index
                    .then(|| block.first_element + (block.first_block + data_block) * block.block_elements),
            };
            if self.data_block(reader, &data, behind, elements)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn data_block(
        &self,
        reader: &mut IndexReader<'_>,
        data: &DataBlock,
        behind: &Range<u64>,
        elements: &mut Elements<'_, '_>,
    ) -> Result<ControlFlow<()>> {
        let prefix_len = 6 + reader.encoding.address_len() + self.offset_len;
        let element_len = self.header.form.len_bytes;
        let (from, to) = (behind.start.max(data.first_element), behind.end.min(data.first_element + data.elements));
        let offsets = (data.first_element, data.also_begins_with);
        if data.pages == 0 {
            let len = prefix_len + data.elements as usize * element_len + 4;
            self.header.block(reader, (DATA_BLOCK, data.address, len), &DATA_KIND)?;
            self.check_offset(reader, DATA_BLOCK, data.address, offsets, &DATA_KIND)?;
            let bytes = &reader.nodes.bytes(DATA_BLOCK)[prefix_len..];
            let within = |element: u64| (element - data.first_element) as usize * element_len;
            return elements.visit(
                reader,
                self.header.form,
                from + self.index_elements,
                &bytes[within(from)..within(to)],
            );
        }
        self.header.block(reader, (DATA_BLOCK, data.address, prefix_len + 4), &DATA_KIND)?;
        self.check_offset(reader, DATA_BLOCK, data.address, offsets, &DATA_KIND)?;
        let page_len = self.page_elements as usize * element_len + 4;
        let page_of = |element: u64| (element - data.first_element) / self.page_elements;
        for page in page_of(from)..page_of(to - 1) + 1 {
            let bit_at = data.first_page + page;
            let bit = reader.nodes.bytes(SUPER_BLOCK)[data.map_at + (bit_at / 8) as usize] & (0x80 >> (bit_at % 8));
            if bit == 0 {
                continue;
            }
            let first = data.first_element + page * self.page_elements;
            let address = page
                .checked_mul(page_len as u64)
                .and_then(|offset| offset.checked_add(prefix_len as u64 + 4)?.checked_add(data.address))
                .unwrap_or(u64::MAX);
            reader.node(PAGE, address, page_len, Protection::Checksum, WHAT_PAGE)?;
            let (from, to) = (from.max(first), to.min(first + self.page_elements));
            let within = |element: u64| (element - first) as usize * element_len;
            let part = &reader.nodes.bytes(PAGE)[within(from)..within(to)];
            if elements.visit(reader, self.header.form, from + self.index_elements, part)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn index_block(&self, reader: &mut IndexReader<'_>) -> Result<()> {
        let address_len = reader.encoding.address_len();
        let pointers = self.index_data_blocks as usize + (self.super_blocks - self.index_super_blocks) as usize;
        let len =
            6 + address_len + self.index_elements as usize * self.header.form.len_bytes + pointers * address_len + 4;
        self.header.block(reader, (INDEX_BLOCK, self.index_address, len), &INDEX_KIND)
    }

    /// Checks that the first element recorded in the block in `slot` is the expected one, or the one that libhdf5
    /// writes instead, so that no block is used twice.
    fn check_offset(
        &self,
        reader: &IndexReader<'_>,
        slot: usize,
        address: u64,
        (first, or): (u64, Option<u64>),
        kind: &NodeKind,
    ) -> Result<()> {
        let at = 6 + reader.encoding.address_len();
        let stored = uint(reader.nodes.bytes(slot), at, self.offset_len);
        if stored != first && Some(stored) != or {
            return Err(reader.malformed(address, format!("{}: begins with element {stored}, not {first}", kind.what)));
        }
        Ok(())
    }
}

/// Location of a data block; elements are counted after those in the index block.
struct DataBlock {
    address: u64,
    first_element: u64,
    elements: u64,
    pages: u64,
    /// Offset of the page bitmap in the super block, and the first bit of this block. The bits of all data blocks are
    /// packed without gaps, although the bitmap is long enough for each block to start at a byte.
    map_at: usize,
    first_page: u64,
    /// First element that libhdf5 stores in a block that the index block points to: it counts the blocks of the
    /// preceding super blocks twice.
    also_begins_with: Option<u64>,
}
