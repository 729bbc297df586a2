//! The calling thread of an execution shared by several ranks: rounds of encoding, with one exchange of sizes per
//! round.
//!
//! While the workers encode round n + 1, the ranks gather the sizes of round n, compute the address of every batch,
//! pass their own batches to the workers for writing, and send the claims to rank 0. Rank 0 records the batches that
//! all ranks have reported as written and commits the arrays they complete. Invariant: whatever fails locally, a rank
//! continues to the next [`Rounds::agree`], where all ranks learn of the failure and leave together.

use super::committer::{Committer, commit_kept};
use super::schedule::Schedule;
use super::status::{OPERATION, RankStatus};
use super::window::{InFlightBatch, InFlightWindow};
use super::{Context, EngineError, PlacedBatch, Recorder, Round, SharedSink, TileWork};
use crate::error::CoreError;
use crate::output::addresses::Addresses;
use crate::output::claims::Claim;
use crate::plan::TileIndex;
use crate::ranks::message::MessageReader;
use crate::report::progress::{Event, Stage};
use crate::report::{StageTotals, elapsed_ns, thread_cpu_ns};
use std::ops::Range;
use std::time::Instant;

/// Number of words that rank 0 receives per batch: address, checksum, verbatim tiles, number of claims, length of the
/// note.
const BATCH_WORDS: usize = 5;
/// Number of words per claim: tile number, address, length, filter mask.
const CLAIM_WORDS: usize = 4;

/// Returns the number of bytes that rank 0 receives for a batch with `claims` claims and a note of `note_len_bytes`.
pub const fn claim_message_len_bytes(claims: u64, note_len_bytes: u64) -> u64 {
    let words = BATCH_WORDS as u64 + CLAIM_WORDS as u64 * claims;
    words * size_of::<u64>() as u64 + note_len_bytes
}

/// State of the calling thread of a rank.
pub(super) struct Rounds<'a, W: TileWork> {
    pub schedule: &'a Schedule,
    pub index: &'a TileIndex,
    pub work: &'a W,
    pub window: &'a InFlightWindow<W::Error>,
    pub context: &'a Context<'a>,
    /// Address allocator, not used yet.
    pub addresses: Addresses,
    /// Sink through which the calling threads of all ranks write together; `None` if workers write.
    pub shared: Option<&'a dyn SharedSink>,
}

/// Marker error: all ranks leave; the window holds this rank's error.
pub(super) struct CollectiveAbort;

