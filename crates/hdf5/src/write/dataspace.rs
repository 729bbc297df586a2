//! Dataspaces of an output and selections in them.

use super::not_writable;
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::Dataspace;
use hdf5_metno_sys::h5s::{H5S_class_t, H5S_seloper_t, H5Screate, H5Screate_simple, H5Sselect_hyperslab};

/// Creates a libhdf5 dataspace of this extent. The caller holds the lock.
pub(super) fn build(call: Call<'_>, dataspace: &Dataspace) -> Result<Handle> {
    // SAFETY: for the block: the caller holds the lock; libhdf5 reads as many numbers as the rank states, which both
    // slices were checked to have, and refuses ranks above 32.
    unsafe {
        match dataspace {
            Dataspace::Scalar => call.handle("H5Screate", H5Screate(H5S_class_t::H5S_SCALAR)),
            Dataspace::Null => call.handle("H5Screate", H5Screate(H5S_class_t::H5S_NULL)),
            Dataspace::Simple { dims, max_dims } => {
                if dims.len() != max_dims.len() || dims.is_empty() {
                    return Err(not_writable(
                        call,
                        format!("its extent has {} current and {} maximum sizes", dims.len(), max_dims.len()),
                    ));
                }
                let rank = dims.len() as i32;
                call.handle("H5Screate_simple", H5Screate_simple(rank, dims.as_ptr(), max_dims.as_ptr()))
            }
        }
    }
}

/// Selects `count` elements from `start` (one number per dimension). The caller holds the lock.
pub(super) fn select_box(call: Call<'_>, space: &Handle, start: &[u64], count: &[u64], union: bool) -> Result<()> {
    debug_assert_eq!(start.len(), count.len());
    let operation = if union { H5S_seloper_t::H5S_SELECT_OR } else { H5S_seloper_t::H5S_SELECT_SET };
    // SAFETY: valid handle, lock held; callers pass one number per dimension of the space.
    let status = unsafe {
        H5Sselect_hyperslab(space.id(), operation, start.as_ptr(), std::ptr::null(), count.as_ptr(), std::ptr::null())
    };
    call.status("H5Sselect_hyperslab", status).map(drop)
}
