//! Conversion of libhdf5 datatypes to types as stored in the file.
//!
//! libhdf5 returns types in their memory form: variable-length data are pointers, and the sizes and offsets of the
//! compounds around them differ from those in the file. The message that `H5Tencode` writes is decoded by the native
//! reader's decoder, and the differences of the memory form are reversed.
//!
//! Invariant: for a type without file-local parts both forms are the same.

use super::{OpenFile, address_of, unsupported};
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::{Datatype, Member, ReferenceKind, TypeClass};
use crate::native::datatype;
use hdf5_metno_sys::h5d::H5Dget_type;
use hdf5_metno_sys::h5t::{H5Tcommitted, H5Tencode};
use std::ptr;
use std::sync::Arc;

/// A datatype that libhdf5 holds open.
pub(super) struct OpenType {
    /// Handle of the datatype, passed to libhdf5 as the memory type of reads.
    pub handle: Handle,
    /// Type of elements in memory.
    pub memory: Arc<TypeClass>,
    /// Type of elements in the file.
    pub stored: Datatype,
}

/// Returns the type of a dataset.
pub(super) fn of_dataset(file: &OpenFile, dataset: &Handle, call: Call<'_>) -> Result<OpenType> {
    // SAFETY: a dataset is open; we own the new identifier.
    let handle = unsafe { call.handle("H5Dget_type", H5Dget_type(dataset.id())) }?;
    of_handle(file, handle, call)
}

/// Returns the type behind an identifier.
pub(super) fn of_handle(file: &OpenFile, handle: Handle, call: Call<'_>) -> Result<OpenType> {
    let memory = Arc::new(memory_form(file, &handle, call)?);
    // SAFETY: a datatype is open.
    let committed = call.status("H5Tcommitted", unsafe { H5Tcommitted(handle.id()) })? > 0;
    let committed = if committed { Some(address_of(file, &handle, call)?) } else { None };
    let stored = Datatype { class: stored_form(&memory, descriptor_len_bytes(file)), committed };
    Ok(OpenType { handle, memory, stored })
}

/// Returns the type of a committed datatype, without a reference to a committed datatype.
pub(super) fn of_committed(file: &OpenFile, object: &Handle, call: Call<'_>) -> Result<Datatype> {
    let memory = Arc::new(memory_form(file, object, call)?);
    Ok(Datatype { class: stored_form(&memory, descriptor_len_bytes(file)), committed: None })
}

/// Returns the length of the descriptor that the file stores in place of variable-length data: length, heap address,
/// index.
fn descriptor_len_bytes(file: &OpenFile) -> u32 {
    4 + u32::from(file.address_len_bytes) + 4
}

fn memory_form(file: &OpenFile, handle: &Handle, call: Call<'_>) -> Result<TypeClass> {
    /// Length of the prefix: number of the datatype message and version of the encoding.
    const PREFIX_LEN_BYTES: usize = 2;
    let mut len = 0;
    // SAFETY: a datatype is open; without a buffer the call returns only the length.
    call.status("H5Tencode", unsafe { H5Tencode(handle.id(), ptr::null_mut(), &raw mut len) })?;
    let mut message = vec![0_u8; len];
    // SAFETY: the buffer has the length that the call returned.
    call.status("H5Tencode", unsafe { H5Tencode(handle.id(), message.as_mut_ptr().cast(), &raw mut len) })?;
    let body = message.get(PREFIX_LEN_BYTES..).unwrap_or_default();
    let class = datatype::decode(body).map_err(|defect| {
        let error = defect.in_file(&file.path);
        if call.object.is_empty() { error } else { error.in_object(call.object.escape_ascii().to_string()) }
    })?;
    // Stored references have the size of addresses; in memory they always have 8 bytes.
    if class.has_reference() && file.address_len_bytes != 8 {
        return Err(unsupported(call, format!("references of {} bytes", file.address_len_bytes)));
    }
    Ok(class)
}

