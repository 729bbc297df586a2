//! Commits arrays in plan order, as their tiles are placed.

use super::{Context, EngineError, PlacedArray, Recorder};
use crate::output::claims::{Claim, Collector};
use crate::plan::TileIndex;
use crate::report::progress::{Event, Observer, Stage};
use crate::report::{StageTotals, elapsed_ns};
use std::time::Instant;

/// Callback that receives the claims of finished arrays, in plan order.
pub type Commit<'c, E> = dyn FnMut(PlacedArray<'_>) -> Result<(), E> + 'c;

/// Commits everything that an earlier run placed.
pub(super) fn commit_kept<E: std::error::Error>(
    committer: &mut Committer<'_, '_, E>,
    recorder: &mut dyn Recorder,
    context: &Context<'_>,
) -> Result<(), (u64, EngineError<E>)> {
    while let Some(kept) = recorder.next_kept().map_err(|source| (0, EngineError::Recorded { source }))? {
        context.cancel.check().map_err(|error| (0, error.into()))?;
        committer.count(kept.tiles, &kept.claims, kept.verbatim_tiles);
        committer.take(kept.tiles, &kept.claims)?;
    }
    Ok(())
}

/// Callback that commits arrays, if this execution commits, and the counts of committed tiles.
pub(super) struct Committer<'a, 'c, E> {
    index: &'a TileIndex,
    collector: Collector<'a>,
    commit: Option<&'a mut Commit<'c, E>>,
    observer: &'a dyn Observer,
    pub(super) totals: StageTotals,
    pub(super) fill_tiles: u64,
    pub(super) verbatim_tiles: u64,
}

impl<'a, 'c, E: std::error::Error> Committer<'a, 'c, E> {
    pub(super) fn new(index: &'a TileIndex, commit: Option<&'a mut Commit<'c, E>>, observer: &'a dyn Observer) -> Self {
        Self {
            index,
            collector: Collector::new(index),
            commit,
            observer,
            totals: StageTotals::default(),
            fill_tiles: 0,
            verbatim_tiles: 0,
        }
    }

    /// Returns whether nothing is left to commit. If this execution does not commit, it ends when the workers do.
    pub(super) fn is_complete(&self) -> bool {
        self.commit.is_some() && self.collector.is_complete()
    }

    /// Counts a placed batch of this rank.
    pub(super) fn count(&mut self, tiles: u64, claims: &[Claim], verbatim_tiles: u64) {
        self.fill_tiles += tiles - claims.len() as u64;
        self.verbatim_tiles += verbatim_tiles;
    }

    /// Takes the next `tiles` tiles of the plan and commits the arrays they complete. An error is returned with the
    /// number of the first tile after the array that failed.
    pub(super) fn take(&mut self, tiles: u64, claims: &[Claim]) -> Result<(), (u64, EngineError<E>)> {
        let Self { collector, commit: Some(commit), observer, totals, .. } = self else { return Ok(()) };
        let outcome = collector.collect(tiles, claims, &mut |done| {
            let started = Instant::now();
            let outcome = commit(done);
            totals.add(&StageTotals {
                wall_ns: elapsed_ns(started),
                cpu_ns: 0,
                bytes: done.claims.iter().map(|claim| claim.len_bytes).sum(),
                calls: 1,
            });
            observer.event(&Event::Advanced { stage: Stage::Commit, bytes: 0, items: 1 });
            outcome
        });
        outcome.map_err(|(array, source)| {
            let end = self.index.tiles_of(array).map_or(0, |(_, end)| end);
            (end, EngineError::Commit { array, source })
        })
    }
}
