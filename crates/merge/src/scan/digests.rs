//! Digests that a scanned input holds of its own values.

use crate::inputs::paths::Paths;
use crate::scan::{ScannedEntry, ScannedRole};
use crate::verify::digests::{InputDigest, StoredDigests};

/// Returns the digest of each entry of an input, whose digests are `stored`.
pub(super) fn of_entries(stored: &StoredDigests, paths: &Paths, entries: &[ScannedEntry]) -> Vec<Option<InputDigest>> {
    let of_entry = |(at, entry): (usize, &ScannedEntry)| {
        let ScannedRole::Column { template, fact, .. } = &entry.role else { return None };
        let digests = stored.datasets.get(paths.get(at))?.digests.as_ref()?;
        let others = template.dataspace.dims().iter().skip(1);
        let row_len_bytes = others.fold(template.datatype.class.len_bytes(), |all, dim| all.saturating_mul(*dim));
        InputDigest::new(digests, fact.rows, row_len_bytes)
    };
    entries.iter().enumerate().map(of_entry).collect()
}
