//! Data layout messages, versions 1 to 5, and external file lists.
//!
//! Chunk indexes are read by [`crate::read`]. Invariant: a chunk shape has no zero, and all addresses are absolute.

use super::cursor::{Cursor, Defect, Encoding, InFile};
use super::dataspace::MAX_RANK;
use super::reader::ByteReader;
use super::symbol_table::LocalHeap;
use crate::error::Result;
use crate::model::{ChunkIndex, InlineData, Layout};

/// Flag: edge chunks that extend beyond the dataset are not filtered.
const FLAG_PARTIAL_CHUNKS_UNFILTERED: u8 = 1;
/// Flag: the single chunk is filtered; its stored size and filter mask follow.
const FLAG_SINGLE_CHUNK_FILTERED: u8 = 2;

/// A layout message, with values that must be checked against the dataset's other messages.
#[derive(Debug, PartialEq)]
pub(crate) struct StoredLayout {
    /// The layout; the length of contiguous storage is 0 if [`Self::len_from_extent`] is set.
    pub layout: Layout,
    /// Size of an element according to the chunk shape.
    pub element_len_bytes: Option<u64>,
    /// Whether the length of contiguous storage must be computed from extent and type (versions 1 and 2 store it
    /// truncated to 32 bits).
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

/// Reads the chunk shape, and the element size that is stored as its last dimension.
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
    // Creation parameters of the index follow, which are repeated in the index's own header.
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

/// Slots of an external file list: address of the list's heap, then name offset, file offset and length of each file.
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

/// Reads the external file list of a message, whose names are in a local heap.
pub(crate) fn read_external(reader: &mut ByteReader<'_, '_>, cursor: Cursor<'_>) -> Result<Layout> {
    let list = parse_external(cursor, reader.encoding()).in_file(reader.path())?;
    let heap = LocalHeap::read(reader, list.heap)?;
    let mut files = Vec::new();
    for (name_offset, offset, len_bytes) in list.slots {
        files.push((heap.string(reader, name_offset)?, offset, len_bytes));
    }
    Ok(Layout::External { files })
}

#[cfg(test)]
mod tests {
    use super::super::damage::{ADDRESS, WIDE, check, le};
    use super::*;

    fn parsed(fields: &[(u64, usize)]) -> StoredLayout {
        check(&le(fields), |cursor| parse(cursor, &WIDE))
    }

    fn chunked(index: ChunkIndex, partial_chunks_unfiltered: bool) -> StoredLayout {
        let layout = Layout::Chunked { chunk_shape: vec![128, 5], index, partial_chunks_unfiltered };
        StoredLayout { layout, element_len_bytes: Some(4), len_from_extent: false }
    }

    #[test]
    fn version_3() {
        let compact = parsed(&[(3, 1), (0, 1), (3, 2), (0x03_02_01, 3)]);
        assert_eq!(compact, StoredLayout::plain(Layout::Compact(InlineData::Stored(vec![1, 2, 3]))));
        let contiguous = parsed(&[(3, 1), (1, 1), (u64::MAX, 8), (80, 8)]);
        assert_eq!(contiguous, StoredLayout::plain(Layout::Contiguous { address: None, len_bytes: 80 }));
        let fields = [(3, 1), (2, 1), (3, 1), (2048, 8), (128, 4), (5, 4), (4, 4)];
        assert_eq!(parsed(&fields), chunked(ChunkIndex::BtreeV1 { address: 2048 }, false));
    }

    #[test]
    fn versions_1_and_2() {
        let contiguous = parsed(&[(1, 1), (2, 1), (1, 1), (0, 5), (2048, 8), (3, 4), (4, 4)]);
        let layout = Layout::Contiguous { address: Some(2048), len_bytes: 0 };
        assert_eq!(contiguous, StoredLayout { layout, element_len_bytes: None, len_from_extent: true });
        let fields = [(2, 1), (3, 1), (2, 1), (0, 5), (u64::MAX, 8), (128, 4), (5, 4), (4, 4)];
        assert_eq!(parsed(&fields), chunked(ChunkIndex::None, false));
        let compact = parsed(&[(1, 1), (1, 1), (0, 1), (0, 5), (2, 4), (2, 4), (0x0201, 2)]);
        assert_eq!(compact, StoredLayout::plain(Layout::Compact(InlineData::Stored(vec![1, 2]))));
    }

    #[test]
    fn version_4_indexes() {
        let shape = [(3, 1), (1, 1), (128, 1), (5, 1), (4, 1)];
        let of = |flags: u64, kind: u64, parameters: &[(u64, usize)]| {
            let mut fields = vec![(4, 1), (2, 1), (flags, 1)];
            fields.extend_from_slice(&shape);
            fields.push((kind, 1));
            fields.extend_from_slice(parameters);
            fields.push((4096, 8));
            parsed(&fields)
        };
        let address = 4096;
        let single = |len_bytes, filter_mask| ChunkIndex::Single { address, len_bytes, filter_mask };
        assert_eq!(of(0, 1, &[]), chunked(single(None, 0), false));
        assert_eq!(of(2, 1, &[(99, 8), (1, 4)]), chunked(single(Some(99), 1), false));
        assert_eq!(of(0, 2, &[]), chunked(ChunkIndex::Implicit { address }, false));
        assert_eq!(of(1, 3, &[(10, 1)]), chunked(ChunkIndex::FixedArray { address }, true));
        assert_eq!(
            of(0, 4, &[(32, 1), (4, 1), (4, 1), (16, 1), (10, 1)]),
            chunked(ChunkIndex::ExtensibleArray { address }, false)
        );
        assert_eq!(of(0, 5, &[(2048, 4), (100, 1), (40, 1)]), chunked(ChunkIndex::BtreeV2 { address }, false));
    }

    #[test]
    fn zero_chunks_and_unknown_kinds_are_refused() {
        let parse = |fields: &[(u64, usize)]| parse(Cursor::new(&le(fields), ADDRESS, "layout"), &WIDE);
        assert!(parse(&[(3, 1), (2, 1), (3, 1), (2048, 8), (128, 4), (0, 4), (4, 4)]).is_err());
        assert!(matches!(parse(&[(6, 1), (1, 1)]), Err(Defect::Unsupported { .. })));
        let kind_9 = [(4, 1), (2, 1), (0, 1), (2, 1), (1, 1), (8, 1), (4, 1), (9, 1), (0, 8)];
        assert!(matches!(parse(&kind_9), Err(Defect::Unsupported { .. })));
    }

    #[test]
    fn external_slots() {
        let fields = [(1, 1), (0, 3), (4, 2), (1, 2), (512, 8), (8, 8), (100, 8), (u64::MAX, 8)];
        let list = check(&le(&fields), |cursor| parse_external(cursor, &WIDE));
        assert_eq!((list.heap, list.slots), (512, vec![(8, 100, u64::MAX)]));
    }
}
