//! Object headers, versions 1 and 2, as lists of messages.
//!
//! The messages are interpreted by [`super::object`]. Invariants: version 2 blocks have correct checksums; no block is
//! read twice; every message lies in its block.

use super::checksum::verified;
use super::cursor::{Cursor, Defect, Encoding, InFile};
use super::kind;
use super::reader::ByteReader;
use crate::error::Result;
use crate::model::CreationOrder;
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

/// Maximum length of a version 2 prefix: signature, version, flags, four times, two attribute limits, an 8-byte size.
/// Version 1 has 16 bytes.
const PREFIX_LEN_BYTES: usize = 4 + 1 + 1 + 16 + 4 + 8;
const PREFIX_V1_LEN_BYTES: u64 = 16;

/// Number of bytes read with the prefix: they include the first block of most headers, so that one access is enough.
const FIRST_READ_LEN_BYTES: u64 = 512;

/// Signature of a version 2 header's first block and of its continuations.
const SIGNATURE: &[u8; 4] = b"OHDR";
const CONTINUATION_SIGNATURE: &[u8; 4] = b"OCHK";

/// Header flags of version 2; the lowest two bits give the size of the block length.
const FLAG_ATTRIBUTE_ORDER_TRACKED: u8 = 0x04;
const FLAG_ATTRIBUTE_ORDER_INDEXED: u8 = 0x08;
const FLAG_ATTRIBUTE_LIMITS: u8 = 0x10;
const FLAG_TIMES: u8 = 0x20;

/// Message flags.
const MESSAGE_SHARED: u8 = 0x02;
const MESSAGE_FAIL_IF_UNKNOWN: u8 = 0x80;

/// Kind of a message and location of its body.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// One of the constants in [`kind`].
    pub kind: u16,
    /// Whether the body is a pointer to a shared message.
    pub shared: bool,
    /// Creation order of an attribute, if the object tracks it.
    pub creation_index: Option<u16>,
    start: usize,
    len: usize,
    /// Absolute file offset of the body.
    pub address: u64,
}

impl Message {
    /// Returns the range of the body among the messages of its header.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.len
    }
}

/// Messages of one object; the buffer is reused for the next object.
#[derive(Debug, Default)]
pub(crate) struct ObjectHeader {
    /// All messages except continuations and empty ones, in the order of the blocks.
    pub messages: Vec<Message>,
    /// Whether the creation order of attributes is kept.
    pub attribute_order: CreationOrder,
    version: u8,
    bytes: Vec<u8>,
    seen_blocks: HashSet<u64>,
    pending_blocks: Vec<(u64, u64)>,
}

/// Framing of messages.
#[derive(Debug, Clone, Copy)]
struct Framing {
    version: u8,
    has_creation_index: bool,
}

impl Framing {
    fn prefix_len(self) -> usize {
        match (self.version, self.has_creation_index) {
            (1, _) => 8,
            (_, false) => 4,
            (_, true) => 6,
        }
    }
}

impl ObjectHeader {
    /// Reads the header at `address`, replacing the previous contents.
    pub fn read(&mut self, reader: &mut ByteReader<'_, '_>, address: u64) -> Result<()> {
        self.messages.clear();
        self.bytes.clear();
        self.seen_blocks.clear();
        self.pending_blocks.clear();
        let (path, encoding) = (reader.path(), reader.encoding());
        let left = reader.file_len_bytes().saturating_sub(address);
        let read_len = left.clamp(PREFIX_V1_LEN_BYTES, FIRST_READ_LEN_BYTES);
        let read = reader.peek(address, read_len, "object header")?;
        let stored_prefix = &read[..read.len().min(PREFIX_LEN_BYTES)];
        let prefix = parse_prefix(Cursor::new(stored_prefix, address, "object header")).in_file(path)?;
        self.attribute_order = prefix.attribute_order;
        let framing = prefix.framing;
        self.version = framing.version;
        let (start, len) = match framing.version {
            1 => (prefix.len, prefix.block_len),
            _ => (0, prefix.block_len.saturating_add(prefix.len + 4)),
        };
        let first = usize::try_from(start.saturating_add(len)).ok().and_then(|end| read.get(start as usize..end));
        let block_address = address.saturating_add(start);
        match first {
            Some(block) => {
                self.add_block(block, block_address, prefix.len as usize, framing, encoding, path)?;
                reader.note(address, start + len)?;
            }
            None => {
                reader.note(address, prefix.len)?;
                let block = reader.bytes(block_address, len, "object header block")?;
                self.add_block(block, block_address, prefix.len as usize, framing, encoding, path)?;
            }
        }
        let mut next = 0;
        while let Some(&(address, len)) = self.pending_blocks.get(next) {
            next += 1;
            if !self.seen_blocks.insert(address) {
                let what = "object header: two continuations lead to this block".to_owned();
                return Err(Defect::Malformed { address, what }.in_file(path));
            }
            let block = reader.bytes(address, len, "object header block")?;
            self.add_block(block, address, CONTINUATION_SIGNATURE.len(), framing, encoding, path)?;
        }
        Ok(())
    }

