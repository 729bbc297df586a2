//! Search for the ends of compressed streams that are stored one after the other without their lengths.
//!
//! Nothing is decoded. A Zstandard frame records where its blocks end (RFC 8878). An LZ4 block does not, but its
//! decoded length is known, and its last sequence is the only one without a match. Invariant: a stream that is found
//! lies entirely within the bytes; skipped bytes are not checked.

/// Bytes of a long array, read on demand.
pub(super) trait Bytes {
    type Error;

    /// Returns the total length.
    fn len_bytes(&self) -> u64;

    /// Reads the byte at an offset, which must be below the length.
    fn byte(&mut self, at: u64) -> Result<u8, Self::Error>;
}

/// Zstandard frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// Offset of the end of the frame.
    pub end: u64,
    /// Decoded length, if the frame records it.
    pub content_len_bytes: Option<u64>,
}

const ZSTD_MAGIC: u64 = 0xFD2F_B528;

/// Finds the frame that begins at `start`; returns `None` if it is not a valid frame.
pub(super) fn zstd_frame<B: Bytes>(bytes: &mut B, start: u64) -> Result<Option<Frame>, B::Error> {
    let mut at = start;
    let Some(magic) = number(bytes, &mut at, 4)? else { return Ok(None) };
    if magic != ZSTD_MAGIC {
        return Ok(None);
    }
    let Some(descriptor) = number(bytes, &mut at, 1)? else { return Ok(None) };
    let is_single = descriptor & 0x20 != 0;
    let has_checksum = descriptor & 0x04 != 0;
    let dictionary_len = [0, 1, 2, 4][(descriptor & 3) as usize];
    let size_len = match descriptor >> 6 {
        0 => u64::from(is_single),
        flag => 1 << flag,
    };
    at += u64::from(!is_single) + dictionary_len;
    let Some(size) = number(bytes, &mut at, size_len)? else { return Ok(None) };
    let content_len_bytes = match size_len {
        0 => None,
        2 => Some(size + 256),
        _ => Some(size),
    };
    loop {
        let Some(header) = number(bytes, &mut at, 3)? else { return Ok(None) };
        let stored = match (header >> 1) & 3 {
            0 | 2 => header >> 3,
            // One byte, repeated.
            1 => 1,
            _ => return Ok(None),
        };
        at += stored;
        if at > bytes.len_bytes() {
            return Ok(None);
        }
        if header & 1 == 1 {
            at += if has_checksum { 4 } else { 0 };
            return Ok((at <= bytes.len_bytes()).then_some(Frame { end: at, content_len_bytes }));
        }
    }
}

/// Finds the end of the LZ4 block that begins at `start` and decodes to `content_len_bytes`; returns `None` if it is
/// not a valid block.
pub(super) fn lz4_block<B: Bytes>(bytes: &mut B, start: u64, content_len_bytes: u64) -> Result<Option<u64>, B::Error> {
    let (mut at, mut decoded) = (start, 0_u64);
    loop {
        let Some(token) = number(bytes, &mut at, 1)? else { return Ok(None) };
        let Some(literals) = length(bytes, &mut at, token >> 4)? else { return Ok(None) };
        at = at.saturating_add(literals);
        decoded = decoded.saturating_add(literals);
        if at > bytes.len_bytes() || decoded > content_len_bytes {
            return Ok(None);
        }
        // No match reaches the end, because the last five bytes are always literals.
        if decoded == content_len_bytes {
            return Ok(Some(at));
        }
        let Some(distance) = number(bytes, &mut at, 2)? else { return Ok(None) };
        if distance == 0 || distance > decoded {
            return Ok(None);
        }
        let Some(matched) = length(bytes, &mut at, token & 15)? else { return Ok(None) };
        decoded = decoded.saturating_add(matched).saturating_add(4);
        if decoded >= content_len_bytes {
            return Ok(None);
        }
    }
}

/// Reads an LZ4 length: after a nibble of 15, more bytes follow, up to and including one that is not 255.
fn length<B: Bytes>(bytes: &mut B, at: &mut u64, nibble: u64) -> Result<Option<u64>, B::Error> {
    let mut length = nibble;
    if nibble == 15 {
        loop {
            let Some(more) = number(bytes, at, 1)? else { return Ok(None) };
            length += more;
            if more != 255 {
                break;
            }
        }
    }
    Ok(Some(length))
}

/// Reads a little-endian number of `len` bytes at `at` and advances `at` past it; returns `None` beyond the end.
fn number<B: Bytes>(bytes: &mut B, at: &mut u64, len: u64) -> Result<Option<u64>, B::Error> {
    if at.saturating_add(len) > bytes.len_bytes() {
        return Ok(None);
    }
    let mut number = 0;
    for place in 0..len {
        number |= u64::from(bytes.byte(*at + place)?) << (8 * place);
    }
    *at += len;
    Ok(Some(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use raddle_codec::RawStreamEncoder;
    use std::convert::Infallible;

    struct Memory<'b>(&'b [u8]);

    impl Bytes for Memory<'_> {
        type Error = Infallible;

        fn len_bytes(&self) -> u64 {
            self.0.len() as u64
        }

        fn byte(&mut self, at: u64) -> Result<u8, Infallible> {
            Ok(self.0[at as usize])
        }
    }

    /// Generates compressible and incompressible data.
    fn data() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(0u8..3, 0..2000),
            proptest::collection::vec(any::<u8>(), 0..2000),
            (any::<u8>(), 0usize..300_000).prop_map(|(byte, len)| vec![byte; len]),
        ]
    }

    proptest! {
        #[test]
        fn streams_end_where_the_next_begins(parts in proptest::collection::vec(data(), 1..6), level in 1..19i32) {
            let (mut zstd, mut lz4) = (Vec::new(), Vec::new());
            let (mut frames, mut blocks) = (Vec::new(), Vec::new());
            for part in &parts {
                RawStreamEncoder::zstd(level).unwrap().encode(part, &mut zstd).unwrap();
                frames.push(zstd.len() as u64);
                RawStreamEncoder::lz4_block().encode(part, &mut lz4).unwrap();
                blocks.push(lz4.len() as u64);
            }
            let (mut in_zstd, mut in_lz4) = (0, 0);
            for (number, part) in parts.iter().enumerate() {
                let frame = zstd_frame(&mut Memory(&zstd), in_zstd).unwrap().unwrap();
                prop_assert_eq!(frame, Frame { end: frames[number], content_len_bytes: Some(part.len() as u64) });
                in_zstd = frame.end;
                in_lz4 = lz4_block(&mut Memory(&lz4), in_lz4, part.len() as u64).unwrap().unwrap();
                prop_assert_eq!(in_lz4, blocks[number]);
            }
            // A truncated last frame is not found.
            let start = if frames.len() > 1 { frames[frames.len() - 2] } else { 0 };
            prop_assert_eq!(zstd_frame(&mut Memory(&zstd[..zstd.len() - 1]), start).unwrap(), None);
        }

        #[test]
        fn no_bytes_lead_beyond_their_end(bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 0u64..500) {
            if let Some(end) = lz4_block(&mut Memory(&bytes), 0, len).unwrap() {
                prop_assert!(end <= bytes.len() as u64);
            }
            let mut frame = ZSTD_MAGIC.to_le_bytes()[..4].to_vec();
            frame.extend(&bytes);
            if let Some(found) = zstd_frame(&mut Memory(&frame), 0).unwrap() {
                prop_assert!(found.end <= frame.len() as u64);
            }
        }
    }
}
