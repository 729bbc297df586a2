//! Space usage of a file: statistics as plain values, for people and for programs.
//!
//! Reads metadata and chunk indexes, but no raw data. Formatting is left to the caller, and suggestions for improvement
//! are in [`advice`]. Invariant: every byte of the file is counted in exactly one field of [`SpaceUse`], unless chunks
//! overlap, which is reported as a fault.

pub mod advice;
mod space;
mod sum;

pub use advice::Advice;
pub use space::SpaceUse;
pub use sum::{Sum, SumOfKind};

use crate::child::{ChildReader, ObjectName};
use crate::error::Result;
use crate::metadata::{complete, is_unknown};
use crate::model::{ChunkIndex, Dataset, FileTree, Filter, Layout, LinkTarget, ObjectIndex, ObjectKind};
use crate::native::{self, Encoding, ReadLimits};
use crate::object_path::{child_path, parent_path};
use crate::read::{ChunkSummary, check_chunks, check_listed, for_each_chunk};
use crate::source::{InputFile, MetadataView};
use raddle_core::plan::extent::values_len_bytes;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

/// Memory for cached metadata blocks while a file is being inspected.
const MAX_VIEW_BYTES: u64 = 64 << 20;

/// Contents and space usage of a file.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// Length of the file.
    pub file_len_bytes: u64,
    /// Version of the superblock, 0 to 3.
    pub superblock_version: u8,
    /// Numbers of objects by kind.
    pub objects: ObjectCounts,
    /// Use of the file's bytes.
    pub space: SpaceUse,
    /// Uncompressed length of all datasets. Types whose values lie elsewhere in the file count with their descriptors
    /// only.
    pub logical_len_bytes: u64,
    /// Stored length of all datasets' elements: chunks, contiguous data and compact data.
    pub stored_len_bytes: u64,
    /// Chunk sizes over all datasets.
    pub chunks: ChunkStatistics,
    /// Filters in use.
    pub filters: Vec<FilterUse>,
    /// Groups that hold datasets, in file order.
    pub groups: Vec<GroupStatistics>,
    /// Datasets, in file order.
    pub datasets: Vec<DatasetStatistics>,
    /// Unreadable objects and damaged indexes.
    pub faults: Vec<UnreadableObject>,
    /// Suggested improvements.
    pub advice: Vec<Advice>,
}

/// Numbers of objects and links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ObjectCounts {
    /// Number of groups, including the root group.
    pub groups: u64,
    /// Number of datasets.
    pub datasets: u64,
    /// Number of datasets without elements.
    pub empty_datasets: u64,
    /// Number of committed datatypes.
    pub committed_datatypes: u64,
    /// Number of attributes of all objects.
    pub attributes: u64,
    /// Number of hard links to an object in addition to its first one.
    pub hard_link_aliases: u64,
    /// Number of soft links.
    pub soft_links: u64,
    /// Number of external and user-defined links.
    pub foreign_links: u64,
    /// Number of objects read by libhdf5 because the native reader does not support them; the location of their
    /// metadata is not known.
    pub through_library: u64,
}

/// Distribution of chunk sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChunkStatistics {
    /// Number of chunks.
    pub count: u64,
    /// Stored length of all chunks.
    pub stored_len_bytes: u64,
    /// Number of chunks by their size before compression; only sizes that occur.
    pub by_logical_len: Vec<Bucket>,
    /// Number of chunks by their stored size; only sizes that occur.
    pub by_stored_len: Vec<Bucket>,
}

/// Chunks with sizes from a power of two up to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// Smallest size: a power of two, or 0.
    pub from_len_bytes: u64,
    /// Number of chunks.
    pub count: u64,
}

/// Use of one filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilterUse {
    /// HDF5 identifier of the filter.
    pub id: u16,
    /// Name of the filter.
    pub name: String,
    /// Number of datasets that use the filters.
    pub datasets: u64,
}

/// Shape, storage and size of one dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatasetStatistics {
    /// Path of the dataset.
    #[serde(serialize_with = "as_text")]
    pub path: Vec<u8>,
    /// Dimensions, empty for scalar and null datasets.
    pub dims: Vec<u64>,
    /// Size of one element.
    pub element_len_bytes: u64,
    /// Kind of storage.
    pub storage: StorageKind,
    /// Chunk shape, if chunked.
    pub chunk_shape: Option<Vec<u64>>,
    /// HDF5 identifiers of the filters.
    pub filters: Vec<u16>,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of bytes before compression.
    pub logical_len_bytes: u64,
    /// Number of stored bytes.
    pub stored_len_bytes: u64,
    /// Whether a chunk index exists.
    pub has_index: bool,
}

