//! Fractal heaps, which store dense links, dense attributes and shared messages.
//!
//! Objects are managed (in blocks of a doubling table), huge (stored separately) or tiny (in their id). Heaps with
//! filters are not supported. Invariants: blocks have correct checksums and name their heap; an object lies inside one
//! block.

use super::btree_v2::{Records, record};
use super::checksum::{lookup3, verified};
use super::cursor::{Cursor, Defect, Encoding, InFile, encoded_len};
use super::reader::ByteReader;
use crate::error::Result;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Header flag: direct blocks carry checksums.
const FLAG_DIRECT_CHECKSUMS: u8 = 0x02;

/// Maximum length of a tiny object whose length is stored in four bits of the id.
const SHORT_TINY_LEN_BYTES: usize = 16;

/// Sizes that determine the location of managed objects; see "Doubling Table" in the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DoublingTable {
    width: u64,
    start_len: u64,
    max_direct_len: u64,
    /// Number of rows of an indirect block that hold direct blocks.
    direct_rows: u64,
    root: Option<u64>,
    /// Number of rows of the root if it is an indirect block; 0 if it is a direct block.
    root_rows: u64,
}

impl DoublingTable {
    /// Locates a heap offset: row, column, and the offset inside that block.
    fn locate(&self, offset: u64) -> (u64, u64, u64) {
        let first_row_len = self.width * self.start_len;
        let row = match offset / first_row_len {
            0 => 0,
            quotient => u64::from(quotient.ilog2()) + 1,
        };
        let row_start = if row == 0 { 0 } else { first_row_len << (row - 1) };
        let block_len = self.block_len(row);
        (row, (offset - row_start) / block_len, (offset - row_start) % block_len)
    }

    /// Returns the length of the blocks in a row. Rows 0 and 1 are alike; the row was computed from an offset, so the
    /// shift fits.
    fn block_len(&self, row: u64) -> u64 {
        self.start_len << row.saturating_sub(1)
    }

    /// Returns the number of rows of the indirect block that covers `block_len` bytes of heap.
    fn rows_of(&self, block_len: u64) -> Option<u64> {
        let first_row_len = self.width * self.start_len;
        Some(u64::from((block_len / first_row_len).checked_ilog2()?) + 1)
    }
}

/// A heap whose header was read, with a cache of its blocks.
#[derive(Debug)]
pub(crate) struct FractalHeap {
    address: u64,
    id_len: usize,
    offset_len: usize,
    length_len: usize,
    max_managed_len: u64,
    direct_checksums: bool,
    huge_index: Option<u64>,
    table: DoublingTable,
    /// Children of the indirect blocks read so far.
    indirect: HashMap<u64, Vec<Option<u64>>>,
    /// Direct blocks checked so far, which are intact.
    direct: HashSet<u64>,
    /// Huge objects by number: address and length.
    huge: Option<HashMap<u64, (u64, u64)>>,
}

impl FractalHeap {
    /// Reads the header at `address`; ids must have `id_len` bytes.
    pub fn read(reader: &mut ByteReader<'_, '_>, address: u64, id_len: usize) -> Result<Self> {
        const WHAT: &str = "fractal heap header";
        let (path, encoding) = (reader.path(), reader.encoding());
        let len = 4 + 1 + 2 + 2 + 1 + 4 + 12 * encoding.length_len() + 3 * encoding.address_len() + 2 + 2 + 2 + 2 + 4;
        let bytes = reader.bytes(address, len as u64, WHAT)?;
        // A header with filters is longer and would fail its checksum here, so its flag is checked first.
        let mut probe = Cursor::new(bytes, address, WHAT);
        let filtered = probe.skip(7).and_then(|()| probe.u16()).in_file(path)?;
        if filtered != 0 {
            return Err(probe.unsupported("filtered blocks").in_file(path));
        }
        verified(bytes, address, WHAT)
            .and_then(|body| Self::parse(Cursor::new(body, address, WHAT), encoding, address, id_len))
            .in_file(path)
    }

