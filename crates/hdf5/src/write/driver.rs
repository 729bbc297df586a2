//! Rust interface of the planning driver (`shim/planning_driver.c`), with one plan per output file.
//!
//! The driver assigns addresses in the front region to metadata, allows raw data to be indexed at addresses chosen by
//! the caller (claims), and records the first failure of the file instead of reporting it to libhdf5. Its guarantees
//! and their reasons are documented there; this module handles ownership.
//!
//! Invariant: a plan is freed only when libhdf5 can no longer reach it; if that is not certain (after a failed close),
//! it is leaked on purpose.

use super::overlay::{Overlay, RawOverlay};
use crate::error::{Hdf5Error, Result};
use crate::ffi::Call;
use hdf5_metno_sys::h5::herr_t;
use hdf5_metno_sys::h5i::hid_t;
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::ptr::NonNull;

/// `raddle_plan`, opaque outside the shim.
#[repr(C)]
struct RawPlan {
    _private: [u8; 0],
}

/// `struct raddle_failure`.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawFailure {
    kind: c_int,
    error_number: c_int,
    address: u64,
    len_bytes: u64,
}

/// `struct raddle_usage`: use of an output's bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub front_len_bytes: u64,
    pub tail_len_bytes: u64,
    pub raw_end: u64,
    pub end: u64,
    pub write_count: u64,
    pub write_len_bytes: u64,
    pub claim_count: u64,
    pub heap_len_bytes: u64,
}

unsafe extern "C" {
    fn raddle_plan_new(fd: RawFd, region_end: u64, placeholder: *const c_void) -> *mut RawPlan;
    fn raddle_plan_edit(plan: *mut RawPlan, old_end: u64, raw_end: u64, overlay: RawOverlay);
    fn raddle_plan_reopen(plan: *mut RawPlan);
    fn raddle_plan_free(plan: *mut RawPlan);
    fn raddle_plan_detach(plan: *mut RawPlan);
    fn raddle_plan_attach(plan: *mut RawPlan, fapl: hid_t) -> herr_t;
    fn raddle_plan_begin(plan: *mut RawPlan);
    fn raddle_plan_claim(plan: *mut RawPlan, address: u64, len_bytes: u64);
    fn raddle_plan_take_claim(plan: *mut RawPlan) -> c_int;
    fn raddle_plan_expect_growth(plan: *mut RawPlan, len_bytes: u64);
    fn raddle_plan_open_tail(plan: *mut RawPlan, raw_end: u64);
    fn raddle_plan_begin_close(plan: *mut RawPlan);
    fn raddle_plan_abandon(plan: *mut RawPlan);
    fn raddle_plan_front_left(plan: *const RawPlan) -> u64;
    fn raddle_plan_failure(plan: *const RawPlan) -> RawFailure;
    fn raddle_plan_usage(plan: *const RawPlan) -> Usage;
}

/// Placeholder for the bytes of a chunk that the caller writes itself: an address that must never be read.
///
/// The page is mapped without any access rights, so that a version of libhdf5 that reads the bytes passed to
/// `H5Dwrite_chunk` crashes in the first test instead of writing garbage to a user's file.
struct Placeholder(NonNull<c_void>);

/// Length of the mapping: only the address of the first byte matters, and one page is the smallest possible mapping.
const PLACEHOLDER_LEN_BYTES: usize = 4096;

impl Placeholder {
    fn map() -> std::io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address chosen by the kernel does not affect existing memory.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), PLACEHOLDER_LEN_BYTES, libc::PROT_NONE, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        NonNull::new(address).map(Self).ok_or_else(|| std::io::Error::from_raw_os_error(libc::ENOMEM))
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        // SAFETY: our own mapping of this length; there are no references into it, because it cannot be read.
        unsafe { libc::munmap(self.0.as_ptr(), PLACEHOLDER_LEN_BYTES) };
    }
}

/// The plan of one output file. All methods require libhdf5's lock, because the driver's callbacks run under it.
pub(super) struct DriverHandle {
    raw: NonNull<RawPlan>,
    placeholder: Placeholder,
    /// Pending changes of an existing file. The driver keeps a pointer to it.
    overlay: Option<Box<Overlay>>,
}

impl DriverHandle {
    /// Creates a plan for the empty file `file`, which must stay open as long as libhdf5 has it open.
    pub fn new(file: &impl AsRawFd, region_end: u64) -> std::io::Result<Self> {
        let placeholder = Placeholder::map()?;
        // SAFETY: plain values; the shim only allocates.
        let raw = unsafe { raddle_plan_new(file.as_raw_fd(), region_end, placeholder.0.as_ptr()) };
        let raw = NonNull::new(raw).ok_or_else(|| std::io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { raw, placeholder, overlay: None })
    }

    /// Creates a plan for editing the existing file of `overlay`, with raw data between its old end and `raw_end`.
    pub fn for_editing(file: &impl AsRawFd, overlay: Overlay, raw_end: u64) -> std::io::Result<Self> {
        let old_end = overlay.end();
        let mut plan = Self::new(file, old_end)?;
        let overlay = plan.overlay.insert(Box::new(overlay));
        // SAFETY: valid plan. The overlay stays in place in its box as long as the plan, and only the driver's
        // callbacks access it, under libhdf5's lock, until the plan returns it.
        unsafe { raddle_plan_edit(plan.raw.as_ptr(), old_end, raw_end, RawOverlay::of(overlay)) };
        Ok(plan)
    }

