//! Numbers of HDF5 as numbers of IDX.

use raddle_hdf5::model::{ByteOrder, TypeClass};
use raddle_idx::dataset::sample::Number;

/// Converts the type to one of IDX; also returns whether it is big-endian.
pub fn number_of(class: &TypeClass) -> Option<(Number, bool)> {
    let is_whole = |len_bytes: u32, offset: u32, count: u32| offset == 0 && count == 8 * len_bytes;
    let (number, order) = match class {
        TypeClass::Integer { len_bytes, order, signed, bits, .. } if is_whole(*len_bytes, bits.offset, bits.count) => {
            let number = match (len_bytes, signed) {
                (1, false) => Number::Uint8,
                (1, true) => Number::Int8,
                (2, false) => Number::Uint16,
                (2, true) => Number::Int16,
                (4, false) => Number::Uint32,
                (4, true) => Number::Int32,
                (8, false) => Number::Uint64,
                (8, true) => Number::Int64,
                _ => return None,
            };
            (number, order)
        }
        TypeClass::Float { len_bytes, order, bits, mantissa, exponent, .. }
            if is_whole(*len_bytes, bits.offset, bits.count) =>
        {
            let number = match (len_bytes, mantissa.count, exponent.count) {
                (4, 23, 8) => Number::Float32,
                (8, 52, 11) => Number::Float64,
                _ => return None,
            };
            (number, order)
        }
        _ => return None,
    };
    match order {
        ByteOrder::Little => Some((number, false)),
        ByteOrder::Big => Some((number, true)),
        ByteOrder::Vax => None,
    }
}
