//! Arrays that are read by whole rows: datasets of HDF5 files, `.npy` files, raw files, and fields of IDX datasets.
//!
//! Tables are not supported. Invariant: the bytes returned are little-endian, with the slowest axis first, and match
//! the shape in length.

mod cast;
mod flat;
mod hdf5;
mod inputs;

pub use inputs::open;

use crate::error::Error;
use crate::exit::Exit;
use crate::options::ReaderOptions;
use raddle_idx::dataset::sample::Number;
use raddle_idx::inputs::{FieldArray, RowArray};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Shape and type of raw files, which have no header.
#[derive(Debug, Clone)]
pub struct RawForm {
    /// Number of values per axis, slowest first.
    pub shape: Vec<u64>,
    /// Type of the values.
    pub number: Number,
}

/// An array in a file.
#[derive(Debug)]
pub struct ArraySource {
    /// Path of the file.
    pub path: PathBuf,
    /// Last component of the dataset's path, or the file name without its extension.
    pub name: String,
    /// Path of the dataset, if the array is one.
    dataset: Option<String>,
    /// Number of values per axis, slowest first.
    pub shape: Vec<u64>,
    /// Type in which the values are read.
    pub number: Number,
    /// Type of the values in the file, if different.
    stored_as: Option<Number>,
    values: ArrayValues,
}

#[derive(Debug)]
enum ArrayValues {
    Flat(flat::FlatValues),
    Hdf5(Box<hdf5::Hdf5Values>),
    Field(Box<FieldArray>),
}

/// Splits `text` into the file and the path of the dataset (below `/`) that it may name.
fn split(text: &str) -> (&Path, Option<&str>) {
    match text.rsplit_once(":/") {
        Some((path, dataset)) if !Path::new(text).exists() => (Path::new(path), Some(dataset)),
        _ => (Path::new(text), None),
    }
}

/// Returns the file that contains the array named by `text`.
pub fn file_of(text: &str) -> &Path {
    split(text).0
}

impl ArraySource {
    /// Opens `FILE`, `FILE:/dataset` of an HDF5 file, `FILE.npy`, or a raw file of shape and type `raw`.
    ///
    /// # Errors
    /// If it cannot be read, contains no array of numbers, or its length does not match its shape.
    pub fn open(text: &str, raw: Option<&RawForm>, reader: &ReaderOptions) -> Result<Self, Error> {
        if let Some(form) = raw {
            return flat::open_raw(Path::new(text), form);
        }
        if text.ends_with(".npy") {
            return flat::open_npy(Path::new(text));
        }
        let (path, dataset) = split(text);
        hdf5::open(path, dataset.map(|dataset| format!("/{dataset}")).as_deref(), reader)
    }

    /// Creates the source of a field of an IDX dataset.
    pub fn of_field(field: FieldArray) -> Self {
        Self {
            path: field.path().to_path_buf(),
            name: field.name().to_owned(),
            dataset: None,
            shape: field.shape().to_vec(),
            number: field.number(),
            stored_as: None,
            values: ArrayValues::Field(Box::new(field)),
        }
    }

    /// Returns the number of values in a row, which consists of all values with the same index on the slowest axis.
    fn row_values(&self) -> u64 {
        self.shape[1..].iter().product()
    }

    /// Converts the values to another type when they are read.
    #[must_use]
    pub fn cast(mut self, number: Number) -> Self {
        let stored = self.stored_number();
        self.stored_as = (stored != number).then_some(stored);
        self.number = number;
        self
    }

    fn stored_number(&self) -> Number {
        self.stored_as.unwrap_or(self.number)
    }

    fn read_stored(&self, rows: Range<u64>) -> Result<Vec<u8>, Error> {
        let row_len_bytes = self.row_values().saturating_mul(self.stored_number().len_bytes() as u64);
        let len_bytes = row_len_bytes.saturating_mul(rows.end - rows.start);
        let mut out = Vec::new();
        let len = usize::try_from(len_bytes).ok().filter(|len| out.try_reserve_exact(*len).is_ok());
        let Some(len) = len else {
            let what = format!("{}: no memory for {len_bytes} bytes", self.place());
            return Err(Error::new(Exit::Limit, &what));
        };
        out.resize(len, 0);
        let is_big_endian = match &self.values {
            ArrayValues::Flat(values) => values.read(rows.start * row_len_bytes, &mut out)?,
            ArrayValues::Hdf5(values) => values.read(&self.shape, rows, &mut out)?,
            ArrayValues::Field(field) => {
                field.read_rows_into(rows, &mut out)?;
                false
            }
        };
        if is_big_endian {
            out.chunks_exact_mut(self.stored_number().len_bytes()).for_each(<[u8]>::reverse);
        }
        Ok(out)
    }
}

impl RowArray for ArraySource {
    type Error = Error;

    fn path(&self) -> &Path {
        &self.path
    }

    fn place(&self) -> String {
        let path = self.path.display();
        self.dataset.as_ref().map_or_else(|| path.to_string(), |dataset| format!("{path}:{dataset}"))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn number(&self) -> Number {
        self.number
    }

    fn row_len_bytes(&self) -> u64 {
        self.row_values().saturating_mul(self.number.len_bytes() as u64)
    }

    fn buffered_row_len_bytes(&self) -> u64 {
        let stored = self.stored_as.map_or(0, |stored| self.row_values().saturating_mul(stored.len_bytes() as u64));
        self.row_len_bytes().saturating_add(stored)
    }

    fn read_rows(&self, rows: Range<u64>) -> Result<Vec<u8>, Error> {
        let values = self.read_stored(rows)?;
        let Some(stored) = self.stored_as else { return Ok(values) };
        cast::cast(&values, stored, self.number).map_err(|value| {
            let what =
                format!("{}: value {value} of field {} does not fit {}", self.place(), self.name, self.number.name());
            Error::new(Exit::InputRefused, &what).hint("choose a type with --cast that holds all values")
        })
    }

    fn is_of_output(&self, output: &Path, folder: &Path) -> bool {
        matches!(&self.values, ArrayValues::Field(field) if field.is_of_output(output, folder))
    }
}

/// Creates the failure for an input that cannot be used.
fn refused(path: &Path, why: &str) -> Error {
    Error::new(Exit::InputRefused, &format!("{}: {why}", path.display()))
}
