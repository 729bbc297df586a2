//! Resuming after the tiles placed by an earlier run: the same bytes and claims, and nothing produced twice.

use crate::work::*;
use raddle_core::cancel::CancelToken;
use raddle_core::digest::Digest;
use raddle_core::engine::{
    Checkpoint, Context, EngineError, EngineOptions, Execution, PlacedArray, PlacedBatch, Placement, Recorder,
};
use raddle_core::memory::MemoryBudget;
use raddle_core::output::arenas::Arenas;
use raddle_core::plan::Plan;
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::{Silent, Stage};
use std::sync::Mutex;

/// A recorder that keeps a list of batches.
#[derive(Default)]
struct Recorded {
    kept: Vec<PlacedBatch>,
    requested: usize,
    placed: Vec<PlacedBatch>,
}

impl Recorded {
    fn of(kept: &[PlacedBatch]) -> Self {
        Self { kept: kept.to_vec(), ..Self::default() }
    }
}

impl Recorder for Recorded {
    fn kept(&self) -> Checkpoint {
        Checkpoint {
            tiles: self.kept.iter().map(|batch| batch.tiles).sum(),
            stored_len_bytes: self.kept.iter().map(|batch| batch.stored_len_bytes).sum(),
        }
    }

    fn next_kept(&mut self) -> std::io::Result<Option<PlacedBatch>> {
        self.requested += 1;
        Ok(self.kept.get(self.requested - 1).cloned())
    }

    fn placed(&mut self, batch: &PlacedBatch) {
        self.placed.push(batch.clone());
    }
}

type Stored = Result<u64, EngineError<Refused>>;

/// Threads that write.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Writes {
    /// Each worker writes its own batches.
    Each,
    /// The ranks write together, round by round.
    Together,
}
use Writes::{Each, Together};

/// Returns the outcomes of all ranks, the bytes they wrote, and the arrays that the first rank committed.
fn recorded_by(
    (ranks, writes): (usize, Writes),
    plan: &Plan,
    work: &Pattern,
    recorder: &mut Recorded,
    jobs: usize,
) -> (Vec<Stored>, Memory, Arrays) {
    let (sink, recorder) = (Memory::default(), Mutex::new(recorder));
    let mut results = Threads::run(ranks, |communicator| {
        // Little memory forces many rounds.
        let (budget, cancel) = (MemoryBudget::new(if ranks == 1 { BUDGET } else { 1 << 20 }), CancelToken::new());
        let context = Context { communicator, budget: &budget, observer: &Silent, cancel: &cancel };
        let mut arrays = Vec::new();
        let mut commit = |done: PlacedArray<'_>| {
            arrays.push((done.array, done.claims.to_vec(), done.fill_tiles));
            Ok(())
        };
        let options = options(jobs, Placement::Ordered, 1000);
        let mut recorder = (communicator.rank() == 0).then(|| recorder.lock().unwrap());
        let recorder = recorder.as_mut().map(|recorder| &mut ***recorder as &mut dyn Recorder);
        let execution = match writes {
            Together => Execution::shared(plan, work, &sink),
            Each => Execution::new(plan, work, &sink),
        };
        let execution = execution.commit(&mut commit);
        let outcome = match recorder {
            Some(recorder) => execution.record(recorder),
            None => execution,
        };
        let outcome = outcome.run(&options, &context);
        let stored = outcome.map(|report| {
            assert_eq!(report.end_address, START + report.stored_len_bytes);
            let fill_tiles = expected(plan, work).1.iter().map(|array| array.2).sum::<u64>();
            assert_eq!((report.tiles, report.fill_tiles), (plan.tile_count(), fill_tiles));
            report.stored_len_bytes
        });
        (stored, arrays)
    });
    assert!(results[1..].iter().all(|(_, arrays)| arrays.is_empty()), "only the first rank commits");
    let arrays = std::mem::take(&mut results[0].1);
    (results.into_iter().map(|(stored, _)| stored).collect(), sink, arrays)
}

/// Like [`recorded_by`], in a single process.
fn recorded(plan: &Plan, work: &Pattern, recorder: &mut Recorded, jobs: usize) -> (Stored, Memory, Arrays) {
    let (mut stored, sink, arrays) = recorded_by((1, Each), plan, work, recorder, jobs);
    (stored.remove(0), sink, arrays)
}

