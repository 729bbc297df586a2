//! `--tiles`: each file holds a box of a larger grid, and the output holds the whole grid.
//!
//! The place of a box follows from the file itself (`places`): from attributes of models that write tiles, or from
//! coordinates, as in `xarray.combine_by_coords`. Invariant: a variable has the same place along a dimension as the
//! coordinate of that dimension; variables without tiled dimensions must be equal in all files.

mod places;

use super::{Variables, is_without_variable, of_root, of_scalar, of_variable};
use crate::conventions::{Completion, ConventionOptions, Refusal};
use crate::rules::absent::value_for_holes;
use crate::rules::settling::DeclaredRule;
use crate::rules::{Rule, ValueMeaning};
use crate::schema::attribute::{replaced, without};
use crate::schema::boxes::BoxLayout;
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, Column, InputExtent, Role, display_path};
pub(crate) use places::of_selection;
use places::{Places, TiledDimensions};
use raddle_core::plan::extent::{Coordinates, Extent};
use raddle_hdf5::model::{Dataspace, InlineData};
use raddle_hdf5::number::NumberType;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Attributes of a tile that do not hold for the whole grid.
const OF_TILE: [&str; 2] = [places::DECOMPOSITION, "NumFilesInSet"];

/// Returns the rules of a file that is a tile.
pub(super) fn rules(variables: &Variables<'_, '_>, options: &ConventionOptions) -> Result<Vec<(usize, Rule)>, Refusal> {
    let file = variables.file;
    let basis = TiledDimensions::of(variables, options.tiles.as_ref())?;
    let mut rules = Vec::new();
    for (&at, dims) in &variables.dims {
        let is_tiled = |(_, dim): &(usize, &Vec<u8>)| basis.dimensions.contains(*dim);
        let tiled: Vec<(usize, Vec<u8>)> =
            dims.iter().enumerate().filter(is_tiled).map(|(axis, dim)| (axis, dim.clone())).collect();
        let distinct: BTreeSet<&[u8]> = tiled.iter().map(|(_, dim)| dim.as_slice()).collect();
        if distinct.len() < tiled.len() {
            let reason = "has two axes along one tiled dimension, so its tiles do not form a grid (--tiles); leave it \
                          out with --exclude";
            return Err(Refusal { object: display_path(file.path_of(at)), reason: reason.to_owned() });
        }
        if !tiled.is_empty() && file.class(at).is_some_and(|class| class.is_file_local()) {
            let reason = "holds strings, sequences or references along a tiled dimension, which cannot be placed \
                          (--tiles); leave it out with --exclude";
            return Err(Refusal { object: display_path(file.path_of(at)), reason: reason.to_owned() });
        }
        let mut rule = match tiled.is_empty() {
            true => of_variable(Rule::once()),
            false => of_variable(Rule { tiled, ..Rule::along(0) }),
        };
        if is_without_variable(file, at) {
            rule = rule.ignoring(&["NAME"]);
        } else if basis.is_by_coordinates && basis.dimensions.contains(file.path_of(at)) {
            rule.values = ValueMeaning::Kept;
        }
        rules.push((at, rule.ignoring(&OF_TILE)));
    }
    for at in (1..file.len()).filter(|&at| file.scalar(at).is_some()) {
        rules.push((at, of_scalar()));
    }
    let patches: Vec<String> = places::patch_attributes().collect();
    let patches: Vec<&str> = patches.iter().map(String::as_str).collect();
    rules.push((0, of_root(options).ignoring(&OF_TILE).ignoring(&patches)));
    Ok(rules)
}

