//! Compression of streams and RNTuples, as users write it.

use crate::pds::PdsCodec;
use raddle_root::RootCodec;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Compression of packed data streams, RNTuples and the framework's layouts: `none`, `lz4`, `zstd:3`, `zlib:6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventCodec(pub RootCodec);

impl EventCodec {
    /// Returns the codec of the framework's formats; `None` if they do not support it.
    pub(crate) fn of_framework(self) -> Option<PdsCodec> {
        match self.0 {
            RootCodec::None => Some(PdsCodec::None),
            RootCodec::Lz4 => Some(PdsCodec::Lz4),
            RootCodec::Zstd(level) => Some(PdsCodec::Zstd(level)),
            RootCodec::Zlib(_) => None,
        }
    }
}

impl From<PdsCodec> for EventCodec {
    fn from(codec: PdsCodec) -> Self {
        Self(match codec {
            PdsCodec::None => RootCodec::None,
            PdsCodec::Lz4 => RootCodec::Lz4,
            PdsCodec::Zstd(level) => RootCodec::Zstd(level),
        })
    }
}

/// Error for an invalid codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecNameError(String);

impl fmt::Display for CodecNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a codec for events; expected none, lz4, zstd, zstd:1 to zstd:22, zlib, or zlib:1 to zlib:9",
            self.0
        )
    }
}

impl std::error::Error for CodecNameError {}

/// Default Zstandard level of the framework.
pub(super) const DEFAULT_ZSTD_LEVEL: i32 = 18;

/// Default level of zlib.
const DEFAULT_ZLIB_LEVEL: u8 = 6;

impl FromStr for EventCodec {
    type Err = CodecNameError;

    fn from_str(text: &str) -> Result<Self, CodecNameError> {
        Ok(Self(match text {
            "none" => RootCodec::None,
            "lz4" => RootCodec::Lz4,
            "zstd" => RootCodec::Zstd(DEFAULT_ZSTD_LEVEL),
            "zlib" => RootCodec::Zlib(DEFAULT_ZLIB_LEVEL),
            _ => match text.split_once(':').map(|(name, level)| (name, level.parse())) {
                Some(("zstd", Ok(level @ 1..=22))) => RootCodec::Zstd(level),
                Some(("zlib", Ok(level @ 1..=9))) => RootCodec::Zlib(level as u8),
                _ => return Err(CodecNameError(text.to_owned())),
            },
        }))
    }
}

impl fmt::Display for EventCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RootCodec::None => f.write_str("none"),
            RootCodec::Lz4 => f.write_str("lz4"),
            RootCodec::Zlib(level) => write!(f, "zlib:{level}"),
            // The level cannot be determined from a file.
            RootCodec::Zstd(0) => f.write_str("zstd"),
            RootCodec::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

raddle_core::serde_as_text!(EventCodec);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_read_back() {
        for text in ["none", "lz4", "zstd:1", "zstd:22", "zlib:1", "zlib:9"] {
            assert_eq!(text.parse::<EventCodec>().unwrap().to_string(), text);
        }
        for text in ["zstd:0", "zstd:23", "zlib:0", "zlib:10", "lz4:1", "gzip", ""] {
            assert!(text.parse::<EventCodec>().is_err(), "{text:?}");
        }
    }
}
