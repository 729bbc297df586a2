//! Destinations of encoded tiles: each worker writes its batches separately, or all ranks write a round's batches
//! together.
//!
//! The engine has already chosen the addresses.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

/// An output that accepts bytes from any thread of any rank.
pub trait Sink: Sync {
    /// Writes all of `bytes` at `address`. It is called from any thread, for disjoint ranges.
    fn write_at(&self, address: u64, bytes: &[u8]) -> std::io::Result<()>;

    /// Writes to one of several output files (IDX has one per few hundred blocks); see [`super::TileWork::file`].
    fn write_file_at(&self, file: u32, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        let _ = file;
        self.write_at(address, bytes)
    }
}

impl Sink for std::fs::File {
    fn write_at(&self, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, address)
    }
}

/// Contiguous bytes of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputRun<'a> {
    /// Number of the output file; see [`super::TileWork::file`].
    pub file: u32,
    /// Address of the first byte.
    pub address: u64,
    /// Bytes to write.
    pub bytes: &'a [u8],
}

/// An output that ranks write collectively, on the calling thread of each.
pub trait SharedSink: Debug {
    /// Collective. Writes this rank's runs, possibly none; the runs of all ranks are disjoint. A rank on which it fails
    /// must still take part in its collectives; the engine agrees on the outcome.
    fn write_together(&self, runs: &[OutputRun<'_>]) -> std::io::Result<()>;

    /// Describes the interface in use, for the report.
    fn describe(&self) -> SharedIo;

    /// Collective. Syncs all writes to storage and closes the output, which is invalid otherwise.
    fn finish(self: Box<Self>) -> std::io::Result<()>;
}

/// Opener of outputs that ranks write collectively.
pub trait SharedFiles: Debug {
    /// Collective. Opens the existing file at `path`.
    fn open(&self, path: &Path) -> std::io::Result<Box<dyn SharedSink + '_>>;
}

/// Interface through which ranks write collectively.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedIo {
    /// Name of the interface.
    pub interface: String,
    /// Hints in effect.
    pub hints: BTreeMap<String, String>,
}
