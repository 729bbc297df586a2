//! The calls of MPI-IO, which rsmpi has no safe form of: files that all ranks of a communicator write together.
//!
//! The only unsafe code of this crate. Every function but [`File::hints`] is collective: all ranks of the file call it, in
//! the same order, on the thread that initialised MPI. Invariants: a file is closed by [`File::close`] alone, for closing
//! is collective and a rank that has failed must not wait in it; MPI never gets a pointer to no memory.

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

/// Longest key and value of a hint.
pub(crate) const HINT_LIMITS: (usize, usize) = (MPI_MAX_INFO_KEY as usize - 1, MPI_MAX_INFO_VAL as usize - 1);

/// What MPI says of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failed {
    /// Class of the error, `MPI_ERR_*`.
    pub class: u32,
    /// In words.
    pub message: String,
}

/// A file that ranks write together.
#[derive(Debug)]
pub(crate) struct File {
    handle: MPI_File,
}

impl File {
    /// Collective. Opens the file at `path`, which is there, for writing.
    pub(crate) fn open(ranks: &SimpleCommunicator, path: &CStr, hints: &[(CString, CString)]) -> Result<Self, Failed> {
        let hints = Hints::new(hints);
        // SAFETY: a constant of the MPI library, which is initialised: there is a communicator.
        let mut handle = unsafe { RSMPI_FILE_NULL };
        // Reading too: where the runs of a round leave gaps, MPI-IO may read a region, change it and write it back.
        let mode = MPI_MODE_RDWR as c_int;
        // SAFETY: the communicator and the info object are live, the path ends with a zero byte, and `handle` takes the
        // new handle.
        check(unsafe { MPI_File_open(ranks.as_raw(), path.as_ptr(), mode, hints.info, &raw mut handle) })?;
        // SAFETY: the file is open; the handler is a constant of the library.
        check(unsafe { MPI_File_set_errhandler(handle, RSMPI_ERRORS_RETURN) })?;
        Ok(Self { handle })
    }

    /// Collective. Writes the blocks of this rank, which are in ascending order, do not overlap, and are each shorter than
    /// 2 GiB. A rank without any takes part all the same.
    pub(crate) fn write_at_all(&self, blocks: &[(u64, &[u8])]) -> Result<(), Failed> {
        let lens: Vec<c_int> = blocks.iter().map(|(_, bytes)| bytes.len() as c_int).collect();
        // The view begins at the first block, and the pattern counts from there. Addresses that a file has fit 63 bits.
        let first = blocks.first().map_or(0, |(address, _)| *address);
        let in_file: Vec<MPI_Aint> = blocks.iter().map(|(address, _)| (address - first) as MPI_Aint).collect();
        let in_memory: Vec<MPI_Aint> = blocks.iter().map(|(_, bytes)| address_of(bytes)).collect();
        let (in_file, in_memory) = (Pattern::new(&lens, &in_file), Pattern::new(&lens, &in_memory));
        // Failing to set the view must not keep this rank from the write that the others are in.
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
        // What the memory's pattern counts from is address zero, MPI_BOTTOM in every MPI there is. A count of zero goes
        // with memory that is there.
        let from: *const u8 = if count == 0 { nothing.as_ptr() } else { null() };
        // SAFETY: the pattern is made of the addresses and lengths of `blocks`, which are borrowed until the call is over
        // and are only read by it.
        let written = check(unsafe {
            let memory_type = in_memory.datatype();
            MPI_File_write_at_all(self.handle, 0, from.cast::<c_void>(), count, memory_type, RSMPI_STATUS_IGNORE)
        });
        viewed.and(written)
    }

    /// Collective. Length of the file, or what fails here.
    pub(crate) fn len_bytes(&self) -> Result<u64, Failed> {
        let mut len_bytes: MPI_Offset = 0;
        // SAFETY: the file is open; `len_bytes` takes the result.
        check(unsafe { MPI_File_get_size(self.handle, &raw mut len_bytes) })?;
        Ok(u64::try_from(len_bytes).unwrap_or(0))
    }

    /// Collective. Sets the length of the file, the same on every rank; what is added reads as zeros.
    pub(crate) fn set_len(&self, len_bytes: u64) -> Result<(), Failed> {
        // SAFETY: the file is open. Lengths that a file has fit 63 bits.
        check(unsafe { MPI_File_set_size(self.handle, len_bytes as MPI_Offset) })
    }

    /// Collective. Makes durable what was written.
    pub(crate) fn sync(&self) -> Result<(), Failed> {
        // SAFETY: the file is open.
        check(unsafe { MPI_File_sync(self.handle) })
    }

