//! Shorthand for the usual number types in `raddle_hdf5::model`.

use raddle_hdf5::model::{BitRange, ByteOrder, TypeClass};

/// Returns an integer type that uses all its bits.
pub fn integer(len_bytes: u32, signed: bool, order: ByteOrder) -> TypeClass {
    let bits = BitRange { offset: 0, count: len_bytes * 8 };
    TypeClass::Integer { len_bytes, order, signed, bits, padding: (0, 0) }
}

/// Returns an IEEE float type of 2, 4 or 8 bytes.
///
/// # Panics
/// If there is no IEEE float of this length.
pub fn float(len_bytes: u32, order: ByteOrder) -> TypeClass {
    let (exponent_bits, exponent_bias) = match len_bytes {
        2 => (5, 15),
        4 => (8, 127),
        8 => (11, 1023),
        other => panic!("no IEEE float has {other} bytes"),
    };
    let bits = len_bytes * 8;
    let mantissa_bits = bits - 1 - exponent_bits;
    TypeClass::Float {
        len_bytes,
        order,
        bits: BitRange { offset: 0, count: bits },
        padding: (0, 0, 0),
        normalization: 2,
        sign_bit: bits - 1,
        exponent: BitRange { offset: mantissa_bits, count: exponent_bits },
        mantissa: BitRange { offset: 0, count: mantissa_bits },
        exponent_bias,
    }
}

macro_rules! little_endian {
    ($($name:ident => $class:expr, $about:literal;)*) => {
        $(#[doc = $about] pub fn $name() -> TypeClass { $class })*
    };
}

little_endian! {
    u8 => integer(1, false, ByteOrder::Little), "Unsigned, 1 byte.";
    u16 => integer(2, false, ByteOrder::Little), "Unsigned, 2 bytes.";
    u32 => integer(4, false, ByteOrder::Little), "Unsigned, 4 bytes.";
    i32 => integer(4, true, ByteOrder::Little), "Signed, 4 bytes.";
    i64 => integer(8, true, ByteOrder::Little), "Signed, 8 bytes.";
    f32 => float(4, ByteOrder::Little), "IEEE, 4 bytes.";
    f64 => float(8, ByteOrder::Little), "IEEE, 8 bytes.";
}

/// Returns the type of variable-length strings.
pub fn text() -> TypeClass {
    TypeClass::VariableString { padding: 0, charset: 1, len_bytes: 16 }
}
