//! Checks whether a file is unchanged: compares every object and every block of rows with the digests stored in the
//! file.
//!
//! No input is needed. This does not protect against an adversary, who could also replace the digests. Invariant: a
//! file is only reported as intact if every digest in it was compared and every object and row had one.

use crate::error::{MergeError, Result};
use crate::inputs::linked_files::target_from;
use crate::inputs::selection::Selection;
use crate::options::{MergeOptions, Watch};
use crate::plan::memory::ReaderMemory;
use crate::plan::{MergePlan, Route};
use crate::schema::{Role, display_path};
use crate::verify::boxes::common_limit_len_bytes;
use crate::verify::digests::blocks::{InOrder, StoredTiles};
use crate::verify::digests::column::{ColumnDigests, DigestForm};
use crate::verify::digests::structure::{known_and_found, structure_digests};
use crate::verify::digests::{StoredColumn, StoredDigests, stored};
use crate::verify::{Mismatch, VERIFYING, VerifyReport, of_unchanged_collective, plan_file_collective, together};
use crate::write::ranks::share_by_cost;
use crate::write::values::{ColumnReader, open_pool};
use raddle_core::digest::Digest;
use raddle_core::memory::MemoryBudget;
use raddle_core::parallel;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::{Event, Stage};
use raddle_hdf5::model::Layout;
use raddle_hdf5::source::InputPool;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Length of the values that a thread processes at once: a run of blocks, so that a chunk across the border of two of
/// them is decoded once.
const JOB_LEN_BYTES: u64 = 16 << 20;
/// Length of the values that are read at once, because blocks may be short.
pub(super) const READ_LEN_BYTES: u64 = 4 << 20;

/// Compares the file at `path` with the digests that it contains.
///
/// # Errors
/// If the file cannot be read, or has no digests. A mismatch is part of the report, not an error.
pub fn check(path: &Path, options: &MergeOptions, watch: &Watch<'_>) -> Result<VerifyReport> {
    check_collective(path, options, watch, &SingleProcess)
}

/// Collective. Checks the file like [`check`], with each run of blocks read by one of the `ranks`. All ranks return the
/// same report, whatever their number.
///
/// # Errors
/// As for [`check`], on every rank; also [`raddle_core::CoreError::RankFailed`] if only another rank encountered an
/// error.
pub fn check_collective(
    path: &Path,
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<VerifyReport> {
    of_unchanged_collective(path, ranks, || compare_collective(path, options, watch, ranks))
}

fn compare_collective(
    path: &Path,
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<VerifyReport> {
    let started = std::time::Instant::now();
    let stored = match stored::read(path, options) {
        Err(MergeError::DigestsDamaged { path, what }) => Ok(Err((path, what))),
        other => other.map(Ok),
    };
    let stored = match ranks.agree(VERIFYING, stored)? {
        Ok(stored) => stored,
        Err((_, what)) => {
            let group = display_path(&crate::verify::provenance::provenance_path(""));
            let what = format!("the digests themselves are damaged: {what}");
            let mismatch = Mismatch { path: group, what, row: None, input: None };
            return Ok(VerifyReport { mismatches: vec![mismatch], ..VerifyReport::default() });
        }
    };
    let found = plan_file_collective(path, Selection::default(), options, watch, ranks)?;
    let total_bytes = Some(found.logical_len_bytes());
    watch.observer.event(&Event::StageStarted { stage: Stage::Verify, total_bytes });
    let pool = open_pool(&found);
    let box_limit_len_bytes = options.memory_limit_bytes / (4 * options.jobs.max(1) as u64);
    let mut check = Check {
        stored: &stored,
        found: &found,
        pool: &pool,
        box_limit_len_bytes: common_limit_len_bytes(box_limit_len_bytes, ranks)?,
        report: VerifyReport::default(),
    };
    let columns = ranks.agree(VERIFYING, check.structure())?;
    let (linked, others): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .partition(|(_, known)| known.digests.as_ref().is_some_and(|digests| digests.form == DigestForm::Linked));
    let (boxed, in_rows): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|(column, known)| check.is_boxed(*column, known));
    let jobs = check.jobs(&in_rows);
    let boxed = check.boxed(&boxed);
    // All ranks find the same differences here, so only the first one reports them.
    let first = match ranks.rank() {
        0 => check.linked(&linked, watch).map(|()| check.external(path)),
        _ => {
            check.report = VerifyReport::default();
            Ok(())
        }
    };
    ranks.agree(VERIFYING, first)?;
    let damages = check.values(&jobs, watch, ranks).and_then(|mut damages| {
        damages.extend(check.values_in_boxes(&boxed, watch, ranks)?);
        Ok(damages)
    });
    let damages = damages_of_all(ranks.agree(VERIFYING, damages)?, ranks)?;
    if ranks.rank() == 0 {
        let described: Vec<Mismatch> = damages.iter().map(|damage| check.describe(damage)).collect();
        check.report.mismatches.extend(described);
    }
    let mut report = together(check.report, ranks)?;
    report.elapsed_s = started.elapsed().as_secs_f64();
    watch.observer.event(&Event::StageFinished { stage: Stage::Verify, elapsed_s: report.elapsed_s });
    Ok(report)
}

pub(super) struct Check<'a> {
    stored: &'a StoredDigests,
    pub(super) found: &'a MergePlan,
    pub(super) pool: &'a InputPool,
    /// Limit of the boxes in which columns are read, the same on all ranks.
    pub(super) box_limit_len_bytes: u64,
    pub(super) report: VerifyReport,
}

