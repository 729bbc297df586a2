//! Free space of file systems, which is compared with the needs of a run before anything is written.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// File system of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileSystem(u64);

/// Returns the file system of an existing folder.
///
/// # Errors
/// If the folder does not exist.
pub fn file_system(folder: &Path) -> std::io::Result<FileSystem> {
    std::fs::metadata(folder).map(|metadata| FileSystem(metadata.dev()))
}

/// Returns the number of bytes that this user can still write to the file system of an existing folder.
///
/// # Errors
/// If the file system does not report it.
pub fn available_bytes(folder: &Path) -> std::io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    if found.f_blocks == 0 {
        return Err(std::io::Error::new(ErrorKind::Unsupported, "the file system does not report its size"));
    }
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn folders_of_one_file_system_share_its_space() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        assert_eq!(file_system(folder.path()).unwrap(), file_system(&inner).unwrap());
        assert!(available_bytes(&inner).unwrap() > 0);
        assert!(available_bytes(&folder.path().join("none")).is_err());
    }
}
