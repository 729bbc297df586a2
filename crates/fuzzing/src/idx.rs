//! IDX: headers as text, files of blocks, and headers of `.npy` files.

use crate::scratch;
use raddle_core::cancel::CancelToken;
use raddle_idx::dataset::template::FileTemplate;
use raddle_idx::read::npy::NpyHead;
use raddle_idx::{Dataset, Field, Header, IfExists, Query, Readers, WriteOptions, Writer};
use std::path::{Component, PathBuf};

/// Runs the target whose input is an `.idx` file or the header of an `.npy` file.
pub(crate) fn header(bytes: &[u8]) {
    if let Ok(head) = NpyHead::parse(bytes) {
        let again = NpyHead::parse(&NpyHead::to_bytes(head.number, &head.shape)).expect("what is read can be written");
        assert_eq!((again.number, again.shape), (head.number, head.shape));
    }
    let Ok(header) = Header::parse(bytes) else { return };
    header.check().expect("what is read is consistent");
    let again = Header::parse(header.to_text().as_bytes()).expect("what is read can be written");
    assert_eq!(again, header);
    let last_block = header.block_count() - 1;
    let step = header.time.as_ref().map(|time| time.template.name(u64::MAX)).unwrap_or_default();
    for block in [0, last_block - last_block % header.blocks_per_file] {
        let path = header.files.path(block, &step);
        let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        assert!(path.components().all(is_inside), "{} leads elsewhere", path.display());
    }
    header.grid(header.bitmask.max_level()).expect("the box holds samples");
}

/// Returns headers as written by OpenVisus, PIDX and raddle.
pub(crate) fn header_seeds() -> Vec<Vec<u8>> {
    let open_visus = "(version)\n6\n(box)\n0 21 0 35 0 21\n(fields)\nrho float32 default_compression(zip) \
        default_layout(row_major) default_value(0) min(0) max(0) \n + v float64[3] min(0 0 0) max(0 0 0)\n(bits)\n\
        V0120120120120121\n(bitsperblock)\n12\n(blocksperfile)\n16\n(interleave block)\n0\n(time)\n0 3 time_%04d/\n\
        (filename_template)\n./rho/%04x.bin\n(missing_blocks)\n0\n(arco)\n0\n";
    let pidx = "(version)\n6.1\n(io mode)\nidx\n(box)\n0 127 0 127 0 127 0 0 0 0\n(physical box)\n0 1 0 1 0 1\n\
        (fields)\nvar_0 1*float64 + \nvar_1 3*float64\n(bits)\nV210210210210210210210\n(bitsperblock)\n15\n\
        (blocksperfile)\n256\n(filename_template)\n./data/%03x/%03x.bin\n(time)\n* * time%09d/";
    let raddle_header =
        Header::new("d", &[5, 4], vec![Field::new("a", "uint8".parse().expect("a type"))]).expect("a header");
    let texts = [open_visus.to_owned(), pidx.to_owned(), raddle_header.to_text(), "(version)\n6\n".to_owned()];
    let head = NpyHead::to_bytes(
        "float32".parse::<raddle_idx::dataset::sample::SampleType>().expect("a type").number,
        &[3, 4],
    );
    texts.into_iter().map(String::into_bytes).chain([head]).collect()
}

/// Returns the header of the dataset whose blocks are tested: both orders, a vector, all compressions.
fn dataset() -> Header {
    let field = |(name, sample, layout, compression): (&str, &str, &str, &str)| {
        Field::new(name, sample.parse().expect("a type"))
            .with("default_layout", layout)
            .with("default_compression", compression)
    };
    let fields = [
        ("a", "float32", "", "zip"),
        ("b", "uint8[3]", "hzorder", "lz4"),
        ("c", "int16", "", ""),
        ("d", "float64", "", "zfp-reversible-reversible"),
        ("e", "int32", "hzorder", "zfp-precision=9-precision=9"),
    ]
    .map(field);
    let mut header = Header::new("d", &[9, 7, 5], fields.to_vec()).expect("a header");
    header.bits_per_block = 5;
    header.blocks_per_file = 64;
    header.files = FileTemplate::parse("./d.bin").expect("a template");
    header
}

/// Runs the target whose input is the single file of blocks of a dataset.
pub(crate) fn blocks(bytes: &[u8]) {
    let path = open_scratch();
    scratch::write("d.bin", bytes);
    let dataset = Dataset::open(&path).expect("the header is good");
    let cancel = CancelToken::new();
    for field in 0..dataset.header().fields.len() {
        let check = dataset.check(field, None, &Readers { jobs: 1, cancel: &cancel }).expect("the file can be read");
        let whole = dataset.whole(field);
        let read = dataset.read(&whole);
        assert_eq!(read.is_ok(), check.bad.is_empty(), "{read:?}");
        let coarse = Query { resolution: 4, missing_as_default: true, ..whole };
        let (coarse, len_bytes) = (dataset.read(&coarse), dataset.len_bytes(&coarse).expect("there are samples"));
        assert!(coarse.is_err() || coarse.is_ok_and(|samples| samples.len() as u64 == len_bytes));
    }
}

/// Writes the header to the scratch folder.
fn open_scratch() -> PathBuf {
    let path = scratch::path("d.idx");
    if !path.exists() {
        std::fs::write(&path, dataset().to_text()).expect("a temporary folder takes files");
    }
    path
}

/// Returns a valid file, and one with a field missing.
pub(crate) fn block_seeds() -> Vec<Vec<u8>> {
    let header = dataset();
    let smooth = |step: usize, len: usize| (0..len).map(|at| (at / step) as u8).collect::<Vec<u8>>();
    [1, 40, 4000]
        .map(|step| {
            let arrays: Vec<Vec<u8>> =
                header.fields.iter().map(|field| smooth(step, 9 * 7 * 5 * field.sample.len_bytes())).collect();
            let slices: Vec<&[u8]> = arrays.iter().map(Vec::as_slice).collect();
            let folder = tempfile::tempdir().expect("a temporary folder");
            let options = WriteOptions { existing: IfExists::Replace, jobs: 1, ..WriteOptions::default() };
            let mut writer = Writer::new(&folder.path().join("d.idx"), header.clone(), options).expect("a writer");
            writer.write(None, &slices).expect("a temporary folder takes files");
            std::fs::read(folder.path().join("d.bin")).expect("it has been written")
        })
        .to_vec()
}
