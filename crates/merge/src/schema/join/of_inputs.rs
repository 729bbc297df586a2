//! Datasets with one value per input: differing scalars and attributes (`--scalars stack`, `--attributes
//! stack`), and added columns (`--add-column`).
//!
//! A stack has one row per input, an added column has one for each row of its table. No input holds these datasets;
//! their rows are in [`InputValues`]. Invariant: a row holds the value of its input, in one type for all inputs, or the
//! join is refused with the attribute and the inputs.

use super::added::AddedColumn;
use super::attribute_rows::{NewDataset, Source, make};
use super::attributes::describe_attribute;
use super::joined_entry::JoinedEntry;
use super::{AttributePolicy, Difference, DifferenceKind, Join, Joiner};
use crate::conventions::Choice;
use crate::rules::Placement;
use crate::schema::attribute::named;
use crate::schema::extents::InputExtents;
use crate::schema::parent_path;
use crate::schema::stacked_scalars::DifferingScalars;
use crate::schema::{
    ABSENT, AttributeValue, Column, InputExtent, InputValues, Role, SchemaEntry, child_path, display_path,
};
use raddle_hdf5::model::{CreationOrder, Dataset, Dataspace, Datatype, FillValue, Layout};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The attribute values of each input, for columns to be added.
#[derive(Debug, Default)]
pub(super) struct GatheredValues(Vec<Vec<Option<AttributeValue>>>);

impl GatheredValues {
    /// Adds the values of the next input; `find` returns the attributes of the object at a path.
    pub fn add<'a>(&mut self, columns: &[AddedColumn], find: impl Fn(&[u8]) -> Option<&'a [AttributeValue]>) {
        self.0.resize_with(columns.len(), Vec::new);
        for (column, values) in columns.iter().zip(&mut self.0) {
            let attributes = find(column.object.as_bytes()).unwrap_or_default();
            values.push(named(attributes, column.attribute.as_bytes()).cloned());
        }
    }
}

/// Entry numbers, indexed by path.
type Places = HashMap<Vec<u8>, usize>;

impl Joiner {
    /// Treats datasets of this kind that only the existing file has as present in all inputs.
    pub(super) fn adopt_grown(&mut self) {
        let inputs = self.inputs;
        if !self.grows || inputs < 2 {
            return;
        }
        let stacked: BTreeSet<Vec<u8>> = match self.options.attributes {
            AttributePolicy::Stack => self.entries.iter().flat_map(later_attributes).collect(),
            _ => BTreeSet::new(),
        };
        for joined in self
            .entries
            .iter_mut()
            .filter(|joined| joined.holders() == 1 && joined.present[0].start == 0 && joined.column.is_some())
        {
            let path = &joined.entry.path;
            if stacked.contains(path) || self.options.add_columns.iter().any(|column| column.is_at(path)) {
                joined.present = std::iter::once(0..inputs).collect();
            }
        }
    }

    /// Creates the datasets. Returns differences that prevent it, and warnings.
    pub(super) fn make_of_inputs(&mut self) -> (Vec<Difference>, Vec<Difference>) {
        let (mut differences, mut warnings) = (Vec::new(), Vec::new());
        let gathered = std::mem::take(&mut self.gathered.0);
        let stacks = self.options.attributes == AttributePolicy::Stack && self.options.join != Join::Union;
        if !stacks && self.options.add_columns.is_empty() {
            return (differences, warnings);
        }
        let places: Places = (0..).zip(&self.entries).map(|(at, joined)| (joined.entry.path.clone(), at)).collect();
        let mut new = Vec::new();
        if stacks {
            self.stack_attributes(&places, &mut new, &mut differences, &mut warnings);
        }
        self.add_columns(&gathered, &places, &mut new, &mut differences);
        let mut paths = BTreeSet::new();
        for (path, ..) in &new {
            if !paths.insert(path) {
                differences.push(Difference {
                    path: display_path(path),
                    kind: DifferenceKind::AttributeColumn,
                    expected: "values of one attribute".to_owned(),
                    found: "values of two attributes (--add-column, --attributes stack)".to_owned(),
                    inputs: (0..self.inputs).collect(),
                });
            }
        }
        let needs_dimension = match self.convention.flatten() {
            Some(Choice::Cf) => Some("a netCDF variable has dimensions, which such a dataset lacks"),
            Some(Choice::Anndata) => Some("an AnnData file has columns in obs and var only"),
            _ => None,
        };
        if let Some(reason) = needs_dimension
            && (!new.is_empty() || !self.options.add_columns.is_empty())
        {
            let path = new.first().map_or("/".to_owned(), |(path, ..)| display_path(path));
            differences.push(Difference {
                path,
                kind: DifferenceKind::Convention,
                expected: "no additional datasets".to_owned(),
                found: format!("a dataset of attributes (--add-column, --attributes stack): {reason}"),
                inputs: (0..self.inputs).collect(),
            });
        }
        if !differences.is_empty() {
            return (differences, Vec::new());
        }
        if stacks {
            for joined in &mut self.entries {
                joined.drop_attributes();
            }
        }
        let is_extendible = self.entries.iter().any(JoinedEntry::can_grow);
        for (path, dataset, rows) in new {
            match places.get(&path) {
                Some(&grown) => self.lengthen(grown, dataset, rows),
                None => self.put(path, dataset, rows, is_extendible),
            }
        }
        (differences, warnings)
    }

