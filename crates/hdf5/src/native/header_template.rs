//! Recognition of a complete version 1 object header by its bytes, except for the parts that differ within a template.
//!
//! A file's datasets with the same template have headers of the same length that are identical outside of extent, data
//! address and times. Comparing them costs less than listing their messages. Version 2 headers end with a checksum that
//! would have to be computed first, and headers with several blocks contain the addresses of the others, so neither has
//! a header template. Invariant: a matching header has the messages of the first one, with the same bodies except for
//! blanks.

use super::kind;
use super::object_header::{Message, ObjectHeader};
use crate::model::template::DatasetTemplate;
use std::ops::Range;
use std::sync::Arc;

/// Length of a version 1 header before its first message.
const PREFIX_LEN_BYTES: usize = 16;
/// Length of class, flags and size of a datatype.
const TYPE_HEAD_LEN_BYTES: usize = 8;

/// Messages of a header, some of them blanked.
#[derive(Debug)]
pub(super) struct HeaderTemplate {
    messages: Vec<u8>,
    /// Ranges that are compared, in rising order.
    fixed: Vec<Range<usize>>,
    /// Offset of the datatype, and its first bytes, in which most header templates differ.
    type_at: usize,
    type_head: [u8; TYPE_HEAD_LEN_BYTES],
    /// Range of the dataspace message's body.
    pub dataspace: Range<usize>,
    /// Body of the layout message.
    pub layout: Range<usize>,
    /// Bodies of both messages without their blanks.
    pub blanked_key: Vec<u8>,
    /// Dataset template of all matching headers.
    pub form: Arc<DatasetTemplate>,
}

impl HeaderTemplate {
    /// Creates the template of `header` with its `dataspace`, its `layout` and the messages of `times` blanked.
    pub fn new(
        header: &ObjectHeader,
        [dataspace, layout]: [&Message; 2],
        times: &[u16],
        blanked_key: Vec<u8>,
        form: Arc<DatasetTemplate>,
    ) -> Option<Self> {
        let messages = header.only_block_of_version_1()?.to_vec();
        let type_at = header.find(kind::DATATYPE)?.range().start;
        let type_head = *messages.get(type_at..)?.first_chunk()?;
        let (dataspace, layout) = (dataspace.range(), layout.range());
        let mut fixed = Vec::new();
        let mut start = 0;
        for message in &header.messages {
            let body = message.range();
            if body == dataspace || body == layout || times.contains(&message.kind) {
                fixed.push(start..body.start);
                start = body.end;
            }
        }
        fixed.push(start..messages.len());
        Some(Self { messages, fixed, type_at, type_head, dataspace, layout, blanked_key, form })
    }

    /// Returns the length of a matching header.
    pub fn header_len_bytes(&self) -> usize {
        PREFIX_LEN_BYTES + self.messages.len()
    }

    /// Returns whether these are the messages of a matching header.
    pub fn fits(&self, messages: &[u8]) -> bool {
        messages.len() == self.messages.len()
            && messages[self.type_at..].first_chunk() == Some(&self.type_head)
            && self.fixed.iter().all(|part| messages[part.clone()] == self.messages[part.clone()])
    }
}

/// Returns the messages of the version 1 header at the beginning of `bytes`, if its first block is complete.
pub(super) fn messages_of_version_1(bytes: &[u8]) -> Option<&[u8]> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX_LEN_BYTES>()?;
    let [1, _, _, _, _, _, _, _, a, b, c, d, ..] = *prefix else { return None };
    rest.get(..u32::from_le_bytes([a, b, c, d]) as usize)
}
