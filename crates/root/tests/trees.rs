//! Trees written by ROOT (`samples/make_samples.py`): objects whole and split, stored member by member or not, and
//! embedded baskets.

#[path = "support/values.rs"]
mod values;

use raddle_columns::{Form, Serialization, Source};
use raddle_root::{RootFile, RootOptions, TreeSource};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use values::values;

const ENTRIES: u64 = 12;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)
}

fn open(name: &str, raw: bool) -> TreeSource {
    let file = RootFile::open(&sample(name)).unwrap();
    assert_eq!(file.trees().len(), 1);
    TreeSource::open(file, "events", RootOptions { raw }).unwrap()
}

/// Reads the values of a product in ranges of a few entries.
fn read(source: &TreeSource, product: &str) -> Vec<Value> {
    let number = source.schema().position(product).unwrap_or_else(|| panic!("no product {product}"));
    let form = &source.schema().products[number].form;
    let mut reader = source.reader(&[number]).unwrap();
    let mut all = Vec::new();
    for start in (0..ENTRIES).step_by(5) {
        let block = reader.read(start..(start + 5).min(ENTRIES)).unwrap();
        all.extend(values(form, &block.columns[0], block.len_entries()));
    }
    let whole = source.reader(&[number]).unwrap().read(0..ENTRIES).unwrap();
    assert_eq!(all, values(form, &whole.columns[0], ENTRIES), "{product}: parts differ from the whole");
    all
}

fn entries(value: impl Fn(u64) -> Value) -> Vec<Value> {
    (0..ENTRIES).map(value).collect()
}

/// Returns a list with the number of values that most products have in entry `i`.
fn list(i: u64, value: impl Fn(u64) -> Value) -> Value {
    Value::Array((0..i % 4).map(value).collect())
}

fn hit(i: u64) -> Value {
    let adc: Vec<u64> = (0..i % 4).map(|k| 100 * i + k).collect();
    json!({ "channel": i, "time": i as f64 * 0.5, "energy": i as f64 * 0.25, "adc": adc })
}

fn cluster(i: u64) -> Value {
    json!({
        "x": i as f64, "y": 2.0 * i as f64,
        "shape": [i as f64, i as f64 + 1.0, i as f64 + 2.0],
        "grid": [[10 * i, 10 * i + 1], [10 * i + 2, 10 * i + 3]],
        "label": "c".repeat(i as usize % 3), "seed": hit(i + 1),
    })
}

fn track(i: u64, k: u64) -> Value {
    let hits: Vec<Value> = (0..k).map(|j| hit(i + j)).collect();
    let weights: Vec<Value> = (0..k).map(|j| json!({ "first": j, "second": (i + j) as f64 })).collect();
    json!({ "px": 0.5 * k as f64, "hits": hits, "name": format!("track{k}"), "weights": weights })
}

/// Returns a member of each object of lists.
fn members(objects: Vec<Value>, member: &str) -> Vec<Value> {
    let of_entry = |entry: Value| match entry {
        Value::Array(objects) => Value::Array(objects.into_iter().map(|object| object[member].clone()).collect()),
        object => object[member].clone(),
    };
    objects.into_iter().map(of_entry).collect()
}

/// Checks products that are stored in the same way with and without splitting.
fn check_simple(source: &TreeSource) {
    assert_eq!(source.len_entries(), ENTRIES);
    assert_eq!(source.unread().len(), 0, "{:?}", source.unread());
    assert_eq!(read(source, "n"), entries(|i| json!(i % 5)));
    let jets = |i: u64| (0..i % 5).map(|k| i as f64 + 0.125 * k as f64).collect::<Vec<f64>>();
    assert_eq!(read(source, "jets"), entries(|i| json!(jets(i))));
    assert_eq!(read(source, "pair"), entries(|i| json!([i as f64, -(i as f64)])));
    assert_eq!(read(source, "text"), entries(|i| json!(format!("entry {i}"))));
    assert_eq!(read(source, "id"), entries(|i| json!({ "run": 1, "lumi": 2, "event": (1u64 << 40) + i })));
    let name = |i: u64| if i == 7 { "n".repeat(300) } else { format!("name {i}") };
    assert_eq!(read(source, "name"), entries(|i| json!(name(i))));
    assert_eq!(read(source, "pts"), entries(|i| list(i, |k| json!(i as f64 + 0.5 * k as f64))));
    assert_eq!(read(source, "flags"), entries(|i| list(i, |k| json!((i + k) % 2 == 1))));
    assert_eq!(read(source, "words"), entries(|i| list(i, |k| json!("w".repeat(k as usize)))));
    assert_eq!(read(source, "groups"), entries(|i| list(i, |k| json!(vec![hit(k); k as usize]))));
    assert_eq!(read(source, "ids"), entries(|i| list(i, |k| json!(1000 * i + k))));
    assert_eq!(read(source, "times"), entries(|i| list(i, |k| json!(i as f64 / 4.0 + k as f64))));
    assert_eq!(read(source, "tables"), entries(|i| list(i, |k| json!(vec![i.to_string(); k as usize]))));
}

