//! Decodes a filter pipeline, from stored chunk bytes to chunk values of exactly the declared length.
//!
//! Files are read by the caller, who adds file, object and address to an error. Invariants: `chunk` is filled exactly
//! or an error is returned, whatever the bytes; no stage writes more than its limit, which follows from the declared
//! length, so that a decompression bomb costs no more memory than a valid chunk.

use crate::bitshuffle::Bitshuffle;
use crate::error::{CodecError, Result};
use crate::filter::{Filter, KnownFilter, display_name};
use crate::nbit::Nbit;
use crate::scaleoffset::ScaleOffset;
use crate::szip::Szip;
use crate::zstd::ZstdDecoder;
use crate::{blosc, bzip2, fletcher32, lz4, lzf, shuffle};
use raddle_inflate::Inflater;

/// Maximum number of filters in HDF5 (H5Z_MAX_NFILTERS): a filter mask has 32 bits.
pub const MAX_FILTERS: usize = 32;

/// A filter pipeline, ready to decode. It is immutable, so one serves all threads, each of which has its own
/// [`DecodeState`].
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// Stages in the order in which the writer applied them.
    stages: Vec<FilterStage>,
}

/// One filter with its parsed parameters.
#[derive(Debug, Clone)]
enum FilterStage {
    Deflate,
    Shuffle {
        element_len_bytes: usize,
    },
    Fletcher32,
    Szip(Szip),
    Nbit(Nbit),
    ScaleOffset(ScaleOffset),
    Bzip2,
    Lzf,
    Blosc,
    Lz4,
    Bitshuffle(Bitshuffle),
    Zstd,
    /// An optional filter whose parameters are wrong. libhdf5 stores none for data to which a filter does not apply,
    /// such as variable-length strings, and skips it in every chunk.
    Unusable {
        filter: KnownFilter,
        fault: &'static str,
    },
}

/// Known bounds of the data's length between two stages.
#[derive(Debug, Clone, Copy)]
enum StageLength {
    Exactly(usize),
    /// No valid encoder produces more.
    AtMost(usize),
}

/// Reused decompressors and buffers of one thread.
#[derive(Default)]
pub struct DecodeState {
    decoders: Decoders,
    /// Alternating input and output of the stages between the first and the last.
    scratch: [Vec<u8>; 2],
}

/// Maximum ratio of deflate: a match of 258 bytes in two bits.
pub(crate) const MAX_DEFLATE_RATIO: usize = 1032;

#[derive(Default)]
struct Decoders {
    inflater: Option<Inflater>,
    zstd: ZstdDecoder,
    /// A block or a chunk before its bytes are reordered, inside one stage.
    scratch: Vec<u8>,
}

impl DecodeState {
    pub(crate) fn inflater(&mut self) -> Result<&mut Inflater> {
        inflater(&mut self.decoders.inflater)
    }

    pub(crate) fn zstd(&mut self) -> &mut ZstdDecoder {
        &mut self.decoders.zstd
    }
}

/// Returns the inflater, created on first use.
fn inflater(slot: &mut Option<Inflater>) -> Result<&mut Inflater> {
    match slot {
        Some(inflater) => Ok(inflater),
        none => Ok(none.insert(Inflater::new()?)),
    }
}

impl std::fmt::Debug for DecodeState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scratch_len_bytes = self.scratch[0].len() + self.scratch[1].len() + self.decoders.scratch.len();
        formatter.debug_struct("DecodeState").field("scratch_len_bytes", &scratch_len_bytes).finish_non_exhaustive()
    }
}

impl Pipeline {
    /// Parses the filters of a dataset whose elements have `element_len_bytes`.
    ///
    /// # Errors
    /// If raddle does not know a filter, even an optional one (its chunks could not be read), if parameters contradict
    /// the filter or the element, or if there are more than 32 filters.
    pub fn new(filters: &[Filter], element_len_bytes: usize) -> Result<Self> {
        if filters.len() > MAX_FILTERS {
            return Err(CodecError::TooManyFilters { count: filters.len(), limit: MAX_FILTERS });
        }
        let stages = filters.iter().map(|filter| FilterStage::new(filter, element_len_bytes)).collect::<Result<_>>()?;
        Ok(Self { stages })
    }

