//! Ranks that read inputs for each other: bytes, errors and resumed runs are those of ranks that read for themselves.

use crate::folder::count_left_beside;
use crate::ranks::{is_stopped, numbers, report, run};
use proptest::prelude::*;
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::{Event, Silent};
use raddle_merge::options::Contiguous;
use raddle_merge::plan::chunk::Chunk;
use raddle_merge::{
    Compress, Join, MergeContext, MergeError, MergeOptions, MergeReport, ReadBy, Reading, ReadingReport, Strategy,
    Watch, merge_collective, plan_collective,
};
use raddle_testing::plain::{self, numbers as spec_numbers};
use raddle_testing::spec::{DatasetSpec, FileSpec, FilterSpec, ObjectSpec};
use raddle_testing::strategy::{SchemaOptions, files};
use std::io::{Seek, SeekFrom, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Merges with ranks on these nodes; `open_s` is the assumed time to open an input.
fn read_by(
    machines: &[u32],
    strategy: Strategy,
    open_s: Option<f64>,
    inputs: &[PathBuf],
    options: &MergeOptions,
) -> Vec<Result<Option<MergeReport>, MergeError>> {
    Threads::run(machines.len(), |ranks| {
        let options = MergeOptions { jobs: 1 + (options.jobs + ranks.rank()) % 3, ..options.clone() };
        let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
        let mut plan = plan_collective(inputs, &options, &watch, ranks)?;
        plan.open_s = open_s.unwrap_or(plan.open_s);
        let through = MergeContext { reading: Reading { strategy, machines }, ..MergeContext::default() };
        merge_collective(&plan, &watch, ranks, through)
    })
}

fn files_by(size: usize) -> Strategy {
    Strategy::Files(NonZeroUsize::new(size))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn reading_by_files_makes_the_same_bytes(
        specs in files(SchemaOptions::default()),
        compress in prop_oneof![Just(Compress::default()), Just(Compress::Keep), Just(Compress::None)],
        machines in prop::collection::vec(0_u32..2, 1..6),
        group in 0_usize..4,
        contiguous in prop_oneof![3 => Just(Contiguous::Small), 1 => Just(Contiguous::All)],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let output = folder.path().join("merged.h5");
        let options = MergeOptions { compress, contiguous, force: true, ..MergeOptions::new(&output) };
        let one = report(run(1, &inputs, &options));
        let bytes = std::fs::read(&output).unwrap();
        // Both nodes have a rank.
        let machines = [&[0, 1], machines.as_slice()].concat();
        let several = report(read_by(&machines, files_by(group), None, &inputs, &options));
        prop_assert!(std::fs::read(&output).unwrap() == bytes, "other bytes");
        prop_assert_eq!(&several.digest, &one.digest);
        prop_assert_eq!(several.engine.tiles, one.engine.tiles);
        prop_assert_eq!(several.reading.unwrap().by, ReadBy::Files);
        prop_assert_eq!(count_left_beside(&output), 0);
    }
}

/// Merges `inputs` on ranks of these nodes and returns the report on how the inputs were read.
fn reading(machines: &[u32], strategy: Strategy, inputs: &[PathBuf], options: &MergeOptions) -> ReadingReport {
    report(read_by(machines, strategy, None, inputs, options)).reading.unwrap()
}

#[test]
fn ranks_of_a_group_open_each_input_once() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 12, 8);
    let options = MergeOptions { force: true, ..options };
    let machines = [0, 1, 0, 1];
    // Tiles are smaller than inputs, and distributed over all ranks.
    let by_tiles = reading(&machines, Strategy::Tiles, &inputs, &options);
    assert_eq!((by_tiles.by, by_tiles.ranks_per_group, by_tiles.sent_len_bytes), (ReadBy::Tiles, 1, 0));
    assert!(by_tiles.opens > 24, "{by_tiles:?}");
    let by_all = reading(&machines, files_by(4), &inputs, &options);
    // A tile is assembled on the rank that reads most of it, so less than half of the data is sent.
    assert_eq!((by_all.by, by_all.ranks_per_group, by_all.opens), (ReadBy::Files, 4, 12));
    let raw_len_bytes = 12 * 8 * 2 * 20_000;
    assert!((1..raw_len_bytes / 2).contains(&by_all.sent_len_bytes) && by_all.messages > 0, "{by_all:?}");
    let by_two = reading(&machines, files_by(2), &inputs, &options);
    assert!((12..=24).contains(&by_two.opens) && by_two.sent_len_bytes < by_all.sent_len_bytes, "{by_two:?}");
    // A single tile with rows of all inputs.
    let one_tile = MergeOptions { chunk: Some(vec![12 * 8 * 5000].into()), ..options };
    assert!(reading(&machines, Strategy::Tiles, &inputs, &one_tile).opens > 24);
    assert_eq!(reading(&machines, files_by(4), &inputs, &one_tile).opens, 12);
}

