//! Reads values with libhdf5, and returns them as stored in the file or in canonical form.
//!
//! The memory type is always the file's own type, so numbers are never converted. Elements of file-local types are read
//! as pointers and addresses and returned as canonical bytes (see module `logical`).
//!
//! Invariant: no buffer is longer than the answer may be, whatever extents the file states.

use super::types::{self, OpenType};
use super::{OpenDataset, OpenFile, address_of, dataspaces, unsupported};
use crate::child::protocol::ObjectName;
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle};
use crate::logical::NULL_STRING;
use crate::model::{Dataspace, InlineData, ReferenceKind, TypeClass};
use hdf5_metno_sys::h5a::H5Aread;
use hdf5_metno_sys::h5d::H5Dread;
use hdf5_metno_sys::h5p::{H5P_DEFAULT, H5Pget_fill_value};
use hdf5_metno_sys::h5r::{H5R_type_t, H5Rdereference2, H5Rget_region};
use hdf5_metno_sys::h5s::{
    H5S_sel_type, H5Screate_simple, H5Sget_select_elem_npoints, H5Sget_select_elem_pointlist,
    H5Sget_select_hyper_blocklist, H5Sget_select_hyper_nblocks, H5Sget_select_type, H5Sget_simple_extent_ndims,
};
use hdf5_metno_sys::h5t::H5Treclaim;
use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::ptr;

/// Returns the values in all or some rows of axis 0 of a dataset. The dataset stays open for the next request.
pub(super) fn of_dataset(file: &OpenFile, object: &ObjectName, rows: Option<Range<u64>>) -> Result<Vec<u8>> {
    let mut dataset = OpenDataset::next(file, file.last_read.take(), object)?;
    let name = dataset.name().to_vec();
    let call = Call::of_object(&file.path, &name);
    let count = dataset.select(rows.clone(), call)?;
    // A size beyond the longest answer is refused before reading.
    let len_bytes = count.saturating_mul(dataset.element_len_bytes());
    if len_bytes > file.answer_limit_len_bytes {
        return Err(too_long(call, file.answer_limit_len_bytes));
    }
    let allowed = file.cpu_time.allow_values(len_bytes.min(file.answer_limit_len_bytes));
    allowed.map_err(|source| Hdf5Error::Io {
        path: file.path.clone(),
        operation: "limit the CPU time".to_owned(),
        source,
    })?;
    let mut values = Vec::new();
    for piece in dataset.pieces(rows) {
        dataset = dataset.ready_for(file, piece.as_ref())?;
        let count = dataset.select(piece, call)?;
        let limit_len_bytes = file.answer_limit_len_bytes.saturating_sub(values.len() as u64);
        let data = read_dataset(file, dataset.handle(), dataset.space(), count, limit_len_bytes, call)?;
        dataset.check_descriptors(call)?;
        append_piece(&mut values, data.into_bytes(), file, call)?;
    }
    file.last_read.replace(Some(dataset));
    Ok(values)
}

/// Appends the values of a piece; the first piece is not copied.
fn append_piece(values: &mut Vec<u8>, piece: Vec<u8>, file: &OpenFile, call: Call<'_>) -> Result<()> {
    if values.is_empty() {
        *values = piece;
    } else if (values.len() + piece.len()) as u64 > file.answer_limit_len_bytes {
        return Err(too_long(call, file.answer_limit_len_bytes));
    } else {
        values.extend_from_slice(&piece);
    }
    Ok(())
}

/// Returns the values of a compact dataset.
pub(super) fn of_compact(file: &OpenFile, dataset: &Handle, call: Call<'_>) -> Result<InlineData> {
    let space = dataspaces::of_dataset(dataset, call)?;
    let count = dataspaces::extent(file, &space, call)?.element_count().unwrap_or(u64::MAX);
    read_dataset(file, dataset, &space, count, inline_limit_len_bytes(file), call)
}

