//! Verification of a dataset: the time steps in its header exist, and every expected block exists and decodes.
//!
//! Sample values are not checked. Invariant: every block with a sample of the dataset is counted as good or reported as
//! a fault, never skipped, until the limit on faults is reached; the result then records that the check stopped. Memory
//! does not grow with the number of blocks, because a damaged header may state any number.

use crate::dataset::compression::{Coding, Record};
use crate::dataset::grid::{Blocks, Layout, level_range};
use crate::dataset::header::Header;
use crate::error::{IdxError, Result};
use crate::read::dataset::{Dataset, Query, Readers};
use crate::read::stored::{BlockReader, StoredBlocks};
use raddle_core::parallel;
use raddle_core::path_text;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Number of blocks checked before the next ones are listed; their state takes a few megabytes.
const PIECE_BLOCKS: usize = 1 << 15;

/// Maximum number of faults reported per dataset. Without it, a damaged header could make the check run arbitrarily
/// long.
const MAX_FAULTS: usize = 1 << 14;

/// Result of checking a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DatasetCheck {
    /// One result per time step and field.
    pub checks: Vec<FieldCheck>,
    /// Time steps that the header names but that do not exist.
    pub missing_steps: Vec<u64>,
    /// Whether the check stopped at the limit on faults; there may be more.
    pub is_stopped: bool,
}

impl DatasetCheck {
    /// Returns whether nothing is missing or damaged.
    pub fn is_whole(&self) -> bool {
        self.missing_steps.is_empty() && !self.checks.is_empty() && self.checks.iter().all(|check| check.bad.is_empty())
    }
}

/// Blocks with the same finest level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LevelCount {
    /// First and last level in these blocks: block 0 holds several levels.
    pub levels: (u32, u32),
    /// Number of good blocks.
    pub blocks: u64,
    /// Stored size of the blocks.
    pub stored_len_bytes: u64,
}

/// A block that is missing or damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadBlock {
    /// Name of the field.
    pub field: String,
    /// Time step, if the dataset has any.
    pub time: Option<u64>,
    /// The file that holds the block, or should hold it.
    #[serde(serialize_with = "path_text::of")]
    pub path: PathBuf,
    /// Number of the block.
    pub block: u64,
    /// Description of the fault.
    pub why: String,
}

/// Result of checking a field at a time step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldCheck {
    /// Name of the field.
    pub field: String,
    /// Time step, if the dataset has any.
    pub time: Option<u64>,
    /// Number of good blocks.
    pub blocks: u64,
    /// Number of good blocks that are compressed.
    pub compressed: u64,
    /// Number of good blocks in HZ order; the others are row-major.
    pub in_hz_order: u64,
    /// Stored length of the good blocks.
    pub stored_len_bytes: u64,
    /// Decoded length of the good blocks.
    pub raw_len_bytes: u64,
    /// Good blocks by resolution, coarsest first.
    pub levels: Vec<LevelCount>,
    /// Missing and damaged blocks.
    pub bad: Vec<BadBlock>,
}

impl Dataset {
    /// Looks for the time steps that the header names. Reads and decodes every block of the existing steps, which
    /// `there` lists.
    ///
    /// # Errors
    /// As for [`Dataset::check`].
    pub fn check_all(&self, there: &[Option<u64>], readers: &Readers<'_>) -> Result<DatasetCheck> {
        let mut all = DatasetCheck { missing_steps: self.missing_steps(there), ..DatasetCheck::default() };
        let mut left = MAX_FAULTS;
        for step in there {
            for field in 0..self.header().fields.len() {
                let check = self.check_up_to(left, field, *step, readers)?;
                left = left.saturating_sub(check.bad.len());
                all.checks.push(check);
                if left == 0 {
                    all.is_stopped = true;
                    return Ok(all);
                }
            }
        }
        Ok(all)
    }

    /// Reads and decodes every block of a field at a time step, and stops at the limit on faults.
    ///
    /// # Errors
    /// If the field does not exist, a file cannot be read (if it is missing, its blocks are reported as bad), or on
    /// cancellation.
    pub fn check(&self, field: usize, time: Option<u64>, readers: &Readers<'_>) -> Result<FieldCheck> {
        self.check_up_to(MAX_FAULTS, field, time, readers)
    }

    fn check_up_to(
        &self,
        max_faults: usize,
        field: usize,
        time: Option<u64>,
        readers: &Readers<'_>,
    ) -> Result<FieldCheck> {
        let query = Query { time, ..self.whole(field) };
        let (grid, header) = (self.grid(&query)?, self.header());
        let mut all = Blocks::new(&header.bitmask, header.bits_per_block, &grid, header.bitmask.max_level());
        let stored = StoredBlocks::new(self, field, time);
        let mut check = FieldCheck {
            field: header.fields[field].name.clone(),
            time,
            blocks: 0,
            compressed: 0,
            in_hz_order: 0,
            stored_len_bytes: 0,
            raw_len_bytes: 0,
            levels: Vec::new(),
            bad: Vec::new(),
        };
        loop {
            let piece: Vec<u64> = all.by_ref().take(PIECE_BLOCKS).collect();
            if piece.is_empty() || check.bad.len() >= max_faults {
                return Ok(check);
            }
            let looked = Mutex::new(Vec::with_capacity(piece.len()));
            let jobs = stored.jobs(&piece, readers.jobs);
            parallel::for_each(&jobs, readers.jobs, readers.cancel, BlockReader::default, |reader, of_job| {
                reader.read(&stored, of_job, &mut |block, path, found| {
                    let found = found.map(|found| found.record).map_err(|fault| (path.to_path_buf(), fault));
                    looked.lock().unwrap_or_else(PoisonError::into_inner).push((block, found));
                    Ok::<_, IdxError>(())
                })
            })?;
            let mut looked = looked.into_inner().unwrap_or_else(PoisonError::into_inner);
            looked.sort_unstable_by_key(|(block, _)| *block);
            for (block, found) in looked {
                match found {
                    Ok(record) => check.count(block, &record, header),
                    Err((path, fault)) => {
                        let field = check.field.clone();
                        check.bad.push(BadBlock { field, time, path, block, why: fault.to_string() });
                    }
                }
            }
        }
    }
}

impl FieldCheck {
    /// Counts block number `block` as good.
    fn count(&mut self, block: u64, record: &Record, header: &Header) {
        let levels = level_range(block, header.bits_per_block);
        if self.levels.last().is_none_or(|last| last.levels != levels) {
            self.levels.push(LevelCount { levels, ..LevelCount::default() });
        }
        let stored_len_bytes = u64::from(record.len_bytes);
        if let Some(count) = self.levels.last_mut() {
            count.blocks += 1;
            count.stored_len_bytes += stored_len_bytes;
        }
        let of_field = header.field_index(&self.field).unwrap_or(0);
        self.blocks += 1;
        self.stored_len_bytes += stored_len_bytes;
        self.raw_len_bytes += header.block_len_bytes(of_field) as u64;
        self.compressed += u64::from(record.coding != Coding::Raw);
        self.in_hz_order += u64::from(record.layout == Layout::Hz);
    }
}
