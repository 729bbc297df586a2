//! Positions of the rows of an input's dataset in the output, for region references to these rows.
//!
//! Invariant: a path is resolved through hard links to the dataset with the rows, and cycles of hard links end.

use crate::plan::MergePlan;
use crate::schema::Role;
use raddle_hdf5::logical::RowShift;
use std::collections::HashMap;

/// Positions that the rows of the inputs' datasets have in the output, indexed by the path of the dataset.
pub(crate) struct RowShifts<'p> {
    plan: &'p MergePlan,
    entries: HashMap<&'p [u8], &'p Role>,
}

/// Maximum number of hard links followed before a chain counts as a cycle.
const MAX_ALIAS_CHAIN: usize = 64;

impl<'p> RowShifts<'p> {
    /// Prepares lookups for the datasets of `plan`.
    pub(crate) fn new(plan: &'p MergePlan) -> Self {
        let entries = plan.schema.entries.iter().map(|entry| (entry.path.as_slice(), &entry.role)).collect();
        Self { plan, entries }
    }

    /// Returns the position of the rows of `input`'s dataset at `path`; `None` if the dataset is not concatenated.
    pub(crate) fn of(&self, path: &[u8], input: u32) -> Option<RowShift> {
        let mut path = path.to_vec();
        for _ in 0..MAX_ALIAS_CHAIN {
            if let Some(Role::Column(column)) = self.entries.get(path.as_slice()) {
                let (scanned, planned) =
                    (&self.plan.schema.columns[*column as usize], &self.plan.columns[*column as usize]);
                let mut input_dims = planned.dims.clone();
                input_dims[0] = scanned.facts[input as usize].rows;
                if scanned.is_once {
                    return None;
                }
                let row_offset = scanned.facts.iter().take(input as usize).map(|fact| fact.rows).sum();
                return Some(RowShift { row_offset, input_dims, output_rows: planned.dims[0] });
            }
            path = self.without_alias(&path)?;
        }
        None
    }

    /// Replaces the shortest prefix of the path that is an additional hard link by the first path of its object.
    fn without_alias(&self, path: &[u8]) -> Option<Vec<u8>> {
        let ends = (1..=path.len()).filter(|&end| end == path.len() || path[end] == b'/');
        ends.filter_map(|end| match self.entries.get(&path[..end]) {
            Some(Role::HardLink { target }) => Some([target.as_slice(), &path[end..]].concat()),
            _ => None,
        })
        .next()
    }
}
