//! Reading back what was written: whether a file still holds the bytes that were placed in it.
//!
//! Not for what follows where it does not, nor for making the machine forget what it has cached of the file. Invariant:
//! nothing but the file's own bytes decides.

use crate::digest::Digest;
use std::fs::File;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::FileExt;

/// A file is read back in pieces of this length.
const READ_LEN_BYTES: u64 = 1 << 20;

/// Bytes that were placed, and what they are known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Address of the first.
    pub address: u64,
    /// How many.
    pub len_bytes: u64,
    /// Their CRC-64/NVME.
    pub checksum: u64,
}

impl Written {
    /// What was placed where `bytes` were at `address`.
    pub fn of(address: u64, bytes: &[u8]) -> Self {
        Self { address, len_bytes: bytes.len() as u64, checksum: Digest::of(bytes).crc64_nvme() }
    }

    /// Whether `file` holds it; a file that ends before does not.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_what_was_written_until_a_byte_of_it_changes() {
        let file = tempfile::tempfile().unwrap();
        // Three pieces, the last of them short.
        let bytes: Vec<u8> = (0..2 * READ_LEN_BYTES + 77).map(|at| (at % 251) as u8).collect();
        let written = Written::of(10, &bytes);
        assert!(!written.is_in(&file).unwrap(), "nothing is there");
        file.write_all_at(&bytes, 10).unwrap();
        assert!(written.is_in(&file).unwrap() && Written::of(10, &[]).is_in(&file).unwrap());
        assert!(!Written::of(11, &bytes[..100]).is_in(&file).unwrap(), "it is elsewhere");
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
