//! Layouts across the chunks of the inputs: every chunk is decoded at most twice, and the bytes do not depend on
//! memory, threads, ranks, parts or interruptions.

use crate::folder::count_left_beside;
use crate::ranks::{report, run};
use crate::watched::watched;
use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::{Event, Severity, Silent, Stage};
use raddle_hdf5::default_format::{DefaultDatasetSpec, DefaultFormatFile, Element};
use raddle_merge::write::parts::{Part, merge_part};
use raddle_merge::{MergeError, MergeOptions, Watch, merge, plan};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const ROWS: u64 = 1500;
const COLUMNS: u64 = 1000;
const CHUNK_ROWS: u64 = 10;

/// Memory for all values, and memory that holds a fraction of them, so that they go through a scratch file.
const MEMORIES: [u64; 2] = [1 << 30, 20 << 20];

/// Returns two inputs in chunks of whole rows, and options for merging them into chunks of whole columns.
fn maps(folder: &Path) -> (Vec<PathBuf>, MergeOptions) {
    maps_of(folder, &[("/map", COLUMNS)])
}

/// Like [`maps`], with the names and columns of several datasets.
fn maps_of(folder: &Path, datasets: &[(&str, u64)]) -> (Vec<PathBuf>, MergeOptions) {
    maps_in(folder, datasets, CHUNK_ROWS)
}

/// Like [`maps_of`], with chunks of `chunk_rows` rows.
fn maps_in(folder: &Path, datasets: &[(&str, u64)], chunk_rows: u64) -> (Vec<PathBuf>, MergeOptions) {
    let make = |file: u64| {
        let path = folder.join(format!("in{file}.h5"));
        let mut out = DefaultFormatFile::create(&path).unwrap();
        for &(name, columns) in datasets {
            let spec = DefaultDatasetSpec {
                element: Element::U32,
                dims: vec![ROWS, columns],
                chunk_shape: vec![chunk_rows, columns],
                gzip_level: 1,
            };
            let mut dataset = out.create_dataset(name.as_bytes(), &spec).unwrap();
            for first in (0..ROWS).step_by(chunk_rows as usize) {
                let rows = first + file * ROWS..first + file * ROWS + chunk_rows;
                let numbers = rows.flat_map(|row| (0..columns).map(move |column| (row * columns + column) as u32));
                // Written as if deflate had been skipped.
                dataset.write_chunk(&[first, 0], &numbers.flat_map(u32::to_le_bytes).collect::<Vec<_>>(), 1).unwrap();
            }
        }
        out.finish().unwrap();
        path
    };
    let (inputs, output) = ((0..2).map(make).collect(), folder.join("merged.h5"));
    let options =
        MergeOptions { chunk: Some(vec![2 * ROWS, 10].into()), jobs: 2, force: true, ..MergeOptions::new(&output) };
    (inputs, options)
}

#[test]
fn ranks_and_threads_decode_every_chunk_once_and_make_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = maps(folder.path());
    let mut expected = None;
    for memory_limit_bytes in MEMORIES {
        for (size, jobs) in [(1, 1), (1, 4), (2, 1), (3, 2)] {
            let options = MergeOptions { memory_limit_bytes, jobs, ..options.clone() };
            let done = report(run(size, &inputs, &options));
            let regrouping = done.regrouping.unwrap();
            assert_eq!(regrouping.decoded_chunks, 2 * ROWS / CHUNK_ROWS, "{size} ranks, {jobs} threads");
            let scratch_len_bytes = regrouping.datasets[0].scratch_len_bytes;
            let values_len_bytes = 2 * ROWS * COLUMNS * 4;
            assert_eq!(scratch_len_bytes, if memory_limit_bytes < 1 << 30 { values_len_bytes } else { 0 });
            let moved = if size > 1 { values_len_bytes } else { scratch_len_bytes };
            assert_eq!(regrouping.scratch_len_bytes, moved);
            let bytes = std::fs::read(&options.output).unwrap();
            assert!(*expected.get_or_insert(bytes.clone()) == bytes, "{size} ranks, {jobs} threads: other bytes");
            assert_eq!(count_left_beside(&options.output), 0);
        }
    }
}

#[test]
fn parts_make_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = maps(folder.path());
    watched(|watch| merge(&plan(&inputs, &options, watch)?, watch)).unwrap();
    let expected = std::fs::read(&options.output).unwrap();
    for memory_limit_bytes in MEMORIES {
        std::fs::remove_file(&options.output).unwrap();
        let options = MergeOptions { memory_limit_bytes, ..options.clone() };
        for number in [2, 3, 1] {
            let part = Part::new(number, 3).unwrap();
            watched(|watch| merge_part(plan(&inputs, &options, watch)?, part, watch)).unwrap();
        }
        assert!(std::fs::read(&options.output).unwrap() == expected, "other bytes");
    }
}

