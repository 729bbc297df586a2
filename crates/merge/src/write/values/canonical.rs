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
use std::ops::Range;
use std::sync::Arc;

/// Number of bytes of file-local elements read at once. The size counts descriptors; it bounds the memory for
/// variable-length data.
const CANONICAL_BLOCK_LEN_BYTES: u64 = 1 << 20;
/// Size of an empty string in canonical bytes, which consist only of its length.
const EMPTY_TEXT_LEN_BYTES: usize = 8;

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
                let rows = block_rows.min(fact.rows - row).min(cut_rows - out_row % cut_rows);
                let canonical = match &scanned.runs {
                    // They decide which rows of the output these are, and not the input that is counted here.
                    Some(runs) => self.canonical_runs(column, runs, out_row..out_row + rows, &dims)?,
                    None => self.canonical_rows(column, input, row, rows, &dims)?,
                };
                let canonical = if let Some(shifts) = &shifts {
                    let shift = |path: &[u8]| shifts.of(path, input);
                    shift_regions(&class, &canonical, &shift).ok_or_else(|| MergeError::Object {
                        object: display_path(plan.schema.column_path(column)),
                        reason: "holds a region reference that does not fit its dataset".to_owned(),
                    })?
                } else {
                    canonical
                };
                visit(out_row, rows, &canonical)?;
                row += rows;
                out_row += rows;
            }
        }
        Ok(())
    }

    /// Returns canonical bytes of rows of the output that consist of runs of input rows.
    fn canonical_runs(&mut self, column: u32, runs: &[Segment], rows: Range<u64>, dims: &[u64]) -> Result<Vec<u8>> {
        let mut shape = dims.to_vec();
        shape[0] = rows.end - rows.start;
        let pieces: Vec<Piece> = pieces_of(runs, &rows, &shape).collect();
        let mut canonical = Vec::new();
        // Addresses within a file are resolved for the rows of one input at once.
        for of_input in pieces.chunk_by(|one, other| one.input == other.input) {
            canonical.extend(self.canonical_pieces(column, of_input, &shape)?);
        }
        Ok(canonical)
    }

    /// Returns canonical bytes of pieces of one input, which follow one another in the output.
    fn canonical_pieces(&mut self, column: u32, pieces: &[Piece], shape: &[u64]) -> Result<Vec<u8>> {
        let [first, .., last] = pieces else {
            let rows = |piece: &Piece| (piece.input, piece.source.start[0], piece.source.count[0]);
            let found =
                pieces.first().map(rows).map(|(input, row, rows)| self.canonical_rows(column, input, row, rows, shape));
            return found.unwrap_or(Ok(Vec::new()));
        };
        let (input, start) = (first.input, first.target[0]);
        self.find(column, input)?;
        let class = self.stored_class(column, input);
        let is_through_library =
            self.current.as_ref().is_some_and(|current| current.dataset.layout.is_through_library());
        if is_through_library || !class.is_file_local() {
            let mut canonical = Vec::new();
            for piece in pieces {
                canonical.extend(self.canonical_rows(
                    column,
                    input,
                    piece.source.start[0],
                    piece.source.count[0],
                    shape,
                )?);
            }
            return Ok(canonical);
        }
        let mut count = shape.to_vec();
        count[0] = last.target[0] + last.source.count[0] - start;
        let mut stored = vec![0; (count.iter().product::<u64>() * class.len_bytes()) as usize];
        let moved = pieces.iter().cloned().map(|mut piece| {
            piece.target[0] -= start;
            piece
        });
        self.read_pieces(column, moved, &mut stored, &count)?;
        let canonical = self.canonical_of(column, input, &stored)?;
        Ok(self.with_suffix_of(column, input, canonical))
    }

    /// Returns canonical bytes of rows of an input's part of a column, converted for the output.
    pub fn canonical_rows(&mut self, column: u32, input: u32, row: u64, rows: u64, dims: &[u64]) -> Result<Vec<u8>> {
        let canonical = self.canonical_rows_of_input(column, input, row, rows, dims)?;
        Ok(self.with_suffix_of(column, input, canonical))
    }

    /// Returns canonical bytes of strings of an input with the suffix that they get in the output, if there is one.
    fn with_suffix_of(&self, column: u32, input: u32, canonical: Vec<u8>) -> Vec<u8> {
        let scanned = &self.plan.schema.columns[column as usize];
        match scanned.conversion_of(input).map(|conversion| &conversion.map) {
            Some(ElementMap::Suffix(suffix)) => with_suffix(&scanned.model().datatype.class, &canonical, suffix),
            _ => canonical,
        }
    }

    fn canonical_rows_of_input(
        &mut self,
        column: u32,
        input: u32,
        row: u64,
        rows: u64,
        dims: &[u64],
    ) -> Result<Vec<u8>> {
        let plan = self.plan;
        self.find(column, input)?;
        let path = plan.schema.column_path(column);
        let class = self.stored_class(column, input);
        if let Some(current) = &self.current
            && current.dataset.layout.is_through_library()
        {
            let row = row + plan.schema.columns[column as usize].trim_of(input).map_or(0, |trim| trim.leading);
            let values = self.library.read_values(current.file.path(), path, Some(row..row + rows));
            return values.map_err(|error| self.named(column, error.into()));
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
        if !class.is_file_local() {
            return Ok(stored);
        }
        self.canonical_of(column, input, &stored)
    }

    /// Returns the type of an input's elements before their addresses are resolved. Files may have addresses of different
    /// sizes.
    fn stored_class(&self, column: u32, input: u32) -> Arc<TypeClass> {
        let scanned = &self.plan.schema.columns[column as usize];
        let template = scanned.templates.get(scanned.facts[input as usize].template as usize);
        let stored = template.filter(|template| template.datatype.class.is_file_local() && scanned.is_file_local());
        Arc::clone(&stored.map_or(scanned.model(), |template| template).datatype.class)
    }

    fn canonical_of(&mut self, column: u32, input: u32, stored: &[u8]) -> Result<Vec<u8>> {
        let class = self.stored_class(column, input);
        let file = self.pool.get(input)?;
        let tree = self.tree_for(&class, input, &file)?;
        let mut canonical = Vec::new();
        Resolver::new(&file, &tree)
            .canonical(&class, stored, &mut canonical)
            .map_err(|error| self.named(column, error.into()))?;
        Ok(canonical)
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
