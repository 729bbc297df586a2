//! Digests of a column's values in blocks of rows, collected from tiles in any order or from rows in order.
//!
//! Invariant: every row of a column is digested exactly once.

use super::column::{ColumnDigests, DigestForm};
use super::known_rows::{RowsDigest, carried, cuts};
use crate::error::Result;
use crate::plan::{MergePlan, Route};
use crate::schema::ColumnIndex;
use raddle_core::digest::{Additions, BlockPart, Digest, RowBlockDigests};
use raddle_core::plan::ArrayPlan;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// Maximum length of a block of rows, in raw bytes: damage is located as precisely as with chunks of the default size,
/// and digests take 8 ppm of the values, which is little even for maps that compress by a factor of a thousand.
const MAX_BLOCK_LEN_BYTES: u64 = 1 << 20;
/// Minimum length of a block. Its digest takes 0.2 % of that length.
const MIN_BLOCK_LEN_BYTES: u64 = 4 << 10;
/// Number of blocks into which a dataset is cut between these limits: 512 bytes of digests for each of many small
/// datasets.
const BLOCKS: u64 = 64;

/// Returns the number of rows per block, for a column of `rows` rows of this length.
pub fn block_rows(row_len_bytes: u64, rows: u64) -> u64 {
    let share = rows.saturating_mul(row_len_bytes) / BLOCKS;
    (share.clamp(MIN_BLOCK_LEN_BYTES, MAX_BLOCK_LEN_BYTES) / row_len_bytes.max(1)).max(1)
}

/// Digests of all columns of an output.
#[derive(Debug, Clone, Default)]
pub struct Digests {
    /// Digests of each column of the schema; `None` if it has no elements.
    pub columns: Vec<Option<ColumnDigests>>,
    /// Digests of runs of rows of which inputs have digests, too, indexed by column.
    pub runs: HashMap<ColumnIndex, Vec<RowsDigest>>,
}

impl Digests {
    /// Returns the digest of a run of rows; `None` if it was not computed.
    pub fn of_rows(&self, column: ColumnIndex, rows: &Range<u64>) -> Option<u64> {
        let run = self.runs.get(&column)?.iter().find(|run| run.rows == *rows)?;
        Some(run.digest.crc64_nvme())
    }

    /// Computes one digest over the digests of all columns, in schema order.
    pub fn whole(&self) -> u64 {
        let columns = self.columns.iter().flatten();
        columns.fold(Digest::default(), |all, column| all.then(Digest::of(&column.whole.to_le_bytes()))).crc64_nvme()
    }
}

/// Digests of one column while its tiles are written.
#[derive(Debug)]
pub enum ColumnDigester {
    /// Digests of values.
    Values {
        /// Fragments of the digests.
        digests: RowBlockDigests,
        /// Number of rows per block.
        block_rows: u64,
    },
    /// Digests of stored chunks.
    Stored(StoredTiles),
}

impl ColumnDigester {
    /// Prepares the digests of the tiles of `column`; returns `None` if its values are not tiled. `is_first` is true on
    /// the first rank, which also accounts for existing rows.
    pub fn of(plan: &MergePlan, column: u32, is_first: bool) -> Option<Self> {
        if carried(plan, column).is_some() {
            return None;
        }
        if let Some(growth) = &plan.growth {
            return growth.gathering(plan, column, is_first);
        }
        let planned = &plan.columns[column as usize];
        if let Some(array) = planned.undecoded_array(&plan.options) {
            return Some(Self::Stored(StoredTiles::new(&plan.tiles.arrays[array as usize])));
        }
        match planned.route {
            // Chunks that are moved as stored would be decoded only for the digest, which is pointless if it is not
            // stored.
            Route::Verbatim { .. } if !plan.options.provenance => None,
            Route::Encoded { .. } | Route::Raw { .. } | Route::Verbatim { .. } => {
                let row_len_bytes = plan.row_len_bytes(column);
                let block_rows = block_rows(row_len_bytes, planned.dims[0]);
                let digests = RowBlockDigests::with_cuts(
                    block_rows * row_len_bytes,
                    row_len_bytes * planned.dims[0],
                    cuts(plan, column),
                );
                Some(Self::Values { digests, block_rows })
            }
            Route::Empty | Route::Direct | Route::FileLocal | Route::Linked => None,
        }
    }

