//! Stored shards: consecutive chunks, each followed by a CRC-32C, then an index of their positions, also with a
//! CRC-32C.
//!
//! The placement of shards is planned elsewhere. Invariants: a chunk of only zeros, the fill value, is not stored; a
//! chunk is refused unless its checksum is correct and it decodes to exactly its length.
//!
//! Source: Zarr sharding codec 1.0 (`index_location` end), codecs bytes, gzip, zstd and crc32c.

use super::fault::ZarrFault;
use super::layout::{ChunkCompression, ImageLayout};
use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::region::{SampleBox, copy_part};
use crate::dataset::sample::SampleType;
use crate::error::Result;
use raddle_codec::{CodecError, DecodeState, Effort, RawStreamCodec, RawStreamEncoder};
use raddle_core::plan::extent::product;

/// Length of the offset and length of a chunk in the index.
const ENTRY_LEN_BYTES: u64 = 16;

/// Length of a CRC-32C.
const CHECKSUM_LEN_BYTES: usize = 4;

/// Form of the shards of a field, at all levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardForm {
    pub(crate) sample: SampleType,
    /// Number of samples per axis of a chunk.
    pub(crate) chunk: Point,
    /// Number of samples per axis of a shard: whole chunks.
    pub(crate) shard: Point,
    pub(crate) compression: ChunkCompression,
    /// Whether a CRC-32C follows each chunk.
    pub(crate) has_checksums: bool,
    /// Number of samples per component plane: all samples of a chunk, or those of a time step, because components come
    /// after time in the order of axes.
    pub(crate) samples_per_plane: u64,
}

/// Position of a chunk in its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardEntry {
    pub(crate) offset: u64,
    pub(crate) len_bytes: u64,
}

impl ShardForm {
    /// Returns the form of the shards of a field.
    pub(crate) fn of(form: &ImageLayout, field: usize) -> Self {
        let samples = product(&form.chunk).unwrap_or(u64::MAX);
        let steps = if form.has_local_steps() { form.chunk[form.rank() - 1] } else { 1 };
        Self {
            sample: form.fields[field].1,
            chunk: form.chunk,
            shard: form.shard,
            compression: form.compression,
            has_checksums: true,
            samples_per_plane: samples / steps,
        }
    }

    /// Returns the number of chunks of a shard, per axis.
    fn grid(&self) -> Point {
        std::array::from_fn(|axis| self.shard[axis] / self.chunk[axis])
    }

    /// Returns the number of chunks of a shard.
    pub(crate) fn chunk_count(&self) -> u64 {
        product(&self.grid()).unwrap_or(u64::MAX)
    }

    /// Returns the length of the index, in bytes.
    pub(crate) fn index_len_bytes(&self) -> u64 {
        self.chunk_count().saturating_mul(ENTRY_LEN_BYTES).saturating_add(CHECKSUM_LEN_BYTES as u64)
    }

    /// Returns the length of a chunk before compression, in bytes.
    pub(crate) fn chunk_len_bytes(&self) -> usize {
        // The form was checked: it fits 32 bits.
        product(&self.chunk).unwrap_or(0) as usize * self.sample.len_bytes()
    }

    /// Returns the samples of the shard at `number`, including those beyond the array.
    pub(crate) fn shard_box(&self, number: &Point) -> SampleBox {
        let start: Point = std::array::from_fn(|axis| number[axis] * self.shard[axis]);
        SampleBox { start, end: std::array::from_fn(|axis| start[axis].saturating_add(self.shard[axis])) }
    }

    /// Returns the samples of chunk number `chunk` of a shard.
    pub(crate) fn chunk_box(&self, shard: &SampleBox, chunk: u64) -> SampleBox {
        let (grid, mut rest) = (self.grid(), chunk);
        let mut start = shard.start;
        for axis in 0..MAX_RANK {
            start[axis] += rest % grid[axis] * self.chunk[axis];
            rest /= grid[axis];
        }
        SampleBox { start, end: std::array::from_fn(|axis| start[axis] + self.chunk[axis]) }
    }

    /// Returns the number of chunks that hold samples of `region`, which starts at the first sample of a shard and lies
    /// in it.
    fn chunks_in(&self, region: &SampleBox) -> u64 {
        let counts = region.counts();
        (0..MAX_RANK).map(|axis| counts[axis].div_ceil(self.chunk[axis])).product()
    }

