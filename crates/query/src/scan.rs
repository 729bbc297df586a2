//! A scan: the rows of a table that satisfy a condition, and the values of requested columns in these rows.
//!
//! Rows are divided into blocks of whole chunks, which threads take one by one. Invariant: rows are found in the order
//! of the table, whatever the number of threads.

use crate::condition::Condition;
use crate::decoding::Decoding;
use crate::error::{QueryError, Result};
use crate::expression::Expression;
use crate::index::Index;
use crate::matches::Matches;
use crate::statistics::BlockStatistics;
use crate::table::{IS_VARIABLE, Table, TableColumn, block_rows};
use raddle_core::cancel::CancelToken;
use raddle_core::parallel;
use raddle_core::rows::Rows;
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::read::{DatasetReader, ReadCounts, ReaderLimits};
use serde::Serialize;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A scan of a table.
#[derive(Debug, Clone)]
pub struct Scan<'f> {
    table: Table<'f>,
    columns: Vec<TableColumn>,
    /// Number of requested columns, which come first in `columns`. The others belong only to the condition.
    requested: usize,
    condition: Condition,
    /// Numbers of the columns of the condition.
    tested: Vec<usize>,
    text: String,
    rows: u64,
    index: Option<&'f Index>,
    /// Rows to which the scan is restricted; `None` for all.
    within: Option<Rows>,
    is_numbered: bool,
}

/// Rows that satisfy the condition of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundRows {
    /// Numbers of the rows, ascending; empty unless they were requested.
    pub rows: Vec<u64>,
    /// Values of each requested column in these rows, stored or decoded, with strings padded with zeros.
    pub columns: Vec<Vec<u8>>,
}

/// Amount of data that a scan reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Condition as text.
    pub condition: String,
    /// Number of rows of the table.
    pub rows: u64,
    /// Number of blocks into which they are divided.
    pub blocks: u64,
    /// Number of blocks that the statistics exclude, which are not read.
    pub pruned_blocks: u64,
    /// Number of blocks in which all rows match, as the statistics prove.
    pub whole_blocks: u64,
    /// Columns of the condition that have statistics.
    pub indexed_columns: Vec<String>,
    /// Length of the values of all columns of the scan in all rows.
    pub table_len_bytes: u64,
    /// Length of the values of these columns in the blocks that are not pruned. Values of requested columns are read
    /// only where rows match.
    pub unpruned_len_bytes: u64,
    /// Number of bytes that were read from the file; 0 before the scan.
    pub stored_len_bytes: u64,
    /// Number of chunks that were decoded; 0 before the scan.
    pub decoded_chunks: u64,
}

/// A block of rows that may match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowBlock {
    /// Rows of the table in the block.
    pub rows: Range<u64>,
    /// Whether the condition has to be evaluated; otherwise all rows satisfy it.
    is_tested: bool,
    /// Whether the scan is restricted to some of the rows.
    is_restricted: bool,
}

impl RowBlock {
    /// Returns whether all rows match.
    pub fn is_whole(&self) -> bool {
        !self.is_tested && !self.is_restricted
    }
}

impl<'f> Scan<'f> {
    /// Creates a scan of the rows that satisfy `condition` (of all rows without one), for the values of `columns`.
    ///
    /// # Errors
    /// If a column does not exist or cannot be read or compared, columns have different numbers of rows, or the values of a
    /// netCDF variable are not chosen ([`Table::with_values`]).
    pub fn new(table: Table<'f>, condition: Option<&Expression>, columns: &[String]) -> Result<Self> {
        let all = Expression::And(Vec::new());
        let condition = condition.unwrap_or(&all);
        let mut names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let of_condition = condition.columns();
        names.extend(of_condition.iter().filter(|name| !columns.iter().any(|known| known == **name)));
        let columns_found = names.iter().map(|name| table.column(name)).collect::<Result<Vec<_>>>()?;
        if let Some(column) = columns_found[..columns.len()].iter().find(|column| column.is_variable()) {
            return Err(QueryError::Column {
                table: table.path().to_owned(),
                column: column.name.clone(),
                reason: IS_VARIABLE.to_owned(),
            });
        }
        let rows = columns_found.first().map_or(0, |column| column.rows);
        if let Some(other) = columns_found.iter().find(|column| column.rows != rows) {
            return Err(QueryError::Rows {
                table: table.path().to_owned(),
                column: columns_found[0].name.clone(),
                rows,
                other: other.name.clone(),
                other_rows: other.rows,
            });
        }
        let tested = (0..).zip(&names).filter(|(_, name)| of_condition.contains(**name)).map(|(at, _)| at).collect();
        let compiled = Condition::new(condition, &columns_found).map_err(|(column, reason)| QueryError::Column {
            table: table.path().to_owned(),
            column,
            reason,
        })?;
        Ok(Self {
            table,
            columns: columns_found,
            requested: columns.len(),
            condition: compiled,
            tested,
            text: condition.to_string(),
            rows,
            index: None,
            within: None,
            is_numbered: false,
        })
    }

