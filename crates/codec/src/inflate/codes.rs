//! The codes of the block at hand.
//!
//! Not for decoding with them, which is what the two inflaters do differently.

use super::code::Code;
use super::{BitSource, header};

/// Bits of the last-block flag and the block's type.
const BLOCK_HEAD_BITS: usize = 3;

/// Those that a block brings, and those that are fixed by the format.
pub(super) struct Codes {
    litlen: Code,
    distance: Code,
    fixed_litlen: Code,
    fixed_distance: Code,
}

/// A block behind its header.
pub(super) struct BlockStart<'c> {
    pub litlen: &'c Code,
    pub distance: &'c Code,
    /// Where its data begins.
    pub at_bit: usize,
    pub is_last: bool,
}

impl Codes {
    pub(super) fn new() -> Self {
        let (fixed_litlen, fixed_distance) = header::fixed_codes();
        Self { litlen: Code::new(), distance: Code::new(), fixed_litlen, fixed_distance }
    }

    /// Reads the header at `at_bit`, with words up to `limit_bits` in tables; `None` for stored blocks and what is no
    /// header.
    #[inline(always)]
    pub(super) fn read(&mut self, bits: &impl BitSource, at_bit: usize, limit_bits: u32) -> Option<BlockStart<'_>> {
        let head = bits.low_first(at_bit);
        let is_last = head & 1 == 1;
        match head >> 1 & 3 {
            1 => {
                let at_bit = at_bit + BLOCK_HEAD_BITS;
                Some(BlockStart { litlen: &self.fixed_litlen, distance: &self.fixed_distance, at_bit, is_last })
            }
            2 => {
                let at_bit = header::read_codes(bits, at_bit, &mut self.litlen, &mut self.distance, limit_bits)?;
                Some(BlockStart { litlen: &self.litlen, distance: &self.distance, at_bit, is_last })
            }
            _ => None,
        }
    }
}
