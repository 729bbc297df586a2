//! Recognition of a dataset's template from the bytes of its object header, without parsing it again.
//!
//! The messages of a header, with the size of axis 0 and the address of the data blanked, are a key: headers with equal
//! keys describe datasets that are equal except for the blanked parts. The first header with a key is parsed in full;
//! further ones cost a copy and a lookup. Headers whose messages point elsewhere in their file have no template.
//! Invariant: a key contains every byte that the parsers examine, except for the blanked parts and the times.

use super::cursor::Encoding;
use super::header_template::{HeaderTemplate, messages_of_version_1};
use super::kind;
use super::object_header::{Message, ObjectHeader};
use crate::model::template::{self, DatasetLocation, DatasetTemplate, TemplatedDataset};
use crate::model::{Attribute, ChunkIndex, Dataspace, Datatype, Layout, Object, ObjectKind};
use foldhash::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of remembered templates, and their longest key. Files have dozens of templates; a file in which every
/// dataset has a different text must not fill the memory.
const REMEMBERED_FORMS: usize = 1 << 15;
const REMEMBERED_KEY_LEN_BYTES: usize = 2048;

/// Maximum number of complete headers remembered per file: they are tried one after another, and beyond this number
/// listing the messages would be cheaper.
const REMEMBERED_STENCILS: usize = 16;

/// Message kinds of an object's times, which are not read.
const TIMES: [u16; 2] = [0x0e, 0x12];

type KnownTemplates = HashMap<Box<[u8]>, Arc<DatasetTemplate>>;

/// Templates found so far, shared by the readers of many files.
#[derive(Debug, Default)]
pub struct HeaderTemplateCache {
    known: Mutex<KnownTemplates>,
    object_count: AtomicUsize,
}

/// Maximum number of objects for which space is reserved in advance, at 100 bytes each.
const MAX_EXPECTED_OBJECTS: usize = 1 << 16;

impl HeaderTemplateCache {
    /// Returns the number of objects in the file read last; the next file is likely to have as many.
    pub(crate) fn object_count_hint(&self) -> usize {
        self.object_count.load(Ordering::Relaxed)
    }

    pub(crate) fn note_object_count(&self, count: usize) {
        self.object_count.store(count.min(MAX_EXPECTED_OBJECTS), Ordering::Relaxed);
    }

    fn get(&self, key: &[u8]) -> Option<Arc<DatasetTemplate>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Adds a template, unless another thread has added it first; returns the one that is kept.
    fn add(&self, key: &[u8], form: DatasetTemplate) -> Option<Arc<DatasetTemplate>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_FORMS {
            return None;
        }
        Some(Arc::clone(known.entry(key.into()).or_insert_with(|| Arc::new(form))))
    }
}

/// Access of one reader to the templates.
#[derive(Debug)]
pub(crate) struct TemplateReader<'s> {
    shared: &'s HeaderTemplateCache,
    /// Templates found in this file, looked up without the lock.
    met: KnownTemplates,
    key: Vec<u8>,
    /// Header templates, the one that matched last first.
    header_templates: Vec<HeaderTemplate>,
    longest_stencil_len_bytes: usize,
}

impl<'s> TemplateReader<'s> {
    pub fn new(shared: &'s HeaderTemplateCache) -> Self {
        Self {
            shared,
            met: KnownTemplates::default(),
            key: Vec::new(),
            header_templates: Vec::new(),
            longest_stencil_len_bytes: 0,
        }
    }

    /// Returns the dataset with this header if its template is known.
    pub fn find(&mut self, header: &ObjectHeader, encoding: &Encoding) -> Option<TemplatedDataset> {
        let stored = self.read_key(header, encoding)?;
        let form = match self.met.get(self.key.as_slice()) {
            Some(form) => Arc::clone(form),
            None => {
                let form = self.shared.get(&self.key)?;
                self.met.insert(self.key.as_slice().into(), Arc::clone(&form));
                form
            }
        };
        self.learn(header, encoding, &form);
        stored.of_form(form)
    }

    /// Returns the dataset whose header is at the beginning of `header`, and the header's length, if a remembered
    /// header matches all of it.
    pub fn recognise(&mut self, header: &[u8], encoding: &Encoding) -> Option<(TemplatedDataset, usize)> {
        let messages = messages_of_version_1(header)?;
        let first = self.header_templates.iter().position(|header_template| header_template.fits(messages))?;
        let HeaderTemplate { dataspace, layout, .. } = &self.header_templates[first];
        self.key.clear();
        let stored = push_blanked(&mut self.key, &messages[dataspace.clone()], &messages[layout.clone()], encoding)?;
        // Datasets with and without storage have the same header template, but different dataset templates.
        let same_blanks = |header_template: &HeaderTemplate| {
            (&header_template.dataspace, &header_template.layout) == (dataspace, layout)
        };
        let at = first
            + self.header_templates[first..].iter().position(|header_template| {
                header_template.blanked_key == self.key
                    && same_blanks(header_template)
                    && header_template.fits(messages)
            })?;
        let header_template = &self.header_templates[at];
        let known = (stored.of_form(Arc::clone(&header_template.form))?, header_template.header_len_bytes());
        self.header_templates.swap(0, at);
        Some(known)
    }