#[test]
fn parts_make_the_bytes_of_the_whole() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let (bytes, arrays) = expected(&plan, &work);
    let tiles = plan.tile_count();
    for parts in [1, 2, 3, 7, tiles] {
        let (mut joined, mut kept, mut address) = (Vec::new(), Vec::new(), START);
        for part in 0..parts {
            let range = part * tiles / parts..(part + 1) * tiles / parts;
            let budget = MemoryBudget::new(BUDGET);
            let cancel = CancelToken::new();
            let context = Context { communicator: &SingleProcess, budget: &budget, observer: &Silent, cancel: &cancel };
            let options = EngineOptions { start_address: 0, ..options(2, Placement::Unordered, 1000) };
            let make = |recorder: &mut Recorded| {
                let sink = Memory::default();
                let report = Execution::new(&plan, &work, &sink)
                    .part(range.clone())
                    .record(recorder)
                    .run(&options, &context)
                    .unwrap();
                (report.stored_len_bytes, sink)
            };
            let mut recorder = Recorded::default();
            let (stored_len_bytes, sink) = make(&mut recorder);
            assert_eq!(recorder.placed.iter().map(|batch| batch.tiles).sum::<u64>(), range.end - range.start);
            // Record the second half again, after itself.
            let half = recorder.placed.len() / 2;
            let mut rest = Recorded::of(&recorder.placed[..half]);
            let (again, end) = make(&mut rest);
            assert_eq!((again, &rest.placed), (stored_len_bytes, &recorder.placed[half..].to_vec()));
            let from = rest.kept().stored_len_bytes;
            assert_eq!(end.bytes(from), sink.bytes(0)[from as usize..]);
            joined.extend(sink.bytes(0));
            for mut batch in recorder.placed {
                batch.address += address;
                batch.claims.iter_mut().for_each(|claim| claim.address += address);
                kept.push(batch);
            }
            address += stored_len_bytes;
        }
        assert!(joined == bytes, "{parts} parts");
        let (stored, sink, committed) = recorded(&plan, &work, &mut Recorded::of(&kept), 2);
        assert_eq!((stored.unwrap(), &committed), (bytes.len() as u64, &arrays));
        assert!(sink.bytes(START).is_empty(), "nothing is produced twice");
    }
}

#[test]
fn a_run_resumes_after_any_batch() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let (bytes, arrays) = expected(&plan, &work);
    let mut whole = Recorded::default();
    let (stored, _, committed) = recorded(&plan, &work, &mut whole, 2);
    assert_eq!((stored.unwrap(), &committed), (bytes.len() as u64, &arrays));
    let all = whole.placed;
    assert!(all.len() > 20);
    let mut next = (0, START);
    for batch in &all {
        assert_eq!((batch.first, batch.address), next);
        next = (batch.first + batch.tiles, batch.address + batch.stored_len_bytes);
        let at = (batch.address - START) as usize;
        let stored = &bytes[at..at + batch.stored_len_bytes as usize];
        assert_eq!(batch.checksum, Digest::of(stored).crc64_nvme());
        assert_eq!(batch.note, b"note");
    }
    for keep in 0..=all.len() {
        let mut again = Recorded::of(&all[..keep]);
        let kept_len = again.kept().stored_len_bytes;
        let (stored, sink, committed) = recorded(&plan, &work, &mut again, 1 + keep % 3);
        assert_eq!((stored.unwrap(), &committed), (bytes.len() as u64, &arrays), "{keep} batches kept");
        assert_eq!(sink.bytes(START + kept_len), bytes[kept_len as usize..], "{keep} batches kept");
        assert_eq!(again.placed.iter().map(|batch| batch.tiles).sum::<u64>(), plan.tile_count() - again.kept().tiles);
    }
}

#[test]
fn what_is_kept_may_end_inside_of_a_batch() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let (bytes, arrays) = expected(&plan, &work);
    let index = plan.tile_index();
    for tiles in [1, 2, 3, 50, 101] {
        let claims: Vec<_> = arrays
            .iter()
            .flat_map(|(_, claims, _)| claims)
            .filter(|claim| index.ordinal(claim.tile).unwrap() < tiles)
            .copied()
            .collect();
        let stored_len_bytes = claims.iter().map(|claim| claim.len_bytes).sum();
        let kept = PlacedBatch { tiles, address: START, stored_len_bytes, claims, ..PlacedBatch::default() };
        let (stored, sink, committed) = recorded(&plan, &work, &mut Recorded::of(&[kept]), 2);
        assert_eq!((stored.unwrap(), &committed), (bytes.len() as u64, &arrays), "{tiles} tiles kept");
        assert_eq!(sink.bytes(START + stored_len_bytes), bytes[stored_len_bytes as usize..], "{tiles} tiles kept");
    }
}

