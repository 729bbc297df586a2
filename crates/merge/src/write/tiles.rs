//! The tiles of a merge for the engine: pieces are read from the inputs, digested, then encoded or moved as stored.
//!
//! Digests are computed when a value first appears in its output tile, from the bytes that are then encoded, and
//! combined by position, so that they do not depend on tiling, threads or order. Chunks that are moved as stored are
//! decoded for this. A [`TileObserver`] sees the values at the same point. Invariant: every row of a column is digested
//! exactly once; contributions of a tile to a digest are also noted ([`TileWork::note`]), so that a later run that
//! keeps the tile can add them ([`MergeWork::absorb`]).

mod trial;

pub(crate) use trial::RegionTrial;

use crate::append::growth::DigestedPart;
use crate::error::{MergeError, Result};
use crate::plan::cost::TileCosts;
use crate::plan::fill_pattern::FillPattern;
use crate::plan::memory::{ReaderMemory, converted_len_bytes, converting_len_bytes, stored_bound_len_bytes};
use crate::plan::{MergePlan, Route};
use crate::schema::{ColumnIndex, display_path};
use crate::verify::digests::Digests;
use crate::verify::digests::blocks::{ColumnDigester, RankShare};
use crate::verify::digests::known_rows;
use crate::write::reading::FileReading;
use crate::write::regrouping::{FillerState, Regrouper};
use crate::write::tile_observer::TileObserver;
use crate::write::values::ColumnReader;
use raddle_codec::{EncodeState, is_all};
use raddle_core::CoreError;
use raddle_core::digest::BlockPart;
use raddle_core::engine::{Assignment, Context, EngineError, Round, TileForm, TileWork};
use raddle_core::memory::MemoryBudget;
use raddle_core::parallel::for_each;
use raddle_core::plan::extent::{BoxSource, BoxTarget, Coordinates, Extent, copy_box, fill_with, values_len_bytes};
use raddle_core::plan::{ArrayPlan, Tile};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, Rank};
use raddle_core::report::StageTable;
use raddle_core::report::progress::{Observer, Stage, Watch};
use raddle_hdf5::source::InputPool;
use std::ops::Range;
use std::path::Path;

/// The tiles of a merge.
pub struct MergeWork<'p> {
    plan: &'p MergePlan,
    pool: &'p InputPool,
    fills: Vec<FillPattern>,
    digests: Vec<Option<ColumnDigester>>,
    costs: TileCosts,
    /// Size of the largest tile that is decoded only for its digest.
    longest_decoded_len_bytes: u64,
    /// Memory that a reader needs for the inputs' chunks.
    reader: ReaderMemory,
    /// Memory that compressors and conversions of values need for the most demanding tiles.
    converting_len_bytes: u64,
    /// Whether contributions to the digests are recorded for a later run.
    is_recorded: bool,
    tile_observer: Option<&'p dyn TileObserver>,
    /// Reading by files, if ranks read inputs for each other.
    files: Option<FileReading<'p>>,
    /// Assembling of tiles in groups.
    regrouper: Regrouper<'p>,
}

/// State of one worker thread.
pub struct MergeWorker<'p> {
    reader: ColumnReader<'p>,
    encode: EncodeState,
    /// Buffer for a tile that is decoded only for its digest.
    decoded: Vec<u8>,
    /// Contributions to digests since the last note, with their columns.
    parts: Vec<(u32, BlockPart)>,
    /// Tiles of the current group, for layouts that fill several tiles at once.
    filler: FillerState,
}

impl<'p> MergeWork<'p> {
    /// Creates the work for the tiles of `plan`, whose inputs `pool` opens.
    pub fn new(plan: &'p MergePlan, pool: &'p InputPool) -> Self {
        Self::of_rank(plan, pool, true)
    }

