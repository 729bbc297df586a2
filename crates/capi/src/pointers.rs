//! Conversion of pointers from callers to values. Every function rejects a null pointer; it is up to the caller that
//! other pointers are valid as documented in the header, as everywhere in C.

use crate::fault::CallError;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the bytes of a text.
///
/// # Safety
/// As for [`text`].
unsafe fn bytes<'a>(argument: &'static str, text: *const c_char) -> Result<&'a [u8], CallError> {
    if text.is_null() {
        return Err(CallError::Null { argument });
    }
    // SAFETY: not null, and the caller promises a NUL-terminated text that stays valid during the call.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Converts a text.
///
/// # Safety
/// The pointer is null, or the text is NUL-terminated and stays unchanged during the call.
pub unsafe fn text<'a>(argument: &'static str, text: *const c_char) -> Result<&'a str, CallError> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes(argument, text) }?;
    std::str::from_utf8(bytes).map_err(|_| CallError::NotText { argument })
}

/// Converts a path, which may contain any bytes, and makes it absolute: a handle refers to the same files after the
/// program has changed its current folder.
///
/// # Safety
/// As for [`text`].
pub unsafe fn path(argument: &'static str, text: *const c_char) -> Result<PathBuf, CallError> {
    // SAFETY: as the caller promises.
    let given = Path::new(OsStr::from_bytes(unsafe { bytes(argument, text) }?));
    // This fails only for an empty path and without a current folder; opening it reports the error.
    Ok(std::path::absolute(given).unwrap_or_else(|_| given.to_path_buf()))
}

/// Converts an array of values.
///
/// # Safety
/// The pointer is null or points to `count` values, which stay unchanged during the call.
pub unsafe fn values<'a, T>(argument: &'static str, first: *const T, count: usize) -> Result<&'a [T], CallError> {
    if first.is_null() {
        return Err(CallError::Null { argument });
    }
    // SAFETY: not null, and the caller promises `count` values.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// Dereferences a handle or structure for writing.
///
/// # Safety
/// The pointer is null, or came from this library and was not closed, and no other thread uses it.
pub unsafe fn it<'a, T>(argument: &'static str, pointer: *mut T) -> Result<&'a mut T, CallError> {
    // SAFETY: null or a handle that is open and used by this call alone, as the caller promises.
    unsafe { pointer.as_mut() }.ok_or(CallError::Null { argument })
}

/// Dereferences a handle or structure for reading.
///
/// # Safety
/// As for [`it`], except that other threads may also read it.
pub unsafe fn seen<'a, T>(argument: &'static str, pointer: *const T) -> Result<&'a T, CallError> {
    // SAFETY: null or valid, as the caller promises.
    unsafe { pointer.as_ref() }.ok_or(CallError::Null { argument })
}

/// Stores a value at a place provided by the caller.
///
/// # Safety
/// The pointer is null or points to writable memory for one value.
pub unsafe fn put<T>(argument: &'static str, place: *mut T, value: T) -> Result<(), CallError> {
    if place.is_null() {
        return Err(CallError::Null { argument });
    }
    // SAFETY: not null, and the caller promises memory for one value. Its previous content is not dropped, because it
    // may be uninitialised.
    unsafe { place.write(value) };
    Ok(())
}

/// Passes a new handle to the caller, who must provide a place for it.
///
/// # Safety
/// As for [`put`].
pub unsafe fn put_handle<T>(
    argument: &'static str,
    place: *mut *mut T,
    make: impl FnOnce() -> Result<T, CallError>,
) -> Result<(), CallError> {
    // SAFETY: as the caller promises. The handle is null if it could not be created.
    unsafe { put(argument, place, std::ptr::null_mut()) }?;
    let handle = Box::into_raw(Box::new(make()?));
    // SAFETY: as before.
    unsafe { put(argument, place, handle) }
}

/// Takes a handle back; `None` for null.
///
/// # Safety
/// The pointer is null, or came from [`put_handle`] and is not used again.
pub unsafe fn take_handle<T>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: from `Box::into_raw`, and not taken before, as the caller promises.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}
