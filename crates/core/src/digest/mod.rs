//! Content digests that do not depend on how the content is split: a linear CRC-64 whose parts combine in any order.
//!
//! They are not cryptographic: they detect corruption and defects, not forgery. The published value of a run of bytes
//! is its CRC-64/NVME, so other tools can check it.

mod blocks;
mod content;
mod linear;
mod runs;

pub use blocks::{Additions, BlockDigests, BlockPart, RowBlockDigests};
pub use linear::{Shift, concat, fragment, shift};

use serde::{Deserialize, Serialize};

/// Name of the published algorithm, as in the CRC catalogue.
pub const ALGORITHM: &str = "CRC-64/NVME";

/// Digest of a run of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Digest {
    linear: u64,
    len_bytes: u64,
}

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self { linear: fragment(bytes), len_bytes: bytes.len() as u64 }
    }

    /// Returns the digest of this run followed by `next`.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            linear: concat(self.linear, next.linear, next.len_bytes),
            len_bytes: self.len_bytes.saturating_add(next.len_bytes),
        }
    }

    /// Returns the digest of a run of `len_bytes` with CRC-64/NVME `crc`: the inverse of [`Digest::crc64_nvme`].
    pub fn of_crc64_nvme(crc: u64, len_bytes: u64) -> Self {
        Self { linear: !crc ^ shift(u64::MAX, len_bytes), len_bytes }
    }

    /// Returns the length of the run.
    pub fn len_bytes(self) -> u64 {
        self.len_bytes
    }

    /// Converts the digest to a recordable part of block `block`, which consists of exactly this run.
    pub fn part(self, block: u64) -> BlockPart {
        BlockPart { block, linear: self.linear, len_bytes: self.len_bytes }
    }

    /// Inverts [`Digest::part`].
    pub fn of_part(part: BlockPart) -> Self {
        Self { linear: part.linear, len_bytes: part.len_bytes }
    }

    /// Returns the CRC-64/NVME of the run.
    pub fn crc64_nvme(self) -> u64 {
        !(self.linear ^ shift(u64::MAX, self.len_bytes))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crc_fast::CrcAlgorithm;
    use proptest::prelude::*;

    #[test]
    fn the_published_value_is_crc64_nvme() {
        // Check value from the CRC catalogue for the digits 1 to 9.
        assert_eq!(Digest::of(b"123456789").crc64_nvme(), 0xae8b_1486_0a79_9888);
        assert_eq!(Digest::default().crc64_nvme(), 0);
        let zeros = [0u8; 7];
        assert_ne!(Digest::of(&zeros).crc64_nvme(), Digest::of(&zeros[1..]).crc64_nvme());
    }

    #[test]
    fn a_published_value_and_its_length_are_the_digest() {
        for bytes in [&b""[..], b"a", b"123456789", &[0; 5000]] {
            let digest = Digest::of(bytes);
            assert_eq!(Digest::of_crc64_nvme(digest.crc64_nvme(), digest.len_bytes()), digest);
        }
    }

    proptest! {
        #[test]
        fn parts_combine(
            a in prop::collection::vec(any::<u8>(), 0..300),
            b in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let both = [a.as_slice(), b.as_slice()].concat();
            prop_assert_eq!(concat(fragment(&a), fragment(&b), b.len() as u64), fragment(&both));
            let joined = Digest::of(&a).then(Digest::of(&b));
            prop_assert_eq!(joined, Digest::of(&both));
            prop_assert_eq!(joined.crc64_nvme(), crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &both));
        }
    }
}
