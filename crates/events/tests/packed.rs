//! Trees of packed events written by the reference framework (see `make_samples.py` next to them): ten events of its
//! test products, one per entry and in batches of four.

use raddle_events::formats::{OpenOptions, open};
use raddle_events::packed::PackedTree;
use raddle_events::pds::PdsCodec;
use raddle_events::sources::generated::TestProducts;
use raddle_events::{Block, Serialization, Source};
use raddle_root::RootFile;
use std::path::Path;

const ENTRIES: u64 = 10;

fn sample(name: &str, raw: bool) -> PackedTree {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../root/tests/samples").join(name);
    let opened = open(&path, &OpenOptions { raw, ..OpenOptions::default() }).unwrap();
    assert!(opened.description().contains("of packed"), "{name} is taken for something else");
    PackedTree::open(RootFile::open(&path).unwrap(), &opened.place().tree.unwrap()).unwrap()
}

/// Returns the events that the framework was given.
fn expected() -> Block {
    let source = TestProducts::new(ENTRIES, Some(Serialization::Root));
    let products = ["ints", "floats"].map(|name| source.schema().position(name).unwrap());
    source.reader(&products).unwrap().read(0..ENTRIES).unwrap()
}

#[test]
fn events_are_read_whole_and_in_any_parts() {
    for (name, batches) in [("packed_events.root", None), ("packed_batches.root", Some(3))] {
        for raw in [false, true] {
            let tree = sample(name, raw);
            assert_eq!((tree.len_entries(), tree.batches()), (ENTRIES, batches), "{name}");
            assert_eq!(tree.serialization(), Serialization::Root);
            assert!(matches!(tree.codec(), PdsCodec::Zstd(_)), "{:?}", tree.codec());
            let names: Vec<&str> = tree.schema().products.iter().map(|product| product.name.as_str()).collect();
            assert_eq!(names, ["product0", "product1"], "without a dictionary the names are not in the file");
            let expected = expected();
            assert_eq!(tree.reader(&[0, 1]).unwrap().read(0..ENTRIES).unwrap(), expected, "{name}");
            for step in 1..=ENTRIES as usize {
                let mut reader = tree.reader(&[1]).unwrap();
                let mut all = Block::new(&tree.schema().select(&[1]), 0);
                for start in (0..ENTRIES).step_by(step) {
                    all.append(&reader.read(start..(start + step as u64).min(ENTRIES)).unwrap()).unwrap();
                }
                assert_eq!((&all.columns[0], &all.ids), (&expected.columns[1], &expected.ids), "{name}, {step}");
            }
        }
    }
}

#[test]
fn ranges_end_with_batches() {
    let tree = sample("packed_batches.root", false);
    assert_eq!([tree.unit_end(0, 1), tree.unit_end(5, 1), tree.unit_end(9, 1)], [4, 8, 10]);
    assert_eq!(tree.unit_end(0, 1 << 20), ENTRIES);
}
