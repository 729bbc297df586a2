//! Trials of parts of datasets, which are read, decoded and encoded as in the merge.
//!
//! Each dataset with a large share of the inputs' stored bytes is tried, at a number of positions that grows with its
//! share. A sample represents the small datasets. [`super::estimate`] computes the totals. Invariant: the choice of
//! trials depends only on the plan and the budget, and their total cost does not much exceed the budget.

use crate::error::Result;
use crate::plan::{MergePlan, Route};
use crate::schema::Column;
use crate::write::tiles::{MergeWork, MergeWorker, RegionTrial};
use raddle_core::cancel::CancelToken;
use raddle_core::digest::Digest;
use raddle_core::engine::{TileForm, TileWork};
use raddle_core::parallel;
use raddle_core::plan::extent::{Extent, values_len_bytes};
use raddle_core::plan::{ArrayPlan, Tile};
use raddle_core::report::thread_cpu_ns;
use raddle_hdf5::model::Layout;
use std::collections::BTreeSet;
use std::time::Instant;

/// Number of trials into which a budget is divided: enough for dozens of datasets, while each trial stays long relative
/// to deflate's window of 32 KiB. Shorter parts would compress worse than the whole.
const TRIALS: u64 = 64;
const MIN_TRIAL_LEN_BYTES: u64 = 64 << 10;
const MAX_TRIAL_LEN_BYTES: u64 = 256 << 10;
/// Maximum number of trials in one dataset.
const TRIALS_IN_ONE: u64 = 64;
/// Divisor of the budget. An input's chunk is decoded as a whole, and nothing is tried if that would take more than
/// this part of the budget.
const MAX_SHARE: u64 = 4;
/// Divisor of the budget: the quotient is spent on small datasets.
const SHARE_OF_SMALL: u64 = 4;
/// Number of bytes whose decoding and encoding takes as long as finding and opening a piece of one input.
const PIECE_COST_BYTES: u64 = 4096;
/// Time added to both times in the slowdown, so that a few interruptions by the scheduler do not dominate short trials.
const INTERRUPTIONS_S: f64 = 0.01;
/// Number of regions that are tried of a dataset whose tiles are assembled in groups: of regions that contain whole
/// tiles, and of others. The differences between regions show how uncertain the estimate is.
const REGIONS: [u64; 2] = [4, 2];
/// Length from which a part of a tile compresses like the tile.
const MIN_PART_LEN_BYTES: u64 = 16 << 10;
/// Number of tiles that are encoded of each region.
const TILES_OF_REGION: usize = 8;
/// Time to write a byte to a scratch file and to read it again.
const SCRATCH_S_PER_BYTE: f64 = 1.2e-9;
/// Number of bytes of a computed column that weigh as much as one stored byte.
const MADE_BYTES_PER_STORED_BYTE: u64 = 8;

/// Unit of the amount of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum AmountUnit {
    /// Stored bytes of the inputs.
    Stored,
    /// Uncompressed bytes: no input has the dataset.
    Raw,
}

/// A tiled dataset that can be tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub array: u32,
    pub unit: AmountUnit,
    /// Amount of the dataset, in its unit.
    pub amount: f64,
    /// Length in the output, if it is known because the dataset is moved as stored, or stored unfiltered.
    pub stored_len_bytes: Option<f64>,
    /// Whether the merge decodes the dataset, and uses only the native reader for it.
    pub is_readable: bool,
}

impl Subject {
    fn weight(&self) -> f64 {
        match self.unit {
            AmountUnit::Stored => self.amount,
            AmountUnit::Raw => self.amount / MADE_BYTES_PER_STORED_BYTE as f64,
        }
    }
}

