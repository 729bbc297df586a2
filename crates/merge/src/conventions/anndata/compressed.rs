//! Sparse matrices.
//!
//! Comments describe concatenation along observations. For concatenation along variables, exchange rows and columns,
//! and CSR and CSC. Invariant: column numbers in the output refer to columns of the same names.

use super::along::{AxisConcatenation, common_type};
use super::names::Alignment;
use super::output::{AssembledTree, InputPiece, PieceDifferences, cast, constant_like};
use super::tree::{CombineResult, Node};
use crate::conventions::Axis;
use crate::rules::{ElementMap, InputConversion, Pick, PickForm, PositionForm, Rule};
use crate::schema::attribute::{named, numbers, replaced, with_integers, words};
use crate::schema::child_path;
use raddle_core::plan::Segment;
use raddle_hdf5::number::NumberType;

/// Conversion of column numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Columns<'a> {
    /// Columns are matched with the columns of the output.
    Aligned(&'a Alignment),
    /// Columns are observations of the same input, so the number of observations before them is added.
    Observations,
}

impl Columns<'_> {
    /// Returns the number of columns of `node`, which has `rows` rows.
    fn of_input(self, node: Node<'_>, rows: u64) -> u64 {
        match self {
            Self::Aligned(alignment) => alignment.lens[node.input as usize],
            Self::Observations => rows,
        }
    }

    /// Returns whether scipy recreates the matrix of `node`, because the output has none of its columns.
    fn is_new(self, node: Node<'_>) -> bool {
        let input = node.input as usize;
        match self {
            Self::Aligned(alignment) => alignment.lens[input] == 0 && alignment.of_inputs[input].is_some(),
            Self::Observations => false,
        }
    }
}

/// Storage of sparse matrices that are concatenated along an axis.
struct MatrixForm {
    axis: Axis,
    /// Encoding of all matrices: `csr_matrix` or `csc_matrix`.
    encoding: String,
    /// Whether the matrices are stored column by column.
    is_by_columns: bool,
}

impl MatrixForm {
    fn new(first: Node<'_>, axis: Axis) -> Self {
        let by_columns = match axis {
            Axis::Obs => "csc_matrix",
            Axis::Var => "csr_matrix",
        };
        let encoding = first.encoding();
        Self { axis, is_by_columns: encoding == by_columns, encoding }
    }

    /// Returns the value of `shape` of a matrix.
    fn shape(&self, rows: u64, columns: u64) -> [u64; 2] {
        match self.axis {
            Axis::Obs => [rows, columns],
            Axis::Var => [columns, rows],
        }
    }

    /// Refuses a matrix whose parts do not have the form and sizes that readers expect.
    fn check(&self, node: Node<'_>, rows: u64, columns: u64) -> CombineResult<()> {
        node.expect(&[("csr_matrix", "0.1.0"), ("csc_matrix", "0.1.0")])?;
        if node.encoding() != self.encoding {
            return node.refuse(&self.encoding, format!("{}; convert one of them with tocsr()", node.encoding()));
        }
        let Some(shape) = named(node.attributes(), "shape") else { return node.refuse("an attribute shape", "none") };
        let expected = self.shape(rows, columns);
        if numbers(shape) != Some(expected.map(|size| size as f64).to_vec()) {
            return node.refuse(format!("shape {expected:?}"), format!("shape {}", words(shape)));
        }
        if let Some(stray) = node.children().find(|child| !PARTS.contains(&child.name())) {
            return stray.refuse("only data, indices and indptr in a sparse matrix", "another object");
        }
        let [data, indices, bounds] = [node.dataset(PARTS[0])?, node.dataset(PARTS[1])?, node.dataset(PARTS[2])?];
        let sizes = |node: Node<'_>| format!("sizes {:?}", node.dims().unwrap_or_default());
        if data.dims() != indices.dims() || data.dims().map(|dims| dims.len()) != Some(1) {
            return data
                .refuse(format!("one axis, as long as that of indices, which has {}", sizes(indices)), sizes(data));
        }
        let groups = if self.is_by_columns { columns } else { rows };
        match bounds.dims().as_deref() == Some(&[groups + 1]) {
            true => Ok(()),
            false => bounds.refuse(format!("{} positions", groups + 1), sizes(bounds)),
        }
    }
}

