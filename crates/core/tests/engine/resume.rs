//! Going on behind what an earlier run placed: the same bytes and claims, and nothing made twice.

use crate::work::*;
use raddle_core::cancel::CancelToken;
use raddle_core::communicator::SingleProcess;
use raddle_core::digest::Digest;
use raddle_core::engine::{
    Committed, Context, EngineError, EngineOptions, Kept, PlacedBatch, Placement, Recorder, execute_part,
    execute_recorded,
};
use raddle_core::memory::MemoryBudget;
use raddle_core::plan::Plan;
use raddle_core::progress::{Silent, Stage};

/// Keeps a list of batches.
#[derive(Default)]
struct Recorded {
    kept: Vec<PlacedBatch>,
    given: usize,
    placed: Vec<PlacedBatch>,
}

impl Recorded {
    fn of(kept: &[PlacedBatch]) -> Self {
        Self { kept: kept.to_vec(), ..Self::default() }
    }
}

impl Recorder for Recorded {
    fn kept(&self) -> Kept {
        Kept {
            tiles: self.kept.iter().map(|batch| batch.tiles).sum(),
            stored_len_bytes: self.kept.iter().map(|batch| batch.stored_len_bytes).sum(),
        }
    }

    fn next_kept(&mut self) -> std::io::Result<Option<PlacedBatch>> {
        self.given += 1;
        Ok(self.kept.get(self.given - 1).cloned())
    }

    fn placed(&mut self, batch: &PlacedBatch) {
        self.placed.push(batch.clone());
    }
}

fn recorded(
    plan: &Plan,
    work: &Pattern,
    recorder: &mut Recorded,
    jobs: usize,
) -> (Result<u64, EngineError<Refused>>, Memory, Arrays) {
    let (sink, budget, cancel) = (Memory::default(), MemoryBudget::new(BUDGET), CancelToken::new());
    let context = Context { communicator: &SingleProcess, budget: &budget, observer: &Silent, cancel: &cancel };
    let mut arrays = Vec::new();
    let mut commit = |done: Committed<'_>| {
        arrays.push((done.array, done.claims.to_vec(), done.fill_tiles));
        Ok(())
    };
    let options = options(jobs, Placement::Ordered, 1000);
    let outcome = execute_recorded(plan, work, &sink, &mut commit, recorder, &options, &context);
    let stored = outcome.map(|report| {
        assert_eq!(report.end_address, START + report.stored_len_bytes);
        report.stored_len_bytes
    });
    (stored, sink, arrays)
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
                let report = execute_part(&plan, &work, &sink, range.clone(), recorder, &options, &context).unwrap();
                (report.stored_len_bytes, sink)
            };
            let mut recorder = Recorded::default();
            let (stored_len_bytes, sink) = make(&mut recorder);
            assert_eq!(recorder.placed.iter().map(|batch| batch.tiles).sum::<u64>(), range.end - range.start);
            // The second half of it again, behind the first.
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
        assert!(sink.bytes(START).is_empty(), "nothing is made again");
    }
}

#[test]
fn a_run_goes_on_behind_any_batch() {
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
fn what_was_recorded_before_a_failure_is_enough_to_go_on() {
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
