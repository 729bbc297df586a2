//! Answers the requests of the protocol with libhdf5. Runs only in the child.
//!
//! Every call here may crash, hang or exhaust the address space of the process on a malicious file; this module does
//! not try to prevent that. It does prevent access to other files: no link that leaves the file is followed
//! ([`links`]), and no other file is read unless [`sources`] has found it allowed and present.
//!
//! Invariant: values are the same as the native reader's, byte for byte, for all files that both can read.

mod dataspaces;
mod endless;
mod extent;
mod filters;
mod links;
mod objects;
mod open_dataset;
mod properties;
mod source_rows;
mod sources;
mod storage;
mod types;
mod values;

use super::cpu_time::CpuTime;
use super::protocol::{Answer, Fragment, Hello, ListedChunk, ObjectName, Request, Task};
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle, Library};
use crate::model::{FileTree, Layout};
use hdf5_metno_sys::h5::{herr_t, hsize_t};
use hdf5_metno_sys::h5d::H5Dchunk_iter;
use hdf5_metno_sys::h5f::{H5F_ACC_RDONLY, H5F_info2_t, H5Fget_create_plist, H5Fget_info2, H5Fopen};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5o::{H5O_info2_t, H5O_token_t, H5Oget_info3, H5Oopen, H5Oopen_by_token};
use hdf5_metno_sys::h5p::{
    H5P_CLS_FILE_ACCESS, H5P_DEFAULT, H5Pcreate, H5Pget_sizes, H5Pget_userblock, H5Pset_elink_file_cache_size,
    H5Pset_file_locking,
};
use objects::ObjectWalk;
use open_dataset::OpenDataset;
use source_rows::{check_descriptors, max_open_sources};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{OsStr, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Result of a task.
pub(super) enum TaskOutcome {
    /// A message.
    Answer(Answer),
    /// Values of a dataset.
    Values(Vec<u8>),
}

/// The file of the child process, open in libhdf5.
pub(super) struct OpenFile {
    path: PathBuf,
    len_bytes: u64,
    any_foreign_file: bool,
    /// File that must not be a source of values.
    replaced: Option<PathBuf>,
    answer_limit_len_bytes: u64,
    /// Limit of this process's address space.
    memory_len_bytes: u64,
    cpu_time: CpuTime,
    superblock_version: u8,
    userblock_len_bytes: u64,
    address_len_bytes: u8,
    length_len_bytes: u8,
    root_address: u64,
    /// Every object by address, with the path by which a walk from the root first reaches it.
    paths: OnceCell<HashMap<u64, Vec<u8>>>,
    /// The dataset that values were last read from.
    last_read: RefCell<Option<OpenDataset>>,
    file: Handle,
    _library: Library,
}

impl OpenFile {
    /// Opens the file of the conversation. From here on, this process follows no link that leaves a file, and decodes
    /// every filter that raddle supports.
    pub(super) fn open(greeting: &Hello, cpu_time: CpuTime) -> Result<Self> {
        let library = Library::lock();
        let path = PathBuf::from(OsStr::from_bytes(&greeting.path));
        let call = Call::of_file(&path);
        links::stop_following(call)?;
        filters::provide(call)?;
        let len_bytes = std::fs::metadata(&path)
            .map_err(|source| Hdf5Error::Io { path: path.clone(), operation: "stat".to_owned(), source })?
            .len();
        let file = open_file(&path)?;
        let mut info = H5F_info2_t::default();
        // SAFETY: the file is open, the structure is the one of this version of libhdf5.
        call.status("H5Fget_info2", unsafe { H5Fget_info2(file.id(), &raw mut info) })?;
        // SAFETY: the file is open; we own the new property list.
        let list = unsafe { call.handle("H5Fget_create_plist", H5Fget_create_plist(file.id())) }?;
        let (mut address_len, mut length_len, mut userblock_len) = (0_usize, 0_usize, 0);
        // SAFETY: the list is a file creation list; the variables outlive the call.
        call.status("H5Pget_sizes", unsafe { H5Pget_sizes(list.id(), &raw mut address_len, &raw mut length_len) })?;
        // SAFETY: as above.
        call.status("H5Pget_userblock", unsafe { H5Pget_userblock(list.id(), &raw mut userblock_len) })?;
        let root_token = object_token(file.id(), call)?;
        let mut open = Self {
            any_foreign_file: greeting.any_foreign_file,
            replaced: greeting.replaced.as_ref().map(|path| PathBuf::from(OsStr::from_bytes(path))),
            answer_limit_len_bytes: greeting.answer_limit_len_bytes,
            memory_len_bytes: greeting.address_space_len_bytes,
            cpu_time,
            superblock_version: info.super_.version as u8,
            userblock_len_bytes: userblock_len,
            address_len_bytes: address_len as u8,
            length_len_bytes: length_len as u8,
            root_address: 0,
            paths: OnceCell::new(),
            last_read: RefCell::new(None),
            file,
            path: path.clone(),
            len_bytes,
            _library: library,
        };
        open.root_address = open.address(&root_token);
        Ok(open)
    }

    /// Performs the requested task.
    pub(super) fn answer(&self, request: &Request) -> Result<TaskOutcome> {
        match &request.task {
            Task::Tree => self.tree().map(Answer::Tree).map(TaskOutcome::Answer),
            Task::Fragment { addresses } => {
                let objects = objects::read(self, &ObjectWalk::from(self, addresses))?;
                Ok(TaskOutcome::Answer(Answer::Fragment(Fragment { objects })))
            }
            Task::Values { object, rows } => values::of_dataset(self, object, rows.clone()).map(TaskOutcome::Values),
            Task::Chunks { object } => self.chunks(object).map(Answer::Chunks).map(TaskOutcome::Answer),
        }
    }

    fn tree(&self) -> Result<FileTree> {
        let walk = ObjectWalk::from(self, &[self.root_address]);
        // Object references of the file are returned as paths, which need the same walk.
        let _ = self.paths.set(walk.paths());
        Ok(FileTree {
            superblock_version: self.superblock_version,
            userblock_len_bytes: self.userblock_len_bytes,
            address_len_bytes: self.address_len_bytes,
            length_len_bytes: self.length_len_bytes,
            objects: objects::read(self, &walk)?,
        })
    }

    /// Returns the path of the object at an address, for references, or `None` if no hard link leads to it.
    fn path_of(&self, address: u64) -> Option<&[u8]> {
        let paths = self.paths.get_or_init(|| ObjectWalk::from(self, &[self.root_address]).paths());
        paths.get(&address).map(Vec::as_slice)
    }

    fn chunks(&self, object: &ObjectName) -> Result<Vec<ListedChunk>> {
        unsafe extern "C" fn collect(
            origin: *const hsize_t,
            filter_mask: c_uint,
            address: u64,
            len_bytes: hsize_t,
            out: *mut c_void,
        ) -> c_int {
            // SAFETY: `out` is the list of our caller, which is not accessed elsewhere during the iteration.
            let list = unsafe { &mut *out.cast::<ChunkList>() };
            // SAFETY: libhdf5 passes one coordinate per dimension of the dataset.
            let origin = unsafe { std::slice::from_raw_parts(origin, list.rank) }.to_vec();
            list.chunks.push(ListedChunk { origin, address, len_bytes, filter_mask });
            0
        }
        struct ChunkList {
            rank: usize,
            chunks: Vec<ListedChunk>,
        }
        let (dataset, name) = self.open_named(object)?;
        let call = Call::of_object(&self.path, &name);
        let list = properties::creation_list(&dataset, call)?;
        let Layout::Chunked { chunk_shape, .. } = storage::layout(self, &dataset, &list, call)? else {
            return Ok(Vec::new());
        };
        let mut found = ChunkList { rank: chunk_shape.len(), chunks: Vec::new() };
        // SAFETY: a dataset is open; the callback writes through `found`, which outlives the call.
        let status = unsafe { H5Dchunk_iter(dataset.id(), H5P_DEFAULT, Some(collect), (&raw mut found).cast()) };
        call.status("H5Dchunk_iter", status)?;
        Ok(found.chunks)
    }

    /// Opens an object; returns it with its name for messages.
    fn open_named(&self, object: &ObjectName) -> Result<(Handle, Vec<u8>)> {
        match object {
            ObjectName::Address(address) => {
                let name = format!("object at byte {address}").into_bytes();
                Ok((self.open_at(*address, Call::of_object(&self.path, &name))?, name))
            }
            ObjectName::Path(path) => {
                let call = Call::of_object(&self.path, path);
                let name = call.c_string("H5Oopen", path)?;
                // SAFETY: the file is open, the name is terminated; we own the new identifier.
                let handle = unsafe { call.handle("H5Oopen", H5Oopen(self.file.id(), name.as_ptr(), H5P_DEFAULT)) }?;
                Ok((handle, path.clone()))
            }
        }
    }

    fn open_at(&self, address: u64, call: Call<'_>) -> Result<Handle> {
        let mut token = [0_u8; 16];
        let relative = address.wrapping_sub(self.userblock_len_bytes).to_le_bytes();
        let len = usize::from(self.address_len_bytes).min(relative.len());
        token[..len].copy_from_slice(&relative[..len]);
        // SAFETY: a token is 16 plain bytes.
        let token = unsafe { std::mem::transmute::<[u8; 16], H5O_token_t>(token) };
        // SAFETY: the file is open; we own the new identifier. libhdf5 checks the data at the address, or crashes.
        unsafe { call.handle("H5Oopen_by_token", H5Oopen_by_token(self.file.id(), token)) }
    }

    /// Returns the absolute file offset that a token represents.
    fn address(&self, token: &H5O_token_t) -> u64 {
        // SAFETY: a token is 16 plain bytes. In the native format it is the address, relative to the superblock,
        // little-endian, in the file's size of addresses.
        let bytes = unsafe { std::mem::transmute::<H5O_token_t, [u8; 16]>(*token) };
        let mut relative = [0_u8; 8];
        let len = usize::from(self.address_len_bytes).min(relative.len());
        relative[..len].copy_from_slice(&bytes[..len]);
        u64::from_le_bytes(relative).wrapping_add(self.userblock_len_bytes)
    }
}

unsafe extern "C" {
    // Not in the bindings: added in HDF5 1.14.4.
    fn H5Pset_relax_file_integrity_checks(file_access: hid_t, flags: u64) -> herr_t;
}

/// Opens a file for reading with plain positioned reads. A limited number of the files of its virtual datasets stay
/// open; otherwise each dataset would open them again.
fn open_file(path: &Path) -> Result<Handle> {
    /// Flag `H5F_RFIC_UNUSUAL_NUM_UNUSED_BITS`, without which libhdf5 treats numbers with few significant bits as
    /// damage.
    const UNUSED_BITS: u64 = 1;
    let call = Call::of_file(path);
    let name = call.c_string("H5Fopen", path.as_os_str().as_bytes())?;
    // SAFETY: the lock is held by the OpenFile or its constructor; we own the new identifier.
    let access = unsafe { call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_FILE_ACCESS)) }?;
    // SAFETY: a file access list.
    let status = unsafe { H5Pset_relax_file_integrity_checks(access.id(), UNUSED_BITS) };
    call.status("H5Pset_relax_file_integrity_checks", status)?;
    // Locks only matter between writing programs, and on a file system without locks even reading would fail. SAFETY: a
    // file access list.
    call.status("H5Pset_file_locking", unsafe { H5Pset_file_locking(access.id(), 0, 1) })?;
    // SAFETY: a file access list.
    let status = unsafe { H5Pset_elink_file_cache_size(access.id(), max_open_sources() as c_uint) };
    call.status("H5Pset_elink_file_cache_size", status)?;
    // SAFETY: the name is terminated, the list open; we own the new identifier.
    let opened = unsafe { call.handle("H5Fopen", H5Fopen(name.as_ptr(), H5F_ACC_RDONLY, access.id())) };
    opened.map_err(|error| check_descriptors(call).err().unwrap_or(error))
}

/// Returns the token of an open object (of the root group for a file).
fn object_token(id: hid_t, call: Call<'_>) -> Result<H5O_token_t> {
    /// `H5O_INFO_BASIC`.
    const BASIC: c_uint = 1;
    let mut info = std::mem::MaybeUninit::<H5O_info2_t>::zeroed();
    // SAFETY: the identifier is open; the structure is the one of this version of libhdf5.
    call.status("H5Oget_info", unsafe { H5Oget_info3(id, info.as_mut_ptr(), BASIC) })?;
    // SAFETY: the token is plain bytes, initialised even if the call did not write it; no other field is read.
    Ok(unsafe { (*info.as_ptr()).token })
}

/// Returns the address of an open object.
fn address_of(file: &OpenFile, object: &Handle, call: Call<'_>) -> Result<u64> {
    Ok(file.address(&object_token(object.id(), call)?))
}

/// Creates the error for something valid that this reader does not support.
fn unsupported(call: Call<'_>, what: String) -> Hdf5Error {
    let error = Hdf5Error::Unsupported { path: call.path.to_path_buf(), address: 0, what };
    if call.object.is_empty() { error } else { error.in_object(call.object.escape_ascii().to_string()) }
}
