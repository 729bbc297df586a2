//! Checks the order of the keys in a file: keys of the index group must be 0, 1, 2, …; keys of all other groups must
//! not descend and must refer to existing events.

use crate::error::{MergeError, Result};
use crate::inputs::selection::Selection;
use crate::options::{MergeOptions, Watch};
use crate::plan::MergePlan;
use crate::plan::memory::ReaderMemory;
use crate::schema::parent_path;
use crate::schema::{ColumnIndex, Role, display_path};
use crate::verify::plan_file;
use crate::write::values::{ColumnReader, open_pool};
use raddle_core::parallel;
use raddle_core::report::progress::{Event, Stage};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::ids::{Domain, IdTable, Ids};
use super::index::READ_ROWS;

/// Report of a check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeysReport {
    /// Number of events in the index group.
    pub events: u64,
    /// Number of key datasets that were checked, including the one of the index group.
    pub datasets: u64,
    /// Number of rows that were checked.
    pub rows: u64,
    /// Faults found; empty if all keys are in order.
    pub faults: Vec<SortViolation>,
    /// Wall time.
    pub elapsed_s: f64,
}

/// Key dataset that is not in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortViolation {
    /// Path of the dataset, escaped for display.
    pub path: String,
    /// First row that is wrong; `None` if the whole dataset is.
    pub row: Option<u64>,
    /// Description of the violation.
    pub what: String,
}

/// Checks the key dataset `key` of the index group and those of the same name in all other groups.
///
/// # Errors
/// If the file cannot be read, or has no such dataset. Disorder is part of the report, not an error.
pub fn check(path: &Path, key: &str, options: &MergeOptions, watch: &Watch<'_>) -> Result<KeysReport> {
    let started = std::time::Instant::now();
    let found = plan_file(path, Selection::default(), options, watch)?;
    let name = key.rsplit('/').next().unwrap_or(key).as_bytes();
    let mut keys: Vec<ColumnIndex> = Vec::new();
    let mut index_key = None;
    for entry in &found.schema.entries {
        let Role::Column(column) = entry.role else { continue };
        if entry.path == key.as_bytes() {
            index_key = Some(column);
        } else if entry.path.ends_with(name) && entry.path[..entry.path.len() - name.len()].ends_with(b"/") {
            keys.push(column);
        }
    }
    let Some(index_key) = index_key else {
        let reason = format!("is not in {}; create it with raddle keys add", path.display());
        return Err(MergeError::Object { object: display_path(key.as_bytes()), reason });
    };
    let events = found.columns[index_key as usize].dims[0];
    keys.insert(0, index_key);
    let rows: u64 = keys.iter().map(|&key| found.columns[key as usize].dims[0]).sum();
    watch.observer.event(&Event::StageStarted { stage: Stage::Keys, total_bytes: Some(rows * 8) });
    let pool = open_pool(&found);
    let faults = Mutex::new(Vec::new());
    let reader = || ColumnReader::new(&found, &pool);
    let jobs = ReaderMemory::of(&found).fitting_jobs(&found, found.options.jobs, 0)?;
    parallel::for_each(&keys, jobs, watch.cancel, reader, |reader, &key| {
        let disorder = check_one(&found, reader, key, (key != index_key).then_some(events), watch)?;
        faults.lock().unwrap_or_else(PoisonError::into_inner).extend(disorder);
        Ok::<_, MergeError>(())
    })?;
    let mut faults: Vec<SortViolation> = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
    faults.sort_by(|left, right| left.path.cmp(&right.path));
    let elapsed_s = started.elapsed().as_secs_f64();
    watch.observer.event(&Event::StageFinished { stage: Stage::Keys, elapsed_s });
    Ok(KeysReport { events, datasets: keys.len() as u64, rows, faults, elapsed_s })
}

/// Checks one dataset: the one of the index group, or one with events that must be below `events`.
pub(super) fn check_one(
    found: &MergePlan,
    reader: &mut ColumnReader<'_>,
    key: ColumnIndex,
    events: Option<u64>,
    watch: &Watch<'_>,
) -> Result<Option<SortViolation>> {
    let path = found.schema.column_path(key);
    let disorder = |row: Option<u64>, what: String| Some(SortViolation { path: display_path(path), row, what });
    let mut table = [IdTable::of(found, &[key])?];
    let domain = IdTable::set_domains(&mut table).first().copied().unwrap_or(Domain::Signed);
    let [table] = table;
    if let (Some(_), Some(rows)) = (events, rows_beside(found, path))
        && rows != table.rows
    {
        return Ok(disorder(None, format!("has {} rows, but its table has {rows}", table.rows)));
    }
    let (mut raw, mut ids) = (Vec::new(), Ids::new(1));
    let mut before = -1_i128;
    let mut row = 0;
    while row < table.rows {
        if watch.cancel.is_cancelled() {
            return Err(MergeError::Cancelled);
        }
        let end = (row + READ_ROWS).min(table.rows);
        table.read(reader, found, row..end, &mut raw, &mut ids)?;
        for at in 0..ids.len() {
            let (here, number) = (row + at as u64, domain.number(ids.first(at)));
            match events {
                None if number != i128::from(here) => {
                    return Ok(disorder(Some(here), format!("is {number}, not {here}")));
                }
                Some(_) if number < before => {
                    return Ok(disorder(Some(here), format!("is {number} after {before}")));
                }
                Some(events) if number < 0 || number >= i128::from(events) => {
                    return Ok(disorder(Some(here), format!("is {number}, but there are only {events} events")));
                }
                _ => {}
            }
            before = number;
        }
        watch.observer.event(&Event::Advanced { stage: Stage::Keys, bytes: (end - row) * 8, items: 0 });
        row = end;
    }
    Ok(None)
}

/// Returns the number of rows of the id column to which a key `NAME.seq` belongs.
fn rows_beside(found: &MergePlan, path: &[u8]) -> Option<u64> {
    let named = path.strip_suffix(b".seq")?;
    found.schema.entries.iter().find_map(|entry| match entry.role {
        Role::Column(column) if entry.path == named && parent_path(named) == parent_path(path) => {
            Some(found.columns[column as usize].dims[0])
        }
        _ => None,
    })
}
