//! Memory requests of tests that read damaged bytes: a claimed length must not be trusted before it is checked.
//!
//! ```
//! # use raddle_testing::requests::LargestRequest;
//! #[global_allocator]
//! static ALLOCATOR: LargestRequest = LargestRequest::new();
//!
//! fn main() {
//!     ALLOCATOR.reset();
//!     drop(vec![0_u8; 1000]);
//!     assert!(ALLOCATOR.len_bytes() >= 1000);
//! }
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, which also records the largest request of all threads.
#[derive(Debug, Default)]
pub struct LargestRequest {
    len_bytes: AtomicU64,
}

impl LargestRequest {
    /// Creates the allocator; no request is recorded.
    pub const fn new() -> Self {
        Self { len_bytes: AtomicU64::new(0) }
    }

    /// Forgets the requests so far.
    pub fn reset(&self) {
        self.len_bytes.store(0, Ordering::Relaxed);
    }

    /// Returns the length of the largest request since the last [`LargestRequest::reset`].
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Relaxed)
    }

    fn record(&self, len_bytes: usize) {
        self.len_bytes.fetch_max(len_bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: all calls are forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for LargestRequest {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.record(layout.size());
        // SAFETY: the caller upholds the contract of the trait, which is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.record(layout.size());
        // SAFETY: the caller upholds the contract of the trait, which is that of the system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, new_len_bytes: usize) -> *mut u8 {
        self.record(new_len_bytes);
        // SAFETY: the caller upholds the contract of the trait, which is that of the system's allocator.
        unsafe { System.realloc(old, layout, new_len_bytes) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of the trait, which is that of the system's allocator.
        unsafe { System.dealloc(old, layout) }
    }
}
