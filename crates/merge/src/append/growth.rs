//! Growth of the datasets of a file, and continuation of the digests stored in it.
//!
//! Digests of existing rows are not recomputed: they are carried over, so that earlier damage is still detected. Only
//! the block in which the old rows end is computed from old and new rows. Invariant: a file that has grown has the same
//! digests as a file written with all rows at once and the same number of rows per block.

use crate::error::{MergeError, Result};
use crate::plan::growth::Growth;
use crate::plan::{MergePlan, Route};
use crate::schema::{ColumnIndex, display_path};
use crate::verify::digests::StoredColumn;
use crate::verify::digests::blocks::{ColumnDigester, block_rows};
use crate::verify::digests::known_rows::cuts;
use crate::verify::digests::structure::not_as_written;
use crate::verify::digests::{ColumnDigests, DigestForm, Digests};
use raddle_core::digest::{Digest, RowBlockDigests};
use raddle_core::plan::ArrayPlan;
use raddle_core::plan::extent::{Coordinates, Extent};

/// The part of a tile that is digested, and its position in the digested array and in the tile.
pub struct DigestedPart {
    /// Shape of the digested array.
    pub shape: Coordinates,
    /// Position of the part in the digested array.
    pub extent: Extent,
    /// Position of its first element in the tile.
    pub origin: Coordinates,
}

impl Growth {
    /// Returns the stored digests of a column.
    fn known(&self, plan: &MergePlan, column: ColumnIndex) -> Option<&StoredColumn> {
        self.stored.as_ref()?.datasets.get(plan.schema.column_path(column))
    }

    /// Returns the number of rows per digest block of a column.
    pub fn block_rows(&self, plan: &MergePlan, column: ColumnIndex) -> u64 {
        let known = self.known(plan, column).and_then(|known| known.digests.as_ref());
        known.map_or_else(
            || block_rows(plan.row_len_bytes(column), plan.columns[column as usize].dims[0]),
            |digests| digests.block_rows.max(1),
        )
    }

    /// Returns the first row of the first block that changes.
    pub(crate) fn first_digested_row(&self, plan: &MergePlan, column: ColumnIndex) -> u64 {
        let block_rows = self.block_rows(plan, column);
        self.columns[column as usize].old_rows / block_rows * block_rows
    }

    /// Returns the digests to gather from the new tiles of a column, starting with the block in which the old rows end.
    /// Only the first rank (`is_first`) seeds that block with the digest of the old rows.
    pub(crate) fn gathering(&self, plan: &MergePlan, column: ColumnIndex, is_first: bool) -> Option<ColumnDigester> {
        self.stored.as_ref()?;
        let grown = self.columns[column as usize];
        let planned = &plan.columns[column as usize];
        if !matches!(planned.route, Route::Encoded { .. } | Route::Verbatim { .. }) || planned.is_undecodable() {
            return None;
        }
        let (row_len_bytes, block_rows) = (plan.row_len_bytes(column), self.block_rows(plan, column));
        let first_row = self.first_digested_row(plan, column);
        let (old, all) = (grown.old_rows - first_row, planned.dims[0] - first_row);
        let from = first_row * row_len_bytes;
        let cuts = cuts(plan, column).into_iter().filter_map(|cut| cut.checked_sub(from)).collect();
        let digests = RowBlockDigests::with_cuts(block_rows * row_len_bytes, all * row_len_bytes, cuts);
        if old > 0 && is_first {
            let known = self.known(plan, column)?.digests.as_ref()?;
            let crc = *known.blocks.get((first_row / block_rows) as usize)?;
            digests.add_start(Digest::of_crc64_nvme(crc, old * row_len_bytes)).ok()?;
        }
        Some(ColumnDigester::Values { digests, block_rows })
    }

