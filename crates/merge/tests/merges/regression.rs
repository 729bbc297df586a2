//! Cases that once went wrong, each as small as it could be made: written by plain libhdf5, merged, read back.

use crate::watched::{merge_to, watched};
use raddle_hdf5::write::Compat;
use raddle_merge::{Compress, LayoutPolicy, MergeOptions, plan, predict, verify};
use raddle_testing::canonical::push_string;
use raddle_testing::concatenation::concatenate;
use raddle_testing::plain::{self, numbers};
use raddle_testing::spec::{DatasetSpec, FileSpec, FilterSpec, Format, ObjectSpec};

/// Merges files of one object each; the output must be their concatenation.
fn assert_merged(format: Format, objects: [ObjectSpec; 2], options: &MergeOptions) {
    let folder = tempfile::tempdir().unwrap();
    let specs = objects.map(|object| FileSpec { format, objects: vec![object], ..FileSpec::default() });
    let inputs = plain::make_all(folder.path(), &specs).unwrap();
    let output = folder.path().join("merged.h5");
    let options = MergeOptions { output: output.clone(), provenance: false, ..options.clone() };
    merge_to(&output, &inputs, &options).unwrap();
    assert_eq!(watched(|watch| verify(&output, &inputs, &options, watch)).unwrap().mismatches, []);
    let expected = concatenate(&specs.map(|spec| spec.content())).unwrap();
    assert_eq!(expected.differences(&plain::read(&output).unwrap()), Vec::<String>::new());
}

/// The time of nothing was -0.
#[test]
fn what_has_no_datasets_is_foretold_to_take_no_time() {
    let folder = tempfile::tempdir().unwrap();
    let spec = FileSpec { objects: vec![ObjectSpec::group("/empty")], ..FileSpec::default() };
    let inputs = plain::make_all(folder.path(), &[spec]).unwrap();
    let planned = watched(|watch| plan(&inputs, &MergeOptions::new(""), watch)).unwrap();
    assert_eq!(predict(&planned, 1 << 20).unwrap().elapsed_s.to_bits(), 0);
}

/// Null strings, as libhdf5 leaves them where nothing was written, became empty strings.
#[test]
fn a_null_string_stays_null() {
    let words = |texts: &[Option<&str>]| {
        let mut values = Vec::new();
        texts.iter().for_each(|text| push_string(text.map(str::as_bytes), &mut values));
        DatasetSpec::plain(numbers::text(), &[texts.len() as u64], values).chunked(&[2], &[]).at("/words")
    };
    let objects = [words(&[Some("a"), None, Some("")]), words(&[None, Some("b")])];
    assert_merged(Format::Earliest, objects, &MergeOptions::new(""));
}

/// An extensible array keeps the first four chunks in its index block, the next sixteen in the first data block.
#[test]
fn chunks_in_the_first_data_block_of_an_extensible_array() {
    let rows = |chunks: u8, first: u8| {
        let values: Vec<u8> = (0..chunks * 3).map(|row| first + row % 100).collect();
        DatasetSpec::plain(numbers::u8(), &[values.len() as u64], values)
    };
    let moved = MergeOptions { layout: LayoutPolicy::Keep, compress: Compress::Keep, ..MergeOptions::new("") };
    for format in [Format::V110, Format::Latest] {
        for chunks in [4, 5, 6, 20, 21] {
            for filters in [&[][..], &[FilterSpec::Deflate(6)]] {
                let table = |first| rows(chunks, first).chunked(&[3], filters).at("/table");
                // So does the output: decoded and chunked anew, or moved as stored.
                for compat in [Compat::V110, Compat::Latest] {
                    let chunked = MergeOptions { chunk: Some(vec![3]), compat, ..MergeOptions::new("") };
                    assert_merged(format, [table(1), table(100)], &chunked);
                    assert_merged(format, [table(1), table(100)], &MergeOptions { compat, ..moved.clone() });
                }
            }
        }
    }
}

/// A chunk that is not stored means the fill value of its input, and was moved as one of the output.
#[test]
fn chunks_that_are_not_stored_keep_their_fill_value() {
    let options = MergeOptions {
        layout: LayoutPolicy::Keep,
        compress: Compress::Keep,
        provenance: false,
        ..MergeOptions::new("")
    };
    for filters in [&[][..], &[FilterSpec::Deflate(6)]] {
        let holes = |fill: u8| {
            let mut dataset = DatasetSpec::plain(numbers::u8(), &[8], vec![1, 2, 3, 4, fill, fill, fill, fill]);
            (dataset.fill, dataset.written_rows) = (Some(vec![fill]), 4);
            FileSpec { objects: vec![dataset.chunked(&[4], filters).at("/holes")], ..FileSpec::default() }
        };
        for fills in [[0, 11], [11, 0], [11, 11]] {
            let folder = tempfile::tempdir().unwrap();
            let inputs = plain::make_all(folder.path(), &fills.map(holes)).unwrap();
            let output = folder.path().join("merged.h5");
            merge_to(&output, &inputs, &options).unwrap();
            assert_eq!(watched(|watch| verify(&output, &inputs, &options, watch)).unwrap().mismatches, [], "{fills:?}");
        }
    }
}
