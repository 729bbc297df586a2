//! Where encoded tiles go: each worker's batches by themselves, or a round's batches of all ranks together.
//!
//! Not for where in the output they lie, which the engine decides before.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

/// An output that takes bytes from any thread of any rank.
pub trait Sink: Sync {
    /// Writes all of `bytes` at `address`. Called from any thread, for disjoint ranges.
    fn write_at(&self, address: u64, bytes: &[u8]) -> std::io::Result<()>;

    /// The same for one of several output files (IDX has one per some hundred blocks); see [`super::TileWork::file`].
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

/// Bytes that lie one behind the other in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run<'a> {
    /// One of several output files; see [`super::TileWork::file`].
    pub file: u32,
    /// Address of the first byte.
    pub address: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// An output that ranks write together, on the calling thread of each.
pub trait SharedSink: Debug {
    /// Collective. Writes the runs of this rank, which may be none; the runs of all ranks are disjoint. Where it fails on
    /// one rank it must still go through its collectives; the engine agrees on the outcome.
    fn write_together(&self, runs: &[Run<'_>]) -> std::io::Result<()>;

    /// What is written through, for the report.
    fn describe(&self) -> SharedIo;

    /// Collective. Makes durable what was written, and closes the output. Without it the output is worth nothing.
    fn finish(self: Box<Self>) -> std::io::Result<()>;
}

/// Opens outputs that ranks write together.
pub trait SharedFiles: Debug {
    /// Collective. Opens the file at `path`, which is there.
    fn open(&self, path: &Path) -> std::io::Result<Box<dyn SharedSink + '_>>;
}

/// What ranks write together through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedIo {
    /// Its name.
    pub interface: String,
    /// The hints that it goes by.
    pub hints: BTreeMap<String, String>,
}
