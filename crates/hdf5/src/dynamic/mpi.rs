//! The MPI that a parallel libhdf5 is linked with, loaded at run time. `bench` can therefore measure any library, even
//! one that uses another MPI than raddle, and even if raddle was built without MPI.
//!
//! This is not the MPI of raddle's own ranks, which is linked. The library is loaded with private symbols, as
//! [`super::DynamicLibrary`] is, and its MPI is found among its dependencies. Handles are those of that MPI: addresses
//! (Open MPI) or 32-bit numbers (MPICH and its derivatives). Both fit a machine word, and both calling conventions that
//! raddle supports pass them in a register whose upper half is ignored for 32-bit numbers. Invariants: a process
//! initialises one MPI, once; a process that fails exits without finalising MPI, upon which the launcher ends the other
//! ranks; MPI never receives a pointer to an empty buffer.

use super::RTLD_DEEPBIND;
use crate::error::{Hdf5Error, Result};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

/// `RTLD_NOLOAD` of glibc, which libloading does not define.
const RTLD_NOLOAD: c_int = 0x4;

/// `MPI_COMM_WORLD`, `MPI_INFO_NULL` and `MPI_BYTE` of MPICH's binary interface, which Intel MPI, MVAPICH and Cray
/// MPICH share.
const MPICH_HANDLES: Handles = Handles { world: 0x4400_0000, no_info: 0x1c00_0000, byte: 0x4c00_010d };

/// `MPI_MODE_CREATE`, `MPI_MODE_WRONLY` and `MPI_MODE_EXCL`, the same in both interfaces.
const CREATE_NEW: c_int = 1 | 4 | 64;
/// `MPI_MODE_RDONLY`, the same in both interfaces.
const READ_ONLY: c_int = 2;

/// Number of words with room for a status of any MPI: 24 bytes in Open MPI, 20 in MPICH.
const STATUS_WORDS: usize = 16;

/// `MPI_Comm`, `MPI_Info`, `MPI_Datatype`.
type Handle = usize;
type Code = c_int;

/// Constants that differ between the two interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Handles {
    world: Handle,
    no_info: Handle,
    byte: Handle,
}

macro_rules! functions {
    ($($field:ident: $name:literal = fn($($argument:ty),*);)*) => {
        struct Functions { $($field: unsafe extern "C" fn($($argument),*) -> Code,)* }

        impl Functions {
            fn find(library: &Library) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: the types are those that the MPI standard declares for these names, with handles as machine
                // words.
                Ok(unsafe { Self { $($field: *library.get(concat!($name, "\0").as_bytes())?,)* } })
            }
        }
    };
}

functions! {
    initialise: "MPI_Init" = fn(*mut c_int, *mut *mut *mut c_char);
    finalise: "MPI_Finalize" = fn();
    rank: "MPI_Comm_rank" = fn(Handle, *mut c_int);
    size: "MPI_Comm_size" = fn(Handle, *mut c_int);
    barrier: "MPI_Barrier" = fn(Handle);
    version: "MPI_Get_library_version" = fn(*mut c_char, *mut c_int);
    info_create: "MPI_Info_create" = fn(*mut Handle);
    info_set: "MPI_Info_set" = fn(Handle, *const c_char, *const c_char);
    open: "MPI_File_open" = fn(Handle, *const c_char, c_int, Handle, *mut *mut c_void);
    write: "MPI_File_write_at" = fn(*mut c_void, i64, *const c_void, c_int, Handle, *mut c_void);
    write_all: "MPI_File_write_at_all" = fn(*mut c_void, i64, *const c_void, c_int, Handle, *mut c_void);
    read: "MPI_File_read_at" = fn(*mut c_void, i64, *mut c_void, c_int, Handle, *mut c_void);
    read_all: "MPI_File_read_at_all" = fn(*mut c_void, i64, *mut c_void, c_int, Handle, *mut c_void);
    get_count: "MPI_Get_count" = fn(*const c_void, Handle, *mut c_int);
    close: "MPI_File_close" = fn(*mut *mut c_void);
    error_string: "MPI_Error_string" = fn(c_int, *mut c_char, *mut c_int);
}

