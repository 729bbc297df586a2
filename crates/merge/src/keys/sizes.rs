//! Sizes of events: the uncompressed bytes of their rows in all groups with keys.
//!
//! Invariant: the sizes of all events add up to the bytes of all rows. Variable-length values count as the references
//! that HDF5 stores in the dataset.

use super::partition::KeyedFile;
use crate::error::Result;
use crate::inputs::selection::Selection;
use crate::options::{MergeOptions, Watch};
use crate::plan::MergePlan;
use crate::schema::parent_path;
use crate::schema::{ColumnIndex, Role, display_path};
use crate::verify::plan_file;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Number of events that are processed at once.
const EVENTS_AT_ONCE: u64 = 1 << 16;

/// Sizes of the events of a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventSizes {
    /// Number of events.
    pub events: u64,
    /// Events without rows in any table except the index.
    pub empty_events: u64,
    /// Uncompressed length of the rows of all events.
    pub total_len_bytes: u64,
    /// Length of the smallest event.
    pub least_len_bytes: u64,
    /// Median bytes of an event.
    pub median_len_bytes: u64,
    /// Length of the largest event.
    pub greatest_len_bytes: u64,
    /// Histogram of sizes, in powers of two.
    pub histogram: Vec<SizeBucket>,
    /// The tables, sorted by path.
    pub tables: Vec<TableSizes>,
}

/// Bin of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeBucket {
    /// Lower bound in bytes; the upper bound is twice that.
    pub from_len_bytes: u64,
    /// Number of events.
    pub events: u64,
}

/// Rows of events in one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSizes {
    /// Path of the group, escaped for display.
    pub group: String,
    /// Number of rows.
    pub rows: u64,
    /// Uncompressed length of a row of all its datasets.
    pub row_len_bytes: u64,
    /// Number of events with rows.
    pub events: u64,
    /// Maximum number of rows of one event.
    pub most_rows: u64,
}

/// Computes the sizes of the events of the file at `path`; `key` is the key of the index group, such as
/// `/spill/evt.seq`. Reads keys and metadata only.
///
/// # Errors
/// As for [`KeyedFile::open`] and [`KeyedFile::share`].
pub fn event_sizes(path: &Path, key: &str, options: &MergeOptions, watch: &Watch<'_>) -> Result<EventSizes> {
    let file = KeyedFile::open_checked(path, key, true, options, watch)?;
    let whole = plan_file(path, Selection::default(), options, watch)?;
    let columns = columns_by_group(&whole);
    let mut sizes = EventSizes { events: file.events(), ..EventSizes::default() };
    let mut row_lens = Vec::new();
    let tables = file.all_tables()?;
    for &(group, rows, _) in &tables {
        let of_group = columns.get(group).into_iter().flatten();
        let of_rows =
            of_group.filter(|&&column| whole.columns[column as usize].dims[0] == rows && !is_key(&whole, column));
        let row_len_bytes = of_rows.map(|&column| whole.row_len_bytes(column)).sum();
        row_lens.push(row_len_bytes);
        sizes.tables.push(TableSizes { group: display_path(group), rows, row_len_bytes, events: 0, most_rows: 0 });
    }
    let mut counts: HashMap<u64, u64> = HashMap::new();
    let mut reader = file.reader();
    let mut start = 0;
    while start < sizes.events {
        watch.cancel.check()?;
        let events = start..(start + EVENTS_AT_ONCE).min(sizes.events);
        let mut of_events = vec![(0_u64, false); (events.end - events.start) as usize];
        for ((&(group, _, is_index), table), row_len_bytes) in tables.iter().zip(&mut sizes.tables).zip(&row_lens) {
            let rows = file.rows_of_events(&mut reader, group, &events)?;
            for ((len_bytes, has_rows), rows) in of_events.iter_mut().zip(rows) {
                *len_bytes = len_bytes.saturating_add(rows.saturating_mul(*row_len_bytes));
                *has_rows |= rows > 0 && !is_index;
                table.events += u64::from(rows > 0);
                table.most_rows = table.most_rows.max(rows);
            }
        }
        for (len_bytes, has_rows) in of_events {
            *counts.entry(len_bytes).or_default() += 1;
            sizes.empty_events += u64::from(!has_rows);
        }
        start = events.end;
    }
    sizes.count(counts.into_iter().collect());
    Ok(sizes)
}

impl EventSizes {
    /// Fills in the statistics, from the number of events of each size.
    fn count(&mut self, counts: BTreeMap<u64, u64>) {
        self.least_len_bytes = counts.first_key_value().map_or(0, |(len_bytes, _)| *len_bytes);
        self.greatest_len_bytes = counts.last_key_value().map_or(0, |(len_bytes, _)| *len_bytes);
        let mut before = 0;
        let mut median = None;
        for (len_bytes, events) in counts {
            self.total_len_bytes = self.total_len_bytes.saturating_add(len_bytes.saturating_mul(events));
            before += events;
            if median.is_none() && before * 2 >= self.events {
                median = Some(len_bytes);
            }
            let from_len_bytes = len_bytes.checked_ilog2().map_or(0, |power| 1 << power);
            match self.histogram.last_mut() {
                Some(bucket) if bucket.from_len_bytes == from_len_bytes => bucket.events += events,
                _ => self.histogram.push(SizeBucket { from_len_bytes, events }),
            }
        }
        self.median_len_bytes = median.unwrap_or(0);
    }
}

/// Returns the datasets by path of their group.
pub(super) fn columns_by_group(plan: &MergePlan) -> HashMap<&[u8], Vec<ColumnIndex>> {
    let mut columns: HashMap<&[u8], Vec<ColumnIndex>> = HashMap::new();
    for entry in &plan.schema.entries {
        if let Role::Column(column) = entry.role {
            columns.entry(parent_path(&entry.path)).or_default().push(column);
        }
    }
    columns
}

/// Returns whether a dataset is a partition key, which does not count as data.
fn is_key(plan: &MergePlan, column: ColumnIndex) -> bool {
    let path = display_path(plan.schema.column_path(column));
    [".seq", ".seq_cnt", ".offsets"].iter().any(|ending| path.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_summed_up() {
        let mut sizes = EventSizes { events: 6, ..EventSizes::default() };
        sizes.count([(0, 1), (3, 1), (100, 2), (127, 1), (4096, 1)].into());
        assert_eq!((sizes.least_len_bytes, sizes.median_len_bytes, sizes.greatest_len_bytes), (0, 100, 4096));
        assert_eq!(sizes.total_len_bytes, 3 + 200 + 127 + 4096);
        let buckets: Vec<_> = sizes.histogram.iter().map(|bucket| (bucket.from_len_bytes, bucket.events)).collect();
        assert_eq!(buckets, [(0, 1), (2, 1), (64, 3), (4096, 1)]);
        let mut none = EventSizes::default();
        none.count(BTreeMap::new());
        assert_eq!(none, EventSizes::default());
    }
}
