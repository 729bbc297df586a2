//! The plan of one column: its dimensions, its storage, and how its values are written.
//!
//! Columns of a file that is appended to are planned in [`crate::append::column`], since their storage is fixed.
//! Invariant: chunks are moved as stored only if each of them is a chunk of the output.

use super::filters::{self, library_filters};
use super::flat::can_be_flat;
use super::growable::Growable;
use super::unchunked::{MAX_COMPACT_BYTES, MAX_DIRECT_BYTES, chunk_shape_of};
use super::{ColumnPlan, LayoutDecision, Route, Storage};
use crate::error::{MergeError, Result};
use crate::options::Link;
use crate::options::{Compress, Empty, MergeOptions};
use crate::plan::asked_layout::{AskedFilters, AskedLayout, AskedLayouts, ChunkSource};
use crate::plan::fill_pattern::FillPattern;
use crate::plan::layout::{Shape, run_shape};
use crate::plan::layout_rules::UnchunkedStorage;
use crate::plan::links::can_be_virtual;
use crate::schema::{ABSENT, Column, ColumnIndex, SchemaEntry, display_path};
use raddle_codec::{CodecError, Filter, Pipeline};
use raddle_core::plan::extent::values_len_bytes;
use raddle_core::plan::{ArrayPlan, Segment, SegmentLists};
use raddle_hdf5::model::{ChunkIndex, Dataset, Layout};
use std::sync::Arc;

/// Limit of HDF5 for the size of a chunk, which it stores in 32 bits.
const CHUNK_LIMIT_BYTES: u64 = 1 << 32;

/// Planner of columns, one by one, together with the engine's arrays.
pub(crate) struct Planner<'o> {
    pub options: &'o MergeOptions,
    pub tiles: Vec<ArrayPlan>,
    pub column_of_array: Vec<ColumnIndex>,
    pub segments: SegmentLists,
    /// Whether the output links to the values of the columns.
    pub link: Link,
    /// Choice of the extendible columns.
    pub growable: Growable,
}

/// Facts by which the storage of a column is chosen.
struct StorageRequest<'a> {
    index: ColumnIndex,
    column: &'a Column,
    path: &'a [u8],
    shape: Shape<'a>,
    len_bytes: u64,
    layout: &'a AskedLayout,
    /// Chunk shape of the output if the dataset is chunked.
    chunk: Vec<u64>,
    /// Whether a dimension may grow.
    is_extendible: bool,
    /// Whether the second axis, of one element, is left out.
    is_flat: bool,
    /// Reason why the chunks of an input cannot be decoded.
    unknown: Option<&'a CodecError>,
}

/// Storage of a column, and how its values get there.
struct ChosenStorage {
    storage: Storage,
    route: Route,
    filters: Vec<Filter>,
    /// Whether chunks are moved as stored, with their shape.
    is_moved: bool,
}

impl ChosenStorage {
    fn new(storage: Storage, route: Route, filters: Vec<Filter>) -> Self {
        Self { storage, route, filters, is_moved: false }
    }
}

impl StorageRequest<'_> {
    fn is_empty(&self) -> bool {
        self.shape.dims.contains(&0)
    }

    /// Returns whether no input has chunks.
    fn is_unchunked(&self) -> bool {
        self.column.templates.iter().all(|template| chunk_shape_of(template).is_none())
    }

    /// Returns the storage without a request: that of the inputs if possible, and no chunks up to this length.
    fn usual(&self, contiguous_limit_bytes: u64) -> Storage {
        let is_unchunked = self.is_unchunked() && !self.is_extendible;
        match (is_unchunked, &self.column.model().layout) {
            (true, Layout::Compact(_)) if self.len_bytes <= MAX_COMPACT_BYTES => Storage::Compact,
            (true, _) if self.is_empty() || self.len_bytes <= contiguous_limit_bytes => Storage::Contiguous,
            _ => Storage::Chunked(self.chunk.clone()),
        }
    }

    /// Returns the requested chunk shape.
    fn asked_chunk(&self) -> Option<&[u64]> {
        self.layout.asks_for_chunk().then_some(self.chunk.as_slice())
    }
}

