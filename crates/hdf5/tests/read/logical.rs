//! Canonical bytes survive a round trip through a file: written by libhdf5, read by the native readers.

use proptest::prelude::*;
use raddle_codec::Pipeline;
use raddle_hdf5::logical::{
    CanonicalElements, NULL_STRING, ObjectPaths, Resolver, RowShift, element_len_bytes, shift_regions,
};
use raddle_hdf5::model::*;
use raddle_hdf5::native::{Encoding, ReadLimits, read_tree};
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits};
use raddle_hdf5::source::InputFile;
use raddle_hdf5::write::{Compat, DatasetSpec, OutputFile, OutputLayout, OutputOptions, TypeRef};
use std::path::Path;
use std::sync::Arc;

fn integer(len_bytes: u32) -> Arc<TypeClass> {
    Arc::new(TypeClass::Integer {
        len_bytes,
        order: ByteOrder::Little,
        signed: true,
        bits: BitRange { offset: 0, count: 8 * len_bytes },
        padding: (0, 0),
    })
}

fn string() -> Arc<TypeClass> {
    Arc::new(TypeClass::VariableString { padding: 0, charset: 1, len_bytes: 16 })
}

fn sequence(base: Arc<TypeClass>) -> Arc<TypeClass> {
    Arc::new(TypeClass::Sequence { base, len_bytes: 16 })
}

fn object_reference() -> Arc<TypeClass> {
    Arc::new(TypeClass::Reference(ReferenceKind::Object))
}

fn region_reference() -> Arc<TypeClass> {
    Arc::new(TypeClass::Reference(ReferenceKind::Region))
}

fn fill() -> FillValue {
    FillValue { value: None, user_defined: false, undefined: false, allocation_time: 3, write_time: 2 }
}

fn counted(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes(), bytes].concat()
}

fn items(items: &[Vec<u8>]) -> Vec<u8> {
    [(items.len() as u64).to_le_bytes().to_vec(), items.concat()].concat()
}

fn region(path: &[u8], kind: u8, rank: u32, count: u64, coordinates: &[u64]) -> Vec<u8> {
    let mut out = counted(path);
    out.push(kind);
    out.extend(rank.to_le_bytes());
    out.extend(count.to_le_bytes());
    coordinates.iter().for_each(|number| out.extend(number.to_le_bytes()));
    out
}

fn spec(class: &Arc<TypeClass>, dims: &[u64], layout: OutputLayout) -> DatasetSpec {
    DatasetSpec {
        datatype: TypeRef::Own(Arc::clone(class)),
        dataspace: Dataspace::Simple { dims: dims.to_vec(), max_dims: dims.to_vec() },
        layout,
        filters: Vec::new(),
        fill: fill(),
        attribute_order: CreationOrder::default(),
        has_attributes: false,
    }
}

/// Writes `count` elements in canonical form as `/values`, next to a group and a dataset to refer to.
fn write(path: &Path, compat: Compat, class: &Arc<TypeClass>, count: u64, canonical: &[u8]) {
    let options = OutputOptions { compat, metadata_region_len_bytes: 1 << 20, ..OutputOptions::default() };
    let mut file = OutputFile::create(path, &options).unwrap();
    file.create_group(&b"/group"[..], CreationOrder::default(), CreationOrder::default()).unwrap();
    let target = spec(&integer(4), &[20, 6], OutputLayout::Contiguous);
    file.create_dataset(&b"/group/target"[..], &target).unwrap().write(&[7; 480]).unwrap();
    let values = spec(class, &[count], OutputLayout::Chunked { chunk_shape: vec![count.min(7)] });
    file.create_dataset(&b"/values"[..], &values).unwrap().write(canonical).unwrap();
    let end = file.raw_start();
    file.set_raw_end(end);
    file.finish().unwrap();
}

/// Reads `/values` natively, in canonical form.
fn read(path: &Path) -> Vec<u8> {
    let file = InputFile::open(path).unwrap();
    let tree = read_tree(&file, &ReadLimits::default()).unwrap();
    let paths = ObjectPaths::new(&tree);
    let ObjectKind::Group(root) = &tree.objects[0].kind else { panic!("no root group") };
    let link = root.links.iter().find(|link| link.name == b"values").unwrap();
    let LinkTarget::Hard(index) = link.target else { panic!("no hard link") };
    let ObjectKind::Dataset(dataset) = &tree.objects[index as usize].kind else { panic!("no dataset") };
    assert_eq!(paths.path(tree.objects[index as usize].address).unwrap(), b"/values");
    assert_eq!(paths.path(tree.objects[0].address).unwrap(), b"/");
    let class = &dataset.datatype.class;
    let pipeline = Pipeline::new(&dataset.filters, class.len_bytes() as usize).unwrap();
    let source = DatasetSource { file: &file, encoding: Encoding::of(&tree), dataset, pipeline: &pipeline };
    let dims = dataset.dataspace.dims();
    let mut stored = vec![0; (dims[0] * class.len_bytes()) as usize];
    let target = BoxRead { start: &[0], count: dims, out_shape: dims, out_origin: &[0] };
    DatasetReader::new(ReaderLimits::default()).read_box(&source, &target, &mut stored).unwrap();
    let mut out = Vec::new();
    let mut resolver = Resolver::new(&file, &tree);
    resolver.canonical(class, &stored, &mut out).unwrap();
    let inline = InlineData::Stored(stored);
    let again = resolver.canonical_inline(class, &inline).unwrap();
    assert_eq!(*again, *out);
    out
}

