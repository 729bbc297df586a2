//! State shared by the workers and the calling thread: the batches in flight, from hand-out to commit, and their
//! memory.
//!
//! Batches are handed out in plan order and encoded outside the lock. A batch gets its address once the sizes of all
//! earlier batches are known, is written outside the lock, and its claims wait for the calling thread. Invariants:
//! buffers (lent, waiting and free) and received pieces never exceed their limit; a batch takes its memory only after
//! all earlier batches have; after a failure at tile `n`, nothing at or after `n` is begun, but everything before `n`
//! is still encoded, so that the first error in plan order is found.

use super::status::Failure;
use super::{EngineError, OutputRun, PlacedBatch};
use crate::error::CoreError;
use crate::output::addresses::Addresses;
use crate::output::claims::Claim;
use crate::plan::{Batch, TileIndex};
use crate::ranks::message::put_u64s;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Duration;

/// Interval at which a waiting calling thread checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// A batch of this rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalBatch {
    pub batch: Batch,
    /// Output file.
    pub file: u32,
    /// Lane in whose arenas the batch is placed; see [`crate::output::arenas`].
    pub lane: u32,
    /// Length of the pieces that other ranks send for the batch.
    pub received_len_bytes: u64,
}

/// A batch in flight.
#[derive(Debug)]
pub(super) struct InFlightBatch {
    /// Number among the batches of this rank.
    pub number: usize,
    pub batch: Batch,
    /// Stored tiles, back to back.
    pub stored: Vec<u8>,
    /// Claims of the stored tiles. Until the batch is placed, addresses are relative to its start.
    pub claims: Vec<Claim>,
    pub file: u32,
    pub lane: u32,
    /// Address of the first stored byte.
    pub address: u64,
    pub verbatim_tiles: u64,
    /// Length of the stored tiles, set once they are written.
    pub stored_len_bytes: u64,
    /// CRC-64/NVME of the stored tiles and the note of the work, if the run is recorded.
    pub checksum: u64,
    pub note: Vec<u8>,
}

impl InFlightBatch {
    /// Assigns addresses returned by `take` for a length: one per tile if `by_tile`, otherwise one for the whole batch.
    fn place<R>(&mut self, by_tile: bool, mut take: impl FnMut(u64) -> Result<u64, R>) -> Result<(), R> {
        if by_tile {
            for claim in &mut self.claims {
                claim.address = take(claim.len_bytes)?;
            }
            self.address = self.claims.first().map_or(0, |claim| claim.address);
            return Ok(());
        }
        self.address = take(self.stored.len() as u64)?;
        for claim in &mut self.claims {
            claim.address += self.address;
        }
        Ok(())
    }

    /// Returns the stored bytes in as few contiguous runs as the addresses allow. Requires addresses.
    pub(super) fn runs(&self) -> impl Iterator<Item = OutputRun<'_>> {
        let (mut claims, mut rest) = (self.claims.iter().peekable(), self.stored.as_slice());
        std::iter::from_fn(move || {
            let first = claims.next()?;
            let mut end = first.address + first.len_bytes;
            while let Some(next) = claims.next_if(|next| next.address == end) {
                end += next.len_bytes;
            }
            // Stored tiles are contiguous, in the order of their claims.
            let (run, others) = rest.split_at((end - first.address) as usize);
            rest = others;
            Some(OutputRun { file: self.file, address: first.address, bytes: run })
        })
    }

    /// Converts the placed batch for a recorder; takes claims and note.
    pub(super) fn take_placed(&mut self) -> PlacedBatch {
        PlacedBatch {
            first: self.batch.first,
            tiles: self.batch.tiles,
            address: self.address,
            stored_len_bytes: self.stored_len_bytes,
            checksum: self.checksum,
            verbatim_tiles: self.verbatim_tiles,
            claims: std::mem::take(&mut self.claims),
            note: std::mem::take(&mut self.note),
        }
    }
}

/// Signal that a run has failed, for threads that wait for each other inside the work.
#[derive(Debug, Clone)]
pub struct StopSignal(Arc<AtomicU64>);

