//! Block-wise digests of an array's rows, computed from linear CRCs that arrive in any order and from any thread.
//!
//! Blocks may be cut into parts, which are counted instead of blocks while content is added, so that digests of other
//! runs of bytes are known as well. Invariant: the result depends only on the content and the block length.

use super::Digest;
use crate::error::{CoreError, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Block-wise digests of an array's content, gathered from fragments in any order.
#[derive(Debug)]
pub struct RowBlockDigests {
    block_len_bytes: u64,
    total_len_bytes: u64,
    /// Cuts inside blocks, in order.
    cuts: Vec<Cut>,
    /// Linear CRC of each part of a block, in order; of each block, if there are no cuts.
    parts: Vec<AtomicU64>,
    added_bytes: AtomicU64,
}

/// An offset at which a block is cut.
#[derive(Debug, Clone, Copy)]
struct Cut {
    offset_bytes: u64,
    /// Number of the part that ends there.
    part: u64,
}

/// Contribution of fragments to one block, which can be added again later without the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockPart {
    /// Number of the block; of the part, if blocks are cut.
    pub block: u64,
    /// Linear CRC of the fragments, shifted to the end of the block or part.
    pub linear: u64,
    /// Length of the fragments.
    pub len_bytes: u64,
}

/// Contribution of one rank to digests shared by several.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Additions {
    /// Length of all fragments.
    pub len_bytes: u64,
    /// Number and linear CRC of each block or part with a nonzero CRC.
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
        Self::with_cuts(block_len_bytes, total_len_bytes, Vec::new())
    }

    /// Creates digests whose blocks are also cut at these offsets, so that [`RowBlockDigests::between`] knows the
    /// digests of runs that begin and end there.
    pub fn with_cuts(block_len_bytes: u64, total_len_bytes: u64, mut cuts: Vec<u64>) -> Self {
        let block_len_bytes = block_len_bytes.max(1);
        cuts.retain(|cut| *cut < total_len_bytes && !cut.is_multiple_of(block_len_bytes));
        cuts.sort_unstable();
        cuts.dedup();
        let cut =
            |(before, offset_bytes): (u64, u64)| Cut { offset_bytes, part: offset_bytes / block_len_bytes + before };
        let cuts: Vec<Cut> = (0..).zip(cuts).map(cut).collect();
        let count = total_len_bytes.div_ceil(block_len_bytes) + cuts.len() as u64;
        let parts = (0..count).map(|_| AtomicU64::new(0)).collect();
        Self { block_len_bytes, total_len_bytes, cuts, parts, added_bytes: AtomicU64::new(0) }
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
        let start = self.part_start(part.block);
        if part.block < self.parts.len() as u64 && part.len_bytes <= self.part_end(part.block) - start {
            return Ok(());
        }
        let (len_bytes, total_bytes) = (part.len_bytes, self.total_len_bytes);
        Err(CoreError::FragmentOutside { offset_bytes: start, len_bytes, total_bytes })
    }

    /// Returns everything added here, for [`RowBlockDigests::add_additions`] on another rank.
    pub fn additions(&self) -> Additions {
        let linear = self.parts.iter().map(|block| block.load(Ordering::Relaxed));
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
        let mut blocks: Vec<Digest> = Vec::with_capacity(self.parts.len() - self.cuts.len());
        for number in 0..self.parts.len() as u64 {
            let part = self.part(number);
            match blocks.last_mut() {
                Some(block) if !self.part_start(number).is_multiple_of(self.block_len_bytes) => {
                    *block = block.then(part)
                }
                _ => blocks.push(part),
            }
        }
        let whole = blocks.iter().fold(Digest::default(), |whole, block| whole.then(*block));
        Ok(BlockDigests { block_len_bytes: self.block_len_bytes, whole, blocks })
    }

    /// Returns the digest of a run of bytes; `None` if not all bytes have been added, or if the run does not begin and
    /// end at the ends of blocks or at cuts.
    pub fn between(&self, bytes: Range<u64>) -> Option<Digest> {
        if self.added_bytes.load(Ordering::Relaxed) != self.total_len_bytes || bytes.end > self.total_len_bytes {
            return None;
        }
        let (mut at, mut digest) = (bytes.start, Digest::default());
        while at < bytes.end {
            let number = self.part_of(at);
            if self.part_start(number) != at {
                return None;
            }
            digest = digest.then(self.part(number));
            at = self.part_end(number);
        }
        (at == bytes.end).then_some(digest)
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

    /// Returns the number of the part that contains the byte at `offset_bytes`.
    pub fn part_of(&self, offset_bytes: u64) -> u64 {
        offset_bytes / self.block_len_bytes + self.cuts.partition_point(|cut| cut.offset_bytes <= offset_bytes) as u64
    }

    /// Adds the linear CRC of fragments of part `number`, shifted to the end of the part.
    pub(super) fn add_linear(&self, number: u64, linear: u64) {
        if linear != 0 {
            self.parts[number as usize].fetch_xor(linear, Ordering::Relaxed);
        }
    }

    /// Counts bytes that were added.
    pub(super) fn count_bytes(&self, len_bytes: u64) {
        self.added_bytes.fetch_add(len_bytes, Ordering::Relaxed);
    }

    /// Returns the end of part `number`, which may be past the last part.
    pub(super) fn part_end(&self, number: u64) -> u64 {
        let cuts = self.cuts_before(number);
        let end_of_block = (number - cuts as u64).saturating_add(1).saturating_mul(self.block_len_bytes);
        let end = end_of_block.min(self.total_len_bytes);
        self.cuts.get(cuts).map_or(end, |cut| end.min(cut.offset_bytes))
    }

    fn part_start(&self, number: u64) -> u64 {
        let cuts = self.cuts_before(number);
        let start_of_block = (number - cuts as u64).saturating_mul(self.block_len_bytes);
        self.cuts[..cuts].last().map_or(start_of_block, |cut| start_of_block.max(cut.offset_bytes))
    }

    /// Returns the number of cuts at or before the start of part `number`.
    fn cuts_before(&self, number: u64) -> usize {
        self.cuts.partition_point(|cut| cut.part < number)
    }

    fn part(&self, number: u64) -> Digest {
        let linear = self.parts[number as usize].load(Ordering::Relaxed);
        Digest { linear, len_bytes: self.part_end(number) - self.part_start(number) }
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
