//! Comparison of an output with a plan of what it should be: first the objects, then the values in blocks of rows.
//!
//! Invariant: every row of every pair of datasets is compared once, by one of the ranks.

use super::{Mismatch, VERIFYING, VerifyReport};
use crate::conventions::cf;
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::fill_pattern::FillPattern;
use crate::plan::memory::ReaderMemory;
use crate::plan::{MergePlan, Route};
use crate::schema::attribute::{marks_classic_model, places_by_name};
use crate::schema::join::describe;
use crate::schema::{AttributeValue, Column, ColumnIndex, EntryIndex, Role, Schema, SchemaEntry, display_path};
use crate::verify::boxes::{array_of, boxes, common_limit_len_bytes};
use crate::write::ranks::share_by_cost;
use crate::write::values::{ColumnReader, open_pool};
use raddle_core::memory::MemoryBudget;
use raddle_core::parallel;
use raddle_core::plan::extent::{Extent, values_len_bytes};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::{Event, Stage};
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::Dataspace;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Number of bytes of values compared at once; rounded to whole rows.
const BLOCK_LEN_BYTES: u64 = 4 << 20;

/// Comparison of the plan of an expected output with that of an existing file.
pub(super) struct Comparison<'p> {
    expected: &'p MergePlan,
    found: &'p MergePlan,
    /// Pairs of columns with equal types and dimensions on both sides.
    pairs: Vec<(u32, u32)>,
    /// Expected entries whose values are in the plan, such as those of AnnData, with their columns in the output.
    stacks: Vec<(EntryIndex, ColumnIndex)>,
    /// Report of the comparison so far.
    pub report: VerifyReport,
}

/// Returns the least path of the object at each path. All hard links to an object have the same least path.
fn first_names(schema: &Schema) -> HashMap<&[u8], &[u8]> {
    fn object(entry: &SchemaEntry) -> &[u8] {
        match &entry.role {
            Role::HardLink { target } => target,
            _ => &entry.path,
        }
    }
    let mut least: HashMap<&[u8], &[u8]> = HashMap::new();
    for entry in &schema.entries {
        let known = least.entry(object(entry)).or_insert(&entry.path);
        *known = (*known).min(&entry.path);
    }
    schema.entries.iter().map(|entry| (entry.path.as_slice(), least[object(entry)])).collect()
}

impl<'p> Comparison<'p> {
    pub fn new(expected: &'p MergePlan, found: &'p MergePlan) -> Self {
        Self { expected, found, pairs: Vec::new(), stacks: Vec::new(), report: VerifyReport::default() }
    }

    fn mismatch(&mut self, path: &[u8], what: impl Into<String>) {
        let (path, what) = (display_path(path), what.into());
        self.report.mismatches.push(Mismatch { path, what, row: None, input: None });
    }

    /// Compares all objects and their attributes, and pairs the datasets whose values are to be compared.
    pub fn structure(&mut self) {
        let (expected, found) = (&self.expected.schema, &self.found.schema);
        let by_path: HashMap<&[u8], &SchemaEntry> =
            found.entries.iter().map(|entry| (entry.path.as_slice(), entry)).collect();
        let (names, names_found) = (first_names(expected), first_names(found));
        for (index, entry) in (0..).zip(&expected.entries) {
            self.report.objects += 1 + entry.attributes.len() as u64;
            let path = entry.path.as_slice();
            let Some(&(mut other)) = by_path.get(path) else {
                self.mismatch(path, format!("{} is missing in the output", entry.role.word()));
                continue;
            };
            // Which of several paths of an object comes first depends on the order of links.
            if names.get(path) == names_found.get(path) {
                match (&entry.role, &other.role) {
                    (Role::HardLink { .. }, _) => continue,
                    (_, Role::HardLink { target }) => other = by_path.get(target.as_slice()).copied().unwrap_or(other),
                    _ => {}
                }
            }
            self.roles(index, entry, other);
            self.attributes(entry, other);
        }
        let known: HashSet<&[u8]> = expected.entries.iter().map(|entry| entry.path.as_slice()).collect();
        for entry in found.entries.iter().filter(|entry| !known.contains(entry.path.as_slice())) {
            self.mismatch(&entry.path, format!("{} is not in any input", entry.role.word()));
        }
    }

