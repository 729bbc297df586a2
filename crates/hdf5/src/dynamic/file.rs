//! Files and datasets of a dynamically loaded libhdf5, as used by benchmark kernels.
//!
//! Invariant: a box and its values have the same size before the library receives their address.

use super::functions::{Functions, Id};
use super::mpi::DynamicMpi;
use super::settings::{self, DatasetSettings, FileSettings};
use super::{DEFAULT, DynamicLibrary, OwnedId};
use crate::error::{Hdf5Error, Result};
use std::ffi::{CString, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

/// `H5F_ACC_EXCL`, `H5F_ACC_RDONLY`, `H5F_ACC_RDWR`, `H5F_SCOPE_LOCAL`, `H5S_SCALAR`, `H5S_SELECT_SET`,
/// `H5FD_MPIO_COLLECTIVE` and `HADDR_UNDEF`.
const EXCLUSIVE: c_uint = 4;
const READ_ONLY: c_uint = 0;
const READ_WRITE: c_uint = 1;
const SCOPE_LOCAL: c_int = 0;
const SCALAR: c_int = 0;
const SELECT_SET: c_int = 0;
const COLLECTIVE: c_int = 1;
const NOWHERE: u64 = u64::MAX;

/// Growth increment of the memory image of a file; a file that is only read does not grow.
const INCREMENT_LEN_BYTES: usize = 1 << 20;

/// Element type of a dataset, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// IEEE, 4 bytes.
    F32,
    /// IEEE, 8 bytes.
    F64,
}

/// Values in memory.
#[derive(Debug, Clone, Copy)]
pub enum MemoryValues<'a> {
    /// IEEE, 4 bytes.
    F32(&'a [f32]),
    /// IEEE, 8 bytes.
    F64(&'a [f64]),
}

impl MemoryValues<'_> {
    fn len(self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    fn address(self) -> *const c_void {
        match self {
            Self::F32(values) => values.as_ptr().cast(),
            Self::F64(values) => values.as_ptr().cast(),
        }
    }

    fn element(self) -> Element {
        match self {
            Self::F32(_) => Element::F32,
            Self::F64(_) => Element::F64,
        }
    }
}

/// An open file. Dropping it closes it and ignores errors; [`LibraryFile::close`] returns them.
#[derive(Debug)]
pub struct LibraryFile<'a> {
    id: OwnedId<'a>,
    path: PathBuf,
}

/// An open dataset.
#[derive(Debug)]
pub struct LibraryDataset<'a> {
    id: OwnedId<'a>,
    space: OwnedId<'a>,
    transfer: OwnedId<'a>,
    path: PathBuf,
}

