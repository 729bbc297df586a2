//! An HDF5 file opened for reading: access to objects by number and by path, and to values through the bulk reader.
//!
//! Metadata is read completely when the file is opened (about 0.4 µs per dataset with a common template). Metadata and
//! values that the native reader does not support are read with libhdf5 in a child process. Invariant: an object's
//! number never changes, and all reads come from the file that was opened.

use crate::bulk::{AxisSelection, BulkReader, ReadOutcome, Request};
use crate::child::{ChildOptions, ChildReader, ObjectName, ReaderCommand};
use crate::dimensions::{Dimensions, is_without_values};
use crate::logical::{NULL_STRING, Resolver};
use crate::metadata::complete;
use crate::model::{
    Attribute, Dataset, Dataspace, FileTree, InlineData, Layout, Link, Object, ObjectIndex, ObjectKind, TypeClass,
};
use crate::native::{self, Encoding, HeaderTemplateCache, ReadLimits};
use crate::paths::{ResolvedPath, find};
use crate::read::{DatasetSource, ReaderLimits, for_each_chunk};
use crate::source::{InputFile, MetadataView};
use crate::staleness::Staleness;
use crate::string_forms::StringForms;
use crate::{Hdf5Error, Result};
use raddle_codec::Pipeline;
use raddle_core::engine::default_jobs;
use raddle_core::pooled_file::FileIdentity;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// Memory for cached metadata blocks while a file is opened. Objects are read in file order, so few blocks are in use
/// at a time, and reused memory already has its pages.
const MAX_VIEW_BYTES: u64 = 2 << 20;

/// Templates of datasets, shared by all files that this process opens, because files of one kind are often opened one
/// after the other.
static FORMS: LazyLock<HeaderTemplateCache> = LazyLock::new(HeaderTemplateCache::default);

/// Axes of a dataset.
#[derive(Debug)]
pub struct Axes {
    /// Names of the dimensions; `None` for unnamed ones.
    pub names: Vec<Option<Vec<u8>>>,
    /// Whether the dataset has values, instead of only standing for a dimension.
    pub has_values: bool,
}

/// A dataset with everything needed to read it.
#[derive(Debug)]
pub struct PreparedDataset {
    /// Metadata of the dataset.
    pub dataset: Dataset,
    /// Filters; `None` if one is unknown.
    pipeline: Option<Pipeline>,
    strings: StringForms,
    /// Address of the object header.
    address: u64,
}

impl PreparedDataset {
    /// Returns the length of all values as stored. A length that exceeds 64 bits saturates, and is too large to
    /// allocate.
    pub(crate) fn len_bytes(&self) -> u64 {
        let dims = self.dataset.dataspace.dims();
        dims.iter().fold(self.dataset.datatype.class.len_bytes(), |len, &dim| len.saturating_mul(dim))
    }

    /// Normalises fixed-length strings among values as stored.
    pub fn normalise(&self, values: &mut [u8]) {
        self.strings.apply(values);
    }
}

/// Numbers of a group's links, indexed by name.
type Names = HashMap<Vec<u8>, usize>;

/// An open file.
#[derive(Debug)]
pub struct OpenFile {
    file: InputFile,
    tree: FileTree,
    child: Option<ChildReader>,
    bulk: BulkReader,
    names: Vec<OnceLock<Names>>,
    prepared: Mutex<HashMap<ObjectIndex, Arc<PreparedDataset>>>,
    staleness: Mutex<Staleness>,
}

impl OpenFile {
    /// Opens `path` and reads its metadata. `threads` is the number of threads that read values; `None` for the cores
    /// available to this process.
    pub fn open(path: &Path, threads: Option<usize>) -> Result<Self> {
        let file = InputFile::open(path)?;
        let child = ReaderCommand::of_this_program();
        let child = child.map(|command| ChildReader::with_options(command, ChildOptions::default()));
        let tree = read_metadata(&file, child.as_ref())?;
        let names = tree.objects.iter().map(|_| OnceLock::new()).collect();
        let bulk = BulkReader::new(threads.unwrap_or_else(default_jobs), ReaderLimits::default());
        let staleness = Mutex::new(Staleness::of_opened(file.identity()));
        Ok(Self { file, tree, child, bulk, names, prepared: Mutex::default(), staleness })
    }

