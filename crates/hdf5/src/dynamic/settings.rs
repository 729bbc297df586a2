//! Settings of files and datasets as plain values, with conversion to and from property lists.
//!
//! `None` keeps the library's default. Invariant: [`FileSettings::of_list`] and [`DatasetSettings::of_list`] return the
//! values that the library uses, not the requested ones.

use super::functions::Id;
use super::{DynamicLibrary, MetadataCacheConfig, OwnedId};
use crate::error::Result;
use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;

/// Settings of the chunk cache of each open dataset.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChunkCache {
    /// Size in bytes.
    pub len_bytes: Option<u64>,
    /// Number of hash table slots.
    pub slots: Option<u64>,
    /// Preemption policy, from 0 to 1.
    pub preemption: Option<f64>,
}

/// Settings of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileSettings {
    /// Objects of at least the first number of bytes begin at a multiple of the second.
    pub alignment: Option<(u64, u64)>,
    /// Size of a metadata block in bytes.
    pub meta_block_len_bytes: Option<u64>,
    /// Size of a block for small raw data in bytes.
    pub small_data_block_len_bytes: Option<u64>,
    /// Size of the sieve buffer in bytes.
    pub sieve_len_bytes: Option<u64>,
    /// Settings of the chunk cache.
    pub chunk_cache: ChunkCache,
    /// Initial size of the metadata cache in bytes.
    pub metadata_cache_len_bytes: Option<u64>,
    /// Whether metadata stays in its cache until the file is closed.
    pub defers_flush: Option<bool>,
    /// Bounds of the format version, as numbers of `H5F_libver_t`.
    pub versions: Option<(i32, i32)>,
    /// Size of the page buffer in bytes.
    pub page_buffer_len_bytes: Option<u64>,
    /// Size of a page of a paged file in bytes.
    pub page_len_bytes: Option<u64>,
}

/// Coding method of szip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SzipCoding {
    /// `H5_SZIP_NN_OPTION_MASK`: differences between neighbours, for images and fields.
    NearestNeighbour,
    /// `H5_SZIP_EC_OPTION_MASK`: the values themselves.
    Entropy,
}

impl SzipCoding {
    fn mask(self) -> c_uint {
        match self {
            Self::NearestNeighbour => SZIP_NEAREST_NEIGHBOUR,
            Self::Entropy => SZIP_ENTROPY,
        }
    }

    /// Returns the coding in the options of a dataset.
    fn of_options(options: c_uint) -> Self {
        if options & SZIP_NEAREST_NEIGHBOUR == 0 { Self::Entropy } else { Self::NearestNeighbour }
    }
}

/// Settings of a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatasetSettings {
    /// Chunk shape in elements; `None` for contiguous storage.
    pub chunk: Option<Vec<u64>>,
    /// Deflate level.
    pub gzip: Option<u32>,
    /// Coding and pixels per block of szip.
    pub szip: Option<(SzipCoding, u32)>,
    /// Whether the bytes of elements are shuffled before compression.
    pub shuffle: bool,
    /// Whether chunks have checksums.
    pub fletcher32: bool,
    /// Whether filling of allocated space is disabled.
    pub no_fill: bool,
    /// Whether the values lie in the object header.
    pub compact: bool,
}

/// `H5F_FSPACE_STRATEGY_PAGE`, `H5D_COMPACT`, `H5D_CHUNKED`, `H5D_FILL_TIME_NEVER`, `H5_SZIP_NN_OPTION_MASK` and
/// `H5_SZIP_EC_OPTION_MASK`.
const STRATEGY_PAGE: c_int = 1;
const LAYOUT_COMPACT: c_int = 0;
const LAYOUT_CHUNKED: c_int = 2;
const FILL_NEVER: c_int = 1;
const SZIP_NEAREST_NEIGHBOUR: c_uint = 32;
const SZIP_ENTROPY: c_uint = 4;

