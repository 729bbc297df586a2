//! Phase 1: moves samples from the boxes that ranks hold to the boxes of a [`Restructuring`], in bounded messages.
//!
//! The plan decides which rank holds what. Messages have no headers: sender and receiver derive content and order from
//! the same plan. Invariant: no rank sends or receives more than [`MESSAGES_LEN_BYTES`] in a round, unless a single
//! sample is longer, and all ranks run the same number of rounds even if one fails.

use crate::dataset::bitmask::MAX_RANK;
use crate::dataset::region::{SampleBox, copy_part};
use crate::error::{IdxError, Result};
use crate::read::dataset::zeros;
use crate::write::restructure::{PartitionFault, Restructuring, Transfer, check_partition};
use raddle_core::CoreError;
use raddle_core::memory::{MemoryBudget, Permit};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::ranks::traffic::Traffic;
use std::borrow::Cow;
use std::iter;
use std::path::Path;

/// Maximum number of bytes that a rank sends, and that it receives, per round: large compared with the cost of a
/// message, small compared with memory.
pub(crate) const MESSAGES_LEN_BYTES: u64 = 32 << 20;

/// Name of the operation in the errors of other ranks.
const OPERATION: &str = "restructure";

/// A box of samples that a rank holds.
#[derive(Debug, Clone)]
pub struct BoxData<'a> {
    /// Region of the samples.
    pub region: SampleBox,
    /// One array per field, x fastest, little-endian.
    pub arrays: Vec<Cow<'a, [u8]>>,
}

