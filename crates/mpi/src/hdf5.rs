//! Calls to a parallel libhdf5 that is loaded at run time, separate from the one that raddle is linked with, which has
//! no MPI support.
//!
//! `collective` handles the data written with them. The library is loaded with private symbols (`RTLD_LOCAL`) that take
//! precedence over those of the process (`RTLD_DEEPBIND`), so that the two libraries do not share functions, handles or
//! errors. It is used only by the thread that initialised MPI. Invariants: the library uses the MPI of this process, or
//! is refused; it is never unloaded, because MPI calls it when MPI is finalised; every id is closed once.

use crate::error::{MpiError, Result};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use mpi::ffi::{MPI_Comm, MPI_Comm_size, MPI_Info, RSMPI_INFO_NULL};
use mpi::topology::SimpleCommunicator;
use mpi::traits::AsRaw;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr::{null, null_mut};

/// `RTLD_DEEPBIND` of glibc, which libloading does not define.
const RTLD_DEEPBIND: c_int = 0x8;

/// Names of parallel libraries: Debian's for each MPI, then one that a cluster's module adds to the library path.
const NAMES: [&str; 6] = [
    "libhdf5_openmpi.so",
    "libhdf5_openmpi.so.103",
    "libhdf5_mpich.so",
    "libhdf5_mpich.so.103",
    "libhdf5_parallel.so",
    "libhdf5.so",
];

/// The first version that can write filtered chunks collectively.
const MIN_VERSION: [c_uint; 3] = [1, 10, 2];

/// `hid_t` and `hsize_t` since HDF5 1.10.
type Id = i64;
type Size = u64;
type Status = c_int;

/// `H5F_ACC_RDWR`, `H5S_SELECT_SET`, `H5FD_MPIO_COLLECTIVE`, `H5P_DEFAULT`, `H5E_DEFAULT` and `H5E_WALK_DOWNWARD`, the
/// same in all versions.
const READ_WRITE: c_uint = 1;
const SELECT_SET: c_int = 0;
const COLLECTIVE: c_int = 1;
const DEFAULT: Id = 0;
const WALK_DOWNWARD: c_int = 1;

/// `H5E_error2_t`.
#[repr(C)]
struct StackEntry {
    class: Id,
    major: Id,
    minor: Id,
    line: c_uint,
    function: *const c_char,
    file: *const c_char,
    description: *const c_char,
}

type ErrorCallback = unsafe extern "C" fn(c_uint, *const StackEntry, *mut c_void) -> Status;

/// Declares the functions to look up, with their types.
macro_rules! functions {
    ($($field:ident: $name:literal = fn($($argument:ty),*) -> $result:ty;)*) => {
        struct Functions { $($field: unsafe extern "C" fn($($argument),*) -> $result,)* }

        impl Functions {
            fn find(library: &Library) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: the types are those that HDF5 has declared for these names since 1.10.
                Ok(unsafe { Self { $($field: *library.get(concat!($name, "\0").as_bytes())?,)* } })
            }
        }
    };
}

functions! {
    dont_atexit: "H5dont_atexit" = fn() -> Status;
    open: "H5open" = fn() -> Status;
    version: "H5get_libversion" = fn(*mut c_uint, *mut c_uint, *mut c_uint) -> Status;
    set_auto: "H5Eset_auto2" = fn(Id, Option<ErrorCallback>, *mut c_void) -> Status;
    walk: "H5Ewalk2" = fn(Id, c_int, ErrorCallback, *mut c_void) -> Status;
    new_properties: "H5Pcreate" = fn(Id) -> Id;
    set_mpi: "H5Pset_fapl_mpio" = fn(Id, MPI_Comm, MPI_Info) -> Status;
    set_transfer: "H5Pset_dxpl_mpio" = fn(Id, c_int) -> Status;
    close_properties: "H5Pclose" = fn(Id) -> Status;
    open_file: "H5Fopen" = fn(*const c_char, c_uint, Id) -> Id;
    close_file: "H5Fclose" = fn(Id) -> Status;
    open_dataset: "H5Dopen2" = fn(Id, *const c_char, Id) -> Id;
    type_of: "H5Dget_type" = fn(Id) -> Id;
    space_of: "H5Dget_space" = fn(Id) -> Id;
    write: "H5Dwrite" = fn(Id, Id, Id, Id, Id, *const c_void) -> Status;
    close_dataset: "H5Dclose" = fn(Id) -> Status;
    type_len_bytes: "H5Tget_size" = fn(Id) -> usize;
    close_type: "H5Tclose" = fn(Id) -> Status;
    new_space: "H5Screate_simple" = fn(c_int, *const Size, *const Size) -> Id;
    rank: "H5Sget_simple_extent_ndims" = fn(Id) -> c_int;
    dims: "H5Sget_simple_extent_dims" = fn(Id, *mut Size, *mut Size) -> c_int;
    select: "H5Sselect_hyperslab" = fn(Id, c_int, *const Size, *const Size, *const Size, *const Size) -> Status;
    select_none: "H5Sselect_none" = fn(Id) -> Status;
    close_space: "H5Sclose" = fn(Id) -> Status;
}

