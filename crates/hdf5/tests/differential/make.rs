//! Creates files with plain libhdf5 calls, for both readers to read.
//!
//! Only as much as is needed to produce every structure of the format. Values are a function of their position, so that
//! a wrong element is noticed.

use crate::compare::agree;
use hdf5_metno_sys::h5a::*;
use hdf5_metno_sys::h5d::*;
pub use hdf5_metno_sys::h5f::H5F_libver_t;
use hdf5_metno_sys::h5f::*;
use hdf5_metno_sys::h5g::*;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5s::*;
use hdf5_metno_sys::h5t::*;
use hdf5_metno_sys::h5z::{H5Zfilter_avail, H5Zget_filter_info};
use raddle_hdf5::ffi::Library;
use std::ffi::CString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

/// Calls libhdf5 and fails the test if the call fails.
#[macro_export]
macro_rules! h5 {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the maker holds the lock and its arguments: identifiers that it opened, buffers of the stated length.
        let result = unsafe { $function($($argument),*) };
        if result < 0 {
            panic!("{}", raddle_hdf5::ffi::Call::of_file(std::path::Path::new("test")).error(stringify!($function)));
        }
        result
    }};
}

unsafe extern "C" {
    // Not in the bindings; with 1, numbers with few significant bits are allowed.
    fn H5Pset_relax_file_integrity_checks(file_access: hid_t, flags: u64) -> i32;
}

pub const DEFAULT: hid_t = H5P_DEFAULT;

/// Returns a zero-terminated copy of a name.
pub fn name(bytes: impl AsRef<[u8]>) -> CString {
    CString::new(bytes.as_ref()).unwrap()
}

/// Oldest and newest format that a file may use.
pub type Bounds = (H5F_libver_t, H5F_libver_t);

/// Format bounds, from files that HDF5 1.0 reads up to the newest format.
pub const BOUNDS: [Bounds; 5] = [
    (H5F_libver_t::H5F_LIBVER_EARLIEST, H5F_libver_t::H5F_LIBVER_V200),
    (H5F_libver_t::H5F_LIBVER_V18, H5F_libver_t::H5F_LIBVER_V18),
    (H5F_libver_t::H5F_LIBVER_V110, H5F_libver_t::H5F_LIBVER_V110),
    (H5F_libver_t::H5F_LIBVER_V112, H5F_libver_t::H5F_LIBVER_V112),
    (H5F_libver_t::H5F_LIBVER_V200, H5F_libver_t::H5F_LIBVER_V200),
];

/// Creates a file with the same contents in each format, and checks that the readers agree on each.
pub fn each_bounds(test_name: &str, make: impl Fn(&Maker)) {
    each_of(test_name, &|_| {}, make);
}

/// Like [`each_bounds`], with different file settings.
pub fn each_of(test_name: &str, configure: &dyn Fn(hid_t), make: impl Fn(&Maker)) {
    each_within(&BOUNDS, test_name, configure, make);
}

/// Like [`each_of`], for selected formats.
pub fn each_within(all: &[Bounds], test_name: &str, configure: &dyn Fn(hid_t), make: impl Fn(&Maker)) {
    let folder = tempfile::tempdir().unwrap();
    for (number, &bounds) in all.iter().enumerate() {
        let path = folder.path().join(format!("{test_name}_{number}.h5"));
        let maker = Maker::create(&path, bounds, configure);
        make(&maker);
        maker.finish();
        agree(&path);
    }
}

/// A file under construction.
pub struct Maker {
    pub file: hid_t,
    pub bounds: Bounds,
    path: PathBuf,
    _library: Library,
}

impl Maker {
    /// Creates a file within format bounds; `configure` may change the file creation list.
    pub fn create(path: &Path, bounds: Bounds, configure: impl FnOnce(hid_t)) -> Self {
        let library = Library::lock();
        let creation = h5!(H5Pcreate(*H5P_CLS_FILE_CREATE));
        configure(creation);
        let access = h5!(H5Pcreate(*H5P_CLS_FILE_ACCESS));
        h5!(H5Pset_relax_file_integrity_checks(access, 1));
        // A child process started by another test at this moment holds the lock until it runs its program.
        h5!(H5Pset_file_locking(access, 0, 1));
        h5!(H5Pset_libver_bounds(access, bounds.0, bounds.1));
        let file_name = name(path.as_os_str().as_bytes());
        let file = h5!(H5Fcreate(file_name.as_ptr(), H5F_ACC_TRUNC, creation, access));
        h5!(H5Pclose(access));
        h5!(H5Pclose(creation));
        Self { file, bounds, path: path.to_path_buf(), _library: library }
    }

    /// Closes the file and checks that no identifier was left open.
    pub fn finish(self) {
        // SAFETY: the file is open; counting all its open identifiers.
        let open = unsafe { H5Fget_obj_count(self.file, H5F_OBJ_ALL) };
        assert_eq!(open, 1, "{}: the maker left identifiers open", self.path.display());
        h5!(H5Fclose(self.file));
    }

    /// Returns whether attributes of this file may be in dense storage.
    pub fn has_dense_attributes(&self) -> bool {
        self.bounds != BOUNDS[0]
    }

    /// Creates a group with the given creation order flags (1 tracked, 2 indexed) for links and attributes.
    pub fn group(&self, path: &str, link_order: u32, attribute_order: u32) -> hid_t {
        let list = h5!(H5Pcreate(*H5P_CLS_GROUP_CREATE));
        h5!(H5Pset_link_creation_order(list, link_order));
        h5!(H5Pset_attr_creation_order(list, attribute_order));
        let group = h5!(H5Gcreate2(self.file, name(path).as_ptr(), DEFAULT, list, DEFAULT));
        h5!(H5Pclose(list));
        group
    }

