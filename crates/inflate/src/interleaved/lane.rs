//! A stream that is being decoded, word by word.
//!
//! Words that need only one look-up are decoded in `super::steps`. Invariant: `produced` bytes of `out` are decoded.

use crate::code::{Code, DISTANCE_TEMPLATES, END, EXCEPTION, LITERAL, LITLEN_TEMPLATES};
use crate::repeat::{ROOM_LEN_BYTES, repeat, repeat_with_room};

pub(super) const WORD_LEN_BYTES: usize = 8;

/// Minimum number of bits after a refill.
pub(super) const MIN_HELD_BITS: u32 = 56;

/// Kind of a word decoded outside of the steps.
pub(super) enum Word {
    Data,
    EndOfBlock,
}

pub(super) struct Lane<'a> {
    pub(super) stored: &'a [u8],
    pub(super) out: &'a mut [u8],
    pub(super) at: Position,
}

/// Position of a lane in its stream and output.
#[derive(Clone, Copy, Default)]
pub(super) struct Position {
    /// Offset of the next byte for `bits`; zeros follow the end of the stream.
    pub(super) next: usize,
    /// Buffered bits, the first one lowest.
    pub(super) bits: u64,
    /// Number of buffered bits, in the lowest 6 bits. Above that number, `bits` may contain further bits of the stream.
    pub(super) held_bits: u32,
    /// Number of decoded bytes.
    pub(super) produced: usize,
}

impl<'a> Lane<'a> {
    pub(super) fn new(stored: &'a [u8], out: &'a mut [u8]) -> Self {
        Self { stored, out, at: Position::default() }
    }

    /// Returns the position of the next bit in the stream, which may be beyond its end.
    pub(super) fn at_bit(&self) -> usize {
        8 * self.at.next - (self.at.held_bits & 63) as usize
    }

    /// Continues at a bit.
    pub(super) fn seek(&mut self, at_bit: usize) {
        self.at = Position { next: at_bit / 8, bits: 0, held_bits: 0, ..self.at };
        self.refill();
        self.consume(at_bit as u32 % 8);
    }

    /// Appends bytes to the decoded ones.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.get_mut(self.at.produced..)?.get_mut(..bytes.len())?.copy_from_slice(bytes);
        self.at.produced += bytes.len();
        Some(())
    }

    fn refill(&mut self) {
        let held_bits = self.at.held_bits & 63;
        self.at.bits |= word_at(self.stored, self.at.next) << held_bits;
        self.at.next += (63 - held_bits) as usize / 8;
        self.at.held_bits = held_bits | MIN_HELD_BITS;
    }

    fn consume(&mut self, bits: u32) {
        self.at.bits >>= bits;
        self.at.held_bits -= bits;
    }

    /// Decodes one word of any kind; returns `None` if the stream cannot be inflated here.
    #[inline(always)]
    pub(super) fn word(&mut self, litlen: &Code, distance: &Code) -> Option<Word> {
        self.refill();
        // A length and a distance with their extra bits have at most 48 bits.
        let entry = litlen.word(&LITLEN_TEMPLATES, self.at.bits.reverse_bits());
        if entry.has(LITERAL) {
            *self.out.get_mut(self.at.produced)? = (entry.0 >> 16) as u8;
            self.at.produced += 1;
            self.consume(entry.total_bits());
            return Some(Word::Data);
        }
        if entry.has(EXCEPTION) {
            self.consume(entry.total_bits());
            return entry.has(END).then_some(Word::EndOfBlock);
        }
        let len_bytes = entry.value(self.at.bits);
        self.consume(entry.total_bits());
        let back_entry = distance.word(&DISTANCE_TEMPLATES, self.at.bits.reverse_bits());
        let back = back_entry.value(self.at.bits);
        self.consume(back_entry.total_bits());
        if back_entry.is_too_far() {
            return None;
        }
        match self.out.len() - self.at.produced >= ROOM_LEN_BYTES {
            true => repeat_with_room(self.out, self.at.produced, back, len_bytes)?,
            false => repeat(self.out, self.at.produced, back, len_bytes)?,
        }
        self.at.produced += len_bytes;
        Some(Word::Data)
    }
}

/// Returns the 8 bytes starting at `at` as a little-endian number, with zeros after the end.
#[inline(always)]
pub(super) fn word_at(stored: &[u8], at: usize) -> u64 {
    let rest = stored.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}
