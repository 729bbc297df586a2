//! Addresses of libhdf5's functions, in the bundled library or one loaded at run time.
//!
//! The types are those of HDF5 1.10 and later, where identifiers have 64 bits. Calls are made in `file` and its
//! siblings.

use super::MetadataCacheConfig;
use libloading::os::unix::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// `hid_t`, `hsize_t` and `herr_t`.
pub(super) type Id = i64;
pub(super) type Size = u64;
pub(super) type Status = c_int;

/// `H5E_error2_t`.
#[repr(C)]
pub(super) struct StackEntry {
    class: Id,
    major: Id,
    minor: Id,
    line: c_uint,
    function: *const c_char,
    file: *const c_char,
    pub description: *const c_char,
}

pub(super) type ErrorCallback = unsafe extern "C" fn(c_uint, *const StackEntry, *mut c_void) -> Status;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// Pointers to the libhdf5 functions; each field has the name of its function.
        #[expect(non_snake_case, reason = "the names of the library")]
        pub(super) struct Functions { $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)* }

        impl Functions {
            /// Returns the functions of the library that raddle is linked with.
            pub(super) fn bundled() -> Self {
                mod linked {
                    use super::*;
                    unsafe extern "C" { $(pub(super) fn $name($(_: $argument),*) -> $result;)* }
                }
                Self { $($name: linked::$name,)* }
            }

            /// Looks up the functions of `library`.
            pub(super) fn of(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the types are those that HDF5 has declared for these names since 1.10.
                Ok(unsafe { Self { $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)* } })
            }
        }
    };
}

