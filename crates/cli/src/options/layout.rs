//! How the output is laid out: chunks, compression, format version.

use raddle_hdf5::write::Compat as Format;
use raddle_merge::layout::LayoutPolicy;
use raddle_merge::options::{Compress, MergeOptions};
use std::fmt;
use std::str::FromStr;

/// Options that decide chunk shapes, compression and format.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Layout")]
pub struct LayoutArgs {
    /// How the file will be read; decides the chunk shapes
    #[arg(long = "for", value_name = "USE", value_enum, default_value_t = Use::Events)]
    pub layout: Use,

    /// Chunk shape instead of the one that --for chooses: 65536rows, or a shape such as 128x1024
    ///
    /// A number of rows (65536rows) applies to every dataset and leaves the other dimensions whole. A shape (128x1024)
    /// applies to datasets of as many dimensions; the rest follow --for.
    #[arg(long, value_name = "CHUNK")]
    pub chunk: Option<Chunk>,

    /// Let every dataset grow along its first axis, so that raddle append can add rows later
    ///
    /// Without it a dataset can grow if it could in one of the inputs.
    #[arg(long)]
    pub extendible: bool,

    /// Compression: fast, balanced, small, gzip:0-9, keep (as the inputs have it) or none
    ///
    /// fast, balanced, small and gzip:N all write deflate streams that every HDF5 reads; they differ in the effort
    /// spent. keep takes the filters of the inputs.
    #[arg(short = 'c', long, value_name = "HOW", default_value_t = Compression::Balanced)]
    pub compress: Compression,

    /// Oldest HDF5 library that must be able to read the output
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = Compat::V18)]
    pub compat: Compat,
}

impl LayoutArgs {
    /// Writes these options into those of a merge.
    pub fn apply(&self, options: &mut MergeOptions) {
        options.layout = match self.layout {
            Use::Events => LayoutPolicy::Events,
            Use::Scan => LayoutPolicy::Scan,
            Use::Random => LayoutPolicy::Random,
            Use::Cloud => LayoutPolicy::Cloud,
            Use::Keep => LayoutPolicy::Keep,
        };
        options.chunk = self.chunk.as_ref().map(|chunk| match chunk {
            Chunk::Rows(rows) => vec![*rows],
            Chunk::Shape(shape) => shape.clone(),
        });
        options.extendible = self.extendible;
        self.compress.apply(options);
        options.compat = match self.compat {
            Compat::V18 => Format::V18,
            Compat::V110 => Format::V110,
            Compat::Latest => Format::Latest,
        };
    }
}

/// The read pattern that chunk shapes are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Use {
    /// Tables read by ranges of events: the columns of a group share their rows per chunk
    Events,
    /// Whole datasets read from end to end: large chunks
    Scan,
    /// Single rows read here and there: small chunks
    Random,
    /// Reads over a network: chunks of several MiB, metadata in front
    Cloud,
    /// As the first input has them
    Keep,
}

/// The oldest reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Compat {
    /// HDF5 1.8 and later (2008)
    #[value(name = "1.8")]
    V18,
    /// HDF5 1.10 and later (2016): smaller chunk indexes
    #[value(name = "1.10")]
    V110,
    /// The HDF5 that raddle was built with
    Latest,
}

/// Chunk shape asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// Rows per chunk.
    Rows(u64),
    /// Elements per dimension.
    Shape(Vec<u64>),
}

/// Why a text is no chunk shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkError(String);

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no chunk: give a number of rows (65536rows) or a shape (128x1024)", self.0)
    }
}

impl std::error::Error for ChunkError {}

impl FromStr for Chunk {
    type Err = ChunkError;

    fn from_str(text: &str) -> Result<Self, ChunkError> {
        let refuse = || ChunkError(text.to_owned());
        let positive = |digits: &str| digits.parse::<u64>().ok().filter(|&n| n > 0).ok_or_else(refuse);
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
        write!(f, "{:?} is no compression: use fast, balanced, small, gzip:0 to gzip:9, keep or none", self.0)
    }
}

impl std::error::Error for CompressionError {}

impl Compression {
    /// Writes this option into those of a merge.
    pub fn apply(self, options: &mut MergeOptions) {
        options.compress = match self {
            Self::Fast => Compress::Fast,
            Self::Balanced => Compress::Balanced,
            Self::Small => Compress::Small,
            Self::Gzip(level) => Compress::Gzip(level),
            Self::Keep => Compress::Keep,
            Self::None => Compress::None,
        };
    }
}

impl FromStr for Compression {
    type Err = CompressionError;

    fn from_str(text: &str) -> Result<Self, CompressionError> {
        Ok(match text {
            "fast" => Self::Fast,
            "balanced" => Self::Balanced,
            "small" => Self::Small,
            "keep" => Self::Keep,
            "none" => Self::None,
            _ => match text.strip_prefix("gzip:").map(str::parse) {
                Some(Ok(level @ 0..=9)) => Self::Gzip(level),
                _ => return Err(CompressionError(text.to_owned())),
            },
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
            Self::Keep => f.write_str("keep"),
            Self::None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_rows_or_shapes() {
        assert_eq!("65536rows".parse(), Ok(Chunk::Rows(65_536)));
        assert_eq!("128x1024".parse(), Ok(Chunk::Shape(vec![128, 1024])));
        for text in ["", "128", "1MiB", "0rows", "128x", "x", "0x4", "-1x4", "rows", "big"] {
            assert_eq!(text.parse::<Chunk>(), Err(ChunkError(text.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn compressions_read_back_as_they_are_shown() {
        for text in ["fast", "balanced", "small", "gzip:0", "gzip:9", "keep", "none"] {
            assert_eq!(text.parse::<Compression>().unwrap().to_string(), text);
        }
        for text in ["gzip", "gzip:10", "gzip:-1", "zstd", "Fast", ""] {
            assert!(text.parse::<Compression>().is_err(), "{text:?}");
        }
    }
}
