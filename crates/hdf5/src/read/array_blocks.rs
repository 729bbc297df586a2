//! Common parts of fixed and extensible arrays: a header that states the form of the elements, and blocks that name
//! their array.
//!
//! Invariant: a block loaded by [`ArrayHeader::block`] belongs to this array.

use super::array_order::ElementForm;
use super::grid::ChunkGrid;
use super::index_reader::{IndexReader, NodeKind};
use crate::error::Result;

/// Largest number of elements in one page or unpaged block, as a power of two. libhdf5 uses pages of 2^10, and each
/// look-up reads a whole page.
const MAX_PAGE_BITS: u8 = 20;

/// Header of an array.
pub(super) struct ArrayHeader {
    address: u64,
    kind: &'static NodeKind,
    client: u8,
    /// Form of the elements.
    pub form: ElementForm,
}

impl ArrayHeader {
    /// Loads the header of `len_bytes` at `address` into `slot`.
    pub fn read(
        reader: &mut IndexReader<'_>,
        (slot, address, len_bytes): (usize, u64, usize),
        kind: &'static NodeKind,
        grid: &ChunkGrid<'_>,
    ) -> Result<Self> {
        reader.node_of(kind, slot, address, len_bytes)?;
        let bytes = reader.nodes.bytes(slot);
        let (client, element_len) = (bytes[5], usize::from(bytes[6]));
        let form = ElementForm::new(reader, grid, client, element_len, address, kind.what)?;
        Ok(Self { address, kind, client, form })
    }

    /// Returns the number of elements per page.
    pub fn page_elements(&self, reader: &IndexReader<'_>, page_bits: u8) -> Result<u64> {
        if page_bits > MAX_PAGE_BITS {
            let what = format!("{}: pages of 2^{page_bits} elements", self.kind.what);
            return Err(reader.unsupported(self.address, what));
        }
        Ok(1 << page_bits)
    }

    /// Loads a block (or the part before the pages, if it is paged) and checks that it belongs to this array.
    pub fn block(
        &self,
        reader: &mut IndexReader<'_>,
        (slot, address, len_bytes): (usize, u64, usize),
        kind: &NodeKind,
    ) -> Result<()> {
        reader.node_of(kind, slot, address, len_bytes)?;
        let bytes = reader.nodes.bytes(slot);
        if bytes[5] != self.client || reader.address(bytes, 6) != Some(self.address) {
            return Err(reader.malformed(address, format!("{}: belongs to another array", kind.what)));
        }
        Ok(())
    }
}