/// Checks that each patch has one array per field, with the length that its region and the sample lengths give.
pub(crate) fn check_arrays(patches: &[BoxData<'_>], sample_lens: &[usize]) -> Result<()> {
    for patch in patches {
        if patch.arrays.len() != sample_lens.len() {
            return Err(IdxError::Arrays { got: patch.arrays.len(), want: sample_lens.len() });
        }
        for (field, (array, sample_len_bytes)) in patch.arrays.iter().zip(sample_lens).enumerate() {
            let want = patch.region.sample_count().and_then(|samples| samples.checked_mul(*sample_len_bytes as u64));
            let (got_bytes, want_bytes) = (array.len() as u64, want.unwrap_or(u64::MAX));
            if got_bytes != want_bytes {
                return Err(IdxError::Buffer { field, got_bytes, want_bytes });
            }
        }
    }
    Ok(())
}

/// Collective. Returns the boxes of all ranks, indexed by rank, after checking that they cover `domain` exactly once.
/// Fails if the ranks differ in `arguments_hash`, a hash of their arguments. `path` is the output, for errors.
pub(crate) fn gather_boxes(
    path: &Path,
    domain: &SampleBox,
    arguments_hash: u64,
    patches: &[BoxData<'_>],
    ranks: &dyn Communicator,
) -> Result<Vec<Vec<SampleBox>>> {
    let partition = gather_any_boxes(arguments_hash, patches, ranks)?;
    check_partition(domain, &partition).map_err(|source| partition_error(path, source))?;
    Ok(partition)
}

/// Collective. Returns the boxes of all ranks without checking them; `arguments_hash` is a hash of the arguments, as in
/// [`gather_boxes`].
pub(crate) fn gather_any_boxes(
    arguments_hash: u64,
    patches: &[BoxData<'_>],
    ranks: &dyn Communicator,
) -> Result<Vec<Vec<SampleBox>>> {
    let corners = patches.iter().flat_map(|patch| [patch.region.start, patch.region.end]).flatten();
    let local: Vec<u8> = iter::once(arguments_hash).chain(corners).flat_map(u64::to_le_bytes).collect();
    let gathered = ranks.all_gather_bytes(&local)?;
    let words = |bytes: &Vec<u8>| -> Vec<u64> {
        bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    };
    let mut partition = Vec::new();
    let mut first_hash = None;
    for (rank, words) in gathered.iter().map(words).enumerate() {
        let arguments_hash = words.first().copied();
        if *first_hash.get_or_insert(arguments_hash) != arguments_hash {
            return Err(CoreError::PlansDiffer { rank }.into());
        }
        let (points, _) = words.get(1..).unwrap_or_default().as_chunks::<MAX_RANK>();
        let boxes = points.as_chunks::<2>().0.iter().map(|[start, end]| SampleBox { start: *start, end: *end });
        partition.push(boxes.collect());
    }
    Ok(partition)
}

/// Returns the error for boxes of ranks that do not cover the dataset at `path` exactly once.
pub(crate) fn partition_error(path: &Path, source: PartitionFault) -> IdxError {
    IdxError::Partition { path: path.to_path_buf(), source: Box::new(source) }
}

/// Part of a transfer that is sent in one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) field: usize,
    transfer: usize,
    pub(crate) part: SampleBox,
}

/// Returns the parcels that `rank` sends or receives, indexed by round.
fn rounds(plan: &Restructuring, sample_lens: &[usize], ranks: usize, rank: usize, limit: u64) -> Vec<Vec<Message>> {
    let mut rounds: Vec<Vec<Message>> = Vec::new();
    each_parcel(plan, sample_lens, ranks, limit, |round, from, to, parcel| {
        rounds.resize(rounds.len().max(round + 1), Vec::new());
        if from == rank || to == rank {
            rounds[round].push(parcel);
        }
    });
    rounds
}

/// Calls `each` for every parcel that any of the `ranks` ranks sends, with its round, sender, receiver and the parcel.
pub(crate) fn each_parcel(
    plan: &Restructuring,
    sample_lens: &[usize],
    ranks: usize,
    limit: u64,
    mut each: impl FnMut(usize, usize, usize, Message),
) {
    /// Round being filled, and the bytes already in it.
    type Filled = (usize, u64);
    let mut sent: Vec<Filled> = vec![(0, 0); ranks];
    let mut received = sent.clone();
    for (field, sample_len_bytes) in sample_lens.iter().enumerate() {
        let len_of =
            |part: &SampleBox| part.sample_count().unwrap_or(u64::MAX).saturating_mul(*sample_len_bytes as u64);
        for (number, transfer) in plan.transfers.iter().enumerate() {
            let (from, to) = (transfer.from as usize, plan.boxes[transfer.to_box as usize].owner as usize);
            let mut parts = if from == to { Vec::new() } else { vec![transfer.part] };
            while let Some(part) = parts.pop() {
                let len_bytes = len_of(&part);
                if len_bytes > limit
                    && let Some((low, high)) = part.halves()
                {
                    parts.extend([high, low]);
                    continue;
                }
                let has_room = |(_, used): Filled| used == 0 || used.saturating_add(len_bytes) <= limit;
                let earliest = |filled: Filled| if has_room(filled) { filled.0 } else { filled.0 + 1 };
                let round = earliest(sent[from]).max(earliest(received[to]));
                for filled in [&mut sent[from], &mut received[to]] {
                    let used = if filled.0 == round { filled.1 } else { 0 };
                    *filled = (round, used.saturating_add(len_bytes));
                }
                each(round, from, to, Message { field, transfer: number, part });
            }
        }
    }
}

/// Collective. Moves the samples of `patches` to the boxes of `plan` and returns the boxes that this rank owns, with a
/// permit for their memory.
///
/// # Errors
/// If a rank has not enough memory for them.
pub(crate) fn restructure<'a>(
    plan: &Restructuring,
    mut patches: Vec<BoxData<'a>>,
    sample_lens: &[usize],
    budget: &MemoryBudget,
    ranks: &dyn Communicator,
    traffic: &mut Traffic,
) -> Result<(Vec<BoxData<'a>>, Permit)> {
    let rank = ranks.rank();
    let begun = begin(plan, &mut patches, sample_lens, budget, rank);
    let (mut planned, permit) = ranks.agree(OPERATION, begun)?;
    let slot = |of: &PlannedBoxes<'_>, to_box: u32| of.numbers.binary_search(&to_box).unwrap_or(usize::MAX);
    let mut outcome = Ok(());
    for round in rounds(plan, sample_lens, ranks.size(), rank, MESSAGES_LEN_BYTES) {
        let mut messages = vec![Vec::new(); ranks.size()];
        for parcel in round.iter().filter(|parcel| plan.transfers[parcel.transfer].from as usize == rank) {
            let transfer = &plan.transfers[parcel.transfer];
            let message = &mut messages[plan.boxes[transfer.to_box as usize].owner as usize];
            let packed = pack(&patches[transfer.from_box as usize], parcel, sample_lens[parcel.field], message);
            outcome = outcome.and(packed);
        }
        traffic.count(rank, messages.iter().map(Vec::len));
        let arrived = ranks.exchange_bytes(messages)?;
        let mut at = vec![0; arrived.len()];
        for parcel in round.iter().filter(|parcel| plan.transfers[parcel.transfer].from as usize != rank) {
            let Transfer { to_box, from, .. } = plan.transfers[parcel.transfer];
            let slot = slot(&planned, to_box);
            let (from, to) = (from as usize, &mut planned.patches[slot]);
            let unpacked = unpack(&arrived[from], &mut at[from], parcel, sample_lens[parcel.field], to);
            outcome = outcome.and(unpacked);
        }
    }
    ranks.agree(OPERATION, outcome)?;
    Ok((planned.patches, permit))
}

/// Boxes of the plan with their samples, indexed by number.
struct PlannedBoxes<'a> {
    numbers: Vec<u32>,
    patches: Vec<BoxData<'a>>,
}

