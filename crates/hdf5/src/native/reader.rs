//! Access to the bytes of one file's metadata, with a work budget.
//!
//! Invariant: every loop over file content spends from the budget, so no chain of pointers occupies a reader for longer
//! than the file's length justifies.

use super::ReadLimits;
use super::cursor::Encoding;
use crate::error::{Hdf5Error, Result};
use crate::source::MetadataView;
use std::path::Path;

/// Cost of one access regardless of its length: finding the block costs about as much as parsing 32 bytes.
const ACCESS_COST_BYTES: u64 = 32;

/// Metadata bytes of one file.
pub(crate) struct ByteReader<'v, 'f> {
    view: &'v mut MetadataView<'f>,
    encoding: &'v Encoding,
    work_left: u64,
    work_limit: u64,
}

impl<'v, 'f> ByteReader<'v, 'f> {
    /// Creates a reader with a fresh budget.
    pub fn new(view: &'v mut MetadataView<'f>, encoding: &'v Encoding, limits: &ReadLimits) -> Self {
        let work_limit = view.file().len_bytes().saturating_mul(4).saturating_add(limits.work_len_bytes);
        Self { view, encoding, work_left: work_limit, work_limit }
    }

    /// Returns the encoding of addresses and lengths in the file.
    pub fn encoding(&self) -> &'v Encoding {
        self.encoding
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &'f Path {
        self.view.file().path()
    }

    /// Returns the length of the file.
    pub fn file_len_bytes(&self) -> u64 {
        self.view.file().len_bytes()
    }

    /// Returns `len_bytes` bytes at absolute offset `address`; `what` names them in errors.
    pub fn bytes(&mut self, address: u64, len_bytes: u64, what: &'static str) -> Result<&[u8]> {
        self.view.file().check_range(address, len_bytes, what)?;
        self.spend(len_bytes + ACCESS_COST_BYTES)?;
        // In the file, and therefore within the limits of an index type.
        self.view.bytes(address, len_bytes as usize, what)
    }

    /// Like [`ByteReader::bytes`], for a structure whose length is not known yet. Pass the range of the bytes that
    /// belong to it to [`ByteReader::note`].
    pub fn peek(&mut self, address: u64, len_bytes: u64, what: &'static str) -> Result<&[u8]> {
        self.view.file().check_range(address, len_bytes, what)?;
        self.spend(len_bytes.min(ACCESS_COST_BYTES) + ACCESS_COST_BYTES)?;
        self.view.peek(address, len_bytes as usize, what)
    }

    /// Counts bytes that were seen through [`ByteReader::peek`].
    pub fn note(&mut self, address: u64, len_bytes: u64) -> Result<()> {
        self.view.note(address, len_bytes);
        self.spend(len_bytes)
    }

    /// Like [`ByteReader::peek`], for bytes in the file that may belong to no structure. They cost nothing unless they
    /// are passed to [`ByteReader::note_glanced`].
    pub fn glance(&mut self, address: u64, len_bytes: u64, what: &'static str) -> Result<&[u8]> {
        self.view.peek(address, len_bytes as usize, what)
    }

    /// Counts bytes that were seen through [`ByteReader::glance`].
    pub fn note_glanced(&mut self, address: u64, len_bytes: u64) -> Result<()> {
        self.note(address, len_bytes)?;
        self.spend(2 * ACCESS_COST_BYTES)
    }

    /// Like [`ByteReader::bytes`], but replaces the content of a buffer. It is meant for structures that point to
    /// others.
    pub fn bytes_into(&mut self, address: u64, len_bytes: u64, what: &'static str, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.extend_from_slice(self.bytes(address, len_bytes, what)?);
        Ok(())
    }

    fn spend(&mut self, cost_bytes: u64) -> Result<()> {
        match self.work_left.checked_sub(cost_bytes) {
            Some(left) => {
                self.work_left = left;
                Ok(())
            }
            None => Err(Hdf5Error::Limit {
                path: self.path().to_path_buf(),
                what: "metadata to read (structures repeatedly point to the same bytes)".to_owned(),
                limit: self.work_limit,
            }),
        }
    }
}
