//! Layouts by dataset: any number of ranks and parts gives the same bytes.

use crate::ranks::run;
use crate::watched::watched;
use proptest::prelude::*;
use raddle_merge::plan::chunk::Chunk;
use raddle_merge::plan::layout_rules::LayoutRule;
use raddle_merge::write::parts::{Part, merge_part};
use raddle_merge::{Compress, MergeOptions, plan};
use raddle_testing::plain;
use raddle_testing::strategy::{SchemaOptions, files};

/// Draws rules that can be applied to any dataset.
fn rules() -> impl Strategy<Value = Vec<LayoutRule>> {
    let rule = prop_oneof![
        Just("*: filter=zstd:1, shuffle".to_owned()),
        Just("*: fletcher32, filter=lz4".to_owned()),
        Just("*: contiguous".to_owned()),
        Just("GZIP=2".to_owned()),
        Just("SHUF".to_owned()),
        (1_u64..40).prop_map(|rows| format!("*: chunk={rows}rows")),
        (1_u64..40).prop_map(|rows| format!("*: chunk={rows}rows, filter=none, fletcher32=no")),
    ];
    proptest::collection::vec(rule.prop_map(|text| text.parse().unwrap()), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn ranks_and_parts_follow_the_rules(
        specs in files(SchemaOptions::default()),
        layout_rules in rules(),
        compress in prop_oneof![Just(Compress::default()), Just(Compress::Keep)],
        fletcher32: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let output = folder.path().join("merged.h5");
        let options =
            MergeOptions { compress, fletcher32, layout_rules, force: true, jobs: 2, ..MergeOptions::new(&output) };
        if watched(|watch| plan(&inputs, &options, watch)).is_err() {
            // Rules that match nothing are refused: these files have no datasets.
            prop_assume!(false);
        }
        run(1, &inputs, &options).into_iter().for_each(|outcome| drop(outcome.unwrap()));
        let bytes = std::fs::read(&output).unwrap();
        run(3, &inputs, &options).into_iter().for_each(|outcome| drop(outcome.unwrap()));
        prop_assert!(std::fs::read(&output).unwrap() == bytes, "3 ranks made other bytes");
        std::fs::remove_file(&output).unwrap();
        for part in 1..=2 {
            let part = Part::new(part, 2).unwrap();
            watched(|watch| merge_part(plan(&inputs, &options, watch)?, part, watch)).unwrap();
        }
        prop_assert!(std::fs::read(&output).unwrap() == bytes, "2 parts made other bytes");
    }
}

#[test]
fn sizes_by_name_need_dimensions() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.h5");
    plain::make_columns(&input, &[("/rec/energy", &[1.0, 2.0])]).unwrap();
    let chunk = Some(Chunk::Named(vec![("time".to_owned(), 1)]));
    let options = MergeOptions { chunk, ..MergeOptions::new(folder.path().join("out.h5")) };
    let error = watched(|watch| plan(&[input], &options, watch)).unwrap_err().to_string();
    assert!(error.contains("has no dimension \"time\" (--chunk time=1)") && error.contains("64x128"), "{error}");
}

#[test]
fn chunks_of_four_gib_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.h5");
    plain::make_columns(&input, &[("/rec/energy", &[1.0, 2.0])]).unwrap();
    let layout_rules = vec!["/rec/energy: chunk=2000000000rows".parse().unwrap()];
    let extendible = raddle_merge::options::Extendible::All;
    let options = MergeOptions { layout_rules, extendible, ..MergeOptions::new(folder.path().join("out.h5")) };
    let error = watched(|watch| plan(&[input], &options, watch)).unwrap_err().to_string();
    assert!(error.contains("/rec/energy: would have chunks of 2000000000 elements"), "{error}");
    assert!(error.contains("(--layout \"/rec/energy: chunk=2000000000rows\")"), "{error}");
}