    /// Like [`Self::new`], on one of several ranks; `is_first` is true on the first.
    pub(crate) fn of_rank(plan: &'p MergePlan, pool: &'p InputPool, is_first: bool) -> Self {
        let fills = plan.schema.columns.iter().map(|column| FillPattern::of(column.model())).collect();
        let digests: Vec<_> =
            (0..plan.columns.len() as u32).map(|column| ColumnDigester::of(plan, column, is_first)).collect();
        let decoded =
            plan.columns.iter().zip(&digests).filter_map(|(planned, digests)| match (&planned.route, digests) {
                (Route::Verbatim { array }, Some(ColumnDigester::Values { .. })) => {
                    Some(plan.tiles.arrays[*array as usize].tile_len_bytes())
                }
                _ => None,
            });
        let longest_decoded_len_bytes = decoded.max().unwrap_or(0);
        let memory_limit_bytes = plan.options.memory_limit_bytes;
        Self {
            plan,
            pool,
            fills,
            digests,
            costs: TileCosts::of(plan),
            reader: ReaderMemory::of_tiles(plan, memory_limit_bytes),
            longest_decoded_len_bytes,
            converting_len_bytes: converting_len_bytes(plan),
            is_recorded: plan.is_recordable(),
            tile_observer: None,
            files: None,
            regrouper: Regrouper::new(plan, 1, memory_limit_bytes),
        }
    }

    /// Configures the work for one of `ranks` ranks with this memory.
    #[must_use]
    pub(crate) fn for_ranks(mut self, ranks: usize, memory_limit_bytes: u64) -> Self {
        self.reader = ReaderMemory::of_tiles(self.plan, memory_limit_bytes);
        self.regrouper = Regrouper::new(self.plan, ranks, memory_limit_bytes);
        self
    }

    /// Configures the observer of work that precedes the tiles.
    #[must_use]
    pub(crate) fn observed(mut self, observer: &'p dyn Observer) -> Self {
        self.regrouper = self.regrouper.observed(observer);
        self
    }

    /// Configures reading by files.
    #[must_use]
    pub(crate) fn by_files(mut self, files: FileReading<'p>) -> Self {
        self.files = Some(files);
        self
    }

    /// Undoes [`Self::by_files`].
    #[must_use]
    pub(crate) fn by_tiles(self) -> Self {
        Self { files: None, ..self }
    }

