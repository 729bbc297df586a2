//! Contents of `/_raddle` in a file: digests, row ranges, and the record of the merge.

use super::column::ColumnDigests;
use crate::keys::DerivedSpec;
use crate::options::{Link, LinkPaths};
use crate::verify::record::StoredRecord;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

/// Contents of `/_raddle` in a file.
#[derive(Debug, Clone, Default)]
pub struct StoredDigests {
    /// Paths of the inputs, as they were specified, and their lengths.
    pub inputs: Vec<(PathBuf, u64)>,
    /// Digest of samples of each input (`crate::write::resume::sample`); empty if the file does not contain them.
    pub samples: Vec<u64>,
    /// Digest of the structure of each object other than concatenated datasets, indexed by path.
    pub objects: HashMap<Vec<u8>, u64>,
    /// Concatenated datasets, indexed by path.
    pub datasets: HashMap<Vec<u8>, StoredColumn>,
    /// Specifications of computed datasets, which no input has.
    pub derived: Vec<DerivedSpec>,
    /// Whether and how the file links to its inputs.
    pub link: (Link, LinkPaths),
    /// Settings that decided how the inputs were combined; `None` if all had their defaults, or the file does not
    /// record them.
    pub remembered: Option<StoredRecord>,
}

/// Concatenated dataset.
#[derive(Debug, Clone)]
pub struct StoredColumn {
    /// Digest of everything but values.
    pub structure: u64,
    /// Digests of values; `None` if there are no elements.
    pub digests: Option<ColumnDigests>,
    /// First row of each input, followed by the total; empty if rows belong to no input.
    pub row_starts: Vec<u64>,
}

impl StoredDigests {
    /// Returns whether a dataset of these dimensions may have been assembled from a scalar of each input. The digest of
    /// structure of such a dataset covers its values.
    pub fn is_stack(&self, path: &[u8], dims: &[u64]) -> bool {
        dims == [self.inputs.len() as u64] && self.objects.contains_key(path)
    }

    /// Returns the numbers of the inputs that hold any of `rows` of a dataset.
    pub fn inputs_of(&self, column: &StoredColumn, rows: &Range<u64>) -> Range<usize> {
        let ends = column.row_starts.get(1..).unwrap_or_default();
        let first = ends.partition_point(|&end| end <= rows.start);
        let after = column.row_starts.partition_point(|&start| start < rows.end);
        first..after.min(self.inputs.len()).max(first)
    }
}

/// Part of `/_raddle` that a merge with the file as an input must follow.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Records {
    /// Convention, rules and options of the merge; `None` if all had their defaults.
    pub remembered: Option<StoredRecord>,
    /// Datasets that the merge computed, such as partition keys.
    pub made: Vec<DerivedSpec>,
}
