//! Previews as text.

use super::{escape, quantity};
use raddle_idx::preview::{PreviewPlan, PreviewReport};
use std::path::Path;

/// Maximum number of datasets that are listed individually.
const MAX_LIST_LEN: usize = 20;

/// Formats one line per dataset: file, samples, their distance, path.
fn lines<'a>(datasets: impl ExactSizeIterator<Item = (&'a Path, &'a [u64], &'a [u64], &'a str)>) -> String {
    let left_out = datasets.len().saturating_sub(MAX_LIST_LEN);
    let mut text = String::new();
    for (file, samples, spacing, path) in datasets.take(MAX_LIST_LEN) {
        let which = match spacing.iter().all(|spacing| *spacing == 1) {
            true => "all".to_owned(),
            false => format!("every {}", quantity::shape(spacing)),
        };
        text.push_str(&format!("  {}: {} samples, {which} of {path}\n", escape::path(file), quantity::shape(samples)));
    }
    if left_out > 0 {
        text.push_str(&format!("  and {} more\n", quantity::count(left_out as u64)));
    }
    text
}

/// Formats a planned preview.
pub fn planned(plan: &PreviewPlan) -> String {
    let datasets = quantity::counted(plan.datasets.len() as u64, "dataset");
    let files: Vec<_> = plan.datasets.iter().map(|of| (plan.folder.join(of.file_name()), of.spacing())).collect();
    let lines = lines(plan.datasets.iter().zip(&files).map(|(of, (file, spacing))| {
        (file.as_path(), of.lattice.shape.as_slice(), spacing.as_slice(), of.path.as_str())
    }));
    let memory = quantity::size(plan.len_bytes());
    format!("preview: {datasets} in {}, {memory} of memory until the end\n{lines}", escape::path(&plan.folder))
}

/// Formats a finished preview.
pub fn written(report: &PreviewReport) -> String {
    let sum = |of: fn(&raddle_idx::preview::PreviewedDataset) -> u64| report.datasets.iter().map(of).sum::<u64>();
    let (samples, stored) = (sum(|of| of.sample_len_bytes), sum(|of| of.stored_len_bytes));
    let lines = lines(
        report
            .datasets
            .iter()
            .map(|of| (of.file.as_path(), of.samples.as_slice(), of.spacing.as_slice(), of.path.as_str())),
    );
    format!(
        "preview: {} in {}\n  {}, {} of the samples' {}, written in {}\n{lines}",
        quantity::counted(report.datasets.len() as u64, "dataset"),
        escape::path(&report.folder),
        quantity::size(stored),
        quantity::share(stored, samples),
        quantity::size(samples),
        quantity::seconds(report.elapsed_s),
    )
}