#[test]
fn slow_opening_makes_ranks_read_for_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 12, 8);
    let options = MergeOptions { force: true, ..options };
    let chosen = |machines: &[u32], open_s| {
        let reading = report(read_by(machines, Strategy::Auto, Some(open_s), &inputs, &options)).reading.unwrap();
        assert_eq!(reading.open_s, open_s);
        let ways: Vec<u64> = reading.compared.iter().map(|way| way.ranks_per_group).collect();
        (reading.by, reading.ranks_per_group, ways)
    };
    assert_eq!(chosen(&[0, 1, 0, 1], 1e-5), (ReadBy::Tiles, 1, vec![1, 2, 4]));
    assert_eq!(chosen(&[0, 1, 0, 1], 10.0), (ReadBy::Files, 4, vec![1, 2, 4]));
    assert_eq!(chosen(&[0, 0, 0], 10.0), (ReadBy::Files, 3, vec![1, 3]));
    assert_eq!(chosen(&[0, 1, 2], 10.0), (ReadBy::Files, 3, vec![1, 3]));
    // Half of the time, but less than a second saved.
    assert_eq!(chosen(&[0, 0, 0], 0.05).0, ReadBy::Tiles);
    let alone = report(read_by(&[0], files_by(2), None, &inputs, &options));
    assert_eq!(alone.reading, None);
}

#[test]
fn a_round_may_take_several_exchanges() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 10, 150);
    // Two tiles of 30 MB, each with rows of all inputs: each rank sends half of one of them, in pieces that together
    // exceed an exchange.
    let options = MergeOptions { chunk: Some(vec![10 * 150 * 5000].into()), force: true, ..options };
    let one = report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    let several = report(read_by(&[0, 0], files_by(2), None, &inputs, &options));
    assert!(std::fs::read(&options.output).unwrap() == bytes, "other bytes");
    assert_eq!(several.digest, one.digest);
    let reading = several.reading.unwrap();
    assert!(reading.sent_len_bytes > 30_000_000 && reading.messages > 2, "{reading:?}");
}

#[test]
fn inputs_that_lack_a_dataset_are_filled_and_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let column = |path: &str, first: u32| {
        let values = (first..first + 3000).flat_map(u32::to_le_bytes).collect();
        DatasetSpec::plain(spec_numbers::u32(), &[3000, 1], values)
            .chunked(&[700, 1], &[FilterSpec::Deflate(1)])
            .at(path)
    };
    let file = |number: u32| {
        let mut objects = vec![ObjectSpec::group("/t"), column("/t/a", number)];
        if !number.is_multiple_of(3) {
            objects.push(column("/t/b", 7 * number));
        }
        FileSpec { objects, ..FileSpec::default() }
    };
    let specs: Vec<FileSpec> = (0..7).map(file).collect();
    let inputs = plain::make_all(folder.path(), &specs).unwrap();
    let mut options = MergeOptions { force: true, ..MergeOptions::new(folder.path().join("merged.h5")) };
    options.join.join = Join::Outer;
    let one = report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    for chunk in [None, Some(vec![5000]), Some(vec![100_000])] {
        let options = MergeOptions { chunk: chunk.map(Chunk::from), ..options.clone() };
        let expected = match &options.chunk {
            None => bytes.clone(),
            Some(_) => {
                report(run(1, &inputs, &options));
                std::fs::read(&options.output).unwrap()
            }
        };
        for size in [2, 3] {
            let several = report(read_by(&vec![0; size], files_by(size), None, &inputs, &options));
            assert!(std::fs::read(&options.output).unwrap() == expected, "other bytes by {size} ranks");
            assert_eq!((several.digest, several.reading.unwrap().by), (one.digest.clone(), ReadBy::Files));
        }
    }
}

