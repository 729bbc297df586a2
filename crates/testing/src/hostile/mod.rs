//! Damaged and malicious files, each with the expected result of reading it.
//!
//! The cases follow the fault table of the reliability contract (rows 1 to 9). They are made at test time with plain
//! libhdf5 and a few changed bytes, without raddle. Whatever the expectation, a reader must not crash, take longer than
//! [`MAX_TIME_S`], use more than [`MAX_MEMORY_BYTES`], or open a file that was not named to it.
//!
//! ```no_run
//! use raddle_testing::hostile::{self, Expectation};
//! # fn read(_: &std::path::Path) -> Result<raddle_testing::content::Content, String> { unimplemented!() }
//! let folder = tempfile::tempdir()?;
//! for case in hostile::cases() {
//!     let file = case.make(folder.path());
//!     if let Err(complaint) = file.check(read(&file.path)) {
//!         panic!("{}: {complaint}", case.name);
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

mod chunks;
mod foreign;
mod metadata;
mod objects;

use crate::content::Content;
use crate::plain::{self, numbers};
use crate::spec::{DatasetSpec, FileSpec, FilterSpec, Format};
use std::path::{Path, PathBuf};

/// Maximum time for reading any of these files.
pub const MAX_TIME_S: u64 = 5;

/// Maximum memory for reading any of these files: the largest content is some megabytes.
pub const MAX_MEMORY_BYTES: u64 = 256 << 20;

/// A recipe for a file.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Name, valid as a file name.
    pub name: &'static str,
    /// Description of the damage or oddity.
    pub about: &'static str,
    /// Row of the fault table.
    pub row: u8,
    make: fn(&Path) -> Expectation,
}

/// A file made by a case.
#[derive(Debug, Clone)]
pub struct HostileFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Expected result of reading the file.
    pub expectation: Expectation,
}

/// Expected result of reading a whole file.
#[derive(Debug, Clone)]
pub enum Expectation {
    /// The file is refused, with a message that names it.
    Refused,
    /// The file is read, with exactly this content.
    ReadsAs(Box<Content>),
    /// The file is refused, or read with this content; both are right.
    RefusedOrReadsAs(Box<Content>),
    /// It is refused or read with any values, but quickly: the file claims far more than it contains.
    Cheap,
}

impl Case {
    /// Writes the file to `folder`, under the case's name.
    ///
    /// # Panics
    /// If it cannot be written: a mistake of the test.
    pub fn make(&self, folder: &Path) -> HostileFile {
        let path = folder.join(self.name).with_extension("h5");
        let expectation = (self.make)(&path);
        HostileFile { path, expectation }
    }
}

impl HostileFile {
    /// Checks that `outcome` is the expected one.
    ///
    /// # Errors
    /// If the outcome is not the expected one. Returns a description of the difference.
    pub fn check<E: std::fmt::Display>(&self, outcome: Result<Content, E>) -> Result<(), String> {
        match (&self.expectation, outcome) {
            (Expectation::Cheap, Ok(_)) => Ok(()),
            (Expectation::Refused, Ok(_)) => Err("read without complaint, must be refused".to_owned()),
            (Expectation::ReadsAs(content) | Expectation::RefusedOrReadsAs(content), Ok(found)) => {
                let differences = content.differences(&found);
                if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
            }
            (Expectation::ReadsAs(_), Err(error)) => Err(format!("refused, must be read: {error}")),
            (_, Err(error)) => {
                let (message, name) = (error.to_string(), self.path.file_name().unwrap_or_default());
                let named = message.contains(&*name.to_string_lossy());
                if named { Ok(()) } else { Err(format!("the message does not name the file: {message}")) }
            }
        }
    }
}

/// Returns all cases.
pub fn cases() -> Vec<Case> {
    [metadata::CASES, chunks::CASES, foreign::CASES, objects::CASES].concat()
}

