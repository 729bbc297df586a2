//! Why an OME-Zarr folder is not written, or is refused.

use raddle_codec::CodecError;
use std::path::PathBuf;

/// Why an OME-Zarr folder is not written, or is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZarrFault {
    /// Axes that OME-NGFF does not have.
    #[error(
        "axes {axes:?} are not {count} of t, c, z, y, x in this order with y and x, which are the axes that OME-NGFF has"
    )]
    Axes {
        /// As named, slowest first.
        axes: String,
        /// Axes of the samples.
        count: usize,
    },
    /// An axis that is there already.
    #[error("{what} make an axis {axis}, which the samples have already")]
    TwiceAnAxis {
        /// Name of the axis.
        axis: char,
        /// What makes it.
        what: &'static str,
    },
    /// No samples along an axis, or too many.
    #[error("{counts:?} samples, slowest axis first, cannot be written")]
    Counts {
        /// Samples per axis, slowest first.
        counts: Vec<u64>,
    },
    /// A chunk without samples, or too long.
    #[error("chunks of {chunk:?} samples, slowest axis first, are empty or too long")]
    Chunk {
        /// Samples per axis, slowest first.
        chunk: Vec<u64>,
    },
    /// A shard that is not whole chunks.
    #[error("shards of {shard:?} samples are not whole chunks of {chunk:?}, slowest axis first")]
    Shard {
        /// Samples per axis, slowest first.
        shard: Vec<u64>,
        /// Samples per axis, slowest first.
        chunk: Vec<u64>,
    },
    /// More levels than can differ, or none.
    #[error("{levels} levels; there can be 1 to {limit}")]
    Levels {
        /// As asked.
        levels: u32,
        /// Most that make sense.
        limit: u32,
    },
    /// More shards than are planned at once.
    #[error("{shards} shards in one time step, the most are {limit}; choose longer ones")]
    TooManyShards {
        /// Shards.
        shards: u64,
        /// Most.
        limit: u64,
    },
    /// A name that cannot be that of a group.
    #[error(
        "field {name:?} cannot be the name of a group; letters, digits, '_', '-' and '.' can, but for OME and a leading '.'"
    )]
    Name {
        /// Of the field.
        name: String,
    },
    /// Several fields of one name.
    #[error("two fields are called {name:?}")]
    Repeated {
        /// Their name.
        name: String,
    },
    /// Phases that a shard with one owner cannot be written in.
    #[error("a shard is written by one rank, which one phase does not give; choose two or three phases")]
    OnePhase,
    /// Not as many time steps as the form says.
    #[error("{written} of {wanted} time steps were written")]
    Steps {
        /// Written.
        written: u64,
        /// As the form says.
        wanted: u64,
    },
    /// Metadata that is no JSON, or not of this kind of node.
    #[error("{}: {reason}", file.display())]
    Metadata {
        /// The `zarr.json`.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A kind of Zarr that is not read here.
    #[error("{}: {what} is not read by raddle; zarr-python and OME readers do", file.display())]
    Unsupported {
        /// The `zarr.json`.
        file: PathBuf,
        /// What.
        what: String,
    },
    /// A shard whose index is not whole.
    #[error("the index of the shard {reason}")]
    Index {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A chunk that lies where it cannot.
    #[error("chunk {chunk} lies at {offset} with {len_bytes} bytes, outside the shard of {shard_len_bytes} bytes")]
    Outside {
        /// Its number in the shard.
        chunk: usize,
        /// As in the index.
        offset: u64,
        /// As in the index.
        len_bytes: u64,
        /// Length of the shard.
        shard_len_bytes: u64,
    },
    /// A chunk whose checksum is not that of its bytes.
    #[error("chunk {chunk}: its checksum is not that of its bytes")]
    Checksum {
        /// Its number in the shard.
        chunk: usize,
    },
    /// A chunk of another length than it has.
    #[error("chunk {chunk}: {got_bytes} bytes where {want_bytes} are needed")]
    Length {
        /// Its number in the shard.
        chunk: usize,
        /// As stored.
        got_bytes: usize,
        /// As needed.
        want_bytes: usize,
    },
    /// A level that the one before would not make.
    #[error("{samples} samples are not what level {level} makes of them")]
    Differs {
        /// Samples that differ.
        samples: u64,
        /// The level before.
        level: usize,
    },
    /// A chunk that does not decode.
    #[error("chunk {chunk}: {source}")]
    Codec {
        /// Its number in the shard.
        chunk: usize,
        /// Why.
        source: CodecError,
    },
}

impl ZarrFault {
    /// Whether it lies in what was asked for, not in a folder that is there.
    pub fn is_of_options(&self) -> bool {
        matches!(
            self,
            Self::Axes { .. }
                | Self::TwiceAnAxis { .. }
                | Self::Counts { .. }
                | Self::Chunk { .. }
                | Self::Shard { .. }
                | Self::Levels { .. }
                | Self::TooManyShards { .. }
                | Self::Name { .. }
                | Self::Repeated { .. }
                | Self::OnePhase
        )
    }
}
