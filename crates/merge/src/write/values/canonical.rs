//! Values of types that hold addresses within their file, in canonical bytes: strings, sequences, references.
//!
//! Invariant: returned values have the same meaning in any file.

use super::ColumnReader;
use super::rows::pieces_of;
use crate::error::{MergeError, Result};
use crate::plan::row_shifts::RowShifts;
use crate::rules::{ElementMap, with_suffix};
use crate::schema::{ABSENT, display_path};
use raddle_core::plan::extent::{BoxTarget, Extent};
use raddle_core::plan::{Piece, Segment};
use raddle_hdf5::logical::{Resolver, shift_regions};
use raddle_hdf5::model::{FileTree, TypeClass};
use raddle_hdf5::source::InputFile;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Number of bytes of file-local elements read at once. The size counts descriptors.
const CANONICAL_BLOCK_LEN_BYTES: u64 = 1 << 20;
/// Number of canonical bytes from which rows are passed on. It bounds the memory for variable-length data, except for a
/// single row that is longer. It must not depend on memory or threads, because the output depends on it.
const CANONICAL_PART_LEN_BYTES: usize = 4 << 20;
/// Size of an empty string in canonical bytes, which consist only of its length.
const EMPTY_TEXT_LEN_BYTES: usize = 8;

/// Callback for consecutive rows: number of rows, canonical bytes. After a break, no more rows are read.
type PartVisit<'v> = dyn FnMut(u64, Vec<u8>) -> Result<ControlFlow<()>> + 'v;

/// Callback for a block of canonical values: first row in the output, number of rows, canonical bytes.
pub type CanonicalVisit<'v> = dyn FnMut(u64, u64, &[u8]) -> Result<()> + 'v;

