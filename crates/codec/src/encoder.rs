//! Encoder of tiles: shuffles a tile, compresses it, and appends a fletcher32 checksum. For deflate, it chooses the
//! encoder that suits the data.
//!
//! Invariant: the stored bytes depend only on the options and the raw bytes, not on the state, the thread or earlier
//! tiles. A file is therefore the same however its tiles were distributed.

use crate::choice::{EncoderChoice, choose, zero_run_sparsity_len_bytes};
use crate::compression::{Compression, Effort};
use crate::element_lz::ElementLzEncoder;
use crate::error::Result;
use crate::filter::{Filter, KnownFilter};
use crate::fletcher32;
use crate::libdeflate::Deflater;
use crate::lz4;
use crate::planes::PlanesEncoder;
use crate::sampling::Sampler;
use crate::shuffle::shuffle;
use crate::zero_run::{self, ZeroRunEncoder};
use crate::zstd::{self, ZstdEncoder};

/// Options of an [`Encoder`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EncoderOptions {
    /// Compression; `None` means uncompressed.
    pub compression: Option<Compression>,
    /// Whether bytes are shuffled before compression.
    pub shuffle: bool,
    /// Whether the stored bytes get a checksum.
    pub fletcher32: bool,
    /// Element length of the dataset, for shuffle.
    pub element_len_bytes: usize,
}

/// Encoder of tiles with fixed options. It is immutable, so one serves all threads, each of which has its own
/// [`EncodeState`].
#[derive(Debug, Clone)]
pub struct Encoder {
    compression: Option<Compression>,
    /// Element length for shuffling, if shuffling has an effect.
    shuffle: Option<usize>,
    fletcher32: bool,
    element_len_bytes: usize,
}

/// Reused compressors and buffers of one thread.
#[derive(Default)]
pub struct EncodeState {
    /// Compressors, one for each level in use; a job has few.
    deflaters: Vec<Deflater>,
    zero_run: ZeroRunEncoder,
    element_lz: ElementLzEncoder,
    planes: PlanesEncoder,
    sampler: Sampler,
    /// Encoder of the job's single level.
    zstd: Option<ZstdEncoder>,
    shuffled: Vec<u8>,
}

impl std::fmt::Debug for EncodeState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let levels: Vec<u8> = self.deflaters.iter().map(Deflater::level).collect();
        formatter.debug_struct("EncodeState").field("levels", &levels).finish_non_exhaustive()
    }
}

impl Encoder {
    /// Creates an encoder with these options.
    pub fn new(options: &EncoderOptions) -> Self {
        // HDF5 stores an element length in 32 bits, and shuffling single bytes changes nothing.
        let shuffles =
            options.shuffle && options.element_len_bytes > 1 && u32::try_from(options.element_len_bytes).is_ok();
        Self {
            compression: options.compression.map(Compression::within_levels),
            shuffle: shuffles.then_some(options.element_len_bytes),
            fletcher32: options.fletcher32,
            element_len_bytes: options.element_len_bytes,
        }
    }

    /// Creates an encoder that only compresses.
    pub fn plain(compression: impl Into<Compression>, element_len_bytes: usize) -> Self {
        let compression = Some(compression.into());
        Self::new(&EncoderOptions { compression, shuffle: false, fletcher32: false, element_len_bytes })
    }

    /// Returns the compression; `None` means uncompressed.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Returns the filters that the dataset's pipeline must name, in order.
    ///
    /// Compression and shuffle are optional and fletcher32 is mandatory, as set by HDF5's own property list functions.
    pub fn filters(&self) -> Vec<Filter> {
        let filter = |known: KnownFilter, optional, parameters| Filter {
            id: known.id(),
            optional,
            name: known.name().as_bytes().to_vec(),
            parameters,
        };
        let mut filters = Vec::new();
        if let Some(element_len_bytes) = self.shuffle {
            filters.push(filter(KnownFilter::Shuffle, true, vec![element_len_bytes as u32]));
        }
        if let Some(compression) = self.compression {
            filters.push(filter(compression.known_filter(), true, compression.parameters()));
        }
        if self.fletcher32 {
            filters.push(filter(KnownFilter::Fletcher32, false, vec![]));
        }
        filters
    }

    /// Returns the spare capacity with which [`encode`](Self::encode) never reallocates its output for a tile of this
    /// length.
    pub fn bound_len_bytes(&self, raw_len_bytes: usize) -> usize {
        let compressed_len_bytes = match self.compression {
            Some(Compression::Lz4) => lz4::frame_bound_len_bytes(raw_len_bytes),
            _ => raw_len_bytes + zero_run::SLACK,
        };
        compressed_len_bytes + fletcher32::CHECKSUM_LEN_BYTES
    }

