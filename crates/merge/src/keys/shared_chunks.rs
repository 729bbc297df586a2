//! Counts the chunks that several readers of a partition decode.
//!
//! Invariant: if no chunk crosses the border between two shares, each chunk is read once.

use super::partition::{EventShare, KeyedFile};
use super::sizes::columns_by_group;
use crate::error::Result;
use crate::inputs::selection::Selection;
use crate::options::{MergeOptions, Watch};
use crate::schema::display_path;
use crate::verify::plan_file;
use raddle_hdf5::model::Layout;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// Chunk reads of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedChunks {
    /// Path of the group, escaped for display.
    pub group: String,
    /// Number of chunked datasets with the same number of rows as the table.
    pub datasets: u64,
    /// Number of chunks of the group's datasets.
    pub chunks: u64,
    /// Number of chunks that more than one reader reads.
    pub shared: u64,
    /// Number of chunk reads, summed over all readers.
    pub reads: u64,
}

/// Counts chunk reads for each table of the file at `path`. `shares` are all shares of a partition.
///
/// # Errors
/// If the file cannot be read.
pub fn shared_chunks(
    path: &Path,
    file: &KeyedFile,
    shares: &[EventShare],
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<Vec<SharedChunks>> {
    let whole = plan_file(path, Selection::default(), options, watch)?;
    let columns = columns_by_group(&whole);
    let mut found = Vec::new();
    for (number, group) in file.groups().enumerate() {
        let rows_of = |share: &EventShare| share.tables[number].rows.clone();
        let rows = shares.last().map_or(0, |last| rows_of(last).end);
        let mut table = SharedChunks { group: display_path(group), ..SharedChunks::default() };
        // The datasets of a table have few distinct chunk lengths.
        let mut kinds: HashMap<u64, ChunkReadCounts> = HashMap::new();
        for &column in columns.get(group).into_iter().flatten() {
            let planned = &whole.columns[column as usize];
            let Layout::Chunked { chunk_shape, .. } = &whole.schema.columns[column as usize].model().layout else {
                continue;
            };
            if planned.dims[0] != rows || planned.dims.contains(&0) {
                continue;
            }
            let counted = kinds
                .entry(chunk_shape[0].max(1))
                .or_insert_with_key(|&chunk_rows| ChunkReadCounts::of(chunk_rows, rows, shares.iter().map(rows_of)));
            let across: u64 =
                planned.dims[1..].iter().zip(&chunk_shape[1..]).map(|(dim, len)| dim.div_ceil((*len).max(1))).product();
            table.datasets += 1;
            table.chunks += counted.chunks * across;
            table.shared += counted.shared * across;
            table.reads += counted.reads * across;
        }
        found.push(table);
    }
    Ok(found)
}

/// Chunk reads of a dataset along axis 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChunkReadCounts {
    chunks: u64,
    shared: u64,
    reads: u64,
}

impl ChunkReadCounts {
    fn of(chunk_rows: u64, rows: u64, shares: impl Iterator<Item = std::ops::Range<u64>>) -> Self {
        let mut counted = Self { chunks: rows.div_ceil(chunk_rows), shared: 0, reads: 0 };
        // The last chunk read, and whether it has been counted as shared.
        let mut last: Option<(u64, bool)> = None;
        for share in shares.filter(|share| share.start < share.end) {
            let (first, end) = (share.start / chunk_rows, share.end.div_ceil(chunk_rows));
            counted.reads += end - first;
            let was_shared = match last {
                Some((chunk, was_shared)) if chunk == first => {
                    counted.shared += u64::from(!was_shared);
                    true
                }
                _ => false,
            };
            last = Some((end - 1, was_shared && end - 1 == first));
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_over_borders_are_shared() {
        let of = |chunk_rows, rows, shares: &[std::ops::Range<u64>]| {
            let ChunkReadCounts { chunks, shared, reads } =
                ChunkReadCounts::of(chunk_rows, rows, shares.iter().cloned());
            (chunks, shared, reads)
        };
        assert_eq!(of(10, 40, &[0..20, 20..40]), (4, 0, 4));
        assert_eq!(of(10, 40, &[0..25, 25..40]), (4, 1, 5));
        // One chunk of three readers is shared once, and read three times.
        assert_eq!(of(10, 40, &[0..21, 21..22, 22..40]), (4, 1, 6));
        assert_eq!(of(10, 35, &[0..5, 5..5, 5..18, 18..35]), (4, 2, 6));
        assert_eq!(of(10, 0, &[0..0, 0..0]), (0, 0, 0));
    }
}
