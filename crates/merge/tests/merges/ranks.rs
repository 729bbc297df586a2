//! Merges by several ranks, which are threads here: bytes, digests and errors are those of a merge by one rank.

use crate::folder::count_left_beside;
use proptest::prelude::*;
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::{Event, Silent, Stage};
use raddle_hdf5::default_format::{DefaultDatasetSpec, DefaultFormatFile, Element};
use raddle_merge::conventions::ConcatAxis;
use raddle_merge::plan::chunk::Chunk;
use raddle_merge::{
    Compress, Contiguous, Link, MergeContext, MergeError, MergeOptions, MergeReport, Watch, merge_collective,
    plan_collective,
};
use raddle_testing::plain;
use raddle_testing::strategy::{SchemaOptions, files};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub type Outcome = Result<Option<MergeReport>, MergeError>;

pub fn merge_by(ranks: &dyn Communicator, inputs: &[PathBuf], options: &MergeOptions, watch: &Watch<'_>) -> Outcome {
    let plan = plan_collective(inputs, options, watch, ranks)?;
    merge_collective(&plan, watch, ranks, MergeContext::default())
}

pub fn run(size: usize, inputs: &[PathBuf], options: &MergeOptions) -> Vec<Outcome> {
    Threads::run(size, |ranks| {
        // Ranks need not have the same number of threads.
        let options = MergeOptions { jobs: 1 + (options.jobs + ranks.rank()) % 3, ..options.clone() };
        merge_by(ranks, inputs, &options, &Watch { observer: &Silent, cancel: &CancelToken::new() })
    })
}

/// Returns the report of rank 0, after checking that all ranks succeeded.
pub fn report(outcomes: Vec<Outcome>) -> MergeReport {
    let mut reports: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap()).collect();
    assert!(reports[1..].iter().all(Option::is_none), "only the first rank reports");
    reports.swap_remove(0).unwrap()
}

/// Whether a rank was stopped, with or without work that is kept.
pub fn is_stopped(outcome: &Outcome) -> bool {
    match outcome {
        Err(MergeError::Resumable { source, .. }) => matches!(**source, MergeError::Cancelled),
        outcome => matches!(outcome, Err(MergeError::Cancelled)),
    }
}

/// Returns inputs with a dataset of `chunks` chunks each, and options for merging them.
pub fn numbers(folder: &Path, files: u32, chunks: u64) -> (Vec<PathBuf>, MergeOptions) {
    let make = |file: u32| {
        let path = folder.join(format!("in{file}.h5"));
        let mut out = DefaultFormatFile::create(&path).unwrap();
        for name in ["/a", "/b"] {
            let spec = DefaultDatasetSpec {
                element: Element::U32,
                dims: vec![chunks * 5000, 1],
                chunk_shape: vec![5000, 1],
                gzip_level: 1,
            };
            let mut dataset = out.create_dataset(name.as_bytes(), &spec).unwrap();
            for chunk in 0..chunks {
                let raw: Vec<u8> = (0..5000_u32)
                    .flat_map(|row| (row.wrapping_mul(file * 31 + chunk as u32 + 7) >> 3).to_le_bytes())
                    .collect();
                // Written as if deflate had been skipped.
                dataset.write_chunk(&[chunk * 5000, 0], &raw, 1).unwrap();
            }
        }
        out.finish().unwrap();
        path
    };
    let chunk = Some(vec![3000]);
    (
        (0..files).map(make).collect(),
        MergeOptions { chunk: chunk.map(Chunk::from), ..MergeOptions::new(folder.join("merged.h5")) },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_number_of_ranks_makes_the_bytes_of_one(
        specs in files(SchemaOptions::default()),
        compress in prop_oneof![Just(Compress::default()), Just(Compress::Keep)],
        contiguous in prop_oneof![Just(Contiguous::Small), Just(Contiguous::All)],
        jobs in 1_usize..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let output = folder.path().join("merged.h5");
        let options = MergeOptions { compress, contiguous, jobs, force: true, ..MergeOptions::new(&output) };
        let one = report(run(1, &inputs, &options));
        let bytes = std::fs::read(&output).unwrap();
        for size in [2, 3, 4, 7] {
            let several = report(run(size, &inputs, &options));
            prop_assert!(std::fs::read(&output).unwrap() == bytes, "{size} ranks made other bytes");
            prop_assert_eq!(&several.digest, &one.digest);
            prop_assert_eq!(several.engine.tiles, one.engine.tiles);
            prop_assert_eq!(several.engine.stored_len_bytes, one.engine.stored_len_bytes);
            prop_assert_eq!(count_left_beside(&output), 0);
        }
    }

    #[test]
    fn tiles_in_any_order_have_the_same_values(specs in files(SchemaOptions::default()), size in 2_usize..5) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let options = |ordered, name| MergeOptions { ordered, ..MergeOptions::new(folder.path().join(name)) };
        let (ordered, unordered) = (options(true, "ordered.h5"), options(false, "unordered.h5"));
        let digests = [&ordered, &unordered].map(|options| report(run(size, &inputs, options)).digest);
        prop_assert_eq!(&digests[0], &digests[1]);
        let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
        let verified = raddle_merge::verify(&unordered.output, &inputs, &unordered, &watch).unwrap();
        prop_assert!(verified.mismatches.is_empty(), "{verified:?}");
    }
}

