//! Compression of tiles: deflate at a chosen effort, or one of the other registered filters that raddle can write.
//!
//! The whole workspace names the compression of HDF5 chunks with these types and words. IDX blocks, chunks of
//! OME-Zarr, ROOT files and packed data streams have their own types, because each format defines other codecs, names
//! and levels. Uncompressed data is the absence of a [`Compression`].

use crate::filter::{Filter, KnownFilter};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Effort to put into deflate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Effort {
    /// Fastest encoder, which keeps up with disks.
    Fast,
    /// The ratio of gzip 6 in a fraction of its time.
    #[default]
    Balanced,
    /// The smallest output that deflate gives in reasonable time.
    Small,
    /// libdeflate's level of this number, at most 12. Levels 1 to 3 use a faster encoder if its output is at most 2 %
    /// longer.
    Gzip(u8),
    /// Fastest encoder whose output is at most 2 % longer than that of zlib's level of this number. The dataset's
    /// filter names the level. It is meant for datasets that keep the filter of an input.
    Like(u8),
}

/// Compression method of tiles, written as a single word: `balanced`, `gzip:6`, `zstd:3`, `lz4`.
///
/// ```
/// use raddle_codec::{Compression, Effort};
///
/// assert_eq!("fast".parse(), Ok(Compression::Deflate(Effort::Fast)));
/// assert_eq!("zstd".parse(), Ok(Compression::Zstd(Compression::DEFAULT_ZSTD_LEVEL)));
/// assert_eq!(Compression::Zstd(7).to_string(), "zstd:7");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Compression {
    /// zlib streams, which every HDF5 can read.
    Deflate(Effort),
    /// Zstandard frames of this level, 1 to 22. Readers need the registered filter 32015.
    Zstd(u8),
    /// LZ4 blocks. Readers need the registered filter 32004.
    Lz4,
}

/// Highest level of libdeflate.
pub(crate) const MAX_LEVEL: u8 = 12;

/// Highest level that a dataset's deflate filter may name (H5Pset_deflate refuses higher ones).
const MAX_NAMED_LEVEL: u8 = 9;

/// Highest level of Zstandard.
const MAX_ZSTD_LEVEL: u8 = 22;

impl Compression {
    /// Words that can be parsed, for messages.
    pub const WORDS: &'static str = "fast, balanced, small, gzip:0 to gzip:9, zstd:1 to zstd:22, lz4";

    /// Level of Zstandard if none is given: the library's own default.
    pub const DEFAULT_ZSTD_LEVEL: u8 = 3;

    /// Returns the compression that corresponds to a dataset's filter; `None` if raddle cannot write it. The level of
    /// deflate is taken from the filter, as [`Effort::Like`].
    pub fn of_filter(filter: &Filter) -> Option<Self> {
        let level = filter.parameters.first().copied();
        Some(match KnownFilter::from_id(filter.id)? {
            KnownFilter::Deflate => {
                let level = u8::try_from(level.unwrap_or(6)).unwrap_or(MAX_NAMED_LEVEL);
                Self::Deflate(Effort::Like(level.min(MAX_NAMED_LEVEL)))
            }
            KnownFilter::Zstd => {
                // The level is signed: the filter treats negative ones as the lowest level.
                let level = level.unwrap_or(Self::DEFAULT_ZSTD_LEVEL.into()).cast_signed();
                Self::Zstd(level.clamp(1, MAX_ZSTD_LEVEL.into()) as u8)
            }
            KnownFilter::Lz4 => Self::Lz4,
            _ => return None,
        })
    }

    /// Returns the filter of datasets with this compression.
    pub fn known_filter(self) -> KnownFilter {
        match self {
            Self::Deflate(_) => KnownFilter::Deflate,
            Self::Zstd(_) => KnownFilter::Zstd,
            Self::Lz4 => KnownFilter::Lz4,
        }
    }

    /// Clamps the level to the existing ones.
    pub(crate) fn within_levels(self) -> Self {
        match self {
            Self::Deflate(Effort::Gzip(level)) => Self::Deflate(Effort::Gzip(level.min(MAX_LEVEL))),
            Self::Deflate(Effort::Like(level)) => Self::Deflate(Effort::Like(level.min(MAX_NAMED_LEVEL))),
            Self::Zstd(level) => Self::Zstd(level.clamp(1, MAX_ZSTD_LEVEL)),
            other => other,
        }
    }

