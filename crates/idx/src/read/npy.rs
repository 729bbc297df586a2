//! `.npy`, numpy's file format for one array: the header before the values.
//!
//! This module supports versions 1 to 3, the IDX number types, and C order. The values are read elsewhere.
//! Invariant: an accepted header has a shape whose size in bytes fits 64 bits.
//!
//! Source: numpy.lib.format.

use crate::dataset::sample::Number;

/// Magic bytes at the start of every file.
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Maximum length of a header that is read: numpy warns above 10,000 bytes.
pub const MAX_HEAD_LEN_BYTES: usize = 1 << 16;

/// Headers are padded so that values begin at a multiple of this.
const ALIGNMENT_LEN_BYTES: usize = 64;

/// Reason why a header is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The magic or the version is unknown, or the file ends within the header.
    #[error("is not an .npy file of version 1 to 3")]
    NotNpy,
    /// The dictionary lacks a key, or the value of the key is unexpected.
    #[error("its header has no readable {key}")]
    Key {
        /// Name of the key.
        key: &'static str,
    },
    /// IDX does not have the type of the values.
    #[error("its values are of type {descr:?}; integers of 8 to 64 bits, float32 and float64 can be written")]
    Type {
        /// Type in the header.
        descr: String,
    },
    /// The first index varies fastest.
    #[error("its values are in Fortran order; save numpy.ascontiguousarray(array) instead")]
    Fortran,
    /// The shape has no axes, too many axes, or more bytes than fit 64 bits.
    #[error("its shape {shape:?} cannot be read")]
    Shape {
        /// Shape in the header.
        shape: Vec<u64>,
    },
}

/// Contents of an `.npy` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyHead {
    /// Type of the values.
    pub number: Number,
    /// Whether the values are big-endian.
    pub is_big_endian: bool,
    /// Number of values per axis, slowest first.
    pub shape: Vec<u64>,
    /// Offset of the values in the file.
    pub offset: u64,
}

impl NpyHead {
    /// Parses the header at the start of `bytes`.
    ///
    /// # Errors
    /// If the header is wrong or not supported.
    pub fn parse(bytes: &[u8]) -> Result<Self, NpyError> {
        let (magic, rest) = bytes.split_first_chunk::<6>().ok_or(NpyError::NotNpy)?;
        let (version, rest) = rest.split_first_chunk::<2>().ok_or(NpyError::NotNpy)?;
        let (len, rest) = match version[0] {
            1 => rest.split_first_chunk::<2>().map(|(len, rest)| (usize::from(u16::from_le_bytes(*len)), rest)),
            2 | 3 => rest.split_first_chunk::<4>().map(|(len, rest)| (u32::from_le_bytes(*len) as usize, rest)),
            _ => None,
        }
        .ok_or(NpyError::NotNpy)?;
        let text = rest.get(..len).and_then(|text| std::str::from_utf8(text).ok());
        let text = text.filter(|_| magic == MAGIC && len <= MAX_HEAD_LEN_BYTES).ok_or(NpyError::NotNpy)?;
        let (number, is_big_endian) = number_of_descr(quoted(value_of(text, "descr")?, "descr")?)?;
        let order = value_of(text, "fortran_order")?;
        let is_fortran = order.starts_with("True");
        if !is_fortran && !order.starts_with("False") {
            return Err(NpyError::Key { key: "fortran_order" });
        }
        let shape = shape_of(value_of(text, "shape")?)?;
        let values = raddle_core::plan::extent::product(&shape);
        let len_bytes = values.and_then(|values| values.checked_mul(number.len_bytes() as u64));
        if shape.is_empty() || shape.len() > raddle_core::plan::extent::MAX_RANK || len_bytes.is_none() {
            return Err(NpyError::Shape { shape });
        }
        // With one axis, both orders are the same.
        if is_fortran && shape.iter().filter(|count| **count > 1).count() > 1 {
            return Err(NpyError::Fortran);
        }
        Ok(Self { number, is_big_endian, shape, offset: (bytes.len() - rest.len() + len) as u64 })
    }

    /// Returns the header of a file of little-endian values of `shape`, slowest axis first.
    pub fn to_bytes(number: Number, shape: &[u64]) -> Vec<u8> {
        let kind = match number.name().as_bytes()[0] {
            b'u' => 'u',
            b'i' => 'i',
            _ => 'f',
        };
        let order = if number.len_bytes() == 1 { '|' } else { '<' };
        let counts: String = shape.iter().map(|count| format!("{count}, ")).collect();
        let counts = if shape.len() == 1 { counts.trim_end() } else { counts.trim_end_matches(", ") };
        let dictionary = format!(
            "{{'descr': '{order}{kind}{}', 'fortran_order': False, 'shape': ({counts}), }}",
            number.len_bytes()
        );
        // Magic, version and length take ten bytes, the newline one. A header of 32 axes is some hundred bytes long: 16
        // bits suffice.
        let len = (10 + dictionary.len() + 1).next_multiple_of(ALIGNMENT_LEN_BYTES) - 10;
        let mut head = MAGIC.to_vec();
        head.extend([1, 0]);
        head.extend((len as u16).to_le_bytes());
        head.extend(dictionary.bytes());
        head.resize(10 + len - 1, b' ');
        head.push(b'\n');
        head
    }
}

