//! Arrays with contiguous values in a file: raw files, and `.npy` files after their header.

use super::{ArraySource, ArrayValues, RawForm, refused};
use crate::error::Error;
use raddle_idx::read::npy::{MAX_HEAD_LEN_BYTES, NpyHead};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Contiguous values in a file.
#[derive(Debug)]
pub(super) struct FlatValues {
    file: File,
    path: PathBuf,
    offset: u64,
    is_big_endian: bool,
}

impl FlatValues {
    /// Fills `out` with the bytes at offset `at` after the first value; returns whether the values are big-endian.
    pub(super) fn read(&self, at: u64, out: &mut [u8]) -> Result<bool, Error> {
        let read = self.file.read_exact_at(out, self.offset + at);
        read.map_err(|cause| refused(&self.path, &cause.to_string())).map(|()| self.is_big_endian)
    }
}

/// Opens a raw file of little-endian values.
pub(super) fn open_raw(path: &Path, form: &RawForm) -> Result<ArraySource, Error> {
    let head = NpyHead { number: form.number, is_big_endian: false, shape: form.shape.clone(), offset: 0 };
    let file = File::open(path).map_err(|cause| refused(path, &cause.to_string()))?;
    source(path, file, head)
}

/// Opens an `.npy` file.
pub(super) fn open_npy(path: &Path) -> Result<ArraySource, Error> {
    let failed = |cause: std::io::Error| refused(path, &cause.to_string());
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    (&mut file).take(MAX_HEAD_LEN_BYTES as u64 + 16).read_to_end(&mut bytes).map_err(failed)?;
    let head = NpyHead::parse(&bytes).map_err(|error| refused(path, &error.to_string()))?;
    source(path, file, head)
}

fn source(path: &Path, file: File, head: NpyHead) -> Result<ArraySource, Error> {
    let metadata = file.metadata().map_err(|cause| refused(path, &cause.to_string()))?;
    if !metadata.is_file() {
        return Err(refused(path, "is not a regular file"));
    }
    let values = raddle_core::plan::extent::product(&head.shape);
    let needed = values.and_then(|values| values.checked_mul(head.number.len_bytes() as u64));
    let needed = needed.and_then(|len_bytes| len_bytes.checked_add(head.offset));
    if needed != Some(metadata.len()) {
        let needed = needed.map_or("more than 2^64".to_owned(), |len_bytes| len_bytes.to_string());
        return Err(refused(path, &format!("has {} bytes, its shape needs {needed}", metadata.len())));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let values = FlatValues { file, path: path.to_path_buf(), offset: head.offset, is_big_endian: head.is_big_endian };
    let (shape, number) = (head.shape, head.number);
    Ok(ArraySource {
        path: path.to_path_buf(),
        name,
        dataset: None,
        shape,
        number,
        stored_as: None,
        values: ArrayValues::Flat(values),
    })
}
