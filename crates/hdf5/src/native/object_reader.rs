//! Reader of the objects of one file: the bytes of its metadata, and the datatypes, message heaps and templates that
//! objects share.

use super::cursor::{Cursor, Encoding, InFile};
use super::object_header::ObjectHeader;
use super::reader::ByteReader;
use super::shared::{self, SharedHeaps, SharedPointer};
use super::superblock::Superblock;
use super::templates::{HeaderTemplateCache, TemplateReader};
use super::{ReadLimits, datatype, kind};
use crate::error::{Hdf5Error, Result};
use crate::model::template::TemplatedDataset;
use crate::model::{Datatype, TypeClass};
use crate::source::MetadataView;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Maximum length of datatype messages that are remembered by their bytes. Longer ones are compounds, which few
/// datasets share except through committed datatypes.
const REMEMBERED_TYPE_LEN_BYTES: usize = 256;

/// Maximum number of remembered datatypes; a file has tens, and more would only cost memory.
const REMEMBERED_TYPES: usize = 1024;

/// Objects of one file.
pub(crate) struct ObjectReader<'v, 'f> {
    /// Bytes of the file's metadata.
    pub bytes: ByteReader<'v, 'f>,
    superblock: &'v Superblock,
    types: HashMap<Box<[u8]>, Arc<TypeClass>>,
    committed: HashMap<u64, Datatype>,
    shared_heaps: Option<SharedHeaps>,
    spare_headers: Vec<ObjectHeader>,
    /// Recognition of datasets by their template, if requested.
    pub forms: Option<TemplateReader<'v>>,
}

impl<'v, 'f> ObjectReader<'v, 'f> {
    /// Creates a reader with a fresh budget.
    pub fn new(view: &'v mut MetadataView<'f>, superblock: &'v Superblock, limits: &ReadLimits) -> Self {
        Self {
            bytes: ByteReader::new(view, &superblock.encoding, limits),
            superblock,
            types: HashMap::new(),
            committed: HashMap::new(),
            shared_heaps: None,
            spare_headers: Vec::new(),
            forms: None,
        }
    }

    /// Makes the reader recognise datasets by their template.
    pub fn with_forms(self, forms: &'v HeaderTemplateCache) -> Self {
        Self { forms: Some(TemplateReader::new(forms)), ..self }
    }