    /// Skips the blocks that an index of the file excludes.
    #[must_use]
    pub fn with_index(self, index: &'f Index) -> Self {
        Self { index: Some(index), ..self }
    }

    /// Sets the number of rows of a scan without columns to that of the dataset `name`.
    ///
    /// # Errors
    /// If the dataset does not exist, or has no rows.
    pub(crate) fn of_length(self, name: &str) -> Result<Self> {
        match self.columns.is_empty() {
            true => Ok(Self { rows: self.table.rows(name)?, ..self }),
            false => Ok(self),
        }
    }

    /// Returns the table that is scanned.
    pub(crate) fn table(&self) -> &Table<'f> {
        &self.table
    }

    /// Returns the index that the scan uses; `None` if it uses none.
    pub(crate) fn index(&self) -> Option<&'f Index> {
        self.index
    }

    /// Returns the requested column of a scan that has only one.
    pub(crate) fn only_requested(&self) -> &TableColumn {
        &self.columns[0]
    }

    /// Returns the number of rows of the table.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Restricts the scan to some rows; several restrictions leave their common rows.
    #[must_use]
    pub fn within(self, rows: &Rows) -> Self {
        let common = self.within.as_ref().map_or_else(|| rows.clone(), |known| known.intersection(rows));
        Self { within: Some(common), ..self }
    }

    /// Makes the scan also return the numbers of the rows that match.
    #[must_use]
    pub fn numbered(self) -> Self {
        Self { is_numbered: true, ..self }
    }

    /// Describes what the scan would read.
    pub fn explain(&self) -> Explanation {
        self.explained(&self.blocks())
    }

    fn explained(&self, blocks: &[RowBlock]) -> Explanation {
        let row_len_bytes: u64 = self.columns.iter().map(|column| column.row_len_bytes).sum();
        let unpruned: u64 = blocks.iter().map(|block| block.rows.end - block.rows.start).sum();
        let all = self.rows.div_ceil(self.block_rows());
        let is_indexed = |&&at: &&usize| {
            let is_monotone = self.columns[at].decoding.as_ref().is_none_or(Decoding::is_monotone);
            is_monotone && self.stored_statistics(at, &(0..self.rows)).is_some()
        };
        Explanation {
            condition: self.text.clone(),
            rows: self.rows,
            blocks: all,
            pruned_blocks: all - blocks.len() as u64,
            whole_blocks: blocks.iter().filter(|block| block.is_whole()).count() as u64,
            indexed_columns: self.tested.iter().filter(is_indexed).map(|&at| self.columns[at].name.clone()).collect(),
            table_len_bytes: row_len_bytes.saturating_mul(self.rows),
            unpruned_len_bytes: row_len_bytes.saturating_mul(unpruned),
            ..Explanation::default()
        }
    }

    /// Returns the number of rows that match.
    ///
    /// # Errors
    /// If values cannot be read, or the scan is cancelled.
    pub fn count(&self, threads: usize, cancel: &CancelToken) -> Result<(u64, Explanation)> {
        let blocks = self.blocks();
        let counted = self.for_each_block(&blocks, threads, cancel, |reader, block| match block.is_whole() {
            true => Ok(block.rows.end - block.rows.start),
            false => Ok(reader.matching(block)?.iter().filter(|holds| **holds).count() as u64),
        })?;
        let (counts, read) = counted;
        Ok((counts.into_iter().sum(), self.after(&blocks, read)))
    }

    /// Returns the rows that match, and the requested columns in these rows.
    ///
    /// # Errors
    /// As for [`Scan::count`].
    pub fn read(&self, threads: usize, cancel: &CancelToken) -> Result<(FoundRows, Explanation)> {
        let blocks = self.blocks();
        // The condition comes first, so that threads can write their rows where they belong.
        let (matching, mut read) =
            self.for_each_block(&blocks, threads, cancel, |reader, block| reader.matching_rows(block))?;
        let total: usize = matching.iter().map(|found| found.count).sum();
        let mut found = FoundRows { rows: Vec::new(), columns: Vec::with_capacity(self.requested) };
        for column in &self.columns[..self.requested] {
            found.columns.push(self.zeros(column, total)?);
        }
        if self.is_numbered {
            found.rows = blocks.iter().zip(&matching).flat_map(|(block, found)| found.rows(block)).collect();
        }
        let mut rests: Vec<&mut [u8]> = found.columns.iter_mut().map(Vec::as_mut_slice).collect();
        let mut jobs = Vec::with_capacity(blocks.len());
        for (block, found) in blocks.iter().zip(matching) {
            let places = rests.iter_mut().zip(&self.columns).map(|(rest, column)| {
                let (place, behind) = std::mem::take(rest).split_at_mut(found.count * column.row_len_bytes as usize);
                *rest = behind;
                place
            });
            let places: Vec<&mut [u8]> = places.collect();
            jobs.push((block, Mutex::new((found, places))));
        }
        let (_, of_columns) = self.for_each_block(&jobs, threads, cancel, |reader, (block, job)| {
            let mut job = job.lock().unwrap_or_else(PoisonError::into_inner);
            let (found, places) = &mut *job;
            reader.write(block, found, places)
        })?;
        read += of_columns;
        Ok((found, self.after(&blocks, read)))
    }

    /// Calls `take` with the values of the only requested column in the rows of each block that match, on any thread.
    pub(crate) fn for_each_value_block(
        &self,
        threads: usize,
        cancel: &CancelToken,
        take: impl Fn(&[u8]) -> Result<()> + Sync,
    ) -> Result<()> {
        self.for_each_value(&self.blocks(), threads, cancel, take).map(drop)
    }

    /// Calls `take` with the values of the only requested column in the rows of some blocks that match, on any thread.
    pub(crate) fn for_each_value<T: Send>(
        &self,
        blocks: &[RowBlock],
        threads: usize,
        cancel: &CancelToken,
        take: impl Fn(&[u8]) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let column = self.only_requested();
        let (taken, _) = self.for_each_block(blocks, threads, cancel, |reader, block| {
            let mut found = reader.matching_rows(block)?;
            let mut values = vec![0; found.count * column.row_len_bytes as usize];
            reader.write(block, &mut found, &mut [&mut values])?;
            take(&values)
        })?;
        Ok(taken)
    }

    /// Returns rows that all match as blocks.
    pub(crate) fn whole_blocks(&self, rows: Range<u64>) -> impl Iterator<Item = RowBlock> {
        let step = self.block_rows().min(usize::MAX as u64);
        let end = rows.end;
        rows.step_by(step as usize).map(move |start| {
            let rows = start..start.saturating_add(step).min(end);
            RowBlock { rows, is_tested: false, is_restricted: false }
        })
    }

    /// Returns memory for rows of a column, which no thread has touched.
    fn zeros(&self, column: &TableColumn, rows: usize) -> Result<Vec<u8>> {
        let len = usize::try_from(column.row_len_bytes).ok().and_then(|row_len| row_len.checked_mul(rows));
        // Without this, a lack of memory would end the program.
        let len = len.filter(|&len| Vec::<u8>::new().try_reserve_exact(len).is_ok());
        let len = len.ok_or_else(|| QueryError::Column {
            table: self.table.path().to_owned(),
            column: column.name.clone(),
            reason: format!("has {rows} rows that match, which do not fit into memory; filter or select less"),
        })?;
        Ok(vec![0; len])
    }

    fn after(&self, blocks: &[RowBlock], read: ReadCounts) -> Explanation {
        let (stored_len_bytes, decoded_chunks) = (read.stored_len_bytes, read.chunks);
        Explanation { stored_len_bytes, decoded_chunks, ..self.explained(blocks) }
    }

    /// Returns the number of rows of a block, which spans several of the longest chunks.
    fn block_rows(&self) -> u64 {
        let read = if self.tested.is_empty() { (0..self.columns.len()).collect() } else { self.tested.clone() };
        let row_len_bytes: u64 = read.iter().map(|&at| self.columns[at].row_len_bytes).sum();
        block_rows(self.columns.iter().map(TableColumn::chunk_rows).max().unwrap_or(1), row_len_bytes)
    }

    /// Returns the blocks that may have matching rows.
    pub(crate) fn blocks(&self) -> Vec<RowBlock> {
        let block_rows = self.block_rows();
        let mut blocks = Vec::new();
        let mut start = 0;
        while start < self.rows {
            let rows = start..start.saturating_add(block_rows).min(self.rows);
            start = rows.end;
            // Rows before the first and after the last row to which the scan is restricted are not read.
            let Some(rows) = self.within.as_ref().map_or(Some(rows.clone()), |within| within.span(&rows)) else {
                continue;
            };
            let is_restricted = self.within.as_ref().is_some_and(|within| !within.contains(&rows));
            let known: Vec<_> = (0..self.columns.len()).map(|at| self.statistics_of_tested(at, &rows)).collect();
            let verdict = self.condition.judge(&|column| known[column].as_ref());
            if verdict != Matches::None {
                blocks.push(RowBlock { is_tested: verdict == Matches::Some, is_restricted, rows });
            }
        }
        blocks
    }

    fn statistics_of_tested(&self, column: usize, rows: &Range<u64>) -> Option<BlockStatistics> {
        self.tested.contains(&column).then(|| self.statistics(column, rows)).flatten()
    }

    /// Returns statistics of the values of a column in a range of rows that includes the given rows; `None` if they are
    /// unknown.
    fn statistics(&self, column: usize, rows: &Range<u64>) -> Option<BlockStatistics> {
        self.columns[column].statistics(self.stored_statistics(column, rows)?)
    }

    /// Returns statistics of the stored values, as for [`Scan::statistics`].
    fn stored_statistics(&self, column: usize, rows: &Range<u64>) -> Option<BlockStatistics> {
        let column = &self.columns[column];
        self.index?.statistics(&self.table.path_of(&column.name), column.rows, column.indexed()?, rows)
    }

    fn for_each_block<B: Sync, T: Send>(
        &self,
        blocks: &[B],
        threads: usize,
        cancel: &CancelToken,
        step: impl Fn(&mut BlockReader<'_, 'f>, &B) -> Result<T> + Sync,
    ) -> Result<(Vec<T>, ReadCounts)> {
        let reader = || BlockReader::new(self);
        let parts =
            parallel::map(blocks, threads.max(1), cancel, reader, |reader, block| -> Result<(T, ReadCounts)> {
                reader.counts = ReadCounts::default();
                let part = step(reader, block)?;
                Ok((part, reader.counts))
            })?;
        let mut counts = ReadCounts::default();
        let parts = parts.into_iter().map(|(part, read)| {
            counts += read;
            part
        });
        let parts = parts.collect();
        Ok((parts, counts))
    }
}

