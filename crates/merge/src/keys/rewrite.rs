//! Adding made columns to a file that is there.
//!
//! The file is written anew beside itself, chunks moved as stored, and takes the name when it is whole: what an append
//! in place would do without the copy, once that can be done without a moment at which the file is broken. This is the
//! one place to change then. Digests and row ranges that the file holds are carried over, not made anew, so that damage
//! from before stays damage. Invariant: under the file's name there is what was there before, or the whole new file.

use super::MadeSpec;
use crate::digests::stored;
use crate::digests::structure::structure_digests;
use crate::error::{MergeError, Result};
use crate::execute::{MergeReport, merge};
use crate::layout::LayoutPolicy;
use crate::options::{Compress, MergeOptions, Watch};
use crate::plan::{Beginning, MergePlan, plan_from};
use crate::schema::{Role, display_path};
use std::path::Path;

/// Plans the file at `path` with the columns of `spec` added.
///
/// # Errors
/// As [`crate::plan::plan`]; also if the file is not what it was when its digests were made.
pub fn plan_rewrite(path: &Path, spec: MadeSpec, options: &MergeOptions, watch: &Watch<'_>) -> Result<MergePlan> {
    let carried = match stored::read(path, options) {
        Ok(stored) => Some(stored),
        Err(MergeError::NoDigests { .. }) => None,
        Err(error) => return Err(error),
    };
    // The name that is taken is the file's own, not that of a link to it.
    let own = std::fs::canonicalize(path).map_err(|source| MergeError::Input { path: path.to_path_buf(), source })?;
    let options = MergeOptions {
        output: own,
        in_place: true,
        force: true,
        layout: LayoutPolicy::Keep,
        chunk: None,
        compress: Compress::Keep,
        provenance: options.provenance || carried.is_some(),
        made: vec![spec],
        max_output_len_bytes: Some(u64::MAX),
        skip_bad: false,
        ..options.clone()
    };
    let mut plan = plan_from(&[path.to_path_buf()], Beginning::Rewritten(carried), &options, watch)?;
    check_structure(&plan)?;
    if let Some(carried) = &plan.carried {
        let same_kind = |known: &MadeSpec| std::mem::discriminant(known) == std::mem::discriminant(&options.made[0]);
        let earlier = carried.made.iter().filter(|known| !same_kind(known)).cloned();
        plan.made.specs = earlier.chain(options.made.iter().cloned()).collect();
    }
    Ok(plan)
}

/// Writes what [`plan_rewrite`] planned.
pub fn write(plan: &MergePlan, watch: &Watch<'_>) -> Result<MergeReport> {
    merge(plan, watch)
}

/// Refuses a file whose objects are not those that were written: their new digests would hide it.
fn check_structure(plan: &MergePlan) -> Result<()> {
    let Some(carried) = &plan.carried else { return Ok(()) };
    for (entry, digest) in plan.schema.entries.iter().zip(structure_digests(plan)) {
        let known = match entry.role {
            Role::Column(column) if plan.made.has(column) => continue,
            Role::Column(_) => carried.datasets.get(&entry.path).map(|known| known.structure),
            _ => carried.objects.get(&entry.path).copied(),
        };
        if known != Some(digest) {
            return Err(MergeError::Object {
                object: display_path(&entry.path),
                reason: "is not what was written; run raddle verify before anything is added".to_owned(),
            });
        }
    }
    Ok(())
}
