//! Verification of an image: every shard decodes, the number of shards equals the number written, and each level
//! follows from the previous one.
//!
//! Values of the finest level are not checked. Invariant: a shard is counted as good, counted as empty (not stored, all
//! zeros), or reported as a fault, never skipped.

use super::downsample::{Downsample, LevelPair};
use super::image::Image;
use super::layout::is_space;
use super::level::Level;
use super::shard::ChunkDecoder;
use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::region::SampleBox;
use crate::error::{IdxError, Result};
use raddle_core::cancel::CancelToken;
use raddle_core::parallel::for_each;
use raddle_core::path_text;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Bytes of a level that are compared with the next level at a time; a small multiple of this is held in memory.
const PIECE_LEN_BYTES: u64 = 16 << 20;

/// A shard that is damaged or inconsistent with the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct BadShard {
    /// The shard's file, or the folder of the level or of the image.
    #[serde(serialize_with = "path_text::of")]
    pub path: PathBuf,
    /// Description of the fault.
    pub why: String,
}

/// Result of checking an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImageCheck {
    /// Name of the image.
    pub image: String,
    /// Number of levels.
    pub levels: u64,
    /// Whether each level was compared with the previous one, which requires that the image names a known downsampling
    /// method.
    pub levels_compared: bool,
    /// Number of good shards.
    pub shards: u64,
    /// Number of shards that are not stored because all their samples are zero.
    pub empty_shards: u64,
    /// Number of good chunks.
    pub chunks: u64,
    /// Length of good shards.
    pub stored_len_bytes: u64,
    /// Faults found.
    pub bad: Vec<BadShard>,
}

/// Result of checking a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FolderCheck {
    /// Checks of the folder's images.
    pub checks: Vec<ImageCheck>,
}

impl FolderCheck {
    /// Returns whether nothing is missing or damaged.
    pub fn is_whole(&self) -> bool {
        self.checks.iter().all(|check| check.bad.is_empty())
    }
}

impl Image {
    /// Checks every shard of every level.
    ///
    /// # Errors
    /// If the run is cancelled, or memory is short. Faults of the image are in the result, not errors.
    pub fn check(&self, threads: usize, cancel: &CancelToken) -> Result<ImageCheck> {
        let halvings = self.halvings();
        let outcome = ImageCheck {
            image: self.name().to_owned(),
            levels: self.level_count() as u64,
            levels_compared: halvings.is_some(),
            ..ImageCheck::default()
        };
        let outcome = Mutex::new(outcome);
        for level in 0..self.level_count() {
            let shards = self.shards_in(level, &self.domain(level));
            let counts = |outcome: &ImageCheck| (outcome.shards, outcome.bad.len() as u64);
            let before = counts(&outcome.lock().unwrap_or_else(PoisonError::into_inner));
            for_each(&shards, threads, cancel, Default::default, |buffers, number| {
                let found = self.check_shard(level, number, buffers).and_then(|found| {
                    if level > 0
                        && let Some((downsample, levels)) = &halvings
                    {
                        self.check_halving(*downsample, &levels[level], level, number, cancel)?;
                    }
                    Ok(found)
                });
                let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
                match found {
                    Ok(Some((chunks, len_bytes))) => {
                        outcome.shards += 1;
                        outcome.chunks += chunks;
                        outcome.stored_len_bytes += len_bytes;
                    }
                    Ok(None) => outcome.empty_shards += 1,
                    Err(error @ (IdxError::Core(_) | IdxError::Memory { .. })) => return Err(error),
                    Err(error) => {
                        let path = self.shard_path(level, number);
                        outcome.bad.push(BadShard { path, why: why(&error) });
                    }
                }
                Ok(())
            })?;
            let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
            let after = counts(&outcome);
            let stored = after.0 - before.0 + after.1 - before.1;
            if let Some(written) = self.array(level).shards.filter(|written| *written != stored) {
                let path = self.shard_path(level, &[0; MAX_RANK]);
                let path = path.ancestors().nth(self.axes().len() + 1).unwrap_or(&path).to_path_buf();
                outcome
                    .bad
                    .push(BadShard { path, why: format!("{written} shards were written, but {stored} are stored") });
            }
        }
        let mut outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Levels match in every folder that states its numbers of shards, because raddle wrote it.
        let is_own = (0..self.level_count()).all(|level| self.array(level).shards.is_some());
        if is_own && halvings.is_none() && self.downsample().is_some() {
            let why = "shapes or types of its levels do not follow from each other".to_owned();
            outcome.bad.push(BadShard { path: self.folder().to_path_buf(), why });
        }
        outcome.bad.sort_unstable();
        Ok(outcome)
    }

