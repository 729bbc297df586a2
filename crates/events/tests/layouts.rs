//! All HDF5 layouts: data is read back as written, the bytes do not depend on the number of threads, and files in the
//! framework's form equal those that the framework writes.

#[path = "support/ranks.rs"]
mod ranks;
mod support;

use raddle_codec::{Compression, Effort};
use raddle_core::ranks::communicator::{Communicator, SingleProcess};
use raddle_events::formats::{OpenOptions, open_source};
use raddle_events::hdf5::{
    CceOptions, CompressionChoice, FileLayout, Hdf5Options, Hdf5Sink, Hdf5Source, Layout, StoredEvents,
};
use raddle_events::pds::{PdsCodec, PdsOptions, PdsSink};
use raddle_events::sinks::CheckSink;
use raddle_events::sources::generated::{Empty, RandomOptions, RandomProducts, SizeLaw, TestProducts};
use raddle_events::{
    Block, Buffer, Column, ColumnsError, ConcatSource, ConvertOptions, DecodingSource, EventsError, Field, Form,
    MemorySource, MismatchPolicy, Number, Product, Schema, Serialization, Source,
};
use ranks::run_collective;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use support::{options, run};

fn batch(events: u64) -> Layout {
    Layout::Batch(NonZeroU64::new(events).unwrap())
}

/// Returns options with short chunks, so that a few events fill several.
fn chunks_of(len_bytes: u64) -> Hdf5Options {
    Hdf5Options { chunk_len_bytes: NonZeroU64::new(len_bytes), ..Hdf5Options::default() }
}

fn framework(codec: PdsCodec, choice: CompressionChoice) -> Hdf5Options {
    Hdf5Options { cce: Some(CceOptions { codec, choice }), ..chunks_of(512) }
}

/// Writes `source` with `jobs` threads.
fn write(source: &dyn Source, path: &Path, layout: Layout, hdf5: &Hdf5Options, jobs: usize) {
    let sink = Hdf5Sink::begin(path, source.schema(), layout, hdf5).unwrap();
    let units = ConvertOptions { batch_len_bytes: 600, unit_multiple: layout.unit_multiple(), ..options(jobs) };
    let (converted, summary) = run(source, sink, &units).unwrap();
    assert_eq!((converted.entries, summary.events), (source.len_entries(), source.len_entries()));
    assert_eq!(summary.len_bytes, std::fs::metadata(path).unwrap().len());
}

/// Checks that `path` and `source` have the same contents, in ranges of several lengths.
fn check(path: &Path, source: &dyn Source) {
    let read = Hdf5Source::open(path).unwrap();
    for (jobs, batch_len_bytes) in [(1, 1 << 20), (2, 500), (1, 1)] {
        let sink = CheckSink::new(read.schema(), source, false).unwrap();
        let units = ConvertOptions { batch_len_bytes, ..options(jobs) };
        let (_, checked) = run(&read, sink, &units).unwrap();
        assert_eq!(checked.entries, source.len_entries());
    }
}

/// Writes `source` with several ranks, in rounds of a few ranges.
fn write_collective(ranks: usize, source: &dyn Source, path: &Path, layout: Layout, hdf5: &Hdf5Options) {
    let units = ConvertOptions {
        batch_len_bytes: 600,
        unit_multiple: layout.unit_multiple(),
        round_len_bytes: 2000,
        ..options(1)
    };
    let begin = |ranks: &dyn Communicator| Hdf5Sink::begin_collective(path, source.schema(), layout, hdf5, ranks);
    for written in run_collective(ranks, source, begin, &units) {
        let (converted, summary) = written.unwrap();
        assert_eq!((converted.entries, summary.events), (source.len_entries(), source.len_entries()));
        assert_eq!(summary.len_bytes, std::fs::metadata(path).unwrap().len());
    }
}

