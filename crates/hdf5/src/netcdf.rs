//! netCDF-4 files and the CF convention: how a file is recognised, and how readers compute values from stored numbers.
//!
//! Merges and searches follow these rules. Sources: CF conventions 1.11, section 8.1; the netCDF-4 format in HDF5 (NUG,
//! appendix C); xarray for the type in which values are computed. Invariant: a file is recognised by the same marks
//! everywhere.

use crate::Result;
use crate::logical::strings_of;
use crate::model::Object;
use crate::number::NumberType;
use crate::open_file::OpenFile;

/// Attribute of the root with the names of conventions.
pub const CONVENTIONS: &str = "Conventions";
/// Attribute of the root with the versions of the libraries that wrote the file.
pub const PROPERTIES: &str = "_NCProperties";
/// Attribute with the number of a dimension.
pub const DIMENSION_NUMBER: &str = "_Netcdf4Dimid";
/// Number of objects that are searched for a mark of netCDF-4: files of that library store dimensions first.
pub const MAX_EXAMINED: usize = 64;
/// Attributes that define the value of a stored number.
pub const PACKING: [&str; 5] = ["scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned"];

/// Returns whether the text of [`CONVENTIONS`] names CF or a convention on which it is based.
pub fn names_convention(text: &str) -> bool {
    let is_named = |word: &str| {
        ["CF", "COARDS", "UGRID", "ACDD"]
            .iter()
            .any(|name| word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
    };
    text.split([' ', ',']).any(is_named)
}

/// Returns whether an open file is a netCDF-4 file or follows CF.
///
/// # Errors
/// If an attribute of the root is damaged.
pub fn is_netcdf(file: &OpenFile) -> Result<bool> {
    let Some((root, others)) = file.tree().objects.split_first() else { return Ok(false) };
    let has = |object: &Object, name: &str| object.attribute(name.as_bytes()).is_some();
    if has(root, PROPERTIES) || others.iter().take(MAX_EXAMINED).any(|object| has(object, DIMENSION_NUMBER)) {
        return Ok(true);
    }
    let text = match root.attribute(CONVENTIONS.as_bytes()) {
        Some(attribute) => {
            strings_of(&attribute.datatype.class, &file.inline(&attribute.datatype.class, &attribute.data)?)
        }
        None => None,
    };
    Ok(text.is_some_and(|texts| texts.first().is_some_and(|text| names_convention(text))))
}

/// Returns whether `_Unsigned` states that stored signed integers are to be read as unsigned, or the reverse.
pub fn reinterprets(stored: NumberType, unsigned: Option<&str>) -> bool {
    match (stored, unsigned) {
        (NumberType::Integer { signed, .. }, Some("true" | "True")) => signed,
        (NumberType::Integer { signed, .. }, Some("false" | "False")) => !signed,
        _ => false,
    }
}

/// Returns whether readers compute values in floats of 32 bits, given the types of `scale_factor` and `add_offset` (as
/// xarray does, following CF section 8.1).
pub fn is_single(stored: NumberType, scale: Option<NumberType>, offset: Option<NumberType>) -> bool {
    let is_single = |number: NumberType| !number.is_integer() && number.len_bytes() == 4;
    match (scale, offset) {
        (Some(scale), Some(offset)) if is_single(scale) && is_single(offset) => {
            stored.len_bytes() != 4 || !stored.is_integer()
        }
        (_, Some(_)) => false,
        (Some(scale), None) => is_single(scale),
        (None, None) if stored.is_integer() => stored.len_bytes() <= 2,
        (None, None) => stored.len_bytes() <= 4,
    }
}
