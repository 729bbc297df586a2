//! Written RNTuples: data is read back as written, the bytes do not depend on the number of threads and ranks, and data
//! that RNTuples cannot hold is stored as documented, or refused.

#[path = "support/ranks.rs"]
mod ranks;
mod support;
#[path = "../../root/tests/support/values.rs"]
mod values;

use proptest::prelude::*;
use raddle_core::ranks::communicator::Communicator;
use raddle_events::EventId;
use raddle_events::sources::generated::Empty;
use raddle_events::{
    Block, Buffer, Column, ColumnsError, ConvertOptions, EventsError, Field, Form, MemorySource, Number, Product,
    Schema, Serialization, Source,
};
use raddle_root::{NTUPLE_NAME, NtupleOptions, NtupleSink, NtupleSource, RootCodec, RootFile};
use ranks::run_collective;
use std::path::Path;
use support::{options, run};
use values::values;

const CODECS: [RootCodec; 4] = [RootCodec::None, RootCodec::Zlib(6), RootCodec::Lz4, RootCodec::Zstd(3)];

/// Returns options with pages of a few elements and page lists of a few clusters.
fn small(codec: RootCodec, with_ids: bool) -> NtupleOptions {
    NtupleOptions { codec, page_len_bytes: 24, group_len_bytes: 600, with_ids, replace: true }
}

fn units(jobs: usize) -> ConvertOptions {
    ConvertOptions { batch_len_bytes: 300, round_len_bytes: 1000, ..options(jobs) }
}

fn write(source: &dyn Source, path: &Path, ntuple: NtupleOptions, jobs: usize) -> Result<Vec<u8>, EventsError> {
    let sink = NtupleSink::begin(path, source.schema(), ntuple)?;
    let (converted, summary) = run(source, sink, &units(jobs))?;
    assert_eq!((converted.entries, summary.events), (source.len_entries(), source.len_entries()));
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(summary.len_bytes, bytes.len() as u64);
    walk(&bytes);
    Ok(bytes)
}

/// Visits all keys, which must follow each other without gaps up to the end: ROOT recovers files and lists their
/// contents that way.
fn walk(bytes: &[u8]) {
    let number = |at: usize, len: usize| bytes[at..at + len].iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
    let mut at = 100;
    while at < bytes.len() {
        // The key contains its own address, after two lengths, version, time, length of the key and cycle.
        assert_eq!(number(at + 18, 8), at);
        at += number(at, 4);
    }
    assert_eq!(at, bytes.len());
    assert_eq!(number(12, 4), bytes.len());
}

/// Writes with several numbers of threads and ranks, which must not change the bytes, and opens the file.
fn written(source: &dyn Source, ntuple: NtupleOptions) -> NtupleSource {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.root");
    let bytes = write(source, &path, ntuple, 1).unwrap();
    let other = folder.path().join("others.root");
    assert!(write(source, &other, ntuple, 3).unwrap() == bytes, "three threads");
    for count in [2, 3] {
        let begin = |ranks: &dyn Communicator| NtupleSink::begin_collective(&other, source.schema(), ntuple, ranks);
        for written in run_collective(count, source, begin, &units(1)) {
            let (converted, summary) = written.unwrap();
            assert_eq!((converted.entries, summary.events), (source.len_entries(), source.len_entries()));
            assert_eq!(summary.len_bytes, bytes.len() as u64);
        }
        assert!(std::fs::read(&other).unwrap() == bytes, "{count} ranks");
    }
    NtupleSource::open(RootFile::open(&path).unwrap(), NTUPLE_NAME).unwrap()
}

fn all_of(source: &dyn Source) -> Block {
    source
        .reader(&(0..source.schema().products.len()).collect::<Vec<_>>())
        .unwrap()
        .read(0..source.len_entries())
        .unwrap()
}

fn forms() -> impl Strategy<Value = Form> {
    let leaf = prop_oneof![
        4 => proptest::sample::select(Number::ALL.to_vec()).prop_map(Form::Number),
        1 => Just(Form::String),
        1 => Just(Form::Blob(Serialization::Basket)),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let record = |tuple: bool| {
            move |forms: Vec<Form>| {
                let name = |number| if tuple { format!("_{number}") } else { format!("f{number}") };
                let field = |(number, form)| Field { name: name(number), form };
                Form::Record(forms.into_iter().enumerate().map(field).collect())
            }
        };
        prop_oneof![
            2 => inner.clone().prop_map(Form::list),
            2 => (0_u64..4, inner.clone())
                .prop_map(|(length, content)| Form::Regular { length, content: Box::new(content) }),
            2 => proptest::collection::vec(inner.clone(), 1..3).prop_map(record(false)),
            1 => proptest::collection::vec(inner, 1..4).prop_map(record(true)),
        ]
    })
}

