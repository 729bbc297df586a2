//! Conversion of stored elements to canonical bytes.

use super::{NULL_STRING, ObjectPaths, selection};
use crate::error::{Hdf5Error, Result};
use crate::heap::{GlobalHeap, HeapObject};
use crate::model::{FileTree, InlineData, ReferenceKind, TypeClass};
use crate::native::cursor::InFile;
use crate::native::{Cursor, Encoding};
use crate::source::InputFile;
use std::borrow::Cow;

/// Cache size for heap collections: enough for a worker that walks two neighbouring regions of the heap.
const HEAP_LEN_BYTES: u64 = 4 << 20;

/// Resolver of the pointers in stored elements of one file, to heap objects and to objects of the file.
#[derive(Debug)]
pub struct Resolver<'a> {
    heap: GlobalHeap<'a>,
    tree: &'a FileTree,
    /// Paths of the objects, which are built for the first reference because most files have none.
    paths: Option<ObjectPaths>,
    /// Heap bytes that the current call may still follow.
    left_len_bytes: u64,
    dangling: DanglingReferences,
}

/// Treatment of references that lead to no object of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DanglingReferences {
    /// Dangling references are errors.
    Refused,
    /// Dangling references become null references. The variant holds their number so far.
    Null(u64),
}

impl<'a> Resolver<'a> {
    /// Creates a resolver for elements of `file`, whose metadata is `tree`.
    pub fn new(file: &'a InputFile, tree: &'a FileTree) -> Self {
        let heap = GlobalHeap::new(file, Encoding::of(tree), HEAP_LEN_BYTES);
        Self { heap, tree, paths: None, left_len_bytes: 0, dangling: DanglingReferences::Refused }
    }

    /// Appends the canonical bytes of `elements`, which are stored elements of `class`.
    ///
    /// # Errors
    /// If an element has an invalid target (a dangling reference, a heap object that does not exist or has a different
    /// length), the elements together point to more bytes than the file could hold, or the type is a reference of HDF5
    /// 1.12 or later.
    pub fn canonical(&mut self, class: &TypeClass, elements: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.limit_followed_bytes();
        append_items(class, elements, self, out)
    }

    /// Limits the heap bytes that the elements of a call may follow. libhdf5 stores a heap object for each element. With
    /// objects shared by nested sequences, a small file could represent any number of bytes; the limit of twice the
    /// file's length leaves room for valid files and prevents that.
    fn limit_followed_bytes(&mut self) {
        self.left_len_bytes = self.heap.file().len_bytes().saturating_mul(2);
    }

    /// Returns the canonical bytes of `elements` piece by piece; a piece consists of whole rows of `row_len_bytes`. The
    /// length of the bytes is only known as they are read.
    pub fn rows<'r>(
        &'r mut self,
        class: &'r TypeClass,
        elements: &'r [u8],
        row_len_bytes: usize,
    ) -> CanonicalRows<'r, 'a> {
        self.limit_followed_bytes();
        CanonicalRows { resolver: self, class, rest: elements, row_len_bytes }
    }

    /// Returns the canonical bytes of values stored in metadata: values of an attribute or compact dataset, or a fill
    /// value.
    ///
    /// # Errors
    /// As for [`Resolver::canonical`].
    pub fn canonical_inline<'d>(&mut self, class: &TypeClass, data: &'d InlineData) -> Result<Cow<'d, [u8]>> {
        match data {
            InlineData::Stored(elements) if class.is_file_local() => {
                let mut out = Vec::new();
                self.canonical(class, elements, &mut out)?;
                Ok(Cow::Owned(out))
            }
            InlineData::Stored(bytes) | InlineData::Canonical(bytes) => Ok(Cow::Borrowed(bytes)),
        }
    }

    /// Like [`Resolver::canonical_inline`], but replaces references to objects that do not exist by null references,
    /// and returns their number. HDF5 leaves such references when an object is deleted.
    ///
    /// # Errors
    /// As for [`Resolver::canonical`], except for dangling references.
    pub fn canonical_inline_or_null(&mut self, class: &TypeClass, data: &InlineData) -> Result<(Vec<u8>, u64)> {
        self.dangling = DanglingReferences::Null(0);
        let canonical = self.canonical_inline(class, data).map(Cow::into_owned);
        let found = std::mem::replace(&mut self.dangling, DanglingReferences::Refused);
        Ok((canonical?, if let DanglingReferences::Null(count) = found { count } else { 0 }))
    }

    fn paths(&mut self) -> &ObjectPaths {
        self.paths.get_or_insert_with(|| ObjectPaths::new(self.tree))
    }

    fn malformed(&self, address: u64, what: String) -> Hdf5Error {
        Hdf5Error::Malformed { path: self.heap.file().path().to_path_buf(), address, what }
    }
}

