//! Conversion between [`TypeClass`] and libhdf5's datatypes, through setters and getters only, never encoded bytes.

use super::take_string;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5t::*;
use raddle_hdf5::ffi::{Call, Handle, Library};
use raddle_hdf5::model::{BitRange, ByteOrder, Member, ReferenceKind, TypeClass};
use raddle_hdf5::{Hdf5Error, Result};
use std::ffi::c_uint;
use std::sync::Arc;

fn unsupported(call: Call<'_>, what: String) -> Hdf5Error {
    Hdf5Error::Unsupported { path: call.path.to_path_buf(), address: 0, what }
}

fn byte_order(order: ByteOrder) -> H5T_order_t {
    match order {
        ByteOrder::Little => H5T_order_t::H5T_ORDER_LE,
        ByteOrder::Big => H5T_order_t::H5T_ORDER_BE,
        ByteOrder::Vax => H5T_order_t::H5T_ORDER_VAX,
    }
}

fn pad(bit: u8) -> H5T_pad_t {
    if bit == 0 { H5T_pad_t::H5T_PAD_ZERO } else { H5T_pad_t::H5T_PAD_ONE }
}

/// Creates a datatype of this class.
pub fn build(library: &Library, call: Call<'_>, class: &TypeClass) -> Result<Handle> {
    let status = |function: &str, status| call.status(function, status).map(|_| ());
    // SAFETY: the lock is held (`library`), and the identifiers are library constants initialised under it; each result
    // goes into a separate handle.
    let copy = |id: hid_t| unsafe { call.handle("H5Tcopy", H5Tcopy(id)) };
    let set_bits = |id: hid_t, bits: BitRange, padding: (u8, u8), len_bytes: u32| -> Result<()> {
        // SAFETY: the lock is held, `id` is a modifiable atomic type of our caller.
        unsafe {
            status("H5Tset_precision", H5Tset_precision(id, bits.count as usize))?;
            status("H5Tset_offset", H5Tset_offset(id, bits.offset as usize))?;
            status("H5Tset_size", H5Tset_size(id, len_bytes as usize))?;
            status("H5Tset_pad", H5Tset_pad(id, pad(padding.0), pad(padding.1)))
        }
    };
    match class {
        TypeClass::Integer { len_bytes, order, signed, bits, padding } => {
            let start = if *signed { *H5T_STD_I64LE } else { *H5T_STD_U64LE };
            let built = copy(start)?;
            set_bits(built.id(), *bits, *padding, *len_bytes)?;
            // SAFETY: the lock is held, `built` is modifiable.
            status("H5Tset_order", unsafe { H5Tset_order(built.id(), byte_order(*order)) })?;
            Ok(built)
        }
        TypeClass::Bitfield { len_bytes, order, bits, padding } => {
            let built = copy(*H5T_STD_B64LE)?;
            set_bits(built.id(), *bits, *padding, *len_bytes)?;
            // SAFETY: the lock is held, `built` is modifiable.
            status("H5Tset_order", unsafe { H5Tset_order(built.id(), byte_order(*order)) })?;
            Ok(built)
        }
        TypeClass::Float {
            len_bytes,
            order,
            bits,
            padding,
            normalization,
            sign_bit,
            exponent,
            mantissa,
            exponent_bias,
        } => {
            // Datatype messages of this version let libhdf5 recover the byte order.
            let built = copy(if *order == ByteOrder::Vax { *H5T_VAX_F64 } else { *H5T_IEEE_F64LE })?;
            let id = built.id();
            let norm = match normalization {
                0 => H5T_norm_t::H5T_NORM_NONE,
                1 => H5T_norm_t::H5T_NORM_MSBSET,
                _ => H5T_norm_t::H5T_NORM_IMPLIED,
            };
            let size = |range: u32| range as usize;
            // SAFETY: the lock is held, `built` is modifiable. Fields shrink before the precision that holds them.
            unsafe {
                let (mantissa_at, mantissa_len) = (size(mantissa.offset), size(mantissa.count));
                let (exponent_at, exponent_len) = (size(exponent.offset), size(exponent.count));
                let set = H5Tset_fields(id, size(*sign_bit), exponent_at, exponent_len, mantissa_at, mantissa_len);
                status("H5Tset_fields", set)?;
                set_bits(id, *bits, (padding.0, padding.1), *len_bytes)?;
                status("H5Tset_inpad", H5Tset_inpad(id, pad(padding.2)))?;
                status("H5Tset_ebias", H5Tset_ebias(id, size(*exponent_bias)))?;
                status("H5Tset_norm", H5Tset_norm(id, norm))?;
                status("H5Tset_order", H5Tset_order(id, byte_order(*order)))?;
            }
            Ok(built)
        }
        TypeClass::Time { len_bytes, order, precision_bits } => {
            let built = copy(*H5T_UNIX_D64LE)?;
            let bits = BitRange { offset: 0, count: u32::from(*precision_bits) };
            // SAFETY: the lock is held, `built` is modifiable.
            unsafe {
                status("H5Tset_precision", H5Tset_precision(built.id(), bits.count as usize))?;
                status("H5Tset_size", H5Tset_size(built.id(), *len_bytes as usize))?;
                status("H5Tset_order", H5Tset_order(built.id(), byte_order(*order)))?;
            }
            Ok(built)
        }
        TypeClass::FixedString { len_bytes, padding, charset } => {
            string(library, call, *len_bytes as usize, *padding, *charset)
        }
        TypeClass::VariableString { padding, charset, .. } => string(library, call, H5T_VARIABLE, *padding, *charset),
        TypeClass::Opaque { len_bytes, tag } => {
            let tag = call.c_string("H5Tset_tag", tag)?;
            // SAFETY: the lock is held, `tag` lives, the new type is modifiable.
            unsafe {
                let built = call.handle("H5Tcreate", H5Tcreate(H5T_class_t::H5T_OPAQUE, *len_bytes as usize))?;
                status("H5Tset_tag", H5Tset_tag(built.id(), tag.as_ptr()))?;
                Ok(built)
            }
        }
        TypeClass::Compound { len_bytes, members } => {
            let members: Vec<_> = members
                .iter()
                .map(|member| {
                    Ok((member.name.as_slice(), member.offset_bytes as usize, build(library, call, &member.class)?))
                })
                .collect::<Result<_>>()?;
            compound(library, call, *len_bytes as usize, &members)
        }
        TypeClass::Reference(ReferenceKind::Object) => copy(*H5T_STD_REF_OBJ),
        TypeClass::Reference(ReferenceKind::Region) => copy(*H5T_STD_REF_DSETREG),
        TypeClass::Enum { base, symbols } => {
            let base = build(library, call, base)?;
            // SAFETY: the lock is held, names live for their call, values are as long as `base` by the model.
            unsafe {
                let built = call.handle("H5Tenum_create", H5Tenum_create(base.id()))?;
                for (name, value) in symbols {
                    assert_eq!(value.len(), H5Tget_size(base.id()), "a symbol's value is one element of the base type");
                    let name = call.c_string("H5Tenum_insert", name)?;
                    status("H5Tenum_insert", H5Tenum_insert(built.id(), name.as_ptr(), value.as_ptr().cast()))?;
                }
                Ok(built)
            }
        }
        TypeClass::Sequence { base, .. } => {
            let base = build(library, call, base)?;
            // SAFETY: the lock is held, `base` is open.
            unsafe { call.handle("H5Tvlen_create", H5Tvlen_create(base.id())) }
        }
        TypeClass::Array { base, dims } => array(library, call, &build(library, call, base)?, dims),
        TypeClass::Complex { base, .. } => {
            let base = build(library, call, base)?;
            // SAFETY: the lock is held, `base` is open.
            unsafe { call.handle("H5Tcomplex_create", H5Tcomplex_create(base.id())) }
        }
        other => Err(unsupported(call, format!("making {other:?}"))),
    }
}

