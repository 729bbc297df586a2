//! Cost of moving an array into blocks and back: 256 x 256 x 256 float32, compared with memcpy of the same bytes.
//!
//! Times are CPU times of this thread, the best of several interleaved rounds, so that other work on the machine hardly
//! affects them. Blocks are packed one after another into one buffer, as when writing a file; every round trip is
//! verified first.
//! Run: `cargo bench -p raddle-idx --bench kernels [side]`.

use raddle_idx::dataset::bitmask::Bitmask;
use raddle_idx::dataset::grid::{ArrayGrid, Layout, blocks, runs};
use raddle_idx::kernel::{decode, encode};

const ROUNDS: usize = 9;
const SAMPLE_LEN_BYTES: usize = 4;

/// CPU time of this thread, in seconds.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn main() {
    let side: u64 = std::env::args().nth(1).and_then(|side| side.parse().ok()).unwrap_or(256);
    let samples = (side * side * side) as usize;
    let array: Vec<u8> = (0..samples as u32).flat_map(|number| number.to_le_bytes()).collect();
    let mut stored = vec![0u8; 0];
    let mut back = vec![0u8; array.len()];
    println!("{side}^3 float32, GB/s of samples, CPU time, best of {ROUNDS}");
    println!("{:>28} {:>5} {:>9} {:>9} {:>9}", "bitmask", "bits", "order", "encode", "decode");
    let default = Bitmask::for_counts(&[side; 3]).expect("a cube has a bitmask");
    let turned = Bitmask::parse(&default.to_string().replace('0', "x").replace('2', "0").replace('x', "2"))
        .expect("axes can be exchanged");
    for bitmask in [&default, &turned] {
        let level = bitmask.max_level();
        let end = [side, side, side, 1, 1];
        let grid = ArrayGrid::of_box(bitmask, &[0; 5], &end, level).expect("a cube is not empty");
        for bits in [12, 15, 18].into_iter().filter(|bits| *bits <= level) {
            let blocks = blocks(bitmask, bits, &grid, level);
            let block_len_bytes = SAMPLE_LEN_BYTES << bits;
            stored.resize(blocks.len() * block_len_bytes, 0);
            for layout in [Layout::Hz, Layout::RowMajor] {
                let mut best = [f64::INFINITY; 3];
                for _ in 0..ROUNDS {
                    let start = cpu_s();
                    for (block, out) in blocks.iter().zip(stored.chunks_mut(block_len_bytes)) {
                        for run in runs(bitmask, bits, *block, layout, level) {
                            encode(&run, &grid, &array, out, SAMPLE_LEN_BYTES);
                        }
                    }
                    best[0] = best[0].min(cpu_s() - start);
                    back.fill(0);
                    let start = cpu_s();
                    for (block, from) in blocks.iter().zip(stored.chunks(block_len_bytes)) {
                        for run in runs(bitmask, bits, *block, layout, level) {
                            decode(&run, &grid, &mut back, from, SAMPLE_LEN_BYTES);
                        }
                    }
                    best[1] = best[1].min(cpu_s() - start);
                    assert!(back == array, "the samples did not come back");
                    back.fill(0);
                    let start = cpu_s();
                    back.copy_from_slice(std::hint::black_box(&array));
                    best[2] = best[2].min(cpu_s() - start);
                }
                let [encoded, decoded, copied] = best.map(|seconds| array.len() as f64 / seconds * 1e-9);
                let order = if layout == Layout::Hz { "HZ" } else { "row-major" };
                println!(
                    "{:>28} {bits:>5} {order:>9} {encoded:>9.2} {decoded:>9.2}   memcpy {copied:.2}",
                    bitmask.to_string()
                );
            }
        }
    }
}
