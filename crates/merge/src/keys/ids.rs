//! Ids of events as comparable numbers: integer columns of any width, sign and byte order, decoded to 64 bits.
//!
//! Tuples are stored by column, so that a block of rows is decoded and compared without a branch per row. Invariant:
//! ids compare in the same way as the numbers that they represent, whatever types their columns have.

use crate::error::{MergeError, Result};
use crate::plan::MergePlan;
use crate::schema::{ColumnIndex, display_path};
use crate::write::values::ColumnReader;
use raddle_hdf5::model::{ByteOrder, TypeClass};
use std::cmp::Ordering;
use std::ops::Range;

/// Number added to signed numbers so that they compare like unsigned ones.
const BIAS: u64 = 1 << 63;
/// Maximum number of elements per row of an id column. Ids have a few (run, subrun, event); this limit rejects images.
const MAX_CONSECUTIVE: u64 = 16;

/// Mapping to 64 bits of the numbers at one position of the tuples of all tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// All numbers fit a signed type.
    Signed,
    /// Some column is unsigned with 64 bits, so no id may be negative.
    Unsigned,
}

impl Domain {
    /// Returns the number that `id` represents, for messages.
    pub fn number(self, id: u64) -> i128 {
        match self {
            Self::Signed => i128::from((id ^ BIAS) as i64),
            Self::Unsigned => i128::from(id),
        }
    }
}

/// One component of the ids: a column, or one position in its rows.
#[derive(Debug, Clone, Copy)]
struct IdColumn {
    column: ColumnIndex,
    /// Position in the row. The next field is the number of elements per row.
    place: usize,
    row_elements: usize,
    len_bytes: usize,
    is_big_endian: bool,
    is_signed: bool,
    domain: Domain,
}

/// Buffers for reading runs, which are reused.
#[derive(Debug, Default)]
pub struct RunBuffers {
    whole_rows: Vec<u8>,
    raw: Vec<Vec<u8>>,
    is_start: Vec<bool>,
    /// Beginning of each run, as a row relative to the first that was read.
    pub starts: Vec<u32>,
    raw_of_starts: Vec<u8>,
}

/// Id columns of one table.
#[derive(Debug, Clone)]
pub struct IdTable {
    columns: Vec<IdColumn>,
    /// Number of rows of the table.
    pub rows: u64,
}

/// Tuples of ids, column by column.
#[derive(Debug, Clone, Default)]
pub struct Ids {
    columns: Vec<Vec<u64>>,
}

impl Ids {
    /// Creates an empty list of tuples with `width` ids each.
    pub fn new(width: usize) -> Self {
        Self { columns: vec![Vec::new(); width] }
    }

    /// Returns the number of tuples.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Returns whether there are no tuples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Compares tuple `at` with tuple `other_at` of `other`.
    pub fn order(&self, at: usize, other: &Self, other_at: usize) -> Ordering {
        for (column, other) in self.columns.iter().zip(&other.columns) {
            match column[at].cmp(&other[other_at]) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        Ordering::Equal
    }

    /// Appends tuple `at` of `other`.
    pub fn push(&mut self, other: &Self, at: usize) {
        for (column, other) in self.columns.iter_mut().zip(&other.columns) {
            column.push(other[at]);
        }
    }

    /// Appends all tuples of `other`.
    pub fn append(&mut self, other: &Self) {
        for (column, other) in self.columns.iter_mut().zip(&other.columns) {
            column.extend_from_slice(other);
        }
    }

    /// Returns the number of ids in a tuple.
    pub fn tuple_len(&self) -> usize {
        self.columns.len()
    }

    /// Reserves capacity for exactly `tuples` more tuples.
    pub fn reserve(&mut self, tuples: usize) {
        self.columns.iter_mut().for_each(|column| column.reserve_exact(tuples));
    }

    /// Removes all tuples.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
    }

    /// Returns the first id of tuple `at`.
    pub fn first(&self, at: usize) -> u64 {
        self.columns[0][at]
    }

    /// Returns tuple `at`.
    pub fn tuple(&self, at: usize) -> Vec<u64> {
        self.columns.iter().map(|column| column[at]).collect()
    }

    /// Appends a tuple.
    pub fn push_tuple(&mut self, tuple: &[u64]) {
        for (column, id) in self.columns.iter_mut().zip(tuple) {
            column.push(*id);
        }
    }