    /// Returns whether there are no filters, in which case chunks are stored unchanged.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Decodes `stored` into `chunk`, whose length is the declared chunk size.
    ///
    /// Bit i of `filter_mask` means that filter i was not applied to this chunk.
    ///
    /// # Errors
    /// If the bytes do not decode to exactly `chunk.len()` bytes, or a checksum does not match. The contents of `chunk`
    /// are then unspecified.
    pub fn decode(&self, state: &mut DecodeState, stored: &[u8], filter_mask: u32, chunk: &mut [u8]) -> Result<()> {
        let length = StageLength::Exactly(chunk.len());
        self.undo(state, stored, filter_mask, chunk, length).map(drop)
    }

    /// Returns whether [`Pipeline::decode_pair`] may be faster than two calls of [`Pipeline::decode`] for chunks of
    /// `chunk_len_bytes`.
    pub fn prefers_pairs(&self, chunk_len_bytes: usize) -> bool {
        let is_deflated =
            matches!(self.stages[..], [FilterStage::Deflate] | [FilterStage::Shuffle { .. }, FilterStage::Deflate]);
        is_deflated && chunk_len_bytes >= Inflater::MIN_PAIR_LEN_BYTES
    }

    /// Like [`Pipeline::decode`], for two chunks to which all filters were applied. It is faster than two calls if the
    /// chunks are deflated, whether or not they are shuffled.
    ///
    /// # Errors
    /// As for [`Pipeline::decode`], for each.
    pub fn decode_pair(&self, state: &mut DecodeState, stored: [&[u8]; 2], chunks: [&mut [u8]; 2]) -> [Result<()>; 2] {
        let mut chunks = chunks;
        let lengths = chunks.each_ref().map(|chunk| StageLength::Exactly(chunk.len()));
        let DecodeState { decoders, scratch } = state;
        let inflated = match (self.stages.as_slice(), inflater(&mut decoders.inflater)) {
            ([FilterStage::Deflate], Ok(inflater)) => inflater.inflate_pair(stored, chunks),
            ([FilterStage::Shuffle { element_len_bytes }, FilterStage::Deflate], Ok(inflater)) => {
                for (scratch, chunk) in scratch.iter_mut().zip(&chunks) {
                    if scratch.len() < chunk.len() {
                        scratch.resize(chunk.len(), 0);
                    }
                }
                let [first, second] = scratch;
                let mut shuffled = [&mut first[..chunks[0].len()], &mut second[..chunks[1].len()]];
                let inflated = inflater.inflate_pair(stored, shuffled.each_mut().map(|shuffled| &mut **shuffled));
                for (at, chunk) in chunks.iter_mut().enumerate() {
                    if inflated[at] == Ok(chunk.len()) {
                        shuffle::unshuffle(shuffled[at], *element_len_bytes, chunk);
                    }
                }
                inflated
            }
            _ => {
                let [first, second] = &mut chunks;
                return [self.decode(state, stored[0], 0, first), self.decode(state, stored[1], 0, second)];
            }
        };
        std::array::from_fn(|at| lengths[at].check(KnownFilter::Deflate, inflated[at]?))
    }

    /// Returns the maximum memory that a [`DecodeState`] holds for chunks of `chunk_len_bytes`, one after the other.
    pub fn state_len_bytes(&self, chunk_len_bytes: usize) -> usize {
        let lengths = self.lengths(0, StageLength::Exactly(chunk_len_bytes));
        let longest = lengths[..self.stages.len()].iter().map(|length| length.cap()).max().unwrap_or(0);
        // The last decoding stage writes values to their destination, and checksums are removed in place.
        let between = self.stages.iter().skip(1).filter(|stage| !matches!(stage, FilterStage::Fletcher32)).count();
        let inside = self
            .stages
            .iter()
            .any(|stage| matches!(stage, FilterStage::Szip(_) | FilterStage::Blosc | FilterStage::Bitshuffle(_)));
        longest.saturating_mul(between.min(2) + usize::from(inside))
    }