    /// Returns the maximum number of bytes that an [`EncodeState`] holds for tiles of this length, ignoring a few MiB.
    pub fn state_len_bytes(&self, raw_len_bytes: u64) -> u64 {
        let shuffled_len_bytes = if self.shuffle.is_some() && self.compression.is_some() { raw_len_bytes } else { 0 };
        let compressor_len_bytes = match self.compression {
            Some(Compression::Zstd(level)) => zstd::encoder_len_bytes(level, raw_len_bytes),
            _ => 0,
        };
        shuffled_len_bytes.saturating_add(compressor_len_bytes)
    }

    /// Appends the stored form of one tile to `out`; returns its filter mask.
    ///
    /// A tile that compression cannot shorten is stored unchanged, with the bits of shuffle and compression set in the
    /// mask, so that readers skip these filters.
    ///
    /// # Errors
    /// If memory for a compressor cannot be allocated.
    pub fn encode(&self, state: &mut EncodeState, raw: &[u8], out: &mut Vec<u8>) -> Result<u32> {
        let start = out.len();
        out.reserve(self.bound_len_bytes(raw.len()));
        let is_filtered = self.compress(state, raw, out)?;
        let mut filter_mask = 0;
        if !is_filtered {
            out.truncate(start);
            out.extend_from_slice(raw);
            let compressing = usize::from(self.shuffle.is_some()) + usize::from(self.compression.is_some());
            filter_mask = (1 << compressing) - 1;
        }
        if self.fletcher32 {
            fletcher32::append(out, start);
        }
        Ok(filter_mask)
    }

    /// Appends the shuffled and compressed tile if it is shorter than `raw`; otherwise returns false.
    fn compress(&self, state: &mut EncodeState, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let Some(compression) = self.compression else {
            if let Some(element_len_bytes) = self.shuffle {
                let start = out.len();
                out.resize(start + raw.len(), 0);
                shuffle(raw, element_len_bytes, &mut out[start..]);
            }
            return Ok(self.shuffle.is_some());
        };
        let mut shuffled = std::mem::take(&mut state.shuffled);
        let data = match self.shuffle {
            Some(element_len_bytes) => {
                shuffled.resize(raw.len(), 0);
                shuffle(raw, element_len_bytes, &mut shuffled);
                &shuffled[..]
            }
            None => raw,
        };
        let limit_len_bytes = raw.len().saturating_sub(1);
        let compressed = match compression {
            Compression::Deflate(effort) => self.deflate(state, effort, raw, data, out, limit_len_bytes),
            Compression::Zstd(level) => state.zstd(level.into())?.append(data, out, limit_len_bytes),
            Compression::Lz4 => lz4::append_frame(data, out, limit_len_bytes),
        };
        state.shuffled = shuffled;
        compressed
    }

    /// Deflates `data`, which is `raw` or `raw` shuffled, with the encoder that suits it.
    fn deflate(
        &self,
        state: &mut EncodeState,
        effort: Effort,
        raw: &[u8],
        data: &[u8],
        out: &mut Vec<u8>,
        limit_len_bytes: usize,
    ) -> Result<bool> {
        if let Some(sparsity_len_bytes) = zero_run_sparsity_len_bytes(effort)
            && state.zero_run.encode(data, sparsity_len_bytes, out, limit_len_bytes)
        {
            return Ok(true);
        }
        match choose(effort, raw, self.element_len_bytes, self.shuffle.is_some()) {
            EncoderChoice::Planes { level, plane_len_bytes } => {
                let EncodeState { deflaters, planes, .. } = state;
                Ok(planes.encode(data, plane_len_bytes, deflater(deflaters, level)?, out, limit_len_bytes))
            }
            EncoderChoice::ElementLz(elements) => Ok(state.element_lz.encode(data, elements, out, limit_len_bytes)),
            EncoderChoice::Libdeflate { level } => {
                Ok(deflater(&mut state.deflaters, level)?.deflate(data, out, limit_len_bytes))
            }
            EncoderChoice::Sampled { level, elements } => {
                let EncodeState { deflaters, element_lz, sampler, .. } = state;
                let deflater = deflater(deflaters, level)?;
                if sampler.prefers_element_lz(data, elements, element_lz, deflater) {
                    return Ok(element_lz.encode(data, elements, out, limit_len_bytes));
                }
                Ok(deflater.deflate(data, out, limit_len_bytes))
            }
        }
    }
}

impl EncodeState {
    fn zstd(&mut self, level: i32) -> Result<&mut ZstdEncoder> {
        let of_level = match self.zstd.take() {
            Some(encoder) if encoder.level() == level => encoder,
            _ => ZstdEncoder::new(level)?,
        };
        Ok(self.zstd.insert(of_level))
    }
}