    /// Returns the positions of the tuples in ascending order of the tuples; equal ones keep their order.
    pub fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_by(|&left, &right| self.order(left as usize, self, right as usize));
        order
    }
}

impl IdTable {
    /// Describes the id columns of a table, without their domains.
    ///
    /// # Errors
    /// If a column does not hold whole numbers, or the columns have different numbers of rows.
    pub fn of(plan: &MergePlan, columns: &[ColumnIndex]) -> Result<Self> {
        let mut decoded = Vec::with_capacity(columns.len());
        let rows = plan.columns[columns[0] as usize].dims[0];
        for &column in columns {
            let refuse = |reason: String| MergeError::Object {
                object: display_path(plan.schema.column_path(column)),
                reason: format!("{reason}; it cannot be a key"),
            };
            let dims = &plan.columns[column as usize].dims;
            let row_elements = dims[1..].iter().product::<u64>();
            if !(1..=MAX_CONSECUTIVE).contains(&row_elements) {
                return Err(refuse(format!("has {row_elements} numbers per row, not 1 to {MAX_CONSECUTIVE}")));
            }
            if dims[0] != rows {
                return Err(refuse(format!("has {} rows, but other keys of its group have {rows}", dims[0])));
            }
            let class = &plan.schema.columns[column as usize].model().datatype.class;
            let first = IdColumn::of(column, class, row_elements as usize).ok_or_else(|| {
                refuse(format!("is {}, not a plain integer of up to 8 bytes", crate::schema::join::describe(class)))
            })?;
            decoded.extend((0..first.row_elements).map(|place| IdColumn { place, ..first }));
        }
        Ok(Self { columns: decoded, rows })
    }

    /// Determines a common domain over all `tables` for each position of the tuple.
    pub fn set_domains(tables: &mut [Self]) -> Vec<Domain> {
        let width = tables.first().map_or(0, |table| table.columns.len());
        let domains: Vec<Domain> = (0..width)
            .map(|place| {
                let is_wide = |table: &Self| !table.columns[place].is_signed && table.columns[place].len_bytes == 8;
                if tables.iter().any(is_wide) { Domain::Unsigned } else { Domain::Signed }
            })
            .collect();
        for table in tables {
            for (column, domain) in table.columns.iter_mut().zip(&domains) {
                column.domain = *domain;
            }
        }
        domains
    }

    /// Returns the numbers per row of each column.
    pub fn row_elements(&self) -> Vec<usize> {
        self.columns.iter().filter(|column| column.place == 0).map(|column| column.row_elements).collect()
    }

    /// Returns the number of ids in a tuple.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Returns the memory for decoding and holding one row.
    pub fn row_len_bytes(&self) -> u64 {
        self.columns.iter().map(|column| 8 + column.len_bytes as u64).sum()
    }

    /// Reads the ids of `rows` into `ids`, replacing its contents. `raw` is a work buffer.
    pub fn read(
        &self,
        reader: &mut ColumnReader<'_>,
        plan: &MergePlan,
        rows: Range<u64>,
        raw: &mut Vec<u8>,
        ids: &mut Ids,
    ) -> Result<()> {
        let mut whole_rows = Vec::new();
        for (column, out) in self.columns.iter().zip(&mut ids.columns) {
            column.read(reader, rows.clone(), &mut whole_rows, raw)?;
            column.decode_into(plan, raw, out)?;
        }
        Ok(())
    }

    /// Reads ids like [`IdTable::read`], but only the first of consecutive rows with equal ids. Most rows of a table
    /// equal the previous row, and are recognised as such without being decoded.
    pub fn read_runs(
        &self,
        reader: &mut ColumnReader<'_>,
        plan: &MergePlan,
        rows: Range<u64>,
        room: &mut RunBuffers,
        ids: &mut Ids,
    ) -> Result<()> {
        let count = (rows.end - rows.start) as usize;
        room.raw.resize_with(self.columns.len(), Vec::new);
        room.is_start.clear();
        room.is_start.resize(count, false);
        for (column, raw) in self.columns.iter().zip(&mut room.raw) {
            column.read(reader, rows.clone(), &mut room.whole_rows, raw)?;
            column.mark_changes(raw, &mut room.is_start);
        }
        room.is_start.iter_mut().take(1).for_each(|first| *first = true);
        let starts = room.is_start.iter().enumerate().filter(|(_, is_start)| **is_start);
        room.starts.clear();
        room.starts.extend(starts.map(|(row, _)| row as u32));
        for ((column, raw), out) in self.columns.iter().zip(&room.raw).zip(&mut ids.columns) {
            room.raw_of_starts.clear();
            for &start in &room.starts {
                room.raw_of_starts.extend_from_slice(&raw[start as usize * column.len_bytes..][..column.len_bytes]);
            }
            column.decode_into(plan, &room.raw_of_starts, out)?;
        }
        Ok(())
    }
}

