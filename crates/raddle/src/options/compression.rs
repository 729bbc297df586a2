//! Compression of HDF5 chunks: help of `--compress`, and what a compression means for events.

use crate::error::Error;
use raddle_codec::Compression;
use raddle_merge::options::Compress;

/// Help of `--compress` in commands that write events.
pub const EVENTS_HELP: &str = "Compression of HDF5: fast, balanced, small, gzip:0-9, zstd:1-22, lz4 or none";

/// Help of `--compress` in `raddle append`.
pub const APPEND_HELP: &str = "Compression effort for datasets that the file compresses with deflate (fast, balanced, \
                               small, gzip:1-9) or Zstandard (zstd:1-22); keep, and all other datasets: as in the file";

/// Returns the compression of events; `None` for no compression.
///
/// # Errors
/// If the compression is `keep`.
pub fn of_events(compress: Compress) -> Result<Option<Compression>, Error> {
    match compress {
        Compress::Keep => Err(Error::usage("--compress keep: events get a new layout, so no filter can be kept")),
        other => Ok(other.compression()),
    }
}
