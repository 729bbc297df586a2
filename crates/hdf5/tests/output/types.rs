//! All kinds of datatypes: private, of attributes, committed, with a fill value; as written by libhdf5 and decoded by
//! the native reader.

use crate::readback::Readback;
use crate::tree::Tree;
use crate::{UNORDERED, integer, spec};
use hdf5_metno_sys::h5t::H5T_order_t;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::{BitRange, ByteOrder, Dataspace, InlineData, Member, ObjectKind, ReferenceKind, TypeClass};
use raddle_hdf5::write::{AttributeSpec, Compat, OutputFile, OutputLayout, OutputOptions, TypeRef};
use std::sync::Arc;

const ALL_BOUNDS: [Compat; 4] = [Compat::Earliest, Compat::V18, Compat::V110, Compat::Latest];

fn bits(offset: u32, count: u32) -> BitRange {
    BitRange { offset, count }
}

fn float(len_bytes: u32, order: ByteOrder, exponent: u32, mantissa: u32, bias: u32) -> TypeClass {
    TypeClass::Float {
        len_bytes,
        order,
        bits: bits(0, 1 + exponent + mantissa),
        padding: (0, 0, 0),
        normalization: 2,
        sign_bit: exponent + mantissa,
        exponent: bits(mantissa, exponent),
        mantissa: bits(0, mantissa),
        exponent_bias: bias,
    }
}

fn member(name: &str, offset_bytes: u32, class: &Arc<TypeClass>) -> Member {
    Member { name: name.as_bytes().to_vec(), offset_bytes, class: Arc::clone(class) }
}

/// Types whose elements are plain bytes.
fn fixed_types() -> Vec<(&'static str, TypeClass)> {
    use ByteOrder::{Big, Little};
    let half = Arc::new(float(2, Little, 5, 10, 15));
    let int = integer(4, true);
    let fixed_string = TypeClass::FixedString { len_bytes: 7, padding: 2, charset: 1 };
    let compound = TypeClass::Compound {
        len_bytes: 40,
        members: vec![
            member("x", 0, &half),
            member("label", 3, &Arc::new(fixed_string.clone())),
            member("a much longer name of a member, in UTF-8: \u{e4}\u{3b1}", 12, &int),
            member("grid", 16, &Arc::new(TypeClass::Array { base: Arc::clone(&int), dims: vec![2, 2] })),
        ],
    };
    let flag = TypeClass::Enum {
        base: integer(1, true),
        symbols: vec![(b"FALSE".to_vec(), vec![0]), (b"TRUE".to_vec(), vec![1])],
    };
    let big_enum = TypeClass::Enum {
        base: Arc::new(TypeClass::Integer {
            len_bytes: 8,
            order: Big,
            signed: false,
            bits: bits(0, 64),
            padding: (0, 0),
        }),
        symbols: (0..300_u64).rev().map(|n| (format!("symbol {n}").into_bytes(), n.to_be_bytes().to_vec())).collect(),
    };
    let int_of =
        |len_bytes, order, signed, bits, padding| TypeClass::Integer { len_bytes, order, signed, bits, padding };
    vec![
        ("i8", int_of(1, Little, true, bits(0, 8), (0, 0))),
        ("u16be", int_of(2, Big, false, bits(0, 16), (0, 0))),
        ("i64be", int_of(8, Big, true, bits(0, 64), (0, 0))),
        ("u24 in 3 bytes", int_of(3, Little, false, bits(0, 24), (0, 0))),
        ("i12 shifted by 3, ones around", int_of(2, Little, true, bits(3, 12), (1, 1))),
        ("u1 in 8 bytes", int_of(8, Big, false, bits(63, 1), (0, 1))),
        ("i128", int_of(16, Little, true, bits(0, 128), (0, 0))),
        ("f16", float(2, Little, 5, 10, 15)),
        ("f32be", float(4, Big, 8, 23, 127)),
        ("f64", float(8, Little, 11, 52, 1023)),
        ("bfloat16", float(2, Little, 8, 7, 127)),
        ("f8 e4m3", float(1, Little, 4, 3, 7)),
        ("f128", float(16, Little, 15, 112, 16383)),
        (
            "x87",
            TypeClass::Float {
                len_bytes: 16,
                order: Little,
                bits: bits(0, 80),
                padding: (0, 0, 0),
                normalization: 0,
                sign_bit: 79,
                exponent: bits(64, 15),
                mantissa: bits(0, 64),
                exponent_bias: 16383,
            },
        ),
        (
            "a float inside 8 bytes, msb set",
            TypeClass::Float {
                len_bytes: 8,
                order: Big,
                bits: bits(5, 40),
                padding: (1, 0, 1),
                normalization: 1,
                sign_bit: 44,
                exponent: bits(36, 7),
                mantissa: bits(5, 29),
                exponent_bias: 63,
            },
        ),
        ("time32", TypeClass::Time { len_bytes: 4, order: Little, precision_bits: 32 }),
        ("time64be", TypeClass::Time { len_bytes: 8, order: Big, precision_bits: 64 }),
        ("space-padded", fixed_string),
        ("null-terminated", TypeClass::FixedString { len_bytes: 1, padding: 0, charset: 0 }),
        ("null-padded", TypeClass::FixedString { len_bytes: 300, padding: 1, charset: 0 }),
        ("bits", TypeClass::Bitfield { len_bytes: 4, order: Big, bits: bits(2, 17), padding: (0, 1) }),
        ("opaque", TypeClass::Opaque { len_bytes: 5, tag: b"a tag".to_vec() }),
        ("untagged", TypeClass::Opaque { len_bytes: 100, tag: Vec::new() }),
        (
            "nested",
            TypeClass::Compound {
                len_bytes: 100,
                members: vec![member("inner", 50, &Arc::new(compound.clone())), member("n", 4, &int)],
            },
        ),
        ("compound", compound),
        ("flag", flag.clone()),
        ("big enum", big_enum),
        ("flags", TypeClass::Array { base: Arc::new(flag), dims: vec![3] }),
        ("array", TypeClass::Array { base: half, dims: vec![2, 1, 5] }),
        ("vax", (*vax(4, 8, 23, 0x81)).clone()),
        (
            "with vax",
            TypeClass::Compound {
                len_bytes: 40,
                members: vec![
                    member("double", 0, &vax(8, 11, 52, 0x401)),
                    member("a name that is padded in version 1", 8, &integer(4, true)),
                    member("grid", 16, &Arc::new(TypeClass::Array { base: vax(4, 8, 23, 0x81), dims: vec![2, 3] })),
                ],
            },
        ),
    ]
}