    /// Returns the number of threads that read values.
    pub fn threads(&self) -> usize {
        self.bulk.threads()
    }

    /// Returns the identity of the file when it was opened.
    pub fn identity(&self) -> FileIdentity {
        self.file.identity()
    }

    /// Checks that the file has not changed since it was opened.
    ///
    /// # Errors
    /// [`Hdf5Error::Changed`] if its content may have changed, or another file now has its path.
    pub fn check_unchanged(&self) -> Result<()> {
        self.file.check_unchanged()
    }

    /// Checks that the path of the file still leads to it, which readers that open the path again depend on.
    ///
    /// # Errors
    /// [`Hdf5Error::Changed`] if another file now has this path.
    pub fn check_not_replaced(&self) -> Result<()> {
        self.file.check_not_replaced()
    }

    /// Checks that no program has the file open for writing, and could keep values in memory.
    ///
    /// # Errors
    /// [`Hdf5Error::OpenForWriting`] if a program holds the lock of a writer.
    pub fn check_no_writer(&self) -> Result<()> {
        self.file.check_no_writer()
    }

    /// Checks that the values of a dataset are where its metadata says, also if another program has written to the file
    /// since it was opened. To be called after they were read.
    ///
    /// # Errors
    /// [`Hdf5Error::Stale`] if they may have moved.
    pub fn check_dataset(&self, prepared: &PreparedDataset) -> Result<()> {
        self.check_described(|staleness| staleness.has_dataset(prepared.address))
    }

    /// Checks that the file is described by the metadata that was read when it was opened, as far as `is_described` asks.
    fn check_described(&self, is_described: impl FnOnce(&Staleness) -> bool) -> Result<()> {
        let stale = || Hdf5Error::Stale { path: self.path().to_path_buf() };
        let now = self.file.identity_now()?;
        let mut staleness = self.staleness.lock().unwrap_or_else(PoisonError::into_inner);
        if staleness.seen != now {
            let later = InputFile::open(self.path())?;
            let seen = later.identity();
            let opened = self.file.identity();
            if [now, seen].iter().any(|other| (other.device, other.inode) != (opened.device, opened.inode)) {
                return Err(stale());
            }
            // While a program writes, its metadata need not be consistent.
            let tree = read_metadata(&later, self.child.as_ref()).map_err(|_| stale())?;
            *staleness = Staleness::compare(seen, &self.tree, &tree);
        }
        if is_described(&staleness) { Ok(()) } else { Err(stale()) }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the file's metadata.
    pub fn tree(&self) -> &FileTree {
        &self.tree
    }

    /// Returns an object.
    pub fn object(&self, index: ObjectIndex) -> Result<&Object> {
        self.tree.objects.get(index as usize).ok_or_else(|| self.unsupported(0, &format!("no object number {index}")))
    }

    /// Returns the links of a group; empty for other objects.
    pub fn links(&self, index: ObjectIndex) -> Result<&[Link]> {
        Ok(match &self.object(index)?.kind {
            ObjectKind::Group(group) => &group.links,
            _ => &[],
        })
    }

    /// Returns the attributes of an object.
    pub fn attributes(&self, index: ObjectIndex) -> Result<&[Attribute]> {
        Ok(self.object(index)?.all_attributes())
    }

    /// Finds the target of `path` over at most `max_links` links, starting at the group `start`, or at the root if the
    /// path is absolute.
    pub fn find(&self, start: ObjectIndex, path: &[u8], max_links: u32) -> Result<ResolvedPath> {
        find(start, path, max_links, |group, name| self.link(group, name))
    }

    /// Returns the link `name` of a group.
    pub fn link(&self, group: ObjectIndex, name: &[u8]) -> Result<Option<&Link>> {
        let links = self.links(group)?;
        let Some(slot) = self.names.get(group as usize) else { return Ok(None) };
        let names = slot.get_or_init(|| links.iter().enumerate().map(|(at, link)| (link.name.clone(), at)).collect());
        Ok(names.get(name).map(|&at| &links[at]))
    }

    /// Returns only extent and type of a dataset; `None` for other objects.
    pub fn outline(&self, index: ObjectIndex) -> Result<Option<(Dataspace, Arc<TypeClass>)>> {
        Ok(match &self.object(index)?.kind {
            ObjectKind::Dataset(dataset) => Some((dataset.dataspace.clone(), Arc::clone(&dataset.datatype.class))),
            ObjectKind::Templated(templated) => {
                let dataset = &templated.form.dataset;
                let mut dataspace = dataset.dataspace.clone();
                if let Dataspace::Simple { dims, max_dims } = &mut dataspace {
                    dims[0] = templated.place.rows;
                    // Zero if it cannot grow: see `model::template::open`.
                    if max_dims[0] == 0 {
                        max_dims[0] = templated.place.rows;
                    }
                }
                Some((dataspace, Arc::clone(&dataset.datatype.class)))
            }
            _ => None,
        })
    }

    /// Returns the axes of each dataset ([`crate::dimensions`]).
    pub fn axes(&self, datasets: &[ObjectIndex]) -> Result<Vec<Axes>> {
        let mut dimensions = Dimensions::new(&self.file, &self.tree);
        let described = datasets.iter().map(|&index| {
            let has_values = !is_without_values(self.object(index)?);
            Ok(Axes { names: dimensions.names(index)?, has_values })
        });
        described.collect()
    }

    /// Prepares a dataset for reading.
    pub fn prepared(&self, index: ObjectIndex) -> Result<Arc<PreparedDataset>> {
        if let Some(prepared) = self.prepared.lock().unwrap_or_else(PoisonError::into_inner).get(&index) {
            return Ok(Arc::clone(prepared));
        }
        let object = self.object(index)?;
        let dataset = match &object.kind {
            ObjectKind::Dataset(dataset) => dataset.as_ref().clone(),
            ObjectKind::Templated(templated) => templated.dataset(),
            _ => return Err(self.unsupported(0, &format!("object number {index} is not a dataset"))),
        };
        let class = &dataset.datatype.class;
        let pipeline = Pipeline::new(&dataset.filters, class.len_bytes() as usize).ok();
        let strings = StringForms::of(class);
        let prepared = Arc::new(PreparedDataset { dataset, pipeline, strings, address: object.address });
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).insert(index, Arc::clone(&prepared));
        Ok(prepared)
    }

