//! Statistics of the columns of a file, kept beside it: the limits of every block of rows.
//!
//! The file of an index has a magic number, a version, the contents in postcard, and a CRC-64 of all before it. Version 2
//! adds the limits of texts. It
//! belongs to one state of one file, by length and modification time, and is not used for any other. Invariant: an index
//! that is read describes blocks without gaps, with limits of the columns' types.

use crate::error::{QueryError, Result};
use crate::statistics::{Limits, OrderedType};
use crate::table::{Table, TableColumn, block_rows, groups};
use raddle_core::cancel::CancelToken;
use raddle_core::digest::Digest;
use raddle_core::parallel;
use raddle_core::pooled_file::FileIdentity;
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::open_file::OpenFile;
use raddle_hdf5::read::{DatasetReader, ReaderLimits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// First bytes of an index.
const MAGIC: &[u8; 8] = b"raddlest";
/// Version of the format that is written.
const VERSION: u8 = 2;
/// Oldest version that is read.
const MIN_VERSION: u8 = 1;
/// Number of rows that are read at once, in blocks.
const BLOCKS_PER_JOB: u64 = 8;

/// Statistics of the columns of a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// Length of the file.
    len_bytes: u64,
    /// Modification time of the file.
    modified_ns: i128,
    /// Statistics by path.
    columns: BTreeMap<String, ColumnLimits>,
}

/// Limits of the blocks of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ColumnLimits {
    /// Number of rows.
    pub rows: u64,
    /// Length of a row.
    pub row_len_bytes: u64,
    /// Rows of each block except the last, which may be shorter.
    pub block_rows: u64,
    /// Limits of each block.
    pub blocks: Vec<Limits>,
}

/// An index beside a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Beside {
    /// There is none.
    Missing,
    /// It belongs to another state of the file.
    Stale,
    /// It can be used.
    Usable(Index),
}

impl Index {
    /// Returns the path of the index beside a file: `FILE.stats`.
    pub fn path_beside(file: &Path) -> PathBuf {
        let mut path = file.as_os_str().to_owned();
        path.push(".stats");
        path.into()
    }

    /// Computes the statistics of all datasets with one number or one text per row.
    ///
    /// # Errors
    /// If values cannot be read, or the run is cancelled.
    pub fn compute(file: &OpenFile, threads: usize, cancel: &CancelToken) -> Result<Self> {
        Self::default().extended(file, threads, cancel)
    }

    /// Computes the statistics of a file to which rows were appended since this index was made. Whole blocks of rows
    /// that the index knows are not read again.
    ///
    /// # Errors
    /// As for [`Index::compute`].
    pub fn extended(&self, file: &OpenFile, threads: usize, cancel: &CancelToken) -> Result<Self> {
        let mut columns: Vec<OrderedColumn> = Vec::new();
        for path in groups(file)? {
            let table = Table::of(file, &path)?;
            for name in table.names()? {
                // A dataset that a scan cannot compare needs no statistics.
                let Ok(column) = table.column(&name) else { continue };
                let Some(values) = column.kind.ordered() else { continue };
                let block_rows = block_rows(column.chunk_rows(), column.row_len_bytes);
                let path = table.path_of(&name);
                let known = self.whole_blocks(&path, &column, values, block_rows);
                columns.push(OrderedColumn { path, column, values, block_rows, known });
            }
        }
        let jobs: Vec<(usize, Range<u64>)> = columns
            .iter()
            .enumerate()
            .flat_map(|(at, OrderedColumn { column, block_rows, known, .. })| {
                let (step, rows) = (block_rows * BLOCKS_PER_JOB, column.rows);
                let first = known.len() as u64 * block_rows;
                (first..rows).step_by(step as usize).map(move |start| (at, start..(start + step).min(rows)))
            })
            .collect();
        let reader = || BlockReader { reader: DatasetReader::new(ReaderLimits::default()), resolver: None, values: Vec::new() };
        let parts = parallel::map(&jobs, threads.max(1), cancel, reader, |reader, (at, rows)| {
            let limits = columns[*at].limits(file, rows, reader);
            limits.map_err(|error| QueryError::Hdf5(error.in_object(columns[*at].path.clone())))
        })?;
        let mut blocks: Vec<Vec<Limits>> = columns.iter().map(|column| column.known.to_vec()).collect();
        for ((at, _), part) in jobs.iter().zip(parts) {
            blocks[*at].extend(part);
        }
        let columns =
            columns.into_iter().zip(blocks).map(|(OrderedColumn { path, column, block_rows, .. }, blocks)| {
                let (rows, row_len_bytes) = (column.rows, column.row_len_bytes);
                (path, ColumnLimits { rows, row_len_bytes, block_rows, blocks })
            });
        Ok(Self::of(&file.identity(), columns.collect()))
    }