/// Writes with several numbers of threads and ranks, which must not change the bytes, and checks the written file.
fn round_trip(source: &dyn Source, layout: Layout, hdf5: &Hdf5Options) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.h5");
    write(source, &path, layout, hdf5, 1);
    let bytes = std::fs::read(&path).unwrap();
    for jobs in [2, 5] {
        let other = folder.path().join(format!("{jobs}.h5"));
        write(source, &other, layout, hdf5, jobs);
        assert!(std::fs::read(&other).unwrap() == bytes, "{layout:?} differs with {jobs} threads");
    }
    for ranks in [2, 3, 7] {
        let other = folder.path().join(format!("{ranks}ranks.h5"));
        write_collective(ranks, source, &other, layout, hdf5);
        assert!(std::fs::read(&other).unwrap() == bytes, "{layout:?} differs with {ranks} ranks");
    }
    check(&path, source);
    (folder, path)
}

fn random(entries: u64) -> RandomProducts {
    let size = SizeLaw::Exponential { mean_len_bytes: 40 };
    RandomProducts::new(RandomOptions { len_entries: entries, products: 7, size, seed: 3 })
}

#[test]
fn bytes_come_back_from_every_layout_of_ours() {
    for source in [&random(97) as &dyn Source, &TestProducts::new(23, Some(Serialization::Root))] {
        for layout in [Layout::Columns, Layout::Product, Layout::Event, batch(1), batch(10), batch(1000)] {
            for compress in [None, Some(Effort::Balanced.into()), Some(Compression::Zstd(3)), Some(Compression::Lz4)] {
                for len_bytes in [64, 1 << 20] {
                    round_trip(source, layout, &Hdf5Options { compress, ..chunks_of(len_bytes) });
                }
            }
        }
    }
}

#[test]
fn bytes_come_back_from_every_form_of_the_framework() {
    let source = TestProducts::new(23, Some(Serialization::Root));
    round_trip(&source, Layout::Product, &framework(PdsCodec::None, CompressionChoice::None));
    for codec in [PdsCodec::None, PdsCodec::Lz4, PdsCodec::Zstd(3)] {
        let (_folder, path) = round_trip(&source, Layout::Event, &framework(codec, CompressionChoice::Events));
        let layout = Hdf5Source::open(&path).unwrap().layout();
        let expected = CceOptions { codec, choice: CompressionChoice::Events };
        // The level of other codecs is the framework's default.
        assert_eq!(layout, FileLayout::FrameworkEvent(expected));
        for choice in CompressionChoice::ALL {
            for events in [1, 4, 10, 23, 100] {
                let (_folder, path) = round_trip(&source, batch(events), &framework(codec, choice));
                let layout = Hdf5Source::open(&path).unwrap().layout();
                assert_eq!(layout, FileLayout::FrameworkBatch(CceOptions { codec, choice }));
            }
        }
    }
}

#[test]
fn columns_of_trees_come_back() {
    for name in ["split.root", "unsplit.root", "embedded.root", "objectwise.root"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../root/tests/samples").join(name);
        let tree = open_source(&path, &OpenOptions::default()).unwrap();
        for compress in [None, Some(Effort::Fast.into())] {
            round_trip(tree.as_ref(), Layout::Columns, &Hdf5Options { compress, ..chunks_of(256) });
        }
    }
}

#[test]
fn there_may_be_no_events_and_no_products() {
    let none = TestProducts::new(0, Some(Serialization::Root));
    for layout in [Layout::Columns, Layout::Product, Layout::Event, batch(10)] {
        round_trip(&none, layout, &chunks_of(512));
        round_trip(&Empty::new(5), layout, &chunks_of(512));
        if layout != Layout::Columns {
            round_trip(&none, layout, &framework(PdsCodec::Zstd(1), CompressionChoice::Events));
        }
    }
}

#[test]
fn products_of_packed_streams_become_columns() {
    let folder = tempfile::tempdir().unwrap();
    for serialization in [Serialization::Root, Serialization::Unrolled] {
        let blobs = TestProducts::new(31, Some(serialization));
        let stream = folder.path().join(format!("{serialization}.pds"));
        let pds = PdsOptions { codec: PdsCodec::Lz4, replace: false };
        run(&blobs, PdsSink::begin(&stream, blobs.schema(), pds).unwrap(), &options(2)).unwrap();
        let decoded = DecodingSource::new(open_source(&stream, &OpenOptions::default()).unwrap());
        let columns = TestProducts::new(31, None);
        assert_eq!(decoded.schema(), columns.schema());
        let (_folder, path) = round_trip(&decoded, Layout::Columns, &chunks_of(128));
        check(&path, &columns);
    }
}

