//! Specifications of the datasets and attributes of an output.

use super::{TypeRef, VirtualMapping};
use crate::model::{CreationOrder, Dataspace, FillValue, Filter};

/// A dataset to be created.
#[derive(Debug, Clone)]
pub struct DatasetSpec {
    /// Type of one element.
    pub datatype: TypeRef,
    /// Extent of the dataset.
    pub dataspace: Dataspace,
    /// Storage layout.
    pub layout: OutputLayout,
    /// Filter pipeline, recorded exactly as passed; chunks arrive already filtered.
    pub filters: Vec<Filter>,
    /// Fill value. The layout determines when storage is allocated; `allocation_time` is ignored. If `write_time` is
    /// never, readers do not see the fill value in chunks that were not inserted.
    pub fill: FillValue,
    /// Whether the creation order of attributes is kept.
    pub attribute_order: CreationOrder,
    /// Whether attributes will be written; if so, the object header reserves space for them.
    pub has_attributes: bool,
}

/// Storage of a dataset to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputLayout {
    /// Values in the object header; at most 64 KiB.
    Compact,
    /// Values in one contiguous block, written by [`OutputDataset::place`](super::OutputDataset::place), or by
    /// [`OutputDataset::write`](super::OutputDataset::write) if they are small.
    Contiguous,
    /// Values in chunks. libhdf5 refuses chunks larger than a dimension of fixed size, so clamp them.
    Chunked {
        /// Chunk shape in elements.
        chunk_shape: Vec<u64>,
    },
    /// Values in datasets of other files; rows without a mapping read as the fill value. Values, chunks and filters are
    /// not allowed.
    Virtual(Vec<VirtualMapping>),
}

/// An attribute to be written.
#[derive(Debug, Clone, Copy)]
pub struct AttributeSpec<'a> {
    /// Name of the attribute.
    pub name: &'a [u8],
    /// Whether the name is marked UTF-8 (else ASCII).
    pub utf8: bool,
    /// Type of one element.
    pub datatype: &'a TypeRef,
    /// Extent of the attribute.
    pub dataspace: &'a Dataspace,
    /// Values of all elements: stored bytes for fixed types, and canonical bytes for file-local ones (references by
    /// path, whose targets must exist).
    pub value: &'a [u8],
}
