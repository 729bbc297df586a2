//! Encoding one tile: shuffle, then deflate by the encoder that suits the data, then fletcher32.
//!
//! Invariant: the stored bytes depend on the options and the raw bytes alone, not on the state, the thread or the
//! tiles before; so a file is the same however its tiles were dealt out.

use crate::choice::{Choice, choose, zero_run_sparsity_len_bytes};
use crate::element_lz::ElementLzEncoder;
use crate::error::Result;
use crate::filter::{Filter, KnownFilter};
use crate::fletcher32;
use crate::libdeflate::Deflater;
use crate::shuffle::shuffle;
use crate::zero_run::{self, ZeroRunEncoder};

/// How much work to put into compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effort {
    /// As fast as disks: the lightest encoder.
    Fast,
    /// The ratio of gzip 6 in a fraction of its time.
    Balanced,
    /// The smallest output that deflate gives in reasonable time.
    Small,
    /// This gzip level exactly (libdeflate's level of that number, 12 at most), with no choice by content.
    Gzip(u8),
}

/// What an [`Encoder`] is to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EncoderOptions {
    /// None: no deflate.
    pub effort: Option<Effort>,
    /// Shuffle bytes before deflate.
    pub shuffle: bool,
    /// Checksum the stored bytes.
    pub fletcher32: bool,
    /// Length of an element of the dataset, for shuffle.
    pub element_len_bytes: usize,
}

/// Encodes tiles in one way. Immutable: one serves all threads, each with its own [`EncodeState`].
#[derive(Debug, Clone)]
pub struct Encoder {
    effort: Option<Effort>,
    /// Element length to shuffle by, if it makes a difference.
    shuffle: Option<usize>,
    fletcher32: bool,
    element_len_bytes: usize,
}

/// Reused compressors and buffers of one thread.
#[derive(Default)]
pub struct EncodeState {
    /// One per level used: a job has few.
    deflaters: Vec<Deflater>,
    zero_run: ZeroRunEncoder,
    element_lz: ElementLzEncoder,
    shuffled: Vec<u8>,
}

impl std::fmt::Debug for EncodeState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let levels: Vec<u8> = self.deflaters.iter().map(Deflater::level).collect();
        formatter.debug_struct("EncodeState").field("levels", &levels).finish_non_exhaustive()
    }
}

/// The highest level that libdeflate has.
pub(crate) const MAX_LEVEL: u8 = 12;

/// The highest level that a dataset's deflate filter may name (H5Pset_deflate refuses more).
const MAX_NAMED_LEVEL: u8 = 9;

impl Encoder {
    /// An encoder for these options.
    pub fn new(options: &EncoderOptions) -> Self {
        let effort = match options.effort {
            Some(Effort::Gzip(level)) => Some(Effort::Gzip(level.min(MAX_LEVEL))),
            other => other,
        };
        // HDF5 names an element length in 32 bits, and shuffling single bytes changes nothing.
        let shuffles =
            options.shuffle && options.element_len_bytes > 1 && u32::try_from(options.element_len_bytes).is_ok();
        Self {
            effort,
            shuffle: shuffles.then_some(options.element_len_bytes),
            fletcher32: options.fletcher32,
            element_len_bytes: options.element_len_bytes,
        }
    }

