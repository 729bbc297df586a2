//! Reading the inputs' metadata, each file once, many at a time, and reducing it to what a merge needs.
//!
//! A file's tree lives only while it is reduced to [`ScannedEntry`] values. Chunk indexes are walked to prove that every
//! chunk lies in the file and none overlaps, and forgotten.
//! Invariant: results are in input order, whatever the number of threads.

use crate::ahead::Ahead;
use crate::conventions::{self, ConventionOptions, FileView, Recognised};
use crate::error::{BadInput, MergeError, Result};
use crate::join::Join;
use crate::lifted::lift;
use crate::options::{MergeOptions, Watch};
use crate::paths::Paths;
use crate::ranks::share;
use crate::readers::InputReader;
use crate::rules::Rule;
use crate::scales::kept_once;
use crate::scan_exchange;
use crate::schema::{
    AddressKind, AttributeValue, ColumnFact, PROVENANCE_GROUP, Role, address_kind, complete, display_path, split,
    split_again,
};
use crate::stored::{FormedChunks, Stored};
use crate::value_source::ValueSource;
use foldhash::HashMap;
use raddle_core::communicator::Communicator;
use raddle_core::digest::fragment;
use raddle_core::handle::FileIdentity;
use raddle_core::progress::{Event, Stage};
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::model::form::{DatasetForm, FormedDataset};
use raddle_hdf5::model::{
    Attribute, ChunkIndex, CreationOrder, Dataset, Dataspace, Datatype, FileTree, InlineData, Layout, Link, LinkTarget,
    ObjectIndex, ObjectKind, TypeClass,
};
use raddle_hdf5::native::{Encoding, Forms};
use raddle_hdf5::read::check_listed;
use raddle_hdf5::source::{InputFile, MetadataView, ViewBuffers};
use raddle_hdf5::{Hdf5Error, model};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An object or link of one input; its path is in [`ScannedInput::paths`].
#[derive(Debug, Clone)]
pub struct ScannedEntry {
    /// Whether the last component is marked UTF-8.
    pub utf8: bool,
    /// What is there.
    pub role: ScannedRole,
    /// Attributes in canonical bytes.
    pub attributes: Arc<[AttributeValue]>,
    /// Whether the object keeps the creation order of attributes.
    pub attribute_order: CreationOrder,
    /// Comment of the object.
    pub comment: Option<Vec<u8>>,
    /// Attributes with references to no object of the file, and how many: they became null references.
    pub dangling: Vec<(Vec<u8>, u64)>,
}

/// What an input has at a path.
#[derive(Debug, Clone)]
pub enum ScannedRole {
    /// A dataset that will be concatenated.
    Column {
        /// What inputs may share.
        template: Arc<Dataset>,
        /// What is the input's own.
        fact: ColumnFact,
        /// Path of the committed datatype, if it has one.
        committed: Option<Vec<u8>>,
        /// Digest of all values, if the dataset is kept once instead of concatenated: see [`kept_once`].
        kept: Option<u64>,
        /// All values, where a rule keeps them.
        values: Option<Arc<[u8]>>,
    },
    /// Anything else.
    Other(Role),
}

/// One input, scanned.
#[derive(Debug, Clone)]
pub struct ScannedInput {
    /// Absolute paths of objects and links, parents before children.
    pub paths: Paths,
    /// What is at each path.
    pub entries: Vec<ScannedEntry>,
    /// Identity at the time of the scan.
    pub identity: FileIdentity,
    /// Sizes that readers of the file need.
    pub encoding: Encoding,
    /// Bytes before the superblock, which are not merged.
    pub userblock_len_bytes: u64,
    /// Chunks of all datasets.
    pub chunk_count: u64,
    /// What the file was recognised as.
    pub recognised: Recognised,
}

/// Most memory for cached metadata blocks per scanning thread. A file of 16,000 datasets spreads its metadata over all
/// of its 20 MB, and they are read twice: objects, then chunk indexes, each level in the order of the file.
const VIEW_LIMIT_BYTES: u64 = 64 << 20;

