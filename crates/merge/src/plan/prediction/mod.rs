//! Prediction of the size, time and memory that executing a plan will need, from trial runs on parts of the output.
//!
//! Each dataset is tried (`trial`) and scaled by its own gain (`estimate`); parts that are not tiled are sampled or
//! counted (`untiled`); the memory of buffers is computed by the engine. Nothing is written, and the output does not
//! depend on a prediction. Invariant: the sample bounds the work of predicting, whatever the plan; a size or time that
//! the sample does not determine is reported as unknown.

mod estimate;
mod trial;
mod untiled;

use crate::error::Result;
use crate::plan::MergePlan;
use crate::plan::dataset_specs::output_options;
use crate::plan::memory::ReaderMemory;
use crate::write::tiles::MergeWork;
use crate::write::values::open_pool_for_trials;
use estimate::Estimate;
use raddle_core::CoreError;
use raddle_core::engine::{default_jobs, dry_run};
use raddle_hdf5::write::likely_len_bytes;
use serde::{Deserialize, Serialize};
use trial::TrialResult;

/// Amount of output that trials produce.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Divisor of the uncompressed length of the output, which yields the length of the sample.
    divisor: u64,
    /// Minimum and maximum number of uncompressed bytes.
    bounds_len_bytes: (u64, u64),
}

impl Sample {
    /// Sample for a prediction that the user requested: at most about 0.2 s of work.
    pub const THOROUGH: Self = Self { divisor: 8, bounds_len_bytes: (4 << 20, 32 << 20) };
    /// Sample before a merge, which it must not slow down by more than 2 %. The minimum takes a few milliseconds.
    pub const QUICK: Self = Self { divisor: 64, bounds_len_bytes: (512 << 10, 6 << 20) };

    fn len_bytes(self, raw_len_bytes: u64) -> u64 {
        (raw_len_bytes / self.divisor).clamp(self.bounds_len_bytes.0, self.bounds_len_bytes.1)
    }
}

/// Largest [`Prediction::size_error`] with which the size counts as known.
pub const MAX_SIZE_ERROR: f64 = 0.15;
/// Maximum relative uncertainty (two standard errors) at which a time is predicted.
const MAX_TIME_ERROR: f64 = 0.3;
/// Shortest wall time that is predicted, in seconds. Below this, the state of memory and disk matters as much as the
/// work.
pub const SHORT_S: f64 = 2.0;

// Costs that are not tried. They were measured on one processor (an AMD EPYC) with generated files of several kinds;
// `Estimate::assumed` gives them an uncertainty that allows for other processors.

/// Time to create a dataset through libhdf5 on the committing thread.
const CREATE_DATASET_S: f64 = 70e-6;
/// Time to insert a chunk into its index.
const INSERT_CHUNK_S: f64 = 1.2e-6;
/// Time to write an attribute.
const ATTRIBUTE_S: f64 = 10e-6;
/// Time to open an input, sample it for provenance, and check that it did not change.
const INPUT_S: f64 = 100e-6;
/// Time to copy a stored byte to the page cache.
const PLACE_S_PER_BYTE: f64 = 0.6e-9;
/// Time to write a byte of the finished output to disk, at 400 MB/s. Trials write nothing, so the uncertainty of this
/// time is as large as the time itself.
const SYNC_S_PER_BYTE: f64 = 2.5e-9;
/// Time to make the file and its name durable, independent of the length of the file; as uncertain as
/// [`SYNC_S_PER_BYTE`].
const SYNC_S: f64 = 8e-3;

/// Predicted size, time and memory of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Length of the output's chunks.
    pub stored_len_bytes: u64,
    /// Length of everything else: metadata, provenance, values that libhdf5 writes.
    pub metadata_len_bytes: u64,
    /// Length of the inputs.
    pub input_len_bytes: u64,
    /// Relative uncertainty of the output's size: twice the standard error of the sample. The size counts as unknown
    /// above [`MAX_SIZE_ERROR`].
    pub size_error: f64,
    /// Wall time of scan, planning and execution with the planned number of threads, assuming that the machine stays as
    /// busy as during the trials; `None` if the trials do not determine it, or if it is less than [`SHORT_S`].
    pub elapsed_s: Option<f64>,
    /// Whether the wall time is less than [`SHORT_S`], its uncertainty included.
    pub is_short: bool,
    /// Processor time of the execution; `None` if the trials do not determine it.
    pub cpu_s: Option<f64>,
    /// Memory that the engine acquires for buffers. It is exact for one process; pages that are never touched are not
    /// resident.
    pub memory_len_bytes: u64,
    /// Number of uncompressed bytes that trials produced.
    pub sampled_len_bytes: u64,
}

impl Prediction {
    /// Returns the most likely size of the output file in bytes.
    pub fn output_len_bytes(&self) -> u64 {
        self.stored_len_bytes.saturating_add(self.metadata_len_bytes)
    }

