//! Arrays with contiguous values in a file: raw files, and `.npy` files after their header.

use super::{ArraySource, ArrayValues, RawForm, refused};
use crate::error::Error;
use raddle_hdf5::source::InputFile;
use raddle_idx::read::npy::{MAX_HEAD_LEN_BYTES, NpyHead};
use std::path::Path;

/// Contiguous values in a file.
#[derive(Debug)]
pub(super) struct FlatValues {
    file: InputFile,
    offset: u64,
    is_big_endian: bool,
}

impl FlatValues {
    /// Fills `out` with the bytes at offset `at` after the first value; returns whether the values are big-endian.
    pub(super) fn read(&self, at: u64, out: &mut [u8]) -> Result<bool, Error> {
        let read = self.file.read_exact_at(self.offset + at, out, "values").and_then(|()| self.file.check_unchanged());
        read.map_err(|error| Error::of_input(&error)).map(|()| self.is_big_endian)
    }
}

/// Opens a raw file of little-endian values.
pub(super) fn open_raw(path: &Path, form: &RawForm) -> Result<ArraySource, Error> {
    let head = NpyHead { number: form.number, is_big_endian: false, shape: form.shape.clone(), offset: 0 };
    source(open(path)?, head)
}

/// Opens an `.npy` file.
pub(super) fn open_npy(path: &Path) -> Result<ArraySource, Error> {
    let file = open(path)?;
    let mut bytes = vec![0; file.len_bytes().min(MAX_HEAD_LEN_BYTES as u64 + 16) as usize];
    file.read_exact_at(0, &mut bytes, "the header").map_err(|error| Error::of_input(&error))?;
    let head = NpyHead::parse(&bytes).map_err(|error| refused(path, &error.to_string()))?;
    source(file, head)
}

fn open(path: &Path) -> Result<InputFile, Error> {
    InputFile::open(path).map_err(|error| Error::of_input(&error))
}

fn source(file: InputFile, head: NpyHead) -> Result<ArraySource, Error> {
    let path = file.path().to_path_buf();
    let values = raddle_core::plan::extent::product(&head.shape);
    let needed = values.and_then(|values| values.checked_mul(head.number.len_bytes() as u64));
    let needed = needed.and_then(|len_bytes| len_bytes.checked_add(head.offset));
    if needed != Some(file.len_bytes()) {
        let needed = needed.map_or("more than 2^64".to_owned(), |len_bytes| len_bytes.to_string());
        return Err(refused(&path, &format!("has {} bytes, its shape needs {needed}", file.len_bytes())));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let values = FlatValues { file, offset: head.offset, is_big_endian: head.is_big_endian };
    let (shape, number) = (head.shape, head.number);
    Ok(ArraySource { path, name, dataset: None, shape, number, stored_as: None, values: ArrayValues::Flat(values) })
}
