//! Filters: stored chunks are decoded and compared with a second inflater; values are encoded and decoded again.

use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_zlib_with_limit};
use raddle_codec::arbitrary::{chunk_of, decode_arbitrary};
use raddle_codec::{
    Compression, DecodeState, Effort, EncodeState, Encoder, EncoderOptions, Filter, KnownFilter, Pipeline,
};
use raddle_inflate::all_ways::inflate_all_ways;

/// Runs the target whose input is a pipeline and a chunk.
pub(crate) fn pipeline(bytes: &[u8]) {
    decode_arbitrary(bytes);
}

/// Chunks with every filter, written by HDF5 and its plugins.
pub(crate) fn pipeline_seeds() -> Vec<Vec<u8>> {
    let vectors = include_str!("../../codec/tests/vectors/vectors.txt");
    vectors.lines().filter_map(pipeline_seed).collect()
}

/// Converts a line of the test vectors to the form that `decode_arbitrary` reads; `None` if a number does not fit that
/// form.
fn pipeline_seed(line: &str) -> Option<Vec<u8>> {
    let fields: Vec<&str> = line.split('\t').collect();
    let &[_, element_len_bytes, filters, filter_mask, stored, raw] = &fields[..] else { return None };
    let filters = filters.split(';').map(|filter| {
        let parts: Vec<&str> = filter.split(':').collect();
        let numbers = parts.get(2)?.split(',').filter(|number| !number.is_empty());
        let parameters = numbers.map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()?;
        Some(Filter { id: parts[0].parse().ok()?, optional: false, name: vec![], parameters })
    });
    let raw = decompress_to_vec_zlib_with_limit(&bytes_of(raw)?, 1 << 20).ok()?;
    let filters = filters.collect::<Option<Vec<_>>>()?;
    chunk_of(&filters, element_len_bytes.parse().ok()?, filter_mask.parse().ok()?, raw.len(), &bytes_of(stored)?)
}

fn bytes_of(hexadecimal: &str) -> Option<Vec<u8>> {
    let digit = |at: usize| u8::from_str_radix(hexadecimal.get(at..at + 2)?, 16).ok();
    (0..hexadecimal.len()).step_by(2).map(digit).collect()
}

/// Maximum output of the deflate target: more than the decoder for small chunks takes, and more than the largest match
/// distance.
const MAX_INFLATED_BYTES: usize = 10 * 4096;

fn adler32(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    high << 16 | low
}

/// Runs the target whose input is a deflate stream without header and checksum. With the right ones added, all decoders
/// that accept it must agree.
pub(crate) fn deflate(bytes: &[u8]) {
    let mut judged = vec![0; MAX_INFLATED_BYTES];
    let flags = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let (status, consumed, produced) = decompress(&mut DecompressorOxide::new(), bytes, &mut judged, 0, flags);
    let accepted = status == TINFLStatus::Done;
    let (body, judged) = if accepted { (&bytes[..consumed], &judged[..produced]) } else { (bytes, &judged[..0]) };
    let stream = [&[0x78, 0x01], body, &adler32(judged).to_be_bytes()].concat();
    let limit_len_bytes = if accepted { judged.len() } else { 4096 };
    let [our_outputs @ .., library] = inflate_all_ways(&stream, limit_len_bytes);
    for output in our_outputs.iter().filter(|output| output.is_some()) {
        assert_eq!(output, &library, "a decoder of our own and libdeflate differ");
    }
    if let Some(library) = &library {
        assert!(accepted, "libdeflate takes what the judge refuses");
        assert_eq!(library, judged, "libdeflate and the judge differ");
    }
    let pipeline = Pipeline::new(&[filter(KnownFilter::Deflate, &[6])], 1).expect("deflate is known");
    let mut state = DecodeState::default();
    // The exact length, one byte less and one byte more: only the first is right.
    for (len_bytes, is_right) in
        [(judged.len(), true), (judged.len() + 1, false), (judged.len().wrapping_sub(1), false)]
    {
        if len_bytes > MAX_INFLATED_BYTES {
            continue;
        }
        let mut chunk = vec![0xA5; len_bytes];
        let decoded = pipeline.decode(&mut state, &stream, 0, &mut chunk);
        assert_eq!(decoded.is_ok(), is_right && library.is_some(), "{len_bytes} bytes: {decoded:?}");
        assert!(decoded.is_err() || chunk == judged);
    }
}

