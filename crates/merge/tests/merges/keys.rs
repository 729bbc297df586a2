//! Compares partition keys with a row-by-row implementation of their definition.

use crate::watched::watched;
use proptest::prelude::*;
use raddle_hdf5::model::{ByteOrder, TypeClass};
use raddle_merge::keys::FirstValueSpec;
use raddle_merge::keys::rewrite::{plan_rewrite, write};
use raddle_merge::keys::{DerivedSpec, KeyFaultKind, KeyScope, KeySpec, RepeatedIds, check as keys_check};
use raddle_merge::verify::digests::check::check;
use raddle_merge::{MergeError, MergeOptions, merge, plan, verify};
use raddle_testing::content::Content;
use raddle_testing::plain::{self, numbers};
use raddle_testing::spec::{DatasetSpec, FileSpec, FilterSpec, ObjectSpec};
use std::collections::HashMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Run, subrun and event number of a row.
pub type Id = (i64, i64, i64);

/// Types of the ids in a file: of runs, subruns and event numbers.
pub type Types = [TypeClass; 3];

pub fn plain_types() -> Types {
    [numbers::u32(), numbers::u32(), numbers::u32()]
}

fn encoded(class: &TypeClass, values: impl Iterator<Item = i64>) -> Vec<u8> {
    let TypeClass::Integer { len_bytes, order, .. } = class else { panic!("no integer") };
    let len = *len_bytes as usize;
    values
        .flat_map(|value| {
            let little = value.to_le_bytes();
            let mut bytes = little[..len].to_vec();
            if *order == ByteOrder::Big {
                bytes.reverse();
            }
            bytes
        })
        .collect()
}

fn group(path: &str, ids: &[Id], types: &Types) -> Vec<ObjectSpec> {
    let rows = ids.len() as u64;
    let column = |name: &str, class: &TypeClass, value: fn(&Id) -> i64| {
        DatasetSpec::plain(class.clone(), &[rows, 1], encoded(class, ids.iter().map(value)))
            .chunked(&[128, 1], &[FilterSpec::Deflate(1)])
            .at(&format!("{path}/{name}"))
    };
    let weights: Vec<u8> = (0..rows).flat_map(|row| (row as f32).to_le_bytes()).collect();
    vec![
        ObjectSpec::group(path),
        column("run", &types[0], |id| id.0),
        column("subrun", &types[1], |id| id.1),
        column("evt", &types[2], |id| id.2),
        DatasetSpec::plain(numbers::f32(), &[rows, 1], weights)
            .chunked(&[128, 1], &[FilterSpec::Deflate(1)])
            .at(&format!("{path}/weight")),
    ]
}

/// Returns a file with an index group `/spill` and tables.
pub fn file(index: &[Id], tables: &[(&str, &[Id])], types: &Types) -> FileSpec {
    let mut objects = group("/spill", index, types);
    tables.iter().for_each(|(path, ids)| objects.extend(group(path, ids, types)));
    FileSpec { objects, ..FileSpec::default() }
}

pub fn spec() -> KeySpec {
    KeySpec::new(["/spill/run", "/spill/subrun", "/spill/evt"].map(str::to_owned).to_vec())
}

pub fn options(output: &Path, spec: &KeySpec) -> MergeOptions {
    MergeOptions {
        derived: vec![DerivedSpec::Keys(spec.clone())],
        jobs: 2,
        memory_limit_bytes: 64 << 20,
        ..MergeOptions::new(output)
    }
}

fn numbers_of(content: &Content, path: &str) -> Vec<i64> {
    let dataset = content.dataset(path.as_bytes()).unwrap_or_else(|| panic!("{path} is not there"));
    assert_eq!(dataset.class, numbers::i64(), "{path}");
    dataset.values.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}

fn dims_of(content: &Content, path: &str) -> Vec<u64> {
    content.dataset(path.as_bytes()).unwrap().dataspace.dims().to_vec()
}

