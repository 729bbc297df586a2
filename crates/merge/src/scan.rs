//! Reading the inputs' metadata, each file once, many at a time, and reducing it to what a merge needs.
//!
//! A file's tree lives only while it is reduced to [`ScannedEntry`] values. Chunk indexes are walked to prove that every
//! chunk lies in the file and none overlaps, and forgotten.
//! Invariant: results are in input order, whatever the number of threads.

use crate::error::{BadInput, MergeError, Result};
use crate::options::{MergeOptions, Watch};
use crate::readers::InputReader;
use crate::schema::{
    AddressKind, AttributeValue, ColumnFact, PROVENANCE_GROUP, Role, address_kind, child_path, display_path, split,
};
use raddle_core::digest::fragment;
use raddle_core::progress::{Event, Stage};
use raddle_hdf5::logical::{CanonicalElements, Resolver};
use raddle_hdf5::model::{
    Attribute, ChunkIndex, CreationOrder, Dataset, Dataspace, Datatype, FileTree, InlineData, Layout, LinkTarget,
    ObjectIndex, ObjectKind, TypeClass,
};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::read::{ChunkSummary, check_chunks, check_listed};
use raddle_hdf5::source::{FileIdentity, InputFile, MetadataView};
use raddle_hdf5::{Hdf5Error, model};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An object or link of one input.
#[derive(Debug)]
pub struct ScannedEntry {
    /// Absolute path.
    pub path: Vec<u8>,
    /// Whether the last component is marked UTF-8.
    pub utf8: bool,
    /// What is there.
    pub role: ScannedRole,
    /// Attributes in canonical bytes.
    pub attributes: Vec<AttributeValue>,
    /// Whether the object keeps the creation order of attributes.
    pub attribute_order: CreationOrder,
    /// Comment of the object.
    pub comment: Option<Vec<u8>>,
    /// Attributes with references to no object of the file, and how many: they became null references.
    pub dangling: Vec<(Vec<u8>, u64)>,
}

/// What an input has at a path.
#[derive(Debug)]
pub enum ScannedRole {
    /// A dataset that will be concatenated.
    Column {
        /// What inputs may share.
        template: Box<Dataset>,
        /// What is the input's own.
        fact: ColumnFact,
        /// Path of the committed datatype, if it has one.
        committed: Option<Vec<u8>>,
        /// Digest of all values, if the dataset is kept once instead of concatenated: see [`is_trailing_scale`].
        kept: Option<u64>,
    },
    /// Anything else.
    Other(Role),
}

/// One input, scanned.
#[derive(Debug)]
pub struct ScannedInput {
    /// Objects and links, parents before children.
    pub entries: Vec<ScannedEntry>,
    /// Identity at the time of the scan.
    pub identity: FileIdentity,
    /// Sizes that readers of the file need.
    pub encoding: Encoding,
    /// Bytes before the superblock, which are not merged.
    pub userblock_len_bytes: u64,
    /// Chunks of all datasets.
    pub chunk_count: u64,
}

/// Memory for cached metadata blocks per scanning thread. A file of 16,000 datasets spreads its metadata over all its
/// blocks of 64 KiB but reads them nearly in order, so a few MiB suffice.
const VIEW_LIMIT_BYTES: u64 = 8 << 20;

/// Largest value of a scalar dataset or attribute that is kept while planning.
const CONSTANT_LIMIT_BYTES: u64 = 64 << 20;

/// Scans `inputs` and hands each result to `take`, in input order. Inputs that cannot be read are collected: all of
/// them are in the error, or in the returned list with `skip_bad`.
pub fn scan(
    inputs: &[PathBuf],
    options: &MergeOptions,
    watch: &Watch<'_>,
    mut take: impl FnMut(usize, ScannedInput),
) -> Result<Vec<BadInput>> {
    let started = std::time::Instant::now();
    let total_bytes = inputs.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|file| file.len()).sum();
    watch.observer.event(&Event::StageStarted { stage: Stage::Scan, total_bytes: Some(total_bytes) });
    let mut bad = Vec::new();
    // Waves bound the number of scanned but not yet joined inputs.
    for (wave, paths) in inputs.chunks(options.jobs * 4).enumerate() {
        for (place, scanned) in scan_wave(paths, options, watch).into_iter().enumerate() {
            if watch.cancel.is_cancelled() {
                return Err(MergeError::Cancelled);
            }
            match scanned {
                Some(Ok(scanned)) => take(wave * options.jobs * 4 + place, scanned),
                Some(Err(error)) => bad.push(BadInput { path: paths[place].clone(), error }),
                None => return Err(MergeError::Cancelled),
            }
        }
    }
    watch.observer.event(&Event::StageFinished { stage: Stage::Scan, elapsed_s: started.elapsed().as_secs_f64() });
    if bad.is_empty() || (options.skip_bad && bad.len() < inputs.len()) {
        return Ok(bad);
    }
    Err(MergeError::BadInputs { bad })
}

