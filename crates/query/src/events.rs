//! Selection of rows of one table by the events of another.
//!
//! Partition keys number the events of a file. In each table with keys, `NAME.seq` holds the event of each row, and
//! `NAME.offsets` the number of rows before each event, if the events of the rows ascend. Invariant: the rows of some
//! events are found without a search for each, in the order of the table.

use crate::error::{QueryError, Result};
use crate::expression::Expression;
use crate::index::Index;
use crate::scan::Scan;
use crate::table::{Table, TableColumn, groups};
use raddle_core::cancel::CancelToken;
use raddle_core::parallel;
use raddle_core::rows::Rows;
use raddle_hdf5::open_file::OpenFile;
use raddle_hdf5::read::{DatasetReader, ReaderLimits};
use roaring::RoaringTreemap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Ending of the names of datasets with the event of each row.
const SEQ: &str = ".seq";
/// Ending of the names of datasets with the number of rows before each event.
const OFFSETS: &str = ".offsets";
/// Number of events or rows whose keys are read at once.
const KEYS_PER_JOB: u64 = 1 << 16;

/// Set of event numbers. Its memory depends on how many numbers there are, not on how large they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventSet(RoaringTreemap);

impl EventSet {
    /// Returns the number of events.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the events that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    /// Returns the events, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter()
    }
}

/// Resources and cancellation of a search.
#[derive(Debug, Clone, Copy)]
pub struct SearchContext<'r> {
    /// Number of threads.
    pub threads: usize,
    /// Whether to stop.
    pub cancel: &'r CancelToken,
}

/// Returns the name of a table's key: `evt` if the table has `evt.seq`. `wanted` is that name, with or without the
/// ending.
///
/// # Errors
/// If the table has no keys, or several and `wanted` is `None`.
pub fn key_of(table: &Table<'_>, wanted: Option<&str>) -> Result<String> {
    if let Some(wanted) = wanted {
        return Ok(wanted.strip_suffix(SEQ).unwrap_or(wanted).to_owned());
    }
    let names = table.names()?;
    let keys: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(SEQ)).collect();
    let refuse = |reason: String| QueryError::Keys { table: table.path().to_owned(), reason };
    match keys[..] {
        [key] => Ok(key.to_owned()),
        [] => Err(refuse(format!("has no partition keys (NAME{SEQ}); make them with raddle keys add"))),
        _ => Err(refuse(format!("has several partition keys ({}); name one", keys.join(", ")))),
    }
}

/// Returns the tables of a file that have a key.
///
/// # Errors
/// If the file cannot be read.
pub fn keyed_tables<'f>(file: &'f OpenFile, key: &str) -> Result<Vec<Table<'f>>> {
    let seq = format!("{key}{SEQ}");
    let mut tables = Vec::new();
    for path in groups(file)? {
        let table = Table::of(file, &path)?;
        if table.names()?.contains(&seq) {
            tables.push(table);
        }
    }
    Ok(tables)
}

/// Returns the number of rows of a table with a key.
///
/// # Errors
/// If the table has no key of this name.
pub fn row_count(table: &Table<'_>, key: &str) -> Result<u64> {
    Ok(table.stored_column(&format!("{key}{SEQ}"))?.rows)
}