impl StopSignal {
    /// Returns whether the run has failed at or before tile number `ordinal`, in which case the tile is not needed.
    pub fn is_stopped_at(&self, ordinal: u64) -> bool {
        ordinal >= self.0.load(Ordering::Relaxed)
    }
}

impl Default for StopSignal {
    /// Creates a signal that never stops.
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

/// Next task of a worker.
#[derive(Debug)]
pub(super) enum Job {
    Encode(InFlightBatch),
    Write(InFlightBatch),
    Exit,
}

/// Component that assigns addresses to encoded batches, and the order in which it does so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Addressing {
    /// The window assigns addresses, in plan order.
    Ordered,
    /// The window assigns addresses immediately.
    Unordered,
    /// The calling thread assigns addresses together with the other ranks, round by round; workers write the batches.
    Collective,
    /// The calling thread assigns addresses as for `Collective`, and also writes the batches.
    CollectiveIo,
}

/// Limits of a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowLimits {
    /// Maximum memory of all batch buffers and received pieces.
    pub buffers_bytes: u64,
    /// Length of one buffer. All are equal, allocated once and reused: with buffers of varying lengths, the allocator
    /// holds on to unused memory (measured: a third over the budget).
    pub buffer_len_bytes: u64,
    /// Maximum number of tiles handed out and not yet taken by the calling thread; limits the memory of claims and
    /// makes workers wait if commit lags.
    pub tiles: u64,
}

struct State<E: std::error::Error + 'static> {
    /// Next batch to hand out, and the end of the range that may be handed out.
    next: usize,
    opened: usize,
    /// Total length of all buffers, and of the pieces received for batches not yet encoded.
    allocated_bytes: u64,
    brought_bytes: u64,
    /// Number of batches whose received pieces are accounted for.
    regrouped: usize,
    free_buffers: Vec<Vec<u8>>,
    free_claims: Vec<Vec<Claim>>,
    tiles_in_flight: u64,
    addresses: Addresses,
    /// Encoded batches without address, starting with number `first_encoded`.
    encoded: VecDeque<Option<InFlightBatch>>,
    first_encoded: usize,
    writable: VecDeque<InFlightBatch>,
    /// Batches with addresses, to be written by the calling thread.
    gathered: Vec<InFlightBatch>,
    /// Placed batches that the calling thread has not taken, starting with number `first_placed`.
    placed: VecDeque<Option<InFlightBatch>>,
    first_placed: usize,
    placed_count: usize,
    workers: usize,
    failure: Option<(u64, EngineError<E>)>,
}

/// Window of batches in flight; see the module documentation.
pub(super) struct InFlightWindow<E: std::error::Error + 'static> {
    batches: Vec<LocalBatch>,
    addressing: Addressing,
    limits: WindowLimits,
    state: Mutex<State<E>>,
    /// Condition on which workers wait.
    work: Condvar,
    /// Condition on which the calling thread waits.
    progress: Condvar,
    /// First tile that must no longer be processed.
    stop_at: Arc<AtomicU64>,
}

