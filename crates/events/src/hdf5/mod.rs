//! Events in HDF5 files, in four layouts, each as a sink and as a source.
//!
//! | layout | datasets | for |
//! |---|---|---|
//! | columns | for each leaf one flat little-endian array, for each level of lists one of offsets | analysis, GPUs |
//! | product | for each product its bytes and where each event's end | reading single products |
//! | event | all bytes event by event, and where each product's begin | reading whole events |
//! | batch | all bytes batch by batch, in each product by product, and where each begin | writing fast, small files |
//!
//! The last three are those of Bashyal et al. 2024 in a form that says all that a reader needs: 64-bit ids and offsets, the order of
//! products, how they were serialised, run and subrun of every event, and HDF5's own filters. [`CceOptions`] writes them
//! exactly as the reference framework does instead; both forms are read.
//!
//! A layout is a plan of one-dimensional datasets ([`series`]) and a way to arrange a block into pieces of them;
//! [`store`] fills chunks, has them encoded and puts them into the file. Invariant: the bytes of a file depend on the source
//! and the options alone, not on threads.

mod columns;
mod event;
mod file;
mod growing;
mod index;
mod lumi;
mod objects;
mod opening;
mod packed;
mod packed_source;
mod product;
mod series;
mod shared;
mod source;
mod store;
mod stored;

pub use source::{FileLayout, Hdf5Source};
pub use store::{Hdf5Sink, Hdf5Summary};
pub use stored::StoredEvents;

use crate::pds::PdsCodec;
use raddle_codec::{Compression, Effort};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// How events are laid out in a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// An array for each leaf and each level of lists.
    Columns,
    /// Bytes of each product by themselves.
    Product,
    /// Bytes of each event together.
    Event,
    /// Bytes of so many events together, product by product.
    Batch(NonZeroU64),
}

impl Layout {
    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Columns => "columns",
            Self::Product => "product",
            Self::Event => "event",
            Self::Batch(_) => "batch",
        }
    }

    /// Blocks must have a multiple of so many entries.
    pub fn unit_multiple(self) -> u64 {
        match self {
            Self::Batch(events) => events.get(),
            _ => 1,
        }
    }
}

/// How to write.
#[derive(Debug, Clone)]
pub struct Hdf5Options {
    /// What compresses chunks, after shuffle; nothing where `None`.
    pub compress: Option<Compression>,
    /// Length of a chunk before compression; `None`: 1 MiB, less for thousands of datasets.
    pub chunk_len_bytes: Option<NonZeroU64>,
    /// About how long all blocks are: how much room metadata get at the front of the file.
    pub expected_len_bytes: u64,
    /// As the reference framework writes: no filters of HDF5.
    pub cce: Option<CceOptions>,
    /// Whether an output that exists is replaced.
    pub replace: bool,
}

impl Default for Hdf5Options {
    fn default() -> Self {
        Self {
            compress: Some(Effort::Balanced.into()),
            chunk_len_bytes: None,
            expected_len_bytes: 0,
            cce: None,
            replace: false,
        }
    }
}

/// What the reference framework's outputers are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CceOptions {
    /// Compression of events and batches.
    pub codec: PdsCodec,
    /// What is compressed, in the batch layout.
    pub choice: CompressionChoice,
}

impl Default for CceOptions {
    /// The framework's defaults.
    fn default() -> Self {
        Self { codec: PdsCodec::Zstd(FRAMEWORK_LEVEL), choice: CompressionChoice::Events }
    }
}

/// The level that the framework takes if not told another.
const FRAMEWORK_LEVEL: i32 = 18;

/// What the framework compresses in its batch layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompressionChoice {
    /// Nothing.
    None,
    /// Each event.
    Events,
    /// Each batch.
    Batch,
    /// Each event, and then each batch.
    Both,
}

impl CompressionChoice {
    /// In the order of their numbers in files.
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

/// The attribute by which files of ours are known, and what it says of each layout.
const LAYOUT_ATTRIBUTE: &str = "raddle_layout";