    /// Returns the length of the longest header that [`TemplateReader::recognise`] may match.
    pub fn longest_stencil_len_bytes(&self) -> usize {
        self.longest_stencil_len_bytes
    }

    /// Remembers a complete header of `template`.
    fn learn(&mut self, header: &ObjectHeader, encoding: &Encoding, form: &Arc<DatasetTemplate>) {
        let (Some(dataspace), Some(layout)) = (header.find(kind::DATASPACE), header.find(kind::LAYOUT)) else { return };
        if self.header_templates.len() >= REMEMBERED_STENCILS {
            return;
        }
        let mut key = Vec::new();
        if push_blanked(&mut key, header.body(dataspace), header.body(layout), encoding).is_none() {
            return;
        }
        if let Some(header_template) = HeaderTemplate::new(header, [dataspace, layout], &TIMES, key, Arc::clone(form)) {
            self.longest_stencil_len_bytes = self.longest_stencil_len_bytes.max(header_template.header_len_bytes());
            self.header_templates.push(header_template);
        }
    }

    /// Remembers the template of an object that was just parsed because [`TemplateReader::find`] did not know it.
    pub fn remember(&mut self, header: &ObjectHeader, encoding: &Encoding, object: &Object) {
        let ObjectKind::Dataset(dataset) = &object.kind else { return };
        if !has_form(object) || self.read_key(header, encoding).is_none() {
            return;
        }
        let mut dataset = dataset.as_ref().clone();
        template::open(&mut dataset);
        let form = DatasetTemplate {
            dataset: Arc::new(dataset),
            attributes: object.attributes.clone(),
            attribute_order: object.attribute_order,
            comment: object.comment.clone(),
        };
        if let Some(form) = self.shared.add(&self.key, form) {
            self.learn(header, encoding, &form);
            self.met.insert(self.key.as_slice().into(), form);
        }
    }

    /// Builds the key of a header; returns `None` if it cannot have a template.
    fn read_key(&mut self, header: &ObjectHeader, encoding: &Encoding) -> Option<BlankedValues> {
        let key = &mut self.key;
        key.clear();
        key.extend_from_slice(&[encoding.address_len_bytes, encoding.length_len_bytes]);
        key.push(u8::from(header.attribute_order.tracked) | u8::from(header.attribute_order.indexed) << 1);
        let (mut rows, mut data) = (None, None);
        for message in &header.messages {
            if message.shared {
                return None;
            }
            let body = header.body(message);
            match message.kind {
                kind::DATASPACE if rows.is_none() => {
                    push_head(key, message, body);
                    rows = Some(push_dataspace(key, body, encoding)?);
                }
                kind::LAYOUT if data.is_none() => {
                    push_head(key, message, body);
                    data = Some(push_layout(key, body, encoding)?);
                }
                kind::ATTRIBUTE_INFO if !keeps_attributes_in_header(body, encoding) => return None,
                // Parts of the attribute are stored elsewhere in the file.
                kind::ATTRIBUTE if matches!(body, [2..=u8::MAX, flags, ..] if *flags != 0) => return None,
                kind::LINK_INFO | kind::LINK | kind::SYMBOL_TABLE | kind::EXTERNAL => return None,
                other if TIMES.contains(&other) => {}
                _ => {
                    push_head(key, message, body);
                    key.extend_from_slice(body);
                }
            }
        }
        let (rows, (address, len_bytes)) = (rows?, data?);
        (key.len() <= REMEMBERED_KEY_LEN_BYTES)
            .then_some(BlankedValues { place: DatasetLocation { rows, address }, len_bytes })
    }
}

/// Blanked values of a header.
struct BlankedValues {
    place: DatasetLocation,
    /// Length of contiguous data, if it is stored.
    len_bytes: Option<u64>,
}

impl BlankedValues {
    /// Returns a dataset of `template` with these values, or `None` if a parser would refuse them.
    fn of_form(self, form: Arc<DatasetTemplate>) -> Option<TemplatedDataset> {
        let dataset = &form.dataset;
        let trailing =
            dataset.dataspace.dims()[1..].iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim))?;
        let needed = self.place.rows.checked_mul(trailing)?.checked_mul(dataset.datatype.class.len_bytes())?;
        if self.len_bytes.is_some_and(|len_bytes| len_bytes < needed) {
            return None;
        }
        Some(TemplatedDataset { form, place: self.place })
    }
}

/// Appends dataspace and layout to the key without their blanked values, which it returns.
fn push_blanked(key: &mut Vec<u8>, dataspace: &[u8], layout: &[u8], encoding: &Encoding) -> Option<BlankedValues> {
    let rows = push_dataspace(key, dataspace, encoding)?;
    let (address, len_bytes) = push_layout(key, layout, encoding)?;
    Some(BlankedValues { place: DatasetLocation { rows, address }, len_bytes })
}

