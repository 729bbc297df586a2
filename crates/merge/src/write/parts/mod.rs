//! A merge by several processes that share only the file system, such as the tasks of a job array.
//!
//! Each part plans the whole merge, writes its own range of tiles in plan order to a file next to the output, and keeps
//! a journal as every run does. The part that finds all others complete joins the files into the state of an
//! interrupted merge by one process just before its end, and resumes from there. Therefore the output is byte-identical
//! to that of one process, every tile is compared with its checksum on the way, and any other part can take over if a
//! part is killed while it publishes. Invariants: parts of different plans are never joined; the files of parts are
//! removed only after the joined file is durable.

mod files;

use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::plan::cost::TileCosts;
use crate::plan::dataset_specs::output_options;
use crate::write::publish::{begin_output, check_output, journal_path, temporary_path};
use crate::write::resume::{JournalPaths, ResumeRequest, ResumeSource, ResumedRun, begin, binding, samples};
use crate::write::tiles::MergeWork;
use crate::write::values::open_pool;
use crate::write::{MergeReport, bridged, complete, files_to_keep};
use files::{PartFiles, State, join, state_of};
use raddle_core::CoreError;
use raddle_core::engine::{Context, EngineOptions, EngineReport, Execution, Placement};
use raddle_core::memory::MemoryBudget;
use raddle_core::output::journal::Binding;
use raddle_core::output::publish::AtomicFile;
use raddle_core::output::{OutputLock, sync_folder};
use raddle_core::plan::TileIndex;
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::ranks::owners::cut;
use raddle_core::report::{InputDifference, add_stages};
use raddle_hdf5::source::InputPool;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Interval between attempts to take a lock that another part holds: short compared with a merge, long compared with an
/// attempt.
const LOCK_POLL: Duration = Duration::from_millis(100);

/// One of several processes that write one output together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    number: u32,
    count: u32,
}

impl Part {
    /// Creates part `number`, counted from 1, of `count`; `None` if the number is out of range.
    pub fn new(number: u32, count: u32) -> Option<Self> {
        (1..=count).contains(&number).then_some(Self { number, count })
    }

    /// Returns the number of the part, counted from 1.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Returns the number of parts.
    pub fn count(self) -> u32 {
        self.count
    }
}

impl FromStr for Part {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, &'static str> {
        let (number, count) = text.split_once('/').unwrap_or_default();
        let part = number.parse().ok().zip(count.parse().ok()).and_then(|(number, count)| Self::new(number, count));
        part.ok_or("a part is I/N with I from 1 to N, for example 2/8")
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

/// Report of a part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PartReport {
    /// Path of the output.
    #[serde(serialize_with = "crate::path_text::of")]
    pub output: PathBuf,
    /// Number of the part, and of all parts.
    pub part: Part,
    /// Number of tiles of the part.
    pub tiles: u64,
    /// Report of the engine; `None` if an earlier run had written all tiles.
    pub engine: Option<EngineReport>,
    /// Parts that are not complete yet. If there are none, the output is published, by this or an earlier run.
    pub missing: Vec<u32>,
    /// Differences between the inputs that the options bridge.
    pub differences: Vec<InputDifference>,
    /// Report of the merge, if this part published the output.
    pub merged: Option<MergeReport>,
}

/// Writes part `part` of `plan`, and publishes the output if all other parts are complete.
///
/// # Errors
/// As for [`crate::merge`]; [`MergeError::Locked`] if another process is writing this part; [`MergeError::PartDiffers`]
/// if a part next to the output belongs to a different plan, unless the plan is to start over: then it is removed.
/// [`MergeError::Resumable`] describes the tiles that are kept for the next run of this part.
pub fn merge_part(mut plan: MergePlan, part: Part, watch: &Watch<'_>) -> Result<PartReport> {
    let inputs = files_to_keep(&plan);
    let output = plan.options.output.clone();
    check_output(&output, &inputs, plan.options.force)?;
    // A part always places its tiles in order, regardless of the options; and when all parts exist, the merge resumes
    // from them.
    plan.options.ordered = true;
    (plan.options.align, plan.alignment) = (None, None);
    let starts_over = !std::mem::replace(&mut plan.options.resume, true);

    let files = PartFiles::of(&output, part.number);
    let _lock = OutputLock::take_at(&output, files.lock.clone())?;
    let pool = open_pool(&plan);
    let array = PartLayout::of(&plan, part, &pool)?;
    array.settle_others(&output, part, starts_over)?;
    if starts_over {
        files.remove()?;
    }
    let tiles = array.tiles(part.number);
    let engine = match array.state(&output, part.number)? {
        State::Complete(_) => None,
        // The files of this part may be missing because another part has joined them.
        State::Missing if array.is_joined(&output)? => None,
        _ => Some(array.make(&plan, &pool, part.number, watch)?),
    };
    let (missing, publication) = array.last(&plan, &inputs, part, watch)?;
    let merged = match publication {
        // Resuming from the parts does not count as resuming an interrupted run.
        Some(publication) => {
            let done = complete(&plan, watch, publication)?;
            Some(MergeReport { resumed_tiles: 0, resumed_len_bytes: 0, ..done })
        }
        None => None,
    };
    let (tiles, differences) = (tiles.end - tiles.start, bridged(&plan));
    Ok(PartReport { output, part, tiles, engine, missing, differences, merged })
}

