//! Memory of a thread that writes tiles: buffers whose lengths are chosen, and chunks of the inputs, which may be of
//! any size.
//!
//! A megabyte of a file may expand to chunks of a gigabyte each. Invariant: a `ColumnReader` never holds more than
//! [`ReaderMemory`] predicts, so that the memory can be taken from the budget, or refused, before anything is read.

use crate::error::{MergeError, Result};
use crate::plan::{ColumnPlan, MergePlan, Route};
use crate::schema::{Column, ColumnIndex, display_path};
use raddle_core::engine::claims_len_bytes;
use raddle_core::error::CoreError;
use raddle_core::memory::{MemoryBudget, Permit};
use raddle_core::plan::ArrayPlan;
use raddle_core::plan::extent::values_len_bytes;
use raddle_core::regrouping::blocks::TYPICAL_BLOCK_LEN_BYTES;
use raddle_hdf5::model::{Dataset, Layout};
use raddle_hdf5::read::ReaderLimits;

/// Length up to which chunks do not reduce the number of threads that only read.
const TYPICAL_CHUNK_LEN_BYTES: u64 = 1 << 20;

/// Bounds of the length by which two filtered forms of a chunk's values may be exceeded: headers and tables of filters.
const MIN_FILTER_EXPANSION_LEN_BYTES: u64 = 4 << 10;
const MAX_FILTER_EXPANSION_LEN_BYTES: u64 = 64 << 10;

/// Lengths of those buffers of a thread that work with any length. They have their usual lengths with 64 MiB of memory
/// or more; with less they shrink, so that a megabyte suffices for chunks of a few kilobytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferSizes {
    /// Limits of a reader.
    pub reader: ReaderLimits,
    /// Length of the values of neighbouring tiles up to which the chunks that a reader keeps suffice.
    pub near_len_bytes: u64,
    /// Length of the parts in which values are moved to tiles that are assembled in groups, or to a scratch file.
    pub part_len_bytes: u64,
}

impl BufferSizes {
    /// Returns the lengths for this memory limit.
    pub(crate) fn within(memory_limit_bytes: u64) -> Self {
        let part = |usual_len_bytes: u64, divisor: u64| usual_len_bytes.min(memory_limit_bytes / divisor).max(1);
        let usual = ReaderLimits::default();
        let kept_len_bytes = part(usual.kept_len_bytes as u64, 8);
        let read_len_bytes = part(usual.read_len_bytes, 32);
        Self {
            reader: ReaderLimits { kept_len_bytes: kept_len_bytes as usize, read_len_bytes, ..usual },
            near_len_bytes: kept_len_bytes / 8,
            part_len_bytes: part(TYPICAL_BLOCK_LEN_BYTES, 16),
        }
    }
}

/// Memory of a reader of a plan's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderMemory {
    /// Total memory in bytes.
    pub len_bytes: u64,
    /// Chunks that need the most memory; `None` if all chunks have usual sizes.
    longest: Option<LongChunk>,
}

/// Chunks larger than usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LongChunk {
    column: ColumnIndex,
    template: u32,
    /// Size of a decoded chunk.
    chunk_len_bytes: u64,
}

impl ReaderMemory {
    /// Returns the memory of a reader of all columns of `plan` whose values are read.
    pub fn of(plan: &MergePlan) -> Self {
        let limit_bytes = plan.options.memory_limit_bytes;
        Self::of_routes(plan, limit_bytes, |route| !matches!(route, Route::Empty | Route::Linked))
    }

    /// Returns the memory of a reader of the columns that are written in tiles, with this memory limit.
    pub fn of_tiles(plan: &MergePlan, memory_limit_bytes: u64) -> Self {
        Self::of_routes(plan, memory_limit_bytes, |route| route.array().is_some())
    }

    /// Returns the memory of a reader of the columns that are written with their objects.
    pub fn of_objects(plan: &MergePlan) -> Self {
        let limit_bytes = plan.options.memory_limit_bytes;
        Self::of_routes(plan, limit_bytes, |route| matches!(route, Route::Direct | Route::FileLocal))
    }

