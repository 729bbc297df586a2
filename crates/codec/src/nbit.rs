//! Decoder of the nbit filter, which stores only the significant bits of each number, packed and most significant
//! first.
//!
//! The parameters describe the element as a tree of numbers, arrays, compounds and members stored unchanged; padding
//! bits and bytes are decoded as zero. Parameters: number of parameters, whether the filter does nothing, elements per
//! chunk, then the type (class, length, data of the class).

use crate::error::{CodecError, Result};
use crate::filter::KnownFilter;
use crate::msb_bits::MsbReader;

const FILTER: KnownFilter = KnownFilter::Nbit;

/// Maximum nesting of types. HDF5 has no limit, but two levels are common and ten are absurd.
const MAX_DEPTH: usize = 32;

/// Operation of the filter.
#[derive(Debug, Clone)]
pub(crate) enum Nbit {
    /// No change: all bits are significant.
    Identity,
    /// Each of `elements` elements is packed.
    Packed { elements: usize, element: PackedType },
}

/// A type as described by the parameters.
#[derive(Debug, Clone)]
pub(crate) struct PackedType {
    len_bytes: usize,
    content: PackedContent,
}

#[derive(Debug, Clone)]
enum PackedContent {
    /// A number whose `precision_bits` bits starting at `offset_bits` are significant.
    Number {
        big_endian: bool,
        precision_bits: usize,
        offset_bits: usize,
    },
    Array {
        item: Box<PackedType>,
    },
    /// Members with their offsets.
    Compound {
        members: Vec<(usize, PackedType)>,
    },
    /// All bits are stored, byte by byte.
    Whole,
}

/// Parameters still to be read.
struct Parameters<'a>(&'a [u32]);

impl Parameters<'_> {
    fn next(&mut self) -> Result<usize> {
        let (&first, rest) = self.0.split_first().ok_or_else(|| wrong("too few for the type"))?;
        self.0 = rest;
        Ok(first as usize)
    }
}

fn wrong(fault: &'static str) -> CodecError {
    CodecError::Parameters { filter: FILTER, fault }
}

impl Nbit {
    /// Parses the filter's parameters.
    pub(crate) fn new(parameters: &[u32], element_len_bytes: usize) -> Result<Self> {
        let count = parameters.len();
        let mut parameters = Parameters(parameters);
        if parameters.next()? != count {
            return Err(wrong("their number differs from the stated one"));
        }
        if parameters.next()? != 0 {
            return Ok(Self::Identity);
        }
        let elements = parameters.next()?;
        let class = parameters.next()?;
        let element = PackedType::new(class, &mut parameters, MAX_DEPTH)?;
        if element.len_bytes != element_len_bytes {
            return Err(wrong("the element length differs from the dataset's"));
        }
        Ok(Self::Packed { elements, element })
    }

    /// Decodes the elements to the front of `out`; returns the number of bytes written.
    pub(crate) fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        let limit_len_bytes = out.len();
        let too_long = CodecError::TooLong { filter: FILTER, limit_len_bytes };
        match self {
            Self::Identity => {
                out.get_mut(..stored.len()).ok_or(too_long)?.copy_from_slice(stored);
                Ok(stored.len())
            }
            Self::Packed { elements, element } => {
                let len_bytes = elements.saturating_mul(element.len_bytes);
                let out = out.get_mut(..len_bytes).ok_or(too_long)?;
                out.fill(0);
                let mut reader = MsbReader::new(stored);
                for out in out.chunks_exact_mut(element.len_bytes) {
                    element.decode(&mut reader, out).ok_or(CodecError::Truncated { filter: FILTER })?;
                }
                Ok(len_bytes)
            }
        }
    }
}

impl PackedType {
    /// Parses the type of this class, whose length comes next.
    fn new(class: usize, parameters: &mut Parameters<'_>, depth_left: usize) -> Result<Self> {
        let Some(depth_left) = depth_left.checked_sub(1) else {
            return Err(wrong("types are nested too deeply"));
        };
        let len_bytes = parameters.next()?;
        if len_bytes == 0 {
            return Err(wrong("a type has no length"));
        }
        let content = match class {
            1 => Self::number(len_bytes, parameters)?,
            2 => {
                let class = parameters.next()?;
                let item = Self::new(class, parameters, depth_left)?;
                if class == 4 {
                    // An array of items stored unchanged is itself stored unchanged, whatever their length.
                    PackedContent::Whole
                } else if item.len_bytes > len_bytes {
                    return Err(wrong("an item is longer than its array"));
                } else {
                    PackedContent::Array { item: Box::new(item) }
                }
            }
            3 => Self::compound(len_bytes, parameters, depth_left)?,
            4 => PackedContent::Whole,
            _ => return Err(wrong("the class of a type is unknown")),
        };
        Ok(Self { len_bytes, content })
    }

    fn number(len_bytes: usize, parameters: &mut Parameters<'_>) -> Result<PackedContent> {
        let big_endian = match parameters.next()? {
            0 => false,
            1 => true,
            _ => return Err(wrong("the byte order of a number is unknown")),
        };
        let (precision_bits, offset_bits) = (parameters.next()?, parameters.next()?);
        if precision_bits == 0 || precision_bits.saturating_add(offset_bits) > len_bytes.saturating_mul(8) {
            return Err(wrong("a number's bits lie outside of it"));
        }
        Ok(PackedContent::Number { big_endian, precision_bits, offset_bits })
    }