    /// Returns whether the sample determines the size of the output.
    pub fn is_size_known(&self) -> bool {
        self.size_error <= MAX_SIZE_ERROR
    }

    /// Returns the lower and upper bound of the size of the output, in bytes.
    pub fn bounds_len_bytes(&self) -> (u64, u64) {
        let (len_bytes, error) = (self.output_len_bytes() as f64, self.size_error);
        ((len_bytes * (1.0 - error).max(0.0)) as u64, (len_bytes * (1.0 + error)) as u64)
    }

    /// Returns whether the output will be more than 5 % larger than its inputs, even given the uncertainty of its size.
    pub fn grows(&self) -> bool {
        self.bounds_len_bytes().0 > self.input_len_bytes + self.input_len_bytes / 20
    }
}

/// Predicts the cost of executing `plan` in this process, from a sample that is produced with as many threads as the
/// merge will use.
///
/// # Errors
/// If a sampled part cannot be read. The merge would fail in the same way.
pub fn predict(plan: &MergePlan, sample: Sample) -> Result<Prediction> {
    let pool = open_pool_for_trials(plan);
    let work = MergeWork::new(plan, &pool);
    let sample_len_bytes = sample.len_bytes(plan.tiles.raw_len_bytes());
    let subjects = trial::subjects(plan);
    let trials = trial::make(plan, &work, &subjects, sample_len_bytes)?;
    let untiled = untiled::estimate(plan, &work, sample_len_bytes)?;

    let stored = |tried: &TrialResult| tried.stored_len_bytes;
    let mut chunks = estimate::total(&subjects, &trials, stored, |subject| subject.stored_len_bytes.is_none());
    chunks.total += subjects.iter().filter_map(|subject| subject.stored_len_bytes).sum::<f64>();
    let options = output_options(plan);
    let region_len_bytes = options.raw_start().unwrap_or(0);
    let room_len_bytes = region_len_bytes.saturating_sub(likely_len_bytes(options.metadata_region_len_bytes)) as f64;
    let overflow_len_bytes = (untiled.front_len_bytes - room_len_bytes).max(0.0);
    let metadata_len_bytes = region_len_bytes as f64 + overflow_len_bytes + untiled.len_bytes.total;
    let mut size = chunks;
    size.add(Estimate { total: metadata_len_bytes, ..untiled.len_bytes });

    let tiles_s = estimate::total(&subjects, &trials, |tried| tried.cpu_s, |_| true);
    let engine = engine(plan, &work);
    let time = Time {
        tiles_s: Estimate { total: tiles_s.total + chunks.total * PLACE_S_PER_BYTE, ..tiles_s },
        untiled_s: untiled.cpu_s,
        commit_s: Estimate::assumed(commit_s(plan)),
        inputs_s: Estimate::assumed(plan.inputs.len() as f64 * INPUT_S),
        slowdown: trials.slowdown,
        sync_s: SYNC_S + size.total * SYNC_S_PER_BYTE,
    };
    let wall = time.wall(engine.threads, plan.tiles.tile_count());
    let is_known = |time: &Estimate| time.two_errors() <= time.total * MAX_TIME_ERROR;
    let elapsed_s = plan.elapsed_s + wall.total;
    Ok(Prediction {
        stored_len_bytes: chunks.total as u64,
        metadata_len_bytes: metadata_len_bytes as u64,
        input_len_bytes: plan.input_len_bytes(),
        size_error: size.relative_error(),
        elapsed_s: Some(elapsed_s).filter(|&elapsed_s| elapsed_s >= SHORT_S && is_known(&wall)),
        is_short: elapsed_s + wall.two_errors() < SHORT_S,
        cpu_s: Some(time.cpu()).filter(is_known).map(|cpu| cpu.total),
        memory_len_bytes: engine.memory_len_bytes,
        sampled_len_bytes: trials.len_bytes,
    })
}

/// Resources of the engine.
struct Engine {
    threads: usize,
    memory_len_bytes: u64,
}

/// Computes the engine's resources with the engine's own function. Chunks that are read with their objects are in memory
/// at the same time.
fn engine(plan: &MergePlan, work: &MergeWork<'_>) -> Engine {
    let of_objects = ReaderMemory::of_objects(plan).acquired_len_bytes();
    let left_bytes = plan.options.memory_limit_bytes.saturating_sub(of_objects);
    match dry_run(&plan.tiles, work, 1, &plan.engine_options(), left_bytes) {
        Ok(engine) => Engine { threads: engine.jobs, memory_len_bytes: of_objects + engine.permit_len_bytes },
        // The merge will be refused with the same amount.
        Err(CoreError::Memory { needed_bytes, .. }) => {
            Engine { threads: 1, memory_len_bytes: of_objects.saturating_add(needed_bytes) }
        }
        Err(_) => Engine { threads: 1, memory_len_bytes: 0 },
    }
}

