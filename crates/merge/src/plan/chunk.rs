//! Requested chunk shapes as text: `65536rows`, `128x1024`, `time=365,lat=90,lon=180`.

use crate::named_values;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Requested chunk shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Chunk {
    /// Number of rows per chunk.
    Rows(u64),
    /// Number of elements per dimension.
    Shape(Vec<u64>),
    /// Number of elements of the dimensions with these names.
    Named(Vec<(String, u64)>),
}

impl From<Vec<u64>> for Chunk {
    /// Creates a shape; a single number is a number of rows.
    fn from(shape: Vec<u64>) -> Self {
        match shape.as_slice() {
            [rows] => Self::Rows(*rows),
            _ => Self::Shape(shape),
        }
    }
}

/// Error for an invalid chunk shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkError(pub(crate) String);

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a chunk shape: give a number of rows (65536rows), a shape (128x1024), or sizes of dimensions by \
             name (time=365,lat=90)",
            self.0
        )
    }
}

impl std::error::Error for ChunkError {}

impl fmt::Display for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |parts: &mut dyn Iterator<Item = String>, by: &str| parts.collect::<Vec<_>>().join(by);
        match self {
            Self::Rows(rows) => write!(f, "{rows}rows"),
            Self::Shape(shape) => f.write_str(&joined(&mut shape.iter().map(u64::to_string), "x")),
            Self::Named(sizes) => {
                f.write_str(&joined(&mut sizes.iter().map(|(name, size)| format!("{name}={size}")), ","))
            }
        }
    }
}

impl FromStr for Chunk {
    type Err = ChunkError;

    fn from_str(text: &str) -> Result<Self, ChunkError> {
        let refuse = || ChunkError(text.to_owned());
        let positive = |digits: &str| positive(digits).ok_or_else(refuse);
        if text.contains('=') {
            let size = |part: &str| {
                let (name, size) = part.rsplit_once('=').ok_or_else(refuse)?;
                match name.trim() {
                    "" => Err(refuse()),
                    name => Ok((name.to_owned(), positive(size.trim())?)),
                }
            };
            let sizes: Vec<(String, u64)> =
                named_values::split(text).into_iter().map(size).collect::<Result<_, _>>()?;
            let is_repeated = |at: usize| sizes[..at].iter().any(|(name, _)| *name == sizes[at].0);
            return if (0..sizes.len()).any(is_repeated) { Err(refuse()) } else { Ok(Self::Named(sizes)) };
        }
        if let Some(rows) = text.strip_suffix("rows").or_else(|| text.strip_suffix("row")) {
            return positive(rows.trim_end()).map(Self::Rows);
        }
        if text.contains('x') {
            return text.split('x').map(positive).collect::<Result<_, _>>().map(Self::Shape);
        }
        // A bare number could mean bytes, rows or elements.
        Err(refuse())
    }
}

/// Parses a positive number.
pub(crate) fn positive(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|&number| number > 0 && digits.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_rows_shapes_or_sizes_by_name() {
        assert_eq!("65536rows".parse(), Ok(Chunk::Rows(65_536)));
        assert_eq!("128x1024".parse(), Ok(Chunk::Shape(vec![128, 1024])));
        assert_eq!("time=1".parse(), Ok(Chunk::Named(vec![("time".to_owned(), 1)])));
        let both = vec![("time".to_owned(), 365), ("/grid/lat".to_owned(), 90)];
        assert_eq!("time=365, /grid/lat=90".parse(), Ok(Chunk::Named(both)));
        let with_comma = vec![("a, b".to_owned(), 365), ("c,d".to_owned(), 90)];
        assert_eq!("a, b=365, c,d=90".parse(), Ok(Chunk::Named(with_comma)));
        for text in [
            "",
            "128",
            "1MiB",
            "0rows",
            "128x",
            "x",
            "0x4",
            "-1x4",
            "+1x4",
            "rows",
            "big",
            "time=",
            "=4",
            "time=0",
            "time=1,time=2",
            "time=1,lat",
            "time=1,,lat=2",
            "time=-1",
        ] {
            assert_eq!(text.parse::<Chunk>(), Err(ChunkError(text.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn a_chunk_is_read_back_from_its_text() {
        for text in ["7rows", "2x3x4", "time=365,lat=90", "a=b=4"] {
            assert_eq!(text.parse::<Chunk>().unwrap().to_string(), text);
        }
    }
}
