//! Fill values of elements that were never written, or that are missing.
//!
//! Invariant: a value here is one that netCDF readers treat as missing.

use crate::schema::AttributeValue;
use crate::schema::attribute;
use raddle_hdf5::model::{Dataset, Datatype};
use raddle_hdf5::number::NumberType;

/// Fill values of the netCDF library for integers of 2, 4 and 8 bytes, signed and unsigned.
pub(super) const INTEGER_FILLS: [(u8, bool, i64); 6] = [
    (2, true, -32767),
    (4, true, -2_147_483_647),
    (8, true, -9_223_372_036_854_775_806),
    (2, false, 65_535),
    (4, false, 4_294_967_295),
    (8, false, -2),
];

/// Fill value of the netCDF library for floats of 4 and 8 bytes: 15 * 2^119.
pub(super) const FLOAT_FILL: f64 = 9.969_209_968_386_869e36;

/// Returns the fill value of a dataset if it is the default of the netCDF library, which treats it as a missing value.
pub(super) fn library_fill(dataset: &Dataset) -> Option<f64> {
    let number = NumberType::of(&dataset.datatype.class)?;
    let (mut integers, mut floats) = (Vec::new(), Vec::new());
    number.decode_floats(dataset.fill.value.as_ref()?.bytes(), &mut integers, &mut floats);
    let is_of_library = |fill: f64| match number {
        NumberType::Float { .. } => fill == FLOAT_FILL,
        NumberType::Integer { len_bytes, signed, .. } => INTEGER_FILLS
            .into_iter()
            .any(|(len, is_signed, value)| (len, is_signed) == (len_bytes, signed) && value as f64 == fill),
    };
    floats.first().copied().filter(|fill| is_of_library(*fill))
}

/// Returns the attribute `_FillValue` of a float type whose missing values are NaN, and the stored bytes of NaN.
pub(super) fn nan_fill(datatype: &Datatype) -> (AttributeValue, Vec<u8>) {
    let mut nan = Vec::new();
    if let Some(number) = NumberType::of(&datatype.class) {
        number.encode_floats(&[f64::NAN], &mut nan);
    }
    (attribute::new("_FillValue", datatype.class.as_ref().clone(), &[1], nan.clone()), nan)
}