#[test]
fn every_fixed_type_is_written_as_it_is() {
    for compat in ALL_BOUNDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let mut out = OutputFile::create(&path, &OutputOptions { compat, ..OutputOptions::default() }).unwrap();
        let types = fixed_types();
        let value_of = |class: &TypeClass, count: usize| -> Vec<u8> {
            (0..class.len_bytes() as usize * count).map(|i| (i * 37 + 11) as u8).collect()
        };
        for (name, class) in &types {
            let named = |kind: &str| format!("/{kind} {name}").into_bytes();
            let class = Arc::new(class.clone());
            out.commit_datatype(&named("type"), &class, UNORDERED).unwrap_or_else(|error| panic!("{name}: {error}"));
            let committed = TypeRef::Committed { path: named("type"), class: Arc::clone(&class) };
            let mut uncommitted = spec(Arc::clone(&class), &[3], &[3], OutputLayout::Contiguous);
            uncommitted.has_attributes = true;
            let mut dataset = out.create_dataset(&named("own"), &uncommitted).unwrap();
            dataset.write(&value_of(&class, 3)).unwrap_or_else(|error| panic!("{name}: {error}"));
            for (name, datatype) in [(&b"own"[..], &uncommitted.datatype), (b"committed", &committed)] {
                let dataspace = Dataspace::Simple { dims: vec![2], max_dims: vec![2] };
                let value = value_of(&class, 2);
                let attribute = AttributeSpec { name, utf8: true, datatype, dataspace: &dataspace, value: &value };
                dataset.write_attribute(&attribute).unwrap();
            }
            drop(dataset);
            let mut filled = spec(Arc::clone(&class), &[4], &[4], OutputLayout::Chunked { chunk_shape: vec![2] });
            filled.datatype = committed;
            filled.fill.value = Some(InlineData::Stored(value_of(&class, 1)));
            filled.fill.user_defined = true;
            out.create_dataset(&named("filled"), &filled).unwrap();
        }
        out.finish().unwrap();

        let tree = Tree::read(&path);
        let back = Readback::open(&path);
        for (name, class) in &types {
            let named = |kind: &str| format!("/{kind} {name}");
            let ObjectKind::CommittedDatatype(committed) = &tree.object(named("type").as_bytes()).kind else {
                panic!("{name} is not committed");
            };
            assert_eq!(*committed.class, *class, "{compat:?}");
            let committed_at = tree.object(named("type").as_bytes()).address;
            let uncommitted = tree.dataset(named("own").as_bytes());
            assert_eq!(*uncommitted.datatype.class, *class, "{compat:?}");
            assert_eq!(uncommitted.datatype.committed, None);
            assert_eq!(back.values(&named("own")), value_of(class, 3), "{compat:?} {name}");
            for (attribute, committed) in [(b"own".as_slice(), None), (b"committed", Some(committed_at))] {
                let read = tree.attribute(named("own").as_bytes(), attribute);
                assert_eq!((&*read.datatype.class, read.datatype.committed), (class, committed), "{compat:?}");
                assert_eq!(read.data.bytes(), value_of(class, 2), "{compat:?} {name}@{}", attribute.escape_ascii());
                assert!(read.utf8);
            }
            let filled = tree.dataset(named("filled").as_bytes());
            assert_eq!(filled.datatype.committed, Some(committed_at));
            assert_eq!(filled.fill.value, Some(InlineData::Stored(value_of(class, 1))), "{compat:?} {name}");
            assert_eq!(back.values(&named("filled")), value_of(class, 1).repeat(4), "{compat:?} {name}");
        }
    }
}

