//! Previews: the coarse levels of arrays, sampled while the arrays pass in boxes, each written as a separate dataset.
//!
//! The samples of the levels up to a given one form a lattice, and their blocks equal those of a dataset of the lattice
//! alone. Such a dataset is written, so every IDX reader can read it to its last level (docs/design/027-preview.md).
//! The caller provides the boxes. Invariant: a preview holds every sample of its lattice unchanged, or is not written.

mod folder;
mod names;
mod plan;
mod samples;

pub use folder::PreviewFolder;
pub use plan::{MIN_SAMPLES, PlannedPreview, PreviewCandidate, PreviewOptions, PreviewPlan, is_worth};

use crate::error::{IdxError, Result};
use crate::write::exchange::BoxData;
use crate::write::options::WriteOptions;
use crate::write::writer::Writer;
use raddle_core::path_text;
use raddle_core::plan::extent::{BoxSource, Extent};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::{Silent, Watch};
use samples::PreviewSamples;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Report of one dataset of a preview.
#[derive(Debug, Clone, Serialize)]
pub struct PreviewedDataset {
    /// Path of the array.
    pub path: String,
    /// Path of the `.idx` file.
    #[serde(serialize_with = "path_text::of")]
    pub file: PathBuf,
    /// Number of elements of the array per axis, slowest first.
    pub shape: Vec<u64>,
    /// Distance between the samples in the array, per axis.
    pub spacing: Vec<u64>,
    /// Number of samples per axis.
    pub samples: Vec<u64>,
    /// Length of the samples.
    pub sample_len_bytes: u64,
    /// Stored length of the blocks.
    pub stored_len_bytes: u64,
}

/// Report of a preview.
#[derive(Debug, Clone, Serialize)]
pub struct PreviewReport {
    /// Folder of the preview.
    #[serde(serialize_with = "path_text::of")]
    pub folder: PathBuf,
    /// Maximum number of samples per dataset that was applied.
    pub max_samples: u64,
    /// Memory that the samples took while they were collected.
    pub held_len_bytes: u64,
    /// Datasets of the preview.
    pub datasets: Vec<PreviewedDataset>,
    /// Wall time of writing the preview.
    pub elapsed_s: f64,
}

/// Samples of a plan's arrays, collected while the arrays pass.
#[derive(Debug)]
pub struct Preview {
    plan: PreviewPlan,
    samples: Vec<PreviewSamples>,
    /// Number of samples collected, including those received from other ranks.
    passed: AtomicU64,
}

impl Preview {
    /// Creates a preview without samples; no memory is allocated yet.
    pub fn new(plan: PreviewPlan) -> Self {
        let samples = plan.datasets.iter().map(PreviewSamples::new).collect();
        Self { plan, samples, passed: AtomicU64::new(0) }
    }

    /// Returns the plan of the preview.
    pub fn plan(&self) -> &PreviewPlan {
        &self.plan
    }

    /// Returns whether `extent` of the array of `dataset` contains a sample.
    pub fn wants(&self, dataset: usize, extent: &Extent) -> bool {
        !self.plan.datasets[dataset].lattice.points_in(extent).is_empty()
    }

    /// Collects the samples from `values`, the elements of `extent` in the array of `dataset`. Every element must pass
    /// once.
    ///
    /// # Errors
    /// If the box does not fit the array or the buffer, or there is not enough memory.
    pub fn take(&self, dataset: usize, extent: &Extent, values: BoxSource<'_>) -> Result<()> {
        let of = &self.plan.datasets[dataset];
        let points = of.lattice.points_in(extent);
        self.samples[dataset].take(of, &points, (extent, values))?;
        self.passed.fetch_add(points.element_count().unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    /// Collective. Gathers the samples of all ranks on the first.
    ///
    /// # Errors
    /// If communication fails, or the first rank has not enough memory.
    pub fn gather(&self, ranks: &dyn Communicator) -> Result<()> {
        if ranks.size() == 1 {
            return Ok(());
        }
        let passed = ranks.all_gather_u64(self.passed.load(Ordering::Relaxed))?;
        self.passed.store(passed.iter().sum(), Ordering::Relaxed);
        let mut outcome = Ok(());
        for samples in &self.samples {
            // Even after an error here, the other ranks wait for the next message.
            outcome = outcome.and(samples.gather(ranks)?);
        }
        ranks.agree("gather the preview", outcome)
    }

    /// Writes the datasets into `folder`, on one process, and frees the samples.
    ///
    /// # Errors
    /// If samples are missing, files cannot be written, or the run is cancelled.
    pub fn complete(&self, folder: &PreviewFolder, options: &WriteOptions, watch: &Watch<'_>) -> Result<PreviewReport> {
        let started = Instant::now();
        let (passed, all) = (self.passed.load(Ordering::Relaxed), self.plan.sample_count());
        if passed != all {
            let reason = format!("only {passed} of {all} samples were collected, which is a bug in raddle");
            return Err(IdxError::Engine { path: self.plan.folder.clone(), reason });
        }
        let watch = Watch { observer: &Silent, cancel: watch.cancel };
        folder.make()?;
        let mut datasets = Vec::new();
        for (of, samples) in self.plan.datasets.iter().zip(&self.samples) {
            let mut writer = Writer::new(&folder.staged_path(&of.file_name()), of.header.clone(), options.clone())?;
            let patches: Vec<BoxData<'static>> = samples.give_up(of);
            let written = writer.write_collective(None, patches, &watch, &SingleProcess)?;
            datasets.push(PreviewedDataset {
                path: of.path.clone(),
                file: self.plan.folder.join(of.file_name()),
                shape: of.shape.clone(),
                spacing: of.spacing(),
                samples: of.lattice.shape.to_vec(),
                sample_len_bytes: written.sample_len_bytes,
                stored_len_bytes: written.stored_len_bytes,
            });
        }
        Ok(PreviewReport {
            folder: self.plan.folder.clone(),
            max_samples: self.plan.max_samples,
            held_len_bytes: self.plan.len_bytes(),
            datasets,
            elapsed_s: started.elapsed().as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests;
