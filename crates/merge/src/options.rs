//! Options of a merge as plain values, shared by the command, the Python package and all ranks.

mod filters;
mod links;

use crate::conventions::ConventionOptions;
use crate::inputs::selection::Selection;
use crate::keys::DerivedSpec;
use crate::plan::alignment::Align;
use crate::plan::chunk::Chunk;
use crate::plan::layout::LayoutPolicy;
use crate::plan::layout_rules::LayoutRule;
use crate::schema::join::JoinOptions;
use crate::subset::DimensionRange;
use crate::subset::tables::TableSelection;
use raddle_hdf5::child::{ChildOptions, ReaderCommand};
use raddle_hdf5::write::Compat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use filters::{Compress, ParseCompressError, Shuffle};
pub use links::{Link, LinkPaths};
pub use raddle_core::report::progress::Watch;

/// Choice of the datasets of a new file that are extendible along axis 0, in addition to those that are extendible in
/// an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Extendible {
    /// Datasets with rows from several inputs, if the inputs follow no convention and the chunk indexes add at most 1 %
    /// to their bytes.
    #[default]
    Likely,
    /// All datasets.
    All,
    /// Only datasets that are extendible in an input.
    Never,
}

/// Choice of the datasets of a new file that are stored contiguously: as one block of fixed size, without chunks or
/// filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Contiguous {
    /// Datasets of at most 4 KiB that no input stores in chunks and that are not extendible.
    #[default]
    Small,
    /// Like `Small`, and also all datasets with fewer uncompressed bytes than this.
    Below(u64),
    /// All datasets.
    All,
}

impl Contiguous {
    /// Returns whether a dataset of `len_bytes` is stored contiguously regardless of its storage in the inputs.
    pub fn includes(self, len_bytes: u64) -> bool {
        match self {
            Self::Small => false,
            Self::Below(limit) => len_bytes < limit,
            Self::All => true,
        }
    }
}

/// Storage of datasets without elements in a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Empty {
    /// Storage as for datasets with elements: chunks if an input has chunks or the dataset is extendible.
    #[default]
    #[cfg_attr(feature = "clap", value(skip))]
    AsOthers,
    /// Contiguous, of a fixed size.
    Contiguous,
    /// In the object header, of a fixed size.
    Compact,
    /// Chunked.
    Chunked,
    /// As null datasets, which have a type but no dimensions.
    Null,
}

