//! What callers give as pointers, as values. Every function refuses a null pointer; that others point to what the header
//! says is up to the caller, as everywhere in C.

use crate::fault::Fault;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// # Safety
/// As [`text`].
unsafe fn bytes<'a>(argument: &'static str, text: *const c_char) -> Result<&'a [u8], Fault> {
    if text.is_null() {
        return Err(Fault::Null { argument });
    }
    // SAFETY: not null, and the caller promises a text that ends with a zero and stays during the call.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// A text.
///
/// # Safety
/// It is null or ends with a zero, and stays as it is during the call.
pub unsafe fn text<'a>(argument: &'static str, text: *const c_char) -> Result<&'a str, Fault> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes(argument, text) }?;
    std::str::from_utf8(bytes).map_err(|_| Fault::NotText { argument })
}

/// A path, of any bytes.
///
/// # Safety
/// As [`text`].
pub unsafe fn path<'a>(argument: &'static str, text: *const c_char) -> Result<&'a Path, Fault> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes(argument, text) }?;
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Several values.
///
/// # Safety
/// It is null or points to so many, which stay as they are during the call.
pub unsafe fn values<'a, T>(argument: &'static str, first: *const T, count: usize) -> Result<&'a [T], Fault> {
    if first.is_null() {
        return Err(Fault::Null { argument });
    }
    // SAFETY: not null, and the caller promises so many values.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// What a handle or structure is.
///
/// # Safety
/// It is null, or came from this library and was not closed, and no other thread uses it.
pub unsafe fn it<'a, T>(argument: &'static str, pointer: *mut T) -> Result<&'a mut T, Fault> {
    // SAFETY: null or a handle that is open and used by this call alone, as the caller promises.
    unsafe { pointer.as_mut() }.ok_or(Fault::Null { argument })
}

/// The same, for reading.
///
/// # Safety
/// As [`it`], but other threads may read it as well.
pub unsafe fn seen<'a, T>(argument: &'static str, pointer: *const T) -> Result<&'a T, Fault> {
    // SAFETY: null or what the caller promises.
    unsafe { pointer.as_ref() }.ok_or(Fault::Null { argument })
}

/// Puts a value where the caller wants it.
///
/// # Safety
/// It is null or points to memory for one that may be written.
pub unsafe fn put<T>(argument: &'static str, place: *mut T, value: T) -> Result<(), Fault> {
    if place.is_null() {
        return Err(Fault::Null { argument });
    }
    // SAFETY: not null, and the caller promises memory for one. What it held is not dropped: it may be nothing.
    unsafe { place.write(value) };
    Ok(())
}

/// Gives a handle to the caller, who must have a place for it.
///
/// # Safety
/// As [`put`].
pub unsafe fn put_handle<T>(
    argument: &'static str,
    place: *mut *mut T,
    make: impl FnOnce() -> Result<T, Fault>,
) -> Result<(), Fault> {
    // SAFETY: as the caller promises. A handle that could not be made is null.
    unsafe { put(argument, place, std::ptr::null_mut()) }?;
    let handle = Box::into_raw(Box::new(make()?));
    // SAFETY: as before.
    unsafe { put(argument, place, handle) }
}

/// Takes a handle back; `None` for null.
///
/// # Safety
/// It is null, or came from [`put_handle`] and is not used again.
pub unsafe fn take_handle<T>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: from `Box::into_raw`, and not taken before, as the caller promises.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}
