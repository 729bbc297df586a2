//! Repeated names along the axis of concatenation, which anndata keeps with a warning.
//!
//! Invariant: names are compared by 64-bit digests, which take eight bytes each; the name in the message has been read.

use crate::conventions::Choice;
use crate::error::Result;
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::attribute::{string, text};
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{Role, child_path, display_path};
use crate::write::values::{ColumnReader, open_pool};
use raddle_core::digest::fragment;
use raddle_hdf5::logical::CanonicalElements;

/// Returns a difference that describes names which occur more than once in the inputs of `plan`; `None` if there are no
/// such names.
pub(crate) fn repeated(plan: &MergePlan, watch: &Watch<'_>) -> Result<Option<Difference>> {
    let entries = &plan.schema.entries;
    if plan.convention != Some(Choice::Anndata) {
        return Ok(None);
    }
    let frame = child_path(b"/", plan.options.conventions.axis.of_anndata().frame().as_bytes());
    let Some(entry) = entries.iter().find(|entry| entry.path == frame) else { return Ok(None) };
    let Some(name) = text(&entry.attributes, "_index") else { return Ok(None) };
    let path = child_path(&frame, name.as_bytes());
    let Some(Role::Column(column)) = entries.iter().find(|entry| entry.path == path).map(|entry| &entry.role) else {
        return Ok(None);
    };
    let pool = open_pool(plan);
    let mut reader = ColumnReader::new(plan, &pool);
    let class = plan.schema.columns[*column as usize].model().datatype.class.clone();
    let mut digests = Vec::with_capacity(plan.columns[*column as usize].dims[0] as usize);
    reader.for_each_canonical_block(*column, u64::MAX, &mut |_, _, canonical| {
        watch.cancel.check()?;
        digests.extend(CanonicalElements::new(&class, canonical).flatten().map(fragment));
        Ok(())
    })?;
    digests.sort_unstable();
    let total = digests.len();
    let mut repeated: Vec<u64> = digests.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    repeated.dedup();
    digests.dedup();
    if repeated.is_empty() {
        return Ok(None);
    }
    let mut found = None;
    reader.for_each_canonical_block(*column, u64::MAX, &mut |_, _, canonical| {
        if found.is_none() {
            let is_it = |element: &&[u8]| repeated.binary_search(&fragment(element)).is_ok();
            found = CanonicalElements::new(&class, canonical)
                .flatten()
                .find(is_it)
                .and_then(|one| string(&class, one))
                .map(|name| String::from_utf8_lossy(name).into_owned());
        }
        Ok(())
    })?;
    Ok(Some(Difference {
        path: display_path(&path),
        kind: DifferenceKind::Repetition,
        expected: "each name once".to_owned(),
        found: format!(
            "{} more than once, {:?} for one; --index-unique appends the number of the input",
            total - digests.len(),
            found.unwrap_or_default()
        ),
        inputs: Vec::new(),
    }))
}
