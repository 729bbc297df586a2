//! Tests of the generated files: their bytes, their rows, and how they compress.

use super::*;
use raddle_hdf5::default_format::Element;

/// Generates the tiny files of `seed` with `threads` threads.
fn make(folder: &Path, seed: u64, threads: usize) -> Result<Vec<PathBuf>> {
    let threads = NonZeroUsize::new(threads).unwrap();
    generate(folder, &Workload::TINY, seed, threads, &CancelToken::new(), &mut |_| ())
}

#[test]
fn a_cancelled_run_leaves_whole_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let (threads, cancel) = (NonZeroUsize::MIN, CancelToken::new());
    let error = generate(folder.path(), &Workload::TINY, 1, threads, &cancel, &mut |progress| {
        if progress.files_done == 1 {
            cancel.cancel();
        }
    });
    assert!(error.unwrap_err().downcast_ref::<raddle_core::error::CoreError>().is_some());
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["neardet_r00011981_s00.h5"]);
}

#[test]
fn bytes_depend_on_the_seed_and_not_on_threads() {
    let folders = [(1, 1), (3, 1), (2, 2)].map(|(count, seed)| {
        let folder = tempfile::tempdir().unwrap();
        let paths = make(folder.path(), seed, count).unwrap();
        assert_eq!(paths.len(), Workload::TINY.files as usize);
        assert!(paths.is_sorted(), "the order of files is the order of names");
        (paths.iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>(), folder)
    });
    assert!(folders[0].0 == folders[1].0, "1 and 3 threads differ");
    for (one, other) in folders[0].0.iter().zip(&folders[2].0) {
        assert!(one != other, "seeds 1 and 2 give the same file");
    }
}

#[test]
fn progress_ends_with_everything() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = None;
    let (threads, cancel) = (NonZeroUsize::new(2).unwrap(), CancelToken::new());
    generate(folder.path(), &Workload::TINY, 1, threads, &cancel, &mut |progress| {
        if let Some(GenerateProgress { raw_len_bytes, .. }) = last {
            assert!(progress.raw_len_bytes >= raw_len_bytes);
        }
        last = Some(*progress);
    })
    .unwrap();
    let last = last.unwrap();
    assert_eq!((last.files_done, last.files), (4, 4));
    assert!(last.raw_len_bytes > 5 * last.stored_len_bytes && last.stored_len_bytes > 10_000, "{last:?}");
}

#[test]
fn an_existing_file_is_left_alone_and_nothing_partial_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 1, 1).unwrap()[0].clone();
    std::fs::write(&path, b"mine").unwrap();
    let error = make(folder.path(), 1, 1).unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn tables_differ_in_rows_between_files_and_keys_are_sorted() {
    let schema = Workload::SMALL.schema(1);
    let contents = [0, 1].map(|number| FileContent::draw(&Workload::SMALL, &schema, 1, number));
    for content in &contents {
        assert!(content.keys.events.is_sorted());
        for (table, rows) in schema.iter().zip(&content.rows) {
            assert!(rows.event_of_row.is_sorted());
            assert!(table.rows_per_event != Some(0.0) || rows.event_of_row.is_empty());
        }
        assert_eq!(content.rows[0].event_of_row.len(), content.keys.events.len(), "a row of /spill per event");
    }
    let rows = contents.map(|content| content.rows.iter().map(|rows| rows.event_of_row.len()).collect::<Vec<_>>());
    let same = rows[0].iter().zip(&rows[1]).filter(|(one, other)| one == other && **one > 0).count();
    assert!(same <= 2, "{same} tables have as many rows in both files");
}

/// The mix of columns compresses like NOvA's: at the rates in the module documentation of [`crate::values`],
/// ± 30 %.
#[test]
fn columns_compress_like_the_real_ones() {
    let schema = Workload::SMALL.schema(1);
    let content = FileContent::draw(&Workload::SMALL, &schema, 1, 0);
    let mut state = EncodeState::default();
    let mut totals: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (number, (table, rows)) in schema.iter().zip(&content.rows).enumerate() {
        for (position, column) in table.columns.iter().enumerate() {
            let integer = !matches!(column.element, Element::F32 | Element::F64);
            let mut random = content.random(number, position, 0);
            let mut raw = Vec::new();
            let (kind, chunk_len_bytes) = if let Law::Map { tracks } = column.law {
                // One chunk of 128 rows is representative.
                raw.resize((CHUNK_ROWS * column.row_len_bytes()) as usize, 0);
                for row in raw.chunks_exact_mut(column.row_len_bytes() as usize) {
                    fill_map_row(tracks, column.element, &mut random, row);
                }
                (if integer { "byte maps" } else { "float maps" }, raw.len())
            } else {
                fill_column(column.law, column.element, &content.keys, rows, &mut random, &mut raw);
                (if integer { "integers" } else { "floats" }, 1 << 20)
            };
            for chunk in raw.chunks(chunk_len_bytes) {
                let mut stored = Vec::new();
                encoder(column).encode(&mut state, chunk, &mut stored).unwrap();
                let total = totals.entry(kind).or_default();
                *total = (total.0 + chunk.len(), total.1 + stored.len());
            }
        }
    }
    for (kind, expected) in [("integers", 8.2), ("floats", 2.9), ("byte maps", 490.0), ("float maps", 700.0)] {
        let (raw, stored) = totals[kind];
        let ratio = raw as f64 / stored as f64;
        assert!((0.7..1.3).contains(&(ratio / expected)), "{kind}: {ratio:.2} to 1, expected {expected}");
    }
}
