//! Choice of the datasets whose tiles are assembled in groups, because the chunks of the inputs extend over many tiles.
//!
//! Invariant: a pure function of the plan; all ranks choose the same.

use crate::plan::memory::{
    BufferSizes, ReaderMemory, converting_len_bytes, longest_decoded_len_bytes, stored_bound_len_bytes,
};
use crate::plan::{MergePlan, Route};
use crate::schema::{Column, display_path};
use raddle_core::engine::{DEFAULT_BATCH_LEN_BYTES, batch_len_bytes, claims_len_bytes};
use raddle_core::plan::ArrayPlan;
use raddle_core::plan::extent::{Coordinates, values_len_bytes};
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

/// Chunks of the inputs of an array whose tiles may be regrouped.
struct SourceChunks {
    shape: Coordinates,
    /// Whether the chunks must be read as a whole.
    are_whole: bool,
    /// Maximum length of the parts in which a thread moves values.
    part_len_bytes: u64,
}

/// Returns the choice for each array whose chunks extend over many tiles.
fn choices(plan: &MergePlan, ranks: usize, memory_limit_bytes: u64) -> Vec<Option<RegroupingChoice>> {
    let buffers = BufferSizes::within(memory_limit_bytes);
    let arrays = plan.tiles.arrays.iter().zip(&plan.column_of_array);
    let sources: Vec<_> = arrays.map(|(array, &column)| source_chunks(plan, array, column, buffers)).collect();
    let part_len_bytes = |source: &SourceChunks| source.part_len_bytes;
    let longest_part_len_bytes = sources.iter().flatten().map(part_len_bytes).max().unwrap_or(0);
    // Ranks may differ in their numbers of threads.
    let jobs = if ranks > 1 { 1 } else { plan.options.jobs };
    let left = memory_limit_bytes.saturating_sub(other_len_bytes(plan, jobs, memory_limit_bytes));
    let of_array = |(array, source): (&ArrayPlan, Option<SourceChunks>)| {
        let SourceChunks { shape, are_whole, part_len_bytes } = source?;
        let kept_len_bytes = buffers.near_len_bytes;
        let memory = TileMemory { group_len_bytes: left / 8 * 3, kept_len_bytes, part_len_bytes };
        let found = choose(array, Chunks { shape: &shape, are_whole }, memory)?;
        let found = if ranks > 1 { found.for_ranks(array, DEFAULT_BATCH_LEN_BYTES)? } else { found };
        let fits = found.len_bytes(array).saturating_add(longest_part_len_bytes) <= left;
        Some(RegroupingChoice { found, are_whole, fits })
    };
    plan.tiles.arrays.iter().zip(sources).map(of_array).collect()
}

/// Returns the memory that a run with one thread takes apart from groups, slabs and the parts that are moved: for a
/// tile, a batch of stored tiles, a reader, and converting. Batches are cut for `jobs` threads.
fn other_len_bytes(plan: &MergePlan, jobs: usize, memory_limit_bytes: u64) -> u64 {
    let arrays = || plan.tiles.arrays.iter().zip(&plan.column_of_array).filter(|(array, _)| array.tile_count() > 0);
    let route = |column: &u32| &plan.columns[*column as usize].route;
    let tile_len_bytes = arrays().map(|(array, _)| array.tile_len_bytes()).max().unwrap_or(0);
    let batch_len_bytes = batch_len_bytes(&plan.tiles, jobs, memory_limit_bytes);
    let batch_bound_len_bytes = |(array, column): (&ArrayPlan, &u32)| {
        let tile_len_bytes = array.tile_len_bytes();
        let bound_len_bytes = stored_bound_len_bytes(route(column), tile_len_bytes);
        bound_len_bytes.saturating_mul(batch_len_bytes.max(tile_len_bytes)) / tile_len_bytes.max(1)
    };
    let of_worker = [
        tile_len_bytes,
        arrays().map(batch_bound_len_bytes).max().unwrap_or(0),
        ReaderMemory::of_tiles(plan, memory_limit_bytes).len_bytes,
        longest_decoded_len_bytes(plan),
        converting_len_bytes(plan),
        claims_len_bytes(&plan.tiles, memory_limit_bytes),
    ];
    of_worker.into_iter().fold(0, u64::saturating_add)
}

/// Returns the chunks of the inputs of an array, if its tiles may be regrouped.
fn source_chunks(plan: &MergePlan, array: &ArrayPlan, index: u32, buffers: BufferSizes) -> Option<SourceChunks> {
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
    let chunks_of = |dataset: &Dataset| match &dataset.layout {
        Layout::Chunked { chunk_shape, .. } if !dataset.filters.is_empty() => Some(chunk_shape.clone()),
        _ => None,
    };
    // A reader keeps one chunk that is longer than its limit, so that parts of a block must not alternate between
    // several. It keeps shorter chunks in addition to each other, which takes more memory than reading a whole one.
    let expected = chunks_of(template);
    let are_alike = column.templates.iter().all(|one| chunks_of(one).is_none_or(|of| expected.as_ref() == Some(&of)));
    let block_shape = block_shape(&array.shape, &shape, array.element_len_bytes, buffers.part_len_bytes);
    let block_len_bytes = values_len_bytes(&block_shape, array.element_len_bytes);
    let is_cut = are_alike && block_len_bytes > buffers.reader.kept_len_bytes as u64;
    let longest_len_bytes = if is_cut { array.element_len_bytes } else { block_len_bytes };
    let part_len_bytes = longest_len_bytes.max(buffers.part_len_bytes);
    Some(SourceChunks { are_whole: !template.filters.is_empty(), shape, part_len_bytes })
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
            let run = values_len_bytes(&array.tile_shape[first..], array.element_len_bytes);
            let is_short = run < LONG_RUN_LEN_BYTES && first > 0 && first > column.axis;
            let row = |axis| if axis < first { 1 } else { array.shape[axis] };
            is_short.then(|| (0..axes).map(row).collect())
        }
        _ => None,
    }
}
