//! Indexes of searches, with a seal that is always right, so that mutations reach the contents.

use raddle_core::cancel::CancelToken;
use raddle_core::digest::Digest;
use raddle_hdf5::open_file::OpenFile;
use raddle_query::{Expression, Index, Literal, Operator, Scan, Table};
use raddle_testing::plain::make_columns;
use std::sync::OnceLock;
use tempfile::TempDir;

/// Bytes before the contents: magic number and version.
const HEAD: &[u8] = b"raddlest\x01";
/// Values of the column of the seed.
const VALUES: [f64; 5] = [1.0, -2.0, f64::NAN, 0.5, 7.0];

/// A file with one table, in a folder that lasts as long as the process.
fn file() -> &'static (TempDir, OpenFile) {
    static FILE: OnceLock<(TempDir, OpenFile)> = OnceLock::new();
    FILE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.h5");
        make_columns(&path, &[("/rec/x", &VALUES)]).expect("a file");
        let file = OpenFile::open(&path, Some(1)).expect("an open file");
        (folder, file)
    })
}

/// Runs the target whose input is the contents of an index.
pub(crate) fn index(contents: &[u8]) {
    let sealed = [HEAD, contents].concat();
    let bytes = [sealed.as_slice(), &Digest::of(&sealed).crc64_nvme().to_le_bytes()].concat();
    let Ok(index) = Index::of_bytes(&bytes) else { return };
    let again =
        Index::of_bytes(&index.to_bytes().expect("what is read can be written")).expect("what is written can be read");
    // NaN is not a limit, but may be in the bytes.
    assert_eq!(format!("{again:?}"), format!("{index:?}"));
    let table = Table::of(&file().1, "rec").expect("a table");
    let condition =
        Expression::Compare { column: "x".to_owned(), operator: Operator::Less, value: Literal::Float(2.0) };
    let scan = Scan::new(table, Some(&condition), &["x".to_owned()]).expect("a scan").with_index(&index);
    let (found, _) = scan.read(1, &CancelToken::new()).expect("values");
    // Whatever the limits are: rows are in the file, and none twice.
    assert!(found.columns[0].len() <= VALUES.len() * 8);
}

/// Contents of the index of the file.
pub(crate) fn index_seeds() -> Vec<Vec<u8>> {
    let index = Index::compute(&file().1, 1, &CancelToken::new()).expect("an index");
    let bytes = index.to_bytes().expect("bytes");
    vec![bytes[HEAD.len()..bytes.len() - 8].to_vec()]
}
