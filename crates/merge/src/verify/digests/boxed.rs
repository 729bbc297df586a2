//! Checks of datasets whose chunks extend over many blocks of rows: they are read in boxes of chunks, and the digests
//! of the blocks are combined from those of the boxes.
//!
//! Invariant: every value is read once, and every block is compared or reported as unreadable.

use super::check::{Check, Damage, READ_LEN_BYTES, readable};
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::memory::ReaderMemory;
use crate::verify::boxes::{array_of, boxes};
use crate::verify::digests::StoredColumn;
use crate::verify::digests::column::{ColumnDigests, DigestForm};
use crate::write::ranks::share_by_cost;
use crate::write::values::ColumnReader;
use raddle_core::digest::RowBlockDigests;
use raddle_core::parallel;
use raddle_core::plan::ArrayPlan;
use raddle_core::plan::extent::{BoxSource, Coordinates, values_len_bytes};
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::{Event, Stage};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A column that is read in boxes.
pub(super) struct BoxedColumn<'a> {
    column: u32,
    digests: &'a ColumnDigests,
    boxes: ArrayPlan,
}

impl<'a> Check<'a> {
    /// Returns the boxes in which a column is read; `None` unless its chunks extend over many blocks of rows.
    fn boxes_of(&self, column: u32) -> Option<ArrayPlan> {
        let rows = READ_LEN_BYTES / self.found.row_len_bytes(column).max(1);
        boxes(&[(self.found, column)], rows.max(1), self.box_limit_len_bytes)
    }

    /// Returns whether a column is read in boxes.
    pub(super) fn is_boxed(&self, column: u32, known: &StoredColumn) -> bool {
        known.digests.as_ref().is_some_and(|digests| digests.form == DigestForm::Values)
            && self.boxes_of(column).is_some()
    }

    /// Prepares the columns that are read in boxes.
    pub(super) fn boxed(&mut self, columns: &[(u32, &'a StoredColumn)]) -> Vec<BoxedColumn<'a>> {
        let mut boxed = Vec::new();
        for &(column, known) in columns {
            match (self.digests_of(column, known), self.boxes_of(column)) {
                (Ok(Some(digests)), Some(boxes)) => {
                    self.report.datasets += 1;
                    boxed.push(BoxedColumn { column, digests, boxes });
                }
                (Ok(_), _) => {}
                (Err(what), _) => self.mismatch(self.found.schema.column_path(column), what),
            }
        }
        boxed
    }

    /// Checks this rank's share of the columns that are read in boxes.
    pub(super) fn values_in_boxes(
        &mut self,
        columns: &[BoxedColumn<'a>],
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<Vec<Damage>> {
        let share = share_by_cost(ranks, columns.iter().map(|boxed| boxed.boxes.len_bytes()));
        let mut damages = Vec::new();
        for boxed in &columns[share] {
            damages.extend(self.values_of(boxed, watch)?);
            self.report.compared_len_bytes += boxed.boxes.len_bytes();
        }
        Ok(damages)
    }

    fn values_of(
        &self,
        BoxedColumn { column, digests, boxes }: &BoxedColumn<'a>,
        watch: &Watch<'_>,
    ) -> Result<Vec<Damage>> {
        let (found, pool, column) = (self.found, self.pool, *column);
        let Some(array) = array_of(found, column) else { return Ok(Vec::new()) };
        let row_len_bytes = found.row_len_bytes(column);
        let gathered = RowBlockDigests::new(digests.block_rows * row_len_bytes, row_len_bytes * boxes.shape[0]);
        let unreadable = Mutex::new(BTreeSet::new());
        let box_len_bytes = boxes.tile_len_bytes();
        let threads = ReaderMemory::of(found).fitting_jobs(found, found.options.jobs, box_len_bytes)?;
        let numbers: Vec<u64> = (0..boxes.tile_count()).collect();
        let worker = || (ColumnReader::new(found, pool), Vec::new());
        parallel::for_each(&numbers, threads, watch.cancel, worker, |(reader, values), &number| {
            let extent = boxes.tile_extent(number);
            let bytes = values_len_bytes(&extent.count, boxes.element_len_bytes);
            values.clear();
            values.resize(bytes as usize, 0);
            if let Err(error) = reader.read_extent(column, array, &extent, values) {
                let rows = (extent.start[0], extent.end(0));
                unreadable.lock().unwrap_or_else(PoisonError::into_inner).insert((rows, readable(error)?));
            }
            let origin = Coordinates::from_elem(0, extent.rank());
            let source = BoxSource { bytes: values, shape: &extent.count, origin: &origin };
            gathered.add_box(&boxes.shape, &extent, source, boxes.element_len_bytes as usize)?;
            watch.observer.event(&Event::Advanced { stage: Stage::Verify, bytes, items: 1 });
            Ok::<_, MergeError>(())
        })?;
        let unreadable = unreadable.into_inner().unwrap_or_else(PoisonError::into_inner);
        let unread: Vec<Range<u64>> = unreadable.iter().map(|((start, end), _)| *start..*end).collect();
        let mut damages: Vec<Damage> = (unreadable.into_iter())
            .map(|((start, end), error)| Damage { column, rows: start..end, error: Some(error) })
            .collect();
        for (number, (expected, got)) in (0..).zip(digests.blocks.iter().zip(gathered.blocks()?)) {
            let start = number * digests.block_rows;
            let rows = start..(start + digests.block_rows).min(boxes.shape[0]);
            let is_read = unread.iter().all(|unread| unread.end <= rows.start || rows.end <= unread.start);
            if is_read && *expected != got {
                damages.push(Damage { column, rows, error: None });
            }
        }
        Ok(damages)
    }
}