/// Largest value of a scalar dataset or attribute that is kept while planning.
const CONSTANT_LIMIT_BYTES: u64 = 64 << 20;

/// Collective. Scans `inputs`, each on one of the `ranks`, and hands all results to `take`, in input order. Inputs that
/// cannot be read are collected: all of them are in the error, or in the returned list with `skip_bad`.
pub fn scan(
    inputs: &[PathBuf],
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
    mut take: impl FnMut(usize, ScannedInput),
) -> Result<Vec<BadInput>> {
    let started = std::time::Instant::now();
    // One rank shows the progress of all.
    let lens = inputs.iter().filter(|_| ranks.rank() == 0).filter_map(|path| std::fs::metadata(path).ok());
    let total_bytes = lens.map(|file| file.len()).sum();
    watch.observer.event(&Event::StageStarted { stage: Stage::Scan, total_bytes: Some(total_bytes) });
    let own: Vec<usize> = share(ranks, inputs.len()).collect();
    let is_alone = ranks.size() == 1;
    let mut bad = Vec::new();
    let forms = Forms::default();
    let view_limit_bytes = VIEW_LIMIT_BYTES.min(options.memory_limit_bytes / (4 * options.jobs as u64));
    let ahead = Ahead::new(own.len(), options.jobs * 4);
    let work = || {
        let mut scanner = InputScanner {
            reader: InputReader::new(options),
            options,
            is_alone: inputs.len() == 1 && options.conventions == ConventionOptions::default(),
            forms: &forms,
            buffers: ViewBuffers::default(),
            view_limit_bytes,
        };
        while let Some(place) = ahead.next() {
            if watch.cancel.is_cancelled() {
                ahead.stop();
                return;
            }
            let scanned = scanner.scan(&inputs[own[place]]);
            if is_alone {
                let bytes = scanned.as_ref().map_or(0, |scanned| scanned.identity.len_bytes);
                watch.observer.event(&Event::Advanced { stage: Stage::Scan, bytes, items: 1 });
            }
            ahead.put(place, scanned);
        }
    };
    // Joined on this thread while the others scan on.
    ahead.run(options.jobs, work, || {
        if !is_alone {
            return scan_exchange::take_all(&ahead, inputs, watch, ranks, &mut take, &mut bad);
        }
        for (place, path) in inputs.iter().enumerate() {
            match ahead.take(place) {
                Some(Ok(scanned)) => take(place, scanned),
                Some(Err(error)) => bad.push(BadInput { path: path.clone(), error }),
                None => break,
            }
        }
        Ok(())
    })?;
    if is_alone && watch.cancel.is_cancelled() {
        return Err(MergeError::Cancelled);
    }
    watch.observer.event(&Event::StageFinished { stage: Stage::Scan, elapsed_s: started.elapsed().as_secs_f64() });
    if bad.is_empty() || (options.skip_bad && bad.len() < inputs.len()) {
        return Ok(bad);
    }
    Err(MergeError::BadInputs { bad })
}

/// Scans inputs, one after the other, on one thread.
struct InputScanner<'a> {
    reader: InputReader,
    options: &'a MergeOptions,
    /// There is no other input.
    is_alone: bool,
    forms: &'a Forms,
    buffers: ViewBuffers,
    view_limit_bytes: u64,
}

