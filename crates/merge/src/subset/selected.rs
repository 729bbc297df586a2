//! Elements that ranges of dimensions select.

use std::collections::BTreeMap;
use std::ops::Range;

/// Selected elements of dimensions, indexed by the path of the dimension scale or by label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SelectedElements(pub(super) BTreeMap<Vec<u8>, Range<u64>>);

impl SelectedElements {
    /// Returns the selected elements of a dimension; `None` if all are.
    pub fn of(&self, dimension: &[u8]) -> Option<&Range<u64>> {
        self.0.get(dimension)
    }

    /// Returns the dimensions that are restricted.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(Vec::as_slice)
    }
}
