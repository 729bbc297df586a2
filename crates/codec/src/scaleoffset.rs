//! Decoder of the scaleoffset filter: numbers minus their minimum, in as few bits as the range needs.
//!
//! Floating-point numbers were first multiplied by a power of ten and rounded ("D-scaling"), so the filter is lossy for
//! them: decoded values must not be encoded with it again. The fixed-bits method for floats was never implemented in
//! HDF5.

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;
use crate::msb_bits::MsbReader;

const FILTER: KnownFilter = KnownFilter::ScaleOffset;

/// Number of parameters; those from `FILL` on hold the fill value.
const PARAMETERS: usize = 20;
const FILL: usize = 8;

/// Length of the header before the packed numbers: bits per number, length of the minimum, and room for a minimum of 16
/// bytes.
const HEADER_LEN_BYTES: usize = 21;
const MINIMUM_LEN_OFFSET: usize = 4;
const MINIMUM_OFFSET: usize = 5;

/// The filter with its parsed parameters.
#[derive(Debug, Clone)]
pub(crate) struct ScaleOffset {
    elements: usize,
    len_bytes: usize,
    big_endian: bool,
    /// Bits of the fill value, if a fill value was defined; the highest code of a chunk represents it.
    fill: Option<u64>,
    scale: Scale,
}

#[derive(Debug, Clone, Copy)]
enum Scale {
    /// No change: all bits were requested.
    Identity,
    Integer,
    /// Numbers were multiplied by ten to this power.
    Decimal(i32),
}

fn wrong(fault: &'static str) -> CodecError {
    CodecError::Parameters { filter: FILTER, fault }
}

impl ScaleOffset {
    /// Parses the filter's parameters.
    pub(crate) fn new(parameters: &[u32], element_len_bytes: usize) -> Result<Self> {
        let parameters: &[u32; PARAMETERS] = parameters.try_into().map_err(|_| wrong("20 are expected"))?;
        let &[scale_type, scale_factor, elements, class, len_bytes, sign, order, fill_defined, ..] = parameters;
        let (scale_factor, len_bytes) = (scale_factor as i32, len_bytes as usize);
        if len_bytes != element_len_bytes {
            return Err(wrong("the element length differs from the dataset's"));
        }
        let scale = match (class, scale_type) {
            (0, 2) if matches!(len_bytes, 1 | 2 | 4 | 8) && sign <= 1 => match scale_factor {
                bits if bits > 8 * len_bytes as i32 => return Err(wrong("more bits than an element has")),
                bits if bits == 8 * len_bytes as i32 => Scale::Identity,
                _ => Scale::Integer,
            },
            (1, 0) if matches!(len_bytes, 4 | 8) => Scale::Decimal(scale_factor),
            (1, 1) => return Err(CodecError::Unsupported { filter: FILTER, feature: "E-scaling" }),
            _ => return Err(wrong("the type and the scaling method do not match")),
        };
        let fill = u64::from(parameters[FILL + 1]) << 32 | u64::from(parameters[FILL]);
        let fill = fill & low_bits(8 * len_bytes as u32);
        Ok(Self {
            elements: elements as usize,
            len_bytes,
            big_endian: order == 1,
            fill: (fill_defined == 1).then_some(fill),
            scale,
        })
    }

    /// Decodes the elements to the front of `out`; returns the number of bytes written.
    pub(crate) fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        let limit_len_bytes = out.len();
        let too_long = CodecError::TooLong { filter: FILTER, limit_len_bytes };
        if let Scale::Identity = self.scale {
            out.get_mut(..stored.len()).ok_or(too_long)?.copy_from_slice(stored);
            return Ok(stored.len());
        }
        let truncated = CodecError::Truncated { filter: FILTER };
        let (bits, minimum) = header(stored).ok_or_else(|| truncated.clone())?;
        let packed = stored.get(HEADER_LEN_BYTES..).unwrap_or_default();
        if bits > 8 * self.len_bytes as u32 {
            return Err(CodecError::Corrupt { filter: FILTER, fault: "more bits than an element has" });
        }
        let len_bytes = self.elements.saturating_mul(self.len_bytes);
        let out = out.get_mut(..len_bytes).ok_or(too_long)?;
        if bits == 8 * self.len_bytes as u32 {
            // Stored unchanged in the writer's byte order, which is assumed to be little-endian.
            out.copy_from_slice(packed.get(..len_bytes).ok_or(truncated)?);
            if self.big_endian {
                out.chunks_exact_mut(self.len_bytes).for_each(<[u8]>::reverse);
            }
            return Ok(len_bytes);
        }
        let decoded = match (self.scale, self.len_bytes) {
            (Scale::Decimal(power), 4) => {
                let (minimum, divisor) = (f32::from_bits(minimum as u32), 10f32.powf(power as f32));
                self.unpack(packed, bits, out, |code| u64::from((code as i32 as f32 / divisor + minimum).to_bits()))
            }
            (Scale::Decimal(power), _) => {
                let (minimum, divisor) = (f64::from_bits(minimum), 10f64.powf(f64::from(power)));
                self.unpack(packed, bits, out, |code| (code as i64 as f64 / divisor + minimum).to_bits())
            }
            _ => self.unpack(packed, bits, out, |code| code.wrapping_add(minimum)),
        };
        decoded.ok_or(truncated)?;
        Ok(len_bytes)
    }

    /// Fills `out` with the values of the codes in `packed`; returns `None` if they run out.
    fn unpack(&self, packed: &[u8], bits: u32, out: &mut [u8], value: impl Fn(u64) -> u64) -> Option<()> {
        let mut reader = MsbReader::new(packed);
        let fill_code = low_bits(bits);
        for out in out.chunks_exact_mut(self.len_bytes) {
            let code = reader.read_wide(bits)?;
            let value = match self.fill {
                Some(fill) if code == fill_code => fill,
                _ => value(code),
            };
            out.copy_from_slice(&value.to_le_bytes()[..self.len_bytes]);
            if self.big_endian {
                out.reverse();
            }
        }
        Some(())
    }
}