    /// Returns whether `part`, recorded by an earlier run, belongs to a block (with stored chunks: to a tile) that is
    /// still incomplete.
    pub fn takes_part(&self, part: BlockPart) -> bool {
        match self {
            Self::Values { digests, .. } => digests.check_part(part).is_ok(),
            Self::Stored(tiles) => usize::try_from(part.block).is_ok_and(|tile| tile < tiles.tiles.len()),
        }
    }

    /// Adds a part that an earlier run recorded.
    pub fn add_part(&self, part: BlockPart) -> Result<()> {
        match self {
            Self::Values { digests, .. } => Ok(digests.add_part(part)?),
            Self::Stored(tiles) => {
                tiles.set(part.block, Digest::of_part(part));
                Ok(())
            }
        }
    }

    /// Returns the digests that this rank has computed.
    pub fn share(&self) -> RankShare {
        match self {
            Self::Values { digests, .. } => RankShare::Values(digests.additions()),
            Self::Stored(tiles) => {
                let set = (0..).zip(&tiles.tiles).filter_map(|(tile, digest)| Some(digest.get()?.part(tile)));
                RankShare::Stored(set.collect())
            }
        }
    }

    /// Adds the digests of another rank; returns `None` if they do not fit.
    pub fn add_share(&self, share: &RankShare) -> Option<()> {
        match (self, share) {
            (Self::Values { digests, .. }, RankShare::Values(additions)) => digests.add_additions(additions).ok(),
            (Self::Stored(_), RankShare::Stored(parts)) => {
                parts.iter().try_for_each(|part| self.takes_part(*part).then(|| self.add_part(*part))?.ok())
            }
            _ => None,
        }
    }

    /// Returns the digests, after all tiles have been added.
    pub fn finish(&self) -> Result<ColumnDigests> {
        match self {
            Self::Values { digests, block_rows } => {
                let done = digests.finish()?;
                Ok(ColumnDigests {
                    form: DigestForm::Values,
                    block_rows: *block_rows,
                    whole: done.whole.crc64_nvme(),
                    blocks: done.blocks.into_iter().map(Digest::crc64_nvme).collect(),
                })
            }
            Self::Stored(tiles) => Ok(tiles.finish()),
        }
    }
}

/// Digests of a column that one rank has computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RankShare {
    /// Digests of values.
    Values(Additions),
    /// Digests of stored chunks.
    Stored(Vec<BlockPart>),
}

impl RankShare {
    /// Returns whether there are no digests.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Values(additions) => additions.len_bytes == 0,
            Self::Stored(parts) => parts.is_empty(),
        }
    }
}

/// Digests of tiles that are moved as stored. Blocks are whole bands of chunks along the first axis.
#[derive(Debug)]
pub struct StoredTiles {
    tiles: Vec<OnceLock<Digest>>,
    band_tiles: u64,
    band_rows: u64,
}

impl StoredTiles {
    /// Creates empty digests for the tiles of `array`.
    pub fn new(array: &ArrayPlan) -> Self {
        let bands = array.shape[0].div_ceil(array.tile_shape[0].max(1)).max(1);
        let tiles = (0..array.tile_count()).map(|_| OnceLock::new()).collect();
        Self { tiles, band_tiles: (array.tile_count() / bands).max(1), band_rows: array.tile_shape[0] }
    }

    /// Adds tile `index`: its chunk and the mask of skipped filters, or `None` if it was never written. Returns the
    /// added part. Its block number is the tile's number.
    pub fn add(&self, index: u64, chunk: Option<(u32, &[u8])>) -> BlockPart {
        let mut head = [0xFF; 12];
        if let Some((filter_mask, stored)) = chunk {
            head[..4].copy_from_slice(&filter_mask.to_le_bytes());
            head[4..].copy_from_slice(&(stored.len() as u64).to_le_bytes());
        }
        let digest = Digest::of(&head).then(Digest::of(chunk.map_or(&[], |(_, stored)| stored)));
        self.set(index, digest);
        digest.part(index)
    }

    fn set(&self, index: u64, digest: Digest) {
        // A tile is written once; if it were written again, its bytes would be the same.
        let _ = self.tiles[index as usize].set(digest);
    }

    /// Returns the digests; tiles that were not added are left out of them.
    pub fn finish(&self) -> ColumnDigests {
        let mut gathered = InOrder::new(DigestForm::Stored, self.band_rows);
        for band in self.tiles.chunks(self.band_tiles as usize) {
            let all = band.iter().filter_map(OnceLock::get).fold(Digest::default(), |all, tile| all.then(*tile));
            gathered.add_digest(self.band_rows, all);
        }
        gathered.finish()
    }
}