/// Returns all tiled datasets of `plan`.
pub(super) fn subjects(plan: &MergePlan) -> Vec<Subject> {
    let arrays = (0..).zip(&plan.tiles.arrays).zip(&plan.column_of_array);
    let subject = |((array, tiles), &index): ((u32, &ArrayPlan), &u32)| {
        let (planned, column) = (&plan.columns[index as usize], &plan.schema.columns[index as usize]);
        let is_derived = plan.derived.has(index);
        let (unit, amount) = match is_derived {
            true => (AmountUnit::Raw, tiles.len_bytes()),
            false => (AmountUnit::Stored, column.stored_len_bytes()),
        };
        let stored_len_bytes = match planned.route {
            Route::Encoded { .. } => None,
            Route::Raw { .. } => Some(tiles.len_bytes() as f64),
            _ => Some(amount as f64),
        };
        Subject {
            array,
            unit,
            amount: amount as f64,
            stored_len_bytes,
            is_readable: is_derived || !needs_library(column) && planned.undecoded_array(&plan.options).is_none(),
        }
    };
    arrays.map(subject).collect()
}

/// Returns whether libhdf5, in a child process, reads some input's part of the column.
pub(super) fn needs_library(column: &Column) -> bool {
    column.templates.iter().any(|template| template.layout.is_through_library())
}

/// Part of a dataset to be tried.
#[derive(Debug)]
pub(super) struct Trial {
    /// Number of the dataset among the subjects.
    pub subject: usize,
    /// Array cut into tiles of the length of a trial.
    cut: ArrayPlan,
    /// Number of the tile.
    index: u64,
    /// Amount of the part, in the unit of its dataset.
    amount: f64,
    /// Share of the decoded bytes that belong to the part, because chunks of inputs extend beyond it.
    used_share: f64,
    /// Number of times that the trial counts.
    times: usize,
    cost_bytes: u64,
    /// Padding of the array relative to the padding of the part: for each, the ratio of the bytes of all chunks to the
    /// length. Chunks at the edges extend beyond the array. `None` unless the part is a region of chunks whose tiles
    /// are assembled together.
    padding: Option<f64>,
}

/// Result of a trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialResult {
    /// Number of the dataset among the subjects.
    pub subject: usize,
    /// Amount of the part, in the unit of its dataset.
    pub amount: f64,
    /// Stored length in the output.
    pub stored_len_bytes: f64,
    /// Processor time in seconds.
    pub cpu_s: f64,
}

/// All trials of a plan.
#[derive(Debug, Default)]
pub(super) struct Trials {
    /// Trials of large datasets, each of which is estimated separately.
    pub of_large: Vec<TrialResult>,
    /// Trials that represent all other datasets.
    pub of_small: Vec<TrialResult>,
    /// Numbers of the subjects that cannot be tried.
    pub untried: Vec<usize>,
    /// Number of uncompressed bytes that the trials produced.
    pub len_bytes: u64,
    /// Ratio of wall time to processor time: above 1 if other programs use the machine, or the storage of the inputs is
    /// slow.
    pub slowdown: f64,
}

/// Trials chosen within a budget.
struct TrialSelection {
    of_large: Vec<Trial>,
    of_small: Vec<Trial>,
    untried: Vec<usize>,
}

/// Tries parts of the largest of `subjects` and of some of the others, at most about `budget_len_bytes` in total.
///
/// # Errors
/// If a part cannot be read. The merge would fail in the same way.
pub(super) fn make<'p>(
    plan: &MergePlan,
    work: &MergeWork<'p>,
    subjects: &[Subject],
    budget_len_bytes: u64,
) -> Result<Trials> {
    let TrialSelection { of_large, of_small, untried } = choose(plan, work, subjects, budget_len_bytes);
    let count_large = of_large.len();
    let all: Vec<Trial> = of_large.into_iter().chain(of_small).collect();
    let step = |bench: &mut Bench<'p>, trial: &Trial| bench.make(work, &subjects[trial.subject], trial);
    let threads = plan.options.jobs.clamp(1, raddle_core::engine::default_jobs());
    let results = parallel::map(&all, threads, &CancelToken::new(), Bench::default, step)?;
    let (wall_s, cpu_s) =
        results.iter().fold((0.0, 0.0), |sum, (_, spent)| (sum.0 + spent.wall_s, sum.1 + spent.cpu_s));
    let tried = results.into_iter().zip(&all);
    let mut tried = tried.flat_map(|((tried, _), trial)| std::iter::repeat_n(tried, trial.times));
    Ok(Trials {
        of_large: tried.by_ref().take(count_large).collect(),
        of_small: tried.collect(),
        untried,
        len_bytes: all.iter().map(|trial| trial.cut.tile_len_bytes()).sum(),
        slowdown: ((wall_s + INTERRUPTIONS_S) / (cpu_s + INTERRUPTIONS_S)).max(1.0),
    })
}