impl Planner<'_> {
    /// Plans how a column of a new file is written.
    pub(crate) fn column(
        &mut self,
        index: ColumnIndex,
        column: &Column,
        entry: &SchemaEntry,
        layouts: &AskedLayouts<'_>,
        table_rows: u64,
    ) -> Result<ColumnPlan> {
        let path = entry.path.as_slice();
        let refuse = |reason: String| MergeError::Object { object: display_path(path), reason };
        let (dims, mut max_dims) = column.output_dims(self.growable.includes(column));
        let element_len_bytes = column.model().datatype.class.len_bytes();
        let is_extendible = dims.iter().zip(&max_dims).any(|(dim, max)| dim < max);
        let input_chunk = column.templates.iter().find_map(|template| chunk_shape_of(template));
        let shape = Shape { dims: &dims, element_len_bytes, input_chunk };
        let len_bytes = values_len_bytes(&dims, element_len_bytes);
        let pipelines = decoders(column);

        let is_flat = self.options.rank_1 && self.link == Link::No && can_be_flat(column, entry);
        let layout = layouts.of_dataset(entry, dims.len(), is_flat)?;
        let mut chunk = layout.chunk_shape(shape, table_rows);
        if is_flat {
            max_dims[1] = 1;
        }
        clamp(&mut chunk, &dims, &max_dims);
        self.check_chunk(&layout, &chunk, element_len_bytes).map_err(refuse)?;
        let unknown = pipelines.iter().find_map(|pipeline| pipeline.as_ref().err());
        let request = StorageRequest {
            index,
            column,
            path,
            shape,
            len_bytes,
            layout: &layout,
            chunk,
            is_extendible,
            is_flat,
            unknown,
        };
        let asked = self.asked_storage(&request).map_err(refuse)?;
        let chosen = self.choose_storage(&request, asked).map_err(refuse)?;
        let decision = self.decision(column, layout, &chosen);
        match chosen.storage {
            Storage::Compact | Storage::Contiguous => max_dims.clone_from(&dims),
            // The dataset has exactly the mapped rows; a reader that extended it would only see fill values.
            Storage::Virtual => max_dims[0] = dims[0],
            Storage::Chunked(_) => {}
        }
        Ok(ColumnPlan {
            dims,
            max_dims,
            is_flat,
            storage: chosen.storage,
            filters: chosen.filters,
            skipped_filters: 0,
            route: chosen.route,
            pipelines: pipelines.into_iter().map(std::result::Result::ok).collect(),
            layout: decision,
        })
    }

    /// Returns what decided on the storage `chosen` for a column with this requested layout.
    fn decision(&self, column: &Column, layout: AskedLayout, chosen: &ChosenStorage) -> LayoutDecision {
        LayoutDecision {
            chunk: match &chosen.storage {
                Storage::Chunked(_) if chosen.is_moved => Some(ChunkSource::Stored),
                Storage::Chunked(_) => Some(layout.source),
                Storage::Compact | Storage::Contiguous | Storage::Virtual => None,
            },
            keeps_filters: layout.filters.compress == Compress::Keep,
            has_unused_filters: chosen.storage != Storage::Virtual
                && column.is_file_local()
                && layout.names_filters(self.options),
            rules: layout.rules,
        }
    }

    /// Chooses the storage of a column and the route of its values; `asked` is the requested storage.
    fn choose_storage(
        &mut self,
        request: &StorageRequest<'_>,
        asked: Option<Storage>,
    ) -> Result<ChosenStorage, String> {
        let column = request.column;
        if self.link == Link::Virtual && !request.is_empty() && can_be_virtual(column) {
            return Ok(ChosenStorage::new(Storage::Virtual, Route::Linked, Vec::new()));
        }
        if column.is_file_local() {
            return file_local(request, asked);
        }
        if let Some(storage @ (Storage::Compact | Storage::Contiguous)) = asked {
            let route = self.route_without_chunks(request, &storage)?;
            return Ok(ChosenStorage::new(storage, route, Vec::new()));
        }
        let moved =
            self.verbatim_chunk(column, &request.layout.filters, request.asked_chunk(), request.unknown.is_some());
        if let Some(chunk) = moved.filter(|chunk| !request.is_flat || chunk[1] == 1) {
            return self.move_chunks(request, chunk);
        }
        if let Some(error) = request.unknown {
            return Err(format!(
                "{error}, and its chunks cannot be moved as stored because they do not align with the rows of the inputs, or the \
                 inputs have different fill values; rewrite the inputs without this filter (h5repack -f {path}:NONE)",
                path = display_path(request.path)
            ));
        }
        let storage = asked.unwrap_or_else(|| request.usual(MAX_DIRECT_BYTES));
        let Storage::Chunked(chunk) = &storage else {
            let route = if request.is_empty() { Route::Empty } else { Route::Direct };
            return Ok(ChosenStorage::new(storage, route, Vec::new()));
        };
        let encoder = filters::encoder(&request.layout.filters, column.model());
        let filters = encoder.filters();
        let route = match request.is_empty() {
            true => Route::Empty,
            false => Route::Encoded { array: self.array(request.index, column, request.shape.dims, chunk), encoder },
        };
        Ok(ChosenStorage::new(storage, route, filters))
    }

    /// Chooses the route of values to a dataset without chunks.
    fn route_without_chunks(&mut self, request: &StorageRequest<'_>, storage: &Storage) -> Result<Route, String> {
        Ok(match request.unknown {
            _ if request.is_empty() => Route::Empty,
            Some(error) => {
                return Err(format!(
                    "{error}, so its values cannot be stored without chunks; leave out {}, or give it a smaller size",
                    request.layout.unchunked.map_or("--contiguous".to_owned(), |(rule, _)| self.rule(rule)),
                ));
            }
            // An object header is written as a whole.
            None if *storage == Storage::Compact || request.is_unchunked() && request.len_bytes <= MAX_DIRECT_BYTES => {
                Route::Direct
            }
            None => {
                let run = run_shape(request.shape);
                Route::Raw { array: self.array(request.index, request.column, request.shape.dims, &run) }
            }
        })
    }

    /// Chooses storage in the chunks of the inputs, of this shape, which are moved without decoding them.
    fn move_chunks(&mut self, request: &StorageRequest<'_>, chunk: Vec<u64>) -> Result<ChosenStorage, String> {
        if let (Some(error), ChunkSource::Rule(rule)) = (request.unknown, request.layout.source)
            && request.asked_chunk() != Some(&chunk)
        {
            let rule = self.rule(rule);
            return Err(format!("{error}, so its chunks can only be moved as stored; leave it out of {rule}"));
        }
        let route = match request.is_empty() {
            true => Route::Empty,
            false => Route::Verbatim { array: self.array(request.index, request.column, request.shape.dims, &chunk) },
        };
        let filters = request.column.model().filters.clone();
        Ok(ChosenStorage { storage: Storage::Chunked(chunk), route, filters, is_moved: true })
    }

    /// Returns a layout rule for messages.
    fn rule(&self, number: u32) -> String {
        format!("--layout {:?}", self.options.layout_rules[number as usize].to_string())
    }

    /// Refuses requested chunks that HDF5 cannot store.
    fn check_chunk(&self, asked: &AskedLayout, chunk: &[u64], element_len_bytes: u64) -> Result<(), String> {
        let len_bytes = values_len_bytes(chunk, element_len_bytes);
        let option = match asked.source {
            ChunkSource::Rule(rule) => self.rule(rule),
            ChunkSource::Option => "--chunk".to_owned(),
            ChunkSource::Policy | ChunkSource::Grid | ChunkSource::Stored => return Ok(()),
        };
        if len_bytes < CHUNK_LIMIT_BYTES {
            return Ok(());
        }
        let shape = chunk.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
        Err(format!(
            "would have chunks of {shape} elements, which are {len_bytes} bytes ({option}); HDF5 stores chunks of less than \
             {CHUNK_LIMIT_BYTES} bytes: choose smaller ones"
        ))
    }

    /// Returns the storage that options and rules request, regardless of the storage in the inputs.
    fn asked_storage(&self, request: &StorageRequest<'_>) -> Result<Option<Storage>, String> {
        let StorageRequest { layout: asked, len_bytes, chunk, .. } = request;
        let (len_bytes, is_empty) = (*len_bytes, request.is_empty());
        if let Some((rule, unchunked)) = asked.unchunked {
            return match unchunked {
                _ if asked.needs_chunks => Err(format!(
                    "must be able to grow, as an unlimited netCDF dimension or a variable shorter than one, and so \
                     needs chunks ({})",
                    self.rule(rule)
                )),
                UnchunkedStorage::Contiguous => Ok(Some(Storage::Contiguous)),
                UnchunkedStorage::Compact if len_bytes <= MAX_COMPACT_BYTES => Ok(Some(Storage::Compact)),
                UnchunkedStorage::Compact => Err(format!(
                    "has {len_bytes} bytes, and an object header holds at most {MAX_COMPACT_BYTES} ({}); store it contiguously",
                    self.rule(rule)
                )),
            };
        }
        if asked.needs_chunks {
            return Ok(None);
        }
        if asked.is_chunked {
            return Ok(Some(Storage::Chunked(chunk.to_vec())));
        }
        Ok(match self.options.empty {
            Empty::Contiguous if is_empty => Some(Storage::Contiguous),
            Empty::Compact if is_empty => Some(Storage::Compact),
            Empty::Chunked if is_empty => Some(Storage::Chunked(chunk.to_vec())),
            _ => self.options.contiguous.includes(len_bytes).then_some(Storage::Contiguous),
        })
    }

    /// Returns the chunk shape under which every stored chunk of every input is a chunk of the output. Returns `None`
    /// unless the user wants stored chunks kept or a filter is unknown. `asked_chunk` is the requested shape.
    pub(crate) fn verbatim_chunk(
        &self,
        column: &Column,
        asked: &AskedFilters,
        asked_chunk: Option<&[u64]>,
        has_unknown_filter: bool,
    ) -> Option<Vec<u64>> {
        let model = column.model();
        if !column.is_plain() || !has_unknown_filter && !filters::stay(asked, model) {
            return None;
        }
        let chunk = chunk_shape_of(model)?;
        let same = column.templates.iter().all(|template| {
            let movable = match &template.layout {
                Layout::Chunked { partial_chunks_unfiltered, index, .. } => {
                    !partial_chunks_unfiltered && *index != ChunkIndex::ThroughLibrary
                }
                _ => false,
            };
            // An unallocated chunk stands for the fill value, and the output has only one fill value.
            let same_fill = FillPattern::of(template) == FillPattern::of(model);
            chunk_shape_of(template) == Some(chunk) && template.filters == model.filters && movable && same_fill
        });
        let asked_otherwise = asked_chunk.is_some_and(|asked| asked != chunk) && !has_unknown_filter;
        let holders: Vec<u64> = column.facts.iter().filter(|fact| fact.rows > 0).map(|fact| fact.rows).collect();
        let aligned = holders.split_last().is_none_or(|(_, before)| before.iter().all(|rows| rows % chunk[0] == 0));
        let present = column.facts.iter().all(|fact| fact.template != ABSENT || fact.rows == 0);
        (same && aligned && present && !asked_otherwise).then(|| chunk.to_vec())
    }

    fn array(&mut self, index: ColumnIndex, column: &Column, dims: &[u64], chunk: &[u64]) -> u32 {
        self.array_behind(index, column, dims, chunk, 0)
    }

    /// Adds the tiles of the rows from `first_row`, which is the first row of a chunk.
    pub(crate) fn array_behind(
        &mut self,
        index: ColumnIndex,
        column: &Column,
        dims: &[u64],
        chunk: &[u64],
        first_row: u64,
    ) -> u32 {
        let mut row = 0;
        let mut segments = Vec::new();
        let boxes = column.boxes.as_ref().map(|layout| layout.boxes.clone()).unwrap_or_default();
        let is_concatenated = column.runs.is_none() && column.boxes.is_none();
        let facts = column.facts.iter().enumerate().filter(|_| is_concatenated);
        for (input, fact) in facts.filter(|(_, fact)| fact.rows > 0) {
            let end = row + fact.rows;
            let from = row.max(first_row);
            if from < end {
                let (input, start, rows) = (input as u32, from - first_row, end - from);
                segments.push(Segment { input, start, rows, source_row: from - row });
            }
            row = end;
        }
        let mut shape = dims.to_vec();
        shape[column.axis] -= first_row;
        self.tiles.push(ArrayPlan {
            shape,
            tile_shape: chunk.to_vec(),
            element_len_bytes: column.model().datatype.class.len_bytes(),
            axis: column.axis,
            segments: match &column.runs {
                Some(runs) => self.segments.share_list(runs),
                None => self.segments.share(&segments),
            },
            boxes,
        });
        self.column_of_array.push(index);
        self.tiles.len() as u32 - 1
    }
}

