//! Reading by files: a rank reads the pieces of its inputs that tiles of its group need, and sends them to the owners
//! of these tiles round by round.
//!
//! Chunks that are moved as stored are read by their owner, which is the home rank of the input if that keeps the
//! balance. Invariant: a tile is assembled from all its pieces, or the run fails.

use super::groups::ReadingGroups;
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::Route;
use crate::schema::ABSENT;
use crate::write::reader_pool::ReaderPool;
use crate::write::tiles::MergeWork;
use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::engine::Round;
use raddle_core::parallel::for_each;
use raddle_core::plan::extent::{BoxSource, BoxTarget, Coordinates, copy_box};
use raddle_core::plan::{ArrayPlan, Piece, Tile};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, Rank};
use raddle_core::ranks::received::{ReceivedPieces, SentTraffic};
use raddle_core::ranks::regroup::{Outbox, piece_len_bytes};
use raddle_core::report::{StageTable, StageTimer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of values that a rank sends in one exchange, unless a single piece is longer. A round may take several
/// exchanges.
const OUTBOX_LEN_BYTES: u64 = 8 << 20;

/// Number of copies of a piece in memory: in the message and in transit.
const COPIES: u64 = 2;

/// States that ranks report after an exchange.
const DONE: u64 = 0;
const HAS_MORE: u64 = 1;
const FAILED: u64 = 2;

/// Reading by files on one rank.
pub(crate) struct FileReading<'p> {
    groups: ReadingGroups,
    rank: Rank,
    threads: usize,
    cancel: &'p CancelToken,
    received: ReceivedPieces,
    /// Readers, which keep their open files and chunks from round to round.
    readers: ReaderPool<'p>,
    /// Whether a rank could not read everything, in which case pieces are missing and the run fails.
    is_cut_short: AtomicBool,
}

/// A piece that this rank reads for another rank.
struct RequestedPiece {
    tile: Tile,
    owner: Rank,
    piece: Piece,
    len_bytes: u64,
}

impl<'p> FileReading<'p> {
    /// Prepares reading by files on `rank`, with up to `threads` threads.
    pub(crate) fn new(groups: ReadingGroups, rank: Rank, threads: usize, watch: &Watch<'p>) -> Self {
        Self {
            groups,
            rank,
            threads,
            cancel: watch.cancel,
            received: ReceivedPieces::default(),
            readers: ReaderPool::default(),
            is_cut_short: AtomicBool::new(false),
        }
    }

    /// Returns the memory for reading and sending, without received pieces; `longest` is the size of the largest tile,
    /// and `reader` is the size of a reader.
    pub(crate) fn len_bytes(threads: usize, longest: u64, reader: u64) -> u64 {
        let of_threads = (threads as u64).saturating_mul(reader.saturating_add(longest));
        COPIES.saturating_mul(OUTBOX_LEN_BYTES.saturating_add(longest)).saturating_add(of_threads)
    }

    /// Returns the home rank of an input.
    pub(crate) fn keeper(&self, input: u32) -> Rank {
        self.groups.home(input)
    }

    /// Calls `each` with the home rank and the length of each piece of a tile.
    pub(crate) fn holders(&self, array: &ArrayPlan, tile: Tile, each: &mut dyn FnMut(Rank, u64)) {
        for piece in array.pieces(tile.index) {
            each(self.groups.home(piece.input), elements(&piece).saturating_mul(array.element_len_bytes));
        }
    }

    /// Returns the memory for the received pieces of a tile.
    pub(crate) fn received_len_bytes(&self, work: &MergeWork<'p>, tile: Tile) -> u64 {
        let (column, array) = work.array(tile);
        if !is_sent(work, column) {
            return 0;
        }
        let of_piece = |piece: Piece| piece_len_bytes(array.shape.len(), elements(&piece) * array.element_len_bytes);
        let len_bytes = array.pieces(tile.index).map(of_piece).fold(0, u64::saturating_add);
        COPIES.saturating_mul(len_bytes)
    }

    /// Returns whether another rank reads the piece of `input` in a tile of this rank.
    pub(crate) fn is_received(&self, work: &MergeWork<'p>, column: u32, input: u32) -> bool {
        is_sent(work, column) && is_stored(work, column, input) && self.groups.reader(self.rank, input) != self.rank
    }

    /// Collective. Sends the pieces of this round that this rank reads for others, and receives those for its own
    /// tiles.
    pub(crate) fn regroup(
        &self,
        work: &MergeWork<'p>,
        round: &Round<'_>,
        communicator: &dyn Communicator,
    ) -> Result<()> {
        self.received.begin_round();
        let mut wanted = round.tiles().flat_map(|(tile, owner)| self.wanted(work, tile, owner));
        loop {
            let timer = StageTimer::start();
            let (outbox, read) = self.fill(work, &mut wanted, communicator.size());
            let state = match &read {
                Ok(true) => HAS_MORE,
                Ok(false) => DONE,
                Err(_) => FAILED,
            };
            // Also if reading failed, because the other ranks are waiting for it.
            self.received.exchange(outbox, &timer, communicator)?;
            let states = communicator.all_gather_u64(state)?;
            if states.contains(&FAILED) {
                self.is_cut_short.store(true, Ordering::Relaxed);
                return match read {
                    // The engine checks for cancellation, and knows which rank was the first.
                    Err(MergeError::Cancelled) => Ok(()),
                    read => read.map(drop),
                };
            }
            if !states.contains(&HAS_MORE) {
                return Ok(());
            }
        }
    }