/// Time of a trial, including the parts of chunks that extend beyond it.
struct TrialTime {
    wall_s: f64,
    cpu_s: f64,
}

/// State of a thread that makes trials.
#[derive(Default)]
struct Bench<'p> {
    worker: Option<MergeWorker<'p>>,
    raw: Vec<u8>,
    stored: Vec<u8>,
}

impl<'p> Bench<'p> {
    /// Tries a part of `subject`.
    fn make(&mut self, work: &MergeWork<'p>, subject: &Subject, trial: &Trial) -> Result<(TrialResult, TrialTime)> {
        let Self { worker, raw, stored } = self;
        let worker = match worker {
            Some(worker) => worker,
            None => worker.insert(work.worker()?),
        };
        if let Some(padding) = trial.padding {
            return Self::make_region((worker, raw, stored), work, subject, trial, padding);
        }
        let (started_ns, started) = (thread_cpu_ns(), Instant::now());
        raw.resize(trial.cut.tile_len_bytes() as usize, 0);
        stored.clear();
        let tile = Tile { array: subject.array, index: trial.index };
        work.try_tile(worker, tile, &trial.cut, raw)?;
        std::hint::black_box(Digest::of(raw));
        let gathered_ns = thread_cpu_ns() - started_ns;
        let mut stored_len_bytes = 0.0;
        if subject.stored_len_bytes.is_none()
            && let TileForm::Stored { .. } = work.encode(worker, tile, raw, stored)?
        {
            stored_len_bytes = stored.len() as f64;
        }
        let encoded_ns = thread_cpu_ns() - started_ns - gathered_ns;
        let cpu_s = (gathered_ns as f64 * trial.used_share + encoded_ns as f64) * 1e-9;
        let tried = TrialResult { subject: trial.subject, amount: trial.amount, stored_len_bytes, cpu_s };
        let spent =
            TrialTime { wall_s: started.elapsed().as_secs_f64(), cpu_s: (gathered_ns + encoded_ns) as f64 * 1e-9 };
        Ok((tried, spent))
    }

