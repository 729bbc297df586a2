//! Event files: trees of ROOT files, packed data streams, HDF5 files of every layout. Files that open are read
//! completely, in ranges of two lengths, which must agree.

use crate::scratch;
use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::Silent;
use raddle_events::hdf5::{CceOptions, CompressionChoice, Hdf5Options, Hdf5Sink, Hdf5Source, Layout};
use raddle_events::packed::PackedTree;
use raddle_events::pds::{PdsCodec, PdsOptions, PdsSink, PdsSource};
use raddle_events::sources::generated::TestProducts;
use raddle_events::{Block, ConvertOptions, DecodingSource, Serialization, Sink, Source, convert};
use raddle_root::{NtupleSource, RootFile, RootOptions, TreeSource, WholeTree};
use std::fmt::Debug;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::LazyLock;

/// Approximate lengths of ranges.
const UNITS_LEN_BYTES: [u64; 2] = [300, 1 << 20];

/// Maximum number of events read from a file that claims to have many.
const MAX_ENTRIES: u64 = 10_000;

/// Maximum number of baskets read per branch.
const MAX_BASKETS: usize = 50;

/// Runs the target whose input is a ROOT file.
pub(crate) fn tree(bytes: &[u8]) {
    if let Ok(file) = RootFile::of_bytes(Path::new("fuzzed.root"), bytes.to_vec()) {
        for name in file.ntuples() {
            let Ok(file) = RootFile::of_bytes(Path::new("fuzzed.root"), bytes.to_vec()) else { return };
            if let Ok(ntuple) = NtupleSource::open(file, &name) {
                read(&ntuple);
            }
        }
    }
    if let Ok(file) = RootFile::of_bytes(Path::new("fuzzed.root"), bytes.to_vec())
        && let Ok(tree) = PackedTree::open(file, "Events")
    {
        read(&tree);
    }
    for raw in [false, true] {
        let Ok(file) = RootFile::of_bytes(Path::new("fuzzed.root"), bytes.to_vec()) else { return };
        for name in file.trees() {
            let Ok(file) = RootFile::of_bytes(Path::new("fuzzed.root"), bytes.to_vec()) else { return };
            if raw && let Ok(file) = RootFile::of_bytes(Path::new("fuzzed.root"), bytes.to_vec()) {
                // Products that are refused are left out by `read`.
                WholeTree::open(file, &name.path).iter().for_each(|tree| read(tree));
            }
            if let Ok(tree) = TreeSource::open(file, &name.path, RootOptions { raw }) {
                read(&tree);
                if raw {
                    read_baskets(&tree);
                }
            }
        }
    }
}

/// Reads each basket of byte products and checks that it holds exactly the bytes of its entries.
fn read_baskets(tree: &TreeSource) {
    for product in 0..tree.schema().products.len() {
        let ends = tree.basket_ends(product).expect("a tree has baskets");
        let Ok(mut reader) = tree.reader(&[product]) else { return };
        // Ids are in other branches.
        reader.leave_out_ids();
        for number in 0..ends.len().min(MAX_BASKETS) {
            let Ok(read) = tree.read_baskets(product, number..number + 1, &CancelToken::new()) else { continue };
            let [basket] = read.baskets.as_slice() else { panic!("one basket was asked for") };
            assert_eq!((basket.entries.end, &basket.bytes), (ends[number], &(0..read.bytes.len())));
            let block = reader.read(basket.entries.clone()).expect("the entries of a basket that can be read");
            let (ends, bytes) = block.columns[0].as_bytes().expect("bytes of entries");
            assert_eq!(bytes, read.bytes);
            if basket.offsets.is_some() {
                assert!(ends.iter().copied().eq(read.offsets.iter().map(|&offset| u64::from(offset))));
            }
        }
    }
}

/// Runs the target whose input is a packed data stream.
pub(crate) fn stream(bytes: &[u8]) {
    if let Ok(stream) = PdsSource::of_bytes(Path::new("fuzzed.pds"), bytes.to_vec()) {
        read(&stream);
        read(&DecodingSource::new(Box::new(stream)));
    }
}

/// Runs the target whose input is an HDF5 event file.
pub(crate) fn event_file(bytes: &[u8]) {
    if let Ok(file) = Hdf5Source::open(&scratch::write("events.h5", bytes)) {
        read(&file);
        read(&DecodingSource::new(Box::new(file)));
    }
}