/// Blocks of a column that one thread checks.
struct Job<'a> {
    column: u32,
    form: DigestForm,
    block_rows: u64,
    digests: &'a [u64],
    rows: Range<u64>,
}

/// Rows that have changed.
#[derive(Serialize, Deserialize)]
pub(super) struct Damage {
    pub column: u32,
    pub rows: Range<u64>,
    /// Error message, if the rows cannot be read.
    pub error: Option<String>,
}

/// Collective. Returns the damaged rows found by all ranks, with adjacent rows joined.
fn damages_of_all(local: Vec<Damage>, ranks: &dyn Communicator) -> Result<Vec<Damage>> {
    let of_ranks = ranks.all_gather_values(VERIFYING, &local)?;
    let mut damages: Vec<Damage> = of_ranks.into_iter().flatten().collect();
    damages.sort_by_key(|damage| (damage.column, damage.rows.start));
    damages.dedup_by(|next, damage| {
        let follows = next.column == damage.column && next.rows.start == damage.rows.end;
        let joins = follows && next.error == damage.error;
        if joins {
            damage.rows.end = next.rows.end;
        }
        joins
    });
    Ok(damages)
}

impl<'a> Check<'a> {
    pub(super) fn mismatch(&mut self, path: &[u8], what: impl Into<String>) {
        let (path, what) = (display_path(path), what.into());
        self.report.mismatches.push(Mismatch { path, what, row: None, input: None });
    }

    /// Compares all objects, and returns the columns whose values can be compared.
    fn structure(&mut self) -> Result<Vec<(u32, &'a StoredColumn)>> {
        let (found, stored) = (self.found, self.stored);
        let mut reader = ColumnReader::new(found, self.pool);
        let mut comparable = Vec::new();
        for (entry, mut digest) in found.schema.entries.iter().zip(structure_digests(found)) {
            self.report.objects += 1 + entry.attributes.len() as u64;
            let word = entry.role.word();
            let (known, column) = match entry.role {
                Role::Column(column) => {
                    match known_and_found(found, stored, (entry, column), digest, &mut reader) {
                        Ok((known, as_written)) => {
                            digest = as_written;
                            let stored_column = stored.datasets.get(&entry.path);
                            // The values of other objects were compared as part of their structure.
                            self.report.datasets += u64::from(stored_column.is_none() && known.is_some());
                            (known, stored_column.map(|stored_column| (column, stored_column)))
                        }
                        Err(error) => {
                            let what = readable(error)?;
                            self.mismatch(&entry.path, what);
                            continue;
                        }
                    }
                }
                _ => (stored.objects.get(&entry.path).copied(), None),
            };
            match known {
                Some(known) if known == digest => comparable.extend(column),
                Some(_) => self.mismatch(
                    &entry.path,
                    format!(
                        "the {word} differs from what was written: its type, dimensions, attributes, value or target changed"
                    ),
                ),
                None => self.mismatch(&entry.path, format!("a {word} that raddle did not write")),
            }
        }
        let there: HashSet<&[u8]> = found.schema.entries.iter().map(|entry| entry.path.as_slice()).collect();
        for path in stored.objects.keys().chain(stored.datasets.keys()).filter(|path| !there.contains(path.as_slice()))
        {
            self.mismatch(path, "is missing");
        }
        Ok(comparable)
    }

