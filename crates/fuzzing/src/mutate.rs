//! Random mutations of seeds: flipped bits, changed bytes and words, cuts, repetitions and splices.

use raddle_testing::strategy::Draw;

/// Numbers that often break parsers, as 64 bits; shorter fields take the low bytes.
const ODD_NUMBERS: [u64; 10] = [0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0x7FFF_FFFF, 0xFFFF_FFFF, i64::MAX as u64, u64::MAX];

/// Maximum length of the result of splices and repetitions.
const MAX_LEN_BYTES: usize = 1 << 20;

/// Returns a mutated copy of one of `seeds`, which must not be empty.
pub fn mutated(seeds: &[Vec<u8>], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = seeds[draw.below(seeds.len() as u64) as usize].clone();
    for _ in 0..=draw.below(4) {
        change(&mut bytes, seeds, draw);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], draw: &mut Draw) {
    let place = |len: usize, draw: &mut Draw| draw.below(len as u64 + 1) as usize;
    if bytes.is_empty() {
        bytes.extend((0..draw.below(64)).map(|_| draw.below(256) as u8));
        return;
    }
    let at = draw.below(bytes.len() as u64) as usize;
    match draw.below(8) {
        0 => bytes[at] ^= 1 << draw.below(8),
        1 => bytes[at] = draw.below(256) as u8,
        2 | 3 => {
            let width = 1 << draw.below(4);
            let number = ODD_NUMBERS[draw.below(ODD_NUMBERS.len() as u64) as usize];
            let end = (at + width).min(bytes.len());
            bytes[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
        }
        4 => bytes[at] = bytes[at].wrapping_add(if draw.below(2) == 0 { 1 } else { 255 }),
        5 => bytes.truncate(at),
        6 => {
            // Copies a run of bytes to another place: structures that overlap or occur twice.
            let end = (at + 1 + draw.below(64) as usize).min(bytes.len());
            let run = bytes[at..end].to_vec();
            let to = place(bytes.len() - run.len(), draw);
            bytes[to..to + run.len()].copy_from_slice(&run);
        }
        _ => {
            let other = &seeds[draw.below(seeds.len() as u64) as usize];
            let from = place(other.len(), draw);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
            bytes.truncate(MAX_LEN_BYTES);
        }
    }
}
