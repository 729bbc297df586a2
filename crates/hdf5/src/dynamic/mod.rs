//! A libhdf5 to be measured: the bundled one, or one loaded dynamically from a file.
//!
//! The worker processes of `bench` and `tune` write and read plain files with it, through the library's own drivers and
//! with the settings to be compared. It is never used for raddle's inputs and outputs. A library is loaded with private
//! symbols (`RTLD_LOCAL`) that take precedence over those of the process (`RTLD_DEEPBIND`), so that it does not
//! interfere with the bundled one. Invariants: all calls are made under the lock of the bundled library, which
//! [`DynamicLibrary`] holds as long as it lives; every identifier is returned to the library that it came from; a
//! library is never unloaded. Ranks that write a file collectively use the MPI that their library is linked with:
//! [`DynamicMpi`].

mod file;
mod functions;
mod mdc;
mod mpi;
mod settings;

pub use file::{Element, LibraryDataset, LibraryFile, MemoryValues};
pub use mpi::{DynamicFile, DynamicMpi};
pub use settings::{ChunkCache, DatasetSettings, FileSettings, SzipCoding};

use crate::error::{Hdf5Error, Result};
use crate::ffi;
use functions::{Functions, Id, Parallel, StackEntry, Status, Variables};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use mdc::MetadataCacheConfig;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

/// `RTLD_DEEPBIND` of glibc, which libloading does not define.
const RTLD_DEEPBIND: c_int = 0x8;

/// `H5P_DEFAULT`, `H5E_DEFAULT` and `H5E_WALK_UPWARD`, the same in all versions.
const DEFAULT: Id = 0;
const WALK_UPWARD: c_int = 0;

/// `H5Z_FILTER_CONFIG_ENCODE_ENABLED`.
const ENCODES: c_uint = 1;

/// The first version with 64-bit identifiers and one-byte flags.
const MIN_VERSION: [c_uint; 2] = [1, 10];

/// A libhdf5, bundled or loaded.
pub struct DynamicLibrary {
    functions: Functions,
    variables: Variables,
    /// Parallel functions, if the library was built with MPI.
    parallel: Option<Parallel>,
    zlib: Option<String>,
    version: [c_uint; 3],
    /// Path of the file that it was loaded from; `None` for the bundled library.
    path: Option<PathBuf>,
    _lock: ffi::Library,
}

impl fmt::Debug for DynamicLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chosen").field("version", &self.version).field("path", &self.path).finish_non_exhaustive()
    }
}

impl DynamicLibrary {
    /// Returns the library that raddle is linked with.
    pub fn bundled() -> Self {
        let lock = ffi::Library::lock();
        let (functions, variables) = (Functions::bundled(), Variables::bundled());
        let version = version_of(&functions);
        Self { functions, variables, parallel: None, zlib: None, version, path: None, _lock: lock }
    }

    /// Loads the library at `path`: a path, or a name that the system's loader finds. Its initialisation code runs, so
    /// load only trusted libraries.
    ///
    /// # Errors
    /// If it cannot be loaded, is not a libhdf5, or is too old.
    pub fn load(path: &Path) -> Result<Self> {
        let unusable = |why: String| Hdf5Error::Unusable { library: path.to_path_buf(), why };
        let lock = ffi::Library::lock();
        // SAFETY: the library's own initialisation runs; the user chose the library in order to measure it.
        let library = unsafe { Library::open(Some(path.as_os_str()), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) };
        let library = library.map_err(|error| unusable(error.to_string()))?;
        let functions =
            Functions::of(&library).map_err(|error| unusable(format!("not a libhdf5 since 1.10: {error}")))?;
        // SAFETY: the library was just loaded, or opened by an earlier call, in which case the calls do no harm: errors
        // are not printed, no plug-in is loaded, and no exit handler runs.
        let is_open = unsafe {
            (functions.H5dont_atexit)();
            (functions.H5open)() >= 0
                && (functions.H5Eset_auto2)(DEFAULT, None, null_mut()) >= 0
                && (functions.H5PLset_loading_state)(0) >= 0
        };
        let version = version_of(&functions);
        if !is_open || version[..2] < MIN_VERSION[..] {
            let [major, minor, release] = version;
            return Err(unusable(format!(
                "HDF5 {major}.{minor}.{release} cannot be initialised, or is older than 1.10"
            )));
        }
        let variables = Variables::of(&library).map_err(|error| unusable(format!("not a libhdf5: {error}")))?;
        let (parallel, zlib) = (Parallel::of(&library).ok(), functions::zlib_version(&library));
        // Its functions may be called for the lifetime of the process.
        std::mem::forget(library);
        Ok(Self { functions, variables, parallel, zlib, version, path: Some(path.to_path_buf()), _lock: lock })
    }