#[test]
fn ranks_share_a_contiguous_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 3, 100);
    let options = MergeOptions { force: true, chunk: None, contiguous: Contiguous::All, ..options };
    let one = report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    for size in [2, 3, 5] {
        let several = report(run(size, &inputs, &options));
        assert!(std::fs::read(&options.output).unwrap() == bytes, "{size} ranks made other bytes");
        assert_eq!(several.digest, one.digest);
        let encoders = several.engine.stages.iter().filter(|stage| stage.stage == Stage::Encode && stage.calls > 0);
        assert_eq!(encoders.count(), size, "every rank has something to do");
    }
}

#[test]
fn ranks_share_the_last_axis() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, mut options) = numbers(folder.path(), 3, 20);
    options.conventions.axis = ConcatAxis::Number(-1);
    let options = MergeOptions { force: true, chunk: Some(vec![3000, 2].into()), ..options };
    let one = report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    for size in [2, 3, 5] {
        let several = report(run(size, &inputs, &options));
        assert!(std::fs::read(&options.output).unwrap() == bytes, "{size} ranks made other bytes");
        assert_eq!(several.digest, one.digest);
    }
    let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
    let verified = raddle_merge::verify(&options.output, &inputs, &options, &watch).unwrap();
    assert!(verified.mismatches.is_empty(), "{verified:?}");
}

#[test]
fn many_rounds_and_more_ranks_than_files() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 3, 40);
    // With little memory there are many rounds.
    let options = MergeOptions { force: true, memory_limit_bytes: 48 << 20, ..options };
    let one = report(run(1, &inputs, &options));
    assert!(one.engine.tiles > 300, "{}", one.engine.tiles);
    let bytes = std::fs::read(&options.output).unwrap();
    for size in [2, 4, 16] {
        let several = report(run(size, &inputs, &options));
        assert!(std::fs::read(&options.output).unwrap() == bytes, "{size} ranks made other bytes");
        assert_eq!(several.digest, one.digest);
        let encoders = several.engine.stages.iter().filter(|stage| stage.stage == Stage::Encode && stage.calls > 0);
        assert_eq!(encoders.count(), size, "every rank has something to do");
    }
}

#[test]
fn more_inputs_than_a_window_are_scanned_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 150, 1);
    let one = report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    let scanned = AtomicU64::new(0);
    let options = MergeOptions { force: true, ..options };
    let outcomes = Threads::run(3, |ranks| {
        let is_first = ranks.rank() == 0;
        let observer = |event: &Event| {
            if let Event::Advanced { stage: Stage::Scan, items, .. } = event
                && is_first
            {
                scanned.fetch_add(*items, Ordering::Relaxed);
            }
        };
        merge_by(ranks, &inputs, &options, &Watch { observer: &observer, cancel: &CancelToken::new() })
    });
    assert_eq!(report(outcomes).digest, one.digest);
    assert!(std::fs::read(&options.output).unwrap() == bytes);
    assert_eq!(scanned.into_inner(), 150, "the first rank shows the progress of all");
}

