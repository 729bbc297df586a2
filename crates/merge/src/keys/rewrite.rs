//! Adds computed columns to an existing file.
//!
//! The new file is written next to the old one, with chunks copied as stored, and replaces it when it is complete. (The
//! redo log of an append could avoid the copy.) Digests and row ranges of the old file are copied rather than computed
//! again, so that earlier damage remains visible. Invariant: the file's name refers to the old file or to the complete
//! new one.

use super::DerivedSpec;
use super::attach::left_over;
use crate::error::{MergeError, Result};
use crate::options::{Compress, MergeOptions, Shuffle, Watch};
use crate::plan::layout::LayoutPolicy;
use crate::plan::{MergePlan, OutputState, plan_from};
use crate::verify::digests::stored;
use crate::verify::digests::structure::{check_structure, structure_digests};
use crate::write::publish::check_replaceable;
use crate::write::{MergeContext, MergeReport, merge, merge_collective};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use std::path::Path;

/// Operation named in errors of other ranks.
const ADDING: &str = "add columns to the file";

/// Plans the file at `path` with the columns of `spec` added.
///
/// # Errors
/// As for [`crate::plan::plan`]; also if the file has changed since its digests were computed, or cannot be replaced
/// without a loss.
pub fn plan_rewrite(path: &Path, spec: DerivedSpec, options: &MergeOptions, watch: &Watch<'_>) -> Result<MergePlan> {
    plan_rewrite_collective(path, spec, options, watch, &SingleProcess)
}

/// Collective. Plans like [`plan_rewrite`], across `ranks`.
///
/// # Errors
/// As for [`plan_rewrite`], on every rank.
pub fn plan_rewrite_collective(
    path: &Path,
    spec: DerivedSpec,
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<MergePlan> {
    let carried = ranks.agree(ADDING, stored::find(path, options))?;
    // The name of the file itself is replaced, not the name of a link to it.
    let canonical_path =
        std::fs::canonicalize(path).map_err(|source| MergeError::Input { path: path.to_path_buf(), source })?;
    ranks.agree(ADDING, check_replaceable(&canonical_path))?;
    let options = MergeOptions {
        output: canonical_path,
        in_place: true,
        force: true,
        layout: LayoutPolicy::Keep,
        chunk: None,
        compress: Compress::Keep,
        shuffle: Shuffle::Keep,
        provenance: options.provenance || carried.is_some(),
        derived: vec![spec],
        max_output_len_bytes: Some(u64::MAX),
        skip_bad: false,
        ..options.clone()
    };
    let mut plan = plan_from(&[path.to_path_buf()], OutputState::Rewritten(carried), &options, watch, ranks)?;
    if let Some(len_bytes) = plan.inputs.first().map(|input| input.userblock_len_bytes).filter(|&len| len > 0) {
        let reason = format!(
            "has a user block of {len_bytes} bytes, which would be lost; remove it with h5unjam first, or add keys to a copy \
             that raddle rechunk makes"
        );
        return Err(MergeError::Object { object: path.display().to_string(), reason });
    }
    if let Some(carried) = &plan.carried {
        check_structure(&plan, carried, structure_digests(&plan))?;
        let same_kind =
            |known: &DerivedSpec| std::mem::discriminant(known) == std::mem::discriminant(&options.derived[0]);
        let mut specs = Vec::new();
        for known in &carried.derived {
            match same_kind(known) {
                true => specs.extend(left_over(&plan, known, &options.derived[0])?),
                false => specs.push(known.clone()),
            }
        }
        plan.derived.specs = specs.into_iter().chain(options.derived.iter().cloned()).collect();
    }
    Ok(plan)
}

/// Writes the file that [`plan_rewrite`] planned.
pub fn write(plan: &MergePlan, watch: &Watch<'_>) -> Result<MergeReport> {
    merge(plan, watch)
}

/// Collective. Writes like [`write()`], on the ranks that planned it; the first rank returns the report.
pub fn write_collective(plan: &MergePlan, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<Option<MergeReport>> {
    merge_collective(plan, watch, ranks, MergeContext::default())
}
