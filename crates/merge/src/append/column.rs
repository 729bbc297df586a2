//! Planning of a column of a file that is appended to, which keeps its chunk shape and filters.
//!
//! Columns of new files are planned by [`crate::plan`]. Invariant: chunking, filters and index of existing storage are
//! not changed; a dataset that cannot grow without that is refused.

use crate::error::{MergeError, Result};
use crate::plan::asked_layout::AskedFilters;
use crate::plan::growth::ColumnGrowth;
use crate::plan::{ColumnPlan, LayoutDecision, Planner, Route, Storage, decoders, encoder_like, ids, library_filters};
use crate::schema::{Column, ColumnIndex, display_path};
use raddle_codec::{Encoder, EncoderOptions};
use raddle_hdf5::model::{ChunkIndex, Dataspace, Layout};

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
        let refuse = |reason: String| Err(MergeError::Object { object: display_path(path), reason });
        let model = column.model();
        if column.axis > 0 || column.output.is_some() || column.conversion_of(0).is_some() {
            return refuse(
                "would grow along another axis or in another type, or its values would change; merge all inputs again"
                    .to_owned(),
            );
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
        if new_rows == 0 {
            planned.pipelines = pipelines.into_iter().map(std::result::Result::ok).collect();
            return Ok((planned, growth));
        }
        let Layout::Chunked { chunk_shape, partial_chunks_unfiltered, index: chunk_index } = &model.layout else {
            return refuse("is not chunked and cannot grow; merge all inputs again, with --extendible".to_owned());
        };
        if longest != u64::MAX && longest.max(old_rows) < planned.dims[0] {
            return refuse(format!(
                "has {old_rows} rows and can have at most {}, but {} are needed; merge all inputs again, with --extendible",
                longest.max(old_rows),
                planned.dims[0]
            ));
        }
        if *partial_chunks_unfiltered
            || *chunk_index == ChunkIndex::ThroughLibrary
            || model.fill.allocation_time == EARLY
        {
            return refuse(
                "has chunks that are allocated early, are not filtered at the edges, or have an index that raddle \
                 does not know; rewrite the file once with raddle rechunk"
                    .to_owned(),
            );
        }
        let unknown = pipelines.iter().find_map(|pipeline| pipeline.as_ref().err());
        if planned.dims.contains(&0) {
            // Rows without elements: the extent grows, but nothing is stored.
        } else if column.is_file_local() {
            if let Some(error) = unknown {
                return refuse(format!("{error}; its values cannot be read"));
            }
            if library_filters(&model.filters).len() != model.filters.len() {
                return refuse("has variable-length data with a filter that raddle cannot write".to_owned());
            }
            planned.route = Route::FileLocal;
        } else {
            let first_row = old_rows / chunk_shape[0] * chunk_shape[0];
            let is_moved =
                self.verbatim_chunk(column, &AskedFilters::of(self.options), None, unknown.is_some()).is_some();
            if let (Some(error), false) = (unknown, is_moved) {
                return refuse(format!(
                    "{error}, and its chunks cannot be moved as stored because they do not align with the existing rows, \
                     or have another fill value"
                ));
            }
            growth.first_row = first_row;
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
        }
        planned.pipelines = pipelines.into_iter().map(std::result::Result::ok).collect();
        Ok((planned, growth))
    }
}
