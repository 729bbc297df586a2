//! Merges random files: read by plain libhdf5, the output is the concatenation of the inputs, for any layout,
//! compression, format, number of threads and memory limit.

use crate::watched::{merge_to, watched};
use proptest::prelude::*;
use raddle_codec::{Compression, Effort};
use raddle_hdf5::model::Dataspace;
use raddle_hdf5::write::Compat;
use raddle_merge::plan::chunk::Chunk;
use raddle_merge::{Compress, Contiguous, Empty, LayoutPolicy, MergeOptions, Shuffle, verify};
use raddle_testing::concatenation::concatenate;
use raddle_testing::content::{Content, Node};
use raddle_testing::plain;
use raddle_testing::spec::FileSpec;
use raddle_testing::strategy::{SchemaOptions, files};
use std::path::{Path, PathBuf};

fn options() -> impl Strategy<Value = MergeOptions> {
    let layout = prop_oneof![
        Just(LayoutPolicy::Events),
        Just(LayoutPolicy::Scan),
        Just(LayoutPolicy::Random),
        Just(LayoutPolicy::Cloud),
        Just(LayoutPolicy::Keep),
    ];
    let compress = prop_oneof![
        Just(Effort::Fast.into()),
        Just(Compress::default()),
        Just(Effort::Small.into()),
        Just(Compress::Keep),
        Just(Compress::None),
        (0_u8..=9).prop_map(|level| Effort::Gzip(level).into()),
    ];
    let shuffle = prop_oneof![Just(Shuffle::Keep), Just(Shuffle::Yes), Just(Shuffle::No)];
    let compat = prop_oneof![Just(Compat::V18), Just(Compat::V110), Just(Compat::Latest)];
    let chunk = prop::option::of((1_u64..20).prop_map(|rows| vec![rows]));
    (layout, compress, shuffle, compat, chunk, 1_usize..4, any::<bool>()).prop_map(
        |(layout, compress, shuffle, compat, chunk, jobs, ordered)| MergeOptions {
            layout,
            compress,
            shuffle,
            compat,
            chunk: chunk.map(Chunk::from),
            jobs,
            ordered,
            memory_limit_bytes: 128 << 20,
            // It would appear in the creation order of the root group.
            provenance: false,
            ..MergeOptions::new("")
        },
    )
}

/// Generates options by which datasets lose their chunks, combined with some of the others.
fn unchunked_options() -> impl Strategy<Value = MergeOptions> {
    let contiguous =
        prop_oneof![Just(Contiguous::Small), (0_u64..5000).prop_map(Contiguous::Below), Just(Contiguous::All)];
    let empty = prop_oneof![Just(Empty::AsOthers), Just(Empty::Contiguous), Just(Empty::Compact), Just(Empty::Chunked)];
    (options(), contiguous, empty).prop_map(|(options, contiguous, empty)| MergeOptions {
        contiguous,
        empty,
        ordered: true,
        ..options
    })
}

/// Returns `content` with datasets that need not be extendible.
fn fixed(mut content: Content) -> Content {
    for node in content.nodes.values_mut() {
        if let Node::Dataset(dataset) = node
            && let Dataspace::Simple { dims, max_dims } = &mut dataset.dataspace
        {
            max_dims.clone_from(dims);
        }
    }
    content
}

fn run(inputs: &[PathBuf], output: &Path, options: &MergeOptions) -> Result<(), raddle_merge::MergeError> {
    merge_to(output, inputs, options)?;
    let report = watched(|watch| verify(output, inputs, options, watch))?;
    assert_eq!(report.mismatches, [], "verify must agree");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_merge_is_the_concatenation(specs in files(SchemaOptions::default()), options in options()) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let contents: Vec<_> = specs.iter().map(FileSpec::content).collect();
        let expected = concatenate(&contents).unwrap();
        let output = folder.path().join("merged.h5");
        run(&inputs, &output, &options).unwrap();
        let found = plain::read(&output).unwrap();
        let differences = expected.differences(&found);
        prop_assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    #[test]
    fn a_merge_into_contiguous_datasets_is_the_concatenation(
        specs in files(SchemaOptions::default()),
        options in unchunked_options(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let contents: Vec<_> = specs.iter().map(FileSpec::content).collect();
        let expected = fixed(concatenate(&contents).unwrap());
        let output = folder.path().join("merged.h5");
        run(&inputs, &output, &options).unwrap();
        let found = plain::read(&output).unwrap();
        let differences = expected.differences(&found);
        prop_assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    /// Plain libhdf5 lacks these filters; `tests/interop` reads them with h5py.
    #[test]
    fn a_merge_with_registered_filters_verifies(
        specs in files(SchemaOptions::default()),
        compress in prop_oneof![(1_u8..=4).prop_map(|level| Compression::Zstd(level).into()), Just(Compression::Lz4.into())],
        options in options(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        run(&inputs, &folder.path().join("merged.h5"), &MergeOptions { compress, ..options }).unwrap();
    }

    #[test]
    fn ordered_merges_are_the_same_bytes_for_any_number_of_threads(specs in files(SchemaOptions::default())) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let written = [1, 2, 5].map(|jobs| {
            let output = folder.path().join(format!("merged{jobs}.h5"));
            run(&inputs, &output, &MergeOptions { jobs, ..MergeOptions::new("") }).unwrap();
            std::fs::read(output).unwrap()
        });
        prop_assert!(written[0] == written[1] && written[1] == written[2]);
    }
}
