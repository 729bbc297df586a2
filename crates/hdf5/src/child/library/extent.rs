//! Extents of datasets, including virtual ones.
//!
//! Invariant: nothing here opens another file that [`sources`] has not allowed. `H5Dget_space` would do so for a
//! virtual dataset, so its extent is taken from the first mapping where possible.

use super::source_rows::check_descriptors;
use super::{OpenFile, dataspaces, endless, properties, sources};
use crate::error::Result;
use crate::ffi::{Call, Handle};
use crate::model::Dataspace;

/// Returns the extent of a dataset: the stored one, or for an unlimited virtual dataset the one derived from its
/// sources.
pub(super) fn of_dataset(file: &OpenFile, dataset: &Handle, list: &Handle, call: Call<'_>) -> Result<Dataspace> {
    if properties::is_virtual(list, call)? && properties::mapping_count(list, call)? > 0 {
        let endless = endless::mappings(list, call)?;
        if endless.is_empty() {
            let space = properties::virtual_space(list, 0, call)?;
            return dataspaces::extent(file, &space, call);
        }
        sources::check(file, list, call)?;
        let extent = dataspaces::extent(file, &dataspaces::of_dataset(dataset, call)?, call)?;
        // A source that cannot be opened would make the dataset shorter.
        check_descriptors(call)?;
        endless::refuse_gaps(file, list, &endless, &extent, call)?;
        return Ok(extent);
    }
    dataspaces::extent(file, &dataspaces::of_dataset(dataset, call)?, call)
}
