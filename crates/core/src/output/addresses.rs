//! Allocation of addresses in each output file.
//!
//! Without arenas, bytes are placed back to back. With [`Arenas`], a lane takes its bytes from its own arena and starts
//! a new one when that is full; a new arena directly after the lane's previous one continues it. Invariants: allocated
//! ranges never overlap, and they depend only on the sequence of lengths and lanes requested before.

use crate::output::arenas::Arenas;
use std::collections::BTreeMap;

/// The next free address of each output file.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    start: u64,
    next: BTreeMap<u32, u64>,
    arenas: Option<Arenas>,
    /// Unused part of the current arena of each file and lane.
    left: BTreeMap<(u32, u32), FreeSpan>,
    len_bytes: u64,
}

/// Unused part of an arena.
#[derive(Debug, Clone, Copy)]
struct FreeSpan {
    next: u64,
    end: u64,
}

impl Addresses {
    /// Creates allocators that begin every file at `start` or, with arenas, at the first stripe boundary after it.
    pub(crate) fn new(start: u64, arenas: Option<Arenas>) -> Self {
        Self { start, next: BTreeMap::new(), arenas, left: BTreeMap::new(), len_bytes: 0 }
    }

    /// Returns whether the tiles of a batch may be placed apart, in which case each needs its own address.
    pub(crate) fn are_by_tile(&self) -> bool {
        self.arenas.is_some()
    }

    /// Allocates the next `len_bytes` of `file` for `lane`; `None` if addresses overflow.
    pub(crate) fn take(&mut self, file: u32, lane: u32, len_bytes: u64) -> Option<u64> {
        let address = match self.arenas {
            Some(arenas) => self.take_in_arena(arenas, file, lane, len_bytes)?,
            None => {
                let next = self.next.entry(file).or_insert(self.start);
                let address = *next;
                *next = address.checked_add(len_bytes)?;
                address
            }
        };
        self.len_bytes = self.len_bytes.saturating_add(len_bytes);
        Some(address)
    }

    fn take_in_arena(&mut self, arenas: Arenas, file: u32, lane: u32, len_bytes: u64) -> Option<u64> {
        let first = self.start.checked_next_multiple_of(arenas.stripe_len_bytes)?;
        let free = self.next.entry(file).or_insert(first);
        let left = self.left.entry((file, lane)).or_insert(FreeSpan { next: *free, end: *free });
        if left.end - left.next < len_bytes {
            if left.end != *free {
                *left = FreeSpan { next: *free, end: *free };
            }
            let missing = (len_bytes - (left.end - left.next)).checked_next_multiple_of(arenas.stripe_len_bytes)?;
            *free = free.checked_add(missing.max(arenas.arena_len_bytes))?;
            left.end = *free;
        }
        let address = left.next;
        left.next += len_bytes;
        Some(address)
    }

    /// Returns the address after all allocations in the last file.
    pub(crate) fn end_address(&self) -> u64 {
        self.next.last_key_value().map_or(self.start, |(file, _)| self.end_of(*file))
    }

    /// Returns the number of unallocated bytes between the first and the last allocated address, summed over all files.
    pub(crate) fn unused_len_bytes(&self) -> u64 {
        let spans = self.next.keys().map(|file| self.end_of(*file).saturating_sub(self.start));
        spans.fold(0, u64::saturating_add).saturating_sub(self.len_bytes)
    }

    fn end_of(&self, file: u32) -> u64 {
        let ends = self.left.range((file, 0)..=(file, u32::MAX)).map(|(_, left)| left.next);
        ends.max().or_else(|| self.next.get(&file).copied()).unwrap_or(self.start)
    }

    /// Returns the number of bytes allocated in all files.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_have_their_own_addresses() {
        let mut addresses = Addresses::new(100, None);
        assert_eq!(addresses.end_address(), 100);
        assert_eq!(addresses.take(0, 0, 5), Some(100));
        assert_eq!(addresses.take(1, 0, 7), Some(100));
        assert_eq!(addresses.take(0, 0, 1), Some(105));
        assert_eq!((addresses.end_address(), addresses.len_bytes()), (107, 13));
        assert_eq!(addresses.take(1, 0, u64::MAX), None);
    }

    #[test]
    fn lanes_have_their_own_stripes() {
        let arenas = Arenas { stripe_len_bytes: 10, arena_len_bytes: 20, lanes: 2 };
        let mut addresses = Addresses::new(5, Some(arenas));
        assert_eq!(addresses.end_address(), 5);
        let mut take = |lane, len_bytes| addresses.take(0, lane, len_bytes).unwrap();
        // The next arena belongs to the same lane, so it continues the previous one.
        assert_eq!([take(0, 15), take(0, 15), take(1, 1), take(0, 5)], [10, 25, 50, 40]);
        // The next arena belongs to another lane, so the rest stays unused.
        assert_eq!([take(0, 6), take(1, 19), take(1, 21), take(1, 9)], [70, 51, 90, 111]);
        assert_eq!((addresses.end_address(), addresses.len_bytes()), (120, 91));
        assert_eq!(addresses.unused_len_bytes(), 120 - 5 - 91);
        assert_eq!(addresses.take(0, 0, u64::MAX), None);
        let mut late = Addresses::new(u64::MAX, Some(arenas));
        assert_eq!(late.take(0, 0, 1), None);
    }

    proptest! {
        #[test]
        fn no_stripe_has_two_lanes_and_nothing_overlaps(
            start in 0u64..100,
            stripe_len_bytes in 1u64..50,
            stripes in 1u64..4,
            taken in prop::collection::vec((0u32..3, 0u64..200), 0..200),
        ) {
            let arena_len_bytes = stripe_len_bytes * stripes;
            let mut addresses = Addresses::new(start, Some(Arenas { stripe_len_bytes, arena_len_bytes, lanes: 3 }));
            let mut owners = BTreeMap::new();
            let mut bytes = std::collections::BTreeSet::new();
            for (lane, len_bytes) in taken {
                let address = addresses.take(0, lane, len_bytes).unwrap();
                prop_assert!(address >= start && address + len_bytes <= addresses.end_address());
                for byte in address..address + len_bytes {
                    prop_assert!(bytes.insert(byte));
                    prop_assert_eq!(*owners.entry(byte / stripe_len_bytes).or_insert(lane), lane);
                }
            }
            prop_assert_eq!(bytes.len() as u64, addresses.len_bytes());
        }
    }
}