    /// Returns the number of chunks and bytes of a shard; `None` if it is not stored.
    fn check_shard(
        &self,
        level: usize,
        number: &Point,
        buffers: &mut (ChunkDecoder, Vec<u8>),
    ) -> Result<Option<(u64, u64)>> {
        let Some(shard) = self.open_shard(level, number)? else { return Ok(None) };
        let mut chunks = 0;
        for (chunk, entry) in shard.entries.iter().enumerate() {
            if let Some(entry) = entry {
                self.chunk(level, &shard, chunk, *entry, buffers)?;
                chunks += 1;
            }
        }
        Ok(Some((chunks, shard.len_bytes)))
    }

    /// Returns how the levels are downsampled; `None` if the method is unknown.
    fn downsample(&self) -> Option<Downsample> {
        let known = [Downsample::Subsample, Downsample::Average];
        known.into_iter().find(|known| self.method() == Some(known.name()))
    }

    /// Returns how the levels are downsampled, and the levels; `None` if the method is unknown or the shapes of the
    /// levels do not match.
    fn halvings(&self) -> Option<(Downsample, Vec<Level>)> {
        let downsample = self.downsample()?;
        let counts = |level: usize| self.domain(level).end;
        let mut levels = vec![Level { counts: counts(0), factors: [1; MAX_RANK], spacing: [1; MAX_RANK] }];
        for number in 1..self.level_count() {
            let before = levels[number - 1];
            let is_halved =
                |axis: usize| self.axes().get(axis).copied().is_some_and(is_space) && before.counts[axis] > 1;
            let factors: Point = std::array::from_fn(|axis| if is_halved(axis) { 2 } else { 1 });
            let halved_counts: Point = std::array::from_fn(|axis| before.counts[axis].div_ceil(factors[axis]));
            if halved_counts != counts(number) || self.array(number).form.sample != self.array(0).form.sample {
                return None;
            }
            // Distances are not needed here.
            levels.push(Level { counts: halved_counts, factors, spacing: before.spacing });
        }
        Some((downsample, levels))
    }

    /// Checks that the samples of a shard follow from the previous level.
    fn check_halving(
        &self,
        downsample: Downsample,
        level: &Level,
        number: usize,
        shard: &Point,
        cancel: &CancelToken,
    ) -> Result<()> {
        let form = &self.array(number).form;
        let Some(whole) = form.shard_box(shard).intersection(&level.domain()) else { return Ok(()) };
        let before = self.domain(number - 1);
        let source = |target: &SampleBox| SampleBox {
            start: std::array::from_fn(|axis| target.start[axis] * level.factors[axis]),
            end: std::array::from_fn(|axis| (target.end[axis] * level.factors[axis]).min(before.end[axis])),
        };
        let is_stored = |level: usize, shard: &Point| self.shard_path(level, shard).symlink_metadata().is_ok();
        let sources = self.shards_in(number - 1, &source(&whole));
        if !is_stored(number, shard) && !sources.iter().any(|shard| is_stored(number - 1, shard)) {
            return Ok(()); // zeros computed from zeros need no check
        }
        let len = form.sample.len_bytes();
        let (mut differ, mut rest) = (0, vec![whole]);
        while let Some(target) = rest.pop() {
            let region = source(&target);
            let len_bytes = region.sample_count().and_then(|samples| samples.checked_mul(len as u64));
            if len_bytes.is_none_or(|len_bytes| len_bytes > PIECE_LEN_BYTES)
                && let Some((low, high)) = target.halves()
            {
                rest.extend([high, low]);
                continue;
            }
            let samples = match self.read(number - 1, &region) {
                // Reported when that level is checked.
                Err(IdxError::Target { .. } | IdxError::Read { .. }) => return Ok(()),
                read => read?,
            };
            let mut want = crate::write::exchange::zero_samples(target.sample_count(), len)?;
            let halving = LevelPair { downsample, sample: form.sample, level, region: &region, samples: &samples };
            halving.make(&target, &mut want, 1, cancel)?;
            let got = self.read(number, &target)?;
            differ += got.chunks(len).zip(want.chunks(len)).filter(|(got, want)| got != want).count();
        }
        match differ {
            0 => Ok(()),
            samples => {
                let fault = super::ZarrFault::Differs { samples: samples as u64, level: number - 1 };
                Err(fault.at(&self.shard_path(number, shard)))
            }
        }
    }
}

/// Describes the fault without its path, which is reported separately.
fn why(error: &IdxError) -> String {
    match error {
        IdxError::Target { source, .. } => source.to_string(),
        IdxError::Read { source, operation, .. } => format!("cannot {operation} it: {source}"),
        other => other.to_string(),
    }
}
