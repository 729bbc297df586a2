//! The plan of a merge: objects of the output, how each dataset is chunked, filtered and filled, and the expected cost.
//!
//! Plans are plain values that [`plan`] computes from scanned inputs and options; nothing is written while planning.
//! Invariant: every row of every input appears exactly once in the plan ([`raddle_core::plan`] checks it).

pub mod alignment;
pub mod asked_layout;
pub mod chunk;
mod cmip7;
mod column;
pub(crate) mod cost;
pub(crate) mod dataset_specs;
mod dimensions;
pub(crate) mod fill_pattern;
pub(crate) mod fill_references;
mod filters;
mod flat;
mod found;
mod grid;
mod growable;
pub(crate) mod growth;
pub mod input_states;
pub mod layout;
pub mod layout_rules;
pub(crate) mod links;
mod make;
pub(crate) mod memory;
mod needing_chunks;
mod new_columns;
mod null;
pub mod prediction;
pub mod regrouping;
pub(crate) mod row_shifts;
mod sizes;
mod unchunked;

pub(crate) use asked_layout::offered_dimensions;
pub(crate) use column::{Planner, decoders};
pub(crate) use dimensions::Dimensions;
pub(crate) use filters::{encoder_like, ids, library_filters};
pub(crate) use found::FoundInputs;
pub(crate) use growable::Growable;
pub use growth::Growth;
pub(crate) use make::{OutputState, plan_found, plan_from};
pub use make::{plan, plan_collective};
pub(crate) use new_columns::NewColumn;

use crate::conventions::Choice;
use crate::error::{BadInput, MergeError, Result};
use crate::keys::derived::DerivedColumns;
use crate::options::MergeOptions;
use crate::plan::alignment::Alignment;
use crate::plan::asked_layout::ChunkSource;
use crate::rules::Rule;
use crate::rules::pick::UncountedElements;
use crate::schema::join::Difference;
use crate::schema::{ColumnIndex, EntryIndex, Role, Schema, SchemaEntry, display_path};
use crate::subset::selected::SelectedElements;
use crate::verify::digests::{InputDigests, StoredDigests};
use crate::verify::record::StoredRecord;
use raddle_codec::{Encoder, Filter, Pipeline};
use raddle_core::engine::{EngineOptions, Placement};
use raddle_core::plan::Plan;
use raddle_core::plan::extent::values_len_bytes;
use raddle_core::pooled_file::FileIdentity;
use raddle_hdf5::native::Encoding;
use std::path::PathBuf;

/// An input of the plan.
#[derive(Debug, Clone)]
pub struct PlannedInput {
    /// Path of the input, as specified by the caller.
    pub path: PathBuf,
    /// Identity of the file at the time of the scan.
    pub identity: FileIdentity,
    /// Base address of the file, and the sizes of the addresses and lengths that it stores.
    pub encoding: Encoding,
    /// Number of bytes before the superblock, which are not merged.
    pub userblock_len_bytes: u64,
}

/// Everything needed to execute a merge.
#[derive(Debug)]
pub struct MergePlan {
    /// Inputs, in the order of their rows.
    pub inputs: Vec<PlannedInput>,
    /// Inputs that are left out because they cannot be read.
    pub skipped: Vec<BadInput>,
    /// Objects of the output.
    pub schema: Schema,
    /// Plan of each column of the schema.
    pub columns: Vec<ColumnPlan>,
    /// The tiled columns as arrays of the engine.
    pub tiles: Plan,
    /// Column of each array in `tiles`.
    pub column_of_array: Vec<ColumnIndex>,
    /// Differences between the inputs that were bridged.
    pub warnings: Vec<Difference>,
    /// Number of chunks in all inputs.
    pub input_chunk_count: u64,
    /// Wall time of scan and planning.
    pub elapsed_s: f64,
    /// Wall time of the scan.
    pub scan_s: f64,
    /// Mean wall time of opening an input during the scan.
    pub open_s: f64,
    /// Columns that are computed and added, not read.
    pub derived: DerivedColumns,
    /// Names by which the output links to its inputs; empty if it does not link to them.
    pub link_names: Vec<Vec<u8>>,
    /// Records of the inputs that also hold for the output.
    pub(crate) remembered: Option<StoredRecord>,
    /// Digests that inputs hold of their own values.
    pub(crate) input_digests: InputDigests,
    /// Digests and row ranges stored in the only input, if it is rewritten in place; they are carried over.
    pub carried: Option<StoredDigests>,
    /// Growth of the first input, if the others are appended to it; `tiles` then holds only the new tiles.
    pub growth: Option<Growth>,
    /// Arenas in which chunks are placed, if they are aligned.
    pub alignment: Option<Alignment>,
    /// Elements that must be counted before planning again; a plan with such elements is not executed.
    pub(crate) uncounted: Vec<UncountedElements>,
    /// Paths of values whose range must be determined before planning again; a plan with such paths is not executed.
    pub(crate) unranged: Vec<Vec<u8>>,
    /// Elements to which the output is restricted; `None` if it is not restricted.
    pub(crate) selected: Option<SelectedElements>,
    /// Convention that the inputs were recognised as.
    pub convention: Option<Choice>,
    /// Reason why the convention was recognised, as text.
    pub because: String,
    /// Rules of entries that are not simply concatenated along axis 0.
    pub rules: Vec<(EntryIndex, Rule)>,
    /// Options of the merge.
    pub options: MergeOptions,
}

