//! Files for parsers that want one: one folder per thread, in memory where the system has such a place.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// This thread's path with that name.
pub(crate) fn path(name: &str) -> PathBuf {
    FOLDER.with(|folder| folder.get_or_init(in_memory).path().join(name))
}

fn in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

/// The bytes as a file.
pub(crate) fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = path(name);
    std::fs::write(&path, bytes).expect("a temporary folder takes files");
    path
}