    fn parse(mut cursor: Cursor<'_>, encoding: &Encoding, address: u64, expected_id: usize) -> Result<Self, Defect> {
        cursor.signature(b"FRHP")?;
        cursor.version(0)?;
        let id_len = usize::from(cursor.u16()?);
        if id_len != expected_id {
            return Err(cursor.malformed(format!("ids of {id_len} bytes where {expected_id} are expected")));
        }
        // Length of the filter information: 0.
        cursor.skip(2)?;
        let flags = cursor.u8()?;
        let max_managed_len = u64::from(cursor.u32()?);
        // Next number of a huge object.
        cursor.length(encoding)?;
        let huge_index = cursor.file_address(encoding)?;
        // Free space, if managed, and statistics: managed space, allocated space, iterator, managed objects, size and
        // number of huge objects, size and number of tiny objects.
        cursor.length(encoding)?;
        cursor.file_address(encoding)?;
        cursor.skip(8 * encoding.length_len())?;
        let width = u64::from(cursor.u16()?);
        let (start_len, max_direct_len) = (cursor.length(encoding)?, cursor.length(encoding)?);
        let max_heap_bits = cursor.u16()?;
        // Number of rows that the first root indirect block had.
        cursor.skip(2)?;
        let root = cursor.file_address(encoding)?;
        let root_rows = u64::from(cursor.u16()?);
        let fits = width.is_power_of_two()
            && start_len.is_power_of_two()
            && max_direct_len.is_power_of_two()
            && start_len <= max_direct_len
            && max_heap_bits <= 64
            && width.ilog2() + max_direct_len.ilog2() < 63
            && root_rows <= 64;
        if !fits {
            return Err(cursor.malformed(format!(
                "table of width {width}, blocks of {start_len} to {max_direct_len} bytes, {max_heap_bits} bits, \
                 {root_rows} rows"
            )));
        }
        let direct_rows = u64::from(max_direct_len.ilog2() - start_len.ilog2()) + 2;
        Ok(Self {
            address,
            id_len,
            offset_len: usize::from(max_heap_bits).div_ceil(8),
            length_len: (max_direct_len.ilog2() as usize).div_ceil(8).max(1).min(encoded_len(max_managed_len)),
            max_managed_len,
            direct_checksums: flags & FLAG_DIRECT_CHECKSUMS != 0,
            huge_index,
            table: DoublingTable { width, start_len, max_direct_len, direct_rows, root, root_rows },
            indirect: HashMap::new(),
            direct: HashSet::new(),
            huge: None,
        })
    }

    /// Reads the object with this id into `out`; returns its absolute file offset, or the offset of the heap for a tiny
    /// object.
    pub fn get(&mut self, reader: &mut ByteReader<'_, '_>, id: &[u8], out: &mut Vec<u8>) -> Result<u64> {
        let path = reader.path();
        let mut cursor = Cursor::new(id, self.address, "fractal heap id");
        let flags = cursor.u8().in_file(path)?;
        if flags >> 6 != 0 {
            return Err(cursor.unsupported(format!("version {}", flags >> 6)).in_file(path));
        }
        match flags >> 4 & 3 {
            0 => {
                let place = (|| Ok((cursor.uint(self.offset_len)?, cursor.uint(self.length_len)?)))();
                let (offset, len) = place.in_file(path)?;
                if len == 0 || len > self.max_managed_len {
                    return Err(cursor.malformed(format!("managed object of {len} bytes")).in_file(path));
                }
                let address = self.managed(reader, offset, len)?;
                reader.bytes_into(address, len, "managed object of a fractal heap", out)?;
                Ok(address)
            }
            1 => {
                let (address, len) = self.huge(reader, cursor)?;
                reader.bytes_into(address, len, "huge object of a fractal heap", out)?;
                Ok(address)
            }
            2 => {
                let len = if self.id_len <= SHORT_TINY_LEN_BYTES + 2 {
                    usize::from(flags & 0x0f)
                } else {
                    usize::from(flags & 0x0f) << 8 | usize::from(cursor.u8().in_file(path)?)
                };
                out.clear();
                out.extend_from_slice(cursor.take(len + 1).in_file(path)?);
                Ok(self.address)
            }
            kind => Err(cursor.unsupported(format!("object type {kind}")).in_file(path)),
        }
    }