impl ColumnReader<'_> {
    /// Calls `visit(first row in the output, rows, canonical bytes)` for blocks of a file-local column, in order. No
    /// block crosses a multiple of `cut_rows`.
    pub fn for_each_canonical_block(
        &mut self,
        column: u32,
        cut_rows: u64,
        visit: &mut CanonicalVisit<'_>,
    ) -> Result<()> {
        let plan = self.plan;
        let scanned = &plan.schema.columns[column as usize];
        let class = scanned.model().datatype.class.clone();
        let dims = plan.columns[column as usize].dims.clone();
        let row_elements: u64 = dims[1..].iter().product();
        let block_rows = (CANONICAL_BLOCK_LEN_BYTES / (row_elements * class.len_bytes()).max(1)).max(1);
        let shifts = class.has_reference().then(|| RowShifts::new(plan));
        let mut out_row = 0;
        for (input, fact) in scanned.facts.iter().enumerate().filter(|(_, fact)| fact.rows > 0) {
            let input = input as u32;
            let blank = || {
                let is_blank = scanned.conversion_of(input).is_some_and(|one| one.map == ElementMap::Blank);
                is_blank.then(|| vec![0; row_elements as usize * EMPTY_TEXT_LEN_BYTES])
            };
            let absent = || scanned.row_of(input).map(<[u8]>::to_vec).or_else(blank);
            if fact.template == ABSENT
                && let Some(absent) = absent()
            {
                let mut row = 0;
                while row < fact.rows {
                    let rows = block_rows.min(fact.rows - row).min(cut_rows - out_row % cut_rows);
                    visit(out_row, rows, &absent.repeat(rows as usize))?;
                    (row, out_row) = (row + rows, out_row + rows);
                }
                continue;
            }
            if fact.template == ABSENT {
                return Err(MergeError::Object {
                    object: display_path(plan.schema.column_path(column)),
                    reason:
                        "holds variable-length data or references and is missing in an input; rows cannot be filled"
                            .to_owned(),
                });
            }
            let mut row = 0;
            while row < fact.rows {
                let first = out_row;
                let rows = block_rows.min(fact.rows - row).min(cut_rows - first % cut_rows);
                let mut part = |rows: u64, canonical: Vec<u8>| {
                    let canonical =
                        match &shifts {
                            Some(shifts) => shift_regions(&class, &canonical, &|path| shifts.of(path, input))
                                .ok_or_else(|| MergeError::Object {
                                    object: display_path(plan.schema.column_path(column)),
                                    reason: "holds a region reference that does not fit its dataset".to_owned(),
                                })?,
                            None => canonical,
                        };
                    visit(out_row, rows, &canonical)?;
                    out_row += rows;
                    Ok(ControlFlow::Continue(()))
                };
                match &scanned.runs {
                    // They decide which rows of the output these are, and not the input that is counted here.
                    Some(runs) => self.for_each_part_of_runs(column, runs, first..first + rows, &dims, &mut part)?,
                    None => self.for_each_part(column, input, row, rows, &dims, &mut part)?,
                }
                row += rows;
            }
        }
        Ok(())
    }

    /// Calls `part` for rows of the output that consist of runs of input rows.
    fn for_each_part_of_runs(
        &mut self,
        column: u32,
        runs: &[Segment],
        rows: Range<u64>,
        dims: &[u64],
        part: &mut PartVisit<'_>,
    ) -> Result<()> {
        let mut shape = dims.to_vec();
        shape[0] = rows.end - rows.start;
        let pieces: Vec<Piece> = pieces_of(runs, &rows, &shape).collect();
        let (mut gathered_rows, mut gathered) = (0, Vec::new());
        // Addresses within a file are resolved for the rows of one input at once.
        for of_input in pieces.chunk_by(|one, other| one.input == other.input) {
            self.for_each_part_of_pieces(column, of_input, &shape, &mut |rows, canonical| {
                gathered_rows += rows;
                gathered.extend(canonical);
                match gathered.len() < CANONICAL_PART_LEN_BYTES {
                    true => Ok(ControlFlow::Continue(())),
                    false => part(std::mem::take(&mut gathered_rows), std::mem::take(&mut gathered)),
                }
            })?;
        }
        if gathered_rows > 0 { part(gathered_rows, gathered).map(drop) } else { Ok(()) }
    }

    /// Calls `part` for pieces of one input, which follow one another in the output.
    fn for_each_part_of_pieces(
        &mut self,
        column: u32,
        pieces: &[Piece],
        shape: &[u64],
        part: &mut PartVisit<'_>,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Ok(()) };
        let (input, start) = (first.input, first.target[0]);
        self.find(column, input)?;
        let class = self.stored_class(column, input);
        let is_through_library =
            self.current.as_ref().is_some_and(|current| current.dataset.layout.is_through_library());
        if pieces.len() == 1 || is_through_library || !class.is_file_local() {
            return pieces.iter().try_for_each(|piece| {
                self.for_each_part(column, input, piece.source.start[0], piece.source.count[0], shape, part)
            });
        }
        let mut count = shape.to_vec();
        count[0] = last.target[0] + last.source.count[0] - start;
        let mut stored = vec![0; (count.iter().product::<u64>() * class.len_bytes()) as usize];
        let moved = pieces.iter().cloned().map(|mut piece| {
            piece.target[0] -= start;
            piece
        });
        self.read_pieces(column, moved, &mut stored, &count)?;
        self.resolve(column, input, count[0], &stored, part)
    }

    /// Returns canonical bytes of rows of an input's part of a column, converted for the output. Use it only for rows
    /// whose content is known to be small.
    pub fn canonical_rows(&mut self, column: u32, input: u32, row: u64, rows: u64, dims: &[u64]) -> Result<Vec<u8>> {
        let mut canonical = Vec::new();
        self.for_each_part(column, input, row, rows, dims, &mut |_, bytes| {
            canonical.extend(bytes);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(canonical)
    }

    /// Returns the number and the canonical bytes of the first of `rows` of an input's part of a column: few rows if they
    /// are long.
    pub fn first_canonical_rows(
        &mut self,
        column: u32,
        input: u32,
        rows: Range<u64>,
        dims: &[u64],
    ) -> Result<(u64, Vec<u8>)> {
        let mut first = (0, Vec::new());
        self.for_each_part(column, input, rows.start, rows.end - rows.start, dims, &mut |rows, canonical| {
            first = (rows, canonical);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    /// Calls `part` for rows of an input's part of a column, converted for the output.
    fn for_each_part(
        &mut self,
        column: u32,
        input: u32,
        row: u64,
        rows: u64,
        dims: &[u64],
        part: &mut PartVisit<'_>,
    ) -> Result<()> {
        let plan = self.plan;
        self.find(column, input)?;
        let path = plan.schema.column_path(column);
        let class = self.stored_class(column, input);
        if let Some(current) = &self.current
            && current.dataset.layout.is_through_library()
        {
            let row = row + plan.schema.columns[column as usize].trim_of(input).map_or(0, |trim| trim.leading);
            let values = self.library.read_values(current.file.path(), path, Some(row..row + rows));
            let values = values.map_err(|error| self.named(column, error.into()))?;
            return part(rows, self.with_suffix_of(column, input, values)).map(drop);
        }
        let mut count = dims.to_vec();
        count[0] = rows;
        let mut start = vec![0; dims.len()];
        let origin = start.clone();
        start[0] = row;
        let elements: u64 = count.iter().product();
        let mut stored = vec![0; (elements * class.len_bytes()) as usize];
        let target = BoxTarget { bytes: &mut stored, shape: &count, origin: &origin };
        self.read_piece(column, input, &Extent::new(&start, &count), target)?;
        self.resolve(column, input, rows, &stored, part)
    }

    /// Calls `part` for `rows` rows of an input, which are `stored`.
    fn resolve(&mut self, column: u32, input: u32, rows: u64, stored: &[u8], part: &mut PartVisit<'_>) -> Result<()> {
        let class = self.stored_class(column, input);
        if !class.is_file_local() || stored.is_empty() {
            return part(rows, self.with_suffix_of(column, input, stored.to_vec())).map(drop);
        }
        let file = self.pool.get(input)?;
        let tree = self.tree_for(&class, input, &file)?;
        let mut resolver = Resolver::new(&file, &tree);
        let mut unresolved = resolver.rows(&class, stored, stored.len() / rows as usize);
        loop {
            let mut canonical = Vec::new();
            let resolved = unresolved.append_until(CANONICAL_PART_LEN_BYTES, &mut canonical);
            let rows = resolved.map_err(|error| self.named(column, error.into()))?;
            if rows == 0 || part(rows, self.with_suffix_of(column, input, canonical))?.is_break() {
                return Ok(());
            }
        }
    }

    /// Returns canonical bytes of strings of an input with the suffix that they get in the output, if there is one.
    fn with_suffix_of(&self, column: u32, input: u32, canonical: Vec<u8>) -> Vec<u8> {
        let scanned = &self.plan.schema.columns[column as usize];
        match scanned.conversion_of(input).map(|conversion| &conversion.map) {
            Some(ElementMap::Suffix(suffix)) => with_suffix(&scanned.model().datatype.class, &canonical, suffix),
            _ => canonical,
        }
    }

    /// Returns the type of an input's elements before their addresses are resolved. Files may have addresses of different
    /// sizes.
    fn stored_class(&self, column: u32, input: u32) -> Arc<TypeClass> {
        let scanned = &self.plan.schema.columns[column as usize];
        let template = scanned.templates.get(scanned.facts[input as usize].template as usize);
        let stored = template.filter(|template| template.datatype.class.is_file_local() && scanned.is_file_local());
        Arc::clone(&stored.map_or(scanned.model(), |template| template).datatype.class)
    }

    /// Returns the file tree needed to resolve elements of `class` in an input. References need all objects, which are
    /// read again and kept for the next block; other types only need the encoding of addresses.
    fn tree_for(&mut self, class: &TypeClass, input: u32, file: &InputFile) -> Result<Arc<FileTree>> {
        if !class.has_reference() {
            let encoding = self.plan.inputs[input as usize].encoding;
            return Ok(Arc::new(FileTree {
                superblock_version: 0,
                userblock_len_bytes: encoding.base,
                address_len_bytes: encoding.address_len_bytes,
                length_len_bytes: encoding.length_len_bytes,
                objects: Vec::new(),
            }));
        }
        if let Some((known, tree)) = &self.tree
            && *known == input
        {
            return Ok(Arc::clone(tree));
        }
        let tree = Arc::new(self.library.read_tree(file.path())?);
        self.tree = Some((input, Arc::clone(&tree)));
        Ok(tree)
    }
}
