//! Writing of a folder of images, by one process that holds whole arrays or by ranks that hold boxes of them, in the
//! phases of [`crate::Writer`].
//!
//! 1. Restructure: samples move to power-of-two boxes; every level is computed from the previous one, box by box
//!    (`pyramid`).
//! 2. Encode: a shard is assembled and compressed by the rank that holds most of its samples, or by a neighbour if that
//!    balances the load better (`work`, on the engine of `raddle_core`).
//! 3. Place: that rank writes the shard as one file. Metadata is written last, then the folder is published
//!    (`publish`).
//!
//! Invariant: the same samples and form give the same bytes for any number of ranks, threads and phases, and the folder
//! is published whole or not at all.

use super::fault::ZarrFault;
use super::layout::ImageLayout;
use super::plan::{ShardHolders, ShardPlan};
use super::publish::{ShardFiles, Staging, describe};
use super::pyramid::{Partition, Pyramid, PyramidBuild};
use super::work::ShardWork;
use crate::error::{IdxError, Result};
use crate::write::exchange::{BoxData, check_arrays, gather_boxes};
use crate::write::options::{Phases, WriteCounts, WriteOptions, WriteReport};
use crate::write::restructure::holder_count;
use raddle_core::digest::Digest;
use raddle_core::engine::{Context, EngineOptions, EngineReport, Execution, PlacedArray};
use raddle_core::memory::MemoryBudget;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::ranks::received::SentTraffic;
use raddle_core::report::StageTimer;
use raddle_core::report::progress::{Stage, Watch};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Writer of a folder of images, time step by time step. Dropped before [`ZarrWriter::publish`], it leaves no files.
#[derive(Debug)]
pub struct ZarrWriter {
    path: PathBuf,
    form: ImageLayout,
    options: WriteOptions,
    /// The hidden folder, on the first rank, once writing has begun.
    staging: Option<Staging>,
    /// Number of time steps written.
    written: u64,
    /// Number of shards stored per array, known to the first rank only.
    shards: Vec<u64>,
}

/// Outcome of encoding a time step.
struct EncodedStep {
    engine: EngineReport,
    /// Messages that this rank sent.
    sent: SentTraffic,
    /// Number of shards stored per array; only on the first rank.
    shards: Vec<u64>,
}

impl ZarrWriter {
    /// Creates a writer of the folder `path`. Nothing is written yet.
    ///
    /// # Errors
    /// If the options request one phase, or there are too many shards.
    pub fn new(path: &Path, form: ImageLayout, options: WriteOptions) -> Result<Self> {
        if options.phases == Phases::One {
            return Err(ZarrFault::OnePhase.at(path));
        }
        ShardPlan::new(&form).map_err(|fault| fault.at(path))?;
        let shards = vec![0; form.fields.len() * form.levels.len()];
        Ok(Self { path: path.to_path_buf(), form, options, staging: None, written: 0, shards })
    }

    /// Returns the description of the output.
    pub fn form(&self) -> &ImageLayout {
        &self.form
    }

    /// Collective. Writes the next time step, or the only one, by `ranks` that hold any number of boxes each. The boxes
    /// must be disjoint and cover all samples. All ranks must see the same file system and use the same form and
    /// options, except for threads and memory.
    ///
    /// # Errors
    /// If arrays do not fit the form, the output exists, or files cannot be written; on every rank. Also `RankFailed`
    /// if only another rank encountered an error. The writer must not be used afterwards.
    pub fn write_collective(
        &mut self,
        patches: Vec<BoxData<'_>>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport> {
        let started = Instant::now();
        let checked = check_arrays(&patches, &self.sample_lens()).and_then(|()| Ok(watch.cancel.check()?));
        ranks.agree("check what is to be written", checked)?;
        let partition = gather_boxes(&self.path, &self.form.domain(), self.arguments_hash(), &patches, ranks)?;
        let plan = ranks.agree("plan the shards", self.plan_next_step())?;
        let begun = self.begin(ranks)?;
        let files = ShardFiles::new(&self.path, &plan, self.written, self.options.durability);

        let budget = MemoryBudget::new(self.options.memory_limit_bytes);
        let context = Context { communicator: ranks, budget: &budget, observer: watch.observer, cancel: watch.cancel };
        let mut counts = WriteCounts::default();
        let pyramid = self.restructure(patches, partition, &context, &mut counts)?;
        let restructure_s = started.elapsed().as_secs_f64();

        let encoding = Instant::now();
        let EncodedStep { engine, sent, shards } = self.encode(&plan, &pyramid, &files, &context)?;
        let encode_s = encoding.elapsed().as_secs_f64();
        counts.add_aggregated(sent, ranks.size());

        let publishing = StageTimer::start();
        let finished = files.finish().and_then(|()| Ok(watch.cancel.check()?));
        ranks.agree("finish the files", finished)?;
        counts.stages.get_mut(Stage::Commit).add(&publishing.totals(0, 1));
        let mut report = WriteReport {
            time: self.form.steps.map(|_| self.written),
            files: engine.tiles - engine.fill_tiles,
            blocks: plan.chunk_count(),
            sample_len_bytes: self.step_len_bytes(),
            stored_len_bytes: engine.stored_len_bytes,
            imposed_counts: pyramid.imposed_counts,
            holders: holder_count(&pyramid.partitions[0]),
            elapsed_s: started.elapsed().as_secs_f64(),
            restructure_s,
            encode_s,
            publish_s: publishing.elapsed_s(),
            engine: Some(engine),
            ..WriteReport::new(&self.path, &self.options, &budget, ranks.size())
        };
        report.gather(&counts, ranks)?;
        if let Some(begun) = begun {
            self.staging = Some(begun);
        }
        self.shards.iter_mut().zip(shards).for_each(|(all, of_step)| *all += of_step);
        self.written += 1;
        Ok(report)
    }

