//! Stored size of datasets, with a check that all of their data lies in the file and that no two chunks overlap.
//!
//! Datasets with known templates are checked together, in the order of their chunk indexes in the file, and queried
//! later by object number.

use foldhash::HashMap;
use raddle_hdf5::model::template::{self, DatasetTemplate, TemplatedDataset};
use raddle_hdf5::model::{Dataset, FileTree, Layout, ObjectIndex, ObjectKind};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::read::{ChunkSummary, check_chunks};
use raddle_hdf5::source::MetadataView;
use std::sync::Arc;

/// Stored size of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredSize {
    /// Number of stored bytes.
    pub len_bytes: u64,
    /// Number of chunks.
    pub chunk_count: u64,
}

impl StoredSize {
    /// Measures `dataset` in the file of `view`; fails unless all of its data lies in the file.
    pub fn of(view: &mut MetadataView<'_>, encoding: Encoding, dataset: &Dataset) -> raddle_hdf5::Result<Self> {
        match &dataset.layout {
            Layout::Chunked { .. } => {
                let summary: ChunkSummary = check_chunks(view, encoding, dataset)?;
                Ok(Self { len_bytes: summary.stored_len_bytes, chunk_count: summary.count })
            }
            Layout::Contiguous { address: Some(data), .. } => {
                let elements = dataset.dataspace.element_count().unwrap_or(u64::MAX);
                let len_bytes = elements.saturating_mul(dataset.datatype.class.len_bytes());
                view.file().check_range(*data, len_bytes, "contiguous data")?;
                Ok(Self { len_bytes, chunk_count: 0 })
            }
            Layout::Compact(data) => Ok(Self { len_bytes: data.bytes().len() as u64, chunk_count: 0 }),
            _ => Ok(Self::default()),
        }
    }
}

/// Stored sizes of the datasets with known templates in one file.
pub struct TemplateChunks(HashMap<ObjectIndex, raddle_hdf5::Result<StoredSize>>);

impl TemplateChunks {
    /// Checks the datasets with known templates in `tree`, which is the tree of the file of `view`.
    pub fn check(view: &mut MetadataView<'_>, encoding: Encoding, tree: &FileTree) -> Self {
        let mut in_file_order: Vec<(u64, ObjectIndex, &TemplatedDataset)> = (tree.objects.iter().zip(0..))
            .filter_map(|(object, index)| match &object.kind {
                ObjectKind::Templated(templated) => Some((templated.place.address?, index, templated)),
                _ => None,
            })
            .collect();
        in_file_order.sort_unstable_by_key(|&(address, index, _)| (address, index));
        let mut checked = HashMap::default();
        checked.reserve(in_file_order.len());
        // One opened dataset per template, completed with the place of each of its datasets, one after another.
        let mut of_forms: HashMap<*const DatasetTemplate, Dataset> = HashMap::default();
        for (_, index, templated) in in_file_order {
            let dataset = of_forms.entry(Arc::as_ptr(&templated.form)).or_insert_with(|| {
                let mut dataset = templated.dataset();
                template::open(&mut dataset);
                dataset
            });
            template::close(dataset, templated.place);
            checked.insert(index, StoredSize::of(view, encoding, dataset));
            template::open(dataset);
        }
        Self(checked)
    }

    /// Removes and returns the stored size of a dataset; `None` if it has no storage.
    pub fn take(&mut self, index: ObjectIndex) -> Option<raddle_hdf5::Result<StoredSize>> {
        self.0.remove(&index)
    }
}
