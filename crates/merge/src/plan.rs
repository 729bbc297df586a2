//! The plan of a merge: which objects the output has, how each dataset is cut, filtered and filled, and what it will cost.
//!
//! Plain values, made from scanned inputs and options; nothing is written while planning.
//! Invariant: every row of every input is in exactly one place of the plan ([`raddle_core::plan`] checks it).

use crate::append::growth::{ColumnGrowth, Growth};
use crate::append::redo;
use crate::digests::stored::StoredDigests;
use crate::error::{BadInput, MergeError, Result};
use crate::fill_references;
use crate::join::{Difference, DifferenceKind, Joined, Joiner};
use crate::keys::{self, made::Made};
use crate::layout::{LayoutPolicy, Shape, chunk_shape, table_rows_per_chunk};
use crate::links::{self, Link};
use crate::options::{Compress, MergeOptions, Watch};
use crate::scan;
use crate::schema::{ABSENT, Column, ColumnFact, ColumnIndex, Entry, Role, Schema, display_path};
use crate::values::FillPattern;
use raddle_codec::{Encoder, EncoderOptions, Filter, Pipeline};
use raddle_core::plan::{ArrayPlan, Plan, Segment};
use raddle_core::progress::{Event, Stage};
use raddle_hdf5::model::{ChunkIndex, Dataset, Layout};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::source::FileIdentity;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A dataset up to this size that its inputs store unchunked is written whole: it costs less than a chunk index.
const DIRECT_LIMIT_BYTES: u64 = 4096;
/// Largest compact dataset: HDF5 limits object header messages to 64 KiB, some of it for the message itself.
const COMPACT_LIMIT_BYTES: u64 = 64_000;
/// Filter numbers of HDF5 that a merge treats by name.
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
const DEFLATE: u16 = 1;
/// `H5D_ALLOC_TIME_EARLY`: libhdf5 would allocate chunks when a dataset grows.
const EARLY: u8 = 1;

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
    /// Columns that are made, not read.
    pub made: Made,
    /// How the output names its inputs, where it leads to them.
    pub link_names: Vec<Vec<u8>>,
    /// What the one input says of itself, where it is rewritten in place: digests and row ranges are carried over.
    pub carried: Option<StoredDigests>,
    /// How the first input grows by the others, where they are appended to it; the tiles are the new ones.
    pub growth: Option<Growth>,
    /// What the user asked for.
    pub options: MergeOptions,
}

/// What the output is when a run begins.
pub(crate) enum Beginning {
    /// Not there.
    New,
    /// The one input, which is written anew; with what it says of itself.
    Rewritten(Option<StoredDigests>),
    /// The first input, which grows by the others; with what it says of itself.
    Grows(Option<StoredDigests>),
}

/// How a column is written.
#[derive(Debug)]
pub struct ColumnPlan {
    /// Dimensions in the output.
    pub dims: Vec<u64>,
    /// Maximum dimensions in the output.
    pub max_dims: Vec<u64>,
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

impl ColumnPlan {
    /// Whether a filter is unknown, so that values cannot be seen and chunks are moved as stored.
    pub fn is_undecodable(&self) -> bool {
        self.pipelines.iter().any(Option::is_none)
    }