/// Canonical bytes of consecutive rows of stored elements, resolved as they are taken. All rows together may follow as
/// many heap bytes as those of one [`Resolver::canonical`].
#[derive(Debug)]
pub struct CanonicalRows<'r, 'a> {
    resolver: &'r mut Resolver<'a>,
    class: &'r TypeClass,
    rest: &'r [u8],
    row_len_bytes: usize,
}

impl CanonicalRows<'_, '_> {
    /// Appends the canonical bytes of the next rows to `out` until it has at least `enough_len_bytes`, and returns the
    /// number of rows: 0 only after the last one.
    ///
    /// # Errors
    /// As for [`Resolver::canonical`].
    pub fn append_until(&mut self, enough_len_bytes: usize, out: &mut Vec<u8>) -> Result<u64> {
        let mut rows = 0;
        while !self.rest.is_empty() && (rows == 0 || out.len() < enough_len_bytes) {
            let (row, rest) = self.rest.split_at(self.row_len_bytes.clamp(1, self.rest.len()));
            append_items(self.class, row, self.resolver, out)?;
            self.rest = rest;
            rows += 1;
        }
        Ok(rows)
    }
}

fn append_items(class: &TypeClass, items: &[u8], resolver: &mut Resolver<'_>, out: &mut Vec<u8>) -> Result<()> {
    if !class.is_file_local() {
        out.extend_from_slice(items);
        return Ok(());
    }
    let item_len = usize::try_from(class.len_bytes()).unwrap_or(usize::MAX);
    if item_len == 0 || !items.len().is_multiple_of(item_len) {
        return Err(
            resolver.malformed(0, format!("{} bytes are not a multiple of the element size {item_len}", items.len()))
        );
    }
    items.chunks_exact(item_len).try_for_each(|item| append_item(class, item, resolver, out))
}

/// Appends one element of a file-local type. Recursion is as deep as the type, whose depth its reader has limited.
fn append_item(class: &TypeClass, item: &[u8], resolver: &mut Resolver<'_>, out: &mut Vec<u8>) -> Result<()> {
    match class {
        TypeClass::VariableString { .. } => match heap_content(item, 1, resolver)? {
            HeapContent::Null => out.extend_from_slice(&NULL_STRING.to_le_bytes()),
            HeapContent::Empty => append_bytes(b"", out),
            HeapContent::Items(_, object) => {
                append_bytes(object.bytes().split(|&byte| byte == 0).next().unwrap_or_default(), out);
            }
        },
        TypeClass::Sequence { base, .. } => {
            let HeapContent::Items(count, object) = heap_content(item, base.len_bytes(), resolver)? else {
                out.extend_from_slice(&0_u64.to_le_bytes());
                return Ok(());
            };
            out.extend_from_slice(&u64::from(count).to_le_bytes());
            append_items(base, object.bytes(), resolver, out)?;
        }
        TypeClass::Compound { members, .. } => {
            for member in members {
                let start = member.offset_bytes as usize;
                let end = usize::try_from(member.class.len_bytes()).ok().and_then(|len| start.checked_add(len));
                let Some(bytes) = end.and_then(|end| item.get(start..end)) else {
                    return Err(resolver.malformed(0, "a compound's member lies outside of it".to_owned()));
                };
                if member.class.is_file_local() {
                    append_item(&member.class, bytes, resolver, out)?;
                } else {
                    out.extend_from_slice(bytes);
                }
            }
        }
        TypeClass::Array { base, .. } | TypeClass::Enum { base, .. } | TypeClass::Complex { base, .. } => {
            append_items(base, item, resolver, out)?;
        }
        TypeClass::Reference(ReferenceKind::Object) => append_path(item, resolver, out).map(drop)?,
        TypeClass::Reference(ReferenceKind::Region) => append_region(item, resolver, out)?,
        TypeClass::Reference(ReferenceKind::Revised { kind, .. }) => {
            return Err(Hdf5Error::Unsupported {
                path: resolver.heap.file().path().to_path_buf(),
                address: 0,
                what: format!("references of HDF5 1.12 and later (kind {kind})"),
            });
        }
        _ => out.extend_from_slice(item),
    }
    Ok(())
}

/// Target of the descriptor of a variable-length element.
enum HeapContent {
    /// No address: a null string or a sequence without items.
    Null,
    /// No items.
    Empty,
    /// Number of items, and the heap object that holds them.
    Items(u32, HeapObject),
}

