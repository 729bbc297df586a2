//! The plan of a merge: which objects the output has, how each dataset is cut, filtered and filled, and what it will cost.
//!
//! Plain values; [`plan`] makes them from scanned inputs and options, and nothing is written while planning.
//! Invariant: every row of every input is in exactly one place of the plan ([`raddle_core::plan`] checks it).

mod column;
mod filters;
mod flat;
mod growable;
mod make;
mod null;
mod sizes;

pub(crate) use column::{Planner, decoders};
pub(crate) use filters::{encoder_like, ids, library_filters};
pub(crate) use growable::Growable;
pub(crate) use make::{Beginning, FoundInputs, NewColumn, plan_found, plan_from};
pub use make::{plan, plan_among};

use crate::alignment::Alignment;
use crate::append::growth::Growth;
use crate::conventions::Choice;
use crate::digests::stored::StoredDigests;
use crate::error::{BadInput, MergeError, Result};
use crate::join::Difference;
use crate::keys::made::Made;
use crate::options::MergeOptions;
use crate::picking::Uncounted;
use crate::remembered::Remembered;
use crate::rules::Rule;
use crate::schema::{ColumnIndex, Entry, EntryIndex, Role, Schema, display_path};
use raddle_codec::{Encoder, Filter, Pipeline};
use raddle_core::handle::FileIdentity;
use raddle_core::plan::Plan;
use raddle_hdf5::native::Encoding;
use std::path::PathBuf;

/// An input of the plan.
#[derive(Debug, Clone)]
pub struct PlannedInput {
    /// Path as given.
    pub path: PathBuf,
    /// Identity at the time of the scan.
    pub identity: FileIdentity,
    /// Sizes that readers of the file need.
    pub encoding: Encoding,
    /// Bytes before the superblock, which are not merged.
    pub userblock_len_bytes: u64,
}

/// Everything that executing a merge needs.
#[derive(Debug)]
pub struct MergePlan {
    /// Inputs, in the order of their rows.
    pub inputs: Vec<PlannedInput>,
    /// Inputs left out because they cannot be read.
    pub skipped: Vec<BadInput>,
    /// Objects of the output.
    pub schema: Schema,
    /// How each column of the schema is written.
    pub columns: Vec<ColumnPlan>,
    /// The tiled columns as the engine sees them.
    pub tiles: Plan,
    /// Column of each array in `tiles`.
    pub column_of_array: Vec<ColumnIndex>,
    /// Differences that were bridged.
    pub warnings: Vec<Difference>,
    /// Chunks in all inputs.
    pub input_chunk_count: u64,
    /// Wall time of scan and planning.
    pub elapsed_s: f64,
    /// Wall time of the scan.
    pub scan_s: f64,
    /// Wall time of opening an input while all were scanned, on average.
    pub open_s: f64,
    /// Columns that are made, not read.
    pub made: Made,
    /// How the output names its inputs, where it leads to them.
    pub link_names: Vec<Vec<u8>>,
    /// Records of the inputs that also hold for the output.
    pub(crate) remembered: Option<Remembered>,
    /// What the one input says of itself, where it is rewritten in place: digests and row ranges are carried over.
    pub carried: Option<StoredDigests>,
    /// How the first input grows by the others, where they are appended to it; the tiles are the new ones.
    pub growth: Option<Growth>,
    /// The arenas that chunks are placed in, if they are.
    pub alignment: Option<Alignment>,
    /// Elements that have to be counted; the plan is a first one, which is not carried out.
    pub(crate) uncounted: Vec<Uncounted>,
    /// Paths of values whose range has to be found; the plan is a first one too.
    pub(crate) unranged: Vec<Vec<u8>>,
    /// What the inputs were recognised as.
    pub convention: Option<Choice>,
    /// Why, in words.
    pub because: String,
    /// Rules of entries of the schema that are not simply concatenated along axis 0.
    pub rules: Vec<(EntryIndex, Rule)>,
    /// What the user asked for.
    pub options: MergeOptions,
}

/// How a column is written.
#[derive(Debug)]
pub struct ColumnPlan {
    /// Dimensions in the output.
    pub dims: Vec<u64>,
    /// Maximum dimensions in the output.
    pub max_dims: Vec<u64>,
    /// Whether the output has the first dimension only, because the second is 1. Everything here has both.
    pub is_flat: bool,
    /// Storage in the output.
    pub storage: Storage,
    /// Filter pipeline in the output.
    pub filters: Vec<Filter>,
    /// Filters that new chunks skip, as bits of their masks, beside those that the encoder skips.
    pub skipped_filters: u32,
    /// How values get there.
    pub route: Route,
    /// Decoders of the templates, in their order; `None` where a filter is unknown and chunks are moved as stored.
    pub pipelines: Vec<Option<Pipeline>>,
}

/// Storage of an output dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// In the object header.
    Compact,
    /// In one run.
    Contiguous,
    /// In chunks of this shape.
    Chunked(Vec<u64>),
    /// In the inputs.
    Virtual,
}

/// The way of a column's values into the output.
#[derive(Debug)]
pub enum Route {
    /// No element: nothing to write.
    Empty,
    /// Through the engine, decoded and encoded.
    Encoded {
        /// Array of the engine's plan.
        array: u32,
        /// Encoder.
        encoder: Encoder,
    },
    /// Through the engine, decoded, into one run.
    Raw {
        /// Array of the engine's plan; its tiles are runs of bytes.
        array: u32,
    },
    /// Through the engine, chunks as stored.
    Verbatim {
        /// Array of the engine's plan.
        array: u32,
    },
    /// Whole, through libhdf5: small and unchunked.
    Direct,
    /// Through libhdf5, row block by row block: elements hold addresses of their file.
    FileLocal,
    /// Not at all: readers find them in the inputs.
    Linked,
}