/// Returns the compressor of a level, created on first use.
fn deflater(deflaters: &mut Vec<Deflater>, level: u8) -> Result<&mut Deflater> {
    let index = match deflaters.iter().position(|deflater| deflater.level() == level) {
        Some(index) => index,
        None => {
            deflaters.push(Deflater::new(level)?);
            deflaters.len() - 1
        }
    };
    Ok(&mut deflaters[index])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pipeline::{DecodeState, Pipeline};

    fn compressions() -> impl Strategy<Value = Option<Compression>> {
        prop_oneof![
            Just(None),
            Just(Some(Effort::Fast.into())),
            Just(Some(Effort::Balanced.into())),
            Just(Some(Effort::Small.into())),
            (0u8..=255).prop_map(|level| Some(Effort::Gzip(level).into())),
            (0u8..=255).prop_map(|level| Some(Effort::Like(level).into())),
            (0u8..=5).prop_map(|level| Some(Compression::Zstd(level))),
            Just(Some(Compression::Lz4)),
        ]
    }

    /// Generates dense, columnar and sparse bytes.
    fn tiles() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..2000),
            proptest::collection::vec(0u32..50, 0..2000).prop_map(|v| v.iter().flat_map(|v| v.to_le_bytes()).collect()),
            // Long enough to be sampled.
            (proptest::collection::vec(any::<u16>(), 1..9000), 1usize..9).prop_map(|(v, n)| v
                .repeat(n)
                .iter()
                .flat_map(|v| (f32::from(*v) / 8.0).to_le_bytes())
                .collect()),
            proptest::collection::vec((any::<u8>(), 0usize..500), 0..50)
                .prop_map(|v| v.iter().flat_map(|&(b, n)| [vec![b], vec![0; n]].concat()).collect()),
        ]
    }

    proptest! {
        #[test]
        fn every_tile_comes_back(
            compression in compressions(), shuffle: bool, fletcher32: bool, element_len_bytes in 1usize..10, raw in tiles(),
        ) {
            let encoder = Encoder::new(&EncoderOptions { compression, shuffle, fletcher32, element_len_bytes });
            let mut out = Vec::with_capacity(3 + encoder.bound_len_bytes(raw.len()));
            out.extend_from_slice(b"abc");
            let before = out.as_ptr();
            let mut state = EncodeState::default();
            let mask = encoder.encode(&mut state, &raw, &mut out).unwrap();
            prop_assert_eq!(before, out.as_ptr(), "the output was reallocated");
            prop_assert_eq!(&out[..3], b"abc");

            let mut again = Vec::new();
            prop_assert_eq!(encoder.encode(&mut state, &raw, &mut again).unwrap(), mask);
            prop_assert_eq!(&again[..], &out[3..], "the second time differs from the first");

            let pipeline = Pipeline::new(&encoder.filters(), element_len_bytes).unwrap();
            let mut back = vec![0xee; raw.len()];
            pipeline.decode(&mut DecodeState::default(), &out[3..], mask, &mut back).unwrap();
            prop_assert_eq!(back, raw);
        }
    }

    #[test]
    fn incompressible_tiles_are_masked() {
        let mut state = 7u64;
        let raw: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(4096)
        .collect();
        for compression in [Effort::Balanced.into(), Compression::Zstd(3), Compression::Lz4] {
            let compression = Some(compression);
            let options = EncoderOptions { compression, shuffle: true, fletcher32: true, element_len_bytes: 4 };
            let mut out = Vec::new();
            let mask = Encoder::new(&options).encode(&mut EncodeState::default(), &raw, &mut out).unwrap();
            assert_eq!(mask, 0b011);
            assert_eq!(out.len(), raw.len() + 4);
            assert_eq!(out[..raw.len()], raw);
        }
    }

    #[test]
    fn what_is_like_a_level_gets_the_encoder_that_packs_as_well() {
        let raw: Vec<u8> = (0..4000u32).flat_map(|i| (i % 50 * u32::from(i % 7 == 0)).to_le_bytes()).collect();
        let encode = |effort: Effort| {
            let mut out = Vec::new();
            Encoder::plain(effort, 4).encode(&mut EncodeState::default(), &raw, &mut out).unwrap();
            out
        };
        assert_eq!(encode(Effort::Like(6)), encode(Effort::Balanced));
        assert_ne!(encode(Effort::Like(6)), encode(Effort::Gzip(6)));
        assert_eq!(encode(Effort::Like(9)), encode(Effort::Gzip(9)));
    }

    #[test]
    fn the_pipeline_is_named_in_order() {
        let brief = |compression: Compression| -> Vec<_> {
            let compression = Some(compression);
            let options = EncoderOptions { compression, shuffle: true, fletcher32: true, element_len_bytes: 8 };
            let filters = Encoder::new(&options).filters();
            filters.into_iter().map(|filter| (filter.id, filter.optional, filter.parameters)).collect()
        };
        let (shuffle, fletcher32) = ((2, true, vec![8]), (3, false, vec![]));
        let named = |filter| [shuffle.clone(), filter, fletcher32.clone()];
        assert_eq!(brief(Effort::Gzip(12).into()), named((1, true, vec![9])));
        assert_eq!(brief(Compression::Zstd(200)), named((32015, true, vec![22])));
        assert_eq!(brief(Compression::Lz4), named((32004, true, vec![])));
    }
}