/// Reads each product separately, so that an unreadable one does not hide others.
fn read(source: &dyn Source) {
    let entries = source.len_entries().min(MAX_ENTRIES);
    for product in 0..source.schema().products.len() {
        let schema = source.schema().select(&[product]);
        let mut whole = Vec::new();
        for len_bytes in UNITS_LEN_BYTES {
            let Ok(mut reader) = source.reader(&[product]) else { continue };
            let (mut start, mut all) = (0, Some(Block::new(&schema, 0)));
            while start < entries {
                let end = source.unit_end(start, len_bytes).min(entries);
                assert!(end > start, "a range without entries");
                match reader.read(start..end) {
                    Ok(block) => {
                        block.check(&schema).expect("what is read is a block of its schema");
                        if let Some(all) = &mut all {
                            all.ids.extend(block.ids);
                            all.columns[0].append(&block.columns[0]).expect("columns of one form");
                        }
                    }
                    Err(_) => all = None,
                }
                start = end;
            }
            whole.push(all);
        }
        // A fault may affect ranges of one length only; products that both lengths could read must be equal.
        if let [Some(small), Some(large)] = whole.as_slice() {
            assert_eq!((&small.ids, &small.columns), (&large.ids, &large.columns));
        }
    }
}

/// Returns trees written by ROOT 6.40, and trees of packed events. The programs that made them are next to them.
pub(crate) fn tree_seeds() -> Vec<Vec<u8>> {
    [
        &include_bytes!("../../root/tests/samples/split.root")[..],
        include_bytes!("../../root/tests/samples/unsplit.root"),
        include_bytes!("../../root/tests/samples/embedded.root"),
        include_bytes!("../../root/tests/samples/objectwise.root"),
        include_bytes!("../../root/tests/samples/products.root"),
        include_bytes!("../../root/tests/samples/packed_events.root"),
        include_bytes!("../../root/tests/samples/packed_batches.root"),
    ]
    .map(<[u8]>::to_vec)
    .into()
}

/// Returns streams of both serialisations in every codec.
pub(crate) fn stream_seeds() -> Vec<Vec<u8>> {
    STREAMS.clone()
}

/// Returns files of every layout, in both forms.
pub(crate) fn event_file_seeds() -> Vec<Vec<u8>> {
    FILES.clone()
}

static STREAMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut streams = Vec::new();
    for serialization in [Serialization::Root, Serialization::Unrolled] {
        for codec in [PdsCodec::None, PdsCodec::Lz4, PdsCodec::Zstd(3)] {
            let source = TestProducts::new(7, Some(serialization));
            streams.push(written(&source, 1, |path| {
                PdsSink::begin(path, source.schema(), PdsOptions { codec, replace: true })
            }));
        }
    }
    streams
});

static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let blobs = TestProducts::new(11, Some(Serialization::Root));
    let columns = TestProducts::new(11, None);
    let batch = Layout::Batch(NonZeroU64::MIN.saturating_add(3));
    // Small chunks, so that every file has several.
    let chunk_len_bytes = NonZeroU64::new(128);
    let ours = Hdf5Options { chunk_len_bytes, replace: true, ..Hdf5Options::default() };
    let mut files = Vec::new();
    for (source, layout) in [
        (&columns, Layout::Columns),
        (&blobs, Layout::Columns),
        (&blobs, Layout::Product),
        (&blobs, Layout::Event),
        (&blobs, batch),
    ] {
        files.push(written(source, layout.unit_multiple(), |path| {
            Hdf5Sink::begin(path, source.schema(), layout, &ours)
        }));
    }
    for (layout, codec, choice) in [
        (Layout::Product, PdsCodec::None, CompressionChoice::None),
        (Layout::Event, PdsCodec::None, CompressionChoice::Events),
        (Layout::Event, PdsCodec::Lz4, CompressionChoice::Events),
        (Layout::Event, PdsCodec::Zstd(3), CompressionChoice::Events),
        (batch, PdsCodec::Lz4, CompressionChoice::None),
        (batch, PdsCodec::Lz4, CompressionChoice::Both),
        (batch, PdsCodec::Zstd(3), CompressionChoice::Batch),
    ] {
        let options = Hdf5Options { cce: Some(CceOptions { codec, choice }), ..ours.clone() };
        files.push(written(&blobs, layout.unit_multiple(), |path| {
            Hdf5Sink::begin(path, blobs.schema(), layout, &options)
        }));
    }
    files
});

/// Returns the bytes that a sink writes for a source.
fn written<K: Sink, E: Debug>(
    source: &TestProducts,
    unit_multiple: u64,
    begin: impl FnOnce(&Path) -> Result<K, E>,
) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("events");
    let options = ConvertOptions { unit_multiple, ..ConvertOptions::default() };
    let sink = begin(&path).expect("test products fit every layout");
    convert(source, sink, &options, &Silent, &CancelToken::new()).expect("and can be written");
    std::fs::read(&path).expect("the file was just made")
}
