//! Prediction of the metadata length of an output: an upper bound of the total before writing starts, and of single
//! operations.
//!
//! The metadata region at the front must be reserved before the first raw byte is placed. [`MetadataPrediction`] adds
//! up the allocations of libhdf5 for each object, from the file format and from how libhdf5 2.2 fills its structures
//! (measured where the format leaves a choice; tests compare the sum with real files). It exceeds the actual length by
//! a few percent, so that the region ends with a small hole instead of overflowing.
//!
//! Correctness does not depend on it: `MetadataSizeEstimator` bounds each operation before it begins, so that a region
//! that is too small is reported ([`crate::Hdf5Error::MetadataRegionFull`]) before anything is changed.
//!
//! All lengths are for 8-byte addresses and lengths, which outputs use.

mod chunk_index;
mod extensible_array;
mod heap;
mod messages;
mod metadata_size;
mod objects;
mod structures;

pub(super) use chunk_index::IndexRoom;
pub use heap::HeapContent;
pub(super) use metadata_size::MetadataSizeEstimator;
pub(super) use objects::values_len_bytes;

use super::{AttributeSpec, Compat, DatasetSpec, OutputLayout};
use crate::model::{CreationOrder, TypeClass};
use chunk_index::IndexModel;
use messages::{dataspace_len_bytes, datatype_len_bytes, header_len_bytes, padded};
use objects::{attributes_len_bytes, dataset_header, group_len_bytes, heap_values_len_bytes, mappings_len_bytes};

/// Length of the superblock (96 bytes in version 0, 48 in 2 and 3) and an empty root group: at most 800 bytes were
/// measured.
const FILE_LEN_BYTES: u64 = 1024;

/// Excess of the bounds of the last operations over their actual use. Without it, an operation near the end of a well
/// predicted region would be refused.
const OPERATION_SLACK_LEN_BYTES: u64 = 4096;

/// Average ratio of actual metadata to the bound without the slack, from files of 1 to 300 datasets.
const TAKEN: f64 = 0.963;

/// Returns the expected length of metadata, given its upper bound from [`MetadataPrediction`].
pub fn likely_len_bytes(bound_len_bytes: u64) -> u64 {
    let slack_len_bytes = FILE_LEN_BYTES + OPERATION_SLACK_LEN_BYTES;
    (bound_len_bytes.saturating_sub(slack_len_bytes) as f64 * TAKEN) as u64 + FILE_LEN_BYTES / 2
}

/// Maximum number of links or attributes that groups and objects keep in their header; beyond it they are in dense
/// storage.
const MAX_COMPACT_COUNT: u64 = 8;

/// Size from which messages do not fit into an object header.
const MAX_MESSAGE_LEN_BYTES: u64 = 64 * 1024;

/// Predicted length of an output's metadata: an upper bound, too high by a few percent.
#[derive(Debug, Clone)]
pub struct MetadataPrediction {
    compat: Compat,
    len_bytes: u64,
    largest_attribute_len_bytes: u64,
}

impl MetadataPrediction {
    /// Creates the prediction for an empty file. The root group is not included: add it with its links like any group.
    pub fn new(compat: Compat) -> Self {
        Self { compat, len_bytes: FILE_LEN_BYTES + OPERATION_SLACK_LEN_BYTES, largest_attribute_len_bytes: 0 }
    }

    /// Returns the predicted length so far.
    pub fn len_bytes(&self) -> u64 {
        // An attribute may displace another one of its object while it is added.
        self.len_bytes.saturating_add(self.largest_attribute_len_bytes)
    }

    /// Adds a group with `link_count` links. `text_len_bytes` is the total length of their names and of the targets of
    /// soft and external links. `attributes` holds the length of each of its attributes
    /// ([`AttributeSpec::message_len_bytes`]), here and below.
    pub fn add_group(&mut self, link_count: u64, text_len_bytes: u64, link_order: CreationOrder, attributes: &[u64]) {
        self.add(group_len_bytes(self.compat, link_count, text_len_bytes, link_order));
        self.add_attributes(attributes, 0);
    }

    /// Adds a dataset into which `chunk_count` chunks will be inserted in order of their origins.
    pub fn add_dataset(&mut self, spec: &DatasetSpec, chunk_count: u64, attributes: &[u64]) {
        let (header, free) = dataset_header(self.compat, spec);
        self.add(header);
        self.add(mappings_len_bytes(spec));
        self.add(IndexModel::new(self.compat, spec).len_bytes(chunk_count));
        self.add_attributes(attributes, free);
    }

    /// Adds all values of a dataset that libhdf5 itself writes ([`super::OutputDataset::write_rows`]): small ones, and
    /// those of file-local types. `canonical_len_bytes` is the length in which they will be passed. The index is
    /// included in [`MetadataPrediction::add_dataset`], whose chunk count must cover the chunks of these values.
    pub fn add_values(&mut self, spec: &DatasetSpec, canonical_len_bytes: u64) {
        let rows = spec.dataspace.dims().first().copied().unwrap_or(1);
        let (class, filter_count) = (spec.datatype.class(), spec.filters.len());
        let (layout, dataspace) = (&spec.layout, &spec.dataspace);
        self.add(values_len_bytes(class, layout, filter_count, dataspace, 0, rows, canonical_len_bytes));
    }

    /// Adds a committed datatype.
    pub fn add_datatype(&mut self, class: &TypeClass, attributes: &[u64]) {
        self.add(header_len_bytes(self.compat, &[datatype_len_bytes(self.compat, class)]));
        self.add_attributes(attributes, 0);
    }

    fn add_attributes(&mut self, attributes: &[u64], free: u64) {
        self.add(attributes_len_bytes(self.compat, attributes, free));
        let largest = attributes.iter().copied().max().unwrap_or(0).min(MAX_MESSAGE_LEN_BYTES);
        self.largest_attribute_len_bytes = self.largest_attribute_len_bytes.max(largest);
    }

    fn add(&mut self, len_bytes: u64) {
        self.len_bytes = self.len_bytes.saturating_add(len_bytes);
    }
}

impl AttributeSpec<'_> {
    /// Returns the maximum length of the attribute as a message, plus its data in the global heap.
    pub fn message_len_bytes(&self, compat: Compat) -> u64 {
        let class = self.datatype.class();
        // A committed datatype is stored as its address.
        let datatype = match self.datatype {
            super::TypeRef::Own(class) => datatype_len_bytes(compat, class),
            super::TypeRef::Committed { .. } => 16,
        };
        let count = self.dataspace.element_count().unwrap_or(u64::MAX);
        let values = count.saturating_mul(class.len_bytes());
        let heap = heap_values_len_bytes(class, self.value.len() as u64, count);
        // Version, flags, three sizes, character set, header of the message; in version 1 the parts are padded.
        let (name, dataspace) = (self.name.len() as u64 + 1, dataspace_len_bytes(compat, self.dataspace));
        let fixed = match compat {
            Compat::Earliest => 16 + padded(name) + padded(datatype) + padded(dataspace) + 8,
            _ => 15 + name + datatype + dataspace,
        };
        fixed.saturating_add(values).saturating_add(heap)
    }
}
