//! The output under construction: objects in the order of their creation, datasets with a piece of each input.
//!
//! The contents of the output are decided elsewhere. Invariant: parents come before the objects inside them.

use super::tree::{CombineResult, Node, refuse};
use crate::rules::pick::{SelectedCounts, UncountedElements};
use crate::rules::settling::DeclaredRule;
use crate::rules::{Conversion, ElementMap, Gather, InputConversion, Pick, PickForm, Rule, Trim};
use crate::schema::extents::InputExtents;
use crate::schema::join::{Difference, DifferenceKind, JoinResult};
use crate::schema::{ABSENT, AttributeValue, Column, InputExtent, Role, SchemaEntry, display_path, split_again};
use raddle_core::plan::Segment;
use raddle_hdf5::model::{Dataset, Dataspace, Datatype, InlineData, Layout, TypeClass};
use raddle_hdf5::number::NumberType;
use std::sync::Arc;

/// Output assembled so far.
#[derive(Debug, Default)]
pub(super) struct AssembledTree {
    joined: JoinResult,
    columns: Vec<Column>,
    /// Numbers of picked elements that have been counted so far.
    counts: SelectedCounts,
}

/// Contribution of an input to a dataset.
#[derive(Debug, Clone)]
pub(super) struct InputPiece<'a> {
    /// The dataset; `None` if the input lacks it.
    pub node: Option<Node<'a>>,
    /// Number of rows of the fill value, if the input lacks the dataset.
    pub absent_rows: u64,
    /// Conversion of the values.
    pub conversion: InputConversion,
}

impl<'a> InputPiece<'a> {
    /// Creates a piece of all rows of a dataset, unchanged.
    pub fn of(node: Node<'a>) -> Self {
        Self { node: Some(node), absent_rows: 0, conversion: InputConversion::default() }
    }
}

/// Differences between a dataset and its first piece.
#[derive(Debug, Clone, Default)]
pub(super) struct PieceDifferences {
    /// Axis along which pieces are concatenated.
    pub axis: usize,
    /// Number type of the output, if it differs from the pieces' type.
    pub number: Option<NumberType>,
    /// Value of elements that an input lacks.
    pub fill: Option<Vec<u8>>,
    /// Number and new size of an axis, if its size differs.
    pub resized: Option<(usize, u64)>,
    /// Rule that is settled or checked later.
    pub rule: Option<Rule>,
    /// Runs of rows, if inputs are not simply concatenated.
    pub runs: Option<Vec<Segment>>,
}

impl AssembledTree {
    /// Creates an empty output with the counts so far.
    pub fn new(counts: &SelectedCounts) -> Self {
        Self { counts: counts.clone(), ..Self::default() }
    }

    /// Picks the elements of an input at which its dataset `numbers` holds a number for which `is_taken` is true.
    /// Returns `None`, and records the elements, if they have not been counted yet.
    pub fn pick(&mut self, path: &[u8], numbers: Node<'_>, is_taken: Arc<[bool]>, form: PickForm) -> Option<Pick> {
        let stored = numbers.dims().map_or(0, |dims| dims[0]);
        let input = numbers.input;
        if let Some(before) = self.counts.get(&(path.to_vec(), input)) {
            return Some(Pick { numbers: path.to_vec(), is_taken, before: Arc::clone(before), stored, form });
        }
        let is_noted = |one: &UncountedElements| one.input == input && one.numbers == path;
        if !self.joined.uncounted.iter().any(is_noted) {
            self.joined.uncounted.push(UncountedElements { numbers: path.to_vec(), input, is_taken });
        }
        None
    }

    /// Adds a group like `node`.
    pub fn group(&mut self, path: Vec<u8>, node: Node<'_>, attributes: Arc<[AttributeValue]>) {
        let role = match &node.entry().role {
            crate::scan::ScannedRole::Other(role @ Role::Group { .. }) => role.clone(),
            _ => Role::Group { link_order: Default::default() },
        };
        self.add(path, node, role, attributes);
    }

