//! Digests of the values of a column, as they are stored.

use serde::{Deserialize, Serialize};

/// Contents over which the digests of a column are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum DigestForm {
    /// Elements as stored after decoding, in row-major order.
    Values = 1,
    /// Canonical bytes ([`raddle_hdf5::logical`]), because elements contain addresses in their file.
    Canonical = 2,
    /// Chunks as stored, each preceded by its filter mask and length, because a filter is unknown and values cannot be
    /// decoded, or because chunks were moved without decoding them.
    Stored = 3,
    /// No digest: the dataset is virtual, and its values are in the inputs.
    Linked = 4,
}

impl DigestForm {
    /// Returns the form with this number in a file; `None` for 0, which stands for a missing digest.
    pub fn of_number(number: u64) -> Option<Self> {
        [Self::Values, Self::Canonical, Self::Stored, Self::Linked].into_iter().find(|form| *form as u64 == number)
    }
}

/// Digests of one column, as published ([`raddle_core::digest::Digest::crc64_nvme`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDigests {
    /// Contents over which the digests are computed.
    pub form: DigestForm,
    /// Number of rows of each block except the last, which may be shorter.
    pub block_rows: u64,
    /// Digest of all rows.
    pub whole: u64,
    /// Digest of each block.
    pub blocks: Vec<u64>,
}