    /// Returns the part of a tile that holds new rows; `None` if there is none.
    pub fn digested(
        &self,
        plan: &MergePlan,
        column: ColumnIndex,
        array: &ArrayPlan,
        mut extent: Extent,
    ) -> Option<DigestedPart> {
        let grown = self.columns[column as usize];
        let first_digested_row = self.first_digested_row(plan, column);
        let (start, end) = (grown.first_row + extent.start[0], grown.first_row + extent.end(0));
        let from = start.max(grown.old_rows);
        if from >= end {
            return None;
        }
        let mut shape = Coordinates::from_slice(&array.shape);
        shape[0] = plan.columns[column as usize].dims[0] - first_digested_row;
        let mut origin = Coordinates::from_elem(0, shape.len());
        origin[0] = from - start;
        (extent.start[0], extent.count[0]) = (from - first_digested_row, end - from);
        Some(DigestedPart { shape, extent, origin })
    }

    /// Combines the stored digests with those of the new rows, for all columns.
    pub fn complete(&self, plan: &MergePlan, digests: &mut Digests) -> Result<()> {
        if self.stored.is_none() {
            return Ok(());
        }
        for (column, digests) in (0..).zip(&mut digests.columns) {
            let known = self.known(plan, column).and_then(|known| known.digests.as_ref());
            match (&plan.columns[column as usize].route, &*digests) {
                (Route::Encoded { .. } | Route::Verbatim { .. }, Some(new)) => {
                    *digests = Some(self.joined(plan, column, known, new));
                }
                // Computed from all rows, because canonical bytes do not have the length of the elements.
                (Route::FileLocal, Some(_)) => {}
                _ => *digests = known.cloned(),
            }
        }
        Ok(())
    }

    fn joined(
        &self,
        plan: &MergePlan,
        column: ColumnIndex,
        known: Option<&ColumnDigests>,
        new: &ColumnDigests,
    ) -> ColumnDigests {
        let (row_len_bytes, block_rows) = (plan.row_len_bytes(column), self.block_rows(plan, column));
        let first_row = self.first_digested_row(plan, column);
        let kept = known.map_or(&[][..], |known| &known.blocks[..(first_row / block_rows) as usize]);
        let old = kept
            .iter()
            .fold(Digest::default(), |all, crc| all.then(Digest::of_crc64_nvme(*crc, block_rows * row_len_bytes)));
        let rows = plan.columns[column as usize].dims[0] - first_row;
        let whole = old.then(Digest::of_crc64_nvme(new.whole, rows * row_len_bytes)).crc64_nvme();
        let blocks = kept.iter().chain(&new.blocks).copied().collect();
        ColumnDigests { form: DigestForm::Values, block_rows, whole, blocks }
    }

    /// Refuses a file whose digests cannot be continued.
    pub fn check(&self, plan: &MergePlan) -> Result<()> {
        let Some(stored) = &self.stored else { return Ok(()) };
        for (column, grown) in (0..).zip(&self.columns).filter(|(_, grown)| grown.new_rows > 0) {
            let path = plan.schema.column_path(column);
            let refuse =
                |reason: &str| Err(MergeError::Object { object: display_path(path), reason: reason.to_owned() });
            let Some(known) = stored.datasets.get(path) else {
                return Err(not_as_written(display_path(path)));
            };
            let planned = &plan.columns[column as usize];
            let form = match planned.route {
                Route::FileLocal => DigestForm::Canonical,
                _ if planned.is_undecodable() => DigestForm::Stored,
                _ => DigestForm::Values,
            };
            match &known.digests {
                Some(_) | None if form == DigestForm::Stored => {
                    return refuse("has a filter that raddle does not know, so that its digests cannot be continued");
                }
                Some(digests) if digests.form == DigestForm::Stored => {
                    return refuse(
                        "has chunks that were moved without decoding them, as --union does, so that the digests of its \
                         values are unknown; merge all inputs again",
                    );
                }
                Some(digests) if digests.form != form => {
                    return refuse("has digests in a form that this version does not write; merge all inputs again");
                }
                Some(digests) if digests.blocks.len() as u64 == grown.old_rows.div_ceil(digests.block_rows.max(1)) => {}
                Some(_) => return refuse("has a number of digests that does not match its rows; run raddle verify"),
                None if grown.old_rows == 0 || planned.dims[1..].contains(&0) => {}
                None => return refuse("has rows without digests; run raddle verify"),
            }
        }
        Ok(())
    }
}