/// Plan of a column.
#[derive(Debug)]
pub struct ColumnPlan {
    /// Dimensions in the output.
    pub dims: Vec<u64>,
    /// Maximum dimensions in the output.
    pub max_dims: Vec<u64>,
    /// Whether the output has only the first dimension because the second is 1. The fields here always have both.
    pub is_flat: bool,
    /// Storage in the output.
    pub storage: Storage,
    /// Filter pipeline in the output.
    pub filters: Vec<Filter>,
    /// Filters that new chunks skip, as bits of their filter masks, in addition to those that the encoder skips.
    pub skipped_filters: u32,
    /// Way in which the values get into the output.
    pub route: Route,
    /// Decoder of each template; `None` if a filter is unknown and chunks are moved as stored.
    pub pipelines: Vec<Option<Pipeline>>,
    /// Origin of the layout.
    pub layout: LayoutDecision,
}

/// Origin of the layout of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayoutDecision {
    /// Origin of the chunk shape; `None` if the dataset is not chunked, or the file exists already.
    pub chunk: Option<ChunkSource>,
    /// Numbers of the layout rules that decide, ascending.
    pub rules: Vec<u32>,
    /// Whether the filters of the inputs are to be kept.
    pub keeps_filters: bool,
    /// Whether rules name filters that the values, which have variable length, cannot have.
    pub has_unused_filters: bool,
}

/// Storage of an output dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// Values in the object header.
    Compact,
    /// Values in one contiguous block.
    Contiguous,
    /// Chunked, with this shape.
    Chunked(Vec<u64>),
    /// Values in the inputs, to which a virtual dataset refers.
    Virtual,
}

/// Way in which the values of a column get into the output.
#[derive(Debug)]
pub enum Route {
    /// The dataset has no elements, so nothing is written.
    Empty,
    /// Through the engine, decoded and encoded again.
    Encoded {
        /// Index of the array in the engine's plan.
        array: u32,
        /// Encoder of the chunks.
        encoder: Encoder,
    },
    /// Through the engine, decoded, into one contiguous block.
    Raw {
        /// Index of the array in the engine's plan; its tiles are runs of bytes.
        array: u32,
    },
    /// Through the engine, with chunks as stored.
    Verbatim {
        /// Index of the array in the engine's plan.
        array: u32,
    },
    /// Through libhdf5, as a whole: small and unchunked.
    Direct,
    /// Through libhdf5, in blocks of rows: elements hold addresses within their file.
    FileLocal,
    /// Values are not written: readers find them in the inputs.
    Linked,
}

impl Route {
    /// Returns the array in the engine's plan, if values go through the engine.
    pub fn array(&self) -> Option<u32> {
        match self {
            Self::Encoded { array, .. } | Self::Raw { array } | Self::Verbatim { array } => Some(*array),
            Self::Empty | Self::Direct | Self::FileLocal | Self::Linked => None,
        }
    }
}

impl ColumnPlan {
    /// Returns the number of dimensions in the file.
    pub fn rank(&self) -> usize {
        if self.is_flat { 1 } else { self.dims.len() }
    }

    /// Returns the dimensions in the file.
    pub fn file_dims(&self) -> &[u64] {
        &self.dims[..self.rank()]
    }

    /// Returns the maximum dimensions in the file.
    pub(crate) fn file_max_dims(&self) -> &[u64] {
        &self.max_dims[..self.rank()]
    }