/// Returns the file that most cases start from: `/data`, 100 rows of distinct bytes, in chunks of 16.
fn base(format: Format, filters: &[FilterSpec]) -> FileSpec {
    let dataset = DatasetSpec::plain(numbers::u8(), &[100], (0..100).collect()).chunked(&[16], filters);
    FileSpec { format, objects: vec![dataset.at("/data")], ..FileSpec::default() }
}

/// Writes a spec to `path`.
#[track_caller]
fn make(path: &Path, spec: &FileSpec) {
    plain::make(path, spec).expect("a hostile file's start can be made");
}

#[track_caller]
fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("the file was just made")
}

#[track_caller]
fn replace(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("a temporary folder takes files");
}

/// Overwrites the bytes at `offset` with `new`.
#[track_caller]
fn patch(path: &Path, offset: usize, new: &[u8]) {
    let mut bytes = bytes_of(path);
    bytes[offset..offset + new.len()].copy_from_slice(new);
    replace(path, &bytes);
}

/// Returns the offset of the only occurrence of `pattern`.
#[track_caller]
fn only_place(bytes: &[u8], pattern: &[u8]) -> usize {
    let mut places = (0..bytes.len().saturating_sub(pattern.len())).filter(|&at| bytes[at..].starts_with(pattern));
    match (places.next(), places.next()) {
        (Some(place), None) => place,
        (first, second) => panic!("{pattern:02x?} occurs at {first:?} and {second:?}, but one occurrence is expected"),
    }
}

/// Overwrites the only occurrence of `old` with `new`.
#[track_caller]
fn patch_only(path: &Path, old: &[u8], new: &[u8]) {
    let offset = only_place(&bytes_of(path), old);
    patch(path, offset, new);
}

/// Returns copies of `bytes` truncated to every multiple of `step_bytes`.
pub fn truncations(bytes: &[u8], step_bytes: usize) -> impl Iterator<Item = &[u8]> {
    (0..bytes.len()).step_by(step_bytes.max(1)).map(|len_bytes| &bytes[..len_bytes])
}

/// Returns copies of `bytes` with one byte changed, at every multiple of `step_bytes`: all bits, the lowest bit, the
/// highest bit; each with its position.
pub fn flips(bytes: &[u8], step_bytes: usize) -> impl Iterator<Item = (usize, Vec<u8>)> {
    let places = (0..bytes.len()).step_by(step_bytes.max(1));
    places.flat_map(|place| [0xFF_u8, 0x01, 0x80].map(|change| (place, change))).map(|(place, change)| {
        let mut changed = bytes.to_vec();
        changed[place] ^= change;
        (place, changed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn cases_can_be_made_and_have_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut names = HashSet::new();
        for case in cases() {
            assert!(names.insert(case.name), "{} twice", case.name);
            assert!((1..=9).contains(&case.row), "{}", case.name);
            let file = case.make(folder.path());
            assert!(file.path.exists(), "{}", case.name);
        }
    }

    /// Where libhdf5 does not overlook damage, it confirms the expected contents of these files.
    #[test]
    fn libhdf5_reads_what_must_be_read() {
        let folder = tempfile::tempdir().unwrap();
        for case in cases() {
            let file = case.make(folder.path());
            if let Expectation::ReadsAs(_) = file.expectation {
                file.check(plain::read(&file.path)).unwrap_or_else(|complaint| panic!("{}: {complaint}", case.name));
            }
        }
    }

    #[test]
    fn truncations_and_flips_cover_the_file() {
        let bytes = [1, 2, 3, 4, 5];
        assert_eq!(truncations(&bytes, 2).map(<[u8]>::len).collect::<Vec<_>>(), [0, 2, 4]);
        let flipped: Vec<_> = flips(&bytes, 4).collect();
        assert_eq!(flipped.len(), 6);
        assert!(flipped.iter().all(|(place, changed)| changed[*place] != bytes[*place] && changed.len() == 5));
    }
}
