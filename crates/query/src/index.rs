//! Statistics of every block of rows of the columns of a file, kept next to the file.
//!
//! The file of an index has a magic number, a version, the contents in postcard, and a CRC-64 of everything before it.
//! Version 1 has limits of numbers, version 2 also limits of strings, and version 3 distinct values and sums. An index
//! describes one state of one file, given by length and modification time, and is not used for any other. Invariant: an
//! index that is read describes blocks without gaps, and the parts of the statistics of a block do not contradict each
//! other.

use crate::error::{QueryError, Result};
use crate::statistics::{BlockStatistics, Limits, OrderedType};
use crate::table::{Table, TableColumn, block_rows, groups};
use raddle_core::cancel::CancelToken;
use raddle_core::digest::Digest;
use raddle_core::output::publish::{AtomicFile, IfExists};
use raddle_core::parallel;
use raddle_core::pooled_file::FileIdentity;
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::open_file::OpenFile;
use raddle_hdf5::read::{DatasetReader, ReaderLimits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// First bytes of an index.
const MAGIC: &[u8; 8] = b"raddlest";
/// Version of the format that is written.
const VERSION: u8 = 3;
/// Last version that has only limits.
const LIMITS_VERSION: u8 = 2;
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
    columns: BTreeMap<String, ColumnStatistics>,
}

/// Statistics of the blocks of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ColumnStatistics {
    /// Number of rows.
    pub rows: u64,
    /// Length of a row.
    pub row_len_bytes: u64,
    /// Rows of each block except the last, which may be shorter.
    pub block_rows: u64,
    /// Statistics of each block.
    pub blocks: Vec<BlockStatistics>,
}

/// Contents of an index of version 1 or 2.
#[derive(Debug, Serialize, Deserialize)]
struct LimitsIndex {
    len_bytes: u64,
    modified_ns: i128,
    columns: BTreeMap<String, ColumnLimits>,
}

/// Limits of the blocks of a column, in an index of version 1 or 2.
#[derive(Debug, Serialize, Deserialize)]
struct ColumnLimits {
    rows: u64,
    row_len_bytes: u64,
    block_rows: u64,
    blocks: Vec<Limits>,
}

impl From<LimitsIndex> for Index {
    fn from(index: LimitsIndex) -> Self {
        let LimitsIndex { len_bytes, modified_ns, columns } = index;
        let column = |ColumnLimits { rows, row_len_bytes, block_rows, blocks }| {
            let blocks = blocks.into_iter().map(BlockStatistics::of_limits).collect();
            ColumnStatistics { rows, row_len_bytes, block_rows, blocks }
        };
        Self { len_bytes, modified_ns, columns: columns.into_iter().map(|(path, one)| (path, column(one))).collect() }
    }
}

/// An index of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum FoundIndex {
    /// The file has no index.
    Missing,
    /// The index belongs to another state of the file.
    Stale,
    /// The index can be used.
    Usable(Index),
}

impl Index {
    /// Returns the path of the index of a file: `FILE.stats`.
    pub fn default_path(file: &Path) -> PathBuf {
        let mut path = file.as_os_str().to_owned();
        path.push(".stats");
        path.into()
    }

    /// Computes the statistics of all datasets with one number or one string per row.
    ///
    /// # Errors
    /// If values cannot be read, or the run is cancelled.
    pub fn compute(file: &OpenFile, threads: usize, cancel: &CancelToken) -> Result<Self> {
        Self::default().extended(file, threads, cancel)
    }