    /// Tries a region of `subject`: its chunks are decoded once, divided into tiles, and some tiles are encoded.
    fn make_region(
        (worker, values, stored): (&mut MergeWorker<'p>, &mut Vec<u8>, &mut Vec<u8>),
        work: &MergeWork<'p>,
        subject: &Subject,
        trial: &Trial,
        padding: f64,
    ) -> Result<(TrialResult, TrialTime)> {
        let array = &work.plan().tiles.arrays[subject.array as usize];
        let region = trial.cut.tile_extent(trial.index);
        let region_len_bytes = values_len_bytes(&region.count, array.element_len_bytes) as f64;
        let (started_ns, started) = (thread_cpu_ns(), Instant::now());
        let RegionTrial { slots, read_ns, put_ns } = work.try_region(worker, subject.array, &region, values)?;
        let element_len = array.element_len_bytes.max(1) as usize;
        let tiles_len_bytes = array.tile_len_bytes().saturating_mul(array.tile_count());
        let tile_padding = tiles_len_bytes as f64 / array.len_bytes().max(1) as f64;
        let encode = |worker: &mut MergeWorker<'p>, place: usize, stored: &mut Vec<u8>| -> Result<usize> {
            let mut part = slots.lock(place);
            let part_len_bytes = part.len();
            work.digest_box(subject.array, &slots.part(place as u64), &part)?;
            stored.clear();
            if subject.stored_len_bytes.is_none() {
                // Tiles at the edges are padded before they are encoded.
                part.resize(((part_len_bytes as f64 * tile_padding) as usize).next_multiple_of(element_len), 0);
                let tile = Tile { array: subject.array, index: 0 };
                work.encode(worker, tile, &part, stored)?;
                part.truncate(part_len_bytes);
            }
            Ok(part_len_bytes)
        };
        let (mut tried_len_bytes, mut stored_len_bytes) = (0, 0);
        // Slivers of tiles at the border of the region would compress worse than the tiles.
        let len_of = |place: &usize| slots.lock(*place).len();
        let longest = (0..slots.len()).map(|place| len_of(&place)).max().unwrap_or(0);
        let long: Vec<usize> = (0..slots.len()).filter(|place| 2 * len_of(place) > longest).collect();
        let count = long.len().min(TILES_OF_REGION);
        let place = |number: usize| long[(2 * number + 1) * long.len() / (2 * count)];
        // The first encoding of a thread allocates, which few tiles of a run do.
        encode(worker, place(0), stored)?;
        let encoding_from_ns = thread_cpu_ns();
        for number in 0..count {
            tried_len_bytes += encode(worker, place(number), stored)?;
            stored_len_bytes += stored.len();
        }
        let ended_ns = thread_cpu_ns();
        let encoded_ns = ended_ns - encoding_from_ns;
        let found = work.regrouper().of(subject.array);
        let (decodes, has_scratch) = found.map_or((1.0, false), |found| (found.decodes, found.slabs.is_some()));
        let scale = region_len_bytes / (tried_len_bytes as f64).max(1.0);
        let reading_ns = read_ns as f64 * trial.used_share * padding * decodes;
        let scratch_s = if has_scratch { region_len_bytes * SCRATCH_S_PER_BYTE } else { 0.0 };
        let cpu_s = (reading_ns + put_ns as f64 + encoded_ns as f64 * scale) * 1e-9 + scratch_s;
        let stored_len_bytes = stored_len_bytes as f64 * scale;
        let tried = TrialResult { subject: trial.subject, amount: trial.amount, stored_len_bytes, cpu_s };
        let spent = TrialTime { wall_s: started.elapsed().as_secs_f64(), cpu_s: (ended_ns - started_ns) as f64 * 1e-9 };
        Ok((tried, spent))
    }
}

