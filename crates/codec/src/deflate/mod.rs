//! The deflate format (RFC 1951) and its zlib envelope (RFC 1950), as far as needed for writing.
//!
//! This is not a general compressor, for which libdeflate is used. These parts are shared by our own encoders; numbers
//! of the format that readers need as well are in [`raddle_inflate::format`].

pub(crate) mod bits;
pub(crate) mod header;
pub(crate) mod huffman;

/// The two bytes before a deflate stream in a zlib stream: method 8, window 32 KiB, and the level's class (informative
/// only) with the check bits that make the pair a multiple of 31.
pub(crate) const ZLIB_HEADER_FASTEST: [u8; 2] = [0x78, 0x01];