/// Returns the text that follows a key of the dictionary.
fn value_of<'t>(text: &'t str, key: &'static str) -> Result<&'t str, NpyError> {
    let after = ['\'', '"'].iter().find_map(|quote| {
        let quoted = format!("{quote}{key}{quote}");
        text.split_once(&quoted).map(|(_, after)| after)
    });
    let value = after.and_then(|after| after.trim_start().strip_prefix(':'));
    value.map(str::trim_start).ok_or(NpyError::Key { key })
}

fn quoted<'t>(value: &'t str, key: &'static str) -> Result<&'t str, NpyError> {
    let quote = value.chars().next().filter(|quote| matches!(quote, '\'' | '"')).ok_or(NpyError::Key { key })?;
    value[1..].split_once(quote).map(|(inner, _)| inner).ok_or(NpyError::Key { key })
}

fn number_of_descr(descr: &str) -> Result<(Number, bool), NpyError> {
    let refused = || NpyError::Type { descr: descr.chars().take(80).collect() };
    let order = descr.chars().next().filter(|order| matches!(order, '<' | '>' | '|' | '=')).ok_or_else(refused)?;
    let number = match &descr[1..] {
        "u1" => Number::Uint8,
        "i1" => Number::Int8,
        "u2" => Number::Uint16,
        "i2" => Number::Int16,
        "u4" => Number::Uint32,
        "i4" => Number::Int32,
        "u8" => Number::Uint64,
        "i8" => Number::Int64,
        "f4" => Number::Float32,
        "f8" => Number::Float64,
        _ => return Err(refused()),
    };
    Ok((number, order == '>'))
}

fn shape_of(value: &str) -> Result<Vec<u64>, NpyError> {
    let wrong = NpyError::Key { key: "shape" };
    let Some((inner, _)) = value.strip_prefix('(').and_then(|value| value.split_once(')')) else { return Err(wrong) };
    let counts = inner.split(',').map(str::trim).filter(|count| !count.is_empty());
    counts.map(|count| count.parse().map_err(|_| wrong.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(version: u8, dictionary: &str) -> Vec<u8> {
        let mut bytes = [MAGIC.as_slice(), &[version, 0]].concat();
        match version {
            1 => bytes.extend((dictionary.len() as u16).to_le_bytes()),
            _ => bytes.extend((dictionary.len() as u32).to_le_bytes()),
        }
        bytes.extend(dictionary.bytes());
        bytes
    }

    #[test]
    fn heads_as_numpy_writes_them() {
        let head = NpyHead::parse(&file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (22, 36, 7), }   \n"));
        let offset = 10 + "{'descr': '<f4', 'fortran_order': False, 'shape': (22, 36, 7), }   \n".len() as u64;
        let shape = vec![22, 36, 7];
        assert_eq!(head, Ok(NpyHead { number: Number::Float32, is_big_endian: false, shape, offset }));
        let head = NpyHead::parse(&file(3, "{\"descr\": \">u2\", 'fortran_order': True, 'shape': (5,), }\n")).unwrap();
        assert_eq!((head.number, head.is_big_endian, head.shape), (Number::Uint16, true, vec![5]));
    }

    #[test]
    fn other_heads_are_refused() {
        let parse = |text: &str| NpyHead::parse(&file(1, text)).unwrap_err();
        let complete = |descr: &str, order: &str, shape: &str| {
            parse(&format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"))
        };
        assert_eq!(complete("'<c8'", "False", "(2,)"), NpyError::Type { descr: "<c8".to_owned() });
        assert_eq!(complete("'é'", "False", "(2,)"), NpyError::Type { descr: "é".to_owned() });
        assert_eq!(complete("[('a', '<f4')]", "False", "(2,)"), NpyError::Key { key: "descr" });
        assert_eq!(complete("'<f4'", "True", "(2, 3)"), NpyError::Fortran);
        assert_eq!(complete("'<f4'", "0", "(2, 3)"), NpyError::Key { key: "fortran_order" });
        assert_eq!(complete("'<f4'", "False", "()"), NpyError::Shape { shape: vec![] });
        assert_eq!(complete("'<f4'", "False", "(-1,)"), NpyError::Key { key: "shape" });
        assert!(matches!(complete("'<f4'", "False", "(4294967296, 4294967296)"), NpyError::Shape { .. }));
        assert_eq!(NpyHead::parse(b"\x93NUMPY\x01\0\xff\xff{"), Err(NpyError::NotNpy));
        assert_eq!(NpyHead::parse(b"\x89HDF\r\n\x1a\n"), Err(NpyError::NotNpy));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(shape in prop::collection::vec(0u64..50, 1..6), which in 0usize..10) {
            let names = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64";
            let sample: crate::dataset::sample::SampleType = names.split(' ').nth(which).unwrap().parse().unwrap();
            let bytes = NpyHead::to_bytes(sample.number, &shape);
            prop_assert_eq!(bytes.len() % 64, 0);
            let offset = bytes.len() as u64;
            prop_assert_eq!(
                NpyHead::parse(&bytes),
                Ok(NpyHead { number: sample.number, is_big_endian: false, shape, offset })
            );
        }

        #[test]
        fn any_bytes_are_taken_or_refused(text in "\\PC{0,80}") {
            let _ = NpyHead::parse(&file(1, &text));
        }
    }
}
