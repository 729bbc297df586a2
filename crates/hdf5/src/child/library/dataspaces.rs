//! Dataspaces of datasets and attributes.

use super::OpenFile;
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::Dataspace;
use hdf5_metno_sys::h5d::H5Dget_space;
use hdf5_metno_sys::h5s::{
    H5S_class_t, H5Sget_simple_extent_dims, H5Sget_simple_extent_ndims, H5Sget_simple_extent_type,
};

/// Returns the dataspace of a dataset as libhdf5 sees it now. Opens sources of virtual datasets.
pub(super) fn of_dataset(dataset: &Handle, call: Call<'_>) -> Result<Handle> {
    // SAFETY: a dataset is open; we own the new identifier.
    unsafe { call.handle("H5Dget_space", H5Dget_space(dataset.id())) }
}

/// Returns the kind and extent of a dataspace.
pub(super) fn extent(file: &OpenFile, space: &Handle, call: Call<'_>) -> Result<Dataspace> {
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