impl Route {
    /// The array of the engine's plan, where values go through the engine.
    pub fn array(&self) -> Option<u32> {
        match self {
            Self::Encoded { array, .. } | Self::Raw { array } | Self::Verbatim { array } => Some(*array),
            Self::Empty | Self::Direct | Self::FileLocal | Self::Linked => None,
        }
    }
}

impl ColumnPlan {
    /// Number of dimensions in the file.
    pub fn rank(&self) -> usize {
        if self.is_flat { 1 } else { self.dims.len() }
    }

    /// Dimensions in the file.
    pub fn file_dims(&self) -> &[u64] {
        &self.dims[..self.rank()]
    }

    /// Maximum dimensions in the file.
    pub fn file_max_dims(&self) -> &[u64] {
        &self.max_dims[..self.rank()]
    }

    /// Chunk shape in the file, where the dataset is chunked.
    pub fn file_chunk_shape(&self) -> Option<&[u64]> {
        match &self.storage {
            Storage::Chunked(shape) => Some(&shape[..self.rank()]),
            _ => None,
        }
    }

    /// Whether a filter is unknown, so that values cannot be seen and chunks are moved as stored.
    pub fn is_undecodable(&self) -> bool {
        self.pipelines.iter().any(Option::is_none)
    }

    /// The array whose chunks are moved without decoding them, where `options` or an unknown filter ask for that.
    pub fn undecoded_array(&self, options: &MergeOptions) -> Option<u32> {
        match self.route {
            Route::Verbatim { array } if self.is_undecodable() || !options.decode_moved => Some(array),
            _ => None,
        }
    }

    /// Uncompressed bytes of the column, descriptors only for file-local types.
    pub fn logical_len_bytes(&self, element_len_bytes: u64) -> u64 {
        self.dims.iter().fold(element_len_bytes, |product, &dim| product.saturating_mul(dim))
    }
}

impl MergePlan {
    /// Chunks of the output.
    pub fn chunk_count(&self) -> u64 {
        let chunks = self.columns.iter().filter_map(|column| match column.route {
            Route::Encoded { array, .. } | Route::Verbatim { array } => {
                Some(self.tiles.arrays[array as usize].tile_count())
            }
            _ => None,
        });
        chunks.fold(0, u64::saturating_add)
    }

    /// Uncompressed bytes of the output's datasets.
    pub fn logical_len_bytes(&self) -> u64 {
        let columns = self.columns.iter().zip(&self.schema.columns);
        columns.fold(0, |sum: u64, (plan, column)| {
            sum.saturating_add(plan.logical_len_bytes(column.model().datatype.class.len_bytes()))
        })
    }

    /// Virtual datasets and external links by which the output leads to its inputs.
    pub fn linked(&self) -> u64 {
        let is_link = |entry: &&Entry| matches!(entry.role, Role::ExternalLink { .. });
        match self.options.link.is_external() {
            true => self.schema.entries.iter().filter(is_link).count() as u64,
            false => self.columns.iter().filter(|column| matches!(column.route, Route::Linked)).count() as u64,
        }
    }

    /// Whether a later run may go on from what this one places, which it can where that has no gaps and is in order.
    pub fn is_recordable(&self) -> bool {
        self.options.ordered && self.options.align.is_none()
    }

    /// The rule of an entry, if it has one.
    pub fn rule_of(&self, entry: EntryIndex) -> Option<&Rule> {
        let at = self.rules.binary_search_by_key(&entry, |(entry, _)| *entry).ok()?;
        Some(&self.rules[at].1)
    }

    /// Bytes of all input files.
    pub fn input_len_bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.identity.len_bytes).sum()
    }

    /// Refuses outputs that no honest input makes: sparse or hostile dimensions.
    fn check_output_len(&self) -> Result<()> {
        let automatic = (1_u64 << 40).max(self.input_len_bytes().saturating_mul(2000));
        let limit = self.options.max_output_len_bytes.unwrap_or(automatic);
        let needed = self.logical_len_bytes();
        if needed <= limit {
            return Ok(());
        }
        let lens = self.columns.iter().zip(&self.schema.columns);
        let lens = lens.map(|(plan, column)| plan.logical_len_bytes(column.model().datatype.class.len_bytes()));
        let largest = (0..).zip(lens).max_by_key(|(_, len_bytes)| *len_bytes).map_or(0, |(index, _)| index);
        let facts = self.schema.columns[largest as usize].facts.iter().enumerate();
        let input = facts.max_by_key(|(_, fact)| fact.rows).map_or(0, |(input, _)| input);
        Err(MergeError::OutputTooLong {
            object: display_path(self.schema.column_path(largest)),
            input: self.inputs[input].path.clone(),
            needed,
            limit,
        })
    }

    /// Bytes of one row of a column in the output: all elements with the same index on axis 0.
    pub fn row_len_bytes(&self, column: ColumnIndex) -> u64 {
        let element_len_bytes = self.schema.columns[column as usize].model().datatype.class.len_bytes();
        let others = self.columns[column as usize].dims.iter().skip(1);
        others.fold(element_len_bytes, |product, &dim| product.saturating_mul(dim))
    }
}
