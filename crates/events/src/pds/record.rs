//! A record, which holds an event's ids and its products.
//!
//! Invariant: a written record is read back unchanged, except that blobs are padded with zeros to whole words.

use super::{PdsCodec, WORD_LEN_BYTES, padding_len_bytes};
use raddle_codec::{CodecError, DecodeState, RawStreamEncoder};
use raddle_columns::block::Column;
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use raddle_columns::event_id::EventId;

/// Length of record type, run, subrun, two words of event number, and stored length.
pub(super) const FRONT_LEN_BYTES: usize = 6 * WORD_LEN_BYTES;

/// Length of a record's head: the front and the word of lengths.
pub(super) const HEAD_LEN_BYTES: usize = FRONT_LEN_BYTES + WORD_LEN_BYTES;

/// Length of the fields in front of each product's blob: number of the product and length.
const BLOB_FRONT_LEN_BYTES: usize = 2 * WORD_LEN_BYTES;

const STRUCTURE: &str = "event record";

/// Head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) id: EventId,
    /// Number of words from the word of lengths to the end of the data.
    stored_len_words: u32,
    /// Length of the products before compression, with the stored length modulo 4 in the lowest two bits.
    lengths: u32,
}

impl Head {
    /// Reads the head of the record at `address`.
    pub(super) fn read(bytes: &[u8], address: u64) -> Result<Self, UnlocatedError> {
        let mut bytes = Bytes::new(bytes, address, STRUCTURE);
        match bytes.le_u32()? {
            0 => {}
            number => return Err(bytes.damaged(format!("record type {number} does not exist"))),
        }
        let (run, lumi, high, low) = (bytes.le_u32()?, bytes.le_u32()?, bytes.le_u32()?, bytes.le_u32()?);
        let stored_len_words = bytes.le_u32()?;
        let head = Self {
            id: EventId { run, lumi, event: u64::from(high) << 32 | u64::from(low) },
            stored_len_words,
            lengths: bytes.le_u32()?,
        };
        let is_possible = stored_len_words > 1 || stored_len_words == 1 && head.lengths & 3 == 0;
        if is_possible { Ok(head) } else { Err(bytes.damaged("a record without room for its data")) }
    }

    /// Returns the length of the whole record in the file.
    pub(super) fn record_len_bytes(self) -> u64 {
        FRONT_LEN_BYTES as u64 + (u64::from(self.stored_len_words) + 1) * WORD_LEN_BYTES as u64
    }

    /// Returns the length of the products before compression.
    pub(super) fn payload_len_bytes(self) -> usize {
        (self.lengths & !3) as usize
    }

    /// Returns the length of the products as stored, without padding.
    fn stored_len_bytes(self) -> usize {
        let padded = (self.stored_len_words as usize - 1) * WORD_LEN_BYTES;
        match self.lengths & 3 {
            0 => padded,
            rest => padded - (WORD_LEN_BYTES - rest as usize),
        }
    }
}

/// Columns to which the products' blobs are added.
pub(super) struct RecordFilter<'w> {
    /// Column of each product of the stream; `None` if it is not read.
    pub(super) column_of: &'w [Option<usize>],
    /// Whether each product of the stream has already occurred in this event.
    pub(super) seen: &'w mut Vec<bool>,
}

/// Reads the whole record `bytes` at `address`, and appends each wanted product's blob to its column.
pub(super) fn read(
    bytes: &[u8],
    address: u64,
    codec: PdsCodec,
    state: &mut DecodeState,
    payload: &mut Vec<u8>,
    wanted: &mut RecordFilter<'_>,
    columns: &mut [Column],
) -> Result<EventId, UnlocatedError> {
    let head = Head::read(bytes, address)?;
    let mut rest = Bytes::new(bytes, address, STRUCTURE);
    rest.take(HEAD_LEN_BYTES)?;
    let data_address = rest.address();
    let data = rest.take(head.stored_len_bytes())?;
    rest.take(padding_len_bytes(data.len()))?;
    if rest.le_u32()? != head.stored_len_words {
        return Err(rest.damaged("the two lengths of the record differ"));
    }
    let len_bytes = head.payload_len_bytes();
    let undecodable = |source| UnlocatedError::Codec { address: data_address, structure: STRUCTURE, source };
    let payload = match codec.bare() {
        None if data.len() != len_bytes => {
            return Err(rest.damaged(format!("{} of {len_bytes} bytes are stored", data.len())));
        }
        None => data,
        Some(codec) => {
            codec.check_stored(data.len(), len_bytes).map_err(undecodable)?;
            payload.resize(len_bytes, 0);
            codec.decode(state, data, payload).map_err(undecodable)?;
            payload
        }
    };
    read_products(payload, wanted, columns)?;
    Ok(head.id)
}

