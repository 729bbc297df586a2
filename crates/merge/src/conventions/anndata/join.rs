//! The output of AnnData files: its elements, and how each is combined.
//!
//! Source: `anndata.concat`. Invariant: every object of every input is in the output, listed as left out, or refused.

use super::across::{Policy, carried};
use super::along::{self, AxisConcatenation, joined_names, with_columns};
use super::compressed::{self, Columns};
use super::names::{self, Alignment};
use super::output::AssembledTree;
use super::tree::{CombineResult, Files, Node, refuse};
use super::value::{Axes, frame_columns, index_name};
use crate::conventions::{Axis, Choice, ConventionOptions, MergePolicy};
use crate::rules::pick::SelectedCounts;
use crate::schema::child_path;
use crate::schema::join::{Join, JoinResult};
use crate::verify::provenance;
use raddle_hdf5::model::TypeClass;
use std::sync::Arc;

/// Names of the objects in the root group.
const ROOT: [&[u8]; 10] = [b"X", b"layers", b"obs", b"var", b"obsm", b"varm", b"obsp", b"varp", b"uns", b"raw"];

/// Joins the inputs under `join`; `counts` are the counts of picked elements so far.
pub(crate) fn join(files: &Files, join: Join, options: &ConventionOptions, counts: &SelectedCounts) -> JoinResult {
    let mut out = AssembledTree::new(counts);
    let roots = files.roots();
    let outcome = put_together(&roots, join, options, &mut out);
    out.take(outcome);
    let mut joined = out.finish();
    joined.convention = Some(Choice::Anndata);
    joined
}

fn put_together(
    roots: &[Node<'_>],
    join: Join,
    options: &ConventionOptions,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let Some(&first) = roots.first() else { return Ok(()) };
    for root in roots {
        root.expect(&[("anndata", "0.1.0")])?;
        if let Some(stray) = root.children().find(|child| !ROOT.contains(&child.name())) {
            return stray.refuse("AnnData elements", "another object; leave it out with --exclude");
        }
        if let Some(link) = root.children().find(|child| !child.is_group() && child.column().is_none()) {
            return link.refuse("a group or dataset", "another kind of object");
        }
    }
    out.group(b"/".to_vec(), first, Arc::clone(first.attributes()));
    let (frame_name, other) = (options.axis.of_anndata().frame(), options.axis.of_anndata().other().frame());
    let frames = all(roots, frame_name.as_bytes())?;
    let rows: Vec<u64> = frames.iter().map(|node| index(*node).map(|(_, rows)| rows)).collect::<CombineResult<_>>()?;
    let along = AxisConcatenation {
        axis: options.axis.of_anndata(),
        join,
        rows: &rows,
        index_unique: options.index_unique.as_deref(),
    };
    let others = all(roots, other.as_bytes())?;
    let (alignment, names) = alignment(&others, join)?;

    let outcome = along::frame(child_path(b"/", frame_name.as_bytes()), &frames, along, out);
    out.take(outcome);
    let path = child_path(b"/", other.as_bytes());
    other_frame(path, &others, &alignment, &names, Some(options.merge), out)?;
    let outcome = matrix_of_all(b"/X", &children(roots, b"X"), &alignment, along, out);
    out.take(outcome);
    mapping(b"/", roots, b"layers", along, out, |path, nodes, out| matrix(path, nodes, &alignment, along, out))?;
    // Arrays of obsm and varm are always concatenated along their first axis.
    let of_rows = AxisConcatenation { axis: Axis::Obs, ..along };
    let name = format!("{frame_name}m");
    mapping(b"/", roots, name.as_bytes(), along, out, |path, nodes, out| multidimensional(path, nodes, of_rows, out))?;
    pairwise(roots, &format!("{frame_name}p"), of_rows, options, out)?;
    for (letter, count) in [("m", 1), ("p", 2)] {
        let axes = Some(Axes { alignment: &alignment, count });
        policy_group(roots, format!("{other}{letter}").as_bytes(), options.merge, axes, out)?;
    }
    policy_group(roots, b"uns", options.merge, None, out)?;
    raw(roots, &alignment, along, out)
}

/// Returns the child of this name of each root, if it exists.
fn children<'a>(roots: &[Node<'a>], name: &[u8]) -> Vec<Option<Node<'a>>> {
    roots.iter().map(|root| root.child(name)).collect()
}

/// Returns the child of this name of each root; fails if one lacks it.
fn all<'a>(roots: &[Node<'a>], name: &[u8]) -> CombineResult<Vec<Node<'a>>> {
    let path = |root: &Node<'_>| child_path(root.path(), name);
    roots
        .iter()
        .map(|root| {
            root.child(name).map_or_else(|| refuse(&path(root), "a data frame", "nothing", vec![root.input]), Ok)
        })
        .collect()
}

