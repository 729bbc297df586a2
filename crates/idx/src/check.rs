//! Looking whether a dataset is whole: every block that should be there is, and decodes.
//!
//! Not for what the samples should be. Invariant: a block with a sample of the dataset is counted as good or told as a
//! fault, never passed over.

use crate::compression::BlockFault;
use crate::error::{IdxError, Result};
use crate::grid::{Layout, blocks, level_range};
use crate::reader::Dataset;
use crate::step::StepPlan;
use raddle_core::cancel::CancelToken;
use serde::Serialize;
use std::path::PathBuf;

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
    pub fn check(&self, field: usize, time: Option<u64>, cancel: &CancelToken) -> Result<FieldCheck> {
        let query = crate::reader::Query { time, ..self.whole(field) };
        let (grid, header) = (self.grid(&query)?, self.header());
        let name = header.fields[field].name.clone();
        let mut check = FieldCheck {
            field: name.clone(),
            time,
            blocks: 0,
            compressed: 0,
            in_hz_order: 0,
            stored_len_bytes: 0,
            raw_len_bytes: 0,
            levels: Vec::new(),
            bad: Vec::new(),
        };
        let level = header.bitmask.max_level();
        let all = blocks(&header.bitmask, header.bits_per_block, &grid, level);
        self.for_each_block(field, time, &all, &mut |block, path, found| {
            cancel.check()?;
            match found {
                Ok(found) => {
                    let levels = level_range(block, header.bits_per_block);
                    if check.levels.last().is_none_or(|last| last.levels != levels) {
                        check.levels.push(LevelCount { levels, ..LevelCount::default() });
                    }
                    let stored_len_bytes = u64::from(found.record.len_bytes);
                    if let Some(count) = check.levels.last_mut() {
                        count.blocks += 1;
                        count.stored_len_bytes += stored_len_bytes;
                    }
                    check.blocks += 1;
                    check.stored_len_bytes += stored_len_bytes;
                    check.raw_len_bytes += found.raw.len() as u64;
                    check.compressed += u64::from(found.record.compression != crate::compression::Compression::None);
                    check.in_hz_order += u64::from(found.record.layout == Layout::Hz);
                }
                Err(fault) => check.bad.push(bad(&name, time, path.to_path_buf(), block, &fault)),
            }
            Ok(())
        })?;
        Ok(check)
    }
}

fn bad(field: &str, time: Option<u64>, path: PathBuf, block: u64, fault: &BlockFault) -> BadBlock {
    BadBlock { field: field.to_owned(), time, path, block, why: fault.to_string() }
}