    /// Returns the assembling of tiles in groups.
    pub(crate) fn regrouper(&self) -> &Regrouper<'p> {
        &self.regrouper
    }

    /// Returns the state of reading by files; `None` if inputs are read by tiles.
    pub(crate) fn files(&self) -> Option<&FileReading<'p>> {
        self.files.as_ref()
    }

    /// Returns the rank that keeps an input open and checks whether it changes.
    pub(crate) fn keeper(&self, input: u32, ranks: usize) -> Rank {
        self.files.as_ref().map_or(input as usize % ranks, |files| files.keeper(input))
    }

    /// Returns the memory with which `threads` threads read for other ranks, without the received pieces.
    pub(crate) fn files_len_bytes(&self, threads: usize) -> u64 {
        let longest = self.plan.tiles.arrays.iter().map(ArrayPlan::tile_len_bytes).max().unwrap_or(0);
        FileReading::len_bytes(threads, longest, self.reader.len_bytes.saturating_add(converted_len_bytes(self.plan)))
    }

    /// Returns the plan of the tiles.
    pub(crate) fn plan(&self) -> &'p MergePlan {
        self.plan
    }

    /// Returns the observer of the tiles; `None` if there is none.
    pub(crate) fn tile_observer(&self) -> Option<&'p dyn TileObserver> {
        self.tile_observer
    }

    /// Adds a tile observer that sees all values.
    #[must_use]
    pub fn accompanied(mut self, tile_observer: Option<&'p dyn TileObserver>) -> Self {
        self.tile_observer = tile_observer;
        let whole_is_wanted = |column: ColumnIndex, dims: &[u64]| {
            tile_observer.is_some_and(|tile_observer| tile_observer.wants(column, &Extent::whole(dims)))
        };
        let decoded = (0..).zip(&self.plan.columns).filter_map(|(column, planned)| match planned.route {
            Route::Verbatim { array } if whole_is_wanted(column, &planned.dims) => {
                Some(self.plan.tiles.arrays[array as usize].tile_len_bytes())
            }
            _ => None,
        });
        self.longest_decoded_len_bytes = decoded.chain([self.longest_decoded_len_bytes]).max().unwrap_or(0);
        self
    }

    /// Converts an error of the engine, naming the dataset if its chunks take too much memory; `output` is the file
    /// that the engine writes.
    pub fn failed(&self, error: EngineError<MergeError>, output: &Path) -> MergeError {
        self.reader.explain(self.plan, MergeError::from_engine(error, output))
    }

    /// Creates a reader of columns for one thread.
    pub fn column_reader(&self) -> ColumnReader<'p> {
        ColumnReader::new(self.plan, self.pool)
    }

    /// Returns the digests of values that came in tiles, after all tiles have been written.
    pub fn finish(&self) -> Result<Digests> {
        let columns = self.digests.iter().map(|digests| digests.as_ref().map(ColumnDigester::finish).transpose());
        let runs = (0..).zip(&self.digests).filter_map(|(column, digests)| {
            let Some(ColumnDigester::Values { digests, .. }) = digests else { return None };
            let row = self.plan.growth.as_ref().map_or(0, |growth| growth.first_digested_row(self.plan, column));
            let from = row * self.plan.row_len_bytes(column);
            let between = |bytes: Range<u64>| digests.between(bytes.start.checked_sub(from)?..bytes.end - from);
            Some((column, known_rows::runs(self.plan, column, between)))
        });
        Ok(Digests {
            columns: columns.collect::<Result<_>>()?,
            runs: runs.filter(|(_, runs)| !runs.is_empty()).collect(),
        })
    }

    /// Returns whether a later run may resume from the placed tiles.
    pub fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Collective. Gathers the ranks' contributions to the digests on rank 0.
    pub fn gather_digests(&self, ranks: &dyn Communicator) -> Result<()> {
        const OPERATION: &str = "gather the digests";
        let mut messages = vec![Vec::new(); ranks.size()];
        let encoded = if ranks.rank() == 0 { Ok(Vec::new()) } else { postcard::to_stdvec(&self.shares()) };
        let encoded = encoded.map_err(|_| CoreError::MessageContent { operation: OPERATION, rank: ranks.rank() });
        messages[0] = ranks.agree(OPERATION, encoded.map_err(MergeError::from))?;
        let received = ranks.exchange_bytes(messages)?;
        let added =
            received.iter().enumerate().filter(|(_, message)| !message.is_empty()).try_for_each(|(rank, message)| {
                let shares = postcard::from_bytes::<Vec<(ColumnIndex, RankShare)>>(message).ok();
                let added = shares.and_then(|shares| {
                    shares
                        .iter()
                        .try_for_each(|(column, share)| self.digests.get(*column as usize)?.as_ref()?.add_share(share))
                });
                added.ok_or_else(|| MergeError::from(CoreError::MessageContent { operation: OPERATION, rank }))
            });
        ranks.agree(OPERATION, added)
    }

    fn shares(&self) -> Vec<(ColumnIndex, RankShare)> {
        let gathered =
            (0..).zip(&self.digests).filter_map(|(column, digests)| Some((column, digests.as_ref()?.share())));
        gathered.filter(|(_, share)| !share.is_empty()).collect()
    }

    /// Adds the contributions in the `note` of an earlier run's batch to the digests; returns `None` without adding
    /// anything if the note refers to columns or blocks that the plan does not have.
    pub fn absorb(&self, note: &[u8]) -> Option<()> {
        let (words, []) = note.as_chunks::<8>() else { return None };
        let (parts, []) = words.as_chunks::<NOTE_WORDS>() else { return None };
        let found = |part: &[[u8; 8]; NOTE_WORDS]| {
            let [column, block, linear, len_bytes] = part.map(u64::from_le_bytes);
            let digests = self.digests.get(usize::try_from(column).ok()?)?.as_ref()?;
            Some((digests, BlockPart { block, linear, len_bytes }))
        };
        if parts.iter().any(|part| found(part).is_none_or(|(digests, part)| !digests.takes_part(part))) {
            return None;
        }
        parts.iter().filter_map(found).try_for_each(|(digests, part)| digests.add_part(part)).ok()
    }

    /// Digests consecutive rows of a column, at the position of the tiles that would contain them. Does nothing if the
    /// values of the column are not digested.
    pub fn digest_rows(&self, column: ColumnIndex, rows: &Range<u64>, values: &[u8]) -> Result<()> {
        let Some(ColumnDigester::Values { digests, .. }) = &self.digests[column as usize] else { return Ok(()) };
        let dims = &self.plan.columns[column as usize].dims;
        let mut extent = Extent::whole(dims);
        (extent.start[0], extent.count[0]) = (rows.start, rows.end - rows.start);
        let origin = Coordinates::from_elem(0, dims.len());
        let source = BoxSource { bytes: values, shape: &extent.count, origin: &origin };
        let element_len_bytes = self.plan.schema.columns[column as usize].model().datatype.class.len_bytes();
        Ok(digests.add_box(dims, &extent, source, element_len_bytes as usize)?)
    }

    /// Assembles the values of a tile in `raw`; all of them are read on this rank.
    fn gather(&self, reader: &mut ColumnReader<'p>, tile: Tile, raw: &mut [u8]) -> Result<()> {
        self.gather_cut(reader, tile, self.array(tile).1, None, raw)
    }

    /// Like [`gather`](Self::gather), with the tile's array split into the tiles of `array`. Pieces read by other ranks
    /// are taken from `files`.
    fn gather_cut(
        &self,
        reader: &mut ColumnReader<'p>,
        tile: Tile,
        array: &ArrayPlan,
        files: Option<&FileReading<'p>>,
        raw: &mut [u8],
    ) -> Result<()> {
        let column = self.array(tile).0;
        let fill = &self.fills[column as usize];
        if !array.is_full(tile.index) || array.has_holes(tile.index) {
            fill_with(raw, &fill.pattern);
        }
        let Some(files) = files else {
            return reader.read_pieces(column, array.pieces(tile.index), raw, &array.tile_shape);
        };
        let mut received = 0;
        for piece in array.pieces(tile.index) {
            if files.is_received(self, column, piece.input) {
                received += piece.source.count.iter().product::<u64>();
                continue;
            }
            let target = BoxTarget { bytes: &mut *raw, shape: &array.tile_shape, origin: &piece.target };
            reader.read_any(column, piece.input, &piece.source, target)?;
        }
        files.place(array, tile, received, raw)
    }

    /// Copies the values of a tile, which have no padding, to `raw`.
    fn place(&self, tile: Tile, values: &[u8], raw: &mut [u8]) -> Result<()> {
        let (column, array) = self.array(tile);
        if array.is_full(tile.index) {
            raw.copy_from_slice(values);
            return Ok(());
        }
        fill_with(raw, &self.fills[column as usize].pattern);
        let count = array.tile_extent(tile.index).count;
        let origin = Coordinates::from_elem(0, count.len());
        let from = BoxSource { bytes: values, shape: &count, origin: &origin };
        let target = BoxTarget { bytes: raw, shape: &array.tile_shape, origin: &origin };
        Ok(copy_box(from, target, &count, array.element_len_bytes as usize)?)
    }

    /// Returns whether the tile observer needs values of a tile.
    fn is_wanted(&self, tile: Tile) -> bool {
        self.tile_observer.is_some_and(|tile_observer| {
            let (column, array) = self.array(tile);
            tile_observer.wants(column, &array.tile_extent(tile.index))
        })
    }

    /// Passes the values of a tile to the tile observer, if it needs them.
    fn show(&self, tile: Tile, raw: &[u8]) -> Result<()> {
        let Some(tile_observer) = self.tile_observer.filter(|_| self.is_wanted(tile)) else { return Ok(()) };
        let (column, array) = self.array(tile);
        let extent = array.tile_extent(tile.index);
        let origin = Coordinates::from_elem(0, extent.rank());
        let values = BoxSource { bytes: raw, shape: &array.tile_shape, origin: &origin };
        tile_observer.take(column, &extent, values).map_err(|source| MergeError::TileObserver { source })
    }

    /// Collective. Passes the values of the first `tiles` tiles, which an interrupted run placed, to the tile observer:
    /// they are read again, each by one rank, with up to `threads` threads.
    pub fn replay_kept(
        &self,
        tiles: u64,
        (threads, budget): (usize, &MemoryBudget),
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<()> {
        let index = self.plan.tiles.tile_index();
        let local_tiles = (ranks.rank() as u64..tiles).step_by(ranks.size()).filter_map(|ordinal| index.tile(ordinal));
        let observed = self.show_all(local_tiles.filter(|tile| self.is_wanted(*tile)), (threads, budget), watch);
        ranks.agree("read the kept tiles again", observed)
    }

    /// Reads tiles and passes them to the tile observer.
    fn show_all(
        &self,
        mut tiles: impl Iterator<Item = Tile>,
        (threads, budget): (usize, &MemoryBudget),
        watch: &Watch<'_>,
    ) -> Result<()> {
        let len_bytes = |tile: &Tile| self.array(*tile).1.tile_len_bytes();
        loop {
            let some: Vec<Tile> = tiles.by_ref().take(TILES_AT_ONCE).collect();
            let Some(longest) = some.iter().map(len_bytes).max() else { return Ok(()) };
            let thread_len_bytes = longest + self.reader.len_bytes;
            let fit = (budget.available_bytes() / thread_len_bytes).clamp(1, threads.max(1) as u64);
            let _permit = budget.try_acquire(fit * thread_len_bytes, "reading kept tiles again")?;
            let state = || (self.column_reader(), vec![0; longest as usize]);
            for_each(&some, fit as usize, watch.cancel, state, |(reader, raw), tile| {
                let raw = &mut raw[..len_bytes(tile) as usize];
                self.gather(reader, *tile, raw)?;
                self.show(*tile, raw)
            })?;
        }
    }

    /// Digests the values of a tile, if values of its column are digested.
    fn digest(&self, parts: &mut Vec<(u32, BlockPart)>, tile: Tile, raw: &[u8]) -> Result<()> {
        let (column, array) = self.array(tile);
        if let Some(ColumnDigester::Values { digests, .. }) = &self.digests[column as usize] {
            let extent = array.tile_extent(tile.index);
            let origin = Coordinates::from_elem(0, extent.rank());
            let digested = match &self.plan.growth {
                None => Some(DigestedPart { shape: Coordinates::from_slice(&array.shape), extent, origin }),
                Some(growth) => growth.digested(self.plan, column, array, extent),
            };
            let Some(DigestedPart { shape, extent, origin }) = digested else { return Ok(()) };
            let source = BoxSource { bytes: raw, shape: &array.tile_shape, origin: &origin };
            let note = &mut |part: BlockPart| {
                if self.is_recorded {
                    note_part(parts, column, part);
                }
            };
            digests.add_box_noting(&shape, &extent, source, array.element_len_bytes as usize, note)?;
        }
        Ok(())
    }

    /// Digests a tile that is moved as stored: its values, or its chunk if values are not digested. The tile observer
    /// sees the values in either case.
    fn digest_moved(&self, worker: &mut MergeWorker<'p>, tile: Tile, chunk: Option<(u32, &[u8])>) -> Result<()> {
        let (column, array) = self.array(tile);
        let mut is_seen = self.is_wanted(tile);
        match &self.digests[column as usize] {
            Some(ColumnDigester::Stored(tiles)) => {
                let part = tiles.add(tile.index, chunk);
                if self.is_recorded {
                    worker.parts.push((column, part));
                }
            }
            Some(ColumnDigester::Values { .. }) => is_seen = true,
            None => {}
        }
        if !is_seen {
            return Ok(());
        }
        let mut decoded = std::mem::take(&mut worker.decoded);
        decoded.resize(array.tile_len_bytes() as usize, 0);
        let gathered = self.gather(&mut worker.reader, tile, &mut decoded);
        let outcome = gathered.and_then(|()| self.digest(&mut worker.parts, tile, &decoded));
        let outcome = outcome.and_then(|()| self.show(tile, &decoded));
        worker.decoded = decoded;
        outcome
    }

    /// Returns the size of the note for tiles that are written one after another.
    pub fn note_len_bytes(&self, tiles: impl Iterator<Item = Tile>) -> u64 {
        let (mut parts, mut last) = (0, None);
        for tile in tiles.filter(|_| self.is_recorded) {
            let (column, array) = self.array(tile);
            let blocks = match &self.digests[column as usize] {
                Some(ColumnDigester::Values { digests, .. }) => {
                    let rows = array.tile_extent(tile.index);
                    let row_len_bytes = array.len_bytes() / array.shape[0].max(1);
                    let last = (rows.end(0) * row_len_bytes).saturating_sub(1);
                    digests.part_of(rows.start[0] * row_len_bytes)..digests.part_of(last) + 1
                }
                Some(ColumnDigester::Stored(_)) => tile.index..tile.index + 1,
                None => continue,
            };
            parts += blocks.end.saturating_sub(blocks.start) - u64::from(last == Some((column, blocks.start)));
            last = blocks.end.checked_sub(1).map(|block| (column, block));
        }
        parts * NOTE_PART_LEN_BYTES
    }

    /// Returns the column and the array of a tile.
    pub(crate) fn array(&self, tile: Tile) -> (u32, &'p ArrayPlan) {
        (self.plan.column_of_array[tile.array as usize], &self.plan.tiles.arrays[tile.array as usize])
    }
}