    fn of_routes(plan: &MergePlan, memory_limit_bytes: u64, is_read: impl Fn(&Route) -> bool) -> Self {
        let limits = BufferSizes::within(memory_limit_bytes).reader;
        let mut memory = Self { len_bytes: limits.usual_len_bytes(), longest: None };
        for ((index, planned), scanned) in (0..).zip(&plan.columns).zip(&plan.schema.columns) {
            if !is_read(&planned.route) || plan.derived.has(index) {
                continue;
            }
            for (template, dataset) in (0..).zip(&scanned.templates) {
                let Some(chunk_len_bytes) = long_chunk_len_bytes(dataset, limits) else { continue };
                let len_bytes = buffers_len_bytes(planned, scanned, template, limits);
                if len_bytes > memory.len_bytes {
                    let longest = LongChunk { column: index, template, chunk_len_bytes };
                    memory = Self { len_bytes, longest: Some(longest) };
                }
            }
        }
        memory
    }

    /// Returns the memory that [`ReaderMemory::acquire`] takes: none for chunks of usual sizes.
    pub fn acquired_len_bytes(&self) -> u64 {
        self.longest.map_or(0, |_| self.len_bytes)
    }

    /// Takes the memory for chunks that are larger than usual from `budget`.
    ///
    /// # Errors
    /// [`MergeError::LongChunks`] if the memory is not available.
    pub fn acquire(&self, plan: &MergePlan, budget: &MemoryBudget) -> Result<Option<Permit>> {
        let Some(longest) = self.longest else { return Ok(None) };
        let permit = budget.try_acquire(self.len_bytes, "reading long chunks");
        permit.map(Some).map_err(|_| self.refusal(plan, longest, self.len_bytes))
    }

    /// Returns how many of up to `jobs` threads fit into the budget of `plan`. Each of them needs a reader and
    /// `more_len_bytes`.
    ///
    /// # Errors
    /// [`MergeError::LongChunks`] if not even one thread fits because of the size of chunks.
    pub fn fitting_jobs(&self, plan: &MergePlan, jobs: usize, more_len_bytes: u64) -> Result<usize> {
        let needed = self.len_bytes.saturating_add(more_len_bytes);
        let limit = plan.options.memory_limit_bytes;
        match self.longest {
            // With usual chunks, the memory is of the same order as that of the program itself.
            None => Ok(jobs),
            Some(longest) if longest.chunk_len_bytes <= TYPICAL_CHUNK_LEN_BYTES => Ok(jobs),
            Some(longest) if needed > limit => Err(self.refusal(plan, longest, needed)),
            Some(_) => Ok(((limit / needed.max(1)) as usize).clamp(1, jobs.max(1))),
        }
    }

    /// Converts an engine error about lack of memory, naming the dataset whose chunks need most of it.
    pub fn explain(&self, plan: &MergePlan, error: MergeError) -> MergeError {
        let MergeError::Core(CoreError::Memory { needed_bytes, available_bytes, limit_bytes: limit, .. }) = error
        else {
            return error;
        };
        // Some of the budget may be taken already, for example for reading for other ranks.
        let needed = needed_bytes.saturating_add(limit.saturating_sub(available_bytes));
        if let Some(longest) = self.longest
            && self.len_bytes >= needed / 2
        {
            return self.refusal(plan, longest, needed);
        }
        let arrays = plan.tiles.arrays.iter().zip(&plan.column_of_array);
        // Either long tiles need the memory, or the places of many tiles do.
        let is_of_places = claims_len_bytes(&plan.tiles, limit) >= needed / 2;
        let weight = |array: &ArrayPlan| if is_of_places { array.tile_count() } else { array.tile_len_bytes() };
        let Some((array, &column)) = arrays.max_by_key(|(array, _)| weight(array)) else { return error };
        MergeError::Tiles {
            object: display_path(plan.schema.column_path(column)),
            tiles: array.tile_count(),
            tile_len_bytes: array.tile_len_bytes(),
            needed,
            limit,
        }
    }

    fn refusal(&self, plan: &MergePlan, longest: LongChunk, needed: u64) -> MergeError {
        let facts = &plan.schema.columns[longest.column as usize].facts;
        let input = facts.iter().position(|fact| fact.template == longest.template && fact.rows > 0).unwrap_or(0);
        MergeError::LongChunks {
            object: display_path(plan.schema.column_path(longest.column)),
            input: plan.inputs.get(input).map(|input| input.path.clone()).unwrap_or_default(),
            chunk_len_bytes: longest.chunk_len_bytes,
            needed,
            limit: plan.options.memory_limit_bytes,
        }
    }
}