    /// Returns the maximum length of the stored form of a chunk of `chunk_len_bytes`: no valid encoder produces more.
    pub fn stored_bound_len_bytes(&self, chunk_len_bytes: usize) -> usize {
        let after = |length, stage: &FilterStage| stage.length_after(length);
        self.stages.iter().fold(StageLength::Exactly(chunk_len_bytes), after).cap()
    }

    /// Decodes the complete pipeline without a declared length: writes to the front of `out` and returns the number of
    /// bytes written.
    ///
    /// # Errors
    /// As for [`Pipeline::decode`]; [`CodecError::TooLong`] if a larger buffer may help.
    pub fn decode_at_most(&self, state: &mut DecodeState, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        let length = StageLength::AtMost(out.len());
        self.undo(state, stored, 0, out, length)
    }

    /// Decodes the pipeline into the front of `chunk`; `length` is the length of the data before the first filter.
    fn undo(
        &self,
        state: &mut DecodeState,
        stored: &[u8],
        filter_mask: u32,
        chunk: &mut [u8],
        length: StageLength,
    ) -> Result<usize> {
        let DecodeState { decoders, scratch: [front, back] } = state;
        // The usual pipeline of small chunks: a single stage, without lengths between stages.
        if let ([stage], 0) = (self.stages.as_slice(), filter_mask) {
            let written = stage.decode(decoders, stored, chunk)?;
            return length.check(stage.filter(), written).map(|()| written);
        }
        let lengths = self.lengths(filter_mask, length);
        // The longer buffer is written first: with two filters the other one stays empty.
        if back.len() < front.len() {
            std::mem::swap(front, back);
        }
        // Location of the data after the stages decoded so far: the first `len_bytes` of `stored` or of `front`.
        let (mut in_front, mut len_bytes) = (false, stored.len());
        for (index, stage) in self.stages.iter().enumerate().rev() {
            if is_masked(filter_mask, index) {
                continue;
            }
            let input = if in_front { &front[..len_bytes] } else { &stored[..len_bytes] };
            let length = lengths[index];
            let is_last = !(0..index).any(|earlier| !is_masked(filter_mask, earlier));
            if is_last {
                let written = stage.decode(decoders, input, chunk)?;
                return length.check(stage.filter(), written).map(|()| written);
            }
            if matches!(stage, FilterStage::Fletcher32) {
                len_bytes = fletcher32::verify(input)?.len();
            } else {
                let cap = length.cap();
                if back.len() < cap {
                    back.resize(cap, 0);
                }
                len_bytes = stage.decode(decoders, input, &mut back[..cap])?;
                std::mem::swap(front, back);
                in_front = true;
            }
            length.check(stage.filter(), len_bytes)?;
        }
        // No filter was applied.
        if stored.len() != chunk.len() {
            return Err(CodecError::RawLength { expected_len_bytes: chunk.len(), actual_len_bytes: stored.len() });
        }
        chunk.copy_from_slice(stored);
        Ok(stored.len())
    }

    /// Checks that this number of stored bytes can fill a chunk of `chunk_len_bytes`, whatever they are. Call it before
    /// allocating the chunk. It covers deflate, shuffle and checksums; other filters may produce any length from a few
    /// bytes.
    ///
    /// # Errors
    /// If the stored bytes are too few.
    pub fn check_stored(&self, stored_len_bytes: usize, filter_mask: u32, chunk_len_bytes: usize) -> Result<()> {
        let mut longest_len_bytes = stored_len_bytes;
        let mut longest_by = None;
        for (index, stage) in self.stages.iter().enumerate().rev() {
            match stage {
                _ if is_masked(filter_mask, index) => {}
                FilterStage::Shuffle { .. } | FilterStage::Fletcher32 => {}
                FilterStage::Deflate => {
                    longest_len_bytes = longest_len_bytes.saturating_mul(MAX_DEFLATE_RATIO);
                    longest_by = Some(stage.filter());
                }
                _ => return Ok(()),
            }
        }
        match longest_by {
            Some(filter) if longest_len_bytes < chunk_len_bytes => Err(CodecError::Truncated { filter }),
            _ => Ok(()),
        }
    }

