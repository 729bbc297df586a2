//! Data layout messages, versions 1 to 5, and external file lists.
//!
//! Not for chunk indexes ([`crate::read`] reads those). Invariant: a chunk shape has no zero, and all addresses are
//! absolute.

use super::cursor::{Cursor, Defect, Encoding, InFile};
use super::dataspace::MAX_RANK;
use super::reader::Reader;
use super::symbol_table::LocalHeap;
use crate::error::Result;
use crate::model::{ChunkIndex, InlineData, Layout};

/// Edge chunks that reach beyond the extent are not filtered.
const FLAG_PARTIAL_CHUNKS_UNFILTERED: u8 = 1;
/// The single chunk is filtered: its stored size and filter mask follow.
const FLAG_SINGLE_CHUNK_FILTERED: u8 = 2;

/// A layout message, with what only the dataset's other messages can check.
#[derive(Debug, PartialEq)]
pub(crate) struct StoredLayout {
    /// The layout; the length of contiguous storage is 0 if [`Self::len_from_extent`].
    pub layout: Layout,
    /// Size of an element as the chunk shape tells it.
    pub element_len_bytes: Option<u64>,
    /// The length of contiguous storage follows from extent and type (versions 1 and 2 store it cut to 32 bits).
    pub len_from_extent: bool,
}

impl StoredLayout {
    fn plain(layout: Layout) -> Self {
        Self { layout, element_len_bytes: None, len_from_extent: false }
    }
}