    /// Reads selections of datasets with types that are not file-local; `None` if `go_on` stopped it.
    pub fn read(
        &self,
        wanted: Vec<(ObjectIndex, Vec<AxisSelection>, &mut [u8])>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<()>> {
        let mut prepared = Vec::with_capacity(wanted.len());
        for (index, _, _) in &wanted {
            prepared.push(self.prepared(*index)?);
        }
        let mut wanted = wanted;
        let mut requests = Vec::with_capacity(wanted.len());
        for ((_, axes, out), prepared) in wanted.iter_mut().zip(&prepared) {
            requests.push(Request { source: self.source(prepared)?, axes, out });
        }
        let outcome = self.bulk.read(requests, go_on);
        prepared.iter().try_for_each(|prepared| self.check_dataset(prepared))?;
        if outcome? == ReadOutcome::Stopped {
            return Ok(None);
        }
        for ((_, _, out), prepared) in wanted.iter_mut().zip(&prepared) {
            prepared.strings.apply(out);
        }
        Ok(Some(()))
    }

    /// Reads all values of a dataset that [`OpenFile::reads_natively`], with up to `threads` threads; `None` if `go_on`
    /// stopped it.
    ///
    /// # Errors
    /// If `out` does not have exactly the length of the values, and as for [`OpenFile::read`].
    pub(crate) fn read_whole(
        &self,
        prepared: &PreparedDataset,
        threads: usize,
        out: &mut [u8],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<()>> {
        let axes: Vec<_> = prepared.dataset.dataspace.dims().iter().map(|&dim| AxisSelection::all(dim)).collect();
        let request = Request { source: self.source(prepared)?, axes: &axes, out };
        let outcome = self.bulk.read_with(threads, vec![request], go_on);
        self.check_dataset(prepared)?;
        if outcome? == ReadOutcome::Stopped {
            return Ok(None);
        }
        prepared.strings.apply(out);
        Ok(Some(()))
    }

    /// Reads a selection of a dataset with a file-local type as canonical bytes, element by element.
    pub fn read_canonical(
        &self,
        index: ObjectIndex,
        axes: &[AxisSelection],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<u8>>> {
        let prepared = self.prepared(index)?;
        let class = &prepared.dataset.datatype.class;
        let count: u64 = axes.iter().map(AxisSelection::count).product();
        let mut stored = vec![0; (count * class.len_bytes()) as usize];
        let request = Request { source: self.source(&prepared)?, axes, out: &mut stored };
        let outcome = self.bulk.read(vec![request], go_on);
        self.check_dataset(&prepared)?;
        if outcome? == ReadOutcome::Stopped {
            return Ok(None);
        }
        let mut resolver = self.resolver();
        let mut canonical = Vec::new();
        // A resolver limits the amount of data per call, and elements requested twice may exceed the content of the
        // file.
        let mut elements = stored.chunks_exact((class.len_bytes() as usize).max(1));
        let outcome = elements.try_for_each(|element| resolver.canonical(class, element, &mut canonical));
        self.check_dataset(&prepared)?;
        outcome.map(|()| Some(canonical))
    }

    /// Returns a resolver for stored elements of variable length, which keeps parts of the heap for later calls.
    pub fn resolver(&self) -> Resolver<'_> {
        Resolver::new(&self.file, &self.tree)
    }

    /// Reads values of a dataset through libhdf5, like [`ChildReader::read_values`], with normalised strings.
    ///
    /// # Errors
    /// As for [`ChildReader::read_values`]. [`Hdf5Error::Changed`] if another file now has the path of this file.
    pub fn read_through_library(&self, index: ObjectIndex, path: &[u8], rows: Option<Range<u64>>) -> Result<Vec<u8>> {
        let child = self.child.as_ref();
        let child = child.ok_or_else(|| self.unsupported(0, "needs libhdf5 in a child process, which cannot start"))?;
        let values = child.read_values(self.file.path(), ObjectName::Path(path.to_vec()), rows);
        // Also after an error, which may be that of another file.
        self.file.check_not_replaced()?;
        let prepared = self.prepared(index)?;
        self.check_dataset(&prepared)?;
        let mut values = values?;
        if !prepared.dataset.datatype.class.is_file_local() {
            prepared.strings.apply(&mut values);
        }
        Ok(values)
    }

    /// Returns the canonical bytes of a value in metadata, with normalised strings.
    pub fn inline(&self, class: &TypeClass, data: &InlineData) -> Result<Vec<u8>> {
        let mut resolver = self.resolver();
        let values = resolver.canonical_inline(class, data).map(Cow::into_owned);
        if class.is_file_local() {
            self.check_described(Staleness::has_heaps)?;
        }
        let mut values = values?;
        if !class.is_file_local() {
            StringForms::of(class).apply(&mut values);
        }
        Ok(values)
    }

    /// Checks that a value in metadata does not refer to damaged bytes. This is done for values that are about to be
    /// read with h5py, because libhdf5 follows some damaged heaps in an endless loop.
    ///
    /// # Errors
    /// If the data is damaged. Anything that this reader does not support is accepted.
    pub fn check_inline(&self, class: &TypeClass, data: &InlineData) -> Result<()> {
        match Resolver::new(&self.file, &self.tree).canonical_inline_or_null(class, data) {
            Err(error @ (Hdf5Error::Malformed { .. } | Hdf5Error::Truncated { .. })) => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns whether the native reader can locate and decode the values.
    pub fn reads_natively(&self, prepared: &PreparedDataset) -> bool {
        let foreign = match &prepared.dataset.layout {
            Layout::Compact(data) => data.stored().is_none(),
            layout => layout.is_through_library(),
        };
        let fill = prepared.dataset.fill.value.as_ref();
        !foreign && prepared.pipeline.is_some() && fill.is_none_or(|fill| fill.stored().is_some())
    }

    /// Returns the location of a dataset's stored bytes that contain elements of `rows`: for each chunk its origin,
    /// absolute file offset, length and filter mask. All bits of the mask are set for an edge chunk stored without
    /// filters. Contiguous data counts as one chunk. There are no entries for data that was never written or is not
    /// stored as raw data of this file.
    pub fn places(&self, prepared: &PreparedDataset, rows: Range<u64>) -> Result<Vec<u64>> {
        let dataset = &prepared.dataset;
        let dims = dataset.dataspace.dims();
        let mut places = Vec::new();
        match &dataset.layout {
            Layout::Contiguous { address: Some(address), len_bytes } if *len_bytes > 0 => {
                self.file.check_range(*address, *len_bytes, "contiguous data")?;
                places.resize(dims.len(), 0);
                places.extend([*address, *len_bytes, 0]);
            }
            Layout::Chunked { chunk_shape, partial_chunks_unfiltered, .. } => {
                let mut view = MetadataView::new(&self.file, MAX_VIEW_BYTES);
                for_each_chunk(&mut view, Encoding::of(&self.tree), dataset, Some(rows), &mut |chunk| {
                    let ends = chunk.origin.iter().zip(chunk_shape).map(|(&origin, &side)| origin.saturating_add(side));
                    let is_edge = ends.zip(dims).any(|(end, &dim)| end > dim);
                    let mask = if *partial_chunks_unfiltered && is_edge { u32::MAX } else { chunk.filter_mask };
                    places.extend_from_slice(chunk.origin);
                    places.extend([chunk.address, chunk.len_bytes, u64::from(mask)]);
                    ControlFlow::Continue(())
                })?;
            }
            _ => {}
        }
        self.check_dataset(prepared)?;
        Ok(places)
    }

    /// Returns what a [`DatasetReader`](crate::read::DatasetReader) needs to read a dataset. It reads strings with the
    /// padding of the file: see [`PreparedDataset::normalise`].
    ///
    /// # Errors
    /// If a filter is unknown.
    pub fn source<'a>(&'a self, prepared: &'a PreparedDataset) -> Result<DatasetSource<'a>> {
        let pipeline = prepared.pipeline.as_ref().ok_or_else(|| self.unsupported(0, "an unknown filter"))?;
        let encoding = Encoding::of(&self.tree);
        Ok(DatasetSource { file: &self.file, encoding, dataset: &prepared.dataset, pipeline })
    }

    fn unsupported(&self, address: u64, what: &str) -> Hdf5Error {
        Hdf5Error::Unsupported { path: self.file.path().to_path_buf(), address, what: what.to_owned() }
    }
}

/// Reads the metadata of a file, through `child` where the native reader does not support it.
fn read_metadata(file: &InputFile, child: Option<&ChildReader>) -> Result<FileTree> {
    let limits = ReadLimits::default();
    let mut view = MetadataView::new(file, MAX_VIEW_BYTES);
    let tree = native::read_outline(&mut view, &limits, &FORMS);
    let Some(child) = child else { return tree };
    let tree = complete(tree, file.path(), child)?;
    file.check_not_replaced()?;
    Ok(tree)
}

/// Splits canonical bytes of strings, or of sequences of a type that is not file-local, into elements; `None` for other
/// types and for malformed bytes.
pub fn cut_canonical<'b>(class: &TypeClass, bytes: &'b [u8]) -> Option<Vec<&'b [u8]>> {
    let item_len = match class {
        TypeClass::VariableString { .. } => 1,
        TypeClass::Sequence { base, .. } if !base.is_file_local() => usize::try_from(base.len_bytes()).ok()?,
        _ => return None,
    };
    let (mut elements, mut rest) = (Vec::new(), bytes);
    while let Some((count, behind)) = rest.split_first_chunk::<8>() {
        // HDF5 readers show a null string as an empty one.
        let count = Some(u64::from_le_bytes(*count)).filter(|&count| count != NULL_STRING).unwrap_or(0);
        let len = usize::try_from(count).ok()?.checked_mul(item_len)?;
        let (element, behind) = behind.split_at_checked(len)?;
        elements.push(element);
        rest = behind;
    }
    rest.is_empty().then_some(elements)
}