    /// Resets the plan after the file was closed, so that it can be opened again.
    pub fn reopen(&mut self) {
        // SAFETY: valid plan, used by one thread at a time.
        unsafe { raddle_plan_reopen(self.raw.as_ptr()) }
    }

    /// Returns the changes of an existing file, which must be closed.
    pub fn into_overlay(mut self) -> Option<Overlay> {
        self.overlay.take().map(|overlay| *overlay)
    }

    /// Sets the file access list `fapl` to use the planning driver with this plan.
    pub fn attach(&self, call: Call<'_>, fapl: hid_t) -> Result<()> {
        // SAFETY: the plan lives as long as `self`, which outlives the file opened with the list.
        call.status("H5FDregister", unsafe { raddle_plan_attach(self.raw.as_ptr(), fapl) }).map(drop)
    }

    /// Returns the address to pass to libhdf5 instead of a chunk's bytes.
    pub fn placeholder(&self) -> *const c_void {
        self.placeholder.0.as_ptr()
    }

    /// Starts planning. It is called after `H5Fcreate` has returned.
    pub fn begin(&mut self) {
        // SAFETY: valid plan, used by one thread at a time.
        unsafe { raddle_plan_begin(self.raw.as_ptr()) }
    }

    /// Assigns `address` to the next request for raw space of exactly `len_bytes`.
    pub fn claim(&mut self, address: u64, len_bytes: u64) {
        // SAFETY: as above.
        unsafe { raddle_plan_claim(self.raw.as_ptr(), address, len_bytes) }
    }

    /// Withdraws the claim; returns whether libhdf5 took it and wrote the placeholder there.
    pub fn take_claim(&mut self) -> bool {
        // SAFETY: as above.
        unsafe { raddle_plan_take_claim(self.raw.as_ptr()) != 0 }
    }

    /// Runs `write` with permission to extend object headers that lie at the end of the metadata, by at most
    /// `len_bytes` each time. Otherwise libhdf5 would allocate a new block for each message.
    pub fn growing<T>(&self, len_bytes: u64, write: impl FnOnce() -> T) -> T {
        // SAFETY: as above.
        unsafe { raddle_plan_expect_growth(self.raw.as_ptr(), len_bytes) };
        let result = write();
        // SAFETY: as above.
        unsafe { raddle_plan_expect_growth(self.raw.as_ptr(), 0) };
        result
    }

    /// Allows metadata after `raw_end`, below which all raw data lies.
    pub fn open_tail(&mut self, raw_end: u64) {
        // SAFETY: as above.
        unsafe { raddle_plan_open_tail(self.raw.as_ptr(), raw_end) }
    }

    /// Announces that `H5Fclose` is called next.
    pub fn begin_close(&mut self) {
        // SAFETY: as above.
        unsafe { raddle_plan_begin_close(self.raw.as_ptr()) }
    }

    /// Detaches the file: later writes by libhdf5 do not reach it.
    pub fn abandon(&mut self) {
        // SAFETY: as above.
        unsafe { raddle_plan_abandon(self.raw.as_ptr()) }
    }

    /// Returns how many more bytes of metadata fit into the front region; `u64::MAX` once metadata may go after the raw
    /// data.
    pub fn front_left_bytes(&self) -> u64 {
        // SAFETY: as above.
        unsafe { raddle_plan_front_left(self.raw.as_ptr()) }
    }

    /// Returns the use of the bytes so far.
    pub fn usage(&self) -> Usage {
        // SAFETY: as above.
        unsafe { raddle_plan_usage(self.raw.as_ptr()) }
    }

    /// Returns the first failure of the file, if any. It persists: a file that has failed is lost.
    pub fn check(&self, path: &Path) -> Result<()> {
        // SAFETY: as above.
        let RawFailure { kind, error_number, address, len_bytes } = unsafe { raddle_plan_failure(self.raw.as_ptr()) };
        let io = |operation: String| {
            let source = std::io::Error::from_raw_os_error(error_number);
            Err(Hdf5Error::Io { path: path.to_path_buf(), operation, source })
        };
        let placement = |what| Err(Hdf5Error::Placement { path: path.to_path_buf(), address, len_bytes, what });
        // The numbers are those of `enum failure` in the shim.
        match kind {
            0 => Ok(()),
            1 => io(format!("write {len_bytes} bytes of metadata at {address}")),
            2 => io(format!("read {len_bytes} bytes of metadata at {address}")),
            3 => io(format!("set the length to {address}")),
            4 => placement("metadata unexpectedly overran its region"),
            5 => placement("libhdf5 wrote metadata over raw data"),
            _ => placement("libhdf5 wrote a claimed chunk elsewhere"),
        }
    }

    /// Gives up the plan without freeing it: libhdf5 may still use it after a failed close. The file itself may be
    /// closed.
    pub fn leak(self) {
        // SAFETY: valid plan; from here on the driver does not use the descriptor, whose number may be reused.
        unsafe { raddle_plan_detach(self.raw.as_ptr()) };
        std::mem::forget(self);
    }
}

impl Drop for DriverHandle {
    fn drop(&mut self) {
        // SAFETY: owners drop a plan only when the file is closed or was never opened (otherwise they call `leak`).
        unsafe { raddle_plan_free(self.raw.as_ptr()) }
    }
}
