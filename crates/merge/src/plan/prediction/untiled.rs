//! Estimation of the parts of an output other than tiles and object metadata: values that libhdf5 writes, and
//! provenance.
//!
//! The size of variable-length values is unknown until they are read, so some rows of each dataset are read. Invariant:
//! the budget bounds the rows that are read. No process is started.

use super::estimate::Estimate;
use super::trial::needs_library;
use crate::error::Result;
use crate::plan::{ColumnPlan, MergePlan, Route, Storage};
use crate::schema::{ABSENT, Column, Role};
use crate::verify::digests::blocks::block_rows;
use crate::verify::provenance::dimensions::is_netcdf;
use crate::write::tiles::MergeWork;
use raddle_core::report::thread_cpu_ns;
use raddle_hdf5::model::{Layout, TypeClass};
use raddle_hdf5::write::HeapContent;
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;

/// Number of positions in a dataset at which rows are read.
const PLACES: u64 = 4;
/// Number of elements that are read at each position.
const ELEMENTS: u64 = 256;
/// Number of bytes of tiles whose decoding and encoding takes as long as reading at one position.
const PLACE_COST_BYTES: u64 = 64 << 10;
/// Relative deviation of values that were not read.
const DEVIATION: f64 = 0.5;
/// Length in the heap of a value that was not read.
const VALUE_LEN_BYTES: u64 = 24;
/// Time that libhdf5 takes to write a value of variable length.
const WRITE_VALUE_S: f64 = 0.9e-6;
/// Length of the headers of the groups and tables of provenance, and their links.
const PROVENANCE_LEN_BYTES: u64 = 2508;
/// Length of the dimensions of these tables in netCDF files, and of the attributes that attach them.
const DIMENSIONS_LEN_BYTES: u64 = 8100;
/// Number of attached dimensions, of which the heap holds a reference each.
const ATTACHED: usize = 16;
/// Length below which tables are placed with the metadata.
const SMALL_TABLE_LEN_BYTES: u64 = 2048;

/// Estimate of everything except tiles.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UntiledEstimate {
    /// Bytes after the chunks.
    pub len_bytes: Estimate,
    /// Number of bytes that are placed in the room reserved for metadata until it is full, and then after the chunks.
    pub front_len_bytes: f64,
    /// Processor seconds, all on the committing thread.
    pub cpu_s: Estimate,
}

/// Estimates the values that libhdf5 writes, from rows that cost about as much to read as `budget_len_bytes` of tiles.
///
/// # Errors
/// If rows cannot be read. The merge would fail in the same way.
pub(super) fn estimate(plan: &MergePlan, work: &MergeWork<'_>, budget_len_bytes: u64) -> Result<UntiledEstimate> {
    let mut heap = HeapContent::default();
    let mut all = UntiledEstimate::default();
    let mut places_left = budget_len_bytes / PLACE_COST_BYTES;
    for entry in &plan.schema.entries {
        if let Role::Constant { dataset, value, .. } = &entry.role
            && let Some(content) = HeapContent::of(&dataset.datatype.class, value)
        {
            heap.add(content);
        }
    }
    let columns = (0..).zip(plan.columns.iter().zip(&plan.schema.columns));
    let mut late: Vec<(u32, &ColumnPlan, &Column)> = columns
        .filter(|(_, (planned, _))| matches!(planned.route, Route::FileLocal))
        .map(|(index, (planned, column))| (index, planned, column))
        .collect();
    let len_bytes = |(_, planned, column): &(u32, &ColumnPlan, &Column)| {
        planned.logical_len_bytes(column.model().datatype.class.len_bytes())
    };
    late.sort_by_key(|column| (std::cmp::Reverse(len_bytes(column)), column.0));
    for (index, planned, column) in late {
        all.len_bytes.total += descriptors_len_bytes(planned, column);
        let places = PLACES.min(places_left).min(planned.dims[0]);
        let class = &column.model().datatype.class;
        let elements: f64 = planned.dims.iter().map(|&dim| dim as f64).product();
        let looked = if places == 0 || class.has_reference() || needs_library(column) {
            None
        } else {
            places_left -= places;
            look(plan, work, index, places)?
        };
        match looked {
            Some(ValueStatistics { content, elements: of_places, read_s, error, read_error }) => {
                let scale = elements / of_places;
                heap.add(content.times(scale));
                let read_s = read_s * elements;
                all.cpu_s.add(Estimate { total: read_s, variance: (read_s * read_error).powi(2) });
                all.cpu_s.add(Estimate::assumed(content.values * scale * WRITE_VALUE_S));
                let len_bytes = content.times(scale).len_bytes();
                all.len_bytes.add(Estimate { total: 0.0, variance: (len_bytes * error).powi(2) });
            }
            None if holds_addresses_only(class) => {
                let total = elements * WRITE_VALUE_S;
                all.cpu_s.add(Estimate { total, variance: total * total });
            }
            None => {
                let mut guessed = HeapContent::default();
                guessed.add_value(VALUE_LEN_BYTES);
                let guessed = guessed.times(elements);
                heap.add(guessed);
                let (len_bytes, total) = (guessed.len_bytes(), elements * WRITE_VALUE_S);
                all.len_bytes.add(Estimate { total: 0.0, variance: (len_bytes * DEVIATION).powi(2) });
                all.cpu_s.add(Estimate { total, variance: total * total });
            }
        }
    }
    if plan.options.provenance {
        add_provenance(plan, &mut all, &mut heap);
    }
    all.front_len_bytes += heap.len_bytes();
    Ok(all)
}

