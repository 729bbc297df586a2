//! zfp: bare streams of arrays of numbers, stored exactly or within a requested accuracy.
//!
//! A stream does not describe itself: numbers, counts and mode are stored elsewhere. Headers and the HDF5 filter are
//! not supported. Streams are those of libzfp with words of 64 bits. Invariants: encoded data decodes to what the mode
//! promises, or is not encoded; decoding fills the output from exactly the stored bytes, or fails.

use crate::error::{CodecError, Result};
use std::str::FromStr;
use zfp_rs::{ZfpBitStreamRef, ZfpBitStreamRefMut, ZfpConfig, ZfpField, ZfpFieldMut, ZfpScalar};

/// Length of the words that a stream consists of.
const WORD_LEN_BYTES: usize = size_of::<u64>();

/// Accuracy of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ZfpMode {
    /// Exact: every bit is kept.
    Reversible,
    /// This number of bit planes, 1 to 64, of each group of four values along every axis. Arrays with values that are
    /// not finite, or with integers so large that the transform would overflow, are not encoded.
    Precision(u32),
    /// Floating-point numbers to within this distance, finite and above 0. Arrays for which that is not possible are
    /// not encoded.
    Accuracy(f64),
}

impl ZfpMode {
    fn config(self) -> ZfpConfig {
        match self {
            Self::Reversible => ZfpConfig::reversible(),
            Self::Precision(planes) => ZfpConfig::fixed_precision(planes),
            Self::Accuracy(tolerance) => ZfpConfig::fixed_accuracy(tolerance),
        }
    }
}

/// Error for text that is not a zfp mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not reversible, precision=N with N from 1 to 64, or accuracy=X with X above 0")]
pub struct ParseZfpModeError;

impl FromStr for ZfpMode {
    type Err = ParseZfpModeError;

    /// Parses `reversible`, `precision=16` or `accuracy=0.001`.
    fn from_str(text: &str) -> Result<Self, ParseZfpModeError> {
        match text.split_once('=') {
            None if text == "reversible" => Ok(Self::Reversible),
            Some(("precision", planes)) => match planes.parse() {
                Ok(planes @ 1..=zfp_rs::ZFP_MAX_PREC) => Ok(Self::Precision(planes)),
                _ => Err(ParseZfpModeError),
            },
            Some(("accuracy", tolerance)) => match tolerance.parse() {
                Ok(tolerance) if f64::is_finite(tolerance) && tolerance > 0.0 => Ok(Self::Accuracy(tolerance)),
                _ => Err(ParseZfpModeError),
            },
            _ => Err(ParseZfpModeError),
        }
    }
}

impl std::fmt::Display for ZfpMode {
    /// Formats the mode as it is parsed, without an exponent.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reversible => formatter.write_str("reversible"),
            Self::Precision(planes) => write!(formatter, "precision={planes}"),
            Self::Accuracy(tolerance) => write!(formatter, "accuracy={tolerance}"),
        }
    }
}

/// Number types that zfp supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ZfpNumber {
    /// Signed integer, 32 bits.
    Int32,
    /// Signed integer, 64 bits.
    Int64,
    /// IEEE 754, 32 bits.
    Float32,
    /// IEEE 754, 64 bits.
    Float64,
}

impl ZfpNumber {
    /// Returns the length of one number.
    pub const fn len_bytes(self) -> usize {
        match self {
            Self::Int32 | Self::Float32 => 4,
            Self::Int64 | Self::Float64 => 8,
        }
    }

    /// Returns whether the numbers are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }
}

/// Description of an array: its numbers, little-endian, and their count along each axis, x (the fastest) first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZfpArray {
    /// Type of the numbers.
    pub number: ZfpNumber,
    /// Number of values along each axis, at least 1.
    pub counts: [usize; 3],
    /// Whether there is a third axis, even of length 1. Streams of two and of three axes differ.
    pub has_z: bool,
}