/// Returns the events, among `within`, of the rows of a table that satisfy a condition.
///
/// # Errors
/// If the table has no key of this name, or values cannot be read or compared.
pub fn events_of(
    table: &Table<'_>,
    key: &str,
    condition: Option<&Expression>,
    within: Option<&Rows>,
    index: Option<&Index>,
    running: SearchContext<'_>,
) -> Result<EventSet> {
    let scan = Scan::new(table.clone(), condition, &[format!("{key}{SEQ}")])?;
    let scan = index.into_iter().fold(scan, Scan::with_index);
    let scan = within.into_iter().fold(scan, Scan::within);
    let found = Mutex::new(EventSet::default());
    scan.for_each_value_block(running.threads, running.cancel, |values| {
        let mut events = integers(table, scan.only_requested(), values)?;
        events.dedup();
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.0.extend(events);
        Ok(())
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the rows of a table that belong to events; only rows in `among`, if it is given.
pub fn rows_of(
    table: &Table<'_>,
    key: &str,
    events: &EventSet,
    among: Option<&Range<u64>>,
    running: SearchContext<'_>,
) -> Result<Rows> {
    let seq = table.stored_column(&format!("{key}{SEQ}"))?;
    let offsets = format!("{key}{OFFSETS}");
    let runs = match among {
        // Offsets are of events: those of a few rows would first have to be searched for.
        Some(among) => by_seq(table, &seq, among.start.min(seq.rows)..among.end.min(seq.rows), events, running)?,
        None if table.names()?.contains(&offsets) => {
            by_offsets(table, &table.stored_column(&offsets)?, seq.rows, events, running)?
        }
        None => by_seq(table, &seq, 0..seq.rows, events, running)?,
    };
    let mut end = 0;
    for run in runs.iter().flatten() {
        // Offsets that descend between two events contradict the order of rows.
        if run.start < end {
            return Err(contradicts(table, &seq, &format!("does not fit its offsets at row {}", run.start)));
        }
        end = run.end;
    }
    Ok(Rows::of(runs.into_iter().flatten()))
}

/// Returns the rows of events as runs: one list for each part of the offsets that is read at once, in order.
fn by_offsets(
    table: &Table<'_>,
    offsets: &TableColumn,
    rows: u64,
    events: &EventSet,
    running: SearchContext<'_>,
) -> Result<Vec<Vec<Range<u64>>>> {
    let known = offsets.rows.saturating_sub(1);
    if let Some(last) = events.0.max().filter(|&last| last >= known) {
        return Err(contradicts(table, offsets, &format!("knows {known} events, and there is an event {last}")));
    }
    for_each_part(table, offsets, 0..known, running, |values, part| {
        // `values` has one more: the end of the last event.
        let offset = |event: u64| values[(event - part.start) as usize];
        let mut runs = Vec::new();
        let mut of_part = events.0.iter();
        of_part.advance_to(part.start);
        for event in of_part.take_while(|event| *event < part.end) {
            let run = offset(event)..offset(event + 1);
            if run.start > run.end || run.end > rows {
                return Err(contradicts(table, offsets, &format!("does not fit the {rows} rows at event {event}")));
            }
            runs.push(run);
        }
        Ok(runs)
    })
}

fn by_seq(
    table: &Table<'_>,
    seq: &TableColumn,
    among: Range<u64>,
    events: &EventSet,
    running: SearchContext<'_>,
) -> Result<Vec<Vec<Range<u64>>>> {
    for_each_part(table, seq, among, running, |values, part| {
        let rows = part.zip(values).filter(|(_, event)| events.0.contains(**event));
        Ok(Rows::of(rows.map(|(row, _)| row..row + 1)).runs().to_vec())
    })
}

/// Reads integers of a column in parts, in parallel, and calls `step` for each part. The values of a part are followed
/// by the next one of the column, if there is one.
fn for_each_part<T: Send>(
    table: &Table<'_>,
    column: &TableColumn,
    rows: Range<u64>,
    running: SearchContext<'_>,
    step: impl Fn(&[u64], Range<u64>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    // Whole chunks, so that nearly all of them are decoded once.
    let each = KEYS_PER_JOB.next_multiple_of(column.chunk_rows());
    let (first, last) = (rows.start / each, rows.end.div_ceil(each));
    let part = |number: u64| (number * each).max(rows.start)..((number + 1) * each).min(rows.end);
    let parts: Vec<Range<u64>> = (first..last).map(part).collect();
    let reader = || (DatasetReader::new(ReaderLimits::default()), Vec::new());
    parallel::map(&parts, running.threads.max(1), running.cancel, reader, |(reader, bytes), part| {
        let rows = part.start..(part.end + 1).min(column.rows);
        bytes.clear();
        bytes.resize(column.len_bytes(&rows), 0);
        let read = column.read(table.file(), reader, &rows, bytes);
        read.map_err(|error| table.failed(column, error))?;
        step(&integers(table, column, bytes)?, part.clone())
    })
}

/// Decodes the values of a key.
fn integers(table: &Table<'_>, column: &TableColumn, bytes: &[u8]) -> Result<Vec<u64>> {
    let mut values = Vec::new();
    let is_decoded = column.kind.number().is_some_and(|number| number.decode_integers(bytes, &mut values));
    if !is_decoded {
        return Err(contradicts(table, column, "does not hold integers"));
    }
    let number = |value: i64| u64::try_from(value).map_err(|_| contradicts(table, column, &format!("holds {value}")));
    values.into_iter().map(number).collect()
}

fn contradicts(table: &Table<'_>, column: &TableColumn, what: &str) -> QueryError {
    let reason = format!("{what}; recreate the keys with raddle keys add");
    QueryError::Column { table: table.path().to_owned(), column: column.name.clone(), reason }
}
