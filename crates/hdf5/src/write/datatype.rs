//! Datatypes of an output, built by API calls from [`TypeClass`]: never by decoding bytes of an input.
//!
//! libhdf5 holds the memory form of a type: variable-length strings are 8 bytes there (a `char *`) and 16 in the file,
//! so offsets and sizes of compounds that contain them are shifted when libhdf5 writes the type. The builder applies
//! the opposite shift ([`memory_len_bytes`]), so that the file receives exactly the requested class. This is checked
//! where possible ([`build`] compares sizes) and tested by reading back.

use super::not_writable;
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle};
use crate::model::{BitRange, ByteOrder, Member, ReferenceKind, TypeClass};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5t::*;
use std::ffi::c_void;

/// Maximum nesting depth. Data models nest types a few levels deep; the limit prevents recursion from overflowing the
/// stack.
const MAX_DEPTH: usize = 32;

/// `H5T_VARIABLE`.
const VARIABLE: usize = usize::MAX;

/// Size of a `char *` and of an `hvl_t` (a `size_t` and a pointer) in memory.
const STRING_POINTER_LEN_BYTES: u64 = size_of::<*const u8>() as u64;
const SEQUENCE_LEN_BYTES: u64 = size_of::<hvl_t>() as u64;

/// Returns the size of an element of `class` in memory, as libhdf5 expects it from the application.
pub(super) fn memory_len_bytes(class: &TypeClass) -> u64 {
    match class {
        TypeClass::VariableString { .. } => STRING_POINTER_LEN_BYTES,
        TypeClass::Sequence { .. } => SEQUENCE_LEN_BYTES,
        TypeClass::Array { base, dims } => {
            dims.iter().fold(memory_len_bytes(base), |len, &dim| len.saturating_mul(u64::from(dim)))
        }
        TypeClass::Compound { len_bytes, members } => members.iter().fold(u64::from(*len_bytes), |len, member| {
            len.saturating_sub(member.class.len_bytes()).saturating_add(memory_len_bytes(&member.class))
        }),
        _ => class.len_bytes(),
    }
}

/// Returns the offset in memory of each member of a compound, in the order of `members`.
pub(super) fn memory_offsets(members: &[Member]) -> Vec<u64> {
    // libhdf5 walks the members by offset and shifts each by the growth or shrinkage of those before it.
    let mut by_position: Vec<usize> = (0..members.len()).collect();
    by_position.sort_by_key(|&index| members[index].offset_bytes);
    let mut offsets = vec![0; members.len()];
    let (mut grown, mut shrunk) = (0_u64, 0_u64);
    for index in by_position {
        let member = &members[index];
        offsets[index] = (u64::from(member.offset_bytes) + grown).saturating_sub(shrunk);
        let (stored, memory) = (member.class.len_bytes(), memory_len_bytes(&member.class));
        grown = grown.saturating_add(memory.saturating_sub(stored));
        shrunk = shrunk.saturating_add(stored.saturating_sub(memory));
    }
    offsets
}

/// Creates a libhdf5 datatype for `class`, in its memory form. The caller holds the lock.
pub(super) fn build(call: Call<'_>, class: &TypeClass) -> Result<Handle> {
    Builder { call }.class(class, 0)
}

struct Builder<'a> {
    call: Call<'a>,
}