/// Options of a merge or rechunk.
#[derive(Debug, Clone)]
pub struct MergeOptions {
    /// Path of the output.
    pub output: PathBuf,
    /// Whether to replace an existing output.
    pub force: bool,
    /// Whether the only input is also the output, and is replaced by it.
    pub in_place: bool,
    /// Number of worker threads, at least 1.
    pub jobs: usize,
    /// Memory budget in bytes.
    pub memory_limit_bytes: u64,
    /// Read pattern for which the output is laid out.
    pub layout: LayoutPolicy,
    /// Chunk shape for all datasets of the same rank, number of rows per chunk for all datasets, or sizes by name for
    /// the datasets that have some of these dimensions.
    pub chunk: Option<Chunk>,
    /// Whether `chunk` comes from a profile: a shape that no dataset can have is then ignored, not refused.
    pub is_chunk_of_profile: bool,
    /// Layout rules, which take precedence over the options for all datasets; the last one takes precedence over
    /// others.
    pub layout_rules: Vec<LayoutRule>,
    /// Whether layout options that have no effect on any dataset are refused.
    pub refuses_unused_layouts: bool,
    /// Choice of the datasets that have no chunks. Their tiles must be adjacent: this excludes `align` and requires
    /// `ordered`.
    pub contiguous: Contiguous,
    /// Storage of datasets without elements.
    pub empty: Empty,
    /// Choice of the datasets that are extendible along axis 0.
    pub extendible: Extendible,
    /// Whether datasets of N x 1 elements become datasets of N elements, unless they have dimension scales or labels.
    pub rank_1: bool,
    /// Compression of chunks.
    pub compress: Compress,
    /// Whether bytes are shuffled before compression.
    pub shuffle: Shuffle,
    /// Whether all chunks have checksums. If not, only datasets that have checksums in the inputs have them.
    pub fletcher32: bool,
    /// Oldest HDF5 version that must be able to read the output.
    pub compat: Compat,
    /// Objects to merge.
    pub selection: Selection,
    /// Ranges of dimensions to which the output is restricted.
    pub subset: Vec<DimensionRange>,
    /// Rows of tables to which the output of a single input is restricted.
    pub rows: Option<Arc<TableSelection>>,
    /// Whether the inputs are divided into outputs with a variable each.
    pub divides_variables: bool,
    /// Treatment of differences between inputs.
    pub join: JoinOptions,
    /// Settings that conventions and rules leave to the user.
    pub conventions: ConventionOptions,
    /// Names of options that decide values ([`crate::verify::record::Decisions`]) and were set explicitly to their
    /// default value: values recorded in a file do not override them.
    pub explicit: BTreeSet<&'static str>,
    /// Whether to decode chunks that are moved as stored, to compute digests of their values. Otherwise digests cover
    /// the stored bytes, and a chunk that cannot be decoded is copied unchanged.
    pub decode_moved: bool,
    /// Whether the output links to the inputs instead of holding their values.
    pub link: Link,
    /// Form of the paths by which links name the inputs.
    pub link_paths: LinkPaths,
    /// Whether to write `/_raddle`.
    pub provenance: bool,
    /// Datasets to add to those of the inputs.
    pub derived: Vec<DerivedSpec>,
    /// Whether to continue without inputs that cannot be read.
    pub skip_bad: bool,
    /// Whether inputs whose values differ from the digests that they hold are accepted.
    pub ignore_digests: bool,
    /// Whether the output is byte-identical for any number of threads; otherwise tiles are placed as they become ready.
    pub ordered: bool,
    /// Alignment of chunks, so that no two ranks share a stripe of the file system. With alignment no checkpoint is
    /// recorded: an interrupted run starts over.
    pub align: Option<Align>,
    /// Whether to resume an interrupted run of the same merge.
    pub resume: bool,
    /// Maximum number of uncompressed bytes of the output; `None`: 1 TiB or 2,000 times the size of the inputs,
    /// whichever is more (deflate compresses at most 1,032 times: a larger ratio means a sparse or malicious file).
    pub max_output_len_bytes: Option<u64>,
    /// Command that runs libhdf5 on an input in a child process (`raddle` itself); if `None`, inputs that need it are
    /// refused.
    pub reader: Option<ReaderCommand>,
    /// Longest time to wait for one answer of the child process.
    pub reader_timeout: Duration,
    /// Whether virtual datasets and external storage may refer to files outside the input's folder.
    pub follow_foreign_files: bool,
}

impl MergeOptions {
    /// Returns the default options for an output path.
    pub fn new(output: impl Into<PathBuf>) -> Self {
        Self {
            output: output.into(),
            force: false,
            in_place: false,
            jobs: raddle_core::engine::default_jobs(),
            memory_limit_bytes: 1 << 30,
            layout: LayoutPolicy::default(),
            chunk: None,
            is_chunk_of_profile: false,
            layout_rules: Vec::new(),
            refuses_unused_layouts: true,
            contiguous: Contiguous::default(),
            empty: Empty::default(),
            extendible: Extendible::default(),
            rank_1: false,
            compress: Compress::default(),
            shuffle: Shuffle::default(),
            fletcher32: false,
            compat: Compat::default(),
            selection: Selection::default(),
            subset: Vec::new(),
            rows: None,
            divides_variables: false,
            join: JoinOptions::default(),
            conventions: ConventionOptions::default(),
            explicit: BTreeSet::new(),
            decode_moved: true,
            link: Link::default(),
            link_paths: LinkPaths::default(),
            provenance: true,
            derived: Vec::new(),
            skip_bad: false,
            ignore_digests: false,
            ordered: true,
            align: None,
            resume: true,
            max_output_len_bytes: None,
            reader: None,
            reader_timeout: ChildOptions::default().timeout,
            follow_foreign_files: false,
        }
    }

    /// Returns whether layout options apply to some datasets only, by their paths or dimensions.
    pub fn is_by_dataset(&self) -> bool {
        !self.layout_rules.is_empty()
            || matches!(self.chunk, Some(Chunk::Named(_)))
            || self.layout != self.layout.without_time()
    }
}
