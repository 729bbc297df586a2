//! How the engine makes this product's tiles: pieces read from the inputs, digested, encoded or moved as stored.
//!
//! Digests are taken where a value is first seen in its output tile, from the bytes that are then encoded, and combined
//! by position, so that they do not depend on tiling, threads or order.
//! Invariant: every row of a column is digested exactly once; whatever a tile adds to a digest is also noted
//! ([`TileWork::note`]), so that a later run that keeps the tile has it ([`MergeWork::absorb`]).

use crate::error::{MergeError, Result};
use crate::plan::{MergePlan, Route};
use crate::schema::{ABSENT, display_path};
use crate::values::{ColumnReader, FillPattern};
use raddle_codec::{EncodeState, is_all};
use raddle_core::digest::{BlockDigests, BlockPart, Digest, RowBlockDigests};
use raddle_core::engine::{TileForm, TileWork};
use raddle_core::extent::{BoxSource, BoxTarget, Coordinates, fill_with};
use raddle_core::plan::{ArrayPlan, Tile};
use raddle_core::report::StageTable;
use raddle_hdf5::source::InputPool;

/// Raw bytes per digest block. Small enough to locate a damaged place, large enough that digests are 2 ppm of the data.
const DIGEST_BLOCK_LEN_BYTES: u64 = 4 << 20;

/// The tiles of a merge.
pub struct MergeWork<'p> {
    plan: &'p MergePlan,
    pool: &'p InputPool,
    fills: Vec<FillPattern>,
    digests: Vec<Option<RowBlockDigests>>,
    /// Whether a later run may want to know what was added to the digests.
    is_recorded: bool,
}

/// State of one worker thread.
pub struct MergeWorker<'p> {
    reader: ColumnReader<'p>,
    encode: EncodeState,
    /// What the tiles since the last note added to digests, with their columns.
    parts: Vec<(u32, BlockPart)>,
}

/// Digests of an executed merge.
#[derive(Debug, Clone)]
pub struct Digests {
    /// One per column of the schema; `None` where values do not pass the engine (file-local, direct) or pass unseen
    /// (moved as stored).
    pub columns: Vec<Option<BlockDigests>>,
}

impl Digests {
    /// One digest over all columns, in schema order.
    pub fn whole(&self) -> u64 {
        let columns = self.columns.iter().flatten();
        columns.fold(Digest::default(), |whole, column| whole.then(column.whole)).crc64_nvme()
    }
}

impl<'p> MergeWork<'p> {
    /// The tiles of `plan`, whose inputs `pool` opens.
    pub fn new(plan: &'p MergePlan, pool: &'p InputPool) -> Self {
        let fills = plan.schema.columns.iter().map(|column| FillPattern::of(column.model())).collect();
        let digests = plan
            .columns
            .iter()
            .enumerate()
            .map(|(column, planned)| match planned.route {
                Route::Encoded { .. } => {
                    let row_len_bytes = plan.row_len_bytes(column as u32);
                    let block_len_bytes = block_rows(row_len_bytes) * row_len_bytes;
                    Some(RowBlockDigests::new(block_len_bytes, row_len_bytes * planned.dims[0]))
                }
                _ => None,
            })
            .collect();
        Self { plan, pool, fills, digests, is_recorded: plan.options.ordered }
    }

    /// A reader of columns, for one thread.
    pub fn column_reader(&self) -> ColumnReader<'p> {
        ColumnReader::new(self.plan, self.pool)
    }

    /// The digests, when all tiles have been made.
    pub fn finish(&self) -> Result<Digests> {
        let columns = self.digests.iter().map(|digests| digests.as_ref().map(RowBlockDigests::finish).transpose());
        Ok(Digests { columns: columns.collect::<std::result::Result<_, _>>()? })
    }

    /// Adds to the digests what the `note` of an earlier run's batch tells; `None`, and nothing added, if it tells of
    /// columns or blocks that the plan has not.
    pub fn absorb(&self, note: &[u8]) -> Option<()> {
        let (words, []) = note.as_chunks::<8>() else { return None };
        let (parts, []) = words.as_chunks::<NOTE_WORDS>() else { return None };
        let found = |part: &[[u8; 8]; NOTE_WORDS]| {
            let [column, block, linear, len_bytes] = part.map(u64::from_le_bytes);
            let digests = self.digests.get(usize::try_from(column).ok()?)?.as_ref()?;
            Some((digests, BlockPart { block, linear, len_bytes }))
        };
        if parts.iter().any(|part| found(part).is_none_or(|(digests, part)| digests.check_part(part).is_err())) {
            return None;
        }
        parts.iter().filter_map(found).try_for_each(|(digests, part)| digests.add_part(part)).ok()
    }

    fn array(&self, tile: Tile) -> (u32, &ArrayPlan) {
        (self.plan.column_of_array[tile.array as usize], &self.plan.tiles.arrays[tile.array as usize])
    }
}