impl InputScanner<'_> {
    fn scan(&mut self, path: &Path) -> raddle_hdf5::Result<ScannedInput> {
        let file = InputFile::open(path)?;
        let buffers = std::mem::take(&mut self.buffers);
        let mut view = MetadataView::with_buffers(&file, self.view_limit_bytes, buffers);
        let scanned = self.scan_through(&file, &mut view);
        self.buffers = view.into_buffers();
        scanned
    }

    fn scan_through(&self, file: &InputFile, view: &mut MetadataView<'_>) -> raddle_hdf5::Result<ScannedInput> {
        let tree = self.reader.read_outline(view, self.forms)?;
        let encoding = Encoding::of(&tree);
        let chunks = FormedChunks::check(view, encoding, &tree);
        let Some(visits) = walk(&tree) else {
            let what = format!("length in bytes of the paths of all {} objects together", tree.objects.len());
            return Err(Hdf5Error::Limit {
                path: file.path().to_path_buf(),
                what,
                limit: paths_limit_bytes(tree.objects.len()),
            });
        };
        let mut scanner = Scanner {
            view,
            resolver: Resolver::new(file, &tree),
            tree: &tree,
            visits: &visits,
            by_address: OnceCell::new(),
            of_forms: HashMap::default(),
            chunks,
            reader: &self.reader,
            encoding,
            chunk_count: 0,
        };
        let mut entries = Vec::with_capacity(visits.found.len());
        for at in 0..visits.found.len() {
            let entry = scanner.entry(at).map_err(|error| error.in_object(display_path(visits.paths.get(at))))?;
            entries.push(entry);
        }
        let view = FileView::new(file.path(), &visits.paths, &entries);
        let is_alone = self.is_alone || self.options.join.join == Join::Union;
        let recognised = conventions::recognise(&view, &self.options.conventions, is_alone);
        let named = |at: usize, error: Hdf5Error| error.in_object(display_path(visits.paths.get(at)));
        if recognised.choice.is_none() {
            for at in kept_once(&visits.paths, &entries) {
                scanner.keep(&mut entries[at], at, false).map_err(|error| named(at, error))?;
            }
        }
        for (at, rule) in recognised.rules.iter().map(|(at, rule)| (*at as usize, rule)) {
            if rule.needs_values() {
                scanner.keep(&mut entries[at], at, rule.keeps_values()).map_err(|error| named(at, error))?;
            }
            if rule.is_lifted {
                scanner.lift(&mut entries[at], at).map_err(|error| named(at, error))?;
            }
            follow(&mut entries[at], rule);
        }
        let chunk_count = scanner.chunk_count;
        file.check_unchanged()?;
        Ok(ScannedInput {
            paths: visits.paths,
            entries,
            identity: file.identity(),
            encoding,
            userblock_len_bytes: tree.userblock_len_bytes,
            chunk_count,
            recognised,
        })
    }
}

/// All paths of a file.
struct Visits<'t> {
    /// Depth first in link order.
    paths: Paths,
    /// What is at each path.
    found: Vec<Visit<'t>>,
    /// The first path of each object.
    of_objects: Vec<usize>,
}

/// What the walk found at a path.
struct Visit<'t> {
    utf8: bool,
    what: Visited<'t>,
}

enum Visited<'t> {
    Object(ObjectIndex),
    Alias(ObjectIndex),
    Link(&'t LinkTarget),
}

/// In place of the first path of an object that has none yet.
const UNSEEN: usize = usize::MAX;

/// Most bytes of paths that a file of `objects` may have. Every object has a path in memory and one in the output's
/// provenance, so that groups inside groups take the square of their depth: 64 MiB are 8,000 groups with names of one
/// letter.
fn paths_limit_bytes(objects: usize) -> u64 {
    const FEW_BYTES: u64 = 64 << 20;
    const MEAN_PATH_BYTES: u64 = 256;
    FEW_BYTES.max(MEAN_PATH_BYTES * objects as u64)
}

/// Lists all paths depth first in link order, without following a link to an object twice. The provenance group that
/// raddle left in an input is not an object of the experiment and is left out. `None` where the paths are too long.
fn walk(tree: &FileTree) -> Option<Visits<'_>> {
    let count = tree.objects.len();
    let limit_bytes = paths_limit_bytes(count);
    let (mut paths, mut found) = (Paths::with_capacity(count), Vec::with_capacity(count));
    let mut of_objects = vec![UNSEEN; count];
    // Links to follow, each with the number of its group's path.
    let mut stack: Vec<(usize, &Link)> = Vec::new();
    let mut visit = Visit { utf8: false, what: Visited::Object(0) };
    paths.push_root();
    loop {
        let at = found.len();
        if let Visited::Object(index) = visit.what {
            let first = &mut of_objects[index as usize];
            if *first != UNSEEN {
                visit.what = Visited::Alias(index);
            } else {
                *first = at;
                if let ObjectKind::Group(group) = &tree.objects[index as usize].kind {
                    let at_root = paths.get(at) == b"/";
                    let inside = group.links.iter().rev().filter(|link| !(at_root && link.name == PROVENANCE_GROUP));
                    stack.extend(inside.map(|link| (at, link)));
                }
            }
        }
        found.push(visit);
        let Some((group, link)) = stack.pop() else { break };
        paths.push_child(group, &link.name);
        if paths.len_bytes() > limit_bytes {
            return None;
        }
        let what = match &link.target {
            LinkTarget::Hard(index) => Visited::Object(*index),
            other => Visited::Link(other),
        };
        visit = Visit { utf8: link.utf8, what };
    }
    Some(Visits { paths, found, of_objects })
}

