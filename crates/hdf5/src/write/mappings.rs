//! Virtual datasets of an output: mappings of rows to datasets in other files.
//!
//! No files are opened: the caller has already inspected the sources. Readers need HDF5 1.10, whatever the format of
//! the rest of the file.

use super::{dataspace, not_writable};
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::Dataspace;
use hdf5_metno_sys::h5p::H5Pset_virtual;

/// Rows of a virtual dataset that map to all rows of a dataset in another file, whose other dimensions are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualMapping {
    /// First mapped row.
    pub start_row: u64,
    /// Number of mapped rows.
    pub rows: u64,
    /// Path of the other file, absolute or relative to the folder of this file.
    pub file: Vec<u8>,
    /// Path of the dataset in the file.
    pub dataset: Vec<u8>,
}

/// Adds the mappings of a dataset of this extent to its creation list. The caller holds the lock.
pub(super) fn set(call: Call<'_>, list: &Handle, extent: &Dataspace, mappings: &[VirtualMapping]) -> Result<()> {
    let virtual_space = dataspace::build(call, extent)?;
    for mapping in mappings {
        let (mut start, mut count) = (vec![0; extent.dims().len()], extent.dims().to_vec());
        let (Some(first), Some(rows)) = (start.first_mut(), count.first_mut()) else {
            return Err(not_writable(call, "a scalar cannot be virtual".to_owned()));
        };
        (*first, *rows) = (mapping.start_row, mapping.rows);
        dataspace::select_box(call, &virtual_space, &start, &count, false)?;
        let source = dataspace::build(call, &Dataspace::Simple { max_dims: count.clone(), dims: count })?;
        let file = call.c_string("H5Pset_virtual", &literal(&mapping.file))?;
        let dataset = call.c_string("H5Pset_virtual", &literal(&mapping.dataset))?;
        // SAFETY: valid list, dataspaces and strings, all copied by libhdf5; the caller holds the lock.
        let status =
            unsafe { H5Pset_virtual(list.id(), virtual_space.id(), file.as_ptr(), dataset.as_ptr(), source.id()) };
        call.status("H5Pset_virtual", status)?;
    }
    Ok(())
}

/// Escapes a name for `H5Pset_virtual`: a percent sign begins a pattern, and two of them stand for one.
fn literal(name: &[u8]) -> Vec<u8> {
    name.iter().flat_map(|&byte| std::iter::repeat_n(byte, if byte == b'%' { 2 } else { 1 })).collect()
}

/// Returns the maximum length of the mappings in the global heap.
pub(super) fn stored_len_bytes(rank: u64, mappings: &[VirtualMapping]) -> u64 {
    // Version, count and checksum; per mapping two terminated names and two regular selections (type, version, flags,
    // length, rank; start, stride, count and block per dimension).
    let each = 2 * (20 + 32 * rank);
    let names = mappings.iter().map(|mapping| literal(&mapping.file).len() + literal(&mapping.dataset).len() + 2);
    13 + names.fold(0_u64, |sum, len| sum.saturating_add(len as u64 + each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_doubled() {
        assert_eq!(literal(b"50%b.h5"), b"50%%b.h5");
    }
}
