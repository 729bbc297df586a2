//! MPI-IO calls for which rsmpi has no safe interface: files that all ranks of a communicator write collectively.
//!
//! This module and `hdf5` hold the unsafe code of this crate. All functions except [`MpiFile::hints`] are collective:
//! all ranks of the file call them, in the same order, on the thread that initialised MPI. Invariants: a file is closed
//! only by [`MpiFile::close`], because closing is collective and a failed rank must not wait in it; MPI never receives
//! a pointer to an empty buffer.

use mpi::ffi::{
    MPI_Aint, MPI_Datatype, MPI_Error_class, MPI_Error_string, MPI_File, MPI_File_close, MPI_File_get_info,
    MPI_File_get_size, MPI_File_open, MPI_File_set_errhandler, MPI_File_set_size, MPI_File_set_view, MPI_File_sync,
    MPI_File_write_at_all, MPI_Get_address, MPI_Info, MPI_Info_create, MPI_Info_free, MPI_Info_get, MPI_Info_get_nkeys,
    MPI_Info_get_nthkey, MPI_Info_set, MPI_MAX_ERROR_STRING, MPI_MAX_INFO_KEY, MPI_MAX_INFO_VAL, MPI_MODE_RDWR,
    MPI_Offset, MPI_SUCCESS, MPI_Type_commit, MPI_Type_create_hindexed, MPI_Type_free, RSMPI_DATATYPE_NULL,
    RSMPI_ERRORS_RETURN, RSMPI_FILE_NULL, RSMPI_INFO_NULL, RSMPI_STATUS_IGNORE, RSMPI_UINT8_T,
};
use mpi::topology::SimpleCommunicator;
use mpi::traits::AsRaw;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null;

/// Maximum lengths of a hint's key and value.
pub(crate) const HINT_LIMITS: (usize, usize) = (MPI_MAX_INFO_KEY as usize - 1, MPI_MAX_INFO_VAL as usize - 1);

/// Failure as reported by MPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MpiFailure {
    /// Error class, `MPI_ERR_*`.
    pub class: u32,
    /// Error message.
    pub message: String,
}

/// A file that ranks write collectively.
#[derive(Debug)]
pub(crate) struct MpiFile {
    handle: MPI_File,
}

impl MpiFile {
    /// Collective. Opens the existing file at `path` for writing.
    pub(crate) fn open(
        ranks: &SimpleCommunicator,
        path: &CStr,
        hints: &[(CString, CString)],
    ) -> Result<Self, MpiFailure> {
        let hints = Hints::new(hints);
        // SAFETY: a constant of the MPI library, which is initialised, because there is a communicator.
        let mut handle = unsafe { RSMPI_FILE_NULL };
        // Reading is included, because MPI-IO may read a region, modify it and write it back if the runs of a round
        // leave gaps.
        let mode = MPI_MODE_RDWR as c_int;
        // SAFETY: the communicator and the info object are live, the path ends with a zero byte, and `handle` receives
        // the new handle.
        check(unsafe { MPI_File_open(ranks.as_raw(), path.as_ptr(), mode, hints.info, &raw mut handle) })?;
        // SAFETY: the file is open; the handler is a constant of the library.
        check(unsafe { MPI_File_set_errhandler(handle, RSMPI_ERRORS_RETURN) })?;
        Ok(Self { handle })
    }

