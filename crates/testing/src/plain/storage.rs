//! Storage at the level of chunks and addresses, and storage in other files, for making hostile files.

use crate::content::escape_bytes;
use hdf5_metno_sys::h5d::*;
use hdf5_metno_sys::h5f::*;
use hdf5_metno_sys::h5g::H5Gcreate2;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5r::{H5R_type_t, H5Rcreate};
use hdf5_metno_sys::h5s::*;
use hdf5_metno_sys::h5t::{H5T_STD_REF_OBJ, H5T_STD_U8LE};
use hdf5_metno_sys::h5z::{H5Z_FLAG_OPTIONAL, H5Z_filter_t};
use raddle_hdf5::Result;
use raddle_hdf5::ffi::{Call, Handle, Library};
use std::ffi::{c_int, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A stored chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChunk {
    /// First element.
    pub origin: Vec<u64>,
    /// Offset in the file.
    pub address: u64,
    /// Stored length in bytes.
    pub len_bytes: u64,
    /// Mask of skipped filters.
    pub filter_mask: u32,
}

/// Storage of the values of a new dataset of bytes.
#[derive(Debug, Clone, Copy)]
pub enum Foreign<'a> {
    /// Raw bytes in another file.
    External(&'a Path),
    /// Dataset `/data` of another file, to which a virtual dataset refers.
    Virtual(&'a Path),
    /// In chunks of 16 rows with a filter of this number, which libhdf5 does not know.
    UnknownFilter(u16),
    /// Nowhere: in chunks of this many rows, none of which is allocated.
    Unallocated(u64),
}

fn open(call: Call<'_>, flags: c_uint) -> Result<Handle> {
    let _library = Library::lock();
    let name = call.c_string("H5Fopen", call.path.as_os_str().as_bytes())?;
    // SAFETY: the lock is held, lists are open, and `name` outlives the calls. SWMR requires the newest format.
    unsafe {
        let access = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_FILE_ACCESS))?;
        // A process that another test is just starting holds the lock until it runs its program.
        call.status("H5Pset_file_locking", H5Pset_file_locking(access.id(), 0, 1))?;
        if flags & H5F_ACC_SWMR_WRITE != 0 {
            let status = H5Pset_libver_bounds(access.id(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
            call.status("H5Pset_libver_bounds", status)?;
        }
        call.handle("H5Fopen", H5Fopen(name.as_ptr(), flags, access.id()))
    }
}

fn open_dataset(call: Call<'_>, file: &Handle) -> Result<Handle> {
    let name = call.c_string("H5Dopen2", call.object)?;
    // SAFETY: the callers hold the lock and an open file; `name` outlives the call.
    unsafe { call.handle("H5Dopen2", H5Dopen2(file.id(), name.as_ptr(), H5P_DEFAULT)) }
}

/// Writes a chunk in its stored form, with any content.
///
/// # Panics
/// If `origin` does not have the dataset's rank.
pub fn write_chunk(path: &Path, dataset: &[u8], origin: &[u64], filter_mask: u32, stored: &[u8]) -> Result<()> {
    let _library = Library::lock();
    let call = Call::of_object(path, dataset);
    let file = open(call, H5F_ACC_RDWR)?;
    let opened = open_dataset(call, &file)?;
    // SAFETY: the lock is held, handles are open, `origin` holds the dataset's rank, `stored` its length.
    unsafe {
        let space = call.handle("H5Dget_space", H5Dget_space(opened.id()))?;
        let rank = call.status("H5Sget_simple_extent_ndims", H5Sget_simple_extent_ndims(space.id()))?;
        assert_eq!(origin.len(), rank as usize, "{}: rank of a chunk's origin", escape_bytes(dataset));
        let (origin, bytes) = (origin.as_ptr(), stored.as_ptr().cast());
        let status = H5Dwrite_chunk(opened.id(), H5P_DEFAULT, filter_mask, origin, stored.len(), bytes);
        call.status("H5Dwrite_chunk", status)?;
    }
    Ok(())
}

/// Returns the allocated chunks of a dataset.
pub fn chunks(path: &Path, dataset: &[u8]) -> Result<Vec<StoredChunk>> {
    let _library = Library::lock();
    let call = Call::of_object(path, dataset);
    let file = open(call, H5F_ACC_RDONLY)?;
    let opened = open_dataset(call, &file)?;
    // SAFETY: the lock is held, handles are open, `origin` holds the rank, out-pointers are to locals.
    unsafe {
        let space = call.handle("H5Dget_space", H5Dget_space(opened.id()))?;
        let rank = call.status("H5Sget_simple_extent_ndims", H5Sget_simple_extent_ndims(space.id()))? as usize;
        let mut count = 0;
        let status = H5Dget_num_chunks(opened.id(), space.id(), &raw mut count);
        call.status("H5Dget_num_chunks", status)?;
        let chunk = |number| {
            let (mut origin, mut filter_mask, mut address, mut len_bytes) = (vec![0; rank], 0, 0, 0);
            let (mask, at, len) = (&raw mut filter_mask, &raw mut address, &raw mut len_bytes);
            let status = H5Dget_chunk_info(opened.id(), space.id(), number, origin.as_mut_ptr(), mask, at, len);
            call.status("H5Dget_chunk_info", status)?;
            Ok(StoredChunk { origin, address, len_bytes, filter_mask })
        };
        (0..count).map(chunk).collect()
    }
}

/// Returns the file offset of a contiguous dataset's values.
///
/// # Panics
/// If the dataset has no storage.
pub fn data_address(path: &Path, dataset: &[u8]) -> Result<u64> {
    let _library = Library::lock();
    let call = Call::of_object(path, dataset);
    let file = open(call, H5F_ACC_RDONLY)?;
    let opened = open_dataset(call, &file)?;
    // SAFETY: the lock is held, the dataset is open.
    let address = unsafe { H5Dget_offset(opened.id()) };
    assert_ne!(address, u64::MAX, "{}: no storage", escape_bytes(dataset));
    Ok(address)
}

/// Adds a dataset of `rows` bytes whose values are stored elsewhere.
pub fn create_foreign(path: &Path, dataset: &[u8], rows: u64, foreign: Foreign<'_>) -> Result<()> {
    let _library = Library::lock();
    let call = Call::of_object(path, dataset);
    let file = open(call, H5F_ACC_RDWR)?;
    let name = call.c_string("H5Dcreate2", dataset)?;
    // SAFETY: the lock is held, handles are open, names live, arrays hold one dimension.
    unsafe {
        let space = call.handle("H5Screate_simple", H5Screate_simple(1, &raw const rows, std::ptr::null()))?;
        let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_DATASET_CREATE))?;
        let chunk = |rows: u64| call.status("H5Pset_chunk", H5Pset_chunk(list.id(), 1 as c_int, &raw const rows));
        match foreign {
            Foreign::External(other) => {
                let other = call.c_string("H5Pset_external", other.as_os_str().as_bytes())?;
                let status = H5Pset_external(list.id(), other.as_ptr(), 0, rows);
                call.status("H5Pset_external", status)?;
            }
            Foreign::Virtual(other) => {
                let other = call.c_string("H5Pset_virtual", other.as_os_str().as_bytes())?;
                let (to, from) = (space.id(), space.id());
                let status = H5Pset_virtual(list.id(), to, other.as_ptr(), c"/data".as_ptr(), from);
                call.status("H5Pset_virtual", status)?;
            }
            Foreign::UnknownFilter(number) => {
                chunk(rows.min(16))?;
                let (id, optional) = (H5Z_filter_t::from(number), H5Z_FLAG_OPTIONAL as c_uint);
                let status = H5Pset_filter(list.id(), id, optional, 0, std::ptr::null());
                call.status("H5Pset_filter", status)?;
            }
            Foreign::Unallocated(rows) => {
                chunk(rows)?;
            }
        }
        let id = H5Dcreate2(file.id(), name.as_ptr(), *H5T_STD_U8LE, space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT);
        drop(call.handle("H5Dcreate2", id)?);
    }
    Ok(())
}

