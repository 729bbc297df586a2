//! Buffers between inaccessible pages: reading or writing a byte outside of them aborts the test at once.

use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};

const PAGE_LEN_BYTES: usize = 4096;

/// End of a buffer that is adjacent to a guarded page; at the other end there is up to a page of room.
#[derive(Clone, Copy)]
pub enum Edge {
    Front,
    Back,
}

/// A buffer whose bytes begin or end at a page that must not be accessed.
pub struct GuardedBuffer {
    mapping: NonNull<u8>,
    mapping_len_bytes: usize,
    start: usize,
    len_bytes: usize,
}

impl GuardedBuffer {
    pub fn new(bytes: &[u8], edge: Edge) -> Self {
        let room_len_bytes = bytes.len().next_multiple_of(PAGE_LEN_BYTES);
        let mapping_len_bytes = room_len_bytes + 2 * PAGE_LEN_BYTES;
        // SAFETY: a new anonymous mapping at any address does not affect existing memory.
        let mapping = unsafe {
            libc::mmap(null_mut(), mapping_len_bytes, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(mapping, libc::MAP_FAILED);
        let mapping = NonNull::new(mapping.cast::<u8>()).expect("a mapping is not at 0");
        // SAFETY: the range that becomes accessible lies in the mapping, which is not used elsewhere.
        let opened = unsafe {
            let room = mapping.as_ptr().add(PAGE_LEN_BYTES).cast();
            libc::mprotect(room, room_len_bytes, libc::PROT_READ | libc::PROT_WRITE)
        };
        assert_eq!(opened, 0);
        let start = match edge {
            Edge::Front => PAGE_LEN_BYTES,
            Edge::Back => PAGE_LEN_BYTES + room_len_bytes - bytes.len(),
        };
        let mut guarded = Self { mapping, mapping_len_bytes, start, len_bytes: bytes.len() };
        guarded.copy_from_slice(bytes);
        guarded
    }
}

impl Deref for GuardedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` and `len_bytes` lie in the accessible part of the mapping, which is initialised.
        unsafe { std::slice::from_raw_parts(self.mapping.as_ptr().add(self.start), self.len_bytes) }
    }
}

impl DerefMut for GuardedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the mapping is exclusively ours.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.as_ptr().add(self.start), self.len_bytes) }
    }
}

impl Drop for GuardedBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is exclusively ours, and no slice of it outlives it.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapping_len_bytes) };
    }
}
