//! Compares shares of events with the result of reading whole key columns.

use crate::watched::watched;
use proptest::prelude::*;
use raddle_merge::MergeOptions;
use raddle_merge::keys::partition::{EventShare, FoundBy, KeyedFile, partition};
use raddle_testing::plain::{self, numbers};
use raddle_testing::spec::{DatasetSpec, FileSpec, FilterSpec, ObjectSpec};
use std::path::{Path, PathBuf};

fn column(path: &str, values: &[i64], chunk_rows: u64) -> ObjectSpec {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let dataset = DatasetSpec::plain(numbers::i64(), &[values.len() as u64, 1], bytes);
    match chunk_rows {
        0 => dataset.at(path),
        rows => dataset.chunked(&[rows, 1], &[FilterSpec::Deflate(1)]).at(path),
    }
}

/// Events of a table, ascending with gaps and repeats; number of rows per chunk, 0 for no chunks; whether it has
/// offsets.
type Table = (Vec<i64>, u64, bool);

fn make(folder: &Path, events: i64, tables: &[Table]) -> PathBuf {
    let row_numbers: Vec<i64> = (0..events).collect();
    let mut objects = vec![ObjectSpec::group("/spill"), column("/spill/evt.seq", &row_numbers, 16)];
    for (number, (seq, chunk_rows, has_offsets)) in tables.iter().enumerate() {
        objects.push(ObjectSpec::group(&format!("/t{number}")));
        objects.push(column(&format!("/t{number}/evt.seq"), seq, *chunk_rows));
        if *has_offsets {
            let offsets: Vec<i64> =
                (0..=events).map(|event| seq.partition_point(|found| *found < event) as i64).collect();
            objects.push(column(&format!("/t{number}/evt.offsets"), &offsets, 8));
        }
    }
    let files = [FileSpec { objects, ..FileSpec::default() }];
    plain::make_all(folder, &files).unwrap().remove(0)
}

fn tables() -> impl Strategy<Value = (i64, Vec<Table>)> {
    (0_i64..40).prop_flat_map(|events| {
        let seq = prop::collection::vec(0..events.max(1), 0..if events == 0 { 1 } else { 120 }).prop_map(|mut seq| {
            seq.sort_unstable();
            seq
        });
        let table = (seq, prop_oneof![Just(0_u64), Just(1), Just(7), Just(200)], any::<bool>());
        (Just(events), prop::collection::vec(table, 0..4))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn shares_are_those_of_whole_columns((events, tables) in tables(), size in 1_u64..12) {
        let folder = tempfile::tempdir().unwrap();
        let path = make(folder.path(), events, &tables);
        let options = MergeOptions::new("");
        let file = watched(|watch| KeyedFile::open(&path, "/spill/evt.seq", &options, watch)).unwrap();
        prop_assert_eq!(file.events(), events as u64);
        let mut next = vec![0; tables.len()];
        for rank in 0..size {
            let EventShare { events, tables: shares, .. } = file.share(rank, size).unwrap();
            prop_assert_eq!(&shares[0].group, "/spill");
            prop_assert_eq!((&shares[0].rows, shares[0].found_by), (&events, FoundBy::Index));
            prop_assert_eq!(shares.len(), tables.len() + 1);
            for (number, (seq, _, has_offsets)) in tables.iter().enumerate() {
                let share = shares.iter().find(|share| share.group == format!("/t{number}")).unwrap();
                let row = |event: u64| seq.partition_point(|found| (*found as u64) < event) as u64;
                prop_assert_eq!(&share.rows, &(row(events.start)..row(events.end)));
                prop_assert_eq!(share.found_by, if *has_offsets { FoundBy::Offsets } else { FoundBy::Seq });
                prop_assert_eq!(share.rows.start, next[number]);
                next[number] = share.rows.end;
            }
        }
        prop_assert!(tables.iter().zip(next).all(|((seq, ..), end)| end == seq.len() as u64));
    }
}

#[test]
fn no_rank_reads_a_whole_key_column() {
    let folder = tempfile::tempdir().unwrap();
    let events = 20_000_i64;
    // Numbers that hardly compress, so that the number of bytes read indicates the number of rows read.
    let seq: Vec<i64> = (0..200_000).map(|row: i64| (row * 7919 % 200_000) / 10).collect::<Vec<_>>();
    let mut seq = seq;
    seq.sort_unstable();
    let tables = [(seq.clone(), 512, true), (seq, 512, false)];
    let path = make(folder.path(), events, &tables);
    let whole = std::fs::metadata(&path).unwrap().len();
    let options = MergeOptions::new("");
    for rank in [0, 3, 7] {
        let share = watched(|watch| partition(&path, "/spill/evt.seq", rank, 8, &options, watch)).unwrap();
        assert_eq!(share.events, rank * 2500..(rank + 1) * 2500);
        assert!(share.tables[1..].iter().all(|table| table.rows == (rank * 25_000..(rank + 1) * 25_000)), "{share:?}");
        assert!(share.read_len_bytes * 10 < whole, "{} of {whole} bytes", share.read_len_bytes);
    }
}

#[test]
fn keys_that_contradict_the_file_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let objects = vec![
        ObjectSpec::group("/spill"),
        column("/spill/evt.seq", &[0, 1, 2], 0),
        ObjectSpec::group("/short"),
        column("/short/evt.offsets", &[0, 1], 0),
    ];
    let path = plain::make_all(folder.path(), &[FileSpec { objects, ..FileSpec::default() }]).unwrap().remove(0);
    let options = MergeOptions::new("");
    let share = |key: &str| watched(|watch| partition(&path, key, 0, 2, &options, watch)).unwrap_err().to_string();
    assert!(share("/spill/evt.seq").contains("/short/evt.offsets: has 2 values for 3 events"));
    assert!(share("/spill/id.seq").contains("is not in"));
}