functions! {
    H5dont_atexit: fn() -> Status;
    H5open: fn() -> Status;
    H5get_libversion: fn(*mut c_uint, *mut c_uint, *mut c_uint) -> Status;
    H5Eset_auto2: fn(Id, Option<ErrorCallback>, *mut c_void) -> Status;
    H5Ewalk2: fn(Id, c_int, ErrorCallback, *mut c_void) -> Status;
    H5PLset_loading_state: fn(c_uint) -> Status;
    H5Zfilter_avail: fn(c_int) -> c_int;
    H5Zget_filter_info: fn(c_int, *mut c_uint) -> Status;
    H5Idec_ref: fn(Id) -> c_int;
    H5Pcreate: fn(Id) -> Id;
    H5Pset_fapl_core: fn(Id, usize, bool) -> Status;
    H5Pset_alignment: fn(Id, Size, Size) -> Status;
    H5Pget_alignment: fn(Id, *mut Size, *mut Size) -> Status;
    H5Pset_meta_block_size: fn(Id, Size) -> Status;
    H5Pget_meta_block_size: fn(Id, *mut Size) -> Status;
    H5Pset_small_data_block_size: fn(Id, Size) -> Status;
    H5Pget_small_data_block_size: fn(Id, *mut Size) -> Status;
    H5Pset_sieve_buf_size: fn(Id, usize) -> Status;
    H5Pget_sieve_buf_size: fn(Id, *mut usize) -> Status;
    H5Pset_cache: fn(Id, c_int, usize, usize, f64) -> Status;
    H5Pget_cache: fn(Id, *mut c_int, *mut usize, *mut usize, *mut f64) -> Status;
    H5Pset_mdc_config: fn(Id, *mut MetadataCacheConfig) -> Status;
    H5Pget_mdc_config: fn(Id, *mut MetadataCacheConfig) -> Status;
    H5Pset_libver_bounds: fn(Id, c_int, c_int) -> Status;
    H5Pget_libver_bounds: fn(Id, *mut c_int, *mut c_int) -> Status;
    H5Pset_page_buffer_size: fn(Id, usize, c_uint, c_uint) -> Status;
    H5Pget_page_buffer_size: fn(Id, *mut usize, *mut c_uint, *mut c_uint) -> Status;
    H5Pset_file_space_strategy: fn(Id, c_int, bool, Size) -> Status;
    H5Pset_file_space_page_size: fn(Id, Size) -> Status;
    H5Pget_file_space_page_size: fn(Id, *mut Size) -> Status;
    H5Pset_buffer: fn(Id, usize, *mut c_void, *mut c_void) -> Status;
    H5Pset_chunk: fn(Id, c_int, *const Size) -> Status;
    H5Pget_chunk: fn(Id, c_int, *mut Size) -> c_int;
    H5Pset_deflate: fn(Id, c_uint) -> Status;
    H5Pset_szip: fn(Id, c_uint, c_uint) -> Status;
    H5Pset_shuffle: fn(Id) -> Status;
    H5Pset_fletcher32: fn(Id) -> Status;
    H5Pget_nfilters: fn(Id) -> c_int;
    H5Pget_filter2: fn(Id, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int;
    H5Pset_fill_time: fn(Id, c_int) -> Status;
    H5Pget_fill_time: fn(Id, *mut c_int) -> Status;
    H5Pset_layout: fn(Id, c_int) -> Status;
    H5Pget_layout: fn(Id) -> c_int;
    H5Fcreate: fn(*const c_char, c_uint, Id, Id) -> Id;
    H5Fopen: fn(*const c_char, c_uint, Id) -> Id;
    H5Fflush: fn(Id, c_int) -> Status;
    H5Fclose: fn(Id) -> Status;
    H5Fget_access_plist: fn(Id) -> Id;
    H5Fget_create_plist: fn(Id) -> Id;
    H5Gcreate2: fn(Id, *const c_char, Id, Id, Id) -> Id;
    H5Screate: fn(c_int) -> Id;
    H5Screate_simple: fn(c_int, *const Size, *const Size) -> Id;
    H5Sselect_hyperslab: fn(Id, c_int, *const Size, *const Size, *const Size, *const Size) -> Status;
    H5Sget_simple_extent_ndims: fn(Id) -> c_int;
    H5Sget_simple_extent_dims: fn(Id, *mut Size, *mut Size) -> c_int;
    H5Dcreate2: fn(Id, *const c_char, Id, Id, Id, Id, Id) -> Id;
    H5Dopen2: fn(Id, *const c_char, Id) -> Id;
    H5Dget_space: fn(Id) -> Id;
    H5Dget_create_plist: fn(Id) -> Id;
    H5Dget_offset: fn(Id) -> Size;
    H5Dwrite: fn(Id, Id, Id, Id, Id, *const c_void) -> Status;
    H5Dread: fn(Id, Id, Id, Id, Id, *mut c_void) -> Status;
    H5Dclose: fn(Id) -> Status;
    H5Acreate2: fn(Id, *const c_char, Id, Id, Id, Id) -> Id;
    H5Awrite: fn(Id, Id, *const c_void) -> Status;
}

macro_rules! variables {
    ($($field:ident: $name:ident;)*) => {
        /// Identifiers of property list classes and datatypes, which the library sets when it is opened.
        #[derive(Debug, Clone, Copy)]
        pub(super) struct Variables { $(pub $field: Id,)* }

        impl Variables {
            /// Returns the variables of the library that raddle is linked with, which must be open.
            pub(super) fn bundled() -> Self {
                mod linked {
                    use super::Id;
                    unsafe extern "C" { $(pub(super) static $name: Id;)* }
                }
                // SAFETY: these variables have had this type in every HDF5 since 1.10; nothing modifies them once the
                // library is open.
                unsafe { Self { $($field: linked::$name,)* } }
            }

            /// Looks up the variables of `library`, which must be open.
            pub(super) fn of(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: as in `bundled`.
                Ok(unsafe { Self { $($field: **library.get::<*const Id>(concat!(stringify!($name), "\0").as_bytes())?,)* } })
            }
        }
    };
}

variables! {
    file_creation: H5P_CLS_FILE_CREATE_ID_g;
    file_access: H5P_CLS_FILE_ACCESS_ID_g;
    dataset_creation: H5P_CLS_DATASET_CREATE_ID_g;
    transfer: H5P_CLS_DATASET_XFER_ID_g;
    f32: H5T_IEEE_F32LE_g;
    f64: H5T_IEEE_F64LE_g;
    i32: H5T_STD_I32LE_g;
}

/// Functions that exist only in a library built with MPI; handles are machine words (see [`super::DynamicMpi`]).
#[expect(non_snake_case, reason = "the names of the library")]
pub(super) struct Parallel {
    pub H5Pset_fapl_mpio: unsafe extern "C" fn(Id, usize, usize) -> Status,
    pub H5Pset_dxpl_mpio: unsafe extern "C" fn(Id, c_int) -> Status,
    pub H5Pset_all_coll_metadata_ops: unsafe extern "C" fn(Id, bool) -> Status,
    pub H5Pset_coll_metadata_write: unsafe extern "C" fn(Id, bool) -> Status,
}

impl Parallel {
    /// Looks up the functions of `library`.
    pub(super) fn of(library: &Library) -> Result<Self, libloading::Error> {
        // SAFETY: the types are those that HDF5 has declared for these names since 1.10.
        unsafe {
            Ok(Self {
                H5Pset_fapl_mpio: *library.get(b"H5Pset_fapl_mpio\0")?,
                H5Pset_dxpl_mpio: *library.get(b"H5Pset_dxpl_mpio\0")?,
                H5Pset_all_coll_metadata_ops: *library.get(b"H5Pset_all_coll_metadata_ops\0")?,
                H5Pset_coll_metadata_write: *library.get(b"H5Pset_coll_metadata_write\0")?,
            })
        }
    }
}

/// Returns the version that the zlib among the dependencies of `library` reports.
pub(super) fn zlib_version(library: &Library) -> Option<String> {
    // SAFETY: the type is that declared by zlib; the function returns a constant text.
    let version = unsafe { library.get::<unsafe extern "C" fn() -> *const c_char>(b"zlibVersion\0").ok()?() };
    // SAFETY: as above.
    (!version.is_null()).then(|| unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned())
}
