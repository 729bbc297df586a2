//! Inflater for zlib streams of columns of numbers: matches of a few bytes with literals in between, in unpredictable
//! order.
//!
//! Streams that are mostly literals are left to libdeflate, which decodes them equally fast. Streams that repeat are
//! left to `super::runs`. Short streams are left to other decoders, because their codes change before the tables pay
//! off. A length and its distance are looked up at once, and a step is the same for literals and matches: one load, one
//! store, and no branch that could be mispredicted.

mod lane;
mod steps;
mod table;
#[cfg(test)]
mod tests;

use lane::{Lane, Word, word_at};
use table::JointTable;

use crate::codes::{self, BlockStart, Codes};
use crate::runs::RepetitiveInflater;
use crate::stream::{BitSource, MIN_LEN_BYTES, MIN_STREAM_LEN_BYTES, has_avx2_and_bmi, is_sum_right, is_zlib};

/// Minimum length of a stream. Most shorter ones that are mostly repetitions are decoded faster by libdeflate.
const MIN_STORED_LEN_BYTES: usize = 1 << 13;

/// Length of output for which inflating takes as long as building the tables of a block. Streams with shorter blocks on
/// average are left to libdeflate.
const MIN_BLOCK_LEN_BYTES: usize = 1 << 13;

/// Number of blocks of any length that are accepted, because a stream may begin or end with short ones.
const SHORT_BLOCKS: usize = 8;

/// Maximum length of words in the tables; longer ones are searched by length.
const MAX_TABLE_BITS: u32 = 12;

/// Maximum number of streams that are inflated interleaved.
pub(crate) const LANES: usize = 2;

/// Inflater whose tables are reused from stream to stream.
pub(crate) struct InterleavedInflater {
    tables: [Tables; LANES],
}

struct Tables {
    codes: Codes,
    joint: JointTable,
}

impl InterleavedInflater {
    /// Creates an inflater; returns `None` on processors without the instructions for the steps, where libdeflate is
    /// faster.
    pub(crate) fn new() -> Option<Box<Self>> {
        let tables = || Tables { codes: Codes::new(), joint: JointTable::new() };
        has_avx2_and_bmi().then(|| Box::new(Self { tables: [tables(), tables()] }))
    }

    /// Returns whether a stream that is to fill `limit_len_bytes` may be of the kind that is inflated faster here.
    pub(crate) fn is_for(stored: &[u8], limit_len_bytes: usize) -> bool {
        let has_matches = stored.len() <= limit_len_bytes / 8 * 5;
        has_matches && limit_len_bytes >= 2 * MIN_LEN_BYTES && Self::prefers_pairs(stored, limit_len_bytes)
    }

    /// Like [`InterleavedInflater::is_for`], for one of two streams that are inflated interleaved.
    pub(crate) fn prefers_pairs(stored: &[u8], limit_len_bytes: usize) -> bool {
        let is_long = stored.len() >= MIN_STORED_LEN_BYTES && limit_len_bytes >= MIN_LEN_BYTES;
        is_long && !RepetitiveInflater::is_for(stored, limit_len_bytes)
    }

    /// Inflates the zlib streams at the front of each of `stored` into the front of the respective `out`. Returns the
    /// number of bytes written, or `None` if the stream must be left to libdeflate; the contents of that `out` are then
    /// unspecified.
    ///
    /// # Panics
    /// If there are more than [`LANES`] streams.
    pub(crate) fn inflate<const STREAMS: usize>(
        &mut self,
        stored: [&[u8]; STREAMS],
        out: [&mut [u8]; STREAMS],
    ) -> [Option<usize>; STREAMS] {
        let mut out = out;
        // A single stream of literals and matches is decoded no faster than by libdeflate, and one of literals more
        // slowly.
        let max_literal_fraction = if STREAMS == 1 { 0.5 } else { 1.0 };
        let inflated = self.inflate_unsummed(stored, out.each_mut().map(|out| &mut **out), max_literal_fraction);
        std::array::from_fn(|at| {
            let (produced, sum_at) = inflated[at]?;
            is_sum_right(stored[at], sum_at, out[at].get(..produced)?).then_some(produced)
        })
    }

    /// Returns the number of bytes written and the position of the checksum, which may be beyond the end. Streams that
    /// begin with a larger share of literals than `max_literal_fraction` are refused.
    fn inflate_unsummed<const STREAMS: usize>(
        &mut self,
        stored: [&[u8]; STREAMS],
        out: [&mut [u8]; STREAMS],
        max_literal_fraction: f64,
    ) -> [Option<(usize, usize)>; STREAMS] {
        let mut tables = self.tables.iter_mut();
        let mut stored = stored.into_iter();
        let mut streams = out.map(|out| {
            let tables = tables.next().expect("no more streams than lanes");
            Stream::new(stored.next().expect("as many"), out, tables)
        });
        for stream in &mut streams {
            if stream.state == State::InBlock && stream.tables.joint.literal_share() > max_literal_fraction {
                stream.state = State::Refused;
            }
        }
        // SAFETY: the function is safe Rust; it only requires a processor with these three features, which `new` has
        // checked.
        unsafe { decode_all(streams.each_mut()) };
        streams.map(|stream| {
            (stream.state == State::Ended).then(|| (stream.lane.at.produced, stream.lane.at_bit().div_ceil(8)))
        })
    }
}