struct Scanner<'a, 'f> {
    view: &'a mut MetadataView<'f>,
    resolver: Resolver<'a>,
    tree: &'a FileTree,
    visits: &'a Visits<'a>,
    /// Objects by header address; made when first asked for.
    by_address: OnceCell<HashMap<u64, ObjectIndex>>,
    /// What the entries of a form share, by the form's address in memory.
    of_forms: HashMap<*const DatasetForm, Arc<[AttributeValue]>>,
    chunks: FormedChunks,
    reader: &'a InputReader,
    encoding: Encoding,
    chunk_count: u64,
}

impl Scanner<'_, '_> {
    /// The entry number `at`, but for its path.
    fn entry(&mut self, at: usize) -> raddle_hdf5::Result<ScannedEntry> {
        let visits = self.visits;
        let (visit, path) = (&visits.found[at], visits.paths.get(at));
        let mut entry = ScannedEntry {
            utf8: visit.utf8,
            role: ScannedRole::Other(Role::SoftLink(Vec::new())),
            attributes: Arc::default(),
            attribute_order: CreationOrder::default(),
            comment: None,
            dangling: Vec::new(),
        };
        let index = match &visit.what {
            Visited::Object(index) => *index,
            Visited::Alias(index) => {
                let target = visits.paths.get(visits.of_objects[*index as usize]).to_vec();
                entry.role = ScannedRole::Other(Role::HardLink { target });
                return Ok(entry);
            }
            Visited::Link(target) => {
                entry.role = ScannedRole::Other(self.link(target)?);
                return Ok(entry);
            }
        };
        let object = &self.tree.objects[index as usize];
        entry.attribute_order = object.attribute_order;
        if let ObjectKind::Formed(formed) = &object.kind {
            entry.role = self.formed(formed, index, at)?;
            if let ScannedRole::Column { kept, .. } = &mut entry.role
                && self.reader.keeps(path)
            {
                *kept = Some(self.digest(&formed.dataset(), at)?);
            }
            entry.attributes = Arc::clone(&self.of_forms[&Arc::as_ptr(&formed.form)]);
            entry.comment.clone_from(&formed.form.comment);
            return Ok(entry);
        }
        entry.role = match &object.kind {
            ObjectKind::Group(group) => ScannedRole::Other(Role::Group { link_order: group.link_order }),
            ObjectKind::CommittedDatatype(datatype) => {
                self.refuse_revised(&datatype.class, object.address)?;
                ScannedRole::Other(Role::CommittedDatatype(datatype.class.clone()))
            }
            ObjectKind::Dataset(dataset) => self.dataset(dataset, object.address, at)?,
            ObjectKind::Unreadable { reason, .. } => {
                return Err(self.unsupported(object.address, reason.clone()));
            }
            _ => return Err(self.unsupported(object.address, "a kind of object that is new to raddle".to_owned())),
        };
        entry.attributes = self.attributes(&object.attributes, at, &mut entry.dangling)?;
        entry.comment = object.comment.clone();
        if let (ScannedRole::Column { kept, .. }, ObjectKind::Dataset(dataset)) = (&mut entry.role, &object.kind)
            && self.reader.keeps(path)
        {
            *kept = Some(self.digest(dataset, at)?);
        }
        Ok(entry)
    }

