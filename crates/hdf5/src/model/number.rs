//! Recognition of the number types that processors, NumPy and Zarr support.
//!
//! HDF5 describes numbers bit by bit, but nearly all are integers of 1, 2, 4 or 8 bytes, or IEEE 754 numbers of 2, 4 or
//! 8 bytes. This module converts nothing.

use super::{BitRange, ByteOrder, TypeClass};

impl TypeClass {
    /// Returns whether the type is an integer, bit field or IEEE 754 number of a usual size, in either byte order,
    /// without unused bits.
    pub fn is_machine_number(&self) -> bool {
        match self {
            Self::Integer { len_bytes, order, bits, .. } | Self::Bitfield { len_bytes, order, bits, .. } => {
                is_whole(*bits, *len_bytes) && is_plain(*order)
            }
            Self::Float { order, .. } => is_ieee(self) && is_plain(*order),
            _ => false,
        }
    }
}

fn is_whole(bits: BitRange, len_bytes: u32) -> bool {
    bits.offset == 0 && bits.count == 8 * len_bytes && matches!(len_bytes, 1 | 2 | 4 | 8)
}

fn is_plain(order: ByteOrder) -> bool {
    order != ByteOrder::Vax
}

/// Returns whether the type is an IEEE 754 number of 2, 4 or 8 bytes.
fn is_ieee(class: &TypeClass) -> bool {
    let TypeClass::Float { len_bytes, bits, normalization, sign_bit, exponent, mantissa, exponent_bias, .. } = class
    else {
        return false;
    };
    let (exponent_bits, mantissa_bits) = match len_bytes {
        2 => (5, 10),
        4 => (8, 23),
        8 => (11, 52),
        _ => return false,
    };
    let whole = is_whole(*bits, *len_bytes) && *normalization == 2 && *sign_bit == 8 * len_bytes - 1;
    whole
        && *exponent == BitRange { offset: mantissa_bits, count: exponent_bits }
        && *mantissa == BitRange { offset: 0, count: mantissa_bits }
        && *exponent_bias == (1 << (exponent_bits - 1)) - 1
}
