//! Global heap, which stores the values of variable-length elements and region references (file format specification,
//! III.E).
//!
//! Invariant: a collection is parsed once while it stays in the cache, and the cache stays within its limit, except for
//! a single collection that alone exceeds it (and lies in the file).

use crate::error::{Hdf5Error, Result};
use crate::native::cursor::InFile;
use crate::native::{Cursor, Defect, Encoding, Superblock};
use crate::source::InputFile;
use std::ops::Range;
use std::sync::Arc;

/// Longest accepted collection. libhdf5 creates collections of 4 KiB, or as long as one object needs.
const MAX_COLLECTION_LEN_BYTES: u64 = 1 << 30;

const WHAT: &str = "global heap collection";

/// Global heap of one file, read on demand.
#[derive(Debug)]
pub struct GlobalHeap<'f> {
    file: &'f InputFile,
    encoding: Encoding,
    limit_len_bytes: u64,
    cached_len_bytes: u64,
    collections: lru::LruCache<u64, Arc<Collection>>,
    /// Whether the collections are known to lie in their regular places.
    is_checked: bool,
}

/// Content of a heap object; keeps its collection alive.
#[derive(Debug, Clone)]
pub struct HeapObject {
    collection: Arc<Collection>,
    range: Range<usize>,
}

impl HeapObject {
    /// Returns the content.
    pub fn bytes(&self) -> &[u8] {
        &self.collection.bytes[self.range.clone()]
    }
}

#[derive(Debug)]
struct Collection {
    bytes: Vec<u8>,
    /// Index and byte range of each object, sorted by index.
    objects: Vec<(u16, Range<usize>)>,
}

impl<'f> GlobalHeap<'f> {
    /// Creates the heap of `file`, with a cache of at most `limit_len_bytes`.
    pub fn new(file: &'f InputFile, encoding: Encoding, limit_len_bytes: u64) -> Self {
        // Limited by bytes, not by entries: see `keep`.
        Self {
            file,
            encoding,
            limit_len_bytes,
            cached_len_bytes: 0,
            collections: lru::LruCache::unbounded(),
            is_checked: false,
        }
    }

    /// Returns the file that holds the heap.
    pub fn file(&self) -> &'f InputFile {
        self.file
    }

    /// Returns how the file encodes addresses.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns object `index` of the collection at absolute file offset `address`.
    pub fn object(&mut self, address: u64, index: u32) -> Result<HeapObject> {
        let collection = match self.collections.get(&address) {
            Some(collection) => Arc::clone(collection),
            None => self.load(address)?,
        };
        let found = u16::try_from(index)
            .ok()
            .and_then(|index| collection.objects.binary_search_by_key(&index, |object| object.0).ok())
            .map(|at| collection.objects[at].1.clone());
        match found {
            Some(range) => Ok(HeapObject { collection, range }),
            None => Err(Hdf5Error::Malformed {
                path: self.file.path().to_path_buf(),
                address,
                what: format!("{WHAT}: no object {index}"),
            }),
        }
    }

    fn load(&mut self, address: u64) -> Result<Arc<Collection>> {
        self.check()?;
        let header_len = 8 + self.encoding.length_len();
        let mut header = [0; 16];
        let header = &mut header[..header_len];
        self.file.read_exact_at(address, header, WHAT)?;
        let len = collection_len(header, address, &self.encoding).in_file(self.file.path())?;
        if len > MAX_COLLECTION_LEN_BYTES {
            return Err(Hdf5Error::Limit {
                path: self.file.path().to_path_buf(),
                what: format!("a {WHAT} of {len} bytes"),
                limit: MAX_COLLECTION_LEN_BYTES,
            });
        }
        self.file.check_range(address, len, WHAT)?;
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(address, &mut bytes, WHAT)?;
        let objects = objects(&bytes, address, &self.encoding).in_file(self.file.path())?;
        let collection = Arc::new(Collection { bytes, objects });
        self.keep(address, Arc::clone(&collection));
        Ok(collection)
    }

    /// Refuses files that this reader does not support, such as those with a metadata cache image. It may hold newer
    /// collections than their regular places. libhdf5 reads the metadata of such a file, so its heap is found here.
    fn check(&mut self) -> Result<()> {
        if !self.is_checked {
            match Superblock::read(self.file) {
                Err(error) if error.is_unsupported() => return Err(error),
                _ => self.is_checked = true,
            }
        }
        Ok(())
    }

    fn keep(&mut self, address: u64, collection: Arc<Collection>) {
        self.cached_len_bytes += collection.bytes.len() as u64;
        if let Some((_, before)) = self.collections.push(address, collection) {
            self.cached_len_bytes -= before.bytes.len() as u64;
        }
        while self.cached_len_bytes > self.limit_len_bytes
            && self.collections.len() > 1
            && let Some((_, oldest)) = self.collections.pop_lru()
        {
            self.cached_len_bytes -= oldest.bytes.len() as u64;
        }
    }
}

fn collection_len(header: &[u8], address: u64, encoding: &Encoding) -> Result<u64, Defect> {
    let mut cursor = Cursor::new(header, address, WHAT);
    cursor.signature(b"GCOL")?;
    cursor.version(1)?;
    cursor.skip(3)?;
    let len = cursor.length(encoding)?;
    if len < header.len() as u64 {
        return Err(cursor.malformed(format!("length {len} is too short")));
    }
    Ok(len)
}

/// Returns the objects in a collection: their numbers and byte ranges.
fn objects(bytes: &[u8], address: u64, encoding: &Encoding) -> Result<Vec<(u16, Range<usize>)>, Defect> {
    let header_len = align(8 + encoding.length_len());
    let mut objects = Vec::new();
    let mut cursor = Cursor::new(bytes, address, WHAT);
    // Collection and object headers have the same length; a remainder too short for a header is unused.
    cursor.skip(header_len.min(bytes.len()))?;
    while cursor.remaining() >= header_len {
        let start = cursor.position();
        let index = cursor.u16()?;
        cursor.skip(6)?;
        let len = cursor.length(encoding)?;
        let begin = start + header_len;
        if index == 0 {
            // Free space. Its length includes its header, and it extends to the end.
            let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len)).unwrap_or(usize::MAX);
            if end >= bytes.len() {
                break;
            }
            if end < begin {
                // With a length of 0, libhdf5 would find the same entry again and again.
                return Err(cursor.malformed(format!("free space of {len} bytes")));
            }
            // libhdf5 continues after it.
            cursor.skip(end - begin)?;
            continue;
        }
        let content =
            usize::try_from(len).ok().and_then(|len| begin.checked_add(len)).filter(|&end| end <= bytes.len());
        let Some(end) = content else {
            return Err(cursor.malformed(format!("object {index} of {len} bytes reaches beyond the collection")));
        };
        objects.push((index, begin..end));
        cursor.skip(align(end).min(bytes.len()) - cursor.position())?;
    }
    objects.sort_unstable_by_key(|object| object.0);
    match objects.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        None => Ok(objects),
        Some(pair) => Err(cursor.malformed(format!("duplicate object {}", pair[0].0))),
    }
}

/// Rounds up to a multiple of 8 bytes, to which headers and objects are padded.
fn align(len: usize) -> usize {
    len.div_ceil(8) * 8
}
