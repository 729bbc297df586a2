//! Statistics of reads of raw data.

use std::ops::AddAssign;

/// Statistics of a read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReadCounts {
    /// Number of decoded chunks.
    pub chunks: u64,
    /// Number of chunks that were still decoded from an earlier box.
    pub kept_chunks: u64,
    /// Number of bytes read from the file, without index nodes.
    pub stored_len_bytes: u64,
    /// Seconds spent reading, including look-up.
    pub read_s: f64,
    /// Seconds spent decoding and copying.
    pub decode_s: f64,
}

impl AddAssign for ReadCounts {
    fn add_assign(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.kept_chunks += other.kept_chunks;
        self.stored_len_bytes += other.stored_len_bytes;
        self.read_s += other.read_s;
        self.decode_s += other.decode_s;
    }
}