/// Places the tiles of all inputs. Returns the reasons why some have no place.
pub(super) fn settle(completion: &mut Completion<'_>) -> Vec<Difference> {
    let tiled: Vec<&DeclaredRule> = completion.declared.iter().filter(|one| !one.rule.tiled.is_empty()).collect();
    if tiled.is_empty() {
        return Vec::new();
    }
    let places = match Places::of(completion) {
        Ok(places) => places,
        Err(differences) => return differences,
    };
    let (mut layouts, mut differences) = (BTreeMap::new(), Vec::new());
    for declared in tiled {
        let Role::Column(column) = completion.schema.entries[declared.entry as usize].role else { continue };
        let scanned = &completion.schema.columns[column as usize];
        let path = display_path(&completion.schema.entries[declared.entry as usize].path);
        let key = match check_shapes(scanned, &declared.rule.tiled, &places, &path) {
            Ok(dims) => (declared.rule.tiled.clone(), dims),
            Err(found) => {
                differences.extend(found);
                continue;
            }
        };
        let lacking: Vec<bool> = scanned.facts.iter().map(|fact| fact.template == ABSENT).collect();
        let layout = layouts.entry((key, lacking)).or_insert_with_key(|((tiled, dims), lacking)| {
            let place = |input: usize| (!lacking[input]).then(|| places.extent(tiled, dims, input));
            Arc::new(BoxLayout::new(places.whole(tiled, dims), (0..lacking.len()).map(place).collect()))
        });
        let layout = Arc::clone(layout);
        differences.extend(apply(completion, declared, column as usize, layout));
    }
    differences
}

/// Checks that each input's dataset has the extent of its tile along tiled axes, and that of the first input along all
/// others. Returns the dimensions in the first input.
fn check_shapes(
    scanned: &Column,
    tiled: &[(usize, Vec<u8>)],
    places: &Places,
    path: &str,
) -> Result<Vec<u64>, Vec<Difference>> {
    let mut differences: Vec<Difference> = Vec::new();
    let mut first: Option<Vec<u64>> = None;
    for (input, _) in (0..).zip(scanned.facts.iter()).filter(|(_, fact)| fact.template != ABSENT) {
        let dims = scanned.dims_in(input);
        let known = first.get_or_insert_with(|| dims.clone());
        let axis_of = |axis: usize| tiled.iter().find(|(tiled, _)| *tiled == axis);
        let wanted = |axis: usize| match axis_of(axis) {
            Some((_, dimension)) => places.count(dimension, input as usize),
            None => known.get(axis).copied().unwrap_or(0),
        };
        let wanted: Vec<u64> = (0..dims.len().max(known.len())).map(wanted).collect();
        if wanted == dims {
            continue;
        }
        let words = |dims: &[u64]| dims.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let (expected, found) = (format!("a tile of ({}) elements", words(&wanted)), format!("({})", words(&dims)));
        match differences.iter_mut().find(|known| (&known.expected, &known.found) == (&expected, &found)) {
            Some(known) => known.inputs.push(input),
            None => differences.push(Difference {
                path: path.to_owned(),
                kind: DifferenceKind::TrailingDimensions,
                expected,
                found,
                inputs: vec![input],
            }),
        }
    }
    if differences.is_empty() { Ok(first.unwrap_or_default()) } else { Err(differences) }
}

/// Sets the places of a column. Elements that no input has get the value for missing data.
fn apply(
    completion: &mut Completion<'_>,
    declared: &DeclaredRule,
    column: usize,
    layout: Arc<BoxLayout>,
) -> Option<Difference> {
    let entry = &mut completion.schema.entries[declared.entry as usize];
    let scanned = &mut completion.schema.columns[column];
    let mut output = scanned.model().clone();
    if let Dataspace::Simple { dims, max_dims } = &mut output.dataspace {
        for (axis, dim) in layout.dims.iter().enumerate() {
            (dims[axis], max_dims[axis]) = (*dim, if max_dims[axis] == u64::MAX { u64::MAX } else { *dim });
        }
    }
    // An input that lacks the dataset has no box.
    let facts = scanned.facts.iter();
    scanned.facts = facts.map(|fact| if fact.template == ABSENT { InputExtent::absent(0) } else { *fact }).collect();
    let is_read = !super::names_no_variable(&declared.first);
    let mut refused = None;
    if is_read && layout.hole_count() > 0 {
        match value_for_holes(&entry.attributes, &output) {
            Some((fill, attribute)) => {
                output.fill.value = Some(InlineData::Stored(fill));
                (output.fill.user_defined, output.fill.undefined) = (true, false);
                if let Some(attribute) = attribute {
                    entry.attributes = replaced(&entry.attributes, attribute);
                }
            }
            None => {
                refused = Some(Difference {
                    path: display_path(&entry.path),
                    kind: DifferenceKind::Hole,
                    expected: "a value for missing data (_FillValue)".to_owned(),
                    found: format!("none, for {}; leave it out with --exclude", words_of_holes(&layout)),
                    inputs: Vec::new(),
                });
            }
        }
    }
    scanned.set_output(output);
    // Nobody reads the values of a dimension without a variable.
    scanned.boxes = Some(match is_read {
        true => layout,
        false => Arc::new(BoxLayout { overlaps: Vec::new(), ..(*layout).clone() }),
    });
    refused
}

