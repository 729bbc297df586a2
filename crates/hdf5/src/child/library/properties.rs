//! Creation properties of objects.

use super::unsupported;
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::{CreationOrder, Filter};
use hdf5_metno_sys::h5d::H5Dget_create_plist;
use hdf5_metno_sys::h5g::H5Gget_create_plist;
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type};
use hdf5_metno_sys::h5p::{
    H5Pget_attr_creation_order, H5Pget_external, H5Pget_external_count, H5Pget_filter2, H5Pget_layout, H5Pget_nfilters,
    H5Pget_virtual_count, H5Pget_virtual_srcspace, H5Pget_virtual_vspace,
};
use hdf5_metno_sys::h5t::H5Tget_create_plist;
use std::ffi::{c_int, c_uint};

/// Maximum length of an external file's name: a path longer than the system's limit cannot be opened.
const NAME_ROOM_LEN_BYTES: usize = 4096 + 1;

/// Returns the creation properties of an object.
pub(super) fn creation_list(object: &Handle, call: Call<'_>) -> Result<Handle> {
    // SAFETY: the identifier is open; we own the new property list.
    unsafe {
        match H5Iget_type(object.id()) {
            H5I_type_t::H5I_GROUP => call.handle("H5Gget_create_plist", H5Gget_create_plist(object.id())),
            H5I_type_t::H5I_DATATYPE => call.handle("H5Tget_create_plist", H5Tget_create_plist(object.id())),
            _ => call.handle("H5Dget_create_plist", H5Dget_create_plist(object.id())),
        }
    }
}

/// Returns whether an object keeps the creation order of its attributes.
pub(super) fn attribute_order(list: &Handle, call: Call<'_>) -> Result<CreationOrder> {
    let mut flags = 0;
    // SAFETY: an object creation list; the variable outlives the call.
    call.status("H5Pget_attr_creation_order", unsafe { H5Pget_attr_creation_order(list.id(), &raw mut flags) })?;
    Ok(order_of_flags(flags))
}

/// Converts `H5P_CRT_ORDER_TRACKED` and `_INDEXED`.
pub(super) fn order_of_flags(flags: c_uint) -> CreationOrder {
    CreationOrder { tracked: flags & 1 != 0, indexed: flags & 2 != 0 }
}

/// Returns the number of mappings of a virtual dataset.
pub(super) fn mapping_count(list: &Handle, call: Call<'_>) -> Result<usize> {
    let mut count = 0;
    // SAFETY: the creation list of a virtual dataset; the variable outlives the call.
    call.status("H5Pget_virtual_count", unsafe { H5Pget_virtual_count(list.id(), &raw mut count) })?;
    Ok(count)
}

/// Returns the selection in the virtual dataset to which mapping `number` maps its source.
pub(super) fn virtual_space(list: &Handle, number: usize, call: Call<'_>) -> Result<Handle> {
    // SAFETY: a dataset creation list with this mapping; we own the new identifier.
    unsafe { call.handle("H5Pget_virtual_vspace", H5Pget_virtual_vspace(list.id(), number)) }
}

/// Returns the selection in the source of mapping `number`.
pub(super) fn source_space(list: &Handle, number: usize, call: Call<'_>) -> Result<Handle> {
    // SAFETY: as in `virtual_space`.
    unsafe { call.handle("H5Pget_virtual_srcspace", H5Pget_virtual_srcspace(list.id(), number)) }
}

/// `H5D_COMPACT`, `_CONTIGUOUS`, `_CHUNKED`, `_VIRTUAL`.
pub(super) const COMPACT: c_int = 0;
pub(super) const CONTIGUOUS: c_int = 1;
pub(super) const CHUNKED: c_int = 2;
pub(super) const VIRTUAL: c_int = 3;

/// Returns the number of the storage layout of a dataset.
pub(super) fn layout_class(list: &Handle, call: Call<'_>) -> Result<c_int> {
    // SAFETY: a dataset creation list; the enumeration of the bindings includes all values of this version.
    let class = unsafe { H5Pget_layout(list.id()) } as c_int;
    call.status("H5Pget_layout", class)
}

/// Returns whether a dataset is virtual.
pub(super) fn is_virtual(list: &Handle, call: Call<'_>) -> Result<bool> {
    Ok(layout_class(list, call)? == VIRTUAL)
}

/// Returns the external files of a dataset: name, offset, length.
pub(super) fn external_files(list: &Handle, call: Call<'_>) -> Result<Vec<(Vec<u8>, u64, u64)>> {
    // SAFETY: a dataset creation list.
    let count = call.status("H5Pget_external_count", unsafe { H5Pget_external_count(list.id()) })?;
    let one = |index: c_int| {
        let mut name = vec![0_u8; NAME_ROOM_LEN_BYTES];
        let (mut offset, mut len_bytes) = (0, 0);
        // SAFETY: the buffer has the stated length; the variables outlive the call.
        let status = unsafe {
            let out = name.as_mut_ptr().cast();
            H5Pget_external(list.id(), index as c_uint, name.len(), out, &raw mut offset, &raw mut len_bytes)
        };
        call.status("H5Pget_external", status)?;
        let end = name.iter().position(|&byte| byte == 0);
        let Some(end) = end else { return Err(unsupported(call, "an external file with a long name".to_owned())) };
        name.truncate(end);
        Ok((name, offset as u64, len_bytes))
    };
    (0..count).map(one).collect()
}

/// Returns the filter pipeline of a dataset.
pub(super) fn filters(list: &Handle, call: Call<'_>) -> Result<Vec<Filter>> {
    // SAFETY: a dataset creation list.
    let count = call.status("H5Pget_nfilters", unsafe { H5Pget_nfilters(list.id()) })?;
    (0..count as c_uint).map(|number| filter(list, number, call)).collect()
}

fn filter(list: &Handle, number: c_uint, call: Call<'_>) -> Result<Filter> {
    /// `H5Z_FLAG_OPTIONAL`.
    const OPTIONAL: c_uint = 1;
    /// Size of the name buffer: names in the file have a 16-bit length.
    const NAME_ROOM: usize = 1 << 16;
    let (mut flags, mut config, mut parameter_count) = (0, 0, 0_usize);
    let mut name = vec![0_u8; NAME_ROOM];
    let mut get = |parameters: &mut Vec<c_uint>, parameter_count: &mut usize| {
        // SAFETY: the list has a filter of this number; the buffers have the stated lengths; the variables outlive the
        // call, which sets the count to the filter's number of parameters.
        let id = unsafe {
            H5Pget_filter2(
                list.id(),
                number,
                &raw mut flags,
                parameter_count,
                parameters.as_mut_ptr(),
                name.len(),
                name.as_mut_ptr().cast(),
                &raw mut config,
            )
        };
        call.status("H5Pget_filter", id)
    };
    let mut parameters = Vec::new();
    get(&mut parameters, &mut parameter_count)?;
    parameters.resize(parameter_count, 0);
    let id = get(&mut parameters, &mut parameter_count)?;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    name.truncate(end);
    let id = u16::try_from(id).map_err(|_| unsupported(call, format!("filter {id}")))?;
    Ok(Filter { id, optional: flags & OPTIONAL != 0, name, parameters })
}