    /// Compares the role of an expected entry, number `index`, with that of the entry found for it.
    fn roles(&mut self, index: EntryIndex, entry: &SchemaEntry, other: &SchemaEntry) {
        match (&entry.role, &other.role) {
            (Role::Column(left), Role::Column(right)) => self.columns(*left, *right),
            (Role::Constant { dataset: a, value: left, .. }, Role::Constant { dataset: b, value: right, .. }) => {
                if !a.datatype.has_same_elements(&b.datatype) || a.dataspace != b.dataspace || left != right {
                    self.mismatch(&entry.path, "the scalar dataset differs");
                }
            }
            (Role::Constant { dataset, .. }, Role::Column(right)) if dataset.dataspace != Dataspace::Null => {
                self.stacks.push((index, *right));
            }
            (Role::CommittedDatatype(left), Role::CommittedDatatype(right))
                if left.with_long_addresses() == right.with_long_addresses() => {}
            (left, right) if left == right => {}
            (left, right) if left.word() != right.word() => {
                self.mismatch(&entry.path, format!("is a {} instead of a {}", right.word(), left.word()));
            }
            (left, _) => self.mismatch(&entry.path, format!("the {} differs", left.word())),
        }
    }

    /// Compares the attributes of an expected entry with those of the entry found for it.
    fn attributes(&mut self, entry: &SchemaEntry, other: &SchemaEntry) {
        // An output with the group of provenance lacks this mark.
        let is_compared = |attribute: &&AttributeValue| !marks_classic_model(&entry.path, attribute);
        let places = places_by_name(&other.attributes);
        for attribute in entry.attributes.iter().filter(is_compared) {
            let fault = match places.get(&*attribute.name).map(|&place| &other.attributes[place]) {
                Some(same) if same.value == attribute.value && same.datatype.has_same_elements(&attribute.datatype) => {
                    continue;
                }
                // The length in the name of a netCDF dimension is its length at creation: an append keeps it.
                Some(_) if attribute.name == b"NAME" && are_without_variable(&entry.attributes, &other.attributes) => {
                    continue;
                }
                Some(same) if entry.path == b"/" && cf::are_same_history(attribute, same) => continue,
                Some(_) => "differs",
                None => "is missing",
            };
            self.mismatch(&entry.path, format!("attribute {} {fault}", display_path(&attribute.name)));
        }
        let places = places_by_name(&entry.attributes);
        for attribute in other.attributes.iter().filter(is_compared) {
            if !places.contains_key(&*attribute.name) {
                let what = format!("attribute {} is not in any input", display_path(&attribute.name));
                self.mismatch(&entry.path, what);
            }
        }
    }

    fn columns(&mut self, left: u32, right: u32) {
        let (a, b) = (&self.expected.schema.columns[left as usize], &self.found.schema.columns[right as usize]);
        let path = self.expected.schema.column_path(left);
        let dims = self.expected.columns[left as usize].file_dims();
        let other_dims = self.found.columns[right as usize].file_dims();
        let class = |column: &Column| describe(&column.model().datatype.class);
        if !a.model().datatype.has_same_elements(&b.model().datatype) {
            self.mismatch(path, format!("datatype is {} instead of {}", class(b), class(a)));
        } else if dims != other_dims {
            self.mismatch(path, format!("dimensions are {other_dims:?} instead of {dims:?}"));
        } else {
            let (left_fill, right_fill) = (FillPattern::of(a.model()), FillPattern::of(b.model()));
            // The pattern of an element with addresses within its file has no meaning in another file.
            let is_same_pattern = a.is_file_local() || left_fill.pattern == right_fill.pattern;
            if !is_same_pattern || left_fill.is_returned_by_readers != right_fill.is_returned_by_readers {
                self.mismatch(path, "the fill value differs");
            }
            self.report.datasets += 1;
            if !dims.contains(&0) {
                self.pairs.push((left, right));
            }
        }
    }

