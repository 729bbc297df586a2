//! Outcomes of a merge that ranks share: the work kept for a later run, messages gathered in steps, and stage times.
//!
//! Invariant: every rank makes the same calls, also after an error, unless it can no longer reach the others.

use crate::error::{MergeError, Result};
use raddle_core::CoreError;
use raddle_core::engine::Checkpoint;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::{StageReport, StageTable};
use std::ops::Range;

/// The run ended without an error on this rank.
const ENDED_WELL: u64 = 0;
/// The run failed on this rank, but may succeed next time.
const RETRYABLE: u64 = 1;
/// The run failed on this rank and would fail again.
const USELESS: u64 = 2;
/// The run failed because of another rank.
const ECHO: u64 = 3;

/// Collective. Returns the work that is kept for a later run after this one ended with `error` on this rank. It is the
/// work that the first rank has `recorded`, if all ranks with errors of their own may succeed next time. Every rank
/// must call this.
pub fn agree_what_is_kept(
    ranks: &dyn Communicator,
    error: Option<&MergeError>,
    recorded: Option<Checkpoint>,
) -> Result<Option<Checkpoint>> {
    let ended = match error {
        None => ENDED_WELL,
        Some(error) if error.is_secondary() => ECHO,
        Some(error) if error.is_resumable() => RETRYABLE,
        Some(_) => USELESS,
    };
    let all = match ranks.all_gather_u64(ended) {
        // A rank that failed and can no longer reach the others decides alone.
        Err(CoreError::RankLeft { .. }) if ended == RETRYABLE => return Ok(recorded),
        all => all?,
    };
    if !all.contains(&RETRYABLE) || all.contains(&USELESS) {
        return Ok(None);
    }
    let Checkpoint { tiles, stored_len_bytes } = recorded.unwrap_or_default();
    let mut words = [u64::from(recorded.is_some()), tiles, stored_len_bytes];
    for word in &mut words {
        *word = ranks.all_gather_u64(*word)?[0];
    }
    let [is_recorded, tiles, stored_len_bytes] = words;
    Ok((is_recorded != 0).then_some(Checkpoint { tiles, stored_len_bytes }))
}

/// Collective. Sends the message `local` to all ranks and passes the message of each rank to `take`, complete and in
/// rank order. At most `step_len_bytes` of all messages are sent at once, however long they are.
pub fn gather_in_steps(
    ranks: &dyn Communicator,
    local: &[u8],
    step_len_bytes: u64,
    mut take: impl FnMut(usize, &[u8]),
) -> Result<()> {
    if ranks.size() == 1 {
        take(0, local);
        return Ok(());
    }
    let lens = ranks.all_gather_u64(local.len() as u64)?;
    let before: u64 = lens[..ranks.rank()].iter().sum();
    let total = lens.iter().sum();
    // The concatenated messages are sent in order, so at most one is incomplete at any time.
    let (mut message, mut start) = (Vec::new(), 0_u64);
    while start < total {
        let end = start.saturating_add(step_len_bytes.max(1)).min(total);
        let within = |place: u64| place.saturating_sub(before).min(local.len() as u64) as usize;
        let parts = ranks.all_gather_bytes(&local[within(start)..within(end)])?;
        for (rank, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            message.extend_from_slice(part);
            if message.len() as u64 == lens[rank] {
                take(rank, &message);
                message.clear();
            }
        }
        start = end;
    }
    Ok(())
}

/// Collective. Returns the stage reports of all ranks.
pub fn stages_of_all(local: &StageTable, ranks: &dyn Communicator) -> Result<Vec<StageReport>> {
    const OPERATION: &str = "gather the report";
    Ok(ranks.all_gather_values(OPERATION, &local.reports(ranks.rank() as u32))?.concat())
}

/// Returns which of `count` items this rank processes: every `size`-th, so that neighbours are on different ranks.
pub fn share(ranks: &dyn Communicator, count: usize) -> impl Iterator<Item = usize> + use<> {
    (ranks.rank()..count).step_by(ranks.size())
}

