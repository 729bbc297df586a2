//! Choice of the datasets whose tiles are assembled in groups, because the chunks of the inputs extend over many tiles.
//!
//! Invariant: a pure function of the plan; all ranks choose the same.

use crate::plan::memory::{BufferSizes, ReaderMemory, converting_len_bytes};
use crate::plan::{MergePlan, Route};
use crate::schema::{Column, display_path};
use raddle_core::engine::{DEFAULT_BATCH_LEN_BYTES, claims_len_bytes};
use raddle_core::plan::ArrayPlan;
use raddle_core::plan::extent::{Coordinates, Extent};
use raddle_core::regrouping::blocks::block_shape;
use raddle_core::regrouping::{Chunks, MAX_DECODES, Regrouping, TileMemory, choose};
use raddle_hdf5::model::{Dataset, Layout};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Number of doublings of the memory that are tried to find out how much is enough.
const MAX_DOUBLINGS: u32 = 6;

/// Minimum length of a run of values in an unchunked dataset that a tile reads directly.
const LONG_RUN_LEN_BYTES: u64 = 64 << 10;

/// A dataset whose tiles are assembled in groups, as reported to users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegroupedDataset {
    /// Path of the dataset, escaped for display.
    pub path: String,
    /// Number of chunks of the inputs.
    pub chunks: u64,
    /// Mean number of times that a chunk is decoded.
    pub decodes: f64,
    /// Mean number of times that a chunk would be decoded if the chunks of the output were assembled one by one.
    pub decodes_by_tile: f64,
    /// Number of times that the values are moved: 2 if they go through a scratch file, otherwise 1.
    pub passes: u32,
    /// Number of bytes that go through a scratch file, which holds one dataset after the other.
    pub scratch_len_bytes: u64,
}

/// Returns the space that a scratch file for `datasets` needs at once, in one process.
pub fn scratch_space_len_bytes(datasets: &[RegroupedDataset]) -> u64 {
    space_len_bytes(datasets.iter().map(|dataset| dataset.scratch_len_bytes), 1)
}

impl MergePlan {
    /// Returns the datasets whose tiles are assembled in groups, and their costs for a merge by one process.
    pub fn regrouped(&self) -> Vec<RegroupedDataset> {
        let arrays = self.tiles.arrays.iter().zip(&self.column_of_array).zip(regroupings(
            self,
            1,
            self.options.memory_limit_bytes,
        ));
        let described = arrays.filter_map(|((array, &column), found)| {
            let found = found?;
            let chunks = array.shape.iter().zip(&found.chunk_shape).map(|(len, chunk)| len.div_ceil(*chunk.max(&1)));
            Some(RegroupedDataset {
                path: display_path(self.schema.column_path(column)),
                chunks: chunks.fold(1, u64::saturating_mul),
                decodes: found.decodes,
                decodes_by_tile: found.decodes_by_tile,
                passes: if found.slabs.is_some() { 2 } else { 1 },
                scratch_len_bytes: found.scratch_len_bytes(array),
            })
        });
        described.collect()
    }
}

/// Returns the space that the arrays of a run need in a scratch file, given the lengths of the arrays that go through
/// it: arrays follow one another in one process, and all are present at once if several ranks share the file.
pub(crate) fn space_len_bytes(array_len_bytes: impl Iterator<Item = u64>, ranks: usize) -> u64 {
    match ranks {
        1 => array_len_bytes.max().unwrap_or(0),
        _ => array_len_bytes.fold(0, u64::saturating_add),
    }
}

/// Returns the regrouping of each array of `plan`, if its tiles are regrouped, on each of `ranks` ranks with this
/// memory.
pub(crate) fn regroupings(plan: &MergePlan, ranks: usize, memory_limit_bytes: u64) -> Vec<Option<Regrouping>> {
    let choices = choices(plan, ranks, memory_limit_bytes).into_iter();
    choices.map(|choice| choice.filter(|choice| choice.fits).map(|choice| choice.found)).collect()
}

/// Returns a warning about the dataset whose chunks are decoded most often, if there is not enough memory for groups of
/// its tiles on each of `ranks` ranks.
pub(crate) fn repeated_decodes(plan: &MergePlan, ranks: usize) -> Option<String> {
    let memory_limit_bytes = plan.options.memory_limit_bytes;
    let is_repeated = |choice: &RegroupingChoice| {
        !choice.fits && choice.are_whole && choice.found.decodes_by_tile > MAX_DECODES as f64
    };
    let repeated = (0..).zip(choices(plan, ranks, memory_limit_bytes)).filter_map(|(array, choice)| {
        let choice = choice.filter(is_repeated)?;
        Some((array, choice.found.decodes_by_tile))
    });
    let (array, decodes): (usize, f64) = repeated.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let fits = |memory: &u64| regroupings(plan, ranks, *memory).get(array).is_some_and(Option::is_some);
    let enough = (1..=MAX_DOUBLINGS).map(|times| memory_limit_bytes.saturating_mul(1 << times)).find(fits)?;
    let path = display_path(plan.schema.column_path(plan.column_of_array[array]));
    let [memory, enough] = [memory_limit_bytes, enough].map(|len_bytes| len_bytes.div_ceil(1 << 20));
    Some(format!(
        "{path}: with {memory} MiB of memory, each chunk of the inputs is decoded about {decodes:.0} times; {enough} MiB are \
         enough to decode it once or twice"
    ))
}

/// Way in which the tiles of an array would be assembled in groups.
struct RegroupingChoice {
    found: Regrouping,
    /// Whether the chunks of the inputs must be read as a whole.
    are_whole: bool,
    /// Whether the memory suffices.
    fits: bool,
}

