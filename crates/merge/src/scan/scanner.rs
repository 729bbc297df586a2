//! Reduction of the objects of one file to the facts that a merge needs.
//!
//! Invariant: the results do not depend on the file: references are paths, fill values are canonical. Only the types of
//! datasets with dimensions have the sizes of elements in their file.

use super::visits::{UNSEEN, VisitedObject, Visits};
use super::{ScannedEntry, ScannedRole};
use crate::conventions::Recognition;
use crate::inputs::left_out_coordinates::LeftOutCoordinate;
use crate::inputs::linked_files::name_from;
use crate::inputs::reader::InputReader;
use crate::inputs::value_source::ValueSource;
use crate::rules::Rule;
use crate::scan::chunk_checks::{StoredSize, TemplateChunks};
use crate::scan::dimension_scales::kept_once;
use crate::schema::lifted::lift;
use crate::schema::{
    AddressKind, AttributeValue, InputExtent, Role, address_kind, complete, display_path, split, split_again,
};
use foldhash::HashMap;
use raddle_core::digest::fragment;
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::model::template::{DatasetTemplate, TemplatedDataset};
use raddle_hdf5::model::{
    Attribute, ChunkIndex, CreationOrder, Dataset, Dataspace, Datatype, FileTree, InlineData, Layout, LinkTarget,
    ObjectIndex, ObjectKind, TypeClass,
};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::read::check_listed;
use raddle_hdf5::source::MetadataView;
use raddle_hdf5::{Hdf5Error, model};
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a scalar dataset or attribute that is kept in memory while planning.
const MAX_CONSTANT_BYTES: u64 = 64 << 20;

/// Reader of the entries of one file.
pub(super) struct Scanner<'a, 'f> {
    pub view: &'a mut MetadataView<'f>,
    pub resolver: Resolver<'a>,
    pub tree: &'a FileTree,
    pub visits: &'a Visits<'a>,
    /// Objects by header address; built on first use.
    pub by_address: OnceCell<HashMap<u64, ObjectIndex>>,
    /// Attributes shared by all entries of a template, indexed by the address of the template in memory.
    pub of_forms: HashMap<*const DatasetTemplate, Arc<[AttributeValue]>>,
    pub chunks: TemplateChunks,
    pub reader: &'a InputReader,
    pub encoding: Encoding,
    /// Folder of the output, from which its external links are resolved.
    pub output_folder: Option<&'a Path>,
    pub chunk_count: u64,
}

impl Scanner<'_, '_> {
    /// Returns the entries of all paths, in their order.
    pub fn entries(&mut self) -> raddle_hdf5::Result<Vec<ScannedEntry>> {
        let count = self.visits.found.len();
        let mut entries = Vec::with_capacity(count);
        for at in 0..count {
            entries.push(self.entry(at).map_err(|error| self.in_entry(at, error))?);
        }
        Ok(entries)
    }

    /// Changes `entries` as the rules of the file's convention require. In a file without a convention, scales of
    /// dimensions that do not grow are stored once.
    pub fn follow_rules(&mut self, entries: &mut [ScannedEntry], recognised: &Recognition) -> raddle_hdf5::Result<()> {
        if recognised.choice.is_none() {
            let has_rule = |at: &usize| recognised.rules.binary_search_by_key(&(*at as u32), |(at, _)| *at).is_ok();
            for at in kept_once(&self.visits.paths, entries).into_iter().filter(|at| !has_rule(at)) {
                self.keep(&mut entries[at], at, false).map_err(|error| self.in_entry(at, error))?;
            }
        }
        for (at, rule) in recognised.rules.iter().map(|(at, rule)| (*at as usize, rule)) {
            self.follow(&mut entries[at], at, rule).map_err(|error| self.in_entry(at, error))?;
        }
        Ok(())
    }

    /// Changes entry number `at` as `rule` requires.
    fn follow(&mut self, entry: &mut ScannedEntry, at: usize, rule: &Rule) -> raddle_hdf5::Result<()> {
        if rule.needs_values() {
            self.keep(entry, at, rule.keeps_values())?;
        }
        if rule.is_lifted {
            self.lift(entry, at)?;
        }
        count_along(rule.axis(), entry);
        Ok(())
    }

    /// Adds the path of entry number `at` to an error.
    fn in_entry(&self, at: usize, error: Hdf5Error) -> Hdf5Error {
        error.in_object(display_path(self.visits.paths.get(at)))
    }