/// Converts a type from memory form to file form, reversing the changes of `H5Dget_type` to sizes and offsets.
fn stored_form(memory: &Arc<TypeClass>, descriptor_len_bytes: u32) -> Arc<TypeClass> {
    if !memory.is_file_local() {
        return Arc::clone(memory);
    }
    let stored = |class: &Arc<TypeClass>| stored_form(class, descriptor_len_bytes);
    Arc::new(match &**memory {
        TypeClass::VariableString { padding, charset, .. } => {
            TypeClass::VariableString { padding: *padding, charset: *charset, len_bytes: descriptor_len_bytes }
        }
        TypeClass::Sequence { base, .. } => TypeClass::Sequence { base: stored(base), len_bytes: descriptor_len_bytes },
        // Kind, flags, length and position in the heap: as long as a separate reference to an object, or longer.
        TypeClass::Reference(ReferenceKind::Revised { kind, .. }) => {
            TypeClass::Reference(ReferenceKind::Revised { kind: *kind, len_bytes: descriptor_len_bytes + 2 })
        }
        TypeClass::Array { base, dims } => TypeClass::Array { base: stored(base), dims: dims.clone() },
        TypeClass::Compound { len_bytes, members } => {
            // Members are in the order of their offsets: libhdf5 sorts them before it moves them.
            let (mut moved, mut stored_members) = (0_i64, Vec::new());
            for member in members {
                let class = stored(&member.class);
                let offset_bytes = moved_by(member.offset_bytes, moved);
                moved += class.len_bytes() as i64 - member.class.len_bytes() as i64;
                stored_members.push(Member { name: member.name.clone(), offset_bytes, class });
            }
            TypeClass::Compound { len_bytes: moved_by(*len_bytes, moved), members: stored_members }
        }
        other => other.clone(),
    })
}

fn moved_by(position: u32, bytes: i64) -> u32 {
    u32::try_from(i64::from(position).saturating_add(bytes)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BitRange, ByteOrder};

    fn int(len_bytes: u32) -> Arc<TypeClass> {
        let bits = BitRange { offset: 0, count: 8 * len_bytes };
        Arc::new(TypeClass::Integer { len_bytes, order: ByteOrder::Little, signed: true, bits, padding: (0, 0) })
    }

    fn string(len_bytes: u32) -> Arc<TypeClass> {
        Arc::new(TypeClass::VariableString { padding: 0, charset: 0, len_bytes })
    }

    fn compound(len_bytes: u32, members: &[(u32, &Arc<TypeClass>)]) -> Arc<TypeClass> {
        let member = |&(offset_bytes, class): &(u32, &Arc<TypeClass>)| Member {
            name: format!("m{offset_bytes}").into_bytes(),
            offset_bytes,
            class: Arc::clone(class),
        };
        Arc::new(TypeClass::Compound { len_bytes, members: members.iter().map(member).collect() })
    }

    #[test]
    fn members_behind_a_string_move() {
        let memory = compound(24, &[(0, &int(4)), (8, &string(8)), (16, &int(4))]);
        let TypeClass::Compound { len_bytes, members } = &*stored_form(&memory, 16) else { panic!("no compound") };
        assert_eq!(*len_bytes, 32);
        let offsets: Vec<_> = members.iter().map(|member| member.offset_bytes).collect();
        assert_eq!(offsets, [0, 8, 24]);
    }

    #[test]
    fn nested_and_repeated_strings_move_what_follows() {
        let inner = compound(12, &[(0, &string(8)), (8, &int(4))]);
        let array = Arc::new(TypeClass::Array { base: inner, dims: vec![3] });
        let memory = compound(40, &[(0, &array), (36, &int(4))]);
        let stored = stored_form(&memory, 12);
        assert_eq!(stored.len_bytes(), 52);
        let TypeClass::Compound { members, .. } = &*stored else { panic!("no compound") };
        assert_eq!((members[0].class.len_bytes(), members[1].offset_bytes), (48, 48));
    }

    #[test]
    fn types_without_file_local_parts_stay() {
        let memory = compound(24, &[(0, &int(4)), (16, &int(4))]);
        assert!(Arc::ptr_eq(&stored_form(&memory, 16), &memory));
    }
}
