//! Compression in requests, which no single format defines.

use super::fault::RequestFault;
use crate::dataset::compression::{Compression, ParseCompressionError};
use raddle_codec::ZfpMode;
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// Compression of an output: `zip` or `gzip`, `lz4`, `zfp`, `zfp:precision=N`, `zfp:accuracy=X`, `none`, or `zstd`. No
/// format has all of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OutputCompression {
    /// A compression of blocks. Deflate is codec gzip in OME-Zarr.
    Blocks(Compression),
    /// Zstandard.
    Zstd,
}

/// Error for a string that is not an [`OutputCompression`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{ParseCompressionError}, or zstd in OME-Zarr")]
pub struct ParseOutputCompressionError;

impl FromStr for OutputCompression {
    type Err = ParseOutputCompressionError;

    fn from_str(text: &str) -> Result<Self, ParseOutputCompressionError> {
        match text {
            "zstd" => Ok(Self::Zstd),
            "gzip" => Ok(Self::Blocks(Compression::Zip)),
            _ => text.parse().map(Self::Blocks).map_err(|ParseCompressionError| ParseOutputCompressionError),
        }
    }
}

impl Display for OutputCompression {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Zstd => formatter.write_str("zstd"),
            Self::Blocks(Compression::None) => formatter.write_str("none"),
            Self::Blocks(Compression::Zip) => formatter.write_str("zip"),
            Self::Blocks(Compression::Lz4) => formatter.write_str("lz4"),
            Self::Blocks(Compression::Zfp(ZfpMode::Reversible)) => formatter.write_str("zfp"),
            Self::Blocks(Compression::Zfp(mode)) => write!(formatter, "zfp:{mode}"),
        }
    }
}

impl OutputCompression {
    /// Creates the fault of a request for this compression in the format `output`, which has the compressions
    /// `choices`.
    pub(crate) fn refused_by(self, output: &'static str, choices: &'static str) -> RequestFault {
        let why = match self {
            Self::Zstd => "its readers do not support zstd",
            Self::Blocks(_) => "Zarr has no codec lz4 or zfp",
        };
        RequestFault::Compression { output, choices, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressions_are_read_and_printed() {
        for text in ["zip", "lz4", "none", "zstd", "zfp", "zfp:precision=16", "zfp:accuracy=0.001"] {
            assert_eq!(text.parse().map(|how: OutputCompression| how.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("gzip".parse(), Ok(OutputCompression::Blocks(Compression::Zip)));
        assert!("bzip2".parse::<OutputCompression>().is_err());
    }
}
