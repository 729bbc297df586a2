//! Adaptive entropy decoder of CCSDS 121.0-B (Rice codes with options per block), for unsigned samples.
//!
//! A stream is a sequence of reference intervals with equal numbers of blocks. Each block names its coding: split
//! samples (high part in unary, k low bits plain), pairs of samples in one unary number ("second extension"), runs of
//! zero blocks, or plain. With prediction, an interval begins with a plain reference sample, and the others are
//! differences from the previous one, folded to small non-negative numbers.

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;
use crate::msb_bits::MsbReader;

const FILTER: KnownFilter = KnownFilter::Szip;

/// Parameters of a stream's coding.
#[derive(Debug, Clone)]
pub(crate) struct Coding {
    /// Number of bits per sample, 1 to 32.
    pub(crate) sample_bits: u32,
    /// Number of samples per block, an even number.
    pub(crate) block: usize,
    /// Number of blocks per reference interval.
    pub(crate) blocks: usize,
    pub(crate) is_predicted: bool,
}

/// Number of blocks per segment: the code word "to the end" extends a run of zero blocks to the end of a segment.
const SEGMENT_BLOCKS: usize = 64;
/// Unary number (counted from 1) that means "zeros to the end of the segment"; larger ones mean one block less.
const TO_END_OF_SEGMENT: u32 = 5;
/// Largest unary number that represents a pair of samples.
const MAX_PAIR: u32 = 90;

/// A decoder in the middle of a stream.
pub(crate) struct Decoder<'a> {
    coding: &'a Coding,
    reader: MsbReader<'a>,
    /// Samples of the interval; coded numbers while the interval is being decoded.
    samples: Vec<u32>,
}

fn truncated() -> CodecError {
    CodecError::Truncated { filter: FILTER }
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(coding: &'a Coding, stored: &'a [u8]) -> Self {
        Self { coding, reader: MsbReader::new(stored), samples: Vec::new() }
    }

    /// Decodes the next reference interval; only its first `wanted` samples are needed.
    ///
    /// Nothing is read after the block that holds the last of them, which matters in the last interval only.
    pub(crate) fn interval(&mut self, wanted: usize) -> Result<impl Iterator<Item = u32>> {
        self.samples.clear();
        while self.samples.len() < wanted {
            self.block()?;
        }
        if self.coding.is_predicted {
            undo_prediction(&mut self.samples, self.coding.sample_bits);
        }
        Ok(self.samples.iter().copied())
    }

    /// Decodes the next block, or a run of zero blocks.
    fn block(&mut self) -> Result<()> {
        let Coding { sample_bits, block, .. } = *self.coding;
        let option_bits = match sample_bits {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        };
        let has_reference = self.coding.is_predicted && self.samples.is_empty();
        let option = self.read(option_bits)?;
        if option == 0 {
            let is_pairs = self.read(1)? == 1;
            if has_reference {
                self.plain(1)?;
            }
            return if is_pairs { self.pairs() } else { self.zero_blocks() };
        }
        if option == (1 << option_bits) - 1 {
            return self.plain(block);
        }
        if has_reference {
            self.plain(1)?;
        }
        let low_bits = option - 1;
        let start = self.samples.len();
        for _ in usize::from(has_reference)..block {
            let high = self.reader.read_unary().ok_or_else(truncated)?;
            // Only damaged data contains numbers too large for a sample; their high bits are dropped.
            self.samples.push(high << low_bits);
        }
        for index in start..self.samples.len() {
            self.samples[index] |= self.read(low_bits)?;
        }
        Ok(())
    }

    fn plain(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let sample = self.read(self.coding.sample_bits)?;
            self.samples.push(sample);
        }
        Ok(())
    }

    /// Decodes pairs of samples a and b, coded as the number (a + b)(a + b + 1)/2 + b. In a first pair, the reference
    /// sample takes a's place.
    fn pairs(&mut self) -> Result<()> {
        let end = self.samples.len() / self.coding.block * self.coding.block + self.coding.block;
        while self.samples.len() < end {
            let number = self.reader.read_unary().ok_or_else(truncated)?;
            if number > MAX_PAIR {
                return Err(CodecError::Corrupt { filter: FILTER, fault: "a pair of samples out of range" });
            }
            // The largest sum whose triangular number does not exceed the number.
            let sum = (0..).take_while(|sum| sum * (sum + 1) / 2 <= number).last().unwrap_or(0);
            let second = number - sum * (sum + 1) / 2;
            if self.samples.len().is_multiple_of(2) {
                self.samples.push(sum - second);
            }
            self.samples.push(second);
        }
        Ok(())
    }

    fn zero_blocks(&mut self) -> Result<()> {
        let Coding { block, blocks, .. } = *self.coding;
        let done = self.samples.len() / block;
        let number = self.reader.read_unary().ok_or_else(truncated)?.saturating_add(1);
        let count = match number {
            TO_END_OF_SEGMENT => (blocks - done).min(SEGMENT_BLOCKS - done % SEGMENT_BLOCKS),
            ..TO_END_OF_SEGMENT => number as usize,
            _ => number as usize - 1,
        };
        if count > blocks - done {
            return Err(CodecError::Corrupt { filter: FILTER, fault: "zeros beyond the reference interval" });
        }
        self.samples.resize((done + count) * block, 0);
        Ok(())
    }

    fn read(&mut self, count: u32) -> Result<u32> {
        self.reader.read(count).ok_or_else(truncated)
    }
}