    /// Uncompressed bytes of the column, descriptors only for file-local types.
    pub fn logical_len_bytes(&self, element_len_bytes: u64) -> u64 {
        self.dims.iter().fold(element_len_bytes, |product, &dim| product.saturating_mul(dim))
    }
}

/// Scans `inputs` and plans their merge.
///
/// # Errors
/// [`MergeError::BadInputs`] with all inputs that cannot be read, [`MergeError::Differences`] with all differences that
/// the join asked for does not bridge, [`MergeError::Object`] for a dataset that cannot be written as asked.
pub fn plan(inputs: &[PathBuf], options: &MergeOptions, watch: &Watch<'_>) -> Result<MergePlan> {
    plan_from(inputs, Beginning::New, options, watch)
}

/// As [`plan`], for an output that may be there already.
pub(crate) fn plan_from(
    inputs: &[PathBuf],
    beginning: Beginning,
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<MergePlan> {
    let started = std::time::Instant::now();
    let mut joiner = Joiner::new(options.join, inputs.len());
    let mut planned = Vec::new();
    // Numbers of the planned inputs in the list as given, which skipped ones are missing from.
    let mut places = Vec::new();
    let mut input_chunk_count = 0;
    for input in inputs {
        redo::settle(input)?;
    }
    let skipped = scan::scan(inputs, options, watch, |place, scanned| {
        places.push(place as u32);
        planned.push(PlannedInput {
            path: inputs[place].clone(),
            identity: scanned.identity,
            encoding: scanned.encoding,
            userblock_len_bytes: scanned.userblock_len_bytes,
        });
        input_chunk_count += scanned.chunk_count;
        if options.link != Link::External {
            joiner.add(&scanned.paths, scanned.entries);
        }
    })?;
    let scan_s = started.elapsed().as_secs_f64();
    watch.observer.event(&Event::StageStarted { stage: Stage::Plan, total_bytes: None });
    let paths: Vec<PathBuf> = planned.iter().map(|input| input.path.clone()).collect();
    let link_names = match options.link {
        Link::No => Vec::new(),
        _ => links::names(&options.output, paths.iter().map(PathBuf::as_path), options.link_paths)?,
    };
    let mut joined = match options.link {
        Link::External => Joined { schema: links::external_schema(&paths, &link_names), ..Joined::default() },
        _ => joiner.finish(),
    };
    if let Beginning::Grows(_) = &beginning {
        // Objects are not added to a file that grows; what its inputs lack is filled.
        let (extra, rest) =
            joined.warnings.into_iter().partition(|warning: &Difference| warning.kind == DifferenceKind::Extra);
        joined.warnings = rest;
        joined.differences.extend::<Vec<_>>(extra);
    }
    if !joined.differences.is_empty() {
        let mut differences = joined.differences;
        for input in differences.iter_mut().flat_map(|difference| &mut difference.inputs) {
            *input = places[*input as usize];
        }
        return Err(MergeError::Differences { differences });
    }
    joined.warnings.extend(fill_references::settle(&mut joined.schema, planned.len() as u32));
    let replaced = keys::attach::remove_replaced(&mut joined.schema, &options.made)?;
    let (tiles, column_of_array, link) = (Vec::new(), Vec::new(), options.link);
    let mut planner = Planner { options, tiles, column_of_array, link };
    let table_rows = table_rows(&joined.schema, options.layout);
    let mut columns = Vec::with_capacity(joined.schema.columns.len());
    let mut grown = Vec::new();
    for (index, column) in joined.schema.columns.iter().enumerate() {
        let path = joined.schema.column_path(index as ColumnIndex);
        let rows = table_rows.get(crate::join::parent_path(path)).copied().unwrap_or(1);
        if let Beginning::Grows(_) = &beginning {
            let (column, growth) = planner.grown_column(index as ColumnIndex, column, path)?;
            columns.push(column);
            grown.push(growth);
            continue;
        }
        columns.push(planner.column(index as ColumnIndex, column, path, rows)?);
    }
    let (carried, growth) = match beginning {
        Beginning::New => (None, None),
        Beginning::Rewritten(carried) => (carried, None),
        Beginning::Grows(stored) => (None, Some(Growth { stored, columns: grown })),
    };
    let Planner { tiles, column_of_array, .. } = planner;
    let tiles = Plan { arrays: tiles };
    tiles.validate()?;
    let mut plan = MergePlan {
        inputs: planned,
        skipped,
        schema: joined.schema,
        columns,
        tiles,
        column_of_array,
        warnings: joined.warnings,
        input_chunk_count,
        elapsed_s: started.elapsed().as_secs_f64(),
        scan_s,
        made: Made::new(options.made.clone(), replaced),
        link_names,
        carried,
        growth,
        options: options.clone(),
    };
    keys::attach::attach(&mut plan, watch)?;
    plan.check_output_len()?;
    watch.observer.event(&Event::StageFinished { stage: Stage::Plan, elapsed_s: plan.elapsed_s - scan_s });
    Ok(plan)
}

/// New columns of a plan: name, model and rows per input of each. Chunks have as many rows as those of the other
/// columns of the group.
pub(crate) struct NewColumn {
    /// Entry; its role is set here.
    pub entry: Entry,
    /// What it is like; `dims[0]` does not count.
    pub template: Dataset,
    /// Rows that each input contributes.
    pub rows: Vec<u64>,
}

impl MergePlan {
    /// Adds columns behind all others.
    pub(crate) fn add_columns(&mut self, new: Vec<NewColumn>) -> Result<Vec<ColumnIndex>> {
        let table_rows = table_rows(&self.schema, self.options.layout);
        let options = self.options.clone();
        let tiles = std::mem::take(&mut self.tiles.arrays);
        let column_of_array = std::mem::take(&mut self.column_of_array);
        // No input has them to lead to.
        let mut planner = Planner { options: &options, tiles, column_of_array, link: Link::No };
        let mut indices = Vec::with_capacity(new.len());
        for NewColumn { mut entry, template, rows } in new {
            let index = self.schema.columns.len() as ColumnIndex;
            entry.role = Role::Column(index);
            let facts = rows.into_iter().map(|rows| ColumnFact { template: 0, ..ColumnFact::absent(rows) }).collect();
            let column = Column {
                entry: self.schema.entries.len() as u32,
                templates: vec![Arc::new(template)],
                committed: None,
                facts,
            };
            let rows = table_rows.get(crate::join::parent_path(&entry.path)).copied().unwrap_or(1);
            self.columns.push(planner.column(index, &column, &entry.path, rows)?);
            self.schema.columns.push(column);
            self.schema.entries.push(entry);
            indices.push(index);
        }
        let Planner { tiles, column_of_array, .. } = planner;
        (self.tiles.arrays, self.column_of_array) = (tiles, column_of_array);
        self.tiles.validate()?;
        Ok(indices)
    }
}

/// Rows per chunk of the tables, by path of their group; only [`LayoutPolicy::Events`] needs them.
fn table_rows(schema: &Schema, policy: LayoutPolicy) -> HashMap<Vec<u8>, u64> {
    if policy != LayoutPolicy::Events {
        return HashMap::new();
    }
    let mut tables: HashMap<&[u8], Vec<ColumnIndex>> = HashMap::new();
    for index in 0..schema.columns.len() as ColumnIndex {
        tables.entry(crate::join::parent_path(schema.column_path(index))).or_default().push(index);
    }
    let rows_of = |columns: &Vec<ColumnIndex>| {
        let shapes = columns.iter().map(|&index| {
            let model = schema.columns[index as usize].model();
            Shape {
                dims: model.dataspace.dims(),
                element_len_bytes: model.datatype.class.len_bytes(),
                input_chunk: None,
            }
        });
        table_rows_per_chunk(shapes)
    };
    tables.iter().map(|(group, columns)| (group.to_vec(), rows_of(columns))).collect()
}

struct Planner<'o> {
    options: &'o MergeOptions,
    tiles: Vec<ArrayPlan>,
    column_of_array: Vec<ColumnIndex>,
    link: Link,
}

impl Planner<'_> {
    fn column(&mut self, index: ColumnIndex, column: &Column, path: &[u8], table_rows: u64) -> Result<ColumnPlan> {
        let refuse = |reason: String| MergeError::Object { object: display_path(path), reason };
        let model = column.model();
        let (dims, mut max_dims) = output_dims(column, self.options.extendible);
        let element_len_bytes = model.datatype.class.len_bytes();
        let extendible = dims.iter().zip(&max_dims).any(|(dim, max)| dim < max);
        let input_chunk = column.templates.iter().find_map(|template| chunk_shape_of(template));
        let shape = Shape { dims: &dims, element_len_bytes, input_chunk };
        let is_empty = dims.contains(&0);
        let len_bytes = dims.iter().fold(element_len_bytes, |product, &dim| product.saturating_mul(dim));
        let unchunked = column.templates.iter().all(|template| chunk_shape_of(template).is_none());
        let pipelines: Vec<std::result::Result<Pipeline, _>> = column
            .templates
            .iter()
            .map(|template| Pipeline::new(&template.filters, element_len_bytes as usize))
            .collect();
        let unknown = pipelines.iter().find_map(|pipeline| pipeline.as_ref().err());

        let mut chunk = match &self.options.chunk {
            Some(asked) if asked.len() == dims.len() && asked.len() > 1 => asked.clone(),
            Some(asked) if asked.len() == 1 => {
                let mut chunk = chunk_shape(LayoutPolicy::Scan, shape, table_rows);
                chunk[0] = asked[0];
                chunk
            }
            _ => chunk_shape(self.options.layout, shape, table_rows),
        };
        let storage = |chunk: Vec<u64>| match (unchunked && !extendible, &model.layout) {
            (true, Layout::Compact(_)) if len_bytes <= COMPACT_LIMIT_BYTES => Storage::Compact,
            (true, _) if is_empty || len_bytes <= DIRECT_LIMIT_BYTES => Storage::Contiguous,
            _ => Storage::Chunked(chunk),
        };
        let mut filters = Vec::new();
        let (storage, route) = if self.link == Link::Virtual && !is_empty && can_be_virtual(column) {
            // It has the rows that are mapped; a reader that grew it would only see the fill value.
            max_dims[0] = dims[0];
            (Storage::Virtual, Route::Linked)
        } else if column.is_file_local() {
            if let Some(error) = unknown {
                return Err(refuse(format!("{error}; its values cannot be read")));
            }
            clamp(&mut chunk, &dims, &max_dims);
            let storage = match (unchunked && !extendible, &model.layout) {
                (true, Layout::Compact(_)) if len_bytes <= COMPACT_LIMIT_BYTES => Storage::Compact,
                (true, _) => Storage::Contiguous,
                _ => Storage::Chunked(chunk),
            };
            if matches!(storage, Storage::Chunked(_)) {
                filters = library_filters(&model.filters);
            }
            (storage, if is_empty { Route::Empty } else { Route::FileLocal })
        } else if let Some(chunk) = self.verbatim_chunk(column, unknown.is_some()) {
            filters.clone_from(&model.filters);
            let route = if is_empty {
                Route::Empty
            } else {
                Route::Verbatim { array: self.array(index, column, &dims, &chunk) }
            };
            (Storage::Chunked(chunk), route)
        } else if let Some(error) = unknown {
            return Err(refuse(format!(
                "{error}, and its chunks cannot be moved as stored because they do not meet the rows of the inputs; \
                 rewrite the inputs without this filter (h5repack -f {path}:NONE)",
                path = display_path(path)
            )));
        } else {
            clamp(&mut chunk, &dims, &max_dims);
            let storage = storage(chunk);
            let has = |id: u16| model.filters.iter().any(|filter| filter.id == id);
            match &storage {
                Storage::Chunked(chunk) => {
                    let encoder = Encoder::new(&EncoderOptions {
                        effort: self.effort(model),
                        shuffle: has(SHUFFLE),
                        fletcher32: has(FLETCHER32),
                        element_len_bytes: element_len_bytes as usize,
                    });
                    filters = encoder.filters();
                    let route = if is_empty {
                        Route::Empty
                    } else {
                        Route::Encoded { array: self.array(index, column, &dims, chunk), encoder }
                    };
                    (storage, route)
                }
                _ => (storage, if is_empty { Route::Empty } else { Route::Direct }),
            }
        };
        let pipelines = pipelines.into_iter().map(std::result::Result::ok).collect();
        Ok(ColumnPlan { dims, max_dims, storage, filters, skipped_filters: 0, route, pipelines })
    }

