//! Mutated copies of valid files: reading must not panic, take long, or request memory that the bytes could not fill.

mod support;

use proptest::prelude::*;
use proptest::sample::Index;
use raddle_core::cancel::CancelToken;
use raddle_events::packed::PackedTree;
use raddle_events::pds::{PdsCodec, PdsOptions, PdsSink, PdsSource};
use raddle_events::sources::generated::TestProducts;
use raddle_events::{ColumnsError, Serialization, Source};
use raddle_root::{ReassemblyError, RootFile, RootOptions, TreeSource, WholeTree};
use raddle_testing::requests::LargestRequest;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: LargestRequest = LargestRequest::new();

/// Limit of a request. Seeds are shorter than 40 KiB. A Zstandard block can legitimately expand by a factor of 32,768,
/// and a file that claims this for a few hundred bytes is trusted until they are decoded.
const MAX_REQUEST_BYTES: u64 = 48 << 20;

/// Time limit of a case. No case takes a tenth of it, but the machine may be busy.
const MAX_CASE: Duration = Duration::from_secs(20);

/// Lock that runs one case at a time, so that the largest request belongs to it.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Reads all entries of a source; errors are expected for most mutated bytes.
fn read_all(source: &dyn Source) {
    let products: Vec<usize> = (0..source.schema().products.len()).collect();
    for product in products {
        let mut reader = match source.reader(&[product]) {
            Err(ColumnsError::Format(error)) if error.is::<ReassemblyError>() => continue,
            reader => reader.unwrap(),
        };
        // Files may claim any number of entries, so only a few ranges are requested.
        let mut start = 0;
        for _ in 0..20 {
            if start >= source.len_entries() {
                break;
            }
            let end = source.unit_end(start, 10_000);
            assert!(end > start && end <= source.len_entries());
            source.batch_len_bytes(start..end);
            if let Ok(block) = reader.read(start..end) {
                block.check(&source.schema().select(&[product])).unwrap();
            }
            start = end;
        }
        read_baskets(source, product);
    }
}

/// Reads a few baskets, if there are any, and checks their ranges.
fn read_baskets(source: &dyn Source, product: usize) {
    let Ok(ends) = source.basket_ends(product) else { return };
    let Ok(read) = source.read_baskets(product, 0..ends.len().min(20), &CancelToken::new()) else { return };
    for (basket, end) in read.baskets.iter().zip(ends) {
        assert_eq!(basket.entries.end, end);
        let bytes = &read.bytes[basket.bytes.clone()];
        if let Some(offsets) = basket.offsets.clone().map(|offsets| &read.offsets[offsets]) {
            assert_eq!(offsets.len() as u64, basket.entries.end - basket.entries.start + 1);
            assert!(offsets.is_sorted() && offsets.last() == Some(&(bytes.len() as u32)));
        }
    }
}

/// Reads the bytes as a file of any format.
fn read_any(bytes: &[u8]) {
    let path = Path::new("fuzzed");
    if let Ok(source) = PdsSource::of_bytes(path, bytes.to_vec()) {
        read_all(&source);
    }
    let Ok(file) = RootFile::of_bytes(path, bytes.to_vec()) else { return };
    for tree in file.trees().into_iter().take(3) {
        for raw in [false, true] {
            let file = RootFile::of_bytes(path, bytes.to_vec()).unwrap();
            if let Ok(source) = TreeSource::open(file, &tree.path, RootOptions { raw }) {
                read_all(&source);
            }
        }
        let file = RootFile::of_bytes(path, bytes.to_vec()).unwrap();
        if let Ok(source) = WholeTree::open(file, &tree.path) {
            read_all(&source);
        }
        let file = RootFile::of_bytes(path, bytes.to_vec()).unwrap();
        if let Ok(source) = PackedTree::open(file, &tree.path) {
            read_all(&source);
        }
    }
}

fn check(bytes: &[u8]) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    ALLOCATOR.reset();
    let started = Instant::now();
    read_any(bytes);
    let (elapsed, largest) = (started.elapsed(), ALLOCATOR.len_bytes());
    assert!(elapsed < MAX_CASE, "{elapsed:?}");
    assert!(largest < MAX_REQUEST_BYTES, "a request of {largest} bytes");
}

static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let mut seeds = Vec::new();
    for (number, codec) in [PdsCodec::None, PdsCodec::Lz4, PdsCodec::Zstd(1)].into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        let source = TestProducts::new(5, Some(Serialization::Root));
        let sink = PdsSink::begin(&path, source.schema(), PdsOptions { codec, replace: false }).unwrap();
        support::run(&source, sink, &support::options(1)).unwrap();
        seeds.push(std::fs::read(path).unwrap());
    }
    for name in ["unsplit", "objectwise", "split", "embedded", "products", "packed_events", "packed_batches"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../root/tests/samples/{name}.root"));
        seeds.push(std::fs::read(path).unwrap());
    }
    seeds
});

#[test]
fn seeds_are_read() {
    SEEDS.iter().for_each(|seed| check(seed));
}

/// Numbers that parsers often mishandle.
const ODD: [u64; 8] = [0, 1, 0x7F, 0x7FFF, 0x7FFF_FFFF, 0xFFFF_FFFF, i64::MAX as u64, u64::MAX];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_shrink_iters: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_files_are_errors_or_other_values(
        seed in any::<Index>(),
        changes in proptest::collection::vec((0u8..6, any::<Index>(), any::<Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = seed.get(&SEEDS).clone();
        for (kind, at, other, value) in changes {
            if bytes.is_empty() {
                break;
            }
            let (at, other) = (at.index(bytes.len()), other.index(bytes.len()));
            match kind {
                0 => bytes[at] ^= 1 << (value % 8),
                1 => bytes[at] = value,
                2 | 3 => {
                    let width = 1 << (value % 4);
                    let odd = ODD[usize::from(value / 4) % ODD.len()].to_be_bytes();
                    let end = (at + width).min(bytes.len());
                    bytes[at..end].copy_from_slice(&odd[8 - (end - at)..]);
                }
                4 => {
                    let len = usize::from(value).min(bytes.len() - at.max(other));
                    bytes.copy_within(at..at + len, other);
                }
                _ if value < 64 => bytes.truncate(at),
                _ => bytes[at] = bytes[at].wrapping_add(1),
            }
        }
        check(&bytes);
    }
}
