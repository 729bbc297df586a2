//! Buffers between pages that may not be touched: a byte read or written outside of them ends the test at once.

use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};

const PAGE_LEN_BYTES: usize = 4096;

/// Which end of a buffer lies at a guarded page; at the other there are up to a page's bytes of room.
#[derive(Clone, Copy)]
pub enum Edge {
    Front,
    Back,
}

pub struct Guarded {
    mapping: NonNull<u8>,
    mapping_len_bytes: usize,
    start: usize,
    len_bytes: usize,
}

impl Guarded {
    pub fn new(bytes: &[u8], edge: Edge) -> Self {
        let room_len_bytes = bytes.len().next_multiple_of(PAGE_LEN_BYTES);
        let mapping_len_bytes = room_len_bytes + 2 * PAGE_LEN_BYTES;
        // SAFETY: a new mapping of no file, anywhere, touches nothing that is there.
        let mapping = unsafe {
            libc::mmap(null_mut(), mapping_len_bytes, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(mapping, libc::MAP_FAILED);
        let mapping = NonNull::new(mapping.cast::<u8>()).expect("a mapping is not at 0");
        // SAFETY: what becomes accessible lies in the mapping, which nobody else knows.
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

impl Deref for Guarded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` and `len_bytes` lie in the accessible part of the mapping, which is zeros or what was written.
        unsafe { std::slice::from_raw_parts(self.mapping.as_ptr().add(self.start), self.len_bytes) }
    }
}

impl DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and it is this owner's alone.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.as_ptr().add(self.start), self.len_bytes) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is this owner's, and no slice of it outlives it.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapping_len_bytes) };
    }
}
