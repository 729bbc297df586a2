//! Shares of events: the rows of every table that a rank of a parallel reader takes.
//!
//! The events of the index group are cut into blocks, one per rank; if they do not divide evenly, the blocks of the
//! first ranks are longer by one event. The rows of a block are located with two values of `NAME.offsets`, or, in
//! tables that only have `NAME.seq` (as ph5concat writes it), with a binary search that reads one chunk per step. No
//! rank therefore reads a whole key column, and no communication is needed. This module does not read the rows
//! themselves.
//!
//! A table whose events do not ascend cannot be divided. raddle makes only `NAME.seq` for it, even if the index group
//! has more. The key of such a table is read to find out whether it ascends.
//!
//! ```no_run
//! use raddle_core::{cancel::CancelToken, report::progress::Silent};
//! use raddle_merge::{MergeOptions, Watch, keys::partition::partition};
//!
//! # fn main() -> raddle_merge::Result<()> {
//! let (rank, size) = (3, 8);
//! let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
//! let share = partition("all.h5".as_ref(), "/spill/evt.seq", rank, size, &MergeOptions::new(""), &watch)?;
//! println!("events {:?}, found by {} bytes", share.events, share.read_len_bytes);
//! for table in &share.tables {
//!     println!("{}: rows {:?}", table.group, table.rows);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Invariant: the shares of all ranks cover every row of every table of a share exactly once, in order, if the keys are
//! in order ([`super::check`]).

use super::check::check_one;
use super::ids::{Domain, IdTable, Ids};
use crate::error::{MergeError, Result};
use crate::inputs::selection::Selection;
use crate::options::{MergeOptions, Watch};
use crate::plan::MergePlan;
use crate::schema::{ColumnIndex, Role, display_path, last_name, parent_path};
use crate::verify::plan_file;
use crate::write::values::{ColumnReader, open_pool};
use raddle_core::ranks::shares::even_share;
use raddle_core::report::StageTable;
use raddle_core::report::progress::{RunningStage, Stage};
use raddle_hdf5::model::Layout;
use raddle_hdf5::source::InputPool;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::Path;

/// Number of rows that are read at once from a key that is not chunked.
const UNCHUNKED_BLOCK_ROWS: u64 = 4096;

/// Share of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventShare {
    /// Number of the rank.
    pub rank: u64,
    /// Number of ranks.
    pub size: u64,
    /// Events of the share, as rows of the index group.
    pub events: Range<u64>,
    /// Rows of the share in every group with keys whose events ascend, sorted by path.
    pub tables: Vec<TableShare>,
    /// Paths of groups with keys whose events do not ascend, escaped for display. They are not divided.
    #[serde(default)]
    pub unordered: Vec<String>,
    /// Number of stored bytes that were read to locate the rows.
    pub read_len_bytes: u64,
}

/// Share of one rank in a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableShare {
    /// Path of the group, escaped for display.
    pub group: String,
    /// Rows of the share in all datasets of the group.
    pub rows: Range<u64>,
    /// Method by which they were located.
    pub found_by: FoundBy,
}

/// Method of locating the rows of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// The group has a row per event.
    Index,
    /// Reading of `NAME.offsets`.
    Offsets,
    /// Search in `NAME.seq`.
    Seq,
}

/// File with partition keys, opened once for any number of ranks.
#[derive(Debug)]
pub struct KeyedFile {
    found: MergePlan,
    pool: InputPool,
    events: u64,
    /// Tables, indexed by the path of the group.
    tables: BTreeMap<Vec<u8>, KeyedTable>,
    /// Tables whose events do not ascend, indexed by the path of the group.
    unordered: BTreeMap<Vec<u8>, KeyedTable>,
}

#[derive(Debug)]
struct KeyedTable {
    found_by: FoundBy,
    ids: IdTable,
    domain: Domain,
    /// Number of rows that are read at once.
    block_rows: u64,
    column: ColumnIndex,
}

