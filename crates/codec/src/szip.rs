//! Decoder of the szip filter: the decoded length (4 bytes, little-endian), then an adaptively entropy-coded stream.
//!
//! Parameters, as HDF5 stores them: option mask, samples per block, bits per sample, samples per scan line. Samples of
//! 32 and 64 bits are coded as bytes, all first bytes before all second ones. Each scan line is one reference interval
//! of the coder, padded to whole blocks with samples that are dropped here.

use crate::entropy::{Coding, Decoder};
use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;
use crate::shuffle::unshuffle;

const FILTER: KnownFilter = KnownFilter::Szip;

/// Option: samples have their most significant byte first.
const MSB: u32 = 16;
/// Option: samples were predicted from the previous one.
const NEAREST_NEIGHBOUR: u32 = 32;

/// Maximum number of samples in a block, larger than in any version of the coder.
const MAX_BLOCK: u32 = 64;
/// Maximum number of blocks in a reference interval, larger than in any version of the coder.
const MAX_BLOCKS: u32 = 4096;

const LENGTH_LEN_BYTES: usize = 4;

/// The filter with its parsed parameters.
#[derive(Debug, Clone)]
pub(crate) struct Szip {
    coding: Coding,
    scan_line: usize,
    big_endian: bool,
    /// Length of the samples, if their bytes were separated.
    separated_len_bytes: Option<usize>,
}

impl Szip {
    /// Parses the filter's parameters.
    pub(crate) fn new(parameters: &[u32]) -> Result<Self> {
        let wrong = |fault| CodecError::Parameters { filter: FILTER, fault };
        let &[options, block, sample_bits, scan_line] = parameters else {
            return Err(wrong("4 are expected"));
        };
        if block == 0 || block % 2 == 1 || block > MAX_BLOCK || scan_line == 0 || scan_line.div_ceil(block) > MAX_BLOCKS
        {
            return Err(wrong("samples per block or line are out of range"));
        }
        let (sample_bits, separated_len_bytes) = match sample_bits {
            32 | 64 => (8, Some(sample_bits as usize / 8)),
            1..=24 => (sample_bits, None),
            _ => return Err(wrong("bits per sample are out of range")),
        };
        let coding = Coding {
            sample_bits,
            block: block as usize,
            blocks: scan_line.div_ceil(block) as usize,
            is_predicted: options & NEAREST_NEIGHBOUR != 0,
        };
        Ok(Self { coding, scan_line: scan_line as usize, big_endian: options & MSB != 0, separated_len_bytes })
    }

    /// Decodes to the front of `out`; returns the number of bytes written. `scratch` is reused.
    pub(crate) fn decode(&self, scratch: &mut Vec<u8>, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        let truncated = CodecError::Truncated { filter: FILTER };
        let (length, coded) = stored.split_first_chunk::<LENGTH_LEN_BYTES>().ok_or(truncated)?;
        let len_bytes = u32::from_le_bytes(*length) as usize;
        let limit_len_bytes = out.len();
        let out = out.get_mut(..len_bytes).ok_or(CodecError::TooLong { filter: FILTER, limit_len_bytes })?;
        let sample_len_bytes = match self.coding.sample_bits {
            0..=8 => 1,
            9..=16 => 2,
            _ => 4,
        };
        if !len_bytes.is_multiple_of(self.separated_len_bytes.unwrap_or(sample_len_bytes)) {
            return Err(CodecError::Corrupt {
                filter: FILTER,
                fault: "the length is not a multiple of the sample length",
            });
        }
        match self.separated_len_bytes {
            None => self.decode_lines(coded, sample_len_bytes, out)?,
            Some(separated_len_bytes) => {
                if scratch.len() < len_bytes {
                    scratch.resize(len_bytes, 0);
                }
                let separated = &mut scratch[..len_bytes];
                self.decode_lines(coded, sample_len_bytes, separated)?;
                unshuffle(separated, separated_len_bytes, out);
            }
        }
        Ok(len_bytes)
    }

    fn decode_lines(&self, coded: &[u8], sample_len_bytes: usize, out: &mut [u8]) -> Result<()> {
        let mut decoder = Decoder::new(&self.coding, coded);
        for line in out.chunks_mut(self.scan_line * sample_len_bytes) {
            let samples = decoder.interval(line.len() / sample_len_bytes)?;
            for (out, sample) in line.chunks_exact_mut(sample_len_bytes).zip(samples) {
                if self.big_endian {
                    out.copy_from_slice(&sample.to_be_bytes()[4 - sample_len_bytes..]);
                } else {
                    out.copy_from_slice(&sample.to_le_bytes()[..sample_len_bytes]);
                }
            }
        }
        Ok(())
    }
}
