//! Help of `--compress`, where it differs from that of a merge.

/// Help of `--compress` in commands that write events.
pub const EVENTS_HELP: &str = "HDF5 compression: fast, balanced, small, gzip:0-9, zstd:1-22, lz4 or none";

/// Help of `--compress` in `raddle append`.
pub const APPEND_HELP: &str = "Compression effort for datasets that the file compresses with deflate (fast, balanced, \
                               small, gzip:1-9) or Zstandard (zstd:1-22); keep, and all other datasets: as in the file";
