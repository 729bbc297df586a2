//! CF and netCDF-4: records are concatenated along one dimension, whichever axis of a variable it is; everything else
//! is kept once.
//!
//! Tests compare outputs with xarray's `concat`, CDO and NCO. Sources: CF conventions 1.11; the netCDF-4 format in HDF5
//! (NUG, appendix C). Invariant: a variable is concatenated along its axis with the record dimension, and only one axis
//! has it.

mod attached;
pub(crate) mod axes;
pub(super) mod dimensions;
mod lengths;
mod new_dim;
pub(crate) mod references;
pub(crate) mod tiles;

use super::{Choice, Completion, Convention, ConventionOptions, FileView, Refusal};
use crate::rules::packed::{PACKING, VALID};
use crate::rules::time_units::is_time_units;
use crate::rules::{Placement, PositionForm, Rule, TimeAttributes, ValueMeaning};
use crate::scan::scale_lists::{DIMENSION_LIST, REFERENCE_LIST, scales};
use crate::schema::attribute::{NO_VARIABLE, named, replaced, text, text_without_variable, with_text};
use crate::schema::join::Difference;
use crate::schema::{AttributeValue, Role, child_path, display_path, is_named, parent_path};
use raddle_hdf5::model::TypeClass;
pub(crate) use raddle_hdf5::netcdf::DIMENSION_NUMBER;
use raddle_hdf5::netcdf::{CONVENTIONS, MAX_EXAMINED, PROPERTIES, names_convention};
use raddle_hdf5::number::NumberType;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The CF and netCDF-4 convention.
pub struct Cf;

/// Attributes that change the meaning of values, without the attributes of packing.
const MEANING: [&str; 20] = [
    "units",
    "units_metadata",
    "calendar",
    "month_lengths",
    "leap_year",
    "leap_month",
    "dtype",
    "_Encoding",
    "flag_values",
    "flag_masks",
    "flag_meanings",
    "positive",
    "standard_name",
    "cell_methods",
    "grid_mapping",
    "formula_terms",
    "compress",
    "start_index",
    "bounds",
    "climatology",
];
/// Name of the attribute with the ids of a variable's dimensions.
const DIMENSION_NUMBERS: &str = "_Netcdf4Coordinates";
/// Attributes that identify dimensions, which [`dimensions`] compares by path.
const DIMENSIONS: [&str; 4] = [DIMENSION_LIST, REFERENCE_LIST, DIMENSION_NUMBER, DIMENSION_NUMBERS];
/// Attribute that names coordinates which are not those of a dimension.
const COORDINATES: &str = "coordinates";
/// Attributes that name the bounds of a coordinate.
pub(crate) const BOUNDS: [&str; 2] = ["bounds", "climatology"];
/// Attribute of the calendar of a time.
pub(crate) const CALENDAR: &str = "calendar";
/// Beginning of the line that a merge adds to the attribute `history` of the root.
const HISTORY_LINE: &str = "raddle merge of ";

impl Convention for Cf {
    fn choice(&self) -> Choice {
        Choice::Cf
    }

    fn recognise(&self, file: &FileView<'_>) -> Option<String> {
        let conventions = file.root_text(CONVENTIONS).unwrap_or_default();
        if names_convention(&conventions) {
            return Some(format!("attribute Conventions is {conventions:?}"));
        }
        if file.has(0, PROPERTIES) {
            return Some("attribute _NCProperties".to_owned());
        }
        let is_netcdf = |at: &usize| file.has(*at, DIMENSION_NUMBER);
        let at = (1..file.len()).take(MAX_EXAMINED).find(is_netcdf)?;
        Some(format!("{} has an attribute _Netcdf4Dimid", display_path(file.path_of(at))))
    }

    fn rules(&self, file: &FileView<'_>, options: &ConventionOptions) -> Result<Vec<(usize, Rule)>, Refusal> {
        let variables = Variables::of(file);
        let mut rules = match &options.new_dim {
            _ if options.tiles.is_some() => tiles::rules(&variables, options),
            Some(name) => {
                // The new axis is the first one.
                lengths::check(&variables, &BTreeSet::new(), 0)?;
                new_dim::rules(&variables, name, options)
            }
            None => rules_along_records(&variables, options),
        }?;
        let named = of_grid(file, &[COORDINATES]);
        let is_coordinate = |at| named.contains(&at) || is_scale(file, at) && !is_without_variable(file, at);
        let mappings = mappings(file);
        for (at, rule) in rules.iter_mut().filter(|(_, rule)| rule.placement == Placement::Once) {
            rule.is_coordinate = file.column(*at).is_some() && is_coordinate(*at);
            if mappings.contains(at) {
                let names = file.attributes(*at).iter().map(|attribute| attribute.name.clone());
                rule.attributes.extend(names.filter(|name| !is_of_library(name)));
            }
        }
        Ok(rules)
    }

