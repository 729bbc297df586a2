//! Computation of the samples of all levels across ranks. The first level is restructured, and every other level is
//! computed from the previous one.
//!
//! Shards are assembled elsewhere. Invariants: the boxes of a level are disjoint, cover the level, and are the same on
//! every rank; means are computed only of whole cells, so boxes that cut cells are first moved to power-of-two boxes.

use super::downsample::{Downsample, LevelPair};
use super::layout::ImageLayout;
use super::level::Level;
use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::region::SampleBox;
use crate::error::Result;
use crate::write::exchange::{BoxData, partition_error, restructure, zero_samples};
use crate::write::restructure::{ImposedBox, Restructuring};
use raddle_core::cancel::CancelToken;
use raddle_core::memory::{MemoryBudget, Permit};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::ranks::traffic::Traffic;
use std::borrow::Cow;
use std::path::Path;

/// Minimum length, along halved axes, of the boxes in which samples are collected. Boxes of 8 samples can be halved three
/// times before samples must be moved again.
const MIN_SIDE: u64 = 8;

/// The boxes of every rank.
pub(crate) type Partition = Vec<Vec<SampleBox>>;

/// Samples of all levels.
#[derive(Debug)]
pub(crate) struct Pyramid<'a> {
    /// Boxes that this rank holds, indexed by level.
    pub(crate) levels: Vec<Vec<BoxData<'a>>>,
    /// Boxes of all ranks, indexed by level.
    pub(crate) partitions: Vec<Partition>,
    /// Size of the power-of-two boxes of the first level, if it was restructured.
    pub(crate) imposed_counts: Option<Point>,
    permits: Vec<Permit>,
}

/// Inputs for computing the levels.
pub(crate) struct PyramidBuild<'m> {
    /// The output, for errors.
    pub(crate) path: &'m Path,
    pub(crate) form: &'m ImageLayout,
    /// Boxes to restructure the first level to, if requested.
    pub(crate) imposed: Option<ImposedBox>,
    pub(crate) budget: &'m MemoryBudget,
    pub(crate) threads: usize,
    pub(crate) cancel: &'m CancelToken,
    pub(crate) ranks: &'m dyn Communicator,
}

impl PyramidBuild<'_> {
    /// Collective. Computes the levels from `patches`, this rank's boxes of the first level.
    pub(crate) fn make<'a>(
        &self,
        patches: Vec<BoxData<'a>>,
        partition: Partition,
        traffic: &mut Traffic,
    ) -> Result<Pyramid<'a>> {
        let mut pyramid =
            Pyramid { levels: vec![patches], partitions: vec![partition], imposed_counts: None, permits: Vec::new() };
        if let Some(imposed) = self.imposed {
            pyramid.imposed_counts = Some(self.gather(&mut pyramid, imposed, traffic)?);
        }
        for level in &self.form.levels[1..] {
            if self.form.downsample == Downsample::Average
                && let Some(counts) = self.whole_cells(pyramid.last_partition(), level)
            {
                let imposed_counts = self.gather(&mut pyramid, ImposedBox::Counts(counts), traffic)?;
                if pyramid.levels.len() == 1 {
                    pyramid.imposed_counts = Some(imposed_counts);
                }
            }
            let halved = self.halve(&pyramid, level);
            let (patches, permit) = self.ranks.agree("make the coarser levels", halved)?;
            let downsampled = |of: &SampleBox| self.form.downsample.target_box(of, level);
            let of_rank = |boxes: &Vec<SampleBox>| boxes.iter().map(downsampled).filter(|of| !of.is_empty()).collect();
            let partition = pyramid.last_partition().iter().map(of_rank).collect();
            pyramid.levels.push(patches);
            pyramid.partitions.push(partition);
            pyramid.permits.push(permit);
        }
        Ok(pyramid)
    }

    /// Returns the level before `level`, to which the last boxes belong.
    fn before(&self, pyramid: &Pyramid<'_>) -> &Level {
        &self.form.levels[pyramid.levels.len() - 1]
    }

    /// Returns the size of boxes that cut no cells; `None` if the present boxes cut none either.
    fn whole_cells(&self, partition: &Partition, level: &Level) -> Option<Point> {
        let boxes = || partition.iter().flatten();
        let far_end = |axis: usize| boxes().map(|of| of.end[axis]).max().unwrap_or(0);
        let cuts = |axis: usize| {
            let (factor, far_end) = (level.factors[axis], far_end(axis));
            boxes().any(|of| of.start[axis] % factor != 0 || of.end[axis] % factor != 0 && of.end[axis] != far_end)
        };
        let side = |axis: usize| {
            let longest = boxes().map(|of| of.counts()[axis]).max().unwrap_or(1).next_power_of_two();
            if level.factors[axis] > 1 { longest.max(MIN_SIDE) } else { longest }
        };
        (0..MAX_RANK).any(cuts).then(|| std::array::from_fn(side))
    }

    /// Collective. Moves the samples of the last level to power-of-two boxes; returns their size.
    fn gather(&self, pyramid: &mut Pyramid<'_>, imposed: ImposedBox, traffic: &mut Traffic) -> Result<Point> {
        let domain = self.before(pyramid).domain();
        let plan = Restructuring::new(&domain, pyramid.last_partition(), imposed);
        let plan = plan.map_err(|source| partition_error(self.path, source))?;
        let sample_lens: Vec<usize> = self.form.fields.iter().map(|(_, sample)| sample.len_bytes()).collect();
        let patches = pyramid.levels.pop().unwrap_or_default();
        let (gathered, permit) = restructure(&plan, patches, &sample_lens, self.budget, self.ranks, traffic)?;
        pyramid.levels.push(gathered);
        pyramid.permits.push(permit);
        pyramid.partitions.pop();
        pyramid.partitions.push(plan.partition(self.ranks.size()));
        Ok(plan.counts)
    }

    /// Computes the samples of `level` from this rank's boxes of the last level.
    fn halve(&self, pyramid: &Pyramid<'_>, level: &Level) -> Result<(Vec<BoxData<'static>>, Permit)> {
        let (before, downsample) = (&pyramid.levels[pyramid.levels.len() - 1], self.form.downsample);
        let downsampled = |patch: &BoxData<'_>| downsample.target_box(&patch.region, level);
        let samples: u64 = before.iter().map(|patch| downsampled(patch).sample_count().unwrap_or(u64::MAX)).sum();
        let per_sample: u64 = self.form.fields.iter().map(|(_, sample)| sample.len_bytes() as u64).sum();
        let permit = self.budget.try_acquire(samples.saturating_mul(per_sample), "coarser levels")?;
        let mut patches = Vec::new();
        for patch in before {
            let region = downsampled(patch);
            if region.is_empty() {
                continue;
            }
            let mut arrays = Vec::new();
            for ((_, sample), samples) in self.form.fields.iter().zip(&patch.arrays) {
                let mut out = zero_samples(region.sample_count(), sample.len_bytes())?;
                let halving = LevelPair { downsample, sample: *sample, level, region: &patch.region, samples };
                halving.make(&region, &mut out, self.threads, self.cancel)?;
                arrays.push(Cow::Owned(out));
            }
            patches.push(BoxData { region, arrays });
        }
        Ok((patches, permit))
    }
}

impl Pyramid<'_> {
    fn last_partition(&self) -> &Partition {
        &self.partitions[self.partitions.len() - 1]
    }
}