/// A parallel libhdf5 that was loaded.
pub(crate) struct Hdf5 {
    functions: Functions,
    /// Classes of the property lists of file access and of transfer.
    classes: [Id; 2],
    version: [c_uint; 3],
}

impl std::fmt::Debug for Hdf5 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hdf5").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Hdf5 {
    /// Loads the library at `path`, or the first of the usual names with which ranks of this MPI can write.
    ///
    /// # Errors
    /// If there is none, or the library at `path` is not suitable.
    pub(crate) fn load(path: Option<&Path>) -> Result<Self> {
        let unusable = |why: String| MpiError::Hdf5 { library: path.map(Path::to_path_buf), why };
        if let Some(path) = path {
            let library = load(path.as_os_str()).map_err(|error| unusable(error.to_string()))?;
            return Self::take(library).map_err(unusable);
        }
        let mut why = "none is installed".to_owned();
        for name in NAMES {
            match load(name.as_ref()).map(Self::take) {
                Ok(Ok(taken)) => return Ok(taken),
                Ok(Err(of_this)) => why = format!("{name}: {of_this}"),
                Err(_) => {}
            }
        }
        Err(unusable(why))
    }

    /// Initialises a library if ranks of this MPI can write with it; otherwise returns the reason.
    fn take(library: Library) -> std::result::Result<Self, String> {
        // SAFETY: a function of every MPI library; only its address is used.
        let linked_mpi = unsafe { library.get::<*const c_void>(b"MPI_Comm_size\0") };
        let linked_mpi = linked_mpi.map(|symbol| symbol.as_raw_ptr().cast_const());
        // The function is not found if the library is not linked with MPI.
        if linked_mpi.is_ok_and(|address| address != MPI_Comm_size as *const c_void) {
            return Err("it is linked with a different MPI than raddle".to_owned());
        }
        let functions = Functions::find(&library).map_err(|error| format!("not a parallel libhdf5: {error}"))?;
        // From here on MPI calls the library when it is finalised, so it must stay loaded.
        let library = ManuallyDrop::new(library);
        let mut version = [0; 3];
        let [major, minor, release] = &mut version;
        // SAFETY: the library was found, and is initialised here, once, without its exit handler at the end of the
        // process, when MPI has already been finalised. The pointers receive the version.
        let is_open = unsafe {
            (functions.dont_atexit)();
            (functions.set_auto)(DEFAULT, None, null_mut());
            (functions.open)() >= 0 && (functions.version)(major, minor, release) >= 0
        };
        if !is_open || version < MIN_VERSION {
            let [major, minor, release] = version;
            return Err(format!(
                "it is HDF5 {major}.{minor}.{release}, too old to write compressed chunks collectively"
            ));
        }
        // SAFETY: variables of this type in every HDF5 since 1.10, set once it is open.
        let class = |name: &[u8]| unsafe { library.get::<*const Id>(name).map(|class| **class) };
        let classes = (class(b"H5P_CLS_FILE_ACCESS_ID_g\0"), class(b"H5P_CLS_DATASET_XFER_ID_g\0"));
        let (Ok(access), Ok(transfer)) = classes else { return Err("not a libhdf5".to_owned()) };
        Ok(Self { functions, classes: [access, transfer], version })
    }

    /// Returns the version as text.
    pub(crate) fn version(&self) -> String {
        let [major, minor, release] = self.version;
        format!("{major}.{minor}.{release}")
    }

    /// Collective. Opens the file at `path` for writing by all ranks.
    pub(crate) fn open(
        &self,
        ranks: &SimpleCommunicator,
        path: &CStr,
    ) -> std::result::Result<ParallelFile<'_>, String> {
        let functions = &self.functions;
        let access = self.properties(self.classes[0])?;
        // SAFETY: a property list, and a live communicator; MPI's constant for no hints.
        self.status(unsafe { (functions.set_mpi)(access.id, ranks.as_raw(), RSMPI_INFO_NULL) })?;
        let transfer = self.properties(self.classes[1])?;
        // SAFETY: a property list.
        self.status(unsafe { (functions.set_transfer)(transfer.id, COLLECTIVE) })?;
        // SAFETY: the path ends with a zero byte; the property list is live.
        let id = unsafe { (functions.open_file)(path.as_ptr(), READ_WRITE, access.id) };
        Ok(ParallelFile { library: self, id: self.owned_id(id, functions.close_file)?, transfer })
    }

    fn properties(&self, class: Id) -> std::result::Result<OwnedId, String> {
        // SAFETY: a property list class of the library.
        let id = unsafe { (self.functions.new_properties)(class) };
        self.owned_id(id, self.functions.close_properties)
    }

    fn owned_id(&self, id: Id, close: unsafe extern "C" fn(Id) -> Status) -> std::result::Result<OwnedId, String> {
        if id < 0 { Err(self.why()) } else { Ok(OwnedId { id, close }) }
    }

    fn status(&self, status: Status) -> std::result::Result<(), String> {
        if status < 0 { Err(self.why()) } else { Ok(()) }
    }

    /// Returns the errors of the last call, from the outermost inwards.
    fn why(&self) -> String {
        unsafe extern "C" fn visit(_: c_uint, entry: *const StackEntry, all: *mut c_void) -> Status {
            // SAFETY: HDF5 passes an entry with a zero-terminated description, and the pointer given to `walk`.
            unsafe {
                let (all, description) = (&mut *all.cast::<Vec<String>>(), (*entry).description);
                if !description.is_null() {
                    all.push(CStr::from_ptr(description).to_string_lossy().into_owned());
                }
            }
            0
        }
        let mut all: Vec<String> = Vec::new();
        // SAFETY: `visit` receives the list, which outlives the call and is not accessed elsewhere during it.
        unsafe { (self.functions.walk)(DEFAULT, WALK_DOWNWARD, visit, (&raw mut all).cast()) };
        let all = all.join("; ");
        if all.is_empty() { "HDF5 reported no reason".to_owned() } else { all }
    }
}