    /// Returns the pieces of a tile of `owner` that this rank reads for it.
    fn wanted(&self, work: &MergeWork<'p>, tile: Tile, owner: Rank) -> impl Iterator<Item = RequestedPiece> {
        let (column, array) = work.array(tile);
        let is_other = owner != self.rank && is_sent(work, column);
        let pieces = is_other.then(|| array.pieces(tile.index)).into_iter().flatten();
        let is_read_here = move |piece: &Piece| {
            self.groups.reader(owner, piece.input) == self.rank && is_stored(work, column, piece.input)
        };
        pieces.filter(is_read_here).map(move |piece| {
            let len_bytes = elements(&piece) * array.element_len_bytes;
            RequestedPiece { tile, owner, piece, len_bytes }
        })
    }

    /// Reads the next pieces, up to the size of an exchange; returns whether there may be more.
    fn fill(
        &self,
        work: &MergeWork<'p>,
        wanted: &mut impl Iterator<Item = RequestedPiece>,
        ranks: usize,
    ) -> (Outbox, Result<bool>) {
        let (mut some, mut len_bytes) = (Vec::new(), 0);
        while len_bytes < OUTBOX_LEN_BYTES
            && let Some(next) = wanted.next()
        {
            len_bytes += piece_len_bytes(next.piece.target.len(), next.len_bytes);
            some.push(next);
        }
        let outbox = Mutex::new(Outbox::new(ranks));
        let lend = || self.readers.lend(|| work.column_reader());
        let read = for_each(&some, self.threads, self.cancel, lend, |lent, wanted| -> Result<()> {
            let Some((reader, values)) = lent.parts() else { return Ok(()) };
            let RequestedPiece { tile, owner, piece, len_bytes } = wanted;
            let (column, _) = work.array(*tile);
            values.clear();
            values.resize(*len_bytes as usize, 0);
            let origin = Coordinates::from_elem(0, piece.target.len());
            let target = BoxTarget { bytes: values, shape: &piece.source.count, origin: &origin };
            reader.read_piece(column, piece.input, &piece.source, target)?;
            let mut outbox = outbox.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(outbox.put(*owner, *tile, &piece.target, &piece.source.count, values)?)
        });
        match read {
            Ok(()) => {
                let outbox = outbox.into_inner().unwrap_or_else(PoisonError::into_inner);
                (outbox, Ok(len_bytes >= OUTBOX_LEN_BYTES))
            }
            Err(error) => (Outbox::new(ranks), Err(error)),
        }
    }

    /// Copies the `expected` elements that other ranks read for a tile into it.
    pub(crate) fn place(&self, array: &ArrayPlan, tile: Tile, expected: u64, raw: &mut [u8]) -> Result<()> {
        let mut placed = 0;
        for inbox in self.received.inboxes(tile) {
            for piece in inbox.pieces(tile) {
                let origin = Coordinates::from_elem(0, piece.count.len());
                let from = BoxSource { bytes: piece.bytes, shape: &piece.count, origin: &origin };
                let target = BoxTarget { bytes: &mut *raw, shape: &array.tile_shape, origin: &piece.target };
                copy_box(from, target, &piece.count, array.element_len_bytes as usize)?;
                placed += piece.count.iter().product::<u64>();
            }
        }
        // If a rank failed, the engine stops before this tile is written.
        if placed == expected || self.is_cut_short.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(CoreError::MessageContent { operation: "read for other ranks", rank: self.rank }.into())
    }

    /// Returns the traffic that this rank sent.
    pub(crate) fn sent(&self) -> SentTraffic {
        self.received.sent()
    }

    /// Adds the counts of all readers to `stages`. It is called once, after all rounds.
    pub(crate) fn retire(&self, stages: &mut StageTable) {
        self.readers.retire(stages);
    }
}

/// Returns whether pieces of a column are sent. They are not if a tile is a stored chunk, its column is computed, or
/// its tiles are assembled in groups.
pub(crate) fn is_sent(work: &MergeWork<'_>, column: u32) -> bool {
    let plan = work.plan();
    matches!(plan.columns[column as usize].route, Route::Encoded { .. } | Route::Raw { .. })
        && !plan.derived.has(column)
        && !work.regrouper().has(column)
}

/// Returns whether an input stores its rows of a column.
fn is_stored(work: &MergeWork<'_>, column: u32, input: u32) -> bool {
    work.plan().schema.columns[column as usize].facts[input as usize].template != ABSENT
}

fn elements(piece: &Piece) -> u64 {
    piece.source.count.iter().product()
}
