//! Metadata prediction compared with real files: never too low, and close for files like those of NOvA.

use crate::{integer, spec};
use raddle_hdf5::model::{CreationOrder, Dataspace, Filter, TypeClass};
use raddle_hdf5::write::{
    AttributeSpec, Compat, DatasetSpec, MetadataPrediction, OutputFile, OutputLayout, OutputOptions, TypeRef,
};
use std::sync::Arc;

const ALL_BOUNDS: [Compat; 4] = [Compat::Earliest, Compat::V18, Compat::V110, Compat::Latest];

/// A file to be created: groups of similar datasets.
struct Case {
    name: &'static str,
    groups: u64,
    datasets: u64,
    chunks: u64,
    /// Interval of datasets with chunks: every n-th dataset has chunks, the others are empty.
    filled: u64,
    rank: usize,
    unlimited: usize,
    attributes: u64,
    attribute_len: usize,
    tracked: bool,
    nested: bool,
    /// Factor by which prediction and actual length may differ.
    close: [f64; 4],
}

const ORDINARY: Case = Case {
    name: "ordinary",
    groups: 10,
    datasets: 40,
    chunks: 12,
    filled: 1,
    rank: 1,
    unlimited: 1,
    attributes: 0,
    attribute_len: 8,
    tracked: false,
    nested: false,
    close: [1.25, 1.15, 1.25, 1.25],
};

fn gzip() -> Vec<Filter> {
    vec![Filter { id: 1, optional: false, name: b"deflate".to_vec(), parameters: vec![6] }]
}

impl Case {
    fn spec(&self, filled: bool) -> DatasetSpec {
        let rows = if filled { self.chunks.max(1) * 8 } else { 0 };
        let mut dims = vec![8; self.rank];
        dims[0] = rows;
        let mut max_dims = dims.clone();
        max_dims[..self.unlimited].fill(u64::MAX);
        let layout =
            if filled { OutputLayout::Chunked { chunk_shape: vec![8; self.rank] } } else { OutputLayout::Contiguous };
        if !filled {
            max_dims = dims.clone();
        }
        let mut spec = spec(integer(4, true), &dims, &max_dims, layout);
        if filled {
            spec.filters = gzip();
        }
        spec.has_attributes = self.attributes > 0;
        spec
    }

    /// Returns the predicted and the actual length.
    fn run(&self, compat: Compat) -> (u64, u64) {
        let order = CreationOrder { tracked: self.tracked, indexed: self.tracked };
        let mut prediction = MetadataPrediction::new(compat);
        let text = TypeRef::Own(Arc::new(TypeClass::FixedString {
            len_bytes: self.attribute_len as u32,
            padding: 1,
            charset: 0,
        }));
        let value = vec![b'x'; self.attribute_len];
        let attribute_name = |index: u64| format!("attribute {index:03}").into_bytes();
        let mut in_root = (0, 0);
        let group_path = |group: u64| {
            if self.nested { format!("/g0000{}", "/sub".repeat(group as usize)) } else { format!("/g{group:04}") }
        };
        for group in 0..self.groups {
            if !self.nested || group == 0 {
                in_root = (in_root.0 + 1, in_root.1 + group_path(group).len() as u64 - 1);
            }
            let (mut links, mut names) = (0, 0);
            for dataset in 0..self.datasets {
                let filled = dataset % self.filled == 0;
                let (spec, chunks) = (self.spec(filled), if filled { self.chunks } else { 0 });
                (links, names) = (links + 1, names + format!("dataset{dataset:05}").len() as u64);
                let lens: Vec<u64> = (0..self.attributes)
                    .map(|index| {
                        let name = attribute_name(index);
                        let (dataspace, value) = (&Dataspace::Scalar, value.as_slice());
                        AttributeSpec { name: &name, utf8: false, datatype: &text, dataspace, value }
                            .message_len_bytes(compat)
                    })
                    .collect();
                prediction.add_dataset(&spec, chunks, &lens);
            }
            if self.nested && group + 1 < self.groups {
                (links, names) = (links + 1, names + 3);
            }
            prediction.add_group(links, names, order, &[]);
        }
        prediction.add_group(in_root.0, in_root.1, CreationOrder::default(), &[]);

        let folder = tempfile::tempdir().unwrap();
        let options =
            OutputOptions { compat, metadata_region_len_bytes: prediction.len_bytes(), ..OutputOptions::default() };
        let mut out = OutputFile::create(&folder.path().join("out.h5"), &options).unwrap();
        let mut address = out.raw_start();
        for group in 0..self.groups {
            let path = group_path(group);
            out.create_group(path.as_bytes(), order, CreationOrder::default()).unwrap();
            for dataset in 0..self.datasets {
                let filled = dataset % self.filled == 0;
                let (spec, chunks) = (self.spec(filled), if filled { self.chunks } else { 0 });
                let path = format!("{path}/dataset{dataset:05}");
                let mut dataset = out
                    .create_dataset(path.as_bytes(), &spec)
                    .unwrap_or_else(|error| panic!("{} {compat:?} {path}: {error}", self.name));
                dataset.expect_chunks(chunks).unwrap();
                for chunk in 0..chunks {
                    let mut origin = vec![0; self.rank];
                    origin[0] = chunk * 8;
                    dataset.insert(&origin, address, 10, 0).unwrap();
                    address += 10;
                }
                for index in 0..self.attributes {
                    let name = attribute_name(index);
                    let (dataspace, value) = (&Dataspace::Scalar, value.as_slice());
                    let attribute = AttributeSpec { name: &name, utf8: false, datatype: &text, dataspace, value };
                    dataset
                        .write_attribute(&attribute)
                        .unwrap_or_else(|error| panic!("{} {compat:?} {path}@{index}: {error}", self.name));
                }
            }
        }
        let written = out.finish().unwrap();
        (prediction.len_bytes(), written.metadata_len_bytes + written.tail_len_bytes)
    }
}

