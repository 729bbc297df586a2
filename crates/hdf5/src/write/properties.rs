//! Property lists of an output, with the settings that make files reproducible and allow the driver to place data.

use super::driver::DriverHandle;
use super::filters;
use super::options::{Compat, OutputOptions};
use super::specs::{DatasetSpec, OutputLayout};
use super::{datatype, mappings, memory, not_writable};
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::{CreationOrder, InlineData};
use hdf5_metno_sys::h5d::{H5D_alloc_time_t, H5D_fill_time_t, H5D_layout_t};
use hdf5_metno_sys::h5f::{H5F_close_degree_t, H5F_libver_t};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5t::H5T_cset_t;
use std::ffi::c_uint;

/// `H5P_CRT_ORDER_TRACKED` and `H5P_CRT_ORDER_INDEXED`.
const ORDER_TRACKED: c_uint = 1;
const ORDER_INDEXED: c_uint = 2;

/// Newest format that libhdf5 may use if the low bound cannot express an object.
///
/// If the high bound were the low bound, an output could not hold, for example, a complex number. With the newest one,
/// every object still gets the oldest format, from the low bound upwards, that can express it.
const HIGH_BOUND: H5F_libver_t = H5F_libver_t::H5F_LIBVER_V200;

fn create(call: Call<'_>, class: hid_t) -> Result<Handle> {
    // SAFETY: the caller holds the lock, the class is one of the library's; we own the new list.
    unsafe { call.handle("H5Pcreate", H5Pcreate(class)) }
}

/// Creates a file access list: the planning driver, format bounds, and closing of all objects with the file.
pub(super) fn file_access(call: Call<'_>, plan: &DriverHandle, compat: Compat) -> Result<Handle> {
    let list = create(call, *H5P_CLS_FILE_ACCESS)?;
    plan.attach(call, list.id())?;
    let low = match compat {
        Compat::Earliest => H5F_libver_t::H5F_LIBVER_EARLIEST,
        Compat::V18 => H5F_libver_t::H5F_LIBVER_V18,
        Compat::V110 => H5F_libver_t::H5F_LIBVER_V110,
        Compat::Latest => HIGH_BOUND,
    };
    // SAFETY: valid list, the caller holds the lock.
    unsafe {
        // Set explicitly because the default low bound has changed with HDF5 2.0.
        call.status("H5Pset_libver_bounds", H5Pset_libver_bounds(list.id(), low, HIGH_BOUND))?;
        let strong = H5F_close_degree_t::H5F_CLOSE_STRONG;
        call.status("H5Pset_fclose_degree", H5Pset_fclose_degree(list.id(), strong))?;
        // The driver does not advertise aggregation; block sizes of zero express the same for readers of the list.
        call.status("H5Pset_meta_block_size", H5Pset_meta_block_size(list.id(), 0))?;
        call.status("H5Pset_small_data_block_size", H5Pset_small_data_block_size(list.id(), 0))?;
        // Without a page buffer, which would copy the placeholder's bytes.
        call.status("H5Pset_page_buffer_size", H5Pset_page_buffer_size(list.id(), 0, 0, 0))?;
    }
    Ok(list)
}

/// Creates a file creation list with the root group's settings. The file space strategy stays the default, because any
/// other would add a message to the superblock that HDF5 1.8 does not support.
pub(super) fn file_creation(call: Call<'_>, options: &OutputOptions) -> Result<Handle> {
    let list = create(call, *H5P_CLS_FILE_CREATE)?;
    object_settings(call, &list, options.root_attribute_order)?;
    link_order(call, &list, options.root_link_order)?;
    Ok(list)
}

/// Creates a group creation list.
pub(super) fn group_creation(call: Call<'_>, links: CreationOrder, attributes: CreationOrder) -> Result<Handle> {
    let list = create(call, *H5P_CLS_GROUP_CREATE)?;
    object_settings(call, &list, attributes)?;
    link_order(call, &list, links)?;
    Ok(list)
}

/// Creates a creation list for committed datatypes.
pub(super) fn datatype_creation(call: Call<'_>, attributes: CreationOrder) -> Result<Handle> {
    let list = create(call, *H5P_CLS_DATATYPE_CREATE)?;
    object_settings(call, &list, attributes)?;
    Ok(list)
}

/// Creates a link creation list with the character set of the name. Missing parents are not created, because their
/// creation order settings must be chosen explicitly.
pub(super) fn link_creation(call: Call<'_>, utf8: bool) -> Result<Handle> {
    let list = create(call, *H5P_CLS_LINK_CREATE)?;
    char_encoding(call, &list, utf8)?;
    Ok(list)
}

/// Creates an attribute creation list with the character set of the name.
pub(super) fn attribute_creation(call: Call<'_>, utf8: bool) -> Result<Handle> {
    let list = create(call, *H5P_CLS_ATTRIBUTE_CREATE)?;
    char_encoding(call, &list, utf8)?;
    Ok(list)
}

