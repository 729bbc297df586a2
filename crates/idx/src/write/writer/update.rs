//! Writing of boxes of samples into an existing time step.
//!
//! Files with changed blocks are rewritten in a hidden folder: changed blocks are decoded, updated and encoded in their
//! original order, the others are copied as stored. Files without changed blocks are hard-linked. Then the hidden
//! folder replaces the folder of the step. Invariant: readers see the old or the new step, even if the writer is
//! killed; samples outside the boxes and other fields keep their bits.

use super::{StepState, Writer, there};
use crate::dataset::compression::{BlockFault, Coding, Compression};
use crate::dataset::grid::{ArrayGrid, Layout, blocks};
use crate::dataset::region::SampleBox;
use crate::error::{IdxError, Result, TimeFault, UpdateFault};
use crate::read::dataset::Dataset;
use crate::read::stored::{BlockReader, StoredBlocks};
use crate::write::exchange::{BoxData, check_arrays, gather_any_boxes, partition_error};
use crate::write::files::StepFiles;
use crate::write::options::{WriteCounts, WriteOptions, WriteReport};
use crate::write::publish::Staging;
use crate::write::restructure::{check_disjoint, holder_count};
use crate::write::step_plan::{BlockHolders, BlockPlace, StepPlan};
use crate::write::work::{RankSamples, StepWork, Worker};
use raddle_codec::ZfpMode;
use raddle_core::digest::Digest;
use raddle_core::engine::{EngineReport, Round, TileForm, TileWork};
use raddle_core::memory::MemoryBudget;
use raddle_core::output::publish::{IfExists, hidden_path};
use raddle_core::plan::Tile;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, Rank};
use raddle_core::report::progress::{Stage, Watch};
use raddle_core::report::{MemoryReport, StageTable, StageTimer};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// Bit of a filter mask for samples in HZ order. The lower bits are the record's coding.
const HZ: u32 = 1 << 8;

impl Writer {
    /// Creates a writer of boxes into time steps of the dataset at `path`, for [`Writer::update_collective`].
    ///
    /// # Errors
    /// If it cannot be read, or its blocks cannot be read or written.
    pub(crate) fn of_existing(path: &Path, options: WriteOptions) -> Result<Self> {
        let dataset = Dataset::open(path)?;
        for field in 0..dataset.header().fields.len() {
            dataset.readable(field)?;
        }
        Ok(Self { continues: true, ..Self::new(path, dataset.header().clone(), options)? })
    }

    /// Collective. Writes boxes of samples, disjoint across `ranks`, into an existing time step. Patches have one array
    /// for each of `fields`, which are indexes. Other fields, and samples outside the boxes, are unchanged. Samples are
    /// not restructured, even if the options request it.
    ///
    /// # Errors
    /// As for [`Writer::write_collective`]; also if the step does not exist, a block to change is missing or damaged, a
    /// field has lossy compression, or the step has no separate folder. The step is unchanged then.
    pub fn update_collective(
        &mut self,
        time: Option<u64>,
        fields: &[usize],
        patches: Vec<BoxData<'_>>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport> {
        let started = Instant::now();
        let target = UpdateTarget { time, fields };
        let plan = self.plan_update(target, &patches, watch, ranks)?;
        let (step, kept) = StepPlan::new(&self.header, &plan.domain, &self.header.time_name(time))
            .split(|file| file.blocks.iter().any(|block| plan.changed.contains(block)));
        let staging = (ranks.rank() == 0).then(|| self.begin_update(&step, time)).transpose();
        let staging = ranks.agree("begin the output", staging)?;
        let files = StepFiles::new(hidden_path(&self.path), &step, self.options.durability);
        ranks.agree("create the files", files.create(ranks))?;

        let budget = MemoryBudget::new(self.options.memory_limit_bytes);
        let run = StepState { step: &step, domain: &plan.domain, files: &files, budget: &budget, watch, ranks };
        let (encoding, mut counts) = (Instant::now(), WriteCounts::default());
        let engine = self.encode_update(target, &plan, patches, &run, &mut counts)?;
        let encode_s = encoding.elapsed().as_secs_f64();

        let (publishing, timer) = (Instant::now(), StageTimer::start());
        let finished = files.finish().and_then(|()| Ok(watch.cancel.check()?));
        ranks.agree("finish the files", finished)?;
        let published = staging.map_or(Ok(()), |staging| {
            staging.keep(kept.iter().map(|file| file.name.as_path()))?;
            staging.publish(&step, &self.header)
        });
        ranks.agree("publish the output", published)?;
        counts.stages.get_mut(Stage::Commit).add(&timer.totals(0, 1));
        let field_len_bytes =
            |field: &usize| plan.sample_count.saturating_mul(self.header.fields[*field].sample.len_bytes() as u64);
        let mut report = WriteReport {
            time,
            phases: crate::Phases::Two,
            sample_len_bytes: fields.iter().map(field_len_bytes).sum(),
            stored_len_bytes: engine.stored_len_bytes,
            holders: holder_count(&plan.partition),
            encode_s,
            publish_s: publishing.elapsed().as_secs_f64(),
            engine: Some(engine),
            elapsed_s: started.elapsed().as_secs_f64(),
            memory: MemoryReport::of(&budget),
            ..self.report(&run)
        };
        report.gather(&counts, ranks)?;
        Ok(report)
    }

