//! Dataspaces and creation properties, including the location of a dataset's data.
//!
//! Invariant: nothing here opens another file that [`sources`] has not allowed. `H5Dget_space` would do so for a
//! virtual dataset, so its extent is taken from the first mapping where possible.

use super::types::OpenType;
use super::{OpenFile, endless, sources, values};
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle};
use crate::model::{ChunkIndex, CreationOrder, Dataspace, FillValue, Filter, Layout};
use hdf5_metno_sys::h5d::{
    H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, H5Dget_create_plist, H5Dget_offset, H5Dget_space, H5Dget_storage_size,
};
use hdf5_metno_sys::h5g::H5Gget_create_plist;
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type};
use hdf5_metno_sys::h5p::{
    H5Pfill_value_defined, H5Pget_alloc_time, H5Pget_attr_creation_order, H5Pget_chunk, H5Pget_chunk_opts,
    H5Pget_external, H5Pget_external_count, H5Pget_fill_time, H5Pget_filter2, H5Pget_layout, H5Pget_nfilters,
    H5Pget_virtual_count,
};
use hdf5_metno_sys::h5s::{
    H5S_class_t, H5Sget_simple_extent_dims, H5Sget_simple_extent_ndims, H5Sget_simple_extent_type,
};
use hdf5_metno_sys::h5t::H5Tget_create_plist;
use raddle_core::plan::extent::MAX_RANK;
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

/// Returns the extent of a dataset: the stored one, or for an unlimited virtual dataset the one derived from its
/// sources.
pub(super) fn extent(file: &OpenFile, dataset: &Handle, list: &Handle, call: Call<'_>) -> Result<Dataspace> {
    if is_virtual(list, call)? && mapping_count(list, call)? > 0 {
        let endless = endless::mappings(list, call)?;
        if endless.is_empty() {
            let space = endless::virtual_space(list, 0, call)?;
            return dataspace_of(file, &space, call);
        }
        sources::check(file, list, call)?;
        let extent = dataspace_of(file, &dataspace(dataset, call)?, call)?;
        endless::refuse_gaps(file, list, &endless, &extent, call)?;
        return Ok(extent);
    }
    dataspace_of(file, &dataspace(dataset, call)?, call)
}

/// Returns the dataspace of a dataset as libhdf5 sees it now. Opens sources of virtual datasets.
pub(super) fn dataspace(dataset: &Handle, call: Call<'_>) -> Result<Handle> {
    // SAFETY: a dataset is open; we own the new identifier.
    unsafe { call.handle("H5Dget_space", H5Dget_space(dataset.id())) }
}

/// Returns the kind and extent of a dataspace.
pub(super) fn dataspace_of(file: &OpenFile, space: &Handle, call: Call<'_>) -> Result<Dataspace> {
    // SAFETY: a dataspace is open; the call returns one of the enumeration's values.
    match unsafe { H5Sget_simple_extent_type(space.id()) } {
        H5S_class_t::H5S_SCALAR => Ok(Dataspace::Scalar),
        H5S_class_t::H5S_NULL => Ok(Dataspace::Null),
        H5S_class_t::H5S_SIMPLE => {
            // SAFETY: a simple dataspace is open.
            let rank = call.status("H5Sget_simple_extent_ndims", unsafe { H5Sget_simple_extent_ndims(space.id()) })?;
            let rank = rank as usize;
            let (mut dims, mut max_dims) = (vec![0; rank], vec![0; rank]);
            // SAFETY: both have one element per dimension of the dataspace.
            let status = unsafe { H5Sget_simple_extent_dims(space.id(), dims.as_mut_ptr(), max_dims.as_mut_ptr()) };
            call.status("H5Sget_simple_extent_dims", status)?;
            // "Unlimited" is all ones in the file's size of lengths; for sizes below 8, libhdf5 returns it as a number.
            let unlimited =
                8_u32.checked_sub(u32::from(file.length_len_bytes)).map_or(u64::MAX, |less| u64::MAX >> (8 * less));
            for max_dim in max_dims.iter_mut().filter(|max_dim| **max_dim == unlimited) {
                *max_dim = u64::MAX;
            }
            Ok(Dataspace::Simple { dims, max_dims })
        }
        H5S_class_t::H5S_NO_CLASS => Err(call.error("H5Sget_simple_extent_type")),
    }
}

/// Returns the number of mappings of a virtual dataset.
pub(super) fn mapping_count(list: &Handle, call: Call<'_>) -> Result<usize> {
    let mut count = 0;
    // SAFETY: the creation list of a virtual dataset; the variable outlives the call.
    call.status("H5Pget_virtual_count", unsafe { H5Pget_virtual_count(list.id(), &raw mut count) })?;
    Ok(count)
}