/// Returns the index of a data frame, and its length.
fn index(node: Node<'_>) -> CombineResult<(Node<'_>, u64)> {
    node.expect(&[("dataframe", "0.2.0")])?;
    let index = node.dataset(index_name(node)?.as_bytes())?;
    index.expect(&[("string-array", "0.2.0")])?;
    match index.dims().as_deref() {
        Some(&[rows]) => Ok((index, rows)),
        _ => index.refuse("names along one axis", "more axes"),
    }
}

/// Returns the alignment of the names of `frames`, and the names of the output.
fn alignment(frames: &[Node<'_>], join: Join) -> CombineResult<(Alignment, Vec<String>)> {
    let input_names: Vec<Vec<String>> =
        frames.iter().map(|frame| index(*frame)?.0.strings()).collect::<CombineResult<_>>()?;
    for (frame, names) in frames.iter().zip(&input_names) {
        if let Some(name) = names::repeated(names) {
            return frame.refuse(
                "each name once, so that names can be matched",
                format!(
                    "{name:?} more than once; make them unique with adata.{}_names_make_unique()",
                    String::from_utf8_lossy(frame.name())
                ),
            );
        }
    }
    let names = names::join(&input_names, join);
    if join == Join::Exact {
        for (frame, other) in frames.iter().zip(&input_names) {
            let known: std::collections::HashSet<&String> = input_names[0].iter().collect();
            let added = other.iter().find(|name| !known.contains(name));
            let others: std::collections::HashSet<&String> = other.iter().collect();
            let gone = input_names[0].iter().find(|name| !others.contains(name));
            if added.is_some() || gone.is_some() {
                let word = |name: &String| format!("{name:?}");
                let lacks = gone.map(|name| format!("lacks {}", word(name)));
                let has = added.map(|name| format!("has {} in addition", word(name)));
                let found: Vec<String> = lacks.into_iter().chain(has).collect();
                return frame.refuse(
                    "the same names",
                    format!(
                        "{}; --join inner takes the names that all inputs have, --join outer those of any",
                        found.join(" and ")
                    ),
                );
            }
        }
    }
    Ok((Alignment::by_names(&names, &input_names), names))
}

/// Adds the data frame of the other axis: its names, and the columns that `merge` selects.
fn other_frame(
    path: Vec<u8>,
    frames: &[Node<'_>],
    alignment: &Alignment,
    names: &[String],
    merge: Option<MergePolicy>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let first = frames[0];
    let index_of_first = index(first)?.0;
    let mut columns = Vec::new();
    if let Some(merge) = merge {
        let mut groups = Vec::new();
        for frame in frames {
            let name = index(*frame)?.0.name();
            let column_names = frame_columns(*frame)?;
            let stray = frame.children().find(|child| {
                child.name() != name && !column_names.iter().any(|known| known.as_bytes() == child.name())
            });
            if let Some(stray) = stray {
                return stray
                    .refuse("only columns named by column-order", "another object; leave it out with --exclude");
            }
            groups.push(
                column_names
                    .iter()
                    .map(|name| match frame.child(name.as_bytes()) {
                        Some(child) => Ok(child),
                        None => frame.refuse(format!("a column {name:?}"), "no such column"),
                    })
                    .collect::<CombineResult<Vec<_>>>()?,
            );
        }
        columns = carried(&groups, Policy { merge, axes: Some(Axes { alignment, count: 1 }) }, out);
    }
    let order: Vec<String> = columns.iter().map(|one| String::from_utf8_lossy(one.name).into_owned()).collect();
    let attributes = with_columns(first, &order)?;
    out.group(path.clone(), first, attributes);
    let Some((model, _)) = index_of_first.column() else { return first.refuse("an index of names", "none") };
    let mut value = Vec::new();
    for name in names {
        value.extend_from_slice(&(name.len() as u64).to_le_bytes());
        value.extend_from_slice(name.as_bytes());
    }
    // Names of other inputs may be longer than those of a fixed length.
    let class = match *model.datatype.class {
        TypeClass::VariableString { .. } => Arc::clone(&model.datatype.class),
        _ => provenance::string(),
    };
    let dataset = super::output::constant_like(model, &class, vec![names.len() as u64]);
    out.constant(child_path(&path, index_of_first.name()), index_of_first, dataset, value);
    for column in columns {
        column.write(&path, out)?;
    }
    Ok(())
}

/// Adds a matrix that either all inputs have or none.
fn matrix_of_all(
    path: &[u8],
    found: &[Option<Node<'_>>],
    alignment: &Alignment,
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    // anndata writes a missing matrix as a separate element.
    let present: Vec<Node<'_>> = found.iter().flatten().filter(|node| node.encoding() != "null").copied().collect();
    if present.is_empty() {
        return Ok(());
    }
    if present.len() < found.len() {
        let lacking = (0..).zip(found).filter(|(_, node)| node.is_none_or(|node| node.encoding() == "null"));
        let lacking = lacking.map(|(input, _)| input).collect();
        return refuse(path, "a matrix in all inputs", "nothing; leave it out with --exclude", lacking);
    }
    matrix(path.to_vec(), &present, alignment, along, out)
}

fn matrix(
    path: Vec<u8>,
    nodes: &[Node<'_>],
    alignment: &Alignment,
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let kind = nodes[0].encoding();
    if let Some(other) = nodes.iter().find(|node| node.encoding() != kind) {
        return other.refuse(kind, format!("{}; convert one of them", other.encoding()));
    }
    match kind.as_str() {
        "array" => along::dense(path, nodes, Some(alignment), along, out),
        _ => compressed::rows(path, nodes, Columns::Aligned(alignment), along, out),
    }
}

/// Adds an element of `obsm` or `varm`. Its columns are matched by number, or by name in a data frame.
fn multidimensional(
    path: Vec<u8>,
    nodes: &[Node<'_>],
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let kind = nodes[0].encoding();
    if kind == "dataframe" {
        return along::frame(path, nodes, along, out);
    }
    let mut widths = Vec::with_capacity(nodes.len());
    for node in nodes {
        let width = match node.encoding().as_str() {
            "array" => node.dims().and_then(|dims| dims.get(1).copied()),
            _ => crate::schema::attribute::named(node.attributes(), "shape")
                .and_then(crate::schema::attribute::numbers)
                .and_then(|shape| shape.get(1).map(|&size| size as u64)),
        };
        let Some(width) = width else {
            return node
                .refuse("a matrix or a data frame", format!("{}; leave it out with --exclude", node.encoding()));
        };
        widths.push(width);
    }
    let width = match along.join {
        Join::Outer => widths.iter().max(),
        _ => widths.iter().min(),
    };
    let width = width.copied().unwrap_or(0);
    if along.join == Join::Exact
        && let Some(at) = widths.iter().position(|other| *other != widths[0])
    {
        return nodes[at].refuse(
            format!("{} columns", widths[0]),
            format!("{} columns; --join inner takes the first that all inputs have, --join outer fills", widths[at]),
        );
    }
    matrix(path, nodes, &Alignment::numbered(width, widths), along, out)
}

/// Adds the elements of a group of arrays to the group at `parent`.
fn mapping<'a>(
    parent: &[u8],
    roots: &[Node<'a>],
    name: &[u8],
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
    mut add: impl FnMut(Vec<u8>, &[Node<'a>], &mut AssembledTree) -> CombineResult<()>,
) -> CombineResult<()> {
    let groups = children(roots, name);
    let Some(first) = groups.iter().flatten().next().copied() else { return Ok(()) };
    let path = child_path(parent, name);
    for group in groups.iter().flatten() {
        group.expect(&[("dict", "0.1.0")])?;
    }
    let child_names: Vec<Vec<String>> = groups
        .iter()
        .map(|group| group.iter().flat_map(|group| group.children()).map(|child| text(child.name())).collect())
        .collect();
    let keys = joined_names(&path, &child_names, along.join, out)?;
    out.group(path.clone(), first, Arc::clone(first.attributes()));
    for key in keys {
        let found: Vec<Option<Node<'_>>> =
            groups.iter().map(|group| group.and_then(|group| group.child(key.as_bytes()))).collect();
        let at = child_path(&path, key.as_bytes());
        let nodes: Vec<Node<'a>> = found.iter().flatten().copied().collect();
        let outcome = if nodes.len() < found.len() {
            let lacking = (0..).zip(&found).filter(|(_, node)| node.is_none()).map(|(input, _)| input).collect();
            refuse(&at, "in all inputs", "nothing, which cannot be filled; --join inner leaves it out", lacking)
        } else {
            add(at, &nodes, out)
        };
        out.take(outcome);
    }
    Ok(())
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Adds the pairwise arrays of the group `name` if the user requested them; otherwise, lists them as left out.
fn pairwise(
    roots: &[Node<'_>],
    name: &str,
    along: AxisConcatenation<'_>,
    options: &ConventionOptions,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    if options.pairwise {
        return mapping(b"/", roots, name.as_bytes(), along, out, |path, nodes, out| {
            match nodes.iter().find(|node| node.encoding() == "array") {
                Some(dense) => dense.refuse(
                    "a sparse matrix, which pairs of other inputs are not stored in",
                    "an array; convert it with scipy.sparse.csr_matrix",
                ),
                None => compressed::rows(path, nodes, Columns::Observations, along, out),
            }
        });
    }
    let groups = children(roots, name.as_bytes());
    let Some(first) = groups.iter().flatten().next() else { return Ok(()) };
    let at = child_path(b"/", name.as_bytes());
    out.group(at.clone(), *first, Arc::clone(first.attributes()));
    let mut names: Vec<(&[u8], Vec<u32>)> = Vec::new();
    for child in groups.iter().flatten().flat_map(|group| group.children()) {
        match names.iter_mut().find(|(name, _)| *name == child.name()) {
            Some((_, inputs)) => inputs.push(child.input),
            None => names.push((child.name(), vec![child.input])),
        }
    }
    for (name, inputs) in names {
        let found = "pairs within one input, left out; --pairwise keeps them";
        out.leave_out(&child_path(&at, name), "pairs of all inputs", found, inputs);
    }
    Ok(())
}

/// Adds a group whose elements are carried over according to a policy.
fn policy_group(
    roots: &[Node<'_>],
    name: &[u8],
    merge: MergePolicy,
    axes: Option<Axes<'_>>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let groups = children(roots, name);
    let Some(first) = groups.iter().flatten().next().copied() else { return Ok(()) };
    for group in groups.iter().flatten() {
        group.expect(&[("dict", "0.1.0")])?;
    }
    let inside: Vec<Vec<Node<'_>>> =
        groups.iter().map(|group| group.iter().flat_map(|group| group.children()).collect()).collect();
    let path = child_path(b"/", name);
    out.group(path.clone(), first, Arc::clone(first.attributes()));
    for one in carried(&inside, Policy { merge, axes }, out) {
        let outcome = one.write(&path, out);
        out.take(outcome);
    }
    Ok(())
}

/// Adds `raw`, the data before variables were selected. `other` is the alignment of the other axis.
fn raw(
    roots: &[Node<'_>],
    other: &Alignment,
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let found = children(roots, b"raw");
    let raws: Vec<Node<'_>> = found.iter().flatten().filter(|node| node.encoding() != "null").copied().collect();
    let Some(&first) = raws.first() else { return Ok(()) };
    if raws.len() < roots.len() {
        let inputs: Vec<u32> = raws.iter().map(|node| node.input).collect();
        if along.join == Join::Exact {
            let lacking = (0..roots.len() as u32).filter(|input| !inputs.contains(input)).collect();
            return refuse(b"/raw", "in all inputs", "nothing; --join inner leaves it out", lacking);
        }
        out.leave_out(b"/raw", "in all inputs", "only in some, left out", inputs);
        return Ok(());
    }
    let observations = match along.axis {
        Axis::Obs => along.rows.iter().sum(),
        Axis::Var => other.len,
    };
    if observations == 0 {
        // anndata treats a raw object without observations as missing.
        let inputs = raws.iter().map(|raw| raw.input).collect();
        out.leave_out(b"/raw", "observations", "none, left out as anndata does", inputs);
        return Ok(());
    }
    for raw in &raws {
        raw.expect(&[("raw", "0.1.0")])?;
        if let Some(stray) = raw.children().find(|child| ![b"X".as_slice(), b"var", b"varm"].contains(&child.name())) {
            return stray.refuse("only X, var and varm in raw", "another object; leave it out with --exclude");
        }
    }
    let vars: Vec<Node<'_>> = raws
        .iter()
        .map(|raw| raw.child(b"var").map_or_else(|| raw.refuse("a data frame named var", "none"), Ok))
        .collect::<CombineResult<_>>()?;
    out.group(b"/raw".to_vec(), first, Arc::clone(first.attributes()));
    let found: Vec<Option<Node<'_>>> = raws.iter().map(|raw| raw.child(b"X")).collect();
    if along.axis == Axis::Var {
        let rows: Vec<u64> =
            vars.iter().map(|node| index(*node).map(|(_, rows)| rows)).collect::<CombineResult<_>>()?;
        let along = AxisConcatenation { rows: &rows, ..along };
        along::frame(b"/raw/var".to_vec(), &vars, along, out)?;
        matrix_of_all(b"/raw/X", &found, other, along, out)?;
        let of_rows = AxisConcatenation { axis: Axis::Obs, ..along };
        return mapping(b"/raw", &raws, b"varm", of_rows, out, |path, nodes, out| {
            multidimensional(path, nodes, of_rows, out)
        });
    }
    let (alignment, names) = alignment(&vars, along.join)?;
    other_frame(b"/raw/var".to_vec(), &vars, &alignment, &names, None, out)?;
    if let Some(varm) = first.child(b"varm") {
        out.group(b"/raw/varm".to_vec(), varm, Arc::clone(varm.attributes()));
    }
    let inputs = raws.iter().map(|raw| raw.input).collect();
    out.leave_out(b"/raw/var", "names", "columns of names, left out as anndata does", inputs);
    matrix_of_all(b"/raw/X", &found, &alignment, along, out)
}
