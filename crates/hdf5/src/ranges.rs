//! Sets of byte ranges of a file, collected in any order, overlapping or not, then counted.
//!
//! Used only to classify the bytes of a file, not to place data.

/// A set of byte ranges. Adjacent ranges added one after another are merged at once, so that data written in order
/// takes no extra memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges {
    ranges: Vec<(u64, u64)>,
    sorted_len: usize,
}

/// Number of ranges kept unsorted before they are merged, at 16 bytes each: 64 MiB.
const MAX_UNSORTED: usize = 1 << 22;

impl Ranges {
    /// Adds `len_bytes` bytes at `start`, cut off where the end exceeds 64 bits.
    pub fn push(&mut self, start: u64, len_bytes: u64) {
        let end = start.saturating_add(len_bytes);
        if start == end {
            return;
        }
        if let Some(last) = self.ranges.last_mut()
            && last.0 <= start
            && start <= last.1
        {
            last.1 = last.1.max(end);
            return;
        }
        self.ranges.push((start, end));
        if self.ranges.len() - self.sorted_len >= MAX_UNSORTED {
            self.join();
        }
    }

    /// Adds the ranges of `other`.
    pub fn extend(&mut self, other: &Self) {
        other.ranges.iter().for_each(|&(start, end)| self.push(start, end - start));
    }

    /// Returns the number of bytes below `limit` that lie in any range.
    pub fn len_bytes_below(&mut self, limit: u64) -> u64 {
        self.join();
        self.ranges.iter().map(|&(start, end)| end.min(limit).saturating_sub(start)).sum()
    }

    /// Returns the parts of `0..limit` outside all ranges, in ascending order, as start and end.
    pub fn gaps(&mut self, limit: u64) -> impl Iterator<Item = (u64, u64)> {
        self.join();
        let starts = std::iter::once(0).chain(self.ranges.iter().map(|range| range.1));
        let ends = self.ranges.iter().map(|range| range.0).chain(std::iter::once(limit));
        starts.zip(ends).map(move |(start, end)| (start, end.min(limit))).filter(|(start, end)| start < end)
    }

    /// Sorts the ranges and merges those that overlap or touch.
    fn join(&mut self) {
        self.ranges.sort_unstable();
        let mut kept = 0_usize;
        for place in 0..self.ranges.len() {
            let (start, end) = self.ranges[place];
            match kept.checked_sub(1).map(|last| &mut self.ranges[last]) {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => {
                    self.ranges[kept] = (start, end);
                    kept += 1;
                }
            }
        }
        self.ranges.truncate(kept);
        self.sorted_len = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_are_joined_at_once() {
        let mut ranges = Ranges::default();
        (0..1000).for_each(|number| ranges.push(number * 10, 10));
        assert_eq!(ranges.ranges, [(0, 10_000)]);
    }

    #[test]
    fn ranges_beyond_64_bits_are_cut_off() {
        let mut ranges = Ranges::default();
        ranges.push(u64::MAX - 1, 10);
        assert_eq!(ranges.len_bytes_below(u64::MAX), 1);
        assert_eq!(ranges.gaps(100).collect::<Vec<_>>(), [(0, 100)]);
    }

    proptest! {
        #[test]
        fn bytes_are_counted_once(pushed in prop::collection::vec((0_u64..200, 0_u64..30), 0..40), limit in 0_u64..240) {
            let mut ranges = Ranges::default();
            let mut seen = vec![false; 240];
            for (start, len) in pushed {
                ranges.push(start, len);
                seen[start as usize..(start + len) as usize].fill(true);
            }
            let below = &seen[..limit as usize];
            prop_assert_eq!(ranges.len_bytes_below(limit), below.iter().filter(|&&hit| hit).count() as u64);
            let mut free = vec![true; limit as usize];
            let mut last_end = None;
            for (start, end) in ranges.gaps(limit) {
                prop_assert!(last_end < Some(start) || last_end.is_none());
                last_end = Some(end);
                free[start as usize..end as usize].fill(false);
            }
            prop_assert_eq!(&free, below);
        }
    }
}
