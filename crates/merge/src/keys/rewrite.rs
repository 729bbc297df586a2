//! Adding made columns to a file that is there.
//!
//! The new file is written beside the old one, its chunks copied as stored, and replaces it when it is complete. (The redo log of an
//! append could do without the copy.) Digests and row ranges of the old file are copied and not computed again, so that damage from
//! before stays visible. Invariant: the file's name leads to the old file or to the complete new one.

use super::MadeSpec;
use super::attach::left_over;
use crate::digests::stored;
use crate::digests::structure::{check_structure, structure_digests};
use crate::error::{MergeError, Result};
use crate::execute::{MergeReport, merge, merge_among};
use crate::layout::LayoutPolicy;
use crate::options::{Compress, MergeOptions, Shuffle, Watch};
use crate::plan::{Beginning, MergePlan, plan_from};
use crate::ranks::agree;
use raddle_core::communicator::{Communicator, SingleProcess};
use std::path::Path;

/// Operation named in errors of other ranks.
const ADDING: &str = "add columns to the file";

/// Plans the file at `path` with the columns of `spec` added.
///
/// # Errors
/// As [`crate::plan::plan`]; also if the file is not what it was when its digests were made.
pub fn plan_rewrite(path: &Path, spec: MadeSpec, options: &MergeOptions, watch: &Watch<'_>) -> Result<MergePlan> {
    plan_rewrite_among(path, spec, options, watch, &SingleProcess)
}

/// Collective. Like [`plan_rewrite`], across `ranks`.
///
/// # Errors
/// As [`plan_rewrite`], on every rank.
pub fn plan_rewrite_among(
    path: &Path,
    spec: MadeSpec,
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<MergePlan> {
    let carried = agree(ranks, ADDING, stored::find(path, options))?;
    // The name that is taken is the file's own, not that of a link to it.
    let own = std::fs::canonicalize(path).map_err(|source| MergeError::Input { path: path.to_path_buf(), source })?;
    let options = MergeOptions {
        output: own,
        in_place: true,
        force: true,
        layout: LayoutPolicy::Keep,
        chunk: None,
        compress: Compress::Keep,
        shuffle: Shuffle::Keep,
        provenance: options.provenance || carried.is_some(),
        made: vec![spec],
        max_output_len_bytes: Some(u64::MAX),
        skip_bad: false,
        ..options.clone()
    };
    let mut plan = plan_from(&[path.to_path_buf()], Beginning::Rewritten(carried), &options, watch, ranks)?;
    if let Some(len_bytes) = plan.inputs.first().map(|input| input.userblock_len_bytes).filter(|&len| len > 0) {
        let reason = format!(
            "has a user block of {len_bytes} bytes, which would be lost; take it away with h5unjam first, or add keys to a copy \
             that raddle rechunk makes"
        );
        return Err(MergeError::Object { object: path.display().to_string(), reason });
    }
    if let Some(carried) = &plan.carried {
        check_structure(&plan, carried, structure_digests(&plan))?;
        let same_kind = |known: &MadeSpec| std::mem::discriminant(known) == std::mem::discriminant(&options.made[0]);
        let mut specs = Vec::new();
        for known in &carried.made {
            match same_kind(known) {
                true => specs.extend(left_over(&plan, known, &options.made[0])?),
                false => specs.push(known.clone()),
            }
        }
        plan.made.specs = specs.into_iter().chain(options.made.iter().cloned()).collect();
    }
    Ok(plan)
}

/// Writes what [`plan_rewrite`] planned.
pub fn write(plan: &MergePlan, watch: &Watch<'_>) -> Result<MergeReport> {
    merge(plan, watch)
}

/// Collective. Like [`write`], by the ranks that made the plan; the first returns the report.
pub fn write_among(plan: &MergePlan, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<Option<MergeReport>> {
    merge_among(plan, watch, ranks)
}