    /// Returns for each stage the length of the data before the writer applied it, which is the length that decoding
    /// must produce.
    fn lengths(&self, filter_mask: u32, chunk: StageLength) -> [StageLength; MAX_FILTERS] {
        let mut lengths = [chunk; MAX_FILTERS];
        let mut length = chunk;
        for (index, stage) in self.stages.iter().enumerate() {
            lengths[index] = length;
            if !is_masked(filter_mask, index) {
                length = stage.length_after(length);
            }
        }
        lengths
    }
}

/// Returns whether bit `index` of the mask is set, in which case the filter was not applied.
fn is_masked(filter_mask: u32, index: usize) -> bool {
    filter_mask >> index & 1 == 1
}

impl StageLength {
    fn cap(self) -> usize {
        match self {
            Self::Exactly(len) | Self::AtMost(len) => len,
        }
    }

    fn check(self, filter: KnownFilter, actual_len_bytes: usize) -> Result<()> {
        match self {
            Self::Exactly(expected_len_bytes) if actual_len_bytes != expected_len_bytes => {
                Err(CodecError::Length { filter, expected_len_bytes, actual_len_bytes })
            }
            _ => Ok(()),
        }
    }
}

impl FilterStage {
    fn new(filter: &Filter, element_len_bytes: usize) -> Result<Self> {
        let is_optional = filter.optional;
        match Self::parse(filter, element_len_bytes) {
            Err(CodecError::Parameters { filter, fault }) if is_optional => Ok(Self::Unusable { filter, fault }),
            parsed => parsed,
        }
    }

    fn parse(filter: &Filter, element_len_bytes: usize) -> Result<Self> {
        let unknown = || CodecError::UnknownFilter { id: filter.id, name: display_name(filter) };
        let known = KnownFilter::from_id(filter.id).ok_or_else(unknown)?;
        Ok(match known {
            KnownFilter::Deflate => Self::Deflate,
            KnownFilter::Shuffle => match filter.parameters[..] {
                [element_len_bytes] if element_len_bytes > 0 => {
                    Self::Shuffle { element_len_bytes: element_len_bytes as usize }
                }
                _ => return Err(CodecError::Parameters { filter: known, fault: "one element length is expected" }),
            },
            KnownFilter::Fletcher32 => Self::Fletcher32,
            KnownFilter::Szip => Self::Szip(Szip::new(&filter.parameters)?),
            KnownFilter::Nbit => Self::Nbit(Nbit::new(&filter.parameters, element_len_bytes)?),
            KnownFilter::ScaleOffset => Self::ScaleOffset(ScaleOffset::new(&filter.parameters, element_len_bytes)?),
            KnownFilter::Bzip2 => Self::Bzip2,
            KnownFilter::Lzf => Self::Lzf,
            KnownFilter::Blosc => Self::Blosc,
            KnownFilter::Lz4 => Self::Lz4,
            KnownFilter::Bitshuffle => Self::Bitshuffle(Bitshuffle::new(&filter.parameters)?),
            KnownFilter::Zstd => Self::Zstd,
        })
    }

    fn filter(&self) -> KnownFilter {
        match self {
            Self::Deflate => KnownFilter::Deflate,
            Self::Shuffle { .. } => KnownFilter::Shuffle,
            Self::Fletcher32 => KnownFilter::Fletcher32,
            Self::Szip(_) => KnownFilter::Szip,
            Self::Nbit(_) => KnownFilter::Nbit,
            Self::ScaleOffset(_) => KnownFilter::ScaleOffset,
            Self::Bzip2 => KnownFilter::Bzip2,
            Self::Lzf => KnownFilter::Lzf,
            Self::Blosc => KnownFilter::Blosc,
            Self::Lz4 => KnownFilter::Lz4,
            Self::Bitshuffle(_) => KnownFilter::Bitshuffle,
            Self::Zstd => KnownFilter::Zstd,
            Self::Unusable { filter, .. } => *filter,
        }
    }