    /// Creates a dataset of `datatype` with the creation list `list`, both of which remain the caller's.
    pub fn dataset(&self, path: &str, datatype: hid_t, space: &Space, list: hid_t) -> hid_t {
        let space = space.open();
        let dataset = h5!(H5Dcreate2(self.file, name(path).as_ptr(), datatype, space, DEFAULT, list, DEFAULT));
        h5!(H5Sclose(space));
        dataset
    }

    /// Creates a dataset with default settings and writes its values.
    pub fn simple_dataset(&self, path: &str, datatype: hid_t, space: &Space, values: &[u8]) {
        let dataset = self.dataset(path, datatype, space, DEFAULT);
        write_all(dataset, datatype, values);
        h5!(H5Dclose(dataset));
    }
}

/// A dataspace to be created.
#[derive(Debug, Clone, PartialEq)]
pub enum Space {
    Scalar,
    Null,
    Simple { dims: Vec<u64>, max_dims: Vec<u64> },
}

impl Space {
    pub fn fixed(dims: &[u64]) -> Self {
        Self::Simple { dims: dims.to_vec(), max_dims: dims.to_vec() }
    }

    pub fn growing(dims: &[u64], max_dims: &[u64]) -> Self {
        Self::Simple { dims: dims.to_vec(), max_dims: max_dims.to_vec() }
    }

    pub fn open(&self) -> hid_t {
        match self {
            Self::Scalar => h5!(H5Screate(H5S_class_t::H5S_SCALAR)),
            Self::Null => h5!(H5Screate(H5S_class_t::H5S_NULL)),
            Self::Simple { dims, max_dims } => {
                h5!(H5Screate_simple(dims.len() as i32, dims.as_ptr(), max_dims.as_ptr()))
            }
        }
    }

    pub fn element_count(&self) -> usize {
        match self {
            Self::Scalar => 1,
            Self::Null => 0,
            Self::Simple { dims, .. } => dims.iter().product::<u64>() as usize,
        }
    }
}

/// Writes all elements of a dataset; `values` hold them in memory form.
pub fn write_all(dataset: hid_t, datatype: hid_t, values: &[u8]) {
    h5!(H5Dwrite(dataset, datatype, H5S_ALL, H5S_ALL, DEFAULT, values.as_ptr().cast()));
}

/// Writes an attribute with values in memory form.
pub fn attribute(object: hid_t, attribute_name: impl AsRef<[u8]>, datatype: hid_t, space: &Space, values: &[u8]) {
    let list = h5!(H5Pcreate(*H5P_CLS_ATTRIBUTE_CREATE));
    if !attribute_name.as_ref().is_ascii() {
        h5!(H5Pset_char_encoding(list, H5T_cset_t::H5T_CSET_UTF8));
    }
    let space_id = space.open();
    let attribute = h5!(H5Acreate2(object, name(attribute_name).as_ptr(), datatype, space_id, list, DEFAULT));
    if *space != Space::Null {
        h5!(H5Awrite(attribute, datatype, values.as_ptr().cast()));
    }
    h5!(H5Aclose(attribute));
    h5!(H5Sclose(space_id));
    h5!(H5Pclose(list));
}

/// Returns bytes that differ from their neighbours, generated from a seed.
pub fn pattern(len_bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |state: &mut u64| {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 32) as u8
    };
    (0..len_bytes).map(|_| step(&mut state)).collect()
}

/// Creates a dataset creation list.
pub fn creation_list() -> hid_t {
    h5!(H5Pcreate(*H5P_CLS_DATASET_CREATE))
}

/// Writes rows of a dataset of these dimensions.
pub fn write_rows(dataset: hid_t, datatype: hid_t, dims: &[u64], rows: Range<u64>, values: &[u8]) {
    let mut count = dims.to_vec();
    count[0] = rows.end - rows.start;
    let mut start = vec![0; dims.len()];
    start[0] = rows.start;
    let rank = dims.len() as i32;
    let in_file = h5!(H5Dget_space(dataset));
    let set = H5S_seloper_t::H5S_SELECT_SET;
    h5!(H5Sselect_hyperslab(in_file, set, start.as_ptr(), none(), count.as_ptr(), none()));
    let in_memory = h5!(H5Screate_simple(rank, count.as_ptr(), none()));
    h5!(H5Dwrite(dataset, datatype, in_memory, in_file, DEFAULT, values.as_ptr().cast()));
    h5!(H5Sclose(in_memory));
    h5!(H5Sclose(in_file));
}

/// Writes a chunk in its stored form.
pub fn write_chunk(dataset: hid_t, filter_mask: u32, origin: &[u64], bytes: &[u8]) {
    h5!(H5Dwrite_chunk(dataset, DEFAULT, filter_mask, origin.as_ptr(), bytes.len(), bytes.as_ptr().cast()));
}

/// Commits a copy of a datatype and opens it.
pub fn commit_type(file: hid_t, path: &str, datatype: hid_t) -> hid_t {
    let committed = h5!(H5Tcopy(datatype));
    h5!(H5Tcommit2(file, name(path).as_ptr(), committed, DEFAULT, DEFAULT, DEFAULT));
    committed
}

/// Returns whether this build of libhdf5 can write with a filter.
pub fn is_available(filter: i32) -> bool {
    let mut config = 0;
    // SAFETY: takes a number; the variable outlives the call.
    unsafe { H5Zfilter_avail(filter) > 0 && H5Zget_filter_info(filter, &raw mut config) >= 0 && config & 1 != 0 }
}

/// Returns a null pointer, which libhdf5 accepts as "none".
pub fn none<T>() -> *const T {
    ptr::null()
}