impl ZfpArray {
    /// Returns the length of the whole array.
    pub fn len_bytes(&self) -> usize {
        self.counts.iter().product::<usize>() * self.number.len_bytes()
    }

    /// Returns the dimensions as the library expects them: 0 along missing axes.
    fn dims(&self) -> [usize; 3] {
        let [x, y, z] = self.counts;
        [x, y, if self.has_z { z } else { 0 }]
    }
}

/// Encoder and decoder; use one per thread. It holds at most three times the longest array.
#[derive(Debug, Default)]
pub struct Zfp {
    words: Vec<u64>,
    values: Vec<u64>,
    again: Vec<u64>,
}

impl Zfp {
    /// Appends the stream of `raw`, if it keeps what `mode` promises and is shorter; returns whether it was appended.
    ///
    /// # Errors
    /// If the bytes are not such an array.
    pub fn append(&mut self, array: &ZfpArray, mode: ZfpMode, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        if raw.len() != array.len_bytes() || raw.is_empty() {
            return Err(CodecError::Zfp { fault: "its array has a different length" });
        }
        match array.number {
            ZfpNumber::Int32 => self.append_as::<i32>(array, mode, raw, out),
            ZfpNumber::Int64 => self.append_as::<i64>(array, mode, raw, out),
            ZfpNumber::Float32 => self.append_as::<f32>(array, mode, raw, out),
            ZfpNumber::Float64 => self.append_as::<f64>(array, mode, raw, out),
        }
    }

    fn append_as<T: ZfpValue>(
        &mut self,
        array: &ZfpArray,
        mode: ZfpMode,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let config = mode.config();
        let values = fill::<T>(&mut self.values, raw);
        if mode != ZfpMode::Reversible && !values.iter().all(|value| value.can_be_rounded()) {
            return Ok(false);
        }
        // Longer streams are not wanted: writing one stops with an error.
        self.words.clear();
        self.words.resize((raw.len() - 1) / WORD_LEN_BYTES, 0);
        let field = ZfpField::new(values, array.dims()).map_err(refused)?;
        let Ok(len_bytes) = ZfpBitStreamRefMut::from_words(&mut self.words).compress(&config, &field) else {
            return Ok(false);
        };
        let words = &self.words[..len_bytes / WORD_LEN_BYTES];
        if let ZfpMode::Accuracy(tolerance) = mode {
            let again = fill::<T>(&mut self.again, raw);
            let is_near = |(value, again): (&T, &T)| value.distance(*again) <= tolerance;
            if decode::<T>(array, mode, words, again).is_err() || !values.iter().zip(&*again).all(is_near) {
                return Ok(false);
            }
        }
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        Ok(true)
    }

    /// Decodes one stream, which must fill `raw`.
    ///
    /// # Errors
    /// If the bytes are not a stream of such an array in this mode. The contents of `raw` are then unspecified.
    pub fn decode(&mut self, array: &ZfpArray, mode: ZfpMode, stored: &[u8], raw: &mut [u8]) -> Result<()> {
        if raw.len() != array.len_bytes() || raw.is_empty() {
            return Err(CodecError::Zfp { fault: "its array has a different length" });
        }
        if !stored.len().is_multiple_of(WORD_LEN_BYTES) {
            return Err(CodecError::Zfp { fault: "its length is not a multiple of 8 bytes" });
        }
        let words = fill::<u64>(&mut self.words, stored);
        match array.number {
            ZfpNumber::Int32 => decode_into::<i32>(array, mode, words, &mut self.values, raw),
            ZfpNumber::Int64 => decode_into::<i64>(array, mode, words, &mut self.values, raw),
            ZfpNumber::Float32 => decode_into::<f32>(array, mode, words, &mut self.values, raw),
            ZfpNumber::Float64 => decode_into::<f64>(array, mode, words, &mut self.values, raw),
        }
    }
}