    /// Adds one block; in version 2 its messages start at `start` and end before the checksum.
    fn add_block(
        &mut self,
        block: &[u8],
        address: u64,
        start: usize,
        framing: Framing,
        encoding: &Encoding,
        path: &Path,
    ) -> Result<()> {
        let messages = match framing.version {
            1 => block,
            _ => {
                let body = verified(block, address, "object header block").in_file(path)?;
                let (signature, _) = body.split_at(body.len().min(4));
                if signature != SIGNATURE && signature != CONTINUATION_SIGNATURE {
                    let what = "object header block: signature OCHK expected".to_owned();
                    return Err(Defect::Malformed { address, what }.in_file(path));
                }
                body.get(start..).unwrap_or_default()
            }
        };
        let messages_address = address.saturating_add(if framing.version == 1 { 0 } else { start as u64 });
        let buffer_start = self.bytes.len();
        self.bytes.extend_from_slice(messages);
        let mut cursor = Cursor::new(&self.bytes[buffer_start..], messages_address, "object header message");
        while cursor.remaining() >= framing.prefix_len() {
            let message = parse_message(&mut cursor, framing, buffer_start).in_file(path)?;
            match message.kind {
                0 => {}
                kind::CONTINUATION => {
                    let body = self.bytes[message.start..message.start + message.len].as_ref();
                    let mut body = Cursor::new(body, message.address, "object header continuation");
                    let block = (|| Ok((body.required_address(encoding, "the block")?, body.length(encoding)?)))();
                    self.pending_blocks.push(block.in_file(path)?);
                }
                _ => self.messages.push(message),
            }
        }
        // Version 2 may leave a gap that is too small for a message; version 1 pads everything to 8 bytes.
        if framing.version == 1 && cursor.remaining() > 0 {
            return Err(cursor.malformed("cut off by the end of the block").in_file(path));
        }
        Ok(())
    }

    /// Returns all messages as stored; `None` unless this is a version 1 header with a single block.
    pub fn only_block_of_version_1(&self) -> Option<&[u8]> {
        (self.version == 1 && self.pending_blocks.is_empty()).then_some(&self.bytes)
    }

    /// Returns the bytes of a message of this header.
    pub fn body(&self, message: &Message) -> &[u8] {
        &self.bytes[message.range()]
    }