/// Returns the consecutive items that this rank processes, so that every rank gets about the same total cost.
pub fn share_by_cost(ranks: &dyn Communicator, costs: impl Iterator<Item = u64>) -> Range<usize> {
    let mut total = 0_u128;
    let begin = |cost: u64| {
        let begin = total;
        total += u128::from(cost.max(1));
        begin
    };
    let begins: Vec<u128> = costs.map(begin).collect();
    // An item belongs to the rank in whose share of the total cost it begins.
    let size = ranks.size() as u128;
    let first_of = |rank: u128| begins.partition_point(|begin| begin * size < rank * total);
    let rank = ranks.rank() as u128;
    first_of(rank)..first_of(rank + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_core::ranks::threads::Threads;

    #[test]
    fn one_outcome_on_all_ranks() {
        let failure = || MergeError::Engine { object: "/a".to_owned(), reason: "no".to_owned() };
        let outcomes = Threads::run(3, |ranks| {
            let rank = ranks.rank();
            assert_eq!(ranks.agree::<_, MergeError>("a test", Ok(rank)).unwrap(), rank);
            let of_one = |result: Result<()>| if rank == 1 { result } else { Ok(()) };
            assert!(matches!(ranks.agree("a test", of_one(Err(MergeError::Cancelled))), Err(MergeError::Cancelled)));
            // A failure takes precedence over a cancellation.
            let both = if rank == 2 { Err(MergeError::Cancelled) } else { of_one(Err(failure())) };
            ranks.agree("a test", both).unwrap_err().to_string()
        });
        assert_eq!(outcomes[0], "a test: rank 1 failed: /a: no");
        assert_eq!(outcomes[1], "/a: no");
        assert_eq!(outcomes[2], MergeError::Cancelled.to_string());
    }

    #[test]
    fn what_is_recorded_is_kept_unless_a_rank_would_do_no_better() {
        let (stopped, bad) = (MergeError::Cancelled, MergeError::NoInputs { hint: String::new() });
        let failed = raddle_core::CoreError::RankFailed { operation: "a test", rank: 2, message: String::new() };
        let echo = MergeError::Core(failed);
        let kept = Checkpoint { tiles: 3, stored_len_bytes: 40 };
        let received = |errors: [Option<&MergeError>; 3], recorded| {
            let received = Threads::run(3, |ranks| {
                let recorded = (ranks.rank() == 0).then_some(recorded).flatten();
                agree_what_is_kept(ranks, errors[ranks.rank()], recorded).unwrap()
            });
            assert!(received.iter().all(|kept| *kept == received[0]), "{received:?}");
            received[0]
        };
        assert_eq!(received([Some(&echo), Some(&echo), Some(&stopped)], Some(kept)), Some(kept));
        assert_eq!(received([Some(&stopped); 3], Some(kept)), Some(kept));
        assert_eq!(received([Some(&stopped); 3], None), None);
        assert_eq!(received([Some(&stopped), Some(&bad), Some(&echo)], Some(kept)), None);
        assert_eq!(received([None; 3], Some(kept)), None);
    }

    #[test]
    fn messages_of_any_length_arrive_whole_and_in_order() {
        let message =
            |rank: usize, lens: &[usize]| -> Vec<u8> { (0..lens[rank]).map(|at| (at * 7 + rank) as u8).collect() };
        for lens in [[0, 0, 0], [5, 0, 1], [0, 300, 7], [64, 64, 64], [1, 2, 1000]] {
            for under_way in [1, 7, 64, 1 << 20] {
                Threads::run(3, |ranks| {
                    let mut gathered = Vec::new();
                    let receive = |rank: usize, received: &[u8]| gathered.push((rank, received.to_vec()));
                    gather_in_steps(ranks, &message(ranks.rank(), &lens), under_way, receive).unwrap();
                    let received = (0..3).map(|rank| (rank, message(rank, &lens)));
                    let received: Vec<_> = received.filter(|(_, received)| !received.is_empty()).collect();
                    assert_eq!(gathered, received, "{lens:?} by {under_way}");
                });
            }
        }
    }

    #[test]
    fn shares_are_everything_once() {
        let mut all: Vec<usize> =
            Threads::run(3, |ranks| share(ranks, 10).collect::<Vec<_>>()).into_iter().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        assert_eq!(Threads::run(4, |ranks| share(ranks, 2).count()), [1, 1, 0, 0]);
        let by_cost =
            |size, costs: &'static [u64]| Threads::run(size, |ranks| share_by_cost(ranks, costs.iter().copied()));
        assert_eq!(by_cost(3, &[1, 1, 1, 1, 1, 1]), [0..2, 2..4, 4..6]);
        assert_eq!(by_cost(2, &[10, 1, 1, 8]), [0..1, 1..4]);
        assert_eq!(by_cost(3, &[7, 0, 1]), [0..1, 1..1, 1..3]);
        assert_eq!(by_cost(2, &[]), [0..0, 0..0]);
    }
}
