//! Unlimited virtual datasets, whose extent follows from their sources.
//!
//! libhdf5 makes such a dataset as long as its longest source allows, and shows fill values where a shorter one has
//! ended. Invariant: a dataset accepted by [`refuse_gaps`] holds values of its sources wherever an unlimited mapping
//! reaches.

use super::{OpenFile, properties, sources, unsupported};
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::Dataspace;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5s::{H5Sget_regular_hyperslab, H5Sget_select_npoints, H5Sget_simple_extent_ndims};

/// `H5S_UNLIMITED`.
const UNLIMITED: u64 = u64::MAX;

/// Returns the numbers of the unlimited mappings.
pub(super) fn mappings(list: &Handle, call: Call<'_>) -> Result<Vec<usize>> {
    let mut endless = Vec::new();
    for number in 0..properties::mapping_count(list, call)? {
        let space = properties::virtual_space(list, number, call)?;
        // SAFETY: a dataspace is open. An unlimited selection has all ones as its number of elements.
        if unsafe { H5Sget_select_npoints(space.id()) } < 0 {
            endless.push(number);
        }
    }
    Ok(endless)
}

/// Fails if `extent`, which libhdf5 derives from the longest source, exceeds what each of the `endless` mappings can
/// fill.
pub(super) fn refuse_gaps(
    file: &OpenFile,
    list: &Handle,
    endless: &[usize],
    extent: &Dataspace,
    call: Call<'_>,
) -> Result<()> {
    if endless.len() < 2 {
        return Ok(());
    }
    for &number in endless {
        let target = Slabs::of(&properties::virtual_space(list, number, call)?, call)?;
        let source = Slabs::of(&properties::source_space(list, number, call)?, call)?;
        let available = sources::source_dims(file, list, number, call)?;
        let filled = available.get(source.axis).map(|&size| target.end_of(source.slices_in(size)));
        if filled.zip(extent.dims().get(target.axis)).is_none_or(|(filled, &size)| filled < size) {
            let what = "a virtual dataset whose unlimited sources differ in length (libhdf5 would show fill values)";
            return Err(unsupported(call, what.to_owned()));
        }
    }
    Ok(())
}

/// A selection along its unlimited axis: blocks of slices, with an unlimited last block or an unlimited number of
/// blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slabs {
    axis: usize,
    start: u64,
    stride: u64,
    /// Slices per block; [`UNLIMITED`] if there is one block without an end.
    block: u64,
}

impl Slabs {
    fn of(space: &Handle, call: Call<'_>) -> Result<Self> {
        // SAFETY: a simple dataspace is open.
        let rank = call.status("H5Sget_simple_extent_ndims", unsafe { H5Sget_simple_extent_ndims(space.id()) })?;
        let [mut start, mut stride, mut count, mut block] = [(); 4].map(|()| vec![0; rank as usize]);
        let mut get = |id: hid_t| {
            let (start, stride) = (start.as_mut_ptr(), stride.as_mut_ptr());
            // SAFETY: the selection is unlimited, which only regular hyperslabs are; one number per dimension.
            unsafe { H5Sget_regular_hyperslab(id, start, stride, count.as_mut_ptr(), block.as_mut_ptr()) }
        };
        call.status("H5Sget_regular_hyperslab", get(space.id()))?;
        let axis = (0..rank as usize).find(|&axis| count[axis] == UNLIMITED || block[axis] == UNLIMITED);
        let Some(axis) = axis else {
            let what = "a virtual dataset with an unlimited mapping of a limited source".to_owned();
            return Err(unsupported(call, what));
        };
        Ok(Self { axis, start: start[axis], stride: stride[axis].max(1), block: block[axis] })
    }

    /// Returns the number of selected slices below `size`.
    fn slices_in(&self, size: u64) -> u64 {
        let behind = size.saturating_sub(self.start);
        if self.block == UNLIMITED {
            return behind;
        }
        (behind / self.stride).saturating_mul(self.block).saturating_add((behind % self.stride).min(self.block))
    }

    /// Returns the end position of the first `slices` slices.
    fn end_of(&self, slices: u64) -> u64 {
        let (whole, rest) = match self.block {
            0 | UNLIMITED => (0, slices),
            block => (slices / block, slices % block),
        };
        whole.saturating_mul(self.stride).saturating_add(self.start).saturating_add(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_blocks_end_where_the_next_would_start() {
        let slabs = Slabs { axis: 0, start: 1, stride: 6, block: 2 };
        for (size, slices, end) in [(0, 0, 1), (1, 0, 1), (2, 1, 2), (3, 2, 7), (7, 2, 7), (8, 3, 8), (13, 4, 13)] {
            assert_eq!((slabs.slices_in(size), slabs.end_of(slices)), (slices, end), "{size}");
        }
    }

    #[test]
    fn one_endless_block_ends_with_its_source() {
        let slabs = Slabs { axis: 0, start: 3, stride: 1, block: UNLIMITED };
        assert_eq!((slabs.slices_in(10), slabs.end_of(7)), (7, 10));
        assert_eq!(slabs.slices_in(2), 0);
    }
}
