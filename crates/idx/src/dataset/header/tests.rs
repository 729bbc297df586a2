//! Headers of both writers, round trips and refusals.

use super::*;
use crate::dataset::bitmask::BitmaskError;
use proptest::prelude::*;

const OPENVISUS: &str = "(version)\n6\n(box)\n0 21 0 35 0 21\n(fields)\nrho float32 default_compression(lz4) \
default_layout(hzorder) default_value(0) min(0) max(0) \n+ vel float64[3] default_layout() default_value(0) min(0 0 0) \
max(0 0 0) \n(bits)\nV0120120120120121\n(bitsperblock)\n9\n(blocksperfile)\n16\n(interleave block)\n0\n\
(filename_template)\n./ov_lz4/%04x.bin\n(missing_blocks)\n0\n(arco)\n0\n";

const PIDX: &str = "(version)\n6.1\n(io mode)\nidx\n(box)\n0 59 0 59 0 59 0 0 0 0\n(partition size)\n64 64 64\n\
(partition offset)\n0 0 0\n(endian)\nlittle\n(fields)\nvar_0 1*float32 + \nvar_1 3*float64\n(bits)\n\
V210210210210210210\n(bitsperblock)\n15\n(blocksperfile)\n128\n(filename_template)\n./p30/%02x.bin\n(time)\n\
0 0 time%09d/";

#[test]
fn openvisus_headers_are_read() {
    let header = Header::parse(OPENVISUS.as_bytes()).unwrap();
    assert_eq!((header.start, header.end, header.rank), ([0; 5], [22, 36, 22, 1, 1], 3));
    assert_eq!(header.block_count(), 128);
    assert_eq!(header.fields[0].default_layout(), Layout::Hz);
    assert_eq!(header.fields[1].default_layout(), Layout::RowMajor);
    assert_eq!((header.likely_order(0), header.likely_order(1)), (Layout::Hz, Layout::RowMajor));
    assert_eq!(header.fields[1].sample.len_bytes(), 24);
    assert_eq!(header.others, [("missing_blocks".to_owned(), "0".to_owned())]);
    assert_eq!(header.files.path(0x20, "").to_str(), Some("ov_lz4/0020.bin"));
    assert_eq!(Header::parse(header.to_text().as_bytes()).unwrap(), header);
}

#[test]
fn pidx_headers_are_read_and_their_keys_kept() {
    let header = Header::parse(PIDX.as_bytes()).unwrap();
    assert_eq!((header.version, header.end, header.rank), (6, [60, 60, 60, 1, 1], 3));
    assert_eq!(header.fields[1], Field::new("var_1", "float64[3]".parse().unwrap()));
    let time = header.time.as_ref().unwrap();
    assert_eq!((time.range, time.template.name(0)), (Some((0, 0)), "time000000000/".to_owned()));
    let kept: Vec<&str> = header.others.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(kept, ["io mode", "partition size", "partition offset", "endian"]);
    assert_eq!((header.likely_order(0), header.likely_order(1)), (Layout::Hz, Layout::Hz));
    let mut named = header.clone();
    named.fields[1] = named.fields[1].clone().with("default_layout", "row_major");
    assert_eq!((named.likely_order(0), named.likely_order(1)), (Layout::Hz, Layout::RowMajor));
    assert_eq!(Header::parse(header.to_text().as_bytes()).unwrap(), header);
}

#[test]
fn a_new_header_is_read_back() {
    let fields = vec![
        Field::new("rho", "float32".parse().unwrap()).with("default_value", "-1.5"),
        Field::new("species", "float64[11]".parse().unwrap()).with("default_compression", "zip"),
    ];
    let header = Header::new("s3d", &[34, 170, 29], fields).unwrap();
    assert_eq!(header.fields[0].default_sample(), (-1.5f32).to_le_bytes());
    assert_eq!(header.bits_per_block, 15);
    assert_eq!(Header::parse(header.to_text().as_bytes()).unwrap(), header);
}

#[test]
fn names_that_would_not_be_read_back_are_refused() {
    let check = |name: &str| {
        let field = Field::new(name, "float32".parse().unwrap()).with("default_layout", "row_major");
        Header::new("d", &[4, 3], vec![field]).and_then(|header| header.check())
    };
    for name in ["", "a b", "a\tb", "a\nb", "a+b", "a(", "a)", "a)(", "(fields)", "#a"] {
        assert_eq!(check(name), Err(HeaderError::FieldName { name: name.to_owned() }));
    }
    for name in ["a", "é", "a/b", "a#b", "f(x)", "f(g(x))", "float32"] {
        assert_eq!(check(name), Ok(()), "{name}");
    }
}

