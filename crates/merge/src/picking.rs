//! Picking elements of inputs by their numbers: counting them for a plan, and reading those that are taken.
//!
//! Not for what is taken ([`crate::rules::Pick`]). Invariant: what is read is what was counted.

use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::rules::Pick;
use crate::rules::pick::{BLOCK_ELEMENTS, taken};
use crate::schema::{ColumnIndex, display_path};
use crate::values::{ColumnReader, open_pool};
use std::collections::HashMap;
use std::sync::Arc;

/// Elements of an input that have to be counted.
#[derive(Debug, Clone)]
pub(crate) struct Uncounted {
    /// Path of the dataset of their numbers.
    pub numbers: Vec<u8>,
    /// Number of the input.
    pub input: u32,
    /// Of each number, whether elements that have it are taken.
    pub is_taken: Arc<[bool]>,
}

/// Elements taken before each block, by path of their numbers and input.
pub(crate) type Counts = HashMap<(Vec<u8>, u32), Arc<[u64]>>;

/// Counts what is taken of the inputs of `plan`.
pub(crate) fn count(plan: &MergePlan, uncounted: &[Uncounted], watch: &Watch<'_>) -> Result<Counts> {
    let pool = open_pool(plan);
    let mut reader = ColumnReader::new(plan, &pool);
    let mut counts = Counts::new();
    for one in uncounted {
        let column = column_at(plan, &one.numbers)?;
        let rows = plan.schema.columns[column as usize].facts[one.input as usize].rows;
        let (mut before, mut sum) = (vec![0], 0);
        let (mut bytes, mut scratch) = (Vec::new(), Vec::new());
        for start in (0..rows).step_by(BLOCK_ELEMENTS as usize) {
            watch.cancel.check()?;
            let elements = BLOCK_ELEMENTS.min(rows - start);
            let class = reader.read_stored(column, one.input, start, elements, &mut bytes)?;
            let is_taken = taken(&one.is_taken, &class, &bytes, &mut scratch);
            let is_taken = is_taken.map_err(|number| beyond(plan, column, one.input, number))?;
            sum += is_taken.iter().filter(|&&taken| taken).count() as u64;
            before.push(sum);
        }
        counts.insert((one.numbers.clone(), one.input), before.into());
    }
    Ok(counts)
}

/// Column of the dataset at `path`.
pub(crate) fn column_at(plan: &MergePlan, path: &[u8]) -> Result<ColumnIndex> {
    let columns = 0..plan.schema.columns.len() as ColumnIndex;
    columns.into_iter().find(|&column| plan.schema.column_path(column) == path).ok_or_else(|| MergeError::Object {
        object: display_path(path),
        reason: "is missing, and other datasets are picked by its numbers".to_owned(),
    })
}

fn beyond(plan: &MergePlan, column: ColumnIndex, input: u32, number: i64) -> MergeError {
    MergeError::Inexact {
        object: display_path(plan.schema.column_path(column)),
        input: plan.inputs[input as usize].path.clone(),
        value: number.to_string(),
        reason: "leads beyond what it counts".to_owned(),
    }
}

/// Reads the numbers of elements block by block; kept with a reader of values.
pub(crate) struct Picker<'p> {
    plan: &'p MergePlan,
    reader: ColumnReader<'p>,
    bytes: Vec<u8>,
    scratch: Vec<i64>,
    /// The block that was read last, and of each of its elements whether it is taken.
    block: Option<(Vec<u8>, u32, u64)>,
    is_taken: Vec<bool>,
}

impl<'p> Picker<'p> {
    /// A picker that reads numbers by `reader`.
    pub(crate) fn new(plan: &'p MergePlan, reader: ColumnReader<'p>) -> Self {
        Self { plan, reader, bytes: Vec::new(), scratch: Vec::new(), block: None, is_taken: Vec::new() }
    }

    fn block(&mut self, pick: &Pick, input: u32, block: u64) -> Result<&[bool]> {
        let is_known =
            self.block.as_ref().is_some_and(|known| (&known.0, known.1, known.2) == (&pick.numbers, input, block));
        if !is_known {
            self.block = None;
            let column = column_at(self.plan, &pick.numbers)?;
            let (first, elements) = pick.block(block);
            let class = self.reader.read_stored(column, input, first, elements, &mut self.bytes)?;
            let is_taken = pick.taken(&class, &self.bytes, &mut self.scratch);
            self.is_taken = is_taken.map_err(|number| beyond(self.plan, column, input, number))?;
            self.block = Some((pick.numbers.clone(), input, block));
        }
        Ok(&self.is_taken)
    }

    /// Appends the stored bytes of `count` taken elements from number `start` on; `read` gives those of a block.
    pub(crate) fn elements(
        &mut self,
        pick: &Pick,
        input: u32,
        (start, count): (u64, u64),
        element_len_bytes: usize,
        out: &mut Vec<u8>,
        mut read: impl FnMut(u64, u64, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let mut stored = Vec::new();
        let mut block = pick.block_of(start);
        let mut at = pick.before.get(block as usize).copied().unwrap_or(0);
        while at < start + count {
            let (first, elements) = pick.block(block);
            if elements == 0 {
                return Err(MergeError::Object {
                    object: display_path(&pick.numbers),
                    reason: "has other numbers than when they were counted; leave inputs alone while they are merged"
                        .to_owned(),
                });
            }
            read(first, elements, &mut stored)?;
            let is_taken = self.block(pick, input, block)?;
            for (element, _) in stored.chunks_exact(element_len_bytes).zip(is_taken).filter(|(_, taken)| **taken) {
                if (start..start + count).contains(&at) {
                    out.extend_from_slice(element);
                }
                at += 1;
            }
            block += 1;
        }
        Ok(())
    }

    /// Turns ascending positions of elements into those of elements that are taken.
    pub(crate) fn positions(&mut self, pick: &Pick, input: u32, positions: &mut [i64]) -> Result<()> {
        if pick.count() == 0 {
            // Numbers of which none is taken are read nowhere: the plan does not keep their place.
            positions.fill(0);
            return Ok(());
        }
        let (mut known, mut within, mut sum) = (u64::MAX, 0, 0);
        for position in positions {
            let at = u64::try_from(*position).unwrap_or(0).min(pick.stored);
            let block = at / BLOCK_ELEMENTS;
            if block != known || at % BLOCK_ELEMENTS < within {
                (known, within, sum) = (block, 0, 0);
            }
            let behind = at % BLOCK_ELEMENTS;
            if behind > within {
                let is_taken = self.block(pick, input, block)?;
                let run = &is_taken[within as usize..behind as usize];
                sum += run.iter().filter(|&&taken| taken).count() as u64;
                within = behind;
            }
            *position = (pick.before.get(block as usize).copied().unwrap_or_else(|| pick.count()) + sum) as i64;
        }
        Ok(())
    }
}
