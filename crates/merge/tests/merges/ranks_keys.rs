//! Partition keys joined by several ranks, which are threads here: bytes, faults and errors are those of a join by one
//! rank.

use crate::folder::count_left_beside;
use crate::keys::{Id, file, options, plain_types, spec};
use crate::ranks::{is_stopped, merge_by, report, run};
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::{Event, Silent, Stage};
use raddle_merge::keys::{DerivedSpec, KeyFault, KeyFaultKind, KeyScope, KeySpec};
use raddle_merge::{MergeError, MergeOptions, Watch, plan_collective};
use raddle_testing::plain;
use raddle_testing::spec::FileSpec;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of rows of the longest table: several stretches for each of several ranks.
const ROWS: i64 = 120_000;

/// Returns the events of a file, shuffled by a factor that is coprime to their number.
fn events(run: i64, count: i64, shuffle: i64) -> Vec<Id> {
    (0..count).map(|event| (run, 0, event * shuffle % count * 3)).collect()
}

/// Returns two files with an index, a table in index order, a shorter one in reverse order, and a few short or empty
/// ones.
fn files(shuffle: i64) -> Vec<FileSpec> {
    let of_run = |run: i64| {
        let count = ROWS / 4 + run;
        let index = events(run, count, shuffle);
        let hits: Vec<Id> = index.iter().flat_map(|id| [*id, *id]).collect();
        let backwards: Vec<Id> = index.iter().rev().step_by(3).copied().collect();
        let (few, none) = (&index[7..12], &index[..0]);
        let tables: [(&str, &[Id]); 6] =
            [("/hits", &hits), ("/back", &backwards), ("/few", few), ("/a", none), ("/b", &few[..1]), ("/z", none)];
        file(&index, &tables, &plain_types())
    };
    vec![of_run(1), of_run(2)]
}

fn prepare(folder: &Path, files: &[FileSpec], spec: &KeySpec) -> (Vec<PathBuf>, MergeOptions) {
    let inputs = plain::make_all(folder, files).unwrap();
    let options = MergeOptions { force: true, ..options(&folder.join("merged.h5"), spec) };
    (inputs, options)
}

#[test]
fn any_number_of_ranks_joins_the_same_keys() {
    // An index in order, and an unordered one, which must be sorted.
    for (name, shuffle, scope) in
        [("ordered", 1, KeyScope::File), ("shuffled", 10_007, KeyScope::File), ("within inputs", 1, KeyScope::Input)]
    {
        let folder = tempfile::tempdir().unwrap();
        let columns = match scope {
            KeyScope::Input => vec!["/spill/evt".to_owned()],
            _ => spec().columns,
        };
        let (inputs, options) = prepare(folder.path(), &files(shuffle), &KeySpec { scope, ..KeySpec::new(columns) });
        let one = report(run(1, &inputs, &options));
        let bytes = std::fs::read(&options.output).unwrap();
        for size in [2, 3, 4] {
            let several = report(run(size, &inputs, &options));
            assert!(std::fs::read(&options.output).unwrap() == bytes, "{name}: {size} ranks made other bytes");
            assert_eq!(several.digest, one.digest);
            assert_eq!(count_left_beside(&options.output), 0);
        }
    }
}

#[test]
fn ranks_of_unequal_memory_join_the_same_keys() {
    let folder = tempfile::tempdir().unwrap();
    let index = events(1, 100_003, 10_007);
    let hits: Vec<Id> = index.iter().rev().flat_map(|id| [*id, *id]).collect();
    let (inputs, options) = prepare(folder.path(), &[file(&index, &[("/hits", &hits)], &plain_types())], &spec());
    report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    // One rank sorts the index as a whole, the other in two blocks, which may hold the same ids.
    let outcomes = Threads::run(2, |ranks| {
        let memory_limit_bytes = [1 << 30, 48 << 20][ranks.rank()];
        let options = MergeOptions { memory_limit_bytes, ..options.clone() };
        merge_by(ranks, &inputs, &options, &Watch { observer: &Silent, cancel: &CancelToken::new() })
    });
    report(outcomes);
    assert!(std::fs::read(&options.output).unwrap() == bytes);
}

#[test]
fn the_progress_of_all_is_shown_by_each() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = prepare(folder.path(), &files(1), &spec());
    let joined = |size: usize| {
        let rows: Vec<u64> = Threads::run(size, |ranks| {
            let joined = AtomicU64::new(0);
            let observer = |event: &Event| {
                if let Event::Advanced { stage: Stage::Keys, bytes, .. } = event {
                    joined.fetch_add(*bytes, Ordering::Relaxed);
                }
            };
            plan_collective(&inputs, &options, &Watch { observer: &observer, cancel: &CancelToken::new() }, ranks)
                .unwrap();
            joined.into_inner()
        });
        assert!(rows.iter().all(|of_rank| *of_rank == rows[0]), "{rows:?}");
        rows[0]
    };
    assert!(joined(1) > ROWS as u64);
    assert_eq!(joined(3), joined(1));
}

