//! Reusable memory for values. The kernel clears every new page before its first use, which takes a third of the time
//! of a loop that reads datasets and drops their values.
//!
//! Invariant: unused memory stays within 64 MiB, in the whole process if all readers use [`SPARE`].

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Memory that the readers of all files share.
pub static SPARE: LazyLock<Arc<Spare>> = LazyLock::new(Arc::default);

/// Limit of the unused memory of one [`Spare`].
const UNUSED_LEN_BYTES: usize = 64 << 20;

/// Minimum length of memory that is kept: shorter buffers come from the allocator's own lists.
const MIN_LEN_BYTES: usize = 64 << 10;

/// Memory that is not in use at the moment.
#[derive(Debug, Default)]
pub struct Spare {
    /// The memory that was used last is at the end: the processor's caches are most likely to hold it.
    unused: Mutex<Vec<Vec<u8>>>,
}

impl Spare {
    /// Returns a buffer of `len` bytes of unspecified content.
    pub fn buffer(self: &Arc<Self>, len: usize) -> Buffer {
        if len < MIN_LEN_BYTES {
            return Buffer { memory: vec![0; len], len, home: None };
        }
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        // Memory of twice the length would hold pages that a longer buffer could use.
        let found = unused.iter().rposition(|memory| (len..=len.saturating_mul(2)).contains(&memory.len()));
        let memory = found.map(|place| unused.remove(place));
        drop(unused);
        let memory = memory.unwrap_or_else(|| vec![0; rounded(len)]);
        Buffer { memory, len, home: Some(Arc::clone(self)) }
    }

    fn put_back(&self, memory: Vec<u8>) {
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unused_len_bytes: usize = unused.iter().map(Vec::len).sum::<usize>() + memory.len();
        unused.push(memory);
        let mut freed = 0;
        while unused_len_bytes > UNUSED_LEN_BYTES {
            unused_len_bytes -= unused[freed].len();
            freed += 1;
        }
        // Freed after the lock is released.
        let freed: Vec<_> = unused.drain(..freed).collect();
        drop(unused);
        drop(freed);
    }
}

/// Bytes that return to a [`Spare`] when they are dropped.
#[derive(Debug)]
pub struct Buffer {
    memory: Vec<u8>,
    len: usize,
    /// `None` for memory that is not kept.
    home: Option<Arc<Spare>>,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.put_back(std::mem::take(&mut self.memory));
        }
    }
}

/// Rounds up to four lengths per power of two, so that datasets of similar length can use each other's memory.
fn rounded(len: usize) -> usize {
    let step = (len.checked_next_power_of_two().unwrap_or(len) / 8).max(1);
    len.checked_next_multiple_of(step).unwrap_or(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unused(spare: &Spare) -> Vec<usize> {
        spare.unused.lock().unwrap().iter().map(Vec::len).collect()
    }

    #[test]
    fn memory_is_used_again() {
        let spare = Arc::new(Spare::default());
        let mut buffer = spare.buffer(100_000);
        buffer.fill(7);
        let place = buffer.as_ptr();
        drop(buffer);
        let again = spare.buffer(90_000);
        assert_eq!((again.as_ptr(), again.len()), (place, 90_000));
        assert!(unused(&spare).is_empty());
        // Short buffers are not kept, and far longer memory stays for longer buffers.
        drop((spare.buffer(10), again));
        let kept = unused(&spare);
        assert_eq!(kept.len(), 1);
        assert_eq!(spare.buffer(MIN_LEN_BYTES).len(), MIN_LEN_BYTES);
        drop(spare.buffer(10 << 20));
        assert_eq!(spare.buffer(1 << 20).len(), 1 << 20);
    }

    #[test]
    fn unused_memory_is_bounded() {
        let spare = Arc::new(Spare::default());
        let buffers: Vec<Buffer> = (0..10).map(|_| spare.buffer(16 << 20)).collect();
        drop(buffers);
        assert_eq!(unused(&spare).iter().sum::<usize>(), UNUSED_LEN_BYTES);
        drop(spare.buffer(UNUSED_LEN_BYTES + 1));
        assert_eq!(unused(&spare), [0; 0]);
        assert_eq!(spare.buffer(0).len(), 0);
    }

    #[test]
    fn lengths_are_rounded_up_by_a_quarter_at_most() {
        for len in [1, 2, 65_536, 65_537, 100_000, 1 << 20, (1 << 20) + 1, usize::MAX] {
            let found = rounded(len);
            assert!(found >= len && (len < 8 || found - len <= len / 4), "{len}: {found}");
        }
    }
}
