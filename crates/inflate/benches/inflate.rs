//! Cost of inflating columns of numbers: libdeflate, [`Inflater::inflate`] and [`Inflater::inflate_pair`] on the same
//! streams.
//!
//! Times are CPU times of this thread, the best of several rounds, interleaved, so that other work on the machine has
//! little effect; every chunk is compared first. Run:
//! `cargo bench -p raddle-inflate --bench inflate [rows of a chunk]`.
#![allow(unsafe_code, reason = "libdeflate by itself, to compare with")]

mod shared;

use libdeflate_sys as libdeflate;
use raddle_inflate::Inflater;
use shared::{COLUMNS, Noise, cpu_s};

const ROUNDS: usize = 15;
/// Number of chunks of each column; even, because they are decoded in pairs.
const CHUNKS: usize = 4;

/// Level of the streams, that of `--compress balanced` for such columns.
const LEVEL: i32 = 3;

fn main() {
    let rows: usize = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(262_144);
    let mut inflater = Inflater::new().expect("there is memory");
    // SAFETY: no preconditions; never freed, because the program ends with it.
    let (reference, compressor) =
        unsafe { (libdeflate::libdeflate_alloc_decompressor(), libdeflate::libdeflate_alloc_compressor(LEVEL)) };
    println!("chunks of {rows} rows of 4 bytes, level {LEVEL}; GB/s of values, CPU time, best of {ROUNDS}");
    println!("{:>26} {:>6} {:>10} {:>6} {:>6}", "column", "ratio", "libdeflate", "one", "two");
    for (number, (name, value)) in COLUMNS.into_iter().enumerate() {
        let mut noise = Noise(number as u64);
        let raw: Vec<u8> = (0..CHUNKS * rows).flat_map(|row| value(row, &mut noise).to_le_bytes()).collect();
        let chunk_len_bytes = raw.len() / CHUNKS;
        let stored: Vec<Vec<u8>> = raw
            .chunks(chunk_len_bytes)
            .map(|chunk| {
                let mut stored = vec![0; chunk.len()];
                // SAFETY: both pointers are valid for the lengths passed with them.
                let stored_len_bytes = unsafe {
                    let (from, to) = (chunk.as_ptr().cast(), stored.as_mut_ptr().cast());
                    libdeflate::libdeflate_zlib_compress(compressor, from, chunk.len(), to, stored.len())
                };
                assert!(stored_len_bytes > 0, "{name} can be compressed");
                stored.truncate(stored_len_bytes);
                stored
            })
            .collect();
        let mut out = vec![0; raw.len()];
        let mut best = [f64::INFINITY; 3];
        for _ in 0..ROUNDS {
            let mut run = |which: usize, inflate: &mut dyn FnMut(&mut [u8])| {
                out.fill(0);
                let start = cpu_s();
                inflate(&mut out);
                best[which] = best[which].min(cpu_s() - start);
                assert!(out == raw, "{name}: the values did not come back");
            };
            run(0, &mut |out| {
                for (stored, chunk) in stored.iter().zip(out.chunks_mut(chunk_len_bytes)) {
                    let mut produced = 0;
                    // SAFETY: both pointers are valid for the lengths passed with them.
                    let verdict = unsafe {
                        let (from, to) = (stored.as_ptr().cast(), chunk.as_mut_ptr().cast());
                        libdeflate::libdeflate_zlib_decompress(
                            reference,
                            from,
                            stored.len(),
                            to,
                            chunk.len(),
                            &mut produced,
                        )
                    };
                    assert_eq!((verdict, produced), (libdeflate::libdeflate_result_LIBDEFLATE_SUCCESS, chunk.len()));
                }
            });
            run(1, &mut |out| {
                for (stored, chunk) in stored.iter().zip(out.chunks_mut(chunk_len_bytes)) {
                    assert_eq!(inflater.inflate(stored, chunk), Ok(chunk.len()));
                }
            });
            run(2, &mut |out| {
                for (stored, chunks) in stored.chunks(2).zip(out.chunks_mut(2 * chunk_len_bytes)) {
                    let (first, second) = chunks.split_at_mut(chunk_len_bytes);
                    let inflated = inflater.inflate_pair([&stored[0], &stored[1]], [first, second]);
                    assert_eq!(inflated, [Ok(chunk_len_bytes); 2]);
                }
            });
        }
        let stored_len_bytes: usize = stored.iter().map(Vec::len).sum();
        let rate = best.map(|best_s| raw.len() as f64 / best_s / 1e9);
        let ratio = raw.len() as f64 / stored_len_bytes as f64;
        println!("{name:>26} {ratio:>6.2} {:>10.2} {:>6.2} {:>6.2}", rate[0], rate[1], rate[2]);
    }
}
