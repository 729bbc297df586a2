//! Compression of HDF5 chunks, as it is asked for in one word.

use crate::failure::Failure;
use raddle_codec::KnownFilter;
use raddle_merge::options::{Compress, MergeOptions};
use std::fmt;
use std::str::FromStr;

/// Compression asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Least time.
    Fast,
    /// As small as gzip 6, several times faster.
    Balanced,
    /// Smallest.
    Small,
    /// A level of gzip.
    Gzip(u8),
    /// A level of Zstandard.
    Zstd(u8),
    /// LZ4.
    Lz4,
    /// The filters of the inputs.
    Keep,
    /// None.
    None,
}

/// Why a text is no compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressionError(String);

impl fmt::Display for CompressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(
            f,
            "{text:?} is no compression: use fast, balanced, small, gzip:0 to gzip:9, zstd:1 to zstd:22, lz4, keep or none"
        )
    }
}

impl std::error::Error for CompressionError {}

/// The level of zstd without a number: the library's own default.
const ZSTD_LEVEL: u8 = 3;

impl Compression {
    /// Writes this option into those of a merge.
    pub fn apply(self, options: &mut MergeOptions) {
        options.compress = self.of_merge();
    }

    fn of_merge(self) -> Compress {
        match self {
            Self::Fast => Compress::Fast,
            Self::Balanced => Compress::Balanced,
            Self::Small => Compress::Small,
            Self::Gzip(level) => Compress::Gzip(level),
            Self::Zstd(level) => Compress::Zstd(level),
            Self::Lz4 => Compress::Lz4,
            Self::Keep => Compress::Keep,
            Self::None => Compress::None,
        }
    }

    /// What compresses events; `None` where nothing does.
    ///
    /// # Errors
    /// If it is to be what inputs have.
    pub fn of_events(self) -> Result<Option<raddle_codec::Compression>, Failure> {
        match self {
            Self::Keep => Err(Failure::usage("--compress keep: events are laid out anew, no filter can be kept")),
            other => Ok(other.of_merge().compression()),
        }
    }
}

/// What readers of a compression need that they may not have.
pub fn readers_need(compression: Option<raddle_codec::Compression>) -> Option<String> {
    let filter = compression?.known_filter();
    let (name, id) = (filter.name(), filter.id());
    (filter != KnownFilter::Deflate).then(|| {
        format!(
            "who reads {name} needs HDF5's filter {id}: in Python import hdf5plugin before h5py; for other programs \
             HDF5_PLUGIN_PATH names the folder that hdf5plugin.PLUGIN_PATH is; raddle reads it as it is"
        )
    })
}

impl FromStr for Compression {
    type Err = CompressionError;

    fn from_str(text: &str) -> Result<Self, CompressionError> {
        let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level.parse())));
        Ok(match (name, level) {
            ("fast", None) => Self::Fast,
            ("balanced", None) => Self::Balanced,
            ("small", None) => Self::Small,
            ("keep", None) => Self::Keep,
            ("none", None) => Self::None,
            ("lz4", None) => Self::Lz4,
            ("zstd", None) => Self::Zstd(ZSTD_LEVEL),
            ("zstd", Some(Ok(level @ 1..=22))) => Self::Zstd(level),
            ("gzip", Some(Ok(level @ 0..=9))) => Self::Gzip(level),
            _ => return Err(CompressionError(text.to_owned())),
        })
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fast => f.write_str("fast"),
            Self::Balanced => f.write_str("balanced"),
            Self::Small => f.write_str("small"),
            Self::Gzip(level) => write!(f, "gzip:{level}"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Keep => f.write_str("keep"),
            Self::None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_levels_are_read_back() {
        for text in ["fast", "balanced", "small", "gzip:0", "gzip:9", "zstd:1", "zstd:22", "lz4", "keep", "none"] {
            assert_eq!(text.parse::<Compression>().unwrap().to_string(), text);
        }
        assert_eq!("zstd".parse(), Ok(Compression::Zstd(3)));
        for text in ["", "gzip", "gzip:10", "gzip:", "zstd:0", "zstd:23", "zstd:-1", "lz4:1", "fast:1", "best"] {
            let error = text.parse::<Compression>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("zstd:22"), "{error}");
        }
    }
}