fn faults(size: usize, inputs: &[PathBuf], options: &MergeOptions) -> Vec<KeyFault> {
    let reported: Vec<Vec<KeyFault>> = run(size, inputs, options)
        .into_iter()
        .map(|outcome| match outcome {
            Err(MergeError::KeyFaults { faults }) => faults,
            outcome => panic!("{outcome:?}"),
        })
        .collect();
    assert!(reported.iter().all(|faults| *faults == reported[0]), "{reported:?}");
    assert!(!options.output.exists());
    reported.into_iter().next().unwrap()
}

#[test]
fn ids_that_are_missing_or_repeated_are_reported_alike_by_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut index = events(1, ROWS, 1);
    let mut hits: Vec<Id> = index.iter().rev().chain(&index).copied().collect();
    // Far apart, so that several ranks find some of them.
    for row in [11, 50_000, 50_001, 99_999, 200_000] {
        hits[row].1 = 5;
    }
    // The runs overlap, so each row is looked up.
    for row in [70_000, 90_000] {
        index[row] = index[row - 60_000];
    }
    let few = [(1, 5, 0), index[3]];
    let file = file(&index, &[("/few", &few), ("/hits", &hits)], &plain_types());
    let (inputs, options) = prepare(folder.path(), &[file], &spec());
    let one = faults(1, &inputs, &options);
    let reported: Vec<_> =
        one.iter().map(|fault| (fault.group.as_str(), fault.kind, fault.rows, fault.first_row)).collect();
    let lost = one[2].rows;
    assert_eq!(
        reported,
        [
            ("/spill", KeyFaultKind::Repeated, 2, 70_000),
            ("/few", KeyFaultKind::Missing, 1, 0),
            ("/hits", KeyFaultKind::Missing, lost, 11),
        ]
    );
    // The changed ids, and the ids that are now missing from the index.
    assert!((5..=9).contains(&lost), "{lost}");
    assert_eq!(one[0].ids, [1, 0, 30_000]);
    for size in [2, 3, 4] {
        assert_eq!(faults(size, &inputs, &options), one, "{size} ranks");
    }
}

#[test]
fn a_table_that_one_rank_cannot_read_is_the_error_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = prepare(folder.path(), &files(1), &spec());
    // Changes the checksum of one chunk of ids, somewhere in the longest table of the second file.
    let chunks = plain::storage::chunks(&inputs[1], b"/hits/evt").unwrap();
    let chunk = &chunks[chunks.len() / 2];
    let mut bytes = std::fs::read(&inputs[1]).unwrap();
    let end = (chunk.address + chunk.len_bytes) as usize;
    bytes[end - 4..end].fill(0xAA);
    std::fs::write(&inputs[1], bytes).unwrap();
    let outcomes = run(4, &inputs, &options);
    let reported: Vec<String> = outcomes.iter().map(|outcome| outcome.as_ref().unwrap_err().to_string()).collect();
    assert!(reported.iter().all(|reported| reported.contains("/hits/evt")), "{reported:?}");
    // Only one rank has read the chunk.
    assert_eq!(reported.iter().filter(|reported| !reported.contains("join the keys: rank")).count(), 1, "{reported:?}");
}

#[test]
fn one_rank_that_is_stopped_while_it_joins_stops_all() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = prepare(folder.path(), &files(1), &spec());
    for stop_at in [0, 1, 3] {
        let outcomes = Threads::run(3, |ranks| {
            let (cancel, events, is_one) = (CancelToken::new(), AtomicU64::new(0), ranks.rank() == 1);
            let observer = |event: &Event| {
                let is_join = matches!(event, Event::Advanced { stage: Stage::Keys, .. });
                if is_one && is_join && events.fetch_add(1, Ordering::Relaxed) == stop_at {
                    cancel.cancel();
                }
            };
            merge_by(ranks, &inputs, &options, &Watch { observer: &observer, cancel: &cancel })
        });
        assert!(outcomes.iter().all(is_stopped), "{outcomes:?}");
        assert!(!options.output.exists());
        assert_eq!(count_left_beside(&options.output), 0);
    }
}

#[test]
fn keys_that_cannot_be_made_are_refused_by_all() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = prepare(folder.path(), &files(1), &spec());
    let key = KeySpec::new(vec!["/spill/none".to_owned()]);
    let options = MergeOptions { derived: vec![DerivedSpec::Keys(key)], ..options };
    for outcome in run(3, &inputs, &options) {
        let reported = outcome.unwrap_err().to_string();
        assert!(reported.contains("/spill/none") && reported.contains("is not in the inputs"), "{reported}");
    }
}