/// Returns whether object references, which take no space in the heap, are the only file-local parts of elements.
fn holds_addresses_only(class: &TypeClass) -> bool {
    use raddle_hdf5::model::ReferenceKind;
    match class {
        TypeClass::Reference(ReferenceKind::Object) => true,
        TypeClass::Compound { members, .. } => {
            members.iter().all(|member| !member.class.is_file_local() || holds_addresses_only(&member.class))
        }
        TypeClass::Array { base, .. } => holds_addresses_only(base),
        _ => false,
    }
}

/// Returns the length of a dataset's elements as stored, without values in the heap. If libhdf5 deflates them, they are
/// assumed to compress like the inputs'.
fn descriptors_len_bytes(planned: &ColumnPlan, column: &Column) -> f64 {
    let element_len_bytes = column.model().datatype.class.len_bytes() as f64;
    let product =
        |counts: &mut dyn Iterator<Item = u64>| counts.fold(element_len_bytes, |all, count| all * count as f64);
    let raw_len_bytes = product(&mut planned.dims.iter().copied());
    let Storage::Chunked(chunk) = &planned.storage else { return raw_len_bytes };
    let padded = product(&mut planned.dims.iter().zip(chunk).map(|(&dim, &chunk)| dim.next_multiple_of(chunk.max(1))));
    if planned.filters.is_empty() {
        return padded;
    }
    let is_chunked = |column: &Column| matches!(column.model().layout, Layout::Chunked { .. });
    let gain = column.stored_len_bytes() as f64 / raw_len_bytes.max(1.0);
    if is_chunked(column) && gain > 0.0 { raw_len_bytes * gain.min(1.0) } else { raw_len_bytes }
}

/// Statistics of values that were read.
struct ValueStatistics {
    content: HeapContent,
    elements: f64,
    /// Processor seconds to read an element.
    read_s: f64,
    /// Relative standard error of the bytes in the heap.
    error: f64,
    /// Relative standard error of `read_s`.
    read_error: f64,
}

/// Reads rows of a dataset at `places` positions.
fn look(plan: &MergePlan, work: &MergeWork<'_>, index: u32, places: u64) -> Result<Option<ValueStatistics>> {
    let (planned, column) = (&plan.columns[index as usize], &plan.schema.columns[index as usize]);
    let class = &column.model().datatype.class;
    let row_elements = planned.dims[1..].iter().fold(1_u64, |product, &dim| product.saturating_mul(dim)).max(1);
    let wanted = (ELEMENTS / row_elements).max(1);
    let mut reader = work.column_reader();
    let (mut seen, mut seen_elements) = (HeapContent::default(), 0.0);
    let (mut len_bytes_per_element, mut s_per_element) = (Vec::new(), Vec::new());
    for place in 0..places {
        let row = (u128::from(2 * place + 1) * u128::from(planned.dims[0]) / u128::from(2 * places)) as u64;
        let Some((input, row)) = input_of_row(column, row) else { continue };
        let rows = wanted.min(column.facts[input as usize].rows - row);
        let before_ns = thread_cpu_ns();
        let (rows, canonical) = reader.first_canonical_rows(index, input, row..row + rows, &planned.dims)?;
        let read_s = (thread_cpu_ns() - before_ns) as f64 * 1e-9;
        let Some(content) = HeapContent::of(class, &canonical) else { return Ok(None) };
        seen.add(content);
        let elements = rows.saturating_mul(row_elements) as f64;
        seen_elements += elements;
        len_bytes_per_element.push(content.len_bytes() / elements);
        s_per_element.push(read_s / elements);
    }
    if seen_elements == 0.0 {
        return Ok(None);
    }
    let is_all = seen_elements >= row_elements as f64 * planned.dims[0] as f64;
    let unknown = if is_all { 0.0 } else { DEVIATION };
    Ok(Some(ValueStatistics {
        content: seen,
        elements: seen_elements,
        // An interruption makes one position much slower; the others show the usual time.
        read_s: median(&mut s_per_element),
        error: standard_error(&len_bytes_per_element).unwrap_or(unknown),
        read_error: standard_error(&s_per_element).unwrap_or(unknown),
    }))
}