    /// Creates datasets from scalars that differ (`--scalars stack`), or adds rows to the existing ones in an
    /// append. Returns the differences that prevent it.
    pub(super) fn stack_scalars(&mut self) -> Vec<Difference> {
        let (inputs, grows) = (self.inputs, self.grows);
        let has_dimensions = self.convention.flatten() == Some(Choice::Cf);
        let is_extendible = !has_dimensions && self.entries.iter().any(JoinedEntry::can_grow);
        let (mut differences, mut stacks) = (Vec::new(), Vec::new());
        for (at, joined) in self.entries.iter_mut().enumerate().filter(|(_, joined)| !joined.differing.is_empty()) {
            let differing = std::mem::take(&mut joined.differing);
            if let Some(column) = &mut joined.column {
                // The first input already has its rows.
                let rows = differing.values(column.model(), &[], &[], inputs);
                column.of_inputs = Some(Arc::new(InputValues { rows }));
                continue;
            }
            if grows {
                differences.push(Difference {
                    path: display_path(&joined.entry.path),
                    kind: DifferenceKind::Value,
                    expected: "the value of all previous inputs".to_owned(),
                    found: "a different value, for which the file has no dataset; merge all inputs again".to_owned(),
                    inputs: (1..inputs).collect(),
                });
                continue;
            }
            let Role::Constant { dataset, committed, value } = &mut joined.entry.role else { continue };
            let rows = differing.values(dataset, value, &joined.present, inputs);
            let mut template = (**dataset).clone();
            template.dataspace = one_axis(u64::from(inputs), &[], is_extendible);
            template.layout = Layout::Contiguous { address: None, len_bytes: 0 };
            template.filters = Vec::new();
            let facts: InputExtents = (0..inputs).map(|_| InputExtent::absent(1)).collect();
            let mut column = Column::new(Arc::new(template), committed.take(), facts);
            column.of_inputs = Some(Arc::new(InputValues { rows }));
            joined.entry.role = Role::Column(0);
            joined.column = Some(column);
            stacks.push(at);
        }
        if has_dimensions && !stacks.is_empty() {
            self.add_stack_dimension(&stacks);
        }
        differences
    }

    fn stack_attributes(
        &self,
        places: &Places,
        new: &mut Vec<(Vec<u8>, NewDataset, Vec<u64>)>,
        differences: &mut Vec<Difference>,
        warnings: &mut Vec<Difference>,
    ) {
        for joined in &self.entries {
            for name in differing_names(joined) {
                let path = stack_path(joined, &name);
                let grown = self.grown_column(places, &path);
                let mut values: Vec<Option<&AttributeValue>> =
                    (0..self.inputs).map(|input| named(attributes_of(joined, input), &name)).collect();
                if grown.is_some() {
                    values[0] = None;
                }
                let (object, option) = (joined.entry.path.as_slice(), "--attributes stack");
                let source = Source { object, attribute: &name, values, option };
                if joined.declared.as_ref().is_some_and(|declared| declared.rule.stays_scalar) {
                    differences.push(self.assembled(&source));
                    continue;
                }
                if let Some(difference) = self.unfit(places, &source, &path, grown) {
                    differences.push(difference);
                    continue;
                }
                match make(&source, grown) {
                    Ok(dataset) => {
                        if grown.is_none() {
                            warnings.push(stacked(&source, &path));
                        }
                        new.push((path, dataset, vec![1; self.inputs as usize]));
                    }
                    Err(difference) => differences.push(difference),
                }
            }
        }
    }