fn check_whole(source: &TreeSource) {
    check_simple(source);
    assert_eq!(source.unknown().count(), 0);
    assert_eq!(read(source, "hit"), entries(hit));
    assert_eq!(read(source, "cluster"), entries(cluster));
    assert_eq!(read(source, "hits"), entries(|i| list(i, |k| hit(i + k))));
    assert_eq!(read(source, "clusters"), entries(|i| list(i, |k| cluster(i + k))));
    assert_eq!(read(source, "tracks"), entries(|i| list(i, |k| track(i, k))));
    let pair = |first: Value, second: Value| json!({ "first": first, "second": second });
    let weights = entries(|i| list(i, |k| pair(json!(k), json!((i * k) as f64))));
    assert_eq!(read(source, "weights"), weights);
    let letter = |k: u64| json!(char::from(b'a' + k as u8).to_string());
    let shapes = entries(|i| list(i, |k| pair(letter(k), json!(vec![i as f64; k as usize]))));
    assert_eq!(read(source, "shapes"), shapes);
    assert_eq!(read(source, "pairs"), entries(|i| list(i, |k| pair(json!(i), json!(1.5 * k as f64)))));
}

fn check_split(source: &TreeSource) {
    check_simple(source);
    assert_eq!(source.unknown().count(), 0);
    for member in ["channel", "time", "energy", "adc"] {
        assert_eq!(read(source, &format!("hit.{member}")), members(entries(hit), member), "{member}");
        let hits = entries(|i| list(i, |k| hit(i + k)));
        assert_eq!(read(source, &format!("hits.{member}")), members(hits, member), "{member}");
        let seeds = members(entries(|i| list(i, |k| cluster(i + k))), "seed");
        assert_eq!(read(source, &format!("clusters.seed.{member}")), members(seeds, member), "{member}");
    }
    for (branch, member) in [("x", "x"), ("y", "y"), ("shape[3]", "shape"), ("grid[2][2]", "grid"), ("label", "label")]
    {
        assert_eq!(read(source, &format!("cluster.{branch}")), members(entries(cluster), member), "{member}");
        let clusters = entries(|i| list(i, |k| cluster(i + k)));
        assert_eq!(read(source, &format!("clusters.{branch}")), members(clusters, member), "{member}");
    }
    for member in ["px", "hits", "name", "weights"] {
        let tracks = entries(|i| list(i, |k| track(i, k)));
        assert_eq!(read(source, &format!("tracks.{member}")), members(tracks, member), "{member}");
    }
    assert_eq!(read(source, "hits"), entries(|i| json!(i % 4)));
    let letters = entries(|i| list(i, |k| json!(char::from(b'a' + k as u8).to_string())));
    assert_eq!(read(source, "shapes.first"), letters);
    assert_eq!(read(source, "shapes.second"), entries(|i| list(i, |k| json!(vec![i as f64; k as usize]))));
    assert_eq!(read(source, "pairs.second"), entries(|i| list(i, |k| json!(1.5 * k as f64))));
}

#[test]
fn whole_objects_stored_member_by_member() {
    check_whole(&open("unsplit.root", false));
}

#[test]
fn whole_objects_stored_one_after_the_other() {
    check_whole(&open("objectwise.root", false));
}

#[test]
fn split_objects() {
    check_split(&open("split.root", false));
}

#[test]
fn baskets_in_their_tree() {
    check_split(&open("embedded.root", false));
}

#[test]
fn bytes_of_entries() {
    let source = open("unsplit.root", true);
    assert!(source.schema().products.iter().all(|product| product.form == Form::Blob(Serialization::Basket)));
    let number = source.schema().position("pts").unwrap();
    let block = source.reader(&[number]).unwrap().read(6..7).unwrap();
    let expected = [&[0x40, 0, 0, 14, 0, 10, 0, 0, 0, 2][..], &6f32.to_be_bytes(), &6.5f32.to_be_bytes()].concat();
    assert_eq!(block.columns[0].as_bytes().unwrap(), (&[0, 18][..], expected.as_slice()));
}

/// A changed byte in the compressed data of a basket makes its first offset larger. Its format has no checksum.
#[test]
fn bytes_before_the_first_entry_are_damage() {
    let mut bytes = std::fs::read(sample("unsplit.root")).unwrap();
    bytes[5517] = 1;
    for raw in [false, true] {
        let file = RootFile::of_bytes(Path::new("changed.root"), bytes.clone()).unwrap();
        let source = TreeSource::open(file, "events", RootOptions { raw }).unwrap();
        let number = source.schema().position("clusters").unwrap();
        let error = source.reader(&[number]).unwrap().read(0..ENTRIES).unwrap_err().to_string();
        assert!(error.contains("its first entry begins at byte") && error.contains("branch clusters"), "{error}");
    }
}

/// Checks that neither the counter of a split collection, whose entries are numbers, nor the branch of a member, whose
/// entries have one value per object, has the class of a collection, whatever the class of the objects.
#[test]
fn classes_are_those_of_entries() {
    let source = open("split.root", true);
    let class = |product: &str| {
        let number = source.schema().position(product).unwrap_or_else(|| panic!("no product {product}"));
        source.schema().products[number].class.as_str()
    };
    assert_eq!([class("hits"), class("shapes"), class("tracks")], ["int"; 3]);
    assert_eq!(
        [class("hits.energy"), class("hits.adc"), class("shapes.first")],
        ["double[]", "vector<short>[]", "string[]"]
    );
    assert_eq!([class("clusters.grid[2][2]"), class("cluster.shape[3]")], ["int[][2][2]", "float[3]"]);
    assert_eq!([class("ids"), class("hit.adc"), class("cluster.x")], ["set<long>", "vector<short>", "double"]);
}

#[test]
fn units_cover_every_entry_once() {
    let source = open("split.root", false);
    for target_len_bytes in [0, 1, 100, 1000, 1 << 30] {
        let mut start = 0;
        while start < ENTRIES {
            let end = source.unit_end(start, target_len_bytes);
            assert!(end > start && end <= ENTRIES);
            start = end;
        }
    }
}
