//! Block-wise digests of an array's rows, computed from fragments that arrive in any order and from any thread.
//!
//! Invariant: the result depends only on the content and the block length.

use super::runs::{Fragments, Runs};
use super::{Digest, shift};
use crate::error::{CoreError, Result};
use crate::plan::extent::{BoxSource, Extent};
use crate::plan::lines::{Lines, Place};
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

    /// Adds the bytes at `offset_bytes`. Every byte must be added exactly once.
    ///
    /// # Errors
    /// If the bytes extend past the end.
    pub fn add(&self, offset_bytes: u64, bytes: &[u8]) -> Result<()> {
        let mut forget = |_| {};
        let mut fragments = Fragments::new(self, &mut forget);
        fragments.add(Runs::one(offset_bytes, bytes))?;
        fragments.flush();
        Ok(())
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

    /// Adds the bytes at `offset_bytes` with their [`fragment`](super::fragment) CRC, so that they are read again only if they cross a
    /// block boundary.
    ///
    /// # Errors
    /// If the bytes extend past the end.
    pub fn add_fragment(&self, offset_bytes: u64, bytes: &[u8], fragment: u64) -> Result<()> {
        let len_bytes = bytes.len() as u64;
        let block = self.block_of(offset_bytes);
        if offset_bytes.checked_add(len_bytes).is_none_or(|end| end > self.block_end(block)) || bytes.is_empty() {
            return self.add(offset_bytes, bytes);
        }
        let behind = self.block_end(block) - offset_bytes - len_bytes;
        self.add_linear(block, shift(fragment, behind));
        self.count_bytes(len_bytes);
        Ok(())
    }

    /// Adds a box of an array whose row-major content is digested. `extent` is the position of the box in the array of
    /// shape `shape`; `source` holds its elements (for example a tile).
    ///
    /// # Errors
    /// If the box is outside the array or the buffer.
    pub fn add_box(
        &self,
        shape: &[u64],
        extent: &Extent,
        source: BoxSource<'_>,
        element_len_bytes: usize,
    ) -> Result<()> {
        self.add_box_noting(shape, extent, source, element_len_bytes, &mut |_| {})
    }

    /// Adds a box like [`RowBlockDigests::add_box`] and passes each block's contribution to `note`, for
    /// [`RowBlockDigests::add_part`] in a later run.
    ///
    /// # Errors
    /// If the box is outside the array or the buffer.
    pub fn add_box_noting(
        &self,
        shape: &[u64],
        extent: &Extent,
        source: BoxSource<'_>,
        element_len_bytes: usize,
        note: &mut dyn FnMut(BlockPart),
    ) -> Result<()> {
        source.check(&extent.count, element_len_bytes)?;
        if !Extent::whole(shape).contains(extent) {
            return Err(CoreError::BoxOutside {
                side: "target",
                start: extent.start.to_vec(),
                count: extent.count.to_vec(),
                shape: shape.to_vec(),
                len_bytes: usize::try_from(self.total_len_bytes).unwrap_or(usize::MAX),
            });
        }
        if extent.is_empty() {
            return Ok(());
        }
        let places = [Place { shape, origin: &extent.start }, Place { shape: source.shape, origin: source.origin }];
        let lines = Lines::new(&extent.count, element_len_bytes as u64, places);
        let mut fragments = Fragments::new(self, note);
        lines.try_for_each(|[offset_bytes, from]| {
            fragments.add(Runs {
                offset_bytes,
                stride: lines.strides[0],
                bytes: &source.bytes[from as usize..],
                stride_in_bytes: lines.strides[1] as usize,
                len_bytes: lines.run_len_bytes as usize,
                count: lines.run_count,
            })
        })?;
        fragments.flush();
        Ok(())
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
    use crate::digest::fragment;
    use crate::plan::ArrayPlan;
    use crate::ranks::threads::Threads;
    use proptest::prelude::*;

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

    /// Tiles whose runs are short, near each other or far apart, many or few, and cross blocks.
    #[test]
    fn lines_of_runs() {
        for (shape, tile_shape, element) in [
            (vec![900, 700], vec![900, 1], 4),
            (vec![900, 20], vec![500, 3], 8),
            (vec![900, 20], vec![500, 3], 1),
            (vec![70, 40, 60], vec![70, 16, 16], 4),
            (vec![70, 40, 60], vec![9, 40, 1], 2),
            (vec![2000, 1, 5, 1], vec![2000, 1, 2, 1], 8),
            (vec![3, 400, 90], vec![1, 300, 50], 12),
            (vec![5000, 3], vec![1700, 2], 3),
        ] {
            let array = ArrayPlan { shape, tile_shape, element_len_bytes: element, ..ArrayPlan::default() };
            let content: Vec<u8> = (0..array.len_bytes()).map(|i| (i.wrapping_mul(0x9E37_79B9) >> 7) as u8).collect();
            for block_len in [1, 100, 4096, 1 << 20] {
                let digests = RowBlockDigests::new(block_len, array.len_bytes());
                for index in 0..array.tile_count() {
                    let extent = array.tile_extent(index);
                    let source = BoxSource { bytes: &content, shape: &array.shape, origin: &extent.start };
                    digests.add_box(&array.shape, &extent, source, element as usize).unwrap();
                }
                let got = digests.finish().unwrap();
                let want: Vec<_> = content.chunks(block_len as usize).map(Digest::of).collect();
                assert!(got.blocks == want, "{:?} in blocks of {block_len}", array.shape);
                assert_eq!(got.whole, Digest::of(&content));
            }
        }
    }

    proptest! {
        #[test]
        fn the_tiling_and_its_order_do_not_matter(
            axes in prop::collection::vec((1u64..9, 1u64..6), 1..4),
            element in 1usize..4,
            block_len in 1u64..100,
            seed in any::<u64>(),
        ) {
            let array = ArrayPlan {
                shape: axes.iter().map(|a| a.0).collect(),
                tile_shape: axes.iter().map(|a| a.1).collect(),
                element_len_bytes: element as u64,
                ..ArrayPlan::default()
            };
            let content: Vec<u8> = (0..array.len_bytes()).map(|i| (i.wrapping_mul(seed | 1) >> 3) as u8).collect();
            let mut order: Vec<u64> = (0..array.tile_count()).collect();
            order.sort_by_key(|index| index.wrapping_mul(seed | 1).rotate_left(17));
            // Three ranks share the tiles.
            let results = Threads::run(3, |ranks| {
                let digests = RowBlockDigests::new(block_len, array.len_bytes());
                for (turn, index) in order.iter().enumerate() {
                    let extent = array.tile_extent(*index);
                    if turn % 3 != ranks.rank() {
                        continue;
                    }
                    let mut tile = vec![0xAA; array.tile_len_bytes() as usize];
                    let zeros = vec![0; axes.len()];
                    crate::plan::extent::copy_box(
                        BoxSource { bytes: &content, shape: &array.shape, origin: &extent.start },
                        crate::plan::extent::BoxTarget { bytes: &mut tile, shape: &array.tile_shape, origin: &zeros },
                        &extent.count,
                        element,
                    ).unwrap();
                    let source = BoxSource { bytes: &tile, shape: &array.tile_shape, origin: &zeros };
                    if axes.len() == 1 {
                        let here = &tile[..(extent.count[0] * element as u64) as usize];
                        digests.add_fragment(extent.start[0] * element as u64, here, fragment(here)).unwrap();
                    } else if turn % 2 == 0 {
                        digests.add_box(&array.shape, &extent, source, element).unwrap();
                    } else {
                        // The contributions recorded by an earlier run are equivalent to the bytes.
                        let (earlier, mut parts) = (RowBlockDigests::new(block_len, array.len_bytes()), Vec::new());
                        let note = &mut |part| parts.push(part);
                        earlier.add_box_noting(&array.shape, &extent, source, element, note).unwrap();
                        parts.into_iter().for_each(|part| digests.add_part(part).unwrap());
                    }
                }
                digests.additions()
            });
            let all = RowBlockDigests::new(block_len, content.len() as u64);
            results.iter().for_each(|additions| all.add_additions(additions).unwrap());
            let beyond = Additions { len_bytes: 0, blocks: vec![(all.blocks.len() as u64, 1)] };
            prop_assert!(all.add_additions(&beyond).is_err());
            let got = all.finish().unwrap();
            prop_assert_eq!(got.whole, Digest::of(&content));
            let want: Vec<_> = content.chunks(block_len as usize).map(Digest::of).collect();
            prop_assert_eq!(got.blocks, want);
        }
    }
}