/// Creates a dataset creation list for `spec`, whose type is `datatype_handle`. A fill value may refer to objects of
/// `file`.
pub(super) fn dataset_creation(
    call: Call<'_>,
    spec: &DatasetSpec,
    datatype_handle: &Handle,
    file: Option<&Handle>,
) -> Result<Handle> {
    let list = create(call, *H5P_CLS_DATASET_CREATE)?;
    object_settings(call, &list, spec.attribute_order)?;
    // SAFETY: for the block: valid list, the caller holds the lock; the chunk shape has the length that is passed.
    unsafe {
        // libhdf5 reserves 256 bytes of the header for attributes unless the hint states that there will be none. The
        // hint is not stored.
        call.status("H5Pset_dset_no_attrs_hint", H5Pset_dset_no_attrs_hint(list.id(), u8::from(!spec.has_attributes)))?;
        // We choose when storage is allocated, not the input: early allocation would place all chunks before a claim is
        // made.
        let allocation = match &spec.layout {
            OutputLayout::Compact => {
                call.status("H5Pset_layout", H5Pset_layout(list.id(), H5D_layout_t::H5D_COMPACT))?;
                H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY
            }
            OutputLayout::Contiguous => {
                call.status("H5Pset_layout", H5Pset_layout(list.id(), H5D_layout_t::H5D_CONTIGUOUS))?;
                H5D_alloc_time_t::H5D_ALLOC_TIME_LATE
            }
            OutputLayout::Chunked { chunk_shape } => {
                let rank = chunk_shape.len() as i32;
                call.status("H5Pset_chunk", H5Pset_chunk(list.id(), rank, chunk_shape.as_ptr()))?;
                H5D_alloc_time_t::H5D_ALLOC_TIME_INCR
            }
            OutputLayout::Virtual(sources) => {
                mappings::set(call, &list, &spec.dataspace, sources)?;
                H5D_alloc_time_t::H5D_ALLOC_TIME_INCR
            }
        };
        call.status("H5Pset_alloc_time", H5Pset_alloc_time(list.id(), allocation))?;
    }
    filters::append(call, &list, &spec.filters)?;
    fill_value(call, &list, spec, datatype_handle, file)?;
    Ok(list)
}

fn fill_value(
    call: Call<'_>,
    list: &Handle,
    spec: &DatasetSpec,
    datatype_handle: &Handle,
    file: Option<&Handle>,
) -> Result<()> {
    let fill = &spec.fill;
    let time = match fill.write_time {
        0 => H5D_fill_time_t::H5D_FILL_TIME_ALLOC,
        1 => H5D_fill_time_t::H5D_FILL_TIME_NEVER,
        _ => H5D_fill_time_t::H5D_FILL_TIME_IFSET,
    };
    // SAFETY: valid list, the caller holds the lock.
    call.status("H5Pset_fill_time", unsafe { H5Pset_fill_time(list.id(), time) })?;
    if fill.undefined {
        // SAFETY: as above; no value means undefined.
        let status = unsafe { H5Pset_fill_value(list.id(), datatype_handle.id(), std::ptr::null()) };
        return call.status("H5Pset_fill_value", status).map(drop);
    }
    let class = spec.datatype.class();
    let image = match (&fill.value, class.is_file_local()) {
        (None, _) if !fill.user_defined => return Ok(()),
        (None, _) => memory::Image::zeros(datatype::memory_len_bytes(class)),
        (Some(InlineData::Stored(bytes)), false) => memory::Image::of_stored(bytes.clone()),
        (Some(InlineData::Canonical(bytes)), _) => memory::Image::of_canonical(call, class, bytes, 1, file)?,
        // A stored value of a file-local type points into another file, so only zeros are meaningful here.
        (Some(InlineData::Stored(bytes)), true) if bytes.iter().all(|&byte| byte == 0) => {
            memory::Image::zeros(datatype::memory_len_bytes(class))
        }
        (Some(InlineData::Stored(_)), true) => {
            return Err(not_writable(call, "its fill value points into its source file".to_owned()));
        }
    };
    let wanted_len_bytes = datatype::memory_len_bytes(class);
    if image.bytes().len() as u64 != wanted_len_bytes {
        return Err(not_writable(
            call,
            format!("its fill value has {} bytes, an element has {wanted_len_bytes}", image.bytes().len()),
        ));
    }
    // SAFETY: as above; libhdf5 reads one element in memory form, the length just checked.
    let status = unsafe { H5Pset_fill_value(list.id(), datatype_handle.id(), image.bytes().as_ptr().cast()) };
    call.status("H5Pset_fill_value", status).map(drop)
}

/// Sets the properties common to all objects: no time stamps (outputs must not depend on the clock), and the order of
/// attributes.
fn object_settings(call: Call<'_>, list: &Handle, attributes: CreationOrder) -> Result<()> {
    // SAFETY: for the block: valid list of an object creation class, the caller holds the lock.
    unsafe {
        call.status("H5Pset_obj_track_times", H5Pset_obj_track_times(list.id(), 0))?;
        if attributes.tracked || attributes.indexed {
            let flags = order_flags(attributes);
            call.status("H5Pset_attr_creation_order", H5Pset_attr_creation_order(list.id(), flags))?;
        }
    }
    Ok(())
}

fn link_order(call: Call<'_>, list: &Handle, links: CreationOrder) -> Result<()> {
    if links.tracked || links.indexed {
        let flags = order_flags(links);
        // SAFETY: valid list of a group creation class, the caller holds the lock.
        let status = unsafe { H5Pset_link_creation_order(list.id(), flags) };
        call.status("H5Pset_link_creation_order", status)?;
    }
    Ok(())
}

fn order_flags(order: CreationOrder) -> c_uint {
    // An index requires tracking.
    ORDER_TRACKED | if order.indexed { ORDER_INDEXED } else { 0 }
}

fn char_encoding(call: Call<'_>, list: &Handle, utf8: bool) -> Result<()> {
    let charset = if utf8 { H5T_cset_t::H5T_CSET_UTF8 } else { H5T_cset_t::H5T_CSET_ASCII };
    // SAFETY: valid list of a string creation class, the caller holds the lock.
    call.status("H5Pset_char_encoding", unsafe { H5Pset_char_encoding(list.id(), charset) }).map(drop)
}