    fn add_columns(
        &self,
        gathered: &[Vec<Option<AttributeValue>>],
        places: &Places,
        new: &mut Vec<(Vec<u8>, NewDataset, Vec<u64>)>,
        differences: &mut Vec<Difference>,
    ) {
        for (column, values) in self.options.add_columns.iter().zip(gathered) {
            let (object, attribute) = (column.object.as_bytes(), column.attribute.as_bytes());
            let mut source = Source {
                object,
                attribute,
                values: values.iter().map(Option::as_ref).collect(),
                option: "--add-column",
            };
            if self.grows
                && let Some(first) = source.values.first_mut()
            {
                *first = None;
            }
            let mut is_anywhere = false;
            for (group, lengths) in self.tables(column) {
                let Some(path) = column.path_in(&group) else { continue };
                let grown = self.grown_column(places, &path);
                if self.grows && grown.is_none() {
                    continue;
                }
                is_anywhere = true;
                let refusal =
                    self.unfit(places, &source, &path, grown).or_else(|| unclear(&path, &lengths, self.inputs));
                if let Some(difference) = refusal {
                    // A missing attribute is reported once, not for every group.
                    if !differences.contains(&difference) {
                        differences.push(difference);
                    }
                    continue;
                }
                match make(&source, grown) {
                    Ok(dataset) => {
                        let rows = (0..self.inputs as usize).map(|input| rows_in(&lengths, input).unwrap_or(0));
                        new.push((path, dataset, rows.collect()));
                    }
                    Err(difference) if differences.contains(&difference) => {}
                    Err(difference) => differences.push(difference),
                }
            }
            if !is_anywhere {
                differences.push(Difference {
                    path: column.name.clone(),
                    kind: DifferenceKind::AttributeColumn,
                    expected: "datasets with rows in its group (--add-column)".to_owned(),
                    found: "none".to_owned(),
                    inputs: (0..self.inputs).collect(),
                });
            }
        }
    }

    /// Returns the column at `path` of a file that is appended to.
    fn grown_column(&self, places: &Places, path: &[u8]) -> Option<&Column> {
        let &at = places.get(path).filter(|_| self.grows)?;
        self.entries[at].column.as_ref()
    }

    /// Refuses an attribute of a group from whose datasets readers assemble one object.
    fn assembled(&self, source: &Source<'_>) -> Difference {
        let what = format!("attribute {} of {}", display_path(source.attribute), display_path(source.object));
        Difference {
            path: display_path(source.object),
            kind: DifferenceKind::AttributeColumn,
            expected: "a group that readers can assemble".to_owned(),
            found: format!("{what} as an additional dataset; --attributes first keeps the first input's"),
            inputs: (0..self.inputs).collect(),
        }
    }

    /// Returns the reason why a dataset of `source` cannot be placed at `path`.
    fn unfit(&self, places: &Places, source: &Source<'_>, path: &[u8], grown: Option<&Column>) -> Option<Difference> {
        let difference = |kind, expected: String, found: String, inputs| {
            Some(Difference { path: display_path(path), kind, expected, found, inputs })
        };
        let all = || (0..self.inputs).collect::<Vec<u32>>();
        let what = format!("attribute {} of {}", display_path(source.attribute), display_path(source.object));
        if source.attribute.contains(&b'/') && source.option == "--attributes stack" {
            let found = format!("{what}, whose name has a slash; --attributes first keeps one value");
            return difference(DifferenceKind::AttributeColumn, "the name of a dataset".to_owned(), found, all());
        }
        if self.grows && grown.is_none() {
            let found = format!("{what} differs, but the file has a single value; merge all inputs again");
            return difference(DifferenceKind::AttributeColumn, "a dataset of the file".to_owned(), found, all());
        }
        let holders = |joined: &JoinedEntry| {
            let found =
                format!("{}, at the path for the values of {what} ({})", joined.entry.role.word(), source.option);
            let holders = joined.present.iter().cloned().flatten().collect();
            difference(DifferenceKind::AttributeColumn, "nothing".to_owned(), found, holders)
        };
        if grown.is_none()
            && let Some(&taken) = places.get(path)
        {
            return holders(&self.entries[taken]);
        }
        let lacking = (0..).zip(&source.values).skip(usize::from(grown.is_some()));
        let lacking: Vec<u32> =
            lacking.filter(|(_, value)| value.is_none()).map(|(input, _): (u32, _)| input).collect();
        if lacking.is_empty() {
            return None;
        }
        let expected =
            source.values.iter().flatten().next().map_or_else(|| what.clone(), |value| describe_attribute(value));
        Some(Difference {
            path: display_path(source.object),
            kind: DifferenceKind::AttributeColumn,
            expected: format!("{expected} ({})", source.option),
            found: format!("no {}", display_path(source.attribute)),
            inputs: lacking,
        })
    }

