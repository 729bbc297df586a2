//! Planning of a column of a file that is appended to, which keeps its chunk shape and filters.
//!
//! Columns of new files are planned by [`crate::plan`]. Invariant: chunking, filters and index of existing storage are
//! not changed; a dataset that cannot grow without that is refused.

use crate::error::{MergeError, Result};
use crate::plan::asked_layout::AskedFilters;
use crate::plan::growth::ColumnGrowth;
use crate::plan::{ColumnPlan, LayoutDecision, Planner, Route, Storage, decoders, encoder_like, ids, library_filters};
use crate::schema::{Column, ColumnIndex, display_path};
use raddle_codec::{CodecError, Encoder, EncoderOptions};
use raddle_hdf5::model::{ChunkIndex, Dataset, Dataspace, Layout};

/// `H5D_ALLOC_TIME_EARLY`: libhdf5 would allocate chunks as soon as a dataset grows.
const EARLY: u8 = 1;

impl Planner<'_> {
    /// Plans how a column of an existing file grows, with its chunk shape and filters. If its last chunk is not full,
    /// that chunk is rewritten.
    pub(crate) fn grown_column(
        &mut self,
        index: ColumnIndex,
        column: &Column,
        path: &[u8],
    ) -> Result<(ColumnPlan, ColumnGrowth)> {
        let refuse = |reason: String| MergeError::Object { object: display_path(path), reason };
        let model = column.model();
        if column.axis > 0 || column.output.is_some() || column.conversion_of(0).is_some() {
            return Err(refuse(
                "would grow along a different axis or with a different type, or its values would change; merge all inputs again"
                    .to_owned(),
            ));
        }
        let old_rows = column.facts.first().map_or(0, |fact| fact.rows);
        let new_rows = column.rows() - old_rows;
        let (mut dims, mut max_dims) = (model.dataspace.dims().to_vec(), Vec::new());
        if let Dataspace::Simple { max_dims: of_model, .. } = &model.dataspace {
            max_dims.clone_from(of_model);
        }
        let longest = max_dims[0];
        dims[0] = old_rows + new_rows;
        max_dims[0] = if longest == u64::MAX { longest } else { dims[0] };
        for (max, dim) in max_dims.iter_mut().zip(&dims) {
            *max = (*max).max(*dim);
        }
        let pipelines = decoders(column);
        let storage = match &model.layout {
            Layout::Chunked { chunk_shape, .. } => Storage::Chunked(chunk_shape.clone()),
            Layout::Compact(_) => Storage::Compact,
            _ => Storage::Contiguous,
        };
        let mut growth = ColumnGrowth { old_rows, new_rows, first_row: old_rows };
        let mut planned = ColumnPlan {
            dims,
            max_dims,
            is_flat: false,
            storage,
            filters: model.filters.clone(),
            skipped_filters: 0,
            route: Route::Empty,
            pipelines: Vec::new(),
            layout: LayoutDecision::default(),
        };
        if new_rows > 0 {
            let unknown = pipelines.iter().find_map(|pipeline| pipeline.as_ref().err());
            growth.first_row = self.grow(index, column, unknown, &mut planned).map_err(refuse)?;
        }
        planned.pipelines = pipelines.into_iter().map(std::result::Result::ok).collect();
        Ok((planned, growth))
    }

    /// Sets the route by which rows are added to a dataset. Returns the first row that is written.
    fn grow(
        &mut self,
        index: ColumnIndex,
        column: &Column,
        unknown: Option<&CodecError>,
        planned: &mut ColumnPlan,
    ) -> Result<u64, String> {
        let (model, old_rows) = (column.model(), column.facts.first().map_or(0, |fact| fact.rows));
        let chunk_shape = check_growth(model, old_rows, planned.dims[0])?;
        if planned.dims.contains(&0) {
            // Rows without elements extend the dataset, but nothing is stored.
            return Ok(old_rows);
        }
        if column.is_file_local() {
            planned.route = file_local(model, unknown)?;
            return Ok(old_rows);
        }
        self.grow_chunks(index, column, chunk_shape, unknown, planned)
    }

    /// Sets the route by which rows are added to the chunks of a dataset. Returns the first row that is written, which
    /// is the first of a chunk.
    fn grow_chunks(
        &mut self,
        index: ColumnIndex,
        column: &Column,
        chunk_shape: &[u64],
        unknown: Option<&CodecError>,
        planned: &mut ColumnPlan,
    ) -> Result<u64, String> {
        let model = column.model();
        let old_rows = column.facts.first().map_or(0, |fact| fact.rows);
        let first_row = old_rows / chunk_shape[0] * chunk_shape[0];
        let is_moved = self.verbatim_chunk(column, &AskedFilters::of(self.options), None, unknown.is_some()).is_some();
        if let (Some(error), false) = (unknown, is_moved) {
            return Err(format!(
                "{error}, and its chunks cannot be moved as stored because they do not align with the existing rows, \
                 or have another fill value"
            ));
        }
        let array = self.array_behind(index, column, &planned.dims, chunk_shape, first_row);
        planned.route = if is_moved {
            Route::Verbatim { array }
        } else {
            let encoder = encoder_like(self.options.compress, model);
            if ids(&encoder.filters()) == ids(&model.filters) {
                Route::Encoded { array, encoder }
            } else {
                // Readers use a chunk as stored if all of its filters are skipped, whatever the filters are.
                planned.skipped_filters = ((1_u64 << model.filters.len()) - 1) as u32;
                let (compression, shuffle, fletcher32) = (None, false, false);
                let element_len_bytes = model.datatype.class.len_bytes() as usize;
                let plain = EncoderOptions { compression, shuffle, fletcher32, element_len_bytes };
                Route::Encoded { array, encoder: Encoder::new(&plain) }
            }
        };
        Ok(first_row)
    }
}

/// Returns the chunk shape of a dataset of `old_rows` rows. Refuses a dataset whose storage cannot grow to `rows`.
fn check_growth(model: &Dataset, old_rows: u64, rows: u64) -> Result<&[u64], String> {
    let Layout::Chunked { chunk_shape, partial_chunks_unfiltered, index } = &model.layout else {
        let reason = match model.layout {
            Layout::Virtual => "is virtual and cannot grow; merge all inputs again",
            _ => "is not chunked and cannot grow; merge all inputs again, with --extendible",
        };
        return Err(reason.to_owned());
    };
    let longest = match &model.dataspace {
        Dataspace::Simple { max_dims, .. } => max_dims[0],
        _ => old_rows,
    };
    if longest != u64::MAX && longest.max(old_rows) < rows {
        let longest = longest.max(old_rows);
        return Err(format!(
            "has {old_rows} rows and can have at most {longest}, but {rows} are needed; merge all inputs again, with \
             --extendible"
        ));
    }
    if *partial_chunks_unfiltered || *index == ChunkIndex::ThroughLibrary || model.fill.allocation_time == EARLY {
        return Err(
            "has chunks that are allocated early, are not filtered at the edges, or have an index that raddle \
                    does not know; rewrite the file once with raddle rechunk"
                .to_owned(),
        );
    }
    Ok(chunk_shape)
}

/// Returns the route of values that libhdf5 has to write.
fn file_local(model: &Dataset, unknown: Option<&CodecError>) -> Result<Route, String> {
    if let Some(error) = unknown {
        return Err(format!("{error}; its values cannot be read"));
    }
    if library_filters(&model.filters).len() != model.filters.len() {
        return Err("has variable-length data with a filter that raddle cannot write".to_owned());
    }
    Ok(Route::FileLocal)
}