    /// Computes the statistics of a file to which rows were appended since this index was created. Whole blocks of rows
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
                let Ok(column) = table.stored_column(&name) else { continue };
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
        let reader =
            || BlockReader { reader: DatasetReader::new(ReaderLimits::default()), resolver: None, values: Vec::new() };
        let parts = parallel::map(&jobs, threads.max(1), cancel, reader, |reader, (at, rows)| {
            let statistics = columns[*at].statistics(file, rows, reader);
            statistics.map_err(|error| QueryError::Hdf5(error.in_object(columns[*at].path.clone())))
        })?;
        let mut blocks: Vec<Vec<BlockStatistics>> = columns.iter().map(|column| column.known.to_vec()).collect();
        for ((at, _), part) in jobs.iter().zip(parts) {
            blocks[*at].extend(part);
        }
        let columns =
            columns.into_iter().zip(blocks).map(|(OrderedColumn { path, column, block_rows, .. }, blocks)| {
                let (rows, row_len_bytes) = (column.rows, column.row_len_bytes);
                (path, ColumnStatistics { rows, row_len_bytes, block_rows, blocks })
            });
        Ok(Self::of(&file.identity(), columns.collect()))
    }

    /// Returns the statistics of the complete blocks of a column that this index covers. Their rows come first in the
    /// file.
    fn whole_blocks(
        &self,
        path: &str,
        column: &TableColumn,
        values: OrderedType,
        block_rows: u64,
    ) -> &[BlockStatistics] {
        let is_same = |known: &&ColumnStatistics| {
            (known.block_rows, known.row_len_bytes) == (block_rows, column.row_len_bytes)
                && known.rows <= column.rows
                && known.blocks.iter().all(|block| block.limits.is_of(values))
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
        let difference = |(path, known): (&String, &ColumnStatistics)| {
            let what = match right.columns.get(path) {
                None => "is not a dataset with one number or string per row".to_owned(),
                Some(right) if (known.rows, known.block_rows) != (right.rows, right.block_rows) => {
                    "has a different number of rows, or of rows per block".to_owned()
                }
                Some(right) => {
                    let pairs = known.blocks.iter().zip(&right.blocks);
                    let (block, what) = (0..)
                        .zip(pairs)
                        .find_map(|(block, (known, right))| known.contradiction(right).map(|what| (block, what)))?;
                    let first = block * known.block_rows;
                    format!("has {what} in rows {first} to {}", known.rows.min(first + known.block_rows) - 1)
                }
            };
            Some((path.clone(), what))
        };
        Ok(self.columns.iter().filter_map(difference).collect())
    }

    /// Creates the index of a file in this state.
    pub(crate) fn of(identity: &FileIdentity, columns: BTreeMap<String, ColumnStatistics>) -> Self {
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

    /// Returns whether the index belongs to this state of a file.
    pub fn is_of(&self, identity: &FileIdentity) -> bool {
        self.len_bytes == identity.len_bytes && self.modified_ns == identity.modified_ns
    }

    /// Returns statistics of rows of a column that include some rows; `None` if they are unknown.
    pub(crate) fn statistics(
        &self,
        path: &str,
        rows: u64,
        values: OrderedType,
        wanted: &Range<u64>,
    ) -> Option<BlockStatistics> {
        let column = self.columns.get(path).filter(|column| column.rows == rows)?;
        let (first, last) = (wanted.start / column.block_rows, wanted.end.checked_sub(1)? / column.block_rows);
        let blocks = column.blocks.get(first as usize..=last as usize)?;
        if blocks.iter().any(|block| !block.limits.is_of(values) || block.limits == Limits::Empty) {
            return None;
        }
        let (first, others) = blocks.split_first()?;
        Some(others.iter().fold(first.clone(), BlockStatistics::union))
    }

    /// Returns the longest range of rows in `among` that consists of whole blocks of a column, and their statistics;
    /// `None` if no block lies in `among`.
    pub(crate) fn within(
        &self,
        path: &str,
        rows: u64,
        values: OrderedType,
        among: &Range<u64>,
    ) -> Option<(Range<u64>, BlockStatistics)> {
        let block_rows = self.columns.get(path)?.block_rows;
        // The last block may be shorter.
        let end = if among.end == rows { rows } else { among.end / block_rows * block_rows };
        let inner = among.start.div_ceil(block_rows).checked_mul(block_rows)?..end;
        Some((inner.clone(), self.statistics(path, rows, values, &inner).filter(|_| inner.start < inner.end)?))
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
    /// If the bytes are not an index. Returns the reason.
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
        let index = match *version {
            ..=LIMITS_VERSION => postcard::from_bytes::<LimitsIndex>(contents).map(Self::from),
            _ => postcard::from_bytes::<Self>(contents),
        };
        let index = index.map_err(|error| format!("is damaged: {error}"))?;
        let fits = |column: &ColumnStatistics| {
            column.block_rows > 0
                && column.rows.div_ceil(column.block_rows) == column.blocks.len() as u64
                && column.blocks.iter().all(|block| block.is_consistent(column.block_rows))
        };
        match index.columns.values().all(fits) {
            true => Ok(index),
            false => Err("contradicts itself; make it again (raddle index)".to_owned()),
        }
    }

    /// Refuses the path of anything other than an index.
    ///
    /// # Errors
    /// If the path leads to something other than an index.
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

    /// Writes the index of the file at `indexed`, or replaces one, completely or not at all. Returns the length of the
    /// index. Its permissions are those of a new file, without the ones that `indexed` lacks, because it holds values.
    ///
    /// # Errors
    /// If the index cannot be written, or another process is writing it.
    pub fn write(&self, path: &Path, indexed: &Path) -> Result<u64> {
        let failed = |reason: String| QueryError::Output { path: path.to_path_buf(), reason };
        let bytes = self.to_bytes().map_err(|error| failed(error.to_string()))?;
        let output = AtomicFile::begin::<QueryError>(path, IfExists::Replace, || Ok(()))?;
        let written = output.create().map(|mut file| {
            let (mut allowed, of_file) = (file.metadata()?.permissions(), std::fs::metadata(indexed)?.permissions());
            allowed.set_mode(allowed.mode() & of_file.mode());
            file.set_permissions(allowed)?;
            file.write_all(&bytes)
        })?;
        written.map_err(|error| failed(format!("cannot be written: {error}")))?;
        output.publish()?;
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

    /// Reads the index of an open file.
    ///
    /// # Errors
    /// If there is one that cannot be read.
    pub fn find(file: &OpenFile) -> Result<FoundIndex> {
        let path = Self::default_path(file.path());
        if !path.exists() {
            return Ok(FoundIndex::Missing);
        }
        let index = Self::read(&path)?;
        Ok(if index.is_of(&file.identity()) { FoundIndex::Usable(index) } else { FoundIndex::Stale })
    }
}

/// State of a thread that reads blocks.
struct BlockReader<'f> {
    reader: DatasetReader,
    resolver: Option<Resolver<'f>>,
    values: Vec<u8>,
}

/// A column whose statistics are being computed, and the order of its values.
struct OrderedColumn<'k> {
    path: String,
    column: TableColumn,
    values: OrderedType,
    block_rows: u64,
    /// Statistics of the first blocks, if they are known.
    known: &'k [BlockStatistics],
}

