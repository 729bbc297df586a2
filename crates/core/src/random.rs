//! A small deterministic random generator for synthetic data: the same on every machine and for any number of threads.
//!
//! It is SplitMix64 (Steele, Lea, Flood 2014): one addition and two multiplications per value. Any 64-bit number is a
//! good seed, so each dataset of each file gets a separate stream from a hash of its identity. It is not suitable for
//! cryptography.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

/// Weyl increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
const INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

impl Random {
    /// Creates the stream for `keys`, for example seed, file number and table number.
    pub fn of(keys: &[u64]) -> Self {
        let state = keys.iter().fold(0, |state, &key| mix(state ^ key.wrapping_add(INCREMENT)).wrapping_add(INCREMENT));
        Self { state }
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(INCREMENT);
        mix(self.state)
    }

    /// Returns a number below `end` (which must not be 0); the bias is below `end` / 2^64.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        // 53 bits is the precision of a double.
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns true with `probability`.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns a roughly normal number with mean 0 and variance 1: the sum of four 16-bit uniforms, which looks enough
    /// like detector data to a compressor and needs only one draw.
    pub fn normal(&mut self) -> f64 {
        let bits = self.bits();
        let sum: u64 = (0..4).map(|part| (bits >> (16 * part)) & 0xFFFF).sum();
        // Each uniform has variance 65536² / 12, four of them 65536² / 3.
        (sum as f64 - 2.0 * 65535.0) / (65536.0 / 3.0_f64.sqrt())
    }

    /// Returns a geometrically distributed number with the given mean; 0 is the most likely.
    pub fn geometric(&mut self, mean: f64) -> u64 {
        if mean <= 0.0 {
            return 0;
        }
        // P(k) = p (1 - p)^k has mean (1 - p) / p.
        let stay = mean / (1.0 + mean);
        ((1.0 - self.unit()).ln() / stay.ln()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn streams_differ_by_any_key_and_repeat_by_equal_keys() {
        let first = Random::of(&[1, 2, 3]).bits();
        assert_eq!(first, Random::of(&[1, 2, 3]).bits());
        for other in [&[1, 2, 4][..], &[1, 3, 2], &[2, 2, 3], &[1, 2], &[1, 2, 3, 0]] {
            assert_ne!(first, Random::of(other).bits(), "{other:?}");
        }
    }

    #[test]
    fn moments_are_as_documented() {
        let mut random = Random::of(&[7]);
        let count = 100_000;
        let (mut sum, mut squares, mut geometric, mut unit) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..count {
            let value = random.normal();
            sum += value;
            squares += value * value;
            geometric += random.geometric(3.5) as f64;
            unit += random.unit();
        }
        let count = f64::from(count);
        assert!((sum / count).abs() < 0.02, "mean {}", sum / count);
        assert!((squares / count - 1.0).abs() < 0.03, "variance {}", squares / count);
        assert!((geometric / count - 3.5).abs() < 0.1, "geometric mean {}", geometric / count);
        assert!((unit / count - 0.5).abs() < 0.01, "uniform mean {}", unit / count);
    }
}