/// Returns the share of rank `rank` of `size` in the file at `path`, whose index group has the key `key`
/// (`/spill/evt.seq`). The function is local: ranks need not call it together.
///
/// # Errors
/// As for [`KeyedFile::open`] and [`KeyedFile::share`].
pub fn partition(
    path: &Path,
    key: &str,
    rank: u64,
    size: u64,
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<EventShare> {
    KeyedFile::open(path, key, options, watch)?.share(rank, size)
}

impl KeyedFile {
    /// Finds the key `key` of the index group and the keys of the same name in all groups. Reads no values, except for
    /// tables that may be unordered.
    ///
    /// # Errors
    /// If the file cannot be read, has no such key, or a key does not hold integers.
    pub fn open(path: &Path, key: &str, options: &MergeOptions, watch: &Watch<'_>) -> Result<Self> {
        Self::open_checked(path, key, false, options, watch)
    }

    /// Like [`Self::open`]. If `checks_all`, reads the keys of all tables without offsets to find those that are
    /// unordered.
    pub(super) fn open_checked(
        path: &Path,
        key: &str,
        checks_all: bool,
        options: &MergeOptions,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        let name = String::from_utf8_lossy(last_name(key.as_bytes())).into_owned();
        let named = name.strip_suffix(".seq").unwrap_or(&name);
        let endings = [".seq", ".seq_cnt", ".offsets"].map(|ending| globset::escape(&format!("{named}{ending}")));
        let selection = Selection::new(&endings, &[], &[])?;
        let found = plan_file(path, selection, options, watch)?;
        let mut index_group = None;
        let mut tables = BTreeMap::new();
        // Groups with datasets that raddle only makes if events ascend.
        let mut ordered: HashSet<&[u8]> = HashSet::new();
        for entry in &found.schema.entries {
            let Role::Column(column) = entry.role else { continue };
            let group = parent_path(&entry.path);
            if !last_name(&entry.path).ends_with(b".seq") {
                ordered.insert(group);
            }
            if last_name(&entry.path).ends_with(b".seq_cnt") {
                continue;
            }
            let is_offsets = last_name(&entry.path).ends_with(b".offsets");
            let found_by = match is_offsets {
                true => FoundBy::Offsets,
                false if entry.path == key.as_bytes() => {
                    index_group = Some((group.to_vec(), found.columns[column as usize].dims[0]));
                    FoundBy::Index
                }
                // Offsets are preferred if they exist.
                false if tables.contains_key(group) => continue,
                false => FoundBy::Seq,
            };
            let mut ids = [IdTable::of(&found, &[column])?];
            let domain = IdTable::set_domains(&mut ids).first().copied().unwrap_or(Domain::Signed);
            let [ids] = ids;
            let block_rows = match &found.schema.columns[column as usize].model().layout {
                Layout::Chunked { chunk_shape, .. } => chunk_shape[0].max(1),
                _ => UNCHUNKED_BLOCK_ROWS,
            };
            let table = KeyedTable { found_by, ids, domain, block_rows, column };
            // The index group may also have offsets, but does not need them.
            if !(is_offsets && tables.get(group).is_some_and(|known: &KeyedTable| known.found_by == FoundBy::Index)) {
                tables.insert(group.to_vec(), table);
            }
        }
        let Some((index_group, events)) = index_group else {
            let reason = format!("is not in {}; create it with raddle keys add", path.display());
            return Err(MergeError::Object { object: display_path(key.as_bytes()), reason });
        };
        let is_suspect = |(group, table): &(&Vec<u8>, &KeyedTable)| {
            let lacks_others = ordered.contains(index_group.as_slice()) && !ordered.contains(group.as_slice());
            table.found_by == FoundBy::Seq && (checks_all || lacks_others)
        };
        let suspects: Vec<Vec<u8>> = tables.iter().filter(is_suspect).map(|(group, _)| group.clone()).collect();
        let pool = open_pool(&found);
        let mut file = Self { found, pool, events, tables, unordered: BTreeMap::new() };
        file.set_unordered_apart(&suspects, watch)?;
        Ok(file)
    }

    /// Reads the keys of `suspects`, and separates the tables whose events do not ascend.
    fn set_unordered_apart(&mut self, suspects: &[Vec<u8>], watch: &Watch<'_>) -> Result<()> {
        if suspects.is_empty() {
            return Ok(());
        }
        let rows = suspects.iter().filter_map(|group| self.tables.get(group)).map(|table| table.ids.rows);
        let checking = RunningStage::start(watch.observer, Stage::Keys, Some(rows.sum::<u64>() * 8));
        for group in suspects {
            let Some(table) = self.tables.get(group) else { continue };
            if check_one(&self.found, &mut self.reader(), table.column, Some(self.events), watch)?.is_some() {
                self.unordered.extend(self.tables.remove_entry(group));
            }
        }
        checking.finish();
        Ok(())
    }

    /// Returns the number of events.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the paths of the groups with keys, in the order of [`EventShare::tables`].
    pub fn groups(&self) -> impl Iterator<Item = &[u8]> {
        self.tables.keys().map(Vec::as_slice)
    }

    /// Returns the paths of the groups with keys whose events do not ascend, in the order of
    /// [`EventShare::unordered`].
    pub fn unordered(&self) -> impl Iterator<Item = &[u8]> {
        self.unordered.keys().map(Vec::as_slice)
    }

    /// Returns all groups with keys, sorted by path: the path, the number of rows, and whether it has a row per event.
    pub(super) fn all_tables(&self) -> Result<Vec<(&[u8], u64, bool)>> {
        let ordered = self.tables.iter().zip(self.share(0, 1)?.tables);
        let ordered =
            ordered.map(|((group, table), share)| (group.as_slice(), share.rows.end, table.found_by == FoundBy::Index));
        let unordered = self.unordered.iter().map(|(group, table)| (group.as_slice(), table.ids.rows, false));
        let mut all: Vec<_> = ordered.chain(unordered).collect();
        all.sort_unstable();
        Ok(all)
    }

    /// Returns a reader of keys.
    pub(super) fn reader(&self) -> ColumnReader<'_> {
        ColumnReader::new(&self.found, &self.pool)
    }

    /// Returns the number of rows that each of `events` has in `group`, a path as in [`Self::all_tables`]. Reads the
    /// whole key if the table is unordered.
    pub(super) fn rows_of_events(
        &self,
        reader: &mut ColumnReader<'_>,
        group: &[u8],
        events: &Range<u64>,
    ) -> Result<Vec<u64>> {
        let count = (events.end - events.start) as usize;
        let Some(table) = self.tables.get(group) else {
            let Some(table) = self.unordered.get(group) else { return Ok(vec![0; count]) };
            let is_event = |event: i128| (0..i128::from(self.events)).contains(&event);
            return self.count_rows(reader, table, 0..table.ids.rows, events, is_event);
        };
        match table.found_by {
            FoundBy::Index => Ok(vec![1; count]),
            FoundBy::Offsets => {
                self.by_offsets(reader, table, events)?;
                let offsets = self.values(reader, table, events.start..events.end + 1)?;
                let rows = |pair: &[i128]| u64::try_from(pair[1] - pair[0]);
                let all: std::result::Result<Vec<u64>, _> = offsets.windows(2).map(rows).collect();
                all.map_err(|_| {
                    self.contradiction(table, &format!("descends between {} and {}", events.start, events.end))
                })
            }
            FoundBy::Seq => {
                let first = self.first_row(reader, table, events.start)?;
                let rows = first..self.first_row(reader, table, events.end)?;
                self.count_rows(reader, table, rows, events, |_| false)
            }
        }
    }

    /// Returns how many of `rows` each of `events` has, from `NAME.seq`. Rows of other events are left out if
    /// `is_other` returns true for the event, and are an error otherwise.
    fn count_rows(
        &self,
        reader: &mut ColumnReader<'_>,
        table: &KeyedTable,
        rows: Range<u64>,
        events: &Range<u64>,
        is_other: impl Fn(i128) -> bool,
    ) -> Result<Vec<u64>> {
        let mut counts = vec![0; (events.end - events.start) as usize];
        let mut row = rows.start;
        while row < rows.end {
            let next = (row + table.block_rows.max(UNCHUNKED_BLOCK_ROWS)).min(rows.end);
            for event in self.values(reader, table, row..next)? {
                let place = usize::try_from(event - i128::from(events.start)).ok();
                match place.and_then(|place| counts.get_mut(place)) {
                    Some(count) => *count += 1,
                    None if is_other(event) => {}
                    None => return Err(self.contradiction(table, "does not ascend")),
                }
            }
            row = next;
        }
        Ok(counts)
    }

    /// Returns the share of rank `rank` of `size`.
    ///
    /// # Errors
    /// If keys cannot be read or contradict the file.
    ///
    /// # Panics
    /// If `rank` is not less than `size`.
    pub fn share(&self, rank: u64, size: u64) -> Result<EventShare> {
        assert!(rank < size, "rank {rank} of {size}");
        let events = even_share(self.events, rank, size);
        let mut reader = ColumnReader::new(&self.found, &self.pool);
        let mut tables = Vec::with_capacity(self.tables.len());
        for (group, table) in &self.tables {
            let rows = match table.found_by {
                FoundBy::Index => events.clone(),
                FoundBy::Offsets => self.by_offsets(&mut reader, table, &events)?,
                FoundBy::Seq => {
                    let first = self.first_row(&mut reader, table, events.start)?;
                    first..self.first_row(&mut reader, table, events.end)?
                }
            };
            tables.push(TableShare { group: display_path(group), rows, found_by: table.found_by });
        }
        let mut stages = StageTable::default();
        reader.retire(&mut stages);
        let unordered = self.unordered.keys().map(|group| display_path(group)).collect();
        Ok(EventShare { rank, size, events, tables, unordered, read_len_bytes: stages.get(Stage::Read).bytes })
    }

    fn by_offsets(&self, reader: &mut ColumnReader<'_>, table: &KeyedTable, events: &Range<u64>) -> Result<Range<u64>> {
        if table.ids.rows != self.events + 1 {
            return Err(self.contradiction(table, &format!("has {} values for {} events", table.ids.rows, self.events)));
        }
        let mut offset = |event: u64| {
            let values = self.values(reader, table, event..event + 1)?;
            u64::try_from(values[0]).map_err(|_| self.contradiction(table, &format!("is {} at {event}", values[0])))
        };
        let rows = offset(events.start)?..offset(events.end)?;
        if rows.start > rows.end {
            return Err(self.contradiction(table, &format!("descends between {} and {}", events.start, events.end)));
        }
        Ok(rows)
    }

    /// Returns the first row whose event is `event` or a later one. Reads single rows to find the last block that
    /// begins before it, then reads that block.
    ///
    /// # Errors
    /// If the values that are read do not ascend.
    fn first_row(&self, reader: &mut ColumnReader<'_>, table: &KeyedTable, event: u64) -> Result<u64> {
        let (rows, block_rows) = (table.ids.rows, table.block_rows);
        let (mut low, mut high) = (0, rows.div_ceil(block_rows));
        while low < high {
            let middle = low + (high - low) / 2;
            let row = middle * block_rows;
            let is_before = self.values(reader, table, row..row + 1)?[0] < i128::from(event);
            (low, high) = if is_before { (middle + 1, high) } else { (low, middle) };
        }
        let Some(block) = low.checked_sub(1) else { return Ok(0) };
        let first = block * block_rows;
        let values = self.values(reader, table, first..rows.min(first + block_rows))?;
        if !values.is_sorted() {
            return Err(self.contradiction(table, "does not ascend"));
        }
        Ok(first + values.partition_point(|value| *value < i128::from(event)) as u64)
    }

    fn values(&self, reader: &mut ColumnReader<'_>, table: &KeyedTable, rows: Range<u64>) -> Result<Vec<i128>> {
        let (mut raw, mut ids) = (Vec::new(), Ids::new(1));
        table.ids.read(reader, &self.found, rows, &mut raw, &mut ids)?;
        Ok((0..ids.len()).map(|at| table.domain.number(ids.first(at))).collect())
    }

    fn contradiction(&self, table: &KeyedTable, what: &str) -> MergeError {
        let object = display_path(self.found.schema.column_path(table.column));
        MergeError::Object { object, reason: format!("{what}; recreate the keys with raddle keys add --force") }
    }
}