type ScanSlot = Mutex<Option<raddle_hdf5::Result<ScannedInput>>>;

fn scan_wave(
    paths: &[PathBuf],
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Vec<Option<raddle_hdf5::Result<ScannedInput>>> {
    let slots: Vec<ScanSlot> = paths.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.min(paths.len()) {
            scope.spawn(|| {
                let reader = InputReader::new(options);
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= paths.len() || watch.cancel.is_cancelled() {
                        return;
                    }
                    let scanned = scan_input(&paths[place], &reader);
                    let bytes = scanned.as_ref().map_or(0, |scanned| scanned.identity.len_bytes);
                    watch.observer.event(&Event::Advanced { stage: Stage::Scan, bytes, items: 1 });
                    *slots[place].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(scanned);
                }
            });
        }
    });
    slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)).collect()
}

/// Scans one input.
pub fn scan_input(path: &Path, reader: &InputReader) -> raddle_hdf5::Result<ScannedInput> {
    let file = InputFile::open(path)?;
    let tree = reader.read_tree(path)?;
    let encoding = Encoding::of(&tree);
    let (visits, paths) = walk(&tree);
    let mut scanner = Scanner {
        view: MetadataView::new(&file, VIEW_LIMIT_BYTES),
        resolver: Resolver::new(&file, &tree),
        tree: &tree,
        paths: &paths,
        reader,
        encoding,
        chunk_count: 0,
    };
    let mut entries = Vec::new();
    for visit in visits {
        let shown = || display_path(&visit.path);
        let entry = scanner.entry(&visit).map_err(|error| error.in_object(shown()))?;
        entries.push(entry);
    }
    let chunk_count = scanner.chunk_count;
    file.check_unchanged()?;
    let identity = file.identity();
    Ok(ScannedInput { entries, identity, encoding, userblock_len_bytes: tree.userblock_len_bytes, chunk_count })
}

/// A path found by the walk.
struct Visit<'t> {
    path: Vec<u8>,
    utf8: bool,
    what: Visited<'t>,
}

enum Visited<'t> {
    Object(ObjectIndex),
    Alias(ObjectIndex),
    Link(&'t LinkTarget),
}

/// Paths of objects by header address: an object's first path in a depth-first walk in link order.
pub type ObjectPaths = HashMap<u64, Vec<u8>>;

/// Lists all paths depth first in link order, without following a link to an object twice. The provenance group that
/// raddle left in an input is not an object of the experiment and is left out.
fn walk(tree: &FileTree) -> (Vec<Visit<'_>>, ObjectPaths) {
    let mut visits = Vec::new();
    let mut paths = ObjectPaths::new();
    let mut seen = vec![false; tree.objects.len()];
    let mut stack = vec![Visit { path: b"/".to_vec(), utf8: false, what: Visited::Object(0) }];
    while let Some(mut visit) = stack.pop() {
        if let Visited::Object(index) = visit.what {
            let object = &tree.objects[index as usize];
            if std::mem::replace(&mut seen[index as usize], true) {
                visit.what = Visited::Alias(index);
            } else {
                paths.insert(object.address, visit.path.clone());
                if let ObjectKind::Group(group) = &object.kind {
                    let at_root = visit.path == b"/";
                    stack.extend(
                        group.links.iter().rev().filter(|link| !(at_root && link.name == PROVENANCE_GROUP)).map(
                            |link| Visit {
                                path: child_path(&visit.path, &link.name),
                                utf8: link.utf8,
                                what: match &link.target {
                                    LinkTarget::Hard(index) => Visited::Object(*index),
                                    other => Visited::Link(other),
                                },
                            },
                        ),
                    );
                }
            }
        }
        visits.push(visit);
    }
    (visits, paths)
}

struct Scanner<'a> {
    view: MetadataView<'a>,
    resolver: Resolver<'a>,
    tree: &'a FileTree,
    paths: &'a ObjectPaths,
    reader: &'a InputReader,
    encoding: Encoding,
    chunk_count: u64,
}

