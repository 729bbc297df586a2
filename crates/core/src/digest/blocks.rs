//! Block-wise digests of an array's rows, computed from fragments that arrive in any order and from any thread.
//!
//! Invariant: the result depends only on the content and the block length.

use super::{Digest, Shift, fragment, shift};
use crate::error::{CoreError, Result};
use crate::plan::extent::{BoxSource, Extent, product};
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
        let mut run = Run::new(self, &mut forget);
        run.add(offset_bytes, bytes)?;
        run.flush();
        Ok(())
    }

    /// Adds a recorded contribution; see [`RowBlockDigests::add_box_noting`].
    ///
    /// # Errors
    /// As for [`RowBlockDigests::check_part`].
    pub fn add_part(&self, part: BlockPart) -> Result<()> {
        self.check_part(part)?;
        self.blocks[part.block as usize].fetch_xor(part.linear, Ordering::Relaxed);
        self.added_bytes.fetch_add(part.len_bytes, Ordering::Relaxed);
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

    /// Adds the bytes at `offset_bytes` with their [`fragment`] CRC, so that they are read again only if they cross a
    /// block boundary.
    ///
    /// # Errors
    /// If the bytes extend past the end.
    pub fn add_fragment(&self, offset_bytes: u64, bytes: &[u8], fragment: u64) -> Result<()> {
        let len_bytes = bytes.len() as u64;
        let block = offset_bytes / self.block_len_bytes;
        if offset_bytes.checked_add(len_bytes).is_none_or(|end| end > self.block_end(block)) || bytes.is_empty() {
            return self.add(offset_bytes, bytes);
        }
        let behind = self.block_end(block) - offset_bytes - len_bytes;
        self.blocks[block as usize].fetch_xor(shift(fragment, behind), Ordering::Relaxed);
        self.added_bytes.fetch_add(len_bytes, Ordering::Relaxed);
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
        let rank = shape.len();
        let whole = Extent::whole(shape);
        let inside = Extent::whole(source.shape).contains(&Extent::new(source.origin, &extent.count));
        let needed = product(source.shape).and_then(|count| count.checked_mul(element_len_bytes as u64));
        if !whole.contains(extent) || !inside || needed.is_none_or(|needed| needed > source.bytes.len() as u64) {
            return Err(CoreError::BoxOutside {
                side: "source",
                start: source.origin.to_vec(),
                count: extent.count.to_vec(),
                shape: source.shape.to_vec(),
                len_bytes: source.bytes.len(),
            });
        }
        if extent.is_empty() {
            return Ok(());
        }
        // Trailing axes that are complete on both sides are merged into one run.
        let mut outer = rank;
        let mut run_elements = 1u64;
        while outer > 0 {
            outer -= 1;
            run_elements *= extent.count[outer];
            if extent.count[outer] != shape[outer] || extent.count[outer] != source.shape[outer] {
                break;
            }
        }
        let element_len = element_len_bytes as u64;
        let run_len = (run_elements * element_len) as usize;
        let mut run = Run::new(self, note);
        let mut at = crate::plan::extent::Coordinates::from_elem(0, outer);
        loop {
            let (mut offset, mut from) = (0u64, 0u64);
            for (axis, along) in shape.iter().enumerate() {
                let step = at.get(axis).copied().unwrap_or(0);
                offset = offset * along + extent.start[axis] + step;
                from = from * source.shape[axis] + source.origin[axis] + step;
            }
            let from = (from * element_len) as usize;
            run.add(offset * element_len, &source.bytes[from..from + run_len])?;
            let mut axis = outer;
            loop {
                if axis == 0 {
                    run.flush();
                    return Ok(());
                }
                axis -= 1;
                at[axis] += 1;
                if at[axis] < extent.count[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
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
            self.blocks[*block as usize].fetch_xor(*linear, Ordering::Relaxed);
        }
        self.added_bytes.fetch_add(additions.len_bytes, Ordering::Relaxed);
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

    /// Returns the end of block `number`, which may be past the last block.
    fn block_end(&self, number: u64) -> u64 {
        number.saturating_add(1).saturating_mul(self.block_len_bytes).min(self.total_len_bytes)
    }
}

/// Length of a fragment up to which it is joined with its neighbours: computing its CRC alone takes as long as computing
/// that of a thousand bytes.
const SHORT_LEN_BYTES: usize = 64;

/// Longest gap between joined fragments.
const MAX_GAP_LEN_BYTES: u64 = 512;

/// Length up to which fragments are joined.
const JOINED_LEN_BYTES: usize = 16 << 10;

/// Fragments of one block in ascending order, combined before being shifted to the end of the block. Fragments at a
/// fixed stride, such as the rows of a tile, then cost one multiplication each. Short ones are joined, with zeros in
/// the gaps: zeros do not contribute to a linear CRC.
struct Run<'a> {
    digests: &'a RowBlockDigests,
    block: u64,
    linear: u64,
    /// End offset of the bytes covered by `linear`.
    end: u64,
    step_len_bytes: u64,
    step: Shift,
    /// Number of bytes added to the block.
    len_bytes: u64,
    added_bytes: u64,
    /// Joined fragments, which lie in one block, and the offset of the first.
    joined: Vec<u8>,
    joined_offset_bytes: u64,
    /// Number of bytes of the joined fragments, without gaps.
    joined_len_bytes: u64,
    note: &'a mut dyn FnMut(BlockPart),
}

impl<'a> Run<'a> {
    fn new(digests: &'a RowBlockDigests, note: &'a mut dyn FnMut(BlockPart)) -> Self {
        Self {
            digests,
            block: 0,
            linear: 0,
            end: 0,
            step_len_bytes: 0,
            step: Shift::over(0),
            len_bytes: 0,
            added_bytes: 0,
            joined: Vec::new(),
            joined_offset_bytes: 0,
            joined_len_bytes: 0,
            note,
        }
    }

    fn add(&mut self, offset_bytes: u64, bytes: &[u8]) -> Result<()> {
        let (total_bytes, len_bytes) = (self.digests.total_len_bytes, bytes.len() as u64);
        if offset_bytes.checked_add(len_bytes).is_none_or(|end| end > total_bytes) {
            return Err(CoreError::FragmentOutside { offset_bytes, len_bytes, total_bytes });
        }
        self.added_bytes += len_bytes;
        if bytes.len() <= SHORT_LEN_BYTES {
            self.join(offset_bytes, bytes);
            return Ok(());
        }
        self.flush_joined();
        let (mut offset, mut rest) = (offset_bytes, bytes);
        while !rest.is_empty() {
            let room = self.digests.block_end(offset / self.digests.block_len_bytes) - offset;
            let (here, behind) = rest.split_at(usize::try_from(room).unwrap_or(usize::MAX).min(rest.len()));
            self.append(offset, here, here.len() as u64);
            (offset, rest) = (offset + here.len() as u64, behind);
        }
        Ok(())
    }

    /// Adds a short fragment to the joined ones, or begins new ones with it.
    fn join(&mut self, offset_bytes: u64, bytes: &[u8]) {
        let end = offset_bytes + bytes.len() as u64;
        let joined_end = self.joined_offset_bytes + self.joined.len() as u64;
        let block_end = self.digests.block_end(self.joined_offset_bytes / self.digests.block_len_bytes);
        let follows = !self.joined.is_empty()
            && end <= block_end
            && offset_bytes.checked_sub(joined_end).is_some_and(|gap| gap <= MAX_GAP_LEN_BYTES)
            && self.joined.len() < JOINED_LEN_BYTES;
        if follows {
            self.joined.resize((offset_bytes - self.joined_offset_bytes) as usize, 0);
            self.joined.extend_from_slice(bytes);
            self.joined_len_bytes += bytes.len() as u64;
            return;
        }
        self.flush_joined();
        let (mut offset, mut rest) = (offset_bytes, bytes);
        loop {
            let room = self.digests.block_end(offset / self.digests.block_len_bytes) - offset;
            if rest.len() as u64 <= room {
                break;
            }
            let (here, behind) = rest.split_at(room as usize);
            self.append(offset, here, room);
            (offset, rest) = (offset + room, behind);
        }
        self.joined.extend_from_slice(rest);
        (self.joined_offset_bytes, self.joined_len_bytes) = (offset, rest.len() as u64);
    }

    fn flush_joined(&mut self) {
        let joined = std::mem::take(&mut self.joined);
        if !joined.is_empty() {
            self.append(self.joined_offset_bytes, &joined, self.joined_len_bytes);
        }
        self.joined = joined;
        self.joined.clear();
    }

    /// Appends bytes that lie in one block, of which `len_bytes` are not gaps.
    fn append(&mut self, offset_bytes: u64, bytes: &[u8], len_bytes: u64) {
        let block = offset_bytes / self.digests.block_len_bytes;
        let end = offset_bytes + bytes.len() as u64;
        if block != self.block || end < self.end {
            self.flush_block();
            (self.block, self.end) = (block, end);
        }
        if end - self.end != self.step_len_bytes {
            self.step_len_bytes = end - self.end;
            self.step = Shift::over(self.step_len_bytes);
        }
        let carried = if self.linear == 0 { 0 } else { self.step.apply(self.linear) };
        self.linear = carried ^ fragment(bytes);
        self.len_bytes += len_bytes;
        self.end = end;
    }

    fn flush_block(&mut self) {
        if self.len_bytes == 0 {
            return;
        }
        let behind = self.digests.block_end(self.block) - self.end;
        let linear = shift(self.linear, behind);
        if linear != 0 {
            self.digests.blocks[self.block as usize].fetch_xor(linear, Ordering::Relaxed);
        }
        (self.note)(BlockPart { block: self.block, linear, len_bytes: self.len_bytes });
        (self.linear, self.len_bytes) = (0, 0);
    }

    fn flush(mut self) {
        self.flush_joined();
        self.flush_block();
        self.digests.added_bytes.fetch_add(self.added_bytes, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
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
