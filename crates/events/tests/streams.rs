//! Packed data streams: round trips in every codec, the framework's own bytes, damage.

#[path = "support/ranks.rs"]
mod ranks;
mod support;

use proptest::prelude::*;
use raddle_core::ranks::communicator::Communicator;
use raddle_events::pds::{PdsCodec, PdsOptions, PdsSink, PdsSource, PdsSummary};
use raddle_events::sinks::{CheckSink, NullSink};
use raddle_events::sources::generated::{CyclicSource, Empty, RandomOptions, RandomProducts, SizeLaw, TestProducts};
use raddle_events::{ColumnsError, ConvertOptions, EventsError, Form, Result, Serialization, Source};
use ranks::run_collective;
use std::path::Path;
use support::{options, run};

const CODECS: [PdsCodec; 3] = [PdsCodec::None, PdsCodec::Lz4, PdsCodec::Zstd(3)];

fn write(source: &dyn Source, path: &Path, codec: PdsCodec, options: &ConvertOptions) -> Result<PdsSummary> {
    let schema = match &options.products {
        Some(products) => source.schema().select(products),
        None => source.schema().clone(),
    };
    let sink = PdsSink::begin(path, &schema, PdsOptions { codec, replace: false })?;
    run(source, sink, options).map(|(_, summary)| summary)
}

#[test]
fn the_frameworks_bytes_are_made() {
    // Header and first event as written by the framework (threaded_io_test -s TestProductsSource -o PDSOutputer).
    const EXPECTED: &str = "\
        01d8ef2f 00000000 4e6f6e65 13000000 02000000 4576656e 74000000 07000000 76656374 6f723c66 6c6f6174 3e007665 \
        63746f72 3c696e74 3e000000 00000000 02000000 01000000 696e7473 00000000 00000000 666c6f61 74730000 13000000 \
        00000000 01000000 01000000 00000000 01000000 13000000 48000000 00000000 07000000 40000018 00064000 0012000a \
        00000003 00000000 00000001 00000002 01000000 07000000 40000018 00064000 0012000a 00000003 00000000 00000000 \
        00000000 13000000";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.pds");
    let source = TestProducts::new(1, Some(Serialization::Root));
    write(&source, &path, PdsCodec::None, &options(1)).unwrap();
    let written: String = std::fs::read(&path).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written, EXPECTED.replace(' ', ""));
}