    /// Collective. Checks an update, and determines the samples and blocks that it changes.
    fn plan_update(
        &self,
        target: UpdateTarget<'_>,
        patches: &[BoxData<'_>],
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<UpdatePlan> {
        let checked = Dataset::open(&self.path).and_then(|dataset| {
            watch.cancel.check()?;
            Ok((self.check_update(&dataset, target, patches)?, dataset))
        });
        let (domain, dataset) = ranks.agree("check what is to be written", checked)?;
        let partition = gather_any_boxes(self.update_hash(target), patches, ranks)?;
        let sample_count =
            check_disjoint(&self.domain(), &partition).map_err(|source| partition_error(&self.path, source))?;
        if sample_count == 0 {
            return Err(self.update_error(UpdateFault::NoSamples));
        }
        let changed = self.blocks_of(partition.iter().flatten());
        Ok(UpdatePlan { dataset, domain, partition, sample_count, changed })
    }

    /// Collective. Encodes the blocks of the rewritten files, with the samples of this rank's `patches`.
    fn encode_update(
        &self,
        target: UpdateTarget<'_>,
        plan: &UpdatePlan,
        patches: Vec<BoxData<'_>>,
        run: &StepState<'_>,
        counts: &mut WriteCounts,
    ) -> Result<EngineReport> {
        let (step, ranks, all_fields) = (run.step, run.ranks.size(), 0..self.header.fields.len());
        let patches: Vec<BoxData<'_>> = patches.into_iter().map(|patch| self.by_field(target.fields, patch)).collect();
        let samples = RankSamples { header: &self.header, domain: &plan.domain, patches: &patches };
        let homes = (ranks > 1).then(|| BlockHolders::new(&self.header, &plan.partition));
        let (path, effort) = (self.path.clone(), self.options.effort);
        let work = UpdateWork {
            work: StepWork::new(samples, step, path, &self.compressions, effort, homes),
            step,
            stored: all_fields.clone().map(|field| StoredBlocks::new(&plan.dataset, field, target.time)).collect(),
            is_updated: all_fields.map(|field| target.fields.contains(&field)).collect(),
            changed: &plan.changed,
        };
        let engine = self.run_engine(&work, &|_, mask| stored_as(mask), run)?;
        counts.add_aggregated(work.work.into_sent(), ranks);
        Ok(engine)
    }

    fn update_error(&self, fault: UpdateFault) -> IdxError {
        IdxError::Update { path: self.path.clone(), fault }
    }

    /// Checks that step, fields and arrays fit the dataset; returns all its samples.
    fn check_update(
        &self,
        dataset: &Dataset,
        UpdateTarget { time, fields }: UpdateTarget<'_>,
        patches: &[BoxData<'_>],
    ) -> Result<ArrayGrid> {
        if let Some(what) = dataset.header().difference(&self.header) {
            return Err(IdxError::HeaderDiffers { path: self.path.clone(), what });
        }
        for (place, field) in fields.iter().enumerate() {
            let (path, count) = (self.path.clone(), self.header.fields.len());
            let Some(of) = self.header.fields.get(*field) else {
                return Err(IdxError::NoField { path, field: *field, count });
            };
            if fields[..place].contains(field) {
                return Err(self.update_error(UpdateFault::FieldTwice { field: of.name.clone() }));
            }
            if let Compression::Zfp(ZfpMode::Accuracy(_) | ZfpMode::Precision(_)) = self.compressions[*field] {
                let compression = self.compressions[*field].name();
                return Err(self.update_error(UpdateFault::Rounded { field: of.name.clone(), compression }));
            }
        }
        let lens: Vec<usize> = fields.iter().map(|field| self.header.fields[*field].sample.len_bytes()).collect();
        check_arrays(patches, &lens)?;
        let whole = dataset.grid(&crate::Query { time, ..dataset.whole(0) })?;
        let there = dataset.steps()?;
        if let (Some(asked), false) = (time, there.contains(&time)) {
            let fault = TimeFault::Absent { asked, there: dataset.step_list() };
            return Err(IdxError::NoTime { path: self.path.clone(), fault });
        }
        Ok(whole)
    }

    /// Returns a hash of the arguments, which must be equal on all ranks.
    fn update_hash(&self, UpdateTarget { time, fields }: UpdateTarget<'_>) -> u64 {
        let WriteOptions { aggregators, durability, .. } = &self.options;
        let text = format!("{}{time:?} {fields:?} {aggregators:?} {durability:?}", self.header.to_text());
        Digest::of(text.as_bytes()).crc64_nvme()
    }

    /// Returns the blocks with samples of the boxes.
    fn blocks_of<'b>(&self, boxes: impl Iterator<Item = &'b SampleBox>) -> BTreeSet<u64> {
        let (bitmask, bits) = (&self.header.bitmask, self.header.bits_per_block);
        boxes.flat_map(|region| blocks(bitmask, bits, &region.grid(), bitmask.max_level())).collect()
    }

    /// Returns the patch with an array for every field, empty for fields that are not updated.
    fn by_field<'p>(&self, fields: &[usize], patch: BoxData<'p>) -> BoxData<'p> {
        let mut arrays: Vec<Cow<'p, [u8]>> = vec![Cow::Borrowed(&[]); self.header.fields.len()];
        for (field, array) in fields.iter().zip(patch.arrays) {
            arrays[*field] = array;
        }
        BoxData { region: patch.region, arrays }
    }