fn check(class: &Arc<TypeClass>, elements: &[Vec<u8>]) {
    for compat in [Compat::Earliest, Compat::V18, Compat::V110, Compat::Latest] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        write(&path, compat, class, elements.len() as u64, &elements.concat());
        let stream = read(&path);
        assert_eq!(stream, elements.concat(), "{compat:?}");
        let cut: Vec<&[u8]> = CanonicalElements::new(class, &stream).map(Option::unwrap).collect();
        assert_eq!(cut, elements);
    }
}

#[test]
fn strings_and_sequences() {
    let long = vec![b'x'; 70_000];
    let null = NULL_STRING.to_le_bytes().to_vec();
    check(&string(), &[counted(b"abc"), counted(b""), null.clone(), counted("äöü".as_bytes()), counted(&long)]);
    let numbers = items(&[vec![1, 0], vec![2, 0], vec![3, 0]]);
    check(&sequence(integer(2)), &[numbers.clone(), items(&[]), numbers.clone()]);
    check(&sequence(sequence(integer(2))), &[items(&[numbers.clone(), items(&[])]), items(&[]), items(&[numbers])]);
    check(&sequence(string()), &[items(&[counted(b"a"), null, counted(b"bcd")]), items(&[])]);
}

#[test]
fn compounds_and_arrays() {
    let member = |name: &[u8], offset_bytes, class| Member { name: name.to_vec(), offset_bytes, class };
    let pair = Arc::new(TypeClass::Array { base: string(), dims: vec![2] });
    // A gap after the integer: padding is not part of the canonical form.
    let class = Arc::new(TypeClass::Compound {
        len_bytes: 64,
        members: vec![member(b"n", 0, integer(4)), member(b"pair", 8, pair), member(b"last", 56, integer(8))],
    });
    let element = [vec![1, 2, 3, 4], counted(b"left"), counted(b"right"), vec![9; 8]].concat();
    check(&class, &[element.clone(), [vec![0; 4], counted(b""), counted(b""), vec![0; 8]].concat(), element]);
}

#[test]
fn references() {
    let paths: [&[u8]; 5] = [b"/group/target", b"", b"/", b"/group", b"/values"];
    check(&object_reference(), &paths.map(counted));
    let target = b"/group/target";
    let regions = [
        region(target, 3, 2, 0, &[]),
        counted(b""),
        region(target, 0, 2, 0, &[]),
        region(target, 1, 2, 3, &[5, 5, 0, 1, 19, 0]),
        region(target, 2, 2, 1, &[3, 1, 7, 4]),
        // A regular pattern and an irregular one.
        region(target, 2, 2, 3, &[0, 0, 1, 2, 4, 0, 5, 2, 8, 0, 9, 2]),
        region(target, 2, 2, 2, &[0, 0, 1, 2, 4, 3, 9, 5]),
    ];
    check(&region_reference(), &regions);
}

#[test]
fn regions_move_with_their_rows() {
    let target = b"/group/target";
    let (row_offset, input_dims) = (100, vec![20, 6]);
    let shift = |path: &[u8]| {
        let moved = RowShift { row_offset, input_dims: input_dims.clone(), output_rows: 400 };
        (path == target).then_some(moved)
    };
    let moved = |from: Vec<u8>| shift_regions(&region_reference(), &from, &shift).unwrap();
    let points = region(target, 1, 2, 2, &[5, 5, 0, 1]);
    assert_eq!(moved(points), region(target, 1, 2, 2, &[105, 5, 100, 1]));
    let blocks = region(target, 2, 2, 1, &[3, 1, 7, 4]);
    assert_eq!(moved(blocks), region(target, 2, 2, 1, &[103, 1, 107, 4]));
    // All of an input is a part of the output.
    assert_eq!(moved(region(target, 3, 2, 0, &[])), region(target, 2, 2, 1, &[100, 0, 119, 5]));
    let elsewhere = [region(b"/group", 1, 2, 1, &[1, 1]), counted(b"")].concat();
    assert_eq!(moved(elsewhere.clone()), elsewhere);
    assert_eq!(moved(region(target, 0, 2, 0, &[])), region(target, 0, 2, 0, &[]));
    let beyond = region(target, 1, 1, 1, &[u64::MAX]);
    assert_eq!(shift_regions(&region_reference(), &beyond, &shift), None);
    let only = |_: &[u8]| Some(RowShift { row_offset: 0, input_dims: vec![20, 6], output_rows: 20 });
    let all = region(target, 3, 2, 0, &[]);
    assert_eq!(shift_regions(&region_reference(), &all, &only), Some(all));
}

proptest! {
    #[test]
    fn a_stream_cut_anywhere_is_never_believed(
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..5),
        cut in 0_usize..200,
        noise in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let class = sequence(string());
        let whole = items(&texts.iter().map(|text| counted(text)).collect::<Vec<_>>());
        prop_assert_eq!(element_len_bytes(&class, &whole), Some(whole.len()));
        if cut < whole.len() {
            prop_assert_eq!(element_len_bytes(&class, &whole[..cut]), None);
        }
        for class in [class, region_reference(), sequence(region_reference())] {
            let _ = element_len_bytes(&class, &noise);
            let _ = shift_regions(&class, &noise, &|_| Some(RowShift { row_offset: 1, input_dims: vec![2], output_rows: 9 }));
        }
    }
}