    /// Returns a cursor over the body of a message of this header.
    pub fn cursor(&self, message: &Message, what: &'static str) -> Cursor<'_> {
        Cursor::new(self.body(message), message.address, what)
    }

    /// Returns the first message of a kind.
    pub fn find(&self, kind: u16) -> Option<&Message> {
        self.messages.iter().find(|message| message.kind == kind)
    }
}

struct Prefix {
    framing: Framing,
    attribute_order: CreationOrder,
    /// Length of the prefix, and of the messages in the first block.
    len: u64,
    block_len: u64,
}

fn parse_prefix(mut cursor: Cursor<'_>) -> Result<Prefix, Defect> {
    let mut probe = cursor.clone();
    if probe.take(4)? != SIGNATURE {
        let version = cursor.u8()?;
        if version != 1 {
            return Err(cursor.malformed("neither signature OHDR nor version 1"));
        }
        // A reserved byte, the number of messages (unused, because blocks define where messages end), the reference
        // count.
        cursor.skip(1 + 2 + 4)?;
        let block_len = u64::from(cursor.u32()?);
        let framing = Framing { version: 1, has_creation_index: false };
        let attribute_order = CreationOrder::default();
        return Ok(Prefix { framing, attribute_order, len: PREFIX_V1_LEN_BYTES, block_len });
    }
    cursor.skip(4)?;
    cursor.version(2)?;
    let flags = cursor.u8()?;
    let tracked = flags & FLAG_ATTRIBUTE_ORDER_TRACKED != 0;
    let indexed = flags & FLAG_ATTRIBUTE_ORDER_INDEXED != 0;
    cursor.skip(if flags & FLAG_TIMES != 0 { 16 } else { 0 })?;
    cursor.skip(if flags & FLAG_ATTRIBUTE_LIMITS != 0 { 4 } else { 0 })?;
    let block_len = cursor.uint(1 << (flags & 3))?;
    let framing = Framing { version: 2, has_creation_index: tracked };
    let attribute_order = CreationOrder { tracked, indexed };
    Ok(Prefix { framing, attribute_order, len: cursor.position() as u64, block_len })
}

fn parse_message(cursor: &mut Cursor<'_>, framing: Framing, buffer_start: usize) -> Result<Message, Defect> {
    let at = cursor.clone();
    let kind = if framing.version == 1 { cursor.u16()? } else { u16::from(cursor.u8()?) };
    let len = usize::from(cursor.u16()?);
    let flags = cursor.u8()?;
    if framing.version == 1 {
        cursor.skip(3)?;
        if len % 8 != 0 {
            return Err(at.malformed(format!("length {len} is not a multiple of 8")));
        }
    }
    let creation_index = if framing.has_creation_index { Some(cursor.u16()?) } else { None };
    if kind >= kind::FIRST_UNKNOWN && flags & MESSAGE_FAIL_IF_UNKNOWN != 0 {
        return Err(at.unsupported(format!("kind {kind:#06x}, which readers must know")));
    }
    let (start, address) = (buffer_start + cursor.position(), cursor.address());
    cursor.skip(len)?;
    Ok(Message { kind, shared: flags & MESSAGE_SHARED != 0, creation_index, start, len, address })
}

#[cfg(test)]
mod tests {
    use super::super::damage::{ADDRESS, check, le};
    use super::*;

    #[test]
    fn prefixes() {
        let old = le(&[(1, 1), (0, 1), (4, 2), (1, 4), (256, 4)]);
        let of = |cursor: Cursor<'_>| parse_prefix(cursor).map(|prefix| (prefix.len, prefix.block_len));
        assert_eq!(check(&old, of), (16, 256));
        let mut new = SIGNATURE.to_vec();
        new.extend(le(&[(2, 1), (0x3d, 1), (1, 16), (8, 2), (6, 2), (300, 2)]));
        assert_eq!(check(&new, of), (28, 300));
        let prefix = parse_prefix(Cursor::new(&new, ADDRESS, "header")).unwrap();
        assert_eq!(prefix.attribute_order, CreationOrder { tracked: true, indexed: true });
    }

    #[test]
    fn messages() {
        let of = |framing| move |mut cursor: Cursor<'_>| parse_message(&mut cursor, framing, 100);
        let old = le(&[(3, 2), (8, 2), (2, 1), (0, 3), (7, 8)]);
        let message = check(&old, of(Framing { version: 1, has_creation_index: false }));
        assert_eq!((message.kind, message.shared, message.start, message.len), (3, true, 108, 8));
        assert_eq!(message.address, ADDRESS + 8);
        let new = le(&[(12, 1), (3, 2), (0, 1), (9, 2), (7, 3)]);
        let message = check(&new, of(Framing { version: 2, has_creation_index: true }));
        assert_eq!((message.kind, message.shared, message.creation_index, message.len), (12, false, Some(9), 3));
    }

    #[test]
    fn unknown_kinds_matter_only_if_they_say_so() {
        let of = |flags| {
            let bytes = le(&[(0x50, 1), (0, 2), (flags, 1)]);
            let framing = Framing { version: 2, has_creation_index: false };
            parse_message(&mut Cursor::new(&bytes, ADDRESS, "message"), framing, 0).map(|message| message.kind)
        };
        assert_eq!(of(0), Ok(0x50));
        assert!(matches!(of(0x80), Err(Defect::Unsupported { address: ADDRESS, .. })));
    }
}