#[test]
fn what_was_recorded_before_a_failure_is_enough_to_resume() {
    let plan = mixed();
    let (bytes, arrays) = expected(&plan, &Pattern::of(&plan));
    let refuse = Some(Refused { array: 30, index: 2, stage: Stage::Encode });
    let mut first = Recorded::default();
    let (stopped, ..) = recorded(&plan, &Pattern { refuse, ..Pattern::of(&plan) }, &mut first, 2);
    assert!(matches!(stopped, Err(EngineError::Tile { .. })));
    let mut second = Recorded::of(&first.placed);
    let kept_len = second.kept().stored_len_bytes;
    let (stored, sink, committed) = recorded(&plan, &Pattern::of(&plan), &mut second, 2);
    assert_eq!((stored.unwrap(), committed), (bytes.len() as u64, arrays));
    assert_eq!(sink.bytes(START + kept_len), bytes[kept_len as usize..]);
}

#[test]
fn ranks_record_what_one_process_does_and_resume_from_it() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let (bytes, arrays) = expected(&plan, &work);
    let mut whole = Recorded::default();
    recorded(&plan, &work, &mut whole, 2).0.unwrap();
    let all = whole.placed;
    let len_bytes = bytes.len() as u64;
    for ranks in [(2, Each), (3, Each), (4, Each), (1, Together), (2, Together), (3, Together)] {
        for keep in (0..=all.len()).step_by(5).chain([all.len()]) {
            let mut again = Recorded::of(&all[..keep]);
            let kept_len = again.kept().stored_len_bytes;
            let (stored, sink, committed) = recorded_by(ranks, &plan, &work, &mut again, 1 + keep % 3);
            let case = format!("{keep} batches kept, {ranks:?}");
            assert!(stored.into_iter().all(|stored| stored.unwrap() == len_bytes), "{case}");
            assert_eq!(committed, arrays, "{case}");
            assert_eq!(sink.bytes(START + kept_len), bytes[kept_len as usize..], "{case}");
            assert_eq!(again.placed, all[keep..], "{case}");
        }
    }
}

#[test]
fn what_ranks_recorded_before_one_failed_is_written_and_enough_to_resume() {
    let plan = mixed();
    let (bytes, arrays) = expected(&plan, &Pattern::of(&plan));
    let mut most = 0;
    let stops = [(2, Stage::Encode), (17, Stage::Read), (30, Stage::Read), (59, Stage::Read)];
    for ((array, stage), writes) in stops.into_iter().flat_map(|stop| [(stop, Each), (stop, Together)]) {
        let refuse = Some(Refused { array, index: 2, stage });
        let mut first = Recorded::default();
        let (stopped, sink, _) =
            recorded_by((3, writes), &plan, &Pattern { refuse, ..Pattern::of(&plan) }, &mut first, 2);
        assert!(stopped.iter().all(Result::is_err));
        let mut second = Recorded::of(&first.placed);
        let kept_len = second.kept().stored_len_bytes as usize;
        most = most.max(second.kept().tiles);
        let written = sink.runs.into_inner().unwrap();
        let written: Vec<u8> = written.into_values().flatten().take(kept_len).collect();
        assert!(written == bytes[..kept_len], "what is recorded is written");
        // Resume with the other rank count, writing the other way.
        let next = (2, if writes == Each { Together } else { Each });
        let (stored, sink, committed) = recorded_by(next, &plan, &Pattern::of(&plan), &mut second, 1);
        assert!(stored.into_iter().all(|stored| stored.unwrap() == bytes.len() as u64));
        assert_eq!(committed, arrays);
        assert_eq!(sink.bytes(START + kept_len as u64), bytes[kept_len..]);
    }
    assert!(most > plan.tile_count() / 2, "{most} tiles were kept");
}

#[test]
fn nothing_is_recorded_of_tiles_in_arenas() {
    let plan = mixed();
    let work = Pattern::of(&plan);
    let arenas = Some(Arenas { stripe_len_bytes: 512, arena_len_bytes: 2048, lanes: 4 });
    let options = EngineOptions { arenas, ..options(2, Placement::Ordered, 1000) };
    let mut recorder = Recorded::default();
    for writes in [Each, Together] {
        let (sink, budget, cancel) = (Memory::default(), MemoryBudget::new(BUDGET), CancelToken::new());
        let context = Context { communicator: &SingleProcess, budget: &budget, observer: &Silent, cancel: &cancel };
        let commit = &mut |_: PlacedArray<'_>| Ok(());
        let execution = match writes {
            Each => Execution::new(&plan, &work, &sink),
            Together => Execution::shared(&plan, &work, &sink),
        };
        let outcome = execution.commit(commit).record(&mut recorder).run(&options, &context);
        assert!(outcome.unwrap().unused_len_bytes > 0);
        assert_eq!((recorder.placed.len(), recorder.requested), (0, 0));
    }
}
