//! Block-wise digests of an array's rows, computed from linear CRCs that arrive in any order and from any thread.
//!
//! Invariant: the result depends only on the content and the block length.

use super::Digest;
use crate::error::{CoreError, Result};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// Block-wise digests of an array's content, gathered from fragments in any order.
#[derive(Debug)]
pub struct RowBlockDigests {
    block_len_bytes: u64,
    total_len_bytes: u64,
    blocks: Vec<AtomicU64>,
    added_bytes: AtomicU64,
}

/// Contribution of fragments to one block, which can be added again later without the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockPart {
    /// Number of the block.
    pub block: u64,
    /// Linear CRC of the fragments, shifted to the end of the block.
    pub linear: u64,
    /// Length of the fragments.
    pub len_bytes: u64,
}

/// Contribution of one rank to digests shared by several.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Additions {
    /// Length of all fragments.
    pub len_bytes: u64,
    /// Number and linear CRC of each block with a nonzero CRC.
    pub blocks: Vec<(u64, u64)>,
}

/// Result of [`RowBlockDigests`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDigests {
    /// Length of every block except the last.
    pub block_len_bytes: u64,
    /// Digest of the whole content.
    pub whole: Digest,
    /// Digest of each block.
    pub blocks: Vec<Digest>,
}

impl RowBlockDigests {
    /// Creates digests for content of `total_len_bytes` in blocks of `block_len_bytes` (at least 1; usually a multiple
    /// of the row length).
    pub fn new(block_len_bytes: u64, total_len_bytes: u64) -> Self {
        let block_len_bytes = block_len_bytes.max(1);
        let blocks = (0..total_len_bytes.div_ceil(block_len_bytes)).map(|_| AtomicU64::new(0)).collect();
        Self { block_len_bytes, total_len_bytes, blocks, added_bytes: AtomicU64::new(0) }
    }

    /// Returns the length of the content.
    pub fn total_len_bytes(&self) -> u64 {
        self.total_len_bytes
    }

    /// Adds a recorded contribution; see [`RowBlockDigests::add_box_noting`].
    ///
    /// # Errors
    /// As for [`RowBlockDigests::check_part`].
    pub fn add_part(&self, part: BlockPart) -> Result<()> {
        self.check_part(part)?;
        self.add_linear(part.block, part.linear);
        self.count_bytes(part.len_bytes);
        Ok(())
    }

    /// Checks that `part` can belong to these digests.
    ///
    /// # Errors
    /// If the block does not exist or is shorter than the part.
    pub fn check_part(&self, part: BlockPart) -> Result<()> {
        let start = part.block.saturating_mul(self.block_len_bytes);
        if part.block < self.blocks.len() as u64 && part.len_bytes <= self.block_end(part.block) - start {
            return Ok(());
        }
        let (len_bytes, total_bytes) = (part.len_bytes, self.total_len_bytes);
        Err(CoreError::FragmentOutside { offset_bytes: start, len_bytes, total_bytes })
    }

    /// Returns everything added here, for [`RowBlockDigests::add_additions`] on another rank.
    pub fn additions(&self) -> Additions {
        let linear = self.blocks.iter().map(|block| block.load(Ordering::Relaxed));
        Additions {
            len_bytes: self.added_bytes.load(Ordering::Relaxed),
            blocks: (0..).zip(linear).filter(|(_, linear)| *linear != 0).collect(),
        }
    }

    /// Adds another rank's contribution to the same content.
    ///
    /// # Errors
    /// If a block does not exist.
    pub fn add_additions(&self, additions: &Additions) -> Result<()> {
        for (block, linear) in &additions.blocks {
            self.check_part(BlockPart { block: *block, linear: *linear, len_bytes: 0 })?;
            self.add_linear(*block, *linear);
        }
        self.count_bytes(additions.len_bytes);
        Ok(())
    }

    /// Returns the digests.
    ///
    /// # Errors
    /// If not all bytes have been added.
    pub fn finish(&self) -> Result<BlockDigests> {
        let got_bytes = self.added_bytes.load(Ordering::Relaxed);
        if got_bytes != self.total_len_bytes {
            return Err(CoreError::DigestIncomplete { got_bytes, expected_bytes: self.total_len_bytes });
        }
        let blocks: Vec<_> = (0u64..)
            .zip(&self.blocks)
            .map(|(number, linear)| Digest {
                linear: linear.load(Ordering::Relaxed),
                len_bytes: self.block_end(number) - number * self.block_len_bytes,
            })
            .collect();
        let whole = blocks.iter().fold(Digest::default(), |whole, block| whole.then(*block));
        Ok(BlockDigests { block_len_bytes: self.block_len_bytes, whole, blocks })
    }

    /// Returns the published digest ([`Digest::crc64_nvme`]) of each block.
    ///
    /// # Errors
    /// If not all bytes have been added.
    pub fn blocks(&self) -> Result<Vec<u64>> {
        Ok(self.finish()?.blocks.into_iter().map(Digest::crc64_nvme).collect())
    }

    /// Returns the published digest ([`Digest::crc64_nvme`]) of the whole content.
    ///
    /// # Errors
    /// If not all bytes have been added.
    pub fn whole(&self) -> Result<u64> {
        Ok(self.finish()?.whole.crc64_nvme())
    }

    /// Returns the number of the block that contains the byte at `offset_bytes`.
    pub(super) fn block_of(&self, offset_bytes: u64) -> u64 {
        offset_bytes / self.block_len_bytes
    }

    /// Adds the linear CRC of fragments of block `number`, shifted to the end of the block.
    pub(super) fn add_linear(&self, number: u64, linear: u64) {
        if linear != 0 {
            self.blocks[number as usize].fetch_xor(linear, Ordering::Relaxed);
        }
    }

    /// Counts bytes that were added.
    pub(super) fn count_bytes(&self, len_bytes: u64) {
        self.added_bytes.fetch_add(len_bytes, Ordering::Relaxed);
    }

    /// Returns the end of block `number`, which may be past the last block.
    pub(super) fn block_end(&self, number: u64) -> u64 {
        number.saturating_add(1).saturating_mul(self.block_len_bytes).min(self.total_len_bytes)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_or_overlong_content_is_an_error() {
        let digests = RowBlockDigests::new(4, 10);
        digests.add(0, &[1; 6]).unwrap();
        assert!(matches!(digests.finish(), Err(CoreError::DigestIncomplete { got_bytes: 6, expected_bytes: 10 })));
        assert!(matches!(digests.add(8, &[0; 3]), Err(CoreError::FragmentOutside { .. })));
        assert!(matches!(digests.add(u64::MAX, &[0; 3]), Err(CoreError::FragmentOutside { .. })));
        let part = |block, len_bytes| BlockPart { block, linear: 1, len_bytes };
        for wrong in [part(3, 1), part(u64::MAX, 1), part(2, 3), part(0, 5)] {
            assert!(matches!(digests.add_part(wrong), Err(CoreError::FragmentOutside { .. })));
        }
        digests.add(6, &[1; 4]).unwrap();
        assert!(digests.finish().is_ok());
        let none = RowBlockDigests::new(4, 0).finish().unwrap();
        assert_eq!((none.blocks.len(), none.whole), (0, Digest::default()));
    }
}