    fn begin_update(&self, step: &StepPlan, time: Option<u64>) -> Result<Staging> {
        if step.step_folder.is_none() {
            let template = self.header.files.text().to_owned();
            return Err(self.update_error(UpdateFault::NoFolder { template }));
        }
        let how = (IfExists::Replace, self.options.durability);
        let staging = Staging::begin(&self.path, (step, &self.header), how, true)?;
        // Checked again under the lock: another process may have replaced the dataset since.
        there(&self.path, &self.header)?;
        let dataset = Dataset::open(&self.path)?;
        match dataset.steps()?.contains(&time) {
            true => Ok(staging),
            false => Err(IdxError::NoTime {
                path: self.path.clone(),
                fault: TimeFault::Absent { asked: time.unwrap_or_default(), there: dataset.step_list() },
            }),
        }
    }
}

/// Returns the filter mask of a block with this coding and layout.
fn mask_of(coding: Coding, layout: Layout) -> u32 {
    coding.flag() | if layout == Layout::Hz { HZ } else { 0 }
}

fn stored_as(mask: u32) -> (Coding, Layout) {
    let coding = [Coding::Zip, Coding::Lz4, Coding::Zfp].into_iter().find(|coding| coding.flag() == mask & (HZ - 1));
    (coding.unwrap_or(Coding::Raw), if mask & HZ == 0 { Layout::RowMajor } else { Layout::Hz })
}

/// Part of a dataset that an update changes.
#[derive(Clone, Copy)]
struct UpdateTarget<'a> {
    time: Option<u64>,
    /// Indexes of the fields.
    fields: &'a [usize],
}

/// Samples and blocks that an update changes; the same on every rank.
struct UpdatePlan {
    /// The dataset before the update.
    dataset: Dataset,
    /// All samples of the time step.
    domain: ArrayGrid,
    /// Boxes of new samples, indexed by rank.
    partition: Vec<Vec<SampleBox>>,
    /// Number of new samples per field.
    sample_count: u64,
    /// Blocks with new samples.
    changed: BTreeSet<u64>,
}

