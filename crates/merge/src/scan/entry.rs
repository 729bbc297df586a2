//! Entries of a scanned input: what a merge needs to know about an object or a link.

use crate::schema::{AttributeValue, InputExtent, Role};
use raddle_hdf5::model::{CreationOrder, Dataset};
use std::sync::Arc;

/// An object or link of one input; its path is in [`super::ScannedInput::paths`].
#[derive(Debug, Clone)]
pub struct ScannedEntry {
    /// Whether the last component is marked UTF-8.
    pub utf8: bool,
    /// Kind of object or link.
    pub role: ScannedRole,
    /// Attributes in canonical bytes.
    pub attributes: Arc<[AttributeValue]>,
    /// Whether the object tracks the creation order of attributes.
    pub attribute_order: CreationOrder,
    /// Comment of the object.
    pub comment: Option<Vec<u8>>,
    /// Names of attributes with references to objects missing from the file, which became null references, and their
    /// number.
    pub dangling: Vec<(Vec<u8>, u64)>,
}

/// Kind of object or link at a path of an input.
#[derive(Debug, Clone)]
pub enum ScannedRole {
    /// A dataset to be concatenated.
    Column {
        /// Description that inputs may share.
        template: Arc<Dataset>,
        /// Location and size of this input's part.
        fact: InputExtent,
        /// Path of the committed datatype, if it has one.
        committed: Option<Vec<u8>>,
        /// Digest of all values, if the dataset is stored once instead of being concatenated: see `kept_once`.
        kept: Option<u64>,
        /// All values, if a rule keeps them.
        values: Option<Arc<[u8]>>,
    },
    /// Any other object or link.
    Other(Role),
}
