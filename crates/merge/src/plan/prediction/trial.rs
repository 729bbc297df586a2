//! Trials of parts of datasets, which are read, decoded and encoded as in the merge.
//!
//! Each dataset with a large share of the inputs' stored bytes is tried, at a number of positions that grows with its
//! share. A sample represents the small datasets. [`super::estimate`] draws the conclusions. Invariant: the choice of
//! trials depends only on the plan and the budget, and their total cost does not much exceed the budget.

use crate::error::Result;
use crate::plan::{MergePlan, Route};
use crate::schema::Column;
use crate::write::tiles::{MergeWork, MergeWorker};
use raddle_core::cancel::CancelToken;
use raddle_core::digest::Digest;
use raddle_core::engine::{TileForm, TileWork};
use raddle_core::parallel;
use raddle_core::plan::{ArrayPlan, Tile};
use raddle_core::report::thread_cpu_ns;
use raddle_hdf5::model::Layout;
use std::time::Instant;

/// Number of trials into which a budget is divided: enough for dozens of datasets, while each trial stays long relative
/// to deflate's window of 32 KiB. Shorter parts would compress worse than the whole.
const TRIALS: u64 = 64;
const MIN_TRIAL_LEN_BYTES: u64 = 64 << 10;
const MAX_TRIAL_LEN_BYTES: u64 = 256 << 10;
/// Maximum number of trials in one dataset.
const TRIALS_IN_ONE: u64 = 64;
/// Divisor of the budget. An input's chunk is decoded as a whole, and no trial is made if that would take more than
/// this part of the budget.
const MAX_SHARE: u64 = 4;
/// Divisor of the budget: the quotient is spent on small datasets.
const SHARE_OF_SMALL: u64 = 4;
/// Number of bytes whose decoding and encoding takes as long as finding and opening a piece of one input.
const PIECE_COST_BYTES: u64 = 4096;
/// Time added to both times in the slowdown, so that a few interruptions by the scheduler do not dominate short trials.
const INTERRUPTIONS_S: f64 = 0.01;
/// Number of bytes of a computed column that weigh as much as one stored byte.
const MADE_BYTES_PER_STORED_BYTE: u64 = 8;

/// Unit of the amount of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    /// Stored bytes of the inputs.
    Stored,
    /// Uncompressed bytes: no input has the dataset.
    Raw,
}

/// A tiled dataset that can be tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub array: u32,
    pub unit: Unit,
    /// Amount of the dataset, in its unit.
    pub amount: f64,
    /// Length in the output, if it is known because the dataset is moved as stored, or stored unfiltered.
    pub stored_len_bytes: Option<f64>,
    /// Whether the merge decodes it, with the native reader alone.
    pub is_readable: bool,
}

impl Subject {
    fn weight(&self) -> f64 {
        match self.unit {
            Unit::Stored => self.amount,
            Unit::Raw => self.amount / MADE_BYTES_PER_STORED_BYTE as f64,
        }
    }
}

/// Returns all tiled datasets of `plan`.
pub(super) fn subjects(plan: &MergePlan) -> Vec<Subject> {
    let arrays = (0..).zip(&plan.tiles.arrays).zip(&plan.column_of_array);
    let subject = |((array, tiles), &index): ((u32, &ArrayPlan), &u32)| {
        let (planned, column) = (&plan.columns[index as usize], &plan.schema.columns[index as usize]);
        let is_made = plan.made.has(index);
        let (unit, amount) = match is_made {
            true => (Unit::Raw, tiles.len_bytes()),
            false => (Unit::Stored, column.stored_len_bytes()),
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
            is_readable: is_made || !needs_library(column) && planned.undecoded_array(&plan.options).is_none(),
        }
    };
    arrays.map(subject).collect()
}

/// Whether libhdf5, in a child process, reads some input's part of the column.
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
}

