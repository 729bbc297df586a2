//! Appends random files: read by plain libhdf5, the file equals the merge of all files, and its digests and row ranges
//! are correct; a file that cannot be appended to stays byte-identical.

use crate::folder::names;
use crate::watched::{merge_to, watched};
use proptest::prelude::*;
use raddle_hdf5::write::Compat;
use raddle_merge::append::{append, open_for_append, plan as plan_append};
use raddle_merge::plan::chunk::Chunk;
use raddle_merge::verify::digests::check::check;
use raddle_merge::{MergeError, MergeOptions, verify};
use raddle_testing::plain;
use raddle_testing::strategy::{SchemaOptions, files};
use std::path::{Path, PathBuf};

pub fn appended(file: &Path, inputs: &[PathBuf], again: bool, options: &MergeOptions) -> Result<(), MergeError> {
    watched(|watch| {
        let lock = open_for_append(file)?;
        append(&plan_append(&lock, inputs, again, options, watch)?, &lock, watch).map(drop)
    })
}

fn assert_verified(file: &Path, inputs: &[PathBuf], options: &MergeOptions) {
    let options = MergeOptions { output: file.to_path_buf(), ..options.clone() };
    let report = watched(|watch| verify(file, inputs, &options, watch)).unwrap();
    assert_eq!(report.mismatches, [], "against the inputs");
}

fn schema() -> SchemaOptions {
    SchemaOptions { files: 2..=4, ..SchemaOptions::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_is_appended_is_merged(
        specs in files(schema()),
        compat in prop_oneof![Just(Compat::V18), Just(Compat::V110), Just(Compat::Latest)],
        chunk_rows in prop::option::of(1_u64..20),
        cut in 1_usize..4,
        provenance: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let options = MergeOptions {
            compat,
            chunk: chunk_rows.map(Chunk::Rows),
            extendible: raddle_merge::options::Extendible::All,
            provenance,
            jobs: 2,
            memory_limit_bytes: 128 << 20,
            ..MergeOptions::new("")
        };
        let outputs = tempfile::tempdir().unwrap();
        let (all, grown) = (outputs.path().join("all.h5"), outputs.path().join("grown.h5"));
        merge_to(&all, &inputs, &options).unwrap();
        let (first, second) = inputs.split_at(cut.min(inputs.len() - 1));
        merge_to(&grown, first, &options).unwrap();
        // Random files may be identical.
        appended(&grown, second, true, &options).unwrap();
        prop_assert_eq!(names(outputs.path()), ["all.h5", "grown.h5"]);
        assert_verified(&grown, &inputs, &options);
        if provenance {
            let report = watched(|watch| check(&grown, &options, watch)).unwrap();
            prop_assert_eq!(report.mismatches, []);
        } else {
            let differences = plain::read(&all).unwrap().differences(&plain::read(&grown).unwrap());
            prop_assert!(differences.is_empty(), "{}", differences.join("\n"));
        }
    }

    #[test]
    fn a_file_of_another_program_grows_or_stays_as_it_was(specs in files(schema())) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let outputs = tempfile::tempdir().unwrap();
        let grown = outputs.path().join("grown.h5");
        std::fs::copy(&inputs[0], &grown).unwrap();
        let options = MergeOptions { jobs: 2, memory_limit_bytes: 128 << 20, ..MergeOptions::new("") };
        match appended(&grown, &inputs[1..], false, &options) {
            Ok(()) => {
                assert_verified(&grown, &inputs, &options);
                plain::read(&grown).unwrap();
            }
            Err(error) => {
                prop_assert!(matches!(error, MergeError::Object { .. }), "{error}");
                prop_assert!(std::fs::read(&grown).unwrap() == std::fs::read(&inputs[0]).unwrap());
            }
        }
        prop_assert_eq!(names(outputs.path()), ["grown.h5"]);
    }
}