    /// Makes the dataset of entry `at` one that is kept once; with its values, if `keeps_values`.
    fn keep(&mut self, entry: &mut ScannedEntry, at: usize, keeps_values: bool) -> raddle_hdf5::Result<()> {
        let Visited::Object(index) = self.visits.found[at].what else { return Ok(()) };
        let ScannedRole::Column { kept: kept @ None, values, .. } = &mut entry.role else { return Ok(()) };
        let formed;
        let dataset = match &self.tree.objects[index as usize].kind {
            ObjectKind::Dataset(dataset) => dataset,
            ObjectKind::Formed(of_form) => {
                formed = of_form.dataset();
                &formed
            }
            _ => return Ok(()),
        };
        if keeps_values {
            let value = self.constant(dataset, at)?;
            *kept = Some(fragment(&value));
            *values = Some(value.into());
        } else {
            *kept = Some(self.digest(dataset, at)?);
        }
        Ok(())
    }

    /// Gives the dataset of entry `at` a first axis.
    fn lift(&mut self, entry: &mut ScannedEntry, at: usize) -> raddle_hdf5::Result<()> {
        let Visited::Object(index) = self.visits.found[at].what else { return Ok(()) };
        let address = self.tree.objects[index as usize].address;
        let (mut dataset, stored_len_bytes, committed) = match &entry.role {
            ScannedRole::Column { template, fact, committed, .. } => {
                (complete(template, fact, 0), fact.stored_len_bytes, committed.clone())
            }
            ScannedRole::Other(Role::Constant { dataset, committed, .. }) => {
                (dataset.as_ref().clone(), dataset.datatype.class.len_bytes(), committed.clone())
            }
            ScannedRole::Other(_) => return Ok(()),
        };
        if dataset.layout.is_through_library() {
            return Err(self.unsupported(address, "a record whose values lie in other files".to_owned()));
        }
        lift(&mut dataset);
        let (template, fact) = split(dataset, address, stored_len_bytes, 0);
        let template = Arc::new(template);
        entry.role = ScannedRole::Column { template, fact, committed, kept: None, values: None };
        Ok(())
    }

    /// The role of a dataset with a known form. Such datasets hold no references and have no committed datatype.
    fn formed(&mut self, formed: &FormedDataset, index: ObjectIndex, at: usize) -> raddle_hdf5::Result<ScannedRole> {
        let form = Arc::as_ptr(&formed.form);
        if !self.of_forms.contains_key(&form) {
            // None of these holds a reference.
            let attributes = self.attributes(&formed.form.attributes, at, &mut Vec::new())?;
            self.of_forms.insert(form, attributes);
        }
        let mut fact = ColumnFact::at(formed.place, 0);
        if let Some(stored) = self.chunks.take(index) {
            let stored = stored?;
            fact.stored_len_bytes = stored.len_bytes;
            self.chunk_count += stored.chunk_count;
        }
        let template = Arc::clone(&formed.form.dataset);
        Ok(ScannedRole::Column { template, fact, committed: None, kept: None, values: None })
    }