fn read_dataset(
    file: &OpenFile,
    dataset: &Handle,
    space: &Handle,
    count: u64,
    limit_len_bytes: u64,
    call: Call<'_>,
) -> Result<InlineData> {
    let datatype = types::of_dataset(file, dataset, call)?;
    let reader = ElementReader { file, holder: dataset, datatype: &datatype, limit_len_bytes, call };
    reader.read(count, |memory_space, buffer| {
        // SAFETY: everything is open; the buffer holds `count` elements of the memory type, as many as both dataspaces
        // select.
        let status =
            unsafe { H5Dread(dataset.id(), datatype.handle.id(), memory_space.id(), space.id(), H5P_DEFAULT, buffer) };
        call.status("H5Dread", status).map(drop)
    })
}

/// Returns the value of an attribute.
pub(super) fn of_attribute(
    file: &OpenFile,
    attribute: &Handle,
    dataspace: &Dataspace,
    datatype: &OpenType,
    call: Call<'_>,
) -> Result<InlineData> {
    let count = dataspace.element_count().unwrap_or(u64::MAX);
    let limit_len_bytes = inline_limit_len_bytes(file);
    ElementReader { file, holder: attribute, datatype, limit_len_bytes, call }.read(count, |_, buffer| {
        // SAFETY: the attribute is open; the buffer holds all its elements in the memory type.
        call.status("H5Aread", unsafe { H5Aread(attribute.id(), datatype.handle.id(), buffer) }).map(drop)
    })
}

/// Returns the fill value of a dataset that has one.
pub(super) fn of_fill(
    file: &OpenFile,
    dataset: &Handle,
    list: &Handle,
    datatype: &OpenType,
    call: Call<'_>,
) -> Result<InlineData> {
    let limit_len_bytes = inline_limit_len_bytes(file);
    ElementReader { file, holder: dataset, datatype, limit_len_bytes, call }.read(1, |_, buffer| {
        // SAFETY: the list is open; the buffer holds one element of the memory type.
        let status = unsafe { H5Pget_fill_value(list.id(), datatype.handle.id(), buffer) };
        call.status("H5Pget_fill_value", status).map(drop)
    })
}

/// Returns the maximum buffer size for elements stored in metadata: each is in the file once, and a reference of HDF5
/// 1.12 takes four times its stored length in memory.
fn inline_limit_len_bytes(file: &OpenFile) -> u64 {
    file.len_bytes.saturating_mul(4).min(file.answer_limit_len_bytes)
}

/// Reader of elements of one type from libhdf5, which it converts to the form of the answer.
struct ElementReader<'a> {
    file: &'a OpenFile,
    /// Dataset or attribute that holds the elements, in whose file references are resolved.
    holder: &'a Handle,
    datatype: &'a OpenType,
    /// Maximum size of the buffer of elements.
    limit_len_bytes: u64,
    call: Call<'a>,
}

