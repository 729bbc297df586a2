//! What the user asked for, as plain values: the same for the command, for Python and for other ranks.

use crate::alignment::Align;
use crate::conventions::ConventionOptions;
use crate::join::JoinOptions;
use crate::keys::MadeSpec;
use crate::layout::LayoutPolicy;
use crate::links::{Link, LinkPaths};
use crate::selection::Selection;
use raddle_codec::{Compression, Effort};
use raddle_hdf5::child::{ChildOptions, ReaderCommand};
use raddle_hdf5::write::Compat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

pub use raddle_core::progress::Watch;

/// How chunks of the output are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Compress {
    /// As fast as possible at a useful ratio.
    Fast,
    /// About gzip 6 in size, several times faster.
    #[default]
    Balanced,
    /// As small as deflate gets.
    Small,
    /// Deflate at this level, 0 to 9.
    Gzip(u8),
    /// Zstandard at this level, 1 to 22, for readers that have the registered filter.
    Zstd(u8),
    /// LZ4, for readers that have the registered filter.
    Lz4,
    /// Each dataset's own filters; chunks are moved as stored where that is right.
    Keep,
    /// No compression.
    None,
}

impl Compress {
    /// What compresses chunks of which nothing is known; `None` where nothing does.
    pub fn compression(self) -> Option<Compression> {
        Some(match self {
            Self::Fast => Effort::Fast.into(),
            Self::Balanced | Self::Keep => Effort::Balanced.into(),
            Self::Small => Effort::Small.into(),
            Self::Gzip(0) | Self::None => return None,
            Self::Gzip(level) => Effort::Gzip(level).into(),
            Self::Zstd(level) => Compression::Zstd(level),
            Self::Lz4 => Compression::Lz4,
        })
    }
}

/// Whether the bytes of elements are shuffled before chunks are compressed: first bytes first, then second ones, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Shuffle {
    /// As the first input has it that has the dataset.
    #[default]
    Keep,
    /// In every dataset that is compressed.
    Yes,
    /// In none.
    No,
}

/// Which datasets of a new file are extendible along axis 0, in addition to those that are in an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Extendible {
    /// Datasets with rows of several inputs, if the inputs follow no convention and the cost is small.
    #[default]
    Likely,
    /// All.
    All,
    /// None.
    Never,
}

/// Which datasets of a new file are stored contiguously: in one run, without chunks and filters, and of a fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Contiguous {
    /// Those of at most 4 KiB that no input stores in chunks and that are not extendible.
    #[default]
    Small,
    /// Also all smaller than this, in uncompressed bytes.
    Below(u64),
    /// All.
    All,
}

impl Contiguous {
    /// Whether a dataset of `len_bytes` is stored contiguously however the inputs store it.
    pub fn includes(self, len_bytes: u64) -> bool {
        match self {
            Self::Small => false,
            Self::Below(limit) => len_bytes < limit,
            Self::All => true,
        }
    }
}

/// How datasets without elements are stored in a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Empty {
    /// As datasets with elements: in chunks where an input has chunks or the dataset is extendible.
    #[default]
    AsOthers,
    /// Contiguously.
    Contiguous,
    /// In the object header.
    Compact,
    /// In chunks.
    Chunked,
    /// As null datasets, which have no dimensions; not where the inputs follow a convention.
    Null,
}

/// Options of a merge or rechunk.
#[derive(Debug, Clone)]
pub struct MergeOptions {
    /// Output path.
    pub output: PathBuf,
    /// Replace an existing output.
    pub force: bool,
    /// The output is its own input, which it replaces.
    pub in_place: bool,
    /// Worker threads, at least 1.
    pub jobs: usize,
    /// Memory budget in bytes.
    pub memory_limit_bytes: u64,
    /// How the output will be read.
    pub layout: LayoutPolicy,
    /// Chunk shape for all datasets of the same rank, or a row count for all (one number).
    pub chunk: Option<Vec<u64>>,
    /// Which datasets have no chunks. Their tiles must lie one behind the other: not with `align`, and only with `ordered`.
    pub contiguous: Contiguous,
    /// How datasets without elements are stored.
    pub empty: Empty,
    /// Which datasets are extendible along axis 0.
    pub extendible: Extendible,
    /// Datasets of N x 1 elements become datasets of N elements, unless they have dimension scales or labels.
    pub rank_1: bool,
    /// Compression.
    pub compress: Compress,
    /// What goes before it.
    pub shuffle: Shuffle,
    /// Oldest HDF5 that must read the output.
    pub compat: Compat,
    /// Which objects take part.
    pub selection: Selection,
    /// How differing inputs are joined.
    pub join: JoinOptions,
    /// What conventions and rules leave to the user.
    pub conventions: ConventionOptions,
    /// Options among these that decide values ([`crate::remembered::Decisions`]) and were given although they have their default
    /// value: what a file remembers does not take their place.
    pub explicit: BTreeSet<&'static str>,
    /// Decode chunks that are moved as stored, to digest their values. Otherwise the digests are of the stored bytes, and
    /// a chunk that cannot be decoded is carried over as it is.
    pub decode_moved: bool,
    /// Whether the output leads to the inputs instead of holding their values.
    pub link: Link,
    /// How it names them.
    pub link_paths: LinkPaths,
    /// Write `/_raddle`.
    pub provenance: bool,
    /// Datasets to be made beside those of the inputs.
    pub made: Vec<MadeSpec>,
    /// Go on without inputs that cannot be read.
    pub skip_bad: bool,
    /// The same bytes for any number of threads (else tiles are placed as they are ready).
    pub ordered: bool,
    /// Chunks are placed so that ranks share no stripe of the file system; nothing is recorded then, and an interrupted run
    /// starts over.
    pub align: Option<Align>,
    /// Go on behind what an interrupted run of the same merge left.
    pub resume: bool,
    /// Largest total of uncompressed bytes that the output may have; `None`: 1 TiB or 2,000 times the inputs' size,
    /// whichever is more (deflate gains at most 1,032 times: more than that is a sparse or hostile file).
    pub max_output_len_bytes: Option<u64>,
    /// What runs libhdf5 on an input as a child process (`raddle` itself); `None`: such inputs are refused.
    pub reader: Option<ReaderCommand>,
    /// Longest wait for one answer of that process.
    pub reader_timeout: Duration,
    /// Virtual datasets and external storage may lead to files outside of the input's folder.
    pub follow_foreign_files: bool,
}

impl MergeOptions {
    /// The defaults for an output path.
    pub fn new(output: impl Into<PathBuf>) -> Self {
        Self {
            output: output.into(),
            force: false,
            in_place: false,
            jobs: raddle_core::engine::default_jobs(),
            memory_limit_bytes: 1 << 30,
            layout: LayoutPolicy::default(),
            chunk: None,
            contiguous: Contiguous::default(),
            empty: Empty::default(),
            extendible: Extendible::default(),
            rank_1: false,
            compress: Compress::default(),
            shuffle: Shuffle::default(),
            compat: Compat::default(),
            selection: Selection::default(),
            join: JoinOptions::default(),
            conventions: ConventionOptions::default(),
            explicit: BTreeSet::new(),
            decode_moved: true,
            link: Link::default(),
            link_paths: LinkPaths::default(),
            provenance: true,
            made: Vec::new(),
            skip_bad: false,
            ordered: true,
            align: None,
            resume: true,
            max_output_len_bytes: None,
            reader: None,
            reader_timeout: ChildOptions::default().timeout,
            follow_foreign_files: false,
        }
    }
}
