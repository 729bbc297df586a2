//! Assumed speeds of one core, the network and the file system.
//!
//! They are not measured here: the caller provides them. Invariant: all rates are positive.

use serde::{Deserialize, Serialize};

/// Rates of the simulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Uncompressed bytes of narrow datasets that a core inflates per second from the inputs' chunks.
    pub narrow_inflate_bytes_per_s: f64,
    /// Uncompressed bytes of narrow datasets that a core deflates per second.
    pub narrow_deflate_bytes_per_s: f64,
    /// Uncompressed bytes of wide datasets, such as maps, that a core inflates per second.
    pub wide_inflate_bytes_per_s: f64,
    /// Uncompressed bytes of wide datasets that a core deflates per second.
    pub wide_deflate_bytes_per_s: f64,
    /// Bytes per second that the file system delivers to all ranks together; `None` if the rate is not limited.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes per second that the file system accepts from all ranks together; `None` if the rate is not limited.
    pub write_bytes_per_s: Option<f64>,
    /// Files per second that the file system opens for all ranks together; `None` if the rate is not limited.
    pub opens_per_s: Option<f64>,
    /// Bytes per second that a rank sends to ranks on other nodes or receives from them.
    pub network_bytes_per_s: f64,
    /// Time of a message without content.
    pub message_s: f64,
    /// Time for a core to scan one object of an input.
    pub scan_object_s: f64,
    /// Time for rank 0 to create one dataset of the output.
    pub commit_dataset_s: f64,
    /// Time for rank 0 to insert one chunk into its index.
    pub commit_chunk_s: f64,
}

impl Rates {
    /// Returns the core seconds to inflate `len_bytes` uncompressed bytes of a dataset.
    pub(super) fn inflate_s(&self, is_wide: bool, len_bytes: u64) -> f64 {
        len_bytes as f64 / if is_wide { self.wide_inflate_bytes_per_s } else { self.narrow_inflate_bytes_per_s }
    }

    /// Returns the core seconds to deflate `len_bytes` uncompressed bytes of a dataset.
    pub(super) fn deflate_s(&self, is_wide: bool, len_bytes: u64) -> f64 {
        len_bytes as f64 / if is_wide { self.wide_deflate_bytes_per_s } else { self.narrow_deflate_bytes_per_s }
    }

    /// Returns the seconds of a collective among `ranks` ranks that brings `len_bytes` to each of them in a logarithmic
    /// number of steps.
    pub(super) fn collective_s(&self, ranks: usize, len_bytes: f64) -> f64 {
        let steps = (ranks as f64).log2().ceil();
        if ranks > 1 { steps * self.message_s + len_bytes / self.network_bytes_per_s } else { 0.0 }
    }
}