    /// Returns the maximum length of a stored chunk, in bytes.
    pub(crate) fn chunk_bound_len_bytes(&self, encoder: &ChunkEncoder) -> u64 {
        let len_bytes = self.chunk_len_bytes();
        let bound = encoder.encoder.as_ref().map_or(len_bytes, |encoder| encoder.bound_len_bytes(len_bytes));
        (bound + CHECKSUM_LEN_BYTES) as u64
    }

    /// Returns the maximum length of a shard with the samples of `region`, from the maximum length of its chunks, in
    /// bytes.
    pub(crate) fn stored_bound_len_bytes(&self, region: &SampleBox, chunk_bound_len_bytes: u64) -> usize {
        let chunks = self.chunks_in(region).saturating_mul(chunk_bound_len_bytes);
        let len_bytes = chunks.saturating_add(self.index_len_bytes());
        usize::try_from(len_bytes).unwrap_or(usize::MAX)
    }

    /// Appends a shard with the samples `region` of the array, x fastest; returns whether it holds anything other than
    /// the fill value. If not, nothing is appended.
    pub(crate) fn append(
        &self,
        encoder: &mut ChunkEncoder,
        region: &SampleBox,
        samples: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let begin = out.len();
        let shard = SampleBox {
            start: region.start,
            end: std::array::from_fn(|axis| region.start[axis].saturating_add(self.shard[axis])),
        };
        let mut entries = vec![None; self.chunk_count() as usize];
        encoder.raw.resize(self.chunk_len_bytes(), 0);
        for (number, entry) in (0..).zip(&mut entries) {
            let chunk = self.chunk_box(&shard, number);
            let Some(part) = chunk.intersection(region) else { continue };
            if part != chunk {
                encoder.raw.fill(0);
            }
            copy_part((region, samples), (&chunk, &mut encoder.raw), &part, self.sample.len_bytes())?;
            if is_zero(&encoder.raw) {
                continue;
            }
            let offset = out.len() - begin;
            encoder.append(self, out).map_err(crate::error::IdxError::Encode)?;
            *entry = Some(ShardEntry { offset: offset as u64, len_bytes: (out.len() - begin - offset) as u64 });
        }
        if entries.iter().all(Option::is_none) {
            return Ok(false);
        }
        let index = out.len();
        for entry in entries {
            let words = entry.map_or([u64::MAX; 2], |entry| [entry.offset, entry.len_bytes]);
            words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        }
        let checksum = crc32c(&out[index..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        Ok(true)
    }

    /// Parses the index of a shard of `shard_len_bytes`.
    ///
    /// # Errors
    /// If the checksum is wrong, or an entry lies outside the shard.
    pub(crate) fn entries(&self, index: &[u8], shard_len_bytes: u64) -> Result<Vec<Option<ShardEntry>>, ZarrFault> {
        let Some((index, checksum)) = index.split_last_chunk::<CHECKSUM_LEN_BYTES>() else {
            return Err(ZarrFault::Index { reason: "is cut off" });
        };
        if crc32c(index) != u32::from_le_bytes(*checksum) {
            return Err(ZarrFault::Index { reason: "has a wrong checksum" });
        }
        let end = shard_len_bytes.saturating_sub(self.index_len_bytes());
        let (words, _) = index.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let entry = |(chunk, words): (usize, &[u64; 2])| match *words {
            [u64::MAX, u64::MAX] => Ok(None),
            [offset, len_bytes] if offset.checked_add(len_bytes).is_some_and(|last| last <= end) => {
                Ok(Some(ShardEntry { offset, len_bytes }))
            }
            [offset, len_bytes] => Err(ZarrFault::Outside { chunk, offset, len_bytes, shard_len_bytes }),
        };
        words.as_chunks::<2>().0.iter().enumerate().map(entry).collect()
    }

    /// Decodes chunk number `chunk` of a shard into its numbers, x fastest, one plane per component.
    ///
    /// # Errors
    /// If the stored bytes do not decode to a chunk.
    pub(crate) fn decode<'d>(
        &self,
        decoder: &'d mut ChunkDecoder,
        chunk: usize,
        stored: &[u8],
    ) -> Result<&'d [u8], ZarrFault> {
        let stored = match self.has_checksums {
            false => stored,
            true => match stored.split_last_chunk::<CHECKSUM_LEN_BYTES>() {
                Some((data, checksum)) if crc32c(data) == u32::from_le_bytes(*checksum) => data,
                _ => return Err(ZarrFault::Checksum { chunk }),
            },
        };
        let want_bytes = self.chunk_len_bytes();
        let codec = match self.compression {
            ChunkCompression::None => None,
            ChunkCompression::Gzip => Some(RawStreamCodec::Gzip),
            ChunkCompression::Zstd => Some(RawStreamCodec::Zstd),
        };
        match codec {
            None if stored.len() != want_bytes => {
                return Err(ZarrFault::Length { chunk, got_bytes: stored.len(), want_bytes });
            }
            None => {
                decoder.raw.clear();
                decoder.raw.extend_from_slice(stored);
            }
            Some(codec) => {
                let fault = |source| ZarrFault::Codec { chunk, source };
                codec.check_stored(stored.len(), want_bytes).map_err(fault)?;
                decoder.raw.resize(want_bytes, 0);
                codec.decode(&mut decoder.state, stored, &mut decoder.raw).map_err(fault)?;
            }
        }
        Ok(&decoder.raw)
    }