    /// Adds a dataset of known values like `node`.
    pub fn constant(&mut self, path: Vec<u8>, node: Node<'_>, dataset: Dataset, value: Vec<u8>) {
        let role = Role::Constant { dataset: Box::new(dataset), committed: None, value };
        self.add(path, node, role, Arc::clone(node.attributes()));
    }

    /// Adds a dataset of consecutive pieces, with the properties of the first.
    pub fn rows(&mut self, path: Vec<u8>, pieces: Vec<InputPiece<'_>>, form: PieceDifferences) -> CombineResult<()> {
        let Some(first) = pieces.iter().find_map(|piece| piece.node) else {
            return refuse(&path, "a dataset", "none", Vec::new());
        };
        let mut column = unconverted_column(&path, &pieces, form.axis)?;
        let is_filled = form.fill.is_some();
        if form.number.is_some() || is_filled || form.resized.is_some() {
            column.set_output(changed(column.model(), &form));
        }
        let picks: Vec<Option<&Pick>> = pieces.iter().map(|piece| piece.conversion.pick.as_ref()).collect();
        if picks.iter().flatten().any(|pick| pick.form == PickForm::Elements) {
            let trim = |pick: &Option<&Pick>| pick.map(|pick| Trim { leading: 0, stored_rows: pick.stored });
            column.trims = Some(picks.iter().map(trim).collect());
            let rows = |(fact, pick): (&InputExtent, &Option<&Pick>)| InputExtent {
                rows: pick.map_or(fact.rows, Pick::count),
                ..*fact
            };
            column.facts = column.facts.iter().zip(&picks).map(rows).collect();
        }
        if pieces.iter().any(|piece| !piece.conversion.is_identity()) {
            let of_inputs = pieces.into_iter().map(|piece| piece.conversion).collect();
            column.conversion = Some(Arc::new(Conversion { of_inputs }));
        }
        if let Some(runs) = form.runs {
            take_runs(&mut column, runs);
        }
        if column.is_file_local() && !is_filled {
            refuse_missing_strings(&path, &column)?;
        }
        column.entry = self.joined.schema.entries.len() as u32;
        if let Some(rule) = form.rule {
            let (first, values) = (Arc::clone(first.attributes()), Vec::new());
            self.joined.declared.push(DeclaredRule {
                entry: column.entry,
                rule,
                first,
                attributes: Vec::new(),
                values,
            });
        }
        let role = Role::Column(self.columns.len() as u32);
        self.columns.push(column);
        self.add(path, first, role, Arc::clone(first.attributes()));
        Ok(())
    }

    fn add(&mut self, path: Vec<u8>, node: Node<'_>, role: Role, attributes: Arc<[AttributeValue]>) {
        let entry = node.entry();
        self.joined.schema.entries.push(SchemaEntry {
            path,
            utf8: entry.utf8,
            role,
            attributes,
            attribute_order: entry.attribute_order,
            comment: entry.comment.clone(),
        });
    }

    /// Returns the value of an outcome, or records its error.
    pub fn take<T>(&mut self, outcome: CombineResult<T>) -> Option<T> {
        outcome.map_err(|difference| self.joined.differences.push(*difference)).ok()
    }

    /// Records elements that are left out.
    pub fn leave_out(&mut self, path: &[u8], expected: &str, found: impl Into<String>, inputs: Vec<u32>) {
        let (path, kind) = (display_path(path), DifferenceKind::LeftOut);
        self.joined.warnings.push(Difference {
            path,
            kind,
            expected: expected.to_owned(),
            found: found.into(),
            inputs,
        });
    }

    /// Returns the finished output.
    pub fn finish(mut self) -> JoinResult {
        self.joined.schema.columns = self.columns;
        self.joined
    }
}

