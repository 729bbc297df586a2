//! How fast one core, the network and the file system are taken to be.
//!
//! Not for measuring them: who simulates has measured or been told. Invariant: all rates are positive.

use serde::{Deserialize, Serialize};

/// Rates of the machine that is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Uncompressed bytes of narrow datasets that a core inflates from the inputs' chunks, per second.
    pub narrow_inflate_bytes_per_s: f64,
    /// Uncompressed bytes of narrow datasets that a core deflates, per second.
    pub narrow_deflate_bytes_per_s: f64,
    /// As the first, of wide datasets: maps.
    pub wide_inflate_bytes_per_s: f64,
    /// As the second, of wide datasets.
    pub wide_deflate_bytes_per_s: f64,
    /// Bytes that the file system gives to all ranks together, per second; `None`: no bound.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes that the file system takes from all ranks together, per second; `None`: no bound.
    pub write_bytes_per_s: Option<f64>,
    /// Files that the file system opens for all ranks together, per second; `None`: no bound.
    pub opens_per_s: Option<f64>,
    /// Bytes that a rank sends to ranks of other machines or receives from them, per second.
    pub network_bytes_per_s: f64,
    /// Time of a message without content.
    pub message_s: f64,
    /// Time of a core to scan one object of an input.
    pub scan_object_s: f64,
    /// Time of rank 0 to create one dataset of the output.
    pub commit_dataset_s: f64,
    /// Time of rank 0 to enter one chunk into its index.
    pub commit_chunk_s: f64,
}

impl Rates {
    /// Seconds of a core for inflating this many raw bytes of a dataset.
    pub(super) fn inflate_s(&self, is_wide: bool, len_bytes: u64) -> f64 {
        len_bytes as f64 / if is_wide { self.wide_inflate_bytes_per_s } else { self.narrow_inflate_bytes_per_s }
    }

    /// Seconds of a core for deflating this many raw bytes of a dataset.
    pub(super) fn deflate_s(&self, is_wide: bool, len_bytes: u64) -> f64 {
        len_bytes as f64 / if is_wide { self.wide_deflate_bytes_per_s } else { self.narrow_deflate_bytes_per_s }
    }

    /// Seconds of a collective of so many ranks that brings `len_bytes` to each of them, in a logarithmic number of
    /// steps.
    pub(super) fn collective_s(&self, ranks: usize, len_bytes: f64) -> f64 {
        let steps = (ranks as f64).log2().ceil();
        if ranks > 1 { steps * self.message_s + len_bytes / self.network_bytes_per_s } else { 0.0 }
    }
}
