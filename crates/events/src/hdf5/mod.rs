//! Events in HDF5 files, in four layouts, each available as a sink and as a source.
//!
//! | layout | datasets | for |
//! |---|---|---|
//! | columns | one flat little-endian array per leaf, one array of offsets per level of lists | analysis, GPUs |
//! | product | the bytes of each product, and the end of each event in them | reading single products |
//! | event | all bytes event by event, and the beginning of each product in them | reading whole events |
//! | batch | all bytes batch by batch, within a batch product by product, and the beginning of each blob | writing fast, small files |
//!
//! The last three are the layouts of Bashyal et al. 2024 in a form that records everything that a reader needs: 64-bit
//! ids and offsets, the order of products, their serialisation, run and subrun of every event, and HDF5's own filters.
//! With [`CceOptions`], they are written exactly as by the reference framework. Both forms can be read.
//!
//! A layout is a plan of one-dimensional datasets (`series`) and a way to arrange a block into pieces of these
//! datasets; `store` fills chunks, has them encoded and writes them. Invariant: the bytes of a file depend only on
//! the source and the options, not on threads.

mod arrangement;
mod chunk_builder;
mod columns;
mod contents;
mod event;
mod file;
mod index;
mod lumi;
mod objects;
mod opening;
mod packed;
mod packed_source;
mod product;
mod rank_chunks;
mod series;
mod source;
mod store;
mod stored;

pub use source::Hdf5Source;
pub use store::{Hdf5Sink, Hdf5Summary};
pub use stored::StoredEvents;

use crate::pds::PdsCodec;
use raddle_codec::{Compression, Effort};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// Layout of events in a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One array per leaf and per level of lists.
    Columns,
    /// Bytes of each product, separately.
    Product,
    /// Bytes of each event together.
    Event,
    /// Bytes of a fixed number of events together, product by product.
    Batch(NonZeroU64),
}

impl Layout {
    /// Returns the name used on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Columns => "columns",
            Self::Product => "product",
            Self::Event => "event",
            Self::Batch(_) => "batch",
        }
    }

    /// Returns the granularity of blocks: the number of their entries must be a multiple of it.
    pub fn unit_multiple(self) -> u64 {
        match self {
            Self::Batch(events) => events.get(),
            _ => 1,
        }
    }
}

/// Layout of a file that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLayout {
    /// One array per leaf and per level of lists.
    Columns,
    /// Each product separately, in raddle's form.
    Product,
    /// Events together, in raddle's form.
    Event,
    /// Batches together, in raddle's form, with the number of batches.
    Batch(u64),
    /// Each product separately, as written by the framework.
    FrameworkProduct,
    /// Events together, as written by the framework.
    FrameworkEvent(CceOptions),
    /// Batches together, as written by the framework.
    FrameworkBatch(CceOptions),
}

/// Options for writing.
#[derive(Debug, Clone)]
pub struct Hdf5Options {
    /// Compression of chunks after the shuffle filter; no filters if `None`.
    pub compress: Option<Compression>,
    /// Length of a chunk before compression. If `None`, it is 1 MiB, or less if there are thousands of datasets.
    pub chunk_len_bytes: Option<NonZeroU64>,
    /// Approximate total length of all blocks, which determines the room reserved for metadata at the front of the
    /// file.
    pub expected_len_bytes: u64,
    /// Options for writing as the reference framework does, without HDF5 filters.
    pub cce: Option<CceOptions>,
    /// Whether blocks have ids. If not, the layouts of bytes count the events, and record that their ids are counted.
    pub with_ids: bool,
    /// Whether to replace an existing output.
    pub replace: bool,
}

impl Default for Hdf5Options {
    fn default() -> Self {
        Self {
            compress: Some(Effort::Balanced.into()),
            chunk_len_bytes: None,
            expected_len_bytes: 0,
            cce: None,
            with_ids: true,
            replace: false,
        }
    }
}

/// Options of the reference framework's output modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CceOptions {
    /// Compression of events and batches.
    pub codec: PdsCodec,
    /// Data that is compressed in the batch layout.
    pub choice: CompressionChoice,
}

impl Default for CceOptions {
    /// Returns the framework's defaults.
    fn default() -> Self {
        Self { codec: PdsCodec::Zstd(FRAMEWORK_LEVEL), choice: CompressionChoice::Events }
    }
}

/// Default compression level of the framework.
const FRAMEWORK_LEVEL: i32 = 18;

/// Data that the framework compresses in its batch layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompressionChoice {
    /// Nothing.
    None,
    /// Compress each event.
    #[default]
    Events,
    /// Compress each batch.
    Batch,
    /// Compress each event, and each batch as well.
    Both,
}

impl CompressionChoice {
    /// All choices, in the order of their numbers in files.
    pub const ALL: [Self; 4] = [Self::None, Self::Events, Self::Batch, Self::Both];

    fn number(self) -> i32 {
        self as i32
    }

    fn of_number(number: i32) -> Option<Self> {
        usize::try_from(number).ok().and_then(|number| Self::ALL.get(number)).copied()
    }

    fn compresses_events(self) -> bool {
        matches!(self, Self::Events | Self::Both)
    }

    fn compresses_batches(self) -> bool {
        matches!(self, Self::Batch | Self::Both)
    }
}

/// Name of the group of the framework's layouts.
const LUMI: &str = "/Lumi";

/// Attribute that identifies files written by raddle; its value names the layout.
const LAYOUT_ATTRIBUTE: &str = "raddle_layout";

/// Attribute of layouts of bytes whose ids are counted because the source had none, and its value.
const IDS_ATTRIBUTE: &str = "raddle_ids";
const COUNTED_IDS: &str = "counted";
