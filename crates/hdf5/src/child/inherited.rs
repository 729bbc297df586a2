//! Closing of descriptors that a child inherits from its parent, except the standard streams.
//!
//! libhdf5 opens files without `O_CLOEXEC`: a child started while the parent writes an output would keep that file open
//! and locked. Invariant: the child has no access to open files of the parent.

use std::ffi::c_int;
use std::io;

/// Number of standard streams: input, output and error.
const STANDARD_STREAMS: c_int = 3;

/// Closes every descriptor except the standard streams. Call at the start of a process, before it opens anything.
pub(super) fn close() -> io::Result<()> {
    let mut descriptors: Vec<c_int> = Vec::new();
    for entry in std::fs::read_dir("/dev/fd")? {
        descriptors.extend(entry?.file_name().to_str().and_then(|name| name.parse::<c_int>().ok()));
    }
    for descriptor in descriptors.into_iter().filter(|&descriptor| descriptor >= STANDARD_STREAMS) {
        // SAFETY: at the start of the process nothing owns a descriptor. The descriptor used for the listing itself is
        // already closed, for which the call returns an error that can be ignored.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}