/// Returns the bits per number, and the minimum.
fn header(stored: &[u8]) -> Option<(u32, u64)> {
    let bits = u32::from_le_bytes(*stored.first_chunk()?);
    let minimum_len_bytes = usize::from(*stored.get(MINIMUM_LEN_OFFSET)?).min(8);
    let mut minimum = [0; 8];
    minimum[..minimum_len_bytes].copy_from_slice(stored.get(MINIMUM_OFFSET..MINIMUM_OFFSET + minimum_len_bytes)?);
    Some((bits, u64::from_le_bytes(minimum)))
}

/// Returns a number whose `count` low bits are set.
fn low_bits(count: u32) -> u64 {
    u64::MAX.checked_shr(64 - count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(first: [u32; 8], fill: u64) -> Vec<u32> {
        let mut parameters = first.to_vec();
        parameters.extend([fill as u32, (fill >> 32) as u32]);
        parameters.resize(PARAMETERS, 0);
        parameters
    }

    fn stored(bits: u32, minimum: i64, packed: &[u8]) -> Vec<u8> {
        let mut stored = bits.to_le_bytes().to_vec();
        stored.push(8);
        stored.extend(minimum.to_le_bytes());
        stored.resize(HEADER_LEN_BYTES, 0);
        stored.extend(packed);
        stored
    }

    #[test]
    fn all_fill_has_no_bits() {
        let filter = ScaleOffset::new(&parameters([2, 0, 3, 0, 2, 1, 0, 1], 0xfffe), 2).unwrap();
        let mut out = [0; 6];
        assert_eq!(filter.decode(&stored(0, 7, &[]), &mut out), Ok(6));
        assert_eq!(out, [0xfe, 0xff, 0xfe, 0xff, 0xfe, 0xff]);
    }

    #[test]
    fn negative_minimum_and_fill_code_in_big_endian() {
        let filter = ScaleOffset::new(&parameters([2, 0, 2, 0, 4, 1, 1, 1], 9), 4).unwrap();
        let mut out = [0; 8];
        assert_eq!(filter.decode(&stored(4, -3, &[0x1f]), &mut out), Ok(8));
        assert_eq!(out, [0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 9]);
    }

    #[test]
    fn short_and_contradictory_input() {
        let filter = ScaleOffset::new(&parameters([2, 0, 3, 0, 2, 0, 0, 0], 0), 2).unwrap();
        let whole = stored(5, 0, &[1, 2]);
        let mut out = [0; 6];
        assert!(filter.decode(&whole, &mut out).is_ok());
        for len in 0..whole.len() {
            assert_eq!(filter.decode(&whole[..len], &mut out), Err(CodecError::Truncated { filter: FILTER }), "{len}");
        }
        assert!(matches!(filter.decode(&stored(17, 0, &[0; 9]), &mut out), Err(CodecError::Corrupt { .. })));
        assert!(matches!(filter.decode(&whole, &mut out[..5]), Err(CodecError::TooLong { .. })));
        assert!(ScaleOffset::new(&parameters([2, 17, 3, 0, 2, 0, 0, 0], 0), 2).is_err());
        assert!(ScaleOffset::new(&parameters([0, 2, 3, 1, 2, 0, 0, 0], 0), 2).is_err());
        assert!(ScaleOffset::new(&parameters([1, 2, 3, 1, 4, 0, 0, 0], 0), 4).is_err());
        assert!(ScaleOffset::new(&parameters([2, 0, 3, 0, 3, 0, 0, 0], 0), 3).is_err());
    }
}
