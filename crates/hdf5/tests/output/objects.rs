//! Groups, links, attributes, comments, filters and fill values, as read from the file by the native reader.

use crate::readback::Readback;
use crate::tree::Tree;
use crate::{UNORDERED, integer, spec};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::{
    CreationOrder, Dataspace, FillValue, Filter, InlineData, Layout, LinkTarget, Member, ReferenceKind, TypeClass,
};
use raddle_hdf5::write::{AttributeSpec, Compat, NewLink, OutputFile, OutputLayout, OutputOptions, TypeRef};
use std::path::Path;
use std::sync::Arc;

const ALL_BOUNDS: [Compat; 4] = [Compat::Earliest, Compat::V18, Compat::V110, Compat::Latest];
const TRACKED: CreationOrder = CreationOrder { tracked: true, indexed: false };
const INDEXED: CreationOrder = CreationOrder { tracked: true, indexed: true };

/// Creates a file in each format, then reads it.
fn in_all_bounds(make: impl Fn(Compat, &mut OutputFile), check: impl Fn(Compat, &Path, &Tree)) {
    for compat in ALL_BOUNDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let options = OutputOptions { compat, root_link_order: INDEXED, ..OutputOptions::default() };
        let mut out = OutputFile::create(&path, &options).unwrap();
        make(compat, &mut out);
        out.finish().unwrap();
        check(compat, &path, &Tree::read(&path));
    }
}

fn counted(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes(), bytes].concat()
}

#[test]
fn links_of_every_kind_are_kept() {
    let odd = "/g/\u{1b}[31m\nnew line \u{202e} bidi".as_bytes();
    let long = [b"/g/".as_slice(), &[b'n'; 60_000]].concat();
    in_all_bounds(
        |_, out| {
            out.create_group(b"/g", INDEXED, UNORDERED).unwrap();
            out.create_dataset(b"/g/d", &spec(integer(2, true), &[1], &[1], OutputLayout::Compact)).unwrap();
            out.soft_link(b"/g/soft", b"../nowhere \xff").unwrap();
            out.external_link(b"/g/external", b"no such file.h5", b"/x/y").unwrap();
            out.hard_link(b"/alias", b"/g/d").unwrap();
            out.hard_link(b"/g/cycle", b"/g").unwrap();
            out.user_link(b"/g/own", 187, b"\0\x01data").unwrap();
            out.user_link(b"/g/own too", 187, b"").unwrap();
            out.create_group(odd, UNORDERED, UNORDERED).unwrap();
            out.create_group(NewLink { path: b"/g/ascii called utf8", utf8: true }, UNORDERED, UNORDERED).unwrap();
            assert!(out.soft_link(b"/g/soft", b"again").is_err(), "a name is taken");
            assert!(out.soft_link(b"/missing/soft", b"x").is_err(), "a parent is missing");
            assert!(out.create_group(b"/g/a\0b", UNORDERED, UNORDERED).is_err(), "a zero byte");
        },
        |_, _, tree| {
            let target = |path: &[u8]| tree.link(path).target.clone();
            assert_eq!(target(b"/g/soft"), LinkTarget::Soft(b"../nowhere \xff".to_vec()));
            let (file, path) = (b"no such file.h5".to_vec(), b"/x/y".to_vec());
            assert_eq!(target(b"/g/external"), LinkTarget::External { file, path });
            assert_eq!(target(b"/alias"), target(b"/g/d"));
            assert_eq!(target(b"/g/cycle"), target(b"/g"));
            assert_eq!(target(b"/g/own"), LinkTarget::UserDefined { class: 187, data: b"\0\x01data".to_vec() });
            assert_eq!(target(b"/g/own too"), LinkTarget::UserDefined { class: 187, data: Vec::new() });
            assert!(tree.link(odd).utf8 && tree.link(b"/g/ascii called utf8").utf8 && !tree.link(b"/g/d").utf8);
            let names: Vec<&[u8]> = tree.group(b"/g").links.iter().map(|link| link.name.as_slice()).collect();
            assert_eq!(names[..4], [b"d".as_slice(), b"soft", b"external", b"cycle"], "creation order");
        },
    );
    // Names of 64 KiB and more need a format with larger messages; this one fits everywhere.
    in_all_bounds(
        |_, out| {
            out.create_group(b"/g", UNORDERED, UNORDERED).unwrap();
            out.create_group(&long, UNORDERED, UNORDERED).unwrap();
        },
        |_, _, tree| assert!(tree.group(&long).links.is_empty()),
    );
}