/// Returns the expected keys: seq, counts, offsets.
fn expected(index: &[Id], table: &[Id]) -> (Vec<i64>, Vec<i64>, Vec<i64>) {
    let mut rows: HashMap<Id, i64> = HashMap::new();
    for (row, id) in (0..).zip(index) {
        rows.entry(*id).or_insert(row);
    }
    let seq: Vec<i64> = table.iter().map(|id| rows[id]).collect();
    let mut counts = Vec::new();
    for event in 0..index.len() as i64 {
        let count = seq.iter().filter(|found| **found == event).count() as i64;
        if count > 0 {
            counts.extend([event, count]);
        }
    }
    let offsets =
        (0..=index.len() as i64).map(|event| seq.iter().filter(|found| **found < event).count() as i64).collect();
    (seq, counts, offsets)
}

fn merge_files(folder: &Path, files: &[FileSpec], options: &MergeOptions) -> Result<Vec<PathBuf>, MergeError> {
    let inputs = plain::make_all(folder, files).unwrap();
    watched(|watch| merge(&plan(&inputs, options, watch)?, watch))?;
    Ok(inputs)
}

fn check_keys(content: &Content, index: &[Id], tables: &[(&str, Vec<Id>)]) {
    let row_numbers: Vec<i64> = (0..index.len() as i64).collect();
    assert_eq!(numbers_of(content, "/spill/evt.seq"), row_numbers);
    assert_eq!(dims_of(content, "/spill/evt.seq"), [index.len() as u64, 1]);
    for (path, ids) in tables {
        let (seq, counts, offsets) = expected(index, ids);
        assert_eq!(numbers_of(content, &format!("{path}/evt.seq")), seq, "{path}");
        assert_eq!(dims_of(content, &format!("{path}/evt.seq")), [ids.len() as u64, 1]);
        assert_eq!(numbers_of(content, &format!("{path}/evt.seq_cnt")), counts, "{path}");
        assert_eq!(dims_of(content, &format!("{path}/evt.seq_cnt")), [counts.len() as u64 / 2, 2]);
        assert_eq!(numbers_of(content, &format!("{path}/evt.offsets")), offsets, "{path}");
    }
}

/// Generates one input: ascending ids with gaps, and tables in the same order.
fn input(run: i64) -> impl Strategy<Value = (Vec<Id>, Vec<Id>, Vec<Id>)> {
    (prop::collection::vec((1_i64..5, 0_usize..4, 0_usize..2), 0..60), 0_i64..3).prop_map(move |(events, subrun)| {
        let (mut index, mut tracks, mut hits, mut number) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (step, of_tracks, of_hits) in events {
            number += step;
            let id = (run, subrun, number);
            index.push(id);
            tracks.extend(vec![id; of_tracks]);
            hits.extend(vec![id; of_hits]);
        }
        (index, tracks, hits)
    })
}