    /// Returns the version, for example `1.10.8`.
    pub fn version(&self) -> String {
        let [major, minor, release] = self.version;
        format!("{major}.{minor}.{release}")
    }

    /// Returns the version of the zlib that it was loaded with, as reported by zlib; `None` for the bundled library.
    pub fn zlib(&self) -> Option<&str> {
        self.zlib.as_deref()
    }

    /// Returns whether it supports collective writes by MPI ranks.
    pub fn is_parallel(&self) -> bool {
        self.parallel.is_some()
    }

    /// Returns the names in settings of the filters that the library can apply. szip is left out if it is available for
    /// reading only.
    pub fn filters(&self) -> Vec<&'static str> {
        let has = |filter| {
            let mut abilities = 0;
            // SAFETY: any number may be queried; `abilities` receives those of an available filter.
            unsafe {
                (self.functions.H5Zfilter_avail)(filter) > 0
                    && (self.functions.H5Zget_filter_info)(filter, &raw mut abilities) >= 0
                    && abilities & ENCODES != 0
            }
        };
        settings::FILTERS.iter().filter(|(filter, _)| has(*filter)).map(|(_, name)| *name).collect()
    }

    fn list(&self, class: Id) -> Result<OwnedId<'_>> {
        // SAFETY: `class` is a property list class of the library.
        self.owned_id("H5Pcreate", unsafe { (self.functions.H5Pcreate)(class) })
    }

    fn owned_id(&self, function: &str, id: Id) -> Result<OwnedId<'_>> {
        if id < 0 { Err(self.error(function)) } else { Ok(OwnedId { library: self, id }) }
    }

    fn status(&self, function: &str, status: Status) -> Result<Status> {
        if status < 0 { Err(self.error(function)) } else { Ok(status) }
    }

    /// Creates the error for a call that has just failed.
    fn error(&self, function: &str) -> Hdf5Error {
        unsafe extern "C" fn innermost(depth: c_uint, entry: *const StackEntry, out: *mut c_void) -> Status {
            // SAFETY: HDF5 passes an entry whose description is zero-terminated, and the pointer given to `H5Ewalk2`.
            unsafe {
                let (description, out) = ((*entry).description, &mut *out.cast::<String>());
                if depth == 0 && !description.is_null() {
                    *out = CStr::from_ptr(description).to_string_lossy().into_owned();
                }
            }
            0
        }
        let mut detail = String::new();
        // SAFETY: the callback writes only through `detail`, which outlives the walk.
        unsafe { (self.functions.H5Ewalk2)(DEFAULT, WALK_UPWARD, innermost, (&raw mut detail).cast()) };
        Hdf5Error::Library {
            path: self.path.clone().unwrap_or_else(|| PathBuf::from("the bundled HDF5")),
            operation: function.to_owned(),
            detail: if detail.is_empty() { "no message".to_owned() } else { detail },
        }
    }
}

fn version_of(functions: &Functions) -> [c_uint; 3] {
    let mut version = [0; 3];
    let [major, minor, release] = &mut version;
    // SAFETY: the pointers are to variables that receive the version.
    unsafe { (functions.H5get_libversion)(major, minor, release) };
    version
}

