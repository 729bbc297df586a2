//! Writes files as other programs do: with libhdf5's own driver and defaults, chunk by chunk.
//!
//! This makes inputs for the demo and the benchmarks, never raddle's outputs, which go through the planning driver of
//! [`crate::write`]. Callers pass chunks in their stored form, so that compression can run on other threads. Invariant:
//! the lock of libhdf5 is held only during calls, never between them.

use crate::error::Result;
use crate::ffi::{Call, Handle, Library};
use hdf5_metno_sys::h5d::{H5Dcreate2, H5Dwrite_chunk};
use hdf5_metno_sys::h5f::{H5F_ACC_EXCL, H5F_libver_t, H5Fclose, H5Fcreate};
use hdf5_metno_sys::h5g::H5Gcreate2;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATASET_CREATE, H5P_CLS_FILE_ACCESS, H5P_DEFAULT, H5Pcreate, H5Pset_chunk, H5Pset_deflate,
    H5Pset_file_locking, H5Pset_libver_bounds, H5Pset_obj_track_times,
};
use hdf5_metno_sys::h5s::{H5S_UNLIMITED, H5Screate_simple};
use hdf5_metno_sys::h5t::{
    H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_STD_I32LE, H5T_STD_I64LE, H5T_STD_U8LE, H5T_STD_U16LE, H5T_STD_U32LE,
};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Little-endian element types used in tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 8 bytes.
    I64,
    /// IEEE, 4 bytes.
    F32,
    /// IEEE, 8 bytes.
    F64,
}

impl Element {
    /// Returns the size of one element.
    pub fn len_bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// Returns libhdf5's identifier. Call under the lock: the identifiers exist only after the library is initialised.
    fn type_id(self, _library: &Library) -> hid_t {
        match self {
            Self::U8 => *H5T_STD_U8LE,
            Self::U16 => *H5T_STD_U16LE,
            Self::U32 => *H5T_STD_U32LE,
            Self::I32 => *H5T_STD_I32LE,
            Self::I64 => *H5T_STD_I64LE,
            Self::F32 => *H5T_IEEE_F32LE,
            Self::F64 => *H5T_IEEE_F64LE,
        }
    }
}

/// A chunked, deflated dataset whose first dimension can grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultDatasetSpec {
    /// Element type.
    pub element: Element,
    /// Extent in elements; the first dimension is unlimited, the others are fixed.
    pub dims: Vec<u64>,
    /// Chunk shape in elements, with the same rank as `dims`.
    pub chunk_shape: Vec<u64>,
    /// Deflate level recorded in the filter pipeline, 0 to 9.
    pub gzip_level: u32,
}

/// A new file in the earliest format, which h5py and most frameworks write by default.
#[derive(Debug)]
pub struct DefaultFormatFile {
    path: PathBuf,
    file: Handle,
}

/// A dataset of a [`DefaultFormatFile`], open for writing chunks.
#[derive(Debug)]
pub struct DefaultDataset {
    path: PathBuf,
    object: Vec<u8>,
    rank: usize,
    dataset: Handle,
}

