//! Filters of the output's chunks, as options.

use raddle_codec::{Compression, Effort};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Compression of the output's chunks, written as a single word: a [`Compression`], `keep` or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Compress {
    /// One compression for all datasets. Gzip of level 0 stands for no compression.
    Encode(Compression),
    /// Each dataset's own filters; chunks are moved as stored where that gives correct values.
    Keep,
    /// No compression.
    None,
}

impl Compress {
    /// Returns the compression for chunks that have no filters to keep; `None` if they stay uncompressed.
    pub fn compression(self) -> Option<Compression> {
        match self {
            Self::Keep => Some(Compression::default()),
            Self::None | Self::Encode(Compression::Deflate(Effort::Gzip(0))) => None,
            Self::Encode(compression) => Some(compression),
        }
    }

    /// Returns the compression for values that no input stores: only filters and chunks of inputs can be kept.
    pub(crate) fn of_computed(self) -> Self {
        match self {
            Self::Keep => Self::default(),
            asked => asked,
        }
    }
}

impl Default for Compress {
    fn default() -> Self {
        Self::Encode(Compression::default())
    }
}

impl<C: Into<Compression>> From<C> for Compress {
    fn from(compression: C) -> Self {
        Self::Encode(compression.into())
    }
}

/// Error for a string that names neither a compression nor `keep` or `none`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid compression {text:?}; expected {}, keep or none", Compression::WORDS)]
pub struct ParseCompressError {
    text: String,
}

impl FromStr for Compress {
    type Err = ParseCompressError;

    fn from_str(text: &str) -> Result<Self, ParseCompressError> {
        match text {
            "keep" => Ok(Self::Keep),
            "none" => Ok(Self::None),
            _ => text.parse().map(Self::Encode).map_err(|_| ParseCompressError { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Compress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encode(compression) => compression.fmt(f),
            Self::Keep => f.write_str("keep"),
            Self::None => f.write_str("none"),
        }
    }
}

/// Choice of the datasets whose bytes are shuffled before compression: the first bytes of all elements, then all second
/// bytes, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Shuffle {
    /// As in the first input.
    #[default]
    Keep,
    /// In every compressed dataset.
    Yes,
    /// In none.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_compressions_are_read_back() {
        for text in ["balanced", "gzip:0", "gzip:9", "zstd:22", "lz4", "keep", "none"] {
            assert_eq!(text.parse::<Compress>().unwrap().to_string(), text);
        }
        for text in ["", "gzip:10", "keep:1", "best"] {
            let error = text.parse::<Compress>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.ends_with("lz4, keep or none"), "{error}");
        }
        assert_eq!("gzip:0".parse::<Compress>().unwrap().compression(), None);
        assert_eq!(Compress::Keep.compression(), Some(Compression::default()));
    }
}