impl ElementReader<'_> {
    /// Reads `count` elements through `fill`, which receives a dataspace of that many elements and a zeroed buffer.
    fn read(&self, count: u64, fill: impl FnOnce(&Handle, *mut c_void) -> Result<()>) -> Result<InlineData> {
        let file_local = self.datatype.stored.class.is_file_local();
        let form = if file_local { InlineData::Canonical } else { InlineData::Stored };
        if count == 0 {
            return Ok(form(Vec::new()));
        }
        let element_len = self.datatype.memory.len_bytes();
        let len_bytes = count.checked_mul(element_len).filter(|&len| len <= self.limit_len_bytes);
        let Some(len_bytes) = len_bytes else { return Err(self.too_long()) };
        let mut buffer = Vec::new();
        // The address space of this process is limited; exceeding it must not abort the process.
        buffer.try_reserve_exact(len_bytes as usize).map_err(|_| self.no_memory(len_bytes))?;
        buffer.resize(len_bytes as usize, 0_u8);
        // SAFETY: one dimension, which is not zero; we own the new identifier.
        let space =
            unsafe { self.call.handle("H5Screate_simple", H5Screate_simple(1, &raw const count, ptr::null())) }?;
        fill(&space, buffer.as_mut_ptr().cast())?;
        if !file_local {
            return Ok(form(buffer));
        }
        let mut out = Vec::new();
        // SAFETY: libhdf5 has filled the buffer with whole elements of the memory type.
        let result = buffer
            .chunks_exact(element_len as usize)
            .try_for_each(|element| unsafe { self.canonical(&self.datatype.memory, element.as_ptr(), &mut out) });
        // SAFETY: libhdf5 allocated the elements, which are not used again.
        let freed =
            unsafe { H5Treclaim(self.datatype.handle.id(), space.id(), H5P_DEFAULT, buffer.as_mut_ptr().cast()) };
        result?;
        self.call.status("H5Treclaim", freed)?;
        Ok(form(out))
    }

    /// Appends the canonical bytes of one element.
    ///
    /// # Safety
    /// `element` must point at an element of the memory form `class`, whose pointers libhdf5 has set.
    unsafe fn canonical(&self, class: &TypeClass, element: *const u8, out: &mut Vec<u8>) -> Result<()> {
        if out.len() as u64 > self.file.answer_limit_len_bytes {
            return Err(self.too_long());
        }
        // SAFETY: all reads are inside the element, according to the layout of its class; elements need not be aligned.
        unsafe {
            match class {
                TypeClass::VariableString { .. } => {
                    let text = element.cast::<*const c_char>().read_unaligned();
                    if text.is_null() {
                        out.extend_from_slice(&NULL_STRING.to_le_bytes());
                    } else {
                        append(CStr::from_ptr(text).to_bytes(), out);
                    }
                }
                TypeClass::Sequence { base, .. } => {
                    let (len, items) = element.cast::<(usize, *const u8)>().read_unaligned();
                    out.extend_from_slice(&(len as u64).to_le_bytes());
                    self.canonical_items(base, items, len, out)?;
                }
                TypeClass::Array { base, dims } if base.is_file_local() => {
                    let len = dims.iter().map(|&dim| dim as usize).product();
                    self.canonical_items(base, element, len, out)?;
                }
                TypeClass::Compound { members, .. } if class.is_file_local() => {
                    for member in members {
                        self.canonical(&member.class, element.add(member.offset_bytes as usize), out)?;
                    }
                }
                TypeClass::Reference(ReferenceKind::Object) => {
                    self.append_path_of_reference(element.cast::<u64>().read_unaligned(), out)?;
                }
                TypeClass::Reference(ReferenceKind::Region) => {
                    self.append_region(element.cast::<[u8; 12]>().read_unaligned(), out)?;
                }
                TypeClass::Reference(ReferenceKind::Revised { kind, .. }) => {
                    let what = format!("references of HDF5 1.12 (kind {kind})");
                    return Err(unsupported(self.call, what));
                }
                _ => out.extend_from_slice(std::slice::from_raw_parts(element, class.len_bytes() as usize)),
            }
        }
        Ok(())
    }

    /// Appends the canonical bytes of `len` consecutive elements.
    ///
    /// # Safety
    /// As for [`Self::canonical`], for each element.
    unsafe fn canonical_items(&self, class: &TypeClass, items: *const u8, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let item_len = class.len_bytes() as usize;
        if !class.is_file_local() && len > 0 {
            // SAFETY: by our contract.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(items, len * item_len) });
            return Ok(());
        }
        // SAFETY: by our contract.
        (0..len).try_for_each(|number| unsafe { self.canonical(class, items.add(number * item_len), out) })
    }

    /// Appends the path of the object whose header is at `relative` (0 for a null reference).
    fn append_path_of_reference(&self, relative: u64, out: &mut Vec<u8>) -> Result<()> {
        if relative == 0 || relative == u64::MAX {
            append(b"", out);
            return Ok(());
        }
        self.append_path(relative.wrapping_add(self.file.userblock_len_bytes), out)
    }

    fn append_path(&self, address: u64, out: &mut Vec<u8>) -> Result<()> {
        let Some(path) = self.file.path_of(address) else {
            return Err(Hdf5Error::Dangling { path: self.call.path.to_path_buf(), address });
        };
        append(path, out);
        Ok(())
    }

    fn append_region(&self, reference: [u8; 12], out: &mut Vec<u8>) -> Result<()> {
        if reference == [0; 12] || reference[..8] == [0xff; 8] {
            append(b"", out);
            return Ok(());
        }
        let (kind, call) = (H5R_type_t::H5R_DATASET_REGION1, self.call);
        // SAFETY: the holder is open; the reference has the 12 bytes of its kind; we own the new identifiers.
        let (object, space) = unsafe {
            let reference = reference.as_ptr().cast();
            let object = H5Rdereference2(self.holder.id(), H5P_DEFAULT, kind, reference);
            let object = call.handle("H5Rdereference", object)?;
            (object, call.handle("H5Rget_region", H5Rget_region(self.holder.id(), kind, reference))?)
        };
        self.append_path(address_of(self.file, &object, call)?, out)?;
        append_selection(&space, out, call)
    }

    fn no_memory(&self, len_bytes: u64) -> Hdf5Error {
        let path = self.call.path.to_path_buf();
        Hdf5Error::Limit {
            path,
            what: format!("memory for {len_bytes} bytes of values"),
            limit: self.file.memory_len_bytes,
        }
    }

    fn too_long(&self) -> Hdf5Error {
        too_long(self.call, self.file.answer_limit_len_bytes)
    }
}

