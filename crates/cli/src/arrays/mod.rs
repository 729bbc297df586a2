//! Arrays that are read whole rows at a time: datasets of HDF5 files, `.npy` files, raw files, fields of IDX datasets.
//!
//! Not for tables, and not for what becomes of the values. Invariant: what is read is little-endian, slowest axis first, and
//! as many bytes as its shape says.

mod cast;
mod flat;
mod hdf5;
mod idx;

pub use hdf5::number_of;
pub use idx::{IdxPart, IdxSource, WholeFields};

use crate::failure::Failure;
use crate::options::reader::ReaderArgs;
use raddle_idx::sample::Number;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The form of raw files, which do not tell it.
#[derive(Debug, Clone)]
pub struct RawForm {
    /// Values per axis, slowest first.
    pub shape: Vec<u64>,
    /// Their type.
    pub number: Number,
}

/// An array in a file.
#[derive(Debug)]
pub struct ArraySource {
    /// The file.
    pub path: PathBuf,
    /// Last part of the dataset's path, or the file's name without its ending.
    pub name: String,
    /// The dataset's path, where it is one.
    dataset: Option<String>,
    /// Values per axis, slowest first.
    pub shape: Vec<u64>,
    /// Their type, in which they are read.
    pub number: Number,
    /// Their type in the file, where it is another.
    stored_as: Option<Number>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Flat(flat::FlatValues),
    Hdf5(Box<hdf5::Hdf5Values>),
    Idx(Box<idx::IdxValues>),
}

/// The file of `text` and the path below `/` of the dataset that it may name.
fn split(text: &str) -> (&Path, Option<&str>) {
    match text.rsplit_once(":/") {
        Some((path, dataset)) if !Path::new(text).exists() => (Path::new(path), Some(dataset)),
        _ => (Path::new(text), None),
    }
}

/// The file in which the array is that `text` names.
pub fn file_of(text: &str) -> &Path {
    split(text).0
}

impl ArraySource {
    /// Opens `FILE`, `FILE:/dataset` of an HDF5 file, `FILE.npy`, or a raw file if `raw` tells its form.
    ///
    /// # Errors
    /// If it cannot be read, holds no array of numbers, or is not as long as its shape says.
    pub fn open(text: &str, raw: Option<&RawForm>, reader: &ReaderArgs) -> Result<Self, Failure> {
        if let Some(form) = raw {
            return flat::open_raw(Path::new(text), form);
        }
        if text.ends_with(".npy") {
            return flat::open_npy(Path::new(text));
        }
        let (path, dataset) = split(text);
        hdf5::open(path, dataset.map(|dataset| format!("/{dataset}")).as_deref(), reader)
    }

    /// File and dataset, as the user names them.
    pub fn place(&self) -> String {
        let path = self.path.display();
        self.dataset.as_ref().map_or_else(|| path.to_string(), |dataset| format!("{path}:{dataset}"))
    }

    /// Values of a row: all with the same index on the slowest axis.
    fn row_values(&self) -> u64 {
        self.shape[1..].iter().product()
    }

    /// Length of a row.
    pub fn row_len_bytes(&self) -> u64 {
        self.row_values().saturating_mul(self.number.len_bytes() as u64)
    }

    /// The same values read as numbers of another type.
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

    /// Bytes of a row that are held while it is read.
    pub fn held_row_len_bytes(&self) -> u64 {
        let stored = self.stored_as.map_or(0, |stored| self.row_values().saturating_mul(stored.len_bytes() as u64));
        self.row_len_bytes().saturating_add(stored)
    }

    /// Reads rows of the slowest axis.
    ///
    /// # Errors
    /// If they cannot be read, memory for them cannot be had, or the type that they are read as does not hold a value.
    pub fn read_rows(&self, rows: Range<u64>) -> Result<Vec<u8>, Failure> {
        let values = self.read_stored(rows)?;
        let Some(stored) = self.stored_as else { return Ok(values) };
        cast::cast(&values, stored, self.number).map_err(|value| {
            let what =
                format!("{}: value {value} of field {} does not fit {}", self.place(), self.name, self.number.name());
            Failure::new(crate::exit::Exit::InputRefused, &what).hint("choose a type with --cast that holds all values")
        })
    }

    fn read_stored(&self, rows: Range<u64>) -> Result<Vec<u8>, Failure> {
        let row_len_bytes = self.row_values().saturating_mul(self.stored_number().len_bytes() as u64);
        let len_bytes = row_len_bytes.saturating_mul(rows.end - rows.start);
        let mut out = Vec::new();
        let len = usize::try_from(len_bytes).ok().filter(|len| out.try_reserve_exact(*len).is_ok());
        let Some(len) = len else {
            let what = format!("{}: no memory for {len_bytes} bytes", self.place());
            return Err(Failure::new(crate::exit::Exit::Limit, &what));
        };
        out.resize(len, 0);
        let is_big_endian = match &self.values {
            Values::Flat(values) => values.read(rows.start * row_len_bytes, &mut out)?,
            Values::Hdf5(values) => values.read(&self.shape, rows, &mut out)?,
            Values::Idx(values) => values.read(rows, &mut out)?,
        };
        if is_big_endian {
            out.chunks_exact_mut(self.stored_number().len_bytes()).for_each(<[u8]>::reverse);
        }
        Ok(out)
    }
}

/// An input that cannot be used.
fn refused(path: &Path, why: &str) -> Failure {
    Failure::new(crate::exit::Exit::InputRefused, &format!("{}: {why}", path.display()))
}