    /// Returns entry number `at`, without its path.
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
            VisitedObject::Object(index) => *index,
            VisitedObject::Alias(index) => {
                let target = visits.paths.get(visits.of_objects[*index as usize]).to_vec();
                entry.role = ScannedRole::Other(Role::HardLink { target });
                return Ok(entry);
            }
            VisitedObject::Link(target) => {
                entry.role = ScannedRole::Other(self.link(target)?);
                return Ok(entry);
            }
        };
        let object = &self.tree.objects[index as usize];
        entry.attribute_order = object.attribute_order;
        if let ObjectKind::Templated(templated) = &object.kind {
            entry.role = self.templated(templated, index, at)?;
            if let ScannedRole::Column { kept, .. } = &mut entry.role
                && self.reader.keeps(path)
            {
                *kept = Some(self.digest(&templated.dataset(), at)?);
            }
            entry.attributes = Arc::clone(&self.of_forms[&Arc::as_ptr(&templated.form)]);
            entry.comment.clone_from(&templated.form.comment);
            return Ok(entry);
        }
        entry.role = match &object.kind {
            ObjectKind::Group(group) => ScannedRole::Other(Role::Group { link_order: group.link_order }),
            ObjectKind::CommittedDatatype(datatype) => {
                self.refuse_revised(&datatype.class, object.address)?;
                ScannedRole::Other(Role::CommittedDatatype(datatype.clone().with_long_addresses().class))
            }
            ObjectKind::Dataset(dataset) => self.dataset(dataset, object.address, at)?,
            ObjectKind::Unreadable { foreign: Some(foreign), .. } => {
                let path = self.view.file().path().to_path_buf();
                return Err(Hdf5Error::ForeignFile { path, foreign: foreign.clone() });
            }
            ObjectKind::Unreadable { reason, .. } => {
                return Err(self.unsupported(object.address, reason.clone()));
            }
            _ => return Err(self.unsupported(object.address, "an object of a kind unknown to raddle".to_owned())),
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

    /// Marks the dataset of entry `at` as stored once; also reads its values, if `keeps_values`.
    fn keep(&mut self, entry: &mut ScannedEntry, at: usize, keeps_values: bool) -> raddle_hdf5::Result<()> {
        let VisitedObject::Object(index) = self.visits.found[at].what else { return Ok(()) };
        let ScannedRole::Column { kept: kept @ None, values, .. } = &mut entry.role else { return Ok(()) };
        let templated;
        let dataset = match &self.tree.objects[index as usize].kind {
            ObjectKind::Dataset(dataset) => dataset,
            ObjectKind::Templated(of_form) => {
                templated = of_form.dataset();
                &templated
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

    /// Adds a first axis to the dataset of entry `at`.
    fn lift(&mut self, entry: &mut ScannedEntry, at: usize) -> raddle_hdf5::Result<()> {
        let VisitedObject::Object(index) = self.visits.found[at].what else { return Ok(()) };
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
            return Err(self.unsupported(address, "a record with values in other files".to_owned()));
        }
        lift(&mut dataset);
        let (template, fact) = split(dataset, address, stored_len_bytes, 0);
        let template = Arc::new(template);
        entry.role = ScannedRole::Column { template, fact, committed, kept: None, values: None };
        Ok(())
    }

    /// Returns the role of a dataset with a known template. Such datasets hold no references and have no committed
    /// datatype.
    fn templated(
        &mut self,
        templated: &TemplatedDataset,
        index: ObjectIndex,
        at: usize,
    ) -> raddle_hdf5::Result<ScannedRole> {
        let form = Arc::as_ptr(&templated.form);
        if !self.of_forms.contains_key(&form) {
            // None of these attributes holds a reference.
            let attributes = self.attributes(&templated.form.attributes, at, &mut Vec::new())?;
            self.of_forms.insert(form, attributes);
        }
        let mut fact = InputExtent::at(templated.place, 0);
        if let Some(stored) = self.chunks.take(index) {
            let stored = stored?;
            fact.stored_len_bytes = stored.len_bytes;
            self.chunk_count += stored.chunk_count;
        }
        let template = Arc::clone(&templated.form.dataset);
        Ok(ScannedRole::Column { template, fact, committed: None, kept: None, values: None })
    }

    /// Returns the attributes of entry number `at`; adds those with references to missing objects to `dangling`.
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

    /// Returns the attributes of a coordinate that is left out. Attributes that cannot be read are left out, too.
    pub fn of_left_out(&mut self, coordinate: &LeftOutCoordinate) -> Vec<AttributeValue> {
        let read = |attribute| self.attribute(attribute, &coordinate.path).ok();
        coordinate.attributes.iter().filter_map(read).map(|(attribute, _)| attribute).collect()
    }

    fn link(&self, target: &LinkTarget) -> raddle_hdf5::Result<Role> {
        match target {
            LinkTarget::Soft(path) => Ok(Role::SoftLink(as_created(path))),
            LinkTarget::External { file, path } => {
                let file = match self.output_folder {
                    Some(folder) => name_from(folder, self.view.file().path(), file).into_owned(),
                    None => file.clone(),
                };
                Ok(Role::ExternalLink { file, path: as_created(path) })
            }
            LinkTarget::UserDefined { class, data } => Ok(Role::UserLink { class: *class, data: data.clone() }),
            _ => Err(self.unsupported(0, "a link of a kind unknown to raddle".to_owned())),
        }
    }

    fn dataset(&mut self, dataset: &Dataset, address: u64, at: usize) -> raddle_hdf5::Result<ScannedRole> {
        self.refuse_revised(&dataset.datatype.class, address)?;
        let committed = self.committed_path(&dataset.datatype);
        if !matches!(dataset.dataspace, Dataspace::Simple { .. }) {
            let value = self.constant(dataset, at)?;
            let mut dataset = Box::new(dataset.clone());
            self.resolve_fill(&mut dataset)?;
            dataset.datatype = dataset.datatype.with_long_addresses();
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
                let stored = StoredSize::of(self.view, self.encoding, dataset)?;
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

    /// Makes a fill value of a file-local type independent of its file. A value of only zeros is a null reference or an
    /// empty value, which is HDF5's default.
    fn resolve_fill(&mut self, template: &mut Dataset) -> raddle_hdf5::Result<()> {
        let class = &template.datatype.class;
        let Some(value) = template.fill.value.take_if(|_| class.is_file_local()) else { return Ok(()) };
        if value.bytes().iter().any(|&byte| byte != 0) {
            let canonical = self.resolver.canonical_inline(class, &value)?.into_owned();
            template.fill.value = Some(InlineData::Canonical(canonical));
        }
        Ok(())
    }

    /// Returns the canonical bytes of the dataset of entry `at`, which is stored once; empty for a null dataset.
    fn constant(&mut self, dataset: &Dataset, at: usize) -> raddle_hdf5::Result<Vec<u8>> {
        if dataset.dataspace == Dataspace::Null {
            return Ok(Vec::new());
        }
        let elements = dataset.dataspace.element_count().unwrap_or(u64::MAX);
        if elements.saturating_mul(dataset.datatype.class.len_bytes()) > MAX_CONSTANT_BYTES {
            let (path, what) = (self.view.file().path().to_path_buf(), "a value that is stored once".to_owned());
            return Err(Hdf5Error::Limit { path, what, limit: MAX_CONSTANT_BYTES });
        }
        let mut source = ValueSource::new(self.view.file(), self.encoding, self.reader);
        source.all_values(dataset, self.visits.paths.get(at), &mut self.resolver)
    }

    /// Returns the digest of all values of the dataset of entry `at`, which is stored once.
    fn digest(&mut self, dataset: &Dataset, at: usize) -> raddle_hdf5::Result<u64> {
        let mut source = ValueSource::new(self.view.file(), self.encoding, self.reader);
        source.digest(dataset, self.visits.paths.get(at), &mut self.resolver)
    }

    /// Returns an attribute with its value in canonical bytes, and the number of its references to objects missing from
    /// the file.
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
            datatype: Datatype { committed: None, ..attribute.datatype.clone().with_long_addresses() },
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

/// Converts the extent of a dataset to `axis`, along which its rows are counted.
fn count_along(axis: usize, entry: &mut ScannedEntry) {
    if let ScannedRole::Column { template, fact, .. } = &mut entry.role
        && axis > 0
        && axis < template.dataspace.dims().len()
    {
        let (along, of_axis) = split_again(template, fact, axis);
        (*template, *fact) = (Arc::new(along), of_axis);
    }
}

/// Returns the path of a link as libhdf5 stores it in a new link: without repeated slashes and without one at the end.
fn as_created(path: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(path.len());
    for &byte in path {
        if byte != b'/' || kept.last() != Some(&b'/') {
            kept.push(byte);
        }
    }
    if kept.len() > 1 && kept.ends_with(b"/") {
        kept.pop();
    }
    kept
}

fn holds_revised_reference(class: &TypeClass) -> bool {
    match class {
        TypeClass::Reference(kind) => matches!(kind, model::ReferenceKind::Revised { .. }),
        TypeClass::Compound { members, .. } => members.iter().any(|member| holds_revised_reference(&member.class)),
        TypeClass::Array { base, .. } | TypeClass::Sequence { base, .. } => holds_revised_reference(base),
        _ => false,
    }
}