fn string(_library: &Library, call: Call<'_>, len_bytes: usize, padding: u8, charset: u8) -> Result<Handle> {
    let padding = match padding {
        0 => H5T_str_t::H5T_STR_NULLTERM,
        1 => H5T_str_t::H5T_STR_NULLPAD,
        _ => H5T_str_t::H5T_STR_SPACEPAD,
    };
    let charset = if charset == 0 { H5T_cset_t::H5T_CSET_ASCII } else { H5T_cset_t::H5T_CSET_UTF8 };
    // SAFETY: the lock is held, the copy is modifiable.
    unsafe {
        let built = call.handle("H5Tcopy", H5Tcopy(*H5T_C_S1))?;
        call.status("H5Tset_size", H5Tset_size(built.id(), len_bytes))?;
        call.status("H5Tset_strpad", H5Tset_strpad(built.id(), padding))?;
        call.status("H5Tset_cset", H5Tset_cset(built.id(), charset))?;
        Ok(built)
    }
}

/// Creates a compound of these members: name, offset, type.
pub fn compound(
    _library: &Library,
    call: Call<'_>,
    len_bytes: usize,
    members: &[(&[u8], usize, Handle)],
) -> Result<Handle> {
    // SAFETY: the lock is held, member types are open, names live for their call.
    unsafe {
        let built = call.handle("H5Tcreate", H5Tcreate(H5T_class_t::H5T_COMPOUND, len_bytes))?;
        for (name, offset, member) in members {
            let name = call.c_string("H5Tinsert", name)?;
            call.status("H5Tinsert", H5Tinsert(built.id(), name.as_ptr(), *offset, member.id()))?;
        }
        Ok(built)
    }
}