#[test]
fn too_little_memory_to_read_for_others_is_an_error_or_a_reason_against_it() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 3, 40);
    let options = MergeOptions { jobs: 1, memory_limit_bytes: 40 << 20, force: true, ..options };
    let refused = read_by(&[0; 4], files_by(4), None, &inputs, &options);
    let reported = refused[0].as_ref().unwrap_err().to_string();
    assert!(reported.contains("reading by files: "), "{reported}");
    assert!(!options.output.exists() && count_left_beside(&options.output) == 0);
    let chosen = |memory_limit_bytes| {
        let options = MergeOptions { memory_limit_bytes, ..options.clone() };
        report(read_by(&[0; 4], Strategy::Auto, Some(10.0), &inputs, &options)).reading.unwrap()
    };
    assert_eq!((chosen(40 << 20).by, chosen(40 << 20).compared.len()), (ReadBy::Tiles, 2));
    assert_eq!(chosen(1 << 30).by, ReadBy::Files);
    // With any memory in between, the reading that is chosen leaves enough to the engine.
    let by: Vec<ReadBy> = (44..200).step_by(8).map(|mib| chosen(mib << 20).by).collect();
    assert!(by.contains(&ReadBy::Tiles) && by.contains(&ReadBy::Files), "{by:?}");
}

#[test]
fn a_rank_that_cannot_read_makes_all_fail_with_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = |number: u32| {
        let values = (0..20_000).flat_map(|row: u32| (row.wrapping_mul(number + 77) >> 3).to_le_bytes()).collect();
        let filters = [FilterSpec::Deflate(1), FilterSpec::Fletcher32];
        let column = DatasetSpec::plain(spec_numbers::u32(), &[20_000, 1], values).chunked(&[5000, 1], &filters);
        FileSpec { objects: vec![column.at("/a")], ..FileSpec::default() }
    };
    let specs: Vec<FileSpec> = (0..6).map(file).collect();
    let inputs = plain::make_all(folder.path(), &specs).unwrap();
    let options = MergeOptions { chunk: Some(vec![3000].into()), ..MergeOptions::new(folder.path().join("merged.h5")) };
    for input in &inputs {
        let whole = std::fs::read(input).unwrap();
        let outcomes = Threads::run(3, |ranks| {
            let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
            let plan = plan_collective(&inputs, &options, &watch, ranks).unwrap();
            ranks.barrier().unwrap();
            if ranks.rank() == 2 {
                // The values are damaged, but the file appears to be the one that was scanned.
                let modified = std::fs::metadata(input).unwrap().modified().unwrap();
                let mut file = std::fs::OpenOptions::new().write(true).open(input).unwrap();
                file.seek(SeekFrom::Start(whole.len() as u64 / 2)).unwrap();
                file.write_all(&[0xA5; 4096]).unwrap();
                file.set_modified(modified).unwrap();
            }
            ranks.barrier().unwrap();
            let through =
                MergeContext { reading: Reading { strategy: files_by(3), machines: &[] }, ..MergeContext::default() };
            merge_collective(&plan, &watch, ranks, through).unwrap_err()
        });
        let name = input.file_name().unwrap().to_str().unwrap();
        assert!(outcomes.iter().all(|error| error.to_string().contains(name)), "{outcomes:?}");
        // One rank reads the file; the others repeat its error.
        assert_eq!(outcomes.iter().filter(|error| !error.is_secondary()).count(), 1, "{outcomes:?}");
        assert!(!options.output.exists() && count_left_beside(&options.output) == 0);
        std::fs::write(input, &whole).unwrap();
    }
    report(read_by(&[0, 0, 0], files_by(3), None, &inputs, &options));
}

#[test]
fn a_stopped_run_is_resumed_by_ranks_that_read_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = numbers(folder.path(), 5, 60);
    // With little memory there are many rounds.
    let options = MergeOptions { force: true, memory_limit_bytes: 80 << 20, ..options };
    report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    let mut resumed = 0;
    for stop_at in [8, 20, 40, 80] {
        std::fs::remove_file(&options.output).unwrap();
        let outcomes = Threads::run(3, |ranks| {
            let (cancel, events, is_one) = (CancelToken::new(), AtomicU64::new(0), ranks.rank() == 1);
            let observer = |_: &Event| {
                if is_one && events.fetch_add(1, Ordering::Relaxed) == stop_at {
                    cancel.cancel();
                }
            };
            let watch = Watch { observer: &observer, cancel: &cancel };
            let plan = plan_collective(&inputs, &options, &watch, ranks)?;
            let through =
                MergeContext { reading: Reading { strategy: files_by(2), machines: &[] }, ..MergeContext::default() };
            merge_collective(&plan, &watch, ranks, through)
        });
        assert!(outcomes.iter().all(Result::is_ok) || outcomes.iter().all(is_stopped), "{outcomes:?}");
        for (strategy, machines) in [(Strategy::Tiles, vec![0, 0]), (files_by(0), vec![0, 1, 0, 1])] {
            let done = report(read_by(&machines, strategy, None, &inputs, &options));
            resumed += done.resumed_tiles;
            assert!(std::fs::read(&options.output).unwrap() == bytes, "other bytes after {stop_at}");
        }
    }
    assert!(resumed > 0);
}