/// Result of a trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tried {
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
    pub of_large: Vec<Tried>,
    /// Trials that represent all other datasets.
    pub of_small: Vec<Tried>,
    /// Numbers of the subjects that cannot be tried.
    pub untried: Vec<usize>,
    /// Uncompressed bytes that the trials produced.
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
/// A part cannot be read. The merge would fail in the same way.
pub(super) fn make<'p>(
    plan: &MergePlan,
    work: &MergeWork<'p>,
    subjects: &[Subject],
    budget_len_bytes: u64,
) -> Result<Trials> {
    let TrialSelection { of_large, of_small, untried } = choose(plan, subjects, budget_len_bytes);
    let count_large = of_large.len();
    let all: Vec<Trial> = of_large.into_iter().chain(of_small).collect();
    let step = |bench: &mut Bench<'p>, trial: &Trial| bench.make(work, &subjects[trial.subject], trial);
    let threads = plan.options.jobs.clamp(1, raddle_core::engine::default_jobs());
    let made = parallel::map(&all, threads, &CancelToken::new(), Bench::default, step)?;
    let (wall_s, cpu_s) = made.iter().fold((0.0, 0.0), |sum, (_, spent)| (sum.0 + spent.wall_s, sum.1 + spent.cpu_s));
    let tried = made.into_iter().zip(&all);
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
struct Spent {
    wall_s: f64,
    cpu_s: f64,
}

/// State with which a thread makes trials.
#[derive(Default)]
struct Bench<'p> {
    worker: Option<MergeWorker<'p>>,
    raw: Vec<u8>,
    stored: Vec<u8>,
}

impl<'p> Bench<'p> {
    /// Tries a part of `subject`.
    fn make(&mut self, work: &MergeWork<'p>, subject: &Subject, trial: &Trial) -> Result<(Tried, Spent)> {
        let Self { worker, raw, stored } = self;
        let worker = match worker {
            Some(worker) => worker,
            None => worker.insert(work.worker()?),
        };
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
        let tried = Tried { subject: trial.subject, amount: trial.amount, stored_len_bytes, cpu_s };
        let spent = Spent { wall_s: started.elapsed().as_secs_f64(), cpu_s: (gathered_ns + encoded_ns) as f64 * 1e-9 };
        Ok((tried, spent))
    }
}

/// Chooses the trials.
fn choose(plan: &MergePlan, subjects: &[Subject], budget_len_bytes: u64) -> TrialSelection {
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
        let share = weight(at) / whole * (budget_len_bytes / trial_len_bytes) as f64;
        let mut trials = trials_of(plan, &subjects[at], at, (share as u64).clamp(1, TRIALS_IN_ONE), trial_len_bytes);
        let dearest = trials.iter().map(|trial| trial.cost_bytes).max().unwrap_or(1).max(1);
        if dearest > longest {
            untried.push(at);
            continue;
        }
        if dearest.saturating_mul(trials.len() as u64) > left {
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
                Unit::Raw => len_bytes as f64,
                Unit::Stored => {
                    let of_input = product(&mut shape()).max(1);
                    fact.stored_len_bytes as f64 * len_bytes as f64 / of_input as f64
                }
            };
            used += len_bytes;
            pieces += 1;
            let Some(chunk) = chunk_shape(column).filter(|_| subject.unit == Unit::Stored) else {
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
        Self { subject: number, cut, index, amount, used_share, times: 1, cost_bytes }
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
        Subject { array: 0, unit: Unit::Stored, amount, stored_len_bytes: None, is_readable: true }
    }

    #[test]
    fn small_datasets_are_drawn_by_their_weight() {
        let subjects: Vec<Subject> = [50.0, 1.0, 30.0, 1.0, 18.0].map(subject).to_vec();
        let mut asked = Vec::new();
        let cut = ArrayPlan::untiled;
        let trial =
            |subject| Trial { subject, cut: cut(), index: 0, amount: 1.0, used_share: 1.0, times: 1, cost_bytes: 1 };
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