#[test]
fn links_and_inputs_left_out_are_the_same_on_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let (mut inputs, options) = numbers(folder.path(), 5, 2);
    report(run(3, &inputs[..1], &MergeOptions { link: Link::ExternalObjects, force: true, ..options.clone() }));
    for link in [Link::Virtual, Link::External] {
        let options = MergeOptions { link, force: true, ..options.clone() };
        report(run(1, &inputs, &options));
        let bytes = std::fs::read(&options.output).unwrap();
        report(run(3, &inputs, &options));
        assert!(std::fs::read(&options.output).unwrap() == bytes, "{link:?}");
    }
    let (cut, none) = (folder.path().join("cut.h5"), folder.path().join("none.h5"));
    std::fs::write(&cut, &std::fs::read(&inputs[0]).unwrap()[..4000]).unwrap();
    inputs.extend([cut, none]);
    let options = MergeOptions { force: true, skip_bad: true, ..options };
    let one = report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    let several = report(run(4, &inputs, &options));
    assert!(std::fs::read(&options.output).unwrap() == bytes);
    assert_eq!((one.skipped.len(), &one.skipped), (2, &several.skipped));
    let options = MergeOptions { skip_bad: false, ..options };
    for outcome in run(4, &inputs, &options) {
        let Err(MergeError::BadInputs { bad }) = outcome else { panic!("{outcome:?}") };
        let reported: Vec<String> = bad.iter().map(|bad| bad.error.to_string()).collect();
        assert_eq!(reported, several.skipped.iter().map(|skipped| skipped.reason.clone()).collect::<Vec<_>>());
    }
}

#[test]
fn a_failure_of_one_rank_is_the_outcome_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 3, 20);
    // A different kind of failure in each stage: the output's folder, a missing input, a stopped rank.
    std::fs::write(&options.output, b"what was there before").unwrap();
    let outcomes = run(3, &inputs, &options);
    assert!(matches!(&outcomes[0], Err(MergeError::Output { .. })), "{outcomes:?}");
    for outcome in &outcomes[1..] {
        let reported = outcome.as_ref().unwrap_err().to_string();
        assert!(reported.contains("rank 0 failed") && reported.contains("exists"), "{reported}");
    }
    let options = MergeOptions { force: true, ..options };
    let gone = folder.path().join("gone.h5");
    let outcomes = Threads::run(3, |ranks| {
        let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
        let plan = plan_collective(&inputs, &options, &watch, ranks).unwrap();
        ranks.barrier().unwrap();
        if ranks.rank() == 2 {
            std::fs::rename(&inputs[1], &gone).unwrap();
        }
        ranks.barrier().unwrap();
        merge_collective(&plan, &watch, ranks, MergeContext::default()).unwrap_err().to_string()
    });
    assert!(outcomes.iter().all(|reported| reported.contains("in1.h5")), "{outcomes:?}");
    assert!(outcomes.iter().any(|reported| !reported.contains("failed: /")), "one has its own error: {outcomes:?}");
    std::fs::rename(&gone, &inputs[1]).unwrap();
    assert_eq!(std::fs::read(&options.output).unwrap(), b"what was there before");
    assert_eq!(count_left_beside(&options.output), 0);
    report(run(3, &inputs, &options));
}

#[test]
fn one_rank_that_is_stopped_stops_all() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 4, 20);
    let mut stopped = 0;
    for stop_at in 0..30 {
        let outcomes = Threads::run(3, |ranks| {
            let (cancel, events, is_one) = (CancelToken::new(), AtomicU64::new(0), ranks.rank() == 1);
            let observer = |_: &Event| {
                if is_one && events.fetch_add(1, Ordering::Relaxed) == stop_at {
                    cancel.cancel();
                }
            };
            merge_by(ranks, &inputs, &options, &Watch { observer: &observer, cancel: &cancel })
        });
        if outcomes.iter().all(Result::is_ok) {
            std::fs::remove_file(&options.output).unwrap();
            assert_eq!(count_left_beside(&options.output), 0);
            continue;
        }
        stopped += 1;
        assert!(outcomes.iter().all(is_stopped), "{outcomes:?}");
        assert!(!options.output.exists());
    }
    assert!(stopped > 5, "{stopped}");
}
