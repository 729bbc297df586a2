//! Entries of trees in ROOT's serialisation of objects: against the bytes that ROOT itself wrote of the same objects,
//! which `products.root` also holds (`make_products.py` next to it).

use raddle_events::{DecodingSource, Form, Serialization, SerializingSource, Source};
use raddle_root::{RootFile, RootOptions, TreeSource, WholeTree};
use std::path::{Path, PathBuf};

/// Products of `products.root` whose bytes it has too.
const PRODUCTS: [&str; 8] = ["event", "vertices", "cells", "by_id", "vertex", "cell", "early", "named"];

/// Byte count, version 0 and checksum; byte count and version.
const CHECKSUM_FRONT_LEN_BYTES: usize = 10;
const VERSION_FRONT_LEN_BYTES: usize = 6;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../root/tests/samples").join(name)
}

fn open_branches(name: &str) -> TreeSource {
    TreeSource::open(RootFile::open(&sample(name)).unwrap(), "events", RootOptions { raw: true }).unwrap()
}

/// Returns the bytes of each entry of a product.
fn blobs(source: &dyn Source, product: &str) -> Vec<Vec<u8>> {
    let number = source.schema().position(product).unwrap_or_else(|| panic!("no product {product}"));
    let block = source.reader(&[number]).unwrap().read(0..source.len_entries()).unwrap();
    let (offsets, bytes) = block.columns[0].as_bytes().unwrap_or_else(|| panic!("{product} holds no bytes"));
    offsets.windows(2).map(|pair| bytes[pair[0] as usize..pair[1] as usize].to_vec()).collect()
}

/// Returns what ROOT's `TClass::WriteBuffer` made of each entry of a product.
fn written_by_root(source: &TreeSource, product: &str) -> Vec<Vec<u8>> {
    blobs(source, &format!("bytes_of_{product}"))
}

/// Bytes of a list of bytes, which a tree stores with front and count.
fn without_list_front(list: &[u8]) -> &[u8] {
    &list[10..]
}

#[test]
fn objects_are_the_bytes_that_root_writes() {
    let whole = WholeTree::open(RootFile::open(&sample("products.root")).unwrap(), "events").unwrap();
    let whole = SerializingSource::new(Box::new(whole), Serialization::Root);
    let branches = open_branches("products.root");
    for product in PRODUCTS {
        let expected = written_by_root(&branches, product);
        let got = blobs(&whole, product);
        assert_eq!(got.len() as u64, whole.len_entries());
        for (entry, (got, expected)) in got.iter().zip(&expected).enumerate() {
            let expected = without_list_front(expected);
            match product {
                // The file does not say that the class has `ClassDef(Early, 1)`: the checksum stands where ROOT has the
                // version.
                "early" => {
                    assert_eq!(expected[..VERSION_FRONT_LEN_BYTES], [0x40, 0, 0, 6, 0, 1], "entry {entry}");
                    assert_eq!(got[..6], [0x40, 0, 0, 10, 0, 0], "entry {entry}");
                    assert_eq!(got[CHECKSUM_FRONT_LEN_BYTES..], expected[VERSION_FRONT_LEN_BYTES..], "entry {entry}");
                }
                _ => assert_eq!(got, expected, "{product}, entry {entry}"),
            }
        }
    }
}

/// Checks that only products whose class describes their bytes are decoded or serialised.
#[test]
fn members_of_split_collections_are_passed_on() {
    let source = open_branches("split.root");
    let all: Vec<usize> = (0..source.schema().products.len()).collect();
    let bytes = source.reader(&all).unwrap().read(0..source.len_entries()).unwrap();
    let decoded = DecodingSource::new(Box::new(open_branches("split.root")));
    decoded.reader(&all).unwrap().read(0..source.len_entries()).unwrap();
    let serialized = SerializingSource::new(Box::new(open_branches("split.root")), Serialization::Root);
    let block = serialized.reader(&all).unwrap().read(0..source.len_entries()).unwrap();
    for (number, product) in serialized.schema().products.iter().enumerate() {
        if product.form == Form::Blob(Serialization::Basket) {
            assert_eq!(block.columns[number], bytes.columns[number], "{}", product.name);
        }
    }
    let form = |name: &str| &decoded.schema().products[source.schema().position(name).unwrap()].form;
    assert_eq!((form("shapes").to_string(), form("ids").to_string()), ("bytes[basket]".into(), "var * int64".into()));
}
