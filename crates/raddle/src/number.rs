//! Conversion of HDF5 number types to IDX number types.

use raddle_hdf5::model::TypeClass;
use raddle_hdf5::number::NumberType;
use raddle_idx::dataset::sample::Number;

/// Converts the type to one of IDX; also returns whether it is big-endian.
pub fn idx_number(class: &TypeClass) -> Option<(Number, bool)> {
    match NumberType::of(class)? {
        NumberType::Integer { len_bytes, signed, is_big_endian } => {
            let number = match (len_bytes, signed) {
                (1, false) => Number::Uint8,
                (1, true) => Number::Int8,
                (2, false) => Number::Uint16,
                (2, true) => Number::Int16,
                (4, false) => Number::Uint32,
                (4, true) => Number::Int32,
                (_, false) => Number::Uint64,
                (_, true) => Number::Int64,
            };
            Some((number, is_big_endian))
        }
        NumberType::Float { len_bytes, is_big_endian } => {
            Some((if len_bytes == 4 { Number::Float32 } else { Number::Float64 }, is_big_endian))
        }
    }
}