impl Builder<'_> {
    fn class(&self, class: &TypeClass, depth: usize) -> Result<Handle> {
        if depth > MAX_DEPTH {
            return Err(self.impossible(format!("the type nests deeper than {MAX_DEPTH} levels")));
        }
        let handle = match class {
            TypeClass::Integer { len_bytes, order, signed, bits, padding } => {
                self.integer(*len_bytes, *order, *signed, *bits, *padding)?
            }
            TypeClass::Float { .. } => self.float(class)?,
            TypeClass::Time { len_bytes, order, precision_bits } => {
                let handle = self.copy(*H5T_UNIX_D32LE)?;
                self.sized(&handle, *len_bytes)?;
                self.order(&handle, *order)?;
                self.precision(&handle, u32::from(*precision_bits), 0)?;
                handle
            }
            TypeClass::FixedString { len_bytes, padding, charset } => {
                let handle = self.copy(*H5T_C_S1)?;
                self.sized(&handle, *len_bytes)?;
                self.string(&handle, *padding, *charset)?;
                handle
            }
            TypeClass::VariableString { padding, charset, .. } => {
                let handle = self.copy(*H5T_C_S1)?;
                // SAFETY: here and below: valid handles, the caller holds the lock.
                self.call.status("H5Tset_size", unsafe { H5Tset_size(handle.id(), VARIABLE) })?;
                self.string(&handle, *padding, *charset)?;
                handle
            }
            TypeClass::Bitfield { len_bytes, order, bits, padding } => {
                let handle = self.copy(*H5T_STD_B8LE)?;
                self.sized(&handle, *len_bytes)?;
                self.order(&handle, *order)?;
                self.precision(&handle, bits.count, bits.offset)?;
                self.padding(&handle, *padding)?;
                handle
            }
            TypeClass::Opaque { len_bytes, tag } => {
                let handle = self.create(H5T_class_t::H5T_OPAQUE, u64::from(*len_bytes))?;
                let tag = self.call.c_string("H5Tset_tag", tag)?;
                // SAFETY: as above; the tag is zero-terminated.
                self.call.status("H5Tset_tag", unsafe { H5Tset_tag(handle.id(), tag.as_ptr()) })?;
                handle
            }
            TypeClass::Compound { members, .. } => self.compound(class, members, depth)?,
            TypeClass::Reference(ReferenceKind::Object) => self.copy(*H5T_STD_REF_OBJ)?,
            TypeClass::Reference(ReferenceKind::Region) => self.copy(*H5T_STD_REF_DSETREG)?,
            TypeClass::Reference(ReferenceKind::Revised { .. }) => {
                return Err(self.impossible("references of HDF5 1.12 and later are not written".to_owned()));
            }
            TypeClass::Enum { base, symbols } => self.enumeration(base, symbols, depth)?,
            TypeClass::Sequence { base, .. } => {
                let base = self.class(base, depth + 1)?;
                // SAFETY: as above; we own the new identifier.
                unsafe { self.call.handle("H5Tvlen_create", H5Tvlen_create(base.id())) }?
            }
            TypeClass::Array { base, dims } => {
                let base = self.class(base, depth + 1)?;
                let dims: Vec<u64> = dims.iter().map(|&dim| u64::from(dim)).collect();
                let rank = dims.len() as u32;
                // SAFETY: as above; libhdf5 reads `rank` numbers and checks the rank.
                unsafe { self.call.handle("H5Tarray_create2", H5Tarray_create2(base.id(), rank, dims.as_ptr())) }?
            }
            TypeClass::Complex { base, .. } => {
                let base = self.class(base, depth + 1)?;
                // SAFETY: as above.
                unsafe { self.call.handle("H5Tcomplex_create", H5Tcomplex_create(base.id())) }?
            }
        };
        // Setters enlarge a type if its numbers contradict each other: an error is better than a different type.
        // SAFETY: as above.
        let built_len_bytes = unsafe { H5Tget_size(handle.id()) } as u64;
        let wanted_len_bytes = memory_len_bytes(class);
        if built_len_bytes != wanted_len_bytes {
            return Err(self.impossible(format!(
                "libhdf5 creates a type of {built_len_bytes} bytes instead of {wanted_len_bytes}"
            )));
        }
        Ok(handle)
    }

    fn integer(
        &self,
        len_bytes: u32,
        order: ByteOrder,
        signed: bool,
        bits: BitRange,
        padding: (u8, u8),
    ) -> Result<Handle> {
        let handle = self.copy(if signed { *H5T_STD_I64LE } else { *H5T_STD_U64LE })?;
        self.sized(&handle, len_bytes)?;
        self.order(&handle, order)?;
        self.precision(&handle, bits.count, bits.offset)?;
        self.padding(&handle, padding)?;
        Ok(handle)
    }

    fn float(&self, class: &TypeClass) -> Result<Handle> {
        let TypeClass::Float {
            len_bytes,
            order,
            bits,
            padding,
            normalization,
            sign_bit,
            exponent,
            mantissa,
            exponent_bias,
        } = class
        else {
            return Err(self.impossible("not a floating-point type".to_owned()));
        };
        // The fields would be the same, but not the version of the message in the file: libhdf5 takes it from the
        // copied type, and supports VAX byte order since version 3. In version 1 it would be read back as big-endian.
        let handle = self.copy(if *order == ByteOrder::Vax { *H5T_VAX_F64 } else { *H5T_IEEE_F64LE })?;
        let id = handle.id();
        let call = self.call;
        // Every setter checks the fields against the bits at that moment. So first make room for the old and the new
        // fields, then set the new fields, then reduce to the requested bits and size.
        let room_bytes = (*len_bytes).max(8);
        self.sized(&handle, room_bytes)?;
        self.precision(&handle, room_bytes.saturating_mul(8), 0)?;
        // SAFETY: for the block: valid handle, the caller holds the lock; the arguments are plain numbers, which
        // libhdf5 checks.
        unsafe {
            let (sign, epos, esize) = (*sign_bit as usize, exponent.offset as usize, exponent.count as usize);
            let (mpos, msize) = (mantissa.offset as usize, mantissa.count as usize);
            call.status("H5Tset_fields", H5Tset_fields(id, sign, epos, esize, mpos, msize))?;
            call.status("H5Tset_offset", H5Tset_offset(id, bits.offset as usize))?;
            call.status("H5Tset_precision", H5Tset_precision(id, bits.count as usize))?;
            call.status("H5Tset_size", H5Tset_size(id, *len_bytes as usize))?;
            call.status("H5Tset_ebias", H5Tset_ebias(id, *exponent_bias as usize))?;
            let norm = match normalization {
                0 => H5T_norm_t::H5T_NORM_NONE,
                1 => H5T_norm_t::H5T_NORM_MSBSET,
                2 => H5T_norm_t::H5T_NORM_IMPLIED,
                other => return Err(self.impossible(format!("mantissa normalisation {other} does not exist"))),
            };
            call.status("H5Tset_norm", H5Tset_norm(id, norm))?;
            call.status("H5Tset_inpad", H5Tset_inpad(id, self.pad(padding.2)?))?;
        }
        self.padding(&handle, (padding.0, padding.1))?;
        self.order(&handle, *order)?;
        Ok(handle)
    }

    fn compound(&self, class: &TypeClass, members: &[Member], depth: usize) -> Result<Handle> {
        let handle = self.create(H5T_class_t::H5T_COMPOUND, memory_len_bytes(class))?;
        for (member, offset) in members.iter().zip(memory_offsets(members)) {
            let name = self.call.c_string("H5Tinsert", &member.name)?;
            let class = self.class(&member.class, depth + 1)?;
            // SAFETY: as above; libhdf5 refuses members that overlap or extend beyond the end.
            let status = unsafe { H5Tinsert(handle.id(), name.as_ptr(), offset as usize, class.id()) };
            self.call.status("H5Tinsert", status)?;
        }
        Ok(handle)
    }

    fn enumeration(&self, base: &TypeClass, symbols: &[(Vec<u8>, Vec<u8>)], depth: usize) -> Result<Handle> {
        let base_handle = self.class(base, depth + 1)?;
        // SAFETY: as above.
        let handle = unsafe { self.call.handle("H5Tenum_create", H5Tenum_create(base_handle.id())) }?;
        for (name, value) in symbols {
            if value.len() as u64 != base.len_bytes() {
                return Err(self.impossible(format!(
                    "the value of symbol {} has {} bytes, the enumeration's integers have {}",
                    name.escape_ascii(),
                    value.len(),
                    base.len_bytes()
                )));
            }
            let name = self.call.c_string("H5Tenum_insert", name)?;
            // SAFETY: as above; libhdf5 reads the size of the base type, which the value was just checked to have.
            let status = unsafe { H5Tenum_insert(handle.id(), name.as_ptr(), value.as_ptr().cast::<c_void>()) };
            self.call.status("H5Tenum_insert", status)?;
        }
        Ok(handle)
    }

    fn copy(&self, predefined: hid_t) -> Result<Handle> {
        // SAFETY: a predefined type, the caller holds the lock; we own the copy.
        unsafe { self.call.handle("H5Tcopy", H5Tcopy(predefined)) }
    }

    fn create(&self, class: H5T_class_t, len_bytes: u64) -> Result<Handle> {
        let len = usize::try_from(len_bytes).unwrap_or(usize::MAX);
        // SAFETY: the caller holds the lock; libhdf5 checks the size.
        unsafe { self.call.handle("H5Tcreate", H5Tcreate(class, len)) }
    }

    fn sized(&self, handle: &Handle, len_bytes: u32) -> Result<()> {
        // SAFETY: valid handle, the caller holds the lock; libhdf5 refuses a size of zero.
        self.call.status("H5Tset_size", unsafe { H5Tset_size(handle.id(), len_bytes as usize) }).map(drop)
    }

    fn order(&self, handle: &Handle, order: ByteOrder) -> Result<()> {
        let order = match order {
            ByteOrder::Little => H5T_order_t::H5T_ORDER_LE,
            ByteOrder::Big => H5T_order_t::H5T_ORDER_BE,
            ByteOrder::Vax => H5T_order_t::H5T_ORDER_VAX,
        };
        // SAFETY: valid handle, the caller holds the lock.
        self.call.status("H5Tset_order", unsafe { H5Tset_order(handle.id(), order) }).map(drop)
    }

    fn precision(&self, handle: &Handle, count: u32, offset: u32) -> Result<()> {
        // SAFETY: valid handle, the caller holds the lock; libhdf5 checks the numbers or enlarges the type, which
        // `class` detects.
        unsafe {
            self.call.status("H5Tset_precision", H5Tset_precision(handle.id(), count as usize))?;
            self.call.status("H5Tset_offset", H5Tset_offset(handle.id(), offset as usize)).map(drop)
        }
    }

    fn padding(&self, handle: &Handle, (low, high): (u8, u8)) -> Result<()> {
        let (low, high) = (self.pad(low)?, self.pad(high)?);
        // SAFETY: valid handle, the caller holds the lock.
        self.call.status("H5Tset_pad", unsafe { H5Tset_pad(handle.id(), low, high) }).map(drop)
    }

    fn pad(&self, pad: u8) -> Result<H5T_pad_t> {
        match pad {
            0 => Ok(H5T_pad_t::H5T_PAD_ZERO),
            1 => Ok(H5T_pad_t::H5T_PAD_ONE),
            other => Err(self.impossible(format!("bit padding {other} does not exist"))),
        }
    }

    fn string(&self, handle: &Handle, padding: u8, charset: u8) -> Result<()> {
        let padding = match padding {
            0 => H5T_str_t::H5T_STR_NULLTERM,
            1 => H5T_str_t::H5T_STR_NULLPAD,
            2 => H5T_str_t::H5T_STR_SPACEPAD,
            other => return Err(self.impossible(format!("string padding {other} does not exist"))),
        };
        let charset = match charset {
            0 => H5T_cset_t::H5T_CSET_ASCII,
            1 => H5T_cset_t::H5T_CSET_UTF8,
            other => return Err(self.impossible(format!("character set {other} does not exist"))),
        };
        // SAFETY: valid handle, the caller holds the lock.
        unsafe {
            self.call.status("H5Tset_strpad", H5Tset_strpad(handle.id(), padding))?;
            self.call.status("H5Tset_cset", H5Tset_cset(handle.id(), charset)).map(drop)
        }
    }

    fn impossible(&self, what: String) -> Hdf5Error {
        not_writable(self.call, what)
    }
}