#[test]
fn the_prediction_is_an_upper_bound_and_not_far_off() {
    let cases = [
        ORDINARY,
        Case {
            name: "like NOvA",
            groups: 20,
            datasets: 100,
            filled: 6,
            chunks: 1,
            rank: 2,
            close: [1.25, 1.10, 1.15, 1.15],
            ..ORDINARY
        },
        Case { name: "one chunk each", groups: 20, datasets: 20, chunks: 1, ..ORDINARY },
        Case { name: "many chunks", groups: 2, datasets: 3, chunks: 3000, close: [1.1, 1.1, 1.3, 1.3], ..ORDINARY },
        Case { name: "57 and 64", groups: 1, datasets: 9, chunks: 65, close: [1.3, 1.3, 1.35, 1.35], ..ORDINARY },
        Case { name: "fixed", unlimited: 0, rank: 3, chunks: 40, ..ORDINARY },
        Case { name: "fixed, long", unlimited: 0, groups: 1, datasets: 2, chunks: 5000, ..ORDINARY },
        Case {
            name: "two unlimited",
            unlimited: 2,
            rank: 2,
            chunks: 500,
            groups: 2,
            datasets: 5,
            close: [1.2, 1.2, 1.4, 1.4],
            ..ORDINARY
        },
        Case { name: "few attributes", attributes: 4, close: [1.3, 1.3, 1.35, 1.35], ..ORDINARY },
        Case { name: "many attributes", attributes: 30, datasets: 5, close: [1.5, 1.6, 1.6, 1.6], ..ORDINARY },
        Case { name: "fat attributes", attributes: 6, attribute_len: 9000, datasets: 2, close: [1.3; 4], ..ORDINARY },
        Case {
            name: "wide group",
            groups: 1,
            datasets: 2000,
            filled: 8,
            chunks: 1,
            close: [1.35, 1.3, 1.4, 1.4],
            ..ORDINARY
        },
        Case { name: "tracked", tracked: true, close: [1.35, 1.2, 1.35, 1.35], ..ORDINARY },
        Case { name: "many small groups", groups: 300, datasets: 3, chunks: 1, close: [1.3; 4], ..ORDINARY },
        Case { name: "nested", nested: true, groups: 30, datasets: 10, chunks: 1, close: [1.3; 4], ..ORDINARY },
        Case { name: "empty groups", groups: 200, datasets: 0, close: [1.6, 1.7, 1.7, 1.7], ..ORDINARY },
    ];
    let mut wrong = Vec::new();
    for case in &cases {
        for (compat, close) in ALL_BOUNDS.into_iter().zip(case.close) {
            let (predicted, taken) = case.run(compat);
            let ratio = predicted as f64 / taken as f64;
            let line = format!("{} {compat:?}: predicted {predicted}, took {taken}, ratio {ratio:.3}", case.name);
            println!("{line}");
            // A constant 4 KiB is ignored, because it would dominate in small files.
            if predicted < taken || predicted.saturating_sub(4096) as f64 > taken as f64 * close {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
