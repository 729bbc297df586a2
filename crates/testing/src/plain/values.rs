//! Conversion between canonical bytes and the memory form that libhdf5 reads and writes.

use super::types;
use crate::canonical::{Cursor, Selection, push_region, push_sized, push_string};
use hdf5_metno_sys::h5d::{H5Dget_space, H5Dopen2};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5r::{H5R_type_t, H5Rcreate, H5Rget_name, H5Rget_region};
use hdf5_metno_sys::h5s::*;
use hdf5_metno_sys::h5t::hvl_t;
use raddle_hdf5::Result;
use raddle_hdf5::ffi::{Call, Handle, Library};
use raddle_hdf5::model::{ReferenceKind, TypeClass};
use std::ffi::{CStr, c_char};

/// Form of an element in memory.
#[derive(Debug)]
pub enum ElementForm {
    /// The stored bytes, of this length.
    Fixed(usize),
    /// A `char *`.
    Text,
    /// An `hvl_t`.
    Sequence(Box<ElementForm>),
    /// A compound: its size, and the offset and form of each member.
    Record(usize, Vec<(usize, ElementForm)>),
    /// This many items, one after another.
    Array(usize, Box<ElementForm>),
    /// An `hobj_ref_t`.
    Object,
    /// An `hdset_reg_ref_t`.
    Region,
}

/// Alignment of members of compounds, as for pointers.
const ALIGNMENT_BYTES: usize = 8;

impl ElementForm {
    /// Returns the size of an element in memory.
    pub fn len_bytes(&self) -> usize {
        match self {
            Self::Fixed(len_bytes) | Self::Record(len_bytes, _) => *len_bytes,
            Self::Text => size_of::<*const c_char>(),
            Self::Sequence(_) => size_of::<hvl_t>(),
            Self::Array(count, item) => count * item.len_bytes(),
            Self::Object => size_of::<u64>(),
            Self::Region => REGION_LEN_BYTES,
        }
    }

    /// Returns whether libhdf5 allocates memory when it reads such elements.
    pub fn has_allocations(&self) -> bool {
        match self {
            Self::Text | Self::Sequence(_) => true,
            Self::Record(_, members) => members.iter().any(|(_, member)| member.has_allocations()),
            Self::Array(_, item) => item.has_allocations(),
            Self::Fixed(_) | Self::Object | Self::Region => false,
        }
    }
}

/// Size of an `hdset_reg_ref_t`.
const REGION_LEN_BYTES: usize = 12;

/// Returns the memory form of a class and the libhdf5 type that describes it.
pub fn memory_type(library: &Library, call: Call<'_>, class: &TypeClass) -> Result<(ElementForm, Handle)> {
    if !class.is_file_local() {
        return Ok((ElementForm::Fixed(class.len_bytes() as usize), types::build(library, call, class)?));
    }
    match class {
        TypeClass::Sequence { base, .. } => {
            let (form, item) = memory_type(library, call, base)?;
            // SAFETY: the lock is held, `item` is open.
            let handle = unsafe {
                let id = hdf5_metno_sys::h5t::H5Tvlen_create(item.id());
                call.handle("H5Tvlen_create", id)?
            };
            Ok((ElementForm::Sequence(Box::new(form)), handle))
        }
        TypeClass::Array { base, dims } => {
            let (form, item) = memory_type(library, call, base)?;
            let count = dims.iter().map(|&dim| dim as usize).product();
            Ok((ElementForm::Array(count, Box::new(form)), types::array(library, call, &item, dims)?))
        }
        TypeClass::Compound { members, .. } => {
            let (mut forms, mut handles, mut end) = (Vec::new(), Vec::new(), 0_usize);
            for member in members {
                let (form, handle) = memory_type(library, call, &member.class)?;
                handles.push((member.name.as_slice(), end, handle));
                let start = end;
                end = (end + form.len_bytes()).next_multiple_of(ALIGNMENT_BYTES);
                forms.push((start, form));
            }
            Ok((ElementForm::Record(end, forms), types::compound(library, call, end, &handles)?))
        }
        TypeClass::Reference(ReferenceKind::Object) => Ok((ElementForm::Object, types::build(library, call, class)?)),
        TypeClass::Reference(ReferenceKind::Region) => Ok((ElementForm::Region, types::build(library, call, class)?)),
        _ => Ok((ElementForm::Text, types::build(library, call, class)?)),
    }
}

/// Memory that elements point to, kept until they are written.
#[derive(Debug, Default)]
pub struct Arena {
    // In units of 8 bytes, so that pointers in items are aligned.
    blocks: Vec<Vec<u64>>,
}

impl Arena {
    fn keep(&mut self, bytes: &[u8]) -> usize {
        let mut block = vec![0_u64; bytes.len().div_ceil(8).max(1)];
        for (word, bytes) in block.iter_mut().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(padded);
        }
        let address = block.as_ptr().expose_provenance();
        self.blocks.push(block);
        address
    }
}

