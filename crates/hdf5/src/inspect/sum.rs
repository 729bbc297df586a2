//! Statistics summed over files.
//!
//! Invariant: the result does not depend on the order or grouping of the files.

use super::{Inspection, SpaceUse};
use serde::{Deserialize, Serialize};

/// Totals over files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Number of files that could be read.
    pub files: u64,
    /// Total length of the files.
    pub file_len_bytes: u64,
    /// Length of the shortest file; 0 without files.
    pub shortest_file_len_bytes: u64,
    /// Length of the longest file.
    pub longest_file_len_bytes: u64,
    /// Number of groups, including the root groups.
    pub groups: u64,
    /// Number of attributes.
    pub attributes: u64,
    /// Number of datasets without elements.
    pub empty_datasets: u64,
    /// Datasets with at most one value in a row: scalars and shapes such as `(n)` and `(n, 1)`.
    pub narrow: SumOfKind,
    /// Datasets with several values in a row, such as images.
    pub wide: SumOfKind,
    /// Number of chunks.
    pub chunks: u64,
    /// Bytes of the files by use.
    pub space: SpaceUse,
    /// Number of objects that could not be read.
    pub faults: u64,
}

/// Totals over datasets of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SumOfKind {
    /// Number of datasets.
    pub datasets: u64,
    /// Uncompressed size of the values.
    pub logical_len_bytes: u64,
    /// Stored size of the values.
    pub stored_len_bytes: u64,
}

impl Sum {
    /// Adds a file.
    pub fn add(&mut self, file: &Inspection) {
        let (mut narrow, mut wide) = (SumOfKind::default(), SumOfKind::default());
        for dataset in &file.datasets {
            let is_narrow = dataset.dims.iter().skip(1).all(|&dim| dim == 1);
            let kind = if is_narrow { &mut narrow } else { &mut wide };
            kind.datasets += 1;
            kind.logical_len_bytes = kind.logical_len_bytes.saturating_add(dataset.logical_len_bytes);
            kind.stored_len_bytes = kind.stored_len_bytes.saturating_add(dataset.stored_len_bytes);
        }
        self.unite(&Self {
            files: 1,
            file_len_bytes: file.file_len_bytes,
            shortest_file_len_bytes: file.file_len_bytes,
            longest_file_len_bytes: file.file_len_bytes,
            groups: file.objects.groups,
            attributes: file.objects.attributes,
            empty_datasets: file.objects.empty_datasets,
            narrow,
            wide,
            chunks: file.chunks.count,
            space: file.space,
            faults: file.faults.len() as u64,
        });
    }

    /// Adds another sum.
    pub fn unite(&mut self, other: &Self) {
        self.shortest_file_len_bytes = match (self.files, other.files) {
            (_, 0) => self.shortest_file_len_bytes,
            (0, _) => other.shortest_file_len_bytes,
            _ => self.shortest_file_len_bytes.min(other.shortest_file_len_bytes),
        };
        self.longest_file_len_bytes = self.longest_file_len_bytes.max(other.longest_file_len_bytes);
        for (total, other) in [(&mut self.narrow, other.narrow), (&mut self.wide, other.wide)] {
            total.datasets += other.datasets;
            total.logical_len_bytes = total.logical_len_bytes.saturating_add(other.logical_len_bytes);
            total.stored_len_bytes = total.stored_len_bytes.saturating_add(other.stored_len_bytes);
        }
        let (space, others) = (&mut self.space, &other.space);
        for (total, other) in [
            (&mut space.raw_len_bytes, others.raw_len_bytes),
            (&mut space.metadata_len_bytes, others.metadata_len_bytes),
            (&mut space.heap_len_bytes, others.heap_len_bytes),
            (&mut space.userblock_len_bytes, others.userblock_len_bytes),
            (&mut space.unused_len_bytes, others.unused_len_bytes),
            (&mut self.files, other.files),
            (&mut self.file_len_bytes, other.file_len_bytes),
            (&mut self.groups, other.groups),
            (&mut self.attributes, other.attributes),
            (&mut self.empty_datasets, other.empty_datasets),
            (&mut self.chunks, other.chunks),
            (&mut self.faults, other.faults),
        ] {
            *total = total.saturating_add(other);
        }
    }

    /// Returns the totals over both kinds of datasets.
    pub fn all(&self) -> SumOfKind {
        SumOfKind {
            datasets: self.narrow.datasets + self.wide.datasets,
            logical_len_bytes: self.narrow.logical_len_bytes.saturating_add(self.wide.logical_len_bytes),
            stored_len_bytes: self.narrow.stored_len_bytes.saturating_add(self.wide.stored_len_bytes),
        }
    }
}
