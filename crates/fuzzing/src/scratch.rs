//! Files for parsers that need one: one folder per thread, in memory if the system supports it.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Returns the path in this thread's folder with that name.
pub(crate) fn path(name: &str) -> PathBuf {
    FOLDER.with(|folder| folder.get_or_init(in_memory).path().join(name))
}

fn in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

/// Writes the bytes to a file.
pub(crate) fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = path(name);
    std::fs::write(&path, bytes).expect("a temporary folder takes files");
    path
}
