//! Sparse matrices.
//!
//! Comments describe concatenation along observations. Along variables, rows and columns, and CSR and CSC, are
//! exchanged. Invariant: column numbers in the output refer to columns of the same names.

use super::along::{Along, common_type};
use super::names::Alignment;
use super::output::{AssembledTree, InputPiece, PieceDifferences, cast, constant_like};
use super::tree::{CombineResult, Node};
use crate::conventions::Axis;
use crate::rules::{ElementMap, InputConversion, Pick, PickForm, PositionForm, Rule};
use crate::schema::attribute::{named, numbers, replaced, with_integers};
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

/// Adds sparse matrices. Those stored by the axis of concatenation (CSR for observations) are concatenated; others are
/// interleaved, column by column.
pub(super) fn rows(
    path: Vec<u8>,
    nodes: &[Node<'_>],
    columns: Columns<'_>,
    along: Along<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let first = nodes[0];
    let total: u64 = along.rows.iter().sum();
    let kind = first.encoding();
    let (by_columns, advice) = match along.axis {
        Axis::Obs => ("csc_matrix", "CSR first, by tocsr()"),
        Axis::Var => ("csr_matrix", "CSC first, by tocsc()"),
    };
    let shape_of = |rows: u64, columns: u64| match along.axis {
        Axis::Obs => [rows, columns],
        Axis::Var => [columns, rows],
    };
    // Row numbers are shifted by the number of rows of the earlier inputs.
    let is_shifted = kind == by_columns || matches!(columns, Columns::Observations);
    let mut maps = Vec::with_capacity(nodes.len());
    let mut picks: Vec<Option<Pick>> = vec![None; nodes.len()];
    let mut before = 0;
    for (node, &rows) in nodes.iter().zip(along.rows) {
        node.expect(&[("csr_matrix", "0.1.0"), ("csc_matrix", "0.1.0")])?;
        if node.encoding() != kind {
            return node.refuse(kind, format!("{}; convert one of them with tocsr()", node.encoding()));
        }
        let input_columns = match columns {
            Columns::Aligned(alignment) => alignment.lens[node.input as usize],
            Columns::Observations => rows,
        };
        let Some(shape) = named(node.attributes(), "shape") else { return node.refuse("an attribute shape", "none") };
        let expected = shape_of(rows, input_columns);
        if numbers(shape) != Some(expected.map(|size| size as f64).to_vec()) {
            return node
                .refuse(format!("shape {expected:?}"), format!("shape {}", crate::schema::attribute::words(shape)));
        }
        if let Some(stray) = node.children().find(|child| !PARTS.contains(&child.name())) {
            return stray.refuse("only data, indices and indptr in a sparse matrix", "another object");
        }
        let [data, indices, bounds] = [node.dataset(PARTS[0])?, node.dataset(PARTS[1])?, node.dataset(PARTS[2])?];
        if data.dims() != indices.dims() || data.dims().map(|dims| dims.len()) != Some(1) {
            let sizes = |node: Node<'_>| format!("sizes {:?}", node.dims().unwrap_or_default());
            return data
                .refuse(format!("one axis, as long as that of indices, which has {}", sizes(indices)), sizes(data));
        }
        let groups = if kind == by_columns { input_columns } else { rows };
        if bounds.dims().as_deref() != Some(&[groups + 1]) {
            return bounds
                .refuse(format!("{} positions", groups + 1), format!("sizes {:?}", bounds.dims().unwrap_or_default()));
        }
        maps.push(match columns {
            _ if before == 0 && is_shifted => ElementMap::Same,
            _ if is_shifted => ElementMap::Shift(before as i64),
            Columns::Observations => ElementMap::Same,
            Columns::Aligned(alignment) if alignment.of_inputs[node.input as usize].is_none() => ElementMap::Same,
            Columns::Aligned(alignment) => {
                let places = alignment.places(node.input as usize);
                let is_picked = places.contains(&None);
                if is_picked {
                    let is_taken = places.iter().map(Option::is_some).collect();
                    let path = child_path(&path, PARTS[1]);
                    picks[maps.len()] = out.pick(&path, indices, is_taken, PickForm::Elements);
                }
                match is_picked && picks[maps.len()].is_none() {
                    // The first plan, with which they are counted, includes all of them.
                    true => ElementMap::Same,
                    false => ElementMap::Lookup(places.into_iter().map(|place| place.map_or(0, i64::from)).collect()),
                }
            }
        });
        before += rows;
    }
    let part = |name: &[u8]| nodes.iter().map(|node| node.dataset(name)).collect::<CombineResult<Vec<_>>>();
    let len = match columns {
        Columns::Aligned(alignment) => alignment.len,
        Columns::Observations => total,
    };
    let attributes = named(first.attributes(), "shape")
        .and_then(|shape| with_integers(shape, &shape_of(total, len).map(|size| size as i64)))
        .map(|shape| replaced(first.attributes(), shape));
    let Some(attributes) = attributes else { return first.refuse("a shape of two integers", "another one") };
    out.group(path.clone(), first, attributes);
    let interleaved = match columns {
        Columns::Aligned(alignment) if kind == by_columns => Some(interleave(nodes, alignment, advice)?),
        _ => None,
    };
    let runs = interleaved.as_ref().map(|interleaved| interleaved.runs.clone());

    let data = part(PARTS[0])?;
    // scipy gives a new matrix without columns the type float64.
    let is_new = |node: &Node<'_>| match columns {
        Columns::Aligned(alignment) => {
            let input = node.input as usize;
            alignment.lens[input] == 0 && alignment.of_inputs[input].is_some()
        }
        Columns::Observations => false,
    };
    let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
    let kinds: Vec<_> = data.iter().map(|node| if is_new(node) { Some(double) } else { node.number() }).collect();
    let number = common_type(&data, &kinds)?;
    let is_wide = |node: &Node<'_>| matches!(node.number(), Some(NumberType::Integer { len_bytes: 8, .. }));
    let rule = (number.is_some_and(|number| !number.is_integer()) && data.iter().any(is_wide)).then(Rule::default);
    let pieces =
        data.iter().zip(&picks).map(|(&node, pick)| converted(node, cast(node.number(), number), pick.clone()));
    let pieces = pieces.collect();
    out.rows(
        child_path(&path, PARTS[0]),
        pieces,
        PieceDifferences { number, rule, runs: runs.clone(), ..PieceDifferences::default() },
    )?;

    let largest = if is_shifted { total } else { len }.saturating_sub(1);
    let indices = part(PARTS[1])?;
    let kinds: Vec<_> = indices.iter().map(|node| node.number().filter(|number| number.is_integer())).collect();
    let widest = common_type(&indices, &kinds)?.or(kinds[0]);
    let Some(number) = widest.and_then(|number| number.widened_to(largest)) else {
        return indices[0].refuse("numbers of columns", "values of another type");
    };
    let pieces = indices.iter().zip(maps).zip(&picks).map(|((&node, map), pick)| match map {
        ElementMap::Same => converted(node, cast(node.number(), Some(number)), pick.clone()),
        map => converted(node, map, pick.clone()),
    });
    let form = PieceDifferences {
        number: (indices[0].number() != Some(number)).then_some(number),
        runs,
        ..PieceDifferences::default()
    };
    out.rows(child_path(&path, PARTS[1]), pieces.collect(), form)?;

    if let Some(interleaved) = interleaved {
        return interleaved.write_bounds(child_path(&path, PARTS[2]), part(PARTS[2])?[0], out);
    }

    let rule = Rule::positions(child_path(&path, PARTS[1]), PositionForm::Bounds);
    let pieces = part(PARTS[2])?.into_iter().zip(picks).map(|(node, pick)| {
        let pick = pick.map(|pick| Pick { form: PickForm::Positions, ..pick });
        converted(node, ElementMap::Same, pick)
    });
    let pieces = pieces.collect();
    out.rows(child_path(&path, PARTS[2]), pieces, PieceDifferences { rule: Some(rule), ..PieceDifferences::default() })
}

/// Columns of all inputs, one after another; each column holds the observations of each input.
struct InterleavedColumns {
    runs: Vec<Segment>,
    /// Beginning of each column, followed by the end of the last.
    bounds: Vec<i64>,
}

/// Maximum number of runs of elements, of 32 bytes each.
const MAX_RUNS: u64 = 4 << 20;

fn interleave(nodes: &[Node<'_>], alignment: &Alignment, advice: &str) -> CombineResult<InterleavedColumns> {
    if alignment.len.saturating_mul(nodes.len() as u64) > MAX_RUNS {
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
