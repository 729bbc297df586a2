//! Sizes as users write them: `512MiB`, `2GB`, `1.5GiB`, `4096`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// A number of bytes, parsed from the user's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Reason why a string is not a valid size.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SizeError {
    /// The number before the unit is missing.
    NoNumber,
    /// The unit is unknown.
    Unit(String),
    /// The size exceeds 64 bits or is less than one byte.
    Range,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => write!(f, "a size begins with a number, for example 512MiB or 2GB"),
            Self::Unit(unit) => {
                write!(
                    f,
                    "unknown unit {unit:?}: use B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024)"
                )
            }
            Self::Range => write!(f, "the size is out of range (1 byte to 16 EiB)"),
        }
    }
}

impl std::error::Error for SizeError {}

impl FromStr for Size {
    type Err = SizeError;

    /// Parses `NUMBER[UNIT]`, where the number may have a decimal fraction. Units ending in `iB` and bare letters
    /// (`512M`) are powers of 1024, units ending in `B` powers of 1000; case does not matter.
    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..split], text[split..].trim_start());
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(SizeError::NoNumber);
        }
        let scale: u128 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1000,
            "mb" => 1000_u128.pow(2),
            "gb" => 1000_u128.pow(3),
            "tb" => 1000_u128.pow(4),
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            _ => return Err(SizeError::Unit(unit.to_owned())),
        };
        // Twelve digits of fraction are below a byte for every unit and keep the product within 128 bits.
        let fraction = &fraction[..fraction.len().min(12)];
        let parse = |digits: &str| if digits.is_empty() { Ok(0) } else { digits.parse::<u64>() };
        let whole = u128::from(parse(whole).map_err(|_| SizeError::Range)?);
        let part = u128::from(parse(fraction).map_err(|_| SizeError::Range)?);
        let bytes = whole * scale + part * scale / 10_u128.pow(fraction.len() as u32);
        match u64::try_from(bytes) {
            Ok(bytes) if bytes > 0 => Ok(Self(bytes)),
            _ => Err(SizeError::Range),
        }
    }
}

impl Serialize for Size {
    /// Writes the number of bytes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Size {
    /// Reads a number of bytes, or a string with a unit.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Size;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number of bytes, or a string such as 512MiB")
            }

            fn visit_u64<E: de::Error>(self, len_bytes: u64) -> Result<Size, E> {
                if len_bytes == 0 { Err(E::custom(SizeError::Range)) } else { Ok(Size(len_bytes)) }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn bytes(text: &str) -> u64 {
        text.parse::<Size>().unwrap().0
    }

    #[test]
    fn units_of_both_kinds() {
        assert_eq!(bytes("512MiB"), 512 << 20);
        assert_eq!(bytes("2GB"), 2_000_000_000);
        assert_eq!(bytes("64k"), 65_536);
        assert_eq!(bytes("4096"), 4096);
        assert_eq!(bytes(" 7 b "), 7);
    }

    #[test]
    fn numbers_and_texts_are_read_from_json() {
        assert_eq!(serde_json::from_str::<Size>("4096").unwrap(), Size(4096));
        assert_eq!(serde_json::from_str::<Size>("\"2GB\"").unwrap(), Size(2_000_000_000));
        assert_eq!(serde_json::to_string(&Size(7)).unwrap(), "7");
        for text in ["0", "-1", "1.5", "\"big\"", "[1]"] {
            assert!(serde_json::from_str::<Size>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fractions_are_exact() {
        assert_eq!(bytes("1.5GiB"), 3 << 29);
        assert_eq!(bytes(".5kB"), 500);
        assert_eq!(bytes("0.1234567890123456789TB"), 123_456_789_012);
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        for text in ["", "GiB", "much", "-1", ".", "1.2.3GB"] {
            assert_eq!(text.parse::<Size>(), Err(SizeError::NoNumber), "{text:?}");
        }
        assert_eq!("3 parsec".parse::<Size>(), Err(SizeError::Unit("parsec".to_owned())));
        for text in ["0", "99999999999999999999", "17000000TiB"] {
            assert_eq!(text.parse::<Size>(), Err(SizeError::Range), "{text:?}");
        }
    }
}