    fn settle(&self, completion: &mut Completion<'_>) -> Vec<Difference> {
        let mut differences = dimensions::settle(completion);
        differences.extend(tiles::settle(completion));
        differences
    }

    fn warnings(&self, completion: &Completion<'_>) -> Vec<Difference> {
        tiles::holes(completion)
    }

    fn complete(&self, completion: &mut Completion<'_>) {
        new_dim::complete(completion);
        tiles::complete(completion);
        attached::complete(completion.schema);
        let schema = &mut *completion.schema;
        let mut lengths: BTreeMap<&[u8], u64> = BTreeMap::new();
        for declared in completion.declared {
            if let (Some(record), Role::Column(column)) =
                (&declared.rule.record, &schema.entries[declared.entry as usize].role)
            {
                let longest = lengths.entry(record).or_default();
                *longest = (*longest).max(schema.columns[*column as usize].rows());
            }
        }
        for entry in &mut schema.entries {
            let Role::Column(column) = entry.role else { continue };
            let rows = schema.columns[column as usize].rows();
            let rows = lengths.get(entry.path.as_slice()).copied().unwrap_or(0).max(rows);
            if let Some(attributes) = with_length(&entry.attributes, rows) {
                entry.attributes = attributes;
            }
        }
        if let Some(root) = schema.entries.first_mut() {
            let line = format!("{HISTORY_LINE}{} files (raddle {})", completion.inputs, env!("CARGO_PKG_VERSION"));
            if let Some(history) = named(&root.attributes, "history") {
                let known = text(&root.attributes, "history").unwrap_or_default();
                root.attributes = replaced(&root.attributes, with_text(history, &format!("{line}\n{known}")));
            }
        }
    }
}

/// Returns the rules of a file whose records are concatenated.
fn rules_along_records(
    variables: &Variables<'_, '_>,
    options: &ConventionOptions,
) -> Result<Vec<(usize, Rule)>, Refusal> {
    let file = variables.file;
    let records = variables.records(options)?;
    references::check(variables, &records)?;
    lengths::check(variables, &records, 1)?;
    let bounds = variables.bounds();
    let texts = variables.text_lengths();
    let mut rules = Vec::new();
    for (&at, dims) in &variables.dims {
        let mut along = dims.iter().enumerate().filter(|(_, dim)| records.contains(*dim));
        let mut rule = match (along.next(), along.next()) {
            (Some((_, first)), Some((_, second))) if first == second => {
                return Err(Refusal {
                    object: display_path(file.path_of(at)),
                    reason: format!(
                        "has two axes along {}, along which files are concatenated; leave it out with --exclude",
                        display_path(first)
                    ),
                });
            }
            (Some((_, first)), Some((_, second))) => {
                return Err(Refusal {
                    object: display_path(file.path_of(at)),
                    reason: format!(
                        "has more than one unlimited dimension, {} and {}; --dim selects the one along which \
                         files are concatenated",
                        display_path(first),
                        display_path(second)
                    ),
                });
            }
            (Some((axis, dim)), None) => Rule { record: Some(dim.clone()), ..Rule::along(axis) },
            (None, _) => Rule::once(),
        };
        rule = of_variable(rule);
        rule.values = match references::target(variables, at).filter(|target| records.contains(target)) {
            Some(target) => ValueMeaning::Positions { target, form: PositionForm::Rows },
            None => values(file, at, bounds.get(&at).copied()),
        };
        if is_without_variable(file, at) {
            rule.values = ValueMeaning::Plain;
            rule = rule.ignoring(&["NAME"]);
            rule.placement = match rule.placement {
                Placement::Along(_) => Placement::Empty,
                _ if texts.contains(file.path_of(at)) => Placement::Widest,
                placement => placement,
            };
        }
        if let Some(axis) = dims.len().checked_sub(1)
            && texts.contains(&dims[axis])
        {
            rule.widened = Some(axis);
        }
        rules.push((at, rule));
    }
    // A scalar applies to all inputs, so it must have the same meaning in each.
    for at in (1..file.len()).filter(|&at| file.scalar(at).is_some()) {
        rules.push((at, of_scalar()));
    }
    rules.push((0, of_root(options)));
    Ok(rules)
}