impl DynamicLibrary {
    /// Creates the file at `path`, which must not exist.
    ///
    /// # Errors
    /// If the library call fails.
    pub fn create(&self, path: &Path, settings: &FileSettings) -> Result<LibraryFile<'_>> {
        let name = self.name("H5Fcreate", path.as_os_str().as_bytes())?;
        let [creation, access] = settings.lists(self)?;
        // SAFETY: the name ends with a zero byte; both lists are live.
        let id = unsafe { (self.functions.H5Fcreate)(name.as_ptr(), EXCLUSIVE, creation.id, access.id) };
        Ok(LibraryFile { id: self.owned_id("H5Fcreate", id)?, path: path.to_path_buf() })
    }

    /// Collective. Creates the file at `path`, which must not exist, for all ranks of `mpi`. With `collective_metadata`
    /// they read and write metadata collectively.
    ///
    /// # Errors
    /// If the library call fails, or `mpi` belongs to another library.
    pub fn create_together(
        &self,
        path: &Path,
        settings: &FileSettings,
        mpi: &DynamicMpi,
        collective_metadata: bool,
    ) -> Result<LibraryFile<'_>> {
        let name = self.name("H5Fcreate", path.as_os_str().as_bytes())?;
        let [creation, access] = settings.lists(self)?;
        self.share(access.id, mpi, collective_metadata)?;
        // SAFETY: as in `create`.
        let id = unsafe { (self.functions.H5Fcreate)(name.as_ptr(), EXCLUSIVE, creation.id, access.id) };
        Ok(LibraryFile { id: self.owned_id("H5Fcreate", id)?, path: path.to_path_buf() })
    }

    /// Collective. Opens the file at `path` for reading by all ranks of `mpi`.
    ///
    /// # Errors
    /// As for [`DynamicLibrary::create_together`].
    pub fn open_together(
        &self,
        path: &Path,
        settings: &FileSettings,
        mpi: &DynamicMpi,
        collective_metadata: bool,
    ) -> Result<LibraryFile<'_>> {
        self.open_with(READ_ONLY, path, settings, |access| self.share(access, mpi, collective_metadata))
    }

    /// Collective. Opens the file at `path`, created by one process, for writing by all ranks of `mpi`.
    ///
    /// # Errors
    /// As for [`DynamicLibrary::create_together`].
    pub fn reopen_together(
        &self,
        path: &Path,
        settings: &FileSettings,
        mpi: &DynamicMpi,
        collective_metadata: bool,
    ) -> Result<LibraryFile<'_>> {
        self.open_with(READ_WRITE, path, settings, |access| self.share(access, mpi, collective_metadata))
    }

    /// Sets the access list `access` to open files for all ranks.
    fn share(&self, access: Id, mpi: &DynamicMpi, collective_metadata: bool) -> Result<()> {
        let parallel = self.parallel.as_ref().filter(|_| self.path.as_deref() == Some(mpi.library()));
        let parallel = parallel.ok_or_else(|| Hdf5Error::Unusable {
            library: self.path.clone().unwrap_or_else(|| PathBuf::from("the bundled HDF5")),
            why: "it was built without MPI".to_owned(),
        })?;
        let [communicator, info] = mpi.handles();
        // SAFETY: `access` is a live file access list, and the handles are those of the MPI that this library is linked
        // with, which is initialised.
        unsafe {
            self.status("H5Pset_fapl_mpio", (parallel.H5Pset_fapl_mpio)(access, communicator, info))?;
            if collective_metadata {
                self.status("H5Pset_coll_metadata_write", (parallel.H5Pset_coll_metadata_write)(access, true))?;
                self.status("H5Pset_all_coll_metadata_ops", (parallel.H5Pset_all_coll_metadata_ops)(access, true))?;
            }
        }
        Ok(())
    }

    /// Opens the file at `path` for reading.
    ///
    /// # Errors
    /// If the library call fails.
    pub fn open(&self, path: &Path, settings: &FileSettings) -> Result<LibraryFile<'_>> {
        self.open_with(READ_ONLY, path, settings, |_| Ok(()))
    }

    /// Loads the whole file at `path` into memory (`H5Pset_fapl_core`), from which it is then read.
    ///
    /// # Errors
    /// If the library call fails.
    pub fn open_in_memory(&self, path: &Path, settings: &FileSettings) -> Result<LibraryFile<'_>> {
        self.open_with(READ_ONLY, path, settings, |access| {
            // SAFETY: a live file access property list; backing store is off, so nothing is written to the file.
            let status = unsafe { (self.functions.H5Pset_fapl_core)(access, INCREMENT_LEN_BYTES, false) };
            self.status("H5Pset_fapl_core", status).map(drop)
        })
    }

    fn open_with(
        &self,
        flags: c_uint,
        path: &Path,
        settings: &FileSettings,
        driver: impl FnOnce(Id) -> Result<()>,
    ) -> Result<LibraryFile<'_>> {
        let name = self.name("H5Fopen", path.as_os_str().as_bytes())?;
        let [_, access] = settings.lists(self)?;
        driver(access.id)?;
        // SAFETY: as in `create`.
        let id = unsafe { (self.functions.H5Fopen)(name.as_ptr(), flags, access.id) };
        Ok(LibraryFile { id: self.owned_id("H5Fopen", id)?, path: path.to_path_buf() })
    }

    fn name(&self, function: &str, name: &[u8]) -> Result<CString> {
        CString::new(name).map_err(|_| Hdf5Error::Library {
            path: self.path.clone().unwrap_or_default(),
            operation: function.to_owned(),
            detail: "a name contains a zero byte".to_owned(),
        })
    }

    fn type_id(&self, element: Element) -> Id {
        match element {
            Element::F32 => self.variables.f32,
            Element::F64 => self.variables.f64,
        }
    }

    fn space(&self, dims: &[u64]) -> Result<OwnedId<'_>> {
        let rank = c_int::try_from(dims.len()).unwrap_or(c_int::MAX);
        // SAFETY: `dims` has `rank` numbers; a null pointer means that the maximum dimensions are the same.
        self.owned_id("H5Screate_simple", unsafe { (self.functions.H5Screate_simple)(rank, dims.as_ptr(), null()) })
    }
}