    /// Returns the address and length of a huge object.
    fn huge(&mut self, reader: &mut ByteReader<'_, '_>, mut id: Cursor<'_>) -> Result<(u64, u64)> {
        let (path, encoding) = (reader.path(), reader.encoding());
        if id.remaining() >= encoding.address_len() + encoding.length_len() {
            let place = (|| Ok((id.required_address(encoding, "a huge object")?, id.length(encoding)?)))();
            return place.in_file(path);
        }
        let number = id.uint(id.remaining().min(8)).in_file(path)?;
        if self.huge.is_none() {
            self.huge = Some(read_huge_index(reader, self.huge_index, &id)?);
        }
        let found = self.huge.as_ref().and_then(|huge| huge.get(&number));
        found.copied().ok_or_else(|| id.malformed(format!("no huge object {number}")).in_file(path))
    }

    /// Returns the address of `len` bytes at `offset` of the managed space.
    fn managed(&mut self, reader: &mut ByteReader<'_, '_>, offset: u64, len: u64) -> Result<u64> {
        let path = reader.path();
        let outside = |what: &str, address: u64| {
            let what = format!("fractal heap: object at offset {offset}, {len} bytes: {what}");
            Defect::Malformed { address, what }.in_file(path)
        };
        let no_block = || outside("no such block", self.address);
        let mut block = self.table.root.ok_or_else(no_block)?;
        let mut rows = self.table.root_rows;
        let (mut inner, mut block_start, mut block_len) = (offset, 0, self.table.start_len);
        // Each step leads to a block of a lower row, so there are at most as many steps as rows.
        while rows > 0 {
            let (row, column, rest) = self.table.locate(inner);
            if row >= rows {
                return Err(no_block());
            }
            if !self.indirect.contains_key(&block) {
                let children = self.read_indirect(reader, block, block_start, rows)?;
                self.indirect.insert(block, children);
            }
            let child = self.indirect[&block].get((row * self.table.width + column) as usize);
            let child = child.copied().flatten().ok_or_else(no_block)?;
            block_start += inner - rest;
            block_len = self.table.block_len(row);
            (block, inner) = (child, rest);
            if row < self.table.direct_rows {
                break;
            }
            rows = self.table.rows_of(block_len).filter(|&below| below < rows).ok_or_else(no_block)?;
        }
        if inner.checked_add(len).is_none_or(|end| end > block_len) {
            return Err(outside("exceeds its block", block));
        }
        if !self.direct.contains(&block) {
            self.check_direct(reader, block, block_start, block_len)?;
            self.direct.insert(block);
        }
        block.checked_add(inner).ok_or_else(|| outside("its address overflows", block))
    }

    /// Reads the children of an indirect block.
    fn read_indirect(
        &self,
        reader: &mut ByteReader<'_, '_>,
        address: u64,
        start: u64,
        rows: u64,
    ) -> Result<Vec<Option<u64>>> {
        const WHAT: &str = "fractal heap indirect block";
        let (path, encoding) = (reader.path(), reader.encoding());
        // At most 64 rows of at most 2^15 columns.
        let count = rows * self.table.width;
        let len = 5 + encoding.address_len() + self.offset_len + encoding.address_len() * count as usize + 4;
        let bytes = reader.bytes(address, len as u64, WHAT)?;
        let children = verified(bytes, address, WHAT).and_then(|body| {
            let mut cursor = Cursor::new(body, address, WHAT);
            self.check_block_head(&mut cursor, b"FHIB", encoding, start)?;
            (0..count).map(|_| cursor.file_address(encoding)).collect()
        });
        children.in_file(path)
    }

    /// Checks the head and checksum of a direct block.
    fn check_direct(&self, reader: &mut ByteReader<'_, '_>, address: u64, start: u64, len: u64) -> Result<()> {
        const WHAT: &str = "fractal heap direct block";
        let (path, encoding) = (reader.path(), reader.encoding());
        let head_len = 5 + encoding.address_len() + self.offset_len + if self.direct_checksums { 4 } else { 0 };
        let read_len = if self.direct_checksums { len } else { head_len as u64 };
        let bytes = reader.bytes(address, read_len, WHAT)?;
        let mut cursor = Cursor::new(bytes, address, WHAT);
        self.check_block_head(&mut cursor, b"FHDB", encoding, start).in_file(path)?;
        if self.direct_checksums {
            check_direct_checksum(bytes, head_len, address, path)?;
        }
        Ok(())
    }

