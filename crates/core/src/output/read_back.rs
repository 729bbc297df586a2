//! Reading back of written data, which checks whether a file still contains the bytes that were placed in it.
//!
//! The caller decides how to react and evicts cached pages of the file if necessary. Invariant: the result depends only
//! on the bytes of the file.

use crate::digest::Digest;
use std::fs::File;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::FileExt;

/// Length of the pieces in which a file is read back.
const READ_LEN_BYTES: u64 = 1 << 20;

/// A range of placed bytes with their checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenExtent {
    /// Address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub len_bytes: u64,
    /// CRC-64/NVME of the bytes.
    pub checksum: u64,
}

impl WrittenExtent {
    /// Describes `bytes` placed at `address`.
    pub fn of(address: u64, bytes: &[u8]) -> Self {
        Self { address, len_bytes: bytes.len() as u64, checksum: Digest::of(bytes).crc64_nvme() }
    }

    /// Returns whether `file` contains the bytes; a file that is too short does not.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn is_in(&self, file: &File) -> Result<bool> {
        let mut digest = Digest::default();
        let mut piece = vec![0; READ_LEN_BYTES.min(self.len_bytes) as usize];
        let (mut at, mut left) = (self.address, self.len_bytes);
        while left > 0 {
            let len_bytes = left.min(READ_LEN_BYTES);
            let piece = &mut piece[..len_bytes as usize];
            match file.read_exact_at(piece, at) {
                Ok(()) => digest = digest.then(Digest::of(piece)),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) => return Err(error),
            }
            (at, left) = (at + len_bytes, left - len_bytes);
        }
        Ok(digest.crc64_nvme() == self.checksum)
    }
}

/// Evicts the synced pages of `file` from the page cache, so that reads come from the device. Does nothing on systems
/// other than Linux.
///
/// # Errors
/// If the file system refuses.
pub fn evict(file: &File) -> Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?;
    #[cfg(not(target_os = "linux"))]
    let _ = file;
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_what_was_written_until_a_byte_of_it_changes() {
        let file = tempfile::tempfile().unwrap();
        // Three pieces, the last of them short.
        let bytes: Vec<u8> = (0..2 * READ_LEN_BYTES + 77).map(|at| (at % 251) as u8).collect();
        let written = WrittenExtent::of(10, &bytes);
        assert!(!written.is_in(&file).unwrap(), "nothing is there");
        file.write_all_at(&bytes, 10).unwrap();
        assert!(written.is_in(&file).unwrap() && WrittenExtent::of(10, &[]).is_in(&file).unwrap());
        assert!(!WrittenExtent::of(11, &bytes[..100]).is_in(&file).unwrap(), "it is elsewhere");
        for at in [0, READ_LEN_BYTES, bytes.len() as u64 - 1] {
            let right = bytes[at as usize];
            file.write_all_at(&[right ^ 1], 10 + at).unwrap();
            assert!(!written.is_in(&file).unwrap(), "byte {at} is another");
            file.write_all_at(&[right], 10 + at).unwrap();
        }
        assert!(written.is_in(&file).unwrap());
        file.set_len(9 + bytes.len() as u64).unwrap();
        assert!(!written.is_in(&file).unwrap(), "the last byte is cut off");
    }
}