impl<'a> LibraryFile<'a> {
    fn functions(&self) -> &'a Functions {
        &self.id.library.functions
    }

    /// Returns the settings with which the file was opened.
    ///
    /// # Errors
    /// If the library call fails.
    pub fn settings(&self) -> Result<FileSettings> {
        FileSettings::of_file(self.id.library, self.id.id)
    }

    /// Creates a group.
    ///
    /// # Errors
    /// If the library call fails.
    pub fn create_group(&self, name: &str) -> Result<()> {
        let library = self.id.library;
        let name = library.name("H5Gcreate2", name.as_bytes())?;
        // SAFETY: the file is open, the name ends with a zero byte.
        let id = unsafe { (self.functions().H5Gcreate2)(self.id.id, name.as_ptr(), DEFAULT, DEFAULT, DEFAULT) };
        library.owned_id("H5Gcreate2", id).map(drop)
    }

    /// Creates a dataset. With `buffer_len_bytes`, values are converted through a buffer of this length.
    ///
    /// # Errors
    /// If the library call fails.
    pub fn create_dataset(
        &self,
        name: &str,
        element: Element,
        dims: &[u64],
        settings: &DatasetSettings,
        buffer_len_bytes: Option<u64>,
    ) -> Result<LibraryDataset<'a>> {
        let library = self.id.library;
        let name = library.name("H5Dcreate2", name.as_bytes())?;
        let (space, list) = (library.space(dims)?, settings.list(library)?);
        let (file, kind) = (self.id.id, library.type_id(element));
        // SAFETY: live identifiers, and a name that ends with a zero byte.
        let id =
            unsafe { (self.functions().H5Dcreate2)(file, name.as_ptr(), kind, space.id, DEFAULT, list.id, DEFAULT) };
        let transfer = settings::transfer(library, buffer_len_bytes)?;
        Ok(LibraryDataset { id: library.owned_id("H5Dcreate2", id)?, space, transfer, path: self.path.clone() })
    }

    /// Opens a dataset.
    ///
    /// # Errors
    /// If the library call fails.
    pub fn open_dataset(&self, name: &str) -> Result<LibraryDataset<'a>> {
        let library = self.id.library;
        let name = library.name("H5Dopen2", name.as_bytes())?;
        // SAFETY: the file is open, the name ends with a zero byte.
        let id = unsafe { (self.functions().H5Dopen2)(self.id.id, name.as_ptr(), DEFAULT) };
        let id = library.owned_id("H5Dopen2", id)?;
        // SAFETY: the dataset is open.
        let space = library.owned_id("H5Dget_space", unsafe { (self.functions().H5Dget_space)(id.id) })?;
        Ok(LibraryDataset { id, space, transfer: settings::transfer(library, None)?, path: self.path.clone() })
    }

    /// Writes all buffered data to the operating system.
    ///
    /// # Errors
    /// If the library call or the write fails.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: the file is open.
        let status = unsafe { (self.functions().H5Fflush)(self.id.id, SCOPE_LOCAL) };
        self.id.library.status("H5Fflush", status).map(drop)
    }

    /// Closes the file.
    ///
    /// # Errors
    /// If the library call or the write fails.
    pub fn close(self) -> Result<()> {
        let library = self.id.library;
        // SAFETY: the file is open, and its identifier is not used again.
        let status = unsafe { (library.functions.H5Fclose)(self.id.into_raw()) };
        library.status("H5Fclose", status).map(drop)
    }
}