    /// Compares datasets whose values are in the plan. These are few, and the scan has read them.
    pub fn stacks(&mut self) -> Result<()> {
        let pool = open_pool(self.found);
        let mut reader = ColumnReader::new(self.found, &pool);
        for (entry, column) in std::mem::take(&mut self.stacks) {
            let entry = &self.expected.schema.entries[entry as usize];
            let Role::Constant { dataset, value, .. } = &entry.role else { continue };
            let (found, dims) =
                (self.found.schema.columns[column as usize].model(), &self.found.columns[column as usize].dims);
            let class = &dataset.datatype.class;
            if !dataset.datatype.has_same_elements(&found.datatype) {
                let what = format!("datatype is {} instead of {}", describe(&found.datatype.class), describe(class));
                self.mismatch(&entry.path, what);
            } else if dataset.dataspace.dims() != dims.as_slice() {
                let what = format!("dimensions are {dims:?} instead of {:?}", dataset.dataspace.dims());
                self.mismatch(&entry.path, what);
            } else {
                self.report.datasets += 1;
                self.report.compared_len_bytes += value.len() as u64;
                let values = reader.canonical_rows(column, 0, 0, dims[0], dims)?;
                let pairs = CanonicalElements::new(class, value).zip(CanonicalElements::new(class, &values));
                if let Some(row) = pairs.map(|(left, right)| left != right).position(|differs| differs) {
                    self.report.mismatches.push(Mismatch {
                        path: display_path(&entry.path),
                        what: format!("values differ from row {row} on"),
                        row: Some(row as u64),
                        input: self.expected.inputs.get(row).map(|input| input.path.clone()),
                    });
                }
            }
        }
        Ok(())
    }

    /// Collective. Compares the values assigned to this rank.
    pub fn values(&mut self, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<()> {
        let (jobs, box_limit_len_bytes) = ranks.agree(VERIFYING, self.fitting_jobs())?;
        let options = &self.expected.options;
        let blocks = self.blocks(common_limit_len_bytes(box_limit_len_bytes, ranks)?);
        let blocks = &blocks[share_by_cost(ranks, blocks.iter().map(|block| block.len_bytes))];
        let budget = std::sync::Arc::new(MemoryBudget::new(options.memory_limit_bytes));
        let pools = [self.expected, self.found].map(open_pool);
        let compared = AtomicU64::new(0);
        let mismatches = Mutex::new(Vec::new());
        let (expected, found) = (self.expected, self.found);
        let comparer = || BlockComparer {
            watch,
            reported_len_bytes: 0,
            expected: ColumnReader::new(expected, &pools[0]),
            found: ColumnReader::new(found, &pools[1]),
            left: Vec::new(),
            right: Vec::new(),
        };
        parallel::for_each(blocks, jobs, watch.cancel, comparer, |comparer, block| {
            let _permit = budget.acquire(2 * block.buffer_len_bytes(), "comparing a block of rows")?;
            let outcome = comparer.compare(expected, found, block)?;
            compared.fetch_add(block.len_bytes, Ordering::Relaxed);
            let bytes = (2 * block.len_bytes).saturating_sub(std::mem::take(&mut comparer.reported_len_bytes));
            watch.observer.event(&Event::Advanced { stage: Stage::Verify, bytes, items: 1 });
            mismatches.lock().unwrap_or_else(PoisonError::into_inner).extend(outcome);
            Ok::<_, MergeError>(())
        })?;
        self.report.compared_len_bytes += compared.into_inner();
        self.report.mismatches.extend(mismatches.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// Returns the number of threads of this rank, and the limit of the boxes of each.
    fn fitting_jobs(&self) -> Result<(usize, u64)> {
        let options = &self.expected.options;
        // Each thread reads both sides and holds a block of each.
        let [expected, found] = [self.expected, self.found].map(ReaderMemory::of);
        let jobs = expected.fitting_jobs(self.expected, options.jobs, found.len_bytes + 2 * BLOCK_LEN_BYTES)?;
        let jobs = found.fitting_jobs(self.found, jobs, expected.len_bytes + 2 * BLOCK_LEN_BYTES)?;
        let of_thread = options.memory_limit_bytes / jobs.max(1) as u64;
        let left = of_thread.saturating_sub(expected.len_bytes + found.len_bytes);
        Ok((jobs, (left / 2).min(of_thread / 4)))
    }

    /// Returns the blocks that are compared; boxes have at most `box_limit_len_bytes`.
    fn blocks(&self, box_limit_len_bytes: u64) -> Vec<ComparedBlock> {
        let mut blocks = Vec::new();
        for &(left, right) in &self.pairs {
            let row_len_bytes = self.expected.row_len_bytes(left).max(1);
            let rows = self.expected.columns[left as usize].dims[0];
            let form = if self.expected.schema.columns[left as usize].is_file_local() {
                BlockComparison::FileLocal
            } else if self.expected.columns[left as usize].is_undecodable() {
                BlockComparison::Stored
            } else {
                BlockComparison::Values
            };
            if form != BlockComparison::Values {
                let len_bytes = rows.saturating_mul(row_len_bytes);
                blocks.push(ComparedBlock { left, right, rows: 0..rows, len_bytes, form });
                continue;
            }
            let step = (BLOCK_LEN_BYTES / row_len_bytes).max(1);
            if let Some(boxes) = boxes(&[(self.expected, left), (self.found, right)], step, box_limit_len_bytes) {
                blocks.extend((0..boxes.tile_count()).map(|number| {
                    let extent = boxes.tile_extent(number);
                    let len_bytes = values_len_bytes(&extent.count, boxes.element_len_bytes);
                    let rows = extent.start[0]..extent.end(0);
                    ComparedBlock { left, right, rows, len_bytes, form: BlockComparison::Boxes(extent) }
                }));
                continue;
            }
            let mut start = 0;
            while start < rows {
                let end = (start + step).min(rows);
                let len_bytes = (end - start) * row_len_bytes;
                blocks.push(ComparedBlock { left, right, rows: start..end, len_bytes, form: form.clone() });
                start = end;
            }
        }
        blocks
    }
}

struct ComparedBlock {
    left: u32,
    right: u32,
    rows: Range<u64>,
    len_bytes: u64,
    form: BlockComparison,
}

impl ComparedBlock {
    /// Returns the length of the values that are held at once.
    fn buffer_len_bytes(&self) -> u64 {
        match self.form {
            BlockComparison::Values | BlockComparison::Boxes(_) => self.len_bytes,
            BlockComparison::FileLocal | BlockComparison::Stored => self.len_bytes.min(BLOCK_LEN_BYTES),
        }
    }
}

/// Method of comparing a block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BlockComparison {
    /// Decoded values of whole rows.
    Values,
    /// Decoded values of a box.
    Boxes(Extent),
    /// Canonical bytes, because elements hold addresses within their file.
    FileLocal,
    /// Stored chunks, because a filter is unknown.
    Stored,
}

struct BlockComparer<'p> {
    watch: &'p Watch<'p>,
    /// Length of the compared values of this block, on both sides, that the observer knows of.
    reported_len_bytes: u64,
    expected: ColumnReader<'p>,
    found: ColumnReader<'p>,
    left: Vec<u8>,
    right: Vec<u8>,
}

impl BlockComparer<'_> {
    fn compare(&mut self, plan: &MergePlan, found: &MergePlan, block: &ComparedBlock) -> Result<Option<Mismatch>> {
        match &block.form {
            BlockComparison::Values => {}
            BlockComparison::Boxes(extent) => return self.compare_box(plan, found, block, extent),
            BlockComparison::FileLocal => {
                return self.compare_file_local(plan, &found.columns[block.right as usize].dims, block);
            }
            BlockComparison::Stored => return self.compare_stored(plan, block),
        }
        self.left.resize(block.len_bytes as usize, 0);
        self.right.resize(block.len_bytes as usize, 0);
        self.expected.read_rows(block.left, block.rows.clone(), &mut self.left)?;
        self.found.read_rows(block.right, block.rows.clone(), &mut self.right)?;
        Ok(self.first_difference(plan, block))
    }

