//! Unions: files without common datasets are merged into one that has all their datasets, with chunks as stored.

use crate::watched::{merge_to, watched};
use proptest::collection::vec;
use proptest::prelude::*;
use raddle_core::report::StageReport;
use raddle_merge::verify::digests::check::check;
use raddle_merge::{
    Compress, Join, JoinOptions, LayoutPolicy, MergeError, MergeOptions, MergeReport, Selection, verify,
};
use raddle_testing::content::Node;
use raddle_testing::plain::{self, numbers};
use raddle_testing::spec::{DatasetSpec, FileSpec, FilterSpec, ObjectSpec, What};
use raddle_testing::split::split;
use raddle_testing::strategy::{SchemaOptions, file};
use std::path::{Path, PathBuf};

/// Returns the options that `--union` sets.
fn union() -> MergeOptions {
    MergeOptions {
        join: JoinOptions { join: Join::Union, ..JoinOptions::default() },
        layout: LayoutPolicy::Keep,
        compress: Compress::Keep,
        decode_moved: false,
        jobs: 2,
        memory_limit_bytes: 128 << 20,
        ..MergeOptions::new("")
    }
}

fn run(inputs: &[PathBuf], output: &Path, options: &MergeOptions) -> Result<MergeReport, MergeError> {
    let report = merge_to(output, inputs, options)?;
    assert_eq!(watched(|watch| verify(output, inputs, options, watch))?.mismatches, [], "verify must agree");
    if options.provenance {
        let plain = MergeOptions::new("");
        assert_eq!(
            watched(|watch| check(output, &plain, watch))?.mismatches,
            [],
            "the file must be what its digests say"
        );
    }
    Ok(report)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_union_of_the_parts_is_the_whole(
        whole in file(SchemaOptions::default()),
        parts in 1_usize..4,
        part_of in vec(0_usize..4, 8),
        provenance in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let files = split(&whole, parts, &part_of);
        let inputs = plain::make_all(folder.path(), &files).unwrap();
        let output = folder.path().join("union.h5");
        run(&inputs, &output, &MergeOptions { provenance, ..union() }).unwrap();
        let mut expected = whole.content();
        for node in expected.nodes.values_mut() {
            if let Node::Group { creation_order, .. } = node {
                *creation_order = None; // that of several files one after the other
            }
        }
        let found = plain::read(&output).unwrap().without(b"/_raddle");
        let differences = expected.differences(&found);
        prop_assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}

fn table(path: &str, first: u8) -> ObjectSpec {
    let values = (0..100_u8).map(|row| row.wrapping_mul(7).wrapping_add(first)).collect();
    DatasetSpec::plain(numbers::u8(), &[100], values).chunked(&[30], &[FilterSpec::Deflate(6)]).at(path)
}

fn files(folder: &Path, objects: [Vec<ObjectSpec>; 2]) -> Vec<PathBuf> {
    let specs = objects.map(|objects| FileSpec { objects, ..FileSpec::default() });
    plain::make_all(folder, &specs).unwrap()
}

#[test]
fn chunks_are_moved_without_being_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = files(folder.path(), [vec![table("/a", 1)], vec![table("/b", 2)]]);
    let decoded = |options: &MergeOptions, name: &str| {
        let report = run(&inputs, &folder.path().join(name), options).unwrap();
        let is_decode = |stage: &&StageReport| stage.stage == raddle_core::report::progress::Stage::Decode;
        report.engine.stages.iter().filter(is_decode).map(|stage| stage.wall_s).sum::<f64>()
    };
    assert_eq!(decoded(&union(), "moved.h5"), 0.0);
    assert!(decoded(&MergeOptions { decode_moved: true, ..union() }, "decoded.h5") > 0.0);
}

#[test]
fn a_dataset_that_two_inputs_have_is_refused_unless_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = files(folder.path(), [vec![table("/a", 1), table("/c", 3)], vec![table("/b", 2), table("/c", 3)]]);
    let output = folder.path().join("union.h5");
    match run(&inputs, &output, &union()) {
        Err(MergeError::Differences { differences }) => {
            let found: Vec<_> = differences.iter().map(|one| (one.path.as_str(), one.inputs.as_slice())).collect();
            assert_eq!(found, [("/c", [0, 1].as_slice())]);
        }
        other => panic!("{other:?}"),
    }
    assert!(!output.exists());
    let selection = Selection::new(&[], &[], &["/c".to_owned()]).unwrap();
    run(&inputs, &output, &MergeOptions { selection, ..union() }).unwrap();
    let found = plain::read(&output).unwrap();
    let first = plain::read(&inputs[0]).unwrap();
    assert_eq!(found.dataset(b"/c").unwrap(), first.dataset(b"/c").unwrap());
}

#[test]
fn a_hard_link_may_come_before_its_object() {
    let folder = tempfile::tempdir().unwrap();
    let alias = ObjectSpec::link("/g/alias", What::HardLink(b"/a/object".to_vec()));
    let first = vec![ObjectSpec::group("/g"), table("/g/x", 1)];
    let second = vec![ObjectSpec::group("/a"), ObjectSpec::group("/g"), table("/a/object", 2), alias];
    let inputs = files(folder.path(), [first, second]);
    // In the union /g comes first, because the first input has it, and /a follows after all members of /g.
    let output = folder.path().join("union.h5");
    run(&inputs, &output, &union()).unwrap();
    let found = plain::read(&output).unwrap();
    assert_eq!(found.nodes[&b"/g/alias"[..]], Node::Alias(b"/a/object".to_vec()));
}
