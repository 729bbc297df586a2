//! Objects that ROOT split into branches, put together: against the same objects that ROOT did not split
//! (`samples/make_samples.py`, `samples/make_products.py`).

use raddle_columns::{Buffer, Column, ColumnsError, Form, Serialization, Source};
use raddle_root::{ReassemblyError, RootFile, RootOptions, TreeSource, WholeTree};
use std::path::{Path, PathBuf};

/// Products of `products.root` that can be put together.
const PRODUCTS: [&str; 8] = ["event", "vertices", "cells", "by_id", "vertex", "cell", "early", "named"];

/// Byte count, version 0 and checksum.
const CHECKSUM_FRONT_LEN_BYTES: usize = 10;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)
}

fn open(name: &str) -> WholeTree {
    WholeTree::open(RootFile::open(&sample(name)).unwrap(), "events").unwrap()
}

fn open_branches(name: &str, raw: bool) -> TreeSource {
    TreeSource::open(RootFile::open(&sample(name)).unwrap(), "events", RootOptions { raw }).unwrap()
}

/// The bytes of each entry of a product, read in parts of `step` entries.
fn blobs(source: &dyn Source, product: &str, step: usize) -> Vec<Vec<u8>> {
    let number = source.schema().position(product).unwrap_or_else(|| panic!("no product {product}"));
    let mut reader = source.reader(&[number]).unwrap();
    let mut all = Vec::new();
    for start in (0..source.len_entries()).step_by(step) {
        let block = reader.read(start..(start + step as u64).min(source.len_entries())).unwrap();
        block.columns[0].check(&source.schema().products[number].form, block.len_entries()).unwrap();
        all.extend(entries(&block.columns[0]));
    }
    all
}

fn entries(column: &Column) -> Vec<Vec<u8>> {
    let bytes = |offsets: &[u64], bytes: &[u8]| {
        offsets.windows(2).map(|pair| bytes[pair[0] as usize..pair[1] as usize].to_vec()).collect()
    };
    match column.buffers.as_slice() {
        [Buffer::Offsets(offsets), Buffer::Values(values)] => bytes(offsets, values),
        _ => panic!("no bytes"),
    }
}

#[test]
fn objects_are_the_same_however_a_tree_stores_them() {
    let expected = open("objectwise.root");
    let raw = open_branches("objectwise.root", true);
    for name in ["split.root", "embedded.root", "unsplit.root"] {
        let whole = open(name);
        assert_eq!(whole.schema(), expected.schema());
        assert_eq!(whole.refused().count(), 0);
        for product in &whole.schema().products {
            let got = blobs(&whole, &product.name, 5);
            assert_eq!(got, blobs(&expected, &product.name, 12), "{name}, {}", product.name);
            // ROOT stored the objects of that file one by one, and those that are entries without their front.
            for (got, stored) in got.iter().zip(blobs(&raw, &product.name, 12)) {
                let is_object = product.form == Form::Blob(Serialization::Root);
                let front_len_bytes = if is_object { CHECKSUM_FRONT_LEN_BYTES } else { 0 };
                assert_eq!(got[front_len_bytes..], stored, "{name}, {}", product.name);
            }
        }
    }
}

#[test]
fn unsplit_objects_stored_member_by_member() {
    let (whole, split) = (open("products_unsplit.root"), open("products.root"));
    for product in &PRODUCTS[1..] {
        assert_eq!(blobs(&whole, product, 2), blobs(&split, product, 100), "{product}");
    }
    let refused: Vec<&str> = whole.refused().map(|(product, _)| product.name.as_str()).collect();
    assert_eq!(refused, ["event", "pointing", "holding"]);
}

#[test]
fn what_cannot_be_put_together_is_named() {
    let whole = open("products.root");
    let refused: Vec<String> = whole.refused().map(|(product, why)| format!("{}: {why}", product.name)).collect();
    let expected = [
        "pointing: branch pointing/ref: references (TRef) are only valid in their own file",
        "holding: branch holding/named: member named of class Holding (TNamed*) is not supported",
    ];
    assert_eq!(refused, expected);
    let number = whole.schema().position("pointing").unwrap();
    let Err(error) = whole.reader(&[number]) else { panic!("it can be read") };
    assert!(matches!(&error, ColumnsError::Format(source) if source.is::<ReassemblyError>()), "{error}");
    assert!(
        error.to_string().contains("products.root, tree events, branch pointing: the object cannot be reassembled")
    );
}

/// Two members of one class in a split collection have neighbouring branches, each with its own counts.
#[test]
fn arrays_of_two_members_of_one_class() {
    let branches = open_branches("products.root", false);
    let column = |product: &str| {
        let number = branches.schema().position(product).unwrap_or_else(|| panic!("no product {product}"));
        branches.reader(&[number]).unwrap().read(3..4).unwrap().columns.remove(0)
    };
    // Entry 3 has three vertices with shapes of (3, 4, 5) % 3 and of one more edges.
    for (member, ends) in [("outer", [0, 0, 1, 3]), ("inner", [0, 1, 3, 3])] {
        let edges = column(&format!("vertices.{member}.edges"));
        assert_eq!(edges.buffers[..2], [Buffer::Offsets(vec![0, 3]), Buffer::Offsets(ends.to_vec())], "{member}");
    }
}