/// Adds a dataset of `rows` object references in chunks of 2 rows, none of which is written: all read as the fill
/// value, a reference to `target`.
pub fn create_reference_fill(path: &Path, dataset: &[u8], rows: u64, target: &[u8]) -> Result<()> {
    let _library = Library::lock();
    let call = Call::of_object(path, dataset);
    let file = open(call, H5F_ACC_RDWR)?;
    let (name, target) = (call.c_string("H5Dcreate2", dataset)?, call.c_string("H5Rcreate", target)?);
    let (chunk, mut fill, max_rows) = (2_u64, 0_u64, u64::MAX);
    // SAFETY: the lock is held, handles are open, names live, arrays hold one dimension; an object reference takes the
    // 8 bytes of `fill`.
    unsafe {
        let status = H5Rcreate((&raw mut fill).cast(), file.id(), target.as_ptr(), H5R_type_t::H5R_OBJECT1, -1);
        call.status("H5Rcreate", status)?;
        let space = call.handle("H5Screate_simple", H5Screate_simple(1, &raw const rows, &raw const max_rows))?;
        let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_DATASET_CREATE))?;
        call.status("H5Pset_chunk", H5Pset_chunk(list.id(), 1, &raw const chunk))?;
        let datatype = *H5T_STD_REF_OBJ;
        let status = H5Pset_fill_value(list.id(), datatype, (&raw const fill).cast());
        call.status("H5Pset_fill_value", status)?;
        let id = H5Dcreate2(file.id(), name.as_ptr(), datatype, space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT);
        call.handle("H5Dcreate2", id).map(drop)
    }
}