/// Appends the memory form of the next canonical element. References lead to objects of `file`.
#[expect(clippy::only_used_in_recursion, reason = "the library is the proof that its lock is held")]
pub fn to_memory(
    library: &Library,
    call: Call<'_>,
    file: &Handle,
    form: &ElementForm,
    from: &mut Cursor<'_>,
    arena: &mut Arena,
    out: &mut Vec<u8>,
) -> Result<()> {
    match form {
        ElementForm::Fixed(len_bytes) => out.extend_from_slice(from.take(*len_bytes)),
        ElementForm::Text => {
            let address = from.string().map_or(0, |text| arena.keep(&[text, b"\0"].concat()));
            out.extend_from_slice(&address.to_ne_bytes());
        }
        ElementForm::Sequence(item) => {
            let count = from.number();
            let mut items = Vec::new();
            for _ in 0..count {
                to_memory(library, call, file, item, from, arena, &mut items)?;
            }
            out.extend_from_slice(&(count as usize).to_ne_bytes());
            out.extend_from_slice(&if count == 0 { 0 } else { arena.keep(&items) }.to_ne_bytes());
        }
        ElementForm::Record(len_bytes, members) => {
            let start = out.len();
            for (offset, member) in members {
                out.resize(start + offset, 0);
                to_memory(library, call, file, member, from, arena, out)?;
            }
            out.resize(start + len_bytes, 0);
        }
        ElementForm::Array(count, item) => {
            for _ in 0..*count {
                to_memory(library, call, file, item, from, arena, out)?;
            }
        }
        ElementForm::Object => {
            let path = from.sized();
            let mut reference = [0_u8; 8];
            if !path.is_empty() {
                let name = call.c_string("H5Rcreate", path)?;
                // SAFETY: the lock is held, `file` is open, `reference` has the size of an object reference.
                call.status("H5Rcreate", unsafe {
                    let out = reference.as_mut_ptr().cast();
                    H5Rcreate(out, file.id(), name.as_ptr(), H5R_type_t::H5R_OBJECT1, -1)
                })?;
            }
            out.extend_from_slice(&reference);
        }
        ElementForm::Region => {
            let path = from.sized();
            let mut reference = [0_u8; REGION_LEN_BYTES];
            if !path.is_empty() {
                let name = call.c_string("H5Rcreate", path)?;
                let space = select(call, file, path, &from.selection())?;
                // SAFETY: the lock is held, `file` and `space` are open, `reference` has the size of a region
                // reference.
                call.status("H5Rcreate", unsafe {
                    let out = reference.as_mut_ptr().cast();
                    H5Rcreate(out, file.id(), name.as_ptr(), H5R_type_t::H5R_DATASET_REGION1, space.id())
                })?;
            }
            out.extend_from_slice(&reference);
        }
    }
    Ok(())
}

/// Returns the dataspace of the dataset at `path` with this selection.
fn select(call: Call<'_>, file: &Handle, path: &[u8], selection: &Selection) -> Result<Handle> {
    let name = call.c_string("H5Dopen2", path)?;
    // SAFETY: the lock is held, handles are open, and arrays of coordinates have the lengths of their counts.
    unsafe {
        let dataset = call.handle("H5Dopen2", H5Dopen2(file.id(), name.as_ptr(), H5P_DEFAULT))?;
        let space = call.handle("H5Dget_space", H5Dget_space(dataset.id()))?;
        match selection {
            Selection::None => call.status("H5Sselect_none", H5Sselect_none(space.id()))?,
            Selection::All => call.status("H5Sselect_all", H5Sselect_all(space.id()))?,
            Selection::Points(points) => {
                let (count, flat) = (points.len(), points.concat());
                let status = H5Sselect_elements(space.id(), H5S_seloper_t::H5S_SELECT_SET, count, flat.as_ptr());
                call.status("H5Sselect_elements", status)?
            }
            Selection::Blocks(blocks) => {
                call.status("H5Sselect_none", H5Sselect_none(space.id()))?;
                for (first, last) in blocks {
                    let ones = vec![1_u64; first.len()];
                    let size: Vec<u64> = first.iter().zip(last).map(|(first, last)| last - first + 1).collect();
                    let (start, none) = (first.as_ptr(), std::ptr::null());
                    let or = H5S_seloper_t::H5S_SELECT_OR;
                    let status = H5Sselect_hyperslab(space.id(), or, start, none, ones.as_ptr(), size.as_ptr());
                    call.status("H5Sselect_hyperslab", status)?;
                }
                0
            }
        };
        Ok(space)
    }
}