    fn compound(len_bytes: usize, parameters: &mut Parameters<'_>, depth_left: usize) -> Result<PackedContent> {
        let count = parameters.next()?;
        let mut members = Vec::new();
        let mut members_len_bytes = 0usize;
        for _ in 0..count {
            let offset = parameters.next()?;
            let class = parameters.next()?;
            if members.last().is_some_and(|(_, before): &(usize, Self)| before.misleads_hdf5()) {
                return Err(CodecError::Unsupported {
                    filter: FILTER,
                    feature: "a member after an array of arrays or compounds, which HDF5 misreads",
                });
            }
            let member = Self::new(class, parameters, depth_left)?;
            // Lengths that add up bound the work per element by its length.
            members_len_bytes = members_len_bytes.saturating_add(member.len_bytes);
            if members_len_bytes > len_bytes || offset.saturating_add(member.len_bytes) > len_bytes {
                return Err(wrong("a member lies outside of its compound"));
            }
            members.push((offset, member));
        }
        Ok(PackedContent::Compound { members })
    }

    /// Returns whether HDF5 (2.0 and before) continues with the wrong parameters after this member.
    ///
    /// After an array of arrays or compounds it returns to the parameters of the item, both when writing and when
    /// reading, so that the stored bytes of later members have nothing to do with their types.
    fn misleads_hdf5(&self) -> bool {
        match &self.content {
            // An unchanged item here is an array: unchanged items of a different kind make the array itself unchanged.
            PackedContent::Array { item } => !matches!(item.content, PackedContent::Number { .. }),
            PackedContent::Compound { members } => members.last().is_some_and(|(_, last)| last.misleads_hdf5()),
            PackedContent::Number { .. } | PackedContent::Whole => false,
        }
    }

    /// Decodes one value to `out`, which must be zero; returns `None` if the bits run out.
    fn decode(&self, reader: &mut MsbReader<'_>, out: &mut [u8]) -> Option<()> {
        match &self.content {
            PackedContent::Number { big_endian, precision_bits, offset_bits } => {
                let (lowest, end) = (*offset_bits, offset_bits + precision_bits);
                // From the most significant byte that contains such bits, downwards.
                for byte in (lowest / 8..=(end - 1) / 8).rev() {
                    let from = lowest.max(8 * byte);
                    let count = end.min(8 * byte + 8) - from;
                    let bits = (reader.read(count as u32)? << (from % 8)) as u8;
                    let place = if *big_endian { self.len_bytes - 1 - byte } else { byte };
                    out[place] = bits;
                }
            }
            PackedContent::Array { item } => {
                for out in out.chunks_exact_mut(item.len_bytes) {
                    item.decode(reader, out)?;
                }
            }
            PackedContent::Compound { members } => {
                for (offset, member) in members {
                    member.decode(reader, &mut out[*offset..offset + member.len_bytes])?;
                }
            }
            PackedContent::Whole => {
                for out in out {
                    *out = reader.read(8)? as u8;
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_inside_a_big_endian_number() {
        // 10 bits at offset 3 of 2 bytes: 0b110_1010_1011 << 3.
        let nbit = Nbit::new(&[8, 0, 2, 1, 2, 1, 10, 3], 2).unwrap();
        let mut out = [0xff; 4];
        let stored = [0b1010_1010, 0b1100_0000, 0b0001_0000];
        assert_eq!(nbit.decode(&stored, &mut out), Ok(4));
        assert_eq!(u16::from_be_bytes([out[0], out[1]]), 0b10_1010_1011 << 3);
        assert_eq!(u16::from_be_bytes([out[2], out[3]]), 0b00_0000_0001 << 3);
        assert_eq!(nbit.decode(&stored[..2], &mut out), Err(CodecError::Truncated { filter: FILTER }));
        assert!(matches!(nbit.decode(&stored, &mut out[..3]), Err(CodecError::TooLong { .. })));
    }

    #[test]
    fn hostile_parameters_are_refused() {
        // A compound of an array of one compound of one byte, and a byte.
        let misread = [18, 0, 1, 3, 4, 2, 0, 2, 2, 3, 2, 1, 0, 1, 1, 0, 8, 0, 2, 1, 1, 0, 8, 0];
        let misread: Vec<u32> = [&[misread.len() as u32], &misread[1..]].concat();
        assert!(matches!(Nbit::new(&misread, 4), Err(CodecError::Unsupported { .. })));
        for parameters in [
            &[][..],
            &[3, 0, 5],
            &[5, 0, 1, 1, 4],
            &[8, 0, 1, 1, 4, 0, 33, 0],
            &[8, 0, 1, 1, 4, 0, 32, u32::MAX],
            &[8, 0, 1, 1, 4, 0, 0, 0],
            &[8, 0, 1, 1, 4, 2, 8, 0],
            &[5, 0, 1, 9, 4],
            &[10, 0, 1, 2, 4, 1, 0, 0, 8, 0],
            &[10, 0, 1, 2, 4, 1, 8, 0, 8, 0],
            &[11, 0, 1, 3, 4, 1, 4, 1, 4, 0, 8],
            &[6, 0, 1, 3, 4, u32::MAX],
        ] {
            assert!(Nbit::new(parameters, 4).is_err(), "{parameters:?}");
        }
        let mut deep = vec![0, 0, 1];
        deep.extend([2, 4].repeat(10_000));
        deep[0] = deep.len() as u32;
        assert_eq!(Nbit::new(&deep, 4).err(), Some(wrong("types are nested too deeply")));
    }
}