/// Returns a warning for each variable with elements that no input has.
pub(super) fn holes(completion: &Completion<'_>) -> Vec<Difference> {
    let mut warnings = Vec::new();
    for declared in completion.declared.iter().filter(|one| !one.rule.tiled.is_empty()) {
        let entry = &completion.schema.entries[declared.entry as usize];
        let Role::Column(column) = entry.role else { continue };
        let Some(layout) = &completion.schema.columns[column as usize].boxes else { continue };
        if layout.hole_count() > 0 && !super::names_no_variable(&declared.first) {
            warnings.push(Difference {
                path: display_path(&entry.path),
                kind: DifferenceKind::Hole,
                expected: "tiles that cover the grid".to_owned(),
                found: format!("{}, which get the fill value", words_of_holes(layout)),
                inputs: Vec::new(),
            });
        }
    }
    warnings
}

fn words_of_holes(layout: &BoxLayout) -> String {
    let all: u64 = layout.dims.iter().product();
    format!("{} of {all} elements that no input has", layout.hole_count())
}

/// Removes attributes of tiles, or replaces them by attributes of the whole grid.
pub(super) fn complete(completion: &mut Completion<'_>) {
    if completion.declared.iter().all(|one| one.rule.tiled.is_empty()) {
        return;
    }
    for entry in &mut completion.schema.entries {
        if entry.attributes.iter().any(|attribute| OF_TILE.iter().any(|name| attribute.name == name.as_bytes())) {
            entry.attributes = without(&entry.attributes, &OF_TILE);
        }
    }
    let sizes: BTreeMap<Vec<u8>, u64> = {
        let entries = completion.schema.entries.iter();
        let size = |entry: &crate::schema::SchemaEntry| match entry.role {
            Role::Column(column) => Some((entry.path.clone(), completion.schema.columns[column as usize].rows())),
            _ => None,
        };
        entries.filter_map(size).collect()
    };
    if let Some(root) = completion.schema.entries.first_mut() {
        root.attributes = places::of_whole_grid(&root.attributes, &sizes);
    }
}

/// Returns whether an entry is the coordinate of a dimension by which tiles can be placed.
fn is_coordinate(variables: &Variables<'_, '_>, at: usize) -> bool {
    let file = variables.file;
    super::is_scale(file, at)
        && !is_without_variable(file, at)
        && variables.dims.get(&at).is_some_and(|dims| dims.len() == 1)
        && file.class(at).is_some_and(|class| NumberType::of(class).is_some())
}

impl Places {
    /// Returns the dimensions of the output of a variable with `dims` in an input.
    fn whole(&self, tiled: &[(usize, Vec<u8>)], dims: &[u64]) -> Vec<u64> {
        let mut whole = dims.to_vec();
        tiled.iter().for_each(|(axis, dimension)| whole[*axis] = self.len(dimension));
        whole
    }

    /// Returns the box of an input.
    fn extent(&self, tiled: &[(usize, Vec<u8>)], dims: &[u64], input: usize) -> Extent {
        let (mut start, mut count) = (Coordinates::from_elem(0, dims.len()), Coordinates::from_slice(dims));
        for (axis, dimension) in tiled {
            (start[*axis], count[*axis]) = (self.start(dimension, input), self.count(dimension, input));
        }
        Extent { start, count }
    }
}
