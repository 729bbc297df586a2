//! Entry point for fuzzers and for tests that damage bytes: decodes arbitrary bytes with arbitrary pipelines.

use crate::filter::{Filter, KnownFilter};
use crate::pipeline::{DecodeState, MAX_FILTERS, Pipeline};

/// Reads `bytes` as a pipeline, a filter mask, a chunk length and a stored chunk, and decodes; returns whether that
/// succeeded.
///
/// Layout: number of filters; for each its index among the known filters, its number of parameters, and those (1 byte
/// each; 255 announces 4 bytes); element length (1 byte), filter mask (1 byte), chunk length (2 bytes), stored chunk.
/// Missing bytes read as zero. Tests check two properties: it never panics, and decoding without a declared length
/// gives the same result if the buffer has that length.
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
    let Ok(pipeline) = Pipeline::new(&filters, element_len_bytes) else { return false };
    let mut state = DecodeState::default();
    let is_whole = pipeline.decode(&mut state, &stored, filter_mask, &mut chunk).is_ok();
    if filter_mask == 0 {
        let mut room = vec![0; chunk_len_bytes];
        let written = pipeline.decode_at_most(&mut state, &stored, &mut room);
        assert_eq!(written == Ok(chunk_len_bytes), is_whole, "{written:?} of {chunk_len_bytes} bytes");
        assert!(!is_whole || room == chunk);
    }
    is_whole
}

/// Encodes a pipeline and a chunk in the layout of [`decode_arbitrary`]; returns `None` if a number does not fit it.
pub fn chunk_of(
    filters: &[Filter],
    element_len_bytes: u8,
    filter_mask: u8,
    chunk_len_bytes: usize,
    stored: &[u8],
) -> Option<Vec<u8>> {
    let mut bytes = vec![u8::try_from(filters.len()).ok()?];
    for filter in filters {
        bytes.push(KnownFilter::ALL.iter().position(|known| known.id() == filter.id)? as u8);
        bytes.push(u8::try_from(filter.parameters.len()).ok()?);
        for parameter in &filter.parameters {
            match u8::try_from(*parameter) {
                Ok(small) if small < 255 => bytes.push(small),
                _ => {
                    bytes.push(255);
                    bytes.extend_from_slice(&parameter.to_le_bytes());
                }
            }
        }
    }
    bytes.extend_from_slice(&[element_len_bytes, filter_mask]);
    bytes.extend_from_slice(&u16::try_from(chunk_len_bytes).ok()?.to_le_bytes());
    bytes.extend_from_slice(stored);
    Some(bytes)
}
