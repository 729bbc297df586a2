//! Sparse matrices of observations.
//!
//! Invariant: numbers of columns in the output lead to the columns of the same names.

use super::along::{Along, common_type};
use super::names::Alignment;
use super::output::{Form, Output, Piece, cast};
use super::tree::{Node, Outcome};
use crate::rules::attribute::{named, numbers, replaced, with_integers};
use crate::rules::{ElementMap, InputConversion, NumberType, PositionForm, Rule};
use crate::schema::child_path;

/// What happens to the numbers of columns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Columns<'a> {
    /// They are matched.
    Aligned(&'a Alignment),
    /// They are observations of the same input: those before it are added.
    Observations,
}

/// Adds sparse matrices whose rows follow one another; also CSC where columns are observations.
pub(super) fn rows(
    path: Vec<u8>,
    nodes: &[Node<'_>],
    columns: Columns<'_>,
    along: Along<'_>,
    out: &mut Output,
) -> Outcome<()> {
    let first = nodes[0];
    let total: u64 = along.rows.iter().sum();
    let kind = first.encoding();
    let mut maps = Vec::with_capacity(nodes.len());
    let mut before = 0;
    for (node, &rows) in nodes.iter().zip(along.rows) {
        node.expect(&[("csr_matrix", "0.1.0"), ("csc_matrix", "0.1.0")])?;
        if node.encoding() != kind {
            return node.refuse(kind, format!("{}; convert one of them with tocsr()", node.encoding()));
        }
        if kind == "csc_matrix" && matches!(columns, Columns::Aligned(_)) {
            return node.refuse(
                "csr_matrix, whose rows can follow one another",
                "csc_matrix; write it as CSR first: adata.X = adata.X.tocsr()",
            );
        }
        let own_columns = match columns {
            Columns::Aligned(alignment) => alignment.lens[node.input as usize],
            Columns::Observations => rows,
        };
        let Some(shape) = named(node.attributes(), "shape") else { return node.refuse("an attribute shape", "none") };
        if numbers(shape) != Some(vec![rows as f64, own_columns as f64]) {
            return node.refuse(
                format!("shape ({rows}, {own_columns})"),
                format!("shape {}", crate::rules::attribute::words(shape)),
            );
        }
        if let Some(stray) = node.children().find(|child| !PARTS.contains(&child.name())) {
            return stray.refuse("data, indices and indptr", "another object");
        }
        let [data, indices, bounds] = [node.dataset(PARTS[0])?, node.dataset(PARTS[1])?, node.dataset(PARTS[2])?];
        if data.dims() != indices.dims() || data.dims().map(|dims| dims.len()) != Some(1) {
            return data.refuse("as many as indices", "another number");
        }
        if bounds.dims().as_deref() != Some(&[rows + 1]) {
            return bounds
                .refuse(format!("{} positions", rows + 1), format!("sizes {:?}", bounds.dims().unwrap_or_default()));
        }
        maps.push(match columns {
            Columns::Observations if before == 0 => ElementMap::Same,
            Columns::Observations => ElementMap::Shift(before as i64),
            Columns::Aligned(alignment) if alignment.of_inputs[node.input as usize].is_none() => ElementMap::Same,
            Columns::Aligned(alignment) => {
                let places = alignment.places(node.input as usize);
                if places.contains(&None) {
                    return node.refuse(
                        "columns that all inputs have",
                        "others, whose elements would have to be left out; --join outer keeps them",
                    );
                }
                ElementMap::Lookup(places.into_iter().flatten().map(i64::from).collect())
            }
        });
        before += rows;
    }
    let part = |name: &[u8]| nodes.iter().map(|node| node.dataset(name)).collect::<Outcome<Vec<_>>>();
    let len = match columns {
        Columns::Aligned(alignment) => alignment.len,
        Columns::Observations => total,
    };
    let attributes = named(first.attributes(), "shape")
        .and_then(|shape| with_integers(shape, &[total as i64, len as i64]))
        .map(|shape| replaced(first.attributes(), shape));
    let Some(attributes) = attributes else { return first.refuse("a shape of two integers", "another one") };
    out.group(path.clone(), first, attributes);

    let data = part(PARTS[0])?;
    let kinds: Vec<_> = data.iter().map(|node| node.number()).collect();
    let number = common_type(&data, &kinds)?;
    let is_wide = |node: &Node<'_>| matches!(node.number(), Some(NumberType::Integer { len_bytes: 8, .. }));
    let rule = (number.is_some_and(|number| !number.is_integer()) && data.iter().any(is_wide)).then(Rule::default);
    let pieces = data.iter().map(|&node| converted(node, cast(node.number(), number))).collect();
    out.rows(child_path(&path, PARTS[0]), pieces, Form { number, rule, ..Form::default() })?;

    let indices = part(PARTS[1])?;
    let kinds: Vec<_> = indices.iter().map(|node| node.number().filter(|number| number.is_integer())).collect();
    let widest = common_type(&indices, &kinds)?.or(kinds[0]);
    let Some(number) = widest.and_then(|number| number.widened_to(len.saturating_sub(1))) else {
        return indices[0].refuse("numbers of columns", "values of another type");
    };
    let pieces = indices.iter().zip(maps).map(|(&node, map)| match map {
        ElementMap::Same => converted(node, cast(node.number(), Some(number))),
        map => converted(node, map),
    });
    let form = Form { number: (indices[0].number() != Some(number)).then_some(number), ..Form::default() };
    out.rows(child_path(&path, PARTS[1]), pieces.collect(), form)?;

    let rule = Rule::positions(child_path(&path, PARTS[1]), PositionForm::Bounds);
    let pieces = part(PARTS[2])?.into_iter().map(Piece::of).collect();
    out.rows(child_path(&path, PARTS[2]), pieces, Form { rule: Some(rule), ..Form::default() })
}

const PARTS: [&[u8]; 3] = [b"data", b"indices", b"indptr"];

fn converted(node: Node<'_>, map: ElementMap) -> Piece<'_> {
    Piece { conversion: InputConversion { map, gather: None }, ..Piece::of(node) }
}