/// `H5Z_FILTER_DEFLATE`, `_SHUFFLE`, `_FLETCHER32` and `_SZIP`.
const DEFLATE: c_int = 1;
const SHUFFLE: c_int = 2;
const FLETCHER32: c_int = 3;
const SZIP: c_int = 4;

/// Maximum number of dimensions of a dataspace: `H5S_MAX_RANK`.
const MAX_DIMENSIONS: usize = 32;

fn host(len_bytes: u64) -> usize {
    usize::try_from(len_bytes).unwrap_or(usize::MAX)
}

impl FileSettings {
    /// Creates the lists for creating and for opening a file.
    pub(super) fn lists<'a>(&self, library: &'a DynamicLibrary) -> Result<[OwnedId<'a>; 2]> {
        let f = &library.functions;
        let (creation, access) =
            (library.list(library.variables.file_creation)?, library.list(library.variables.file_access)?);
        let (create, list) = (creation.id, access.id);
        // SAFETY: all calls use live property lists of the class that the function expects, and pointers to values that
        // outlive the call.
        unsafe {
            if let Some((threshold, alignment)) = self.alignment {
                library.status("H5Pset_alignment", (f.H5Pset_alignment)(list, threshold, alignment))?;
            }
            if let Some(len_bytes) = self.meta_block_len_bytes {
                library.status("H5Pset_meta_block_size", (f.H5Pset_meta_block_size)(list, len_bytes))?;
            }
            if let Some(len_bytes) = self.small_data_block_len_bytes {
                library.status("H5Pset_small_data_block_size", (f.H5Pset_small_data_block_size)(list, len_bytes))?;
            }
            if let Some(len_bytes) = self.sieve_len_bytes {
                library.status("H5Pset_sieve_buf_size", (f.H5Pset_sieve_buf_size)(list, host(len_bytes)))?;
            }
            if self.chunk_cache != ChunkCache::default() {
                let (mut objects, mut slots, mut len_bytes, mut preemption) = (0, 0, 0, 0.0);
                let got =
                    (f.H5Pget_cache)(list, &raw mut objects, &raw mut slots, &raw mut len_bytes, &raw mut preemption);
                library.status("H5Pget_cache", got)?;
                let ChunkCache { len_bytes: asked_len_bytes, slots: asked_slots, preemption: asked } = self.chunk_cache;
                let (slots, len_bytes) = (asked_slots.map_or(slots, host), asked_len_bytes.map_or(len_bytes, host));
                let set = (f.H5Pset_cache)(list, objects, slots, len_bytes, asked.unwrap_or(preemption));
                library.status("H5Pset_cache", set)?;
            }
            if self.metadata_cache_len_bytes.is_some() || self.defers_flush == Some(true) {
                let mut config = MetadataCacheConfig::of_this_version();
                library.status("H5Pget_mdc_config", (f.H5Pget_mdc_config)(list, &raw mut config))?;
                config.start_with(self.metadata_cache_len_bytes.map(host), self.defers_flush == Some(true));
                library.status("H5Pset_mdc_config", (f.H5Pset_mdc_config)(list, &raw mut config))?;
            }
            if let Some((low, high)) = self.versions {
                library.status("H5Pset_libver_bounds", (f.H5Pset_libver_bounds)(list, low, high))?;
            }
            if let Some(len_bytes) = self.page_buffer_len_bytes {
                library.status("H5Pset_page_buffer_size", (f.H5Pset_page_buffer_size)(list, host(len_bytes), 0, 0))?;
            }
            if let Some(len_bytes) = self.page_len_bytes {
                let set = (f.H5Pset_file_space_strategy)(create, STRATEGY_PAGE, false, 1);
                library.status("H5Pset_file_space_strategy", set)?;
                library.status("H5Pset_file_space_page_size", (f.H5Pset_file_space_page_size)(create, len_bytes))?;
            }
        }
        Ok([creation, access])
    }

    /// Returns the settings with which an open file was opened.
    pub(super) fn of_file(library: &DynamicLibrary, file: Id) -> Result<Self> {
        let f = &library.functions;
        // SAFETY: the file is open.
        let access = library.owned_id("H5Fget_access_plist", unsafe { (f.H5Fget_access_plist)(file) })?;
        // SAFETY: as above.
        let creation = library.owned_id("H5Fget_create_plist", unsafe { (f.H5Fget_create_plist)(file) })?;
        let (mut threshold, mut alignment, mut meta, mut small, mut page) = (0, 0, 0, 0, 0);
        let (mut sieve, mut slots, mut cache, mut page_buffer) = (0, 0, 0, 0);
        let (mut objects, mut preemption, mut low, mut high) = (0, 0.0, 0, 0);
        let (mut min_meta, mut min_raw) = (0, 0);
        let mut config = MetadataCacheConfig::of_this_version();
        let list = access.id;
        // SAFETY: live property lists of the classes that these functions expect, and pointers to variables.
        unsafe {
            let got = (f.H5Pget_alignment)(list, &raw mut threshold, &raw mut alignment);
            library.status("H5Pget_alignment", got)?;
            library.status("H5Pget_meta_block_size", (f.H5Pget_meta_block_size)(list, &raw mut meta))?;
            library.status("H5Pget_small_data_block_size", (f.H5Pget_small_data_block_size)(list, &raw mut small))?;
            library.status("H5Pget_sieve_buf_size", (f.H5Pget_sieve_buf_size)(list, &raw mut sieve))?;
            let got = (f.H5Pget_cache)(list, &raw mut objects, &raw mut slots, &raw mut cache, &raw mut preemption);
            library.status("H5Pget_cache", got)?;
            library.status("H5Pget_mdc_config", (f.H5Pget_mdc_config)(list, &raw mut config))?;
            library.status("H5Pget_libver_bounds", (f.H5Pget_libver_bounds)(list, &raw mut low, &raw mut high))?;
            let got = (f.H5Pget_page_buffer_size)(list, &raw mut page_buffer, &raw mut min_meta, &raw mut min_raw);
            library.status("H5Pget_page_buffer_size", got)?;
            library
                .status("H5Pget_file_space_page_size", (f.H5Pget_file_space_page_size)(creation.id, &raw mut page))?;
        }
        let cache =
            ChunkCache { len_bytes: Some(cache as u64), slots: Some(slots as u64), preemption: Some(preemption) };
        Ok(Self {
            alignment: Some((threshold, alignment)),
            meta_block_len_bytes: Some(meta),
            small_data_block_len_bytes: Some(small),
            sieve_len_bytes: Some(sieve as u64),
            chunk_cache: cache,
            metadata_cache_len_bytes: Some(config.initial_len_bytes() as u64),
            defers_flush: Some(!config.evicts()),
            versions: Some((low, high)),
            page_buffer_len_bytes: Some(page_buffer as u64),
            page_len_bytes: Some(page),
        })
    }
}