/// Kind of storage of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StorageKind {
    /// Values in the object header.
    Compact,
    /// Values in one contiguous block.
    Contiguous,
    /// Values in chunks.
    Chunked,
    /// Values in other files, which the dataset names.
    External,
    /// Values in datasets of this or other files.
    Virtual,
}

/// Totals over the datasets of a group, without its subgroups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GroupStatistics {
    /// Path of the group.
    #[serde(serialize_with = "as_text")]
    pub path: Vec<u8>,
    /// Number of datasets.
    pub datasets: u64,
    /// Number of datasets without elements.
    pub empty_datasets: u64,
    /// Number of rows that all datasets of the group have, as for the columns of a table; `None` if they differ.
    pub rows: Option<u64>,
    /// Number of bytes before compression.
    pub logical_len_bytes: u64,
    /// Number of stored bytes.
    pub stored_len_bytes: u64,
}

/// An object or index that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableObject {
    /// Path of the object.
    #[serde(serialize_with = "as_text")]
    pub path: Vec<u8>,
    /// Description of the fault.
    pub reason: String,
}

/// Inspects `file`.
///
/// `library`, if given, reads the objects that the native reader does not support. Objects that cannot be read are
/// listed in [`Inspection::faults`].
///
/// # Errors
/// If the file is not an HDF5 file, is truncated, or has unreadable groups.
pub fn inspect(file: &InputFile, limits: &ReadLimits, library: Option<&ChildReader>) -> Result<Inspection> {
    let mut view = MetadataView::recording(file, MAX_VIEW_BYTES);
    let native = native::read_tree_through(&mut view, limits);
    let known: HashSet<u64> = match &native {
        Ok(tree) => tree.objects.iter().filter(|object| !is_unknown(object)).map(|object| object.address).collect(),
        Err(_) => HashSet::new(),
    };
    let tree = match library {
        Some(library) => complete(native, file.path(), library)?,
        None => native?,
    };
    let mut inspector = Inspector::new(view, &tree, library);
    inspector.objects.through_library =
        tree.objects.iter().filter(|object| !is_unknown(object) && !known.contains(&object.address)).count() as u64;
    inspector.visit_objects();
    inspector.finish()
}

/// State of the inspection of one file.
struct Inspector<'f, 't> {
    view: MetadataView<'f>,
    tree: &'t FileTree,
    library: Option<&'t ChildReader>,
    found: space::SpaceFindings,
    objects: ObjectCounts,
    chunks: ChunkCounter,
    filters: BTreeMap<u16, FilterUse>,
    groups: Vec<GroupStatistics>,
    /// Index in `groups` by path: the datasets of a group need not follow one another.
    group_of: HashMap<Vec<u8>, usize>,
    datasets: Vec<DatasetStatistics>,
    faults: Vec<UnreadableObject>,
}

