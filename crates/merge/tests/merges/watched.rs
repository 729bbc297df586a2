//! Runs that are not observed, and runs during which a file is replaced.

use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::{Event, Observer, Silent, Stage};
use raddle_merge::{MergeOptions, MergeReport, Result, Watch, merge, plan};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub fn watched<T>(run: impl FnOnce(&Watch<'_>) -> Result<T>) -> Result<T> {
    run(&Watch { observer: &Silent, cancel: &CancelToken::new() })
}

/// Plans and merges to `output`.
pub fn merge_to(output: &Path, inputs: &[PathBuf], options: &MergeOptions) -> Result<MergeReport> {
    let options = MergeOptions { output: output.to_path_buf(), ..options.clone() };
    watched(|watch| merge(&plan(inputs, &options, watch)?, watch))
}

/// Renames a file to another one when a stage begins for the n-th time.
struct Replacing<'a> {
    files: (&'a Path, &'a Path),
    stage: Stage,
    at: u32,
    started: AtomicU32,
}

impl Observer for Replacing<'_> {
    fn event(&self, event: &Event) {
        if matches!(event, Event::StageStarted { stage, .. } if *stage == self.stage)
            && self.started.fetch_add(1, Ordering::Relaxed) + 1 == self.at
        {
            std::fs::rename(self.files.1, self.files.0).unwrap();
        }
    }
}

/// Runs while the first of two files is replaced by the second one: when `stage` begins for the `at`-th time, from 1.
pub fn replacing<T>(
    files: (&Path, &Path),
    stage: Stage,
    at: u32,
    run: impl FnOnce(&Watch<'_>) -> Result<T>,
) -> Result<T> {
    let observer = Replacing { files, stage, at, started: AtomicU32::new(0) };
    run(&Watch { observer: &observer, cancel: &CancelToken::new() })
}