/// Returns the length of the scratch file that this process has open in `folder`.
#[cfg(target_os = "linux")]
fn scratch_len_bytes(folder: &Path) -> Option<u64> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let is_unnamed = |path: &Path| path.starts_with(folder) && path.to_string_lossy().ends_with(" (deleted)");
    let unnamed = open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| is_unnamed(&path)));
    unnamed.filter_map(|entry| Some(std::fs::metadata(entry.path()).ok()?.len())).max()
}

#[test]
#[cfg(target_os = "linux")]
fn the_scratch_file_holds_one_dataset_after_the_other() {
    use raddle_merge::plan::regrouping::scratch_space_len_bytes;
    let folder = tempfile::tempdir().unwrap();
    let datasets = [("/a", 700), ("/b", COLUMNS), ("/c", 500)];
    let (inputs, options) = maps_of(folder.path(), &datasets);
    watched(|watch| merge(&plan(&inputs, &options, watch)?, watch)).unwrap();
    let expected = std::fs::read(&options.output).unwrap();
    let len_bytes = |columns: u64| 2 * ROWS * columns * 4;
    for jobs in [1, 2, 5] {
        let options = MergeOptions { memory_limit_bytes: 10 << 20, jobs, ..options.clone() };
        let (longest, last) = (AtomicU64::new(0), AtomicU64::new(0));
        let observer = |_: &Event| {
            if let Some(len_bytes) = scratch_len_bytes(folder.path()) {
                longest.fetch_max(len_bytes, Ordering::Relaxed);
                last.store(len_bytes, Ordering::Relaxed);
            }
        };
        let watch = Watch { observer: &observer, cancel: &CancelToken::new() };
        let plan = plan(&inputs, &options, &watch).unwrap();
        let regrouped = plan.regrouped();
        assert_eq!((regrouped.len(), scratch_space_len_bytes(&regrouped)), (3, len_bytes(COLUMNS)));
        let regrouping = merge(&plan, &watch).unwrap().regrouping.unwrap();
        assert_eq!(regrouping.scratch_len_bytes, datasets.iter().map(|dataset| len_bytes(dataset.1)).sum::<u64>());
        assert_eq!(regrouping.decoded_chunks, 3 * 2 * ROWS / CHUNK_ROWS);
        assert_eq!(longest.into_inner(), regrouping.scratch_space_len_bytes);
        assert_eq!(last.into_inner(), 0, "the space is free once the last tile is taken");
        assert!(std::fs::read(&options.output).unwrap() == expected, "other bytes with {jobs} threads");
    }
}

#[test]
fn memory_that_does_not_suffice_is_a_warning_with_enough_of_it() {
    let folder = tempfile::tempdir().unwrap();
    // Chunks of 6 MB: reading takes several times as much, and groups of tiles hold whole chunks.
    let (inputs, options) = maps_in(folder.path(), &[("/map", 1500)], 1000);
    let planned = |memory_limit_bytes: u64| {
        let warnings = Mutex::new(Vec::new());
        let observer = |event: &Event| {
            if let Event::Message { severity: Severity::Warning, text } = event {
                warnings.lock().unwrap().push(text.clone());
            }
        };
        let options = MergeOptions { memory_limit_bytes, ..options.clone() };
        let found = plan(&inputs, &options, &Watch { observer: &observer, cancel: &CancelToken::new() }).unwrap();
        (found.regrouped().len(), warnings.into_inner().unwrap())
    };
    let (regrouped, warnings) = planned(18 << 20);
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    let beginning =
        "/map: with 18 MiB of memory, each chunk of the inputs is decoded about 150 times; 36 MiB are enough";
    assert!(regrouped == 0 && warning.starts_with(beginning), "{warning}");
    assert_eq!(planned(36 << 20), (1, Vec::new()));
}