    /// Returns the groups that could hold an added column, with the distinct lengths per input of the datasets in each.
    fn tables(&self, column: &AddedColumn) -> BTreeMap<Vec<u8>, BTreeMap<Vec<u64>, Vec<u8>>> {
        let mut tables: BTreeMap<Vec<u8>, BTreeMap<Vec<u64>, Vec<u8>>> = BTreeMap::new();
        for joined in &self.entries {
            let Some(rows) = &joined.column else { continue };
            let is_once = joined.kept.is_some()
                || joined.declared.as_ref().is_some_and(|declared| declared.rule.placement != Placement::Along(0));
            // In an append, datasets computed from attributes, of which the inputs have no rows.
            let is_adopted = self.grows
                && joined.holders() == self.inputs
                && rows.facts.iter().skip(1).all(|fact| fact.template == ABSENT);
            let is_computed = self.derived.iter().any(|spec| spec.makes(&joined.entry.path));
            if is_once || is_adopted || is_computed || rows.axis > 0 || column.is_at(&joined.entry.path) {
                continue;
            }
            let lengths = rows.facts.iter().map(|fact| fact.rows).collect();
            let group = parent_path(&joined.entry.path).to_vec();
            tables.entry(group).or_default().entry(lengths).or_insert_with(|| joined.entry.path.clone());
        }
        tables
    }

    /// Adds rows after the existing ones of a file that is appended to.
    fn lengthen(&mut self, at: usize, dataset: NewDataset, rows: Vec<u64>) {
        if let Some(column) = &mut self.entries[at].column {
            let first = column.facts.first().copied().unwrap_or(InputExtent::absent(0));
            let others = rows.into_iter().skip(1).map(InputExtent::absent);
            column.facts = std::iter::once(first).chain(others).collect();
            column.of_inputs = Some(Arc::new(InputValues { rows: dataset.rows }));
        }
    }

    /// Adds a dataset to the schema. It is extendible if other datasets are.
    pub(super) fn put(&mut self, path: Vec<u8>, dataset: NewDataset, rows: Vec<u64>, is_extendible: bool) {
        let template = Dataset {
            datatype: Datatype { class: dataset.class, committed: None },
            dataspace: one_axis(rows.iter().sum(), &dataset.dims, is_extendible),
            layout: Layout::Contiguous { address: None, len_bytes: 0 },
            filters: Vec::new(),
            fill: FillValue::default(),
        };
        let facts: InputExtents = rows.into_iter().map(InputExtent::absent).collect();
        let mut column = Column::new(Arc::new(template), None, facts);
        column.of_inputs = Some(Arc::new(InputValues { rows: dataset.rows }));
        let entry = SchemaEntry {
            utf8: !path.is_ascii(),
            path,
            role: Role::Column(0),
            attributes: Arc::from([]),
            attribute_order: CreationOrder::default(),
            comment: None,
        };
        self.entries.push(JoinedEntry {
            entry,
            column: Some(column),
            has_rows: true,
            kept: None,
            present: std::iter::once(0..self.inputs).collect(),
            dropped_attributes: HashSet::new(),
            other_attributes: Vec::new(),
            differing: DifferingScalars::default(),
            declared: None,
            is_disputed: false,
        });
    }
}