/// Appends the canonical bytes of one element in memory. `object` is any object of the file.
///
/// # Safety
/// `memory` must hold one element of `form`, as read by libhdf5. Memory that libhdf5 allocated for it must not have
/// been freed.
#[expect(clippy::only_used_in_recursion, reason = "the library is the proof that its lock is held")]
pub unsafe fn from_memory(
    library: &Library,
    call: Call<'_>,
    object: &Handle,
    form: &ElementForm,
    memory: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let word = |at: usize| {
        let mut bytes = [0; size_of::<usize>()];
        bytes.copy_from_slice(&memory[at..at + size_of::<usize>()]);
        usize::from_ne_bytes(bytes)
    };
    match form {
        ElementForm::Fixed(len_bytes) => out.extend_from_slice(&memory[..*len_bytes]),
        ElementForm::Text => {
            let text = std::ptr::with_exposed_provenance::<c_char>(word(0));
            // SAFETY: by contract null or a zero-terminated string allocated by libhdf5.
            push_string((!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes()), out);
        }
        ElementForm::Sequence(item) => {
            let (count, items) = (word(0), std::ptr::with_exposed_provenance::<u8>(word(size_of::<usize>())));
            out.extend_from_slice(&(count as u64).to_le_bytes());
            for number in 0..count {
                let len_bytes = item.len_bytes();
                // SAFETY: by contract `items` points to `count` elements of `item`.
                unsafe {
                    let item_memory = std::slice::from_raw_parts(items.add(number * len_bytes), len_bytes);
                    from_memory(library, call, object, item, item_memory, out)?;
                }
            }
        }
        ElementForm::Record(_, members) => {
            for (offset, member) in members {
                // SAFETY: a part of the caller's element.
                unsafe { from_memory(library, call, object, member, &memory[*offset..], out)? };
            }
        }
        ElementForm::Array(count, item) => {
            for number in 0..*count {
                // SAFETY: a part of the caller's element.
                unsafe { from_memory(library, call, object, item, &memory[number * item.len_bytes()..], out)? };
            }
        }
        ElementForm::Object => {
            if memory[..8].iter().all(|&byte| byte == 0) {
                push_sized(b"", out);
            } else {
                push_sized(&name_of(call, object, H5R_type_t::H5R_OBJECT1, memory)?, out);
            }
        }
        ElementForm::Region => {
            if memory[..REGION_LEN_BYTES].iter().all(|&byte| byte == 0) {
                push_sized(b"", out);
            } else {
                let path = name_of(call, object, H5R_type_t::H5R_DATASET_REGION1, memory)?;
                let (rank, selection) = selection_of(call, object, memory)?;
                push_region(&path, rank, &selection, out);
            }
        }
    }
    Ok(())
}

/// Returns the path of the object that a reference points to.
fn name_of(call: Call<'_>, object: &Handle, kind: H5R_type_t, reference: &[u8]) -> Result<Vec<u8>> {
    let bytes = reference.as_ptr().cast();
    // SAFETY: the lock is held, `object` is open, `reference` holds a reference of this kind; the second call writes
    // at most the buffer's length, with the terminating zero.
    unsafe {
        let length = call.count("H5Rget_name", H5Rget_name(object.id(), kind, bytes, std::ptr::null_mut(), 0))?;
        let mut name = vec![0_u8; length + 1];
        let length = H5Rget_name(object.id(), kind, bytes, name.as_mut_ptr().cast(), name.len());
        name.truncate(call.count("H5Rget_name", length)?);
        Ok(name)
    }
}

/// Returns the rank and selection of a region reference.
fn selection_of(call: Call<'_>, object: &Handle, reference: &[u8]) -> Result<(usize, Selection)> {
    // SAFETY: the lock is held, handles are open, and buffers have the lengths of the counts that libhdf5 reports.
    unsafe {
        let id = H5Rget_region(object.id(), H5R_type_t::H5R_DATASET_REGION1, reference.as_ptr().cast());
        let space = call.handle("H5Rget_region", id)?;
        let rank = call.status("H5Sget_simple_extent_ndims", H5Sget_simple_extent_ndims(space.id()))? as usize;
        let selection = match H5Sget_select_type(space.id()) {
            H5S_sel_type::H5S_SEL_POINTS => {
                let count = H5Sget_select_elem_npoints(space.id());
                let count = call.count("H5Sget_select_elem_npoints", count as isize)?;
                let mut flat = vec![0_u64; count * rank];
                let status = H5Sget_select_elem_pointlist(space.id(), 0, count as u64, flat.as_mut_ptr());
                call.status("H5Sget_select_elem_pointlist", status)?;
                Selection::Points(flat.chunks(rank).map(<[u64]>::to_vec).collect())
            }
            H5S_sel_type::H5S_SEL_HYPERSLABS => {
                let count = H5Sget_select_hyper_nblocks(space.id());
                let count = call.count("H5Sget_select_hyper_nblocks", count as isize)?;
                let mut flat = vec![0_u64; count * rank * 2];
                let status = H5Sget_select_hyper_blocklist(space.id(), 0, count as u64, flat.as_mut_ptr());
                call.status("H5Sget_select_hyper_blocklist", status)?;
                let corners = |block: &[u64]| (block[..rank].to_vec(), block[rank..].to_vec());
                Selection::Blocks(flat.chunks(rank * 2).map(corners).collect())
            }
            H5S_sel_type::H5S_SEL_ALL => Selection::All,
            _ => Selection::None,
        };
        Ok((rank, selection))
    }
}