/// Digests of one column whose rows arrive in order.
#[derive(Debug)]
pub struct InOrder {
    form: DigestForm,
    block_rows: u64,
    row: u64,
    block: Digest,
    whole: Digest,
    blocks: Vec<u64>,
}

impl InOrder {
    /// Creates empty digests with blocks of `block_rows` rows.
    pub fn new(form: DigestForm, block_rows: u64) -> Self {
        Self {
            form,
            block_rows: block_rows.max(1),
            row: 0,
            block: Digest::default(),
            whole: Digest::default(),
            blocks: Vec::new(),
        }
    }

    /// Computes the digests of all `values`, in rows of `row_len_bytes` each.
    pub fn of_values(values: &[u8], row_len_bytes: u64) -> ColumnDigests {
        let rows = values.len() as u64 / row_len_bytes.max(1);
        let mut gathered = Self::new(DigestForm::Values, block_rows(row_len_bytes, rows));
        for block in values.chunks((gathered.block_rows * row_len_bytes.max(1)) as usize) {
            gathered.add(gathered.block_rows, block);
        }
        gathered.finish()
    }

    /// Adds the next `rows`, which must not extend beyond the end of a block.
    pub fn add(&mut self, rows: u64, bytes: &[u8]) {
        self.add_digest(rows, Digest::of(bytes));
    }

    fn add_digest(&mut self, rows: u64, digest: Digest) {
        self.block = self.block.then(digest);
        self.whole = self.whole.then(digest);
        self.row += rows;
        if self.row.is_multiple_of(self.block_rows) {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        self.blocks.push(std::mem::take(&mut self.block).crc64_nvme());
    }

    /// Returns the digests.
    pub fn finish(mut self) -> ColumnDigests {
        if !self.row.is_multiple_of(self.block_rows) {
            self.end_block();
        }
        let Self { form, block_rows, whole, blocks, .. } = self;
        ColumnDigests { form, block_rows, whole: whole.crc64_nvme(), blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_order_give_the_digests_of_rows_in_any_order() {
        let values: Vec<u8> = (0..5_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (row_len_bytes, rows) = (1000, 5000);
        let block_rows = block_rows(row_len_bytes, rows);
        let any = RowBlockDigests::new(block_rows * row_len_bytes, rows * row_len_bytes);
        for start in (0..values.len()).step_by(70_000).collect::<Vec<_>>().into_iter().rev() {
            any.add(start as u64, &values[start..(start + 70_000).min(values.len())]).unwrap();
        }
        let gathered = ColumnDigester::Values { digests: any, block_rows };
        let in_order = InOrder::of_values(&values, row_len_bytes);
        assert_eq!(gathered.finish().unwrap(), in_order);
        assert_eq!(in_order.blocks.len() as u64, rows.div_ceil(block_rows));
    }

    #[test]
    fn what_tiles_added_can_be_added_again_by_a_later_run() {
        let array =
            ArrayPlan { shape: vec![5, 4], tile_shape: vec![2, 2], element_len_bytes: 1, ..ArrayPlan::default() };
        let first = StoredTiles::new(&array);
        let parts: Vec<BlockPart> =
            (0..6).map(|tile| first.add(tile, (tile != 4).then_some((tile as u32, b"chunk".as_slice())))).collect();
        let later = ColumnDigester::Stored(StoredTiles::new(&array));
        for part in parts {
            assert!(later.takes_part(part));
            later.add_part(part).unwrap();
        }
        assert!(!later.takes_part(BlockPart { block: 6, linear: 0, len_bytes: 0 }));
        assert_eq!(later.finish().unwrap(), first.finish());
    }

    #[test]
    fn stored_tiles_are_distinguished_from_missing_ones() {
        let array =
            ArrayPlan { shape: vec![5, 4], tile_shape: vec![2, 2], element_len_bytes: 1, ..ArrayPlan::default() };
        let digests = |last: Option<(u32, &[u8])>| {
            let tiles = StoredTiles::new(&array);
            for tile in 0..5 {
                tiles.add(tile, Some((0, b"chunk")));
            }
            tiles.add(5, last);
            tiles.finish()
        };
        let (full, missing, masked) = (digests(Some((0, b"chunk"))), digests(None), digests(Some((1, b"chunk"))));
        assert_eq!((full.block_rows, full.blocks.len()), (2, 3));
        assert_eq!(full.blocks[..2], missing.blocks[..2]);
        assert!(full.blocks[2] != missing.blocks[2] && full.blocks[2] != masked.blocks[2]);
        assert!(full.whole != missing.whole && full.whole != masked.whole);
    }
}