#[test]
fn creation_orders_are_kept() {
    in_all_bounds(
        |_, out| {
            for (name, order) in [(b"/none", UNORDERED), (b"/some", TRACKED), (b"/more", INDEXED)] {
                out.create_group(name, order, order).unwrap();
                for index in 0..20 {
                    let link = format!("{}/{:02}", String::from_utf8_lossy(name), (index * 7) % 20);
                    out.soft_link(link.as_bytes(), b"x").unwrap();
                }
            }
        },
        |compat, _, tree| {
            for (name, order) in [(b"/none", UNORDERED), (b"/some", TRACKED), (b"/more", INDEXED)] {
                assert_eq!(tree.group(name).link_order, order);
                if compat != Compat::Earliest || order.tracked {
                    assert_eq!(tree.object(name).attribute_order, order, "{compat:?}");
                }
                let orders: Vec<Option<i64>> = tree.group(name).links.iter().map(|link| link.creation_order).collect();
                let expected: Vec<Option<i64>> = (0..20).map(|index| order.tracked.then_some(index)).collect();
                assert_eq!(orders, expected);
            }
        },
    );
}

#[test]
fn attributes_few_many_and_large_are_kept() {
    // An object that tracks the order of attributes has the newer header in every format.
    let has_dense = |compat, object: &[u8]| compat != Compat::Earliest || object == b"/g";
    let text = TypeRef::Own(Arc::new(TypeClass::FixedString { len_bytes: 10, padding: 1, charset: 0 }));
    let double = |rank: usize, dim: u64| Dataspace::Simple { dims: vec![dim; rank], max_dims: vec![dim; rank] };
    let bytes = TypeRef::Own(integer(1, false));
    let large: Vec<u8> = (0..100_000_u32).map(|i| (i / 3) as u8).collect();
    in_all_bounds(
        |compat, out| {
            let dataset = spec(integer(2, true), &[1], &[1], OutputLayout::Contiguous);
            out.create_dataset(b"/d", &dataset).unwrap();
            out.create_group(b"/g", UNORDERED, INDEXED).unwrap();
            for object in [b"/".as_slice(), b"/d", b"/g"] {
                for index in 0..40_u32 {
                    let name = format!("a{index} \u{e9}").into_bytes();
                    let value = format!("value {index:04}").into_bytes();
                    let (utf8, datatype, dataspace) = (index % 2 == 0, &text, &Dataspace::Scalar);
                    let attribute = AttributeSpec { name: &name, utf8, datatype, dataspace, value: &value };
                    out.write_attribute(object, &attribute).unwrap();
                }
                let (utf8, datatype) = (false, &bytes);
                let null = AttributeSpec { name: b"null", utf8, datatype, dataspace: &Dataspace::Null, value: b"" };
                out.write_attribute(object, &null).unwrap();
                let empty = AttributeSpec { name: b"empty", dataspace: &double(2, 0), ..null };
                out.write_attribute(object, &empty).unwrap();
                let dataspace = double(1, large.len() as u64);
                let fat = AttributeSpec { name: b"large", dataspace: &dataspace, value: &large, ..null };
                assert_eq!(out.write_attribute(object, &fat).is_ok(), has_dense(compat, object));
                assert!(out.write_attribute(object, &null).is_err(), "a name is taken");
                let short = AttributeSpec { name: b"short", dataspace: &Dataspace::Scalar, ..null };
                assert!(matches!(out.write_attribute(object, &short), Err(Hdf5Error::NotWritable { .. })));
            }
        },
        |compat, _, tree| {
            for object in [b"/".as_slice(), b"/d", b"/g"] {
                let dense = has_dense(compat, object);
                let count = tree.object(object).attributes.len();
                assert_eq!(count, if dense { 43 } else { 42 }, "{compat:?} {}", object.escape_ascii());
                for index in 0..40 {
                    let name = format!("a{index} \u{e9}").into_bytes();
                    let attribute = tree.attribute(object, &name);
                    assert_eq!(attribute.data.bytes(), format!("value {index:04}").as_bytes());
                    // Attribute messages have no character set before version 3.
                    assert_eq!(attribute.utf8, index % 2 == 0, "{compat:?}");
                }
                assert_eq!(tree.attribute(object, b"null").dataspace, Dataspace::Null);
                assert_eq!(tree.attribute(object, b"empty").dataspace, double(2, 0));
                if dense {
                    assert_eq!(tree.attribute(object, b"large").data.bytes(), large);
                }
            }
        },
    );
}