impl LibraryDataset<'_> {
    /// Makes all further transfers of this dataset collective.
    ///
    /// # Errors
    /// If the library was built without MPI.
    pub fn together(&self) -> Result<()> {
        let library = self.id.library;
        let Some(parallel) = &library.parallel else { return Err(library.error("H5Pset_dxpl_mpio")) };
        // SAFETY: a live transfer list.
        let status = unsafe { (parallel.H5Pset_dxpl_mpio)(self.transfer.id, COLLECTIVE) };
        library.status("H5Pset_dxpl_mpio", status).map(drop)
    }

    /// Returns the settings with which the dataset was created.
    ///
    /// # Errors
    /// If the library call fails.
    pub fn settings(&self) -> Result<DatasetSettings> {
        DatasetSettings::of_dataset(self.id.library, self.id.id)
    }

    /// Returns the offset of its values in the file, or `None` if they are not contiguous or not allocated yet.
    pub fn offset(&self) -> Option<u64> {
        // SAFETY: the dataset is open.
        let offset = unsafe { (self.id.library.functions.H5Dget_offset)(self.id.id) };
        (offset != NOWHERE).then_some(offset)
    }

    /// Returns the extent of the dataset.
    ///
    /// # Errors
    /// If the library call fails.
    pub fn dims(&self) -> Result<Vec<u64>> {
        let (library, space) = (self.id.library, self.space.id);
        // SAFETY: the space is live.
        let rank = unsafe { (library.functions.H5Sget_simple_extent_ndims)(space) };
        let mut dims = vec![0; usize::try_from(library.status("H5Sget_simple_extent_ndims", rank)?).unwrap_or(0)];
        // SAFETY: `dims` has one number per dimension of the space.
        let rank = unsafe { (library.functions.H5Sget_simple_extent_dims)(space, dims.as_mut_ptr(), null_mut()) };
        library.status("H5Sget_simple_extent_dims", rank)?;
        Ok(dims)
    }

    /// Selects the box of `count` elements from `start` for `len` values; returns the space of the values in memory.
    fn select(&self, len: usize, start: &[u64], count: &[u64]) -> Result<OwnedId<'_>> {
        let library = self.id.library;
        let dims = self.dims()?;
        let fits = start.len() == dims.len()
            && count.len() == dims.len()
            && count.iter().try_fold(1_u64, |product, count| product.checked_mul(*count)) == Some(len as u64)
            && start.iter().zip(count).zip(&dims).all(|((s, c), dim)| s.checked_add(*c).is_some_and(|end| end <= *dim));
        if !fits {
            let (path, start, count) = (self.path.clone(), start.to_vec(), count.to_vec());
            return Err(Hdf5Error::BoxOutside { path, start, count, dims });
        }
        // SAFETY: a live space, and slices with one number per dimension; null pointers mean strides and blocks of 1.
        let status = unsafe {
            let (first, blocks) = (start.as_ptr(), count.as_ptr());
            (library.functions.H5Sselect_hyperslab)(self.space.id, SELECT_SET, first, null(), blocks, null())
        };
        library.status("H5Sselect_hyperslab", status)?;
        library.space(count)
    }

    /// Writes the box of `count` elements from `start`.
    ///
    /// # Errors
    /// If the box does not lie in the dataset or does not have the size of the values, or if the library call fails.
    pub fn write(&self, values: MemoryValues<'_>, start: &[u64], count: &[u64]) -> Result<()> {
        let library = self.id.library;
        let in_memory = self.select(values.len(), start, count)?;
        let (kind, transfer) = (library.type_id(values.element()), self.transfer.id);
        // SAFETY: live identifiers; the space in memory has as many elements as there are values of this type.
        let status = unsafe {
            (library.functions.H5Dwrite)(self.id.id, kind, in_memory.id, self.space.id, transfer, values.address())
        };
        library.status("H5Dwrite", status).map(drop)
    }

    /// Reads the box of `count` elements from `start`.
    ///
    /// # Errors
    /// As for [`LibraryDataset::write`].
    pub fn read_f32(&self, values: &mut [f32], start: &[u64], count: &[u64]) -> Result<()> {
        // SAFETY: the values are of this type.
        unsafe { self.read(Element::F32, values, start, count) }
    }

    /// Reads the box of `count` elements from `start`.
    ///
    /// # Errors
    /// As for [`LibraryDataset::write`].
    pub fn read_f64(&self, values: &mut [f64], start: &[u64], count: &[u64]) -> Result<()> {
        // SAFETY: the values are of this type.
        unsafe { self.read(Element::F64, values, start, count) }
    }

    /// Reads the box into `values`.
    ///
    /// # Safety
    /// `T` must be the type named by `element`.
    unsafe fn read<T>(&self, element: Element, values: &mut [T], start: &[u64], count: &[u64]) -> Result<()> {
        let library = self.id.library;
        let in_memory = self.select(values.len(), start, count)?;
        let (kind, transfer) = (library.type_id(element), self.transfer.id);
        // SAFETY: as in `write`; the values are exclusively borrowed and of the requested type.
        let status = unsafe {
            let to = values.as_mut_ptr().cast();
            (library.functions.H5Dread)(self.id.id, kind, in_memory.id, self.space.id, transfer, to)
        };
        library.status("H5Dread", status).map(drop)
    }

    /// Adds an attribute with one number.
    ///
    /// # Errors
    /// If the library call fails.
    pub fn write_attribute(&self, name: &str, value: i32) -> Result<()> {
        let (library, kind) = (self.id.library, self.id.library.variables.i32);
        let f = &library.functions;
        let name = library.name("H5Acreate2", name.as_bytes())?;
        // SAFETY: the argument is a class of dataspaces.
        let space = library.owned_id("H5Screate", unsafe { (f.H5Screate)(SCALAR) })?;
        // SAFETY: live identifiers, and a name that ends with a zero byte.
        let id = unsafe { (f.H5Acreate2)(self.id.id, name.as_ptr(), kind, space.id, DEFAULT, DEFAULT) };
        let attribute = library.owned_id("H5Acreate2", id)?;
        let value = value.to_le();
        // SAFETY: the attribute is one number of this type.
        let status = unsafe { (f.H5Awrite)(attribute.id, kind, (&raw const value).cast()) };
        library.status("H5Awrite", status).map(drop)
    }

    /// Closes the dataset.
    ///
    /// # Errors
    /// If the library call or the write fails.
    pub fn close(self) -> Result<()> {
        let library = self.id.library;
        let Self { id, space, transfer, .. } = self;
        drop((space, transfer));
        // SAFETY: the dataset is open, and its identifier is not used again.
        let status = unsafe { (library.functions.H5Dclose)(id.into_raw()) };
        library.status("H5Dclose", status).map(drop)
    }
}