impl OrderedColumn<'_> {
    /// Returns the statistics of each block of some rows, which begin with a block.
    fn statistics<'f>(
        &self,
        file: &'f OpenFile,
        rows: &Range<u64>,
        reader: &mut BlockReader<'f>,
    ) -> raddle_hdf5::Result<Vec<BlockStatistics>> {
        let BlockReader { reader, resolver, values } = reader;
        // Variable-length strings are found one block after the other: their length is not known before.
        let step = if self.column.is_variable() { self.block_rows } else { rows.end - rows.start };
        let block_len = (self.block_rows * self.column.row_len_bytes) as usize;
        let mut statistics = Vec::new();
        for start in rows.clone().step_by(step as usize) {
            let some = start..(start + step).min(rows.end);
            self.column.read_comparable(file, (reader, resolver), &some, values)?;
            match self.column.is_variable() {
                true => statistics.push(BlockStatistics::of(self.values, values)),
                false => {
                    let blocks = values.chunks(block_len.max(1));
                    statistics.extend(blocks.map(|block| BlockStatistics::of(self.values, block)));
                }
            }
        }
        Ok(statistics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distinct::DistinctValues;
    use raddle_hdf5::number::NumberType;

    fn index() -> Index {
        let block = |values: &[i128]| BlockStatistics {
            limits: Limits::Integers { min: values[0], max: values[values.len() - 1] },
            distinct: Some(DistinctValues::Integers(values.to_vec())),
            sum: Some(values.iter().sum()),
        };
        let strings: [&[u8]; 2] = [b"far", b"near"];
        let floats = Limits::Floats { min: -1.5, max: 2.0, nans: 3 };
        let column = |blocks| ColumnStatistics { rows: 7, row_len_bytes: 8, block_rows: 5, blocks };
        let columns = [
            ("/t/a", column(vec![block(&[0, 2, 4]), block(&[5, 9])])),
            ("/t/b", column(vec![BlockStatistics::of_limits(floats), BlockStatistics::EMPTY])),
            ("/t/c", column(vec![BlockStatistics::of_strings(&strings), BlockStatistics::of_strings(&strings[..1])])),
        ];
        let columns = columns.map(|(path, column)| (path.to_owned(), column));
        Index { len_bytes: 3, modified_ns: 4, columns: BTreeMap::from(columns) }
    }

    fn sealed(version: u8, contents: &[u8]) -> Vec<u8> {
        let mut bytes = [MAGIC.as_slice(), &[version], contents].concat();
        bytes.extend(Digest::of(&bytes).crc64_nvme().to_le_bytes());
        bytes
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
        let limits = |column: &ColumnStatistics| ColumnLimits {
            rows: column.rows,
            row_len_bytes: column.row_len_bytes,
            block_rows: column.block_rows,
            blocks: column.blocks.iter().map(|block| block.limits).collect(),
        };
        let columns = index().columns.iter().map(|(path, column)| (path.clone(), limits(column))).collect();
        let contents = postcard::to_stdvec(&LimitsIndex { len_bytes: 3, modified_ns: 4, columns }).unwrap();
        let mut expected = index();
        expected
            .columns
            .values_mut()
            .flat_map(|one| &mut one.blocks)
            .for_each(|block| (block.distinct, block.sum) = (None, None));
        for version in [1, 2] {
            assert_eq!(Index::of_bytes(&sealed(version, &contents)), Ok(expected.clone()));
        }
        assert!(Index::of_bytes(&sealed(VERSION + 1, &contents)).unwrap_err().contains("has version 4"));
        assert!(Index::of_bytes(&sealed(0, &contents)).is_err());
    }

    #[test]
    fn an_index_that_contradicts_itself_is_refused() {
        let refused = |change: &dyn Fn(&mut ColumnStatistics), path: &str| {
            let mut odd = index();
            change(odd.columns.get_mut(path).unwrap());
            let error = Index::of_bytes(&odd.to_bytes().unwrap()).unwrap_err();
            assert!(error.contains("contradicts"), "{error}");
        };
        refused(&|column| drop(column.blocks.pop()), "/t/a");
        refused(&|column| column.block_rows = 0, "/t/a");
        for values in [vec![], vec![0, 4, 2, 4], vec![0, 2, 5], vec![1, 4], (0..=17).collect()] {
            refused(&|column| column.blocks[0].distinct = Some(DistinctValues::Integers(values.clone())), "/t/a");
        }
        refused(&|column| column.blocks[0].distinct = Some(DistinctValues::Floats(vec![0.0, 4.0])), "/t/a");
        refused(&|column| column.blocks[0].distinct = Some(DistinctValues::Floats(vec![-1.5, f64::NAN, 2.0])), "/t/b");
        refused(&|column| column.blocks[1].distinct = Some(DistinctValues::Floats(vec![])), "/t/b");
        for sum in [-1, 21, i128::MAX, i128::MIN] {
            refused(&|column| column.blocks[0].sum = Some(sum), "/t/a");
        }
        refused(&|column| column.blocks[0].sum = Some(0), "/t/b");
        refused(&|column| column.blocks[0].limits = Limits::Floats { min: 0.0, max: 0.0, nans: 6 }, "/t/b");
    }

    #[test]
    fn statistics_of_blocks_are_united() {
        let (index, number) = (index(), OrderedType::Number(NumberType::int64()));
        let statistics = |rows| {
            let found: Option<BlockStatistics> = index.statistics("/t/a", 7, number, &rows);
            found.map(|found| (found.limits, found.distinct, found.sum))
        };
        let expected = |values: &[i128]| {
            let limits = Limits::Integers { min: values[0], max: values[values.len() - 1] };
            Some((limits, Some(DistinctValues::Integers(values.to_vec())), Some(values.iter().sum::<i128>())))
        };
        assert_eq!(statistics(0..5), expected(&[0, 2, 4]));
        assert_eq!(statistics(4..6), expected(&[0, 2, 4, 5, 9]));
        assert_eq!(statistics(5..7), expected(&[5, 9]));
        assert_eq!((statistics(0..11), statistics(0..0)), (None, None));
        let within = |rows| index.within("/t/a", 7, number, &rows).map(|(rows, found)| (rows, found.sum));
        assert_eq!(within(0..7), Some((0..7, Some(20))));
        assert_eq!(within(1..7), Some((5..7, Some(14))));
        assert_eq!(within(0..6), Some((0..5, Some(6))));
        assert_eq!((within(1..6), within(6..7), within(1..4)), (None, None, None));
        assert_eq!(index.statistics("/t/a", 8, number, &(0..1)), None, "the dataset has other rows");
        let float = OrderedType::Number(NumberType::Float { len_bytes: 8, is_big_endian: false });
        assert_eq!(index.statistics("/t/a", 7, float, &(0..1)), None, "the dataset has another type");
    }
}