/// Returns whether a dataset has the same meaning in every file with an equal key.
fn has_form(object: &Object) -> bool {
    let ObjectKind::Dataset(dataset) = &object.kind else { return false };
    let is_self_contained = |datatype: &Datatype| datatype.committed.is_none() && !datatype.class.is_file_local();
    let at_one_address = match &dataset.layout {
        Layout::Contiguous { .. } => true,
        Layout::Chunked { index, .. } => !matches!(index, ChunkIndex::Single { .. } | ChunkIndex::ThroughLibrary),
        _ => false,
    };
    let is_array = matches!(&dataset.dataspace, Dataspace::Simple { dims, .. } if !dims.is_empty());
    is_array
        && at_one_address
        && is_self_contained(&dataset.datatype)
        && object.attributes.iter().all(|attribute: &Attribute| is_self_contained(&attribute.datatype))
}

fn push_head(key: &mut Vec<u8>, message: &Message, body: &[u8]) {
    // A message body has less than 2^16 bytes.
    let creation_index = message.creation_index.map_or(u32::MAX, u32::from);
    let head = u64::from(creation_index) << 32 | (body.len() as u64 & 0xffff) << 16 | u64::from(message.kind);
    key.extend_from_slice(&head.to_le_bytes());
}

/// Appends a dataspace message to the key without the size of axis 0, which it returns. The key records whether the
/// maximum size equals that size, differs or is not stored.
fn push_dataspace(key: &mut Vec<u8>, body: &[u8], encoding: &Encoding) -> Option<u64> {
    let (&[version, rank, flags], len) = (body.first_chunk()?, encoding.length_len());
    let dims = match version {
        1 => 8,
        2 => 4,
        _ => return None,
    };
    let max_dims = dims + usize::from(rank) * len;
    if rank == 0 {
        return None;
    }
    let rows = body.get(dims..dims + len)?;
    key.extend_from_slice(&body[..dims]);
    if flags & 1 == 0 {
        key.extend_from_slice(&body[dims + len..]);
        key.push(0);
    } else {
        let max_rows = body.get(max_dims..max_dims + len)?;
        key.extend_from_slice(&body[dims + len..max_dims]);
        if max_rows == rows {
            key.push(1);
        } else {
            // Larger than its maximum: left to the parser, which reports the error.
            if uint(max_rows) < uint(rows) {
                return None;
            }
            key.extend_from_slice(max_rows);
            key.push(2);
        }
        key.extend_from_slice(&body[max_dims + len..]);
    }
    Some(uint(rows))
}

/// Appends a layout message to the key without the address of the data or chunk index. Returns the address as an
/// absolute file offset, and the stored length of contiguous data. The key records whether there is an address.
fn push_layout(key: &mut Vec<u8>, body: &[u8], encoding: &Encoding) -> Option<(Option<u64>, Option<u64>)> {
    let (&[version, class], len) = (body.first_chunk()?, encoding.address_len());
    let (at, stored_len) = match (version, class) {
        (3..=5, 1) => (2, encoding.length_len()),
        (3, 2) => (3, 0),
        (4 | 5, 2) => (chunk_index_at(body)?, 0),
        _ => return None,
    };
    let address = uint(body.get(at..at + len)?);
    let len_bytes = body.get(at + len..at + len + stored_len)?;
    let is_defined = address != u64::MAX >> (64 - 8 * len);
    key.extend_from_slice(&body[..at]);
    key.push(u8::from(is_defined));
    key.extend_from_slice(&body[at + len + stored_len..]);
    let address = if is_defined { Some(address.checked_add(encoding.base)?) } else { None };
    // Without an address the parser ignores the length.
    Some((address, (stored_len > 0 && is_defined).then(|| uint(len_bytes))))
}

/// Returns the offset of the chunk index's address in a layout message of version 4 or 5, or `None` for single chunks.
fn chunk_index_at(body: &[u8]) -> Option<usize> {
    let (&rank_and_element, &dim_len_bytes) = (body.get(3)?, body.get(4)?);
    let kind_at = 5 + usize::from(rank_and_element) * usize::from(dim_len_bytes);
    let parameters_len = match body.get(kind_at)? {
        2 => 0,
        3 => 1,
        4 => 5,
        5 => 6,
        _ => return None,
    };
    Some(kind_at + 1 + parameters_len)
}

/// Returns whether an attribute info message names no heap.
fn keeps_attributes_in_header(body: &[u8], encoding: &Encoding) -> bool {
    let at = if body.get(1).is_some_and(|flags| flags & 1 != 0) { 4 } else { 2 };
    body.get(at..at + encoding.address_len()).is_some_and(|heap| heap.iter().all(|&byte| byte == 0xff))
}

/// Decodes a little-endian number of at most 8 bytes.
fn uint(bytes: &[u8]) -> u64 {
    if let Ok(eight) = bytes.try_into() {
        return u64::from_le_bytes(eight);
    }
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
