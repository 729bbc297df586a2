//! The C library's allocator, with large pages for what is large: most of it becomes numpy arrays that are written once.
//!
//! The kernel clears a page when it is first written, and takes five times as long for pages of 4 KiB as for those of 2 MiB.
//! Where transparent huge pages are given to who asks for them (`madvise`, most systems' choice), numpy asks for its arrays;
//! this is the same for ours. Invariant: memory is the system allocator's in every respect, advice does not change contents.
#![allow(unsafe_code, reason = "an allocator is; every call is passed on as it came")]

use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes from which large pages are asked for: fewer than one has, for what lies beside it may be asked for too.
const LARGE_LEN_BYTES: usize = 1 << 20;

/// The smallest page: advice is for whole ones.
const PAGE_LEN_BYTES: usize = 4096;

/// The system's allocator, which asks for large pages.
pub(crate) struct LargePages;

// SAFETY: every method hands its arguments to `System` and gives back what that gave; advice leaves contents as they are.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that `System` asks for; so below.
        let memory = unsafe { System.alloc(layout) };
        advise(memory, layout.size());
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let memory = unsafe { System.alloc_zeroed(layout) };
        advise(memory, layout.size());
        memory
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, len_bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        let memory = unsafe { System.realloc(memory, layout, len_bytes) };
        advise(memory, len_bytes);
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Asks for large pages; where the system has none to give, small ones do.
fn advise(memory: *mut u8, len_bytes: usize) {
    if len_bytes < LARGE_LEN_BYTES || memory.is_null() {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        let to_page = memory.addr().next_multiple_of(PAGE_LEN_BYTES) - memory.addr();
        // SAFETY: the pages lie in an allocation of that length; the advice changes how they are backed, nothing else.
        unsafe { libc::madvise(memory.add(to_page).cast(), len_bytes - to_page, libc::MADV_HUGEPAGE) };
    }
}
