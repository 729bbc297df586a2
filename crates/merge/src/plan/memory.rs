//! Memory needed to read the chunks of the inputs, which may be of any size.
//!
//! A megabyte of a file may expand to chunks of a gigabyte each. Invariant: a [`ColumnReader`] never holds more than
//! [`ReaderMemory`] predicts, so that the memory can be taken from the budget, or refused, before anything is read.

use crate::error::{MergeError, Result};
use crate::plan::{ColumnPlan, MergePlan, Route};
use crate::schema::{Column, ColumnIndex, display_path};
use crate::write::values::ColumnReader;
use raddle_core::error::CoreError;
use raddle_core::memory::{MemoryBudget, Permit};
use raddle_hdf5::model::{Dataset, Layout};
use raddle_hdf5::read::ReaderLimits;

/// Chunk size up to which chunks are covered by [`ColumnReader::LEN_BYTES`] and need no individual check.
const USUAL_CHUNK_LEN_BYTES: u64 = 1 << 20;

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
        Self::of_routes(plan, |route| !matches!(route, Route::Empty | Route::Linked))
    }

    /// Returns the memory of a reader of the columns that are written in tiles.
    pub fn of_tiles(plan: &MergePlan) -> Self {
        Self::of_routes(plan, |route| route.array().is_some())
    }

    /// Returns the memory of a reader of the columns that are written with their objects.
    pub fn of_objects(plan: &MergePlan) -> Self {
        Self::of_routes(plan, |route| matches!(route, Route::Direct | Route::FileLocal))
    }

    fn of_routes(plan: &MergePlan, is_read: impl Fn(&Route) -> bool) -> Self {
        let mut memory = Self { len_bytes: ColumnReader::LEN_BYTES, longest: None };
        for ((index, planned), scanned) in (0..).zip(&plan.columns).zip(&plan.schema.columns) {
            if !is_read(&planned.route) || plan.made.has(index) {
                continue;
            }
            for (template, dataset) in (0..).zip(&scanned.templates) {
                let Some(chunk_len_bytes) = long_chunk_len_bytes(dataset) else { continue };
                let len_bytes = held_len_bytes(planned, scanned, template);
                if len_bytes > memory.len_bytes {
                    let longest = LongChunk { column: index, template, chunk_len_bytes };
                    memory = Self { len_bytes, longest: Some(longest) };
                }
            }
        }
        memory
    }

    /// Takes the memory from `budget`, if chunks are larger than usual.
    ///
    /// # Errors
    /// [`MergeError::LongChunks`] if the memory is not available.
    pub fn acquire(&self, plan: &MergePlan, budget: &MemoryBudget) -> Result<Option<Permit>> {
        let Some(longest) = self.longest else { return Ok(None) };
        let permit = budget.try_acquire(self.len_bytes, "reading long chunks");
        permit.map(Some).map_err(|_| self.refusal(plan, longest, self.len_bytes))
    }

    /// Returns how many of up to `jobs` threads fit into the budget of `plan`, if each has a reader and
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
            Some(longest) if needed > limit => Err(self.refusal(plan, longest, needed)),
            Some(_) => Ok(((limit / needed.max(1)) as usize).clamp(1, jobs.max(1))),
        }
    }

    /// Converts an engine error about lack of memory, naming the dataset whose chunks need most of it.
    pub fn explain(&self, plan: &MergePlan, error: MergeError) -> MergeError {
        match (&error, self.longest) {
            (MergeError::Core(CoreError::Memory { needed_bytes, .. }), Some(longest))
                if self.len_bytes >= needed_bytes / 2 =>
            {
                self.refusal(plan, longest, *needed_bytes)
            }
            _ => error,
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

/// Returns the size of a decoded chunk, if it is larger than usual.
fn long_chunk_len_bytes(dataset: &Dataset) -> Option<u64> {
    let Layout::Chunked { chunk_shape, .. } = &dataset.layout else { return None };
    let element_len_bytes = dataset.datatype.class.len_bytes();
    let len_bytes = chunk_shape.iter().fold(element_len_bytes, |product, &count| product.saturating_mul(count));
    Some(len_bytes).filter(|len_bytes| *len_bytes > USUAL_CHUNK_LEN_BYTES)
}

fn held_len_bytes(planned: &ColumnPlan, scanned: &Column, template: u32) -> u64 {
    // Without a decoder, chunks are moved as stored.
    let Some(Some(pipeline)) = planned.pipelines.get(template as usize) else { return 0 };
    let stored = scanned.facts.iter().filter(|fact| fact.template == template && fact.rows > 0);
    let stored_len_bytes = stored.map(|fact| fact.stored_len_bytes).max().unwrap_or(0);
    match stored_len_bytes {
        // No chunk is stored, so none is decoded.
        0 => 0,
        _ => ReaderLimits::default().held_len_bytes(&scanned.templates[template as usize], pipeline, stored_len_bytes),
    }
}