    /// How a column of a file grows: in the chunks and with the filters that it has. Where its last chunk is not full,
    /// that one is made anew.
    fn grown_column(&mut self, index: ColumnIndex, column: &Column, path: &[u8]) -> Result<(ColumnPlan, ColumnGrowth)> {
        let refuse = |reason: String| Err(MergeError::Object { object: display_path(path), reason });
        let model = column.model();
        let old_rows = column.facts.first().map_or(0, |fact| fact.rows);
        let new_rows = column.rows() - old_rows;
        let (mut dims, mut max_dims) = (model.dataspace.dims().to_vec(), Vec::new());
        if let raddle_hdf5::model::Dataspace::Simple { max_dims: of_model, .. } = &model.dataspace {
            max_dims.clone_from(of_model);
        }
        let longest = max_dims[0];
        dims[0] = old_rows + new_rows;
        max_dims[0] = if longest == u64::MAX { longest } else { dims[0] };
        for (max, dim) in max_dims.iter_mut().zip(&dims) {
            *max = (*max).max(*dim);
        }
        let element_len_bytes = model.datatype.class.len_bytes();
        let pipelines: Vec<_> = column
            .templates
            .iter()
            .map(|template| Pipeline::new(&template.filters, element_len_bytes as usize))
            .collect();
        let storage = match &model.layout {
            Layout::Chunked { chunk_shape, .. } => Storage::Chunked(chunk_shape.clone()),
            Layout::Compact(_) => Storage::Compact,
            _ => Storage::Contiguous,
        };
        let mut growth = ColumnGrowth { old_rows, new_rows, first_row: old_rows };
        let mut planned = ColumnPlan {
            dims,
            max_dims,
            storage,
            filters: model.filters.clone(),
            skipped_filters: 0,
            route: Route::Empty,
            pipelines: Vec::new(),
        };
        if new_rows == 0 {
            planned.pipelines = pipelines.into_iter().map(std::result::Result::ok).collect();
            return Ok((planned, growth));
        }
        let Layout::Chunked { chunk_shape, partial_chunks_unfiltered, index: chunk_index } = &model.layout else {
            return refuse(
                "is stored in one piece and cannot grow; merge all inputs anew, with --extendible".to_owned(),
            );
        };
        if longest != u64::MAX && longest.max(old_rows) < planned.dims[0] {
            return refuse(format!(
                "has {old_rows} rows and room for {} in all, {} are needed; merge all inputs anew, with --extendible",
                longest.max(old_rows),
                planned.dims[0]
            ));
        }
        if *partial_chunks_unfiltered
            || *chunk_index == ChunkIndex::ThroughLibrary
            || model.fill.allocation_time == EARLY
        {
            return refuse(
                "has chunks that are allocated early, are not filtered at the edges, or are indexed in a way that raddle \
                 does not know; rewrite the file once with raddle rechunk"
                    .to_owned(),
            );
        }
        let unknown = pipelines.iter().find_map(|pipeline| pipeline.as_ref().err());
        if planned.dims.contains(&0) {
            // Rows without elements: the extent grows, nothing is stored.
        } else if column.is_file_local() {
            if let Some(error) = unknown {
                return refuse(format!("{error}; its values cannot be read"));
            }
            if library_filters(&model.filters).len() != model.filters.len() {
                return refuse("has variable-length data behind a filter that raddle does not write".to_owned());
            }
            planned.route = Route::FileLocal;
        } else {
            let first_row = old_rows / chunk_shape[0] * chunk_shape[0];
            let is_moved = self.verbatim_chunk(column, unknown.is_some()).is_some();
            if let (Some(error), false) = (unknown, is_moved) {
                return refuse(format!(
                    "{error}, and its chunks cannot be moved as stored because they do not meet the rows that are there"
                ));
            }
            growth.first_row = first_row;
            let array = self.array_behind(index, column, &planned.dims, chunk_shape, first_row);
            planned.route = if is_moved {
                Route::Verbatim { array }
            } else {
                let encoder = self.encoder_like(model);
                if ids(&encoder.filters()) == ids(&model.filters) {
                    Route::Encoded { array, encoder }
                } else {
                    // Readers take a chunk whose filters are all skipped as it is, whatever they are.
                    planned.skipped_filters = ((1_u64 << model.filters.len()) - 1) as u32;
                    let (effort, shuffle, fletcher32) = (None, false, false);
                    let element_len_bytes = element_len_bytes as usize;
                    let plain = EncoderOptions { effort, shuffle, fletcher32, element_len_bytes };
                    Route::Encoded { array, encoder: Encoder::new(&plain) }
                }
            };
        }
        planned.pipelines = pipelines.into_iter().map(std::result::Result::ok).collect();
        Ok((planned, growth))
    }

