//! Filters that the bundled libhdf5 was built without, decoded by raddle's own decoders.
//!
//! A virtual dataset is read by libhdf5 whatever the filters of its sources. Without these filters it could not read
//! sources that the native reader can read. Encoding is not supported. Invariants: filters that libhdf5 includes are
//! not replaced; no panic reaches C; a chunk that cannot be decoded is an error with its reason, never wrong bytes.

use crate::error::Result;
use crate::ffi::Call;
use raddle_codec::{CodecError, DecodeState, Filter, KnownFilter, Pipeline};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `H5Z_func_t`.
type Undo = unsafe extern "C" fn(c_uint, usize, *const c_uint, usize, *mut usize, *mut *mut c_void) -> usize;

unsafe extern "C" {
    fn raddle_provide_filter(id: c_int, undo: Undo) -> c_int;
    fn raddle_push_filter_error(reason: *const c_char);
}

/// Decoders that libhdf5 may lack. Each has its own function, because libhdf5 does not pass the filter number to it.
const DECODERS: [(KnownFilter, Undo); 7] = [
    (KnownFilter::Szip, undo::<{ KnownFilter::Szip.id() }>),
    (KnownFilter::Bzip2, undo::<{ KnownFilter::Bzip2.id() }>),
    (KnownFilter::Lzf, undo::<{ KnownFilter::Lzf.id() }>),
    (KnownFilter::Blosc, undo::<{ KnownFilter::Blosc.id() }>),
    (KnownFilter::Lz4, undo::<{ KnownFilter::Lz4.id() }>),
    (KnownFilter::Bitshuffle, undo::<{ KnownFilter::Bitshuffle.id() }>),
    (KnownFilter::Zstd, undo::<{ KnownFilter::Zstd.id() }>),
];

/// `H5Z_FLAG_REVERSE`: decode instead of encode.
const REVERSE: c_uint = 0x0100;

/// Maximum length to which the output buffer may always grow. For metadata behind filters, whose blocks are far
/// shorter, libhdf5 passes only the stored length. For chunks it passes their length without filters; between two
/// filters they are hardly longer.
const MAX_UNANNOUNCED_LEN_BYTES: usize = 64 << 20;

thread_local! {
    static STATE: RefCell<DecodeState> = RefCell::default();
}

/// Registers the decoders that libhdf5 lacks.
pub(super) fn provide(call: Call<'_>) -> Result<()> {
    for (filter, undo) in DECODERS {
        // SAFETY: the lock is held by our caller; the function has the required type and is static.
        let provided = unsafe { raddle_provide_filter(filter.id().into(), undo) };
        call.status("H5Zregister", provided)?;
    }
    Ok(())
}

/// Reason why a filter was not decoded.
#[derive(Debug, thiserror::Error)]
enum FilterFailure {
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("not enough memory for {0} bytes of a chunk")]
    Memory(usize),
    #[error("this filter can only be decoded")]
    Writing,
    #[error("the decoder panicked: a defect of raddle")]
    Panic,
}

/// Memory as libhdf5's filters pass it on: allocated by malloc, to be freed by free.
struct MallocMemory {
    bytes: *mut c_void,
    len_bytes: usize,
}

impl MallocMemory {
    /// Allocates zeros; the system does not commit memory that is not written to.
    fn new(len_bytes: usize) -> std::result::Result<Self, FilterFailure> {
        // SAFETY: any length may be requested.
        let bytes = unsafe { libc::calloc(len_bytes, 1) };
        if bytes.is_null() { Err(FilterFailure::Memory(len_bytes)) } else { Ok(Self { bytes, len_bytes }) }
    }

    fn as_slice(&mut self) -> &mut [u8] {
        // SAFETY: `len_bytes` bytes, all initialised, and exclusively ours while borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.cast(), self.len_bytes) }
    }
}

impl Drop for MallocMemory {
    fn drop(&mut self) {
        // SAFETY: allocated by calloc or, after the exchange in `undo`, by libhdf5 with malloc; freed once.
        unsafe { libc::free(self.bytes) };
    }
}

