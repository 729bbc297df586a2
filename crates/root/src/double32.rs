//! `Double32_t` and `Float16_t`: floating-point numbers that ROOT stores in fewer bytes than they have in memory.
//!
//! The comment of the member or the title of the leaf determines the representation: `[0,100]`, `[-pi,pi,12]`,
//! `[0,0,8]`. Sources: `GetRange` in `TStreamerElement.cxx`, `WriteDouble32` and `WriteFloat16` in `TBufferFile.cxx`.
//! Invariant: values equal those that ROOT reads, to the last bit.

use std::f64::consts::PI;

/// Representation of a stored `Double32_t` or `Float16_t`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Packing {
    /// 32-bit floating-point number.
    Single,
    /// 32-bit integer: the distance from `minimum`, multiplied by `factor`.
    Scaled { minimum: f64, factor: f64 },
    /// As the exponent of a 32-bit floating-point number, followed by its sign and the first `bits` bits of its
    /// mantissa.
    Truncated { bits: u32 },
}

/// Maximum number of mantissa bits: mantissa and sign are stored in 16 bits, one of which ROOT leaves out.
const MAX_BITS: u32 = 14;

/// Range of values from the comment of a member.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Range {
    /// Minimum, or the number of bits if `factor` is 0.
    pub(super) minimum: f64,
    /// Scale factor; 0 if there is no range.
    pub(super) factor: f64,
}

impl Range {
    /// Finds the range in a comment or title. A range that ROOT does not understand is ignored.
    pub(super) fn in_title(title: &str) -> Self {
        Self::parse(title).unwrap_or_default()
    }

    fn parse(title: &str) -> Option<Self> {
        let (_, after) = title.split_once('[')?;
        let (mut inside, after) = after.split_once(']')?;
        // The first brackets may contain an extent.
        if !inside.contains(',') {
            (inside, _) = after.split_once('[')?.1.split_once(']')?;
        }
        let (minimum, rest) = inside.split_once(',')?;
        let (maximum, bits) = match rest.split_once(',') {
            Some((maximum, bits)) => (maximum, integer(bits).filter(|bits| (2..=32).contains(bits)).unwrap_or(32)),
            None => (rest, 32),
        };
        let (mut minimum, maximum) = (limit(minimum), limit(maximum));
        let steps = if bits < 32 { f64::from(1u32 << bits) } else { f64::from(u32::MAX) };
        let factor = if minimum < maximum { steps / (maximum - minimum) } else { 0.0 };
        if minimum >= maximum && bits <= MAX_BITS {
            minimum = f64::from(bits) + 0.1;
        }
        Some(Self { minimum, factor })
    }

    /// Returns the representation of a `Double32_t` of this range; `None` if no such number can have been stored.
    pub(super) fn double32(self) -> Option<Packing> {
        self.packing(Packing::DOUBLE32)
    }

    /// Returns the representation of a `Float16_t` of this range; `None` if no such number can have been stored.
    pub(super) fn float16(self) -> Option<Packing> {
        self.packing(Packing::FLOAT16)
    }

    fn packing(self, usual: Packing) -> Option<Packing> {
        if self.factor != 0.0 {
            return Some(Packing::Scaled { minimum: self.minimum, factor: self.factor });
        }
        match self.minimum as i64 {
            0 => Some(usual),
            bits => u32::try_from(bits).ok().filter(|bits| *bits <= MAX_BITS).map(|bits| Packing::Truncated { bits }),
        }
    }
}

impl Packing {
    /// Representation of a `Double32_t` without a range.
    pub(super) const DOUBLE32: Self = Self::Single;

    /// Representation of a `Float16_t` without a range (`WriteFloat16`).
    pub(super) const FLOAT16: Self = Self::Truncated { bits: 12 };

    /// Returns the length of a stored number.
    pub(super) const fn len_bytes(self) -> usize {
        match self {
            Self::Single | Self::Scaled { .. } => 4,
            Self::Truncated { .. } => 3,
        }
    }

    /// Decodes the number in the first [`Packing::len_bytes`] bytes of `stored`; missing bytes count as 0.
    pub(super) fn value(self, stored: &[u8]) -> f64 {
        let byte = |number: usize| u32::from(stored.get(number).copied().unwrap_or(0));
        let word = byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
        match self {
            Self::Single => f64::from(f32::from_bits(word)),
            Self::Scaled { minimum, factor } => f64::from(word) / factor + minimum,
            Self::Truncated { bits } => {
                let (exponent, mantissa) = (byte(0), byte(1) << 8 | byte(2));
                let sign = 1 << (bits + 1);
                let size = f32::from_bits(exponent << 23 | (mantissa & (sign - 1)) << (23 - bits));
                f64::from(if mantissa & sign == 0 { size } else { -size })
            }
        }
    }
}

