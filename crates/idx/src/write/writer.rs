//! Writing of time steps, by one process that holds whole arrays or by ranks that hold boxes of them, in up to three
//! phases.
//!
//! 1. Restructure: samples move from the ranks' boxes to power-of-two boxes of few owners (`restructure`, `exchange`).
//! 2. Encode: each block is filled and compressed by the rank that holds most of its samples, or by a neighbour if that
//!    balances the load better; other ranks send it their samples, mostly of coarse levels (`work`, on the engine of
//!    `raddle_core`).
//! 3. Place: blocks are written to their files in large writes, the tables of a file after its blocks, and the `.idx`
//!    file last (`files`, `publish`).
//!
//! Invariant: the same samples and header give the same bytes for any number of ranks, threads and phases, and a step
//! is published whole or not at all.

use crate::dataset::compression::{Coding, Compression, Record};
use crate::dataset::grid::{ArrayGrid, Layout};
use crate::dataset::header::{Field, Header};
use crate::dataset::region::SampleBox;
use crate::dataset::vectors::FieldSplit;
use crate::error::{IdxError, Result, TimeFault};
use crate::read::dataset::Dataset;
use crate::write::exchange::{BoxData, check_arrays, gather_boxes, partition_error, restructure};
use crate::write::files::StepFiles;
use crate::write::one_phase;
use crate::write::options::{Phases, WriteCounts, WriteOptions, WriteReport};
use crate::write::publish::{Staging, in_the_way, write_header};
use crate::write::restructure::{Restructuring, holder_count};
use crate::write::step_plan::{BlockHolders, BlockPlace, StepPlan};
use crate::write::work::{RankSamples, StepWork};
use raddle_core::cancel::CancelToken;
use raddle_core::digest::Digest;
use raddle_core::engine::{Context, EngineOptions, EngineReport, Execution, PlacedArray, TileWork};
use raddle_core::memory::{MemoryBudget, Permit};
use raddle_core::output::publish::{IfExists, hidden_path};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::{Silent, Stage, Watch};
use raddle_core::report::{MemoryReport, StageTimer};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Largest number of a time step: OpenVisus reads numbers as signed integers of 32 bits.
const MAX_STEP: u64 = i32::MAX as u64;

/// State shared by the phases of a step.
#[derive(Clone, Copy)]
struct StepState<'r> {
    step: &'r StepPlan,
    domain: &'r ArrayGrid,
    files: &'r StepFiles<'r>,
    budget: &'r MemoryBudget,
    watch: &'r Watch<'r>,
    ranks: &'r dyn Communicator,
}

/// All samples of a dataset, this rank's part of them, and the permit for its memory.
type CheckedSamples<'p> = (ArrayGrid, Vec<BoxData<'p>>, Option<Permit>);

/// Writer of the time steps of a dataset.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    header: Header,
    options: WriteOptions,
    compressions: Vec<Compression>,
    /// Whether this writer may replace the `.idx` file.
    continues: bool,
    /// Split of the arrays into those of the header's fields, if necessary.
    split: Option<FieldSplit>,
}

impl Writer {
    /// Creates a writer of `path`, the `.idx` file. Nothing is written yet.
    ///
    /// # Errors
    /// If the header is not consistent, or names a compression that cannot be written.
    pub fn new(path: &Path, header: Header, options: WriteOptions) -> Result<Self> {
        header.check().map_err(|source| IdxError::Header { path: path.to_path_buf(), source })?;
        let compression = |field: &Field| {
            let name = field.attribute("default_compression").unwrap_or("");
            let known = Compression::from_name(name).filter(|known| known.takes(field.sample, header.bitmask.rank()));
            known.ok_or_else(|| IdxError::Compression { field: field.name.clone(), compression: name.to_owned() })
        };
        let compressions = header.fields.iter().map(compression).collect::<Result<_>>()?;
        Ok(Self { path: path.to_path_buf(), header, options, compressions, continues: false, split: None })
    }

    /// Creates a writer of further time steps of the dataset at `path`, whose header must equal `header` except for
    /// time steps.
    ///
    /// # Errors
    /// If the dataset cannot be read or its header differs.
    pub fn resume(path: &Path, header: &Header, options: WriteOptions) -> Result<Self> {
        let there = there(path, header)?;
        Ok(Self { continues: true, ..Self::new(path, there, options)? })
    }

