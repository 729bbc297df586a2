//! Memory of long arrays in huge pages, where the kernel lets a program ask for them.
//!
//! An array that is read for a program is filled once. In pages of 4 KiB that costs 0.8 ms for each MB, which is as long as
//! decompressing it takes; in huge ones 0.1 ms (measured on Linux 6.18 in a virtual machine). Numpy asks for its arrays in the
//! same way. Not for what memory is used for. Invariant: memory is the C library's in every way; the advice changes no byte.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

/// Shorter memory is not worth a call. As numpy's: two huge pages.
const SHORTEST_LEN_BYTES: usize = 4 << 20;

/// The C library's allocator, and the advice.
pub struct HugePages;

// SAFETY: every call is passed to the system's allocator as it is, and what that returns is returned. The advice keeps
// contents and lengths.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that are asked for.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that are asked for.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, len_bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promises are those that are asked for.
        advised(unsafe { System.realloc(memory, layout, len_bytes) }, len_bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Asks for huge pages in the whole pages of `len_bytes` bytes of memory.
fn advised(memory: *mut u8, len_bytes: usize) -> *mut u8 {
    #[cfg(target_os = "linux")]
    if len_bytes >= SHORTEST_LEN_BYTES && !memory.is_null() {
        const PAGE_LEN_BYTES: usize = 4096;
        let before = memory.align_offset(PAGE_LEN_BYTES);
        let whole = (len_bytes - before) / PAGE_LEN_BYTES * PAGE_LEN_BYTES;
        // SAFETY: the pages are wholly within memory that was just allocated, and this advice changes no contents. Where
        // it is refused, pages are as they were.
        unsafe { libc::madvise(memory.add(before).cast(), whole, libc::MADV_HUGEPAGE) };
    }
    memory
}