/// All parts of a plan.
struct PartLayout {
    index: TileIndex,
    /// First tile of each part, and the end of the last part.
    bounds: Vec<u64>,
    /// First address of tiles in the output.
    raw_start: u64,
    /// Everything that the bytes of the output depend on.
    whole: Binding,
    /// Everything that the bytes of a part depend on.
    binding: Binding,
}

impl PartLayout {
    fn of(plan: &MergePlan, part: Part, pool: &InputPool) -> Result<Self> {
        let raw_start = output_options(plan).raw_start().unwrap_or(0);
        let whole = binding(plan, &samples(plan, pool, |_| 0, &SingleProcess)?, raw_start);
        let mut binding = whole.clone();
        binding.bind("the number of parts", part.count.into());
        let index = plan.tiles.tile_index();
        let costs = TileCosts::of(plan);
        let tiles = std::iter::successors(index.tile(0), |tile| Some(index.next(*tile)));
        let costs = tiles
            .take(usize::try_from(index.tile_count()).unwrap_or(usize::MAX))
            .map(|tile| costs.of_tile(tile, &plan.tiles.arrays[tile.array as usize]));
        let bounds = cut(costs, part.count as usize);
        Ok(Self { bounds, index, raw_start, whole, binding })
    }

    fn count(&self) -> u32 {
        self.bounds.len() as u32 - 1
    }

    fn tiles(&self, part: u32) -> std::ops::Range<u64> {
        self.bounds[part as usize - 1]..self.bounds[part as usize]
    }

    fn state(&self, output: &Path, part: u32) -> Result<State> {
        let tiles = self.tiles(part);
        PartFiles::of(output, part).state(tiles.start, tiles.end - tiles.start, &self.binding, &self.index)
    }

    /// Returns whether the tiles of all parts are joined, in which case the merge can resume from them.
    fn is_joined(&self, output: &Path) -> Result<bool> {
        let (data, journal) = (temporary_path(output), journal_path(output));
        let count = self.index.tile_count();
        let state = state_of(self.joined(&data, &journal), count, &self.whole, &self.index)?;
        Ok(matches!(state, State::Complete(_)) && count > 0)
    }

    /// Returns the record of the joined parts, which equals the record of a merge by one process.
    fn joined<'a>(&self, data: &'a Path, journal: &'a Path) -> JournalPaths<'a> {
        JournalPaths { data, journal, first_tile: 0, start_address: self.raw_start }
    }

    /// Refuses parts of other plans next to the output, or removes them.
    fn settle_others(&self, output: &Path, part: Part, remove: bool) -> Result<()> {
        for number in PartFiles::existing(output)? {
            let files = PartFiles::of(output, number);
            let tiles = if number <= self.count() { self.tiles(number) } else { 0..0 };
            let state = files.state(tiles.start, tiles.end - tiles.start, &self.binding, &self.index)?;
            let State::Differs(subject) = state else { continue };
            if !remove {
                let (path, output) = (files.data, output.to_path_buf());
                return Err(MergeError::PartDiffers { output, part: number, path, subject });
            }
            // Takes the lock first, in case a process is still writing the part.
            let _lock = (number != part.number).then(|| OutputLock::take_at(output, files.lock.clone())).transpose()?;
            files.remove()?;
        }
        Ok(())
    }