    /// Returns the limits of the whole blocks that this index knows of a column, whose rows come first in the file.
    fn whole_blocks(&self, path: &str, column: &TableColumn, values: OrderedType, block_rows: u64) -> &[Limits] {
        let is_same = |known: &&ColumnLimits| {
            (known.block_rows, known.row_len_bytes) == (block_rows, column.row_len_bytes)
                && known.rows <= column.rows
                && known.blocks.iter().all(|block| block.is_of(values))
        };
        let Some(known) = self.columns.get(path).filter(is_same) else { return &[] };
        known.blocks.get(..(known.rows / block_rows) as usize).unwrap_or_default()
    }

    /// Compares this index with the values of its file; returns the path of each column that differs, and how.
    ///
    /// # Errors
    /// As for [`Index::compute`].
    pub fn differences(&self, file: &OpenFile, threads: usize, cancel: &CancelToken) -> Result<Vec<(String, String)>> {
        let right = Self::compute(file, threads, cancel)?;
        let difference = |(path, known): (&String, &ColumnLimits)| {
            let what = match right.columns.get(path) {
                None => "is not a dataset with one number or text per row".to_owned(),
                Some(right) if (known.rows, known.block_rows) != (right.rows, right.block_rows) => {
                    "has another number of rows or of rows per block".to_owned()
                }
                Some(right) => {
                    let block = known.blocks.iter().zip(&right.blocks).position(|(known, right)| known != right)?;
                    let first = block as u64 * known.block_rows;
                    format!("has other limits in rows {first} to {}", known.rows.min(first + known.block_rows) - 1)
                }
            };
            Some((path.clone(), what))
        };
        Ok(self.columns.iter().filter_map(difference).collect())
    }

    /// Creates the index of a file in this state.
    pub(crate) fn of(identity: &FileIdentity, columns: BTreeMap<String, ColumnLimits>) -> Self {
        let FileIdentity { len_bytes, modified_ns, .. } = *identity;
        Self { len_bytes, modified_ns, columns }
    }

    /// Returns the number of columns with statistics.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Returns the number of values that the statistics describe.
    pub fn value_count(&self) -> u64 {
        self.columns.values().map(|column| column.rows).sum()
    }

    /// Returns the length of these values.
    pub fn value_len_bytes(&self) -> u64 {
        self.columns
            .values()
            .fold(0, |sum, column| sum.saturating_add(column.rows.saturating_mul(column.row_len_bytes)))
    }

    /// Whether the index belongs to this state of a file.
    pub fn is_of(&self, identity: &FileIdentity) -> bool {
        self.len_bytes == identity.len_bytes && self.modified_ns == identity.modified_ns
    }

    /// Returns the limits of some rows of a column; `None` if they are unknown.
    pub(crate) fn limits(&self, path: &str, rows: u64, values: OrderedType, wanted: &Range<u64>) -> Option<Limits> {
        let column = self.columns.get(path).filter(|column| column.rows == rows)?;
        let (first, last) = (wanted.start / column.block_rows, wanted.end.checked_sub(1)? / column.block_rows);
        let blocks = column.blocks.get(first as usize..=last as usize)?;
        if blocks.iter().any(|block| !block.is_of(values) || *block == Limits::Empty) {
            return None;
        }
        blocks.iter().copied().reduce(Limits::union)
    }

