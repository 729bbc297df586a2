//! Baskets: the entries of one branch in a range, compressed together.
//!
//! Invariant of an open basket: it has exactly the number of entries that the tree states, and they fill its data.

use super::file::decode_payload;
use super::key::Key;
use raddle_codec::DecodeState;
use raddle_columns::bytes::{Bytes, room};
use raddle_columns::error::UnlocatedError;
use raddle_columns::input::InputFile;

const STRUCTURE: &str = "basket";

/// Entries of a basket, and where the basket is stored.
#[derive(Debug, Clone)]
pub(super) struct BasketPlace {
    /// Number of the first entry.
    pub(super) start: u64,
    /// Number of the last entry plus one.
    pub(super) end: u64,
    pub(super) stored: StoredBasket,
}

#[derive(Debug, Clone)]
pub(super) enum StoredBasket {
    /// Separately in the file.
    Alone { address: u64, len_bytes: u64 },
    /// Embedded in the tree's own metadata.
    Embedded(Vec<u8>),
}

impl StoredBasket {
    /// Returns the stored length.
    pub(super) fn len_bytes(&self) -> u64 {
        match self {
            Self::Alone { len_bytes, .. } => *len_bytes,
            Self::Embedded(bytes) => bytes.len() as u64,
        }
    }
}

/// Decoded basket; its memory is reused for the next one.
#[derive(Debug, Default)]
pub(super) struct Basket {
    /// Entries one after the other, followed by the data that ROOT appends.
    payload: Vec<u8>,
    opener: BasketOpener,
}

/// Decompressors and the stored bytes of the basket that is being opened, shared by all baskets of a reader.
#[derive(Debug, Default)]
pub(super) struct BasketDecoder {
    state: DecodeState,
    stored: Vec<u8>,
}

/// Decoder of baskets that locates the entries of the basket read last.
#[derive(Debug, Default)]
pub(super) struct BasketOpener {
    ends: Ends,
    /// Memory for offsets, kept from the last basket.
    spare: Vec<u32>,
}

/// Positions of the entries of a basket.
#[derive(Debug, Default)]
enum Ends {
    /// No basket has been read.
    #[default]
    None,
    /// All entries have the same length.
    Fixed { len_bytes: usize },
    /// Beginning of each entry, followed by the end of the last.
    Offsets(Vec<u32>),
    /// Another branch determines the lengths, which must add up to `data_len_bytes`.
    Elsewhere { data_len_bytes: usize },
}

/// Bit in the IO bits of a basket that does not store its offsets. They follow from the counts of another branch or,
/// without counts, from the lengths of entries, which compress better (TBasket::WriteBuffer).
const GENERATED_OFFSETS: u8 = 1;

/// Number added to the flag of a basket that does not store its offsets.
const GENERATED_FLAG: u8 = 80;

/// Fields after a basket's key.
struct BasketPrefix {
    key: Key,
    entries: usize,
    /// End of the entries, counted from the start of the key.
    last: usize,
    flag: u8,
    /// Whether the lengths of entries are stored instead of offsets that do not follow from counts.
    has_lengths: bool,
}

impl BasketPrefix {
    fn read(bytes: &mut Bytes<'_>) -> Result<Self, UnlocatedError> {
        let key = Key::read(bytes)?;
        let _version = bytes.be_u16()?;
        let (_size, entry_len_bytes) = (bytes.be_i32()?, bytes.be_i32()?);
        // A negative length indicates that bits follow (TBasket::Streamer).
        let bits = if entry_len_bytes < 0 { bytes.be_u8()? } else { 0 };
        if bits & !GENERATED_OFFSETS != 0 {
            return Err(bytes.unsupported(format!("IO bits {bits:#x}")));
        }
        let (entries, last) = (bytes.be_i32()?, bytes.be_i32()?);
        let flag = bytes.be_u8()?;
        match (usize::try_from(entries), usize::try_from(last)) {
            (Ok(entries), Ok(last)) => Ok(Self { key, entries, last, flag, has_lengths: bits != 0 }),
            _ => Err(bytes.damaged("a negative number of entries")),
        }
    }

    /// Returns the total length of the entries.
    fn data_len_bytes(&self, bytes: &Bytes<'_>) -> Result<usize, UnlocatedError> {
        self.last
            .checked_sub(usize::from(self.key.key_len_bytes))
            .ok_or_else(|| bytes.damaged("the entries end before they begin"))
    }
}