fn types() -> impl Strategy<Value = Types> {
    let one = || {
        prop_oneof![
            Just(numbers::u32()),
            Just(numbers::i32()),
            Just(numbers::i64()),
            Just(numbers::integer(8, false, ByteOrder::Little)),
            Just(numbers::integer(2, true, ByteOrder::Big)),
            Just(numbers::integer(4, false, ByteOrder::Big)),
        ]
    };
    (one(), one(), one()).prop_map(|(run, subrun, event)| [run, subrun, event])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn keys_are_what_their_definition_says(
        // Runs are out of order, so the index consists of several ascending sequences.
        parts in (input(3), input(1), input(7)),
        types in types(),
    ) {
        let parts = [parts.0, parts.1, parts.2];
        let files: Vec<FileSpec> = parts
            .iter()
            .map(|(index, tracks, hits)| file(index, &[("/tracks", tracks), ("/hits", hits)], &types))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("merged.h5");
        let options = options(&output, &spec());
        let inputs = merge_files(folder.path(), &files, &options).unwrap();
        let content = plain::read(&output).unwrap();
        let index: Vec<Id> = parts.iter().flat_map(|part| part.0.clone()).collect();
        let tracks = parts.iter().flat_map(|part| part.1.clone()).collect();
        let hits = parts.iter().flat_map(|part| part.2.clone()).collect();
        let tables = [("/tracks", tracks), ("/hits", hits)];
        check_keys(&content, &index, &tables);
        // The file is intact, matches its inputs, and its keys are correct.
        let bare = MergeOptions { derived: Vec::new(), ..options.clone() };
        prop_assert_eq!(watched(|watch| check(&output, &bare, watch)).unwrap().mismatches, []);
        prop_assert_eq!(watched(|watch| verify(&output, &inputs, &bare, watch)).unwrap().mismatches, []);
        let report = watched(|watch| keys_check::check(&output, "/spill/evt.seq", &bare, watch)).unwrap();
        prop_assert_eq!((report.events, report.faults), (index.len() as u64, vec![]));

        // Adding keys to a file without keys gives the same content, and its records about inputs are kept.
        let plain_output = folder.path().join("plain.h5");
        let without = MergeOptions { output: plain_output.clone(), ..bare.clone() };
        watched(|watch| merge(&plan(&inputs, &without, watch)?, watch)).unwrap();
        let added = watched(|watch| {
            write(&plan_rewrite(&plain_output, DerivedSpec::Keys(spec()), &bare, watch)?, watch)
        });
        prop_assert!(added.is_ok(), "{added:?}");
        let rewritten = plain::read(&plain_output).unwrap();
        let differences = content.without(b"/_raddle").differences(&rewritten.without(b"/_raddle"));
        prop_assert!(differences.is_empty(), "{}", differences.join("\n"));
        prop_assert_eq!(watched(|watch| check(&plain_output, &bare, watch)).unwrap().mismatches, []);
        prop_assert_eq!(watched(|watch| verify(&plain_output, &inputs, &bare, watch)).unwrap().mismatches, []);
    }

    #[test]
    fn rows_in_any_order_find_their_event(
        index in prop::collection::hash_set((0_i64..4, 0_i64..4, -50_i64..50), 1..80),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
    ) {
        let index: Vec<Id> = index.into_iter().collect();
        let table: Vec<Id> = picks.iter().map(|pick| index[pick.index(index.len())]).collect();
        let types = [numbers::i32(), numbers::i32(), numbers::i32()];
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("merged.h5");
        let files = [file(&index, &[("/table", &table)], &types)];
        merge_files(folder.path(), &files, &options(&output, &spec())).unwrap();
        let (seq, ..) = expected(&index, &table);
        let content = plain::read(&output).unwrap();
        prop_assert_eq!(numbers_of(&content, "/table/evt.seq"), seq.clone());
        let ascends = seq.is_sorted();
        prop_assert_eq!(content.dataset(b"/table/evt.offsets").is_some(), ascends);
    }
}

/// Enough ids for several blocks of the index and several reads of a table.
#[test]
fn long_tables_are_joined_block_by_block() {
    let ids =
        |count: i64, shuffle: i64| -> Vec<Id> { (0..count).map(|event| (1, 0, event * shuffle % count * 3)).collect() };
    let folder = tempfile::tempdir().unwrap();
    // Once in order, and otherwise unordered, which is sorted in blocks through the scratch file (100,003 is prime).
    for (name, shuffle, memory) in [("ordered", 1, 1 << 20), ("shuffled", 104_729, 1 << 20), ("kept", 104_729, 1 << 30)]
    {
        let index = ids(100_003, shuffle);
        let table: Vec<Id> = index.iter().step_by(2).flat_map(|id| [*id, *id]).collect();
        let backwards: Vec<Id> = index.iter().rev().step_by(7).copied().collect();
        let files = [file(&index, &[("/table", &table), ("/backwards", &backwards)], &plain_types())];
        let output = folder.path().join(name).join("merged.h5");
        std::fs::create_dir(output.parent().unwrap()).unwrap();
        let inputs = plain::make_all(output.parent().unwrap(), &files).unwrap();
        // Keys are computed while planning; the memory limit applies to that join.
        let options = MergeOptions { memory_limit_bytes: memory, ..options(&output, &spec()) };
        let mut planned = watched(|watch| plan(&inputs, &options, watch)).unwrap();
        planned.options.memory_limit_bytes = 256 << 20;
        watched(|watch| merge(&planned, watch)).unwrap();
        let content = plain::read(&output).unwrap();
        let rows: Vec<i64> = (0..index.len() as i64).collect();
        let seq: Vec<i64> = rows.iter().step_by(2).flat_map(|row| [*row, *row]).collect();
        assert!(numbers_of(&content, "/table/evt.seq") == seq, "{name}");
        let offsets: Vec<i64> = (0..=rows.len() as i64).map(|event| (event + 1) / 2 * 2).collect();
        assert!(numbers_of(&content, "/table/evt.offsets") == offsets, "{name}");
        let seq: Vec<i64> = rows.iter().rev().step_by(7).copied().collect();
        assert!(numbers_of(&content, "/backwards/evt.seq") == seq, "{name}");
        assert!(content.dataset(b"/backwards/evt.offsets").is_none());
    }
}

