//! Links of a group, and how this process avoids following those that leave the file.
//!
//! Invariant: after [`stop_following`], no path lookup of libhdf5 crosses an external or user-defined link, wherever in
//! libhdf5 it happens (for example, the source path of a virtual dataset).

use super::OpenFile;
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::CreationOrder;
use hdf5_metno_sys::h5::{H5_index_t, H5_iter_order_t, herr_t};
use hdf5_metno_sys::h5g::H5Gget_create_plist;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::{H5L_info2_t, H5Lget_val, H5Literate2, H5Lregister, H5Lunpack_elink_val};
use hdf5_metno_sys::h5o::H5O_token_t;
use hdf5_metno_sys::h5p::{H5P_DEFAULT, H5Pget_link_creation_order};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

/// `H5L_TYPE_HARD`, `_SOFT`, `_EXTERNAL`, `_MAX`.
const HARD: c_int = 0;
const SOFT: c_int = 1;
const EXTERNAL: c_int = 64;
const LAST_CLASS: c_int = 255;

/// A link as stored in the file.
pub(super) struct FoundLink {
    pub name: Vec<u8>,
    pub utf8: bool,
    pub creation_order: Option<i64>,
    pub target: FoundTarget,
}

/// Target of a link.
pub(super) enum FoundTarget {
    /// Absolute file offset of an object header.
    Hard(u64),
    Soft(Vec<u8>),
    External {
        file: Vec<u8>,
        path: Vec<u8>,
    },
    UserDefined {
        class: u8,
        data: Vec<u8>,
    },
}

/// `H5L_class_t`, with the class as a number: the bindings' enumeration lacks some classes.
#[repr(C)]
struct LinkClass {
    version: c_int,
    class: c_int,
    comment: *const c_char,
    create: Option<extern "C" fn()>,
    moved: Option<extern "C" fn()>,
    copied: Option<extern "C" fn()>,
    traverse: extern "C" fn(*const c_char, hid_t, *const c_void, usize, hid_t, hid_t) -> hid_t,
    delete: Option<extern "C" fn()>,
    query: unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void, usize) -> isize,
}

/// Refuses to follow any link.
extern "C" fn refuse(_: *const c_char, _: hid_t, _: *const c_void, _: usize, _: hid_t, _: hid_t) -> hid_t {
    -1
}

/// Returns a link's data as stored.
unsafe extern "C" fn query(_: *const c_char, data: *const c_void, len: usize, out: *mut c_void, room: usize) -> isize {
    if !out.is_null() {
        // SAFETY: libhdf5 passes `len` bytes of data and `room` bytes to write to.
        unsafe { ptr::copy_nonoverlapping(data.cast::<u8>(), out.cast::<u8>(), len.min(room)) };
    }
    len as isize
}

/// Replaces every link class other than hard and soft by one that can be queried but not followed.
pub(super) fn stop_following(call: Call<'_>) -> Result<()> {
    for class in EXTERNAL..=LAST_CLASS {
        let class = LinkClass {
            version: 1,
            class,
            comment: c"not followed".as_ptr(),
            create: None,
            moved: None,
            copied: None,
            traverse: refuse,
            delete: None,
            query,
        };
        // SAFETY: laid out as `H5L_class_t`, which libhdf5 copies; the callbacks have the signatures of version 1.
        call.status("H5Lregister", unsafe { H5Lregister((&raw const class).cast()) })?;
    }
    Ok(())
}

/// `H5L_info2_t`, with class and character set as numbers.
#[repr(C)]
#[derive(Clone, Copy)]
struct LinkInfo {
    class: c_int,
    order_valid: bool,
    order: i64,
    charset: c_int,
    target: LinkInfoTarget,
}

#[repr(C)]
#[derive(Clone, Copy)]
union LinkInfoTarget {
    token: H5O_token_t,
    value_len: usize,
}

const _: () = assert!(size_of::<LinkInfo>() == size_of::<H5L_info2_t>());

