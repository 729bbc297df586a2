//! Concatenation of arrays and data frames along one axis; the other axis is matched by name.
//!
//! Source: `concat_arrays` and `unify_dtypes` of `anndata._core.merge`. Invariant: types become those that anndata
//! chooses; otherwise, concatenation fails.

use super::names::{Alignment, sort_naturally};
use super::output::{AssembledTree, InputPiece, PieceDifferences, cast, constant_like, gather};
use super::tree::{CombineResult, Node, refuse};
use super::value::{frame_columns, index_name};
use crate::conventions::Axis;
use crate::rules::{ElementMap, InputConversion, Rule};
use crate::schema::attribute::{named, replaced, strings_of, with_strings};
use crate::schema::join::Join;
use crate::schema::{AttributeValue, child_path};
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::{Datatype, TypeClass};
use raddle_hdf5::number::NumberType;
use std::collections::HashMap;
use std::sync::Arc;

/// Parameters of the concatenation along one axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct AxisConcatenation<'a> {
    /// Axis of matrices along which inputs are concatenated.
    pub axis: Axis,
    /// Treatment of elements that only some inputs have.
    pub join: Join,
    /// Number of elements along that axis in each input, called rows here.
    pub rows: &'a [u64],
    /// Separator between a name and the number of its input, if that is appended to make names unique.
    pub index_unique: Option<&'a str>,
}

/// Hint for elements that an input lacks.
pub(super) const DECIDES: &str = "--join inner leaves it out, --join outer fills";

/// Adds a dense array whose other axis is aligned, or a one-dimensional array if there is no alignment.
pub(super) fn dense(
    path: Vec<u8>,
    nodes: &[Node<'_>],
    alignment: Option<&Alignment>,
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let (axis, across) = (along.axis.number(), along.axis.other().number());
    let mut numbers = Vec::with_capacity(nodes.len());
    for (node, &rows) in nodes.iter().zip(along.rows) {
        node.expect(&[("array", "0.2.0")])?;
        let (Some(dims), Some((_, _))) = (node.dims(), node.column()) else {
            return node.refuse("an array", "another kind of object");
        };
        let columns = alignment.map(|alignment| alignment.lens[node.input as usize]);
        if dims.get(axis) != Some(&rows) || columns.is_some_and(|columns| dims.get(across) != Some(&columns)) {
            let mut sizes: Vec<u64> = std::iter::once(rows).chain(columns).collect();
            if axis > across {
                sizes.reverse();
            }
            return node.refuse(format!("sizes {sizes:?}"), format!("sizes {dims:?}"));
        }
        let others = |node: &Node<'_>| {
            node.dims().map(|dims| dims[(1 + usize::from(columns.is_some())).min(dims.len())..].to_vec())
        };
        if others(node) != others(&nodes[0]) || dims.len() != nodes[0].dims().map_or(0, |dims| dims.len()) {
            return node.refuse(format!("sizes {:?}", nodes[0].dims().unwrap_or_default()), format!("sizes {dims:?}"));
        }
        let is_filled = alignment.is_some_and(|alignment| alignment.lacks(node.input as usize));
        let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
        numbers.push(match (node.number(), is_filled) {
            (Some(NumberType::Integer { .. }), true) => Some(double),
            // anndata gives an array without columns the type of the fill value.
            (Some(_), true) if columns == Some(0) => Some(double),
            (None, true) => {
                return node.refuse(
                    "numbers, which NaN can stand for where an input lacks a column",
                    "values of another type; --join inner takes the columns that all inputs have",
                );
            }
            (number, _) => number,
        });
    }
    let number = common_type(nodes, &numbers)?;
    let pieces = nodes.iter().map(|&node| {
        let from = alignment.and_then(|alignment| alignment.of_inputs[node.input as usize].clone());
        let len = alignment.map_or(0, |alignment| alignment.lens[node.input as usize]);
        let conversion =
            InputConversion { map: cast(node.number(), number), gather: gather(across, &from, len), pick: None };
        InputPiece { conversion, ..InputPiece::of(node) }
    });
    let is_filled = alignment.is_some_and(|alignment| nodes.iter().any(|node| alignment.lacks(node.input as usize)));
    let output_number = number.or_else(|| nodes[0].number());
    let fill = is_filled.then(|| {
        let mut nan = Vec::new();
        output_number.into_iter().for_each(|number| number.encode_floats(&[f64::NAN], &mut nan));
        nan
    });
    let resized =
        alignment.filter(|alignment| alignment.lens[0] != alignment.len).map(|alignment| (across, alignment.len));
    out.rows(
        path,
        pieces.collect(),
        PieceDifferences { axis, number, fill, resized, rule: inexact(nodes, number), runs: None },
    )
}