/// Returns a float of OpenVMS, with bytes in pairs and the pairs reversed.
fn vax(len_bytes: u32, exponent: u32, mantissa: u32, bias: u32) -> Arc<TypeClass> {
    Arc::new(float(len_bytes, ByteOrder::Vax, exponent, mantissa, bias))
}

#[test]
fn vax_byte_order_is_that_of_libhdf5() {
    for compat in ALL_BOUNDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let mut out = OutputFile::create(&path, &OutputOptions { compat, ..OutputOptions::default() }).unwrap();
        let dataset_spec = spec(vax(4, 8, 23, 0x81), &[2], &[2], OutputLayout::Contiguous);
        out.create_dataset(b"/own", &dataset_spec).unwrap().write(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        out.finish().unwrap();
        // Version 3 of the message, in which libhdf5 supports it: class, bits, size, bit range, exponent, mantissa,
        // bias.
        let message = [0x31, 0x61, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 0x81, 0, 0, 0];
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.windows(message.len()).any(|window| window == message), "{compat:?}");
        assert_eq!(Readback::open(&path).byte_order("/own"), H5T_order_t::H5T_ORDER_VAX);
    }
}

#[test]
fn a_complex_number_is_written_in_the_format_that_has_it() {
    for compat in ALL_BOUNDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.h5");
        let options = OutputOptions { compat, ..OutputOptions::default() };
        let mut out = OutputFile::create(&path, &options).unwrap();
        let class = Arc::new(TypeClass::Complex { base: Arc::new(float(4, ByteOrder::Big, 8, 23, 127)), len_bytes: 8 });
        let dataset_spec = spec(Arc::clone(&class), &[2], &[2], OutputLayout::Compact);
        out.create_dataset(b"/z", &dataset_spec).unwrap().write(&[9; 16]).unwrap();
        out.finish().unwrap();
        assert_eq!(*Tree::read(&path).dataset(b"/z").datatype.class, *class);
        assert_eq!(Readback::open(&path).values("/z"), [9; 16]);
    }
}

#[test]
fn what_cannot_be_written_is_refused_by_name_and_leaves_the_file_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.h5");
    let mut out = OutputFile::create(&path, &OutputOptions::default()).unwrap();
    let deep = (0..40).fold(integer(1, true), |base, _| Arc::new(TypeClass::Sequence { base, len_bytes: 16 }));
    let revised = TypeClass::Reference(ReferenceKind::Revised { kind: 2, len_bytes: 64 });
    let overlapping = TypeClass::Compound {
        len_bytes: 8,
        members: vec![member("a", 0, &integer(4, true)), member("b", 2, &integer(4, true))],
    };
    let too_narrow =
        TypeClass::Integer { len_bytes: 2, order: ByteOrder::Little, signed: true, bits: bits(4, 16), padding: (0, 0) };
    let zero_in_name = TypeClass::Compound { len_bytes: 4, members: vec![member("a\0b", 0, &integer(4, true))] };
    let short_symbol = TypeClass::Enum { base: integer(4, true), symbols: vec![(b"a".to_vec(), vec![1])] };
    let bad_string = TypeClass::FixedString { len_bytes: 3, padding: 7, charset: 0 };
    for class in [(*deep).clone(), revised, overlapping, too_narrow, zero_in_name, short_symbol, bad_string] {
        let error = out.commit_datatype(b"/refused", &class, UNORDERED).unwrap_err();
        assert!(error.to_string().contains("/refused"), "{error}");
        assert!(matches!(error, Hdf5Error::NotWritable { .. } | Hdf5Error::Library { .. }), "{error}");
    }
    let flat = spec(integer(4, true), &[2, 2], &[2, 2], OutputLayout::Chunked { chunk_shape: vec![2] });
    assert!(out.create_dataset(b"/flat", &flat).is_err());
    let mut dataset =
        out.create_dataset(b"/kept", &spec(integer(4, true), &[2], &[2], OutputLayout::Contiguous)).unwrap();
    assert!(dataset.write(&[1; 7]).is_err());
    dataset.write(&[1; 8]).unwrap();
    drop(dataset);
    out.finish().unwrap();
    let tree = Tree::read(&path);
    assert_eq!(tree.group(b"").links.len(), 1);
    assert_eq!(Readback::open(&path).values("/kept"), [1; 8]);
}
