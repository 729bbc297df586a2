//! Resumes interrupted merges of random files: the bytes are those of an uninterrupted merge.

use crate::folder::count_left_beside;
use crate::ranks::numbers;
use proptest::prelude::*;
use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::{Event, Silent};
use raddle_merge::{Compress, Contiguous, MergeError, MergeOptions, MergeReport, Watch, merge, plan};
use raddle_testing::plain;
use raddle_testing::strategy::{SchemaOptions, files};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Merges, and cancels at the `cancel_at`-th event after planning.
fn run(inputs: &[PathBuf], options: &MergeOptions, cancel_at: Option<u64>) -> Result<MergeReport, MergeError> {
    let cancel = CancelToken::new();
    let plan = plan(inputs, options, &Watch { observer: &Silent, cancel: &cancel })?;
    let events = AtomicU64::new(0);
    let observer = |_: &Event| {
        if Some(events.fetch_add(1, Ordering::Relaxed)) == cancel_at {
            cancel.cancel();
        }
    };
    merge(&plan, &Watch { observer: &observer, cancel: &cancel })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn an_interrupted_merge_is_resumed(
        specs in files(SchemaOptions::default()),
        cancel_at in prop::collection::vec(0_u64..40, 1..4),
        compress in prop_oneof![Just(Compress::default()), Just(Compress::Keep)],
        jobs in 1_usize..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let (whole, output) = (folder.path().join("whole.h5"), folder.path().join("merged.h5"));
        let options = MergeOptions { compress, jobs, force: true, ..MergeOptions::new("") };
        run(&inputs, &MergeOptions { output: whole.clone(), ..options.clone() }, None).unwrap();
        let options = MergeOptions { output: output.clone(), ..options };
        let mut kept_tiles = 0;
        for cancel_at in cancel_at {
            match run(&inputs, &options, Some(cancel_at)) {
                Ok(report) => {
                    prop_assert_eq!(report.resumed_tiles, kept_tiles);
                    kept_tiles = 0;
                    prop_assert_eq!(count_left_beside(&output), 0);
                }
                Err(MergeError::Resumable { kept, source, .. }) => {
                    prop_assert!(matches!(*source, MergeError::Cancelled));
                    prop_assert!(kept.tiles >= kept_tiles, "what was kept is kept");
                    kept_tiles = kept.tiles;
                    prop_assert_eq!(count_left_beside(&output), 2);
                }
                Err(MergeError::Cancelled) => {
                    prop_assert_eq!((kept_tiles, count_left_beside(&output)), (0, 0));
                }
                Err(other) => panic!("{other}"),
            }
        }
        let report = run(&inputs, &options, None).unwrap();
        prop_assert_eq!(report.resumed_tiles, kept_tiles);
        prop_assert!(std::fs::read(&whole).unwrap() == std::fs::read(&output).unwrap());
        prop_assert_eq!(count_left_beside(&output), 0);
    }
}

/// Their tiles are runs of one dataset, and the merge is interrupted between them.
#[test]
fn contiguous_datasets_are_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 3, 100);
    let options = MergeOptions { contiguous: Contiguous::All, chunk: None, jobs: 2, force: true, ..options };
    let whole = folder.path().join("whole.h5");
    run(&inputs, &MergeOptions { output: whole.clone(), ..options.clone() }, None).unwrap();
    let mut kept_in = 0;
    for cancel_at in (0..60).step_by(4) {
        match run(&inputs, &options, Some(cancel_at)) {
            Err(MergeError::Resumable { kept, .. }) => {
                kept_in += u64::from(kept.tiles > 0);
                let report = run(&inputs, &options, None).unwrap();
                assert_eq!(report.resumed_tiles, kept.tiles);
            }
            Err(MergeError::Cancelled) => drop(run(&inputs, &options, None).unwrap()),
            outcome => drop(outcome.unwrap()),
        }
        assert!(std::fs::read(&whole).unwrap() == std::fs::read(&options.output).unwrap(), "cancelled at {cancel_at}");
    }
    assert!(kept_in > 0, "no run was interrupted between tiles");
}