impl Scanner<'_> {
    fn entry(&mut self, visit: &Visit<'_>) -> raddle_hdf5::Result<ScannedEntry> {
        let mut entry = ScannedEntry {
            path: visit.path.clone(),
            utf8: visit.utf8,
            role: ScannedRole::Other(Role::SoftLink(Vec::new())),
            attributes: Vec::new(),
            attribute_order: CreationOrder::default(),
            comment: None,
            dangling: Vec::new(),
        };
        let index = match &visit.what {
            Visited::Object(index) => *index,
            Visited::Alias(index) => {
                let target = self.paths[&self.tree.objects[*index as usize].address].clone();
                entry.role = ScannedRole::Other(Role::HardLink { target });
                return Ok(entry);
            }
            Visited::Link(target) => {
                entry.role = ScannedRole::Other(self.link(target)?);
                return Ok(entry);
            }
        };
        let object = &self.tree.objects[index as usize];
        entry.role = match &object.kind {
            ObjectKind::Group(group) => ScannedRole::Other(Role::Group { link_order: group.link_order }),
            ObjectKind::CommittedDatatype(datatype) => {
                self.refuse_revised(&datatype.class, object.address)?;
                ScannedRole::Other(Role::CommittedDatatype(datatype.class.clone()))
            }
            ObjectKind::Dataset(dataset) => self.dataset(dataset, object.address)?,
            ObjectKind::Unreadable { reason, .. } => {
                return Err(self.unsupported(object.address, reason.clone()));
            }
            _ => return Err(self.unsupported(object.address, "a kind of object that is new to raddle".to_owned())),
        };
        for attribute in &object.attributes {
            let (value, dangling) = self.attribute(attribute, &visit.path)?;
            if dangling > 0 {
                entry.dangling.push((value.name.clone(), dangling));
            }
            entry.attributes.push(value);
        }
        entry.attribute_order = object.attribute_order;
        entry.comment = object.comment.clone();
        if let (ScannedRole::Column { kept, .. }, ObjectKind::Dataset(dataset)) = (&mut entry.role, &object.kind)
            && (is_trailing_scale(&entry.attributes) || self.reader.keeps(&visit.path))
        {
            *kept = Some(fragment(&self.constant(dataset, object.address)?));
        }
        Ok(entry)
    }

    fn link(&self, target: &LinkTarget) -> raddle_hdf5::Result<Role> {
        match target {
            LinkTarget::Soft(path) => Ok(Role::SoftLink(path.clone())),
            LinkTarget::External { file, path } => Ok(Role::ExternalLink { file: file.clone(), path: path.clone() }),
            LinkTarget::UserDefined { class, data } => Ok(Role::UserLink { class: *class, data: data.clone() }),
            _ => Err(self.unsupported(0, "a kind of link that is new to raddle".to_owned())),
        }
    }

    fn dataset(&mut self, dataset: &Dataset, address: u64) -> raddle_hdf5::Result<ScannedRole> {
        self.refuse_revised(&dataset.datatype.class, address)?;
        let committed = self.committed_path(&dataset.datatype);
        if !matches!(dataset.dataspace, Dataspace::Simple { .. }) {
            let value = self.constant(dataset, address)?;
            let mut dataset = Box::new(dataset.clone());
            self.resolve_fill(&mut dataset)?;
            return Ok(ScannedRole::Other(Role::Constant { dataset, committed, value }));
        }
        if dataset.dataspace.element_count().is_none() {
            return Err(Hdf5Error::Malformed {
                path: self.view.file().path().to_path_buf(),
                address,
                what: format!("dimensions {:?} have more than 2^64 elements", dataset.dataspace.dims()),
            });
        }
        let stored_len_bytes = match &dataset.layout {
            Layout::Chunked { index, .. } => {
                let summary: ChunkSummary = if *index == ChunkIndex::ThroughLibrary {
                    let file = self.view.file();
                    check_listed(file, &self.reader.read_chunks(file.path(), &self.paths[&address])?)?
                } else {
                    check_chunks(&mut self.view, self.encoding, dataset)?
                };
                self.chunk_count += summary.count;
                summary.stored_len_bytes
            }
            Layout::Contiguous { address: Some(data), .. } => {
                let elements = dataset.dataspace.element_count().unwrap_or(u64::MAX);
                let len_bytes = elements.saturating_mul(dataset.datatype.class.len_bytes());
                self.view.file().check_range(*data, len_bytes, "contiguous data")?;
                len_bytes
            }
            Layout::Compact(data) => data.bytes().len() as u64,
            _ => 0,
        };
        let (mut template, mut fact) = split(dataset.clone(), address, stored_len_bytes);
        self.resolve_fill(&mut template)?;
        if address_kind(&template) == AddressKind::Header {
            fact.address = address;
        }
        Ok(ScannedRole::Column { template: Box::new(template), fact, committed, kept: None })
    }

    /// Makes a fill value of a file-local type independent of its file. One of zeros only is a null reference or an
    /// empty value: HDF5's own default.
    fn resolve_fill(&mut self, template: &mut Dataset) -> raddle_hdf5::Result<()> {
        let class = &template.datatype.class;
        let Some(value) = template.fill.value.take_if(|_| class.is_file_local()) else { return Ok(()) };
        if value.bytes().iter().any(|&byte| byte != 0) {
            let canonical = self.resolver.canonical_inline(class, &value)?.into_owned();
            template.fill.value = Some(InlineData::Canonical(canonical));
        }
        Ok(())
    }

    /// Canonical bytes of a dataset that is kept once; none for a null dataset.
    fn constant(&mut self, dataset: &Dataset, address: u64) -> raddle_hdf5::Result<Vec<u8>> {
        if dataset.dataspace == Dataspace::Null {
            return Ok(Vec::new());
        }
        let elements = dataset.dataspace.element_count().unwrap_or(u64::MAX);
        if elements.saturating_mul(dataset.datatype.class.len_bytes()) > CONSTANT_LIMIT_BYTES {
            let (path, what) = (self.view.file().path().to_path_buf(), "a value that is kept once".to_owned());
            return Err(Hdf5Error::Limit { path, what, limit: CONSTANT_LIMIT_BYTES });
        }
        let mut source = crate::values::ValueSource::new(self.view.file(), self.encoding, self.reader);
        source.all_values(dataset, &self.paths[&address], &mut self.resolver)
    }

    /// An attribute with its value in canonical bytes, and how many of its references lead to no object of the file.
    fn attribute(&mut self, attribute: &Attribute, path: &[u8]) -> raddle_hdf5::Result<(AttributeValue, u64)> {
        let class = &attribute.datatype.class;
        let in_attribute = |error: Hdf5Error| {
            error.in_object(format!("{} (attribute {})", display_path(path), display_path(&attribute.name)))
        };
        self.refuse_revised(class, 0).map_err(in_attribute)?;
        let value = self.resolver.canonical_inline_or_null(class, &attribute.data);
        let (value, dangling) = value.map_err(in_attribute)?;
        let attribute = AttributeValue {
            name: attribute.name.clone(),
            utf8: attribute.utf8,
            committed: self.committed_path(&attribute.datatype),
            datatype: Datatype { committed: None, ..attribute.datatype.clone() },
            dataspace: attribute.dataspace.clone(),
            value,
        };
        Ok((attribute, dangling))
    }

    fn committed_path(&self, datatype: &Datatype) -> Option<Vec<u8>> {
        datatype.committed.and_then(|address| self.paths.get(&address)).cloned()
    }

    /// References of HDF5 1.12 and later hold tokens and file names that cannot be rewritten yet.
    fn refuse_revised(&self, class: &TypeClass, address: u64) -> raddle_hdf5::Result<()> {
        if holds_revised_reference(class) {
            let what = "references of HDF5 1.12 and later (H5R_ref_t) cannot be rewritten for another file";
            return Err(self.unsupported(address, what.to_owned()));
        }
        Ok(())
    }

    fn unsupported(&self, address: u64, what: String) -> Hdf5Error {
        Hdf5Error::Unsupported { path: self.view.file().path().to_path_buf(), address, what }
    }
}