fn too_long(call: Call<'_>, limit: u64) -> Hdf5Error {
    let path = call.path.to_path_buf();
    Hdf5Error::Limit { path, what: "the length of values in one answer".to_owned(), limit }
}

/// Appends a length and the bytes.
fn append(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends kind, rank, count and coordinates of a selection.
fn append_selection(space: &Handle, out: &mut Vec<u8>, call: Call<'_>) -> Result<()> {
    // SAFETY: a dataspace with a selection is open; the call returns one of the enumeration's values.
    let (kind, rank) = unsafe { (H5Sget_select_type(space.id()), H5Sget_simple_extent_ndims(space.id())) };
    let rank = call.status("H5Sget_simple_extent_ndims", rank)? as usize;
    let mut head = |kind: u8, count: u64| {
        out.push(kind);
        out.extend_from_slice(&(rank as u32).to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
    };
    let coordinates = match kind {
        H5S_sel_type::H5S_SEL_NONE => {
            head(0, 0);
            Vec::new()
        }
        H5S_sel_type::H5S_SEL_POINTS => {
            // SAFETY: the selection is of points.
            let count =
                call.count("H5Sget_select_elem_npoints", unsafe { H5Sget_select_elem_npoints(space.id()) as isize })?;
            head(1, count as u64);
            let mut coordinates = vec![0; count * rank];
            // SAFETY: one coordinate per point and dimension.
            let status = unsafe { H5Sget_select_elem_pointlist(space.id(), 0, count as u64, coordinates.as_mut_ptr()) };
            call.status("H5Sget_select_elem_pointlist", status)?;
            coordinates
        }
        H5S_sel_type::H5S_SEL_HYPERSLABS => {
            // SAFETY: the selection is of blocks.
            let count =
                call.count("H5Sget_select_hyper_nblocks", unsafe { H5Sget_select_hyper_nblocks(space.id()) as isize })?;
            head(2, count as u64);
            let mut coordinates = vec![0; count * rank * 2];
            // SAFETY: two corners per block.
            let status =
                unsafe { H5Sget_select_hyper_blocklist(space.id(), 0, count as u64, coordinates.as_mut_ptr()) };
            call.status("H5Sget_select_hyper_blocklist", status)?;
            coordinates
        }
        H5S_sel_type::H5S_SEL_ALL => {
            head(3, 0);
            Vec::new()
        }
        _ => return Err(call.error("H5Sget_select_type")),
    };
    for coordinate in coordinates {
        out.extend_from_slice(&coordinate.to_le_bytes());
    }
    Ok(())
}