impl<'f, 't> Inspector<'f, 't> {
    fn new(view: MetadataView<'f>, tree: &'t FileTree, library: Option<&'t ChildReader>) -> Self {
        let found = space::SpaceFindings {
            userblock_len_bytes: tree.userblock_len_bytes,
            length_len_bytes: tree.length_len_bytes,
            ..space::SpaceFindings::default()
        };
        Self {
            view,
            tree,
            library,
            found,
            objects: ObjectCounts::default(),
            chunks: ChunkCounter::default(),
            filters: BTreeMap::new(),
            groups: Vec::new(),
            group_of: HashMap::new(),
            datasets: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Visits every object once, under the first path that leads to it, groups before their contents.
    fn visit_objects(&mut self) {
        let tree = self.tree;
        let mut seen = vec![false; tree.objects.len()];
        let mut stack: Vec<(Vec<u8>, ObjectIndex)> = vec![(b"/".to_vec(), 0)];
        while let Some((path, index)) = stack.pop() {
            if std::mem::replace(&mut seen[index as usize], true) {
                self.objects.hard_link_aliases += 1;
                continue;
            }
            let object = &tree.objects[index as usize];
            self.objects.attributes += object.attributes.len() as u64;
            self.found.may_have_heap |=
                object.attributes.iter().any(|attribute| attribute.datatype.class.is_file_local());
            match &object.kind {
                ObjectKind::Group(group) => {
                    self.objects.groups += 1;
                    for link in group.links.iter().rev() {
                        match link.target {
                            LinkTarget::Hard(target) => stack.push((child_path(&path, &link.name), target)),
                            LinkTarget::Soft(_) => self.objects.soft_links += 1,
                            _ => self.objects.foreign_links += 1,
                        }
                    }
                }
                ObjectKind::Dataset(dataset) => self.visit_dataset(path, dataset),
                ObjectKind::Templated(formed) => self.visit_dataset(path, &formed.dataset()),
                ObjectKind::CommittedDatatype(_) => self.objects.committed_datatypes += 1,
                ObjectKind::Unreadable { reason, .. } => {
                    self.faults.push(UnreadableObject { path, reason: reason.clone() })
                }
            }
        }
    }

    fn visit_dataset(&mut self, path: Vec<u8>, dataset: &Dataset) {
        let element_len_bytes = dataset.datatype.class.len_bytes();
        let elements = dataset.dataspace.element_count().unwrap_or(u64::MAX);
        let mut statistics = DatasetStatistics {
            path,
            dims: dataset.dataspace.dims().to_vec(),
            element_len_bytes,
            storage: StorageKind::Contiguous,
            chunk_shape: None,
            filters: dataset.filters.iter().map(|filter| filter.id).collect(),
            chunks: 0,
            logical_len_bytes: elements.saturating_mul(element_len_bytes),
            stored_len_bytes: 0,
            has_index: false,
        };
        match &dataset.layout {
            Layout::Compact(data) => {
                statistics.storage = StorageKind::Compact;
                statistics.stored_len_bytes = data.bytes().len() as u64;
            }
            Layout::Contiguous { address, len_bytes } => {
                if let Some(address) = *address {
                    statistics.stored_len_bytes = *len_bytes;
                    self.found.raw.push(address, *len_bytes);
                }
            }
            Layout::Chunked { chunk_shape, index, .. } => {
                statistics.storage = StorageKind::Chunked;
                statistics.chunk_shape = Some(chunk_shape.clone());
                statistics.has_index = *index != ChunkIndex::None;
                if let Err(error) = self.visit_chunks(dataset, &mut statistics) {
                    self.faults.push(UnreadableObject { path: statistics.path.clone(), reason: error.to_string() });
                }
            }
            Layout::External { .. } => statistics.storage = StorageKind::External,
            Layout::Virtual => {
                statistics.storage = StorageKind::Virtual;
                self.found.may_have_heap = true;
            }
        }
        for filter in &dataset.filters {
            let name = || filter_name(filter);
            self.filters
                .entry(filter.id)
                .or_insert_with(|| FilterUse { id: filter.id, name: name(), datasets: 0 })
                .datasets += 1;
        }
        self.found.may_have_heap |= dataset.datatype.class.is_file_local();
        self.objects.datasets += 1;
        self.objects.empty_datasets += u64::from(elements == 0);
        self.count_in_group(&statistics, elements == 0);
        self.datasets.push(statistics);
    }

    fn visit_chunks(&mut self, dataset: &Dataset, statistics: &mut DatasetStatistics) -> Result<()> {
        let encoding = Encoding::of(self.tree);
        let raw = &mut self.found.raw;
        let through_library = matches!(dataset.layout, Layout::Chunked { index: ChunkIndex::ThroughLibrary, .. });
        if let Some(library) = self.library.filter(|_| through_library) {
            let file = self.view.file();
            let listed = library.read_chunks(file.path(), ObjectName::Path(statistics.path.clone()))?;
            listed.iter().for_each(|chunk| raw.push(chunk.address, chunk.len_bytes));
            self.count_chunks(statistics, &check_listed(file, &listed)?);
            return Ok(());
        }
        for_each_chunk(&mut self.view, encoding, dataset, None, &mut |chunk| {
            raw.push(chunk.address, chunk.len_bytes);
            ControlFlow::Continue(())
        })?;
        let summary = check_chunks(&mut self.view, encoding, dataset)?;
        self.count_chunks(statistics, &summary);
        Ok(())
    }

    fn count_chunks(&mut self, statistics: &mut DatasetStatistics, summary: &ChunkSummary) {
        statistics.chunks = summary.count;
        statistics.stored_len_bytes = summary.stored_len_bytes;
        self.chunks.add(statistics.chunk_len_bytes(), summary);
    }

    /// Adds a dataset to the totals of its group.
    fn count_in_group(&mut self, dataset: &DatasetStatistics, is_empty: bool) {
        let parent = parent_path(&dataset.path);
        let rows = dataset.dims.first().copied();
        let place = match self.group_of.get(parent) {
            Some(&place) => place,
            None => {
                self.group_of.insert(parent.to_vec(), self.groups.len());
                self.groups.push(GroupStatistics { path: parent.to_vec(), rows, ..GroupStatistics::default() });
                self.groups.len() - 1
            }
        };
        let group = &mut self.groups[place];
        if group.rows != rows {
            group.rows = None;
        }
        group.datasets += 1;
        group.empty_datasets += u64::from(is_empty);
        group.logical_len_bytes = group.logical_len_bytes.saturating_add(dataset.logical_len_bytes);
        group.stored_len_bytes = group.stored_len_bytes.saturating_add(dataset.stored_len_bytes);
    }

    fn finish(mut self) -> Result<Inspection> {
        let file = self.view.file();
        self.found.metadata = self.view.into_recorded();
        self.found.metadata.push(self.tree.userblock_len_bytes, superblock_len_bytes(self.tree));
        let sum = |of: fn(&DatasetStatistics) -> u64| {
            self.datasets.iter().fold(0_u64, |sum, dataset| sum.saturating_add(of(dataset)))
        };
        let mut inspection = Inspection {
            file_len_bytes: file.len_bytes(),
            superblock_version: self.tree.superblock_version,
            objects: self.objects,
            logical_len_bytes: sum(|dataset| dataset.logical_len_bytes),
            stored_len_bytes: sum(|dataset| dataset.stored_len_bytes),
            space: self.found.account(file)?,
            chunks: self.chunks.finish(),
            filters: self.filters.into_values().collect(),
            groups: self.groups,
            datasets: self.datasets,
            faults: self.faults,
            advice: Vec::new(),
        };
        inspection.advice = advice::advise(&inspection);
        file.check_unchanged()?;
        Ok(inspection)
    }
}

impl DatasetStatistics {
    /// Returns the uncompressed bytes of one chunk, saturating, or 0 if the dataset is not chunked.
    pub fn chunk_len_bytes(&self) -> u64 {
        self.chunk_shape.as_ref().map_or(0, |shape| values_len_bytes(shape, self.element_len_bytes))
    }
}

/// Histograms of chunk sizes: bin `k` counts the chunks whose size has `k` significant bits, as in [`ChunkSummary`].
#[derive(Debug)]
struct ChunkCounter {
    count: u64,
    stored_len_bytes: u64,
    by_logical_len: [u64; 65],
    by_stored_len: [u64; 65],
}

impl Default for ChunkCounter {
    fn default() -> Self {
        Self { count: 0, stored_len_bytes: 0, by_logical_len: [0; 65], by_stored_len: [0; 65] }
    }
}

impl ChunkCounter {
    /// Adds the chunks of a dataset, each with `logical_len_bytes` before compression.
    fn add(&mut self, logical_len_bytes: u64, summary: &ChunkSummary) {
        self.count += summary.count;
        self.stored_len_bytes = self.stored_len_bytes.saturating_add(summary.stored_len_bytes);
        self.by_logical_len[(u64::BITS - logical_len_bytes.leading_zeros()) as usize] += summary.count;
        self.by_stored_len.iter_mut().zip(&summary.len_histogram).for_each(|(sum, count)| *sum += count);
    }

    fn finish(self) -> ChunkStatistics {
        let buckets = |bins: &[u64; 65]| {
            let bins = bins.iter().enumerate().filter(|&(_, &count)| count > 0);
            let from = |bin: usize| bin.checked_sub(1).map_or(0, |power| 1 << power);
            bins.map(|(bin, &count)| Bucket { from_len_bytes: from(bin), count }).collect()
        };
        ChunkStatistics {
            count: self.count,
            stored_len_bytes: self.stored_len_bytes,
            by_logical_len: buckets(&self.by_logical_len),
            by_stored_len: buckets(&self.by_stored_len),
        }
    }
}

/// Returns the length of the superblock, which is not read through the recording view.
fn superblock_len_bytes(tree: &FileTree) -> u64 {
    let (address, length) = (u64::from(tree.address_len_bytes), u64::from(tree.length_len_bytes));
    // Versions 0 and 1: 24 (28) bytes, four addresses, and the root's symbol table entry: name offset, header address,
    // cache type with its reserved bytes, scratch pad. Versions 2 and 3: 12 bytes, four addresses, checksum.
    match tree.superblock_version {
        0 => 24 + 4 * address + (length + address + 24),
        1 => 28 + 4 * address + (length + address + 24),
        _ => 12 + 4 * address + 4,
    }
}

/// Returns the name of a filter: HDF5's name for its own filters, otherwise the name stored in the file.
fn filter_name(filter: &Filter) -> String {
    match filter.id {
        1 => "deflate".to_owned(),
        2 => "shuffle".to_owned(),
        3 => "fletcher32".to_owned(),
        4 => "szip".to_owned(),
        5 => "nbit".to_owned(),
        6 => "scaleoffset".to_owned(),
        _ => String::from_utf8_lossy(&filter.name).into_owned(),
    }
}

/// Serialises paths as text: UTF-8 unchanged, other bytes as `\xHH`.
fn as_text<S: Serializer>(path: &[u8], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    let mut text = String::new();
    for part in path.utf8_chunks() {
        text.push_str(part.valid());
        part.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    serializer.serialize_str(&text)
}