/// Blocks of the rewritten files.
struct UpdateWork<'a> {
    work: StepWork<'a>,
    step: &'a StepPlan,
    /// Blocks of the existing step, indexed by field.
    stored: Vec<StoredBlocks<'a>>,
    /// Whether there are new samples, for each field.
    is_updated: Vec<bool>,
    /// Blocks with new samples.
    changed: &'a BTreeSet<u64>,
}

impl UpdateWork<'_> {
    fn is_changed(&self, place: BlockPlace) -> bool {
        self.is_updated[place.field] && self.changed.contains(&place.block)
    }
}

/// State of a worker thread.
struct Updater {
    worker: Worker,
    reader: BlockReader,
    /// Order of the samples in the current block.
    layout: Layout,
}

impl TileWork for UpdateWork<'_> {
    type Error = IdxError;
    type Worker = Updater;

    fn worker(&self) -> Result<Updater> {
        Ok(Updater { worker: self.work.worker()?, reader: BlockReader::default(), layout: Layout::RowMajor })
    }

    fn verbatim(&self, updater: &mut Updater, tile: Tile, stored: &mut Vec<u8>) -> Result<Option<TileForm>> {
        let place = self.step.place(tile);
        if self.is_changed(place) {
            return Ok(None);
        }
        let before = stored.len();
        let of_field = &self.stored[place.field];
        let record = match updater.reader.copy(of_field, place.block, stored)? {
            Ok(record) => record,
            // A missing block stays missing.
            Err(BlockFault::NotStored) => return Ok(Some(TileForm::Fill)),
            Err(fault) => return Err(of_field.bad(place.block, &of_field.path(place.block), fault)),
        };
        if stored.len() - before > self.stored_bound_len_bytes(tile) {
            // OpenVisus keeps blocks that compression enlarged; raddle stores them raw.
            return Ok(None);
        }
        Ok(Some(TileForm::Stored { filter_mask: mask_of(record.coding, record.layout) }))
    }

    fn assemble(&self, updater: &mut Updater, tile: Tile, raw: &mut [u8]) -> Result<()> {
        let place = self.step.place(tile);
        let stored = &self.stored[place.field];
        let layout = &mut updater.layout;
        updater.reader.read(stored, &[place.block], &mut |block, path, found| {
            let found = found.map_err(|fault| stored.bad(block, path, fault))?;
            *layout = found.record.layout;
            raw.copy_from_slice(found.raw);
            Ok(())
        })?;
        if self.is_changed(place) {
            self.work.put(&mut updater.worker, tile, updater.layout, raw);
        }
        Ok(())
    }

    fn encode(&self, updater: &mut Updater, tile: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm> {
        let coding = match self.is_changed(self.step.place(tile)) {
            true => self.work.compress(&mut updater.worker, tile, raw, stored)?,
            false => {
                stored.extend_from_slice(raw);
                Coding::Raw
            }
        };
        Ok(TileForm::Stored { filter_mask: mask_of(coding, updater.layout) })
    }

    fn stored_bound_len_bytes(&self, tile: Tile) -> usize {
        self.work.stored_bound_len_bytes(tile)
    }

    fn worker_len_bytes(&self) -> u64 {
        // Buffers for a block in stored and decoded form.
        let longest = self.step.tiles.arrays.iter().map(|array| array.element_len_bytes).max().unwrap_or(0);
        self.work.worker_len_bytes() + 3 * longest
    }

    fn file(&self, array: u32) -> u32 {
        self.work.file(array)
    }

    fn retire(&self, updater: Updater, stages: &mut StageTable) {
        self.work.retire(updater.worker, stages);
    }

    fn holders(&self, tile: Tile, each: &mut dyn FnMut(Rank, u64)) {
        self.work.holders(tile, each);
    }

    fn regroup(&self, round: &Round<'_>, communicator: &dyn Communicator) -> Result<()> {
        self.work.regroup(round, communicator)
    }

    fn received_len_bytes(&self, tile: Tile) -> u64 {
        self.work.received_len_bytes(tile)
    }
}