/// All ranks of the run, through the MPI of a parallel libhdf5.
pub struct DynamicMpi {
    functions: Functions,
    handles: Handles,
    library: PathBuf,
    rank: u32,
    size: u32,
    info: Handle,
}

impl std::fmt::Debug for DynamicMpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, size) = (self.rank, self.size);
        f.debug_struct("ChosenMpi").field("library", &self.library).field("rank", &rank).field("size", &size).finish()
    }
}

impl DynamicMpi {
    /// Collective. Initialises the MPI that the libhdf5 at `library` is linked with; `hints` apply to files.
    ///
    /// # Errors
    /// If the library is not linked with MPI, or with one that is unknown or cannot be initialised.
    pub fn of(library: &Path, hints: &[(String, String)]) -> Result<Self> {
        let unusable = |why: String| Hdf5Error::Unusable { library: library.to_path_buf(), why };
        // SAFETY: the library's own initialisation runs; the user chose the library in order to measure it.
        let loaded = unsafe { Library::open(Some(library.as_os_str()), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) };
        let loaded = loaded.map_err(|error| unusable(error.to_string()))?;
        let functions = Functions::find(&loaded)
            .map_err(|_| unusable("it was built without MPI: name a parallel one".to_owned()))?;
        // Open MPI loads components that resolve its functions in the process.
        make_global(functions.barrier as *const c_void);
        let version = functions.version();
        let handles = Handles::of(&loaded, &version).ok_or_else(|| {
            unusable(format!("its MPI is neither Open MPI nor one with MPICH's interface: {version}"))
        })?;
        // Its functions may be called for the lifetime of the process.
        std::mem::forget(loaded);
        // SAFETY: MPI is not initialised yet: it was loaded here, and this is called once. MPI-2 allows null arguments.
        functions.check(unsafe { (functions.initialise)(null_mut(), null_mut()) }).map_err(unusable)?;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is initialised; the pointers are to variables that receive the results.
        unsafe {
            functions.check((functions.rank)(handles.world, &raw mut rank)).map_err(unusable)?;
            functions.check((functions.size)(handles.world, &raw mut size)).map_err(unusable)?;
        }
        let info = functions.info(handles.no_info, hints).map_err(unusable)?;
        let [rank, size] = [rank, size].map(|number| u32::try_from(number).unwrap_or(0));
        Ok(Self { functions, handles, library: library.to_path_buf(), rank, size, info })
    }

    /// Returns the number of this rank, from 0.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the path of the libhdf5 to which this MPI belongs.
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// Returns the communicator of all ranks and the hints for files, in the form that the library's `H5Pset_fapl_mpio`
    /// takes.
    pub fn handles(&self) -> [usize; 2] {
        [self.handles.world, self.info]
    }

    /// Collective. Waits for all ranks.
    ///
    /// # Errors
    /// If MPI fails.
    pub fn barrier(&self) -> Result<()> {
        // SAFETY: MPI is initialised, and is finalised only with `self`.
        self.done("waiting for the other ranks", unsafe { (self.functions.barrier)(self.handles.world) })
    }