    /// Returns the encoding of addresses and lengths in the file.
    pub fn encoding(&self) -> &'v Encoding {
        self.bytes.encoding()
    }

    /// Returns the file's superblock.
    pub fn superblock(&self) -> &'v Superblock {
        self.superblock
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &'f Path {
        self.bytes.path()
    }

    /// Returns the dataset whose header is at `address`, if a remembered header matches all of it.
    pub fn recognise(&mut self, address: u64) -> Result<Option<TemplatedDataset>> {
        let left = self.bytes.file_len_bytes().saturating_sub(address);
        let Some(forms) = &mut self.forms else { return Ok(None) };
        let len = left.min(forms.longest_stencil_len_bytes() as u64);
        if len == 0 {
            return Ok(None);
        }
        let header = self.bytes.glance(address, len, "object header")?;
        let Some((templated, len)) = forms.recognise(header, &self.superblock.encoding) else { return Ok(None) };
        self.bytes.note_glanced(address, len as u64)?;
        Ok(Some(templated))
    }

    /// Reads the object header at `address`, passes it to `work`, and keeps its buffers for the next one.
    pub fn with_header<T>(
        &mut self,
        address: u64,
        work: impl FnOnce(&mut Self, &ObjectHeader) -> Result<T>,
    ) -> Result<T> {
        let mut header = self.spare_headers.pop().unwrap_or_default();
        let result = header.read(&mut self.bytes, address).and_then(|()| work(self, &header));
        self.spare_headers.push(header);
        result
    }

    /// Decodes a datatype, or returns a remembered one with the same bytes.
    pub fn type_class(&mut self, mut cursor: Cursor<'_>) -> Result<Arc<TypeClass>> {
        let mut rest = cursor.clone();
        let bytes = rest.rest();
        if let Some(class) = self.types.get(bytes) {
            return Ok(Arc::clone(class));
        }
        let class = Arc::new(datatype::parse(&mut cursor).in_file(self.path())?);
        if bytes.len() <= REMEMBERED_TYPE_LEN_BYTES && self.types.len() < REMEMBERED_TYPES {
            self.types.insert(bytes.into(), Arc::clone(&class));
        }
        Ok(class)
    }

    /// Returns the body of a message that can only be shared through the shared message heap: the bytes of `cursor`
    /// itself or, if `shared`, the target of its pointer, which is then kept in `storage`.
    pub fn message_body<'b>(
        &mut self,
        cursor: Cursor<'b>,
        shared: bool,
        kind: u16,
        storage: &'b mut Vec<u8>,
    ) -> Result<Cursor<'b>> {
        if !shared {
            return Ok(cursor);
        }
        match shared::parse(cursor.clone(), self.encoding()).in_file(self.path())? {
            SharedPointer::Heap(id) => self.shared_body(&cursor, kind, &id, storage),
            SharedPointer::Committed(_) => {
                Err(cursor.malformed("shared through a committed datatype").in_file(self.path()))
            }
        }
    }

    /// Returns the body of a shared message of this kind, which `storage` holds; `cursor` is the location of its id.
    pub fn shared_body<'b>(
        &mut self,
        cursor: &Cursor<'_>,
        kind: u16,
        id: &[u8],
        storage: &'b mut Vec<u8>,
    ) -> Result<Cursor<'b>> {
        let heaps = match &mut self.shared_heaps {
            Some(heaps) => heaps,
            None => {
                let heaps = SharedHeaps::read(&mut self.bytes, self.superblock.shared_table)?;
                self.shared_heaps.insert(heaps)
            }
        };
        let address = heaps.get(&mut self.bytes, cursor, kind, id, storage)?;
        Ok(Cursor::new(storage, address, "shared message"))
    }

    /// Decodes a datatype message, following its pointer if `shared`.
    pub fn datatype(&mut self, cursor: Cursor<'_>, shared: bool) -> Result<Datatype> {
        if !shared {
            return Ok(Datatype { class: self.type_class(cursor)?, committed: None });
        }
        match shared::parse(cursor.clone(), self.encoding()).in_file(self.path())? {
            SharedPointer::Committed(address) => self.committed_datatype(address),
            SharedPointer::Heap(id) => {
                let mut storage = Vec::new();
                let body = self.shared_body(&cursor, kind::DATATYPE, &id, &mut storage)?;
                Ok(Datatype { class: self.type_class(body)?, committed: None })
            }
        }
    }

    /// Returns the committed datatype whose header is at `address`.
    pub fn committed_datatype(&mut self, address: u64) -> Result<Datatype> {
        if let Some(datatype) = self.committed.get(&address) {
            return Ok(datatype.clone());
        }
        let class = self.with_header(address, |reader, header| reader.unshared_datatype(header))?;
        let datatype = Datatype { class, committed: Some(address) };
        self.committed.insert(address, datatype.clone());
        Ok(datatype)
    }

    /// Returns the datatype in the header of a committed datatype, which must not itself be shared.
    pub fn unshared_datatype(&mut self, header: &ObjectHeader) -> Result<Arc<TypeClass>> {
        match header.find(kind::DATATYPE) {
            Some(message) if !message.shared => self.type_class(header.cursor(message, "committed datatype")),
            found => {
                let address = found.map_or(0, |message| message.address);
                let what = "shared datatype: its target is not a committed datatype".to_owned();
                Err(Hdf5Error::Malformed { path: self.path().to_path_buf(), address, what })
            }
        }
    }
}
