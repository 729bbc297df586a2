//! The journal of a run: the facts it depends on, then one record per placed batch, in a format that survives
//! truncation anywhere.
//!
//! This module neither opens files nor checks the output: callers compare the [`Binding`] with the current run and read
//! back the bytes that a record describes (see `raddle_merge`). Invariant: every byte belongs to a frame (length,
//! CRC-64/NVME, content). Reading stops before the first frame that is incomplete, altered or does not continue the
//! previous one, so the records read are a prefix of the records written.
//!
//! All numbers are little-endian 64-bit words:
//!
//! | frame | content |
//! |---|---|
//! | first | [`MAGIC`], then per subject: checksum, length of its name, name |
//! | others | first tile, tiles, address, stored length, checksum, verbatim tiles, claims; per claim: tile relative to the first, length, filter mask; note |

use crate::digest::Digest;
use crate::engine::{Checkpoint, PlacedBatch};
use crate::output::claims::Claim;
use crate::plan::TileIndex;
use crate::ranks::message::{MessageReader, encode_u64s, number, put_u64s};
use std::io::{Read, Write};

/// Magic number at the start of a journal, ending in the format version.
pub const MAGIC: [u8; 8] = *b"raddleJ1";

/// Length of the head of a frame: length and checksum of the content.
const FRAME_HEAD_LEN_BYTES: usize = 16;

/// Facts that a run depends on, with a checksum per subject so that a difference can be named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Binding {
    subjects: Vec<(String, u64)>,
}

impl Binding {
    /// Adds a subject (such as "the options") and the checksum of everything about it.
    pub fn bind(&mut self, subject: &str, checksum: u64) {
        self.subjects.push((subject.to_owned(), checksum));
    }

    /// Returns the first subject in which `other` differs.
    pub fn difference<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let pairs = self.subjects.iter().zip(&other.subjects);
        let differing = pairs.into_iter().find(|(ours, theirs)| ours != theirs).map(|(ours, _)| ours.0.as_str());
        differing.or_else(|| {
            let more = self.subjects.len().min(other.subjects.len());
            let rest = self.subjects.get(more).or_else(|| other.subjects.get(more));
            rest.map(|(subject, _)| subject.as_str())
        })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (subject, checksum) in &self.subjects {
            put_u64s(&mut bytes, [*checksum, subject.len() as u64]);
            bytes.extend_from_slice(subject.as_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&MAGIC)?;
        let mut subjects = Vec::new();
        while !rest.is_empty() {
            let mut words = MessageReader::new("read a journal", rest);
            let [checksum, len_bytes] = words.words().ok()?;
            let (subject, behind) = words.rest().split_at_checked(usize::try_from(len_bytes).ok()?)?;
            subjects.push((std::str::from_utf8(subject).ok()?.to_owned(), checksum));
            rest = behind;
        }
        Some(Self { subjects })
    }
}

/// Writes the first frame of a journal.
///
/// # Errors
/// If `out` cannot be written.
pub fn begin(out: &mut impl Write, binding: &Binding) -> std::io::Result<()> {
    out.write_all(&frame(&binding.to_bytes()))
}

/// Appends the record of a batch with a single `write`.
///
/// # Errors
/// If `out` cannot be written. The record may then be incomplete, and nothing written after it is ever read.
pub fn append(out: &mut impl Write, batch: &PlacedBatch, index: &TileIndex) -> std::io::Result<()> {
    let PlacedBatch { first, tiles, address, stored_len_bytes, checksum, verbatim_tiles, claims, note } = batch;
    let head = [*first, *tiles, *address, *stored_len_bytes, *checksum, *verbatim_tiles, claims.len() as u64];
    let mut content = encode_u64s(head);
    for claim in claims {
        // A tile outside the plan makes a record that readers reject.
        let behind = index.ordinal(claim.tile).map_or(u64::MAX, |ordinal| ordinal.wrapping_sub(*first));
        put_u64s(&mut content, [behind, claim.len_bytes, u64::from(claim.filter_mask)]);
    }
    content.extend_from_slice(note);
    out.write_all(&frame(&content))
}

fn frame(content: &[u8]) -> Vec<u8> {
    let mut frame = encode_u64s([content.len() as u64, Digest::of(content).crc64_nvme()]);
    frame.extend_from_slice(content);
    frame
}

/// Reader of a journal: its binding, then its records up to the first incomplete one.
#[derive(Debug)]
pub struct Journal<R> {
    bytes: R,
    binding: Binding,
    first_tile: u64,
    start_address: u64,
    kept: Checkpoint,
    len_bytes: u64,
}

