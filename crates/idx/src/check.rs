//! Looking whether a dataset is whole: every block that should be there is, and decodes.
//!
//! Not for what the samples should be. Invariant: a block with a sample of the dataset is counted as good or told as a
//! fault, never passed over.

use crate::compression::{Coding, Record};
use crate::error::{IdxError, Result};
use crate::grid::{Layout, blocks, level_range};
use crate::header::Header;
use crate::reader::{Dataset, Query, Readers};
use crate::step::StepPlan;
use crate::stored::{BlockReader, StoredBlocks};
use raddle_core::parallel;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Most time steps that are looked for.
const MAX_STEPS: u64 = 1 << 20;

/// The blocks that end a resolution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LevelCount {
    /// Levels in them: the first holds many.
    pub levels: (u32, u32),
    /// Blocks that are good.
    pub blocks: u64,
    /// Their stored bytes.
    pub stored_len_bytes: u64,
}

/// A block that is missing or damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadBlock {
    /// Field.
    pub field: String,
    /// Time step.
    pub time: Option<u64>,
    /// The file that holds it, or should.
    pub path: PathBuf,
    /// Its number.
    pub block: u64,
    /// What is wrong.
    pub why: String,
}

/// A field at a time step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldCheck {
    /// Field.
    pub field: String,
    /// Time step.
    pub time: Option<u64>,
    /// Blocks that are good.
    pub blocks: u64,
    /// Of these, how many are compressed.
    pub compressed: u64,
    /// Of these, how many are in HZ order; others have rows.
    pub in_hz_order: u64,
    /// Their bytes as stored.
    pub stored_len_bytes: u64,
    /// Their bytes when decoded.
    pub raw_len_bytes: u64,
    /// The good blocks, coarsest first.
    pub levels: Vec<LevelCount>,
    /// The others.
    pub bad: Vec<BadBlock>,
}

impl Dataset {
    /// The time steps that are there: `None` for a dataset without any.
    ///
    /// # Errors
    /// If the header names too many to look for.
    pub fn steps(&self) -> Result<Vec<Option<u64>>> {
        let header = self.header();
        let Some(time) = &header.time else { return Ok(vec![None]) };
        let (first, last) = time.range.unwrap_or((0, 0));
        if last.saturating_sub(first) >= MAX_STEPS {
            let has = "more time steps than can be looked for";
            return Err(IdxError::NoTime { path: self.path().to_path_buf(), asked: None, has });
        }
        let Some(grid) = header.grid(header.bitmask.max_level()) else { return Ok(Vec::new()) };
        let folder = self.path().parent().unwrap_or(std::path::Path::new(""));
        let plan = StepPlan::new(header, &grid, &time.template.name(first));
        let is_there = |step: &u64| {
            let time_name = time.template.name(*step);
            let plan = if *step == first { &plan } else { &StepPlan::named(header, &plan, &time_name) };
            plan.names().any(|name| folder.join(name).exists())
        };
        Ok((first..=last).filter(is_there).map(Some).collect())
    }

    /// Reads and decodes every block of a field at a time step.
    ///
    /// # Errors
    /// If the field does not exist, a file cannot be read (a missing one makes its blocks bad), or on cancellation.
    pub fn check(&self, field: usize, time: Option<u64>, readers: &Readers<'_>) -> Result<FieldCheck> {
        let query = Query { time, ..self.whole(field) };
        let (grid, header) = (self.grid(&query)?, self.header());
        let all = blocks(&header.bitmask, header.bits_per_block, &grid, header.bitmask.max_level());
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
        let looked = Mutex::new(Vec::with_capacity(all.len()));
        let jobs = stored.jobs(&all, readers.jobs);
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
        Ok(check)
    }
}

impl FieldCheck {
    /// Counts a good block of the next number.
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
