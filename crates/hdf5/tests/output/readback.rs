//! Reads an output back with libhdf5's own calls and its default driver: an oracle independent of the planning driver.

use hdf5_metno_sys::h5::hsize_t;
use hdf5_metno_sys::h5d::{H5Dget_chunk_info_by_coord, H5Dget_num_chunks, H5Dget_offset, H5Dopen2, H5Dread};
use hdf5_metno_sys::h5d::{H5Dget_space, H5Dget_type};
use hdf5_metno_sys::h5f::{H5F_ACC_RDONLY, H5Fopen};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::{H5S_ALL, H5Sget_simple_extent_npoints};
use hdf5_metno_sys::h5t::{H5T_order_t, H5Tget_order, H5Tget_size};
use raddle_hdf5::ffi::{Call, Handle, Library};
use std::ffi::CString;
use std::path::Path;

/// An output, opened for reading. It holds the library's lock for the test.
pub struct Readback {
    path: std::path::PathBuf,
    file: Handle,
    _library: Library,
}

impl Readback {
    pub fn open(path: &Path) -> Self {
        let library = Library::lock();
        let call = Call::of_file(path);
        let name = call.c_string("H5Fopen", path.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: valid name, lock held; we own the identifier.
        let file = unsafe { call.handle("H5Fopen", H5Fopen(name.as_ptr(), H5F_ACC_RDONLY, H5P_DEFAULT)) }.unwrap();
        Self { path: path.to_path_buf(), file, _library: library }
    }

    pub fn call(&self) -> Call<'_> {
        Call::of_file(&self.path)
    }

    pub fn dataset(&self, name: &str) -> Handle {
        let name_c = CString::new(name).unwrap();
        // SAFETY: valid handle and name, lock held; we own the identifier.
        unsafe { self.call().handle("H5Dopen2", H5Dopen2(self.file.id(), name_c.as_ptr(), H5P_DEFAULT)) }.unwrap()
    }

    /// Returns all elements in the dataset's own type. Bytes that libhdf5 does not write stay 0xEE.
    pub fn values(&self, name: &str) -> Vec<u8> {
        let dataset = self.dataset(name);
        // SAFETY: for the block: valid handles, lock held; the buffer has room for all elements in the requested type.
        unsafe {
            let datatype = self.call().handle("H5Dget_type", H5Dget_type(dataset.id())).unwrap();
            let space = self.call().handle("H5Dget_space", H5Dget_space(dataset.id())).unwrap();
            let count = H5Sget_simple_extent_npoints(space.id());
            let mut out = vec![0xEE; usize::try_from(count).unwrap() * H5Tget_size(datatype.id())];
            let status = H5Dread(dataset.id(), datatype.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.as_mut_ptr().cast());
            self.call().status("H5Dread", status).unwrap();
            out
        }
    }

    /// Returns the byte order of a dataset's type.
    pub fn byte_order(&self, name: &str) -> H5T_order_t {
        let dataset = self.dataset(name);
        // SAFETY: valid handles, lock held.
        unsafe {
            let datatype = self.call().handle("H5Dget_type", H5Dget_type(dataset.id())).unwrap();
            H5Tget_order(datatype.id())
        }
    }

    /// Returns the address, stored length and filter mask of a chunk.
    pub fn chunk(&self, name: &str, origin: &[u64]) -> (u64, u64, u32) {
        let dataset = self.dataset(name);
        let (mut mask, mut address, mut len_bytes) = (0_u32, 0_u64, 0 as hsize_t);
        // SAFETY: valid handle, lock held; `origin` has the dataset's rank.
        let status = unsafe {
            let (mask, address, len) = (&raw mut mask, &raw mut address, &raw mut len_bytes);
            H5Dget_chunk_info_by_coord(dataset.id(), origin.as_ptr(), mask, address, len)
        };
        self.call().status("H5Dget_chunk_info_by_coord", status).unwrap();
        (address, len_bytes, mask)
    }

    pub fn chunk_count(&self, name: &str) -> u64 {
        let dataset = self.dataset(name);
        let mut count = 0;
        // SAFETY: valid handle, lock held.
        let status = unsafe { H5Dget_num_chunks(dataset.id(), H5S_ALL, &raw mut count) };
        self.call().status("H5Dget_num_chunks", status).unwrap();
        count
    }

    pub fn offset(&self, name: &str) -> u64 {
        let dataset = self.dataset(name);
        // SAFETY: valid handle, lock held.
        unsafe { H5Dget_offset(dataset.id()) }
    }
}