/// Chooses the trials.
fn choose(plan: &MergePlan, work: &MergeWork<'_>, subjects: &[Subject], budget_len_bytes: u64) -> TrialSelection {
    let trial_len_bytes = (budget_len_bytes / TRIALS).clamp(MIN_TRIAL_LEN_BYTES, MAX_TRIAL_LEN_BYTES);
    let longest = budget_len_bytes / MAX_SHARE;
    let weight = |at: usize| subjects[at].weight();
    let mut order: Vec<usize> = (0..subjects.len()).filter(|&at| subjects[at].amount > 0.0).collect();
    order.sort_by(|&one, &other| weight(other).total_cmp(&weight(one)).then(one.cmp(&other)));
    let whole: f64 = order.iter().map(|&at| weight(at)).sum();
    let (mut of_large, mut small, mut untried) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = budget_len_bytes - budget_len_bytes / SHARE_OF_SMALL;
    for at in order {
        if !subjects[at].is_readable {
            untried.push(at);
            continue;
        }
        // All datasets after the first that does not fit are smaller; a sample represents them.
        if !small.is_empty() {
            small.push(at);
            continue;
        }
        let share = weight(at) / whole;
        let regrouping = work.regrouper().of(subjects[at].array);
        let mut trials = match regrouping {
            Some(found) => {
                let len_bytes = (share * budget_len_bytes as f64) as u64;
                regions_of(plan, &subjects[at], at, &found.chunk_shape, len_bytes.min(left))
            }
            None => {
                let count = (share * (budget_len_bytes / trial_len_bytes) as f64) as u64;
                trials_of(plan, &subjects[at], at, count.clamp(1, TRIALS_IN_ONE), trial_len_bytes)
            }
        };
        let dearest = trials.iter().map(|trial| trial.cost_bytes).max().unwrap_or(1).max(1);
        let is_of_regions = regrouping.is_some();
        // A single region does not show how uncertain the estimate is.
        let is_too_dear = if is_of_regions { dearest.saturating_mul(2) > left } else { dearest > longest };
        if is_too_dear || is_of_regions && trials.is_empty() {
            untried.push(at);
            continue;
        }
        if is_of_regions {
            trials.truncate((left / dearest) as usize);
        } else if dearest.saturating_mul(trials.len() as u64) > left {
            trials = trials_of(plan, &subjects[at], at, left / dearest, trial_len_bytes);
        }
        if trials.is_empty() {
            small.push(at);
            continue;
        }
        left -= trials.iter().map(|trial| trial.cost_bytes).sum::<u64>().min(left);
        of_large.extend(trials);
    }
    left = left.saturating_add(budget_len_bytes / SHARE_OF_SMALL);
    let of_small = choose_small(subjects, &small, left / trial_len_bytes, &mut |at| {
        let trial =
            trials_of(plan, &subjects[at], at, 1, trial_len_bytes).pop().filter(|trial| trial.cost_bytes <= left)?;
        left -= trial.cost_bytes;
        Some(trial)
    });
    TrialSelection { of_large, of_small, untried }
}

/// Chooses up to `count` trials among the subjects `small`, with a probability proportional to the weight.
fn choose_small(
    subjects: &[Subject],
    small: &[usize],
    count: u64,
    trial: &mut dyn FnMut(usize) -> Option<Trial>,
) -> Vec<Trial> {
    let whole: f64 = small.iter().map(|&at| subjects[at].weight()).sum();
    let step = whole / count.max(1) as f64;
    let (mut reached, mut next, mut chosen) = (0.0, step / 2.0, Vec::new());
    for &at in small.iter().take_while(|_| count > 0) {
        reached += subjects[at].weight();
        let mut times = 0;
        while next <= reached {
            (next, times) = (next + step, times + 1);
        }
        if times > 0 {
            chosen.extend(trial(at).map(|trial| Trial { times, ..trial }));
        }
    }
    chosen
}

/// Returns up to `count` trials of a subject, evenly spread over its rows.
fn trials_of(plan: &MergePlan, subject: &Subject, number: usize, count: u64, trial_len_bytes: u64) -> Vec<Trial> {
    let array = &plan.tiles.arrays[subject.array as usize];
    let column = &plan.schema.columns[plan.column_of_array[subject.array as usize] as usize];
    let row_len_bytes = (array.tile_len_bytes() / array.tile_shape[0].max(1)).max(1);
    let chunk_rows = chunk_shape(column).map_or(1, |shape| shape[0]);
    let most_rows = array.tile_shape[0].min(array.shape[0]).max(1);
    let rows = (trial_len_bytes / row_len_bytes).max(chunk_rows).clamp(1, most_rows);
    let mut cut = array.clone();
    if rows < most_rows {
        cut.tile_shape[0] = rows;
    }
    // The last band of rows may be short and is not tried if there are others.
    let bands = (cut.shape[0] / cut.tile_shape[0].max(1)).max(1);
    let positions = cut.tile_count() / cut.shape[0].div_ceil(cut.tile_shape[0].max(1)).max(1) * bands;
    let count = count.min(positions);
    let trial = |place: u64| {
        let index = ((2 * u128::from(place) + 1) * u128::from(positions) / (2 * u128::from(count))) as u64;
        Trial::new(column, subject, number, cut.clone(), index)
    };
    (0..count).map(trial).collect()
}