/// Allocates the boxes that `rank` owns and fills in the samples it already holds.
fn begin<'a>(
    plan: &Restructuring,
    patches: &mut [BoxData<'a>],
    sample_lens: &[usize],
    budget: &MemoryBudget,
    rank: usize,
) -> Result<(PlannedBoxes<'a>, Permit)> {
    let owned = || (0u32..).zip(&plan.boxes).filter(|(_, owned)| owned.owner as usize == rank);
    let transfers_to = |number: u32| {
        let first = plan.transfers.partition_point(|transfer| transfer.to_box < number);
        let end = plan.transfers.partition_point(|transfer| transfer.to_box <= number);
        &plan.transfers[first..end]
    };
    // A box that the rank already holds unchanged is not copied.
    let stays = |number: u32, patches: &[BoxData<'_>]| match transfers_to(number) {
        [only] if only.from as usize == rank && patches[only.from_box as usize].region == only.part => {
            Some(only.from_box as usize)
        }
        _ => None,
    };
    let per_sample: u64 = sample_lens.iter().map(|len| *len as u64).sum();
    let new_len_bytes = owned()
        .filter(|(number, _)| stays(*number, patches).is_none())
        .map(|(_, owned)| owned.region.sample_count().unwrap_or(u64::MAX).saturating_mul(per_sample))
        .fold(0, u64::saturating_add);
    let is_moving = plan.transfers.iter().any(|transfer| {
        let to = plan.boxes[transfer.to_box as usize].owner;
        to != transfer.from && [to as usize, transfer.from as usize].contains(&rank)
    });
    let messages_len_bytes = if is_moving { 2 * MESSAGES_LEN_BYTES.min(new_len_bytes.max(1 << 20)) } else { 0 };
    let permit = budget.try_acquire(new_len_bytes.saturating_add(messages_len_bytes), "restructuring")?;
    let mut planned = PlannedBoxes { numbers: Vec::new(), patches: Vec::new() };
    for (number, owned) in owned() {
        let region = owned.region;
        let arrays = match stays(number, patches) {
            Some(patch) => std::mem::take(&mut patches[patch].arrays),
            None => {
                let samples = region.sample_count().unwrap_or(u64::MAX);
                let zeros = |len: &usize| zeros(samples.saturating_mul(*len as u64)).map(Cow::Owned);
                let mut patch = BoxData { region, arrays: sample_lens.iter().map(zeros).collect::<Result<_>>()? };
                for transfer in transfers_to(number).iter().filter(|transfer| transfer.from as usize == rank) {
                    let from = &patches[transfer.from_box as usize];
                    for (field, sample_len_bytes) in sample_lens.iter().enumerate() {
                        let to = (&region, patch.arrays[field].to_mut().as_mut_slice());
                        copy_part((&from.region, &from.arrays[field]), to, &transfer.part, *sample_len_bytes)?;
                    }
                }
                patch.arrays
            }
        };
        planned.numbers.push(number);
        planned.patches.push(BoxData { region, arrays });
    }
    Ok((planned, permit))
}

/// Allocates zeroed memory for samples.
pub(crate) fn zero_samples(samples: Option<u64>, sample_len_bytes: usize) -> Result<Vec<u8>> {
    zeros(samples.and_then(|samples| samples.checked_mul(sample_len_bytes as u64)).unwrap_or(u64::MAX))
}

fn len_of(parcel: &Message, sample_len_bytes: usize) -> usize {
    // The part lies in an array in memory, so its length fits.
    parcel.part.sample_count().unwrap_or(0) as usize * sample_len_bytes
}

fn pack(from: &BoxData<'_>, parcel: &Message, sample_len_bytes: usize, message: &mut Vec<u8>) -> Result<()> {
    let start = message.len();
    message.resize(start + len_of(parcel, sample_len_bytes), 0);
    let source = (&from.region, from.arrays[parcel.field].as_ref());
    Ok(copy_part(source, (&parcel.part, &mut message[start..]), &parcel.part, sample_len_bytes)?)
}