impl DatasetSettings {
    /// Creates the list for creating a dataset.
    pub(super) fn list<'a>(&self, library: &'a DynamicLibrary) -> Result<OwnedId<'a>> {
        let f = &library.functions;
        let creation = library.list(library.variables.dataset_creation)?;
        let list = creation.id;
        // SAFETY: a live dataset creation list; the shape has `rank` numbers.
        unsafe {
            if let Some(shape) = &self.chunk {
                let rank = c_int::try_from(shape.len()).unwrap_or(c_int::MAX);
                library.status("H5Pset_chunk", (f.H5Pset_chunk)(list, rank, shape.as_ptr()))?;
            }
            if self.shuffle {
                library.status("H5Pset_shuffle", (f.H5Pset_shuffle)(list))?;
            }
            if let Some(level) = self.gzip {
                library.status("H5Pset_deflate", (f.H5Pset_deflate)(list, level))?;
            }
            if let Some((coding, pixels)) = self.szip {
                library.status("H5Pset_szip", (f.H5Pset_szip)(list, coding.mask(), pixels))?;
            }
            if self.fletcher32 {
                library.status("H5Pset_fletcher32", (f.H5Pset_fletcher32)(list))?;
            }
            if self.no_fill {
                library.status("H5Pset_fill_time", (f.H5Pset_fill_time)(list, FILL_NEVER))?;
            }
            if self.compact {
                library.status("H5Pset_layout", (f.H5Pset_layout)(list, LAYOUT_COMPACT))?;
            }
        }
        Ok(creation)
    }

    /// Returns the settings with which an open dataset was created.
    pub(super) fn of_dataset(library: &DynamicLibrary, dataset: Id) -> Result<Self> {
        let f = &library.functions;
        // SAFETY: the dataset is open.
        let creation = library.owned_id("H5Dget_create_plist", unsafe { (f.H5Dget_create_plist)(dataset) })?;
        let list = creation.id;
        let mut found = Self::default();
        let mut fill_time = 0;
        // SAFETY: a live list of the class that these functions expect, and pointers to variables. For the shape and
        // for a filter's values, the library sets no more than the number passed to it.
        unsafe {
            let layout = (f.H5Pget_layout)(list);
            found.compact = layout == LAYOUT_COMPACT;
            if layout == LAYOUT_CHUNKED {
                let mut shape = [0; MAX_DIMENSIONS];
                let rank = (f.H5Pget_chunk)(list, MAX_DIMENSIONS as c_int, shape.as_mut_ptr());
                library.status("H5Pget_chunk", rank)?;
                found.chunk = Some(shape[..usize::try_from(rank).unwrap_or(0).min(MAX_DIMENSIONS)].to_vec());
            }
            library.status("H5Pget_fill_time", (f.H5Pget_fill_time)(list, &raw mut fill_time))?;
            let filters = library.status("H5Pget_nfilters", (f.H5Pget_nfilters)(list))?;
            for place in 0..c_uint::try_from(filters).unwrap_or(0) {
                let (mut flags, mut values, mut config) = (0, [0; 8], 0);
                let mut count = values.len();
                let filter = (f.H5Pget_filter2)(
                    list,
                    place,
                    &raw mut flags,
                    &raw mut count,
                    values.as_mut_ptr(),
                    0,
                    null_mut(),
                    &raw mut config,
                );
                match library.status("H5Pget_filter2", filter)? {
                    DEFLATE => found.gzip = Some(values[0]),
                    SHUFFLE => found.shuffle = true,
                    FLETCHER32 => found.fletcher32 = true,
                    SZIP => found.szip = Some((SzipCoding::of_options(values[0]), values[1])),
                    _ => {}
                }
            }
        }
        found.no_fill = fill_time == FILL_NEVER;
        Ok(found)
    }
}

/// Creates a transfer list with a conversion buffer of this length, which the library allocates.
pub(super) fn transfer(library: &DynamicLibrary, buffer_len_bytes: Option<u64>) -> Result<OwnedId<'_>> {
    let list = library.list(library.variables.transfer)?;
    if let Some(len_bytes) = buffer_len_bytes {
        let no_buffer = null_mut();
        // SAFETY: a live transfer list; with null pointers the library allocates the buffers.
        let set = unsafe { (library.functions.H5Pset_buffer)(list.id, host(len_bytes), no_buffer, no_buffer) };
        library.status("H5Pset_buffer", set)?;
    }
    Ok(list)
}

/// Filters whose availability can be queried: number and name.
pub(super) const FILTERS: [(c_int, &str); 4] =
    [(DEFLATE, "gzip"), (SHUFFLE, "shuffle"), (FLETCHER32, "fletcher32"), (SZIP, "szip")];