/// Returns the time of the committing thread.
fn commit_s(plan: &MergePlan) -> f64 {
    let entries = plan.schema.entries.len() as f64;
    let attributes: usize = plan.schema.entries.iter().map(|entry| entry.attributes.len()).sum();
    let chunks = plan.chunk_count() as f64;
    entries * CREATE_DATASET_S + attributes as f64 * ATTRIBUTE_S + chunks * INSERT_CHUNK_S
}

/// Parts of the execution time, in processor seconds unless noted.
struct Time {
    /// Time of the worker threads.
    tiles_s: Estimate,
    /// Time of one thread after all tiles are written.
    untiled_s: Estimate,
    /// Time of the committing thread, while the workers run.
    commit_s: Estimate,
    /// Time of one thread that processes the inputs.
    inputs_s: Estimate,
    /// Ratio of wall to processor time of the trials.
    slowdown: f64,
    /// Wall time of writing the output to disk.
    sync_s: f64,
}

impl Time {
    fn cpu(&self) -> Estimate {
        let mut all = self.tiles_s;
        [self.untiled_s, self.commit_s, self.inputs_s].into_iter().for_each(|part| all.add(part));
        all
    }

    /// Returns the wall time. Its uncertainty combines those of the processor time, the time on disk, and the slowdown:
    /// the trials last a fraction of a second, and the machine may not stay as busy.
    fn wall(&self, threads: usize, tiles: u64) -> Estimate {
        let cores = default_jobs() as f64;
        let threads = (threads as f64).min(cores);
        let (tiles_s, commit_s) = (self.tiles_s.total, self.commit_s.total);
        // Threads without work wait for the last tile.
        let by_workers = tiles_s / threads + tiles_s / tiles.max(1) as f64 * (1.0 - 1.0 / threads);
        let together_s = by_workers.max(commit_s).max((tiles_s + commit_s) / cores);
        let undisturbed_s = together_s + self.untiled_s.total + self.inputs_s.total;
        let cpu = self.cpu();
        let two_errors = [undisturbed_s * cpu.relative_error(), undisturbed_s * (self.slowdown - 1.0), self.sync_s];
        Estimate {
            total: undisturbed_s * self.slowdown + self.sync_s,
            variance: two_errors.iter().map(|two_errors| (two_errors / 2.0).powi(2)).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction(size_error: f64) -> Prediction {
        Prediction {
            stored_len_bytes: 900,
            metadata_len_bytes: 100,
            input_len_bytes: 900,
            size_error,
            elapsed_s: None,
            is_short: false,
            cpu_s: None,
            memory_len_bytes: 0,
            sampled_len_bytes: 0,
        }
    }

    #[test]
    fn an_output_grows_only_beyond_its_uncertainty() {
        assert!(prediction(0.0).grows() && prediction(0.0).is_size_known());
        assert!(!prediction(0.1).grows() && prediction(0.1).is_size_known());
        assert!(!prediction(0.2).is_size_known());
        assert_eq!(prediction(0.2).bounds_len_bytes(), (800, 1200));
        assert_eq!(prediction(3.0).bounds_len_bytes(), (0, 4000));
    }

    fn time(slowdown: f64, sync_s: f64) -> Time {
        let tiles_s = Estimate { total: 8.0, variance: 0.0 };
        let inputs_s = Estimate { total: 1.0, variance: 0.0 };
        let (untiled_s, commit_s) = (Estimate::default(), Estimate::default());
        Time { tiles_s, untiled_s, commit_s, inputs_s, slowdown, sync_s }
    }

    #[test]
    fn one_tile_has_one_thread_and_many_share_them() {
        let wall_s = |threads, tiles| time(1.0, 0.0).wall(threads, tiles).total;
        assert_eq!((wall_s(1, 1), wall_s(1, 1 << 20)), (9.0, 9.0));
        if default_jobs() >= 2 {
            assert_eq!(wall_s(2, 1), 9.0);
            assert!((wall_s(2, 1 << 20) - 5.0).abs() < 1e-3);
        }
    }

    #[test]
    fn busy_machines_and_disks_make_a_wall_time_uncertain() {
        let of = |slowdown, sync_s| {
            let wall = time(slowdown, sync_s).wall(1, 1);
            (wall.total, wall.relative_error())
        };
        assert_eq!(of(1.0, 0.0), (9.0, 0.0));
        assert_eq!(of(1.5, 0.0), (13.5, 4.5 / 13.5));
        assert_eq!(of(1.0, 1.0), (10.0, 0.1));
        assert_eq!(time(1.5, 1.0).cpu(), Estimate { total: 9.0, variance: 0.0 });
    }
}
