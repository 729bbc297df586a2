//! Rewriting of a time step from the blocks of another dataset whose blocks hold the same samples.
//!
//! A block is read, decoded, reordered for the target and encoded again, so memory depends on the number of threads,
//! not on the size of the step. Datasets whose blocks hold other samples are read as arrays instead. Invariant: the
//! files equal those written from the same samples in memory.

use super::{StepState, Writer};
use crate::dataset::compression::BlockFault;
use crate::dataset::grid::{ArrayGrid, Layout, runs};
use crate::dataset::grid::{lattice, samples_in};
use crate::dataset::header::Header;
use crate::error::{IdxError, Result};
use crate::kernel;
use crate::read::dataset::{Dataset, Query};
use crate::read::stored::{BlockReader, StoredBlocks};
use crate::write::exchange::gather_any_boxes;
use crate::write::options::{WriteCounts, WriteReport};
use crate::write::step_plan::{BlockPlace, StepPlan};
use crate::write::work::{RankSamples, StepWork, Worker};
use raddle_core::engine::{TileForm, TileWork};
use raddle_core::memory::MemoryBudget;
use raddle_core::plan::Tile;
use raddle_core::plan::extent::fill_with;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::StageTable;
use raddle_core::report::progress::Watch;
use std::time::Instant;

/// Fields of a dataset at a time step, the source of blocks.
#[derive(Debug, Clone, Copy)]
pub struct BlockSource<'a> {
    /// Dataset to read from.
    pub dataset: &'a Dataset,
    /// Time step, if the dataset has any.
    pub time: Option<u64>,
    /// Indexes of its fields, in the order in which they are written.
    pub fields: &'a [usize],
    /// Whether blocks that are not stored have the field's default value.
    pub missing_as_default: bool,
}

impl BlockSource<'_> {
    /// Returns whether blocks of `header` hold the same samples as blocks of the source.
    pub(crate) fn has_blocks_of(&self, header: &Header) -> bool {
        let of = self.dataset.header();
        let samples = |header: &Header, field: usize| header.fields.get(field).map(|field| field.sample);
        let same_fields = || {
            let mut pairs = self.fields.iter().enumerate();
            pairs.all(|(field, source)| samples(header, field) == samples(of, *source))
        };
        (of.start, of.end, of.bits_per_block) == (header.start, header.end, header.bits_per_block)
            && of.bitmask == header.bitmask
            && self.fields.len() == header.fields.len()
            && same_fields()
    }
}

impl Writer {
    /// Collective. Writes a time step from the blocks of `source`, for which [`BlockSource::has_blocks_of`] holds.
    ///
    /// # Errors
    /// As for [`Writer::write_collective`]; also if the source has other blocks, or one is missing or damaged.
    pub(crate) fn rewrite_collective(
        &mut self,
        time: Option<u64>,
        source: &BlockSource<'_>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport> {
        let started = Instant::now();
        let budget = MemoryBudget::new(self.options.memory_limit_bytes);
        let checked = self.check_source(time, source).and_then(|domain| {
            watch.cancel.check()?;
            Ok(domain)
        });
        let domain = ranks.agree("check what is to be written", checked)?;
        gather_any_boxes(self.arguments_hash(time), &[], ranks)?;
        let make = |writer: &Self, run: &StepState<'_>, _: &mut WriteCounts| writer.rewrite(run, source);
        self.write_step(time, started, (&domain, &budget), (watch, ranks), make)
    }

    fn check_source(&self, time: Option<u64>, source: &BlockSource<'_>) -> Result<ArrayGrid> {
        let domain = self.check_time(time)?;
        if self.split.as_ref().is_some_and(|split| split.is_any()) || !source.has_blocks_of(&self.header) {
            return Err(IdxError::HeaderDiffers {
                path: source.dataset.path().to_path_buf(),
                what: "layout of blocks",
            });
        }
        for field in source.fields {
            source.dataset.readable(*field)?;
            source.dataset.grid(&Query { time: source.time, ..source.dataset.whole(*field) })?;
        }
        Ok(domain)
    }

