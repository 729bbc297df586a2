//! HDF5 files with all kinds of structures, a few kilobytes each: random schemas in four formats, and merges of them.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::Silent;
use raddle_merge::{MergeOptions, Watch};
use raddle_testing::plain;
use raddle_testing::spec::Format;
use raddle_testing::strategy::{SchemaOptions, files as random_files};
use std::sync::LazyLock;

/// Number of random schemas; each gives an input and a merged file.
const SCHEMAS: usize = 12;

/// Maximum length of a seed; longer ones would only make each case slower.
const MAX_LEN_BYTES: usize = 40_000;

static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut runner = TestRunner::deterministic();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut seeds = Vec::new();
    let formats = [Format::Earliest, Format::V18, Format::V110, Format::Latest];
    for (number, format) in (0..SCHEMAS).zip(formats.into_iter().cycle()) {
        let options = SchemaOptions {
            files: 2..=2,
            max_rows: if number % 2 == 0 { 8 } else { 40 },
            formats: vec![format],
            ..SchemaOptions::default()
        };
        let specs = random_files(options).new_tree(&mut runner).expect("schemas can be drawn").current();
        let inputs = plain::make_all(folder.path(), &specs).expect("libhdf5 writes what was drawn");
        seeds.push(std::fs::read(&inputs[0]).expect("the file was just made"));
        let output = folder.path().join("merged.h5");
        let options = MergeOptions { force: true, jobs: 1, ..MergeOptions::new(&output) };
        let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
        let plan = raddle_merge::plan(&inputs, &options, &watch).expect("files of one schema can be planned");
        raddle_merge::merge(&plan, &watch).expect("and merged");
        seeds.push(std::fs::read(output).expect("the file was just made"));
        inputs.iter().for_each(|input| std::fs::remove_file(input).expect("the file was just made"));
    }
    seeds.retain(|file| file.len() <= MAX_LEN_BYTES);
    assert!(seeds.len() >= SCHEMAS, "seeds became too long");
    seeds
});

/// Returns the bytes of the files.
pub(crate) fn files() -> Vec<Vec<u8>> {
    FILES.clone()
}