    /// Collective. Creates the file at `path`, which must not exist, for writing by all ranks.
    ///
    /// # Errors
    /// If MPI-IO fails.
    pub fn create(&self, path: &Path) -> Result<DynamicFile<'_>> {
        self.open_with(path, CREATE_NEW, "creating a file")
    }

    /// Collective. Opens the file at `path` for reading by all ranks.
    ///
    /// # Errors
    /// If MPI-IO fails.
    pub fn open(&self, path: &Path) -> Result<DynamicFile<'_>> {
        self.open_with(path, READ_ONLY, "opening a file")
    }

    fn open_with(&self, path: &Path, mode: c_int, operation: &'static str) -> Result<DynamicFile<'_>> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| Hdf5Error::Mpi { operation, detail: error.to_string() })?;
        let mut handle = null_mut();
        // SAFETY: the path ends with a zero byte; `handle` receives the file.
        let code =
            unsafe { (self.functions.open)(self.handles.world, name.as_ptr(), mode, self.info, &raw mut handle) };
        self.done(operation, code)?;
        Ok(DynamicFile { mpi: self, handle })
    }

    /// Collective. Finalises MPI.
    ///
    /// # Errors
    /// If MPI fails.
    pub fn finish(self) -> Result<()> {
        // SAFETY: MPI is initialised, and not used afterwards.
        self.done("ending MPI", unsafe { (self.functions.finalise)() })
    }

    fn done(&self, operation: &'static str, code: Code) -> Result<()> {
        self.functions.check(code).map_err(|detail| Hdf5Error::Mpi { operation, detail })
    }
}

/// A file that all ranks write or read.
#[derive(Debug)]
pub struct DynamicFile<'a> {
    mpi: &'a DynamicMpi,
    handle: *mut c_void,
}

impl DynamicFile<'_> {
    /// Writes `bytes` at `offset_bytes`; with `collective`, all ranks must take part.
    ///
    /// # Errors
    /// If MPI-IO fails, or `bytes` has 2 GiB or more.
    pub fn write_at(&self, offset_bytes: u64, bytes: &[u8], collective: bool) -> Result<()> {
        let failed = |detail: &str| Hdf5Error::Mpi { operation: "writing", detail: detail.to_owned() };
        let count = c_int::try_from(bytes.len()).map_err(|_| failed("2 GiB or more at once"))?;
        let offset = i64::try_from(offset_bytes).map_err(|_| failed("beyond the longest file"))?;
        let functions = &self.mpi.functions;
        let write = if collective { functions.write_all } else { functions.write };
        let (nothing, mut status) = ([0_u8; 1], [0_u64; STATUS_WORDS]);
        let from = if bytes.is_empty() { nothing.as_ptr() } else { bytes.as_ptr() };
        // SAFETY: the file is open, `bytes` has `count` bytes, and the status has room for that of any MPI.
        let code = unsafe {
            write(self.handle, offset, from.cast(), count, self.mpi.handles.byte, status.as_mut_ptr().cast())
        };
        self.mpi.done("writing", code)
    }

    /// Reads `bytes` from `offset_bytes`; with `collective`, all ranks must take part.
    ///
    /// # Errors
    /// If MPI-IO fails, `bytes` has 2 GiB or more, or the file ends too early.
    pub fn read_at(&self, offset_bytes: u64, bytes: &mut [u8], collective: bool) -> Result<()> {
        let failed = |detail: &str| Hdf5Error::Mpi { operation: "reading", detail: detail.to_owned() };
        let count = c_int::try_from(bytes.len()).map_err(|_| failed("2 GiB or more at once"))?;
        let offset = i64::try_from(offset_bytes).map_err(|_| failed("beyond the longest file"))?;
        let functions = &self.mpi.functions;
        let read = if collective { functions.read_all } else { functions.read };
        let (mut nothing, mut status) = ([0_u8; 1], [0_u64; STATUS_WORDS]);
        let to = if bytes.is_empty() { nothing.as_mut_ptr() } else { bytes.as_mut_ptr() };
        let byte = self.mpi.handles.byte;
        // SAFETY: the file is open, `count` bytes are written to exclusively borrowed memory, and the status has room
        // for that of any MPI.
        let code = unsafe { read(self.handle, offset, to.cast(), count, byte, status.as_mut_ptr().cast()) };
        self.mpi.done("reading", code)?;
        let mut found = 0;
        // SAFETY: the status is that of the call above; `found` receives the count.
        let code = unsafe { (functions.get_count)(status.as_ptr().cast(), byte, &raw mut found) };
        self.mpi.done("reading", code)?;
        // MPI-IO does not report the end of the file as an error.
        if found == count { Ok(()) } else { Err(failed("the file ends too early")) }
    }

    /// Collective. Closes the file.
    ///
    /// # Errors
    /// If MPI-IO fails.
    pub fn close(mut self) -> Result<()> {
        // SAFETY: the file is open and not used again.
        self.mpi.done("closing a file", unsafe { (self.mpi.functions.close)(&raw mut self.handle) })
    }
}