    /// Returns the lengths of the samples of each field.
    fn sample_lens(&self) -> Vec<usize> {
        self.form.fields.iter().map(|(_, sample)| sample.len_bytes()).collect()
    }

    /// Returns the length of all samples of a time step.
    fn step_len_bytes(&self) -> u64 {
        let count = self.form.domain().sample_count().unwrap_or(0);
        self.sample_lens().iter().map(|len| count.saturating_mul(*len as u64)).sum()
    }

    /// Plans the shards of the next time step.
    fn plan_next_step(&self) -> Result<ShardPlan<'_>> {
        let wanted = self.form.steps.unwrap_or(1);
        match self.written < wanted {
            true => ShardPlan::new(&self.form).map_err(|fault| fault.at(&self.path)),
            false => Err(ZarrFault::Steps { written: self.written + 1, wanted }.at(&self.path)),
        }
    }

    /// Collective. Begins the output before its first time step; returns the hidden folder on rank 0.
    fn begin(&self, ranks: &dyn Communicator) -> Result<Option<Staging>> {
        let how = (self.options.existing, self.options.durability);
        let begins = ranks.rank() == 0 && self.staging.is_none();
        let begun = begins.then(|| Staging::begin(&self.path, how)).transpose();
        ranks.agree("begin the output", begun)
    }

    /// Collective. Restructures the samples of this rank's `patches`, and computes the coarser levels.
    fn restructure<'a>(
        &self,
        patches: Vec<BoxData<'a>>,
        partition: Partition,
        context: &Context<'_>,
        counts: &mut WriteCounts,
    ) -> Result<Pyramid<'a>> {
        let (timer, ranks) = (StageTimer::start(), context.communicator);
        let is_received = self.options.phases == Phases::Three && ranks.size() > 1;
        let build = PyramidBuild {
            path: &self.path,
            form: &self.form,
            imposed: is_received.then_some(self.options.imposed),
            budget: context.budget,
            threads: self.options.jobs,
            cancel: context.cancel,
            ranks,
        };
        let pyramid = build.make(patches, partition, &mut counts.restructured)?;
        let sent = &counts.restructured;
        counts.stages.get_mut(Stage::Restructure).add(&timer.totals(sent.len_bytes, sent.messages));
        Ok(pyramid)
    }

    /// Collective. Encodes the shards of a time step and writes them to `files`.
    fn encode(
        &self,
        plan: &ShardPlan<'_>,
        pyramid: &Pyramid<'_>,
        files: &ShardFiles<'_>,
        context: &Context<'_>,
    ) -> Result<EncodedStep> {
        let ranks = context.communicator;
        let homes = (ranks.size() > 1).then(|| ShardHolders::new(&self.form, &pyramid.partitions));
        let work = ShardWork::new(plan, pyramid, self.options.effort, homes);
        let work = ranks.agree("begin encoding", work)?;
        let options =
            EngineOptions { jobs: self.options.jobs, owners: self.options.aggregators, ..EngineOptions::default() };
        let mut shards = vec![0; self.shards.len()];
        let mut commit = |done: PlacedArray<'_>| {
            let place = plan.place(done.array);
            shards[plan.array_of(place.field, place.level)] += done.claims.len() as u64;
            Ok(())
        };
        let engine = Execution::new(&plan.tiles, &work, files).commit(&mut commit).run(&options, context);
        let engine = engine.map_err(|error| IdxError::of_engine(&self.path, error))?;
        Ok(EncodedStep { engine, sent: work.into_sent(), shards })
    }

    /// Collective. Writes the metadata and publishes the folder; adds the time this took to `report`, that of the last
    /// time step.
    ///
    /// # Errors
    /// If not all time steps were written, or files cannot be written; no files are left then.
    pub fn publish(self, report: &mut WriteReport, ranks: &dyn Communicator) -> Result<()> {
        let started = Instant::now();
        let (written, wanted) = (self.written, self.form.steps.unwrap_or(1));
        let published = match &self.staging {
            _ if written != wanted => Err(ZarrFault::Steps { written, wanted }.at(&self.path)),
            None => Ok(()),
            Some(staging) => {
                describe(staging, &self.form, &self.shards, self.options.effort).and_then(|()| staging.publish())
            }
        };
        ranks.agree("publish the output", published)?;
        let elapsed_s = started.elapsed().as_secs_f64();
        report.publish_s += elapsed_s;
        report.elapsed_s += elapsed_s;
        Ok(())
    }

    /// Returns a hash of the arguments, which must be equal on all ranks.
    fn arguments_hash(&self) -> u64 {
        let WriteOptions { phases, imposed, aggregators, effort, durability, .. } = &self.options;
        let text = format!(
            "{:?} {} {phases:?} {imposed:?} {aggregators:?} {effort:?} {durability:?}",
            self.form, self.written
        );
        Digest::of(text.as_bytes()).crc64_nvme()
    }
}

#[cfg(test)]
mod tests;