impl DefaultFormatFile {
    /// Creates `path`, which must not exist.
    pub fn create(path: &Path) -> Result<Self> {
        let _library = Library::lock();
        let call = Call::of_file(path);
        let name = call.c_string("H5Fcreate", path.as_os_str().as_bytes())?;
        // SAFETY: the lock is held for the block; identifiers are valid handles or library constants, `name` lives.
        let file = unsafe {
            let access = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_FILE_ACCESS))?;
            let (low, high) = (H5F_libver_t::H5F_LIBVER_EARLIEST, H5F_libver_t::H5F_LIBVER_V110);
            call.status("H5Pset_libver_bounds", H5Pset_libver_bounds(access.id(), low, high))?;
            // A program started by another thread inherits the open file, and would keep its lock after the close.
            call.status("H5Pset_file_locking", H5Pset_file_locking(access.id(), 0, 1))?;
            call.handle("H5Fcreate", H5Fcreate(name.as_ptr(), H5F_ACC_EXCL, H5P_DEFAULT, access.id()))?
        };
        Ok(Self { path: path.to_path_buf(), file })
    }

    /// Creates a group; its parent must exist.
    pub fn create_group(&mut self, object: &[u8]) -> Result<()> {
        let _library = Library::lock();
        let call = Call::of_object(&self.path, object);
        let name = call.c_string("H5Gcreate2", object)?;
        // SAFETY: the lock is held, the file is open, `name` lives.
        let group = unsafe {
            let id = H5Gcreate2(self.file.id(), name.as_ptr(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            call.handle("H5Gcreate2", id)?
        };
        drop(group);
        Ok(())
    }

    /// Creates a dataset; its group must exist.
    ///
    /// # Panics
    /// If `dims` and `chunk_shape` differ in length.
    pub fn create_dataset(&mut self, object: &[u8], spec: &DefaultDatasetSpec) -> Result<DefaultDataset> {
        let rank = spec.dims.len();
        assert_eq!(rank, spec.chunk_shape.len(), "a chunk has the rank of its dataset");
        let library = Library::lock();
        let call = Call::of_object(&self.path, object);
        let name = call.c_string("H5Dcreate2", object)?;
        let mut max_dims = spec.dims.clone();
        if let Some(first) = max_dims.first_mut() {
            *first = H5S_UNLIMITED;
        }
        // SAFETY: the lock is held for the block; handles are open, the arrays hold `rank` values and live.
        let dataset = unsafe {
            let id = H5Screate_simple(rank as i32, spec.dims.as_ptr(), max_dims.as_ptr());
            let space = call.handle("H5Screate_simple", id)?;
            let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_DATASET_CREATE))?;
            call.status("H5Pset_chunk", H5Pset_chunk(list.id(), rank as i32, spec.chunk_shape.as_ptr()))?;
            call.status("H5Pset_deflate", H5Pset_deflate(list.id(), spec.gzip_level))?;
            call.status("H5Pset_obj_track_times", H5Pset_obj_track_times(list.id(), 0))?;
            let (file, element) = (self.file.id(), spec.element.type_id(&library));
            let id = H5Dcreate2(file, name.as_ptr(), element, space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT);
            call.handle("H5Dcreate2", id)?
        };
        Ok(DefaultDataset { path: self.path.clone(), object: object.to_vec(), rank, dataset })
    }

    /// Closes the file. All its datasets must have been dropped.
    pub fn finish(self) -> Result<()> {
        let _library = Library::lock();
        // SAFETY: the lock is held, and `into_raw` gives up the only owner of the handle.
        let status = unsafe { H5Fclose(self.file.into_raw()) };
        Call::of_file(&self.path).status("H5Fclose", status).map(|_| ())
    }
}

impl DefaultDataset {
    /// Writes the chunk at `origin` (in elements) in its stored form. Bit 0 of `filter_mask` means that deflate was
    /// skipped.
    ///
    /// # Panics
    /// If the length of `origin` is not the dataset's rank.
    pub fn write_chunk(&mut self, origin: &[u64], stored: &[u8], filter_mask: u32) -> Result<()> {
        assert_eq!(origin.len(), self.rank, "a chunk's origin has the rank of its dataset");
        let _library = Library::lock();
        // SAFETY: the lock is held, the dataset is open, `origin` has one value per dimension, and the length passed
        // for `stored` is its own.
        let status = unsafe {
            let bytes = stored.as_ptr().cast();
            H5Dwrite_chunk(self.dataset.id(), H5P_DEFAULT, filter_mask, origin.as_ptr(), stored.len(), bytes)
        };
        Call::of_object(&self.path, &self.object).status("H5Dwrite_chunk", status).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(dims: &[u64]) -> DefaultDatasetSpec {
        DefaultDatasetSpec { element: Element::U8, dims: dims.to_vec(), chunk_shape: vec![4, 1], gzip_level: 6 }
    }

    #[test]
    fn the_file_holds_the_stored_chunks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stock.h5");
        let mut file = DefaultFormatFile::create(&path).unwrap();
        file.create_group(b"/table").unwrap();
        let mut dataset = file.create_dataset(b"/table/column", &spec(&[6, 1])).unwrap();
        dataset.write_chunk(&[0, 0], b"first stored chunk", 0).unwrap();
        dataset.write_chunk(&[4, 0], b"second stored chunk", 1).unwrap();
        drop(dataset);
        file.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..8], *b"\x89HDF\r\n\x1a\n");
        assert_eq!(bytes[8], 0, "superblock version");
        for stored in [&b"first stored chunk"[..], b"second stored chunk"] {
            assert!(bytes.windows(stored.len()).any(|window| window == stored));
        }
    }

    #[test]
    fn an_existing_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("there.h5");
        std::fs::write(&path, b"mine").unwrap();
        let error = DefaultFormatFile::create(&path).unwrap_err().to_string();
        assert!(error.contains("there.h5") && error.contains("H5Fcreate"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn a_chunk_off_the_grid_is_an_error_that_names_the_dataset() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = DefaultFormatFile::create(&folder.path().join("stock.h5")).unwrap();
        let mut dataset = file.create_dataset(b"/column", &spec(&[6, 1])).unwrap();
        let error = dataset.write_chunk(&[3, 0], b"x", 0).unwrap_err().to_string();
        assert!(error.contains("H5Dwrite_chunk of /column"), "{error}");
        drop(dataset);
        file.finish().unwrap();
    }
}