/// Chooses the storage of values that libhdf5 has to write; `asked` is the requested storage.
fn file_local(request: &StorageRequest<'_>, asked: Option<Storage>) -> Result<ChosenStorage, String> {
    if request.column.axis > 0 || request.column.boxes.is_some() {
        return Err(
            "holds values of variable length, which can be concatenated and selected along axis 0 only; leave it \
                    out with --exclude, or carry it once with --rule"
                .to_owned(),
        );
    }
    if let Some(error) = request.unknown {
        return Err(format!("{error}; its values cannot be read"));
    }
    let storage = asked.unwrap_or_else(|| request.usual(u64::MAX));
    let filters = match &storage {
        Storage::Chunked(_) => library_filters(&request.column.model().filters),
        _ => Vec::new(),
    };
    let route = if request.is_empty() { Route::Empty } else { Route::FileLocal };
    Ok(ChosenStorage::new(storage, route, filters))
}

/// Returns the decoder for the chunks of each template, or the reason why they cannot be decoded.
pub(crate) fn decoders(column: &Column) -> Vec<raddle_codec::Result<Pipeline>> {
    let pipeline =
        |template: &Arc<Dataset>| Pipeline::new(&template.filters, template.datatype.class.len_bytes() as usize);
    column.templates.iter().map(pipeline).collect()
}

/// Clamps a chunk shape to the HDF5 limits: no chunk may exceed a fixed dimension, 4 GiB, or 2^32 elements.
fn clamp(chunk: &mut [u64], dims: &[u64], max_dims: &[u64]) {
    for ((size, &dim), &max) in chunk.iter_mut().zip(dims).zip(max_dims) {
        *size = (*size).clamp(1, if max == u64::MAX { u64::from(u32::MAX) } else { dim.max(max).max(1) });
    }
}
