//! Planning: inputs are scanned and joined, and each column of what they have together is planned.
//!
//! Not for how a column is stored, which is `column`'s, or grows, which is [`crate::append`]'s.
//! Invariant: the engine's arrays and the columns that they are of are added together and in one order.

use super::{MergePlan, PlannedInput, Planner};
use crate::append::growth::Growth;
use crate::append::redo;
use crate::digests::stored::StoredDigests;
use crate::error::{MergeError, Result};
use crate::fill_references;
use crate::join::{Difference, DifferenceKind, Joined, Joiner, parent_path};
use crate::keys::{self, made::Made};
use crate::layout::{LayoutPolicy, Shape, table_rows_per_chunk};
use crate::links::{self, Link};
use crate::options::{MergeOptions, Watch};
use crate::scan;
use crate::schema::{Column, ColumnFact, ColumnIndex, Entry, Role, Schema};
use raddle_core::plan::Plan;
use raddle_core::progress::{Event, Stage};
use raddle_hdf5::model::Dataset;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What the output is when a run begins.
pub(crate) enum Beginning {
    /// Not there.
    New,
    /// The one input, which is written anew; with what it says of itself.
    Rewritten(Option<StoredDigests>),
    /// The first input, which grows by the others; with what it says of itself.
    Grows(Option<StoredDigests>),
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
        let rows = table_rows.get(parent_path(path)).copied().unwrap_or(1);
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
    links::check_sources(&plan, watch)?;
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
            let rows = table_rows.get(parent_path(&entry.path)).copied().unwrap_or(1);
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
