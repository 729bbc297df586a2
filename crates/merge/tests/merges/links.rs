//! Virtual outputs: read by plain libhdf5, they equal the plain merge, and no value is read to create them.

use crate::watched::{merge_to, watched};
use proptest::prelude::*;
use raddle_core::report::progress::Stage;
use raddle_hdf5::model::Dataspace;
use raddle_hdf5::write::Compat;
use raddle_merge::{Link, LinkPaths, MergeError, MergeOptions, Sample, merge, plan, predict};
use raddle_testing::concatenation::concatenate;
use raddle_testing::content::Node;
use raddle_testing::plain::{self, numbers};
use raddle_testing::spec::{DatasetSpec, FileSpec, FilterSpec};
use raddle_testing::strategy::{SchemaOptions, files};
use std::path::{Path, PathBuf};

fn link(link: Link) -> MergeOptions {
    MergeOptions { link, jobs: 2, memory_limit_bytes: 128 << 20, ..MergeOptions::new("") }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_virtual_merge_reads_as_the_concatenation(
        specs in files(SchemaOptions::default()),
        absolute in any::<bool>(),
        provenance in any::<bool>(),
        compat in prop_oneof![Just(Compat::V18), Just(Compat::V110), Just(Compat::Latest)],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs_folder = folder.path().join("in 100%b");
        std::fs::create_dir(&inputs_folder).unwrap();
        let inputs = plain::make_all(&inputs_folder, &specs).unwrap();
        let contents: Vec<_> = specs.iter().map(FileSpec::content).collect();
        let mut expected = concatenate(&contents).unwrap();
        for node in expected.nodes.values_mut() {
            // A virtual dataset has exactly the mapped rows: it is not extendible.
            if let Node::Dataset(dataset) = node
                && let Dataspace::Simple { dims, max_dims } = &mut dataset.dataspace
            {
                max_dims[0] = dims[0];
            }
        }
        let output = folder.path().join("virtual.h5");
        let link_paths = if absolute { LinkPaths::Absolute } else { LinkPaths::Relative };
        let options = MergeOptions { link_paths, compat, provenance, ..link(Link::Virtual) };
        merge_to(&output, &inputs, &options).unwrap();
        let found = plain::read(&output).unwrap();
        let found = if provenance { found.without(b"/_raddle") } else { found };
        let differences = expected.differences(&found);
        // The provenance group appears in the creation order of the root group.
        let differences: Vec<_> = differences.iter().filter(|line| !line.starts_with("/: creation order")).collect();
        prop_assert!(differences.is_empty(), "{differences:?}");
    }
}

fn inputs(folder: &Path) -> Vec<PathBuf> {
    let spec = |first: u8| {
        let values = (0..200_u8).map(|row| row.wrapping_mul(7).wrapping_add(first)).collect();
        let table = DatasetSpec::plain(numbers::u8(), &[200], values).chunked(&[30], &[FilterSpec::Deflate(6)]);
        FileSpec { objects: vec![table.at("/table")], ..FileSpec::default() }
    };
    plain::make_all(folder, &[spec(1), spec(2), spec(3)]).unwrap()
}

#[test]
fn no_value_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = inputs(folder.path());
    let report = merge_to(&folder.path().join("virtual.h5"), &inputs, &link(Link::Virtual)).unwrap();
    let read = report.engine.stages.iter().filter(|stage| [Stage::Read, Stage::Decode].contains(&stage.stage));
    assert_eq!(read.map(|stage| stage.bytes).sum::<u64>(), 0);
    assert_eq!(report.engine.stored_len_bytes, 0);
}

#[test]
fn a_tree_can_be_moved() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old");
    std::fs::create_dir_all(old.join("in")).unwrap();
    let inputs = inputs(&old.join("in"));
    merge_to(&old.join("plain.h5"), &inputs, &link(Link::No)).unwrap();
    merge_to(&old.join("virtual.h5"), &inputs, &link(Link::Virtual)).unwrap();
    let new = folder.path().join("new");
    std::fs::rename(&old, &new).unwrap();
    let [expected, found] = ["plain.h5", "virtual.h5"].map(|name| plain::read(&new.join(name)).unwrap());
    let (expected, found) = (expected.without(b"/_raddle"), found.without(b"/_raddle"));
    let (expected, found) = (expected.dataset(b"/table").unwrap(), found.dataset(b"/table").unwrap());
    assert_eq!((found.dataspace.dims(), &found.values), (expected.dataspace.dims(), &expected.values));
    assert_eq!(found.values.len(), 600);
}

#[test]
fn a_missing_source_is_an_error_at_creation() {
    let folder = tempfile::tempdir().unwrap();
    let mut inputs = inputs(folder.path());
    inputs.push(folder.path().join("gone.h5"));
    for kind in [Link::Virtual, Link::External, Link::ExternalObjects] {
        let output = folder.path().join("out.h5");
        match merge_to(&output, &inputs, &link(kind)) {
            Err(MergeError::BadInputs { bad }) => assert_eq!(bad[0].path, inputs[3]),
            other => panic!("{other:?}"),
        }
        assert!(!output.exists());
    }
}

#[test]
fn external_links_lead_to_the_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = inputs(folder.path());
    let output = folder.path().join("links.h5");
    merge_to(&output, &inputs, &link(Link::External)).unwrap();
    let found = plain::read(&output).unwrap();
    let links: Vec<_> = inputs.iter().map(|input| input.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    for (name, input) in links.iter().zip(&inputs) {
        let path = format!("/{name}").into_bytes();
        let file = input.file_name().unwrap().as_encoded_bytes().to_vec();
        let expected = raddle_testing::content::Node::ExternalLink { file, path: b"/".to_vec() };
        assert_eq!(found.nodes[&path], expected);
    }
}

#[test]
fn room_for_mappings_is_predicted() {
    let dataset = |number: u8| {
        DatasetSpec::plain(numbers::u8(), &[3], vec![number; 3]).at(&format!("/a_dataset_of_some_name_{number}"))
    };
    for (files, datasets) in [(3, 100), (30, 30), (100, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let spec = FileSpec { objects: (0..datasets).map(dataset).collect(), ..FileSpec::default() };
        let inputs = plain::make_all(folder.path(), &vec![spec; files]).unwrap();
        let output = folder.path().join("virtual.h5");
        let options = MergeOptions { output: output.clone(), provenance: false, force: true, ..link(Link::Virtual) };
        let plan = watched(|watch| plan(&inputs, &options, watch)).unwrap();
        let predicted = predict(&plan, Sample::QUICK).unwrap().metadata_len_bytes as f64;
        let written = watched(|watch| merge(&plan, watch)).unwrap().output_len_bytes as f64;
        // The region is reserved as a whole: the file is at least that long, and no longer if it was large enough.
        let page = 4096.0;
        assert!(written <= predicted + page, "{files} files of {datasets}: {written} written, {predicted} predicted");
        let content = (files * usize::from(datasets)) as f64 * 100.0;
        assert!(predicted < 2.5 * content + 20.0 * page, "{files} files of {datasets}: {predicted} for {content}");
        assert_eq!(plain::read(&output).unwrap().nodes.len(), usize::from(datasets) + 1);
    }
}