    /// An encoder that does what the pipeline of a dataset does, if there is one.
    fn encoder_like(&self, model: &Dataset) -> Encoder {
        let has = |id: u16| model.filters.iter().any(|filter| filter.id == id);
        let effort = match self.options.compress {
            _ if !has(DEFLATE) => None,
            Compress::Keep => self.effort(model),
            compress => compress.effort().or(Some(raddle_codec::Effort::Balanced)),
        };
        Encoder::new(&EncoderOptions {
            effort,
            shuffle: has(SHUFFLE),
            fletcher32: has(FLETCHER32),
            element_len_bytes: model.datatype.class.len_bytes() as usize,
        })
    }

    fn effort(&self, model: &Dataset) -> Option<raddle_codec::Effort> {
        match (self.options.compress, model.filters.iter().find(|filter| filter.id == DEFLATE)) {
            (Compress::Keep, Some(deflate)) => {
                let level = deflate.parameters.first().copied().unwrap_or(6).min(9);
                Compress::Gzip(level as u8).effort()
            }
            (Compress::Keep, None) if model.filters.is_empty() => None,
            (compress, _) => compress.effort(),
        }
    }

    /// The chunk shape under which every stored chunk of every input is a chunk of the output; only asked for where
    /// the user wants stored chunks kept or a filter is unknown.
    fn verbatim_chunk(&self, column: &Column, has_unknown_filter: bool) -> Option<Vec<u64>> {
        if !has_unknown_filter && self.options.compress != Compress::Keep {
            return None;
        }
        let model = column.model();
        let chunk = chunk_shape_of(model)?;
        let same = column.templates.iter().all(|template| {
            let movable = match &template.layout {
                Layout::Chunked { partial_chunks_unfiltered, index, .. } => {
                    !partial_chunks_unfiltered && *index != ChunkIndex::ThroughLibrary
                }
                _ => false,
            };
            chunk_shape_of(template) == Some(chunk) && template.filters == model.filters && movable
        });
        let asked_otherwise = self.options.chunk.as_ref().is_some_and(|asked| asked != chunk) && !has_unknown_filter;
        let holders: Vec<u64> = column.facts.iter().filter(|fact| fact.rows > 0).map(|fact| fact.rows).collect();
        let aligned = holders.split_last().is_none_or(|(_, before)| before.iter().all(|rows| rows % chunk[0] == 0));
        let present = column.facts.iter().all(|fact| fact.template != ABSENT || fact.rows == 0);
        (same && aligned && present && !asked_otherwise).then(|| chunk.to_vec())
    }