/// Returns the next number of a SplitMix64 generator.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Appends the buffers of `values` values.
fn fill(form: &Form, values: u64, state: &mut u64, buffers: &mut Vec<Buffer>) {
    let offsets = |state: &mut u64| {
        let mut end = 0;
        let ends = (0..values).map(|_| {
            end += next(state) % 4;
            end
        });
        std::iter::once(0).chain(ends).collect::<Vec<u64>>()
    };
    match form {
        Form::Number(Number::Bool) => {
            buffers.push(Buffer::Values((0..values).map(|_| next(state) as u8 & 1).collect()))
        }
        Form::Number(number) => {
            // Small numbers, and numbers that fill all bytes.
            let value = |state: &mut u64| next(state) >> (next(state) % 2 * 56);
            let bytes = (0..values).flat_map(|_| value(state).to_le_bytes()[..number.len_bytes()].to_vec());
            buffers.push(Buffer::Values(bytes.collect()));
        }
        Form::String | Form::Blob(_) => {
            let offsets = offsets(state);
            let len_bytes = offsets.last().copied().unwrap();
            buffers.push(Buffer::Offsets(offsets));
            buffers.push(Buffer::Values((0..len_bytes).map(|_| b'a' + (next(state) % 26) as u8).collect()));
        }
        Form::List(content) => {
            let offsets = offsets(state);
            let below = offsets.last().copied().unwrap();
            buffers.push(Buffer::Offsets(offsets));
            fill(content, below, state, buffers);
        }
        Form::Regular { length, content } => fill(content, values * length, state, buffers),
        Form::Record(fields) => fields.iter().for_each(|field| fill(&field.form, values, state, buffers)),
    }
}

fn source_of(forms: &[Form], entries: u64, seed: u64, with_ids: bool) -> MemorySource {
    let mut state = seed;
    let mut block = Block { entries: 0..entries, ..Block::default() };
    let mut schema = Schema::default();
    for (number, form) in forms.iter().enumerate() {
        let mut buffers = Vec::new();
        fill(form, entries, &mut state, &mut buffers);
        block.columns.push(Column { buffers });
        schema.products.push(Product { name: format!("p{number}"), class: String::new(), form: form.clone() });
    }
    if with_ids {
        let id = |entry: u64| EventId { run: 3, lumi: (entry / 7) as u32, event: 1 << 40 | entry };
        block.ids = (0..entries).map(id).collect();
    }
    MemorySource::new(schema, block).unwrap()
}

/// Whether the form has a C++ class: all forms except records that are neither pairs nor tuples.
fn has_class(form: &Form) -> bool {
    match form {
        Form::Number(_) | Form::String | Form::Blob(_) => true,
        Form::List(content) | Form::Regular { content, .. } => has_class(content),
        Form::Record(fields) => fields.iter().all(|field| field.name.starts_with('_') && has_class(&field.form)),
    }
}

/// Returns the form in which a product is read back.
fn expected(form: &Form) -> Form {
    match form {
        Form::Number(_) | Form::String => form.clone(),
        Form::Blob(_) => Form::list(Form::Number(Number::Uint8)),
        Form::List(content) => Form::list(expected(content)),
        Form::Regular { length, content } if *length > 0 && has_class(content) && has_class(&expected(content)) => {
            Form::Regular { length: *length, content: Box::new(expected(content)) }
        }
        Form::Regular { content, .. } => Form::list(expected(content)),
        Form::Record(fields) => {
            let field = |field: &Field| Field { name: field.name.clone(), form: expected(&field.form) };
            Form::Record(fields.iter().map(field).collect())
        }
    }
}

/// Replaces blobs in a form by lists of numbers, which have the same buffers.
fn without_blobs(form: &Form) -> Form {
    match form {
        Form::Number(_) | Form::String => form.clone(),
        Form::Blob(_) => Form::list(Form::Number(Number::Uint8)),
        Form::List(content) => Form::list(without_blobs(content)),
        Form::Regular { length, content } => {
            Form::Regular { length: *length, content: Box::new(without_blobs(content)) }
        }
        Form::Record(fields) => {
            let field = |field: &Field| Field { name: field.name.clone(), form: without_blobs(&field.form) };
            Form::Record(fields.iter().map(field).collect())
        }
    }
}