impl JoinedEntry {
    /// Returns whether an input has the object as a dataset with unlimited dimensions.
    fn can_grow(&self) -> bool {
        self.column.iter().flat_map(|column| &column.templates).any(|template| match &template.dataspace {
            Dataspace::Simple { max_dims, .. } => max_dims.first() == Some(&u64::MAX),
            _ => false,
        })
    }
}

/// Returns the extent of rows with these dimensions.
fn one_axis(rows: u64, of_row: &[u64], is_extendible: bool) -> Dataspace {
    let dims: Vec<u64> = std::iter::once(rows).chain(of_row.iter().copied()).collect();
    let mut max_dims = dims.clone();
    if is_extendible {
        max_dims[0] = u64::MAX;
    }
    Dataspace::Simple { dims, max_dims }
}

/// Returns the attributes that differ between the first input and later ones, as paths of datasets.
fn later_attributes(joined: &JoinedEntry) -> Vec<Vec<u8>> {
    differing_names(joined).iter().map(|name| stack_path(joined, name)).collect()
}

/// Returns the path for the values of an attribute: in the group that has it, or next to the dataset, as
/// `DATASET.ATTRIBUTE`.
fn stack_path(joined: &JoinedEntry, name: &[u8]) -> Vec<u8> {
    let object = &joined.entry.path;
    match joined.entry.role {
        Role::Group { .. } => child_path(object, name),
        _ => [object.as_slice(), b".", name].concat(),
    }
}

fn attributes_of(joined: &JoinedEntry, input: u32) -> &[AttributeValue] {
    if !joined.present.iter().any(|run| run.contains(&input)) {
        return &[];
    }
    let other = joined.other_attributes.binary_search_by_key(&input, |(other, _)| *other);
    other.map_or(&joined.entry.attributes, |at| &joined.other_attributes[at].1)
}

/// Returns the names of attributes that are not the same in all inputs, except those that a rule accounts for.
fn differing_names(joined: &JoinedEntry) -> BTreeSet<Vec<u8>> {
    let first = &joined.entry.attributes;
    let mut names = BTreeSet::new();
    for (_, other) in &joined.other_attributes {
        let changed = first.iter().filter(|one| named(other, &one.name) != Some(one));
        let added = other.iter().filter(|one| named(first, &one.name).is_none());
        names.extend(changed.chain(added).map(|one| one.name.clone()));
    }
    let is_settled = |name: &Vec<u8>| joined.declared.as_ref().is_some_and(|one| one.rule.accounts_for(name));
    names.retain(|name| !is_settled(name));
    names
}

/// Returns the warning that an attribute was stacked.
fn stacked(source: &Source<'_>, path: &[u8]) -> Difference {
    let first = source.values.iter().flatten().next().copied();
    let others = (0..).zip(&source.values).filter(|(_, value)| **value != first).map(|(input, _)| input);
    Difference {
        path: display_path(source.object),
        kind: DifferenceKind::Attributes,
        expected: first.map_or_else(String::new, describe_attribute),
        found: format!("others: stacked in {}", display_path(path)),
        inputs: others.collect(),
    }
}

/// Returns the number of rows in an input, which must be the same for all datasets of a group.
fn rows_in(lengths: &BTreeMap<Vec<u64>, Vec<u8>>, input: usize) -> Option<u64> {
    lengths.keys().next()?.get(input).copied()
}

/// Returns a difference if the datasets of a group have different numbers of rows.
fn unclear(path: &[u8], lengths: &BTreeMap<Vec<u64>, Vec<u8>>, inputs: u32) -> Option<Difference> {
    let mut of_datasets = lengths.iter();
    let (left, right) = (of_datasets.next()?, of_datasets.next()?);
    let input = (0..inputs as usize).find(|&input| left.0.get(input) != right.0.get(input))?;
    let words = |(rows, dataset): (&Vec<u64>, &Vec<u8>)| {
        format!("{} rows as {}", rows.get(input).copied().unwrap_or(0), display_path(dataset))
    };
    Some(Difference {
        path: display_path(path),
        kind: DifferenceKind::AttributeColumn,
        expected: words(left),
        found: format!("{}; --add-column needs a group whose datasets have equal numbers of rows", words(right)),
        inputs: vec![input as u32],
    })
}
