//! Rows of a whole column, read from all inputs that hold them.
//!
//! Invariant: rows are in the order of the output.

use super::ColumnReader;
use crate::error::Result;
use crate::plan::fill_pattern::FillPattern;
use crate::schema::ABSENT;
use crate::schema::boxes::BoxLayout;
use raddle_core::plan::extent::{BoxSource, BoxTarget, Coordinates, Extent, copy_box, fill_with};
use raddle_core::plan::{ArrayPlan, Piece, Segment};
use raddle_hdf5::model::Layout;
use std::ops::Range;

/// Maximum length of rows that are read together because some of them are needed.
const SPAN_LEN_BYTES: u64 = 1 << 20;

impl ColumnReader<'_> {
    /// Returns all values of a column from all inputs. Use it only for columns that are known to be small.
    pub fn whole_column(&mut self, column: u32) -> Result<Vec<u8>> {
        let planned = &self.plan.columns[column as usize];
        let element_len_bytes = self.plan.schema.columns[column as usize].model().datatype.class.len_bytes();
        let mut values = vec![0; planned.logical_len_bytes(element_len_bytes) as usize];
        self.read_rows(column, 0..planned.dims[0], &mut values)?;
        Ok(values)
    }

    /// Reads a box of the concatenated column, which `array` plans, from all inputs that hold its values. `out` must
    /// have the size of the box.
    pub fn read_extent(&mut self, column: u32, array: &ArrayPlan, extent: &Extent, out: &mut [u8]) -> Result<()> {
        if array.hole_count() > 0 {
            fill_with(out, &FillPattern::of(self.plan.schema.columns[column as usize].model()).pattern);
        }
        self.read_pieces(column, array.pieces_in(extent), out, &extent.count)
    }

    /// Reads pieces of inputs to their places in a box of `shape`, the buffer `out`. Short runs of neighbouring rows
    /// are read together: read alone, each of them would need a search for its chunk.
    pub fn read_pieces(
        &mut self,
        column: u32,
        pieces: impl Iterator<Item = Piece>,
        out: &mut [u8],
        shape: &[u64],
    ) -> Result<()> {
        let limit = self.max_span_rows(column);
        let mut group: Vec<Piece> = Vec::new();
        for piece in pieces {
            let follows = |last: &Piece| last.source.end(0) <= piece.source.start[0] && last.input == piece.input;
            let fits = |first: &Piece| piece.source.end(0) - first.source.start[0] <= limit;
            if !(group.last().is_some_and(follows) && group.first().is_some_and(fits)) {
                self.read_group(column, &group, out, shape)?;
                group.clear();
            }
            group.push(piece);
        }
        self.read_group(column, &group, out, shape)
    }

    /// Returns the number of rows within which pieces are read together: the rows of a chunk, or fewer if they are
    /// long; 0 for a column that does not consist of runs.
    fn max_span_rows(&self, column: u32) -> u64 {
        let scanned = &self.plan.schema.columns[column as usize];
        if scanned.runs.is_none() || scanned.axis > 0 {
            return 0;
        }
        let chunk_rows = match &scanned.templates[0].layout {
            Layout::Chunked { chunk_shape, .. } => chunk_shape.first().copied().unwrap_or(1),
            _ => u64::MAX,
        };
        chunk_rows.min(SPAN_LEN_BYTES / self.plan.row_len_bytes(column).max(1))
    }

    /// Reads pieces of one input, whose rows ascend.
    fn read_group(&mut self, column: u32, group: &[Piece], out: &mut [u8], shape: &[u64]) -> Result<()> {
        let [first, .., last] = group else {
            return group.iter().try_for_each(|piece| {
                let target = BoxTarget { bytes: &mut *out, shape, origin: &piece.target };
                self.read_any(column, piece.input, &piece.source, target)
            });
        };
        let mut span = first.source.clone();
        span.count[0] = last.source.end(0) - first.source.start[0];
        let element_len_bytes = self.plan.schema.columns[column as usize].model().datatype.class.len_bytes() as usize;
        let mut bytes = std::mem::take(&mut self.span);
        bytes.clear();
        bytes.resize(span.element_count().unwrap_or(0) as usize * element_len_bytes, 0);
        let origin = Coordinates::from_elem(0, span.rank());
        let target = BoxTarget { bytes: &mut bytes, shape: &span.count, origin: &origin };
        let read = self.read_any(column, first.input, &span, target);
        let placed = read.and_then(|()| {
            let mut origin = origin;
            group.iter().try_for_each(|piece| {
                origin[0] = piece.source.start[0] - span.start[0];
                let from = BoxSource { bytes: &bytes, shape: &span.count, origin: &origin };
                let target = BoxTarget { bytes: &mut *out, shape, origin: &piece.target };
                Ok(copy_box(from, target, &piece.source.count, element_len_bytes)?)
            })
        });
        self.span = bytes;
        placed
    }

    /// Reads rows of the concatenated column, from all inputs that hold them. `out` must have the size of these rows.
    pub fn read_rows(&mut self, column: u32, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        let plan = self.plan;
        let scanned = &plan.schema.columns[column as usize];
        let mut shape = plan.columns[column as usize].dims.clone();
        shape[0] = rows.end - rows.start;
        if let Some(layout) = &scanned.boxes {
            return self.read_boxes(column, layout, rows, &shape, out);
        }
        if scanned.axis > 0 {
            return self.read_rows_along(column, scanned.axis, rows, &shape, out);
        }
        if let Some(runs) = &scanned.runs {
            return self.read_runs(column, runs, rows, &shape, out);
        }
        let mut first = 0;
        for (input, fact) in scanned.facts.iter().enumerate() {
            let (start, end) = (rows.start.max(first), rows.end.min(first + fact.rows));
            if start < end {
                let mut count = shape.clone();
                count[0] = end - start;
                let mut origin = vec![0; shape.len()];
                origin[0] = start - rows.start;
                let target = BoxTarget { bytes: &mut *out, shape: &shape, origin: &origin };
                let mut source = Extent::whole(&count);
                source.start[0] = start - first;
                if fact.template == ABSENT {
                    self.read_absent(column, input as u32, &source, target)?;
                } else {
                    self.read_piece(column, input as u32, &source, target)?;
                }
            }
            first += fact.rows;
        }
        Ok(())
    }

    /// Reads rows of a column whose output consists of runs of input rows in any order.
    fn read_runs(
        &mut self,
        column: u32,
        runs: &[Segment],
        rows: Range<u64>,
        shape: &[u64],
        out: &mut [u8],
    ) -> Result<()> {
        self.read_pieces(column, pieces_of(runs, &rows, shape), out, shape)
    }

    /// Reads rows of a column whose inputs are boxes of it; elements that no input has get the fill value.
    fn read_boxes(
        &mut self,
        column: u32,
        layout: &BoxLayout,
        rows: Range<u64>,
        shape: &[u64],
        out: &mut [u8],
    ) -> Result<()> {
        if layout.hole_count() > 0 {
            fill_with(out, &FillPattern::of(self.plan.schema.columns[column as usize].model()).pattern);
        }
        let mut wanted = Extent::whole(shape);
        wanted.start[0] = rows.start;
        for piece in layout.boxes.pieces_in(wanted) {
            let target = BoxTarget { bytes: &mut *out, shape, origin: &piece.target };
            self.read_any(column, piece.input, &piece.source, target)?;
        }
        Ok(())
    }

    /// Reads rows of a column whose inputs are concatenated along an axis other than the first.
    fn read_rows_along(
        &mut self,
        column: u32,
        axis: usize,
        rows: Range<u64>,
        shape: &[u64],
        out: &mut [u8],
    ) -> Result<()> {
        let scanned = &self.plan.schema.columns[column as usize];
        let mut first = 0;
        for (input, fact) in (0..).zip(scanned.facts.iter()).filter(|(_, fact)| fact.rows > 0) {
            let mut source = Extent::whole(shape);
            source.start[0] = rows.start;
            (source.start[axis], source.count[axis]) = (0, fact.rows);
            let mut origin = vec![0; shape.len()];
            origin[axis] = first;
            let target = BoxTarget { bytes: &mut *out, shape, origin: &origin };
            if fact.template == ABSENT {
                FillPattern::of(scanned.model()).fill_box(target, &source.count)?;
            } else {
                self.read_piece(column, input, &source, target)?;
            }
            first += fact.rows;
        }
        Ok(())
    }
}

/// Returns the pieces of which rows of a column consist. Positions are relative to the first row; `shape` is the shape
/// of the rows.
pub(super) fn pieces_of<'r>(
    runs: &'r [Segment],
    rows: &'r Range<u64>,
    shape: &'r [u64],
) -> impl Iterator<Item = Piece> + 'r {
    let first = runs.partition_point(|run| run.start + run.rows <= rows.start);
    runs[first..].iter().take_while(|run| run.start < rows.end).map(|run| {
        let (start, end) = (rows.start.max(run.start), rows.end.min(run.start + run.rows));
        let mut source = Extent::whole(shape);
        (source.start[0], source.count[0]) = (run.source_row + (start - run.start), end - start);
        let mut target = Coordinates::from_elem(0, shape.len());
        target[0] = start - rows.start;
        Piece { input: run.input, source, target }
    })
}
