//! Variables that are shorter than one of their unlimited dimensions.
//!
//! HDF5 stores each variable as far as it was written, and readers return the fill value for the rest. The netCDF library
//! puts all of these values at the end, which is right along the first axis only: along others, values move to wrong places.
//! Of variables with two unlimited dimensions, it does not initialise some values (netCDF-C 4.10.1, `NC4_get_vars`).
//! Invariant: no merged variable is read like that.

use super::{Variables, is_without_variable};
use crate::conventions::Refusal;
use crate::schema::display_path;
use std::collections::{BTreeMap, BTreeSet};

/// Refuses variables that are shorter than an unlimited dimension along `first_axis` or a later one, or along any axis if
/// they have several unlimited dimensions. Along the dimensions in `records`, variables are completed.
pub(super) fn check(
    variables: &Variables<'_, '_>,
    records: &BTreeSet<Vec<u8>>,
    first_axis: usize,
) -> Result<(), Refusal> {
    let file = variables.file;
    let mut lengths: BTreeMap<&[u8], u64> = BTreeMap::new();
    let stored = || variables.dims.iter().filter(|(at, _)| !is_without_variable(file, **at));
    let axes = |at: usize, names| std::iter::zip::<&Vec<Vec<u8>>, _>(names, file.dims(at).unwrap_or_default());
    for (&at, names) in stored() {
        for (name, len) in axes(at, names).filter(|(name, _)| variables.unlimited.contains(*name)) {
            let longest = lengths.entry(name).or_default();
            *longest = (*longest).max(len);
        }
    }
    for (&at, names) in stored() {
        let unlimited = || axes(at, names).filter(|(name, _)| variables.unlimited.contains(*name));
        // A variable of which nothing was written consists of fill values, wherever they are put.
        if unlimited().all(|(_, len)| len == 0) {
            continue;
        }
        let first_axis = if unlimited().count() > 1 { 0 } else { first_axis };
        for (name, len) in axes(at, names).skip(first_axis).filter(|(name, _)| !records.contains(*name)) {
            let Some(&length) = lengths.get(name.as_slice()).filter(|length| len < **length) else { continue };
            let reason = format!(
                "has {len} of the {length} elements along {}: the netCDF library reads such a variable wrongly; write it \
                 in full, or leave it out with --exclude",
                display_path(name)
            );
            return Err(Refusal { object: display_path(file.path_of(at)), reason });
        }
    }
    Ok(())
}
