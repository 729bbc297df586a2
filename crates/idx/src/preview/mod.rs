//! Previews: the coarse levels of arrays that pass by in boxes, picked on their way, each a dataset of its own.
//!
//! The samples of the levels up to one are a lattice, and their blocks are those of a dataset of the lattice alone: that is what
//! is written, so that every reader of IDX reads it to its last level (docs/design/027-preview.md). Not for where the boxes come
//! from. Invariant: a preview holds every sample of its lattice as it passed, or is not written.

mod folder;
mod names;
mod plan;
mod samples;

pub use folder::PreviewFolder;
pub use plan::{Candidate, LEAST_SAMPLES, PlannedPreview, PreviewOptions, PreviewPlan, is_worth};

use crate::error::{IdxError, Result};
use crate::exchange::{Patch, agree};
use crate::options::WriteOptions;
use crate::writer::Writer;
use raddle_core::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::extent::{BoxSource, Extent};
use raddle_core::progress::{Silent, Watch};
use samples::Samples;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What one dataset of a preview became.
#[derive(Debug, Clone, Serialize)]
pub struct PreviewOf {
    /// The array that it is a preview of.
    pub path: String,
    /// The `.idx` file.
    pub file: PathBuf,
    /// Elements of the array per axis, slowest first.
    pub shape: Vec<u64>,
    /// Distance of its samples in the array, per axis.
    pub spacing: Vec<u64>,
    /// Samples per axis.
    pub samples: Vec<u64>,
    /// Bytes of the samples.
    pub sample_len_bytes: u64,
    /// Bytes of the blocks as stored.
    pub stored_len_bytes: u64,
}

/// What a preview became.
#[derive(Debug, Clone, Serialize)]
pub struct PreviewReport {
    /// Its folder.
    pub folder: PathBuf,
    /// Most samples of a dataset, as it was in force.
    pub max_samples: u64,
    /// Memory that the samples took while they were picked.
    pub held_len_bytes: u64,
    /// Its datasets.
    pub datasets: Vec<PreviewOf>,
    /// Wall time of writing it.
    pub elapsed_s: f64,
}

/// The samples of a plan's arrays while these pass.
#[derive(Debug)]
pub struct Preview {
    plan: PreviewPlan,
    samples: Vec<Samples>,
    /// Samples that passed, here and on ranks that brought theirs.
    passed: AtomicU64,
}

impl Preview {
    /// Nothing has passed yet, and no memory is held.
    pub fn new(plan: PreviewPlan) -> Self {
        let samples = plan.datasets.iter().map(Samples::new).collect();
        Self { plan, samples, passed: AtomicU64::new(0) }
    }

    /// What it is to be.
    pub fn plan(&self) -> &PreviewPlan {
        &self.plan
    }

    /// Whether `extent` of the array of `dataset` has a sample.
    pub fn wants(&self, dataset: usize, extent: &Extent) -> bool {
        !self.plan.datasets[dataset].lattice.points_in(extent).is_empty()
    }

    /// Picks the samples out of `values`, which are `extent` of the array of `dataset`. Every element passes once.
    ///
    /// # Errors
    /// If the box does not fit array or buffer, or there is no memory.
    pub fn take(&self, dataset: usize, extent: &Extent, values: BoxSource<'_>) -> Result<()> {
        let of = &self.plan.datasets[dataset];
        let points = of.lattice.points_in(extent);
        self.samples[dataset].take(of, &points, (extent, values))?;
        self.passed.fetch_add(points.element_count().unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    /// Collective. Brings what passed on the other ranks to the first.
    ///
    /// # Errors
    /// If ranks cannot send, or the first has no memory.
    pub fn bring(&self, ranks: &dyn Communicator) -> Result<()> {
        if ranks.size() == 1 {
            return Ok(());
        }
        let passed = ranks.all_gather_u64(self.passed.load(Ordering::Relaxed))?;
        self.passed.store(passed.iter().sum(), Ordering::Relaxed);
        let mut outcome = Ok(());
        for samples in &self.samples {
            // Whatever fails here, the others wait for the next message.
            outcome = outcome.and(samples.bring(ranks)?);
        }
        agree(ranks, "bring the preview together", outcome)
    }

    /// Writes the datasets into `folder`, by one process. The samples are given up.
    ///
    /// # Errors
    /// If samples are missing, files cannot be written, or the run is cancelled.
    pub fn complete(&self, folder: &PreviewFolder, options: &WriteOptions, watch: &Watch<'_>) -> Result<PreviewReport> {
        let started = Instant::now();
        let (passed, all) = (self.passed.load(Ordering::Relaxed), self.plan.sample_count());
        if passed != all {
            let reason = format!("{passed} samples of {all} passed, which is a defect");
            return Err(IdxError::Engine { path: self.plan.folder.clone(), reason });
        }
        let watch = Watch { observer: &Silent, cancel: watch.cancel };
        folder.make()?;
        let mut datasets = Vec::new();
        for (of, samples) in self.plan.datasets.iter().zip(&self.samples) {
            let mut writer = Writer::new(&folder.made(&of.file_name()), of.header.clone(), options.clone())?;
            let patches: Vec<Patch<'static>> = samples.give_up(of);
            let written = writer.write_among(None, patches, &watch, &SingleProcess)?;
            datasets.push(PreviewOf {
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