/// Returns the variables with dimensions that `attributes` name, and the bounds of these and of dimension scales.
fn of_grid(file: &FileView<'_>, attributes: &[&str]) -> BTreeSet<usize> {
    let mut grid = BTreeSet::new();
    for at in 1..file.len() {
        for text in attributes.iter().filter_map(|name| file.text(at, name)) {
            grid.extend(text.split_whitespace().filter_map(|word| variable(file, at, word)));
        }
    }
    grid.retain(|&at| file.column(at).is_some());
    let coordinates: Vec<usize> = (1..file.len()).filter(|at| is_scale(file, *at) || grid.contains(at)).collect();
    grid.extend(coordinates.into_iter().flat_map(|at| bounds(file, at)));
    grid
}

/// Creates a rule for a variable with dimensions.
fn of_variable(rule: Rule) -> Rule {
    let rule = rule.with_attributes(&PACKING).with_attributes(&VALID).with_attributes(&MEANING);
    rule.ignoring(&DIMENSIONS)
}

/// Creates the rule of a scalar that is kept once.
fn of_scalar() -> Rule {
    Rule::once().with_attributes(&PACKING).with_attributes(&VALID).with_attributes(&MEANING)
}

/// Returns the variables whose attributes describe map projections: they name a projection, or another variable names
/// them.
fn mappings(file: &FileView<'_>) -> BTreeSet<usize> {
    let mut mappings: BTreeSet<usize> = (1..file.len()).filter(|&at| file.has(at, GRID_MAPPING)).collect();
    for (at, text) in (1..file.len()).filter_map(|at| Some((at, file.text(at, "grid_mapping")?))) {
        // In the extended form, `mapping: coordinates`, other words name coordinates.
        let is_extended = text.contains(':');
        let words = text.split_whitespace().filter(|word| !is_extended || word.ends_with(':'));
        mappings.extend(words.filter_map(|word| variable(file, at, word.trim_end_matches(':'))));
    }
    mappings
}

/// Determines the meaning of the values of a variable; `time` is the entry of the time whose bounds it holds.
fn values(file: &FileView<'_>, at: usize, time: Option<usize>) -> ValueMeaning {
    // Bounds with units but without a calendar have the calendar of their time.
    let inherits = |time: usize| !is_time(file, at) || !file.has(at, CALENDAR) && file.has(time, CALENDAR);
    match time {
        Some(time) if inherits(time) => ValueMeaning::TimeOf { time: file.path_of(time).to_vec() },
        _ if is_time(file, at) => ValueMeaning::Time(TimeAttributes::Cf),
        _ if file.class(at).is_some_and(|class| NumberType::of(class).is_some()) => ValueMeaning::Packed,
        _ => ValueMeaning::Plain,
    }
}

/// Returns the variables that hold the bounds of entry `at`.
fn bounds(file: &FileView<'_>, at: usize) -> impl Iterator<Item = usize> {
    let names = BOUNDS.iter().filter_map(|name| file.text(at, name));
    names.filter_map(|name| variable(file, at, &name)).collect::<Vec<_>>().into_iter()
}

/// Returns the variable that an attribute of entry `at` names.
fn variable(file: &FileView<'_>, at: usize, name: &str) -> Option<usize> {
    paths_of_name(file.path_of(at), name).find_map(|path| file.find(&path))
}

/// Returns the paths that a name in an attribute of the object at `path` may mean, the nearest first (CF section 2.7):
/// an absolute path, or a name or path that starts from the group of the object or from an enclosing one.
pub(crate) fn paths_of_name(path: &[u8], name: &str) -> impl Iterator<Item = Vec<u8>> {
    let enclosing = |group: &Vec<u8>| (group != b"/").then(|| parent_path(group).to_vec());
    let first = if name.starts_with('/') { b"/" } else { parent_path(path) };
    let groups = std::iter::successors(Some(first.to_vec()), enclosing);
    groups.map(move |group| {
        let parts = name.split('/').filter(|part| !part.is_empty() && *part != ".");
        parts.fold(group, |path, part| match part {
            ".." => parent_path(&path).to_vec(),
            part => child_path(&path, part.as_bytes()),
        })
    })
}