fn filter(known: KnownFilter, parameters: &[u32]) -> Filter {
    Filter { id: known.id(), optional: false, name: vec![], parameters: parameters.to_vec() }
}

/// Returns streams of this project's encoders: fixed and dynamic codes, matches, literals, stored blocks.
pub(crate) fn deflate_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for raw in raw_seeds() {
        for level in [1, 6, 9] {
            let stream = miniz_oxide::deflate::compress_to_vec(&raw, level);
            seeds.push(stream);
        }
        for effort in [Effort::Fast, Effort::Balanced, Effort::Small] {
            let mut stored = Vec::new();
            let mask = Encoder::plain(effort, 4).encode(&mut EncodeState::default(), &raw, &mut stored);
            if mask.is_ok_and(|mask| mask == 0) && stored.len() > 6 {
                seeds.push(stored[2..stored.len() - 4].to_vec());
            }
        }
    }
    seeds
}

/// Returns typical number sequences: equal, rising, noisy, few distinct values.
fn raw_seeds() -> Vec<Vec<u8>> {
    let words = |count: u32, number: fn(u32) -> u32| (0..count).flat_map(|at| number(at).to_le_bytes()).collect();
    vec![
        vec![],
        vec![7; 300],
        words(128, |at| at),
        words(128, |at| at.wrapping_mul(2_654_435_761) >> 20),
        words(900, |at| (at / 7).wrapping_mul(2_654_435_761)),
        words(64, |at| at.wrapping_mul(2_654_435_761)),
        b"the quick brown fox jumps over the lazy dog, and the lazy dog over the quick brown fox".to_vec(),
    ]
}

/// Runs the target whose first bytes are encoder options and the rest a chunk: the encoded chunk must decode to the
/// same bytes with two decoders.
pub(crate) fn encode(bytes: &[u8]) {
    let Some((&[compression, element, flags], raw)) = bytes.split_first_chunk::<3>() else { return };
    let element_len_bytes = usize::from(element % 16) + 1;
    // Chunks hold whole elements.
    let raw = &raw[..raw.len() / element_len_bytes * element_len_bytes];
    let compression = match compression % 17 {
        level @ 0..10 => Some(Effort::Gzip(level.max(1)).into()),
        10 => Some(Effort::Fast.into()),
        11 => Some(Effort::Balanced.into()),
        12 => Some(Effort::Small.into()),
        13 => Some(Compression::Zstd(3)),
        14 => Some(Compression::Zstd(12)),
        15 => Some(Compression::Lz4),
        _ => None,
    };
    let (shuffle, fletcher32) = (flags & 1 != 0, flags & 2 != 0);
    let mut stored = Vec::new();
    let encoder = Encoder::new(&EncoderOptions { compression, shuffle, fletcher32, element_len_bytes });
    let mask = encoder.encode(&mut EncodeState::default(), raw, &mut stored).expect("every chunk can be encoded");
    let filters = encoder.filters();
    let pipeline = Pipeline::new(&filters, element_len_bytes).expect("these filters are known");
    let mut chunk = vec![0xA5; raw.len()];
    pipeline.decode(&mut DecodeState::default(), &stored, mask, &mut chunk).expect("what was encoded decodes");
    assert_eq!(chunk, raw);
    if mask == 0 && filters.iter().all(|filter| filter.id == KnownFilter::Deflate.id()) && !filters.is_empty() {
        let judged = decompress_to_vec_zlib_with_limit(&stored, raw.len()).expect("the judge inflates it");
        assert_eq!(judged, raw, "the judge sees other bytes");
    }
}

/// Chunks for every kind of encoder.
pub(crate) fn encode_seeds() -> Vec<Vec<u8>> {
    let heads = [[10, 3, 0], [11, 3, 1], [12, 7, 3], [6, 0, 2], [13, 3, 3]];
    raw_seeds().iter().flat_map(|raw| heads.map(|head| [&head[..], raw].concat())).collect()
}