fn faults_of(files: &[FileSpec], spec: &KeySpec) -> Vec<(String, KeyFaultKind, u64, u64, Vec<i128>)> {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("merged.h5");
    let inputs = plain::make_all(folder.path(), files).unwrap();
    let error = watched(|watch| plan(&inputs, &options(&output, spec), watch)).unwrap_err();
    let MergeError::KeyFaults { faults } = error else { panic!("{error}") };
    assert!(!output.exists());
    faults.into_iter().map(|fault| (fault.group, fault.kind, fault.rows, fault.first_row, fault.ids)).collect()
}

#[test]
fn ids_that_the_index_lacks_are_reported_and_never_zero() {
    let index = [(1, 0, 5), (1, 0, 9)];
    let table = [(1, 0, 5), (1, 0, 6), (1, 0, 6), (1, 0, 9)];
    let files = [file(&index, &[("/table", &table), ("/good", &index)], &plain_types())];
    assert_eq!(faults_of(&files, &spec()), [("/table".to_owned(), KeyFaultKind::Missing, 2, 1, vec![1, 0, 6])]);
    // Groups can be left out.
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("merged.h5");
    let skipping = KeySpec { skip: vec!["/tab*".to_owned()], ..spec() };
    merge_files(folder.path(), &files, &options(&output, &skipping)).unwrap();
    let content = plain::read(&output).unwrap();
    assert!(content.dataset(b"/table/evt.seq").is_none() && content.dataset(b"/good/evt.seq").is_some());
}

#[test]
fn repeated_ids_are_refused_or_the_first_row_counts() {
    let (near, far) = ([(1, 0, 5), (1, 0, 5), (1, 0, 9)], [(1, 0, 5), (1, 0, 9), (1, 0, 5)]);
    for (index, row) in [(near, 1), (far, 2)] {
        let files = [file(&index, &[("/table", &[(1, 0, 5), (1, 0, 9)])], &plain_types())];
        assert_eq!(faults_of(&files, &spec()), [("/spill".to_owned(), KeyFaultKind::Repeated, 1, row, vec![1, 0, 5])]);
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("merged.h5");
        let first = KeySpec { repeated: RepeatedIds::First, ..spec() };
        merge_files(folder.path(), &files, &options(&output, &first)).unwrap();
        let content = plain::read(&output).unwrap();
        assert_eq!(numbers_of(&content, "/table/evt.seq"), expected(&index, &[(1, 0, 5), (1, 0, 9)]).0);
        assert_eq!(numbers_of(&content, "/spill/evt.seq"), [0, 1, 2]);
    }
}

