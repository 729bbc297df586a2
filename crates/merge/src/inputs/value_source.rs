//! Values of a file's datasets that are read without a plan: constants during the scan, and values that must be equal
//! in all inputs.
//!
//! Invariant: a dataset is read in blocks of rows that fit into a thread's share of the memory budget, whatever its
//! size.

use crate::inputs::reader::InputReader;
use raddle_codec::Pipeline;
use raddle_core::digest::{concat, fragment};
use raddle_core::plan::extent::values_len_bytes;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::model::{Dataset, InlineData, Layout};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits};
use raddle_hdf5::source::InputFile;
use std::ops::Range;

/// Number of bytes of values read at once, unless the rows of a chunk take more.
const BLOCK_LEN_BYTES: u64 = 4 << 20;

/// Reader of values of one file's datasets.
pub struct ValueSource<'a> {
    file: &'a InputFile,
    encoding: Encoding,
    library: &'a InputReader,
    reader: DatasetReader,
}

impl<'a> ValueSource<'a> {
    /// Creates a reader of values of `file`.
    pub fn new(file: &'a InputFile, encoding: Encoding, library: &'a InputReader) -> Self {
        Self { file, encoding, library, reader: DatasetReader::new(ReaderLimits::default()) }
    }

    /// Returns the canonical bytes of all elements of a small dataset.
    pub fn all_values(
        &mut self,
        dataset: &Dataset,
        path: &[u8],
        resolver: &mut Resolver<'_>,
    ) -> raddle_hdf5::Result<Vec<u8>> {
        self.read_rows(dataset, path, 0..rows(dataset), resolver)
    }

    /// Returns the digest of the canonical bytes of all elements.
    pub fn digest(&mut self, dataset: &Dataset, path: &[u8], resolver: &mut Resolver<'_>) -> raddle_hdf5::Result<u64> {
        let mut digest = 0;
        for block in self.blocks(dataset)? {
            let values = self.read_rows(dataset, path, block, resolver)?;
            digest = concat(digest, fragment(&values), values.len() as u64);
        }
        Ok(digest)
    }

    /// Splits the rows of a dataset into blocks of whole chunks, as far as memory allows.
    ///
    /// # Errors
    /// If a row needs more memory than the limit.
    pub fn blocks(&self, dataset: &Dataset) -> raddle_hdf5::Result<impl Iterator<Item = Range<u64>> + use<>> {
        let (all, limit) = (rows(dataset), self.library.value_limit_bytes());
        let element_len_bytes = dataset.datatype.class.len_bytes();
        let others = dataset.dataspace.dims().get(1..).unwrap_or(&[]);
        let row_len_bytes = values_len_bytes(others, element_len_bytes).max(1);
        if row_len_bytes > limit {
            return Err(Hdf5Error::Memory { path: self.file.path().to_path_buf(), needed: row_len_bytes, limit });
        }
        let of_chunk = match &dataset.layout {
            Layout::Chunked { chunk_shape, .. } => chunk_shape.first().copied().unwrap_or(1).max(1),
            _ => 1,
        };
        let of_block = (BLOCK_LEN_BYTES / row_len_bytes / of_chunk).max(1) * of_chunk;
        let count = of_block.min(limit / row_len_bytes).max(1);
        Ok((0..all.div_ceil(count)).map(move |block| block * count..all.min((block + 1) * count)))
    }

    /// Returns the canonical bytes of rows of a dataset; the only row of a scalar is row 0.
    pub fn read_rows(
        &mut self,
        dataset: &Dataset,
        path: &[u8],
        rows: Range<u64>,
        resolver: &mut Resolver<'_>,
    ) -> raddle_hdf5::Result<Vec<u8>> {
        if let Layout::Compact(InlineData::Canonical(bytes)) = &dataset.layout {
            // Strings only, and never larger than an object header.
            return Ok(bytes.clone());
        }
        let mut count = dataset.dataspace.dims().to_vec();
        let mut start = vec![0; count.len()];
        if let (Some(first), Some(of_first)) = (start.first_mut(), count.first_mut()) {
            (*first, *of_first) = (rows.start, rows.end - rows.start);
        }
        if dataset.layout.is_through_library() {
            return self.library.read_values(self.file.path(), path, (!count.is_empty()).then_some(rows));
        }
        let class = &dataset.datatype.class;
        let pipeline = Pipeline::new(&dataset.filters, class.len_bytes() as usize).map_err(|error| {
            Hdf5Error::Unsupported { path: self.file.path().to_path_buf(), address: 0, what: error.to_string() }
        })?;
        let limit = self.library.value_limit_bytes();
        let needed = ReaderLimits::default().peak_len_bytes(dataset, &pipeline, self.file.len_bytes());
        if needed > limit {
            return Err(Hdf5Error::Memory { path: self.file.path().to_path_buf(), needed, limit });
        }
        let source = DatasetSource { file: self.file, encoding: self.encoding, dataset, pipeline: &pipeline };
        let origin = vec![0; count.len()];
        let target = BoxRead { start: &start, count: &count, out_shape: &count, out_origin: &origin };
        let elements = count.iter().fold(class.len_bytes(), |len, &dim| len.saturating_mul(dim));
        let mut stored = vec![0; elements as usize];
        self.reader.read_box(&source, &target, &mut stored)?;
        if !class.is_file_local() {
            return Ok(stored);
        }
        let mut canonical = Vec::new();
        resolver.canonical(class, &stored, &mut canonical)?;
        Ok(canonical)
    }
}

/// Returns the number of rows of a dataset; 1 for a scalar.
fn rows(dataset: &Dataset) -> u64 {
    dataset.dataspace.dims().first().copied().unwrap_or(1)
}