    fn array(&mut self, index: ColumnIndex, column: &Column, dims: &[u64], chunk: &[u64]) -> u32 {
        self.array_behind(index, column, dims, chunk, 0)
    }

    /// The tiles of the rows from `first_row` on, where a chunk begins.
    fn array_behind(
        &mut self,
        index: ColumnIndex,
        column: &Column,
        dims: &[u64],
        chunk: &[u64],
        first_row: u64,
    ) -> u32 {
        let mut row = 0;
        let mut segments = Vec::new();
        for (input, fact) in column.facts.iter().enumerate().filter(|(_, fact)| fact.rows > 0) {
            let end = row + fact.rows;
            let from = row.max(first_row);
            if from < end {
                let (input, start, rows) = (input as u32, from - first_row, end - from);
                segments.push(Segment { input, start, rows, source_row: from - row });
            }
            row = end;
        }
        let mut shape = dims.to_vec();
        shape[0] -= first_row;
        self.tiles.push(ArrayPlan {
            shape,
            tile_shape: chunk.to_vec(),
            element_len_bytes: column.model().datatype.class.len_bytes(),
            segments,
        });
        self.column_of_array.push(index);
        self.tiles.len() as u32 - 1
    }
}

/// Whether readers of a virtual dataset find every value of a column. References lead nowhere in another file, and rows
/// that no input has are shown only where readers show the fill value.
fn can_be_virtual(column: &Column) -> bool {
    let has_absent_rows = column.facts.iter().any(|fact| fact.template == ABSENT && fact.rows > 0);
    let shows_fill = FillPattern::of(column.model()).is_shown_by_readers;
    !column.model().datatype.class.has_reference() && (shows_fill || !has_absent_rows)
}

