//! What a plan will cost: size, time and memory, from a few tiles made on trial.
//!
//! The largest datasets are sampled: one tile of each is read, decoded and encoded as the merge would. The rest is
//! scaled from what these gained over their inputs' stored size. Nothing is written, and nothing that is written depends
//! on a prediction. Invariant: the work of predicting is bounded by the sample's length, whatever the plan.

use crate::error::Result;
use crate::plan::{MergePlan, Route};
use crate::tiles::MergeWork;
use crate::values::open_pool;
use raddle_core::engine::TileWork;
use raddle_core::plan::Tile;
use serde::{Deserialize, Serialize};

/// Uncompressed bytes made on trial where the prediction is what was asked for: some 0.2 s of work.
pub const THOROUGH_SAMPLE_LEN_BYTES: u64 = 32 << 20;
/// Uncompressed bytes made on trial before a merge, only to say beforehand if its output will outgrow the inputs.
pub const QUICK_SAMPLE_LEN_BYTES: u64 = 6 << 20;
/// Datasets sampled. In NOvA-like files a dozen columns hold most of the stored bytes.
const SAMPLED_DATASETS: usize = 16;

/// A prediction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Bytes of the output's chunks and values.
    pub stored_len_bytes: u64,
    /// Bytes of the output's metadata.
    pub metadata_len_bytes: u64,
    /// Bytes of the inputs.
    pub input_len_bytes: u64,
    /// Wall time of execution, with the workers asked for, from the rate of the sample.
    pub elapsed_s: f64,
    /// Memory of buffers; what the plan itself takes comes on top.
    pub memory_len_bytes: u64,
    /// Uncompressed bytes that were made on trial.
    pub sampled_len_bytes: u64,
}

impl Prediction {
    /// Bytes of the output file.
    pub fn output_len_bytes(&self) -> u64 {
        self.stored_len_bytes.saturating_add(self.metadata_len_bytes)
    }

    /// Whether the output will be larger than its inputs, with 5 % for what a sample cannot know.
    pub fn grows(&self) -> bool {
        self.output_len_bytes() > self.input_len_bytes + self.input_len_bytes / 20
    }
}

/// Predicts what executing `plan` will cost, from at most `sample_len_bytes` uncompressed bytes made on trial.
///
/// # Errors
/// If a sampled tile cannot be read: the merge would fail the same way.
pub fn predict(plan: &MergePlan, sample_len_bytes: u64) -> Result<Prediction> {
    let pool = open_pool(plan);
    let work = MergeWork::new(plan, &pool);
    let mut worker = work.worker()?;
    let mut largest: Vec<u32> = (0..plan.tiles.arrays.len() as u32).collect();
    let stored_of = |array: u32| plan.schema.columns[plan.column_of_array[array as usize] as usize].stored_len_bytes();
    largest.sort_by_key(|&array| (std::cmp::Reverse(stored_of(array)), array));
    let (mut sampled, mut made, mut stood_for) = (0_u64, 0_u64, 0.0);
    let (mut raw, mut stored) = (Vec::new(), Vec::new());
    let started = std::time::Instant::now();
    for &array in largest.iter().take(SAMPLED_DATASETS) {
        let tiles = &plan.tiles.arrays[array as usize];
        let encoded =
            matches!(plan.columns[plan.column_of_array[array as usize] as usize].route, Route::Encoded { .. });
        let len_bytes = tiles.tile_len_bytes();
        if !encoded || sampled + len_bytes > sample_len_bytes {
            continue;
        }
        let tile = Tile { array, index: tiles.tile_count() / 2 };
        raw.resize(len_bytes as usize, 0);
        stored.clear();
        work.assemble(&mut worker, tile, &mut raw)?;
        work.encode(&mut worker, tile, &raw, &mut stored)?;
        sampled += len_bytes;
        made += stored.len() as u64;
        stood_for += stored_of(array) as f64 * len_bytes as f64 / tiles.len_bytes().max(len_bytes) as f64;
    }
    let elapsed_s = started.elapsed().as_secs_f64();
    let gain = if stood_for > 0.0 { made as f64 / stood_for } else { 1.0 };
    let mut stored_len_bytes = 0_f64;
    for (planned, scanned) in plan.columns.iter().zip(&plan.schema.columns) {
        let stored = scanned.stored_len_bytes() as f64;
        stored_len_bytes += match planned.route {
            Route::Encoded { .. } => stored * gain,
            Route::Linked => 0.0,
            _ => stored,
        };
    }
    // Time goes with stored bytes: the uncompressed ones of maps that are nearly all zeros cost next to nothing.
    let per_stored_byte_s = if stood_for > 0.0 { elapsed_s / stood_for } else { 0.0 };
    // Not `sum`, which gives -0 where there is no column.
    let of_inputs = plan.schema.columns.iter().map(|column| column.stored_len_bytes() as f64);
    let input_stored = of_inputs.fold(0.0, |sum, stored| sum + stored);
    let largest_tile = plan.tiles.arrays.iter().map(|array| array.tile_len_bytes()).max().unwrap_or(0);
    let batches = raddle_core::engine::DEFAULT_BATCH_LEN_BYTES.max(largest_tile).saturating_mul(2);
    let memory = (largest_tile + batches + work.worker_len_bytes()).saturating_mul(plan.options.jobs as u64);
    Ok(Prediction {
        stored_len_bytes: stored_len_bytes as u64,
        metadata_len_bytes: crate::specs::predict_metadata(plan),
        input_len_bytes: plan.input_len_bytes(),
        elapsed_s: per_stored_byte_s * input_stored / plan.options.jobs.max(1) as f64,
        memory_len_bytes: memory.min(plan.options.memory_limit_bytes),
        sampled_len_bytes: sampled,
    })
}
