//! Cost of deflating shuffled numbers: libdeflate's levels 6 and 3, and the effort `balanced`, on the same chunks.
//!
//! Times are CPU times of this thread, the best of several rounds, interleaved; every chunk is decoded and compared
//! first. Sizes are relative to libdeflate's at level 6. Run: `cargo bench -p raddle-codec --bench deflate`.
#![allow(unsafe_code, reason = "the clock of a thread")]

#[path = "../../inflate/benches/shared/mod.rs"]
mod shared;

use raddle_codec::{DecodeState, Effort, EncodeState, Encoder, EncoderOptions, Pipeline};
use shared::{Noise, cpu_s};

const ROUNDS: usize = 15;

/// Number of elements along each axis of a field.
const ROWS: usize = 360;
const COLUMNS: usize = 720;

/// Returns a normally distributed step of a random walk.
fn step(noise: &mut Noise) -> f64 {
    let [radius, angle] = [(); 2].map(|()| (1 + noise.below(1 << 31)) as f64 / f64::from(1_u32 << 31));
    0.3 * (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Returns a field like one of temperatures, which varies slowly along both axes.
fn field() -> Vec<f64> {
    let mut noise = Noise(1);
    let mut row_start = 0.0;
    (0..ROWS)
        .flat_map(|_| {
            row_start += step(&mut noise);
            let mut value = row_start;
            (0..COLUMNS)
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
    (0..ROWS * COLUMNS).flat_map(|_| value(&mut noise).to_le_bytes()).collect()
}

/// Returns the name, element length and bytes of each chunk.
fn chunks() -> Vec<(&'static str, usize, Vec<u8>)> {
    let field = field();
    let packed = || field.iter().map(|value| (value / 0.01) as i16);
    let mut noise = Noise(3);
    let ids: Vec<u8> =
        (0..60_000u32).flat_map(|id| [id].repeat(1 + noise.below(8) as usize)).flat_map(u32::to_le_bytes).collect();
    vec![
        ("field, 32-bit floats", 4, field.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect()),
        ("field, 64-bit floats", 8, field.iter().flat_map(|value| value.to_le_bytes()).collect()),
        ("field, packed in 16 bits", 2, packed().flat_map(i16::to_le_bytes).collect()),
        (
            "field, unpacked again",
            8,
            packed().flat_map(|value| (f64::from(value) * 0.01 + 273.15).to_le_bytes()).collect(),
        ),
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

fn main() {
    let (mut encode, mut decode) = (EncodeState::default(), DecodeState::default());
    println!("shuffled chunks; MB/s of values, CPU time, best of {ROUNDS}; sizes as parts of level 6");
    println!("{:>26} {:>6} {:>16} {:>16} {:>16}", "chunk", "ratio", "level 6", "level 3", "balanced");
    for (name, element_len_bytes, raw) in chunks() {
        let encoders = [Effort::Gzip(6), Effort::Gzip(3), Effort::Balanced].map(|effort| {
            let compression = Some(effort.into());
            Encoder::new(&EncoderOptions { compression, shuffle: true, fletcher32: false, element_len_bytes })
        });
        let (mut best_s, mut lens_bytes) = ([f64::INFINITY; 3], [0; 3]);
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