impl IdColumn {
    /// Describes the first component of a column.
    fn of(column: ColumnIndex, class: &TypeClass, row_elements: usize) -> Option<Self> {
        match class {
            TypeClass::Integer { len_bytes: len_bytes @ 1..=8, order, signed, bits, .. }
                if bits.offset == 0 && bits.count == len_bytes * 8 && *order != ByteOrder::Vax =>
            {
                Some(Self {
                    column,
                    place: 0,
                    row_elements,
                    len_bytes: *len_bytes as usize,
                    is_big_endian: *order == ByteOrder::Big,
                    is_signed: *signed,
                    domain: Domain::Signed,
                })
            }
            _ => None,
        }
    }

    /// Reads the component's elements of `rows` into `raw`. A column with several numbers per row is read into
    /// `whole_rows` once, for its first component.
    fn read(
        &self,
        reader: &mut ColumnReader<'_>,
        rows: Range<u64>,
        whole_rows: &mut Vec<u8>,
        raw: &mut Vec<u8>,
    ) -> Result<()> {
        let (count, row_len_bytes) = ((rows.end - rows.start) as usize, self.row_elements * self.len_bytes);
        let target = if self.row_elements == 1 { &mut *raw } else { &mut *whole_rows };
        if self.place == 0 {
            target.resize(count * row_len_bytes, 0);
            reader.read_rows(self.column, rows, target)?;
        }
        if self.row_elements > 1 {
            raw.clear();
            let place = self.place * self.len_bytes..(self.place + 1) * self.len_bytes;
            whole_rows.chunks_exact(row_len_bytes).for_each(|row| raw.extend_from_slice(&row[place.clone()]));
        }
        Ok(())
    }

    /// Marks the elements of `raw` that differ from the previous one.
    fn mark_changes(&self, raw: &[u8], is_start: &mut [bool]) {
        fn mark<const LEN_BYTES: usize>(raw: &[u8], is_start: &mut [bool]) {
            let elements = raw.as_chunks::<LEN_BYTES>().0;
            let pairs = elements.iter().zip(elements.iter().skip(1));
            // Without a branch, so that several elements are compared at once.
            for (is_start, (above, element)) in is_start.iter_mut().skip(1).zip(pairs) {
                *is_start |= above != element;
            }
        }
        match self.len_bytes {
            1 => mark::<1>(raw, is_start),
            2 => mark::<2>(raw, is_start),
            4 => mark::<4>(raw, is_start),
            8 => mark::<8>(raw, is_start),
            len_bytes => {
                let elements = || raw.chunks_exact(len_bytes);
                for (is_start, (above, element)) in is_start.iter_mut().skip(1).zip(elements().zip(elements().skip(1)))
                {
                    *is_start |= above != element;
                }
            }
        }
    }

    /// Replaces the contents of `out` with the ids in `raw`.
    fn decode_into(&self, plan: &MergePlan, raw: &[u8], out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        self.decode(raw, out).ok_or_else(|| MergeError::Object {
            object: display_path(plan.schema.column_path(self.column)),
            reason: "holds negative ids, and the key has unsigned 64-bit ids in another group".to_owned(),
        })
    }

