//! Closing what a child inherits from its parent beyond the standard streams.
//!
//! libhdf5 opens files without `O_CLOEXEC`: a child started while the parent writes an output has that file open,
//! with the lock on it. Invariant: none of the parent's files stays in a child's reach.

use std::ffi::c_int;
use std::io;

/// Standard input, output and error.
const STANDARD_STREAMS: c_int = 3;

/// Closes every descriptor but the standard streams. For the beginning of a process, before it opens anything.
pub(super) fn close() -> io::Result<()> {
    let mut descriptors: Vec<c_int> = Vec::new();
    for entry in std::fs::read_dir("/dev/fd")? {
        descriptors.extend(entry?.file_name().to_str().and_then(|name| name.parse::<c_int>().ok()));
    }
    for descriptor in descriptors.into_iter().filter(|&descriptor| descriptor >= STANDARD_STREAMS) {
        // SAFETY: at the beginning of the process nothing owns a descriptor; the one that the listing itself used is
        // closed already, which the call answers with an error that does not matter.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}