#[test]
fn five_axes_are_not_the_padding_of_three() {
    let field = || vec![Field::new("a", "uint8".parse().unwrap())];
    for counts in [[5, 4, 3, 2, 1], [5, 4, 3, 1, 2], [5, 4, 3, 1, 1], [5, 1, 1, 1, 1], [1; 5]] {
        let header = Header::new("d", &counts, field()).unwrap();
        let text = header.to_text();
        assert_eq!(Header::parse(text.as_bytes()).unwrap(), header, "{counts:?}");
        assert_eq!(text.contains("(axes)\n5\n"), counts[3..] == [1, 1], "{counts:?}");
    }
}

#[test]
fn hostile_headers_are_refused_by_name() {
    let refused = |from: &str, to: &str| {
        assert!(OPENVISUS.contains(from), "{from}");
        Header::parse(OPENVISUS.replacen(from, to, 1).as_bytes()).unwrap_err()
    };
    assert!(matches!(refused("0 21 0 35 0 21", "0 64 0 35 0 21"), HeaderError::Box { axis: 0, .. }));
    assert!(matches!(refused("0 21 0 35 0 21", "9 8 0 35 0 21"), HeaderError::Box { axis: 0, .. }));
    assert!(matches!(refused("0 21 0 35 0 21", "0 18446744073709551615 0 35 0 21"), HeaderError::Box { .. }));
    assert!(matches!(refused("0 21 0 35 0 21", "-1 21 0 35 0 21"), HeaderError::Number { key: "box", .. }));
    assert!(matches!(refused("0 21 0 35 0 21", "0 21 0 35"), HeaderError::BoxAxes { numbers: 4, rank: 3 }));
    assert!(matches!(refused("V012", "F012"), HeaderError::Bitmask(BitmaskError::FullResolution { .. })));
    assert!(matches!(refused("block)\n9", "block)\n17"), HeaderError::BitsPerBlock { bits: 17, limit: 16 }));
    assert!(matches!(refused("file)\n16", "file)\n0"), HeaderError::BlocksPerFile { .. }));
    assert!(matches!(refused("file)\n16", "file)\n99999999999999"), HeaderError::BlocksPerFile { .. }));
    assert!(matches!(refused("./ov_lz4", "/etc"), HeaderError::Template(_)));
    assert!(matches!(refused("%04x", ""), HeaderError::OneFile { blocks: 128 }));
    assert!(matches!(refused("(arco)\n0", "(arco)\n1024"), HeaderError::Unsupported { key: "arco", .. }));
    assert!(matches!(refused("block)\n0", "block)\n4"), HeaderError::Unsupported { key: "interleave block", .. }));
    assert!(matches!(refused("(version)\n6", "(version)\n7"), HeaderError::Version { version: 7 }));
    assert!(matches!(refused("(version)", "(version"), HeaderError::Key { .. }));
    assert!(matches!(refused("(version)", "rubbish\n(version)"), HeaderError::NoKey { line: 1 }));
    assert!(matches!(refused("(arco)", "(box)"), HeaderError::KeyTwice { .. }));
    assert!(matches!(refused("(bits)", "(bots)"), HeaderError::Missing { key: "bits" }));
    assert!(matches!(refused("float64[3]", "float64[99999]"), HeaderError::Field { .. }));
    assert!(matches!(refused("+ vel", "+ rho"), HeaderError::FieldTwice { .. }));
    assert!(matches!(Header::parse(b"\x89HDF\r\n"), Err(HeaderError::NotText)));
    assert!(matches!(Header::parse(b""), Err(HeaderError::Missing { key: "version" })));
    let huge = OPENVISUS
        .replacen("V0120120120120121", &format!("V0120120120120121{}", "0".repeat(40)), 1)
        .replacen(")\n9", ")\n53", 1);
    assert!(matches!(Header::parse(huge.as_bytes()), Err(HeaderError::BlockLength { .. })));
}

proptest! {
    #[test]
    fn damaged_headers_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        pidx: bool,
        cut: prop::sample::Index,
    ) {
        let mut bytes = if pidx { PIDX } else { OPENVISUS }.as_bytes().to_vec();
        for (at, byte) in edits {
            *at.get_mut(&mut bytes) = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1 + bytes.len() / 2);
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert_eq!(Header::parse(header.to_text().as_bytes()).unwrap(), header);
        }
    }
}