/// Returns trials of regions of whole chunks, which are up to `len_bytes` long together, or of one chunk each. A region
/// is as long as a tile along the last axes, so that its parts of tiles compress like tiles. Returns no trials if the
/// parts would be too short for that.
fn regions_of(plan: &MergePlan, subject: &Subject, number: usize, chunk_shape: &[u64], len_bytes: u64) -> Vec<Trial> {
    let array = &plan.tiles.arrays[subject.array as usize];
    let column = &plan.schema.columns[plan.column_of_array[subject.array as usize] as usize];
    let [(whole, count_if_whole), (region, count)] =
        REGIONS.map(|count| (region_shape(array, chunk_shape, len_bytes / count), count));
    let part_of = |region: &[u64]| -> Vec<u64> {
        (0..region.len()).map(|axis| region[axis].min(array.tile_shape[axis]).min(array.shape[axis])).collect()
    };
    let clipped: Vec<u64> = array.tile_shape.iter().zip(&array.shape).map(|(tile, len)| *tile.min(len)).collect();
    let (shape, count) = if part_of(&whole) == clipped { (whole, count_if_whole) } else { (region, count) };
    let part = part_of(&shape);
    if part != clipped && values_len_bytes(&part, array.element_len_bytes) < MIN_PART_LEN_BYTES {
        return Vec::new();
    }
    let mut cut = array.clone();
    cut.tile_shape = shape;
    let positions = cut.tile_count();
    let padded = |region: &Extent| {
        let covered = |axis: usize| {
            let (chunk, start) = (chunk_shape[axis].max(1), region.start[axis]);
            (region.end(axis).div_ceil(chunk) * chunk - start / chunk * chunk) as f64 / region.count[axis].max(1) as f64
        };
        (0..region.rank()).map(covered).product::<f64>()
    };
    let of_array = padded(&Extent::whole(&array.shape));
    // Positions at equal distances could all lie at an edge.
    let scattered = |place: u64| {
        let fraction = (2 * place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(fraction) * u128::from(positions)) >> 64) as u64
    };
    let indexes: BTreeSet<u64> = (0..count.min(positions)).map(scattered).collect();
    let trial = |index: u64| {
        let padding = Some(of_array / padded(&cut.tile_extent(index)));
        Trial { padding, ..Trial::new(column, subject, number, cut.clone(), index) }
    };
    indexes.into_iter().map(trial).collect()
}

/// Returns the number of elements along each axis of a region that consists of one chunk, or of as many chunks as fit
/// `len_bytes`. The region is no longer than a tile, rounded up to whole chunks, and extends along the last axes first.
fn region_shape(array: &ArrayPlan, chunk_shape: &[u64], len_bytes: u64) -> Vec<u64> {
    let clip = |(chunk, len): (&u64, &u64)| (*chunk).min(*len).max(1);
    let mut shape: Vec<u64> = chunk_shape.iter().zip(&array.shape).map(clip).collect();
    for axis in (0..shape.len()).rev() {
        let wanted = array.tile_shape[axis].min(array.shape[axis]).div_ceil(shape[axis]).max(1);
        let chunks = (len_bytes / values_len_bytes(&shape, array.element_len_bytes).max(1)).clamp(1, wanted);
        shape[axis] = (shape[axis] * chunks).min(array.shape[axis]);
        if chunks < wanted {
            break;
        }
    }
    shape
}

