//! References in fill values, which need objects that exist before the dataset.

use crate::watched::watched;
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::metadata::{MetadataReader, NativeReader};
use raddle_hdf5::model::ObjectKind;
use raddle_hdf5::source::InputFile;
use raddle_merge::{DifferenceKind, MergeOptions, merge, plan, verify};
use raddle_testing::canonical::push_sized;
use raddle_testing::content::Node;
use raddle_testing::plain::{self, storage::create_reference_fill};
use raddle_testing::spec::{FileSpec, ObjectSpec};
use std::path::Path;

/// Returns the path that the fill value of `/list` refers to; empty for a null reference.
fn fill_target(path: &Path) -> Vec<u8> {
    let tree = NativeReader::default().read_tree(path).unwrap();
    let is_list = |kind: &ObjectKind| match kind {
        ObjectKind::Dataset(dataset) if dataset.datatype.class.has_reference() => Some(dataset.clone()),
        _ => None,
    };
    let list = tree.objects.iter().find_map(|object| is_list(&object.kind)).unwrap();
    let file = InputFile::open(path).unwrap();
    let value = list.fill.value.unwrap();
    Resolver::new(&file, &tree).canonical_inline(&list.datatype.class, &value).unwrap()[8..].to_vec()
}

/// Merges two files whose `/list` has 5 rows that were never written and a fill value that refers to `target`.
fn merge_fills(target: &str, reported: &[DifferenceKind], kept: &str) {
    let folder = tempfile::tempdir().unwrap();
    let inputs = plain::make_all(
        folder.path(),
        &[(), ()].map(|()| FileSpec {
            objects: vec![ObjectSpec::group("/empty"), ObjectSpec::group("/zempty")],
            ..FileSpec::default()
        }),
    )
    .unwrap();
    inputs.iter().for_each(|input| create_reference_fill(input, b"/list", 5, target.as_bytes()).unwrap());
    let options = MergeOptions { provenance: false, ..MergeOptions::new(folder.path().join("merged.h5")) };
    let planned = watched(|watch| plan(&inputs, &options, watch)).unwrap();
    let kinds: Vec<_> = planned.warnings.iter().map(|warning| (warning.path.as_str(), warning.kind)).collect();
    assert_eq!(kinds, reported.iter().map(|&kind| ("/list", kind)).collect::<Vec<_>>());
    watched(|watch| merge(&planned, watch)).unwrap();
    assert_eq!(watched(|watch| verify(&options.output, &inputs, &options, watch)).unwrap().mismatches, []);
    let Node::Dataset(list) = &plain::read(&options.output).unwrap().nodes[b"/list".as_slice()] else { panic!() };
    let mut reference = Vec::new();
    push_sized(target.as_bytes(), &mut reference);
    assert_eq!(list.values, reference.repeat(10), "rows that were never written are references as well");
    assert_eq!(String::from_utf8(fill_target(&options.output)).unwrap(), kept);
}

#[test]
fn a_fill_value_keeps_its_reference_to_an_object_created_before() {
    merge_fills("/empty", &[], "/empty");
    merge_fills("/", &[], "/");
}

#[test]
fn a_fill_value_that_refers_to_an_object_created_later_becomes_null_and_is_reported() {
    merge_fills("/zempty", &[DifferenceKind::FillValue], "");
}