/// Writes attributes of `/g`, variable-length strings whose values are stored outside the header, with metadata in
/// front and in the tail. Returns the length of all metadata.
fn attributes_of_texts(count: u32, metadata_region_len_bytes: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let options = OutputOptions { compat: Compat::Earliest, metadata_region_len_bytes, ..OutputOptions::default() };
    let mut out = OutputFile::create(&path, &options).unwrap();
    out.create_group(b"/g", UNORDERED, UNORDERED).unwrap();
    out.set_raw_end(out.raw_start() + 1_000_000);
    let datatype = TypeRef::Own(Arc::new(TypeClass::VariableString { padding: 0, charset: 1, len_bytes: 16 }));
    let texts: Vec<(Vec<u8>, Vec<u8>)> = (0..count)
        .map(|index| (format!("a{index:06}").into_bytes(), counted(format!("{index:07}").as_bytes())))
        .collect();
    let of_text =
        |(name, value)| AttributeSpec { name, utf8: false, datatype: &datatype, dataspace: &Dataspace::Scalar, value };
    let specs: Vec<AttributeSpec<'_>> = texts.iter().map(|(name, value)| of_text((name, value))).collect();
    out.write_attributes(b"/g", &specs).unwrap();
    out.create_group(b"/g/behind", UNORDERED, UNORDERED).unwrap();
    let written = out.finish().unwrap();
    let tree = Tree::read(&path);
    assert_eq!(tree.object(b"/g").attributes.len(), count as usize);
    for (name, value) in &texts {
        assert_eq!(&tree.attribute_value(b"/g", name), value);
    }
    assert!(tree.group(b"/g/behind").links.is_empty());
    written.metadata_len_bytes + written.tail_len_bytes
}

/// If each attribute were in a separate block of the header, libhdf5 would take a hundred times as long for thousands
/// of them as with a header that grows. The difference shows in the
/// space of the messages that point to the blocks.
#[test]
fn a_header_grows_with_its_attributes() {
    // Four parts of the message and its header; the value is 7 bytes and a prefix of 16 in a heap of 4 KiB.
    let (message, value) = (8 + 8 + 8 + 24 + 8 + 16, 8 + 16 + 4);
    for metadata_region_len_bytes in [4096, 100_000, 10 << 20] {
        let few = attributes_of_texts(500, metadata_region_len_bytes);
        let many = attributes_of_texts(2500, metadata_region_len_bytes);
        let each = (many - few) as f64 / 2000.0;
        println!("{metadata_region_len_bytes}: {each}");
        assert!(each < f64::from(message + value), "{each} bytes for an attribute");
    }
}

#[test]
fn references_and_variable_length_values_are_found_again() {
    let string = Arc::new(TypeClass::VariableString { padding: 0, charset: 1, len_bytes: 16 });
    let reference = Arc::new(TypeClass::Reference(ReferenceKind::Object));
    let scale = Arc::new(TypeClass::Compound {
        len_bytes: 16,
        members: vec![
            Member { name: b"dataset".to_vec(), offset_bytes: 0, class: Arc::clone(&reference) },
            Member { name: b"dimension".to_vec(), offset_bytes: 8, class: integer(4, true) },
        ],
    });
    let list = Arc::new(TypeClass::Sequence { base: Arc::clone(&reference), len_bytes: 16 });
    let (one, two) = (Dataspace::Scalar, Dataspace::Simple { dims: vec![2], max_dims: vec![2] });
    let texts = [counted("caf\u{e9}".as_bytes()), counted(b"")].concat();
    let back = [counted(b"/g/d"), 7_i32.to_le_bytes().to_vec(), counted(b""), 8_i32.to_le_bytes().to_vec()].concat();
    let forth = [1_u64.to_le_bytes().to_vec(), counted(b"/g"), 0_u64.to_le_bytes().to_vec()].concat();
    in_all_bounds(
        |_, out| {
            out.create_group(b"/g", UNORDERED, UNORDERED).unwrap();
            out.create_dataset(b"/g/d", &spec(integer(2, true), &[4], &[4], OutputLayout::Contiguous)).unwrap();
            let class = |class: &Arc<TypeClass>| TypeRef::Own(Arc::clone(class));
            let all = [
                (b"texts".as_slice(), class(&string), &two, &texts),
                (b"REFERENCE_LIST", class(&scale), &two, &back),
                (b"DIMENSION_LIST", class(&list), &two, &forth),
                (b"root", class(&reference), &one, &counted(b"/")),
            ];
            for (name, datatype, dataspace, value) in all {
                out.write_attribute(b"/g", &AttributeSpec { name, utf8: false, datatype: &datatype, dataspace, value })
                    .unwrap();
            }
            let dangling = counted(b"/nothing");
            let (datatype, dataspace) = (&class(&reference), &one);
            let name = b"dangling";
            let attribute = AttributeSpec { name, utf8: false, datatype, dataspace, value: &dangling };
            assert!(out.write_attribute(b"/g", &attribute).is_err());
        },
        |_, _, tree| {
            for (name, value) in
                [(b"texts".as_slice(), &texts), (b"REFERENCE_LIST", &back), (b"DIMENSION_LIST", &forth)]
            {
                assert_eq!(tree.attribute_value(b"/g", name), *value, "{}", name.escape_ascii());
            }
            assert_eq!(tree.attribute_value(b"/g", b"root"), counted(b"/"));
            assert_eq!(tree.object(b"/g").attributes.len(), 4, "the dangling one left nothing");
        },
    );
}