#[test]
fn event_numbers_that_restart_in_each_input_are_keys_within_it() {
    let (first, second) = ([(1, 0, 2), (1, 0, 4)], [(1, 1, 2), (1, 1, 3), (1, 1, 4)]);
    let (tracks, more) = ([(1, 0, 4)], [(1, 1, 2), (1, 1, 4), (1, 1, 4)]);
    let empty: [Id; 0] = [];
    let files = [
        file(&first, &[("/tracks", &tracks)], &plain_types()),
        file(&empty, &[("/tracks", &empty)], &plain_types()),
        file(&second, &[("/tracks", &more)], &plain_types()),
    ];
    let in_file = KeySpec::new(vec!["/spill/evt".to_owned()]);
    assert_eq!(faults_of(&files, &in_file)[0].1, KeyFaultKind::Repeated);
    let in_input = KeySpec { scope: KeyScope::Input, ..in_file };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("merged.h5");
    let options = options(&output, &in_input);
    let inputs = merge_files(folder.path(), &files, &options).unwrap();
    let content = plain::read(&output).unwrap();
    assert_eq!(numbers_of(&content, "/tracks/evt.seq"), [1, 2, 4, 4]);
    assert_eq!(numbers_of(&content, "/tracks/evt.seq_cnt"), [1, 1, 2, 1, 4, 2]);
    assert_eq!(numbers_of(&content, "/tracks/evt.offsets"), [0, 0, 1, 2, 2, 4]);
    // A file with records about its inputs gets the same keys later.
    let later = folder.path().join("later.h5");
    let bare = MergeOptions { derived: Vec::new(), output: later.clone(), ..options };
    watched(|watch| merge(&plan(&inputs, &bare, watch)?, watch)).unwrap();
    watched(|watch| write(&plan_rewrite(&later, DerivedSpec::Keys(in_input.clone()), &bare, watch)?, watch)).unwrap();
    assert_eq!(numbers_of(&plain::read(&later).unwrap(), "/tracks/evt.seq"), [1, 2, 4, 4]);
    assert_eq!(watched(|watch| verify(&later, &inputs, &bare, watch)).unwrap().mismatches, []);
}

