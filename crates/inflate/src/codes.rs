//! Codes of the current block.
//!
//! Decoding with them is left to the inflaters, each of which does it differently.

use crate::code::Code;
use crate::header;
use crate::stream::BitSource;
use std::sync::LazyLock;

/// Number of bits of the last-block flag and the block's type.
pub(super) const BLOCK_HEAD_BITS: usize = 3;

/// Codes fixed by the format.
static FIXED: LazyLock<Box<(Code, Code)>> = LazyLock::new(|| Box::new(header::fixed_codes()));

/// Codes defined by a block, or the fixed ones.
pub(super) struct Codes {
    litlen: Code,
    distance: Code,
    is_fixed: bool,
}

/// A block after its header.
pub(super) struct BlockStart<'c> {
    pub litlen: &'c Code,
    pub distance: &'c Code,
    /// Bit at which its data begins.
    pub at_bit: usize,
    pub is_last: bool,
}

impl Codes {
    pub(super) fn new() -> Self {
        Self { litlen: Code::new(), distance: Code::new(), is_fixed: false }
    }

    /// Reads the header at `at_bit`, with words up to `limit_bits` in tables; returns `None` for stored blocks and
    /// invalid headers.
    #[inline(always)]
    pub(super) fn read(&mut self, bits: &impl BitSource, at_bit: usize, limit_bits: u32) -> Option<BlockStart<'_>> {
        let head = bits.low_first(at_bit);
        let is_last = head & 1 == 1;
        let at_bit = match head >> 1 & 3 {
            1 => {
                self.is_fixed = true;
                at_bit + BLOCK_HEAD_BITS
            }
            2 => {
                self.is_fixed = false;
                header::read_codes(bits, at_bit, &mut self.litlen, &mut self.distance, limit_bits)?
            }
            _ => return None,
        };
        let (litlen, distance) = self.at_hand();
        Some(BlockStart { litlen, distance, at_bit, is_last })
    }

    /// Returns the codes of the block whose header was read last.
    #[inline(always)]
    pub(super) fn at_hand(&self) -> (&Code, &Code) {
        match self.is_fixed {
            true => (&FIXED.0, &FIXED.1),
            false => (&self.litlen, &self.distance),
        }
    }
}