    /// Returns the index as bytes.
    ///
    /// # Errors
    /// If it does not fit into memory.
    pub fn to_bytes(&self) -> postcard::Result<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.extend(postcard::to_stdvec(self)?);
        let seal = Digest::of(&bytes).crc64_nvme();
        bytes.extend(seal.to_le_bytes());
        Ok(bytes)
    }

    /// Parses the bytes of an index.
    ///
    /// # Errors
    /// The reason why they are none.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, String> {
        let Some((sealed, seal)) = bytes.split_last_chunk::<8>() else { return Err("is not an index".to_owned()) };
        let Some((version, contents)) = sealed.strip_prefix(MAGIC).and_then(<[u8]>::split_first) else {
            return Err("is not an index of raddle".to_owned());
        };
        if !(MIN_VERSION..=VERSION).contains(version) {
            return Err(format!(
                "has version {version}, and this raddle knows {MIN_VERSION} to {VERSION}; make it again (raddle index)"
            ));
        }
        if Digest::of(sealed).crc64_nvme() != u64::from_le_bytes(*seal) {
            return Err("is damaged; make it again (raddle index)".to_owned());
        }
        let index: Self = postcard::from_bytes(contents).map_err(|error| format!("is damaged: {error}"))?;
        let fits = |column: &ColumnLimits| {
            column.block_rows > 0 && column.rows.div_ceil(column.block_rows) == column.blocks.len() as u64
        };
        match index.columns.values().all(fits) {
            true => Ok(index),
            false => Err("contradicts itself; make it again (raddle index)".to_owned()),
        }
    }

    /// Refuses a path at which there is something else than an index.
    ///
    /// # Errors
    /// If there is.
    pub fn check_replaceable(path: &Path) -> Result<()> {
        let is_index = || -> std::io::Result<bool> {
            let mut magic = [0; MAGIC.len()];
            std::fs::File::open(path)?.read_exact(&mut magic)?;
            Ok(magic == *MAGIC)
        };
        match std::fs::symlink_metadata(path) {
            Ok(_) if !is_index().unwrap_or(false) => {
                let reason = "exists, and is not an index; remove it, or name another file with -o".to_owned();
                Err(QueryError::Output { path: path.to_path_buf(), reason })
            }
            _ => Ok(()),
        }
    }

    /// Writes the index to a file, which it replaces at once. Returns the length of the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<u64> {
        let failed = |reason: String| QueryError::Output { path: path.to_path_buf(), reason };
        let bytes = self.to_bytes().map_err(|error| failed(error.to_string()))?;
        let mut hidden = path.as_os_str().to_owned();
        hidden.push(".part");
        let written = std::fs::write(&hidden, &bytes).and_then(|()| std::fs::rename(&hidden, path));
        written.map_err(|error| failed(format!("cannot be written: {error}")))?;
        Ok(bytes.len() as u64)
    }

    /// Reads an index.
    ///
    /// # Errors
    /// If the file cannot be read, or is not an index.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |reason: String| QueryError::Index { path: path.to_path_buf(), reason };
        let bytes = std::fs::read(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        Self::of_bytes(&bytes).map_err(failed)
    }

    /// Reads the index beside an open file.
    ///
    /// # Errors
    /// If there is one that cannot be read.
    pub fn beside(file: &OpenFile) -> Result<Beside> {
        let path = Self::path_beside(file.path());
        if !path.exists() {
            return Ok(Beside::Missing);
        }
        let index = Self::read(&path)?;
        Ok(if index.is_of(&file.identity()) { Beside::Usable(index) } else { Beside::Stale })
    }
}

/// State of a thread that reads blocks.
struct BlockReader<'f> {
    reader: DatasetReader,
    resolver: Option<Resolver<'f>>,
    values: Vec<u8>,
}