    /// Collective. Writes all files of the step, complete but not yet durable.
    fn rewrite(&self, run: &StepState<'_>, source: &BlockSource<'_>) -> Result<WriteReport> {
        let encoding = Instant::now();
        let samples = RankSamples { header: &self.header, domain: run.domain, patches: &[] };
        let (path, effort) = (self.path.clone(), self.options.effort);
        let work = StepWork::new(samples, run.step, path, &self.compressions, effort, None);
        let of_field = |field: &usize| StoredBlocks::new(source.dataset, *field, source.time);
        let stored = source.fields.iter().map(of_field).collect();
        let work = RewriteWork { work, header: &self.header, step: run.step, domain: run.domain, source, stored };
        let stored_as =
            |field: usize, mask| (work.work.coding(field, mask), self.header.fields[field].default_layout());
        let engine = self.run_engine(&work, &stored_as, run)?;
        let count = run.domain.sample_count().unwrap_or(0);
        Ok(WriteReport {
            sample_len_bytes: self.sample_lens().iter().map(|len| count.saturating_mul(*len as u64)).sum(),
            stored_len_bytes: engine.stored_len_bytes,
            holders: run.ranks.size() as u64,
            encode_s: encoding.elapsed().as_secs_f64(),
            engine: Some(engine),
            ..self.report(run)
        })
    }
}

/// Blocks of a step, converted from the blocks of the source.
struct RewriteWork<'a> {
    work: StepWork<'a>,
    header: &'a Header,
    step: &'a StepPlan,
    domain: &'a ArrayGrid,
    source: &'a BlockSource<'a>,
    /// Blocks of the source, indexed by field.
    stored: Vec<StoredBlocks<'a>>,
}

/// State of a worker thread.
struct Rewriter {
    worker: Worker,
    reader: BlockReader,
    /// Samples of a block, x fastest.
    array: Vec<u8>,
}

impl RewriteWork<'_> {
    /// Fills a block with the samples of `found`, a block of the given layout, or with the source's default value.
    fn put(&self, place: BlockPlace, found: Option<(Layout, &[u8])>, array: &mut Vec<u8>, raw: &mut [u8]) {
        let (header, of) = (self.header, &self.header.fields[place.field]);
        let (bitmask, bits, len) = (&header.bitmask, header.bits_per_block, of.sample.len_bytes());
        let Some(lattice) = lattice(bitmask, bits, place.block) else { return };
        let is_whole = samples_in(&lattice, self.domain) == 1 << bits;
        if let Some((layout, samples)) = found
            && is_whole
            && layout == of.default_layout()
        {
            raw.copy_from_slice(samples);
            return;
        }
        if !is_whole {
            fill_with(raw, &of.default_sample());
        }
        let Some(grid) = kernel::gathered(&lattice, self.domain) else { return };
        let level = bitmask.max_level();
        array.resize(grid.sample_count().unwrap_or(0) as usize * len, 0);
        match found {
            Some((layout, samples)) => {
                for run in runs(bitmask, bits, place.block, layout, level) {
                    kernel::decode(&run, &grid, array, samples, len);
                }
            }
            None => {
                let source = self.source.fields[place.field];
                fill_with(array, &self.source.dataset.header().fields[source].default_sample());
            }
        }
        for run in runs(bitmask, bits, place.block, of.default_layout(), level) {
            kernel::encode(&run, &grid, array, raw, len);
        }
    }
}

impl TileWork for RewriteWork<'_> {
    type Error = IdxError;
    type Worker = Rewriter;

    fn worker(&self) -> Result<Rewriter> {
        Ok(Rewriter { worker: self.work.worker()?, reader: BlockReader::default(), array: Vec::new() })
    }

    fn assemble(&self, rewriter: &mut Rewriter, tile: Tile, raw: &mut [u8]) -> Result<()> {
        let place = self.step.place(tile);
        let stored = &self.stored[place.field];
        let Rewriter { reader, array, .. } = rewriter;
        reader.read(stored, &[place.block], &mut |block, path, found| {
            let found = match found {
                Ok(found) => Some((found.record.layout, found.raw)),
                Err(BlockFault::NotStored | BlockFault::NoFile) if self.source.missing_as_default => None,
                Err(fault) => return Err(stored.bad(block, path, fault)),
            };
            self.put(place, found, array, raw);
            Ok(())
        })
    }

    fn encode(&self, rewriter: &mut Rewriter, tile: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm> {
        self.work.encode(&mut rewriter.worker, tile, raw, stored)
    }

    fn stored_bound_len_bytes(&self, tile: Tile) -> usize {
        self.work.stored_bound_len_bytes(tile)
    }

    fn worker_len_bytes(&self) -> u64 {
        // A block in stored form, decoded, and as an array.
        let longest = self.step.tiles.arrays.iter().map(|array| array.element_len_bytes).max().unwrap_or(0);
        self.work.worker_len_bytes() + 4 * longest
    }

    fn file(&self, array: u32) -> u32 {
        self.work.file(array)
    }

    fn retire(&self, rewriter: Rewriter, stages: &mut StageTable) {
        self.work.retire(rewriter.worker, stages);
    }
}