impl<W: TileWork> Rounds<'_, W> {
    /// Collective. Processes all rounds; afterwards the window holds the end address or the error. Returns the totals
    /// written by this thread. Only rank 0 may have a recorder.
    pub(super) fn run(
        &self,
        committer: &mut Committer<'_, '_, W::Error>,
        recorder: Option<&mut dyn Recorder>,
    ) -> StageTotals {
        let mut written = StageTotals::default();
        // All ranks have agreed on the error that makes them leave; the window holds it.
        let (Ok(()) | Err(CollectiveAbort)) = self.all_rounds(committer, recorder, &mut written);
        written
    }

    fn all_rounds(
        &self,
        committer: &mut Committer<'_, '_, W::Error>,
        mut recorder: Option<&mut dyn Recorder>,
        written_here: &mut StageTotals,
    ) -> Result<(), CollectiveAbort> {
        let communicator = self.context.communicator;
        let rank = communicator.rank();
        let rounds = &self.schedule.rounds;
        let mut taken = self.addresses.clone();
        let mut opened = 0;
        // Numbers of batches of this rank up to and including the previous round, and up to the one before that.
        let (mut local_before, mut local_placed) = (0, 0);
        // Batches of the previous round, which rank 0 records and commits once all ranks have written them.
        let mut unwritten = Vec::new();
        if let Some(first) = rounds.first() {
            self.open(first);
            opened = 1;
        }
        self.commit_kept(committer, &mut recorder);
        for (number, round) in rounds.iter().enumerate() {
            local_placed = self.take_placed(local_placed, local_before, committer);
            let last = if self.schedule.overlaps.get(number) == Some(&true) { number + 1 } else { number };
            while opened <= last {
                self.open(&rounds[opened]);
                opened += 1;
            }
            let local_count = self.schedule.owned_by(rank, round.clone()).count();
            self.window.wait_encoded(local_count, || self.context.cancel.is_cancelled());
            let sizes = self.agree(|| self.window.encoded_sizes(local_count, taken.are_by_tile()))?;
            let addresses = self.addresses(round, &sizes, &mut taken);
            let claims = match addresses {
                Ok(addresses) => self.window.settle(local_count, &addresses[rank], &taken, self.index),
                Err(error) => {
                    self.window.fail(0, error);
                    Vec::new()
                }
            };
            if let Some(shared) = self.shared {
                written_here.add(&self.write_together(shared));
            }
            let mut messages = vec![Vec::new(); communicator.size()];
            messages[0] = claims;
            match communicator.exchange_bytes(messages) {
                Ok(claims) if rank == 0 => {
                    self.commit(committer, &mut recorder, &unwritten);
                    unwritten = self.placed(round, &claims).unwrap_or_else(|error| {
                        self.window.fail(0, error.into());
                        Vec::new()
                    });
                }
                Ok(_) => {}
                Err(error) => self.window.fail(0, error.into()),
            }
            local_before += local_count;
        }
        self.take_placed(local_placed, local_before, committer);
        self.agree(Vec::new)?;
        self.commit(committer, &mut recorder, &unwritten);
        self.agree(Vec::new)?;
        Ok(())
    }

    /// Commits, on rank 0, leading arrays without tiles and everything that an earlier run placed.
    fn commit_kept(
        &self,
        committer: &mut Committer<'_, '_, W::Error>,
        recorder: &mut Option<&mut (dyn Recorder + '_)>,
    ) {
        if self.context.communicator.rank() == 0 {
            let kept = recorder.as_deref_mut();
            let outcome = committer.take(0, &[]);
            let outcome = outcome.and_then(|()| kept.map_or(Ok(()), |kept| commit_kept(committer, kept, self.context)));
            if let Err((ordinal, error)) = outcome {
                self.window.fail(ordinal, error);
            }
        }
    }

    /// Records the next batches and commits the arrays they complete; there are batches only on rank 0.
    fn commit(
        &self,
        committer: &mut Committer<'_, '_, W::Error>,
        recorder: &mut Option<&mut (dyn Recorder + '_)>,
        batches: &[PlacedBatch],
    ) {
        if let Some(recorder) = recorder {
            batches.iter().for_each(|batch| recorder.placed(batch));
        }
        let outcome = batches.iter().try_for_each(|batch| committer.take(batch.tiles, &batch.claims));
        if let Err((ordinal, error)) = outcome {
            self.window.fail(ordinal, error);
        }
    }

    /// Waits until batches `from..to` of this rank are written.
    fn take_placed(&self, from: usize, to: usize, committer: &mut Committer<'_, '_, W::Error>) -> usize {
        for _ in from..to {
            let Some(parcel) = self.window.next_placed(|| self.context.cancel.is_cancelled()) else { break };
            committer.count(parcel.batch.tiles, &parcel.claims, parcel.verbatim_tiles);
            self.window.recycle(parcel);
        }
        to
    }

    /// Collective. Writes this rank's part of the round.
    fn write_together(&self, shared: &dyn SharedSink) -> StageTotals {
        let (cpu_before_ns, started) = (thread_cpu_ns(), Instant::now());
        let parcels = self.window.take_gathered();
        let runs: Vec<_> = parcels.iter().flat_map(InFlightBatch::runs).collect();
        let len_bytes = runs.iter().map(|run| run.bytes.len() as u64).sum();
        if let Err(source) = shared.write_together(&runs) {
            let address = runs.first().map_or(0, |run| run.address);
            let ordinal = parcels.first().map_or(0, |parcel| parcel.batch.first);
            self.window.fail(ordinal, EngineError::Write { address, len_bytes, source });
        }
        let items = parcels.iter().map(|parcel| parcel.batch.tiles).sum();
        for parcel in parcels {
            self.window.placed(parcel);
        }
        self.context.observer.event(&Event::Advanced { stage: Stage::Place, bytes: len_bytes, items });
        let wall_ns = elapsed_ns(started);
        StageTotals { wall_ns, cpu_ns: thread_cpu_ns() - cpu_before_ns, bytes: len_bytes, calls: 1 }
    }

    /// Exchanges the pieces of a round and releases it to the workers.
    fn open(&self, round: &Range<usize>) {
        let communicator = self.context.communicator;
        let (batches, owners) = (&self.schedule.batches[round.clone()], &self.schedule.owners[round.clone()]);
        let local_count = self.schedule.owned_by(communicator.rank(), round.clone()).count();
        self.window.reserve_received(local_count);
        let regrouped = self.work.regroup(&Round { batches, owners, index: self.index }, communicator);
        if let Err(source) = regrouped {
            let first = batches.first().map_or(0, |batch| batch.first);
            self.window.fail(first, EngineError::Regroup { source });
        }
        self.window.open(local_count);
    }

    /// Computes the addresses of the round's batches, or of their tiles, grouped by owner in plan order.
    fn addresses(
        &self,
        round: &Range<usize>,
        sizes: &[Vec<u8>],
        taken: &mut Addresses,
    ) -> Result<Vec<Vec<u64>>, EngineError<W::Error>> {
        let mut sizes: Vec<_> = sizes.iter().map(|bytes| MessageReader::new(OPERATION, bytes)).collect();
        let mut addresses = vec![Vec::new(); sizes.len()];
        for at in round.clone() {
            let owner = self.schedule.owners[at] as usize;
            let count = if taken.are_by_tile() { sizes[owner].word()? } else { 1 };
            for _ in 0..count {
                let address = taken.take(self.schedule.files[at], self.schedule.lanes[at], sizes[owner].word()?);
                addresses[owner].push(address.ok_or(EngineError::AddressOverflow)?);
            }
        }
        Ok(addresses)
    }

    /// Decodes the round's batches, in plan order, from the messages of all ranks.
    fn placed(&self, round: &Range<usize>, messages: &[Vec<u8>]) -> Result<Vec<PlacedBatch>, CoreError> {
        let mut readers: Vec<_> = messages.iter().map(|bytes| MessageReader::new(OPERATION, bytes)).collect();
        let of_batch = |at: usize| {
            let batch = &self.schedule.batches[at];
            let reader = &mut readers[self.schedule.owners[at] as usize];
            let [address, checksum, verbatim_tiles, count, note_len_bytes] = reader.words::<BATCH_WORDS>()?;
            let (mut claims, mut stored_len_bytes) = (Vec::new(), 0);
            for _ in 0..count {
                let [ordinal, address, len_bytes, mask] = reader.words::<CLAIM_WORDS>()?;
                let tile = self.index.tile(ordinal);
                let within = (batch.first..batch.first + batch.tiles).contains(&ordinal);
                let (Some(tile), true, Ok(filter_mask)) = (tile, within, u32::try_from(mask)) else {
                    return Err(reader.error());
                };
                stored_len_bytes += len_bytes;
                claims.push(Claim { tile, address, len_bytes, filter_mask });
            }
            let note = reader.bytes(note_len_bytes)?.to_vec();
            Ok(PlacedBatch {
                first: batch.first,
                tiles: batch.tiles,
                address,
                stored_len_bytes,
                checksum,
                verbatim_tiles,
                claims,
                note,
            })
        };
        round.clone().map(of_batch).collect()
    }

    /// Collective. Returns the payloads of all ranks if none failed; otherwise all leave with the first error in plan
    /// order.
    fn agree(&self, payload: impl FnOnce() -> Vec<u8>) -> Result<Vec<Vec<u8>>, CollectiveAbort> {
        let communicator = self.context.communicator;
        let gather = |verdict: RankStatus| {
            let gathered = communicator.all_gather_bytes(&verdict.to_bytes());
            gathered.map(|all| all.iter().map(|bytes| RankStatus::from_bytes(bytes)).collect::<Vec<_>>())
        };
        // The rank's own failure is the reason why the others are not reached, if it has one.
        let leave = |error: CoreError| {
            if self.window.failure().is_none() {
                self.window.fail(0, error.into());
            }
            CollectiveAbort
        };
        let verdict = self.window.failure().map_or_else(|| RankStatus::Healthy(payload()), RankStatus::Failed);
        let all = gather(verdict).map_err(leave)?;
        let Some(first) = all.iter().filter_map(RankStatus::ordinal).min() else {
            return Ok(all.into_iter().map(RankStatus::payload).collect());
        };
        // Another rank may still find an earlier error in batches it has begun, so all finish what precedes this one.
        self.window.stop_at(first);
        self.window.wait_for_workers();
        let verdict = self.window.failure().map_or_else(|| RankStatus::Healthy(Vec::new()), RankStatus::Failed);
        let all = gather(verdict).map_err(leave)?;
        let failures = all.iter().enumerate().filter_map(|(rank, verdict)| match verdict {
            RankStatus::Failed(failure) => Some((failure.ordinal, rank, failure)),
            RankStatus::Healthy(_) => None,
        });
        if let Some((_, rank, failure)) = failures.min_by_key(|(ordinal, rank, _)| (*ordinal, *rank))
            && rank != communicator.rank()
        {
            self.window.overrule(failure.as_error(rank).into());
        }
        Err(CollectiveAbort)
    }
}