    /// Calls `each` with the positions of every number of a chunk: in the interleaved samples, and in planes of
    /// components.
    fn each_plane(&self, mut each: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>)) {
        let (number_len, components) = (self.sample.number.len_bytes(), self.sample.count);
        let of_plane = self.samples_per_plane as usize;
        let planes = product(&self.chunk).unwrap_or(0) as usize / of_plane.max(1);
        for outer in 0..planes {
            for component in 0..components {
                for inner in 0..of_plane {
                    let in_sample = ((outer * of_plane + inner) * components + component) * number_len;
                    let in_plane = ((outer * components + component) * of_plane + inner) * number_len;
                    each(in_sample..in_sample + number_len, in_plane..in_plane + number_len);
                }
            }
        }
    }
}

/// Chunk compressor; one per thread.
#[derive(Debug)]
pub(crate) struct ChunkEncoder {
    encoder: Option<RawStreamEncoder>,
    /// Samples of a chunk.
    raw: Vec<u8>,
    /// Samples of the chunk, as planes of components.
    planes: Vec<u8>,
}

impl ChunkEncoder {
    pub(crate) fn new(compression: ChunkCompression, effort: Effort) -> Result<Self, CodecError> {
        let encoder = match compression {
            ChunkCompression::None => None,
            ChunkCompression::Gzip => Some(RawStreamEncoder::gzip(gzip_level(effort))?),
            ChunkCompression::Zstd => Some(RawStreamEncoder::zstd(zstd_level(effort))?),
        };
        Ok(Self { encoder, raw: Vec::new(), planes: Vec::new() })
    }

    /// Appends the chunk in `raw`.
    fn append(&mut self, form: &ShardForm, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let (start, Self { encoder, raw, planes }) = (out.len(), self);
        let data = match form.sample.count {
            1 => raw,
            _ => {
                planes.resize(raw.len(), 0);
                form.each_plane(|sample, plane| planes[plane].copy_from_slice(&raw[sample]));
                planes
            }
        };
        match encoder {
            None => out.extend_from_slice(data),
            Some(encoder) => encoder.encode(data, out)?,
        }
        let checksum = crc32c(&out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        Ok(())
    }
}

/// Returns libdeflate's level for an effort, the same as for the IDX blocks.
fn gzip_level(effort: Effort) -> u8 {
    match effort {
        Effort::Fast => 1,
        Effort::Small => 9,
        Effort::Gzip(level) | Effort::Like(level) => level,
        _ => 6,
    }
}

/// Returns zstd's level, which is also the level in metadata.
pub(crate) fn zstd_level(effort: Effort) -> i32 {
    match effort {
        Effort::Fast => 1,
        Effort::Small => 15,
        Effort::Gzip(level) | Effort::Like(level) => level.into(),
        _ => 3,
    }
}

/// Returns the level in metadata, from 0 to 9.
pub(crate) fn named_gzip_level(effort: Effort) -> u8 {
    gzip_level(effort).min(9)
}

/// Chunk decompressor; one per thread.
#[derive(Default)]
pub(crate) struct ChunkDecoder {
    state: DecodeState,
    raw: Vec<u8>,
}

fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<16>();
    words.iter().all(|word| *word == [0; 16]) && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn form(sample: &str, compression: ChunkCompression, samples_per_plane: u64) -> ShardForm {
        let (chunk, shard) = ([3, 2, 2, 1, 1], [6, 6, 4, 1, 1]);
        ShardForm { sample: sample.parse().unwrap(), chunk, shard, compression, has_checksums: true, samples_per_plane }
    }