/// Creates a column of consecutive pieces along `axis`, with the types and values that they have in the inputs. At least
/// one of the inputs has the dataset.
fn unconverted_column(path: &[u8], pieces: &[InputPiece<'_>], axis: usize) -> CombineResult<Column> {
    let (mut templates, mut facts): (Vec<Arc<Dataset>>, Vec<InputExtent>) = (Vec::new(), Vec::new());
    for piece in pieces {
        let Some(node) = piece.node else {
            facts.push(InputExtent::absent(piece.absent_rows));
            continue;
        };
        let Some((template, fact)) = node.column() else {
            return node.refuse("a dataset", "another kind of object");
        };
        if template.layout.is_through_library() && path != node.path() {
            return node.refuse("values in the file itself", "values in another file, under another path");
        }
        let (template, fact) = match axis {
            0 => (Arc::clone(template), fact),
            axis => {
                let (template, fact) = split_again(template, &fact, axis);
                (Arc::new(template), fact)
            }
        };
        let at = templates.iter().position(|known| Arc::ptr_eq(known, &template) || *known == template);
        let at = at.unwrap_or_else(|| {
            templates.push(template);
            templates.len() - 1
        });
        facts.push(InputExtent { template: at as u32, ..fact });
    }
    let model = Arc::clone(&templates[0]);
    let mut column = Column::new(model, None, facts.into_iter().collect::<InputExtents>());
    (column.templates, column.axis) = (templates, axis);
    Ok(column)
}

/// Refuses a column of strings that some inputs lack and that has no value for their rows.
fn refuse_missing_strings(path: &[u8], column: &Column) -> CombineResult<()> {
    let lacking = |(_, fact): &(u32, &InputExtent)| fact.template == ABSENT && fact.rows > 0;
    let lacking: Vec<u32> = (0..).zip(column.facts.iter()).filter(lacking).map(|(input, _)| input).collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => refuse(path, "strings", "none, and rows of strings cannot be filled", lacking),
    }
}

/// Restricts a column to these runs. Other rows of the inputs are trimmed.
fn take_runs(column: &mut Column, runs: Vec<Segment>) {
    let mut taken = vec![0; column.facts.len()];
    runs.iter().for_each(|run| taken[run.input as usize] += run.rows);
    let trim = |fact: &InputExtent| Some(Trim { leading: 0, stored_rows: fact.rows });
    column.trims = Some(column.facts.iter().map(trim).collect());
    column.facts = column.facts.iter().zip(taken).map(|(fact, rows)| InputExtent { rows, ..*fact }).collect();
    column.runs = Some(runs.into());
}

fn changed(model: &Dataset, form: &PieceDifferences) -> Dataset {
    let mut output = model.clone();
    if let Some(number) = form.number {
        output.datatype = Datatype { class: Arc::new(number.class()), committed: None };
        output.fill.value = None;
    }
    if let Some(fill) = form.fill.as_ref().filter(|_| !model.datatype.class.is_file_local()) {
        output.fill.value = Some(InlineData::Stored(fill.clone()));
        (output.fill.user_defined, output.fill.undefined) = (true, false);
    }
    if let (Some((axis, size)), Dataspace::Simple { dims, max_dims }) = (form.resized, &mut output.dataspace) {
        dims[axis] = size;
        max_dims[axis] = if max_dims[axis] == u64::MAX { u64::MAX } else { size };
    }
    output
}

/// Creates a dataset like `model` with these sizes and this type, whose values are known.
pub(super) fn constant_like(model: &Dataset, class: &TypeClass, dims: Vec<u64>) -> Dataset {
    let mut dataset = model.clone();
    if *dataset.datatype.class != *class {
        dataset.datatype = Datatype { class: Arc::new(class.clone()), committed: None };
        dataset.fill.value = None;
    }
    dataset.dataspace = Dataspace::Simple { max_dims: dims.clone(), dims };
    dataset.layout = Layout::Contiguous { address: None, len_bytes: 0 };
    dataset.filters = Vec::new();
    dataset
}

/// Returns the conversion of elements from one number type to another.
pub(super) fn cast(from: Option<NumberType>, to: Option<NumberType>) -> ElementMap {
    if to.is_none() || from == to { ElementMap::Same } else { ElementMap::Cast }
}

/// Returns how the elements of an axis are gathered from their positions in an input.
pub(super) fn gather(axis: usize, from: &Option<Arc<[Option<u32>]>>, len: u64) -> Option<Gather> {
    from.as_ref().map(|from| Gather { axis, from: Arc::clone(from), len })
}
