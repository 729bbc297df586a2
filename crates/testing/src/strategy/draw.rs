//! Random values of a type, drawn from a seed: canonical bytes that use every bit, but are sometimes compressible.
//!
//! Seeds are used instead of proptest strategies, because values need not shrink and would make the value trees huge.

use crate::canonical::{Selection, push_region, push_sized, push_string};
use crate::content::Path;
use raddle_hdf5::model::{ByteOrder, ReferenceKind, TypeClass};

/// A stream of random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    /// Creates the stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }
}

/// Possible targets of the references in a file.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// Paths of objects.
    pub objects: Vec<Path>,
    /// Paths and extents of datasets with at least one element.
    pub datasets: Vec<(Path, Vec<u64>)>,
}

/// Appends one random value.
pub fn push_value(class: &TypeClass, targets: &Targets, draw: &mut Draw, out: &mut Vec<u8>) {
    match class {
        TypeClass::VariableString { charset, .. } => {
            let words: [&str; 4] = ["", "x", "slice", if *charset == 1 { "Ereignis-Zähler" } else { "event counter" }];
            // One of five is null.
            push_string(words.get(draw.below(5) as usize).map(|word| word.as_bytes()), out);
        }
        TypeClass::Sequence { base, .. } => {
            let count = draw.below(4);
            out.extend_from_slice(&count.to_le_bytes());
            (0..count).for_each(|_| push_value(base, targets, draw, out));
        }
        TypeClass::Reference(ReferenceKind::Object) => match targets.objects.len() as u64 {
            0 => push_sized(b"", out),
            // One of `count + 1` is null.
            count => {
                let number = draw.below(count + 1) as usize;
                push_sized(targets.objects.get(number).map_or(&b""[..], Vec::as_slice), out);
            }
        },
        TypeClass::Reference(ReferenceKind::Region) => push_region_value(targets, draw, out),
        TypeClass::Compound { members, .. } if class.is_file_local() => {
            members.iter().for_each(|member| push_value(&member.class, targets, draw, out));
        }
        TypeClass::Array { base, dims } if class.is_file_local() => {
            (0..dims.iter().product::<u32>()).for_each(|_| push_value(base, targets, draw, out));
        }
        fixed => push_bytes(fixed.len_bytes(), draw, out),
    }
}

fn push_region_value(targets: &Targets, draw: &mut Draw, out: &mut Vec<u8>) {
    let number = draw.below(targets.datasets.len() as u64 + 1) as usize;
    let Some((path, dims)) = targets.datasets.get(number) else { return push_sized(b"", out) };
    let mut point = || dims.iter().map(|&dim| draw.below(dim)).collect::<Vec<u64>>();
    let (one, other) = (point(), point());
    let selection = if one == other {
        Selection::Points(vec![one])
    } else if one[0] % 2 == 0 {
        Selection::Points(vec![one, other])
    } else {
        let first = one.iter().zip(&other).map(|(&one, &other)| one.min(other)).collect();
        let last = one.iter().zip(&other).map(|(&one, &other)| one.max(other)).collect();
        Selection::Blocks(vec![(first, last)])
    };
    push_region(path, dims.len(), &selection, out);
}

/// Appends the stored bytes of a fixed type: random, small, or constant.
fn push_bytes(len_bytes: u64, draw: &mut Draw, out: &mut Vec<u8>) {
    let manner = draw.below(4);
    for _ in 0..len_bytes {
        out.push(match manner {
            0 => 0,
            1 => draw.below(2) as u8,
            _ => draw.below(256) as u8,
        });
    }
}

/// Appends the value of elements that were never written: zeros, empty, null.
pub fn push_zero(class: &TypeClass, out: &mut Vec<u8>) {
    match class {
        TypeClass::VariableString { .. } => push_string(None, out),
        TypeClass::Sequence { .. } | TypeClass::Reference(_) => push_sized(b"", out),
        TypeClass::Compound { members, .. } if class.is_file_local() => {
            members.iter().for_each(|member| push_zero(&member.class, out));
        }
        TypeClass::Array { base, dims } if class.is_file_local() => {
            (0..dims.iter().product::<u32>()).for_each(|_| push_zero(base, out));
        }
        fixed => out.resize(out.len() + fixed.len_bytes() as usize, 0),
    }
}

/// Clears the bits of integers that are not significant, because the nbit filter drops them.
pub fn clear_insignificant_bits(class: &TypeClass, values: &mut [u8]) {
    let TypeClass::Integer { len_bytes, order, bits, .. } = class else { return };
    for element in values.chunks_exact_mut(*len_bytes as usize) {
        for bit in (0..len_bytes * 8).filter(|bit| !(bits.offset..bits.offset + bits.count).contains(bit)) {
            let byte = (bit / 8) as usize;
            let byte = if *order == ByteOrder::Big { element.len() - 1 - byte } else { byte };
            element[byte] &= !(1 << (bit % 8));
        }
    }
}
