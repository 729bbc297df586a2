//! Columns that are computed and added to a plan after those of the inputs.

use super::growable::Growable;
use super::layout::{LayoutPolicy, Shape, table_rows_per_chunk};
use super::{MergePlan, Planner};
use crate::error::Result;
use crate::options::Link;
use crate::plan::asked_layout::AskedLayouts;
use crate::schema::{Column, ColumnIndex, InputExtent, Role, Schema, SchemaEntry, parent_path};
use raddle_core::plan::SegmentLists;
use raddle_hdf5::model::Dataset;
use std::collections::HashMap;
use std::sync::Arc;

/// A column to add to a plan. Its chunks have as many rows as those of the other columns in its group.
pub(crate) struct NewColumn {
    /// Entry of the column; its role is set when it is added.
    pub entry: SchemaEntry,
    /// Description of the dataset; `dims[0]` is ignored.
    pub template: Dataset,
    /// Number of rows that each input contributes.
    pub rows: Vec<u64>,
}

impl MergePlan {
    /// Adds columns after all others.
    pub(crate) fn add_columns(&mut self, new: Vec<NewColumn>) -> Result<Vec<ColumnIndex>> {
        let table_rows = table_rows(&self.schema, self.options.layout);
        let mut options = self.options.clone();
        options.compress = options.compress.of_computed();
        let tiles = std::mem::take(&mut self.tiles.arrays);
        let column_of_array = std::mem::take(&mut self.column_of_array);
        // No input holds their values, so they cannot be linked.
        let segments = SegmentLists::default();
        let growable = Growable::of(&self.schema, options.extendible, false);
        let mut planner = Planner { options: &options, tiles, column_of_array, segments, link: Link::No, growable };
        let layouts = AskedLayouts::without_dimensions(&options)?;
        let mut indices = Vec::with_capacity(new.len());
        for NewColumn { mut entry, template, rows } in new {
            let index = self.schema.columns.len() as ColumnIndex;
            entry.role = Role::Column(index);
            let facts = rows.into_iter().map(|rows| InputExtent { template: 0, ..InputExtent::absent(rows) }).collect();
            let mut column = Column::new(Arc::new(template), None, facts);
            column.entry = self.schema.entries.len() as u32;
            let rows = table_rows.get(parent_path(&entry.path)).copied().unwrap_or(1);
            self.columns.push(planner.column(index, &column, &entry, &layouts, rows)?);
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

/// Returns the number of rows per chunk for the tables, indexed by the path of their group; only
/// [`LayoutPolicy::Events`] needs it.
pub(super) fn table_rows(schema: &Schema, policy: LayoutPolicy) -> HashMap<Vec<u8>, u64> {
    if policy.without_time() != LayoutPolicy::Events {
        return HashMap::new();
    }
    let mut tables: HashMap<&[u8], Vec<ColumnIndex>> = HashMap::new();
    for index in 0..schema.columns.len() as ColumnIndex {
        tables.entry(parent_path(schema.column_path(index))).or_default().push(index);
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