/// Returns the number of entries of a basket embedded in its tree.
pub(super) fn embedded_entries(bytes: &[u8]) -> Result<usize, UnlocatedError> {
    BasketPrefix::read(&mut Bytes::new(bytes, 0, STRUCTURE)).map(|front| front.entries)
}

impl BasketOpener {
    /// Reads and decodes a basket. Its entries, and the data that ROOT appends to them, overwrite `out`, starting at
    /// `from`; `out` is extended if necessary. Returns the length of the entries. If they differ in length (`varies`)
    /// and the basket does not record how, [`BasketOpener::lacks_lengths`] is true afterwards, and
    /// [`BasketOpener::set_lengths`] must be called.
    pub(super) fn open(
        &mut self,
        file: &InputFile,
        place: &BasketPlace,
        varies: bool,
        decoder: &mut BasketDecoder,
        out: &mut Vec<u8>,
        from: usize,
    ) -> Result<usize, UnlocatedError> {
        if let Ends::Offsets(offsets) = std::mem::take(&mut self.ends) {
            self.spare = offsets;
        }
        let (front, data_len_bytes) = match &place.stored {
            StoredBasket::Alone { address, len_bytes } => {
                file.read_into(*address, *len_bytes, STRUCTURE, &mut decoder.stored)?;
                self.open_alone(*address, varies, decoder, out, from)?
            }
            StoredBasket::Embedded(bytes) => self.open_embedded(bytes, varies, out, from)?,
        };
        let expected = place.end - place.start;
        if front.entries as u64 != expected {
            let what = format!("it has {} entries, {expected} expected", front.entries);
            return Err(UnlocatedError::Damaged { address: front.key.address, structure: STRUCTURE, what });
        }
        Ok(data_len_bytes)
    }

    /// Returns the beginnings of the entries of the basket read last, followed by the end of the last, relative to the
    /// first; `None` if all have the same length.
    pub(super) fn offsets(&self) -> Option<&[u32]> {
        match &self.ends {
            Ends::Offsets(offsets) => Some(offsets),
            _ => None,
        }
    }

    /// Returns whether the basket read last does not record the lengths of its entries.
    pub(super) fn lacks_lengths(&self) -> bool {
        matches!(self.ends, Ends::Elsewhere { .. })
    }

    /// Sets the lengths of the entries.
    pub(super) fn set_lengths(&mut self, lengths: impl IntoIterator<Item = u64>) -> Result<(), UnlocatedError> {
        let Ends::Elsewhere { data_len_bytes } = self.ends else { return Ok(()) };
        let mut offsets = std::mem::take(&mut self.spare);
        offsets.clear();
        offsets.push(0);
        let mut end = 0u64;
        for length in lengths {
            end = end.saturating_add(length);
            offsets.push(end.min(data_len_bytes as u64) as u32);
        }
        if end != data_len_bytes as u64 {
            let what = format!("{end} bytes of entries according to their counts, but {data_len_bytes} stored bytes");
            return Err(UnlocatedError::Damaged { address: 0, structure: STRUCTURE, what });
        }
        self.ends = Ends::Offsets(offsets);
        Ok(())
    }

    /// Opens a separately stored basket from its stored bytes.
    fn open_alone(
        &mut self,
        address: u64,
        varies: bool,
        BasketDecoder { state, stored }: &mut BasketDecoder,
        out: &mut Vec<u8>,
        from: usize,
    ) -> Result<(BasketPrefix, usize), UnlocatedError> {
        let mut bytes = Bytes::new(stored, address, STRUCTURE);
        let front = BasketPrefix::read(&mut bytes)?;
        decode_payload(stored, address, &front.key, state, out, from)?;
        let data_len_bytes = front.data_len_bytes(&bytes)?;
        let Some(behind) = out[from..from + front.key.object_len_bytes].get(data_len_bytes..) else {
            return Err(bytes.damaged("the entries end after the payload"));
        };
        self.ends = match behind.is_empty() {
            true => without_offsets(&bytes, varies, data_len_bytes, front.entries)?,
            false => {
                let mut behind = Bytes::new(behind, address, STRUCTURE);
                let count = behind.be_u32()? as usize;
                // The number of offsets is one more than that of entries; the last is not always set.
                if count < front.entries {
                    return Err(bytes.damaged(format!("{count} offsets of {} entries", front.entries)));
                }
                let spare = std::mem::take(&mut self.spare);
                match front.has_lengths {
                    true => offsets_of_lengths(&mut behind, &front, data_len_bytes, spare)?,
                    false => offsets(&mut behind, &front, data_len_bytes, spare)?,
                }
            }
        };
        Ok((front, data_len_bytes))
    }