/// Decodes all streams to their ends: interleaved until the first of them ends, then one after the other.
#[target_feature(enable = "bmi1,bmi2,avx2")]
fn decode_all<const STREAMS: usize>(mut streams: [&mut Stream<'_>; STREAMS]) {
    decode_in_turn(streams.each_mut().map(|stream| &mut **stream));
    for stream in streams {
        decode_in_turn([stream]);
    }
}

#[target_feature(enable = "bmi1,bmi2,avx2")]
fn decode_in_turn<const STREAMS: usize>(mut streams: [&mut Stream<'_>; STREAMS]) {
    while streams.iter().all(|stream| stream.state == State::InBlock) {
        let lanes = streams.each_mut().map(|stream| (&mut stream.lane, &stream.tables.joint));
        let stopped = steps::steps(lanes);
        streams[stopped].word();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InBlock,
    Ended,
    /// The stream cannot be inflated here.
    Refused,
}

/// A stream that is being decoded.
struct Stream<'a> {
    stored: &'a [u8],
    lane: Lane<'a>,
    tables: &'a mut Tables,
    /// Number of blocks with codes that have begun.
    blocks: usize,
    is_last_block: bool,
    state: State,
}

impl<'a> Stream<'a> {
    fn new(stored: &'a [u8], out: &'a mut [u8], tables: &'a mut Tables) -> Self {
        let lane = Lane::new(stored, out);
        let mut stream = Self { stored, lane, tables, blocks: 0, is_last_block: false, state: State::Refused };
        if stored.len() >= MIN_STREAM_LEN_BYTES && is_zlib(stored[0], stored[1]) {
            stream.begin_block(16);
        }
        stream
    }

    /// Reads a block's header; copies the stored blocks before it.
    fn begin_block(&mut self, mut at_bit: usize) {
        self.state = State::Refused;
        while let Some((end_bit, is_last)) = self.stored_block(at_bit) {
            at_bit = end_bit;
            if is_last {
                self.lane.seek(at_bit);
                self.state = State::Ended;
                return;
            }
        }
        self.blocks += 1;
        if self.blocks > SHORT_BLOCKS + self.lane.at.produced / MIN_BLOCK_LEN_BYTES {
            return;
        }
        let Some(start) = self.tables.codes.read(&Bits(self.stored), at_bit, MAX_TABLE_BITS) else { return };
        let BlockStart { litlen, distance, at_bit, is_last } = start;
        // An empty block may be followed by another: only the end of the stream ends the sequence.
        if at_bit <= 8 * self.stored.len() {
            self.tables.joint.build(litlen, distance);
            self.lane.seek(at_bit);
            self.is_last_block = is_last;
            self.state = State::InBlock;
        }
    }

    /// Copies a stored block; returns the bit after it and whether it is the last. Returns `None` if it is not a stored
    /// block, or damaged.
    fn stored_block(&mut self, at_bit: usize) -> Option<(usize, bool)> {
        let head = Bits(self.stored).low_first(at_bit);
        let at = (at_bit + codes::BLOCK_HEAD_BITS).div_ceil(8);
        let (&[low, high, not_low, not_high], rest) = self.stored.get(at..)?.split_first_chunk()?;
        if head >> 1 & 3 != 0 || (low, high) != (!not_low, !not_high) {
            return None;
        }
        let len_bytes = usize::from(u16::from_le_bytes([low, high]));
        self.lane.append(rest.get(..len_bytes)?)?;
        Some((8 * (at + 4 + len_bytes), head & 1 == 1))
    }

    /// Decodes a word that cannot be a step.
    ///
    /// The stream is followed by zeros. Each word in them produces a byte or ends a block, so decoding ends when `out`
    /// is full, or before.
    fn word(&mut self) {
        let (litlen, distance) = self.tables.codes.at_hand();
        match self.lane.word(litlen, distance) {
            Some(Word::Data) => {}
            Some(Word::EndOfBlock) if self.is_last_block => self.state = State::Ended,
            Some(Word::EndOfBlock) => self.begin_block(self.lane.at_bit()),
            None => self.state = State::Refused,
        }
    }
}

/// Bits of a stream in memory, followed by zeros.
struct Bits<'a>(&'a [u8]);

impl BitSource for Bits<'_> {
    #[inline(always)]
    fn low_first(&self, at_bit: usize) -> u64 {
        word_at(self.0, at_bit / 8) >> (at_bit % 8)
    }

    #[inline(always)]
    fn high_first(&self, at_bit: usize) -> u64 {
        self.low_first(at_bit).reverse_bits()
    }
}
