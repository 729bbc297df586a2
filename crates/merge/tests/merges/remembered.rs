//! Records of a merge in its output: verifying the file and appending to it use the same settings without repeating the
//! options.

use crate::watched::{merge_to, watched};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use raddle_merge::append::{append, open_for_append, plan as plan_append};
use raddle_merge::{AttributePolicy, Join, MergeError, MergeOptions, ScalarPolicy, Selection, verify};
use raddle_testing::plain;
use raddle_testing::strategy::{SchemaOptions, files};
use std::path::{Path, PathBuf};

fn mismatches(output: &Path, inputs: &[PathBuf], options: &MergeOptions) -> Result<usize, MergeError> {
    watched(|watch| verify(output, inputs, options, watch)).map(|report| report.mismatches.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Whatever the settings were, the file and its inputs are equal under the recorded ones.
    #[test]
    fn verify_needs_no_option_of_the_merge(
        specs in files(SchemaOptions { files: 2..=4, ..SchemaOptions::default() }),
        join in prop_oneof![Just(Join::Exact), Just(Join::Inner), Just(Join::Outer)],
        attributes in prop_oneof![Just(AttributePolicy::First), Just(AttributePolicy::Identical)],
        exclude in prop::option::of("[a-e]"),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let output = folder.path().join("all.h5");
        let mut options = MergeOptions { jobs: 2, memory_limit_bytes: 128 << 20, ..MergeOptions::new("") };
        (options.join.join, options.join.attributes, options.join.scalars) = (join, attributes, ScalarPolicy::Stack);
        let exclude: Vec<String> = exclude.into_iter().collect();
        options.selection = Selection::new(&[], &exclude, &[]).unwrap();
        prop_assume!(merge_to(&output, &inputs, &options).is_ok());
        let usual = MergeOptions { jobs: 2, memory_limit_bytes: 128 << 20, ..MergeOptions::new(&output) };
        prop_assert_eq!(mismatches(&output, &inputs, &usual).unwrap(), 0);
    }
}

#[test]
fn appending_under_other_options_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let specs = files(SchemaOptions { files: 3..=3, ..SchemaOptions::default() });
    let specs = specs.new_tree(&mut runner).unwrap().current();
    let inputs = plain::make_all(folder.path(), &specs).unwrap();
    let output = folder.path().join("all.h5");
    let mut options = MergeOptions { extendible: raddle_merge::options::Extendible::All, ..MergeOptions::new("") };
    options.join.join = Join::Outer;
    merge_to(&output, &inputs[..2], &options).unwrap();
    let before = std::fs::read(&output).unwrap();
    let mut other = MergeOptions::new(&output);
    other.join.join = Join::Inner;
    let appended = |options: &MergeOptions| {
        watched(|watch| {
            let lock = open_for_append(&output)?;
            append(&plan_append(&lock, &inputs[2..], true, options, watch)?, &lock, watch).map(drop)
        })
    };
    match appended(&other) {
        Err(MergeError::Contradiction { known, requested, .. }) => {
            assert_eq!((known.as_str(), requested.as_str()), ("--join outer", "--join inner"));
        }
        outcome => panic!("{outcome:?}"),
    }
    assert!(std::fs::read(&output).unwrap() == before);
    appended(&MergeOptions::new(&output)).unwrap();
    assert_eq!(mismatches(&output, &inputs, &MergeOptions::new(&output)).unwrap(), 0);
}