/// A file that ranks write collectively. Closing it is collective, as is dropping it.
#[derive(Debug)]
pub(crate) struct ParallelFile<'a> {
    library: &'a Hdf5,
    id: OwnedId,
    transfer: OwnedId,
}

/// Selected rows of a dataset that are ready to be written.
#[derive(Debug)]
pub(crate) struct RowSelection<'a> {
    library: &'a Hdf5,
    dataset: OwnedId,
    class: OwnedId,
    in_memory: OwnedId,
    in_file: OwnedId,
    /// Length of the selected values.
    pub len_bytes: u64,
}

impl<'a> ParallelFile<'a> {
    /// Opens a dataset and selects `count` rows from `start`; selects nothing if `count` is 0.
    pub(crate) fn select(
        &self,
        object: &[u8],
        start: u64,
        count: u64,
    ) -> std::result::Result<RowSelection<'a>, String> {
        let (library, functions) = (self.library, &self.library.functions);
        let object = CString::new(object).map_err(|error| error.to_string())?;
        // SAFETY: here and below, the file is open, the path ends with a zero byte, and the ids are live and belong to
        // this library.
        let dataset = library.owned_id(
            unsafe { (functions.open_dataset)(self.id.id, object.as_ptr(), DEFAULT) },
            functions.close_dataset,
        )?;
        // SAFETY: as above.
        let class = library.owned_id(unsafe { (functions.type_of)(dataset.id) }, functions.close_type)?;
        // SAFETY: as above.
        let in_file = library.owned_id(unsafe { (functions.space_of)(dataset.id) }, functions.close_space)?;
        // SAFETY: as above.
        let (rank, element_len_bytes) = unsafe { ((functions.rank)(in_file.id), (functions.type_len_bytes)(class.id)) };
        let mut dims = vec![0; usize::try_from(rank).ok().filter(|rank| *rank > 0).ok_or_else(|| library.why())?];
        // SAFETY: `dims` has one number per dimension of the space.
        library.status(unsafe { (functions.dims)(in_file.id, dims.as_mut_ptr(), null_mut()) })?;
        if start.checked_add(count).is_none_or(|end| count > 0 && end > dims[0]) {
            return Err(format!("it has {} rows, too few for {count} from row {start}", dims[0]));
        }
        let (mut first, mut block) = (vec![0; dims.len()], dims);
        (first[0], block[0]) = (start, count);
        let len_bytes = block.iter().fold(element_len_bytes as u64, |product, dim| product.saturating_mul(*dim));
        // The extent must not be zero along any dimension; elements that are not selected do not matter.
        let extent: Vec<Size> = block.iter().map(|dim| (*dim).max(1)).collect();
        // SAFETY: `extent` has `rank` numbers.
        let in_memory =
            library.owned_id(unsafe { (functions.new_space)(rank, extent.as_ptr(), null()) }, functions.close_space)?;
        if len_bytes == 0 {
            // SAFETY: live ids.
            library.status(unsafe { (functions.select_none)(in_file.id) })?;
            // SAFETY: live ids.
            library.status(unsafe { (functions.select_none)(in_memory.id) })?;
        } else {
            // SAFETY: `first` and `block` have `rank` numbers.
            library.status(unsafe {
                (functions.select)(in_file.id, SELECT_SET, first.as_ptr(), null(), block.as_ptr(), null())
            })?;
        }
        Ok(RowSelection { library, dataset, class, in_memory, in_file, len_bytes })
    }

    /// Collective. Writes the selected rows with the values `bytes`.
    pub(crate) fn write(&self, selected: &RowSelection<'_>, bytes: &[u8]) -> std::result::Result<(), String> {
        if bytes.len() as u64 != selected.len_bytes {
            return Err(format!("{} bytes are selected, but got {}", selected.len_bytes, bytes.len()));
        }
        let nothing = [0_u8; 1];
        let from = if bytes.is_empty() { nothing.as_ptr() } else { bytes.as_ptr() };
        let RowSelection { library, dataset, class, in_memory, in_file, .. } = selected;
        // SAFETY: live ids; `bytes` has the length of the selection in memory, in the dataset's own type, so that the
        // library reads within it and converts nothing.
        library.status(unsafe {
            let to = (dataset.id, class.id, in_memory.id, in_file.id, self.transfer.id);
            (library.functions.write)(to.0, to.1, to.2, to.3, to.4, from.cast())
        })
    }

    /// Collective. Closes the file.
    pub(crate) fn close(self) -> std::result::Result<(), String> {
        let Self { library, id, .. } = self;
        library.status(id.close())
    }
}

/// An id that is closed when dropped.
#[derive(Debug)]
struct OwnedId {
    id: Id,
    close: unsafe extern "C" fn(Id) -> Status,
}

impl OwnedId {
    fn close(self) -> Status {
        let (id, close) = (self.id, self.close);
        std::mem::forget(self);
        // SAFETY: a live id, which is not used again.
        unsafe { close(id) }
    }
}

impl Drop for OwnedId {
    fn drop(&mut self) {
        // SAFETY: as in `close`.
        unsafe { (self.close)(self.id) };
    }
}

fn load(name: &OsStr) -> std::result::Result<Library, libloading::Error> {
    // SAFETY: the library's own initialisation runs. The library is named by the user or provided by the system.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) }
}
