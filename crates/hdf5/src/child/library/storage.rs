//! Storage of datasets: where their values lie, and their fill values.

use super::properties::{CHUNKED, COMPACT, CONTIGUOUS, VIRTUAL};
use super::types::OpenType;
use super::{OpenFile, properties, unsupported, values};
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::{ChunkIndex, FillValue, Layout};
use hdf5_metno_sys::h5d::{H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, H5Dget_offset, H5Dget_storage_size};
use hdf5_metno_sys::h5p::{
    H5Pfill_value_defined, H5Pget_alloc_time, H5Pget_chunk, H5Pget_chunk_opts, H5Pget_fill_time,
};
use raddle_core::plan::extent::MAX_RANK;
use std::ffi::{c_int, c_uint};

/// Returns the storage layout. Chunk indexes are left to libhdf5: see [`ChunkIndex::ThroughLibrary`].
pub(super) fn layout(file: &OpenFile, dataset: &Handle, list: &Handle, call: Call<'_>) -> Result<Layout> {
    match properties::layout_class(list, call)? {
        COMPACT => values::of_compact(file, dataset, call).map(Layout::Compact),
        CONTIGUOUS => {
            let files = properties::external_files(list, call)?;
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