    /// Returns the filter parameters that describe the compression; readers do not use them.
    pub(crate) fn parameters(self) -> Vec<u32> {
        match self {
            Self::Deflate(effort) => vec![u32::from(match effort {
                Effort::Fast => 1,
                Effort::Balanced => 6,
                Effort::Small => 9,
                Effort::Gzip(level) | Effort::Like(level) => level.min(MAX_NAMED_LEVEL),
            })],
            Self::Zstd(level) => vec![level.into()],
            Self::Lz4 => vec![],
        }
    }
}

impl From<Effort> for Compression {
    fn from(effort: Effort) -> Self {
        Self::Deflate(effort)
    }
}

impl Default for Compression {
    fn default() -> Self {
        Effort::default().into()
    }
}

/// Error for a string that does not name a compression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid compression {text:?}; expected {}", Compression::WORDS)]
pub struct ParseCompressionError {
    text: String,
}

impl FromStr for Compression {
    type Err = ParseCompressionError;

    fn from_str(text: &str) -> Result<Self, ParseCompressionError> {
        let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level.parse())));
        Ok(match (name, level) {
            ("fast", None) => Effort::Fast.into(),
            ("balanced", None) => Effort::Balanced.into(),
            ("small", None) => Effort::Small.into(),
            ("gzip", Some(Ok(level @ 0..=MAX_NAMED_LEVEL))) => Effort::Gzip(level).into(),
            ("zstd", None) => Self::Zstd(Self::DEFAULT_ZSTD_LEVEL),
            ("zstd", Some(Ok(level @ 1..=MAX_ZSTD_LEVEL))) => Self::Zstd(level),
            ("lz4", None) => Self::Lz4,
            _ => return Err(ParseCompressionError { text: text.to_owned() }),
        })
    }
}

impl fmt::Display for Compression {
    /// Formats the compression as the word that is parsed. [`Effort::Like`] becomes the gzip level that it resembles.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deflate(Effort::Fast) => f.write_str("fast"),
            Self::Deflate(Effort::Balanced) => f.write_str("balanced"),
            Self::Deflate(Effort::Small) => f.write_str("small"),
            Self::Deflate(Effort::Gzip(level) | Effort::Like(level)) => write!(f, "gzip:{level}"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Lz4 => f.write_str("lz4"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_levels_are_read_back() {
        for text in ["fast", "balanced", "small", "gzip:0", "gzip:9", "zstd:1", "zstd:22", "lz4"] {
            assert_eq!(text.parse::<Compression>().unwrap().to_string(), text);
        }
        assert_eq!("zstd".parse(), Ok(Compression::Zstd(3)));
        for text in ["", "gzip", "gzip:10", "gzip:", "zstd:0", "zstd:23", "zstd:-1", "lz4:1", "fast:1", "best", "none"]
        {
            let error = text.parse::<Compression>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.ends_with("zstd:22, lz4"), "{error}");
        }
    }

    #[test]
    fn filters_stand_for_what_they_are_made_of() {
        let of = |known: KnownFilter, parameters: &[u32]| {
            let (id, name, parameters) = (known.id(), Vec::new(), parameters.to_vec());
            Compression::of_filter(&Filter { id, optional: true, name, parameters })
        };
        assert_eq!(of(KnownFilter::Deflate, &[4]), Some(Compression::Deflate(Effort::Like(4))));
        assert_eq!(of(KnownFilter::Deflate, &[300]), Some(Compression::Deflate(Effort::Like(9))));
        assert_eq!(of(KnownFilter::Deflate, &[]), Some(Compression::Deflate(Effort::Like(6))));
        assert_eq!(of(KnownFilter::Zstd, &[19, 7]), Some(Compression::Zstd(19)));
        assert_eq!(of(KnownFilter::Zstd, &[]), Some(Compression::Zstd(3)));
        assert_eq!(of(KnownFilter::Zstd, &[(-5_i32).cast_unsigned()]), Some(Compression::Zstd(1)));
        assert_eq!(of(KnownFilter::Zstd, &[40]), Some(Compression::Zstd(22)));
        assert_eq!(of(KnownFilter::Lz4, &[1 << 30]), Some(Compression::Lz4));
        assert_eq!(of(KnownFilter::Szip, &[4, 8]), None);
        for compression in [Compression::Zstd(7), Compression::Lz4, Compression::Deflate(Effort::Like(3))] {
            assert_eq!(of(compression.known_filter(), &compression.parameters()), Some(compression));
        }
    }
}
