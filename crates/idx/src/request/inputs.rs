//! The request for inputs: how files with arrays form fields and time steps.

use super::fault::RequestFault;
use super::sizes::{AxisRange, Shape};
use crate::dataset::sample::Number;
use crate::error::{IdxError, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Relation between several inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum InputRelation {
    /// Fields of one dataset, at one time
    #[default]
    Fields,
    /// One field at consecutive times
    Steps,
}

/// Request for the arrays that are written to an output or compared with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Inputs"))]
pub struct InputRequest {
    /// Relation between several inputs
    #[cfg_attr(feature = "clap", arg(long = "as", value_name = "WHAT", value_enum, default_value_t))]
    #[serde(rename = "as")]
    pub inputs_are: InputRelation,

    /// Time step of the inputs, or of the first of them; without it a dataset of fields has no time steps. For an IDX
    /// dataset as input: the only step to read
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub step: Option<u64>,

    /// The last axis of the inputs holds the components of each sample
    #[cfg_attr(feature = "clap", arg(long))]
    pub vector: bool,

    /// Shape of raw files, slowest axis first, for example 64x128x128
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHAPE", requires = "dtype"))]
    pub shape: Option<Shape>,

    /// Type of the numbers in raw files, little-endian: uint8 to int64, float32, float64
    #[cfg_attr(feature = "clap", arg(long, value_name = "TYPE", requires = "shape"))]
    pub dtype: Option<Number>,

    /// Names of the fields, in the order of the inputs [default: names of datasets or files]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_delimiter = ','))]
    pub name: Vec<String>,

    /// Type of the numbers to write; values are converted exactly or to the nearest float32 or float64, anything else
    /// is an error
    #[cfg_attr(feature = "clap", arg(long, value_name = "TYPE"))]
    pub cast: Option<Number>,

    /// Fields to read from an IDX dataset [default: all]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_delimiter = ','))]
    pub field: Vec<String>,

    /// Ranges of samples to read from an IDX dataset, per axis, end excluded; other axes are whole
    #[cfg_attr(feature = "clap", arg(long, value_name = "x=0:64,z=5:9", value_delimiter = ','))]
    pub crop: Vec<AxisRange>,

    /// Read missing blocks of an IDX dataset as the default value of the field
    #[cfg_attr(feature = "clap", arg(long))]
    pub missing_as_default: bool,
}

impl InputRequest {
    /// Returns the path of the IDX dataset among `inputs`; `None` if there is none.
    ///
    /// # Errors
    /// If it is not the only input, or options do not apply to the kind of inputs.
    pub fn dataset_of<'i>(&self, inputs: &'i [String]) -> Result<Option<&'i Path>> {
        let is_dataset = |path: &String| Path::new(path).extension().is_some_and(|ending| ending == "idx");
        if !inputs.iter().any(is_dataset) {
            let of_datasets = [
                (!self.field.is_empty(), "field"),
                (!self.crop.is_empty(), "crop"),
                (self.missing_as_default, "missing_as_default"),
            ];
            return match of_datasets.into_iter().find(|(is_set, _)| *is_set) {
                Some((_, option)) => Err(IdxError::Request { option, fault: RequestFault::NoDataset }),
                None => Ok(None),
            };
        }
        let [input] = inputs else { return Err(IdxError::SeveralInputs) };
        let of_arrays = [
            (self.inputs_are == InputRelation::Steps, "as steps"),
            (self.vector, "vector"),
            (self.shape.is_some(), "shape"),
            (self.dtype.is_some(), "dtype"),
        ];
        if let Some((_, option)) = of_arrays.into_iter().find(|(is_set, _)| *is_set) {
            return Err(IdxError::Request { option, fault: RequestFault::OnlyArrays { input: input.clone() } });
        }
        Ok(Some(Path::new(input)))
    }

    /// Returns shape and type of raw files; `None` if the inputs are not raw files.
    ///
    /// # Errors
    /// If only one of the two is given.
    pub fn raw_form(&self) -> Result<Option<(&Shape, Number)>> {
        let needs = |option, other| Err(IdxError::Request { option, fault: RequestFault::Needs { other } });
        match (&self.shape, self.dtype) {
            (Some(shape), Some(number)) => Ok(Some((shape, number))),
            (None, None) => Ok(None),
            (Some(_), None) => needs("shape", "dtype"),
            (None, Some(_)) => needs("dtype", "shape"),
        }
    }

    /// Returns the requested names of `count` fields; `None` if there are none.
    ///
    /// # Errors
    /// If there are more or fewer names than fields.
    pub fn names(&self, count: usize) -> Result<Option<&[String]>> {
        match self.name.len() {
            0 => Ok(None),
            names if names == count => Ok(Some(&self.name)),
            names => {
                let fault = RequestFault::Names { names, fields: count };
                Err(IdxError::Request { option: "name", fault })
            }
        }
    }
}
