//! Minimal cases of past bugs: written by plain libhdf5, merged, read back.

use crate::watched::{merge_to, watched};
use raddle_hdf5::model::{ByteOrder, CreationOrder, Member, TypeClass};
use raddle_hdf5::write::Compat;
use raddle_merge::verify::digests::check::check;
use raddle_merge::{Compress, LayoutPolicy, MergeOptions, Sample, plan, predict, verify};
use raddle_testing::canonical::push_string;
use raddle_testing::concatenation::concatenate;
use raddle_testing::plain::{self, numbers};
use raddle_testing::spec::{DatasetSpec, FileSpec, FilterSpec, Format, ObjectSpec, What};
use std::path::Path;
use std::sync::Arc;

/// Merges files of one object each and checks that the output is their concatenation.
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

/// The predicted time without datasets was -0.
#[test]
fn what_has_no_datasets_is_predicted_to_take_next_to_no_time() {
    let folder = tempfile::tempdir().unwrap();
    let spec = FileSpec { objects: vec![ObjectSpec::group("/empty")], ..FileSpec::default() };
    let inputs = plain::make_all(folder.path(), &[spec]).unwrap();
    let planned = watched(|watch| plan(&inputs, &MergeOptions::new(""), watch)).unwrap();
    let predicted = predict(&planned, Sample::QUICK).unwrap();
    assert!(predicted.is_short && predicted.cpu_s.is_none_or(f64::is_sign_positive), "{predicted:?}");
    assert_eq!((predicted.stored_len_bytes, predicted.size_error), (0, 0.0));
}

/// Null strings, which libhdf5 stores for elements that were never written, became empty strings.
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

/// libhdf5 leaves out repeated slashes when it creates a link, but other programs may store them. Verification found another
/// link in the output than in the inputs.
#[test]
fn links_with_repeated_slashes_lead_to_the_same_objects() {
    let folder = tempfile::tempdir().unwrap();
    let object = DatasetSpec::plain(numbers::u8(), &[1], vec![7]).at("/group/column");
    let link = ObjectSpec::link("/soft", What::SoftLink(b"/groupX/column".to_vec()));
    let objects = vec![ObjectSpec::group("/group"), object, link];
    let inputs = plain::make_all(folder.path(), &[FileSpec { objects, ..FileSpec::default() }]).unwrap();
    let mut bytes = std::fs::read(&inputs[0]).unwrap();
    let at = bytes.windows(7).position(|bytes| bytes == b"/groupX").unwrap();
    bytes[at + 6] = b'/';
    std::fs::write(&inputs[0], bytes).unwrap();
    let output = folder.path().join("merged.h5");
    merge_to(&output, &inputs, &MergeOptions::new("")).unwrap();
    let options = MergeOptions::new(&output);
    assert_eq!(watched(|watch| verify(&output, &inputs, &options, watch)).unwrap().mismatches, []);
    assert_eq!(watched(|watch| check(&output, &options, watch)).unwrap().mismatches, []);
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
                // The output does too, whether chunks are decoded and chunked again or moved as stored.
                for compat in [Compat::V110, Compat::Latest] {
                    let chunked = MergeOptions { chunk: Some(vec![3].into()), compat, ..MergeOptions::new("") };
                    assert_merged(format, [table(1), table(100)], &chunked);
                    assert_merged(format, [table(1), table(100)], &MergeOptions { compat, ..moved.clone() });
                }
            }
        }
    }
}

/// An unallocated chunk stands for the fill value of its input, but was moved as if it stood for that of the output.
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

/// Floats in VAX byte order became big-endian, because libhdf5 reads the order only from version 3 of the message on.
#[test]
fn vax_byte_order_stays() {
    let class = numbers::float(4, ByteOrder::Vax);
    // Version and class, bits with order and sign, size, bit range, exponent, mantissa, bias.
    let message = [0x31, 0x61, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0];
    let holds = |path: &Path| std::fs::read(path).unwrap().windows(message.len()).any(|window| window == message);
    let member = |name: &str, offset_bytes| Member {
        name: name.into(),
        offset_bytes,
        class: Arc::new(numbers::float(4, ByteOrder::Vax)),
    };
    let record = TypeClass::Compound { len_bytes: 12, members: vec![member("x", 0), member("y", 8)] };
    let folder = tempfile::tempdir().unwrap();
    let specs = [1_u8, 50].map(|first| {
        let values = |len: u8| (first..first + len).collect::<Vec<u8>>();
        let objects = vec![
            DatasetSpec::plain(class.clone(), &[3], values(12)).at("/direct"),
            DatasetSpec::plain(class.clone(), &[3], values(12)).chunked(&[2], &[FilterSpec::Deflate(6)]).at("/chunked"),
            DatasetSpec::plain(record.clone(), &[2], values(24)).chunked(&[2], &[]).at("/record"),
            ObjectSpec::link("/type", What::CommittedType(class.clone())),
        ];
        FileSpec { objects, ..FileSpec::default() }
    });
    let inputs = plain::make_all(folder.path(), &specs).unwrap();
    assert!(inputs.iter().all(|input| holds(input)));
    for compat in [Compat::Earliest, Compat::V18, Compat::V110, Compat::Latest] {
        let output = folder.path().join("merged.h5");
        let options = MergeOptions { compat, force: true, ..MergeOptions::new(&output) };
        merge_to(&output, &inputs, &options).unwrap();
        assert!(holds(&output), "{compat:?}");
        assert_eq!(watched(|watch| verify(&output, &inputs, &options, watch)).unwrap().mismatches, []);
        let expected = concatenate(&specs.clone().map(|spec| spec.content())).unwrap();
        let found = plain::read(&output).unwrap().without(b"/_raddle");
        assert_eq!(expected.differences(&found), Vec::<String>::new(), "{compat:?}");
    }
}

/// The metadata cache of libhdf5 evicts heaps while a chunk is inserted. Their indirect blocks were counted as parts of
/// the chunk's index.
#[test]
fn many_large_groups_fill_the_metadata_cache() {
    let folder = tempfile::tempdir().unwrap();
    let group = |group: usize| {
        let what = What::Group(CreationOrder::default());
        let group = ObjectSpec { path: format!("/group {group}").into(), what, attributes: vec![] };
        let dataset = |number: usize| {
            let path = [group.path.as_slice(), format!("/dataset {number}").as_bytes()].concat();
            let spec = DatasetSpec::plain(numbers::u32(), &[4], vec![7; 16]).chunked(&[2], &[]);
            ObjectSpec { path, ..spec.at("/") }
        };
        let datasets: Vec<ObjectSpec> = (0..100).map(dataset).collect();
        std::iter::once(group).chain(datasets)
    };
    let spec = FileSpec { objects: (0..25).flat_map(group).collect(), ..FileSpec::default() };
    let inputs = plain::make_all(folder.path(), &[spec]).unwrap();
    let output = folder.path().join("merged.h5");
    merge_to(&output, &inputs, &MergeOptions::new("")).unwrap();
    let report = watched(|watch| check(&output, &MergeOptions::new(""), watch)).unwrap();
    assert_eq!((report.mismatches.len(), report.datasets), (0, 2500));
}
