//! Rows of a virtual dataset that its sources provide, and pieces of reads that need a limited number of sources.
//!
//! libhdf5 keeps every source open that a read needs, until the dataset is closed. Where it cannot open one, for example
//! because the process has no descriptor left, it shows fill values without an error. Invariant: values read in between
//! are from the sources if [`check_descriptors`] succeeds afterwards, because no source is closed in between.

use super::properties;
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle};
use hdf5_metno_sys::h5s::{H5Sget_select_bounds, H5Sget_simple_extent_ndims};
use rustix::process::{Resource, getrlimit};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;

/// Rows to which each source is mapped, as sorted first rows and sorted ends. Empty if the dataset has so few sources
/// that all may be open at once.
#[derive(Debug, Default)]
pub(super) struct SourceRows {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl SourceRows {
    /// Returns the rows of the sources of the dataset with these creation properties.
    pub(super) fn of(list: &Handle, call: Call<'_>) -> Result<Self> {
        let count = if properties::is_virtual(list, call)? { properties::mapping_count(list, call)? } else { 0 };
        if count <= max_open_sources() {
            return Ok(Self::default());
        }
        let ranges = (0..count).map(|number| mapped_rows(&properties::virtual_space(list, number, call)?, call));
        Ok(Self::new(ranges.collect::<Result<Vec<_>>>()?.into_iter()))
    }

    fn new(ranges: impl Iterator<Item = Range<u64>>) -> Self {
        let (mut starts, mut ends): (Vec<u64>, Vec<u64>) = ranges.map(|rows| (rows.start, rows.end)).unzip();
        starts.sort_unstable();
        ends.sort_unstable();
        Self { starts, ends }
    }

    /// Returns whether reads need not be divided.
    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the number of sources that a read of `rows` needs.
    pub(super) fn needed_by(&self, rows: &Range<u64>) -> usize {
        let ended = self.ends.partition_point(|&end| end <= rows.start);
        self.starts.partition_point(|&start| start < rows.end).saturating_sub(ended)
    }

    /// Divides `rows` into pieces that need at most `limit` sources each, or one row's sources if these are more.
    pub(super) fn pieces(&self, rows: Range<u64>, limit: usize) -> Vec<Range<u64>> {
        let mut pieces = Vec::new();
        let mut first = rows.start;
        while first < rows.end {
            let ended = self.ends.partition_point(|&end| end <= first);
            let begun = self.starts.partition_point(|&start| start <= first);
            let end = self.starts.get(begun.max(ended + limit)).map_or(rows.end, |&start| start.min(rows.end));
            pieces.push(first..end);
            first = end;
        }
        pieces
    }
}

/// Returns the rows of axis 0 that a selection touches; all rows if it has no end.
fn mapped_rows(space: &Handle, call: Call<'_>) -> Result<Range<u64>> {
    // SAFETY: a simple dataspace is open.
    let rank = call.status("H5Sget_simple_extent_ndims", unsafe { H5Sget_simple_extent_ndims(space.id()) })?;
    let (mut first, mut last) = (vec![0; rank as usize], vec![0; rank as usize]);
    // SAFETY: a dataspace is open; the arrays have one element per dimension.
    let status = unsafe { H5Sget_select_bounds(space.id(), first.as_mut_ptr(), last.as_mut_ptr()) };
    match (first.first(), last.first()) {
        (Some(&first), Some(&last)) if status >= 0 => Ok(first..last.saturating_add(1)),
        _ => Ok(0..u64::MAX),
    }
}

/// Returns the maximum number of sources that reads leave open if each row needs few. Each takes a descriptor, and a
/// chunk cache of 1 MiB.
pub(super) fn max_open_sources() -> usize {
    /// Share of the descriptors for sources; the external file cache may keep equally many open.
    const SHARE: u64 = 4;
    getrlimit(Resource::Nofile).current.map_or(64, |limit| (limit / SHARE).clamp(1, 64) as usize)
}

/// Fails if the process cannot open another file.
pub(super) fn check_descriptors(call: Call<'_>) -> Result<()> {
    match io::stdin().as_fd().try_clone_to_owned() {
        Err(source) if matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            let operation = "opening the files that it refers to".to_owned();
            Err(Hdf5Error::Io { path: call.path.to_path_buf(), operation, source })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_need_a_limited_number_of_sources() {
        // Sources of 10 rows each, one of them with a gap before it.
        let rows = SourceRows::new([0..10, 20..30, 10..20, 35..45].into_iter());
        assert_eq!(rows.pieces(0..45, 2), [0..20, 20..45]);
        assert_eq!(rows.pieces(5..42, 1), [5..10, 10..20, 20..35, 35..42]);
        assert_eq!(rows.pieces(0..60, 9).first(), Some(&(0..60)));
        assert_eq!(rows.pieces(7..7, 1), []);
        assert_eq!([0..1, 9..11, 30..35, 0..45].map(|range| rows.needed_by(&range)), [1, 2, 0, 4]);
    }

    #[test]
    fn sources_that_share_rows_are_needed_together() {
        let rows = SourceRows::new([0..10, 0..10, 0..10, 10..20, 5..u64::MAX].into_iter());
        assert_eq!(rows.pieces(0..20, 2), [0..5, 5..10, 10..20]);
        assert_eq!(rows.pieces(0..20, 1), [0..5, 5..10, 10..20]);
        assert_eq!([0..5, 5..10, 10..20].map(|range| rows.needed_by(&range)), [3, 4, 2]);
    }
}