/// Converts a reference sample and folded differences to samples, in place.
///
/// While the previous sample is at least half the difference away from both ends of the range, even numbers are steps
/// up by their half and odd ones are steps down. Beyond that only one direction is left, and the number is the step
/// itself.
fn undo_prediction(samples: &mut [u32], sample_bits: u32) {
    let Some((&mut reference, folded)) = samples.split_first_mut() else { return };
    let largest = u32::MAX >> (32 - sample_bits);
    let mut before = reference;
    for sample in folded {
        let number = *sample;
        let is_low = before <= largest / 2;
        let room = if is_low { before } else { largest.wrapping_sub(before) };
        let half = number.div_ceil(2);
        before = if half <= room {
            if number % 2 == 0 { before.wrapping_add(half) } else { before.wrapping_sub(half) }
        } else if is_low {
            number
        } else {
            largest.wrapping_sub(number)
        } & largest;
        *sample = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_fold_at_both_ends() {
        // Folding by definition: room to the nearer end, then alternating signs, then the step alone.
        let fold = |before: i64, sample: i64, largest: i64| {
            let (difference, room) = (sample - before, before.min(largest - before));
            match difference {
                0.. if difference <= room => 2 * difference,
                ..0 if -difference <= room => -2 * difference - 1,
                _ => room + difference.abs(),
            }
        };
        for bits in [1, 2, 3, 8] {
            let largest = (1i64 << bits) - 1;
            for before in 0..=largest {
                for sample in 0..=largest {
                    let mut samples = [before as u32, fold(before, sample, largest) as u32];
                    undo_prediction(&mut samples, bits);
                    assert_eq!(samples[1], sample as u32, "{bits} bits, {before} to {sample}");
                }
            }
        }
    }

    #[test]
    fn a_cut_stream_is_refused() {
        let coding = Coding { sample_bits: 8, block: 8, blocks: 2, is_predicted: true };
        // Plain block of 8, then a zero block.
        let stored = [0b1110_0000, 0x20, 0x40, 0x60, 0x80, 0xa0, 0xc0, 0xe0, 0b0000_0001];
        let mut decoder = Decoder::new(&coding, &stored);
        assert_eq!(decoder.interval(16).unwrap().count(), 16);
        for len in 0..stored.len() {
            assert!(Decoder::new(&coding, &stored[..len]).interval(16).is_err(), "{len}");
        }
    }
}
