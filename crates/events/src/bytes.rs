//! Bounded reading of one structure whose bytes are at hand.
//!
//! Not for getting bytes out of a file ([`crate::input`]). Invariant: nothing is read beyond the slice, and every fault
//! names where it was found.

use crate::error::Fault;

/// A reading position in the bytes of one structure.
#[derive(Debug, Clone)]
pub(crate) struct Bytes<'b> {
    bytes: &'b [u8],
    position: usize,
    /// Address of the first byte, in the file or in what was decompressed.
    address: u64,
    structure: &'static str,
}

/// A number of a fixed length, big-endian as ROOT writes it or little-endian as all others do.
macro_rules! numbers {
    ($($name:ident $number:ty, $from:ident;)*) => {
        $(
            pub(crate) fn $name(&mut self) -> Result<$number, Fault> {
                self.array().map(<$number>::$from)
            }
        )*
    };
}

/// Room for `len_bytes` in `out` from `from` on: what is there is to be overwritten, and only what is new is cleared.
pub(crate) fn room(out: &mut Vec<u8>, from: usize, len_bytes: usize) -> &mut [u8] {
    let end = from + len_bytes;
    if out.len() < end {
        out.resize(end, 0);
    }
    &mut out[from..end]
}

impl<'b> Bytes<'b> {
    /// A position at the start of `bytes`; `structure` names them in faults.
    pub(crate) fn new(bytes: &'b [u8], address: u64, structure: &'static str) -> Self {
        Self { bytes, position: 0, address, structure }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Bytes left.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Address of the next byte.
    pub(crate) fn address(&self) -> u64 {
        self.address.saturating_add(self.position as u64)
    }

    /// A fault at the next byte.
    #[cold]
    pub(crate) fn damaged(&self, what: impl Into<String>) -> Fault {
        Fault::Damaged { address: self.address(), structure: self.structure, what: what.into() }
    }

    /// Something unknown at the next byte.
    #[cold]
    pub(crate) fn unsupported(&self, what: impl Into<String>) -> Fault {
        Fault::Unsupported { address: self.address(), structure: self.structure, what: what.into() }
    }

    /// The next `len_bytes` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len_bytes: usize) -> Result<&'b [u8], Fault> {
        match self.bytes[self.position..].get(..len_bytes) {
            Some(taken) => {
                self.position += len_bytes;
                Ok(taken)
            }
            None => Err(self.ends_early(len_bytes)),
        }
    }

    /// The next `len_bytes` bytes, to be read by themselves.
    pub(crate) fn part(&mut self, len_bytes: usize) -> Result<Self, Fault> {
        let (address, structure) = (self.address(), self.structure);
        Ok(Self { bytes: self.take(len_bytes)?, position: 0, address, structure })
    }

    #[cold]
    fn ends_early(&self, len_bytes: usize) -> Fault {
        self.damaged(format!("{len_bytes} bytes are needed, {} are left", self.remaining()))
    }

    /// The next `LEN` bytes.
    #[inline]
    pub(crate) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Fault> {
        let mut array = [0; LEN];
        array.copy_from_slice(self.take(LEN)?);
        Ok(array)
    }

    numbers! {
        be_u8 u8, from_be_bytes;
        be_u16 u16, from_be_bytes;
        be_u32 u32, from_be_bytes;
        be_u64 u64, from_be_bytes;
        be_i32 i32, from_be_bytes;
        le_u8 u8, from_le_bytes;
        le_u16 u16, from_le_bytes;
        le_u32 u32, from_le_bytes;
        le_u64 u64, from_le_bytes;
        le_i32 i32, from_le_bytes;
        le_i64 i64, from_le_bytes;
    }
}