fn decode_into<T: ZfpValue>(
    array: &ZfpArray,
    mode: ZfpMode,
    words: &[u64],
    values: &mut Vec<u64>,
    raw: &mut [u8],
) -> Result<()> {
    values.clear();
    values.resize(raw.len().div_ceil(WORD_LEN_BYTES), 0);
    let values = &mut bytemuck::cast_slice_mut::<u64, T>(values)[..raw.len() / size_of::<T>()];
    decode(array, mode, words, values)?;
    raw.copy_from_slice(bytemuck::cast_slice(values));
    swap_on_big_endian(raw, size_of::<T>());
    Ok(())
}

fn decode<T: ZfpValue>(array: &ZfpArray, mode: ZfpMode, words: &[u64], values: &mut [T]) -> Result<()> {
    let mut field = ZfpFieldMut::new(values, array.dims()).map_err(refused)?;
    let decoded = ZfpBitStreamRef::from_words(words).decompress(&mode.config(), &mut field);
    match decoded {
        Ok(len_bytes) if len_bytes == size_of_val(words) => Ok(()),
        Ok(_) => Err(CodecError::Zfp { fault: "the array ends before its bytes do" }),
        Err(_) => Err(CodecError::Zfp { fault: "its bytes end before the array does" }),
    }
}

/// Converts numbers of this length from little-endian to the order of the processor, or back.
fn swap_on_big_endian(bytes: &mut [u8], number_len_bytes: usize) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(number_len_bytes).for_each(<[u8]>::reverse);
    }
}

/// Copies little-endian numbers to reused memory that is aligned for them.
fn fill<'m, T: bytemuck::Pod>(memory: &'m mut Vec<u64>, bytes: &[u8]) -> &'m mut [T] {
    memory.clear();
    memory.resize(bytes.len().div_ceil(WORD_LEN_BYTES), 0);
    let of_bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(memory)[..bytes.len()];
    of_bytes.copy_from_slice(bytes);
    swap_on_big_endian(of_bytes, size_of::<T>());
    bytemuck::cast_slice_mut(of_bytes)
}

fn refused(_: zfp_rs::ZfpFieldError) -> CodecError {
    CodecError::Zfp { fault: "its array has a different length" }
}

/// A number of an array.
trait ZfpValue: ZfpScalar {
    /// Returns whether modes that round preserve the value: finite, and so small that the transform of its group does
    /// not overflow.
    fn can_be_rounded(self) -> bool;

    /// Returns the distance to another value.
    fn distance(self, other: Self) -> f64;
}

macro_rules! value {
    ($($integer:ty),*; $($float:ty),*) => {
        $(impl ZfpValue for $integer {
            fn can_be_rounded(self) -> bool {
                self.unsigned_abs() < 1 << (<$integer>::BITS - 2)
            }

            fn distance(self, other: Self) -> f64 {
                self.abs_diff(other) as f64
            }
        })*
        $(impl ZfpValue for $float {
            fn can_be_rounded(self) -> bool {
                self.is_finite()
            }

            fn distance(self, other: Self) -> f64 {
                (f64::from(self) - f64::from(other)).abs()
            }
        })*
    };
}