fn filter(id: u16, name: &str, optional: bool, parameters: &[u32]) -> Filter {
    Filter { id, optional, name: name.as_bytes().to_vec(), parameters: parameters.to_vec() }
}

#[test]
fn pipelines_are_written_exactly_as_asked_for() {
    let pipelines = [
        vec![filter(2, "shuffle", true, &[4]), filter(1, "deflate", true, &[9]), filter(3, "fletcher32", false, &[])],
        vec![filter(3, "fletcher32", false, &[]), filter(1, "deflate", false, &[1])],
        vec![filter(32_000, "lzf", true, &[4, 261, 400])],
        vec![filter(32_001, "blosc", false, &[2, 2, 4, 400, 5, 1, 0])],
        // This one cannot be mandatory: see `write::filters`.
        vec![filter(4, "szip", true, &[141, 8, 32, 100])],
        vec![filter(300, "", false, &[]), filter(301, "a name that is longer than sixteen bytes", false, &[u32::MAX])],
        // Names belong to files: one number may have several names.
        vec![filter(301, "short", false, &[])],
        vec![filter(301, &"longer than all of the header before it".repeat(9), false, &[3])],
        vec![filter(301, "short", true, &[4]), filter(32_000, "h5py's", true, &[4, 261, 400])],
    ];
    in_all_bounds(
        |_, out| {
            for (index, filters) in pipelines.iter().enumerate() {
                let chunked = OutputLayout::Chunked { chunk_shape: vec![100] };
                let mut spec = spec(integer(4, true), &[100], &[u64::MAX], chunked);
                spec.filters = filters.clone();
                let address = out.raw_start() + index as u64 * 10;
                let mut dataset = out.create_dataset(format!("/{index}").as_bytes(), &spec).unwrap();
                dataset.insert(&[0], address, 10, 1).unwrap();
            }
            let chunked = OutputLayout::Chunked { chunk_shape: vec![100] };
            let mut spec = spec(integer(4, true), &[100], &[u64::MAX], chunked);
            spec.filters = vec![filter(4, "szip", false, &[141, 8, 32, 100])];
            out.create_dataset(b"/szip", &spec).unwrap();
            // Parameters that the filter itself would set differently.
            spec.filters = vec![filter(2, "shuffle", false, &[8])];
            assert!(matches!(out.create_dataset(b"/shuffle", &spec), Err(Hdf5Error::NotWritable { .. })));
        },
        |compat, path, tree| {
            assert!(tree.dataset(b"/szip").filters[0].optional);
            for (index, filters) in pipelines.iter().enumerate() {
                let read = &tree.dataset(format!("/{index}").as_bytes()).filters;
                let facts = |filters: &[Filter]| -> Vec<(u16, bool, Vec<u32>)> {
                    filters.iter().map(|filter| (filter.id, filter.optional, filter.parameters.clone())).collect()
                };
                assert_eq!(facts(read), facts(filters), "{compat:?}");
                for (read, asked) in read.iter().zip(filters) {
                    // Version 2 of the message stores names only for filters from 256 on.
                    if asked.id >= 256 {
                        assert_eq!(read.name, asked.name, "{compat:?}");
                    }
                }
                assert_eq!(Readback::open(path).chunk(&format!("/{index}"), &[0]).2, 1, "the filter mask");
            }
        },
    );
}

