//! Access to the bytes of one file's metadata, with a work budget and the datatypes that objects share.
//!
//! Invariant: every loop over file content spends from the budget, so no chain of pointers occupies a reader for longer
//! than the file's length justifies.

use super::ReadLimits;
use super::cursor::{Cursor, Encoding, InFile};
use super::datatype;
use super::object_header::ObjectHeader;
use super::shared::{self, SharedHeaps, SharedPointer, kind};
use super::superblock::Superblock;
use super::templates::{HeaderTemplateCache, TemplateReader};
use crate::error::{Hdf5Error, Result};
use crate::model::template::TemplatedDataset;
use crate::model::{Datatype, TypeClass};
use crate::source::MetadataView;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Cost of one access regardless of its length: finding the block costs about as much as parsing 32 bytes.
const ACCESS_COST_BYTES: u64 = 32;

/// Maximum length of datatype messages that are remembered by their bytes. Longer ones are compounds, which few
/// datasets share except through committed datatypes.
const REMEMBERED_TYPE_LEN_BYTES: usize = 256;

/// Maximum number of remembered datatypes; a file has tens, and more would only cost memory.
const REMEMBERED_TYPES: usize = 1024;

/// Metadata bytes of one file.
pub(crate) struct Reader<'v, 'f> {
    view: &'v mut MetadataView<'f>,
    superblock: &'v Superblock,
    work_left: u64,
    work_limit: u64,
    types: HashMap<Box<[u8]>, Arc<TypeClass>>,
    committed: HashMap<u64, Datatype>,
    shared_heaps: Option<SharedHeaps>,
    spare_headers: Vec<ObjectHeader>,
    /// Recognition of datasets by their template, if requested.
    pub forms: Option<TemplateReader<'v>>,
}

impl<'v, 'f> Reader<'v, 'f> {
    /// Creates a reader with a fresh budget.
    pub fn new(view: &'v mut MetadataView<'f>, superblock: &'v Superblock, limits: &ReadLimits) -> Self {
        let work_limit = view.file().len_bytes().saturating_mul(4).saturating_add(limits.work_len_bytes);
        Self {
            view,
            superblock,
            work_left: work_limit,
            work_limit,
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
        &self.superblock.encoding
    }

    /// Returns the file's superblock.
    pub fn superblock(&self) -> &'v Superblock {
        self.superblock
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &'f Path {
        self.view.file().path()
    }

    /// Returns the length of the file.
    pub fn file_len_bytes(&self) -> u64 {
        self.view.file().len_bytes()
    }

    /// Returns `len_bytes` bytes at absolute offset `address`; `what` names them in errors.
    pub fn bytes(&mut self, address: u64, len_bytes: u64, what: &'static str) -> Result<&[u8]> {
        self.view.file().check_range(address, len_bytes, what)?;
        self.spend(len_bytes + ACCESS_COST_BYTES)?;
        // In the file, and therefore within the limits of an index type.
        self.view.bytes(address, len_bytes as usize, what)
    }

    /// Like [`Reader::bytes`], for when it is not known yet how many of the bytes belong to the structure. Pass those
    /// that do to [`Reader::note`].
    pub fn peek(&mut self, address: u64, len_bytes: u64, what: &'static str) -> Result<&[u8]> {
        self.view.file().check_range(address, len_bytes, what)?;
        self.spend(len_bytes.min(ACCESS_COST_BYTES) + ACCESS_COST_BYTES)?;
        self.view.peek(address, len_bytes as usize, what)
    }

    /// Counts bytes that were seen through [`Reader::peek`].
    pub fn note(&mut self, address: u64, len_bytes: u64) -> Result<()> {
        self.view.note(address, len_bytes);
        self.spend(len_bytes)
    }

    /// Returns the dataset whose header is at `address`, if a remembered header matches all of it.
    pub fn recognise(&mut self, address: u64) -> Result<Option<TemplatedDataset>> {
        let left = self.file_len_bytes().saturating_sub(address);
        let Some(forms) = &mut self.forms else { return Ok(None) };
        let len = left.min(forms.longest_stencil_len_bytes() as u64);
        if len == 0 {
            return Ok(None);
        }
        let header = self.view.peek(address, len as usize, "object header")?;
        let Some((templated, len)) = forms.recognise(header, &self.superblock.encoding) else { return Ok(None) };
        self.note(address, len as u64)?;
        self.spend(2 * ACCESS_COST_BYTES)?;
        Ok(Some(templated))
    }

    /// Like [`Reader::bytes`], but replaces the content of a buffer; for structures that point to others.
    pub fn bytes_into(&mut self, address: u64, len_bytes: u64, what: &'static str, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.extend_from_slice(self.bytes(address, len_bytes, what)?);
        Ok(())
    }

    fn spend(&mut self, cost_bytes: u64) -> Result<()> {
        match self.work_left.checked_sub(cost_bytes) {
            Some(left) => {
                self.work_left = left;
                Ok(())
            }
            None => Err(Hdf5Error::Limit {
                path: self.path().to_path_buf(),
                what: "metadata to read (structures repeatedly point to the same bytes)".to_owned(),
                limit: self.work_limit,
            }),
        }
    }

    /// Reads the object header at `address`, passes it to `work`, and keeps its buffers for the next one.
    pub fn with_header<T>(
        &mut self,
        address: u64,
        work: impl FnOnce(&mut Self, &ObjectHeader) -> Result<T>,
    ) -> Result<T> {
        let mut header = self.spare_headers.pop().unwrap_or_default();
        let result = header.read(self, address).and_then(|()| work(self, &header));
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
        // Taken out while it reads through this reader, and put back in all cases.
        let mut heaps = match self.shared_heaps.take() {
            Some(heaps) => heaps,
            None => SharedHeaps::read(self)?,
        };
        let found = heaps.get(self, cursor, kind, id, storage);
        self.shared_heaps = Some(heaps);
        Ok(Cursor::new(storage, found?, "shared message"))
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
        let class = self.with_header(address, |reader, header| header.own_datatype(reader))?;
        let datatype = Datatype { class, committed: Some(address) };
        self.committed.insert(address, datatype.clone());
        Ok(datatype)
    }
}
