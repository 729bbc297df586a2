//! The plain writer and reader agree with each other and with the expected content of specs.

use proptest::prelude::*;
use raddle_testing::concatenation::concatenate;
use raddle_testing::plain;
use raddle_testing::spec::FileSpec;
use raddle_testing::strategy::{SchemaOptions, file, files};

proptest! {

    #[test]
    fn what_is_made_is_read(spec in file(SchemaOptions::default())) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made.h5");
        plain::make(&path, &spec).unwrap();
        let found = plain::read(&path).unwrap();
        let differences = spec.content().differences(&found);
        prop_assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    #[test]
    fn files_of_one_schema_can_be_concatenated(specs in files(SchemaOptions::default())) {
        let contents: Vec<_> = specs.iter().map(FileSpec::content).collect();
        let merged = concatenate(&contents);
        prop_assert!(merged.is_ok(), "{}", merged.unwrap_err());
    }
}