fn bytes_of(column: &Column) -> Vec<&[u8]> {
    let mut all = Vec::new();
    for buffer in &column.buffers {
        if let Buffer::Values(bytes) = buffer {
            all.push(bytes.as_slice());
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn what_is_written_is_read(
        forms in proptest::collection::vec(forms(), 1..5),
        entries in 0_u64..60,
        seed: u64,
        codec in proptest::sample::select(CODECS.to_vec()),
        with_ids: bool,
    ) {
        let source = source_of(&forms, entries, seed, with_ids);
        let read = written(&source, small(codec, with_ids));
        prop_assert_eq!(read.len_entries(), entries);
        prop_assert!(read.unread().is_empty(), "{:?}", read.unread());
        let names: Vec<&str> = read.schema().products.iter().map(|product| product.name.as_str()).collect();
        prop_assert_eq!(&names[forms.len()..], if with_ids { &["run", "lumi", "event"][..] } else { &[] });
        let (before, after) = (all_of(&source), all_of(&read));
        prop_assert_eq!(&after.ids, &before.ids);
        for (number, form) in forms.iter().enumerate() {
            let read_form = &read.schema().products[number].form;
            prop_assert_eq!(read_form, &expected(form));
            let [was, is] = [&before, &after].map(|block| &block.columns[number]);
            prop_assert_eq!(bytes_of(is), bytes_of(was));
            prop_assert_eq!(values(read_form, is, entries), values(&without_blobs(form), was, entries));
        }
    }
}

#[test]
fn there_may_be_no_events_and_no_products() {
    for entries in [0, 100] {
        let read = written(&Empty::new(entries), small(RootCodec::Zstd(3), false));
        assert_eq!((read.len_entries(), read.schema().products.len()), (entries, 0));
    }
    let read = written(&Empty::new(50), small(RootCodec::None, true));
    let ids = all_of(&read).ids;
    assert_eq!((ids.len(), ids[49]), (50, EventId { run: 1, lumi: 1, event: 50 }));
}

#[test]
fn names_that_are_not_permitted_are_changed_or_refused() {
    let number = Form::Number(Number::Int32);
    let source = source_of(&[number.clone(), number], 5, 1, false);
    let named = |names: [&str; 2]| {
        let mut schema = source.schema().clone();
        schema.products.iter_mut().zip(names).for_each(|(product, name)| product.name = name.to_owned());
        MemorySource::new(schema, all_of(&source)).unwrap()
    };
    let read = written(&named(["jet.pt", "a/b"]), small(RootCodec::Lz4, false));
    assert_eq!((read.schema().position("jet_pt"), read.schema().position("a_b")), (Some(0), Some(1)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.root");
    let refused = write(&named(["a.b", "a_b"]), &path, NtupleOptions::default(), 1).unwrap_err();
    assert!(
        matches!(&refused, EventsError::Columns(ColumnsError::Form { product, .. }) if product == "a_b"),
        "{refused}"
    );
    assert!(!path.exists());
}

#[test]
fn an_output_that_exists_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.root");
    std::fs::write(&path, "kept").unwrap();
    let source = source_of(&[Form::String], 20, 7, false);
    let refused = write(&source, &path, NtupleOptions::default(), 1).unwrap_err();
    assert!(matches!(refused, EventsError::Columns(ColumnsError::OutputExists { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    // An unfinished sink leaves no file.
    let sink = NtupleSink::begin(&path, source.schema(), small(RootCodec::None, false)).unwrap();
    drop(sink);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn entries_may_begin_anywhere_in_the_source() {
    let source = source_of(&[Form::list(Form::Number(Number::Float32)), Form::String], 80, 5, true);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.root");
    let sink = NtupleSink::begin(&path, source.schema(), small(RootCodec::Zlib(1), true)).unwrap();
    run(&source, sink, &ConvertOptions { entries: Some(33..71), ..units(2) }).unwrap();
    let read = NtupleSource::open(RootFile::open(&path).unwrap(), NTUPLE_NAME).unwrap();
    let mut block = source.reader(&[0, 1]).unwrap().read(33..71).unwrap();
    block.entries = 0..38;
    let mut of_file = all_of(&read);
    of_file.columns.truncate(2);
    assert_eq!(of_file, block);
}