/// libhdf5 registers filters per process, and unregistering one would flush all open files.
#[test]
fn files_that_are_written_at_once_name_filters_each_in_its_way() {
    let write = |path: &Path, name: &str, meanwhile: &dyn Fn()| {
        let mut out = OutputFile::create(path, &OutputOptions::default()).unwrap();
        for index in 0..3 {
            out.create_group(format!("/{index}").as_bytes(), UNORDERED, UNORDERED).unwrap();
            let chunked = OutputLayout::Chunked { chunk_shape: vec![100] };
            let mut spec = spec(integer(4, true), &[100], &[u64::MAX], chunked);
            spec.filters = vec![filter(400, name, false, &[index])];
            out.create_dataset(format!("/{index}/filtered").as_bytes(), &spec).unwrap();
            meanwhile();
        }
        out.finish().unwrap();
        std::fs::read(path).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let alone = write(&path("alone.h5"), "mine", &|| ());
    let name = "of the other file".repeat(5);
    let other = write(&path("other.h5"), &name, &|| ());
    assert!(other.windows(name.len()).any(|bytes| bytes == name.as_bytes()));
    let accompanied = write(&path("next.h5"), "mine", &|| {
        std::fs::remove_file(path("other.h5")).unwrap();
        assert!(other == write(&path("other.h5"), &name, &|| ()), "it has the names of the file next to it");
    });
    assert!(alone == accompanied, "it has the names of the other file");
}

#[test]
fn fill_values_and_extents_are_kept() {
    let fills = [
        FillValue { value: None, user_defined: false, undefined: false, allocation_time: 3, write_time: 2 },
        FillValue { value: None, user_defined: false, undefined: false, allocation_time: 3, write_time: 0 },
        FillValue { value: None, user_defined: false, undefined: true, allocation_time: 3, write_time: 1 },
        FillValue {
            value: Some(InlineData::Stored(vec![1, 2, 3, 4])),
            user_defined: true,
            undefined: false,
            allocation_time: 3,
            write_time: 2,
        },
    ];
    in_all_bounds(
        |_, out| {
            for (index, fill) in fills.iter().enumerate() {
                let chunked = OutputLayout::Chunked { chunk_shape: vec![2, 3] };
                let mut spec = spec(integer(4, true), &[4, 3], &[u64::MAX, 9], chunked);
                spec.fill = fill.clone();
                out.create_dataset(format!("/{index}").as_bytes(), &spec).unwrap();
            }
            let mut scalar = spec(integer(4, true), &[], &[], OutputLayout::Contiguous);
            scalar.dataspace = Dataspace::Scalar;
            out.create_dataset(b"/scalar", &scalar).unwrap().write(&[5; 4]).unwrap();
            scalar.dataspace = Dataspace::Null;
            out.create_dataset(b"/null", &scalar).unwrap().write(&[]).unwrap();
            let empty = spec(integer(4, true), &[0, 7], &[0, 7], OutputLayout::Contiguous);
            out.create_dataset(b"/empty", &empty).unwrap().write(&[]).unwrap();
            out.set_comment(b"/empty", b"nothing \xe4").unwrap();
        },
        |compat, path, tree| {
            for (index, fill) in fills.iter().enumerate() {
                let dataset = tree.dataset(format!("/{index}").as_bytes());
                assert_eq!(dataset.fill, *fill, "{compat:?} {index}");
                let (dims, max_dims) = (vec![4, 3], vec![u64::MAX, 9]);
                assert_eq!(dataset.dataspace, Dataspace::Simple { dims, max_dims });
                let Layout::Chunked { chunk_shape, .. } = &dataset.layout else { panic!("{:?}", dataset.layout) };
                assert_eq!(chunk_shape, &[2, 3]);
            }
            assert_eq!(tree.dataset(b"/scalar").dataspace, Dataspace::Scalar);
            assert_eq!(tree.dataset(b"/null").dataspace, Dataspace::Null);
            assert_eq!(tree.object(b"/empty").comment.as_deref(), Some(b"nothing \xe4".as_slice()));
            let back = Readback::open(path);
            assert_eq!(back.values("/0"), [0; 48]);
            assert_eq!(back.values("/3"), [1, 2, 3, 4].repeat(12));
            assert_eq!(back.values("/scalar"), [5; 4]);
            assert!(back.values("/empty").is_empty());
        },
    );
}