impl<E: std::error::Error + 'static> InFlightWindow<E> {
    pub(super) fn new(
        batches: Vec<LocalBatch>,
        addressing: Addressing,
        limits: WindowLimits,
        addresses: Addresses,
    ) -> Self {
        let by_rounds = matches!(addressing, Addressing::Collective | Addressing::CollectiveIo);
        let opened = if by_rounds { 0 } else { batches.len() };
        let state = State {
            next: 0,
            opened,
            allocated_bytes: 0,
            brought_bytes: 0,
            regrouped: 0,
            free_buffers: Vec::new(),
            free_claims: Vec::new(),
            tiles_in_flight: 0,
            addresses,
            encoded: VecDeque::new(),
            first_encoded: 0,
            writable: VecDeque::new(),
            gathered: Vec::new(),
            placed: VecDeque::new(),
            first_placed: 0,
            placed_count: 0,
            workers: 0,
            failure: None,
        };
        Self {
            batches,
            addressing,
            limits,
            state: Mutex::new(state),
            work: Condvar::new(),
            progress: Condvar::new(),
            stop_at: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the signal that the run has failed.
    pub(super) fn stop_signal(&self) -> StopSignal {
        StopSignal(Arc::clone(&self.stop_at))
    }

    /// Returns whether tile `ordinal` still has to be processed.
    pub(super) fn wants(&self, ordinal: u64) -> bool {
        ordinal < self.stop_at.load(Ordering::Relaxed)
    }

    fn failed(&self) -> bool {
        self.stop_at.load(Ordering::Relaxed) != u64::MAX
    }

    /// Records a failure at tile `ordinal` and stops all work from that tile on. The first failure in plan order is
    /// kept.
    pub(super) fn fail(&self, ordinal: u64, error: EngineError<E>) {
        self.note_failure(&mut self.lock(), ordinal, error);
    }

    fn note_failure(&self, state: &mut State<E>, ordinal: u64, error: EngineError<E>) {
        if state.failure.as_ref().is_none_or(|(earlier, _)| ordinal < *earlier) {
            state.failure = Some((ordinal, error));
        }
        self.stop_at.fetch_min(ordinal, Ordering::Relaxed);
        self.work.notify_all();
        self.progress.notify_all();
    }

    /// Returns the addresses taken, or the first failure in plan order; to be called once the workers have ended.
    pub(super) fn into_result(self) -> Result<Addresses, EngineError<E>> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some((_, error)) => Err(error),
            None => Ok(state.addresses),
        }
    }

    pub(super) fn worker_starts(&self) {
        self.lock().workers += 1;
    }

    pub(super) fn worker_ends(&self) {
        self.lock().workers -= 1;
        self.progress.notify_all();
    }

    /// Waits for the next task.
    pub(super) fn next_job(&self) -> Job {
        let mut state = self.lock();
        loop {
            if self.failed() {
                // Nothing more is written, but tiles before the failure are still encoded: they may contain an earlier
                // one.
                let wanted = state.next < state.opened && self.wants(self.batches[state.next].batch.first);
                let parcel = if wanted { self.hand_out(&mut state) } else { None };
                return parcel.map_or(Job::Exit, Job::Encode);
            }
            if let Some(parcel) = state.writable.pop_front() {
                return Job::Write(parcel);
            }
            if state.placed_count == self.batches.len() {
                return Job::Exit;
            }
            if state.next < state.opened
                && let Some(parcel) = self.hand_out(&mut state)
            {
                return Job::Encode(parcel);
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Hands out the next batch with a buffer for it; `None` if no buffer is free, or too many tiles are in flight.
    fn hand_out(&self, state: &mut State<E>) -> Option<InFlightBatch> {
        let number = state.next;
        let LocalBatch { batch, file, lane, .. } = self.batches[number];
        let tiles = state.tiles_in_flight + batch.tiles;
        if tiles > self.limits.tiles && state.tiles_in_flight > 0 {
            return None;
        }
        let stored = self.take_buffer(state)?;
        state.next += 1;
        state.tiles_in_flight = tiles;
        let claims = state.free_claims.pop().unwrap_or_default();
        Some(InFlightBatch {
            number,
            batch,
            stored,
            claims,
            file,
            lane,
            address: 0,
            verbatim_tiles: 0,
            stored_len_bytes: 0,
            checksum: 0,
            note: Vec::new(),
        })
    }

    /// Takes an empty buffer, allocating a new one if memory allows.
    fn take_buffer(&self, state: &mut State<E>) -> Option<Vec<u8>> {
        if let Some(buffer) = state.free_buffers.pop() {
            return Some(buffer);
        }
        let len_bytes = self.limits.buffer_len_bytes;
        if (state.allocated_bytes + state.brought_bytes).saturating_add(len_bytes) > self.limits.buffers_bytes {
            return None;
        }
        state.allocated_bytes += len_bytes;
        Some(Vec::with_capacity(usize::try_from(len_bytes).ok()?))
    }

    /// Accepts an encoded batch and assigns addresses to it and to the batches that waited for it.
    pub(super) fn encoded(&self, mut parcel: InFlightBatch) {
        let mut state = self.lock();
        state.brought_bytes -= self.batches[parcel.number].received_len_bytes;
        match self.addressing {
            Addressing::Unordered => {
                if self.find_address(&mut state, &mut parcel) {
                    self.make_writable(&mut state, parcel);
                }
            }
            Addressing::Ordered => {
                let at = parcel.number - state.first_encoded;
                put_at(&mut state.encoded, at, parcel);
                while let Some(Some(_)) = state.encoded.front() {
                    let Some(Some(mut parcel)) = state.encoded.pop_front() else { break };
                    state.first_encoded += 1;
                    if !self.find_address(&mut state, &mut parcel) {
                        return;
                    }
                    self.make_writable(&mut state, parcel);
                }
            }
            Addressing::Collective | Addressing::CollectiveIo => {
                let at = parcel.number - state.first_encoded;
                put_at(&mut state.encoded, at, parcel);
                self.progress.notify_all();
            }
        }
    }

    fn find_address(&self, state: &mut State<E>, parcel: &mut InFlightBatch) -> bool {
        let (addresses, file, lane) = (&mut state.addresses, parcel.file, parcel.lane);
        let placed = parcel.place(addresses.are_by_tile(), |len_bytes| addresses.take(file, lane, len_bytes).ok_or(()));
        if placed.is_err() {
            self.note_failure(state, parcel.batch.first, EngineError::AddressOverflow);
        }
        placed.is_ok()
    }

    fn make_writable(&self, state: &mut State<E>, parcel: InFlightBatch) {
        if parcel.stored.is_empty() {
            self.put_placed(state, parcel);
        } else if self.addressing == Addressing::CollectiveIo {
            state.gathered.push(parcel);
        } else {
            state.writable.push_back(parcel);
            self.work.notify_one();
        }
    }

    /// Accepts a written batch.
    pub(super) fn placed(&self, parcel: InFlightBatch) {
        self.put_placed(&mut self.lock(), parcel);
    }

    fn put_placed(&self, state: &mut State<E>, mut parcel: InFlightBatch) {
        let mut buffer = std::mem::take(&mut parcel.stored);
        parcel.stored_len_bytes = buffer.len() as u64;
        buffer.clear();
        state.free_buffers.push(buffer);
        let at = parcel.number - state.first_placed;
        put_at(&mut state.placed, at, parcel);
        state.placed_count += 1;
        self.work.notify_all();
        if at == 0 {
            self.progress.notify_all();
        }
    }

    /// Waits for the next placed batch in plan order; `None` after a failure or once the workers have ended.
    /// `cancelled` is polled while waiting.
    pub(super) fn next_placed(&self, cancelled: impl Fn() -> bool) -> Option<InFlightBatch> {
        let mut state = self.lock();
        loop {
            if self.failed() {
                return None;
            }
            if let Some(Some(_)) = state.placed.front() {
                state.first_placed += 1;
                return state.placed.pop_front().flatten();
            }
            if state.workers == 0 {
                return None;
            }
            if cancelled() {
                drop(state);
                self.fail(0, EngineError::Core(CoreError::Cancelled));
                return None;
            }
            state = self.progress.wait_timeout(state, CANCEL_POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes back the claim list of a batch that the calling thread has finished.
    pub(super) fn recycle(&self, parcel: InFlightBatch) {
        let mut claims = parcel.claims;
        claims.clear();
        let mut state = self.lock();
        state.tiles_in_flight -= parcel.batch.tiles;
        state.free_claims.push(claims);
        self.work.notify_all();
    }
}

/// Operations of the calling thread if several ranks share the plan.
impl<E: std::error::Error + 'static> InFlightWindow<E> {
    /// Accounts for the pieces about to be received for the next `count` batches. The schedule ensures that they fit.
    pub(super) fn reserve_received(&self, count: usize) {
        let mut state = self.lock();
        let batches = &self.batches[state.regrouped..state.regrouped + count];
        let len_bytes = batches.iter().map(|batch| batch.received_len_bytes).sum::<u64>();
        while state.allocated_bytes + state.brought_bytes + len_bytes > self.limits.buffers_bytes {
            let Some(idle) = state.free_buffers.pop() else { break };
            drop(idle);
            state.allocated_bytes -= self.limits.buffer_len_bytes;
        }
        state.brought_bytes += len_bytes;
        state.regrouped += count;
    }

    /// Releases the next `count` batches to the workers.
    pub(super) fn open(&self, count: usize) {
        self.lock().opened += count;
        self.work.notify_all();
    }

    /// Waits until the next `count` batches without address are encoded, or something fails.
    pub(super) fn wait_encoded(&self, count: usize, cancelled: impl Fn() -> bool) {
        let mut state = self.lock();
        while !self.failed() && (state.encoded.len() < count || state.encoded.iter().take(count).any(Option::is_none)) {
            if cancelled() {
                return self.note_failure(&mut state, 0, EngineError::Core(CoreError::Cancelled));
            }
            state = self.progress.wait_timeout(state, CANCEL_POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Encodes the stored lengths of the next `count` batches without address as a message: one per batch, or if
    /// `by_tile` the number of stored tiles followed by the length of each.
    pub(super) fn encoded_sizes(&self, count: usize, by_tile: bool) -> Vec<u8> {
        let (state, mut message) = (self.lock(), Vec::new());
        for parcel in state.encoded.iter().take(count).flatten() {
            if by_tile {
                put_u64s(&mut message, [parcel.claims.len() as u64]);
                put_u64s(&mut message, parcel.claims.iter().map(|claim| claim.len_bytes));
            } else {
                put_u64s(&mut message, [parcel.stored.len() as u64]);
            }
        }
        message
    }

    /// Assigns addresses to the next `count` batches, one for each length from [`InFlightWindow::encoded_sizes`], and
    /// returns the message with everything that rank 0 commits and records: per batch the address of its first stored
    /// byte, checksum, number of verbatim tiles, number of claims and length of the note; tile, address, length and
    /// filter mask of each claim; and the note. `taken` is the state of the addresses of all ranks.
    pub(super) fn settle(&self, count: usize, addresses: &[u64], taken: &Addresses, index: &TileIndex) -> Vec<u8> {
        let mut message = Vec::new();
        let mut addresses = addresses.iter();
        let mut state = self.lock();
        state.addresses = taken.clone();
        for _ in 0..count {
            let Some(mut parcel) = state.encoded.pop_front().flatten() else { break };
            state.first_encoded += 1;
            if parcel.place(taken.are_by_tile(), |_| addresses.next().copied().ok_or(())).is_err() {
                break;
            }
            let note = std::mem::take(&mut parcel.note);
            let (address, checksum, verbatim_tiles) = (parcel.address, parcel.checksum, parcel.verbatim_tiles);
            put_u64s(&mut message, [address, checksum, verbatim_tiles, parcel.claims.len() as u64, note.len() as u64]);
            for claim in &parcel.claims {
                let ordinal = index.ordinal(claim.tile).unwrap_or(u64::MAX);
                put_u64s(&mut message, [ordinal, claim.address, claim.len_bytes, u64::from(claim.filter_mask)]);
            }
            message.extend_from_slice(&note);
            self.make_writable(&mut state, parcel);
        }
        message
    }

    /// Takes the batches with addresses that the calling thread has to write; [`InFlightWindow::placed`] returns them.
    pub(super) fn take_gathered(&self) -> Vec<InFlightBatch> {
        std::mem::take(&mut self.lock().gathered)
    }

    /// Returns this rank's failure, for the other ranks.
    pub(super) fn failure(&self) -> Option<Failure> {
        let state = self.lock();
        let (ordinal, error) = state.failure.as_ref()?;
        let cancelled = error.is_cancelled();
        Some(Failure { ordinal: *ordinal, cancelled, message: error.to_string() })
    }

    /// Stops work at or after tile `ordinal`, where another rank failed.
    pub(super) fn stop_at(&self, ordinal: u64) {
        let _state = self.lock();
        self.stop_at.fetch_min(ordinal, Ordering::Relaxed);
        self.work.notify_all();
    }

    /// Waits until all workers have ended, as they do after a failure.
    pub(super) fn wait_for_workers(&self) {
        let mut state = self.lock();
        while state.workers > 0 {
            state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Replaces this rank's error, if any, with the error of another rank.
    pub(super) fn overrule(&self, error: EngineError<E>) {
        self.lock().failure = Some((0, error));
    }
}

fn put_at(queue: &mut VecDeque<Option<InFlightBatch>>, at: usize, parcel: InFlightBatch) {
    while queue.len() <= at {
        queue.push_back(None);
    }
    queue[at] = Some(parcel);
}
