//! No damage of a small file causes a crash, and if all metadata has checksums, the damage is detected.

use crate::maker::{FileSpec, Format, make_sampler};
use raddle_hdf5::Result;
use raddle_hdf5::model::{FileTree, ObjectKind};
use raddle_hdf5::native::{ReadLimits, read_tree};
use raddle_hdf5::source::InputFile;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A sampler file, opened to be damaged.
struct Patient {
    path: PathBuf,
    file: File,
    valid: Vec<u8>,
    tree: FileTree,
}

fn read(path: &Path) -> Result<FileTree> {
    read_tree(&InputFile::open(path)?, &ReadLimits::default())
}

impl Patient {
    fn new(folder: &Path, spec: FileSpec) -> Self {
        let path = folder.join("patient.h5");
        make_sampler(&path, spec);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let (valid, tree) = (std::fs::read(&path).unwrap(), read(&path).unwrap());
        Self { path, file, valid, tree }
    }

    /// Reads the file with the byte at `at` replaced, and checks the reported errors.
    fn read_with(&self, at: usize, value: u8) -> Result<FileTree> {
        self.file.write_all_at(&[value], at as u64).unwrap();
        let result = self.read();
        self.file.write_all_at(&self.valid[at..=at], at as u64).unwrap();
        result
    }

    fn read(&self) -> Result<FileTree> {
        let result = read(&self.path);
        match &result {
            Err(error) => assert!(error.to_string().contains("patient.h5"), "{error}"),
            Ok(tree) => {
                for reason in reasons(tree) {
                    assert!(reason.contains(" byte") || reason == "the link leads nowhere", "{reason}");
                }
            }
        }
        result
    }
}

/// Returns the reasons why objects are unreadable.
fn reasons(tree: &FileTree) -> impl Iterator<Item = &str> {
    tree.objects.iter().filter_map(|object| match &object.kind {
        ObjectKind::Unreadable { reason, .. } => Some(reason.as_str()),
        _ => None,
    })
}

/// Returns replacements for a byte: a small one, a large one, and one close to the original.
fn replacements(byte: u8) -> [u8; 3] {
    [byte ^ 0x01, byte ^ 0xff, byte.wrapping_add(8)]
}

#[test]
fn every_byte_of_an_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let patient = Patient::new(folder.path(), FileSpec { userblock: 512, ..FileSpec::of(Format::Earliest) });
    let mut noticed = 0;
    for (at, &byte) in patient.valid.iter().enumerate() {
        for value in replacements(byte) {
            noticed += usize::from(patient.read_with(at, value).is_ok_and(|tree| tree != patient.tree));
        }
    }
    // Without checksums, a changed name or size is just a different name or size.
    assert!(noticed > 0);
}

#[test]
fn every_byte_of_a_new_file_is_noticed_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    for shared_messages in [false, true] {
        let patient = Patient::new(folder.path(), FileSpec { shared_messages, ..FileSpec::of(Format::Latest) });
        let mut noticed = 0;
        for (at, &byte) in patient.valid.iter().enumerate() {
            for value in replacements(byte) {
                match patient.read_with(at, value) {
                    Ok(tree) if tree == patient.tree => {}
                    Ok(tree) => {
                        noticed += 1;
                        assert!(reasons(&tree).next().is_some(), "byte {at} -> {value}: silently another tree");
                    }
                    Err(_) => noticed += 1,
                }
            }
        }
        // At least half of the file is metadata; the rest is unused space of heaps and nodes.
        assert!(noticed > patient.valid.len(), "{noticed} of {} noticed", 3 * patient.valid.len());
    }
}

#[test]
fn every_length_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Earliest, Format::Latest] {
        let patient = Patient::new(folder.path(), FileSpec { userblock: 512, ..FileSpec::of(format) });
        for len in (0..patient.valid.len()).rev() {
            patient.file.set_len(len as u64).unwrap();
            let error = patient.read().expect_err("a truncated file is accepted");
            assert!(len <= 512 + 96 || error.to_string().contains(&format!("has {len}")), "{error}");
        }
    }
}