    /// Returns the chunk shape in the file; `None` if the dataset is not chunked.
    pub fn file_chunk_shape(&self) -> Option<&[u64]> {
        match &self.storage {
            Storage::Chunked(shape) => Some(&shape[..self.rank()]),
            _ => None,
        }
    }

    /// Returns whether a filter is unknown, in which case values cannot be decoded and chunks are moved as stored.
    pub fn is_undecodable(&self) -> bool {
        self.pipelines.iter().any(Option::is_none)
    }

    /// Returns the array whose chunks are moved without decoding them, because of `options` or an unknown filter.
    pub(crate) fn undecoded_array(&self, options: &MergeOptions) -> Option<u32> {
        match self.route {
            Route::Verbatim { array } if self.is_undecodable() || !options.decode_moved => Some(array),
            _ => None,
        }
    }

    /// Returns the number of uncompressed bytes of the column; for file-local types, only descriptors are counted.
    pub fn logical_len_bytes(&self, element_len_bytes: u64) -> u64 {
        values_len_bytes(&self.dims, element_len_bytes)
    }
}

impl MergePlan {
    /// Returns the number of chunks in the output.
    pub fn chunk_count(&self) -> u64 {
        let chunks = self.columns.iter().filter_map(|column| match column.route {
            Route::Encoded { array, .. } | Route::Verbatim { array } => {
                Some(self.tiles.arrays[array as usize].tile_count())
            }
            // Values of variable length and references are not written in tiles.
            Route::Direct | Route::FileLocal => column.file_chunk_shape().map(|shape| {
                let along = column.file_dims().iter().zip(shape).map(|(dim, len)| dim.div_ceil((*len).max(1)));
                along.fold(1, u64::saturating_mul)
            }),
            _ => None,
        });
        chunks.fold(0, u64::saturating_add)
    }

    /// Returns the number of uncompressed bytes in all datasets of the output.
    pub fn logical_len_bytes(&self) -> u64 {
        let columns = self.columns.iter().zip(&self.schema.columns);
        columns.fold(0, |sum: u64, (plan, column)| {
            sum.saturating_add(plan.logical_len_bytes(column.model().datatype.class.len_bytes()))
        })
    }

    /// Returns the number of virtual datasets or external links by which the output refers to its inputs.
    pub fn linked(&self) -> u64 {
        let is_link = |entry: &&SchemaEntry| matches!(entry.role, Role::ExternalLink { .. });
        match self.options.link.is_external() {
            true => self.schema.entries.iter().filter(is_link).count() as u64,
            false => self.columns.iter().filter(|column| matches!(column.route, Route::Linked)).count() as u64,
        }
    }

    /// Returns whether the output holds values: an output of links does if some values change or cannot be linked to.
    pub fn stores_values(&self) -> bool {
        self.columns.iter().any(|column| !matches!(column.route, Route::Linked | Route::Empty))
    }

    /// Returns whether a later run may resume from the tiles placed by this one. That requires tiles without gaps and
    /// in order.
    pub fn is_recordable(&self) -> bool {
        self.options.ordered && self.options.align.is_none()
    }

    /// Returns the options with which the engine executes the plan, with the output starting at address 0.
    pub(crate) fn engine_options(&self) -> EngineOptions {
        EngineOptions {
            jobs: self.options.jobs,
            placement: if self.options.ordered { Placement::Ordered } else { Placement::Unordered },
            arenas: self.alignment.map(|alignment| alignment.arenas),
            ..EngineOptions::default()
        }
    }

    /// Returns the rule of an entry; `None` if it has none.
    pub fn rule_of(&self, entry: EntryIndex) -> Option<&Rule> {
        let at = self.rules.binary_search_by_key(&entry, |(entry, _)| *entry).ok()?;
        Some(&self.rules[at].1)
    }

    /// Returns the total size of all input files in bytes.
    pub fn input_len_bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.identity.len_bytes).sum()
    }

    /// Refuses outputs that are implausibly large, because of sparse or malicious dimensions.
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

    /// Returns the number of bytes per row of a column in the output: of all elements with the same index on axis 0.
    pub fn row_len_bytes(&self, column: ColumnIndex) -> u64 {
        let element_len_bytes = self.schema.columns[column as usize].model().datatype.class.len_bytes();
        let others = self.columns[column as usize].dims.get(1..).unwrap_or(&[]);
        values_len_bytes(others, element_len_bytes)
    }
}