    /// Writes the tiles of a part, resuming after the tiles of an earlier run.
    fn make(&self, plan: &MergePlan, pool: &InputPool, part: u32, watch: &Watch<'_>) -> Result<EngineReport> {
        let files = PartFiles::of(&plan.options.output, part);
        let (work, tiles) = (MergeWork::new(plan, pool).observed(watch.observer), self.tiles(part));
        let record = files.record(tiles.start);
        let beginning =
            ResumeRequest { plan, work: &work, record, resume: true, source: ResumeSource::Interrupted, watch: *watch };
        let begun = begin(&beginning, Some(&self.binding), &SingleProcess)?;
        let ResumedRun { data, mut journal } = begun.ok_or(CoreError::RankLeft { operation: "merge" })?;
        let budget = MemoryBudget::new(plan.options.memory_limit_bytes);
        let context =
            Context { communicator: &SingleProcess, budget: &budget, observer: watch.observer, cancel: watch.cancel };
        let jobs = plan.options.jobs;
        let options = EngineOptions { jobs, placement: Placement::Ordered, ..EngineOptions::default() };
        let count = tiles.end - tiles.start;
        let outcome = Execution::new(&plan.tiles, &work, &data)
            .part(tiles)
            .record(&mut journal)
            .run(&options, &context)
            .map_err(|error| work.failed(error, &files.data))
            .and_then(|mut engine| {
                add_stages(&mut engine.stages, work.regrouper().take_early_stages().reports(0));
                for input in 0..plan.inputs.len() as u32 {
                    pool.get(input)?.check_unchanged()?;
                }
                Ok(engine)
            })
            .and_then(|engine| match journal.recorded().tiles == count {
                true => files.conclude(&data, &plan.options.output).map(|()| engine),
                // The joining part only sees tiles that are in the journal.
                false => Err(files.unrecorded()),
            });
        let kept = journal.recorded();
        match outcome {
            Ok(engine) => Ok(engine),
            Err(source) if source.is_resumable() && kept.tiles > 0 => {
                Err(MergeError::Resumable { source: Box::new(source), path: files.data, kept })
            }
            Err(source) => {
                // A failure to clean up must not hide the original error.
                let _ = files.remove();
                Err(source)
            }
        }
    }

    /// Returns the missing parts. If none is missing and nobody has published yet, joins all tiles and returns the
    /// right to publish.
    fn last(
        &self,
        plan: &MergePlan,
        inputs: &[PathBuf],
        part: Part,
        watch: &Watch<'_>,
    ) -> Result<(Vec<u32>, Option<AtomicFile>)> {
        let output = &plan.options.output;
        let is_gone = || -> Result<bool> {
            Ok(matches!(self.state(output, part.number)?, State::Missing) && !self.is_joined(output)?)
        };
        let publication = loop {
            watch.cancel.check()?;
            match begin_output(output, inputs, plan.options.force) {
                Ok(publication) => break publication,
                // The other part is checking for completeness or publishing; if it gets killed, this one must take
                // over.
                Err(MergeError::Locked { .. }) => std::thread::sleep(LOCK_POLL),
                // The output exists because another part has published it.
                Err(MergeError::Output { .. }) if is_gone()? => return Ok((Vec::new(), None)),
                Err(error) => return Err(error),
            }
        };
        let joined = self.join_all(output, part, &publication);
        match joined {
            Ok(Parts::Joined) => Ok((Vec::new(), Some(publication))),
            Ok(Parts::Missing(missing)) if missing.contains(&part.number) => {
                // The parts were joined and published while this one was waiting.
                publication.keep();
                Ok((Vec::new(), None))
            }
            Ok(Parts::Missing(missing)) => {
                publication.keep();
                Ok((missing, None))
            }
            Err(error) => {
                publication.keep();
                Err(error)
            }
        }
    }

    /// Joins the parts, if all are complete. The caller holds the output's lock.
    fn join_all(&self, output: &Path, part: Part, publication: &AtomicFile) -> Result<Parts> {
        let all = 1..=self.count();
        if !self.is_joined(output)? {
            let mut parts = Vec::new();
            let mut missing = Vec::new();
            for number in all.clone() {
                match self.state(output, number)? {
                    State::Complete(kept) => {
                        parts.push((PartFiles::of(output, number), self.tiles(number).start, kept));
                    }
                    State::Missing | State::ResumedRun => missing.push(number),
                    State::Differs(subject) => {
                        let (path, output) = (PartFiles::of(output, number).data, output.to_path_buf());
                        return Err(MergeError::PartDiffers { output, part: number, path, subject });
                    }
                }
            }
            if !missing.is_empty() {
                return Ok(Parts::Missing(missing));
            }
            publication.clear()?;
            // Without tiles there is nothing to resume from.
            if self.index.tile_count() > 0 {
                let parts: Vec<_> = parts.iter().map(|(files, first, kept)| (files.done(*first), *kept)).collect();
                let (data, journal) = (temporary_path(output), journal_path(output));
                join(&parts, self.joined(&data, &journal), &self.whole, &self.index)?;
                let operation = "make its name durable";
                sync_folder(output).map_err(|source| MergeError::Write { path: journal, operation, source })?;
            }
        }
        for number in all {
            let files = PartFiles::of(output, number);
            files.remove()?;
            // A killed process leaves its lock file behind; a running process holds the lock and removes it itself.
            if number != part.number && files.lock.exists() {
                let _ = OutputLock::take_at(output, files.lock);
            }
        }
        Ok(Parts::Joined)
    }
}

/// Outcome of joining the parts.
enum Parts {
    Joined,
    Missing(Vec<u32>),
}

impl PartFiles {
    /// Returns the error of a part whose tiles could not be recorded.
    fn unrecorded(&self) -> MergeError {
        let source = std::io::Error::from(std::io::ErrorKind::WriteZero);
        MergeError::Write { path: self.journal.clone(), operation: "record the tiles", source }
    }
}
