//! Cost of deflating numbers, shuffled and not: libdeflate's levels 6 and 3, and the efforts `balanced` and `fast`, on
//! the same chunks.
//!
//! Times are CPU times of this thread, the best of several rounds, interleaved; every chunk is decoded and compared
//! first. Sizes are relative to libdeflate's at level 6. Run: `cargo bench -p raddle-codec --bench deflate`.
#![allow(unsafe_code, reason = "the clock of a thread")]

#[path = "../../inflate/benches/shared/mod.rs"]
mod shared;

use raddle_codec::{DecodeState, Effort, EncodeState, Encoder, EncoderOptions, Pipeline};
use shared::{COLUMNS, Noise, cpu_s};

const ROUNDS: usize = 15;

/// Number of elements along each axis of a field.
const LATITUDES: usize = 360;
const LONGITUDES: usize = 720;

/// Returns a normally distributed step of a random walk.
fn step(noise: &mut Noise) -> f64 {
    let [radius, angle] = [(); 2].map(|()| (1 + noise.below(1 << 31)) as f64 / f64::from(1_u32 << 31));
    0.3 * (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Returns a field like one of temperatures, which varies slowly along both axes.
fn field() -> Vec<f64> {
    let mut noise = Noise(1);
    let mut row_start = 0.0;
    (0..LATITUDES)
        .flat_map(|_| {
            row_start += step(&mut noise);
            let mut value = row_start;
            (0..LONGITUDES)
                .map(|_| {
                    value += step(&mut noise);
                    value
                })
                .collect::<Vec<f64>>()
        })
        .collect()
}

/// Returns independent numbers.
fn independent(value: impl Fn(&mut Noise) -> f32) -> Vec<u8> {
    let mut noise = Noise(2);
    (0..LATITUDES * LONGITUDES).flat_map(|_| value(&mut noise).to_le_bytes()).collect()
}

/// Name, element length and bytes of a chunk.
type Chunk = (&'static str, usize, Vec<u8>);

/// Returns a field as integers of 16 bits, and the 64-bit floats that they stand for.
fn packed(field: &[f64]) -> [Chunk; 2] {
    let packed: Vec<i16> = field.iter().map(|value| (value / 0.01) as i16).collect();
    let unpacked = packed.iter().flat_map(|&value| (f64::from(value) * 0.01 + 273.15).to_le_bytes()).collect();
    let packed = packed.into_iter().flat_map(i16::to_le_bytes).collect();
    [("field, packed in 16 bits", 2, packed), ("field, unpacked again", 8, unpacked)]
}

/// Returns chunks that are shuffled.
fn shuffled_chunks() -> Vec<Chunk> {
    let field = field();
    let [packed, unpacked] = packed(&field);
    let mut noise = Noise(3);
    let ids: Vec<u8> =
        (0..60_000u32).flat_map(|id| [id].repeat(1 + noise.below(8) as usize)).flat_map(u32::to_le_bytes).collect();
    vec![
        ("field, 32-bit floats", 4, field.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect()),
        ("field, 64-bit floats", 8, field.iter().flat_map(|value| value.to_le_bytes()).collect()),
        packed,
        unpacked,
        (
            "field, in steps of 1/16",
            4,
            field.iter().flat_map(|value| ((value * 16.0).round() as f32 / 16.0).to_le_bytes()).collect(),
        ),
        (
            "field, half of it missing",
            4,
            field.iter().flat_map(|value| (if *value < 0.0 { 1e20 } else { *value as f32 }).to_le_bytes()).collect(),
        ),
        ("energies", 4, independent(|noise| 60.0 * noise.skewed())),
        ("charges in steps of 1/16", 4, independent(|noise| (noise.skewed() * 40.0) as i32 as f32 / 16.0)),
        ("counts as floats", 4, independent(|noise| (noise.skewed() * 60.0).floor())),
        ("ids in runs", 4, ids),
    ]
}

/// Returns chunks that are not shuffled: columns, and fields in which values repeat.
fn plain_chunks() -> Vec<Chunk> {
    let columns = COLUMNS.into_iter().enumerate().map(|(number, (name, value))| {
        let mut noise = Noise(number as u64);
        (name, 4, (0..LATITUDES * LONGITUDES).flat_map(|row| value(row, &mut noise).to_le_bytes()).collect())
    });
    let field = field();
    let integers = field.iter().flat_map(|value| (100_000 + (value * 3.0) as i32).to_le_bytes()).collect();
    columns.chain(packed(&field)).chain([("field of 32-bit integers", 4, integers)]).collect()
}

fn main() {
    println!("MB/s of values, CPU time, best of {ROUNDS}; sizes as parts of level 6");
    measure("shuffled", true, shuffled_chunks());
    measure("not shuffled", false, plain_chunks());
}

fn measure(title: &str, shuffle: bool, chunks: Vec<Chunk>) {
    let (mut encode, mut decode) = (EncodeState::default(), DecodeState::default());
    print!("{title:>26} {:>6}", "ratio");
    ["level 6", "level 3", "balanced", "fast"].iter().for_each(|effort| print!(" {effort:>16}"));
    println!();
    for (name, element_len_bytes, raw) in chunks {
        // Bytes without a shuffle, because for elements level 3 would be one of two encoders.
        let element_of_level_3 = if shuffle { element_len_bytes } else { 1 };
        let encoders = [
            (Effort::Gzip(6), element_len_bytes),
            (Effort::Gzip(3), element_of_level_3),
            (Effort::Balanced, element_len_bytes),
            (Effort::Fast, element_len_bytes),
        ]
        .map(|(effort, element_len_bytes)| {
            let compression = Some(effort.into());
            Encoder::new(&EncoderOptions { compression, shuffle, fletcher32: false, element_len_bytes })
        });
        let (mut best_s, mut lens_bytes) = ([f64::INFINITY; 4], [0; 4]);
        for round in 0..ROUNDS {
            for (number, encoder) in encoders.iter().enumerate() {
                let mut stored = Vec::new();
                let begun_s = cpu_s();
                let mask = encoder.encode(&mut encode, &raw, &mut stored).expect("it is encoded");
                best_s[number] = best_s[number].min(cpu_s() - begun_s);
                lens_bytes[number] = stored.len();
                if round == 0 {
                    let pipeline = Pipeline::new(&encoder.filters(), element_len_bytes).expect("all filters are known");
                    let mut back = vec![0; raw.len()];
                    pipeline.decode(&mut decode, &stored, mask, &mut back).expect("it is decoded");
                    assert_eq!(back, raw, "{name} comes back");
                }
            }
        }
        let parts = lens_bytes.map(|len_bytes| len_bytes as f64 / lens_bytes[0] as f64);
        let rates = best_s.map(|best_s| raw.len() as f64 / best_s / 1e6);
        print!("{name:>26} {:>6.2}", raw.len() as f64 / lens_bytes[0] as f64);
        rates.iter().zip(parts).for_each(|(rate, part)| print!(" {rate:>8.0} ({part:.3})"));
        println!();
    }
}