/// `H5D_COMPACT`, `_CONTIGUOUS`, `_CHUNKED`, `_VIRTUAL`.
const COMPACT: c_int = 0;
const CONTIGUOUS: c_int = 1;
const CHUNKED: c_int = 2;
const VIRTUAL: c_int = 3;

fn layout_class(list: &Handle, call: Call<'_>) -> Result<c_int> {
    // SAFETY: a dataset creation list; the enumeration of the bindings includes all values of this version.
    let class = unsafe { H5Pget_layout(list.id()) } as c_int;
    call.status("H5Pget_layout", class)
}

/// Returns whether a dataset is virtual.
pub(super) fn is_virtual(list: &Handle, call: Call<'_>) -> Result<bool> {
    Ok(layout_class(list, call)? == VIRTUAL)
}

/// Returns the storage layout. Chunk indexes are left to libhdf5: see [`ChunkIndex::ThroughLibrary`].
pub(super) fn layout(file: &OpenFile, dataset: &Handle, list: &Handle, call: Call<'_>) -> Result<Layout> {
    match layout_class(list, call)? {
        COMPACT => values::of_compact(file, dataset, call).map(Layout::Compact),
        CONTIGUOUS => {
            let files = external_files(list, call)?;
            if files.is_empty() { contiguous(dataset, call) } else { Ok(Layout::External { files }) }
        }
        CHUNKED => chunked(dataset, list, call),
        VIRTUAL => Ok(Layout::Virtual),
        class => Err(unsupported(call, format!("layout class {class}"))),
    }
}

fn contiguous(dataset: &Handle, call: Call<'_>) -> Result<Layout> {
    // SAFETY: a dataset is open. The call returns an undefined address (all ones) if nothing is allocated, and also on
    // failure, for which a contiguous dataset gives no cause.
    let (address, len_bytes) = unsafe { (H5Dget_offset(dataset.id()), H5Dget_storage_size(dataset.id())) };
    let _ = call;
    Ok(Layout::Contiguous { address: (address != u64::MAX).then_some(address), len_bytes })
}

fn chunked(dataset: &Handle, list: &Handle, call: Call<'_>) -> Result<Layout> {
    let mut shape = vec![0; MAX_RANK];
    // SAFETY: the list is of a chunked dataset; the buffer has room for the highest rank.
    let rank = unsafe { H5Pget_chunk(list.id(), MAX_RANK as c_int, shape.as_mut_ptr()) };
    shape.truncate(call.status("H5Pget_chunk", rank)? as usize);
    let mut options: c_uint = 0;
    // SAFETY: as above; the variable outlives the call.
    call.status("H5Pget_chunk_opts", unsafe { H5Pget_chunk_opts(list.id(), &raw mut options) })?;
    // SAFETY: a dataset is open.
    let stored_len_bytes = unsafe { H5Dget_storage_size(dataset.id()) };
    Ok(Layout::Chunked {
        chunk_shape: shape,
        index: if stored_len_bytes == 0 { ChunkIndex::None } else { ChunkIndex::ThroughLibrary },
        partial_chunks_unfiltered: options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS != 0,
    })
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

/// Returns the fill value of a dataset.
pub(super) fn fill_value(
    file: &OpenFile,
    dataset: &Handle,
    list: &Handle,
    datatype: &OpenType,
    call: Call<'_>,
) -> Result<FillValue> {
    /// `H5D_FILL_VALUE_UNDEFINED` and `_USER_DEFINED`.
    const UNDEFINED: c_int = 0;
    const USER_DEFINED: c_int = 2;
    let (mut defined, mut allocation_time, mut write_time): (c_int, c_int, c_int) = (0, 0, 0);
    // SAFETY: a dataset creation list; the enumerations are kept as C ints because a malicious file may store numbers
    // outside of them.
    unsafe {
        call.status("H5Pfill_value_defined", H5Pfill_value_defined(list.id(), (&raw mut defined).cast()))?;
        call.status("H5Pget_alloc_time", H5Pget_alloc_time(list.id(), (&raw mut allocation_time).cast()))?;
        call.status("H5Pget_fill_time", H5Pget_fill_time(list.id(), (&raw mut write_time).cast()))?;
    }
    let user_defined = defined == USER_DEFINED;
    Ok(FillValue {
        value: user_defined.then(|| values::of_fill(file, dataset, list, datatype, call)).transpose()?,
        user_defined,
        undefined: defined == UNDEFINED,
        allocation_time: allocation_time as u8,
        write_time: write_time as u8,
    })
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

/// Creates the error for something valid that this reader does not support.
pub(super) fn unsupported(call: Call<'_>, what: String) -> Hdf5Error {
    let error = Hdf5Error::Unsupported { path: call.path.to_path_buf(), address: 0, what };
    if call.object.is_empty() { error } else { error.in_object(call.object.escape_ascii().to_string()) }
}