/// An identifier that is released when dropped.
#[derive(Debug)]
struct OwnedId<'a> {
    library: &'a DynamicLibrary,
    id: Id,
}

impl OwnedId<'_> {
    /// Releases ownership to a call that closes the identifier.
    fn into_raw(self) -> Id {
        let id = self.id;
        std::mem::forget(self);
        id
    }
}

impl Drop for OwnedId<'_> {
    fn drop(&mut self) {
        // SAFETY: a live identifier of this library, which is not used again.
        unsafe { (self.library.functions.H5Idec_ref)(self.id) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Library of Debian's package libhdf5-103-1, which the loader finds by name if it is installed.
    const DEBIAN: &str = "libhdf5_serial.so.103";

    fn libraries() -> Vec<Box<dyn Fn() -> DynamicLibrary>> {
        let mut all: Vec<Box<dyn Fn() -> DynamicLibrary>> = vec![Box::new(DynamicLibrary::bundled)];
        match DynamicLibrary::load(Path::new(DEBIAN)) {
            Ok(_) => all.push(Box::new(|| DynamicLibrary::load(Path::new(DEBIAN)).unwrap())),
            Err(error) => eprintln!("only the bundled HDF5 is tested: {error}"),
        }
        all
    }

    fn settings() -> (FileSettings, DatasetSettings) {
        let file = FileSettings {
            alignment: Some((1000, 4096)),
            meta_block_len_bytes: Some(64 << 10),
            small_data_block_len_bytes: Some(1 << 20),
            sieve_len_bytes: Some(128 << 10),
            chunk_cache: ChunkCache { len_bytes: Some(3 << 20), slots: Some(1009), preemption: Some(0.5) },
            metadata_cache_len_bytes: Some(4 << 20),
            defers_flush: Some(true),
            versions: Some((1, 2)),
            page_buffer_len_bytes: None,
            page_len_bytes: None,
        };
        let dataset = DatasetSettings {
            chunk: Some(vec![4, 300]),
            gzip: Some(3),
            shuffle: true,
            fletcher32: true,
            no_fill: true,
            ..DatasetSettings::default()
        };
        (file, dataset)
    }

    #[test]
    fn settings_arrive_in_the_file() {
        for library in libraries() {
            let library = library();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("settings.h5");
            let (file_settings, dataset_settings) = settings();
            let file = library.create(&path, &file_settings).unwrap();
            let found = file.settings().unwrap();
            let expected = FileSettings { page_buffer_len_bytes: Some(0), page_len_bytes: Some(4096), ..file_settings };
            assert_eq!(found, expected, "{}", library.version());
            let values: Vec<f32> = (0..1200_u16).map(f32::from).collect();
            let dataset = file.create_dataset("values", Element::F32, &[8, 300], &dataset_settings, None).unwrap();
            dataset.write(MemoryValues::F32(&values), &[4, 0], &[4, 300]).unwrap();
            dataset.write_attribute("units", 7).unwrap();
            drop(dataset);
            let contiguous = DatasetSettings::default();
            let dataset = file.create_dataset("plain", Element::F64, &[1200], &contiguous, Some(1 << 16)).unwrap();
            dataset.write(MemoryValues::F32(&values), &[0], &[1200]).unwrap();
            drop(dataset);
            file.close().unwrap();

            // A copy: a child process started by another test at this moment inherits the lock on the first file until
            // it runs its program.
            let copy = folder.path().join("copy.h5");
            std::fs::copy(&path, &copy).unwrap();
            let file = library.open(&copy, &FileSettings::default()).unwrap();
            let dataset = file.open_dataset("values").unwrap();
            assert_eq!(dataset.settings().unwrap(), dataset_settings);
            assert_eq!(dataset.dims().unwrap(), [8, 300]);
            let mut read = vec![0.0_f32; 300];
            dataset.read_f32(&mut read, &[7, 0], &[1, 300]).unwrap();
            assert_eq!(read, values[900..]);
            let plain = file.open_dataset("plain").unwrap();
            assert_eq!(plain.offset().map(|offset| offset % 4096), Some(0));
            let mut read = vec![0.0_f32; 1200];
            plain.read_f32(&mut read, &[0], &[1200]).unwrap();
            assert_eq!(read, values);
        }
    }

    #[test]
    fn a_file_in_memory_is_read_from_there() {
        for library in libraries() {
            let library = library();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.h5");
            let file = library.create(&path, &FileSettings::default()).unwrap();
            let dataset = file.create_dataset("a", Element::F32, &[3], &DatasetSettings::default(), None).unwrap();
            dataset.write(MemoryValues::F32(&[1.0, 2.0, 3.0]), &[0], &[3]).unwrap();
            drop(dataset);
            file.close().unwrap();
            let copy = folder.path().join("copy.h5");
            std::fs::copy(&path, &copy).unwrap();
            let file = library.open_in_memory(&copy, &FileSettings::default()).unwrap();
            // The later contents of the file are not checked.
            let len_bytes = std::fs::metadata(&copy).unwrap().len();
            std::fs::write(&copy, vec![0; usize::try_from(len_bytes).unwrap()]).unwrap();
            let mut read = [0.0_f32; 3];
            file.open_dataset("a").unwrap().read_f32(&mut read, &[0], &[3]).unwrap();
            assert_eq!(read, [1.0, 2.0, 3.0], "{}", library.version());
        }
    }

    #[test]
    fn paged_and_compact_files_are_made() {
        for library in libraries() {
            let library = library();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("paged.h5");
            let paged = FileSettings {
                page_len_bytes: Some(65536),
                page_buffer_len_bytes: Some(1 << 20),
                ..Default::default()
            };
            let file = library.create(&path, &paged).unwrap();
            let compact = DatasetSettings { compact: true, ..DatasetSettings::default() };
            let dataset = file.create_dataset("small", Element::F64, &[4], &compact, None).unwrap();
            dataset.write(MemoryValues::F64(&[1.0; 4]), &[0], &[4]).unwrap();
            assert!(dataset.settings().unwrap().compact);
            assert_eq!(dataset.offset(), None);
            drop(dataset);
            assert_eq!(file.settings().unwrap().page_len_bytes, Some(65536));
            file.close().unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len() % 65536, 0);
        }
    }

    #[test]
    fn refusals_name_the_function_and_the_library() {
        for library in libraries() {
            let library = library();
            let folder = tempfile::tempdir().unwrap();
            let absent = folder.path().join("absent/file.h5");
            let error = library.create(&absent, &FileSettings::default()).unwrap_err().to_string();
            assert!(error.contains("H5Fcreate") && error.contains("No such file"), "{error}");
            let file = library.create(&folder.path().join("a.h5"), &FileSettings::default()).unwrap();
            let filtered = DatasetSettings { gzip: Some(1), ..DatasetSettings::default() };
            let error = file.create_dataset("a", Element::F32, &[4], &filtered, None).unwrap_err().to_string();
            assert!(error.contains("H5Dcreate2"), "{error}");
            let dataset = file.create_dataset("b", Element::F32, &[4], &DatasetSettings::default(), None).unwrap();
            let error = dataset.write(MemoryValues::F32(&[0.0; 3]), &[0], &[4]).unwrap_err().to_string();
            assert!(error.contains("[4]"), "{error}");
            assert!(dataset.write(MemoryValues::F32(&[0.0; 4]), &[2], &[4]).is_err());
            assert!(library.filters().contains(&"gzip"));
        }
    }

    #[test]
    fn anything_but_a_libhdf5_is_refused() {
        let error = DynamicLibrary::load(Path::new("/absent/libhdf5.so")).unwrap_err().to_string();
        assert!(error.contains("/absent/libhdf5.so"), "{error}");
        let error = DynamicLibrary::load(Path::new("libc.so.6")).unwrap_err().to_string();
        assert!(error.contains("not a libhdf5"), "{error}");
    }
}