    /// Compares a box of a column.
    fn compare_box(
        &mut self,
        plan: &MergePlan,
        found: &MergePlan,
        block: &ComparedBlock,
        extent: &Extent,
    ) -> Result<Option<Mismatch>> {
        let sides = [
            (&mut self.expected, plan, block.left, &mut self.left),
            (&mut self.found, found, block.right, &mut self.right),
        ];
        for (reader, plan, column, values) in sides {
            values.resize(block.len_bytes as usize, 0);
            let Some(array) = array_of(plan, column) else { return Ok(None) };
            reader.read_extent(column, array, extent, values)?;
        }
        Ok(self.first_difference(plan, block))
    }

    /// Returns the first row of a block that differs between both sides.
    fn first_difference(&self, plan: &MergePlan, block: &ComparedBlock) -> Option<Mismatch> {
        // Nearly all blocks are equal, and comparing whole slices is many times as fast as looking for a byte.
        if self.left == self.right {
            return None;
        }
        let byte = self.left.iter().zip(&self.right).position(|(left, right)| left != right)?;
        let row_len_bytes = block.len_bytes / (block.rows.end - block.rows.start).max(1);
        Some(value_mismatch(plan, block.left, block.rows.start + byte as u64 / row_len_bytes.max(1)))
    }

    /// Compares the canonical bytes of a column of a file-local type; `dims` are the dimensions in the output. Blocks of
    /// the inputs, which may be a few rows each, are collected before the output is read, because every read of a virtual
    /// dataset checks all of its sources.
    fn compare_file_local(
        &mut self,
        plan: &MergePlan,
        dims: &[u64],
        block: &ComparedBlock,
    ) -> Result<Option<Mismatch>> {
        let (found, watch) = (&mut self.found, self.watch);
        let row_len_bytes = plan.row_len_bytes(block.left);
        let mut differing = None;
        let mut collected = CollectedRows::default();
        self.expected.for_each_canonical_block(block.left, u64::MAX, &mut |row, rows, canonical| {
            watch.cancel.check()?;
            let bytes = 2 * rows * row_len_bytes;
            watch.observer.event(&Event::Advanced { stage: Stage::Verify, bytes, items: 0 });
            self.reported_len_bytes += bytes;
            if differing.is_some() {
                return Ok(());
            }
            collected.add(row, rows, canonical);
            if collected.canonical.len() as u64 >= BLOCK_LEN_BYTES {
                differing = collected.first_difference(found, block.right, dims)?;
                collected = CollectedRows::default();
            }
            Ok(())
        })?;
        if differing.is_none() {
            differing = collected.first_difference(found, block.right, dims)?;
        }
        Ok(differing.map(|row| value_mismatch(plan, block.left, row)))
    }
}