    /// The filters that the dataset's pipeline must name, in order.
    ///
    /// Deflate and shuffle are optional and fletcher32 is not, as HDF5's own property list functions have it.
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
        if let Some(effort) = self.effort {
            filters.push(filter(KnownFilter::Deflate, true, vec![u32::from(effort.named_level())]));
        }
        if self.fletcher32 {
            filters.push(filter(KnownFilter::Fletcher32, false, vec![]));
        }
        filters
    }

    /// Spare capacity with which [`encode`](Self::encode) never reallocates its output for a tile of this length.
    pub fn bound_len_bytes(&self, raw_len_bytes: usize) -> usize {
        raw_len_bytes + fletcher32::CHECKSUM_LEN_BYTES + zero_run::SLACK
    }

    /// Appends the stored form of one tile to `out`; returns its filter mask.
    ///
    /// A tile that deflate cannot shorten is stored as it is, with the bits of shuffle and deflate set in the mask:
    /// any reader takes it back without work.
    ///
    /// # Errors
    /// No memory for a compressor.
    pub fn encode(&self, state: &mut EncodeState, raw: &[u8], out: &mut Vec<u8>) -> Result<u32> {
        let start = out.len();
        out.reserve(self.bound_len_bytes(raw.len()));
        let is_filtered = self.compress(state, raw, out)?;
        let mut filter_mask = 0;
        if !is_filtered {
            out.truncate(start);
            out.extend_from_slice(raw);
            let compressing = usize::from(self.shuffle.is_some()) + usize::from(self.effort.is_some());
            filter_mask = (1 << compressing) - 1;
        }
        if self.fletcher32 {
            fletcher32::append(out, start);
        }
        Ok(filter_mask)
    }

    /// Appends the shuffled and deflated tile, shorter than `raw`; false if there is nothing to gain.
    fn compress(&self, state: &mut EncodeState, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let EncodeState { deflaters, zero_run, element_lz, shuffled } = state;
        let Some(effort) = self.effort else {
            if let Some(element_len_bytes) = self.shuffle {
                let start = out.len();
                out.resize(start + raw.len(), 0);
                shuffle(raw, element_len_bytes, &mut out[start..]);
            }
            return Ok(self.shuffle.is_some());
        };
        let limit_len_bytes = raw.len().saturating_sub(1);
        let data = match self.shuffle {
            Some(element_len_bytes) => {
                shuffled.resize(raw.len(), 0);
                shuffle(raw, element_len_bytes, shuffled);
                &shuffled[..]
            }
            None => raw,
        };
        if let Some(sparsity_len_bytes) = zero_run_sparsity_len_bytes(effort)
            && zero_run.encode(data, sparsity_len_bytes, out, limit_len_bytes)
        {
            return Ok(true);
        }
        let level = match choose(effort, raw, self.element_len_bytes, self.shuffle.is_some()) {
            Choice::ElementLz(elements) => return Ok(element_lz.encode(data, elements, out, limit_len_bytes)),
            Choice::Libdeflate { level } => level,
        };
        let deflater = match deflaters.iter().position(|deflater| deflater.level() == level) {
            Some(index) => &mut deflaters[index],
            None => {
                deflaters.push(Deflater::new(level)?);
                deflaters.last_mut().expect("just pushed")
            }
        };
        Ok(deflater.deflate(data, out, limit_len_bytes))
    }
}

impl Effort {
    /// The level that the dataset's filter names; readers do not use it.
    fn named_level(self) -> u8 {
        match self {
            Self::Fast => 1,
            Self::Balanced => 6,
            Self::Small => 9,
            Self::Gzip(level) => level.min(MAX_NAMED_LEVEL),
        }
    }

    /// Which encoders tiles get, for reports.
    pub fn encoders(self) -> &'static str {
        match self {
            Self::Fast => "zero runs, else element LZ",
            Self::Balanced => "zero runs, else libdeflate 3",
            Self::Small => "libdeflate 9",
            Self::Gzip(_) => "libdeflate of that level",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pipeline::{DecodeState, Pipeline};

    fn efforts() -> impl Strategy<Value = Option<Effort>> {
        prop_oneof![
            Just(None),
            Just(Some(Effort::Fast)),
            Just(Some(Effort::Balanced)),
            Just(Some(Effort::Small)),
            (0u8..=255).prop_map(|level| Some(Effort::Gzip(level))),
        ]
    }

    /// Dense, columnar and sparse bytes.
    fn tiles() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..2000),
            proptest::collection::vec(0u32..50, 0..2000).prop_map(|v| v.iter().flat_map(|v| v.to_le_bytes()).collect()),
            proptest::collection::vec((any::<u8>(), 0usize..500), 0..50)
                .prop_map(|v| v.iter().flat_map(|&(b, n)| [vec![b], vec![0; n]].concat()).collect()),
        ]
    }

    proptest! {
        #[test]
        fn every_tile_comes_back(
            effort in efforts(), shuffle: bool, fletcher32: bool, element_len_bytes in 1usize..10, raw in tiles(),
        ) {
            let encoder = Encoder::new(&EncoderOptions { effort, shuffle, fletcher32, element_len_bytes });
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
        let options =
            EncoderOptions { effort: Some(Effort::Balanced), shuffle: true, fletcher32: true, element_len_bytes: 4 };
        let mut out = Vec::new();
        let mask = Encoder::new(&options).encode(&mut EncodeState::default(), &raw, &mut out).unwrap();
        assert_eq!(mask, 0b011);
        assert_eq!(out.len(), raw.len() + 4);
        assert_eq!(out[..raw.len()], raw);
    }

    #[test]
    fn the_pipeline_is_named_in_order() {
        let options =
            EncoderOptions { effort: Some(Effort::Gzip(12)), shuffle: true, fletcher32: true, element_len_bytes: 8 };
        let filters = Encoder::new(&options).filters();
        let brief: Vec<_> = filters.iter().map(|f| (f.id, f.optional, f.parameters.clone())).collect();
        assert_eq!(brief, [(2, true, vec![8]), (1, true, vec![9]), (3, false, vec![])]);
    }
}