/// Writes files of `parts` events and joins them as they are stored; returns `None` if they cannot be joined.
fn stored(folder: &Path, parts: &[u64], layout: Layout, hdf5: &Hdf5Options) -> Option<StoredEvents> {
    let file = |(number, &entries): (usize, &u64)| {
        let path = folder.join(format!("part{number}.h5"));
        let hdf5 = Hdf5Options { replace: true, ..hdf5.clone() };
        write(&TestProducts::new(entries, Some(Serialization::Root)), &path, layout, &hdf5, 1);
        Hdf5Source::open(&path).unwrap()
    };
    StoredEvents::join(parts.iter().enumerate().map(file).collect()).unwrap().ok()
}

#[test]
fn what_the_framework_packs_is_joined_as_it_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    for layout in [Layout::Event, batch(1), batch(4)] {
        for codec in [PdsCodec::None, PdsCodec::Lz4, PdsCodec::Zstd(3)] {
            for choice in CompressionChoice::ALL {
                let hdf5 = framework(codec, choice);
                // All batches are complete, so that those of LZ4 can be told apart.
                let stored = stored(folder.path(), &[8, 0, 4, 7], layout, &hdf5).unwrap();
                let copy = |name: &str, ranks: &dyn Communicator, jobs: usize, batch_len_bytes: u64| {
                    let path = folder.path().join(name);
                    let hdf5 = Hdf5Options { replace: true, ..chunks_of(512) };
                    let sink = Hdf5Sink::begin_stored_collective(&path, &stored, &hdf5, ranks).unwrap();
                    let units = ConvertOptions { batch_len_bytes, ..options(jobs) };
                    let (converted, summary) = run(stored.source(), sink, &units).unwrap();
                    assert_eq!((converted.entries, summary.events), (19, 19));
                    std::fs::read(&path).unwrap()
                };
                let bytes = copy("one.h5", &SingleProcess, 1, 1 << 20);
                assert!(copy("three.h5", &SingleProcess, 3, 100) == bytes, "{layout:?} {codec:?} {choice:?}");
                let parts: Vec<Box<dyn Source>> = [8, 0, 4, 7]
                    .map(|entries| Box::new(TestProducts::new(entries, Some(Serialization::Root))) as Box<dyn Source>)
                    .into();
                let path = folder.path().join("one.h5");
                check(&path, &ConcatSource::new(parts).unwrap());
                let expected = match layout {
                    Layout::Event => {
                        FileLayout::FrameworkEvent(CceOptions { codec, choice: CompressionChoice::Events })
                    }
                    _ => FileLayout::FrameworkBatch(CceOptions { codec, choice }),
                };
                assert_eq!(Hdf5Source::open(&path).unwrap().layout(), expected);
                for ranks in [2, 3] {
                    let other = folder.path().join("among.h5");
                    let hdf5 = Hdf5Options { replace: true, ..chunks_of(512) };
                    let begin =
                        |ranks: &dyn Communicator| Hdf5Sink::begin_stored_collective(&other, &stored, &hdf5, ranks);
                    let units = ConvertOptions { batch_len_bytes: 100, round_len_bytes: 400, ..options(1) };
                    for written in run_collective(ranks, stored.source(), begin, &units) {
                        written.unwrap();
                    }
                    assert!(std::fs::read(&other).unwrap() == bytes, "{layout:?} {codec:?} {choice:?} {ranks} ranks");
                }
            }
        }
    }
}

