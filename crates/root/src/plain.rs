//! Fast reading of entries that are lists of numbers, as most branches of analyses are, many at once.
//!
//! Nested values are not supported. Invariant: columns and faults equal those of [`walk`], which reads entry by entry;
//! any entry that does not look as expected is left to it.

use super::basket::Basket;
use super::buffers::{push_numbers, push_offset, to_little_endian};
use super::item::Item;
use super::walk;
use raddle_columns::block::Buffer;
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use raddle_columns::schema::Number;
use std::ops::Range;

/// Length of the header of a collection of numbers: byte count, version, count.
const FRONT_LEN_BYTES: usize = 10;

/// Flag that marks a byte count.
const BYTE_COUNT: u32 = 0x4000_0000;

/// Branch whose entries are lists of numbers.
pub(super) struct PlainLists<'item> {
    item: &'item Item,
    number: Number,
    offsets: usize,
    values: usize,
    /// Whether each list has a header; otherwise, its length follows from the length of the entry.
    has_front: bool,
}

impl<'item> PlainLists<'item> {
    /// Returns the lists that `item` describes; `None` if entries are not lists of numbers.
    pub(super) fn of(item: &'item Item) -> Option<Self> {
        let (buffer, content, has_front) = match item {
            Item::Rest { buffer, content } => (buffer, content, false),
            Item::Collection { list } => match list.as_ref() {
                Item::List { buffer, content } => (buffer, content, true),
                _ => return None,
            },
            _ => return None,
        };
        match content.as_ref() {
            Item::Number { number, buffer: values } => {
                Some(Self { item, number: *number, offsets: *buffer, values: *values, has_front })
            }
            _ => None,
        }
    }

    /// Appends entries of a basket to a column. An error contains the number of the entry.
    pub(super) fn read(
        &self,
        basket: &Basket,
        range: Range<usize>,
        buffers: &mut [Buffer],
    ) -> Result<(), (usize, UnlocatedError)> {
        if !self.has_front {
            return self.read_bare(basket, range, buffers);
        }
        let mut as_stored_from = self.len_values(buffers);
        for number in range {
            let entry = basket.entries(number..number + 1);
            if let Some(stored) = self.numbers_of(entry)
                && let Buffer::Values(values) = &mut buffers[self.values]
            {
                values.extend_from_slice(stored);
                push_offset(&mut buffers[self.offsets], (stored.len() / self.number.len_bytes()) as u64);
                continue;
            }
            self.to_little_endian(as_stored_from, buffers);
            let start = basket.start_of(number) as u64;
            walk::read_entry(self.item, &mut Bytes::new(entry, start, "entries"), buffers)
                .map_err(|fault| (number, fault))?;
            as_stored_from = self.len_values(buffers);
        }
        self.to_little_endian(as_stored_from, buffers);
        Ok(())
    }

    /// Reads entries that consist only of numbers, without headers, as one run of numbers.
    fn read_bare(
        &self,
        basket: &Basket,
        range: Range<usize>,
        buffers: &mut [Buffer],
    ) -> Result<(), (usize, UnlocatedError)> {
        let len_bytes = self.number.len_bytes();
        let Buffer::Offsets(offsets) = &mut buffers[self.offsets] else { return Ok(()) };
        basket.push_ends(range.clone(), len_bytes.trailing_zeros(), offsets);
        let all_lengths = match basket.offsets(range.clone()) {
            // Without an early exit, so that several entries are compared at a time.
            Some(starts) => starts.iter().fold(0, |all, start| all | start.wrapping_sub(starts[0])) as usize,
            None => basket.fixed_len_bytes().unwrap_or(0),
        };
        let has_parts = !all_lengths.is_multiple_of(len_bytes);
        if has_parts
            && let Some(number) = range.clone().find(|&number| !basket.len_of(number).is_multiple_of(len_bytes))
        {
            let (start, entry) = (basket.start_of(number) as u64, basket.entries(number..number + 1));
            let what = format!("{} bytes of {}", entry.len(), self.number.name());
            return Err((number, Bytes::new(entry, start, "entries").damaged(what)));
        }
        push_numbers(self.number, basket.entries(range), &mut buffers[self.values]);
        Ok(())
    }

    /// Returns the stored numbers of an entry; `None` if the entry does not look as expected.
    fn numbers_of<'b>(&self, entry: &'b [u8]) -> Option<&'b [u8]> {
        let len_bytes = self.number.len_bytes();
        let (front, numbers) = entry.split_first_chunk::<FRONT_LEN_BYTES>()?;
        let word = |at: usize| u32::from_be_bytes([front[at], front[at + 1], front[at + 2], front[at + 3]]);
        let version = u16::from_be_bytes([front[4], front[5]]);
        let is_expected = word(0) == BYTE_COUNT | (entry.len() - 4) as u32
            && version != 0
            && version & walk::MEMBERWISE == 0
            && (word(6) as usize).checked_mul(len_bytes) == Some(numbers.len());
        is_expected.then_some(numbers)
    }

    fn len_values(&self, buffers: &[Buffer]) -> usize {
        buffers[self.values].len_bytes()
    }

    fn to_little_endian(&self, from: usize, buffers: &mut [Buffer]) {
        if let Buffer::Values(values) = &mut buffers[self.values] {
            to_little_endian(self.number, &mut values[from..]);
        }
    }
}