/// Creates the rule of the root group.
fn of_root(options: &ConventionOptions) -> Rule {
    let mut root =
        Rule::default().with_attributes(&["Conventions"]).ignoring(&["history", "_NCProperties", "_nc3_strict"]);
    root.attributes.extend(options.require_equal.iter().map(|name| name.clone().into_bytes()));
    root
}

/// Returns whether an attribute of two files is a `history` that differs only in the lines that merges by raddle added
/// to its beginning: an append adds none.
pub(crate) fn are_same_history(left: &AttributeValue, right: &AttributeValue) -> bool {
    let before_merges = |attribute: &AttributeValue| {
        let text = text(std::slice::from_ref(attribute), "history")?;
        let mut before = text.as_str();
        while let Some((line, rest)) = before.split_once('\n')
            && line.starts_with(HISTORY_LINE)
        {
            before = rest;
        }
        Some(before.to_owned())
    };
    let known = before_merges(left);
    known.is_some() && known == before_merges(right)
}

/// Attribute that identifies a variable whose other attributes describe a map projection.
const GRID_MAPPING: &str = "grid_mapping_name";

/// Returns whether an attribute holds internal information of the netCDF library.
fn is_of_library(name: &[u8]) -> bool {
    name.starts_with(b"_Netcdf4")
        || [b"NAME".as_slice(), b"CLASS", b"REFERENCE_LIST", b"DIMENSION_LIST"].contains(&name)
}

fn is_without_variable(file: &FileView<'_>, at: usize) -> bool {
    names_no_variable(file.attributes(at))
}

/// Returns the attributes of a dimension without a variable for another length; `None` if they do not belong to such a
/// dimension.
pub(crate) fn with_length(attributes: &[AttributeValue], len: u64) -> Option<Arc<[AttributeValue]>> {
    let name = named(attributes, "NAME").filter(|_| names_no_variable(attributes))?;
    Some(replaced(attributes, with_text(name, &text_without_variable(len))))
}

/// Returns whether the attributes mark a dimension without a variable.
pub(crate) fn names_no_variable(attributes: &[AttributeValue]) -> bool {
    text(attributes, "NAME").is_some_and(|name| name.starts_with(NO_VARIABLE))
}

fn is_time(file: &FileView<'_>, at: usize) -> bool {
    file.text(at, "units").is_some_and(|units| is_time_units(&units))
}

/// Variables of a file with the paths of their dimensions.
struct Variables<'f, 'a> {
    file: &'f FileView<'a>,
    /// Dimension of each axis, by entry; empty for an axis without one.
    dims: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Dimensions that can grow, and all dimensions.
    unlimited: BTreeSet<Vec<u8>>,
    all: BTreeSet<Vec<u8>>,
    /// Scales of an axis that has several, which plain HDF5 allows.
    alike: Vec<Vec<Vec<u8>>>,
}