#[test]
fn files_that_cannot_be_joined_as_stored_are_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let join = |parts: &[u64], layout, hdf5: &Hdf5Options| stored(folder.path(), parts, layout, hdf5).is_some();
    for choice in [CompressionChoice::Batch, CompressionChoice::Both] {
        // No reader could find the batches of the second file.
        assert!(!join(&[7, 8], batch(4), &framework(PdsCodec::Lz4, choice)));
        assert!(!join(&[4, 7], batch(7), &framework(PdsCodec::Lz4, choice)));
        assert!(join(&[7, 4], batch(7), &framework(PdsCodec::Lz4, choice)));
        assert!(join(&[7, 8], batch(4), &framework(PdsCodec::Zstd(1), choice)));
    }
    assert!(!join(&[7, 8], batch(4), &chunks_of(512)));
    assert!(!join(&[7, 8], Layout::Product, &framework(PdsCodec::None, CompressionChoice::None)));
    let like = |name: &str, codec, choice, source: &dyn Source| {
        let path = folder.path().join(name);
        write(source, &path, batch(5), &framework(codec, choice), 1);
        path
    };
    let source = TestProducts::new(5, Some(Serialization::Root));
    let (events, both) = (CompressionChoice::Events, CompressionChoice::Both);
    let first = like("first", PdsCodec::Zstd(1), events, &source);
    let others = [
        (like("level", PdsCodec::Zstd(3), events, &source), true),
        (like("codec", PdsCodec::Lz4, events, &source), false),
        (like("choice", PdsCodec::Zstd(1), both, &source), false),
        (like("products", PdsCodec::Zstd(1), events, &random(5)), false),
    ];
    for (other, is_joined) in others {
        let files = [&first, &other].map(|path| Hdf5Source::open(path).unwrap()).into();
        assert_eq!(StoredEvents::join(files).unwrap().is_ok(), is_joined, "{}", other.display());
    }
}

#[test]
fn sources_are_joined_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let part = |name: &str, entries| {
        let source = TestProducts::new(entries, Some(Serialization::Root));
        let path = folder.path().join(name);
        write(&source, &path, Layout::Product, &chunks_of(100), 1);
        open_source(&path, &OpenOptions::default()).unwrap()
    };
    let joined = ConcatSource::new(vec![part("a", 5), part("empty", 0), part("b", 9)]).unwrap();
    assert_eq!(joined.len_entries(), 14);
    let (_folder, path) = round_trip(&joined, batch(4), &chunks_of(64));
    let read = Hdf5Source::open(&path).unwrap();
    assert_eq!(read.layout(), FileLayout::Batch(4));
    let block = read.reader(&[0]).unwrap().read(3..8).unwrap();
    let events: Vec<u64> = block.ids.iter().map(|id| id.event).collect();
    assert_eq!(events, [4, 5, 1, 2, 3]);
    let other: Box<dyn Source> = Box::new(TestProducts::new(3, None));
    assert!(matches!(ConcatSource::new(vec![part("c", 2), other]), Err(EventsError::FormDiffers { .. })));
    let more: Box<dyn Source> = Box::new(random(3));
    assert!(matches!(
        ConcatSource::new(vec![part("d", 2), more]),
        Err(EventsError::Columns(ColumnsError::NoSuch { .. }))
    ));
}

/// Creates a source of two events from columns.
fn memory_source(columns: &[(&str, Form, Vec<Buffer>)]) -> Box<dyn Source> {
    let product = |(name, form, _): &(&str, Form, Vec<Buffer>)| Product {
        name: (*name).to_owned(),
        class: String::new(),
        form: form.clone(),
    };
    let schema = Schema { products: columns.iter().map(product).collect() };
    let columns = columns.iter().map(|(_, _, buffers)| Column { buffers: buffers.clone() }).collect();
    Box::new(MemorySource::new(schema, Block { entries: 0..2, ids: Vec::new(), columns }).unwrap())
}

