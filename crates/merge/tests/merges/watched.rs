//! Helpers for runs that are neither observed nor cancelled.

use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::Silent;
use raddle_merge::{MergeOptions, MergeReport, Result, Watch, merge, plan};
use std::path::{Path, PathBuf};

pub fn watched<T>(run: impl FnOnce(&Watch<'_>) -> Result<T>) -> Result<T> {
    run(&Watch { observer: &Silent, cancel: &CancelToken::new() })
}

/// Plans and merges to `output`.
pub fn merge_to(output: &Path, inputs: &[PathBuf], options: &MergeOptions) -> Result<MergeReport> {
    let options = MergeOptions { output: output.to_path_buf(), ..options.clone() };
    watched(|watch| merge(&plan(inputs, &options, watch)?, watch))
}