/// Decodes the body of a data layout message.
pub(crate) fn parse(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<StoredLayout, Defect> {
    match cursor.u8()? {
        1 | 2 => parse_old(cursor, encoding),
        version @ 3..=5 => match cursor.u8()? {
            0 => {
                let len = usize::from(cursor.u16()?);
                Ok(StoredLayout::plain(Layout::Compact(InlineData::Stored(cursor.take(len)?.to_vec()))))
            }
            1 => {
                let address = cursor.file_address(encoding)?;
                let len_bytes = cursor.length(encoding)?;
                Ok(StoredLayout::plain(Layout::Contiguous { address, len_bytes }))
            }
            2 if version == 3 => {
                let rank_and_element = usize::from(cursor.u8()?);
                let address = cursor.file_address(encoding)?;
                chunked_btree_v1(cursor, rank_and_element, address)
            }
            2 => parse_chunked(cursor, encoding),
            3 if version >= 4 => Ok(StoredLayout::plain(Layout::Virtual)),
            class => Err(cursor.unsupported(format!("layout class {class}"))),
        },
        version => Err(cursor.unsupported(format!("version {version}"))),
    }
}

fn parse_old(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<StoredLayout, Defect> {
    let rank = usize::from(cursor.u8()?);
    let class = cursor.u8()?;
    cursor.skip(5)?;
    if rank == 0 || rank > MAX_RANK + 1 {
        return Err(cursor.malformed(format!("rank {rank}")));
    }
    match class {
        0 => {
            cursor.skip(4 * rank)?;
            let len = cursor.u32()? as usize;
            Ok(StoredLayout::plain(Layout::Compact(InlineData::Stored(cursor.take(len)?.to_vec()))))
        }
        1 => {
            let address = cursor.file_address(encoding)?;
            cursor.skip(4 * rank)?;
            let layout = Layout::Contiguous { address, len_bytes: 0 };
            Ok(StoredLayout { layout, element_len_bytes: None, len_from_extent: true })
        }
        2 => {
            let address = cursor.file_address(encoding)?;
            chunked_btree_v1(cursor, rank, address)
        }
        _ => Err(cursor.unsupported(format!("layout class {class}"))),
    }
}

fn chunked_btree_v1(
    mut cursor: Cursor<'_>,
    rank_and_element: usize,
    address: Option<u64>,
) -> Result<StoredLayout, Defect> {
    let (chunk_shape, element_len) = chunk_shape(&mut cursor, rank_and_element, 4)?;
    let index = address.map_or(ChunkIndex::None, |address| ChunkIndex::BtreeV1 { address });
    let layout = Layout::Chunked { chunk_shape, index, partial_chunks_unfiltered: false };
    Ok(StoredLayout { layout, element_len_bytes: Some(element_len), len_from_extent: false })
}

/// Chunk shape, and the element size that is stored as its last dimension.
fn chunk_shape(
    cursor: &mut Cursor<'_>,
    rank_and_element: usize,
    dim_len_bytes: usize,
) -> Result<(Vec<u64>, u64), Defect> {
    if !(2..=MAX_RANK + 1).contains(&rank_and_element) {
        return Err(cursor.malformed(format!("chunk rank {rank_and_element}")));
    }
    let shape = (1..rank_and_element).map(|_| cursor.uint(dim_len_bytes)).collect::<Result<Vec<_>, _>>()?;
    let element_len = cursor.uint(dim_len_bytes)?;
    if element_len == 0 || shape.contains(&0) {
        return Err(cursor.malformed(format!("chunk shape {shape:?} with elements of {element_len} bytes")));
    }
    Ok((shape, element_len))
}

fn parse_chunked(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<StoredLayout, Defect> {
    let flags = cursor.u8()?;
    if flags & !(FLAG_PARTIAL_CHUNKS_UNFILTERED | FLAG_SINGLE_CHUNK_FILTERED) != 0 {
        return Err(cursor.unsupported(format!("chunk flags {flags:#04x}")));
    }
    let rank_and_element = usize::from(cursor.u8()?);
    let dim_len_bytes = usize::from(cursor.u8()?);
    if !(1..=8).contains(&dim_len_bytes) {
        return Err(cursor.malformed(format!("chunk dimensions of {dim_len_bytes} bytes")));
    }
    let (chunk_shape, element_len) = chunk_shape(&mut cursor, rank_and_element, dim_len_bytes)?;
    let kind = cursor.u8()?;
    let mut single = (None, 0);
    // Creation parameters of the index follow; the index's own header repeats them.
    match kind {
        1 if flags & FLAG_SINGLE_CHUNK_FILTERED != 0 => single = (Some(cursor.length(encoding)?), cursor.u32()?),
        1 | 2 => {}
        3 => cursor.skip(1)?,
        4 => cursor.skip(5)?,
        5 => cursor.skip(6)?,
        _ => return Err(cursor.unsupported(format!("chunk index type {kind}"))),
    }
    let index = match (kind, cursor.file_address(encoding)?) {
        (_, None) => ChunkIndex::None,
        (1, Some(address)) => ChunkIndex::Single { address, len_bytes: single.0, filter_mask: single.1 },
        (2, Some(address)) => ChunkIndex::Implicit { address },
        (3, Some(address)) => ChunkIndex::FixedArray { address },
        (4, Some(address)) => ChunkIndex::ExtensibleArray { address },
        (_, Some(address)) => ChunkIndex::BtreeV2 { address },
    };
    let partial_chunks_unfiltered = flags & FLAG_PARTIAL_CHUNKS_UNFILTERED != 0;
    let layout = Layout::Chunked { chunk_shape, index, partial_chunks_unfiltered };
    Ok(StoredLayout { layout, element_len_bytes: Some(element_len), len_from_extent: false })
}

/// Slots of an external file list: where the list's heap is, then name offset, file offset and length of each.
struct ExternalSlots {
    heap: u64,
    slots: Vec<(u64, u64, u64)>,
}

fn parse_external(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<ExternalSlots, Defect> {
    cursor.version(1)?;
    cursor.skip(3)?;
    let (allocated, used) = (cursor.u16()?, cursor.u16()?);
    if used > allocated {
        return Err(cursor.malformed(format!("{used} of {allocated} slots used")));
    }
    let heap = cursor.required_address(encoding, "the names")?;
    let mut slots = Vec::new();
    for _ in 0..used {
        slots.push((cursor.length(encoding)?, cursor.length(encoding)?, cursor.length_or_max(encoding)?));
    }
    Ok(ExternalSlots { heap, slots })
}

/// Reads the external file list of a message: the names lie in a local heap.
pub(crate) fn read_external(reader: &mut Reader<'_, '_>, cursor: Cursor<'_>) -> Result<Layout> {
    let list = parse_external(cursor, reader.encoding()).in_file(reader.path())?;
    let heap = LocalHeap::read(reader, list.heap)?;
    let mut files = Vec::new();
    for (name_offset, offset, len_bytes) in list.slots {
        files.push((heap.string(reader, name_offset)?, offset, len_bytes));
    }
    Ok(Layout::External { files })
}