    /// Collective. Writes the blocks of this rank, which must be in ascending order, not overlap, and each be shorter
    /// than 2 GiB. A rank without blocks must also take part.
    pub(crate) fn write_at_all(&self, blocks: &[(u64, &[u8])]) -> Result<(), MpiFailure> {
        let lens: Vec<c_int> = blocks.iter().map(|(_, bytes)| bytes.len() as c_int).collect();
        // The view begins at the first block, to which the pattern is relative. Addresses in a file fit 63 bits.
        let first = blocks.first().map_or(0, |(address, _)| *address);
        let in_file: Vec<MPI_Aint> = blocks.iter().map(|(address, _)| (address - first) as MPI_Aint).collect();
        let in_memory: Vec<MPI_Aint> = blocks.iter().map(|(_, bytes)| address_of(bytes)).collect();
        let (in_file, in_memory) = (Pattern::new(&lens, &in_file), Pattern::new(&lens, &in_memory));
        // If setting the view fails, this rank must still take part in the write, in which the others are waiting.
        // SAFETY: the file is open, the types are committed, and "native" is a representation that MPI defines.
        let viewed = check(unsafe {
            let file_type = in_file.datatype();
            MPI_File_set_view(
                self.handle,
                first as MPI_Offset,
                RSMPI_UINT8_T,
                file_type,
                c"native".as_ptr(),
                RSMPI_INFO_NULL,
            )
        });
        let count = c_int::from(!blocks.is_empty() && viewed.is_ok());
        let nothing = [0_u8; 1];
        // The pattern in memory is relative to address zero, which is MPI_BOTTOM in every existing MPI. A count of zero
        // is passed with a valid buffer.
        let from: *const u8 = if count == 0 { nothing.as_ptr() } else { null() };
        // SAFETY: the pattern consists of the addresses and lengths of `blocks`, which are borrowed until the call
        // returns and only read by it.
        let written = check(unsafe {
            let memory_type = in_memory.datatype();
            MPI_File_write_at_all(self.handle, 0, from.cast::<c_void>(), count, memory_type, RSMPI_STATUS_IGNORE)
        });
        viewed.and(written)
    }

    /// Collective. Returns the length of the file, or the failure on this rank.
    pub(crate) fn len_bytes(&self) -> Result<u64, MpiFailure> {
        let mut len_bytes: MPI_Offset = 0;
        // SAFETY: the file is open; `len_bytes` receives the result.
        check(unsafe { MPI_File_get_size(self.handle, &raw mut len_bytes) })?;
        Ok(u64::try_from(len_bytes).unwrap_or(0))
    }

    /// Collective. Sets the length of the file, which must be the same on every rank; added bytes read as zeros.
    pub(crate) fn set_len(&self, len_bytes: u64) -> Result<(), MpiFailure> {
        // SAFETY: the file is open. Lengths of files fit 63 bits.
        check(unsafe { MPI_File_set_size(self.handle, len_bytes as MPI_Offset) })
    }

    /// Collective. Makes the written data durable.
    pub(crate) fn sync(&self) -> Result<(), MpiFailure> {
        // SAFETY: the file is open.
        check(unsafe { MPI_File_sync(self.handle) })
    }

    /// Collective. Closes the file.
    pub(crate) fn close(mut self) -> Result<(), MpiFailure> {
        // SAFETY: the file is open, and its handle is not used again.
        check(unsafe { MPI_File_close(&raw mut self.handle) })
    }

    /// Returns the hints that MPI-IO uses.
    pub(crate) fn hints(&self) -> Result<Vec<(String, String)>, MpiFailure> {
        // SAFETY: a constant of the library.
        let mut info = unsafe { RSMPI_INFO_NULL };
        // SAFETY: the file is open; `info` receives a new object.
        check(unsafe { MPI_File_get_info(self.handle, &raw mut info) })?;
        Hints { info }.pairs()
    }
}

/// Returns the address of a block in MPI's representation.
fn address_of(bytes: &[u8]) -> MPI_Aint {
    let mut address = 0;
    // SAFETY: the pointer is not dereferenced; `address` receives the result. The call cannot fail.
    unsafe { MPI_Get_address(bytes.as_ptr().cast::<c_void>(), &raw mut address) };
    address
}

/// Locations of the bytes of some blocks, as a datatype.
struct Pattern {
    /// Datatype of the blocks; `None` stands for single bytes, if there are no blocks.
    datatype: Option<MPI_Datatype>,
}

