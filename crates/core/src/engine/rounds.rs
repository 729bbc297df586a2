//! The calling thread of an execution that several ranks share: rounds of encoding, one exchange of sizes per round.
//!
//! While the workers encode round n + 1, the ranks gather the sizes of round n, compute every batch's address, hand
//! their own to the workers for writing, and send the claims to rank 0, which records the batches that all ranks have
//! reported as written, and commits the arrays that are complete with them. Invariant: whatever fails locally, a rank
//! goes on to the next [`Rounds::agree`], where all learn of it and leave together.

use super::run::{Committer, commit_kept};
use super::schedule::Schedule;
use super::window::{Parcel, Window};
use super::{Context, EngineError, PlacedBatch, Recorder, Round, SharedSink, TileWork};
use crate::addresses::Addresses;
use crate::claims::Claim;
use crate::communicator::{Communicator, Rank};
use crate::error::CoreError;
use crate::message::{Words, number};
use crate::plan::TileIndex;
use crate::progress::{Event, Stage};
use crate::report::{StageTotals, elapsed_ns, thread_cpu_ns};
use std::ops::Range;
use std::time::Instant;

/// Operation named in errors of other ranks.
const OPERATION: &str = "execute the plan";

/// What rank 0 is told of a batch: address, checksum, verbatim tiles, number of claims, length of the note.
const BATCH_WORDS: usize = 5;
/// What it is told of a tile that is not wholly fill: number, address, length, filter mask.
const CLAIM_WORDS: usize = 4;

/// Bytes that rank 0 is told of a batch of `claims` tiles that are not wholly fill, with a note of so many bytes.
pub const fn told_len_bytes(claims: u64, note_len_bytes: u64) -> u64 {
    let words = BATCH_WORDS as u64 + CLAIM_WORDS as u64 * claims;
    words * size_of::<u64>() as u64 + note_len_bytes
}

/// What the calling thread of a rank knows.
pub(super) struct Rounds<'a, W: TileWork> {
    pub schedule: &'a Schedule,
    pub index: &'a TileIndex,
    pub work: &'a W,
    pub window: &'a Window<W::Error>,
    pub context: &'a Context<'a>,
    /// None taken yet.
    pub addresses: Addresses,
    /// Where the calling threads of all ranks write together, if they do.
    pub shared: Option<&'a dyn SharedSink>,
}

/// All ranks leave: the window holds this rank's error.
pub(super) struct Leave;