value!(i32, i64; f32, f64);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shapes() -> impl Strategy<Value = ([usize; 3], bool)> {
        prop_oneof![
            ([1..20usize, 1..20usize], Just(false)).prop_map(|([x, y], has_z)| ([x, y, 1], has_z)),
            ([1..9usize, 1..9usize, 1..9usize], Just(true)),
        ]
    }

    /// Returns the numbers as little-endian bytes.
    fn bytes<T: bytemuck::Pod>(values: &[T]) -> Vec<u8> {
        let mut bytes = bytemuck::cast_slice(values).to_vec();
        swap_on_big_endian(&mut bytes, size_of::<T>());
        bytes
    }

    fn encoded(array: &ZfpArray, mode: ZfpMode, raw: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![7; 3];
        let is_there = Zfp::default().append(array, mode, raw, &mut out).unwrap();
        assert_eq!((out[..3].to_vec(), out.len() > 3), (vec![7; 3], is_there));
        is_there.then(|| out.split_off(3))
    }

    fn decoded(array: &ZfpArray, mode: ZfpMode, stored: &[u8]) -> Result<Vec<u8>> {
        let mut raw = vec![0xee; array.len_bytes()];
        Zfp::default().decode(array, mode, stored, &mut raw).map(|()| raw)
    }

    fn smooth(counts: [usize; 3]) -> Vec<f64> {
        let at = |x: usize, y: usize, z: usize| (x as f64 * 0.3).sin() * 40.0 + (y as f64 * 0.2).cos() + z as f64 / 7.0;
        let [nx, ny, nz] = counts;
        (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| at(x, y, z)))).collect()
    }

    #[test]
    fn modes_are_texts() {
        for text in ["reversible", "precision=1", "precision=64", "accuracy=0.001", "accuracy=12"] {
            assert_eq!(text.parse::<ZfpMode>().unwrap().to_string(), text);
        }
        assert_eq!("accuracy=1e-7".parse::<ZfpMode>().unwrap().to_string(), "accuracy=0.0000001");
        for text in
            ["", "precision", "precision=0", "precision=65", "accuracy=0", "accuracy=-1", "accuracy=inf", "rate=8"]
        {
            assert_eq!(text.parse::<ZfpMode>(), Err(ParseZfpModeError), "{text}");
        }
    }

    /// The expected streams were written by libzfp 1.0.1 (`zfpy.compress_numpy(values, write_header=False)`), for x x -
    /// 3 y + 1/4 of 6 x 5 numbers.
    #[test]
    fn streams_are_those_of_libzfp() {
        let values = || (0..5).flat_map(|y| (0..6).map(move |x| f64::from(x * x - 3 * y) + 0.25)).collect::<Vec<_>>();
        let array = ZfpArray { number: ZfpNumber::Float64, counts: [6, 5, 1], has_z: false };
        for (mode, stream) in [
            (ZfpMode::Reversible, "0df020b1200308222062238930ac206880c762040940d0000f650a2009080000"),
            (
                ZfpMode::Precision(20),
                "0748b9d605040000000000000000000968695100110500000000000000001c204f2429080000000000000000000e\
                 d01201511400000000000000000000000000",
            ),
            (
                ZfpMode::Accuracy(0.01),
                "0748b9d6050400000000000040025a5a1440440100000000000070803c91a420000000000000000ed01201511400\
                 00000000000000000000",
            ),
        ] {
            let stored = encoded(&array, mode, &bytes(&values())).unwrap();
            assert_eq!(hex(&stored), stream, "{mode}");
            assert!(mode != ZfpMode::Reversible || decoded(&array, mode, &stored).unwrap() == bytes(&values()));
        }
        // A third axis, even of length 1, makes a different stream.
        let values: Vec<i32> = (0..5).flat_map(|y| (0..6).map(move |x| x * x - 3 * y)).collect();
        let array = ZfpArray { number: ZfpNumber::Int32, has_z: true, ..array };
        let stored = encoded(&array, ZfpMode::Reversible, &bytes(&values)).unwrap();
        assert_eq!(hex(&stored), "1f0000001243800c7c0000003c0f110064e8030000b0180890800f00008032280020410000000000");
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn what_a_mode_cannot_keep_is_not_encoded() {
        let array = ZfpArray { number: ZfpNumber::Float64, counts: [8, 8, 4], has_z: true };
        let mut values = smooth(array.counts);
        let modes = [ZfpMode::Precision(16), ZfpMode::Accuracy(1e-3)];
        assert!(modes.iter().all(|mode| encoded(&array, *mode, &bytes(&values)).is_some()));
        values[77] = f64::NAN;
        assert!(modes.iter().all(|mode| encoded(&array, *mode, &bytes(&values)).is_none()));
        let stored = encoded(&array, ZfpMode::Reversible, &bytes(&values)).unwrap();
        assert_eq!(decoded(&array, ZfpMode::Reversible, &stored).unwrap(), bytes(&values));
        // Finer than the precision of the numbers themselves.
        values[77] = 1e20;
        assert!(encoded(&array, ZfpMode::Accuracy(1e-3), &bytes(&values)).is_none());
        let array = ZfpArray { number: ZfpNumber::Int32, counts: [4, 4, 1], has_z: false };
        let mut values: Vec<i32> = (0..16).collect();
        assert!(encoded(&array, ZfpMode::Precision(8), &bytes(&values)).is_some());
        values[3] = i32::MIN;
        assert!(encoded(&array, ZfpMode::Precision(8), &bytes(&values)).is_none());
    }

    #[test]
    fn damaged_streams_are_refused() {
        let array = ZfpArray { number: ZfpNumber::Float64, counts: [16, 16, 16], has_z: true };
        let mode = ZfpMode::Precision(20);
        let stored = encoded(&array, mode, &bytes(&smooth(array.counts))).unwrap();
        assert!(decoded(&array, mode, &stored).is_ok());
        for end in 0..stored.len() {
            assert!(decoded(&array, mode, &stored[..end]).is_err(), "{end}");
        }
        assert!(decoded(&array, mode, &[&stored[..], &[0; 8]].concat()).is_err());
        assert!(decoded(&array, ZfpMode::Precision(12), &stored).is_err());
        assert!(decoded(&array, ZfpMode::Reversible, &stored).is_err());
        let other = ZfpArray { counts: [16, 16, 8], ..array };
        assert!(decoded(&other, mode, &stored).is_err());
    }

    proptest! {
        #[test]
        fn every_bit_comes_back((counts, has_z) in shapes(), number in 0..4usize, seed: u64, spread in 0..64u32) {
            let number = [ZfpNumber::Int32, ZfpNumber::Int64, ZfpNumber::Float32, ZfpNumber::Float64][number];
            let array = ZfpArray { number, counts, has_z };
            let mut state = seed | 1;
            let mut raw = Vec::new();
            while raw.len() < array.len_bytes() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // From random bits to few that differ.
                raw.extend_from_slice(&(state >> spread | seed << 40).to_le_bytes()[..number.len_bytes()]);
            }
            if let Some(stored) = encoded(&array, ZfpMode::Reversible, &raw) {
                prop_assert!(stored.len() < raw.len());
                prop_assert_eq!(decoded(&array, ZfpMode::Reversible, &stored).unwrap(), raw);
            }
        }

        #[test]
        fn accuracy_holds((counts, has_z) in shapes(), scale in -30..30i32, tolerance in -20..10i32) {
            let array = ZfpArray { number: ZfpNumber::Float64, counts, has_z };
            let values: Vec<f64> = smooth(counts).iter().map(|value| value * 2f64.powi(scale)).collect();
            let tolerance = 1.7 * 2f64.powi(tolerance);
            if let Some(stored) = encoded(&array, ZfpMode::Accuracy(tolerance), &bytes(&values)) {
                let again = decoded(&array, ZfpMode::Accuracy(tolerance), &stored).unwrap();
                let (again, _) = again.as_chunks::<8>();
                for (value, again) in values.iter().zip(again) {
                    prop_assert!((value - f64::from_le_bytes(*again)).abs() <= tolerance);
                }
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(
            (counts, has_z) in shapes(),
            words in proptest::collection::vec(any::<u64>(), 0..40),
            mode in 0..3usize,
            number in 0..4usize,
        ) {
            let number = [ZfpNumber::Int32, ZfpNumber::Int64, ZfpNumber::Float32, ZfpNumber::Float64][number];
            let mode = [ZfpMode::Reversible, ZfpMode::Precision(9), ZfpMode::Accuracy(0.5)][mode];
            let _ = decoded(&ZfpArray { number, counts, has_z }, mode, &bytes(&words));
        }
    }
}