/// Returns the maximum length of the stored form of a tile of `tile_len_bytes`.
pub(crate) fn stored_bound_len_bytes(route: &Route, tile_len_bytes: u64) -> u64 {
    match route {
        Route::Encoded { encoder, .. } => encoder.bound_len_bytes(tile_len_bytes as usize) as u64,
        Route::Raw { .. } => tile_len_bytes,
        // A stored chunk may be longer than its values: filters can expand data, and HDF5 sets no bound below 4 GiB. A
        // batch may have many small chunks, so their bound is not much longer than they are.
        _ => {
            let expansion = tile_len_bytes.clamp(MIN_FILTER_EXPANSION_LEN_BYTES, MAX_FILTER_EXPANSION_LEN_BYTES);
            tile_len_bytes.saturating_mul(2).saturating_add(expansion)
        }
    }
}

/// Returns the length of the longest chunk that is moved as stored, and may be decoded in addition to be digested.
pub(crate) fn longest_decoded_len_bytes(plan: &MergePlan) -> u64 {
    let moved = plan.columns.iter().filter_map(|planned| match planned.route {
        Route::Verbatim { array } => Some(plan.tiles.arrays[array as usize].tile_len_bytes()),
        _ => None,
    });
    moved.max().unwrap_or(0)
}

/// Returns the memory that a worker needs for encoding and converting tiles, in addition to tiles and readers.
pub(crate) fn converting_len_bytes(plan: &MergePlan) -> u64 {
    let encoded = plan.columns.iter().filter_map(|planned| match &planned.route {
        Route::Encoded { array, encoder } => {
            Some(encoder.state_len_bytes(plan.tiles.arrays[*array as usize].tile_len_bytes()))
        }
        _ => None,
    });
    let encoding_len_bytes = encoded.max().unwrap_or(0);
    encoding_len_bytes.saturating_add(converted_len_bytes(plan))
}

/// Returns the memory for converting the values of any tile, in addition to the tile itself: for stored, converted and
/// rearranged values.
pub(crate) fn converted_len_bytes(plan: &MergePlan) -> u64 {
    (0..plan.tiles.arrays.len()).map(|array| converted_len_bytes_of(plan, array)).max().unwrap_or(0)
}

fn converted_len_bytes_of(plan: &MergePlan, array: usize) -> u64 {
    let column = &plan.schema.columns[plan.column_of_array[array] as usize];
    let Some(conversion) = &column.conversion else { return 0 };
    let tile = &plan.tiles.arrays[array];
    let elements = tile.tile_len_bytes() / tile.element_len_bytes.max(1);
    // On a gathered axis, all elements between the first and the last needed one are read.
    let widening = conversion.of_inputs.iter().filter_map(|one| {
        let gather = one.gather.as_ref()?;
        Some(gather.len.div_ceil(tile.tile_shape.get(gather.axis).copied().unwrap_or(1).max(1)))
    });
    let read = elements.saturating_mul(widening.max().unwrap_or(1).max(1));
    let stored = column.templates.iter().map(|template| template.datatype.class.len_bytes()).max().unwrap_or(0);
    read.saturating_mul(stored.saturating_add(tile.element_len_bytes)).saturating_add(tile.tile_len_bytes())
}

/// Returns the size of a decoded chunk that is longer than a read of this reader, so that its buffers may grow; `None`
/// for shorter chunks.
fn long_chunk_len_bytes(dataset: &Dataset, limits: ReaderLimits) -> Option<u64> {
    let Layout::Chunked { chunk_shape, .. } = &dataset.layout else { return None };
    let element_len_bytes = dataset.datatype.class.len_bytes();
    let len_bytes = values_len_bytes(chunk_shape, element_len_bytes);
    Some(len_bytes).filter(|len_bytes| *len_bytes > limits.read_len_bytes)
}

fn buffers_len_bytes(planned: &ColumnPlan, scanned: &Column, template: u32, limits: ReaderLimits) -> u64 {
    // Without a decoder, chunks are moved as stored.
    let Some(Some(pipeline)) = planned.pipelines.get(template as usize) else { return 0 };
    let stored = scanned.facts.iter().filter(|fact| fact.template == template && fact.rows > 0);
    let stored_len_bytes = stored.map(|fact| fact.stored_len_bytes).max().unwrap_or(0);
    match stored_len_bytes {
        // No chunk is stored, so none is decoded.
        0 => 0,
        _ => limits.peak_len_bytes(&scanned.templates[template as usize], pipeline, stored_len_bytes),
    }
}