    /// Makes the writer take arrays of the unsplit fields of `split`, whose resulting fields must be those of the
    /// header.
    #[must_use]
    pub fn split(mut self, split: FieldSplit) -> Self {
        self.split = Some(split);
        self
    }

    /// Returns the header that will be written.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns all samples of the dataset.
    pub fn domain(&self) -> SampleBox {
        SampleBox { start: self.header.start, end: self.header.end }
    }

    /// Writes one array per field, each with all samples of the box, x fastest, little-endian, and then the `.idx`
    /// file. `time` is the step, for a dataset with time steps; the header's range grows as needed.
    ///
    /// # Errors
    /// If arrays or time do not fit the header, the output exists, or files cannot be written. Existing files are then
    /// unchanged, unless replacing fails between the step and the `.idx` file.
    pub fn write(&mut self, time: Option<u64>, arrays: &[&[u8]]) -> Result<WriteReport> {
        let whole =
            BoxData { region: self.domain(), arrays: arrays.iter().map(|array| Cow::Borrowed(*array)).collect() };
        let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
        self.write_collective(time, vec![whole], &watch, &SingleProcess)
    }

    /// Collective. Writes a step like [`Writer::write`], by `ranks` that hold any number of boxes each. The boxes must
    /// be disjoint and cover all samples. All ranks must see the same file system and use the same header and options,
    /// except for threads and memory.
    ///
    /// # Errors
    /// As for [`Writer::write`], on every rank; also `RankFailed` if only another rank encountered an error.
    pub fn write_collective(
        &mut self,
        time: Option<u64>,
        patches: Vec<BoxData<'_>>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport> {
        let started = Instant::now();
        let budget = MemoryBudget::new(self.options.memory_limit_bytes);
        let checked = self.check(time, patches, &budget).and_then(|checked| {
            watch.cancel.check()?;
            Ok(checked)
        });
        let (domain, patches, _permit) = ranks.agree("check what is to be written", checked)?;
        let partition = gather_boxes(&self.path, &self.domain(), self.arguments_hash(time), &patches, ranks)?;
        let make = |writer: &Self, run: &StepState<'_>, counts: &mut WriteCounts| {
            writer.make(run, patches, &partition, counts)
        };
        self.write_step(time, started, (&domain, &budget), (watch, ranks), make)
    }

    /// Collective. Writes a step whose files `make` fills, and then the `.idx` file.
    fn write_step(
        &mut self,
        time: Option<u64>,
        started: Instant,
        (domain, budget): (&ArrayGrid, &MemoryBudget),
        (watch, ranks): (&Watch<'_>, &dyn Communicator),
        make: impl FnOnce(&Self, &StepState<'_>, &mut WriteCounts) -> Result<WriteReport>,
    ) -> Result<WriteReport> {
        let step = StepPlan::new(&self.header, domain, &self.header.time_name(time));
        let staging = (ranks.rank() == 0).then(|| self.begin(&step)).transpose();
        let staging = ranks.agree("begin the output", staging)?;
        let files = StepFiles::new(hidden_path(&self.path), &step, self.options.durability);
        ranks.agree("create the files", files.create(ranks))?;

        let run = StepState { step: &step, domain, files: &files, budget, watch, ranks };
        let mut counts = WriteCounts::default();
        let mut report = make(self, &run, &mut counts)?;
        let (publishing, timer) = (Instant::now(), StageTimer::start());
        let finished = files.finish().and_then(|()| Ok(watch.cancel.check()?));
        ranks.agree("finish the files", finished)?;
        let mut header = self.header.clone();
        if let (Some(of), Some(step)) = (&mut header.time, time) {
            of.range = Some(of.range.map_or((step, step), |(a, b)| (a.min(step), b.max(step))));
        }
        let published = staging.map_or(Ok(()), |staging| {
            staging.publish(&step, &header)?;
            write_header(&self.path, &header, self.options.durability)
        });
        ranks.agree("publish the output", published)?;
        self.header = header;
        self.continues = true;
        counts.stages.get_mut(Stage::Commit).add(&timer.totals(0, 1));
        report.publish_s = publishing.elapsed().as_secs_f64();
        report.elapsed_s = started.elapsed().as_secs_f64();
        report.time = time;
        report.memory = MemoryReport::of(budget);
        report.gather(&counts, ranks)?;
        Ok(report)
    }

    fn begin(&mut self, step: &StepPlan) -> Result<Staging> {
        let how = (self.options.existing, self.options.durability);
        if self.path.metadata().is_ok_and(|there| !there.is_file()) {
            return Err(IdxError::NotAFile { path: self.path.clone() });
        }
        let is_taken = !self.continues && self.path.symlink_metadata().is_ok();
        if is_taken && self.options.existing == IfExists::Fail {
            return Err(match in_the_way(&self.path, step, &self.header, false) {
                Some(error @ IdxError::Foreign { .. }) => error,
                _ => IdxError::Exists { path: self.path.clone() },
            });
        }
        let staging = Staging::begin(&self.path, (step, &self.header), how, self.continues)?;
        if self.continues {
            // Read again under the lock: another process may have added a step since.
            self.header.time = there(&self.path, &self.header)?.time;
        }
        Ok(staging)
    }

    /// Checks that arrays and time fit the header; returns all samples of the dataset and the arrays of its fields.
    fn check<'p>(
        &self,
        time: Option<u64>,
        patches: Vec<BoxData<'p>>,
        budget: &MemoryBudget,
    ) -> Result<CheckedSamples<'p>> {
        let domain = self.check_time(time)?;
        let (patches, permit) = match &self.split {
            Some(split) => split.apply(patches, budget)?,
            None => (patches, None),
        };
        check_arrays(&patches, &self.sample_lens())?;
        Ok((domain, patches, permit))
    }

    /// Checks that a time fits the header; returns all samples of the dataset.
    fn check_time(&self, time: Option<u64>) -> Result<ArrayGrid> {
        let header = &self.header;
        let fault = match (&header.time, time) {
            (Some(_), None) => Some(TimeFault::Unnamed),
            (None, Some(asked)) => Some(TimeFault::None { asked }),
            (Some(_), Some(asked)) if asked > MAX_STEP => Some(TimeFault::TooLarge { asked, limit: MAX_STEP }),
            _ => None,
        };
        if let Some(fault) = fault {
            return Err(IdxError::NoTime { path: self.path.clone(), fault });
        }
        header.grid(header.bitmask.max_level()).ok_or_else(|| IdxError::EmptyBox {
            path: self.path.clone(),
            start: header.start.to_vec(),
            end: header.end.to_vec(),
            resolution: header.bitmask.max_level(),
        })
    }

    /// Returns the lengths of the samples of each field.
    fn sample_lens(&self) -> Vec<usize> {
        self.header.fields.iter().map(|field| field.sample.len_bytes()).collect()
    }

    /// Returns a hash of the arguments, which must be equal on all ranks.
    fn arguments_hash(&self, time: Option<u64>) -> u64 {
        let WriteOptions { phases, imposed, aggregators, durability, .. } = &self.options;
        let mut header = self.header.clone();
        // Only rank 0 knows which steps other processes added.
        header.time.iter_mut().for_each(|time| time.range = None);
        let text = format!("{}{time:?} {phases:?} {imposed:?} {aggregators:?} {durability:?}", header.to_text());
        Digest::of(text.as_bytes()).crc64_nvme()
    }

    /// Collective. Writes all files of the step, complete but not yet durable.
    fn make(
        &self,
        run: &StepState<'_>,
        patches: Vec<BoxData<'_>>,
        partition: &[Vec<SampleBox>],
        counts: &mut WriteCounts,
    ) -> Result<WriteReport> {
        let StepState { step, domain, files, budget, watch, ranks } = *run;
        let begun = StageTimer::start();
        let sample_lens = self.sample_lens();
        let (mut local_patches, mut _permit, mut plan) = (patches, None, None);
        if self.options.phases == Phases::Three && ranks.size() > 1 {
            let restructuring = Restructuring::new(&self.domain(), partition, self.options.imposed);
            let restructuring = restructuring.map_err(|source| partition_error(&self.path, source))?;
            let sent = &mut counts.restructured;
            let (patches, permit) = restructure(&restructuring, local_patches, &sample_lens, budget, ranks, sent)?;
            counts.stages.get_mut(Stage::Restructure).add(&begun.totals(sent.len_bytes, sent.messages));
            (local_patches, _permit, plan) = (patches, Some(permit), Some(restructuring));
        }
        let restructure_s = begun.elapsed_s();
        let after = plan.as_ref().map(|plan| plan.partition(ranks.size()));
        let after = after.as_deref().unwrap_or(partition);
        let encoding = Instant::now();
        let samples = RankSamples { header: &self.header, domain, patches: &local_patches };
        let (engine, stored_len_bytes) = if self.options.phases == Phases::One {
            ranks.agree("write in one phase", one_phase::check(&samples, &self.compressions))?;
            let homes = BlockHolders::new(&self.header, after);
            let how = (self.options.jobs, watch.cancel);
            one_phase::write(&samples, step, &homes, files, how, (ranks, &mut counts.stages))?;
            (None, step.tiles.raw_len_bytes())
        } else {
            let homes = (ranks.size() > 1).then(|| BlockHolders::new(&self.header, after));
            let (path, effort) = (self.path.clone(), self.options.effort);
            let work = StepWork::new(samples, step, path, &self.compressions, effort, homes);
            let stored_as = |field: usize, mask| {
                let layout = self.header.fields[field].default_layout();
                (work.coding(field, mask), layout)
            };
            let engine = self.run_engine(&work, &stored_as, run)?;
            counts.add_aggregated(work.into_sent(), ranks.size());
            let stored_len_bytes = engine.stored_len_bytes;
            (Some(engine), stored_len_bytes)
        };
        let samples = domain.sample_count().unwrap_or(0);
        Ok(WriteReport {
            sample_len_bytes: sample_lens.iter().map(|len| samples.saturating_mul(*len as u64)).sum(),
            stored_len_bytes,
            imposed_counts: plan.as_ref().map(|plan| plan.counts),
            holders: holder_count(after),
            restructure_s,
            encode_s: encoding.elapsed().as_secs_f64(),
            engine,
            ..self.report(run)
        })
    }

    /// Creates the report of a step whose samples have not been counted yet.
    fn report(&self, run: &StepState<'_>) -> WriteReport {
        WriteReport {
            files: run.step.files.len() as u64,
            blocks: run.step.block_count(),
            ..WriteReport::new(&self.path, &self.options, run.budget, run.ranks.size())
        }
    }

    /// Collective. Encodes and places all blocks, and the tables of each file after its blocks. `stored_as` returns the
    /// coding and layout of a field's block from its filter mask.
    fn run_engine<W: TileWork<Error = IdxError>>(
        &self,
        work: &W,
        stored_as: &dyn Fn(usize, u32) -> (Coding, Layout),
        run: &StepState<'_>,
    ) -> Result<EngineReport> {
        let StepState { step, files, budget, watch, ranks, .. } = *run;
        let options = EngineOptions {
            jobs: self.options.jobs,
            start_address: step.start_address,
            owners: self.options.aggregators,
            ..EngineOptions::default()
        };
        let context = Context { communicator: ranks, budget, observer: watch.observer, cancel: watch.cancel };
        let mut records: Vec<(BlockPlace, Record)> = Vec::new();
        let mut commit = |done: PlacedArray<'_>| {
            let (_, field) = step.array_place(done.array);
            records.extend(done.claims.iter().map(|claim| {
                let (coding, layout) = stored_as(field, claim.filter_mask);
                // The header guarantees that a block's length fits 32 bits, and its stored form is not longer.
                let len_bytes = u32::try_from(claim.len_bytes).unwrap_or(u32::MAX);
                (step.place(claim.tile), Record { offset: claim.address, len_bytes, coding, layout })
            }));
            if field + 1 == self.header.fields.len() {
                files.write_tables(&records)?;
                records.clear();
            }
            Ok(())
        };
        let done = Execution::new(&step.tiles, work, files).commit(&mut commit).run(&options, &context);
        done.map_err(|error| IdxError::of_engine(&self.path, error))
    }
}

/// Returns the header of the dataset at `path`, which must equal `header` except for time steps.
fn there(path: &Path, header: &Header) -> Result<Header> {
    let there = Dataset::open(path)?.header().clone();
    let differs = |what| IdxError::HeaderDiffers { path: path.to_path_buf(), what };
    // Whether there are time steps is reported only if nothing else differs.
    let alike = Header { time: there.time.clone(), ..header.clone() };
    if let Some(what) = there.difference(&alike) {
        return Err(differs(what));
    }
    let fault = match (&there.time, &header.time) {
        (Some(_), None) => TimeFault::Unnumbered,
        (None, Some(_)) => TimeFault::NotAdded,
        _ => return there.difference(header).map_or(Ok(there), |what| Err(differs(what))),
    };
    Err(IdxError::NoTime { path: path.to_path_buf(), fault })
}

mod rewrite;
mod update;

pub use rewrite::BlockSource;

#[cfg(test)]
pub(crate) mod tests;