#[test]
fn products_that_differ_are_refused_left_out_or_filled() {
    let number = |name: &'static str| (name, Form::Number(Number::Int16), vec![Buffer::Values(vec![1, 0, 2, 0])]);
    let list = |name: &'static str| {
        let record = Form::Record(vec![
            Field { name: "px".to_owned(), form: Form::Number(Number::Int8) },
            Field { name: "text".to_owned(), form: Form::String },
        ]);
        let buffers = vec![
            Buffer::Offsets(vec![0, 1, 1]),
            Buffer::Values(vec![5]),
            Buffer::Offsets(vec![0, 2]),
            Buffer::Values(b"ab".to_vec()),
        ];
        (name, Form::list(record), buffers)
    };
    let float = |name: &'static str| (name, Form::Number(Number::Float32), vec![Buffer::Values(vec![0; 8])]);
    let join = |wanted: &[&str], differing| {
        let sources = vec![
            memory_source(&[number("a"), list("only-first"), number("form")]),
            memory_source(&[number("only-second"), float("form"), number("a")]),
        ];
        ConcatSource::of(sources, |name| wanted.contains(&name), differing)
    };
    let names = |joined: &ConcatSource| -> Vec<String> {
        joined.schema().products.iter().map(|product| product.name.clone()).collect()
    };
    let all = ["a", "only-first", "only-second", "form"];
    assert!(matches!(join(&all, MismatchPolicy::Refuse), Err(EventsError::Columns(ColumnsError::NoSuch { .. }))));
    assert!(matches!(join(&["a", "form"], MismatchPolicy::Refuse), Err(EventsError::FormDiffers { .. })));
    assert!(matches!(join(&["a", "only-second"], MismatchPolicy::Refuse), Err(EventsError::NotInFirst { .. })));
    assert!(matches!(join(&all, MismatchPolicy::Fill), Err(EventsError::FormDiffers { .. })));
    // Products that are not selected may differ.
    assert_eq!(names(&join(&["a"], MismatchPolicy::Refuse).unwrap()), ["a"]);
    let left = join(&all, MismatchPolicy::LeaveOut).unwrap();
    assert_eq!(names(&left), ["a"]);
    let left_out: Vec<&str> = left.left_out().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(left_out, ["only-first", "form", "only-second"]);
    // All products would be left out.
    let nothing = join(&["only-first", "form"], MismatchPolicy::LeaveOut).map(drop).unwrap_err();
    assert!(matches!(nothing, EventsError::NothingInCommon { .. }));
    assert!(nothing.to_string().contains("only-first, form would all be left out: "), "{nothing}");
    assert!(join(&[], MismatchPolicy::LeaveOut).is_ok());
    let filled = join(&all[..3], MismatchPolicy::Fill).unwrap();
    assert_eq!((names(&filled), filled.left_out().len()), (all[..3].iter().map(|&name| name.to_owned()).collect(), 0));
    let block = filled.reader(&[2, 1, 0]).unwrap().read(1..3).unwrap();
    block.check(&filled.schema().select(&[2, 1, 0])).unwrap();
    let values = |bytes: &[u8]| Buffer::Values(bytes.to_vec());
    assert_eq!(block.columns[0].buffers, [values(&[0, 0, 1, 0])]);
    assert_eq!(
        block.columns[1].buffers,
        [Buffer::Offsets(vec![0, 0, 0]), values(&[]), Buffer::Offsets(vec![0]), values(&[])]
    );
    assert_eq!(block.columns[2].buffers, [values(&[2, 0, 1, 0])]);
    round_trip(&filled, Layout::Columns, &chunks_of(64));
    // Zero bytes are not an object.
    let blobs: Box<dyn Source> = Box::new(TestProducts::new(3, Some(Serialization::Root)));
    let refused = ConcatSource::of(vec![memory_source(&[number("a")]), blobs], |_| true, MismatchPolicy::Fill);
    assert!(matches!(refused, Err(EventsError::NotInFirst { .. })));
}