/// Reads the products, which may be in any order. Missing products get empty blobs.
fn read_products(payload: &[u8], wanted: &mut RecordFilter<'_>, columns: &mut [Column]) -> Result<(), UnlocatedError> {
    wanted.seen.clear();
    wanted.seen.resize(wanted.column_of.len(), false);
    let mut bytes = Bytes::new(payload, 0, "products of an event");
    while bytes.remaining() > 0 {
        let number = bytes.le_u32()? as usize;
        let len_words = bytes.le_u32()? as usize;
        let blob = bytes.take(len_words.saturating_mul(WORD_LEN_BYTES))?;
        match wanted.seen.get_mut(number) {
            Some(seen @ false) => *seen = true,
            Some(true) => return Err(bytes.damaged(format!("product {number} occurs twice"))),
            None => return Err(bytes.damaged(format!("product {number} does not exist"))),
        }
        if let Some(column) = wanted.column_of[number] {
            columns[column].push_bytes(blob);
        }
    }
    for (column, seen) in wanted.column_of.iter().zip(wanted.seen.iter()) {
        if let (Some(column), false) = (column, seen) {
            columns[*column].push_bytes(&[]);
        }
    }
    Ok(())
}

/// Appends the products of one event, before compression, to `payload`.
pub(super) fn push_products<'b>(blobs: impl Iterator<Item = &'b [u8]>, payload: &mut Vec<u8>) {
    for (number, blob) in blobs.enumerate() {
        let padding = padding_len_bytes(blob.len());
        payload.reserve(BLOB_FRONT_LEN_BYTES + blob.len() + padding);
        payload.extend_from_slice(&(number as u32).to_le_bytes());
        // The caller has checked that the length of the whole payload fits into 32 bits.
        payload.extend_from_slice(&(((blob.len() + padding) / WORD_LEN_BYTES) as u32).to_le_bytes());
        payload.extend_from_slice(blob);
        payload.resize(payload.len() + padding, 0);
    }
}

/// Returns the length of the payload that [`push_products`] creates for blobs of these lengths.
pub(super) fn payload_len_bytes(blobs: impl Iterator<Item = usize>) -> u64 {
    blobs.map(|len| (BLOB_FRONT_LEN_BYTES + len + padding_len_bytes(len)) as u64).sum()
}

/// Maximum length of the payload and of the stored data. A length is a word of 32 bits, the lowest two of
/// which have another use (`Head::lengths`).
pub(super) const MAX_PAYLOAD_LEN_BYTES: u64 = !3_u32 as u64;

/// Appends the record of one event to `out`. `payload` must not be longer than [`MAX_PAYLOAD_LEN_BYTES`].
pub(super) fn push(
    id: EventId,
    payload: &[u8],
    encoder: Option<&mut RawStreamEncoder>,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let start = out.len();
    for word in [0, id.run, id.lumi, (id.event >> 32) as u32, id.event as u32, 0, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    match encoder {
        Some(encoder) => encoder.encode(payload, out)?,
        None => out.extend_from_slice(payload),
    }
    let stored_len_bytes = out.len() - start - HEAD_LEN_BYTES;
    let padding = padding_len_bytes(stored_len_bytes);
    out.resize(out.len() + padding, 0);
    let stored_len_words = ((stored_len_bytes + padding) / WORD_LEN_BYTES + 1) as u32;
    let lengths = payload.len() as u32 | (stored_len_bytes % WORD_LEN_BYTES) as u32;
    out[start + FRONT_LEN_BYTES - WORD_LEN_BYTES..][..WORD_LEN_BYTES].copy_from_slice(&stored_len_words.to_le_bytes());
    out[start + FRONT_LEN_BYTES..][..WORD_LEN_BYTES].copy_from_slice(&lengths.to_le_bytes());
    out.extend_from_slice(&stored_len_words.to_le_bytes());
    Ok(())
}