/// Dimensions and maximum dimensions of the output: rows add up; axis 0 can grow without limit if it could in an input,
/// or `extendible` asks for it.
fn output_dims(column: &Column, extendible: bool) -> (Vec<u64>, Vec<u64>) {
    let raddle_hdf5::model::Dataspace::Simple { dims, max_dims } = &column.model().dataspace else {
        return (Vec::new(), Vec::new());
    };
    let (mut dims, mut max_dims) = (dims.clone(), max_dims.clone());
    dims[0] = column.rows();
    let unlimited = column.templates.iter().any(|template| match &template.dataspace {
        raddle_hdf5::model::Dataspace::Simple { max_dims, .. } => max_dims[0] == u64::MAX,
        _ => false,
    });
    let holders = column.facts.iter().filter(|fact| fact.template != ABSENT).count();
    max_dims[0] = match (unlimited || extendible, holders) {
        (true, _) => u64::MAX,
        (false, 1) => max_dims[0], // as in the one input: chunks that are moved may be longer than the rows that there are
        (false, _) => dims[0],
    };
    for (max, dim) in max_dims.iter_mut().zip(&dims) {
        *max = (*max).max(*dim);
    }
    (dims, max_dims)
}

fn chunk_shape_of(dataset: &Dataset) -> Option<&[u64]> {
    match &dataset.layout {
        Layout::Chunked { chunk_shape, .. } => Some(chunk_shape),
        _ => None,
    }
}