    /// Opens a basket embedded in the tree's metadata: offsets, followed by the bytes of an uncompressed separate
    /// basket.
    fn open_embedded(
        &mut self,
        stored: &[u8],
        varies: bool,
        out: &mut Vec<u8>,
        from: usize,
    ) -> Result<(BasketPrefix, usize), UnlocatedError> {
        let mut bytes = Bytes::new(stored, 0, "embedded basket");
        let front = BasketPrefix::read(&mut bytes)?;
        let data_len_bytes = front.data_len_bytes(&bytes)?;
        // TBasket::Streamer adds 40 for displacements, 80 for offsets that are not stored, and 10 for data.
        let is_generated = front.flag >= GENERATED_FLAG;
        let flag = if is_generated { front.flag - GENERATED_FLAG } else { front.flag };
        let (kind, has_data) = (flag % 10, flag >= 10);
        if flag >= 40 || !has_data {
            return Err(bytes.unsupported(format!("an embedded basket of kind {}", front.flag)));
        }
        self.ends = match kind {
            1 if !is_generated => {
                let count = bytes.be_u32()? as usize;
                if count != front.entries {
                    return Err(bytes.damaged(format!("{count} offsets of {} entries", front.entries)));
                }
                offsets(&mut bytes, &front, data_len_bytes, std::mem::take(&mut self.spare))?
            }
            _ => without_offsets(&bytes, varies, data_len_bytes, front.entries)?,
        };
        bytes.take(usize::from(front.key.key_len_bytes))?;
        room(out, from, data_len_bytes).copy_from_slice(bytes.take(data_len_bytes)?);
        Ok((front, data_len_bytes))
    }
}

impl Basket {
    /// Reads and decodes a basket. `varies` has the same meaning as in [`BasketOpener::open`].
    pub(super) fn open(
        &mut self,
        file: &InputFile,
        place: &BasketPlace,
        varies: bool,
        decoder: &mut BasketDecoder,
    ) -> Result<(), UnlocatedError> {
        self.opener.open(file, place, varies, decoder, &mut self.payload, 0).map(|_| ())
    }

    /// Returns the opener, which locates entries.
    pub(super) fn opener(&mut self) -> &mut BasketOpener {
        &mut self.opener
    }

    /// Returns the length of every entry; `None` if lengths differ.
    pub(super) fn fixed_len_bytes(&self) -> Option<usize> {
        match self.opener.ends {
            Ends::Fixed { len_bytes } => Some(len_bytes),
            _ => None,
        }
    }

    /// Returns the beginnings of entries, followed by the end of the last; `None` if all have the same length. The
    /// range must lie within the basket's entries.
    pub(super) fn offsets(&self, range: std::ops::Range<usize>) -> Option<&[u32]> {
        self.opener.offsets().map(|offsets| &offsets[range.start..=range.end])
    }

    /// Appends the end of each entry to offsets, counted from the last offset, in values of `1 << shift` bytes.
    /// Incomplete values are not counted. The range must lie within the basket's entries.
    pub(super) fn push_ends(&self, range: std::ops::Range<usize>, shift: u32, offsets: &mut Vec<u64>) {
        let last = offsets.last().copied().unwrap_or(0);
        match &self.opener.ends {
            // A shift instead of a division allows the compiler to vectorise the loop.
            Ends::Offsets(starts) => {
                let starts = &starts[range.start..=range.end];
                let first = starts[0];
                offsets.extend(starts[1..].iter().map(|start| last.wrapping_add(u64::from((start - first) >> shift))));
            }
            Ends::Fixed { len_bytes } => {
                let each = (len_bytes >> shift) as u64;
                offsets.extend((1..=range.len() as u64).map(|entry| last + entry * each));
            }
            Ends::None | Ends::Elsewhere { .. } => {}
        }
    }

