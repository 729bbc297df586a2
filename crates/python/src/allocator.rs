//! The C library's allocator, with large pages for large allocations, most of which become numpy arrays that are
//! written once.
//!
//! The kernel clears a page when it is first written, which takes five times as long for pages of 4 KiB as for pages of
//! 2 MiB. Where transparent huge pages are available on request (`madvise`, the setting of most systems), numpy
//! requests them for its arrays; this allocator does the same for raddle's. In addition, its allocations begin at a
//! large page boundary: an array of 4 MB at an arbitrary address has at most half of its bytes in one large page.
//!
//! The boundary lies in memory that is longer by a large page; the C library's own function for aligned memory is not
//! used. Before glibc 2.38, that function cuts the aligned part out of a longer block and does not find the cut block
//! again, so that memory grows with every array that is allocated and freed. Invariant: the memory is ordinary memory
//! of the C library, and the advice does not change its contents.
#![allow(unsafe_code, reason = "an allocator is; what is small is passed on as it came, the rest is the C library's")]

use libc::{c_void, calloc, free, malloc, realloc};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{copy_nonoverlapping, null_mut};

/// Length of a large page on x86-64, and the usual one elsewhere.
const PAGE_LEN_BYTES: usize = 2 << 20;

/// Maximum unused part of the last large page, as a fraction 1/N of the allocation; otherwise the remainder uses small
/// pages.
const MAX_UNUSED: usize = 4;

/// Minimum length for which large pages are requested: below it they are not worthwhile.
const LARGE_LEN_BYTES: usize = PAGE_LEN_BYTES / (MAX_UNUSED + 1) * MAX_UNUSED;

/// Minimum length for which growing memory is left to the C library, which moves pages instead of bytes. The small
/// pages at both ends are then a minor part, and the old and new memory are never needed at the same time.
const MOVED_LEN_BYTES: usize = 16 * PAGE_LEN_BYTES;

/// Alignment of the C library's allocations on every 64-bit system.
const C_ALIGNMENT: usize = 16;

/// Length of the head before large memory, which keeps the alignment of the block.
const HEAD_LEN_BYTES: usize = C_ALIGNMENT;

/// Allocator that requests large pages from the C library's allocator.
pub(crate) struct LargePages;

// SAFETY: small allocations are passed to `System` with unchanged arguments. Large ones come from the C library's
// functions, and begin after a head that states the distance to the beginning of the C library's block: at a page
// boundary or, if the function chooses the alignment itself, only if that alignment suffices. The length, which every
// call provides, determines which of the two applies.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() < LARGE_LEN_BYTES {
            // SAFETY: the caller's promises are those that `System` requires; likewise below.
            return unsafe { System.alloc(layout) };
        }
        let alignment = layout.align().max(PAGE_LEN_BYTES);
        // Room for the head as well, because blocks begin at multiples of its length.
        let Some(len_bytes) = whole(layout.size()).checked_add(alignment) else { return null_mut() };
        // SAFETY: no preconditions.
        let block: *mut u8 = unsafe { malloc(len_bytes) }.cast();
        if block.is_null() {
            return null_mut();
        }
        let distance = (block.addr() + HEAD_LEN_BYTES).next_multiple_of(alignment) - block.addr();
        // SAFETY: the distance is at most the alignment, by which the block is longer, and leaves room for the head.
        advised(unsafe { begin_at(block, distance) }.cast(), layout.size())
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
                // SAFETY: the memory has that length.
                unsafe { memory.write_bytes(0, layout.size()) };
            }
            return memory;
        }
        let Some(len_bytes) = layout.size().checked_add(HEAD_LEN_BYTES) else { return null_mut() };
        // The kernel provides zeros when the memory is touched, at no extra cost, but the memory may begin anywhere.
        // SAFETY: no preconditions.
        let block: *mut u8 = unsafe { calloc(len_bytes, 1) }.cast();
        if block.is_null() {
            return null_mut();
        }
        // SAFETY: the block is longer by a head.
        advised(unsafe { begin_at(block, HEAD_LEN_BYTES) }.cast(), layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, len_bytes: usize) -> *mut u8 {
        if layout.size().max(len_bytes) < LARGE_LEN_BYTES {
            // SAFETY: as above.
            return unsafe { System.realloc(memory, layout, len_bytes) };
        }
        let stays = len_bytes <= layout.size() || layout.size() >= MOVED_LEN_BYTES;
        if stays && len_bytes >= LARGE_LEN_BYTES && layout.align() <= C_ALIGNMENT {
            // SAFETY: both lengths are large, so the memory has a head, which is moved with the block.
            unsafe {
                let distance = distance_of(memory);
                let Some(block_len_bytes) = len_bytes.checked_add(distance) else { return null_mut() };
                let block: *mut u8 = realloc(memory.byte_sub(distance).cast(), block_len_bytes).cast();
                if block.is_null() {
                    return null_mut();
                }
                return advised(block.byte_add(distance).cast(), len_bytes);
            }
        }
        // SAFETY: the caller promises that the length is valid for this alignment, and both allocations have at least
        // the number of bytes copied and do not overlap.
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
        // SAFETY: memory of this length has a head.
        unsafe { free(memory.byte_sub(distance_of(memory)).cast()) }
    }
}

/// Returns the memory at a distance after the beginning of a block of the C library, and states the distance in the
/// head before it.
///
/// # Safety
/// The block must be longer than the distance, which must be a multiple of [`HEAD_LEN_BYTES`] and not zero.
unsafe fn begin_at(block: *mut u8, distance: usize) -> *mut u8 {
    // SAFETY: the head lies in the block and is aligned.
    unsafe {
        let memory = block.byte_add(distance);
        memory.cast::<usize>().sub(1).write(distance);
        memory
    }
}

/// Returns the distance from the beginning of a block of the C library to the memory.
///
/// # Safety
/// The memory must be a result of [`begin_at`], possibly moved with its block.
unsafe fn distance_of(memory: *mut u8) -> usize {
    // SAFETY: the caller promises that the memory has a head.
    unsafe { memory.cast::<usize>().sub(1).read() }
}

/// Rounds a length up to a whole last page, if little of that page is unused.
fn whole(len_bytes: usize) -> usize {
    let in_pages = len_bytes.next_multiple_of(PAGE_LEN_BYTES);
    if in_pages - len_bytes <= len_bytes / MAX_UNUSED { in_pages } else { len_bytes }
}

/// Requests large pages; if the system has none available, small ones are used.
fn advised(memory: *mut c_void, len_bytes: usize) -> *mut u8 {
    /// Length of the smallest page: advice applies to whole pages.
    const SMALL_PAGE_LEN_BYTES: usize = 4096;
    #[cfg(target_os = "linux")]
    if !memory.is_null() {
        let to_page = memory.addr().next_multiple_of(SMALL_PAGE_LEN_BYTES) - memory.addr();
        // Memory that begins anywhere does not extend to the end of its last page.
        let len_bytes = if memory.addr().is_multiple_of(PAGE_LEN_BYTES) { whole(len_bytes) } else { len_bytes };
        // SAFETY: unmapped memory only makes the call fail; the advice only changes how pages are backed.
        unsafe { libc::madvise(memory.byte_add(to_page), len_bytes - to_page, libc::MADV_HUGEPAGE) };
    }
    memory.cast()
}