#[test]
fn all_entries_have_ids_or_none() {
    let with = |entries| Box::new(TestProducts::new(entries, None)) as Box<dyn Source>;
    let without = |entries| {
        let source = TestProducts::new(entries, None);
        let mut block = source.reader(&[0, 1]).unwrap().read(0..entries).unwrap();
        block.ids.clear();
        Box::new(MemorySource::new(source.schema().clone(), block).unwrap()) as Box<dyn Source>
    };
    for (sources, has_ids) in [
        (vec![with(3), with(4)], true),
        (vec![with(3), without(4)], false),
        (vec![without(3), with(4)], false),
        (vec![without(3), without(4)], false),
        // A source without entries has no ids.
        (vec![without(0), with(4), without(0)], true),
    ] {
        let joined = ConcatSource::new(sources).unwrap();
        let entries = joined.len_entries();
        assert_eq!(joined.has_ids(), has_ids);
        let block = joined.reader(&[0, 1]).unwrap().read(0..entries).unwrap();
        assert_eq!(block.ids.len() as u64, if has_ids { entries } else { 0 });
        block.check(joined.schema()).unwrap();
        round_trip(&joined, Layout::Columns, &chunks_of(64));
    }
}

#[test]
fn what_the_framework_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let begin = |schema: &Schema, layout, hdf5: &Hdf5Options| {
        Hdf5Sink::begin(&folder.path().join("out.h5"), schema, layout, hdf5).map(drop)
    };
    let hdf5 = framework(PdsCodec::None, CompressionChoice::None);
    let columns = TestProducts::new(1, None);
    for layout in [Layout::Product, Layout::Event, batch(2)] {
        assert!(matches!(begin(columns.schema(), layout, &hdf5), Err(EventsError::Columns(ColumnsError::Form { .. }))));
        assert!(matches!(
            begin(columns.schema(), layout, &chunks_of(100)),
            Err(EventsError::Columns(ColumnsError::Form { .. }))
        ));
    }
    let unrolled = TestProducts::new(1, Some(Serialization::Unrolled));
    assert!(begin(unrolled.schema(), Layout::Product, &hdf5).is_err());
    begin(unrolled.schema(), Layout::Event, &hdf5).unwrap();
    for (name, layout) in [("a_sz", Layout::Product), ("a/b", Layout::Product), ("run", Layout::Event)] {
        let mut schema = TestProducts::new(1, Some(Serialization::Root)).schema().clone();
        schema.products[0].name = name.to_owned();
        assert!(begin(&schema, layout, &hdf5).is_err(), "{name}");
    }
    // No files are left.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Checks that small files have no chunks: the index of a chunk takes 2 KiB and would dominate a file of small
/// datasets.
#[test]
fn small_files_have_no_chunks() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../root/tests/samples/split.root");
    let tree = open_source(&sample, &OpenOptions::default()).unwrap();
    for compress in [None, Some(Effort::Balanced.into())] {
        let hdf5 = Hdf5Options { compress, ..Hdf5Options::default() };
        let (_folder, path) = round_trip(tree.as_ref(), Layout::Columns, &hdf5);
        let (len_bytes, values) = (std::fs::metadata(&path).unwrap().len(), tree.batch_len_bytes(0..12));
        // 70 KiB of this is unused room that was reserved for metadata; with indexes, the length was 367 KiB.
        assert!(len_bytes < 140 << 10, "{compress:?}: {len_bytes} bytes of {values}");
        let file = std::fs::read(&path).unwrap();
        assert!(!file.windows(4).any(|bytes| bytes == b"TREE"), "a dataset has an index of chunks");
    }
}

#[test]
fn more_metadata_than_was_foreseen_find_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let source = random(3000);
    // The options do not predict the thousands of chunks.
    write(&source, &path, Layout::Product, &Hdf5Options { compress: None, ..chunks_of(64) }, 2);
    check(&path, &source);
}

#[test]
fn an_output_that_exists_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    std::fs::write(&path, b"mine").unwrap();
    let source = random(3);
    let begun = Hdf5Sink::begin(&path, source.schema(), Layout::Event, &chunks_of(64));
    assert!(matches!(begun, Err(EventsError::Columns(ColumnsError::OutputExists { .. }))));
    let replace = Hdf5Options { replace: true, ..chunks_of(64) };
    write(&source, &path, Layout::Event, &replace, 1);
    check(&path, &source);
}
