//! `H5AC_cache_config_t`, version 1, whose layout is the same in every HDF5 since 1.10 (before, flags were four bytes
//! wide).

use std::ffi::{c_char, c_int, c_long};

/// `H5AC__MAX_TRACE_FILE_NAME_LEN` plus its terminating zero byte.
const TRACE_NAME_LEN_BYTES: usize = 1025;

/// Configuration of a metadata cache.
#[repr(C)]
pub(super) struct MetadataCacheConfig {
    version: c_int,
    reports: bool,
    opens_trace: bool,
    closes_trace: bool,
    trace_name: [c_char; TRACE_NAME_LEN_BYTES],
    evictions_enabled: bool,
    sets_initial_size: bool,
    initial_size: usize,
    min_clean_fraction: f64,
    max_size: usize,
    min_size: usize,
    epoch_length: c_long,
    incr_mode: c_int,
    lower_hr_threshold: f64,
    increment: f64,
    apply_max_increment: bool,
    max_increment: usize,
    flash_incr_mode: c_int,
    flash_multiple: f64,
    flash_threshold: f64,
    decr_mode: c_int,
    upper_hr_threshold: f64,
    decrement: f64,
    apply_max_decrement: bool,
    max_decrement: usize,
    epochs_before_eviction: c_int,
    apply_empty_reserve: bool,
    empty_reserve: f64,
    dirty_bytes_threshold: usize,
    metadata_write_strategy: c_int,
}

impl MetadataCacheConfig {
    /// Returns a configuration for `H5Pget_mdc_config` to fill, which reads only the version.
    pub(super) fn of_this_version() -> Self {
        Self {
            version: 1,
            reports: false,
            opens_trace: false,
            closes_trace: false,
            trace_name: [0; TRACE_NAME_LEN_BYTES],
            evictions_enabled: true,
            sets_initial_size: false,
            initial_size: 0,
            min_clean_fraction: 0.0,
            max_size: 0,
            min_size: 0,
            epoch_length: 0,
            incr_mode: 0,
            lower_hr_threshold: 0.0,
            increment: 0.0,
            apply_max_increment: false,
            max_increment: 0,
            flash_incr_mode: 0,
            flash_multiple: 0.0,
            flash_threshold: 0.0,
            decr_mode: 0,
            upper_hr_threshold: 0.0,
            decrement: 0.0,
            apply_max_decrement: false,
            max_decrement: 0,
            epochs_before_eviction: 0,
            apply_empty_reserve: false,
            empty_reserve: 0.0,
            dirty_bytes_threshold: 0,
            metadata_write_strategy: 0,
        }
    }

    /// Sets the initial size to `len_bytes`. If `defers`, delays flushing until the file is closed, as the modified IOR
    /// of Yang and others does: entries are not evicted and, as the library then requires, the size does not change.
    pub(super) fn start_with(&mut self, len_bytes: Option<usize>, defers: bool) {
        if let Some(len_bytes) = len_bytes {
            self.sets_initial_size = true;
            self.initial_size = len_bytes;
            self.max_size = self.max_size.max(len_bytes);
            self.min_size = self.min_size.min(len_bytes);
        }
        if defers {
            self.evictions_enabled = false;
            (self.incr_mode, self.flash_incr_mode, self.decr_mode) = (0, 0, 0);
        }
    }

    pub(super) fn initial_len_bytes(&self) -> usize {
        self.initial_size
    }

    pub(super) fn evicts(&self) -> bool {
        self.evictions_enabled
    }
}
