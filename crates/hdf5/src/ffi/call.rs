//! Conversion of libhdf5's return values and error stack to [`Hdf5Error::Library`].

use super::Handle;
use crate::error::{Hdf5Error, Result};
use hdf5_metno_sys::h5::herr_t;
use hdf5_metno_sys::h5e::{H5E_DEFAULT, H5E_direction_t, H5E_error2_t, H5Eclear2, H5Ewalk2};
use hdf5_metno_sys::h5i::hid_t;
use std::ffi::{CStr, CString, c_uint, c_void};
use std::path::Path;

/// File and object of a call, which its error will name.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// Path of the object in the file (bytes as in HDF5); empty for calls on the file itself.
    pub object: &'a [u8],
}

impl<'a> Call<'a> {
    /// Creates the context of calls on a file.
    pub fn of_file(path: &'a Path) -> Self {
        Self { path, object: b"" }
    }

    /// Creates the context of calls on an object of a file.
    pub fn of_object(path: &'a Path, object: &'a [u8]) -> Self {
        Self { path, object }
    }

    /// Checks a status, in which negative values mean failure. It is also suitable for `htri_t`.
    pub fn status(self, function: &str, status: herr_t) -> Result<herr_t> {
        if status < 0 { Err(self.error(function)) } else { Ok(status) }
    }

    /// Checks a count or length, in which negative values mean failure.
    pub fn count(self, function: &str, count: isize) -> Result<usize> {
        usize::try_from(count).map_err(|_| self.error(function))
    }

    /// Takes ownership of a new identifier; a negative one means failure.
    ///
    /// # Safety
    /// As for [`Handle::from_raw`]: `id` must come directly from a libhdf5 call that passes its reference to the
    /// caller.
    pub unsafe fn handle(self, function: &str, id: hid_t) -> Result<Handle> {
        // SAFETY: guaranteed by our caller.
        unsafe { Handle::from_raw(id) }.ok_or_else(|| self.error(function))
    }

    /// Copies `bytes` to a zero-terminated string, the form in which libhdf5 takes names. An inner zero is an error.
    pub fn c_string(self, function: &str, bytes: &[u8]) -> Result<CString> {
        CString::new(bytes).map_err(|_| Hdf5Error::Library {
            path: self.path.to_path_buf(),
            operation: self.operation(function),
            detail: "a name contains a zero byte".to_owned(),
        })
    }

    /// Creates the error for a call that has just failed. Must be called under the lock, before the next call.
    pub fn error(self, function: &str) -> Hdf5Error {
        Hdf5Error::Library {
            path: self.path.to_path_buf(),
            operation: self.operation(function),
            detail: take_innermost_message(),
        }
    }

    fn operation(self, function: &str) -> String {
        if self.object.is_empty() {
            function.to_owned()
        } else {
            // Names are bytes from a file: escape control sequences that could affect a terminal.
            format!("{function} of {}", self.object.escape_ascii())
        }
    }
}

/// Returns the message of the innermost function that failed, and clears the stack.
fn take_innermost_message() -> String {
    unsafe extern "C" fn innermost(depth: c_uint, entry: *const H5E_error2_t, out: *mut c_void) -> herr_t {
        // SAFETY: libhdf5 passes a valid entry whose strings live for the call; `out` is the String of our caller.
        let (entry, out) = unsafe { (&*entry, &mut *out.cast::<String>()) };
        if depth == 0 && !entry.desc.is_null() {
            // SAFETY: not null, zero-terminated by libhdf5.
            *out = unsafe { CStr::from_ptr(entry.desc) }.to_string_lossy().into_owned();
        }
        0
    }
    let mut message = String::new();
    // SAFETY: the callback writes only through `message`, which outlives the walk.
    unsafe {
        H5Ewalk2(H5E_DEFAULT, H5E_direction_t::H5E_WALK_UPWARD, Some(innermost), (&raw mut message).cast());
        H5Eclear2(H5E_DEFAULT);
    }
    if message.is_empty() { "no message".to_owned() } else { message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::Library;
    use hdf5_metno_sys::h5f::{H5F_ACC_RDONLY, H5Fopen};
    use hdf5_metno_sys::h5p::{H5P_CLS_FILE_ACCESS, H5P_DEFAULT, H5Pcreate};

    #[test]
    fn a_failing_call_becomes_an_error_with_the_innermost_message() {
        let _library = Library::lock();
        let path = Path::new("/nonexistent/file.h5");
        let call = Call::of_object(path, b"/a\x1bb");
        let name = call.c_string("H5Fopen", path.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: valid name, lock held.
        let error = unsafe { call.handle("H5Fopen", H5Fopen(name.as_ptr(), H5F_ACC_RDONLY, H5P_DEFAULT)) }.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("H5Fopen of /a\\x1bb") && text.contains("No such file"), "{text}");
    }

    #[test]
    fn a_name_with_a_zero_byte_is_refused() {
        let call = Call::of_file(Path::new("x.h5"));
        assert!(call.c_string("H5Gcreate2", b"a\0b").unwrap_err().to_string().contains("zero byte"));
    }

    #[test]
    fn a_handle_gives_its_reference_back() {
        let library = Library::lock();
        let call = Call::of_file(Path::new("x.h5"));
        // SAFETY: lock held; the class identifier is set once the library is initialised.
        let list = unsafe { call.handle("H5Pcreate", H5Pcreate(*H5P_CLS_FILE_ACCESS)) }.unwrap();
        let id = list.id();
        drop(list);
        // SAFETY: lock held; asking about a dead identifier is allowed.
        assert_eq!(unsafe { hdf5_metno_sys::h5i::H5Iis_valid(id) }, 0);
        drop(library);
    }
}
