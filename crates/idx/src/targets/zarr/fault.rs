//! Errors of OME-Zarr folders.

use crate::error::IdxError;
use raddle_codec::CodecError;
use std::path::{Path, PathBuf};

/// Reason why an OME-Zarr folder cannot be written, or is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZarrFault {
    /// The axes are not allowed by OME-NGFF.
    #[error("axes {axes:?} are not valid in OME-NGFF: name {count} of t, c, z, y, x, in this order, including y and x")]
    Axes {
        /// Requested axes, slowest first.
        axes: String,
        /// Number of axes of the samples.
        count: usize,
    },
    /// The samples have fewer or more axes than OME-NGFF allows next to components and time steps.
    #[error(
        "samples on {count} {} cannot be written as OME-Zarr, which has 2 to {limit} axes{}; reshape the arrays, or \
         write IDX",
        if *count == 1 { "axis" } else { "axes" },
        if *limit == 5 { "" } else { " of samples next to those of components and time steps" }
    )]
    AxisCount {
        /// Number of axes of the samples.
        count: usize,
        /// Maximum number of axes of the samples.
        limit: usize,
    },
    /// Two axes would have the same name.
    #[error("{what} become axis {axis}, but the samples already have an axis {axis}")]
    TwiceAnAxis {
        /// Name of the axis.
        axis: char,
        /// Dimension that would become the axis.
        what: &'static str,
    },
    /// An axis has no samples, or too many.
    #[error("{counts:?} samples, slowest axis first, cannot be written")]
    Counts {
        /// Number of samples per axis, slowest first.
        counts: Vec<u64>,
    },
    /// A chunk has no samples, or is too long.
    #[error("chunks of {chunk:?} samples, slowest axis first, are empty or too long")]
    Chunk {
        /// Number of samples per axis, slowest first.
        chunk: Vec<u64>,
    },
    /// A shard does not consist of whole chunks.
    #[error("shards of {shard:?} samples are not whole chunks of {chunk:?}, slowest axis first")]
    Shard {
        /// Number of samples of a shard per axis, slowest first.
        shard: Vec<u64>,
        /// Number of samples of a chunk per axis, slowest first.
        chunk: Vec<u64>,
    },
    /// The number of levels is zero or larger than useful.
    #[error("{levels} levels cannot be written; choose 1 to {limit}")]
    Levels {
        /// Requested number of levels.
        levels: u32,
        /// Maximum number of levels.
        limit: u32,
    },
    /// A time step has too many shards.
    #[error("{shards} shards in one time step are more than the maximum, {limit}; choose larger shards")]
    TooManyShards {
        /// Number of shards.
        shards: u64,
        /// Maximum number of shards.
        limit: u64,
    },
    /// The name of a field cannot be the name of a group.
    #[error(
        "field {name:?} cannot be the name of a group; use letters, digits, '_', '-' and '.', except for OME and a leading '.'"
    )]
    Name {
        /// Name of the field.
        name: String,
    },
    /// Several fields have the same name.
    #[error("two fields are named {name:?}")]
    Repeated {
        /// Name of these fields.
        name: String,
    },
    /// A shard needs a single owner, which one-phase writing does not provide.
    #[error(
        "each shard must be written by a single rank, which is not possible in one phase; choose two or three phases"
    )]
    OnePhase,
    /// The number of written time steps differs from that of the form.
    #[error("only {written} of {wanted} time steps were written")]
    Steps {
        /// Number of steps written.
        written: u64,
        /// Number of steps of the form.
        wanted: u64,
    },
    /// Metadata is not JSON, or does not describe the expected kind of node.
    #[error("{}: {reason}", file.display())]
    Metadata {
        /// Path of the `zarr.json`.
        file: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// A Zarr feature is not supported.
    #[error("{}: raddle does not read {what}; zarr-python and OME readers do", file.display())]
    Unsupported {
        /// Path of the `zarr.json`.
        file: PathBuf,
        /// Description of the unsupported feature.
        what: String,
    },
    /// The index of a shard is not valid.
    #[error("the index of the shard {reason}")]
    Index {
        /// Description of the fault.
        reason: &'static str,
    },
    /// A chunk lies outside its shard.
    #[error("chunk {chunk} lies at {offset} with {len_bytes} bytes, outside the shard of {shard_len_bytes} bytes")]
    Outside {
        /// Number of the chunk in the shard.
        chunk: usize,
        /// Offset of the chunk, as stated in the index.
        offset: u64,
        /// Length of the chunk, as stated in the index.
        len_bytes: u64,
        /// Length of the shard.
        shard_len_bytes: u64,
    },
    /// The checksum of a chunk is wrong.
    #[error("chunk {chunk}: wrong checksum")]
    Checksum {
        /// Number of the chunk in the shard.
        chunk: usize,
    },
    /// A chunk decodes to a wrong length.
    #[error("chunk {chunk}: has {got_bytes} bytes, but {want_bytes} are needed")]
    Length {
        /// Number of the chunk in the shard.
        chunk: usize,
        /// Length of the chunk.
        got_bytes: usize,
        /// Expected length.
        want_bytes: usize,
    },
    /// Samples of a level are not the downsampled ones of the previous level.
    #[error("{samples} samples do not follow from level {level}")]
    Differs {
        /// Number of samples that differ.
        samples: u64,
        /// Number of the previous level.
        level: usize,
    },
    /// A chunk cannot be decoded.
    #[error("chunk {chunk}: {source}")]
    Codec {
        /// Number of the chunk in the shard.
        chunk: usize,
        /// Underlying error.
        source: CodecError,
    },
}

impl ZarrFault {
    /// Returns the error of this fault in `path`: the folder, or a shard in it.
    pub(crate) fn at(self, path: &Path) -> IdxError {
        let path = path.to_path_buf();
        IdxError::Target { path, is_of_options: self.is_of_options(), source: Box::new(self) }
    }

    /// Returns whether the fault is in the request, not in an existing folder.
    fn is_of_options(&self) -> bool {
        matches!(
            self,
            Self::Axes { .. }
                | Self::AxisCount { .. }
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
