//! Decompressed baskets of a product: the values of a branch for consecutive entries, as stored together.

use std::ops::Range;

/// Consecutive baskets of one product.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Baskets {
    /// Baskets in the order of their entries.
    pub baskets: Vec<Basket>,
    /// Bytes of all entries, without gaps.
    pub bytes: Vec<u8>,
    /// Offsets of the entries of those baskets whose entries differ in length.
    pub offsets: Vec<u32>,
}

/// Position of a basket among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basket {
    /// Entries of the source that the basket holds.
    pub entries: Range<u64>,
    /// Range of the basket in [`Baskets::bytes`].
    pub bytes: Range<usize>,
    /// Range of the basket in [`Baskets::offsets`]: the offset of each entry in the basket's bytes, followed by the end
    /// of the last entry. `None` if all entries have the same length.
    pub offsets: Option<Range<usize>>,
}

impl Baskets {
    /// Appends the baskets of a source whose first entry is entry `start` of the whole.
    pub fn append(&mut self, later: Self, start: u64) {
        let (bytes, offsets) = (self.bytes.len(), self.offsets.len());
        let moved = |range: Range<usize>, by: usize| range.start + by..range.end + by;
        self.baskets.extend(later.baskets.into_iter().map(|basket| Basket {
            entries: basket.entries.start + start..basket.entries.end + start,
            bytes: moved(basket.bytes, bytes),
            offsets: basket.offsets.map(|range| moved(range, offsets)),
        }));
        match bytes == 0 && offsets == 0 {
            true => (self.bytes, self.offsets) = (later.bytes, later.offsets),
            false => {
                self.bytes.extend_from_slice(&later.bytes);
                self.offsets.extend_from_slice(&later.offsets);
            }
        }
    }
}
