//! Reading of elements of inputs that are selected by number. [`super::counting`] has counted them.
//!
//! [`crate::rules::Pick`] defines which elements are selected. Invariant: the elements read are those that were
//! counted.

use crate::error::{MergeError, Result};
use crate::plan::MergePlan;
use crate::rules::Pick;
use crate::rules::pick::BLOCK_ELEMENTS;
use crate::schema::{ColumnIndex, display_path};
use crate::write::values::ColumnReader;

/// Block-wise reader of the numbers of elements; belongs to a reader of values.
pub(crate) struct Picker<'p> {
    plan: &'p MergePlan,
    reader: ColumnReader<'p>,
    bytes: Vec<u8>,
    scratch: Vec<i64>,
    /// Block that was read last: path of the numbers, input and number of the block.
    block: Option<(Vec<u8>, u32, u64)>,
    is_taken: Vec<bool>,
}

impl<'p> Picker<'p> {
    /// Creates a picker that reads numbers with `reader`.
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
            let taken = pick.taken(&class, &self.bytes, &mut self.scratch, &mut self.is_taken);
            taken.map_err(|number| beyond(self.plan, column, input, number))?;
            self.block = Some((pick.numbers.clone(), input, block));
        }
        Ok(&self.is_taken)
    }

    /// Appends the stored bytes of `count` selected elements, beginning with number `start`. `read` reads a block of
    /// elements; `None` stands for the numbers themselves.
    pub(crate) fn elements(
        &mut self,
        pick: &Pick,
        input: u32,
        (start, count): (u64, u64),
        element_len_bytes: usize,
        out: &mut Vec<u8>,
        mut read: Option<impl FnMut(u64, u64, &mut Vec<u8>) -> Result<()>>,
    ) -> Result<()> {
        let mut stored = Vec::new();
        let mut block = pick.block_of(start);
        let mut at = pick.before.get(block as usize).copied().unwrap_or(0);
        while at < start + count {
            let (first, elements) = pick.block(block);
            if elements == 0 {
                return Err(MergeError::Object {
                    object: display_path(&pick.numbers),
                    reason: "has changed since its elements were counted; do not modify inputs while they are merged"
                        .to_owned(),
                });
            }
            self.block(pick, input, block)?;
            let stored = match &mut read {
                Some(read) => {
                    read(first, elements, &mut stored)?;
                    &stored
                }
                None => &self.bytes,
            };
            let begin = out.len();
            compress(stored, &self.is_taken, element_len_bytes, out);
            let taken = ((out.len() - begin) / element_len_bytes) as u64;
            // The first and last blocks may hold more selected elements than requested.
            let surplus = (at + taken).saturating_sub(start + count).min(taken);
            out.truncate(out.len() - surplus as usize * element_len_bytes);
            let early = start.saturating_sub(at).min(taken - surplus);
            out.drain(begin..begin + early as usize * element_len_bytes);
            at += taken;
            block += 1;
        }
        Ok(())
    }

    /// Converts ascending positions among all elements to positions among the selected ones.
    pub(crate) fn positions(&mut self, pick: &Pick, input: u32, positions: &mut [i64]) -> Result<()> {
        if pick.count() == 0 {
            // If none of the numbers is selected, they are not read: the plan has no place for them.
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

/// Returns the column of the dataset at `path`.
pub(crate) fn column_at(plan: &MergePlan, path: &[u8]) -> Result<ColumnIndex> {
    let columns = 0..plan.schema.columns.len() as ColumnIndex;
    columns.into_iter().find(|&column| plan.schema.column_path(column) == path).ok_or_else(|| MergeError::Object {
        object: display_path(path),
        reason: "is missing, but its numbers select elements of other datasets".to_owned(),
    })
}

/// Returns the error of a number that refers to no element.
pub(super) fn beyond(plan: &MergePlan, column: ColumnIndex, input: u32, number: i64) -> MergeError {
    MergeError::Inexact {
        object: display_path(plan.schema.column_path(column)),
        input: plan.inputs[input as usize].path.clone(),
        value: number.to_string(),
        reason: "refers to an element beyond the last".to_owned(),
    }
}

/// Appends the selected elements.
fn compress(stored: &[u8], is_taken: &[bool], element_len_bytes: usize, out: &mut Vec<u8>) {
    let begin = out.len();
    // Every element is written, and overwritten by the next one if it is not selected; this avoids unpredictable
    // branches.
    out.resize(begin + stored.len(), 0);
    let mut end = begin;
    macro_rules! compress {
        ($len:literal) => {
            for (element, &is_taken) in stored.as_chunks::<$len>().0.iter().zip(is_taken) {
                out[end..end + $len].copy_from_slice(element);
                end += usize::from(is_taken) * $len;
            }
        };
    }
    match element_len_bytes {
        1 => compress!(1),
        2 => compress!(2),
        4 => compress!(4),
        8 => compress!(8),
        len => {
            for (element, _) in stored.chunks_exact(len).zip(is_taken).filter(|(_, is_taken)| **is_taken) {
                out[end..end + len].copy_from_slice(element);
                end += len;
            }
        }
    }
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_any_length_are_taken() {
        for len in [1, 2, 3, 4, 8] {
            let stored: Vec<u8> = (0..5 * len as u8).collect();
            let mut out = vec![9];
            compress(&stored, &[true, false, false, true, true], len, &mut out);
            assert_eq!(out, [&[9], &stored[..len], &stored[3 * len..]].concat());
        }
    }
}
