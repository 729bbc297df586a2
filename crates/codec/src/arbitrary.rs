//! Decoding any bytes by any pipeline: the entry for fuzzers, and for tests that damage bytes.

use crate::filter::{Filter, KnownFilter};
use crate::pipeline::{DecodeState, MAX_FILTERS, Pipeline};

/// Reads `bytes` as a pipeline, a filter mask, a chunk length and a stored chunk, and decodes; true if that succeeded.
///
/// Layout: number of filters; for each its place among the known filters, its number of parameters, and those (1 byte
/// each, 255 announces 4 bytes); element length (1 byte), filter mask (1 byte), chunk length (2 bytes), stored chunk.
/// What is missing reads as zero. Never panics; that is the property to test.
pub fn decode_arbitrary(bytes: &[u8]) -> bool {
    let mut bytes = bytes.iter().copied();
    let mut next = || bytes.next().unwrap_or(0);
    let filters: Vec<Filter> = (0..usize::from(next()) % (MAX_FILTERS + 2))
        .map(|_| {
            let known = KnownFilter::ALL[usize::from(next()) % KnownFilter::ALL.len()];
            let parameters = (0..next())
                .map(|_| match next() {
                    255 => u32::from_le_bytes([next(), next(), next(), next()]),
                    small => u32::from(small),
                })
                .collect();
            Filter { id: known.id(), optional: false, name: vec![], parameters }
        })
        .collect();
    let (element_len_bytes, filter_mask) = (usize::from(next()), u32::from(next()));
    let chunk_len_bytes = usize::from(u16::from_le_bytes([next(), next()]));
    let stored: Vec<u8> = bytes.collect();
    let mut chunk = vec![0; chunk_len_bytes];
    Pipeline::new(&filters, element_len_bytes)
        .and_then(|pipeline| pipeline.decode(&mut DecodeState::default(), &stored, filter_mask, &mut chunk))
        .is_ok()
}