/// Parses a limit of a range, which may be a multiple of pi. As in ROOT, anything else is 0.
fn limit(text: &str) -> f64 {
    let text: String = text.chars().filter(|letter| *letter != ' ').collect::<String>().to_lowercase();
    if !text.contains("pi") {
        return number(&text);
    }
    let size = match () {
        () if ["2pi", "2*pi", "twopi"].iter().any(|twice| text.contains(twice)) => 2.0 * PI,
        () if text.contains("pi/2") => PI / 2.0,
        () if text.contains("pi/4") => PI / 4.0,
        () => PI,
    };
    if text.contains('-') { -size } else { size }
}

/// Parses the number at the beginning of a string.
fn number(text: &str) -> f64 {
    /// Length that no number written by hand exceeds.
    const MAX_LETTERS: usize = 64;
    let text = text.trim_start();
    let ends = text.char_indices().map(|(at, letter)| at + letter.len_utf8()).take(MAX_LETTERS).collect::<Vec<_>>();
    ends.into_iter().rev().find_map(|end| text[..end].parse().ok()).unwrap_or(0.0)
}

/// Parses the integer at the beginning of a string.
fn integer(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_root() {
        let scaled = |minimum: f64, maximum: f64, steps: f64| {
            Some(Packing::Scaled { minimum, factor: steps / (maximum - minimum) })
        };
        let truncated = |bits| Some(Packing::Truncated { bits });
        let all = f64::from(u32::MAX);
        let cases = [
            ("", Some(Packing::Single)),
            ("a comment", Some(Packing::Single)),
            ("[0,100]", scaled(0.0, 100.0, all)),
            ("[-1, 1,10] charge", scaled(-1.0, 1.0, 1024.0)),
            ("x[3]/d[-30,30,10]", scaled(-30.0, 30.0, 1024.0)),
            ("x[n]/d[0,3]", scaled(0.0, 3.0, all)),
            ("[-pi,twopi,12]", scaled(-PI, 2.0 * PI, 4096.0)),
            ("[-pi/2,PI / 4,8]", scaled(-PI / 2.0, PI / 4.0, 256.0)),
            ("[-2*pi,2pi]", scaled(-2.0 * PI, 2.0 * PI, all)),
            ("[1e-3,1.5E2,16]", scaled(1e-3, 150.0, 65536.0)),
            ("[0,1,40]", scaled(0.0, 1.0, all)),
            ("[0,1,1]", scaled(0.0, 1.0, all)),
            ("[0,0,8]", truncated(8)),
            ("[0,0,14]", truncated(14)),
            // More bits than a truncated mantissa has are treated like a missing range.
            ("[0,0,15]", Some(Packing::Single)),
            ("[0,0]", Some(Packing::Single)),
            ("[5,3,10]", truncated(10)),
            ("[-1,-2]", None),
            ("[3]", Some(Packing::Single)),
            ("[3][4]", Some(Packing::Single)),
            ("[0,1", Some(Packing::Single)),
            ("]0,1[", Some(Packing::Single)),
            ("[a,b]", Some(Packing::Single)),
        ];
        for (title, expected) in cases {
            assert_eq!(Range::in_title(title).double32(), expected, "{title}");
        }
        assert_eq!(Range::in_title("").float16(), truncated(12));
        assert_eq!(Range::in_title("[0,0,16]").float16(), truncated(12));
        assert_eq!(Range::in_title("[0,0,6]").float16(), truncated(6));
    }

    /// Bytes that ROOT 6.40 wrote decode to the values that it reads.
    #[test]
    fn values_are_those_of_root() {
        let value = |title: &str, stored: &[u8]| Range::in_title(title).double32().unwrap().value(stored);
        assert_eq!(value("", &[0x3e, 0xaa, 0xaa, 0xab]), f64::from(1f32 / 3.0));
        assert_eq!(value("[-1,1,10]", &[0, 0, 0, 0x57]), -0.830078125);
        assert_eq!(value("[0,100]", &[0xff; 4]), 100.0);
        assert_eq!(value("[0,0,8]", &[0x7f, 0x02, 0x4d]), -1.30078125);
        assert_eq!(Packing::Truncated { bits: 12 }.value(&[0x7e, 0x28, 0x7e]), -0.765380859375);
        assert_eq!(value("[0,100]", &[]), 0.0);
    }
}