/// A column whose limits are determined.
struct OrderedColumn<'k> {
    path: String,
    column: TableColumn,
    values: OrderedType,
    block_rows: u64,
    /// Limits of the first blocks, if they are known.
    known: &'k [Limits],
}

impl OrderedColumn<'_> {
    /// Returns the limits of each block of some rows, of which the first begins a block.
    fn limits<'f>(
        &self,
        file: &'f OpenFile,
        rows: &Range<u64>,
        reader: &mut BlockReader<'f>,
    ) -> raddle_hdf5::Result<Vec<Limits>> {
        let BlockReader { reader, resolver, values } = reader;
        // Texts of variable length are found one block after the other: their length is not known before.
        let step = if self.column.is_variable() { self.block_rows } else { rows.end - rows.start };
        let block_len = (self.block_rows * self.column.row_len_bytes) as usize;
        let mut limits = Vec::new();
        for start in rows.clone().step_by(step as usize) {
            let some = start..(start + step).min(rows.end);
            self.column.read_comparable(file, (reader, resolver), &some, values)?;
            match self.column.is_variable() {
                true => limits.push(Limits::of(self.values, values)),
                false => limits.extend(values.chunks(block_len.max(1)).map(|block| Limits::of(self.values, block))),
            }
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_hdf5::number::NumberType;

    fn index() -> Index {
        let blocks = vec![Limits::Integers { min: 0, max: 4 }, Limits::Integers { min: 5, max: 9 }];
        let column = ColumnLimits { rows: 7, row_len_bytes: 8, block_rows: 5, blocks };
        Index { len_bytes: 3, modified_ns: 4, columns: BTreeMap::from([("/t/a".to_owned(), column)]) }
    }

    #[test]
    fn an_index_is_read_back_and_any_change_is_found() {
        let bytes = index().to_bytes().unwrap();
        assert_eq!(Index::of_bytes(&bytes), Ok(index()));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Index::of_bytes(&changed).is_err(), "byte {at}");
            assert!(Index::of_bytes(&bytes[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn older_versions_are_read_and_newer_ones_refused() {
        let of_version = |version: u8| {
            let mut bytes = index().to_bytes().unwrap();
            bytes.truncate(bytes.len() - 8);
            bytes[MAGIC.len()] = version;
            bytes.extend(Digest::of(&bytes).crc64_nvme().to_le_bytes());
            Index::of_bytes(&bytes)
        };
        assert_eq!(of_version(1), Ok(index()));
        assert!(of_version(VERSION + 1).unwrap_err().contains("has version 3"));
        assert!(of_version(0).is_err());
    }

    #[test]
    fn an_index_that_contradicts_itself_is_refused() {
        let mut odd = index();
        odd.columns.get_mut("/t/a").unwrap().blocks.pop();
        assert!(Index::of_bytes(&odd.to_bytes().unwrap()).unwrap_err().contains("contradicts"));
        odd.columns.get_mut("/t/a").unwrap().block_rows = 0;
        assert!(Index::of_bytes(&odd.to_bytes().unwrap()).unwrap_err().contains("contradicts"));
    }

    #[test]
    fn limits_of_blocks_are_united() {
        let (index, number) = (index(), OrderedType::Number(NumberType::int64()));
        let limits = |rows| index.limits("/t/a", 7, number, &rows);
        assert_eq!(limits(0..5), Some(Limits::Integers { min: 0, max: 4 }));
        assert_eq!(limits(4..6), Some(Limits::Integers { min: 0, max: 9 }));
        assert_eq!(limits(5..7), Some(Limits::Integers { min: 5, max: 9 }));
        assert_eq!((limits(0..11), limits(0..0)), (None, None));
        assert_eq!(index.limits("/t/a", 8, number, &(0..1)), None, "the dataset has other rows");
        let float = OrderedType::Number(NumberType::Float { len_bytes: 8, is_big_endian: false });
        assert_eq!(index.limits("/t/a", 7, float, &(0..1)), None, "the dataset has another type");
    }
}
