//! Inflates a stream with every decoder, for fuzzers.

use crate::interleaved::InterleavedInflater;
use crate::libdeflate::Decompressor;
use crate::runs::RepetitiveInflater;
use crate::small::SmallChunkInflater;

/// Inflates a zlib stream, up to a length, with each of our own decoders and finally with libdeflate. Our decoders are
/// those for small chunks, for runs, and for columns; the last one inflates the stream alone, and as each of two
/// interleaved streams. A result is `None` if its decoder refuses the stream.
pub fn inflate_all_ways(stored: &[u8], limit_len_bytes: usize) -> [Option<Vec<u8>>; 6] {
    let inflated = |inflate: &mut dyn FnMut(&mut [u8]) -> Option<usize>| {
        let mut out = vec![0; limit_len_bytes];
        inflate(&mut out).map(|produced| out[..produced].to_vec())
    };
    let in_turn = |place: usize| {
        inflated(&mut |out| {
            let mut other = vec![0; out.len()];
            let mut joint = InterleavedInflater::new()?;
            let both = match place {
                0 => joint.inflate([stored, stored], [out, &mut other]),
                _ => joint.inflate([stored, stored], [&mut other, out]),
            };
            both[place]
        })
    };
    [
        inflated(&mut |out| SmallChunkInflater::new().inflate(stored, out)),
        inflated(&mut |out| RepetitiveInflater::new().inflate(stored, out)),
        inflated(&mut |out| {
            let [inflated] = InterleavedInflater::new()?.inflate([stored], [out]);
            inflated
        }),
        in_turn(0),
        in_turn(1),
        inflated(&mut |out| {
            let whole = Decompressor::new().and_then(|mut inflater| inflater.inflate(stored, out));
            whole.ok().map(|(_, produced)| produced)
        }),
    ]
}