/// Number of kept tiles listed at once: 1 MiB.
const TILES_AT_ONCE: usize = 1 << 16;

/// Number of words per part of a digest in a note: column, block, CRC, length.
const NOTE_WORDS: usize = 4;
/// Number of bytes per part of a digest in a note.
const NOTE_PART_LEN_BYTES: u64 = NOTE_WORDS as u64 * size_of::<u64>() as u64;

/// Adds a part of a digest. It is merged with the last part if both belong to one block, as happens with neighbouring
/// tiles.
fn note_part(parts: &mut Vec<(u32, BlockPart)>, column: u32, part: BlockPart) {
    match parts.last_mut() {
        Some((last_column, last)) if (*last_column, last.block) == (column, part.block) => {
            last.linear ^= part.linear;
            last.len_bytes += part.len_bytes;
        }
        _ => parts.push((column, part)),
    }
}

impl<'p> TileWork for MergeWork<'p> {
    type Error = MergeError;
    type Worker = MergeWorker<'p>;

    fn worker(&self) -> Result<MergeWorker<'p>> {
        let reader = ColumnReader::new(self.plan, self.pool);
        Ok(MergeWorker {
            reader,
            encode: EncodeState::default(),
            decoded: Vec::new(),
            parts: Vec::new(),
            filler: FillerState::default(),
        })
    }

    fn verbatim(&self, worker: &mut MergeWorker<'p>, tile: Tile, stored: &mut Vec<u8>) -> Result<Option<TileForm>> {
        let (column, array) = self.array(tile);
        if !matches!(self.plan.columns[column as usize].route, Route::Verbatim { .. }) {
            return Ok(None);
        }
        let start = stored.len();
        let found = match array.pieces(tile.index).next() {
            Some(piece) => worker.reader.stored_chunk(column, piece.input, &piece.source.start, stored)?,
            None => None,
        };
        self.digest_moved(worker, tile, found.map(|filter_mask| (filter_mask, &stored[start..])))?;
        Ok(Some(found.map_or(TileForm::Fill, |filter_mask| TileForm::Stored { filter_mask })))
    }

    fn assemble(&self, worker: &mut MergeWorker<'p>, tile: Tile, raw: &mut [u8]) -> Result<()> {
        let MergeWorker { reader, filler, .. } = &mut *worker;
        match self.regrouper.assemble(tile, reader, filler, |values| self.place(tile, values, raw)) {
            Some(assembled) => assembled?,
            None => self.gather_cut(reader, tile, self.array(tile).1, self.files.as_ref(), raw)?,
        }
        self.digest(&mut worker.parts, tile, raw)?;
        self.show(tile, raw)
    }

    fn encode(&self, worker: &mut MergeWorker<'p>, tile: Tile, raw: &[u8], stored: &mut Vec<u8>) -> Result<TileForm> {
        let (column, array) = self.array(tile);
        if let Route::Raw { .. } = self.plan.columns[column as usize].route {
            // Padding of a run is at its end.
            let extent = array.tile_extent(tile.index).count;
            let len_bytes = values_len_bytes(&extent, array.element_len_bytes);
            stored.extend_from_slice(&raw[..len_bytes as usize]);
            return Ok(TileForm::Stored { filter_mask: 0 });
        }
        let Route::Encoded { encoder, .. } = &self.plan.columns[column as usize].route else {
            return Ok(TileForm::Fill);
        };
        let fill = &self.fills[column as usize];
        if fill.is_returned_by_readers && is_all(raw, &fill.pattern) {
            return Ok(TileForm::Fill);
        }
        let filter_mask = encoder.encode(&mut worker.encode, raw, stored).map_err(|source| MergeError::Codec {
            object: display_path(self.plan.schema.column_path(column)),
            source,
        })?;
        let filter_mask = filter_mask | self.plan.columns[column as usize].skipped_filters;
        Ok(TileForm::Stored { filter_mask })
    }

    fn stored_bound_len_bytes(&self, tile: Tile) -> usize {
        let (column, array) = self.array(tile);
        stored_bound_len_bytes(&self.plan.columns[column as usize].route, array.tile_len_bytes()) as usize
    }

    fn worker_len_bytes(&self) -> u64 {
        self.reader
            .len_bytes
            .saturating_add(self.longest_decoded_len_bytes)
            .saturating_add(self.converting_len_bytes)
            .saturating_add(self.regrouper.worker_len_bytes())
    }

    fn shared_len_bytes(&self) -> u64 {
        self.regrouper.shared_len_bytes()
    }

    fn begin(&self, assignment: Assignment, context: &Context<'_>) -> Result<()> {
        self.regrouper.begin(self.pool, assignment, context)
    }

    fn cost(&self, tile: Tile, _raw_len_bytes: u64) -> u64 {
        self.costs.of_tile(tile, self.array(tile).1)
    }

    fn holders(&self, tile: Tile, each: &mut dyn FnMut(Rank, u64)) {
        if let Some(files) = &self.files {
            files.holders(self.array(tile).1, tile, each);
        }
    }

    fn regroup(&self, round: &Round<'_>, communicator: &dyn Communicator) -> Result<()> {
        self.files.as_ref().map_or(Ok(()), |files| files.regroup(self, round, communicator))
    }

    fn received_len_bytes(&self, tile: Tile) -> u64 {
        self.files.as_ref().map_or(0, |files| files.received_len_bytes(self, tile))
    }

    fn note(&self, worker: &mut MergeWorker<'p>, note: &mut Vec<u8>) {
        for (column, BlockPart { block, linear, len_bytes }) in worker.parts.drain(..) {
            let words: [u64; NOTE_WORDS] = [u64::from(column), block, linear, len_bytes];
            for word in words {
                note.extend_from_slice(&word.to_le_bytes());
            }
        }
    }

    fn retire(&self, worker: MergeWorker<'p>, stages: &mut StageTable) {
        stages.get_mut(Stage::Restructure).add(&worker.filler.restructuring());
        worker.reader.retire(stages);
    }
}
