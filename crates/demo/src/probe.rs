//! Estimates how fast one core decodes and encodes, from values like those of the demo's files, in half a second of
//! work.
//!
//! This is a single run and not a benchmark. It counts processor time, so that other load on the machine hardly
//! matters.

use crate::values::{FileKeys, Law, PARTICLES, TableRows, fill_column, fill_map_row};
use crate::workload::{CHUNK_ROWS, GZIP_LEVEL};
use raddle_codec::{Compression, DecodeState, Effort, EncodeState, Encoder, EncoderOptions, Pipeline};
use raddle_core::random::Random;
use raddle_core::report::thread_cpu_ns;
use raddle_hdf5::default_format::Element;

/// Uncompressed bytes per second of one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CodecRates {
    /// Rate of inflating chunks of 128 rows.
    pub inflate_bytes_per_s: f64,
    /// Rate of deflating tiles of the output.
    pub deflate_bytes_per_s: f64,
}

/// Number of bytes of values generated for each kind of column.
const SAMPLE_LEN_BYTES: usize = 4 << 20;
/// Length of tiles of narrow columns, as a merge makes them by default.
const NARROW_TILE_LEN_BYTES: usize = 1 << 20;
/// Number of cells in a row of a map, which gives tiles of 2 MB.
const MAP_WIDTH: usize = 16_000;
/// Stream of [`Random`] for the probe.
const PROBE_STREAM: u64 = 0x0070_726F_6265;

/// Typical columns of tables: counts, codes, flags, rare and measured values.
const NARROW: [(Element, Law); 8] = [
    (Element::I32, Law::Count(30.0)),
    (Element::I32, Law::Code(PARTICLES)),
    (Element::I32, Law::RareInteger(0.5)),
    (Element::F32, Law::Measured { mean: 0.0, deviation: 80.0 }),
    (Element::F32, Law::RareFloat(0.7)),
    (Element::F32, Law::RareFloat(0.9)),
    (Element::F32, Law::Fraction),
    (Element::F32, Law::Gridded),
];

/// Measures the rates of columns with one value per row, in tiles with `compression`.
///
/// # Errors
/// If memory for a codec cannot be allocated.
pub fn narrow(compression: Option<Compression>) -> Result<CodecRates, raddle_codec::CodecError> {
    let mut random = Random::of(&[PROBE_STREAM]);
    let keys = FileKeys { run: 1, subrun: 1, events: vec![0] };
    let rows = TableRows { event_of_row: vec![0; SAMPLE_LEN_BYTES / NARROW.len() / 4] };
    let mut values = Vec::with_capacity(SAMPLE_LEN_BYTES);
    for (element, law) in NARROW {
        fill_column(law, element, &keys, &rows, &mut random, &mut values);
    }
    measure(&values, 4, CHUNK_ROWS as usize * 4, NARROW_TILE_LEN_BYTES, compression)
}

/// Measures the rates of codecs for maps whose tiles are compressed with `compression`.
///
/// # Errors
/// If memory for a codec cannot be allocated.
pub fn wide(compression: Option<Compression>) -> Result<CodecRates, raddle_codec::CodecError> {
    let mut random = Random::of(&[PROBE_STREAM, 1]);
    let mut values = vec![0; SAMPLE_LEN_BYTES / MAP_WIDTH / CHUNK_ROWS as usize * CHUNK_ROWS as usize * MAP_WIDTH];
    for row in values.chunks_mut(MAP_WIDTH) {
        fill_map_row(4.0, Element::U8, &mut random, row);
    }
    let chunk_len_bytes = CHUNK_ROWS as usize * MAP_WIDTH;
    measure(&values, 1, chunk_len_bytes, chunk_len_bytes, compression)
}

fn measure(
    values: &[u8],
    element_len_bytes: usize,
    chunk_len_bytes: usize,
    tile_len_bytes: usize,
    compression: Option<Compression>,
) -> Result<CodecRates, raddle_codec::CodecError> {
    let (mut encode, mut decode) = (EncodeState::default(), DecodeState::default());
    let of_inputs = Encoder::plain(Effort::Gzip(GZIP_LEVEL), element_len_bytes);
    let pipeline = Pipeline::new(&of_inputs.filters(), element_len_bytes)?;
    let mut stored = Vec::new();
    let mut chunks = Vec::new();
    for chunk in values.chunks_exact(chunk_len_bytes) {
        let start = stored.len();
        let filter_mask = of_inputs.encode(&mut encode, chunk, &mut stored)?;
        chunks.push((start..stored.len(), filter_mask));
    }
    let mut chunk = vec![0; chunk_len_bytes];
    let before_ns = thread_cpu_ns();
    for (range, filter_mask) in &chunks {
        pipeline.decode(&mut decode, &stored[range.clone()], *filter_mask, &mut chunk)?;
    }
    let inflate_ns = thread_cpu_ns() - before_ns;
    let of_output = Encoder::new(&EncoderOptions { compression, shuffle: false, fletcher32: false, element_len_bytes });
    let before_ns = thread_cpu_ns();
    for tile in values.chunks(tile_len_bytes) {
        stored.clear();
        of_output.encode(&mut encode, tile, &mut stored)?;
    }
    let deflate_ns = thread_cpu_ns() - before_ns;
    let rate = |len_bytes: usize, cpu_ns: u64| len_bytes as f64 * 1e9 / cpu_ns.max(1) as f64;
    Ok(CodecRates {
        inflate_bytes_per_s: rate(chunks.len() * chunk_len_bytes, inflate_ns),
        deflate_bytes_per_s: rate(values.len(), deflate_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_zeros_pass_faster_than_columns() {
        let balanced = Some(Compression::default());
        let (narrow, wide) = (narrow(balanced).unwrap(), wide(balanced).unwrap());
        assert!(narrow.inflate_bytes_per_s > 1e6 && narrow.deflate_bytes_per_s > 1e5, "{narrow:?}");
        assert!(wide.deflate_bytes_per_s > 2.0 * narrow.deflate_bytes_per_s, "{wide:?} {narrow:?}");
    }
}