/// Reader of blocks, one per thread.
struct BlockReader<'s, 'f> {
    scan: &'s Scan<'f>,
    reader: DatasetReader,
    /// Finder of variable-length strings; created for the first one.
    resolver: Option<Resolver<'f>>,
    /// Values of each column in the current block.
    values: Vec<Vec<u8>>,
    counts: ReadCounts,
}

impl<'s, 'f> BlockReader<'s, 'f> {
    fn new(scan: &'s Scan<'f>) -> Self {
        let values = vec![Vec::new(); scan.columns.len()];
        let reader = DatasetReader::new(ReaderLimits::default());
        Self { scan, reader, resolver: None, values, counts: ReadCounts::default() }
    }

    /// Reads rows of a column into its buffer.
    fn read(&mut self, at: usize, rows: &Range<u64>) -> Result<()> {
        let (column, table) = (&self.scan.columns[at], &self.scan.table);
        let tools = (&mut self.reader, &mut self.resolver);
        let read = column.read_comparable(table.file(), tools, rows, &mut self.values[at]);
        self.counts += read.map_err(|error| table.failed(column, error))?;
        Ok(())
    }

    /// Reads rows of a column.
    fn read_into(&mut self, at: usize, rows: &Range<u64>, out: &mut [u8]) -> Result<()> {
        let column = &self.scan.columns[at];
        let read = column.read(self.scan.table.file(), &mut self.reader, rows, out);
        self.counts += read.map_err(|error| self.scan.table.failed(column, error))?;
        Ok(())
    }

