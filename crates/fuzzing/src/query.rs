//! Indexes of searches, with a seal that is always right, so that mutations reach the contents.

use raddle_core::cancel::CancelToken;
use raddle_core::digest::Digest;
use raddle_hdf5::open_file::OpenFile;
use raddle_query::{AggregateKind, Expression, Index, Literal, Operator, Scan, Table};
use raddle_testing::plain::make_columns;
use std::sync::OnceLock;
use tempfile::TempDir;

/// Bytes before the contents: magic number and version.
const HEAD: &[u8] = b"raddlest\x03";
/// First bytes of a version that has limits only.
const OLDER_HEAD: &[u8] = b"raddlest\x02";
/// Values of the column of the seed.
const VALUES: [f64; 5] = [1.0, -2.0, f64::NAN, 0.5, 7.0];

/// Returns a file with one table, in a folder that lasts as long as the process.
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
    for head in [HEAD, OLDER_HEAD] {
        let sealed = [head, contents].concat();
        let bytes = [sealed.as_slice(), &Digest::of(&sealed).crc64_nvme().to_le_bytes()].concat();
        if let Ok(index) = Index::of_bytes(&bytes) {
            search_with(&index);
        }
    }
}

/// Searches the file with an index that may be wrong.
fn search_with(index: &Index) {
    let again =
        Index::of_bytes(&index.to_bytes().expect("what is read can be written")).expect("what is written can be read");
    // NaN is not a limit, but may be in the bytes.
    assert_eq!(format!("{again:?}"), format!("{index:?}"));
    index.differences(&file().1, 1, &CancelToken::new()).expect("values");
    index.extended(&file().1, 1, &CancelToken::new()).expect("values");
    let table = Table::of(&file().1, "rec").expect("a table");
    let x = |operator, value| Expression::Compare { column: "x".to_owned(), operator, value: Literal::Float(value) };
    let below = x(Operator::Less, 2.0);
    // Distinct values exclude it, or confirm it for each value.
    let between = Expression::And(vec![x(Operator::Greater, 0.75), x(Operator::NotEqual, 3.0)]);
    for condition in [None, Some(&below), Some(&between)] {
        let scan = Scan::new(table.clone(), condition, &["x".to_owned()]).expect("a scan").with_index(index);
        let (found, _) = scan.read(1, &CancelToken::new()).expect("values");
        // Whatever the statistics are: rows are in the file, and none twice.
        assert!(found.columns[0].len() <= VALUES.len() * 8);
        for wanted in [AggregateKind::Limits, AggregateKind::Sum] {
            let aggregate = scan.aggregate(wanted, 1, &CancelToken::new()).expect("values");
            assert!(aggregate.count <= VALUES.len() as u64);
        }
    }
}

/// Returns contents of indexes: of the file, in both forms, and of files with columns of all types.
pub(crate) fn index_seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![contents_of(&file().1), older_contents()];
    let folder = tempfile::tempdir().expect("a folder");
    for (number, bytes) in crate::seeds::files().iter().enumerate() {
        let path = folder.path().join(format!("{number}.h5"));
        std::fs::write(&path, bytes).expect("a file");
        seeds.push(contents_of(&OpenFile::open(&path, Some(1)).expect("an open file")));
    }
    seeds
}

fn contents_of(file: &OpenFile) -> Vec<u8> {
    let index = Index::compute(file, 1, &CancelToken::new()).expect("an index");
    let bytes = index.to_bytes().expect("bytes");
    bytes[HEAD.len()..bytes.len() - 8].to_vec()
}

/// Returns contents of an index of the file in a version that has limits only: one column with one block.
fn older_contents() -> Vec<u8> {
    let head = b"\0\0\x01\x06/rec/x\x05\x08\x80\x80\x01\x01\x02";
    [head.as_slice(), &(-2_f64).to_le_bytes(), &7_f64.to_le_bytes(), b"\x01"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        for (head, contents) in [(HEAD, contents_of(&file().1)), (OLDER_HEAD, older_contents())] {
            let sealed = [head, &contents].concat();
            let bytes = [sealed.as_slice(), &Digest::of(&sealed).crc64_nvme().to_le_bytes()].concat();
            let index = Index::of_bytes(&bytes).expect("an index");
            assert_eq!((index.column_count(), index.value_count()), (1, 5));
        }
    }
}