    /// Checks that the sources of virtual datasets exist; their contents have no digest here.
    fn linked(&mut self, columns: &[(u32, &'a StoredColumn)], watch: &Watch<'_>) -> Result<()> {
        let mut reader = ColumnReader::new(self.found, self.pool);
        for &(column, _) in columns {
            watch.cancel.check()?;
            let path = self.found.schema.column_path(column);
            let scanned = &self.found.schema.columns[column as usize];
            if scanned.model().layout != Layout::Virtual {
                self.mismatch(path, "was virtual but no longer is");
                continue;
            }
            // All sources of the dataset must be found before a row is read.
            let dims = &self.found.columns[column as usize].dims;
            match reader.canonical_rows(column, 0, 0, 1, dims) {
                Ok(_) => self.report.linked += 1,
                Err(error) => {
                    let what = readable(error)?;
                    self.mismatch(path, what);
                }
            }
        }
        Ok(())
    }

    /// Checks that the files to which the file at `path` links exist. Does nothing unless the file consists of such
    /// links.
    fn external(&mut self, path: &Path) {
        if !self.stored.link.0.is_external() {
            return;
        }
        for entry in &self.found.schema.entries {
            let Role::ExternalLink { file, .. } = &entry.role else { continue };
            let file = Path::new(OsStr::from_bytes(file));
            match target_from(path, file) {
                Some(_) => self.report.linked += 1,
                None => self.mismatch(&entry.path, format!("links to {}, which does not exist", file.display())),
            }
        }
    }

    /// Splits the blocks of columns into jobs.
    fn jobs(&mut self, columns: &[(u32, &'a StoredColumn)]) -> Vec<Job<'a>> {
        let mut jobs = Vec::new();
        for &(column, known) in columns {
            match self.jobs_of(column, known) {
                Ok(of_column) => {
                    self.report.datasets += 1;
                    jobs.extend(of_column);
                }
                Err(what) => self.mismatch(self.found.schema.column_path(column), what),
            }
        }
        jobs
    }

    /// Checks this rank's share of `jobs`.
    fn values(&mut self, jobs: &[Job<'a>], watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<Vec<Damage>> {
        let (found, pool) = (self.found, self.pool);
        let cost = |job: &Job<'_>| (job.rows.end - job.rows.start).saturating_mul(found.row_len_bytes(job.column));
        let jobs = &jobs[share_by_cost(ranks, jobs.iter().map(cost))];
        let budget = Arc::new(MemoryBudget::new(found.options.memory_limit_bytes));
        let compared = AtomicU64::new(0);
        let damages = Mutex::new(Vec::new());
        let worker = || BlockDigester {
            found,
            reader: ColumnReader::new(found, pool),
            buffer: Vec::new(),
            reported_len_bytes: 0,
        };
        let threads = ReaderMemory::of(found).fitting_jobs(found, found.options.jobs, READ_LEN_BYTES)?;
        parallel::for_each(jobs, threads, watch.cancel, worker, |worker, job| {
            let row_len_bytes = found.row_len_bytes(job.column);
            let block_len_bytes = job.block_rows.min(job.rows.end - job.rows.start).saturating_mul(row_len_bytes);
            let _permit = budget.acquire(block_len_bytes.max(READ_LEN_BYTES), "digesting a block of rows")?;
            let damaged = worker.damaged(job, watch)?;
            let bytes = (job.rows.end - job.rows.start) * row_len_bytes;
            compared.fetch_add(bytes, Ordering::Relaxed);
            let bytes = bytes.saturating_sub(std::mem::take(&mut worker.reported_len_bytes));
            watch.observer.event(&Event::Advanced { stage: Stage::Verify, bytes, items: 1 });
            damages.lock().unwrap_or_else(PoisonError::into_inner).extend(damaged);
            Ok::<_, MergeError>(())
        })?;
        self.report.compared_len_bytes += compared.into_inner();
        Ok(damages.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the digests of a column, or the reason why they do not match it.
    pub(super) fn digests_of(
        &self,
        column: u32,
        known: &'a StoredColumn,
    ) -> std::result::Result<Option<&'a ColumnDigests>, String> {
        let planned = &self.found.columns[column as usize];
        let Some(digests) = &known.digests else {
            let is_empty = matches!(planned.route, Route::Empty);
            return if is_empty { Ok(None) } else { Err("has values but no digests".to_owned()) };
        };
        let rows = planned.dims[0];
        if digests.blocks.len() as u64 != rows.div_ceil(digests.block_rows) {
            return Err(format!("has {} digests for {rows} rows", digests.blocks.len()));
        }
        Ok(Some(digests))
    }

    /// Cuts the blocks of a column into jobs; fails with a message if its digests do not match it.
    fn jobs_of(&self, column: u32, known: &'a StoredColumn) -> std::result::Result<Vec<Job<'a>>, String> {
        let Some(digests) = self.digests_of(column, known)? else { return Ok(Vec::new()) };
        let rows = self.found.columns[column as usize].dims[0];
        let in_one = digests.form != DigestForm::Values;
        let block_len_bytes = digests.block_rows.saturating_mul(self.found.row_len_bytes(column)).max(1);
        let step = if in_one { u64::MAX } else { (JOB_LEN_BYTES / block_len_bytes).max(1) };
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        let jobs = digests.blocks.chunks(step.min(digests.blocks.len().max(1))).enumerate().map(|(place, blocks)| {
            let start = place as u64 * step as u64 * digests.block_rows;
            let end = (start + blocks.len() as u64 * digests.block_rows).min(rows);
            Job { column, form: digests.form, block_rows: digests.block_rows, digests: blocks, rows: start..end }
        });
        Ok(jobs.collect())
    }

    fn describe(&self, damage: &Damage) -> Mismatch {
        let path = self.found.schema.column_path(damage.column);
        let known = &self.stored.datasets[path];
        let inputs = self.stored.inputs_of(known, &damage.rows);
        let (first, last) = (damage.rows.start, damage.rows.end.saturating_sub(1));
        let mut what = match &damage.error {
            None => format!("rows {first} to {last} differ from what was written"),
            Some(error) => format!("rows {first} to {last} cannot be read: {error}"),
        };
        if inputs.len() > 1 {
            what.push_str(&format!(" (from {} inputs, the first is shown)", inputs.len()));
        }
        let first_input = inputs.clone().next().and_then(|input| self.stored.inputs.get(input));
        let input = first_input.map(|(path, _)| path.clone());
        Mismatch { path: display_path(path), what, row: Some(first), input }
    }
}

struct BlockDigester<'p> {
    found: &'p MergePlan,
    reader: ColumnReader<'p>,
    buffer: Vec<u8>,
    /// Length of the checked values of this job that the observer knows of.
    reported_len_bytes: u64,
}

impl BlockDigester<'_> {
    /// Returns the blocks of `job` that have changed.
    fn damaged(&mut self, job: &Job<'_>, watch: &Watch<'_>) -> Result<Vec<Damage>> {
        let block = |number: usize| {
            let start = job.rows.start + number as u64 * job.block_rows;
            start..(start + job.block_rows).min(job.rows.end)
        };
        let damage = |rows: Range<u64>, error: Option<String>| Damage { column: job.column, rows, error };
        let mut damaged = Vec::new();
        if job.form == DigestForm::Values {
            let block_len_bytes = job.block_rows.saturating_mul(self.found.row_len_bytes(job.column)).max(1);
            let at_once = (READ_LEN_BYTES / block_len_bytes).max(1) as usize;
            for (number, expected) in job.digests.chunks(at_once).enumerate() {
                watch.cancel.check()?;
                let first = number * at_once;
                match self.of_values(job, block(first).start..block(first + expected.len() - 1).end) {
                    Ok(found) => {
                        let pairs = expected.iter().zip(found).enumerate();
                        let differing = pairs.filter(|(_, (expected, found))| **expected != *found);
                        damaged.extend(differing.map(|(at, _)| damage(block(first + at), None)));
                    }
                    Err(_) => {
                        // Checks block by block to find the rows that cannot be read.
                        for (at, expected) in expected.iter().enumerate() {
                            match self.of_values(job, block(first + at)) {
                                Ok(found) if found.first() == Some(expected) => {}
                                Ok(_) => damaged.push(damage(block(first + at), None)),
                                Err(error) => damaged.push(damage(block(first + at), Some(readable(error)?))),
                            }
                        }
                    }
                }
            }
            return Ok(damaged);
        }
        let gathered = match job.form {
            DigestForm::Canonical => self.of_canonical(job, watch),
            _ => self.of_stored(job, watch),
        };
        match gathered {
            Ok(found) => {
                let differing =
                    job.digests.iter().enumerate().filter(|(number, digest)| found.get(*number) != Some(digest));
                damaged.extend(differing.map(|(number, _)| damage(block(number), None)));
            }
            Err(error) => damaged.push(damage(job.rows.clone(), Some(readable(error)?))),
        }
        Ok(damaged)
    }

    /// Computes the digests of the blocks in `rows`, which must begin with a block.
    fn of_values(&mut self, job: &Job<'_>, rows: Range<u64>) -> Result<Vec<u64>> {
        let row_len_bytes = self.found.row_len_bytes(job.column);
        self.buffer.resize(((rows.end - rows.start) * row_len_bytes) as usize, 0);
        self.reader.read_rows(job.column, rows, &mut self.buffer)?;
        let blocks = self.buffer.chunks((job.block_rows * row_len_bytes).max(1) as usize);
        Ok(blocks.map(|block| Digest::of(block).crc64_nvme()).collect())
    }

    fn of_canonical(&mut self, job: &Job<'_>, watch: &Watch<'_>) -> Result<Vec<u64>> {
        let row_len_bytes = self.found.row_len_bytes(job.column);
        let mut gathered = InOrder::new(DigestForm::Canonical, job.block_rows);
        self.reader.for_each_canonical_block(job.column, job.block_rows, &mut |_, rows, canonical| {
            watch.cancel.check()?;
            let bytes = rows * row_len_bytes;
            watch.observer.event(&Event::Advanced { stage: Stage::Verify, bytes, items: 0 });
            self.reported_len_bytes += bytes;
            gathered.add(rows, canonical);
            Ok(())
        })?;
        Ok(gathered.finish().blocks)
    }

    fn of_stored(&mut self, job: &Job<'_>, watch: &Watch<'_>) -> Result<Vec<u64>> {
        // The existing chunks are used as they are, whether they could be moved or are decoded.
        let planned = &self.found.columns[job.column as usize];
        let (Route::Verbatim { array } | Route::Encoded { array, .. }) = planned.route else {
            return Ok(Vec::new()); // it no longer has chunks, so nothing matches
        };
        let array = &self.found.tiles.arrays[array as usize];
        let tiles = StoredTiles::new(array);
        for index in 0..array.tile_count() {
            watch.cancel.check()?;
            self.buffer.clear();
            let mask = self.reader.stored_chunk(job.column, 0, &array.tile_origin(index), &mut self.buffer)?;
            tiles.add(index, mask.map(|mask| (mask, self.buffer.as_slice())));
        }
        Ok(tiles.finish().blocks)
    }
}

/// Returns the message of an error that reports unreadable values; any other error ends the check.
pub(super) fn readable(error: MergeError) -> Result<String> {
    match error {
        MergeError::Hdf5(error) if error.is_forbidden() => Err(error.into()),
        MergeError::Hdf5(error) => Ok(error.to_string()),
        MergeError::Object { reason, .. } => Ok(reason),
        other => Err(other),
    }
}