    /// Returns whether each row of a block matches.
    fn matching(&mut self, block: &RowBlock) -> Result<Vec<bool>> {
        let rows = (block.rows.end - block.rows.start) as usize;
        let mut holds = vec![true; rows];
        if block.is_tested {
            for &at in &self.scan.tested {
                self.read(at, &block.rows)?;
            }
            let values: Vec<&[u8]> = self.values.iter().map(Vec::as_slice).collect();
            holds = self.scan.condition.evaluate(rows, &values);
        }
        if let Some(within) = self.scan.within.as_ref().filter(|_| block.is_restricted) {
            within.restrict(block.rows.start, &mut holds);
        }
        Ok(holds)
    }

    /// Determines the rows of a block that match, and keeps their values of requested columns that were read for this.
    fn matching_rows(&mut self, block: &RowBlock) -> Result<MatchingRows> {
        if block.is_whole() {
            let count = (block.rows.end - block.rows.start) as usize;
            return Ok(MatchingRows { count, holds: None, kept: Vec::new() });
        }
        let holds = self.matching(block)?;
        let count = holds.iter().filter(|one| **one).count();
        let mut kept = vec![Vec::new(); self.scan.requested];
        let is_read = |at: &usize| block.is_tested && self.scan.tested.contains(at);
        for (at, kept) in kept.iter_mut().enumerate().filter(|(at, _)| is_read(at)) {
            let row_len = self.scan.columns[at].row_len_bytes as usize;
            kept.resize(count * row_len, 0);
            take(&self.values[at], row_len, &holds, kept);
        }
        Ok(MatchingRows { count, holds: Some(holds), kept })
    }