#[test]
fn existing_keys_are_rebuilt_only_when_asked() {
    let index = [(1, 0, 5), (1, 0, 9)];
    let folder = tempfile::tempdir().unwrap();
    let path =
        plain::make_all(folder.path(), &[file(&index, &[("/table", &index)], &plain_types())]).unwrap().remove(0);
    let bare = MergeOptions::new(&path);
    let add = |spec: KeySpec| {
        watched(|watch| write(&plan_rewrite(&path, DerivedSpec::Keys(spec), &bare, watch)?, watch)).map(drop)
    };
    add(spec()).unwrap();
    let again = add(spec()).unwrap_err().to_string();
    assert!(again.contains("/spill/evt.") && again.contains("--force"), "{again}");
    add(KeySpec { replace: true, ..spec() }).unwrap();
    let content = plain::read(&path).unwrap();
    check_keys(&content, &index, &[("/table", index.to_vec())]);
    assert_eq!(watched(|watch| check(&path, &bare, watch)).unwrap().mismatches, []);
    // Through a symbolic link, the file itself is replaced and keeps its permissions.
    let link = folder.path().join("link.h5");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let again = DerivedSpec::Keys(KeySpec { replace: true, ..spec() });
    watched(|watch| write(&plan_rewrite(&link, again, &bare, watch)?, watch)).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn damage_from_before_stays_damage_when_keys_are_added() {
    let index: Vec<Id> = (0..100).map(|event| (1, 0, event)).collect();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("merged.h5");
    let files = [file(&index, &[("/table", &index)], &plain_types())];
    let inputs = plain::make_all(folder.path(), &files).unwrap();
    let bare = MergeOptions { compress: raddle_merge::Compress::None, ..MergeOptions::new(&output) };
    watched(|watch| merge(&plan(&inputs, &bare, watch)?, watch)).unwrap();
    let chunk = plain::storage::chunks(&output, b"/table/weight").unwrap().remove(0);
    let mut bytes = std::fs::read(&output).unwrap();
    bytes[chunk.address as usize + 40] ^= 1;
    std::fs::write(&output, bytes).unwrap();
    watched(|watch| write(&plan_rewrite(&output, DerivedSpec::Keys(spec()), &bare, watch)?, watch)).unwrap();
    let mismatches = watched(|watch| check(&output, &bare, watch)).unwrap().mismatches;
    assert_eq!(mismatches.iter().map(|mismatch| mismatch.path.as_str()).collect::<Vec<_>>(), ["/table/weight"]);
    assert_eq!(mismatches[0].input.as_ref(), Some(&inputs[0]));
}

#[test]
fn anything_but_a_key_is_refused_by_name() {
    let index = [(1, 0, 5), (1, 0, 9)];
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("merged.h5");
    let inputs = plain::make_all(folder.path(), &[file(&index, &[], &plain_types())]).unwrap();
    for (columns, words) in [
        (vec!["/spill/none"], "is not in the inputs"),
        (vec!["/none/evt"], "is not in the inputs"),
        (vec!["spill/evt"], "not an absolute path"),
        (vec!["/spill/evt", "/other/run"], "another group"),
        (vec!["/spill/evt", "/spill/evt"], "named twice"),
        (vec!["/spill/weight"], "not a plain integer"),
    ] {
        let key = KeySpec::new(columns.iter().map(|path| (*path).to_owned()).collect());
        let error = watched(|watch| plan(&inputs, &options(&output, &key), watch)).unwrap_err().to_string();
        assert!(error.contains(words), "{columns:?}: {error}");
    }
}

#[test]
fn disorder_is_found() {
    let index = [(1, 0, 0), (1, 0, 1), (1, 0, 2)];
    let seq = |path: &str, values: &[i64]| {
        let class = numbers::i64();
        DatasetSpec::plain(class.clone(), &[values.len() as u64, 1], encoded(&class, values.iter().copied())).at(path)
    };
    let folder = tempfile::tempdir().unwrap();
    let mut spec =
        file(&index, &[("/good", &index), ("/down", &index), ("/far", &index), ("/few", &index)], &plain_types());
    spec.objects.extend([
        seq("/spill/evt.seq", &[0, 1, 2]),
        seq("/good/evt.seq", &[0, 0, 2]),
        seq("/down/evt.seq", &[0, 2, 1]),
        seq("/far/evt.seq", &[0, 1, 3]),
        seq("/few/evt.seq", &[0, 1]),
    ]);
    let path = plain::make_all(folder.path(), &[spec]).unwrap().remove(0);
    let options = MergeOptions::new("");
    let report = watched(|watch| keys_check::check(&path, "/spill/evt.seq", &options, watch)).unwrap();
    let found: Vec<_> =
        report.faults.iter().map(|fault| (fault.path.as_str(), fault.row, fault.what.as_str())).collect();
    assert_eq!(
        found,
        [
            ("/down/evt.seq", Some(2), "is 1 after 2"),
            ("/far/evt.seq", Some(2), "is 3, but there are only 3 events"),
            ("/few/evt.seq", None, "has 2 rows, but its table has 3"),
        ]
    );
    let report = watched(|watch| keys_check::check(&path, "/down/evt.seq", &options, watch)).unwrap();
    assert_eq!(report.faults[0].what, "is 2, not 1");
    assert!(watched(|watch| keys_check::check(&path, "/spill/run.seq", &options, watch)).is_err());
}

#[test]
fn the_index_gets_the_first_value_of_another_dataset() {
    let index = [(1, 0, 5), (1, 0, 9)];
    let folder = tempfile::tempdir().unwrap();
    let mut spec = file(&index, &[("/table", &index)], &plain_types());
    let cycles: Vec<u8> = [7_i32, 7, 8].into_iter().flat_map(i32::to_le_bytes).collect();
    spec.objects.push(DatasetSpec::plain(numbers::i32(), &[3, 1], cycles).at("/table/cycle"));
    let path = plain::make_all(folder.path(), &[spec]).unwrap().remove(0);
    let first = |dataset: &str| {
        DerivedSpec::FirstValue(FirstValueSpec {
            dataset: dataset.to_owned(),
            group: "/spill".to_owned(),
            replace: false,
        })
    };
    let bare = MergeOptions::new(&path);
    watched(|watch| write(&plan_rewrite(&path, first("/table/cycle"), &bare, watch)?, watch)).unwrap();
    let content = plain::read(&path).unwrap();
    let cycle = content.dataset(b"/spill/cycle").unwrap();
    assert_eq!((cycle.dataspace.dims(), &cycle.class), (&[2, 1][..], &numbers::i32()));
    assert_eq!(cycle.values, [7_i32.to_le_bytes(), 7_i32.to_le_bytes()].concat());
    for (dataset, words) in [("/table/none", "not in the file"), ("/spill/evt", "already exists in the index group")] {
        let error = watched(|watch| plan_rewrite(&path, first(dataset), &bare, watch)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