/// Returns the heap object named by the descriptor `item`, whose items have `base_len` bytes.
fn heap_content(item: &[u8], base_len: u64, resolver: &mut Resolver<'_>) -> Result<HeapContent> {
    let encoding = resolver.heap.encoding();
    let path = resolver.heap.file().path();
    let mut cursor = Cursor::new(item, 0, "variable-length element");
    let count = cursor.u32().in_file(path)?;
    let null = cursor.clone().uint(encoding.address_len()).in_file(path)? == 0;
    let address = cursor.file_address(&encoding).in_file(path)?;
    let index = cursor.u32().in_file(path)?;
    let Some(address) = address.filter(|_| !null) else { return Ok(HeapContent::Null) };
    if count == 0 {
        return Ok(HeapContent::Empty);
    }
    let object = resolver.heap.object(address, index)?;
    let (len, needed) = (object.bytes().len() as u64, u64::from(count).saturating_mul(base_len));
    if len != needed || base_len == 0 {
        return Err(resolver.malformed(
            address,
            format!("{count} items of {base_len} bytes in heap object {index}, which has {len} bytes"),
        ));
    }
    follow(resolver, len)?;
    Ok(HeapContent::Items(count, object))
}

/// Deducts followed heap bytes from the limit.
fn follow(resolver: &mut Resolver<'_>, len: u64) -> Result<()> {
    match resolver.left_len_bytes.checked_sub(len) {
        Some(left) => resolver.left_len_bytes = left,
        None => {
            return Err(Hdf5Error::Limit {
                path: resolver.heap.file().path().to_path_buf(),
                what: "the total length of variable-length values that share their content".to_owned(),
                limit: resolver.heap.file().len_bytes().saturating_mul(2),
            });
        }
    }
    Ok(())
}

fn append_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends the path of the object whose stored address is at the start of `bytes`. Returns the object's absolute
/// address, or `None` for a null reference.
fn append_path(bytes: &[u8], resolver: &mut Resolver<'_>, out: &mut Vec<u8>) -> Result<Option<u64>> {
    let encoding = resolver.heap.encoding();
    let mut cursor = Cursor::new(bytes, 0, "object reference");
    let null = cursor.clone().uint(encoding.address_len()).in_file(resolver.heap.file().path())? == 0;
    let address = cursor.file_address(&encoding).in_file(resolver.heap.file().path())?;
    let start = out.len();
    out.extend_from_slice(&0_u64.to_le_bytes());
    let Some(address) = address.filter(|_| !null) else { return Ok(None) };
    if resolver.paths().append(address, out).is_none() {
        if let DanglingReferences::Null(count) = &mut resolver.dangling {
            *count += 1;
            return Ok(None);
        }
        if resolver.tree.objects.iter().any(|object| object.address == address) {
            return Err(Hdf5Error::LeftOut { path: resolver.heap.file().path().to_path_buf(), address });
        }
        return Err(Hdf5Error::Dangling { path: resolver.heap.file().path().to_path_buf(), address });
    }
    let len = (out.len() - start - 8) as u64;
    out[start..start + 8].copy_from_slice(&len.to_le_bytes());
    Ok(Some(address))
}

fn append_region(item: &[u8], resolver: &mut Resolver<'_>, out: &mut Vec<u8>) -> Result<()> {
    let encoding = resolver.heap.encoding();
    let file = resolver.heap.file();
    let mut cursor = Cursor::new(item, 0, "region reference");
    let null = cursor.clone().uint(encoding.address_len()).in_file(file.path())? == 0;
    let address = cursor.file_address(&encoding).in_file(file.path())?;
    let index = cursor.u32().in_file(file.path())?;
    let Some(address) = address.filter(|_| !null) else {
        append_bytes(b"", out);
        return Ok(());
    };
    let object = resolver.heap.object(address, index)?;
    let bytes = object.bytes();
    follow(resolver, bytes.len() as u64)?;
    let Some(dataset) = append_path(bytes, resolver, out)? else {
        if resolver.dangling != DanglingReferences::Refused {
            return Ok(());
        }
        return Err(resolver.malformed(address, "a region reference that leads to no dataset".to_owned()));
    };
    let Some(rank) = resolver.paths().rank(dataset) else {
        return Err(resolver.malformed(address, "a region reference to an object that is not a dataset".to_owned()));
    };
    let mut cursor = Cursor::new(bytes, address, "region reference");
    cursor.skip(encoding.address_len()).in_file(file.path())?;
    selection::append(&mut cursor, rank, out).in_file(file.path())
}