/// Adds a group with a dataset `data` of `rows` bytes, which count upwards, in chunks of 16. The names in the group lie
/// in a compressed heap, which is valid but not supported by the native reader.
pub fn create_compressed_group(path: &Path, group: &[u8], rows: u64) -> Result<()> {
    let _library = Library::lock();
    let call = Call::of_object(path, group);
    let file = open(call, H5F_ACC_RDWR)?;
    let name = call.c_string("H5Gcreate2", group)?;
    let values: Vec<u8> = (0..rows).map(|row| row as u8).collect();
    let chunk = 16_u64;
    // SAFETY: the lock is held, handles are open, names live, arrays hold one dimension, `values` holds all elements.
    unsafe {
        let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_GROUP_CREATE))?;
        // Links are never stored in the object header: a single link suffices for the heap.
        call.status("H5Pset_link_phase_change", H5Pset_link_phase_change(list.id(), 0, 0))?;
        call.status("H5Pset_deflate", H5Pset_deflate(list.id(), 6))?;
        let id = H5Gcreate2(file.id(), name.as_ptr(), H5P_DEFAULT, list.id(), H5P_DEFAULT);
        let group = call.handle("H5Gcreate2", id)?;
        let space = call.handle("H5Screate_simple", H5Screate_simple(1, &raw const rows, std::ptr::null()))?;
        let list = call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_DATASET_CREATE))?;
        call.status("H5Pset_chunk", H5Pset_chunk(list.id(), 1, &raw const chunk))?;
        let (datatype, space) = (*H5T_STD_U8LE, space.id());
        let id = H5Dcreate2(group.id(), c"data".as_ptr(), datatype, space, H5P_DEFAULT, list.id(), H5P_DEFAULT);
        let dataset = call.handle("H5Dcreate2", id)?;
        let status = H5Dwrite(dataset.id(), datatype, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.as_ptr().cast());
        call.status("H5Dwrite", status).map(drop)
    }
}

/// Adds nested groups, each named `g` and created from the group around it: looking up a path from the root component
/// by component would take minutes for thousands of groups.
pub fn nest_groups(path: &Path, depth: usize) -> Result<()> {
    let _library = Library::lock();
    let call = Call::of_file(path);
    let mut around = open(call, H5F_ACC_RDWR)?;
    for _ in 0..depth {
        // SAFETY: the lock is held, `around` is open.
        let id = unsafe { H5Gcreate2(around.id(), c"g".as_ptr(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) };
        // SAFETY: the identifier comes straight from the call.
        around = unsafe { call.handle("H5Gcreate2", id)? };
    }
    Ok(())
}

/// Copies the bytes of a file of the newest format while a writer has it open, like the state after a crash.
pub fn copy_while_written(path: &Path, copy: &Path) -> Result<std::io::Result<u64>> {
    let _library = Library::lock();
    let file = open(Call::of_file(path), H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE)?;
    let copied = std::fs::copy(path, copy);
    drop(file);
    Ok(copied)
}