impl Pattern {
    fn new(lens: &[c_int], places: &[MPI_Aint]) -> Self {
        if lens.is_empty() {
            return Self { datatype: None };
        }
        // A batch contributes at most one run, and a round has fewer than 2^31 batches.
        let count = lens.len() as c_int;
        // SAFETY: a constant of the library.
        let mut datatype = unsafe { RSMPI_DATATYPE_NULL };
        // SAFETY: both lists have `count` entries, and `datatype` receives the new type. An error ends all ranks, which
        // is MPI's behaviour for errors of types.
        unsafe {
            MPI_Type_create_hindexed(count, lens.as_ptr(), places.as_ptr(), RSMPI_UINT8_T, &raw mut datatype);
            MPI_Type_commit(&raw mut datatype);
        }
        Self { datatype: Some(datatype) }
    }

    fn datatype(&self) -> MPI_Datatype {
        // SAFETY: a constant of the library.
        self.datatype.unwrap_or(unsafe { RSMPI_UINT8_T })
    }
}

impl Drop for Pattern {
    fn drop(&mut self) {
        if let Some(mut datatype) = self.datatype.take() {
            // SAFETY: the type was created here; MPI keeps it as long as a view needs it.
            unsafe { MPI_Type_free(&raw mut datatype) };
        }
    }
}

/// Keys and values kept by MPI.
struct Hints {
    info: MPI_Info,
}

impl Hints {
    /// Creates the object from keys and values no longer than [`HINT_LIMITS`].
    fn new(pairs: &[(CString, CString)]) -> Self {
        // SAFETY: a constant of the library.
        let mut info = unsafe { RSMPI_INFO_NULL };
        // SAFETY: `info` receives a new object.
        unsafe { MPI_Info_create(&raw mut info) };
        for (key, value) in pairs {
            // SAFETY: both are zero-terminated and copied by the call.
            unsafe { MPI_Info_set(info, key.as_ptr(), value.as_ptr()) };
        }
        Self { info }
    }

    fn pairs(&self) -> Result<Vec<(String, String)>, MpiFailure> {
        let mut count = 0;
        // SAFETY: the object is live; `count` receives the result.
        check(unsafe { MPI_Info_get_nkeys(self.info, &raw mut count) })?;
        (0..count).map(|number| self.pair(number)).collect()
    }

    fn pair(&self, number: c_int) -> Result<(String, String), MpiFailure> {
        let mut key: [c_char; MPI_MAX_INFO_KEY as usize + 1] = [0; MPI_MAX_INFO_KEY as usize + 1];
        let mut value: [c_char; MPI_MAX_INFO_VAL as usize + 1] = [0; MPI_MAX_INFO_VAL as usize + 1];
        let mut is_there = 0;
        // SAFETY: the object is live, `number` is below the number of keys, and the buffer has room for the longest key
        // with its zero byte.
        check(unsafe { MPI_Info_get_nthkey(self.info, number, key.as_mut_ptr()) })?;
        let longest = MPI_MAX_INFO_VAL as c_int;
        // SAFETY: the key is zero-terminated; the buffer has room for `longest` bytes and a zero byte.
        check(unsafe { MPI_Info_get(self.info, key.as_ptr(), longest, value.as_mut_ptr(), &raw mut is_there) })?;
        Ok((text(&key), text(&value)))
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        // SAFETY: the object was created here and is not used again; MPI has copied the parts that it keeps.
        unsafe { MPI_Info_free(&raw mut self.info) };
    }
}

/// Returns the text before the first zero byte.
fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn check(code: c_int) -> Result<(), MpiFailure> {
    if code == MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut words: [c_char; MPI_MAX_ERROR_STRING as usize + 1] = [0; MPI_MAX_ERROR_STRING as usize + 1];
    let (mut len, mut class) = (0, 0);
    // SAFETY: the buffer has room for the longest message with its zero byte; `len` and `class` receive results. MPI
    // knows every code that it returned.
    unsafe {
        MPI_Error_string(code, words.as_mut_ptr(), &raw mut len);
        MPI_Error_class(code, &raw mut class);
    }
    Err(MpiFailure { class: class as u32, message: text(&words) })
}