impl<W: TileWork> Rounds<'_, W> {
    /// Collective. Goes through all rounds; afterwards the window knows the end address or the error. Tells what this
    /// thread wrote. Rank 0 alone may have a recorder.
    pub(super) fn run(
        &self,
        committer: &mut Committer<'_, '_, W::Error>,
        recorder: Option<&mut dyn Recorder>,
    ) -> StageTotals {
        let mut written = StageTotals::default();
        // All ranks have agreed on the error that makes them leave, and the window holds it.
        let (Ok(()) | Err(Leave)) = self.all_rounds(committer, recorder, &mut written);
        written
    }

    fn all_rounds(
        &self,
        committer: &mut Committer<'_, '_, W::Error>,
        mut recorder: Option<&mut dyn Recorder>,
        written_here: &mut StageTotals,
    ) -> Result<(), Leave> {
        let communicator = self.context.communicator;
        let rank = communicator.rank();
        let rounds = &self.schedule.rounds;
        let mut taken = self.addresses.clone();
        let mut opened = 0;
        // Batches of this rank up to and with the round before, and the one before that.
        let (mut own_before, mut own_placed) = (0, 0);
        // Batches of the round before, which rank 0 records and commits once all ranks have written them.
        let mut unwritten = Vec::new();
        if let Some(first) = rounds.first() {
            self.open(first);
            opened = 1;
        }
        self.commit_kept(committer, &mut recorder);
        for (number, round) in rounds.iter().enumerate() {
            own_placed = self.take_placed(own_placed, own_before, committer);
            let last = if self.schedule.overlaps.get(number) == Some(&true) { number + 1 } else { number };
            while opened <= last {
                self.open(&rounds[opened]);
                opened += 1;
            }
            let own = self.schedule.owned_by(rank, round.clone()).count();
            self.window.wait_encoded(own, || self.context.cancel.is_cancelled());
            let sizes = self.agree(|| self.window.encoded_sizes(own, taken.are_by_tile()))?;
            let addresses = self.addresses(round, &sizes, &mut taken);
            let claims = match addresses {
                Ok(addresses) => self.window.settle(own, &addresses[rank], &taken, self.index),
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
            own_before += own;
        }
        self.take_placed(own_placed, own_before, committer);
        self.agree(Vec::new)?;
        self.commit(committer, &mut recorder, &unwritten);
        self.agree(Vec::new)?;
        Ok(())
    }

    /// Commits, on rank 0, the arrays without tiles at the start and what an earlier run placed.
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

    /// Records the next batches and commits the arrays that they complete; only rank 0 has any.
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

    /// Waits until this rank's batches `from..to` are written.
    fn take_placed(&self, from: usize, to: usize, committer: &mut Committer<'_, '_, W::Error>) -> usize {
        for _ in from..to {
            let Some(parcel) = self.window.next_placed(|| self.context.cancel.is_cancelled()) else { break };
            committer.count(parcel.batch.tiles, &parcel.claims, parcel.verbatim_tiles);
            self.window.recycle(parcel);
        }
        to
    }

    /// Collective. Writes what this rank has to write of the round.
    fn write_together(&self, shared: &dyn SharedSink) -> StageTotals {
        let (cpu_before_ns, started) = (thread_cpu_ns(), Instant::now());
        let parcels = self.window.take_gathered();
        let runs: Vec<_> = parcels.iter().flat_map(Parcel::runs).collect();
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

    /// Brings the pieces of a round and lets the workers begin it.
    fn open(&self, round: &Range<usize>) {
        let communicator = self.context.communicator;
        let (batches, owners) = (&self.schedule.batches[round.clone()], &self.schedule.owners[round.clone()]);
        let own = self.schedule.owned_by(communicator.rank(), round.clone()).count();
        self.window.reserve_brought(own);
        let brought = self.work.bring(&Round { batches, owners, index: self.index }, communicator);
        if let Err(source) = brought {
            let first = batches.first().map_or(0, |batch| batch.first);
            self.window.fail(first, EngineError::Bring { source });
        }
        self.window.open(own);
    }

    /// The address of each batch of the round, or of each tile, by owner in plan order.
    fn addresses(
        &self,
        round: &Range<usize>,
        sizes: &[Vec<u8>],
        taken: &mut Addresses,
    ) -> Result<Vec<Vec<u64>>, EngineError<W::Error>> {
        let mut sizes: Vec<_> = sizes.iter().map(|bytes| Words::new(OPERATION, bytes)).collect();
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

    /// The round's batches, in plan order, from what each rank sent.
    fn placed(&self, round: &Range<usize>, messages: &[Vec<u8>]) -> Result<Vec<PlacedBatch>, CoreError> {
        let mut readers: Vec<_> = messages.iter().map(|bytes| Words::new(OPERATION, bytes)).collect();
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

    /// Collective. The payloads of all ranks if all are well; else all leave with the first error in plan order.
    fn agree(&self, payload: impl FnOnce() -> Vec<u8>) -> Result<Vec<Vec<u8>>, Leave> {
        let communicator = self.context.communicator;
        let gather = |verdict: Verdict| {
            let gathered = communicator.all_gather_bytes(&verdict.to_bytes());
            gathered.map(|all| all.iter().map(|bytes| Verdict::from_bytes(bytes)).collect::<Vec<_>>())
        };
        let leave = |error: CoreError| {
            self.window.fail(0, error.into());
            Leave
        };
        let verdict = self.window.failure().map_or_else(|| Verdict::Well(payload()), Verdict::Failed);
        let all = gather(verdict).map_err(leave)?;
        let Some(first) = all.iter().filter_map(Verdict::ordinal).min() else {
            return Ok(all.into_iter().map(Verdict::payload).collect());
        };
        // Another rank may find an error before that one, in what it had begun: all finish what lies before.
        self.window.stop_at(first);
        self.window.wait_for_workers();
        let verdict = self.window.failure().map_or_else(|| Verdict::Well(Vec::new()), Verdict::Failed);
        let all = gather(verdict).map_err(leave)?;
        let failures = all.iter().enumerate().filter_map(|(rank, verdict)| match verdict {
            Verdict::Failed(failure) => Some((failure.ordinal, rank, failure)),
            Verdict::Well(_) => None,
        });
        if let Some((_, rank, failure)) = failures.min_by_key(|(ordinal, rank, _)| (*ordinal, *rank))
            && rank != communicator.rank()
        {
            self.window.overrule(failure.as_error(rank).into());
        }
        Err(Leave)
    }
}

/// Collective. Gathers what each rank has to tell before anything is begun; if one failed, all do: that rank with its
/// own error, the others with its message.
pub(super) fn agree_at_start<E: std::error::Error>(
    communicator: &dyn Communicator,
    local: Result<Vec<u8>, CoreError>,
) -> Result<Vec<Vec<u8>>, EngineError<E>> {
    let (verdict, own_error) = match local {
        Ok(payload) => (Verdict::Well(payload), None),
        Err(error) => {
            (Verdict::Failed(Failure { ordinal: 0, cancelled: false, message: error.to_string() }), Some(error))
        }
    };
    let all = communicator.all_gather_bytes(&verdict.to_bytes())?;
    if let Some(error) = own_error {
        return Err(error.into());
    }
    let mut payloads = Vec::with_capacity(all.len());
    for (rank, bytes) in all.iter().enumerate() {
        match Verdict::from_bytes(bytes) {
            Verdict::Well(payload) => payloads.push(payload),
            Verdict::Failed(failure) => return Err(failure.as_error(rank).into()),
        }
    }
    Ok(payloads)
}

/// What a rank tells the others before each collective step.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Well(Vec<u8>),
    Failed(Failure),
}

/// A failure, as other ranks see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// Number of the tile where it happened.
    pub ordinal: u64,
    pub cancelled: bool,
    pub message: String,
}

impl Failure {
    fn as_error(&self, rank: Rank) -> CoreError {
        if self.cancelled {
            CoreError::Cancelled
        } else {
            CoreError::RankFailed { operation: OPERATION, rank, message: self.message.clone() }
        }
    }
}

impl Verdict {
    fn ordinal(&self) -> Option<u64> {
        match self {
            Self::Well(_) => None,
            Self::Failed(failure) => Some(failure.ordinal),
        }
    }

    fn payload(self) -> Vec<u8> {
        match self {
            Self::Well(payload) => payload,
            Self::Failed(_) => Vec::new(),
        }
    }

    /// First byte: 0 well, 1 failed, 2 cancelled. A failure goes on with its tile and its message.
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Well(payload) => [&[0], payload.as_slice()].concat(),
            Self::Failed(Failure { ordinal, cancelled, message }) => {
                [&[1 + u8::from(*cancelled)], ordinal.to_le_bytes().as_slice(), message.as_bytes()].concat()
            }
        }
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        match bytes.split_first() {
            Some((0, payload)) => Self::Well(payload.to_vec()),
            Some((kind, rest)) => {
                let (ordinal, message) = rest.split_at(rest.len().min(8));
                Self::Failed(Failure {
                    ordinal: number(ordinal),
                    cancelled: *kind == 2,
                    message: String::from_utf8_lossy(message).into_owned(),
                })
            }
            None => Self::Failed(Failure { ordinal: 0, cancelled: false, message: "sent nothing".to_owned() }),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn verdicts_travel() {
        for verdict in [
            Verdict::Well(vec![]),
            Verdict::Well(vec![1, 2]),
            Verdict::Failed(Failure { ordinal: 1 << 40, cancelled: false, message: String::new() }),
            Verdict::Failed(Failure { ordinal: 0, cancelled: true, message: "cancelled".to_owned() }),
        ] {
            assert_eq!(Verdict::from_bytes(&verdict.to_bytes()), verdict);
        }
        assert!(matches!(Verdict::from_bytes(&[]), Verdict::Failed(_)));
    }
}