fn unpack(
    message: &[u8],
    at: &mut usize,
    parcel: &Message,
    sample_len_bytes: usize,
    to: &mut BoxData<'_>,
) -> Result<()> {
    let end = *at + len_of(parcel, sample_len_bytes);
    let Some(bytes) = message.get(*at..end) else {
        let (operation, got_bytes) = (OPERATION, message.len());
        return Err(CoreError::MessageLength { operation, got_bytes, expected_bytes: end }.into());
    };
    *at = end;
    let target = (&to.region, to.arrays[parcel.field].to_mut().as_mut_slice());
    Ok(copy_part((&parcel.part, bytes), target, &parcel.part, sample_len_bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::IdxError;
    use crate::write::restructure::{ImposedBox, tests::partitions};
    use proptest::prelude::*;
    use raddle_core::ranks::threads::Threads;

    /// Returns a sample of `len` bytes that encodes its position.
    fn sample(number: u64, len: usize) -> Vec<u8> {
        (0..len).map(|byte| (number.wrapping_mul(0x9E37_79B9) >> (byte % 4 * 8)) as u8).collect()
    }

    fn filled(domain: &SampleBox, of: &SampleBox, len: usize) -> Vec<u8> {
        let whole: Vec<u8> = (0..domain.sample_count().unwrap()).flat_map(|number| sample(number + 1, len)).collect();
        let mut out = vec![0; of.sample_count().unwrap() as usize * len];
        copy_part((domain, &whole), (of, &mut out), of, len).unwrap();
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn samples_arrive_in_their_boxes((domain, partition) in partitions(), side in 1u64..9) {
            let lens = [4, 3];
            let plan = Restructuring::new(&domain, &partition, ImposedBox::Counts([side; 5])).unwrap();
            let after = plan.partition(partition.len());
            Threads::run(partition.len(), |ranks| {
                let patch = |region: &SampleBox| BoxData {
                    region: *region,
                    arrays: lens.iter().map(|len| filled(&domain, region, *len).into()).collect(),
                };
                let patches = partition[ranks.rank()].iter().map(patch).collect();
                let budget = MemoryBudget::new(1 << 30);
                let got = restructure(&plan, patches, &lens, &budget, ranks, &mut Traffic::default()).unwrap().0;
                assert_eq!(got.iter().map(|patch| patch.region).collect::<Vec<_>>(), after[ranks.rank()]);
                for patch in got {
                    for (array, len) in patch.arrays.iter().zip(lens) {
                        assert!(array.as_ref() == filled(&domain, &patch.region, len), "{}", patch.region);
                    }
                }
            });
        }

        #[test]
        fn rounds_are_bounded_and_complete((domain, partition) in partitions(), limit in 1u64..400) {
            let lens = [4, 3];
            let plan = Restructuring::new(&domain, &partition, ImposedBox::Default).unwrap();
            let ranks = partition.len();
            let owner = |parcel: &Message| plan.boxes[plan.transfers[parcel.transfer].to_box as usize].owner as usize;
            let all: Vec<_> = (0..ranks).map(|rank| rounds(&plan, &lens, ranks, rank, limit)).collect();
            let mut moved = 0;
            for (rank, local_rounds) in all.iter().enumerate() {
                prop_assert_eq!(local_rounds.len(), all[0].len());
                for round in local_rounds {
                    for sends in [true, false] {
                        let of = |parcel: &&Message| {
                            let from = plan.transfers[parcel.transfer].from as usize;
                            if sends { from == rank } else { owner(parcel) == rank }
                        };
                        let lens: Vec<usize> =
                            round.iter().filter(of).map(|parcel| len_of(parcel, lens[parcel.field])).collect();
                        prop_assert!(lens.iter().sum::<usize>() as u64 <= limit || lens.len() == 1);
                        moved += if sends { lens.iter().sum::<usize>() } else { 0 };
                    }
                }
            }
            let away = plan.transfers.iter().filter(|of| plan.boxes[of.to_box as usize].owner != of.from);
            prop_assert_eq!(moved as u64, away.map(|of| of.part.sample_count().unwrap() * 7).sum::<u64>());
        }
    }

    #[test]
    fn a_rank_without_memory_makes_all_fail() {
        let domain = SampleBox::new(&[0], &[8]);
        let partition = vec![vec![SampleBox::new(&[0], &[3])], vec![SampleBox::new(&[3], &[5])]];
        let plan = Restructuring::new(&domain, &partition, ImposedBox::Default).unwrap();
        let results = Threads::run(2, |ranks| {
            let region = partition[ranks.rank()][0];
            let patches = vec![BoxData { region, arrays: vec![filled(&domain, &region, 1).into()] }];
            let budget = MemoryBudget::new(if ranks.rank() == 1 { 4 } else { 1 << 30 });
            restructure(&plan, patches, &[1], &budget, ranks, &mut Traffic::default()).map(|_| ())
        });
        assert!(matches!(results[0], Err(IdxError::Core(CoreError::RankFailed { rank: 1, .. }))), "{results:?}");
        assert!(matches!(results[1], Err(IdxError::Core(CoreError::Memory { .. }))), "{results:?}");
    }
}