    /// Collective. Closes the file.
    pub(crate) fn close(mut self) -> Result<(), Failed> {
        // SAFETY: the file is open, and its handle is not used again.
        check(unsafe { MPI_File_close(&raw mut self.handle) })
    }

    /// The hints that MPI-IO goes by.
    pub(crate) fn hints(&self) -> Result<Vec<(String, String)>, Failed> {
        // SAFETY: a constant of the library.
        let mut info = unsafe { RSMPI_INFO_NULL };
        // SAFETY: the file is open; `info` takes a new object.
        check(unsafe { MPI_File_get_info(self.handle, &raw mut info) })?;
        Hints { info }.pairs()
    }
}

/// The address of a block as MPI counts it.
fn address_of(bytes: &[u8]) -> MPI_Aint {
    let mut address = 0;
    // SAFETY: the pointer is only looked at; `address` takes the result. The call cannot fail.
    unsafe { MPI_Get_address(bytes.as_ptr().cast::<c_void>(), &raw mut address) };
    address
}

/// Where the bytes of some blocks lie, as a datatype.
struct Pattern {
    /// `None`: single bytes, where there are no blocks.
    datatype: Option<MPI_Datatype>,
}

impl Pattern {
    fn new(lens: &[c_int], places: &[MPI_Aint]) -> Self {
        if lens.is_empty() {
            return Self { datatype: None };
        }
        // Of each a run takes at most; a round has fewer batches than 2^31.
        let count = lens.len() as c_int;
        // SAFETY: a constant of the library.
        let mut datatype = unsafe { RSMPI_DATATYPE_NULL };
        // SAFETY: both lists have `count` entries, and `datatype` takes the new type. An error ends all ranks, which is
        // what MPI does with errors of types.
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
            // SAFETY: the type was made here; MPI keeps it as long as a view needs it.
            unsafe { MPI_Type_free(&raw mut datatype) };
        }
    }
}

/// Keys and values that MPI keeps.
struct Hints {
    info: MPI_Info,
}

impl Hints {
    /// Keys and values no longer than [`HINT_LIMITS`].
    fn new(pairs: &[(CString, CString)]) -> Self {
        // SAFETY: a constant of the library.
        let mut info = unsafe { RSMPI_INFO_NULL };
        // SAFETY: `info` takes a new object.
        unsafe { MPI_Info_create(&raw mut info) };
        for (key, value) in pairs {
            // SAFETY: both end with a zero byte and are copied by the call.
            unsafe { MPI_Info_set(info, key.as_ptr(), value.as_ptr()) };
        }
        Self { info }
    }

    fn pairs(&self) -> Result<Vec<(String, String)>, Failed> {
        let mut count = 0;
        // SAFETY: the object is live; `count` takes the result.
        check(unsafe { MPI_Info_get_nkeys(self.info, &raw mut count) })?;
        (0..count).map(|number| self.pair(number)).collect()
    }

    fn pair(&self, number: c_int) -> Result<(String, String), Failed> {
        let mut key: [c_char; MPI_MAX_INFO_KEY as usize + 1] = [0; MPI_MAX_INFO_KEY as usize + 1];
        let mut value: [c_char; MPI_MAX_INFO_VAL as usize + 1] = [0; MPI_MAX_INFO_VAL as usize + 1];
        let mut is_there = 0;
        // SAFETY: the object is live, `number` is below the number of keys, and the buffer holds the longest key with its
        // zero byte.
        check(unsafe { MPI_Info_get_nthkey(self.info, number, key.as_mut_ptr()) })?;
        let longest = MPI_MAX_INFO_VAL as c_int;
        // SAFETY: the key ends with a zero byte; the buffer holds `longest` bytes and a zero byte.
        check(unsafe { MPI_Info_get(self.info, key.as_ptr(), longest, value.as_mut_ptr(), &raw mut is_there) })?;
        Ok((text(&key), text(&value)))
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        // SAFETY: the object was made here and is not used again; MPI has copied what it keeps.
        unsafe { MPI_Info_free(&raw mut self.info) };
    }
}

/// The text before the first zero byte.
fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn check(code: c_int) -> Result<(), Failed> {
    if code == MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut words: [c_char; MPI_MAX_ERROR_STRING as usize + 1] = [0; MPI_MAX_ERROR_STRING as usize + 1];
    let (mut len, mut class) = (0, 0);
    // SAFETY: the buffer holds the longest message with its zero byte; `len` and `class` take results. A code that MPI
    // has returned is one that it knows.
    unsafe {
        MPI_Error_string(code, words.as_mut_ptr(), &raw mut len);
        MPI_Error_class(code, &raw mut class);
    }
    Err(Failed { class: class as u32, message: text(&words) })
}
