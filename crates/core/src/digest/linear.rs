//! The CRC used to combine digests: its register starts at zero and is not inverted, which makes it linear.
//!
//! crc(a ++ b) = shift(crc(a), len b) ^ crc(b), so fragments of a block can be combined by exclusive or, from any
//! thread and in any order.

use crc_fast::CrcAlgorithm;

/// Generator polynomial of CRC-64/NVME, bit-reversed: bit 63 stands for x^0, bit 0 for x^63 (x^64 is implied).
const POLYNOMIAL: u64 = 0x9A6C_9329_AC4B_C9B5;

/// The polynomial 1 in the same notation.
const ONE: u64 = 1 << 63;

/// Returns a·x modulo the polynomial.
const fn times_x(a: u64) -> u64 {
    (a >> 1) ^ (POLYNOMIAL & (a & 1).wrapping_neg())
}

/// Reductions of n·x^4 by the four bits n shifted out at the low end.
const REDUCED: [u64; 16] = {
    let mut table = [0; 16];
    let mut n = 0;
    while n < 16 {
        table[n] = times_x(times_x(times_x(times_x(n as u64))));
        n += 1;
    }
    table
};

/// Returns a·b modulo the polynomial, in about 40 ns. Processes four bits of `a` at a time, from its highest power
/// (lowest bit) on.
const fn multiply(a: u64, b: u64) -> u64 {
    // Multiples of b by the 16 polynomials below x^4; in this notation 8 is x^0 and 1 is x^3.
    let mut multiples = [0; 16];
    multiples[8] = b;
    multiples[4] = times_x(multiples[8]);
    multiples[2] = times_x(multiples[4]);
    multiples[1] = times_x(multiples[2]);
    let mut n = 3usize;
    while n < 16 {
        let low = n & n.wrapping_neg();
        if low != n {
            multiples[n] = multiples[low] ^ multiples[n ^ low];
        }
        n += 1;
    }
    let (mut sum, mut at) = (0u64, 0);
    while at < 64 {
        sum = (sum >> 4) ^ REDUCED[(sum & 15) as usize] ^ multiples[((a >> at) & 15) as usize];
        at += 4;
    }
    sum
}

/// x^(8·d·16^k): factors that shift by a length, indexed by place `k` and hexadecimal digit `d` of that length.
static SHIFTS: [[u64; 16]; 16] = {
    let mut table = [[ONE; 16]; 16];
    // x^8, then its 16th, 256th, ... powers.
    let mut base = ONE >> 8;
    let mut place = 0;
    while place < 16 {
        let mut digit = 1;
        while digit < 16 {
            table[place][digit] = multiply(table[place][digit - 1], base);
            digit += 1;
        }
        base = multiply(table[place][15], base);
        place += 1;
    }
    table
};

/// A precomputed shift by a fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shift {
    factor: u64,
}

impl Shift {
    /// Prepares a shift by `len_bytes` bytes; costs one multiplication per hexadecimal digit of the length.
    pub fn over(len_bytes: u64) -> Self {
        let (mut factor, mut rest) = (ONE, len_bytes);
        for place in &SHIFTS {
            if rest == 0 {
                break;
            }
            if rest & 15 != 0 {
                factor = multiply(factor, place[(rest & 15) as usize]);
            }
            rest >>= 4;
        }
        Self { factor }
    }

    /// Returns the linear CRC of the content of `crc` followed by that many zeros.
    pub fn apply(self, crc: u64) -> u64 {
        multiply(crc, self.factor)
    }
}

/// A shift as a table of the products with each value of each byte, which takes 16 KiB and a few microseconds. Applying
/// it takes a tenth of the time of [`Shift::apply`].
pub(super) struct Factor {
    products: [[u64; 256]; 8],
}