/// HDF5 refuses chunks longer than a fixed dimension, and chunks of 4 GiB or 2^32 elements.
fn clamp(chunk: &mut [u64], dims: &[u64], max_dims: &[u64]) {
    for ((size, &dim), &max) in chunk.iter_mut().zip(dims).zip(max_dims) {
        *size = (*size).clamp(1, if max == u64::MAX { u64::from(u32::MAX) } else { dim.max(max).max(1) });
    }
}

fn ids(filters: &[Filter]) -> Vec<u16> {
    filters.iter().map(|filter| filter.id).collect()
}

/// Filters that libhdf5 itself writes whatever the element; others are left off file-local data, whose values do not
/// change by it. Shuffle is among those: its parameter is the size of a descriptor, which old files have otherwise.
fn library_filters(filters: &[Filter]) -> Vec<Filter> {
    filters.iter().filter(|filter| [DEFLATE, FLETCHER32].contains(&filter.id)).cloned().collect()
}

impl MergePlan {
    /// Uncompressed bytes of the output's datasets.
    pub fn logical_len_bytes(&self) -> u64 {
        let columns = self.columns.iter().zip(&self.schema.columns);
        columns.fold(0, |sum: u64, (plan, column)| {
            sum.saturating_add(plan.logical_len_bytes(column.model().datatype.class.len_bytes()))
        })
    }

    /// Virtual datasets and external links by which the output leads to its inputs.
    pub fn linked(&self) -> u64 {
        match self.options.link {
            Link::External => self.link_names.len() as u64,
            _ => self.columns.iter().filter(|column| matches!(column.route, Route::Linked)).count() as u64,
        }
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

    /// Bytes of one row of a column.
    pub fn row_len_bytes(&self, column: ColumnIndex) -> u64 {
        self.schema.columns[column as usize].model().row_len_bytes()
    }
}
