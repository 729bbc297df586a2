//! Content of block-wise digests: bytes and boxes of arrays, as the runs that they consist of.

use super::blocks::{BlockPart, RowBlockDigests};
use super::runs::{Fragments, Runs};
use super::{Digest, shift};
use crate::error::{CoreError, Result};
use crate::plan::extent::{BoxSource, Extent};
use crate::plan::lines::{Lines, Place};

impl RowBlockDigests {
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

    /// Adds the bytes at `offset_bytes` with their [`fragment`](super::fragment) CRC, so that they are read again only
    /// if they cross a block boundary.
    ///
    /// # Errors
    /// If the bytes extend past the end.
    pub fn add_fragment(&self, offset_bytes: u64, bytes: &[u8], fragment: u64) -> Result<()> {
        let len_bytes = bytes.len() as u64;
        let block = self.part_of(offset_bytes);
        if offset_bytes.checked_add(len_bytes).is_none_or(|end| end > self.part_end(block)) || bytes.is_empty() {
            return self.add(offset_bytes, bytes);
        }
        let behind = self.part_end(block) - offset_bytes - len_bytes;
        self.add_linear(block, shift(fragment, behind));
        self.count_bytes(len_bytes);
        Ok(())
    }

    /// Adds the digest of the first bytes of the content.
    ///
    /// # Errors
    /// If they extend past the first block, or past the first cut.
    pub fn add_start(&self, digest: Digest) -> Result<()> {
        let part = digest.part(0);
        self.check_part(part)?;
        self.add_linear(0, shift(part.linear, self.part_end(0) - part.len_bytes));
        self.count_bytes(part.len_bytes);
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
                len_bytes: usize::try_from(self.total_len_bytes()).unwrap_or(usize::MAX),
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
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::digest::{Additions, Digest, fragment};
    use crate::plan::ArrayPlan;
    use crate::ranks::threads::Threads;
    use proptest::prelude::*;

    /// Tests tiles with runs that are short, near each other or far apart, many or few, and that cross blocks.
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
            cuts in prop::collection::vec(0u64..300, 0..5),
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
                let digests = RowBlockDigests::with_cuts(block_len, array.len_bytes(), cuts.clone());
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
                        let (earlier, mut parts) = (RowBlockDigests::with_cuts(block_len, array.len_bytes(), cuts.clone()), Vec::new());
                        let note = &mut |part| parts.push(part);
                        earlier.add_box_noting(&array.shape, &extent, source, element, note).unwrap();
                        parts.into_iter().for_each(|part| digests.add_part(part).unwrap());
                    }
                }
                digests.additions()
            });
            let all = RowBlockDigests::with_cuts(block_len, content.len() as u64, cuts.clone());
            results.iter().for_each(|additions| all.add_additions(additions).unwrap());
            let beyond = Additions { len_bytes: 0, blocks: vec![(all.part_of(content.len() as u64 - 1) + 1, 1)] };
            prop_assert!(all.add_additions(&beyond).is_err());
            let got = all.finish().unwrap();
            prop_assert_eq!(got.whole, Digest::of(&content));
            let want: Vec<_> = content.chunks(block_len as usize).map(Digest::of).collect();
            prop_assert_eq!(got.blocks, want);
            for (start, end) in cuts.iter().flat_map(|start| cuts.iter().map(move |end| (*start, *end))) {
                let run = content.get(start as usize..end as usize);
                prop_assert_eq!(all.between(start..end), run.map(Digest::of), "{}..{}", start, end);
            }
        }
    }
}