impl<'f, 'a> Variables<'f, 'a> {
    fn of(file: &'f FileView<'a>) -> Self {
        let (dims, unlimited, all, alike) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new(), Vec::new());
        let mut variables = Self { file, dims, unlimited, all, alike };
        let mut by_id = BTreeMap::new();
        for at in 0..file.len() {
            if file.column(at).is_none() || !is_scale(file, at) {
                continue;
            }
            let path = file.path_of(at).to_vec();
            if file.unlimited(at).first() == Some(&true) {
                variables.unlimited.insert(path.clone());
            }
            if let Some(id) = crate::schema::attribute::number(file.attributes(at), DIMENSION_NUMBER) {
                by_id.insert(id as i64, path.clone());
            }
            variables.all.insert(path);
        }
        for at in 0..file.len() {
            let Some(dims) = file.dims(at) else { continue };
            let of_axes = scales(file.attributes(at));
            variables.alike.extend(of_axes.iter().filter(|scales| scales.len() > 1).cloned());
            let mut names: Vec<Vec<u8>> =
                of_axes.into_iter().map(|scales| scales.into_iter().next().unwrap_or_default()).collect();
            names.resize(dims.len(), Vec::new());
            if is_scale(file, at) {
                names = vec![Vec::new(); dims.len()];
                names[0] = file.path_of(at).to_vec();
                // A multidimensional coordinate variable has only the ids of its dimensions.
                let ids = named(file.attributes(at), DIMENSION_NUMBERS).and_then(crate::schema::attribute::numbers);
                for (name, id) in names.iter_mut().zip(ids.unwrap_or_default()).skip(1) {
                    name.clone_from(by_id.get(&(id as i64)).unwrap_or(&Vec::new()));
                }
            }
            variables.dims.insert(at, names);
        }
        variables
    }

    /// Returns the dimensions along which files are concatenated, with all scales of their axes.
    fn records(&self, options: &ConventionOptions) -> Result<BTreeSet<Vec<u8>>, Refusal> {
        let mut records = self.first_records(options)?;
        loop {
            let is_record = |scales: &&Vec<Vec<u8>>| scales.iter().any(|scale| records.contains(scale));
            let others: Vec<Vec<u8>> = self.alike.iter().filter(is_record).flatten().cloned().collect();
            let known = records.len();
            records.extend(others);
            if records.len() == known {
                return Ok(records);
            }
        }
    }

    /// Returns the dimensions along which files are concatenated, one for each axis.
    fn first_records(&self, options: &ConventionOptions) -> Result<BTreeSet<Vec<u8>>, Refusal> {
        let refuse = |reason: String| Err(Refusal { object: "/".to_owned(), reason });
        let names = |dims: &BTreeSet<Vec<u8>>| dims.iter().map(|dim| display_path(dim)).collect::<Vec<_>>().join(", ");
        if self.all.is_empty() && !self.file.may_lack_records {
            return refuse(
                "has no dimension along which files could be concatenated; --convention none concatenates each dataset along \
                 its first axis"
                    .to_owned(),
            );
        }
        if options.dim.is_some() {
            let exists = |name: &str| self.all.iter().any(|dim| is_named(dim, name));
            let names_of_dims = options.dims(exists);
            if let Some(name) = names_of_dims.iter().find(|name| !exists(name) && !self.file.may_lack_records) {
                return refuse(format!("has no dimension {name:?} (--dim); it has {}", names(&self.all)));
            }
            let is_asked = |dim: &&Vec<u8>| names_of_dims.iter().any(|name| is_named(dim, name));
            return Ok(self.all.iter().filter(is_asked).cloned().collect());
        }
        if !self.unlimited.is_empty() {
            return Ok(self.unlimited.clone());
        }
        let is_timed = |dim: &&Vec<u8>| self.file.find(dim).is_some_and(|at| is_time(self.file, at));
        let times: BTreeSet<Vec<u8>> = self.all.iter().filter(is_timed).cloned().collect();
        match times.len() {
            1 => Ok(times),
            // No merged dataset lies along them.
            0 if self.file.may_lack_records => Ok(times),
            _ => refuse(format!(
                "has no unlimited dimension, and not exactly one time dimension; --dim selects the one along which files \
                 are concatenated: {}",
                names(&self.all)
            )),
        }
    }

    /// Returns the dimensions without a variable that are only used as the last dimension of character variables, or
    /// not used.
    fn text_lengths(&self) -> BTreeSet<Vec<u8>> {
        let is_free = |dim: &&Vec<u8>| self.file.find(dim).is_some_and(|at| is_without_variable(self.file, at));
        let is_character = |at: usize| matches!(self.file.class(at), Some(TypeClass::FixedString { len_bytes: 1, .. }));
        let mut lengths: BTreeSet<Vec<u8>> = self.all.difference(&self.unlimited).filter(is_free).cloned().collect();
        for (&at, dims) in &self.dims {
            // The first axis of a dimension scale is the dimension itself.
            for (axis, dim) in dims.iter().enumerate().skip(usize::from(is_scale(self.file, at))) {
                // A text alone has one axis, which is not widened.
                if axis == 0 || axis + 1 < dims.len() || !is_character(at) {
                    lengths.remove(dim);
                }
            }
        }
        lengths
    }

    /// Returns the variables that hold the bounds of times: a map from their entries to those of the times.
    fn bounds(&self) -> BTreeMap<usize, usize> {
        let times = self.dims.keys().filter(|&&at| is_time(self.file, at));
        times.flat_map(|&at| bounds(self.file, at).map(move |bounds| (bounds, at))).collect()
    }
}

pub(super) fn is_scale(file: &FileView<'_>, at: usize) -> bool {
    is_class_of_scales(file.attributes(at))
}

/// Returns whether the attributes mark a dimension scale.
pub(crate) fn is_class_of_scales(attributes: &[AttributeValue]) -> bool {
    text(attributes, "CLASS").is_some_and(|class| class == "DIMENSION_SCALE")
}