/// Whether a dataset is a dimension scale of axes other than the first, and of these only: the coordinates of an axis
/// along which nothing is concatenated. Concatenating it would make it longer than the axis that it describes. A
/// dimension scale keeps a list of where it is attached: references with the number of the axis.
fn is_trailing_scale(attributes: &[AttributeValue]) -> bool {
    let named = |name: &[u8]| attributes.iter().find(|attribute| attribute.name == name);
    let is_scale = named(b"CLASS").is_some_and(|class| class.value.starts_with(b"DIMENSION_SCALE"));
    let Some(list) = named(b"REFERENCE_LIST").filter(|_| is_scale) else { return false };
    let mut attached = CanonicalElements::new(&list.datatype.class, &list.value).peekable();
    attached.peek().is_some()
        && attached.all(|element| {
            // Canonical: length and path of the dataset, then the axis as a 32-bit integer.
            element.and_then(|bytes| bytes.last_chunk::<4>()).is_some_and(|axis| *axis != [0; 4])
        })
}

fn holds_revised_reference(class: &TypeClass) -> bool {
    match class {
        TypeClass::Reference(kind) => matches!(kind, model::ReferenceKind::Revised { .. }),
        TypeClass::Compound { members, .. } => members.iter().any(|member| holds_revised_reference(&member.class)),
        TypeClass::Array { base, .. } | TypeClass::Sequence { base, .. } => holds_revised_reference(base),
        _ => false,
    }
}
