//! Choice between the numbers that a netCDF variable stores and the values that readers of its convention compute.
//!
//! Both are right for some users and wrong for others, so a search that uses such a variable requires the choice.

use crate::error::{QueryError, Result};
use raddle_hdf5::number::NumberType;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Values of netCDF variables on which a search is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// The numbers in the file.
    Stored,
    /// The values that xarray shows: scaled (`scale_factor`, `add_offset`), unsigned (`_Unsigned`), and without those
    /// that `_FillValue` and `missing_value` mark as missing.
    Decoded,
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stored => "stored",
            Self::Decoded => "decoded",
        })
    }
}

impl FromStr for Values {
    type Err = QueryError;

    fn from_str(word: &str) -> Result<Self> {
        let found = [Self::Stored, Self::Decoded].into_iter().find(|values| values.to_string() == word);
        found.ok_or_else(|| QueryError::Values { word: word.to_owned() })
    }
}

/// Type of the values of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ValueType {
    /// Type of the computed values; `None` for the stored type.
    pub computed: Option<NumberType>,
    /// Whether NaN stands for a missing value.
    pub is_nullable: bool,
}