impl<R: Read> Journal<R> {
    /// Reads the first frame; `None` if it does not have this format. `first_tile` is the number of the first tile and
    /// `start_address` its address.
    ///
    /// # Errors
    /// If `bytes` cannot be read.
    pub fn open(mut bytes: R, first_tile: u64, start_address: u64) -> std::io::Result<Option<Self>> {
        let Some(content) = read_frame(&mut bytes)? else { return Ok(None) };
        let len_bytes = (FRAME_HEAD_LEN_BYTES + content.len()) as u64;
        let binding = Binding::from_bytes(&content);
        Ok(binding.map(|binding| Self {
            bytes,
            binding,
            first_tile,
            start_address,
            kept: Checkpoint::default(),
            len_bytes,
        }))
    }

    /// Returns the facts that the run depended on.
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// Returns the tiles and bytes of the records read so far.
    pub fn kept(&self) -> Checkpoint {
        self.kept
    }

    /// Returns the length read so far, which is the position of the next record.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Returns the next record; `None` at the end or at the first invalid record.
    ///
    /// # Errors
    /// If the bytes cannot be read.
    pub fn next_record(&mut self, index: &TileIndex) -> std::io::Result<Option<PlacedBatch>> {
        let Some(content) = read_frame(&mut self.bytes)? else { return Ok(None) };
        let Some(batch) = self.record(&content, index) else { return Ok(None) };
        self.kept.tiles += batch.tiles;
        self.kept.stored_len_bytes += batch.stored_len_bytes;
        self.len_bytes += (FRAME_HEAD_LEN_BYTES + content.len()) as u64;
        Ok(Some(batch))
    }

    /// Decodes a record that continues the previous one and matches the plan.
    fn record(&self, content: &[u8], index: &TileIndex) -> Option<PlacedBatch> {
        let mut words = MessageReader::new("read a journal", content);
        let [first, tiles, address, stored_len_bytes, checksum, verbatim_tiles, count] = words.words().ok()?;
        let end = first.checked_add(tiles)?;
        let expected_address = self.start_address.checked_add(self.kept.stored_len_bytes)?;
        if Some(first) != self.first_tile.checked_add(self.kept.tiles)
            || tiles == 0
            || end > index.tile_count()
            || address != expected_address
        {
            return None;
        }
        let (mut claims, mut next_behind, mut next_address) = (Vec::new(), 0, address);
        for _ in 0..count {
            let [behind, len_bytes, filter_mask] = words.words().ok()?;
            if behind < next_behind || behind >= tiles || len_bytes == 0 {
                return None;
            }
            let filter_mask = u32::try_from(filter_mask).ok()?;
            claims.push(Claim { tile: index.tile(first + behind)?, address: next_address, len_bytes, filter_mask });
            next_behind = behind + 1;
            next_address = next_address.checked_add(len_bytes)?;
        }
        let note = words.rest().to_vec();
        let is_whole = next_address.checked_sub(address) == Some(stored_len_bytes) && verbatim_tiles <= tiles;
        is_whole.then_some(PlacedBatch {
            first,
            tiles,
            address,
            stored_len_bytes,
            checksum,
            verbatim_tiles,
            claims,
            note,
        })
    }
}

