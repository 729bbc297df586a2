//! Clusters and pages, which locate the elements of each column.
//!
//! Invariants: clusters are contiguous, starting with entry 0; the pages of a column are contiguous, starting with
//! element 0 of their cluster.

use super::envelope::{EnvelopeKind, Locator, list, locator, open, read_envelope, record};
use crate::file::RootFile;
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;

/// Range of entries.
#[derive(Debug)]
pub(super) struct Cluster {
    pub start: u64,
    pub end: u64,
    /// Pages of each column; `None` if another representation of the column is stored.
    pub columns: Vec<Option<Vec<Page>>>,
}

/// Some elements of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    /// Number of the element after the last, relative to the cluster.
    pub end: u64,
    pub len: u64,
    pub place: Locator,
    pub has_checksum: bool,
}

/// Reads the page lists of the footer's cluster groups.
pub(super) fn read_groups(file: &RootFile, bytes: &mut Bytes<'_>) -> Result<Vec<Cluster>, UnlocatedError> {
    let mut clusters = Vec::new();
    let (count, mut groups) = list(bytes)?;
    for _ in 0..count {
        let mut group = record(&mut groups)?;
        let (_first, _span, count) = (group.le_u64()?, group.le_u64()?, group.le_u32()?);
        let len_bytes = group.le_u64()?;
        let place = locator(&mut group)?;
        let envelope = read_envelope(file, EnvelopeKind::PageList, (place, len_bytes))?;
        read_pages(&envelope, count, &mut clusters)?;
    }
    // A cluster without entries precedes the cluster that starts at the same entry.
    clusters.sort_by_key(|cluster| (cluster.start, cluster.end));
    let mut next = 0;
    for cluster in &clusters {
        if cluster.start != next {
            let what = format!("entries {next} to {} are in no cluster", cluster.start);
            return Err(bytes.damaged(what));
        }
        next = cluster.end;
    }
    Ok(clusters)
}

fn read_pages(envelope: &[u8], count: u32, clusters: &mut Vec<Cluster>) -> Result<(), UnlocatedError> {
    let mut bytes = open(envelope)?;
    let _header_checksum = bytes.le_u64()?;
    let (summaries_count, mut summaries) = list(&mut bytes)?;
    let (pages_count, mut of_clusters) = list(&mut bytes)?;
    if summaries_count != count || pages_count != count {
        return Err(bytes.damaged(format!("{summaries_count} and {pages_count} clusters, {count} expected")));
    }
    for _ in 0..count {
        let mut summary = record(&mut summaries)?;
        let start = summary.le_u64()?;
        let entries = summary.le_u64()?;
        if entries >> 56 != 0 {
            return Err(summary.unsupported("a cluster in parts"));
        }
        let end = start.checked_add(entries).ok_or_else(|| summary.damaged("a cluster of too many entries"))?;
        let (columns_count, mut of_columns) = list(&mut of_clusters)?;
        let mut columns = Vec::new();
        for _ in 0..columns_count {
            columns.push(read_column(&mut of_columns)?);
        }
        clusters.push(Cluster { start, end, columns });
    }
    Ok(())
}

fn read_column(bytes: &mut Bytes<'_>) -> Result<Option<Vec<Page>>, UnlocatedError> {
    let (count, mut inside) = list(bytes)?;
    let (mut pages, mut end) = (Vec::new(), 0_u64);
    for _ in 0..count {
        let len = inside.le_i32()?;
        let place = locator(&mut inside)?;
        let has_checksum = len < 0;
        let len = u64::from(len.unsigned_abs());
        end += len;
        pages.push(Page { end, len, place, has_checksum });
    }
    let offset = inside.le_i64()?;
    Ok((offset >= 0).then_some(pages))
}
