//! Comparison of the dimensions of variables across files, and assignment of dimension ids in the output.
//!
//! A variable refers to its dimensions by object references (`DIMENSION_LIST`). The netCDF library also assigns ids to
//! dimensions, starting at zero in each file (`_Netcdf4Dimid`, `_Netcdf4Coordinates`). A multidimensional coordinate
//! variable has only ids. [`super::attached`] updates `REFERENCE_LIST`. Source: the netCDF-4 format in HDF5 (NUG,
//! appendix C). Invariant: a variable has the same dimensions in the output as in every input, by path, and dimension
//! ids are unique. The dimension of a `char` variable's text length may differ between inputs (xarray's `string3`,
//! `string4`); the output uses the dimension of the longest strings.

use super::{DIMENSION_NUMBER, DIMENSION_NUMBERS, is_class_of_scales};
use crate::conventions::Completion;
use crate::rules::settling::DeclaredRule;
use crate::rules::{Placement, Rule};
use crate::scan::scale_lists::{DIMENSION_LIST, scales};
use crate::schema::attribute::{named, number, numbers, replaced, with_integers};
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, AttributeValue, Column, EntryIndex, Role, Schema, SchemaEntry, display_path};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Paths of the scales of each axis.
type Dimensions = Vec<Vec<Vec<u8>>>;

/// Compares the dimensions of each variable across inputs. For a new file it also sets the attributes that identify
/// them, and removes text-length dimensions that no variable of the output uses.
pub(super) fn settle(completion: &mut Completion<'_>) -> Vec<Difference> {
    let variables = Variables::of(completion);
    let mut differences = Vec::new();
    let chosen: Vec<OutputDimensions> =
        variables.all.iter().map(|variable| variables.choose(variable, completion.is_new, &mut differences)).collect();
    differences.extend(variables.other_lengths(&chosen));
    let left_out = variables.unused_lengths(&chosen, completion.is_new);
    if completion.is_new {
        let entries = &mut completion.schema.entries;
        for OutputDimensions { entry, list, .. } in &chosen {
            if let Some(list) = list {
                let attributes = &mut entries[*entry as usize].attributes;
                *attributes = replaced(attributes, list.clone());
            }
        }
        renumber(entries, &chosen, &left_out);
    }
    completion.left_out.extend(left_out);
    differences
}

/// Makes dimension ids unique in a union of files.
pub(crate) fn settle_union(schema: &mut Schema) {
    let first_attributes: Vec<Arc<[AttributeValue]>> =
        schema.entries.iter().map(|entry| Arc::clone(&entry.attributes)).collect();
    let columns = (0..).zip(&schema.entries).filter_map(|(at, entry)| match entry.role {
        Role::Column(column) => Some((at, column as usize)),
        _ => None,
    });
    let variable = |(at, column): (EntryIndex, usize)| {
        let (first, column) = (&*first_attributes[at as usize], &schema.columns[column]);
        let path = &*schema.entries[at as usize].path;
        Variable { entry: at, path, column, first, others: &[], rule: None, is_scale: is_class_of_scales(first) }
    };
    let variables = Variables::new(columns.map(variable).collect());
    let chosen: Vec<OutputDimensions> =
        variables.all.iter().map(|variable| variables.choose(variable, true, &mut Vec::new())).collect();
    renumber(&mut schema.entries, &chosen, &BTreeSet::new());
}

/// Dimensions of a variable in the output.
struct OutputDimensions {
    entry: EntryIndex,
    dimensions: Dimensions,
    /// New `DIMENSION_LIST`, if it differs from the first input's.
    list: Option<AttributeValue>,
    /// Text-length dimensions of the variable in the inputs.
    lengths: BTreeSet<Vec<u8>>,
}

/// netCDF variable: a dataset with at least one axis.
struct Variable<'c> {
    entry: EntryIndex,
    path: &'c [u8],
    column: &'c Column,
    /// Attributes in the first input that has the dataset, and in inputs where they differ.
    first: &'c [AttributeValue],
    others: &'c [(u32, Arc<[AttributeValue]>)],
    rule: Option<&'c Rule>,
    is_scale: bool,
}