    #[test]
    fn the_checksum_is_crc32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn components_are_apart() {
        let form = ShardForm { chunk: [2, 1, 2, 1, 1], ..form("uint8[2]", ChunkCompression::None, 2) };
        let form = ShardForm { shard: form.chunk, ..form };
        let region = SampleBox::new(&[0, 0, 0], &[2, 1, 2]);
        let mut out = Vec::new();
        let mut encoder = ChunkEncoder::new(form.compression, Effort::Balanced).unwrap();
        assert!(form.append(&mut encoder, &region, &[1, 2, 3, 4, 5, 6, 7, 8], &mut out).unwrap());
        assert_eq!(out[..8], [1, 3, 2, 4, 5, 7, 6, 8]);
    }

    #[test]
    fn damage_is_found() {
        let form = form("uint16", ChunkCompression::Zstd, 12);
        let region = SampleBox::new(&[0, 6, 4], &[5, 4, 4]);
        let samples: Vec<u8> = (1..=160).collect();
        let mut encoder = ChunkEncoder::new(form.compression, Effort::Balanced).unwrap();
        let mut out = Vec::new();
        form.append(&mut encoder, &region, &samples, &mut out).unwrap();
        let index = out.split_off(out.len() - form.index_len_bytes() as usize);
        let len_bytes = (out.len() + index.len()) as u64;
        let entries = form.entries(&index, len_bytes).unwrap();
        assert_eq!(entries.iter().flatten().count(), 8, "those beyond the array are not stored");
        for byte in 0..index.len() {
            let mut damaged = index.clone();
            damaged[byte] ^= 1;
            assert!(form.entries(&damaged, len_bytes).is_err());
        }
        assert!(matches!(form.entries(&index, len_bytes - 1), Err(ZarrFault::Outside { .. })));
        assert!(matches!(form.entries(&[], 0), Err(ZarrFault::Index { .. })));
        let Some(ShardEntry { offset, len_bytes }) = entries[0] else { panic!("no first chunk") };
        let mut chunk = out[offset as usize..][..len_bytes as usize].to_vec();
        for byte in 0..chunk.len() {
            chunk[byte] ^= 1;
            assert!(form.decode(&mut ChunkDecoder::default(), 0, &chunk).is_err());
            chunk[byte] ^= 1;
        }
        let unchecked = ShardForm { has_checksums: false, compression: ChunkCompression::None, ..form };
        assert!(unchecked.decode(&mut ChunkDecoder::default(), 0, &[0; 23]).is_err());
        assert!(unchecked.decode(&mut ChunkDecoder::default(), 0, &[0; 24]).is_ok());
    }

    proptest! {
        #[test]
        fn shards_come_back(
            counts in (1u64..7, 1u64..7, 1u64..5),
            values in prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>()], 6 * 6 * 4 * 2),
            kind in 0usize..3,
        ) {
            let compression = [ChunkCompression::None, ChunkCompression::Gzip, ChunkCompression::Zstd][kind];
            let form = form("uint16", compression, 12);
            let region = SampleBox::new(&[12, 0, 8], &[counts.0, counts.1, counts.2]);
            let samples = &values[..region.sample_count().unwrap() as usize * 2];
            let mut encoder = ChunkEncoder::new(compression, Effort::Balanced).unwrap();
            let bound = form.stored_bound_len_bytes(&region, form.chunk_bound_len_bytes(&encoder));
            let mut out = Vec::with_capacity(bound);
            let before = out.as_ptr();
            let is_stored = form.append(&mut encoder, &region, samples, &mut out).unwrap();
            prop_assert_eq!(is_stored, samples.iter().any(|byte| *byte != 0));
            prop_assert!(out.len() <= bound && out.as_ptr() == before);
            let mut back = vec![0; samples.len()];
            if is_stored {
                let index = &out[out.len() - form.index_len_bytes() as usize..];
                let shard = form.shard_box(&[2, 0, 2, 0, 0]);
                let mut decoder = ChunkDecoder::default();
                for (number, entry) in form.entries(index, out.len() as u64).unwrap().into_iter().enumerate() {
                    let Some(ShardEntry { offset, len_bytes }) = entry else { continue };
                    let stored = &out[offset as usize..][..len_bytes as usize];
                    let chunk = form.chunk_box(&shard, number as u64);
                    let raw = form.decode(&mut decoder, number, stored).unwrap();
                    let part = chunk.intersection(&region).unwrap();
                    copy_part((&chunk, raw), (&region, &mut back), &part, 2).unwrap();
                }
            }
            prop_assert_eq!(&back, samples);
        }
    }
}