/// Adds sparse matrices. Matrices that are stored by the axis of concatenation (CSR for observations) are concatenated;
/// the others are interleaved, column by column.
pub(super) fn rows(
    path: Vec<u8>,
    nodes: &[Node<'_>],
    columns: Columns<'_>,
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let first = nodes[0];
    let form = MatrixForm::new(first, along.axis);
    // Row numbers are shifted by the number of rows of the earlier inputs.
    let is_shifted = form.is_by_columns || matches!(columns, Columns::Observations);
    let mut conversions = Vec::with_capacity(nodes.len());
    let mut before = 0;
    for (&node, &rows) in nodes.iter().zip(along.rows) {
        form.check(node, rows, columns.of_input(node, rows))?;
        conversions.push(match columns {
            _ if is_shifted && before > 0 => (ElementMap::Shift(before as i64), None),
            Columns::Aligned(alignment) if !is_shifted => aligned(&path, node, alignment, out)?,
            _ => (ElementMap::Same, None),
        });
        before += rows;
    }
    let total = before;
    let len = match columns {
        Columns::Aligned(alignment) => alignment.len,
        Columns::Observations => total,
    };
    let attributes = named(first.attributes(), "shape")
        .and_then(|shape| with_integers(shape, &form.shape(total, len).map(|size| size as i64)))
        .map(|shape| replaced(first.attributes(), shape));
    let Some(attributes) = attributes else { return first.refuse("a shape of two integers", "another one") };
    out.group(path.clone(), first, attributes);
    let interleaved = match columns {
        Columns::Aligned(alignment) if form.is_by_columns => Some(interleave(nodes, alignment, along.axis)?),
        _ => None,
    };
    let runs = interleaved.as_ref().map(|interleaved| interleaved.runs.clone());
    let part = |name: &[u8]| nodes.iter().map(|node| node.dataset(name)).collect::<CombineResult<Vec<_>>>();

    let picks = conversions.iter().map(|(_, pick)| pick.clone());
    write_data(child_path(&path, PARTS[0]), part(PARTS[0])?, columns, picks, runs.clone(), out)?;
    let largest = if is_shifted { total } else { len }.saturating_sub(1);
    write_indices(child_path(&path, PARTS[1]), part(PARTS[1])?, &conversions, largest, runs, out)?;
    if let Some(interleaved) = interleaved {
        return interleaved.write_bounds(child_path(&path, PARTS[2]), part(PARTS[2])?[0], out);
    }
    let rule = Rule::positions(child_path(&path, PARTS[1]), PositionForm::Bounds);
    let pieces = part(PARTS[2])?.into_iter().zip(conversions).map(|(node, (_, pick))| {
        let pick = pick.map(|pick| Pick { form: PickForm::Positions, ..pick });
        converted(node, ElementMap::Same, pick)
    });
    let form = PieceDifferences { rule: Some(rule), ..PieceDifferences::default() };
    out.rows(child_path(&path, PARTS[2]), pieces.collect(), form)
}

/// Returns the conversion of the column numbers of the matrix at `path` to those of the output, and the selection of
/// its elements if the output lacks some of its columns.
fn aligned(
    path: &[u8],
    node: Node<'_>,
    alignment: &Alignment,
    out: &mut AssembledTree,
) -> CombineResult<(ElementMap, Option<Pick>)> {
    let input = node.input as usize;
    if alignment.of_inputs[input].is_none() {
        return Ok((ElementMap::Same, None));
    }
    let places = alignment.places(input);
    let is_picked = places.contains(&None);
    let pick = match is_picked {
        true => {
            let is_taken = places.iter().map(Option::is_some).collect();
            out.pick(&child_path(path, PARTS[1]), node.dataset(PARTS[1])?, is_taken, PickForm::Elements)
        }
        false => None,
    };
    Ok(match is_picked && pick.is_none() {
        // The first plan is used to count them, so it includes all of them.
        true => (ElementMap::Same, None),
        false => (ElementMap::Lookup(places.into_iter().map(|place| place.map_or(0, i64::from)).collect()), pick),
    })
}

/// Adds the values of sparse matrices.
fn write_data(
    path: Vec<u8>,
    nodes: Vec<Node<'_>>,
    columns: Columns<'_>,
    picks: impl Iterator<Item = Option<Pick>>,
    runs: Option<Vec<Segment>>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    // scipy gives a new matrix without columns the type float64.
    let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
    let kinds: Vec<_> =
        nodes.iter().map(|&node| if columns.is_new(node) { Some(double) } else { node.number() }).collect();
    let number = common_type(&nodes, &kinds)?;
    let is_wide = |node: &Node<'_>| matches!(node.number(), Some(NumberType::Integer { len_bytes: 8, .. }));
    let rule = (number.is_some_and(|number| !number.is_integer()) && nodes.iter().any(is_wide)).then(Rule::default);
    let pieces = nodes.iter().zip(picks).map(|(&node, pick)| converted(node, cast(node.number(), number), pick));
    let pieces = pieces.collect();
    out.rows(path, pieces, PieceDifferences { number, rule, runs, ..PieceDifferences::default() })
}

/// Adds the row or column numbers of sparse matrices, as integers that hold `largest`.
fn write_indices(
    path: Vec<u8>,
    nodes: Vec<Node<'_>>,
    conversions: &[(ElementMap, Option<Pick>)],
    largest: u64,
    runs: Option<Vec<Segment>>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let kinds: Vec<_> = nodes.iter().map(|node| node.number().filter(|number| number.is_integer())).collect();
    let widest = common_type(&nodes, &kinds)?.or(kinds[0]);
    let Some(number) = widest.and_then(|number| number.widened_to(largest)) else {
        return nodes[0].refuse("numbers of columns", "values of another type");
    };
    let pieces = nodes.iter().zip(conversions).map(|(&node, (map, pick))| match map {
        ElementMap::Same => converted(node, cast(node.number(), Some(number)), pick.clone()),
        map => converted(node, map.clone(), pick.clone()),
    });
    let form = PieceDifferences {
        number: (nodes[0].number() != Some(number)).then_some(number),
        runs,
        ..PieceDifferences::default()
    };
    out.rows(path, pieces.collect(), form)
}

/// Columns of all inputs, one after another; each column holds the observations of each input.
struct InterleavedColumns {
    runs: Vec<Segment>,
    /// Beginning of each column, followed by the end of the last.
    bounds: Vec<i64>,
}

/// Maximum number of runs of elements, of 32 bytes each.
const MAX_RUNS: u64 = 4 << 20;

fn interleave(nodes: &[Node<'_>], alignment: &Alignment, axis: Axis) -> CombineResult<InterleavedColumns> {
    if alignment.len.saturating_mul(nodes.len() as u64) > MAX_RUNS {
        let advice = match axis {
            Axis::Obs => "CSR first, by tocsr()",
            Axis::Var => "CSC first, by tocsc()",
        };
        let found = format!("{} inputs with {} each; write them as {advice}", nodes.len(), alignment.len);
        return nodes[0].refuse("rows or columns of inputs that can be interleaved in memory", found);
    }
    let mut all_positions = Vec::with_capacity(nodes.len());
    for node in nodes {
        let bounds = node.dataset(PARTS[2])?;
        let len = node.dataset(PARTS[0])?.dims().map_or(0, |dims| dims[0]);
        let mut positions = Vec::new();
        let is_read = bounds
            .number()
            .is_some_and(|number| number.decode_integers(bounds.kept().map_or(&[], |kept| kept), &mut positions));
        let is_whole =
            positions.first() == Some(&0) && positions.last() == Some(&(len as i64)) && positions.is_sorted();
        if !is_read || !is_whole {
            return bounds.refuse(format!("ascending positions from 0 to {len}"), "others");
        }
        all_positions.push(positions);
    }
    let (mut runs, mut bounds): (Vec<Segment>, Vec<i64>) = (Vec::new(), vec![0]);
    let mut next = 0;
    for column in 0..alignment.len as usize {
        for (node, positions) in nodes.iter().zip(&all_positions) {
            let place = match &alignment.of_inputs[node.input as usize] {
                Some(from) => from[column].map(|at| at as usize),
                None => Some(column),
            };
            let Some(at) = place else { continue };
            let (source_row, rows) = (positions[at] as u64, (positions[at + 1] - positions[at]) as u64);
            match runs.last_mut() {
                _ if rows == 0 => {}
                Some(last) if last.input == node.input && last.source_row + last.rows == source_row => {
                    last.rows += rows
                }
                _ => runs.push(Segment { input: node.input, start: next, rows, source_row }),
            }
            next += rows;
        }
        bounds.push(next as i64);
    }
    Ok(InterleavedColumns { runs, bounds })
}

impl InterleavedColumns {
    fn write_bounds(&self, path: Vec<u8>, like: Node<'_>, out: &mut AssembledTree) -> CombineResult<()> {
        let end = self.bounds.last().copied().unwrap_or(0);
        let number = like.number().and_then(|number| number.widened_to(end as u64));
        let (Some(number), Some((model, _))) = (number, like.column()) else {
            return like.refuse("positions", "values of another type");
        };
        let mut value = Vec::new();
        if number.encode_integers(&self.bounds, &mut value).is_err() {
            return like.refuse(format!("integers up to {end}"), "numbers of another kind");
        }
        let class = if like.number() == Some(number) { (*model.datatype.class).clone() } else { number.class() };
        out.constant(path, like, constant_like(model, &class, vec![self.bounds.len() as u64]), value);
        Ok(())
    }
}

const PARTS: [&[u8]; 3] = [b"data", b"indices", b"indptr"];

fn converted(node: Node<'_>, map: ElementMap, pick: Option<Pick>) -> InputPiece<'_> {
    InputPiece { conversion: InputConversion { map, pick, gather: None }, ..InputPiece::of(node) }
}