    /// Appends the ids in `raw`; returns `None` if one is negative and must not be.
    fn decode(&self, raw: &[u8], out: &mut Vec<u64>) -> Option<()> {
        match (self.len_bytes, self.is_big_endian, self.is_signed, self.domain) {
            // The most common type in files, which deserves a loop without branches.
            (4, false, false, Domain::Signed) => {
                out.extend(raw.as_chunks::<4>().0.iter().map(|bytes| u64::from(u32::from_le_bytes(*bytes)) ^ BIAS));
            }
            (4, false, true, Domain::Signed) => {
                let number = |bytes: &[u8; 4]| i64::from(i32::from_le_bytes(*bytes)) as u64 ^ BIAS;
                out.extend(raw.as_chunks::<4>().0.iter().map(number));
            }
            (8, false, true, Domain::Signed) => {
                out.extend(raw.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes) ^ BIAS));
            }
            _ => {
                for element in raw.chunks_exact(self.len_bytes) {
                    out.push(self.decode_one(element)?);
                }
            }
        }
        Some(())
    }

    fn decode_one(&self, element: &[u8]) -> Option<u64> {
        let mut bytes = [0; 8];
        bytes[..element.len()].copy_from_slice(element);
        if self.is_big_endian {
            bytes[..element.len()].reverse();
        }
        let unused_bits = 64 - 8 * element.len() as u32;
        let shifted = u64::from_le_bytes(bytes) << unused_bits;
        let number = if self.is_signed { (shifted as i64 >> unused_bits) as u64 } else { shifted >> unused_bits };
        match self.domain {
            Domain::Signed => Some(number ^ BIAS),
            Domain::Unsigned if self.is_signed && (number as i64) < 0 => None,
            Domain::Unsigned => Some(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(
        len_bytes: usize,
        is_big_endian: bool,
        is_signed: bool,
        domain: Domain,
        raw: &[u8],
    ) -> Option<Vec<i128>> {
        let column = IdColumn { column: 0, place: 0, row_elements: 1, len_bytes, is_big_endian, is_signed, domain };
        let mut out = Vec::new();
        column.decode(raw, &mut out)?;
        Some(out.into_iter().map(|id| domain.number(id)).collect())
    }

    #[test]
    fn numbers_of_every_width_sign_and_order_are_themselves() {
        use Domain::{Signed, Unsigned};
        assert_eq!(decoded(1, false, true, Signed, &[0x80, 0, 0x7F]).unwrap(), [-128, 0, 127]);
        assert_eq!(decoded(1, false, false, Signed, &[0x80, 0xFF]).unwrap(), [128, 255]);
        assert_eq!(decoded(2, true, true, Signed, &[0xFF, 0xFE, 1, 0]).unwrap(), [-2, 256]);
        assert_eq!(decoded(3, false, true, Signed, &[0xFF, 0xFF, 0xFF]).unwrap(), [-1]);
        assert_eq!(decoded(4, false, false, Signed, &u32::MAX.to_le_bytes()).unwrap(), [i128::from(u32::MAX)]);
        assert_eq!(decoded(4, false, true, Signed, &(-5_i32).to_le_bytes()).unwrap(), [-5]);
        assert_eq!(decoded(4, true, true, Signed, &(-5_i32).to_be_bytes()).unwrap(), [-5]);
        assert_eq!(decoded(8, false, true, Signed, &i64::MIN.to_le_bytes()).unwrap(), [i128::from(i64::MIN)]);
        assert_eq!(decoded(8, true, false, Unsigned, &u64::MAX.to_be_bytes()).unwrap(), [i128::from(u64::MAX)]);
        assert_eq!(decoded(4, false, true, Unsigned, &7_i32.to_le_bytes()).unwrap(), [7]);
        assert_eq!(decoded(4, false, true, Unsigned, &(-7_i32).to_le_bytes()), None);
    }

    #[test]
    fn ids_of_different_types_compare_as_numbers() {
        let one = |len_bytes, is_signed, raw: &[u8]| {
            let column = IdColumn {
                column: 0,
                place: 0,
                row_elements: 1,
                len_bytes,
                is_big_endian: false,
                is_signed,
                domain: Domain::Signed,
            };
            let mut ids = Ids::new(1);
            column.decode(raw, &mut ids.columns[0]).unwrap();
            ids
        };
        let (small, large) = (one(2, true, &(-1_i16).to_le_bytes()), one(4, false, &1_u32.to_le_bytes()));
        assert_eq!(small.order(0, &large, 0), Ordering::Less);
        assert_eq!(one(8, true, &1_i64.to_le_bytes()).order(0, &large, 0), Ordering::Equal);
    }
}
