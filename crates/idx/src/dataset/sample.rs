//! Types of samples: a number type and a count.

use std::str::FromStr;

/// Type of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    /// Unsigned, 8 bits.
    Uint8,
    /// Signed, 8 bits.
    Int8,
    /// Unsigned, 16 bits.
    Uint16,
    /// Signed, 16 bits.
    Int16,
    /// Unsigned, 32 bits.
    Uint32,
    /// Signed, 32 bits.
    Int32,
    /// Unsigned, 64 bits.
    Uint64,
    /// Signed, 64 bits.
    Int64,
    /// IEEE 754, 32 bits.
    Float32,
    /// IEEE 754, 64 bits.
    Float64,
}

impl Number {
    const ALL: [(Self, &'static str, usize); 10] = [
        (Self::Uint8, "uint8", 1),
        (Self::Int8, "int8", 1),
        (Self::Uint16, "uint16", 2),
        (Self::Int16, "int16", 2),
        (Self::Uint32, "uint32", 4),
        (Self::Int32, "int32", 4),
        (Self::Uint64, "uint64", 8),
        (Self::Int64, "int64", 8),
        (Self::Float32, "float32", 4),
        (Self::Float64, "float64", 8),
    ];

    /// Returns the name used in an `.idx` file.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns the length of a number, in bytes.
    pub fn len_bytes(self) -> usize {
        Self::ALL[self as usize].2
    }

    /// Returns the value of the first number in `bytes`, little-endian; zero if they are too few.
    pub fn value_of(self, bytes: &[u8]) -> f64 {
        macro_rules! of {
            ($type:ty) => {
                bytes.first_chunk().map_or(0.0, |bytes| <$type>::from_le_bytes(*bytes) as f64)
            };
        }
        match self {
            Self::Uint8 => of!(u8),
            Self::Int8 => of!(i8),
            Self::Uint16 => of!(u16),
            Self::Int16 => of!(i16),
            Self::Uint32 => of!(u32),
            Self::Int32 => of!(i32),
            Self::Uint64 => of!(u64),
            Self::Int64 => of!(i64),
            Self::Float32 => of!(f32),
            Self::Float64 => of!(f64),
        }
    }

    /// Returns the bytes of `value` in this type, little-endian. Values out of range are clamped, and fractions are
    /// truncated.
    pub fn bytes_of(self, value: f64) -> Vec<u8> {
        match self {
            Self::Uint8 => (value as u8).to_le_bytes().to_vec(),
            Self::Int8 => (value as i8).to_le_bytes().to_vec(),
            Self::Uint16 => (value as u16).to_le_bytes().to_vec(),
            Self::Int16 => (value as i16).to_le_bytes().to_vec(),
            Self::Uint32 => (value as u32).to_le_bytes().to_vec(),
            Self::Int32 => (value as i32).to_le_bytes().to_vec(),
            Self::Uint64 => (value as u64).to_le_bytes().to_vec(),
            Self::Int64 => (value as i64).to_le_bytes().to_vec(),
            Self::Float32 => (value as f32).to_le_bytes().to_vec(),
            Self::Float64 => value.to_le_bytes().to_vec(),
        }
    }
}

/// Error for a string that is not the name of a [`Number`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a type of numbers such as float32 or uint16; vectors are a last axis")]
pub struct ParseNumberError;

impl FromStr for Number {
    type Err = ParseNumberError;

    fn from_str(text: &str) -> Result<Self, ParseNumberError> {
        Self::ALL.iter().find(|(_, name, _)| *name == text).map(|(number, ..)| *number).ok_or(ParseNumberError)
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Maximum length of a sample in bytes: thousands of numbers, and small compared with a block.
pub const MAX_SAMPLE_LEN_BYTES: usize = 1 << 16;

/// Type of a sample: `count` contiguous numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SampleType {
    /// Type of each number.
    pub number: Number,
    /// Numbers per sample, at least 1.
    pub count: usize,
}

impl SampleType {
    /// Returns the length of a sample, in bytes.
    pub fn len_bytes(self) -> usize {
        self.number.len_bytes() * self.count
    }

    /// Returns whether OpenVisus reads samples of this type. It copies samples by their length, supports only these
    /// lengths, and throws on others (2.2.149, `NeedToCopySamples` in `Array.h`).
    pub fn is_read_by_openvisus(self) -> bool {
        matches!(self.len_bytes(), 1..=32 | 64 | 128 | 256 | 512 | 1024)
    }
}

/// Error for a string that is not a sample type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a sample type such as float32, float64[3] or 3*float64 of at most {MAX_SAMPLE_LEN_BYTES} bytes")]
pub struct ParseSampleTypeError;

impl FromStr for SampleType {
    type Err = ParseSampleTypeError;

    /// Parses `float64`, `float64[3]` (OpenVisus) or `3*float64` (PIDX).
    fn from_str(text: &str) -> Result<Self, ParseSampleTypeError> {
        let (count, name) = match text.split_once('*') {
            Some((count, name)) => (count.parse().map_err(|_| ParseSampleTypeError)?, name),
            None => match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
                Some((name, count)) => (count.parse().map_err(|_| ParseSampleTypeError)?, name),
                None => (1, text),
            },
        };
        let number: Number = name.parse().map_err(|ParseNumberError| ParseSampleTypeError)?;
        if count == 0 || count > MAX_SAMPLE_LEN_BYTES / number.len_bytes() {
            return Err(ParseSampleTypeError);
        }
        Ok(Self { number, count })
    }
}

impl std::fmt::Display for SampleType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count {
            1 => formatter.write_str(self.number.name()),
            count => write!(formatter, "{}[{count}]", self.number.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read() {
        let vector = SampleType { number: Number::Float64, count: 3 };
        assert_eq!("float64[3]".parse(), Ok(vector));
        assert_eq!("3*float64".parse(), Ok(vector));
        assert_eq!(vector.to_string(), "float64[3]");
        assert_eq!(vector.len_bytes(), 24);
        assert_eq!("1*uint8".parse::<SampleType>().unwrap().to_string(), "uint8");
        for wrong in ["", "float", "float64[0]", "0*int8", "float64[3", "float64[-1]", "70000*uint8", "*int8", "[3]"] {
            assert_eq!(wrong.parse::<SampleType>(), Err(ParseSampleTypeError), "{wrong}");
        }
    }

    #[test]
    fn the_table_is_in_order() {
        for (index, (number, ..)) in Number::ALL.iter().enumerate() {
            assert_eq!(*number as usize, index);
            assert_eq!(number.bytes_of(7.0).len(), number.len_bytes());
            assert_eq!((number.value_of(&number.bytes_of(7.0)), number.value_of(&[])), (7.0, 0.0));
        }
    }
}