#[test]
fn memory_for_a_few_long_chunks_suffices_to_decode_each_once() {
    let folder = tempfile::tempdir().unwrap();
    // Two chunks of 6 MB in each input.
    let (inputs, options) = maps_in(folder.path(), &[("/map", 1500)], 1000);
    let of_memory = |memory_limit_bytes: u64| {
        let options = MergeOptions { memory_limit_bytes, ..options.clone() };
        let done = watched(|watch| merge(&plan(&inputs, &options, watch)?, watch)).unwrap();
        let regrouping = done.regrouping.unwrap();
        (std::fs::read(&options.output).unwrap(), regrouping.decoded_chunks, regrouping.scratch_len_bytes)
    };
    let (expected, decoded, moved) = of_memory(1 << 30);
    assert_eq!((decoded, moved), (4, 0));
    let (found, decoded, moved) = of_memory(25 << 20);
    assert!(found == expected, "other bytes");
    // A slab of one chunk that begins in the middle of a chunk of the second input needs two.
    assert!((4..=6).contains(&decoded), "{decoded}");
    assert_eq!(moved, 2 * ROWS * 1500 * 4);
}

#[test]
fn a_resumed_run_decodes_only_what_the_tiles_left_need() {
    const TILE_ROWS: u64 = 750;
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = maps(folder.path());
    let chunk = Some(vec![TILE_ROWS, 10].into());
    for memory_limit_bytes in [1 << 30, 4 << 20] {
        let options = MergeOptions { memory_limit_bytes, chunk: chunk.clone(), ..options.clone() };
        let plan = plan(&inputs, &options, &Watch { observer: &Silent, cancel: &CancelToken::new() }).unwrap();
        assert_eq!(plan.regrouped()[0].passes, if memory_limit_bytes < 1 << 30 { 2 } else { 1 });
        let (cancel, encoded) = (CancelToken::new(), AtomicU64::new(0));
        let observer = |event: &Event| {
            if let Event::Advanced { stage: Stage::Encode, bytes, .. } = event {
                let before = encoded.fetch_add(*bytes, Ordering::Relaxed);
                if before + bytes >= 2 * ROWS * COLUMNS * 4 / 10 * 6 {
                    cancel.cancel();
                }
            }
        };
        let stopped = merge(&plan, &Watch { observer: &observer, cancel: &cancel });
        assert!(matches!(stopped, Err(MergeError::Resumable { .. })));
        let done = watched(|watch| merge(&plan, watch)).unwrap();
        // Whole rows of tiles are complete, and their chunks are not needed.
        let rows_left = 2 * ROWS - done.resumed_tiles / (COLUMNS / 10) * TILE_ROWS;
        assert!(rows_left < 2 * ROWS, "{} tiles", done.resumed_tiles);
        // Blocks of chunks at the border may be needed in part.
        let (least, regrouping) = (rows_left / CHUNK_ROWS, done.regrouping.unwrap());
        let decoded = regrouping.decoded_chunks;
        assert!((least..least + 26).contains(&decoded), "{decoded} of at least {least}");
        let moved = regrouping.scratch_len_bytes;
        let left_len_bytes = (2 * ROWS * COLUMNS / (TILE_ROWS * 10) - done.resumed_tiles) * TILE_ROWS * 10 * 4;
        assert_eq!(moved, if memory_limit_bytes < 1 << 30 { left_len_bytes } else { 0 });
    }
}

#[test]
fn an_interrupted_run_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = maps(folder.path());
    watched(|watch| merge(&plan(&inputs, &options, watch)?, watch)).unwrap();
    let expected = std::fs::read(&options.output).unwrap();
    let mut resumed = 0;
    for memory_limit_bytes in MEMORIES {
        let options = MergeOptions { memory_limit_bytes, ..options.clone() };
        for stop_at in [2, 5, 30, 60, 100, 310, 330] {
            std::fs::remove_file(&options.output).unwrap();
            let (cancel, events) = (CancelToken::new(), AtomicU64::new(0));
            let observer = |_: &Event| {
                if events.fetch_add(1, Ordering::Relaxed) == stop_at {
                    cancel.cancel();
                }
            };
            let plan = plan(&inputs, &options, &Watch { observer: &Silent, cancel: &CancelToken::new() }).unwrap();
            match merge(&plan, &Watch { observer: &observer, cancel: &cancel }) {
                Err(MergeError::Resumable { .. }) => {
                    let done = watched(|watch| merge(&plan, watch)).unwrap();
                    resumed += done.resumed_tiles;
                }
                Err(MergeError::Cancelled) => {
                    assert_eq!(count_left_beside(&options.output), 0);
                    watched(|watch| merge(&plan, watch)).unwrap();
                }
                outcome => drop(outcome.unwrap()),
            }
            assert!(std::fs::read(&options.output).unwrap() == expected, "other bytes after {stop_at}");
        }
    }
    assert!(resumed > 0);
}