/// Returns whether a group keeps the creation order of its links.
pub(super) fn creation_order(group: &Handle, call: Call<'_>) -> Result<CreationOrder> {
    // SAFETY: a group is open; we own the new property list.
    let list = unsafe { call.handle("H5Gget_create_plist", H5Gget_create_plist(group.id())) }?;
    let mut flags = 0;
    // SAFETY: a group creation list; the variable outlives the call.
    call.status("H5Pget_link_creation_order", unsafe { H5Pget_link_creation_order(list.id(), &raw mut flags) })?;
    Ok(super::properties::order_of_flags(flags))
}

/// Reads the links of a group, in creation order if it is tracked, otherwise by name.
pub(super) fn of_group(file: &OpenFile, group: &Handle, tracked: bool, call: Call<'_>) -> Result<Vec<FoundLink>> {
    extern "C" fn collect(_: hid_t, name: *const c_char, info: *const H5L_info2_t, out: *mut c_void) -> herr_t {
        // SAFETY: `out` is the list of our caller; libhdf5 passes a terminated name and an information structure.
        unsafe {
            let list = &mut *out.cast::<Vec<(CString, LinkInfo)>>();
            list.push((CStr::from_ptr(name).to_owned(), *info.cast::<LinkInfo>()));
        }
        0
    }
    let order = if tracked { H5_index_t::H5_INDEX_CRT_ORDER } else { H5_index_t::H5_INDEX_NAME };
    let mut found: Vec<(CString, LinkInfo)> = Vec::new();
    // SAFETY: a group is open; the callback writes through `found`, which outlives the call.
    let status = unsafe {
        let increasing = H5_iter_order_t::H5_ITER_INC;
        H5Literate2(group.id(), order, increasing, ptr::null_mut(), Some(collect), (&raw mut found).cast())
    };
    call.status("H5Literate", status)?;
    found.into_iter().map(|(name, info)| of_info(file, group, name, &info, tracked, call)).collect()
}

fn of_info(
    file: &OpenFile,
    group: &Handle,
    name: CString,
    info: &LinkInfo,
    tracked: bool,
    call: Call<'_>,
) -> Result<FoundLink> {
    let target = if info.class == HARD {
        // SAFETY: hard links have a token.
        FoundTarget::Hard(file.address(unsafe { &info.target.token }))
    } else {
        // SAFETY: all other links have a value.
        let mut value = vec![0_u8; unsafe { info.target.value_len }];
        // SAFETY: the group is open, the name terminated, the buffer has the stated length.
        let status =
            unsafe { H5Lget_val(group.id(), name.as_ptr(), value.as_mut_ptr().cast(), value.len(), H5P_DEFAULT) };
        call.status("H5Lget_val", status)?;
        match info.class {
            SOFT => {
                // The value's length includes its terminator.
                value.pop();
                FoundTarget::Soft(value)
            }
            EXTERNAL => external(&value, call)?,
            class => FoundTarget::UserDefined { class: class as u8, data: value },
        }
    };
    Ok(FoundLink {
        name: name.into_bytes(),
        utf8: info.charset == 1,
        creation_order: (tracked && info.order_valid).then_some(info.order),
        target,
    })
}

fn external(value: &[u8], call: Call<'_>) -> Result<FoundTarget> {
    let (mut flags, mut file, mut path): (c_uint, _, _) = (0, ptr::null(), ptr::null());
    // SAFETY: the value has the stated length; the call checks its strings and returns pointers into it.
    let status = unsafe {
        H5Lunpack_elink_val(value.as_ptr().cast(), value.len(), &raw mut flags, &raw mut file, &raw mut path)
    };
    call.status("H5Lunpack_elink_val", status)?;
    // SAFETY: on success both are terminated strings inside the value.
    let (file, path) = unsafe { (CStr::from_ptr(file), CStr::from_ptr(path)) };
    Ok(FoundTarget::External { file: file.to_bytes().to_vec(), path: path.to_bytes().to_vec() })
}
