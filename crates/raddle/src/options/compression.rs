//! Compression of HDF5 chunks, given as a single word.

use crate::error::Error;
use raddle_codec::KnownFilter;
use raddle_merge::options::{Compress, MergeOptions};
use std::fmt;
use std::str::FromStr;

/// Requested compression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compression(pub Compress);

/// Error for an invalid compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressionError(String);

impl fmt::Display for CompressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(
            f,
            "invalid compression {text:?}; expected fast, balanced, small, gzip:0 to gzip:9, zstd:1 to zstd:22, lz4, keep or none"
        )
    }
}

impl std::error::Error for CompressionError {}

/// Level of zstd if none is given: the library's own default.
const ZSTD_LEVEL: u8 = 3;

impl Compression {
    /// Applies this option to those of a merge.
    pub fn apply(self, options: &mut MergeOptions) {
        options.compress = self.0;
    }

    /// Returns the compression of events; `None` for no compression.
    ///
    /// # Errors
    /// If the compression is `keep`.
    pub fn of_events(self) -> Result<Option<raddle_codec::Compression>, Error> {
        match self.0 {
            Compress::Keep => Err(Error::usage("--compress keep: events get a new layout, so no filter can be kept")),
            other => Ok(other.compression()),
        }
    }
}

/// Describes the filter that readers of a compression need, if they may lack it.
pub fn readers_need(compression: Option<raddle_codec::Compression>) -> Option<String> {
    let filter = compression?.known_filter();
    let (name, id) = (filter.name(), filter.id());
    (filter != KnownFilter::Deflate).then(|| {
        format!(
            "readers of {name} need HDF5 filter {id}: in Python, import hdf5plugin before h5py; for other programs, set \
             HDF5_PLUGIN_PATH to the folder in hdf5plugin.PLUGIN_PATH; raddle itself needs neither"
        )
    })
}

impl FromStr for Compression {
    type Err = CompressionError;

    fn from_str(text: &str) -> Result<Self, CompressionError> {
        let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level.parse())));
        Ok(Self(match (name, level) {
            ("fast", None) => Compress::Fast,
            ("balanced", None) => Compress::Balanced,
            ("small", None) => Compress::Small,
            ("keep", None) => Compress::Keep,
            ("none", None) => Compress::None,
            ("lz4", None) => Compress::Lz4,
            ("zstd", None) => Compress::Zstd(ZSTD_LEVEL),
            ("zstd", Some(Ok(level @ 1..=22))) => Compress::Zstd(level),
            ("gzip", Some(Ok(level @ 0..=9))) => Compress::Gzip(level),
            _ => return Err(CompressionError(text.to_owned())),
        }))
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Compress::Fast => f.write_str("fast"),
            Compress::Balanced => f.write_str("balanced"),
            Compress::Small => f.write_str("small"),
            Compress::Gzip(level) => write!(f, "gzip:{level}"),
            Compress::Zstd(level) => write!(f, "zstd:{level}"),
            Compress::Lz4 => f.write_str("lz4"),
            Compress::Keep => f.write_str("keep"),
            Compress::None => f.write_str("none"),
            // A compression without a word of its own.
            other => write!(f, "{other:?}"),
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
        assert_eq!("zstd".parse(), Ok(Compression(Compress::Zstd(3))));
        for text in ["", "gzip", "gzip:10", "gzip:", "zstd:0", "zstd:23", "zstd:-1", "lz4:1", "fast:1", "best"] {
            let error = text.parse::<Compression>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("zstd:22"), "{error}");
        }
    }
}