    /// Returns the length of the data after filtering, given the length before.
    ///
    /// Compressors may lengthen data that they cannot shorten. Over all known filters, the largest additions by valid
    /// encoders are szip's option number of 3 bits for each 8 samples of 8 bits (1/21), bzip2's 1 % + 600 bytes, and
    /// LZ4's 1/255 with a 4-byte length for each block of at least 1 byte. An eighth and 4 KiB cover all sensible data.
    fn length_after(&self, before: StageLength) -> StageLength {
        const SLACK_LEN_BYTES: usize = 4096;
        match self {
            Self::Shuffle { .. } => before,
            Self::Fletcher32 => match before {
                StageLength::Exactly(len) => StageLength::Exactly(len.saturating_add(fletcher32::CHECKSUM_LEN_BYTES)),
                StageLength::AtMost(len) => StageLength::AtMost(len.saturating_add(fletcher32::CHECKSUM_LEN_BYTES)),
            },
            _ => {
                let len = before.cap();
                StageLength::AtMost(len.saturating_add(len / 8).saturating_add(SLACK_LEN_BYTES))
            }
        }
    }

    /// Decodes the filter: writes to the front of `out` and returns the number of bytes written.
    fn decode(&self, decoders: &mut Decoders, input: &[u8], out: &mut [u8]) -> Result<usize> {
        match self {
            Self::Deflate => Ok(inflater(&mut decoders.inflater)?.inflate(input, out)?),
            Self::Shuffle { element_len_bytes } => {
                let out = self.front(out, input.len())?;
                shuffle::unshuffle(input, *element_len_bytes, out);
                Ok(input.len())
            }
            Self::Fletcher32 => {
                let data = fletcher32::verify(input)?;
                self.front(out, data.len())?.copy_from_slice(data);
                Ok(data.len())
            }
            Self::Szip(szip) => szip.decode(&mut decoders.scratch, input, out),
            Self::Nbit(nbit) => nbit.decode(input, out),
            Self::ScaleOffset(scaleoffset) => scaleoffset.decode(input, out),
            Self::Bzip2 => bzip2::decode(input, out),
            Self::Lzf => lzf::decode(input, out),
            Self::Blosc => {
                let Decoders { inflater: slot, zstd, scratch } = decoders;
                blosc::decode(&mut blosc::Tools { inflater: inflater(slot)?, zstd, scratch }, input, out)
            }
            Self::Lz4 => lz4::decode(input, out),
            Self::Bitshuffle(bitshuffle) => bitshuffle.decode(&mut decoders.zstd, &mut decoders.scratch, input, out),
            Self::Zstd => decoders.zstd.decode(KnownFilter::Zstd, input, out),
            Self::Unusable { filter, fault } => Err(CodecError::Parameters { filter: *filter, fault }),
        }
    }

    /// Returns the first `len_bytes` of `out`, which must be at least that long.
    fn front<'a>(&self, out: &'a mut [u8], len_bytes: usize) -> Result<&'a mut [u8]> {
        let limit_len_bytes = out.len();
        out.get_mut(..len_bytes).ok_or(CodecError::TooLong { filter: self.filter(), limit_len_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effort, EncodeState, Encoder, EncoderOptions};

    #[test]
    fn a_state_holds_what_its_pipeline_says() {
        let raw = vec![7; 100_000];
        for (shuffle, fletcher32) in [(false, false), (true, false), (false, true), (true, true)] {
            let compression = Some(Effort::Fast.into());
            let options = EncoderOptions { compression, shuffle, fletcher32, element_len_bytes: 4 };
            let encoder = Encoder::new(&options);
            let mut stored = Vec::new();
            let mask = encoder.encode(&mut EncodeState::default(), &raw, &mut stored).unwrap();
            let pipeline = Pipeline::new(&encoder.filters(), 4).unwrap();
            let (mut state, mut chunk) = (DecodeState::default(), vec![0; raw.len()]);
            for _ in 0..4 {
                pipeline.decode(&mut state, &stored, mask, &mut chunk).unwrap();
            }
            assert_eq!(chunk, raw);
            let held: usize = state.scratch.iter().map(Vec::capacity).sum();
            assert!(held <= pipeline.state_len_bytes(raw.len()), "{shuffle} {fletcher32}: {held}");
            assert_eq!(held > 0, shuffle, "one buffer between two filters, none for one");
        }
    }
}