    /// Attributes of the entry number `at`; those with references to no object of the file are added to `dangling`.
    fn attributes(
        &mut self,
        attributes: &[Attribute],
        at: usize,
        dangling: &mut Vec<(Vec<u8>, u64)>,
    ) -> raddle_hdf5::Result<Arc<[AttributeValue]>> {
        let mut values = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            let (value, count) = self.attribute(attribute, self.visits.paths.get(at))?;
            if count > 0 {
                dangling.push((value.name.clone(), count));
            }
            values.push(value);
        }
        Ok(values.into())
    }

    fn link(&self, target: &LinkTarget) -> raddle_hdf5::Result<Role> {
        match target {
            LinkTarget::Soft(path) => Ok(Role::SoftLink(path.clone())),
            LinkTarget::External { file, path } => Ok(Role::ExternalLink { file: file.clone(), path: path.clone() }),
            LinkTarget::UserDefined { class, data } => Ok(Role::UserLink { class: *class, data: data.clone() }),
            _ => Err(self.unsupported(0, "a kind of link that is new to raddle".to_owned())),
        }
    }

    fn dataset(&mut self, dataset: &Dataset, address: u64, at: usize) -> raddle_hdf5::Result<ScannedRole> {
        self.refuse_revised(&dataset.datatype.class, address)?;
        let committed = self.committed_path(&dataset.datatype);
        if !matches!(dataset.dataspace, Dataspace::Simple { .. }) {
            let value = self.constant(dataset, at)?;
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
        let (stored_len_bytes, chunk_count) = match &dataset.layout {
            Layout::Chunked { index: ChunkIndex::ThroughLibrary, .. } => {
                let file = self.view.file();
                let path = self.visits.paths.get(at);
                let summary = check_listed(file, &self.reader.read_chunks(file.path(), path)?)?;
                (summary.stored_len_bytes, summary.count)
            }
            _ => {
                let stored = Stored::of(self.view, self.encoding, dataset)?;
                (stored.len_bytes, stored.chunk_count)
            }
        };
        self.chunk_count += chunk_count;
        let (mut template, mut fact) = split(dataset.clone(), address, stored_len_bytes, 0);
        self.resolve_fill(&mut template)?;
        if address_kind(&template) == AddressKind::Header {
            fact.address = address;
        }
        Ok(ScannedRole::Column { template: Arc::new(template), fact, committed, kept: None, values: None })
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

    /// Canonical bytes of the dataset of entry `at`, which is kept once; none for a null dataset.
    fn constant(&mut self, dataset: &Dataset, at: usize) -> raddle_hdf5::Result<Vec<u8>> {
        if dataset.dataspace == Dataspace::Null {
            return Ok(Vec::new());
        }
        let elements = dataset.dataspace.element_count().unwrap_or(u64::MAX);
        if elements.saturating_mul(dataset.datatype.class.len_bytes()) > CONSTANT_LIMIT_BYTES {
            let (path, what) = (self.view.file().path().to_path_buf(), "a value that is kept once".to_owned());
            return Err(Hdf5Error::Limit { path, what, limit: CONSTANT_LIMIT_BYTES });
        }
        let mut source = ValueSource::new(self.view.file(), self.encoding, self.reader);
        source.all_values(dataset, self.visits.paths.get(at), &mut self.resolver)
    }

    /// Digest of all values of the dataset of entry `at`, which is kept once.
    fn digest(&mut self, dataset: &Dataset, at: usize) -> raddle_hdf5::Result<u64> {
        let mut source = ValueSource::new(self.view.file(), self.encoding, self.reader);
        source.digest(dataset, self.visits.paths.get(at), &mut self.resolver)
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
        let index = self.by_address().get(&datatype.committed?)?;
        let first = self.visits.of_objects[*index as usize];
        (first != UNSEEN).then(|| self.visits.paths.get(first).to_vec())
    }

    fn by_address(&self) -> &HashMap<u64, ObjectIndex> {
        self.by_address.get_or_init(|| {
            let addresses = self.tree.objects.iter().map(|object| object.address);
            addresses.zip(0..).collect()
        })
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

/// Makes the facts of a dataset those of its rule: rows count along the rule's axis.
fn follow(entry: &mut ScannedEntry, rule: &Rule) {
    let axis = rule.axis();
    if let ScannedRole::Column { template, fact, .. } = &mut entry.role
        && axis > 0
        && axis < template.dataspace.dims().len()
    {
        let (along, of_axis) = split_again(template, fact, axis);
        (*template, *fact) = (Arc::new(along), of_axis);
    }
}

fn holds_revised_reference(class: &TypeClass) -> bool {
    match class {
        TypeClass::Reference(kind) => matches!(kind, model::ReferenceKind::Revised { .. }),
        TypeClass::Compound { members, .. } => members.iter().any(|member| holds_revised_reference(&member.class)),
        TypeClass::Array { base, .. } | TypeClass::Sequence { base, .. } => holds_revised_reference(base),
        _ => false,
    }
}
