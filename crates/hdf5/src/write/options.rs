//! Settings of an output file: its range of formats, and the length of its metadata region.

use crate::model::CreationOrder;

/// Minimum length of the metadata region.
const MIN_REGION_LEN_BYTES: u64 = 4096;

/// Alignment of the raw region: it begins on a page, so that large writes into it are aligned.
const REGION_ALIGNMENT_BYTES: u64 = 4096;

/// Oldest HDF5 version that must be able to read the output: the low bound of `H5Pset_libver_bounds`.
///
/// Objects that the format of a bound cannot express are written in a newer one (a complex number needs HDF5 2.0
/// regardless of the bound), so that every input can be merged. All other objects stay readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// The oldest format for each object, as HDF5 1.8 and h5py write by default. Attributes are limited to 64 KiB.
    Earliest,
    /// HDF5 1.8 and later: checksummed metadata, compact and dense groups and attributes.
    #[default]
    V18,
    /// HDF5 1.10 and later: chunk indexes with constant-time look-up and half the size.
    V110,
    /// The newest format that the linked libhdf5 writes.
    Latest,
}

/// Settings of an output file.
#[derive(Debug, Clone)]
pub struct OutputOptions {
    /// Range of formats to use.
    pub compat: Compat,
    /// Length of the metadata region at the front, best obtained from [`super::MetadataPrediction`]. It is rounded up
    /// to whole pages.
    pub metadata_region_len_bytes: u64,
    /// Whether the creation order of links in the root group is kept.
    pub root_link_order: CreationOrder,
    /// Whether the creation order of the root group's attributes is kept.
    pub root_attribute_order: CreationOrder,
}

impl Default for OutputOptions {
    fn default() -> Self {
        Self {
            compat: Compat::default(),
            metadata_region_len_bytes: 1 << 20,
            root_link_order: CreationOrder::default(),
            root_attribute_order: CreationOrder::default(),
        }
    }
}

impl OutputOptions {
    /// Returns the first address of the raw region, or `None` if the metadata region is longer than a file can be.
    pub fn raw_start(&self) -> Option<u64> {
        self.metadata_region_len_bytes
            .max(MIN_REGION_LEN_BYTES)
            .checked_next_multiple_of(REGION_ALIGNMENT_BYTES)
            .filter(|&len| len <= i64::MAX as u64 / 2)
    }
}