/// Decodes data of filter `ID` for libhdf5, which calls this function. Returns the length of the data in `*buffer`, or
/// 0 after a failure, which leaves everything unchanged.
///
/// # Safety
/// As libhdf5 calls filters: `parameters` are `count` numbers, and `*buffer` is memory from malloc with `*room` bytes,
/// the first `stored_len` of which hold data.
unsafe extern "C" fn undo<const ID: u16>(
    flags: c_uint,
    count: usize,
    parameters: *const c_uint,
    stored_len: usize,
    room: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    let undone = catch_unwind(AssertUnwindSafe(|| {
        if flags & REVERSE == 0 {
            return Err(FilterFailure::Writing);
        }
        // SAFETY: by our contract. The pointers may be null if there is no data.
        let (parameters, stored, room) = unsafe {
            let parameters = if count == 0 { &[] } else { std::slice::from_raw_parts(parameters, count) };
            (parameters.to_vec(), std::slice::from_raw_parts((*buffer).cast::<u8>(), stored_len), *room)
        };
        undo_into_new(Filter { id: ID, optional: false, name: Vec::new(), parameters }, stored, room)
    }));
    let fault = match undone {
        Ok(Ok((mut block, len_bytes))) => {
            // SAFETY: by our contract we may set both; the old memory is freed with the block and no longer borrowed.
            unsafe {
                std::ptr::swap(buffer, &raw mut block.bytes);
                *room = block.len_bytes;
            }
            return len_bytes;
        }
        Ok(Err(fault)) => fault,
        Err(_) => FilterFailure::Panic,
    };
    let reason = CString::new(fault.to_string()).unwrap_or_default();
    // SAFETY: zero-terminated; libhdf5 copies it, and functions that it calls may call it.
    unsafe { raddle_push_filter_error(reason.as_ptr()) };
    0
}

/// Decodes one filter into a new buffer. libhdf5 does not state the length of the result. `room` is the size of the
/// buffer of the stored data.
fn undo_into_new(
    filter: Filter,
    stored: &[u8],
    room: usize,
) -> std::result::Result<(MallocMemory, usize), FilterFailure> {
    // The element length matters only to filters that libhdf5 includes.
    let pipeline = Pipeline::new(&[filter], 1)?;
    let mut room = room.max(stored.len()).max(1);
    let longest = room.saturating_mul(2).max(MAX_UNANNOUNCED_LEN_BYTES);
    loop {
        let mut block = MallocMemory::new(room)?;
        let decoded = STATE.with_borrow_mut(|state| pipeline.decode_at_most(state, stored, block.as_slice()));
        match decoded {
            Err(CodecError::TooLong { .. }) if room < longest => room = room.saturating_mul(2).min(longest),
            decoded => return Ok((block, decoded?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls a filter as libhdf5 does; returns its result and the data.
    fn call(undo: Undo, flags: c_uint, parameters: &[c_uint], stored: &[u8], room: usize) -> (usize, Vec<u8>) {
        let mut block = MallocMemory::new(room.max(stored.len())).unwrap();
        block.as_slice()[..stored.len()].copy_from_slice(stored);
        let mut room = block.len_bytes;
        // SAFETY: the block is from malloc and has the stated length, as do the parameters.
        let len_bytes = unsafe {
            undo(flags, parameters.len(), parameters.as_ptr(), stored.len(), &raw mut room, &raw mut block.bytes)
        };
        block.len_bytes = room;
        (len_bytes, block.as_slice()[..len_bytes].to_vec())
    }

    const LZF: Undo = undo::<{ KnownFilter::Lzf.id() }>;

    #[test]
    fn room_is_made_where_there_is_too_little() {
        let _library = crate::ffi::Library::lock();
        // A literal, then copies of it: 264 bytes, 100 times.
        let stored = [&[0, b'a'][..], &[0xe0, 255, 0].repeat(100)].concat();
        for room in [1, 1000, 26_401, 100_000] {
            assert_eq!(call(LZF, REVERSE, &[], &stored, room), (26_401, vec![b'a'; 26_401]), "{room}");
        }
    }

    #[test]
    fn what_cannot_be_undone_is_reported() {
        let _library = crate::ffi::Library::lock();
        let path = std::path::Path::new("x.h5");
        for (flags, undo, stored, reason) in [
            (REVERSE, LZF, &[0x20, 1][..], "lzf data is damaged: a back reference to before the start of the data"),
            (
                REVERSE,
                undo::<{ KnownFilter::Szip.id() }>,
                &[0; 8],
                "parameters of filter szip are wrong: 4 are expected",
            ),
            (
                REVERSE,
                undo::<{ KnownFilter::Lz4.id() }>,
                &[255; 12],
                "lz4 data decodes to more than the 67108864 bytes",
            ),
            (0, LZF, &[0, 1], "this filter can only be decoded"),
        ] {
            assert_eq!(call(undo, flags, &[], stored, 8).0, 0);
            let error = Call::of_file(path).error("H5Dread").to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn what_libhdf5_has_stays_its_own() {
        let _library = crate::ffi::Library::lock();
        let deflate = undo::<{ KnownFilter::Deflate.id() }>;
        // SAFETY: lock held.
        let provide_one = |filter: KnownFilter| unsafe { raddle_provide_filter(filter.id().into(), deflate) };
        for filter in KnownFilter::ALL {
            let is_lacking = DECODERS.iter().any(|(lacking, _)| *lacking == filter);
            if !is_lacking {
                assert_eq!(provide_one(filter), 0, "{filter}");
            }
        }
        let call = Call::of_file(std::path::Path::new("x.h5"));
        for _ in 0..2 {
            provide(call).unwrap();
        }
        for filter in KnownFilter::ALL {
            assert_eq!(provide_one(filter), 0, "{filter}");
        }
    }
}