/// Returns the standard error of the mean of `values` as a share of the mean; `None` for fewer than two values or a
/// mean of 0.
fn standard_error(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1 && mean > 0.0).then(|| (squares / (count * (count - 1.0))).sqrt() / mean)
}

/// Returns the lower median.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// Returns the input that provides a row of the output, and the row's number in that input; `None` if the input lacks
/// the dataset.
fn input_of_row(column: &Column, row: u64) -> Option<(u32, u64)> {
    let mut first = 0;
    for (input, fact) in (0..).zip(column.facts.iter()) {
        if row < first + fact.rows {
            return (fact.template != ABSENT).then_some((input, row - first));
        }
        first += fact.rows;
    }
    None
}

/// Adds the size of `/_raddle` ([`crate::verify::provenance`]).
fn add_provenance(plan: &MergePlan, all: &mut UntiledEstimate, heap: &mut HeapContent) {
    let inputs = plan.inputs.len() as u64;
    let is_column = |role: &Role| matches!(role, Role::Column(_));
    let objects = plan.schema.entries.iter().filter(|entry| !is_column(&entry.role)).count() as u64;
    let columns = plan.columns.len() as u64;
    plan.inputs.iter().for_each(|input| heap.add_value(input.path.as_os_str().as_bytes().len() as u64));
    plan.schema.entries.iter().for_each(|entry| heap.add_value(entry.path.len() as u64));
    // Columns of one table share a list of runs, which is one row here.
    let lists: HashSet<*const _> = plan.tiles.arrays.iter().map(|array| array.segments.as_ptr()).collect();
    let row_starts = (lists.len() as u64 + 1).saturating_mul(inputs + 1);
    let blocks: u64 = (0..).zip(&plan.columns).map(|(index, planned)| blocks(plan, index, planned)).sum();
    // Each path takes 16 bytes in addition to the heap. The other tables of datasets take 8 bytes per dataset (five
    // tables) or 4 bytes (one).
    let of_inputs = [inputs * 16, inputs * 8, inputs * 8, row_starts * 8, blocks * 8];
    let of_objects = [objects * 16, objects * 8, columns * 16, columns * 4];
    let tables = of_inputs.into_iter().chain(of_objects).chain([columns * 8; 5]);
    let (small, large): (Vec<u64>, Vec<u64>) = tables.partition(|&len_bytes| len_bytes < SMALL_TABLE_LEN_BYTES);
    all.front_len_bytes += (small.iter().sum::<u64>() + PROVENANCE_LEN_BYTES) as f64;
    if is_netcdf(&plan.schema) {
        all.front_len_bytes += DIMENSIONS_LEN_BYTES as f64;
        (0..ATTACHED).for_each(|_| heap.add_value(8));
    }
    all.len_bytes.total += large.iter().sum::<u64>() as f64;
}

/// Returns the number of blocks of rows for which a column has digests.
fn blocks(plan: &MergePlan, index: u32, planned: &ColumnPlan) -> u64 {
    let rows = planned.dims.first().copied().unwrap_or(0);
    if let Some(array) = planned.undecoded_array(&plan.options) {
        return rows.div_ceil(plan.tiles.arrays[array as usize].tile_shape[0].max(1));
    }
    match planned.route {
        Route::Empty | Route::Linked => 0,
        _ => rows.div_ceil(block_rows(plan.row_len_bytes(index), rows)),
    }
}
