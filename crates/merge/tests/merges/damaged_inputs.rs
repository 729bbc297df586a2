//! Merges, rechunks and appends of files that were damaged after raddle wrote them: damage is refused, and never becomes
//! part of the digests of an output.

use crate::append::appended;
use crate::ranks;
use crate::watched::{merge_to, watched};
use proptest::prelude::*;
use raddle_merge::options::Extendible;
use raddle_merge::verify::digests::check::check;
use raddle_merge::{Compress, MergeError, MergeOptions};
use raddle_testing::plain::{self, numbers};
use raddle_testing::spec::{DatasetSpec, FileSpec};
use raddle_testing::strategy::{SchemaOptions, files};
use std::path::{Path, PathBuf};

/// Returns a file with a long dataset, a short one, and strings.
fn file(rows: u32, seed: u32) -> FileSpec {
    let values = |count: u32| (0..count).flat_map(|row| (row * row * 7 + seed).to_le_bytes()).collect::<Vec<u8>>();
    let text = |row: u32| [&8_u64.to_le_bytes()[..], format!("row{row:05}").as_bytes()].concat();
    FileSpec {
        objects: vec![
            DatasetSpec::plain(numbers::u32(), &[rows.into(), 3], values(rows * 3)).at("/long"),
            DatasetSpec::plain(numbers::u32(), &[2], values(2)).at("/short"),
            DatasetSpec::plain(numbers::text(), &[3], (seed..seed + 3).flat_map(text).collect()).at("/texts"),
        ],
        ..FileSpec::default()
    }
}

struct Files {
    folder: tempfile::TempDir,
    plain: Vec<PathBuf>,
    merged: Vec<PathBuf>,
}

/// Returns inputs and two merges of them, which are not compressed; the first merge has two inputs.
fn inputs() -> Files {
    let folder = tempfile::tempdir().unwrap();
    let plain = plain::make_all(folder.path(), &[file(3000, 1), file(2000, 2), file(1500, 3)]).unwrap();
    let merged = vec![folder.path().join("first.h5"), folder.path().join("second.h5")];
    let options = MergeOptions { compress: Compress::None, ..MergeOptions::new("") };
    merge_to(&merged[0], &plain[..2], &options).unwrap();
    merge_to(&merged[1], &plain[2..], &options).unwrap();
    Files { folder, plain, merged }
}

/// Changes the second byte of a dataset of the first merge, or of the first of its strings.
fn damage(path: &Path, dataset: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    let start: &[u8] = match dataset {
        "/long" => &[1, 0, 0, 0, 8, 0, 0, 0, 29, 0, 0, 0],
        "/short" => &[1, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0],
        _ => b"row00001",
    };
    let at = bytes.windows(start.len()).position(|window| window == start).unwrap();
    bytes[at + 1] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

fn is_intact(path: &Path) -> bool {
    watched(|watch| check(path, &MergeOptions::new(""), watch)).unwrap().mismatches.is_empty()
}

#[test]
fn damage_is_refused_unless_digests_are_ignored() {
    for dataset in ["/long", "/short", "/texts"] {
        let Files { folder, plain, merged } = inputs();
        let [first, second] = [&merged[0], &merged[1]];
        damage(first, dataset);
        assert!(!is_intact(first), "{dataset}");
        let output = folder.path().join("output.h5");
        for given in [vec![first], vec![first, second], vec![&plain[0], first, &plain[1], second], vec![second, first]]
        {
            let given: Vec<PathBuf> = given.into_iter().cloned().collect();
            for compress in [Compress::default(), Compress::Keep] {
                for size in [1, 3] {
                    let options = MergeOptions { compress, force: true, ..MergeOptions::new(&output) };
                    let outcomes = ranks::run(size, &given, &options);
                    let what = format!("{dataset}: {given:?} on {size} ranks");
                    assert!(outcomes.iter().all(Result::is_err), "{what}");
                    match &outcomes[0] {
                        Err(MergeError::ChangedValues(found)) => {
                            assert_eq!((found.object.as_str(), found.others), (dataset, 0), "{what}");
                            assert!(found.inputs.contains(first), "{what}: {found:?}");
                            let rows = (given.len() == 1).then(|| found.rows.clone().unwrap());
                            assert!(rows.is_none_or(|rows| rows.start == 0 && rows.end < 3000), "{what}: {found:?}");
                        }
                        outcome => panic!("{what}: {outcome:?}"),
                    }
                    assert!(!output.exists(), "{what}");
                }
                let options = MergeOptions { compress, ignore_digests: true, ..MergeOptions::new("") };
                merge_to(&output, &given, &options).unwrap();
                assert!(is_intact(&output));
                std::fs::remove_file(&output).unwrap();
            }
        }
    }
}

#[test]
fn damage_is_not_appended() {
    for dataset in ["/long", "/texts"] {
        let Files { folder, plain, merged } = inputs();
        let [first, second] = [&merged[0], &merged[1]];
        damage(first, dataset);
        let file = folder.path().join("file.h5");
        for given in [vec![first], vec![second, first], vec![&plain[2], first, &plain[0]], vec![first, second]] {
            let given: Vec<PathBuf> = given.into_iter().cloned().collect();
            let options = MergeOptions { extendible: Extendible::All, force: true, ..MergeOptions::new("") };
            merge_to(&file, &plain[1..2], &options).unwrap();
            match appended(&file, &given, false, &options) {
                Err(MergeError::ChangedValues(found)) => {
                    assert_eq!(found.object, dataset);
                    assert!(found.inputs.contains(first) && !found.inputs.contains(&file), "{found:?}");
                }
                outcome => panic!("{dataset}: {given:?}: {outcome:?}"),
            }
            assert!(is_intact(&file));
            appended(&file, &given, false, &MergeOptions { ignore_digests: true, ..options }).unwrap();
            assert!(is_intact(&file));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn intact_files_are_never_refused(
        specs in files(SchemaOptions::default()),
        compress in prop_oneof![Just(Compress::default()), Just(Compress::Keep), Just(Compress::None)],
        order in Just([0_usize, 1, 2, 3]).prop_shuffle(),
        size in 1_usize..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let plain = plain::make_all(folder.path(), &specs).unwrap();
        let merged = [folder.path().join("first.h5"), folder.path().join("second.h5")];
        merge_to(&merged[0], &plain, &MergeOptions::new("")).unwrap();
        merge_to(&merged[1], &plain[..1], &MergeOptions { compress: Compress::Keep, ..MergeOptions::new("") }).unwrap();
        let all = [&merged[0], &merged[1], &plain[0], plain.last().unwrap()];
        let given: Vec<PathBuf> = order[..1 + order[3]].iter().map(|at| all[*at].clone()).collect();
        let output = folder.path().join("output.h5");
        let outcomes = ranks::run(size, &given, &MergeOptions { compress, ..MergeOptions::new(&output) });
        for outcome in &outcomes {
            prop_assert!(!matches!(outcome, Err(MergeError::ChangedValues(_))), "{:?}: {:?}", given, outcome);
        }
        let file = folder.path().join("file.h5");
        let options = MergeOptions { extendible: Extendible::All, ..MergeOptions::new("") };
        merge_to(&file, &plain[..1], &options).unwrap();
        let outcome = appended(&file, &given, true, &options);
        prop_assert!(!matches!(outcome, Err(MergeError::ChangedValues(_))), "{:?}: {:?}", given, outcome);
    }
}
