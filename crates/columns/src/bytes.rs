//! Bounded reading of one structure from bytes in memory.
//!
//! Reading bytes from a file is the task of [`crate::input`]. Invariants: nothing is read beyond the slice,
//! and every fault names where it was found.

use crate::error::UnlocatedError;

/// Reading position in the bytes of one structure.
#[derive(Debug, Clone)]
pub struct Bytes<'b> {
    bytes: &'b [u8],
    position: usize,
    /// Address of the first byte, in the file or in the decompressed bytes.
    address: u64,
    structure: &'static str,
}

/// Defines readers of numbers of fixed length: big-endian as ROOT writes them, or little-endian as all other formats
/// do.
macro_rules! numbers {
    ($($name:ident $number:ty, $from:ident;)*) => {
        $(
            #[doc = concat!("Reads the next number: `", stringify!($number), "::", stringify!($from), "` of its bytes.")]
            ///
            /// # Errors
            /// If too few bytes are left.
            pub fn $name(&mut self) -> Result<$number, UnlocatedError> {
                self.array().map(<$number>::$from)
            }
        )*
    };
}

/// Returns `len_bytes` bytes of `out`, starting at `from`, to be overwritten. Only newly added bytes are cleared.
pub fn room(out: &mut Vec<u8>, from: usize, len_bytes: usize) -> &mut [u8] {
    let end = from + len_bytes;
    if out.len() < end {
        out.resize(end, 0);
    }
    &mut out[from..end]
}

impl<'b> Bytes<'b> {
    /// Creates a position at the start of `bytes`; `structure` names them in faults.
    pub fn new(bytes: &'b [u8], address: u64, structure: &'static str) -> Self {
        Self { bytes, position: 0, address, structure }
    }

    /// Returns the number of bytes read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the number of bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Returns the address of the next byte.
    pub fn address(&self) -> u64 {
        self.address.saturating_add(self.position as u64)
    }

    /// Creates a fault that reports damage at the next byte.
    #[cold]
    pub fn damaged(&self, what: impl Into<String>) -> UnlocatedError {
        UnlocatedError::Damaged { address: self.address(), structure: self.structure, what: what.into() }
    }

    /// Creates a fault that reports an unsupported feature at the next byte.
    #[cold]
    pub fn unsupported(&self, what: impl Into<String>) -> UnlocatedError {
        UnlocatedError::Unsupported { address: self.address(), structure: self.structure, what: what.into() }
    }

    /// Creates a fault that reports that no object serialised by ROOT begins at the next byte.
    #[cold]
    pub fn no_object(&self) -> UnlocatedError {
        UnlocatedError::NoObject { address: self.address(), structure: self.structure }
    }

    /// Reads the next `len_bytes` bytes.
    #[inline]
    pub fn take(&mut self, len_bytes: usize) -> Result<&'b [u8], UnlocatedError> {
        match self.bytes[self.position..].get(..len_bytes) {
            Some(taken) => {
                self.position += len_bytes;
                Ok(taken)
            }
            None => Err(self.ends_early(len_bytes)),
        }
    }

    /// Reads the next `len_bytes` bytes as a separate structure.
    pub fn part(&mut self, len_bytes: usize) -> Result<Self, UnlocatedError> {
        let (address, structure) = (self.address(), self.structure);
        Ok(Self { bytes: self.take(len_bytes)?, position: 0, address, structure })
    }

    #[cold]
    fn ends_early(&self, len_bytes: usize) -> UnlocatedError {
        self.damaged(format!("{len_bytes} bytes are needed, {} are left", self.remaining()))
    }

    /// Reads the next `LEN` bytes.
    #[inline]
    pub fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], UnlocatedError> {
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