impl Factor {
    pub(super) fn of(shift: Shift) -> Self {
        let mut products = [[0; 256]; 8];
        // The highest bit stands for x^0.
        let mut product = shift.factor;
        for bit in (0..64).rev() {
            products[bit / 8][1 << (bit % 8)] = product;
            product = times_x(product);
        }
        for of_byte in &mut products {
            for value in 1..256_usize {
                let low = value & value.wrapping_neg();
                of_byte[value] = of_byte[low] ^ of_byte[value ^ low];
            }
        }
        Self { products }
    }

    /// Returns the linear CRC of the content of `crc` followed by the zeros of the shift.
    pub(super) fn apply(&self, crc: u64) -> u64 {
        let bytes = crc.to_le_bytes();
        (0..8).fold(0, |sum, at| sum ^ self.products[at][usize::from(bytes[at])])
    }
}

/// CRCs of each byte followed by `k` zeros, indexed by `k` and the byte.
static FOLLOWED_BY_ZEROS: [[u64; 256]; 8] = {
    let mut table = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u64, 0);
        while bit < 8 {
            crc = times_x(crc);
            bit += 1;
        }
        table[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = table[zeros - 1][byte];
            table[zeros][byte] = (crc >> 8) ^ table[0][(crc & 0xff) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    table
};

/// Length up to which tables are faster than vector instructions, whose results must be reduced.
const MAX_TABLE_LEN_BYTES: usize = 64;

/// Returns the linear CRC of `bytes`. It is 0 for zeros of any length, so it is meaningful only together with the
/// length.
pub fn fragment(bytes: &[u8]) -> u64 {
    if bytes.len() <= MAX_TABLE_LEN_BYTES {
        return fragment_by_tables(bytes);
    }
    let mut digest = crc_fast::Digest::new_with_init_state(CrcAlgorithm::Crc64Nvme, 0);
    digest.update(bytes);
    digest.get_state()
}

fn fragment_by_tables(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(0, |crc, word| {
        let word = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        (0..8).fold(0, |sum, at| sum ^ FOLLOWED_BY_ZEROS[7 - at][usize::from(word[at])])
    });
    if let Some(half) = rest.first_chunk::<4>() {
        let word = (crc as u32 ^ u32::from_le_bytes(*half)).to_le_bytes();
        let crc = (0..4).fold(crc >> 32, |sum, at| sum ^ FOLLOWED_BY_ZEROS[3 - at][usize::from(word[at])]);
        return bytewise(crc, &rest[4..]);
    }
    bytewise(crc, rest)
}

fn bytewise(crc: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(crc, |crc, byte| (crc >> 8) ^ FOLLOWED_BY_ZEROS[0][usize::from(crc as u8 ^ byte)])
}

/// Returns the linear CRC of the content of `crc` followed by `following_len_bytes` zeros.
pub fn shift(crc: u64, following_len_bytes: u64) -> u64 {
    if crc == 0 { 0 } else { Shift::over(following_len_bytes).apply(crc) }
}

/// Returns the linear CRC of `a` followed by `b`, which is `b_len_bytes` long.
pub fn concat(a: u64, b: u64, b_len_bytes: u64) -> u64 {
    shift(a, b_len_bytes) ^ b
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn long_shifts() {
        let crc = fragment(b"x");
        assert_eq!(shift(shift(crc, 1 << 40), 12_345), shift(crc, (1 << 40) + 12_345));
        assert_eq!(shift(crc, 0), crc);
    }

    #[test]
    fn tables_equal_the_computation() {
        let bytes: Vec<u8> = (1..=100u8).map(|byte| byte.wrapping_mul(151)).collect();
        for len_bytes in 0..bytes.len() {
            let mut digest = crc_fast::Digest::new_with_init_state(CrcAlgorithm::Crc64Nvme, 0);
            digest.update(&bytes[..len_bytes]);
            assert_eq!(fragment_by_tables(&bytes[..len_bytes]), digest.get_state(), "{len_bytes}");
            let step = Shift::over(len_bytes as u64);
            let crc = fragment(&bytes[len_bytes..]);
            assert_eq!(Factor::of(step).apply(crc), step.apply(crc), "{len_bytes}");
        }
    }
}
