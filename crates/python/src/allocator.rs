//! The C library's allocator, with large pages for what is large: most of it becomes numpy arrays that are written once.
//!
//! The kernel clears a page when it is first written, and takes five times as long for pages of 4 KiB as for those of 2 MiB.
//! Where transparent huge pages are given to who asks for them (`madvise`, most systems' choice), numpy asks for its arrays;
//! this is the same for ours, which also begin where a large page does: of an array of 4 MB that begins anywhere, at most half
//! lies in one. Invariant: memory is the C library's in every respect, advice does not change contents.
#![allow(unsafe_code, reason = "an allocator is; what is small is passed on as it came, the rest is the C library's")]

use libc::{c_void, calloc, free, posix_memalign, realloc};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{copy_nonoverlapping, null_mut};

/// A large page of x86-64, and the usual one elsewhere.
const PAGE_LEN_BYTES: usize = 2 << 20;

/// The part of what was asked for (one in so many) that may be unused of a last page; else small pages do for what lies in it.
const MOST_UNUSED: usize = 4;

/// Bytes from which large pages are asked for: those that are worth one.
const LARGE_LEN_BYTES: usize = PAGE_LEN_BYTES / (MOST_UNUSED + 1) * MOST_UNUSED;

/// Bytes from which memory that grows is left to the C library, which moves pages instead of bytes: what then lies in small
/// pages at both ends is little of it, and there is no moment in which both are needed.
const MOVED_LEN_BYTES: usize = 16 * PAGE_LEN_BYTES;

/// What the C library's allocations are aligned to on every system with 64 bits.
const C_ALIGNMENT: usize = 16;

/// The C library's allocator, which asks for large pages.
pub(crate) struct LargePages;

// SAFETY: what is small is `System`'s, with the arguments that were given. What is large comes from the C library's own
// functions, aligned to a page or, where they align themselves, only if that is enough; any of them may be freed by `free` and
// resized by `realloc`. Which of the two it is, the length says, which every call brings.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() < LARGE_LEN_BYTES {
            // SAFETY: the caller's promises are those that `System` asks for; so below.
            return unsafe { System.alloc(layout) };
        }
        let mut memory = null_mut();
        // SAFETY: the alignment is a power of two and no less than a pointer's.
        let failed =
            unsafe { posix_memalign(&raw mut memory, layout.align().max(PAGE_LEN_BYTES), whole(layout.size())) };
        match failed {
            0 => advised(memory, layout.size()),
            _ => null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() < LARGE_LEN_BYTES {
            // SAFETY: as above.
            return unsafe { System.alloc_zeroed(layout) };
        }
        if layout.align() > C_ALIGNMENT {
            // SAFETY: as above.
            let memory = unsafe { self.alloc(layout) };
            if !memory.is_null() {
                // SAFETY: it has that length.
                unsafe { memory.write_bytes(0, layout.size()) };
            }
            return memory;
        }
        // Zeros that the kernel makes, when they are touched; they cost nothing, but begin anywhere.
        // SAFETY: no preconditions.
        advised(unsafe { calloc(layout.size(), 1) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, len_bytes: usize) -> *mut u8 {
        if layout.size().max(len_bytes) < LARGE_LEN_BYTES {
            // SAFETY: as above.
            return unsafe { System.realloc(memory, layout, len_bytes) };
        }
        let stays = len_bytes <= layout.size() || layout.size() >= MOVED_LEN_BYTES;
        if stays && len_bytes >= LARGE_LEN_BYTES && layout.align() <= C_ALIGNMENT {
            // SAFETY: both lengths are large, so the memory is the C library's.
            return advised(unsafe { realloc(memory.cast(), len_bytes) }, len_bytes);
        }
        // SAFETY: the caller promises that the length is one for this alignment, and both allocations have as many bytes as are
        // copied and do not overlap.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(len_bytes, layout.align()));
            if !moved.is_null() {
                copy_nonoverlapping(memory, moved, layout.size().min(len_bytes));
                self.dealloc(memory, layout);
            }
            moved
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if layout.size() < LARGE_LEN_BYTES {
            // SAFETY: as above.
            return unsafe { System.dealloc(memory, layout) };
        }
        // SAFETY: memory of such a length is the C library's.
        unsafe { free(memory.cast()) }
    }
}

/// A length with all of its last page, if little of that is unused.
fn whole(len_bytes: usize) -> usize {
    let in_pages = len_bytes.next_multiple_of(PAGE_LEN_BYTES);
    if in_pages - len_bytes <= len_bytes / MOST_UNUSED { in_pages } else { len_bytes }
}

/// Asks for large pages; where the system has none to give, small ones do.
fn advised(memory: *mut c_void, len_bytes: usize) -> *mut u8 {
    /// The smallest page: advice is for whole ones.
    const SMALL_PAGE_LEN_BYTES: usize = 4096;
    #[cfg(target_os = "linux")]
    if !memory.is_null() {
        let to_page = memory.addr().next_multiple_of(SMALL_PAGE_LEN_BYTES) - memory.addr();
        // Memory that begins anywhere has no room for the whole of its last page.
        let len_bytes = if memory.addr().is_multiple_of(PAGE_LEN_BYTES) { whole(len_bytes) } else { len_bytes };
        // SAFETY: what is not mapped makes the call fail, no more; the advice changes how pages are backed, nothing else.
        unsafe { libc::madvise(memory.byte_add(to_page), len_bytes - to_page, libc::MADV_HUGEPAGE) };
    }
    memory.cast()
}