impl Variable<'_> {
    fn is_in(&self, input: u32) -> bool {
        self.column.facts[input as usize].template != ABSENT
    }

    fn attributes(&self, input: u32) -> &[AttributeValue] {
        let other = self.others.binary_search_by_key(&input, |(input, _)| *input).ok();
        other.map_or(self.first, |at| &self.others[at].1)
    }

    /// Returns the axis of the characters of strings.
    fn axis_of_strings(&self) -> Option<usize> {
        self.rule?.widened
    }

    /// Returns whether the dataset is a string-length dimension.
    fn is_length(&self) -> bool {
        self.rule.is_some_and(|rule| rule.placement == Placement::Widest)
    }

    /// Returns whether the dimensions are identified by ids only.
    fn is_numbered(&self) -> bool {
        self.is_scale && self.column.model().dataspace.dims().len() > 1
    }

    /// Returns the input with the longest strings, and the axis of their characters.
    fn longest(&self) -> Option<(u32, usize)> {
        let axis = self.axis_of_strings().filter(|axis| *axis > 0)?;
        let len = |template: u32| self.column.templates.get(template as usize)?.dataspace.dims().get(axis).copied();
        let lens = (0..).zip(self.column.facts.iter()).filter_map(|(input, fact)| Some((len(fact.template)?, input)));
        // The first, if there are several.
        lens.max_by_key(|(len, input)| (*len, std::cmp::Reverse(*input))).map(|(_, input)| (input, axis))
    }

    fn size(&self, axis: usize) -> Option<u64> {
        match axis == self.column.axis {
            true => Some(self.column.rows()),
            false => self.column.model().dataspace.dims().get(axis).copied(),
        }
    }
}

struct Variables<'c> {
    all: Vec<Variable<'c>>,
    by_path: HashMap<&'c [u8], usize>,
}

impl<'c> Variables<'c> {
    fn of(completion: &'c Completion<'_>) -> Self {
        let schema = &*completion.schema;
        let variable = |declared: &'c DeclaredRule| {
            let SchemaEntry { path, role: Role::Column(column), .. } = &schema.entries[declared.entry as usize] else {
                return None;
            };
            Some(Variable {
                entry: declared.entry,
                path,
                column: &schema.columns[*column as usize],
                first: &declared.first,
                others: &declared.attributes,
                rule: Some(&declared.rule),
                is_scale: is_class_of_scales(&declared.first),
            })
        };
        Self::new(completion.declared.iter().filter_map(variable).collect())
    }

    fn new(all: Vec<Variable<'c>>) -> Self {
        let by_path = (0..).zip(&all).map(|(at, variable)| (variable.path, at)).collect();
        Self { all, by_path }
    }

    /// Returns the dimensions of a variable in an input that has it.
    fn dimensions(&self, variable: &Variable<'_>, input: u32) -> Dimensions {
        if !variable.is_scale {
            return scales(variable.attributes(input));
        }
        let mut dimensions = vec![vec![variable.path.to_vec()]];
        if variable.is_numbered() {
            let numbers = named(variable.attributes(input), DIMENSION_NUMBERS).and_then(numbers).unwrap_or_default();
            let of_input = self.all.iter().filter(|scale| scale.is_scale && scale.is_in(input));
            let by_number: HashMap<i64, &[u8]> = of_input
                .filter_map(|scale| Some((number(scale.attributes(input), DIMENSION_NUMBER)? as i64, scale.path)))
                .collect();
            let paths = numbers.iter().skip(1).map(|number| by_number.get(&(*number as i64)));
            dimensions.extend(paths.map(|path| path.map(|path| path.to_vec()).into_iter().collect()));
        }
        dimensions
    }

    /// Chooses the dimensions of a variable in the output, and reports inputs that disagree.
    fn choose(&self, variable: &Variable<'_>, is_new: bool, differences: &mut Vec<Difference>) -> OutputDimensions {
        let has_it = |input: &u32| variable.is_in(*input);
        let all = 0..variable.column.facts.len() as u32;
        let first = all.clone().find(has_it).unwrap_or(0);
        let known = self.dimensions(variable, first);
        let others: Vec<u32> = match variable.is_numbered() {
            true => all.skip(first as usize + 1).filter(has_it).collect(),
            false => variable.others.iter().map(|(input, _)| *input).collect(),
        };
        let longest = variable.longest();
        let axis_of_strings = variable.axis_of_strings();
        let mut disagreeing: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let length = |dimensions: &Dimensions| dimensions.get(axis_of_strings?)?.first().cloned();
        let mut lengths: BTreeSet<Vec<u8>> = length(&known).into_iter().collect();
        for input in others {
            let found = self.dimensions(variable, input);
            let is_same = |(axis, (known, found))| Some(axis) == axis_of_strings || known == found;
            if found.len() != known.len() || !(0..).zip(known.iter().zip(&found)).all(is_same) {
                disagreeing.entry(words(&found)).or_default().push(input);
            }
            lengths.extend(length(&found));
        }
        differences.extend(disagreeing.into_iter().map(|(found, inputs)| Difference {
            path: format!("{} (dimensions)", display_path(variable.path)),
            kind: DifferenceKind::Meaning,
            expected: words(&known),
            found,
            inputs,
        }));
        let entry = variable.entry;
        match longest.filter(|(input, _)| is_new && *input != first) {
            Some((input, _)) => {
                let list = named(variable.attributes(input), DIMENSION_LIST).cloned();
                OutputDimensions { entry, dimensions: self.dimensions(variable, input), list, lengths }
            }
            None => OutputDimensions { entry, dimensions: known, list: None, lengths },
        }
    }

    /// Reports variables whose text length, or another extent, differs from the length of their dimension. The reason
    /// is that other variables share the dimension, or that no variable of some inputs has it.
    fn other_lengths(&self, chosen: &[OutputDimensions]) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (variable, OutputDimensions { dimensions, .. }) in self.all.iter().zip(chosen) {
            let of_axes = dimensions.iter().enumerate();
            for (axis, path) in of_axes.flat_map(|(axis, paths)| paths.iter().map(move |path| (axis, path))) {
                let Some(scale) = self.by_path.get(path.as_slice()).map(|at| &self.all[*at]) else { continue };
                let (Some(size), len) = (variable.size(axis), scale.column.rows()) else { continue };
                if scale.is_length() && len != size {
                    let is_text = variable.axis_of_strings() == Some(axis);
                    let (expected, who) = match is_text {
                        true => (format!("strings of {size} characters"), "other variables share"),
                        false => (format!("{size} elements along {}", display_path(path)), "other inputs have"),
                    };
                    differences.push(Difference {
                        path: display_path(variable.path),
                        kind: DifferenceKind::Meaning,
                        expected,
                        found: format!("dimension {} of length {len}, which {who}", display_path(path)),
                        inputs: Vec::new(),
                    });
                }
            }
        }
        differences
    }

    /// Returns text-length dimensions that no variable of the output uses. A dimension that is unused in every input
    /// stays, and so does each dimension of a file that grows.
    fn unused_lengths(&self, chosen: &[OutputDimensions], is_new: bool) -> BTreeSet<Vec<u8>> {
        // The first axis of a dimension scale is the dimension itself.
        let dimensions = self
            .all
            .iter()
            .zip(chosen)
            .flat_map(|(variable, chosen)| chosen.dimensions.iter().skip(usize::from(variable.is_scale)).flatten());
        let used: HashSet<&[u8]> = dimensions.map(Vec::as_slice).collect();
        // A dimension is not a string of its own length.
        let strings = self.all.iter().zip(chosen).filter(|(variable, _)| !variable.is_length());
        let lengths: BTreeSet<&[u8]> = strings.flat_map(|(_, chosen)| &chosen.lengths).map(Vec::as_slice).collect();
        let is_unused = |variable: &&Variable<'_>| {
            variable.is_length()
                && (is_new || !variable.is_in(0))
                && !used.contains(variable.path)
                && (lengths.contains(variable.path) || variable.column.facts.iter().any(|fact| fact.template == ABSENT))
        };
        self.all.iter().filter(is_unused).map(|variable| variable.path.to_vec()).collect()
    }
}