/// Reads the content of the next frame, if it is complete. Memory grows with the bytes actually read, not with the
/// stated length.
fn read_frame(bytes: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    bytes.take(FRAME_HEAD_LEN_BYTES as u64).read_to_end(&mut head)?;
    if head.len() < FRAME_HEAD_LEN_BYTES {
        return Ok(None);
    }
    let (len_bytes, checksum) = (number(&head[..8]), number(&head[8..]));
    let mut content = Vec::new();
    bytes.take(len_bytes).read_to_end(&mut content)?;
    let is_whole = content.len() as u64 == len_bytes && Digest::of(&content).crc64_nvme() == checksum;
    Ok(is_whole.then_some(content))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::plan::{ArrayPlan, Plan};

    const START: u64 = 4096;

    fn index() -> TileIndex {
        let array =
            |tiles| ArrayPlan { shape: vec![tiles], tile_shape: vec![1], element_len_bytes: 1, ..ArrayPlan::default() };
        Plan { arrays: vec![array(3), array(0), array(4)] }.tile_index()
    }

    fn binding() -> Binding {
        let mut binding = Binding::default();
        binding.bind("the options", 1);
        binding.bind("the inputs", 2);
        binding
    }

    /// Returns batches of 2, 3 and 2 tiles, of which tile 3 is fill. A stored tile is 10 bytes longer than its number.
    fn batches(index: &TileIndex) -> Vec<PlacedBatch> {
        let mut address = START;
        let batch = |(first, tiles): (u64, u64)| {
            let mut batch = PlacedBatch { first, tiles, address, note: vec![first as u8; 5], ..PlacedBatch::default() };
            for ordinal in (first..first + tiles).filter(|ordinal| *ordinal != 3) {
                let tile = index.tile(ordinal).unwrap();
                batch.claims.push(Claim { tile, address, len_bytes: 10 + ordinal, filter_mask: ordinal as u32 });
                address += 10 + ordinal;
            }
            batch.stored_len_bytes = address - batch.address;
            batch.checksum = first ^ 0xABCD;
            batch
        };
        [(0, 2), (2, 3), (5, 2)].into_iter().map(batch).collect()
    }

    fn written() -> (Vec<u8>, Vec<usize>) {
        let index = index();
        let mut bytes = Vec::new();
        begin(&mut bytes, &binding()).unwrap();
        let mut ends = vec![bytes.len()];
        for batch in batches(&index) {
            append(&mut bytes, &batch, &index).unwrap();
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn read(bytes: &[u8]) -> Option<(Vec<PlacedBatch>, Checkpoint, u64)> {
        let index = index();
        let mut journal = Journal::open(bytes, 0, START).unwrap()?;
        assert_eq!(journal.binding(), &binding());
        let mut found = Vec::new();
        while let Some(batch) = journal.next_record(&index).unwrap() {
            found.push(batch);
        }
        Some((found, journal.kept(), journal.len_bytes()))
    }

    #[test]
    fn a_journal_cut_anywhere_is_a_shorter_journal() {
        let (bytes, ends) = written();
        let all = batches(&index());
        for len in 0..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= len).count();
            match read(&bytes[..len]) {
                None => assert_eq!(whole, 0, "cut at {len}"),
                Some((found, kept, len_bytes)) => {
                    assert_eq!(found, all[..whole - 1], "cut at {len}");
                    assert_eq!(kept.tiles, found.iter().map(|batch| batch.tiles).sum::<u64>());
                    assert_eq!(kept.stored_len_bytes, found.iter().map(|batch| batch.stored_len_bytes).sum::<u64>());
                    assert_eq!(len_bytes, ends[whole - 1] as u64);
                }
            }
        }
    }

    #[test]
    fn a_changed_byte_ends_the_journal_before_its_record() {
        let (bytes, ends) = written();
        let all = batches(&index());
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xFF] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                let untouched = ends.iter().filter(|end| **end <= at).count();
                let found = read(&changed).map_or(0, |(found, _, _)| {
                    assert_eq!(found, all[..found.len()]);
                    found.len() + 1
                });
                assert_eq!(found, untouched, "byte {at} changed by {change:#x}");
            }
        }
    }

    #[test]
    fn a_record_that_does_not_continue_the_one_before_is_not_read() {
        let index = index();
        let all = batches(&index);
        let mut head = Vec::new();
        begin(&mut head, &binding()).unwrap();
        let after_first = |batch: &PlacedBatch| {
            let mut bytes = head.clone();
            append(&mut bytes, &all[0], &index).unwrap();
            append(&mut bytes, batch, &index).unwrap();
            read(&bytes).unwrap().0.len()
        };
        assert_eq!(after_first(&all[1]), 2);
        assert_eq!(after_first(&all[0]), 1, "the same batch again");
        assert_eq!(after_first(&all[2]), 1, "a batch left out");
        let changed = |change: &dyn Fn(&mut PlacedBatch)| {
            let mut batch = all[1].clone();
            change(&mut batch);
            after_first(&batch)
        };
        assert_eq!(changed(&|batch| batch.address += 1), 1);
        assert_eq!(changed(&|batch| batch.tiles = 0), 1);
        assert_eq!(changed(&|batch| batch.tiles = 6), 1, "beyond the plan");
        assert_eq!(changed(&|batch| batch.stored_len_bytes += 1), 1);
        assert_eq!(changed(&|batch| batch.claims.swap(0, 1)), 1);
        assert_eq!(changed(&|batch| batch.verbatim_tiles = 4), 1);
    }

    #[test]
    fn lengths_that_lie_cost_no_memory() {
        let mut bytes = encode_u64s([u64::MAX, 0]);
        bytes.extend_from_slice(b"short");
        assert!(Journal::open(bytes.as_slice(), 0, START).unwrap().is_none());
    }

    #[test]
    fn a_difference_is_named() {
        let mut other = Binding::default();
        other.bind("the options", 1);
        assert_eq!(binding().difference(&binding()), None);
        assert_eq!(binding().difference(&other), Some("the inputs"));
        assert_eq!(other.difference(&binding()), Some("the inputs"));
        other.bind("the inputs", 3);
        assert_eq!(binding().difference(&other), Some("the inputs"));
    }
}