/// Creates an array of this item.
pub fn array(_library: &Library, call: Call<'_>, item: &Handle, dims: &[u32]) -> Result<Handle> {
    let dims: Vec<u64> = dims.iter().copied().map(u64::from).collect();
    // SAFETY: the lock is held, `item` is open, `dims` holds its length of values.
    unsafe { call.handle("H5Tarray_create2", H5Tarray_create2(item.id(), dims.len() as c_uint, dims.as_ptr())) }
}

/// Returns the class of a datatype, with the sizes and offsets of the handle (those in memory if libhdf5 opened it).
pub fn describe(library: &Library, call: Call<'_>, datatype: &Handle) -> Result<TypeClass> {
    let id = datatype.id();
    // SAFETY: the lock is held (`library`), `id` is an open datatype; out-pointers are to locals, here and below.
    let size = unsafe { H5Tget_size(id) };
    let len_bytes = size as u32;
    let inner = |handle: Result<Handle>| -> Result<Arc<TypeClass>> { Ok(Arc::new(describe(library, call, &handle?)?)) };
    // SAFETY: the lock is held and `id` is an open datatype; out-pointers are to locals.
    let base = || inner(unsafe { call.handle("H5Tget_super", H5Tget_super(id)) });
    // SAFETY: the lock is held and `id` is an open datatype; out-pointers are to locals.
    Ok(match unsafe { H5Tget_class(id) } {
        H5T_class_t::H5T_INTEGER => {
            // SAFETY: the lock is held and `id` is an open datatype; out-pointers are to locals.
            let signed = unsafe { H5Tget_sign(id) } == H5T_sign_t::H5T_SGN_2;
            let (order, bits, padding) = (order_of(call, id)?, bits_of(id), padding_of(call, id)?);
            TypeClass::Integer { len_bytes, order, signed, bits, padding }
        }
        H5T_class_t::H5T_BITFIELD => {
            let (order, bits, padding) = (order_of(call, id)?, bits_of(id), padding_of(call, id)?);
            TypeClass::Bitfield { len_bytes, order, bits, padding }
        }
        H5T_class_t::H5T_FLOAT => {
            let mut fields = [0_usize; 5];
            let [sign, exponent_at, exponent_len, mantissa_at, mantissa_len] = &mut fields;
            // SAFETY: the lock is held and `id` is an open datatype; out-pointers are to locals.
            let (inner_pad, normalization, exponent_bias) = unsafe {
                let status = H5Tget_fields(id, sign, exponent_at, exponent_len, mantissa_at, mantissa_len);
                call.status("H5Tget_fields", status)?;
                let normalization = match H5Tget_norm(id) {
                    H5T_norm_t::H5T_NORM_IMPLIED => 2,
                    H5T_norm_t::H5T_NORM_MSBSET => 1,
                    _ => 0,
                };
                (H5Tget_inpad(id), normalization, H5Tget_ebias(id) as u32)
            };
            let [sign_bit, exponent_at, exponent_len, mantissa_at, mantissa_len] = fields.map(|field| field as u32);
            let (low, high) = padding_of(call, id)?;
            TypeClass::Float {
                len_bytes,
                order: order_of(call, id)?,
                bits: bits_of(id),
                padding: (low, high, u8::from(inner_pad == H5T_pad_t::H5T_PAD_ONE)),
                normalization,
                sign_bit,
                exponent: BitRange { offset: exponent_at, count: exponent_len },
                mantissa: BitRange { offset: mantissa_at, count: mantissa_len },
                exponent_bias,
            }
        }
        H5T_class_t::H5T_TIME => {
            let precision_bits = bits_of(id).count as u16;
            TypeClass::Time { len_bytes, order: order_of(call, id)?, precision_bits }
        }
        H5T_class_t::H5T_STRING => {
            // SAFETY: the lock is held and `id` is an open datatype; out-pointers are to locals.
            let (padding, charset, variable) = unsafe {
                let variable = call.status("H5Tis_variable_str", H5Tis_variable_str(id))? > 0;
                (H5Tget_strpad(id) as u8, H5Tget_cset(id) as u8, variable)
            };
            if variable {
                TypeClass::VariableString { padding, charset, len_bytes: 16 }
            } else {
                TypeClass::FixedString { len_bytes, padding, charset }
            }
        }
        H5T_class_t::H5T_OPAQUE => {
            // SAFETY: the lock is held and `id` is an open datatype; the call passes ownership of the tag to us.
            let tag = unsafe { take_string(library, H5Tget_tag(id)) }.unwrap_or_default();
            TypeClass::Opaque { len_bytes, tag }
        }
        H5T_class_t::H5T_COMPOUND => {
            let members = (0..member_count(call, id)?).map(|number| {
                // SAFETY: the lock is held and `id` is an open datatype; `number` is below the count, and the call
                // passes ownership of the name to us.
                let (name, offset, member) = unsafe {
                    let name = take_string(library, H5Tget_member_name(id, number)).unwrap_or_default();
                    let member = call.handle("H5Tget_member_type", H5Tget_member_type(id, number));
                    (name, H5Tget_member_offset(id, number), member)
                };
                Ok(Member { name, offset_bytes: offset as u32, class: inner(member)? })
            });
            TypeClass::Compound { len_bytes, members: members.collect::<Result<_>>()? }
        }
        H5T_class_t::H5T_REFERENCE => {
            // Distinguished by size, because H5Tequal considers a reference inside a variable-length type different
            // from the predefined one: 8 and 12 bytes are the references of HDF5 before 1.12, in memory and in files
            // with 8-byte addresses.
            TypeClass::Reference(match len_bytes {
                8 => ReferenceKind::Object,
                12 => ReferenceKind::Region,
                _ => ReferenceKind::Revised { kind: 0, len_bytes },
            })
        }
        H5T_class_t::H5T_ENUM => {
            let symbols = (0..member_count(call, id)?).map(|number| {
                let mut value = vec![0; len_bytes as usize];
                // SAFETY: the lock is held and `id` is an open datatype; `value` is as long as the base type, and the
                // call passes ownership of the name to us.
                unsafe {
                    let name = take_string(library, H5Tget_member_name(id, number)).unwrap_or_default();
                    call.status("H5Tget_member_value", H5Tget_member_value(id, number, value.as_mut_ptr().cast()))?;
                    Ok((name, value))
                }
            });
            let symbols = symbols.collect::<Result<_>>()?;
            TypeClass::Enum { base: base()?, symbols }
        }
        H5T_class_t::H5T_VLEN => TypeClass::Sequence { base: base()?, len_bytes: 16 },
        H5T_class_t::H5T_ARRAY => {
            // SAFETY: the lock is held and `id` is an open datatype; `dims` has `rank` entries.
            let dims = unsafe {
                let rank = call.status("H5Tget_array_ndims", H5Tget_array_ndims(id))?;
                let mut dims = vec![0_u64; rank as usize];
                call.status("H5Tget_array_dims2", H5Tget_array_dims2(id, dims.as_mut_ptr()))?;
                dims
            };
            TypeClass::Array { base: base()?, dims: dims.into_iter().map(|dim| dim as u32).collect() }
        }
        H5T_class_t::H5T_COMPLEX => TypeClass::Complex { base: base()?, len_bytes },
        other => return Err(unsupported(call, format!("datatype class {other:?}"))),
    })
}