/// Returns the choice for each array whose chunks extend over many tiles.
fn choices(plan: &MergePlan, ranks: usize, memory_limit_bytes: u64) -> Vec<Option<RegroupingChoice>> {
    let buffers = BufferSizes::within(memory_limit_bytes);
    let reader_len_bytes = ReaderMemory::of_tiles(plan, memory_limit_bytes).len_bytes;
    let others_len_bytes = reader_len_bytes
        .saturating_add(converting_len_bytes(plan))
        .saturating_add(claims_len_bytes(&plan.tiles, memory_limit_bytes))
        .saturating_add(buffers.slack_len_bytes);
    let of_array = |(array, &index): (&ArrayPlan, &u32)| {
        let (planned, column) = (&plan.columns[index as usize], &plan.schema.columns[index as usize]);
        if !matches!(planned.route, Route::Encoded { .. } | Route::Raw { .. }) || plan.derived.has(index) {
            return None;
        }
        // Groups begin as zeros, which elements that no input holds would keep.
        if array.hole_count() > 0 {
            return None;
        }
        let template = template(column)?;
        let shape = source_chunk_shape(array, column, template)?;
        // A worker has a tile, a batch of stored tiles, a reader and a block or a part of a slab.
        let batch_len_bytes = (memory_limit_bytes / 4).min(DEFAULT_BATCH_LEN_BYTES);
        let tile_len_bytes = array.tile_len_bytes();
        let worker_len_bytes = [
            tile_len_bytes,
            batch_len_bytes.max(tile_len_bytes),
            others_len_bytes,
            block_len_bytes(array, &shape, buffers),
        ];
        let left = memory_limit_bytes.saturating_sub(worker_len_bytes.into_iter().fold(0, u64::saturating_add));
        let are_whole = !template.filters.is_empty();
        let memory = TileMemory { group_len_bytes: left / 8 * 3, kept_len_bytes: buffers.near_len_bytes };
        let found = choose(array, Chunks { shape: &shape, are_whole }, memory)?;
        let found = if ranks > 1 { found.for_ranks(array, DEFAULT_BATCH_LEN_BYTES)? } else { found };
        let fits = found.len_bytes(array).saturating_add(worker_part_len_bytes(array, &found, buffers)) <= left;
        Some(RegroupingChoice { found, are_whole, fits })
    };
    plan.tiles.arrays.iter().zip(&plan.column_of_array).map(of_array).collect()
}

/// Returns the length of a block of `array`, whose inputs have chunks of `chunk_shape`.
fn block_len_bytes(array: &ArrayPlan, chunk_shape: &[u64], buffers: BufferSizes) -> u64 {
    let shape = block_shape(&array.shape, chunk_shape, array.element_len_bytes, buffers.block_len_bytes);
    shape.iter().fold(array.element_len_bytes, |len, &count| len.saturating_mul(count))
}

/// Returns the memory of a worker for the parts of groups and slabs that it moves.
pub(crate) fn worker_part_len_bytes(array: &ArrayPlan, found: &Regrouping, buffers: BufferSizes) -> u64 {
    let run_len_bytes = found.slabs.as_ref().map_or(0, |slabs| {
        let largest = Extent::whole(&found.groups.shape(array)).intersection(&Extent::whole(&slabs.shape));
        let elements = largest.and_then(|part| part.element_count()).unwrap_or(0);
        elements.saturating_mul(array.element_len_bytes).max(buffers.scratch_run_len_bytes)
    });
    run_len_bytes.max(block_len_bytes(array, &found.chunk_shape, buffers))
}

/// Returns the template of most rows of a column whose values can be read in any box with the same cost.
fn template(column: &Column) -> Option<&Dataset> {
    let rearranges = |conversion: &crate::rules::Conversion| {
        conversion.of_inputs.iter().any(|one| one.gather.is_some() || one.pick.is_some())
    };
    if column.is_lifted || column.conversion.as_deref().is_some_and(rearranges) {
        return None;
    }
    let mut rows = vec![0_u64; column.templates.len()];
    for fact in column.facts.iter() {
        if let Some(rows) = rows.get_mut(fact.template as usize) {
            *rows = rows.saturating_add(fact.rows);
        }
    }
    let most = (0..rows.len()).max_by_key(|&at| rows[at])?;
    let template = column.templates.get(most).map(Arc::as_ref)?;
    (!template.layout.is_through_library()).then_some(template)
}

/// Returns the chunk shape of a dataset. The rows of a dataset without chunks count as chunks, if tiles would read them
/// in short runs.
fn source_chunk_shape(array: &ArrayPlan, column: &Column, template: &Dataset) -> Option<Coordinates> {
    match &template.layout {
        Layout::Chunked { chunk_shape, .. } => {
            let clip = |(&chunk, &len): (&u64, &u64)| chunk.min(len).max(1);
            Some(chunk_shape.iter().zip(&array.shape).map(clip).collect())
        }
        Layout::Contiguous { .. } => {
            let axes = array.shape.len();
            // The last axes that a tile covers as a whole form one run, with the next axis.
            let whole = (0..axes).rev().take_while(|&axis| axis > 0 && array.tile_shape[axis] >= array.shape[axis]);
            let first = axes.saturating_sub(whole.count() + 1);
            let run = array.tile_shape[first..].iter().fold(array.element_len_bytes, |len, &n| len.saturating_mul(n));
            let is_short = run < LONG_RUN_LEN_BYTES && first > 0 && first > column.axis;
            let row = |axis| if axis < first { 1 } else { array.shape[axis] };
            is_short.then(|| (0..axes).map(row).collect())
        }
        _ => None,
    }
}