#[test]
fn the_bytes_do_not_depend_on_threads_and_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let size = SizeLaw::Exponential { mean_len_bytes: 300 };
    let source = RandomProducts::new(RandomOptions { len_entries: 500, products: 5, size, seed: 1 });
    for codec in CODECS {
        let mut first = None;
        for jobs in 1..=8 {
            let path = folder.path().join(format!("{jobs}.pds"));
            write(&source, &path, codec, &ConvertOptions { batch_len_bytes: 5000, ..options(jobs) }).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            assert_eq!(first.get_or_insert_with(|| bytes.clone()), &bytes);
        }
        for ranks in 1..=5 {
            let path = folder.path().join(format!("{ranks} ranks.pds"));
            let pds = PdsOptions { codec, replace: false };
            let begin = |ranks: &dyn Communicator| PdsSink::begin_collective(&path, source.schema(), pds, ranks);
            let rounds = ConvertOptions { batch_len_bytes: 5000, round_len_bytes: 20_000, ..options(1) };
            for written in run_collective(ranks, &source, begin, &rounds) {
                let (converted, summary) = written.unwrap();
                assert_eq!((converted.entries, summary.events), (500, 500));
                assert_eq!(Some(&std::fs::read(&path).unwrap()), first.as_ref());
            }
            std::fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn events_of_memory_are_repeated() {
    let source = TestProducts::new(7, None);
    let repeated = CyclicSource::new(&source, 3, 10).unwrap();
    let block = repeated.reader(&[1, 0]).unwrap().read(2..8).unwrap();
    block.check(&repeated.schema().select(&[1, 0])).unwrap();
    let once = source.reader(&[1, 0]).unwrap().read(0..3).unwrap();
    let Form::List(_) = &source.schema().products[0].form else { panic!("columns were asked for") };
    for (at, entry) in (2..8).enumerate() {
        for (column, expected) in block.columns.iter().zip(&once.columns) {
            let form = &source.schema().products[0].form;
            let (at, entry) = (at as u64, entry % 3);
            assert_eq!(column.slice(form, at..at + 1), expected.slice(form, entry..entry + 1));
        }
    }
}

#[test]
fn streams_without_events_or_products_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    for (number, source) in
        [&TestProducts::new(0, Some(Serialization::Unrolled)) as &dyn Source, &Empty::new(0), &Empty::new(9)]
            .into_iter()
            .enumerate()
    {
        let path = folder.path().join(format!("{number}.pds"));
        write(source, &path, PdsCodec::Zstd(1), &options(2)).unwrap();
        let read = PdsSource::open(&path).unwrap();
        assert_eq!(
            (read.schema().products.len(), read.len_entries()),
            (source.schema().products.len(), source.len_entries())
        );
        run(&read, NullSink::default(), &options(2)).unwrap();
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refused.pds");
    let begin = |source: &dyn Source| {
        PdsSink::begin(&path, source.schema(), PdsOptions { codec: PdsCodec::None, replace: false })
    };
    assert!(matches!(begin(&TestProducts::new(1, None)), Err(ColumnsError::Form { .. })));
    assert!(matches!(begin(&TestProducts::new(1, Some(Serialization::Basket))), Err(ColumnsError::Form { .. })));
    let (mut mixed, other) =
        (TestProducts::new(1, Some(Serialization::Root)).schema().clone(), Form::Blob(Serialization::Unrolled));
    mixed.products[1].form = other;
    let options = PdsOptions { codec: PdsCodec::None, replace: false };
    assert!(matches!(PdsSink::begin(&path, &mixed, options), Err(ColumnsError::MixedSerialization { .. })));
    assert!(!path.exists() && std::fs::read_dir(folder.path()).unwrap().next().is_none());
    std::fs::write(&path, "mine").unwrap();
    let exists = begin(&TestProducts::new(1, Some(Serialization::Root)));
    assert!(matches!(exists, Err(ColumnsError::OutputExists { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_failed_run_leaves_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let source = TestProducts::new(1000, Some(Serialization::Root));
    let path = folder.path().join("out.pds");
    let small = ConvertOptions { memory_len_bytes: 100, ..options(3) };
    assert!(matches!(write(&source, &path, PdsCodec::None, &small), Err(EventsError::Columns(ColumnsError::Core(_)))));
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn every_cut_and_other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.pds");
    let source = TestProducts::new(3, Some(Serialization::Root));
    write(&source, &path, PdsCodec::Lz4, &options(1)).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let ends: Vec<usize> = (0..=3)
        .map(|events| {
            let part = folder.path().join(format!("{events}.pds"));
            let some = ConvertOptions { entries: Some(0..events), ..options(1) };
            write(&source, &part, PdsCodec::Lz4, &some).unwrap().len_bytes as usize
        })
        .collect();
    let cut = folder.path().join("cut.pds");
    for len in 0..whole.len() {
        std::fs::write(&cut, &whole[..len]).unwrap();
        match PdsSource::open(&cut) {
            // A stream has no end mark, so one that is truncated between two events is valid.
            Ok(source) => assert_eq!(ends[source.len_entries() as usize], len),
            Err(ColumnsError::OtherFormat { .. }) => assert!(len < 4),
            Err(ColumnsError::Bad { place, .. }) => assert_eq!(place.path, cut),
            Err(other) => panic!("{other}"),
        }
    }
    let message = PdsSource::open(Path::new(file!())).or_else(|_| PdsSource::open(&Path::new("../..").join(file!())));
    assert!(message.unwrap_err().to_string().contains("not a packed data stream"));
}

#[test]
fn flipped_bits_are_errors_or_other_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped.pds");
    for (number, codec) in CODECS.into_iter().enumerate() {
        let original = folder.path().join(format!("{number}.pds"));
        write(&TestProducts::new(2, Some(Serialization::Root)), &original, codec, &options(1)).unwrap();
        let mut bytes = std::fs::read(&original).unwrap();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(source) = PdsSource::open(&path)
                && let Err(error) = run(&source, NullSink::default(), &options(1))
            {
                assert!(error.to_string().contains("entries"), "{error}");
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_is_read(
        len_entries in 0u64..60,
        products in 0usize..6,
        mean_len_bytes in 0u64..200,
        seed in any::<u64>(),
        jobs in 1usize..5,
        batch_len_bytes in 1u64..4000,
        chosen in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let size = SizeLaw::Exponential { mean_len_bytes };
        let source = RandomProducts::new(RandomOptions { len_entries, products, size, seed });
        let mut numbers: Vec<usize> = (0..products).collect();
        if products > 0 {
            // Some products, in any order.
            chosen.iter().for_each(|index| { let at = index.index(numbers.len()); numbers.swap(0, at); });
            numbers.truncate(products - chosen.len().min(products - 1));
        }
        for (number, codec) in CODECS.into_iter().enumerate() {
            let path = folder.path().join(format!("{number}.pds"));
            let options = ConvertOptions { batch_len_bytes, products: Some(numbers.clone()), ..options(jobs) };
            let written = write(&source, &path, codec, &options).unwrap();
            prop_assert_eq!(written.events, len_entries);
            prop_assert_eq!(written.len_bytes, std::fs::metadata(&path).unwrap().len());
            let read = PdsSource::open(&path).unwrap();
            prop_assert_eq!(read.schema(), &source.schema().select(&numbers));
            let check = CheckSink::new(read.schema(), &source, true).unwrap();
            let options = ConvertOptions { products: None, ..options };
            let (converted, checked) = run(&read, check, &options).unwrap();
            prop_assert_eq!((converted.entries, checked.entries), (len_entries, len_entries));
        }
    }
}