/// Returns a rule that makes the merge check values before it writes anything, if a float may be unable to represent a
/// large integer.
fn inexact(nodes: &[Node<'_>], number: Option<NumberType>) -> Option<Rule> {
    let is_wide = |node: &Node<'_>| matches!(node.number(), Some(NumberType::Integer { len_bytes: 8, .. }));
    (number.is_some_and(|number| !number.is_integer()) && nodes.iter().any(is_wide)).then(Rule::default)
}

/// Returns the type to which numpy promotes the types of all nodes; `None` if all types are the same.
pub(super) fn common_type(nodes: &[Node<'_>], numbers: &[Option<NumberType>]) -> CombineResult<Option<NumberType>> {
    let Some((first, others)) = nodes.split_first() else { return Ok(None) };
    let is_unchanged = nodes.iter().zip(numbers).all(|(node, number)| node.number() == *number);
    if is_unchanged && others.iter().all(|node| node.class() == first.class()) {
        return Ok(None);
    }
    let words = |node: &Node<'_>| node.class().map_or_else(String::new, crate::schema::join::describe);
    let Some(known) = numbers.iter().copied().collect::<Option<Vec<NumberType>>>() else {
        let other = others.iter().find(|node| node.class() != first.class()).unwrap_or(first);
        return other.refuse(words(first), format!("{}; convert one of them with astype", words(other)));
    };
    let fold = |order: &mut dyn Iterator<Item = &NumberType>| order.copied().reduce(promote);
    let (forward, backward) = (fold(&mut known.iter()), fold(&mut known.iter().rev()));
    let mut sorted = known.clone();
    sorted.sort_by_key(|number| (number.is_integer(), number.len_bytes()));
    if forward != backward || forward != fold(&mut sorted.iter()) {
        return first
            .refuse("types whose common type does not depend on their order", "others; convert them with astype");
    }
    Ok(forward)
}

/// Returns the type to which numpy promotes two types.
fn promote(left: NumberType, right: NumberType) -> NumberType {
    use NumberType::{Float, Integer};
    let float = |len_bytes| Float { len_bytes, is_big_endian: false };
    match (left, right) {
        _ if left == right => left,
        (Float { len_bytes: a, .. }, Float { len_bytes: b, .. }) => float(a.max(b)),
        (Float { len_bytes: a, .. }, Integer { len_bytes: b, .. })
        | (Integer { len_bytes: b, .. }, Float { len_bytes: a, .. }) => float(if b <= 2 { a } else { 8 }),
        (Integer { len_bytes: a, signed: left, .. }, Integer { len_bytes: b, signed: right, .. }) => {
            let len_bytes = match (left, right) {
                (true, false) => a.max(2 * b),
                (false, true) => b.max(2 * a),
                _ => a.max(b),
            };
            match len_bytes {
                ..=8 => Integer { len_bytes, signed: left || right, is_big_endian: false },
                _ => float(8),
            }
        }
    }
}

/// Adds a data frame; `None` in `nodes` stands for an input without it. The index gets the name of the first input's
/// index.
pub(super) fn frame(
    path: Vec<u8>,
    nodes: &[Node<'_>],
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let first = nodes[0];
    let (mut names, mut indices) = (Vec::new(), Vec::new());
    for (node, &rows) in nodes.iter().zip(along.rows) {
        node.expect(&[("dataframe", "0.2.0")])?;
        names.push(frame_columns(*node)?);
        let index = node.dataset(index_name(*node)?.as_bytes())?;
        index.expect(&[("string-array", "0.2.0")])?;
        if index.name() != index_name(first)?.as_bytes() {
            return node
                .refuse(format!("an index of the name {:?}", index_name(first)?), format!("{:?}", index_name(*node)?));
        }
        if index.class() != nodes[0].dataset(index_name(first)?.as_bytes())?.class() {
            return index.refuse("names of the first input's type", "another type");
        }
        if index.dims().as_deref() != Some(&[rows]) {
            return index.refuse(format!("{rows} names"), format!("sizes {:?}", index.dims().unwrap_or_default()));
        }
        let stray = node.children().find(|child| {
            child.name() != index.name()
                && !names.last().is_some_and(|names| names.iter().any(|name| name.as_bytes() == child.name()))
        });
        if let Some(stray) = stray {
            return stray.refuse("only columns named by column-order", "another object; leave it out with --exclude");
        }
        let map = match along.index_unique {
            Some(separator) => ElementMap::Suffix(format!("{separator}{}", node.input).into()),
            None => ElementMap::Same,
        };
        indices.push(InputPiece {
            conversion: InputConversion { map, ..InputConversion::default() },
            ..InputPiece::of(index)
        });
    }
    let columns = joined_names(&path, &names, along.join, out)?;
    let index_path = child_path(&path, index_name(first)?.as_bytes());
    let attributes = with_columns(first, &columns)?;
    out.group(path.clone(), first, attributes);
    out.rows(index_path, indices, PieceDifferences::default())?;
    for name in columns {
        let found: Vec<Option<Node<'_>>> = nodes.iter().map(|node| node.child(name.as_bytes())).collect();
        let outcome = column(child_path(&path, name.as_bytes()), &found, along, out);
        out.take(outcome);
    }
    Ok(())
}

/// Returns the names in the output, in pandas' order: names that all inputs have in the order of the first input, or
/// names of any input in order of appearance.
pub(super) fn joined_names(
    path: &[u8],
    names: &[Vec<String>],
    join: Join,
    out: &mut AssembledTree,
) -> CombineResult<Vec<String>> {
    let mut all: Vec<&String> = Vec::new();
    let mut holders: HashMap<&String, Vec<u32>> = HashMap::new();
    for (input, input_names) in (0..).zip(names) {
        for name in input_names {
            let holders = holders.entry(name).or_default();
            if holders.is_empty() {
                all.push(name);
            }
            if holders.last() == Some(&input) {
                return refuse(path, "each name once", format!("{name:?} twice"), vec![input]);
            }
            holders.push(input);
        }
    }
    let mut joined = Vec::new();
    for name in all {
        let holders = &holders[name];
        let is_everywhere = holders.len() == names.len();
        let at = child_path(path, name.as_bytes());
        match join {
            _ if is_everywhere => joined.push(name.clone()),
            Join::Outer => joined.push(name.clone()),
            Join::Inner => out.leave_out(&at, "in all inputs", "only in some, left out", holders.clone()),
            _ => {
                let lacking = (0..names.len() as u32).filter(|input| !holders.contains(input)).collect();
                out.take::<()>(refuse(&at, "in all inputs", format!("nothing; {DECIDES}"), lacking));
            }
        }
    }
    Ok(joined)
}

/// Returns the attributes of a data frame with these columns.
pub(super) fn with_columns(node: Node<'_>, columns: &[String]) -> CombineResult<Arc<[AttributeValue]>> {
    let Some(order) = named(node.attributes(), "column-order") else {
        return node.refuse("an attribute column-order", "none");
    };
    let mut order = with_strings(order, columns);
    if columns.is_empty() {
        // Like anndata, which writes an empty list as a list of numbers.
        let class = NumberType::Float { len_bytes: 8, is_big_endian: false }.class();
        order.datatype = Datatype { class: Arc::new(class), committed: None };
    }
    Ok(replaced(node.attributes(), order))
}

/// Adds a column of a data frame; `None` in `found` stands for an input without it.
fn column(
    path: Vec<u8>,
    found: &[Option<Node<'_>>],
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let nodes: Vec<Node<'_>> = found.iter().flatten().copied().collect();
    let Some(&first) = nodes.first() else { return refuse(&path, "a column", "none", Vec::new()) };
    let kind = first.encoding();
    if let Some(other) = nodes.iter().find(|node| node.encoding() != kind) {
        return other.refuse(kind, format!("{}; convert one of the columns", other.encoding()));
    }
    match kind.as_str() {
        "array" | "string-array" => plain(path, found, &nodes, along, out),
        "categorical" => categorical(path, found, &nodes, along, out),
        "nullable-integer" | "nullable-boolean" | "nullable-string-array" => nullable(path, found, &nodes, along, out),
        _ => first.expect(&[("array", "0.2.0"), ("string-array", "0.2.0"), ("categorical", "0.2.0")]),
    }
}

/// Adds one dataset of a column, with rows of `fill` for inputs without it.
fn rows_of(
    path: Vec<u8>,
    parts: Vec<Option<Node<'_>>>,
    maps: Vec<ElementMap>,
    form: PieceDifferences,
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    for (part, rows) in parts.iter().zip(along.rows) {
        if let Some(node) = part
            && node.dims().as_deref() != Some(&[*rows])
        {
            return node.refuse(format!("{rows} values"), format!("sizes {:?}", node.dims().unwrap_or_default()));
        }
    }
    let pieces = parts.into_iter().zip(maps).zip(along.rows).map(|((node, map), &rows)| InputPiece {
        node,
        absent_rows: if node.is_none() { rows } else { 0 },
        conversion: InputConversion { map, ..InputConversion::default() },
    });
    out.rows(path, pieces.collect(), form)
}

fn plain(
    path: Vec<u8>,
    found: &[Option<Node<'_>>],
    nodes: &[Node<'_>],
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let first = nodes[0];
    for node in nodes {
        node.expect(&[("array", "0.2.0"), ("string-array", "0.2.0")])?;
        same_class(first, *node)?;
    }
    let (mut form, mut to) = (PieceDifferences::default(), None);
    if nodes.len() < found.len() {
        match first.number() {
            Some(number @ NumberType::Float { .. }) => form.fill = Some(nan(number)),
            // The type that pandas chooses depends on which inputs have rows.
            Some(NumberType::Integer { .. }) if along.rows.iter().all(|&rows| rows > 0) => {
                let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
                (to, form) = (Some(double), PieceDifferences { number: Some(double), fill: Some(nan(double)), ..form });
                form.rule = inexact(nodes, to);
            }
            _ => return lacks(found, first, "values that can be missing"),
        }
    }
    let maps = found.iter().map(|node| cast(node.and_then(Node::number), node.and(to))).collect();
    rows_of(path, found.to_vec(), maps, form, along, out)
}

/// Refuses a column that some inputs lack.
fn lacks<T>(found: &[Option<Node<'_>>], first: Node<'_>, expected: &str) -> CombineResult<T> {
    let lacking = (0..).zip(found).filter(|(_, node)| node.is_none()).map(|(input, _)| input).collect();
    let words = first.class().map_or_else(|| first.encoding(), crate::schema::join::describe);
    refuse(
        first.path(),
        expected,
        format!(
            "nothing for a column of type {words}, which has no value for that; --join inner leaves the column out"
        ),
        lacking,
    )
}

fn nan(number: NumberType) -> Vec<u8> {
    let mut nan = Vec::new();
    number.encode_floats(&[f64::NAN], &mut nan);
    nan
}

fn same_class(first: Node<'_>, node: Node<'_>) -> CombineResult<()> {
    if first.class() == node.class() {
        return Ok(());
    }
    let words = |node: Node<'_>| node.class().map_or_else(|| "no dataset".to_owned(), crate::schema::join::describe);
    node.refuse(words(first), format!("{}; convert one of the columns with astype", words(node)))
}

fn nullable(
    path: Vec<u8>,
    found: &[Option<Node<'_>>],
    nodes: &[Node<'_>],
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let first = nodes[0];
    for node in nodes {
        node.expect(&[
            ("nullable-integer", "0.1.0"),
            ("nullable-boolean", "0.1.0"),
            ("nullable-string-array", "0.1.0"),
        ])?;
        if let Some(stray) = node.children().find(|child| ![b"values".as_slice(), b"mask"].contains(&child.name())) {
            return stray.refuse("only values and mask in a nullable array", "another object");
        }
        same_class(first.dataset(b"values")?, node.dataset(b"values")?)?;
        same_class(first.dataset(b"mask")?, node.dataset(b"mask")?)?;
        let marks = |node: Node<'_>| node.text("na-value");
        if marks(*node) != marks(first) {
            return node.refuse("the first input's na-value", "another");
        }
    }
    out.group(path.clone(), first, Arc::clone(first.attributes()));
    let is_lacking = nodes.len() < found.len();
    for (name, fill) in [(b"values".as_slice(), 0_u8), (b"mask", 1)] {
        let parts: Vec<Option<Node<'_>>> = found.iter().map(|node| node.and_then(|node| node.child(name))).collect();
        let len_bytes = first.dataset(name)?.class().map_or(1, TypeClass::len_bytes) as usize;
        let fill = is_lacking.then(|| vec![fill; len_bytes]);
        let is_text = matches!(first.dataset(name)?.class(), Some(TypeClass::VariableString { .. }));
        let map = |part: &Option<Node<'_>>| match part {
            None if is_text => ElementMap::Blank,
            _ => ElementMap::Same,
        };
        let maps = parts.iter().map(map).collect();
        rows_of(
            child_path(&path, name),
            parts,
            maps,
            PieceDifferences { fill, ..PieceDifferences::default() },
            along,
            out,
        )?;
    }
    Ok(())
}

fn categorical(
    path: Vec<u8>,
    found: &[Option<Node<'_>>],
    nodes: &[Node<'_>],
    along: AxisConcatenation<'_>,
    out: &mut AssembledTree,
) -> CombineResult<()> {
    let first = nodes[0];
    let mut categories = Vec::with_capacity(nodes.len());
    for node in nodes {
        node.expect(&[("categorical", "0.2.0")])?;
        categories.push(Categories::of(*node)?);
    }
    let united = Categories::united(nodes, &categories)?;
    let count = united.elements.len() as u64;
    let codes: Vec<Node<'_>> = nodes.iter().map(|node| node.dataset(b"codes")).collect::<CombineResult<_>>()?;
    let numbers: Vec<_> = codes.iter().map(|node| node.number().filter(|number| number.is_integer())).collect();
    let widest = common_type(&codes, &numbers)?.or(numbers[0]);
    let Some(number) = widest.and_then(|number| number.widened_to(count.saturating_sub(1))) else {
        return codes[0].refuse("codes of categories", "values of another type");
    };
    let places: HashMap<&[u8], i64> = united.elements.iter().map(Vec::as_slice).zip(0..).collect();
    let mut maps = Vec::with_capacity(found.len());
    let mut by_holder = categories.iter().zip(&codes);
    for node in found {
        let Some((categories, codes)) = node.and_then(|_| by_holder.next()) else {
            maps.push(ElementMap::Same);
            continue;
        };
        let table: Vec<i64> = categories.elements.iter().map(|element| places[element.as_slice()]).collect();
        maps.push(match table.iter().copied().eq(0..table.len() as i64) {
            true => cast(codes.number(), Some(number)),
            false => ElementMap::Lookup(table.into()),
        });
    }
    let is_lacking = nodes.len() < found.len();
    let mut missing = Vec::new();
    if is_lacking {
        let is_signed = number.encode_integers(&[-1], &mut missing).is_ok();
        if !is_signed {
            return codes[0].refuse("signed codes", "unsigned ones");
        }
    }
    out.group(path.clone(), first, Arc::clone(first.attributes()));
    let parts: Vec<_> = found.iter().map(|node| node.and_then(|node| node.child(b"codes"))).collect();
    let number = (codes[0].number() != Some(number)).then_some(number);
    let form = PieceDifferences { number, fill: is_lacking.then_some(missing), ..PieceDifferences::default() };
    rows_of(child_path(&path, b"codes"), parts, maps, form, along, out)?;
    let like = united.node;
    let Some((model, _)) = like.column() else { return like.refuse("categories", "another kind of object") };
    let dataset = constant_like(model, &model.datatype.class, vec![count]);
    out.constant(child_path(&path, b"categories"), like, dataset, united.elements.concat());
    Ok(())
}

/// Categories of a column.
struct Categories<'a> {
    node: Node<'a>,
    is_ordered: bool,
    /// Canonical bytes of each category.
    elements: Vec<Vec<u8>>,
}

impl<'a> Categories<'a> {
    fn of(node: Node<'a>) -> CombineResult<Self> {
        if let Some(stray) = node.children().find(|child| ![b"codes".as_slice(), b"categories"].contains(&child.name()))
        {
            return stray.refuse("only codes and categories in a categorical", "another object");
        }
        let Some(categories) = node.child(b"categories").filter(|child| child.column().is_some()) else {
            return node.refuse("categories in one array", "categories of another kind; convert them to strings");
        };
        categories.expect(&[("array", "0.2.0"), ("string-array", "0.2.0")])?;
        let ordered =
            named(node.attributes(), "ordered").map(|attribute| attribute.value.iter().any(|&byte| byte != 0));
        let Some(is_ordered) = ordered else { return node.refuse("an attribute ordered", "none") };
        let values = categories.kept()?;
        let Some((model, _)) = categories.column() else { return node.refuse("categories", "none") };
        let elements = CanonicalElements::new(&model.datatype.class, values).flatten().map(<[u8]>::to_vec).collect();
        Ok(Self { node: categories, is_ordered, elements })
    }

    fn words(&self) -> String {
        let class = self.node.class();
        let strings = class.and_then(|class| strings_of(class, &self.elements.concat()));
        let listed: Vec<String> = strings.unwrap_or_default().iter().take(6).map(|text| format!("{text:?}")).collect();
        let more = if self.elements.len() > listed.len() { ", …" } else { "" };
        let kind = if self.is_ordered { "ordered categories" } else { "categories" };
        format!("{kind} {}{more}", listed.join(", "))
    }

    /// Combines the categories of all inputs for the output.
    fn united(nodes: &[Node<'a>], of_nodes: &[Self]) -> CombineResult<Self> {
        let first = &of_nodes[0];
        let copy = |one: &Self, elements| Self { node: one.node, is_ordered: one.is_ordered, elements };
        if of_nodes.iter().any(|one| one.is_ordered) {
            let differs = |one: &&Self| {
                !one.is_ordered || one.elements != first.elements || one.node.class() != first.node.class()
            };
            return match of_nodes.iter().position(|one| differs(&one)) {
                None => Ok(copy(first, first.elements.clone())),
                Some(at) => nodes[at].refuse(
                    first.words(),
                    format!("{}; give both the same with set_categories, or make them unordered", of_nodes[at].words()),
                ),
            };
        }
        let Some(model) = of_nodes.iter().find(|one| !one.elements.is_empty()) else {
            return Ok(copy(first, Vec::new()));
        };
        if let Some((at, other)) = of_nodes
            .iter()
            .enumerate()
            .find(|(_, one)| !one.elements.is_empty() && one.node.class() != model.node.class())
        {
            let words = |one: &Self| one.node.class().map_or_else(String::new, crate::schema::join::describe);
            return nodes[at].refuse(
                format!("categories of type {}", words(model)),
                format!("categories of type {}; convert them with rename_categories", words(other)),
            );
        }
        let all: std::collections::BTreeSet<&[u8]> =
            of_nodes.iter().flat_map(|one| one.elements.iter().map(Vec::as_slice)).collect();
        if first.elements.len() == all.len() {
            return Ok(copy(first, first.elements.clone()));
        }
        let class = model.node.class();
        let Some(elements) = class.and_then(|class| sorted(class, &all)) else {
            return nodes[0].refuse(
                format!("{}, or others that can be sorted: ASCII strings or numbers", first.words()),
                "further ones; give all inputs the same with set_categories",
            );
        };
        Ok(copy(model, elements))
    }
}

/// Sorts categories in natural order.
fn sorted(class: &TypeClass, all: &std::collections::BTreeSet<&[u8]>) -> Option<Vec<Vec<u8>>> {
    let bytes: Vec<u8> = all.iter().copied().flatten().copied().collect();
    if let Some(number) = NumberType::of(class) {
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        let mut elements: Vec<&[u8]> = all.iter().copied().collect();
        let key = |element: &[u8], integers: &mut Vec<i64>, floats: &mut Vec<f64>| {
            let is_exact = number.decode_floats(element, integers, floats) || !number.is_integer();
            is_exact.then(|| (integers.first().copied().unwrap_or(0), floats[0]))
        };
        let mut keyed = Vec::new();
        for element in elements.drain(..) {
            let (integer, float) = key(element, &mut integers, &mut floats)?;
            if float.is_nan() {
                return None;
            }
            keyed.push((if number.is_integer() { integer } else { 0 }, float, element));
        }
        keyed.sort_by(|left, right| left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)));
        return Some(keyed.into_iter().map(|(.., element)| element.to_vec()).collect());
    }
    if !matches!(class, TypeClass::VariableString { .. }) {
        return None;
    }
    let strings = sort_naturally(strings_of(class, &bytes)?)?;
    let canonical = |text: String| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    Some(strings.into_iter().map(canonical).collect())
}