impl Trial {
    fn new(column: &Column, subject: &Subject, number: usize, cut: ArrayPlan, index: u64) -> Self {
        let (mut amount, mut used, mut reached, mut decoded, mut pieces) = (0.0, 0, 0, 0, 0);
        for piece in cut.pieces(index) {
            let fact = &column.facts[piece.input as usize];
            let product =
                |counts: &mut dyn Iterator<Item = u64>| counts.fold(cut.element_len_bytes, u64::saturating_mul);
            let len_bytes = product(&mut piece.source.count.iter().copied());
            // Concatenated inputs have the same extent along all axes but one.
            let concatenated = |(axis, &dim)| if axis == cut.axis { fact.rows } else { dim };
            let of_input: Vec<u64> = match &column.boxes {
                Some(_) => column.dims_in(piece.input),
                None => (0..).zip(&cut.shape).map(concatenated).collect(),
            };
            let shape = || of_input.iter().copied();
            amount += match subject.unit {
                AmountUnit::Raw => len_bytes as f64,
                AmountUnit::Stored => {
                    let of_input = product(&mut shape()).max(1);
                    fact.stored_len_bytes as f64 * len_bytes as f64 / of_input as f64
                }
            };
            used += len_bytes;
            pieces += 1;
            let Some(chunk) = chunk_shape(column).filter(|_| subject.unit == AmountUnit::Stored) else {
                (reached, decoded) = (reached + len_bytes, decoded + len_bytes);
                continue;
            };
            let covered = |axis: usize| {
                let (chunk, start) = (chunk[axis].max(1), piece.source.start[axis]);
                (start / chunk * chunk, piece.source.end(axis).div_ceil(chunk).saturating_mul(chunk))
            };
            let axes = || (0..chunk.len()).map(covered);
            decoded += product(&mut axes().map(|(start, end)| end - start));
            reached +=
                product(&mut axes().zip(shape()).map(|((start, end), bound)| end.min(bound).saturating_sub(start)));
        }
        let cost_bytes = cut.tile_len_bytes().max(decoded).saturating_add(pieces * PIECE_COST_BYTES);
        let used_share = used as f64 / reached.max(used).max(1) as f64;
        Self { subject: number, cut, index, amount, used_share, times: 1, cost_bytes, padding: None }
    }
}

fn chunk_shape(column: &Column) -> Option<&[u64]> {
    column.templates.iter().find_map(|template| match &template.layout {
        Layout::Chunked { chunk_shape, .. } => Some(chunk_shape.as_slice()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(amount: f64) -> Subject {
        Subject { array: 0, unit: AmountUnit::Stored, amount, stored_len_bytes: None, is_readable: true }
    }

    #[test]
    fn regions_contain_tiles_along_the_last_axes_first() {
        let array = |shape: &[u64], tile_shape: &[u64]| ArrayPlan {
            shape: shape.to_vec(),
            tile_shape: tile_shape.to_vec(),
            element_len_bytes: 4,
            ..ArrayPlan::default()
        };
        let wide = array(&[4000, 20_000], &[4000, 100]);
        assert_eq!(region_shape(&wide, &[10, 20_000], 8_000_000), [100, 20_000]);
        assert_eq!(region_shape(&wide, &[10, 20_000], 1), [10, 20_000]);
        let deep = array(&[8, 8, 64], &[2, 8, 64]);
        assert_eq!(region_shape(&deep, &[4, 4, 8], 4 * 4 * 4 * 64), [4, 4, 64]);
        assert_eq!(region_shape(&deep, &[4, 4, 8], 1 << 30), [4, 8, 64]);
    }

    #[test]
    fn small_datasets_are_drawn_by_their_weight() {
        let subjects: Vec<Subject> = [50.0, 1.0, 30.0, 1.0, 18.0].map(subject).to_vec();
        let mut asked = Vec::new();
        let cut = ArrayPlan::untiled;
        let trial = |subject| Trial {
            subject,
            cut: cut(),
            index: 0,
            amount: 1.0,
            used_share: 1.0,
            times: 1,
            cost_bytes: 1,
            padding: None,
        };
        let chosen = choose_small(&subjects, &[0, 1, 2, 3, 4], 10, &mut |at| {
            asked.push(at);
            (at != 2).then(|| trial(at))
        });
        assert_eq!(asked, [0, 2, 4]);
        let times: Vec<(usize, usize)> = chosen.iter().map(|trial| (trial.subject, trial.times)).collect();
        assert_eq!(times, [(0, 5), (4, 2)], "each counts in proportion; what the budget does not allow is left out");
        assert!(choose_small(&subjects, &[0, 1], 0, &mut |_| unreachable!()).is_empty());
    }
}