    /// Writes the requested columns of the rows of a block that match to their places.
    fn write(&mut self, block: &RowBlock, found: &mut MatchingRows, places: &mut [&mut [u8]]) -> Result<()> {
        if found.count == 0 {
            return Ok(());
        }
        let Some(holds) = found.holds.take() else {
            return places.iter_mut().enumerate().try_for_each(|(at, place)| self.read_into(at, &block.rows, place));
        };
        // There is a row that matches.
        let first = holds.iter().position(|one| *one).unwrap_or(0);
        let end = holds.iter().rposition(|one| *one).map_or(0, |last| last + 1);
        for (at, place) in places.iter_mut().enumerate() {
            if block.is_tested && self.scan.tested.contains(&at) {
                place.copy_from_slice(&found.kept[at]);
                continue;
            }
            self.read(at, &(block.rows.start + first as u64..block.rows.start + end as u64))?;
            take(&self.values[at], self.scan.columns[at].row_len_bytes as usize, &holds[first..end], place);
        }
        Ok(())
    }
}

/// The rows of a block that match.
#[derive(Debug)]
struct MatchingRows {
    count: usize,
    /// Whether each row matches; `None` if all do.
    holds: Option<Vec<bool>>,
    /// Values in these rows of the requested columns that the condition tests.
    kept: Vec<Vec<u8>>,
}

impl MatchingRows {
    /// Returns the numbers of the rows.
    fn rows(&self, block: &RowBlock) -> Vec<u64> {
        match &self.holds {
            None => block.rows.clone().collect(),
            Some(holds) => (block.rows.start..).zip(holds).filter(|(_, holds)| **holds).map(|(row, _)| row).collect(),
        }
    }
}

/// Copies the rows of `values` that match to `out`, each of `row_len` bytes.
fn take(values: &[u8], row_len: usize, holds: &[bool], out: &mut [u8]) {
    /// Copies rows of a length that the compiler knows. Every row is copied and then kept or overwritten: with rows
    /// that match at random, a branch per row would cost more.
    fn of_len<const N: usize>(values: &[u8], holds: &[bool], out: &mut [u8]) {
        let (out, mut at) = (out.as_chunks_mut::<N>().0, 0);
        for (row, holds) in values.as_chunks::<N>().0.iter().zip(holds) {
            // No place is left after the last row that matches.
            let Some(place) = out.get_mut(at) else { break };
            *place = *row;
            at += usize::from(*holds);
        }
    }
    match row_len {
        0 => {}
        1 => of_len::<1>(values, holds, out),
        2 => of_len::<2>(values, holds, out),
        4 => of_len::<4>(values, holds, out),
        8 => of_len::<8>(values, holds, out),
        _ => {
            let matching = values.chunks_exact(row_len).zip(holds).filter(|(_, holds)| **holds);
            matching.zip(out.chunks_exact_mut(row_len)).for_each(|((row, _), place)| place.copy_from_slice(row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_that_match_are_taken_in_order(row_len in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 12]), holds in prop::collection::vec(any::<bool>(), 0..20)) {
            let values: Vec<u8> = (0..holds.len() * row_len).map(|at| at as u8).collect();
            let expected: Vec<u8> =
                values.chunks(row_len).zip(&holds).filter(|(_, holds)| **holds).flat_map(|(row, _)| row.to_vec()).collect();
            let mut out = vec![0; expected.len()];
            take(&values, row_len, &holds, &mut out);
            prop_assert_eq!(out, expected);
        }
    }
}
