//! Protocol between parent and child: frames on a socket that contain postcard.
//!
//! A frame is the signature, a kind, and the length of the bytes that follow. Values are sent unchanged, everything
//! else as postcard. Nothing here starts a process or calls libhdf5.
//!
//! Invariant: the parent trusts nothing: a frame's length is checked before its bytes are read, and memory grows with
//! the bytes that have arrived, not with the declared length.

use crate::model::{FileTree, Object};
use crate::wire_error::WireError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::ops::Range;

/// First bytes of every frame, so that foreign output (a crash message, a shell's prompt) is recognised at once.
pub(super) const SIGNATURE: [u8; 4] = *b"RdH5";

/// Length of signature, kind (4 bytes with padding) and length.
pub(super) const HEADER_LEN_BYTES: usize = 16;

const KIND_MESSAGE: u8 = 1;
const KIND_VALUES: u8 = 2;

/// Maximum length of a request: ten million addresses.
pub(super) const MAX_REQUEST_LEN_BYTES: u64 = 100 << 20;

/// Address or path that identifies an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectName {
    /// Absolute file offset of the object header.
    Address(u64),
    /// Path in the file.
    Path(Vec<u8>),
}

/// A stored chunk as listed in libhdf5's index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListedChunk {
    /// First element of the chunk, in elements per dimension.
    pub origin: Vec<u64>,
    /// Absolute file offset of the first byte.
    pub address: u64,
    /// Length of the stored chunk.
    pub len_bytes: u64,
    /// Mask of the filters that were skipped.
    pub filter_mask: u32,
}

/// First frame of a conversation.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Version of the parent: an executable may be replaced while it runs.
    pub version: String,
    /// Absolute path of the file that this child serves.
    pub path: Vec<u8>,
    /// Whether files outside of its folder may be opened.
    pub any_foreign_file: bool,
    /// Path, free of links, of a file that will be replaced and must not be a source of values.
    pub replaced: Option<Vec<u8>>,
    /// Maximum size of the address space.
    pub address_space_len_bytes: u64,
    /// Maximum length of an answer that the parent accepts.
    pub answer_limit_len_bytes: u64,
    /// CPU time of an answer about an empty file.
    pub cpu_time_s: u64,
}

/// A request about the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// Requested task.
    pub task: Task,
}

/// Task of a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// The whole metadata.
    Tree,
    /// The objects at these addresses and those that their links lead to.
    Fragment { addresses: Vec<u64> },
    /// Values of a dataset.
    Values { object: ObjectName, rows: Option<Range<u64>> },
    /// Chunks of a dataset.
    Chunks { object: ObjectName },
}

/// An answer other than values.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The greeting was accepted.
    Ready,
    /// The versions differ.
    OtherVersion,
    /// Answer to [`Task::Tree`].
    Tree(FileTree),
    /// Answer to [`Task::Fragment`].
    Fragment(Fragment),
    /// Answer to [`Task::Chunks`].
    Chunks(Vec<ListedChunk>),
    /// The task failed, but the child can continue.
    Failed(WireError),
}

/// Objects whose links use indices of the same list.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Fragment {
    pub objects: Vec<Object>,
}

/// A complete frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A message in postcard.
    Message(Vec<u8>),
    /// Values of a dataset.
    Values(Vec<u8>),
}

/// Header of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameHeader {
    kind: u8,
    /// Length of the bytes that follow.
    pub len_bytes: u64,
}

impl FrameHeader {
    /// Parses a header; `Err` contains the reason why it is invalid.
    pub(super) fn parse(bytes: &[u8; HEADER_LEN_BYTES], limit_len_bytes: u64) -> Result<Self, String> {
        let (start, len) = bytes.split_at(8);
        if start[..4] != SIGNATURE || !matches!(start[4], KIND_MESSAGE | KIND_VALUES) || start[5..] != [0; 3] {
            return Err(format!("it starts with \"{}\"", bytes.escape_ascii()));
        }
        let mut len_bytes = [0; 8];
        len_bytes.copy_from_slice(len);
        let len_bytes = u64::from_le_bytes(len_bytes);
        if len_bytes > limit_len_bytes {
            return Err(format!("it announces {len_bytes} bytes, the limit is {limit_len_bytes}"));
        }
        Ok(Self { kind: start[4], len_bytes })
    }

    /// Creates the frame from its bytes.
    pub(super) fn frame(self, bytes: Vec<u8>) -> Frame {
        if self.kind == KIND_VALUES { Frame::Values(bytes) } else { Frame::Message(bytes) }
    }

    fn to_bytes(self) -> [u8; HEADER_LEN_BYTES] {
        let mut bytes = [0; HEADER_LEN_BYTES];
        bytes[..4].copy_from_slice(&SIGNATURE);
        bytes[4] = self.kind;
        bytes[8..].copy_from_slice(&self.len_bytes.to_le_bytes());
        bytes
    }
}

/// Encodes a message as a frame.
///
/// # Panics
/// If a value cannot be represented in postcard, which does not happen for these types.
pub(super) fn encode<M: Serialize>(message: &M) -> Vec<u8> {
    let mut frame = postcard::to_extend(message, vec![0; HEADER_LEN_BYTES]).expect("plain values serialise");
    let header = FrameHeader { kind: KIND_MESSAGE, len_bytes: (frame.len() - HEADER_LEN_BYTES) as u64 };
    frame[..HEADER_LEN_BYTES].copy_from_slice(&header.to_bytes());
    frame
}

/// Creates the header of a frame of values.
pub(super) fn values_header(len_bytes: usize) -> [u8; HEADER_LEN_BYTES] {
    FrameHeader { kind: KIND_VALUES, len_bytes: len_bytes as u64 }.to_bytes()
}

/// Decodes a message from the bytes of its frame; `Err` contains the reason why it is invalid.
pub(super) fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(format!("{} bytes follow the message", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a message in the child, which waits as long as its parent lives. Returns `None` at the end of the
/// conversation.
pub(super) fn receive<M: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<M>> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut header = [0; HEADER_LEN_BYTES];
    match from.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let header = FrameHeader::parse(&header, MAX_REQUEST_LEN_BYTES).map_err(invalid)?;
    let mut bytes = Vec::new();
    from.take(header.len_bytes).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != header.len_bytes {
        return Ok(None);
    }
    decode(&bytes).map(Some).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_its_frame() {
        let sent = Request { task: Task::Values { object: ObjectName::Path(b"/a".to_vec()), rows: Some(3..9) } };
        let frame = encode(&sent);
        let received: Request = receive(&mut frame.as_slice()).unwrap().unwrap();
        let Task::Values { object, rows } = received.task else { panic!("another task") };
        assert_eq!((object, rows), (ObjectName::Path(b"/a".to_vec()), Some(3..9)));
    }

    #[test]
    fn a_cut_frame_ends_the_conversation() {
        let frame = encode(&Request { task: Task::Tree });
        for len in 0..frame.len() {
            assert!(receive::<Request>(&mut &frame[..len]).unwrap().is_none(), "cut at {len}");
        }
    }

    #[test]
    fn invalid_headers_are_refused() {
        let good: [u8; HEADER_LEN_BYTES] = encode(&Answer::Ready)[..HEADER_LEN_BYTES].try_into().unwrap();
        assert!(FrameHeader::parse(&good, 100).is_ok());
        for position in 0..8 {
            let mut bad = good;
            bad[position] ^= 0x40;
            assert!(FrameHeader::parse(&bad, 100).is_err(), "byte {position}");
        }
        assert!(FrameHeader::parse(&values_header(101), 100).unwrap_err().contains("101 bytes"));
    }
}