/// Words per part of a digest in a note: column, block, CRC, length.
const NOTE_WORDS: usize = 4;

/// Joins a part with the last one where both belong to one block, as those of neighbouring tiles do.
fn note_part(parts: &mut Vec<(u32, BlockPart)>, column: u32, part: BlockPart) {
    match parts.last_mut() {
        Some((last_column, last)) if (*last_column, last.block) == (column, part.block) => {
            last.linear ^= part.linear;
            last.len_bytes += part.len_bytes;
        }
        _ => parts.push((column, part)),
    }
}

/// Rows per digest block.
pub fn block_rows(row_len_bytes: u64) -> u64 {
    (DIGEST_BLOCK_LEN_BYTES / row_len_bytes.max(1)).max(1)
}

impl<'p> TileWork for MergeWork<'p> {
    type Error = MergeError;
    type Worker = MergeWorker<'p>;

    fn worker(&self) -> Result<MergeWorker<'p>> {
        Ok(MergeWorker {
            reader: ColumnReader::new(self.plan, self.pool),
            encode: EncodeState::default(),
            parts: Vec::new(),
        })
    }

    fn verbatim(&self, worker: &mut MergeWorker<'p>, tile: Tile, stored: &mut Vec<u8>) -> Result<Option<TileForm>> {
        let (column, array) = self.array(tile);
        if !matches!(self.plan.columns[column as usize].route, Route::Verbatim { .. }) {
            return Ok(None);
        }
        let Some(piece) = array.pieces(tile.index).next() else { return Ok(Some(TileForm::Fill)) };
        let form = match worker.reader.stored_chunk(column, piece.input, &piece.source.start, stored)? {
            Some(filter_mask) => TileForm::Stored { filter_mask },
            None => TileForm::Fill,
        };
        Ok(Some(form))
    }

    fn assemble(&self, worker: &mut MergeWorker<'p>, tile: Tile, raw: &mut [u8]) -> Result<()> {
        let (column, array) = self.array(tile);
        let fill = &self.fills[column as usize];
        if !array.is_full(tile.index) {
            fill_with(raw, &fill.pattern);
        }
        for piece in array.pieces(tile.index) {
            let fact = &self.plan.schema.columns[column as usize].facts[piece.input as usize];
            let target = BoxTarget { bytes: &mut *raw, shape: &array.tile_shape, origin: &piece.target };
            if fact.template == ABSENT {
                fill.fill_box(target, &piece.source.count)?;
            } else {
                worker.reader.read_piece(column, piece.input, &piece.source, target)?;
            }
        }
        if let Some(digests) = &self.digests[column as usize] {
            let extent = array.tile_extent(tile.index);
            let origin = Coordinates::from_elem(0, extent.rank());
            let source = BoxSource { bytes: raw, shape: &array.tile_shape, origin: &origin };
            let (is_recorded, parts) = (self.is_recorded, &mut worker.parts);
            let note = &mut |part: BlockPart| {
                if is_recorded {
                    note_part(parts, column, part);
                }
            };
            digests.add_box_noting(&array.shape, &extent, source, array.element_len_bytes as usize, note)?;
        }
        Ok(())
    }

    fn encode(&self, worker: &mut MergeWorker<'p>, tile: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm> {
        let (column, _) = self.array(tile);
        let Route::Encoded { encoder, .. } = &self.plan.columns[column as usize].route else {
            return Ok(TileForm::Fill);
        };
        let fill = &self.fills[column as usize];
        if fill.is_shown_by_readers && is_all(raw, &fill.pattern) {
            return Ok(TileForm::Fill);
        }
        let filter_mask = encoder.encode(&mut worker.encode, raw, stored).map_err(|source| MergeError::Codec {
            object: display_path(self.plan.schema.column_path(column)),
            source,
        })?;
        Ok(TileForm::Stored { filter_mask })
    }

    fn stored_bound_len_bytes(&self, tile: Tile) -> usize {
        let (column, array) = self.array(tile);
        let raw_len_bytes = array.tile_len_bytes() as usize;
        match &self.plan.columns[column as usize].route {
            Route::Encoded { encoder, .. } => encoder.bound_len_bytes(raw_len_bytes),
            // A stored chunk may be longer than its values: filters can expand, HDF5 sets no bound below 4 GiB.
            _ => raw_len_bytes * 2 + (64 << 10),
        }
    }

    fn worker_len_bytes(&self) -> u64 {
        ColumnReader::LEN_BYTES
    }

    fn note(&self, worker: &mut MergeWorker<'p>, note: &mut Vec<u8>) {
        for (column, BlockPart { block, linear, len_bytes }) in worker.parts.drain(..) {
            for word in [u64::from(column), block, linear, len_bytes] {
                note.extend_from_slice(&word.to_le_bytes());
            }
        }
    }

    fn retire(&self, worker: MergeWorker<'p>, stages: &mut StageTable) {
        worker.reader.retire(stages);
    }
}