    /// Returns the bytes of consecutive entries. The range must lie within the basket's entries.
    pub(super) fn entries(&self, range: std::ops::Range<usize>) -> &[u8] {
        &self.payload[self.start_of(range.start)..self.start_of(range.end)]
    }

    /// Returns the beginning of an entry; for the number after the last entry, returns the end of the last.
    pub(super) fn start_of(&self, number: usize) -> usize {
        match &self.opener.ends {
            Ends::None | Ends::Elsewhere { .. } => 0,
            Ends::Fixed { len_bytes } => number * len_bytes,
            Ends::Offsets(offsets) => offsets[number] as usize,
        }
    }

    /// Returns the length of an entry.
    pub(super) fn len_of(&self, number: usize) -> usize {
        self.start_of(number + 1) - self.start_of(number)
    }
}

fn without_offsets(
    bytes: &Bytes<'_>,
    varies: bool,
    data_len_bytes: usize,
    entries: usize,
) -> Result<Ends, UnlocatedError> {
    match varies && data_len_bytes > 0 {
        true => Ok(Ends::Elsewhere { data_len_bytes }),
        false => fixed(bytes, data_len_bytes, entries),
    }
}

fn fixed(bytes: &Bytes<'_>, data_len_bytes: usize, entries: usize) -> Result<Ends, UnlocatedError> {
    match data_len_bytes.checked_rem(entries) {
        Some(0) => Ok(Ends::Fixed { len_bytes: data_len_bytes / entries }),
        None if data_len_bytes == 0 => Ok(Ends::Fixed { len_bytes: 0 }),
        _ => Err(bytes.damaged(format!("{entries} entries of equal length in {data_len_bytes} bytes"))),
    }
}

/// Reads offsets, which are stored relative to the start of the key; the end of the last entry follows from the length
/// of the data.
fn offsets(
    bytes: &mut Bytes<'_>,
    front: &BasketPrefix,
    data_len_bytes: usize,
    mut offsets: Vec<u32>,
) -> Result<Ends, UnlocatedError> {
    let stored = bytes.take(front.entries.saturating_mul(4))?;
    let key_len_bytes = u32::from(front.key.key_len_bytes);
    offsets.clear();
    offsets.reserve(front.entries + 1);
    let stored = stored.as_chunks().0.iter();
    offsets.extend(stored.map(|&offset| u32::from_be_bytes(offset).wrapping_sub(key_len_bytes)));
    offsets.push(data_len_bytes as u32);
    // Without an early exit, so that several offsets are compared at a time.
    let is_rising = offsets.windows(2).fold(true, |is_rising, pair| is_rising & (pair[0] <= pair[1]));
    match is_rising {
        true => beginning_with_data(bytes, front, offsets),
        false => Err(bytes.damaged("the entries' offsets decrease")),
    }
}

/// Checks that the first entry begins with the data: bytes before it would belong to no entry.
fn beginning_with_data(bytes: &Bytes<'_>, front: &BasketPrefix, offsets: Vec<u32>) -> Result<Ends, UnlocatedError> {
    match offsets.first() {
        Some(first @ 1..) if front.entries > 0 => {
            Err(bytes.damaged(format!("its first entry begins at byte {first} of the data")))
        }
        _ => Ok(Ends::Offsets(offsets)),
    }
}

/// Computes offsets from stored lengths: 0, then the length of each entry except the last.
fn offsets_of_lengths(
    bytes: &mut Bytes<'_>,
    front: &BasketPrefix,
    data_len_bytes: usize,
    mut offsets: Vec<u32>,
) -> Result<Ends, UnlocatedError> {
    let stored = bytes.take(front.entries.saturating_mul(4))?;
    offsets.clear();
    offsets.reserve(front.entries + 1);
    let mut start = 0u64;
    for &length in stored.as_chunks().0 {
        start += u64::from(u32::from_be_bytes(length));
        if start > data_len_bytes as u64 {
            return Err(bytes.damaged(format!("entries of {start} bytes, but {data_len_bytes} stored bytes")));
        }
        offsets.push(start as u32);
    }
    offsets.push(data_len_bytes as u32);
    beginning_with_data(bytes, front, offsets)
}