    fn check_block_head(
        &self,
        cursor: &mut Cursor<'_>,
        signature: &[u8; 4],
        encoding: &Encoding,
        start: u64,
    ) -> Result<(), Defect> {
        cursor.signature(signature)?;
        cursor.version(0)?;
        let heap = cursor.file_address(encoding)?;
        let stored_start = cursor.uint(self.offset_len)?;
        if heap != Some(self.address) || stored_start != start {
            return Err(
                cursor.malformed(format!("block of another heap or place (offset {stored_start}, not {start})"))
            );
        }
        Ok(())
    }
}

/// Checks the checksum of a direct block, which follows its head and is computed with its own field set to zero.
fn check_direct_checksum(block: &[u8], head_len: usize, address: u64, path: &Path) -> Result<()> {
    let mut zeroed = block.to_vec();
    let field = head_len - 4..head_len;
    let stored = Cursor::new(&block[field.clone()], address, "fractal heap direct block").u32().in_file(path)?;
    zeroed[field].fill(0);
    let computed = lookup3(&zeroed);
    if stored != computed {
        let what = format!("fractal heap direct block: checksum {computed:08x} computed, {stored:08x} stored");
        return Err(Defect::Malformed { address, what }.in_file(path));
    }
    Ok(())
}

/// Reads the index of huge objects.
fn read_huge_index(
    reader: &mut ByteReader<'_, '_>,
    index: Option<u64>,
    id: &Cursor<'_>,
) -> Result<HashMap<u64, (u64, u64)>> {
    let (path, encoding) = (reader.path(), reader.encoding());
    let index = index.ok_or_else(|| id.malformed("the heap has no huge objects").in_file(path))?;
    let records = Records::read(reader, index, record::HUGE_BY_NUMBER)?;
    let objects = records.iter().map(|mut record| {
        let address = record.required_address(encoding, "a huge object")?;
        let len = record.length(encoding)?;
        Ok((record.length(encoding)?, (address, len)))
    });
    objects.collect::<Result<_, _>>().in_file(path)
}

#[cfg(test)]
mod tests {
    use super::super::damage::{ADDRESS, WIDE, check, le};
    use super::*;

    /// Creates a header as libhdf5 does for links.
    fn header() -> Vec<u8> {
        let mut bytes = b"FRHP".to_vec();
        bytes.extend(le(&[(0, 1), (7, 2), (0, 2), (2, 1), (4096, 4), (0, 8), (u64::MAX, 8), (100, 8), (800, 8)]));
        bytes.extend(le(&[(0, 64), (4, 2), (512, 8), (65_536, 8), (32, 2), (1, 2), (900, 8), (3, 2)]));
        bytes
    }

    #[test]
    fn header_of_a_link_heap() {
        let heap = check(&header(), |cursor| FractalHeap::parse(cursor, &WIDE, ADDRESS, 7));
        assert_eq!((heap.offset_len, heap.length_len, heap.direct_checksums), (4, 2, true));
        let table = DoublingTable {
            width: 4,
            start_len: 512,
            max_direct_len: 65_536,
            direct_rows: 9,
            root: Some(900),
            root_rows: 3,
        };
        assert_eq!(heap.table, table);
    }

    #[test]
    fn the_doubling_table_covers_the_heap_without_gaps() {
        let table = FractalHeap::parse(Cursor::new(&header(), ADDRESS, "heap"), &WIDE, ADDRESS, 7).unwrap().table;
        let mut start = 0;
        for row in 0..20 {
            for column in 0..table.width {
                let len = table.block_len(row);
                assert_eq!(table.locate(start), (row, column, 0));
                assert_eq!(table.locate(start + len - 1), (row, column, len - 1));
                start += len;
            }
        }
        // An indirect block in row 9 covers 128 KiB, as much as its rows 0 to 6 hold.
        assert_eq!(table.rows_of(table.block_len(9)), Some(7));
        assert_eq!(table.rows_of(table.start_len), None);
        assert_eq!(table.locate(u64::MAX).0, 53);
    }
}