impl Handles {
    fn of(library: &Library, version: &str) -> Option<Self> {
        // SAFETY: variables of Open MPI, whose addresses are its handles; they are not dereferenced.
        let address =
            |name: &[u8]| unsafe { library.get::<*const c_void>(name).ok().map(|found| found.as_raw_ptr() as usize) };
        if let Some(world) = address(b"ompi_mpi_comm_world\0") {
            return Some(Self {
                world,
                no_info: address(b"ompi_mpi_info_null\0")?,
                byte: address(b"ompi_mpi_byte\0")?,
            });
        }
        let has_its_interface = ["MPICH", "Intel(R) MPI", "MVAPICH"].iter().any(|name| version.contains(name));
        has_its_interface.then_some(MPICH_HANDLES)
    }
}

impl Functions {
    /// Returns the version text of the library, which may be queried before initialisation.
    fn version(&self) -> String {
        // 256 in Open MPI, 8192 in MPICH.
        let (mut text, mut len) = ([0 as c_char; 16384], 0);
        // SAFETY: the text has room for the longest version with its zero byte; `len` receives its length.
        unsafe { (self.version)(text.as_mut_ptr(), &raw mut len) };
        text_of(&text).lines().next().unwrap_or_default().to_owned()
    }

    fn info(&self, none: Handle, hints: &[(String, String)]) -> std::result::Result<Handle, String> {
        if hints.is_empty() {
            return Ok(none);
        }
        let mut info: Handle = 0;
        // SAFETY: MPI is initialised; `info` receives the handle, of which MPICH sets the lower half only.
        self.check(unsafe { (self.info_create)(&raw mut info) })?;
        for (key, value) in hints {
            let [key, value] = [key, value].map(|text| CString::new(text.as_str()).map_err(|error| error.to_string()));
            let (key, value) = (key?, value?);
            // SAFETY: the object is live; both strings are zero-terminated and copied.
            self.check(unsafe { (self.info_set)(info, key.as_ptr(), value.as_ptr()) })?;
        }
        Ok(info)
    }

    fn check(&self, code: Code) -> std::result::Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // MPI_MAX_ERROR_STRING is 256 in Open MPI, 512 in MPICH.
        let (mut words, mut len) = ([0 as c_char; 1024], 0);
        // SAFETY: the text has room for the longest message, and MPI knows every code that it returned.
        unsafe { (self.error_string)(code, words.as_mut_ptr(), &raw mut len) };
        Err(text_of(&words))
    }
}

fn text_of(text: &[c_char]) -> String {
    // SAFETY: the text is zero-terminated, because its unfilled part is zeros.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().trim().to_owned()
}

/// Makes the symbols of the shared object that contains `address` available to all objects loaded later.
fn make_global(address: *const c_void) {
    let mut info =
        libc::Dl_info { dli_fname: null_mut(), dli_fbase: null_mut(), dli_sname: null_mut(), dli_saddr: null_mut() };
    // SAFETY: `info` receives the properties of an address, which may be any.
    if unsafe { libc::dladdr(address, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return;
    }
    // SAFETY: the loader's own zero-terminated name of the object.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes();
    let name = std::ffi::OsStr::from_bytes(name);
    // SAFETY: the object is already loaded, so no code runs.
    if let Ok(object) = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) } {
        std::mem::forget(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_mpi_is_refused() {
        let error = DynamicMpi::of(Path::new("libc.so.6"), &[]).unwrap_err().to_string();
        assert!(error.contains("built without MPI"), "{error}");
        let error = DynamicMpi::of(Path::new("/absent/libhdf5.so"), &[]).unwrap_err().to_string();
        assert!(error.contains("/absent/libhdf5.so"), "{error}");
    }
}