/// Makes dimension ids unique, and updates the variables that refer to them. Files without ids get none.
fn renumber(entries: &mut [SchemaEntry], chosen: &[OutputDimensions], left_out: &BTreeSet<Vec<u8>>) {
    let mut taken: HashMap<i64, Vec<u8>> = HashMap::new();
    let (mut like, mut unnumbered) = (None, Vec::new());
    for (at, entry) in entries.iter().enumerate() {
        if !is_class_of_scales(&entry.attributes) || left_out.contains(&entry.path) {
            continue;
        }
        let number = number(&entry.attributes, DIMENSION_NUMBER).map(|number| number as i64);
        match number.filter(|number| !taken.contains_key(number)) {
            Some(number) => {
                taken.insert(number, entry.path.clone());
                like = like.or(named(&entry.attributes, DIMENSION_NUMBER).cloned());
            }
            None => unnumbered.push(at),
        }
    }
    let Some(like) = like else { return };
    let first_free = taken.keys().max().map_or(0, |last| last + 1);
    for (free, at) in (first_free..).zip(unnumbered) {
        let Some(number) = with_integers(&like, &[free]) else { return };
        entries[at].attributes = replaced(&entries[at].attributes, number);
        taken.insert(free, entries[at].path.clone());
    }
    let numbers: HashMap<Vec<u8>, i64> = taken.into_iter().map(|(number, path)| (path, number)).collect();
    for OutputDimensions { entry, dimensions, .. } in chosen {
        let attributes = &mut entries[*entry as usize].attributes;
        let of_axis = |scales: &Vec<Vec<u8>>| numbers.get(scales.first()?).copied();
        let Some(all) = dimensions.iter().map(of_axis).collect::<Option<Vec<i64>>>() else { continue };
        let of_all = named(attributes, DIMENSION_NUMBERS).and_then(|known| with_integers(known, &all));
        // A variable that shares a name with an unrelated dimension carries the id of its first dimension.
        let of_first = named(attributes, DIMENSION_NUMBER).and_then(|known| with_integers(known, all.get(..1)?));
        for new in of_all.into_iter().chain(of_first) {
            *attributes = replaced(attributes, new);
        }
    }
}

/// Describes dimensions for messages.
fn words(dimensions: &Dimensions) -> String {
    let of_axis = |scales: &Vec<Vec<u8>>| match scales.first() {
        Some(scale) => display_path(scale),
        None => "none".to_owned(),
    };
    format!("({})", dimensions.iter().map(of_axis).collect::<Vec<_>>().join(", "))
}