/// Consecutive blocks of rows of an expected output.
#[derive(Default)]
struct CollectedRows {
    /// First row, number of rows, and end of the canonical bytes of each block.
    blocks: Vec<(u64, u64, usize)>,
    canonical: Vec<u8>,
}

impl CollectedRows {
    fn add(&mut self, row: u64, rows: u64, canonical: &[u8]) {
        self.canonical.extend_from_slice(canonical);
        self.blocks.push((row, rows, self.canonical.len()));
    }

    /// Returns the first row of the first block that differs from the rows of `column` that `found` reads.
    fn first_difference(&self, found: &mut ColumnReader<'_>, column: u32, dims: &[u64]) -> Result<Option<u64>> {
        let (Some(&(first, ..)), Some(&(last, rows, _))) = (self.blocks.first(), self.blocks.last()) else {
            return Ok(None);
        };
        if found.canonical_rows(column, 0, first, last + rows - first, dims)? == self.canonical {
            return Ok(None);
        }
        let mut start = 0;
        for &(row, rows, end) in &self.blocks {
            if found.canonical_rows(column, 0, row, rows, dims)? != self.canonical[start..end] {
                return Ok(Some(row));
            }
            start = end;
        }
        Ok(None)
    }
}

impl BlockComparer<'_> {
    /// Compares chunks with an unknown filter as stored, because they were also moved as stored.
    fn compare_stored(&mut self, plan: &MergePlan, block: &ComparedBlock) -> Result<Option<Mismatch>> {
        let Route::Verbatim { array } = plan.columns[block.left as usize].route else { return Ok(None) };
        let tiles = &plan.tiles.arrays[array as usize];
        for tile in 0..tiles.tile_count() {
            self.watch.cancel.check()?;
            let Some(piece) = tiles.pieces(tile).next() else { continue };
            self.left.clear();
            self.right.clear();
            let origin = tiles.tile_origin(tile);
            let expected = self.expected.stored_chunk(block.left, piece.input, &piece.source.start, &mut self.left)?;
            let origin = &origin[..plan.columns[block.left as usize].rank()];
            let found = self.found.stored_chunk(block.right, 0, origin, &mut self.right)?;
            if expected != found || self.left != self.right {
                return Ok(Some(value_mismatch(plan, block.left, origin[0])));
            }
        }
        Ok(None)
    }
}

fn value_mismatch(plan: &MergePlan, column: u32, row: u64) -> Mismatch {
    let mut first = 0;
    let facts = &plan.schema.columns[column as usize].facts;
    let is_in_rows = plan.schema.columns[column as usize].boxes.is_none();
    let input = facts.iter().filter(|_| is_in_rows).position(|fact| {
        first += fact.rows;
        row < first
    });
    Mismatch {
        path: display_path(plan.schema.column_path(column)),
        what: format!("values differ from row {row} on"),
        row: Some(row),
        input: input.map(|input| plan.inputs[input].path.clone()),
    }
}

/// Returns whether the attributes of both objects mark a netCDF dimension without a variable.
fn are_without_variable(left: &[AttributeValue], right: &[AttributeValue]) -> bool {
    cf::names_no_variable(left) && cf::names_no_variable(right)
}
