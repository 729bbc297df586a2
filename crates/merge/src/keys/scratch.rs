//! An unnamed file for data that does not fit in memory. It takes space in the output's folder, and disappears with the
//! process, however that ends.

use crate::error::{MergeError, Result};
use rustix::fs::{Mode, OFlags};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Scratch file, which is appended to and read at any offset.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    folder: PathBuf,
    len_bytes: u64,
}

impl Scratch {
    /// Creates a scratch file in the folder of `output`.
    pub fn create(output: &Path) -> Result<Self> {
        let folder = match output.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let file = match rustix::fs::open(
            &folder,
            OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        ) {
            Ok(file) => File::from(file),
            // On file systems without unnamed files, creates a named one that is unlinked at once.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => named(&folder)?,
            Err(error) => {
                return Err(MergeError::Write {
                    path: folder,
                    operation: "create a scratch file",
                    source: error.into(),
                });
            }
        };
        Ok(Self { file, folder, len_bytes: 0 })
    }

    /// Appends `bytes` and returns their offset.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        let at = self.len_bytes;
        self.file.write_all_at(bytes, at).map_err(|source| MergeError::Write {
            path: self.folder.clone(),
            operation: "write a scratch file",
            source,
        })?;
        self.len_bytes += bytes.len() as u64;
        Ok(at)
    }

    /// Reads the bytes at `offset_bytes`.
    pub fn read(&self, offset_bytes: u64, out: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(out, offset_bytes).map_err(|source| MergeError::Write {
            path: self.folder.clone(),
            operation: "read a scratch file",
            source,
        })
    }
}

fn named(folder: &Path) -> Result<File> {
    let write = |path: &Path, source| MergeError::Write {
        path: path.to_path_buf(),
        operation: "create a scratch file",
        source,
    };
    for number in 0_u32.. {
        let path = folder.join(format!(".raddle-scratch-{}-{number}", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path).map_err(|source| write(&path, source))?;
                return Ok(file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => return Err(write(&path, source)),
        }
    }
    Err(write(folder, ErrorKind::AlreadyExists.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::create(&folder.path().join("out.h5")).unwrap();
        assert_eq!(scratch.append(b"first").unwrap(), 0);
        assert_eq!(scratch.append(b"second").unwrap(), 5);
        let mut read = [0; 6];
        scratch.read(5, &mut read).unwrap();
        assert_eq!(&read, b"second");
        assert!(scratch.read(6, &mut read).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut again = named(folder.path()).unwrap();
        std::io::Write::write_all(&mut again, b"x").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