fn member_count(call: Call<'_>, id: hid_t) -> Result<c_uint> {
    // SAFETY: called by `describe` under its lock, with its open datatype.
    let count = unsafe { H5Tget_nmembers(id) };
    call.status("H5Tget_nmembers", count).map(|count| count as c_uint)
}

fn order_of(call: Call<'_>, id: hid_t) -> Result<ByteOrder> {
    // SAFETY: called by `describe` under its lock, with its open datatype.
    match unsafe { H5Tget_order(id) } {
        H5T_order_t::H5T_ORDER_LE => Ok(ByteOrder::Little),
        H5T_order_t::H5T_ORDER_BE => Ok(ByteOrder::Big),
        H5T_order_t::H5T_ORDER_VAX => Ok(ByteOrder::Vax),
        other => Err(unsupported(call, format!("byte order {other:?}"))),
    }
}

fn bits_of(id: hid_t) -> BitRange {
    // SAFETY: called by `describe` under its lock, with its open datatype; both cannot fail on atomic types.
    unsafe { BitRange { offset: H5Tget_offset(id) as u32, count: H5Tget_precision(id) as u32 } }
}

fn padding_of(call: Call<'_>, id: hid_t) -> Result<(u8, u8)> {
    let (mut low, mut high) = (H5T_pad_t::H5T_PAD_ZERO, H5T_pad_t::H5T_PAD_ZERO);
    // SAFETY: called by `describe` under its lock, with its open datatype; out-pointers are to locals.
    call.status("H5Tget_pad", unsafe { H5Tget_pad(id, &raw mut low, &raw mut high) })?;
    let bit = |pad| u8::from(pad == H5T_pad_t::H5T_PAD_ONE);
    Ok((bit(low), bit(high)))
}
