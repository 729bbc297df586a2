//! Places of tiles along the dimensions of the grid, given by attributes, by coordinates or by the user.
//!
//! Attributes take precedence over coordinates, because a coordinate is repeated in tiles of a curvilinear grid. The
//! attributes are `domain_decomposition` of a coordinate, as written by the Flexible Modeling System (FMS) of GFDL:
//! first and last index of the grid, then of the tile, both inclusive; and the `…_PATCH_START_…` and `…_PATCH_END_…` of
//! WRF, which count from 1. Invariant: places lie within the grid, whose size all inputs agree on.

use super::is_coordinate;
use crate::conventions::cf::{Variables, is_scale};
use crate::conventions::{Completion, Refusal, Tiles};
use crate::rules::packed::STORED_OTHERWISE;
use crate::rules::settling::DeclaredRule;
use crate::schema::attribute::{named, number, numbers, replaced, with_integers};
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, AttributeValue, Column, Role, display_path, is_named, last_name};
use raddle_hdf5::number::NumberType;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Attribute of FMS with the place of a tile along a dimension.
pub(super) const DECOMPOSITION: &str = "domain_decomposition";

/// Dimensions of WRF: prefix of the attributes, name, and name of the staggered dimension.
const PATCHES: [(&str, &str, &str); 3] = [
    ("WEST-EAST", "west_east", "west_east_stag"),
    ("SOUTH-NORTH", "south_north", "south_north_stag"),
    ("BOTTOM-TOP", "bottom_top", "bottom_top_stag"),
];

/// Dimensions of a file along which it may be a tile.
pub(super) struct TiledDimensions {
    /// Paths of the dimensions.
    pub dimensions: BTreeSet<Vec<u8>>,
    /// Whether coordinates give the places.
    pub is_by_coordinates: bool,
}

impl TiledDimensions {
    /// Finds the dimensions along which a file may be a tile.
    pub(super) fn of(variables: &Variables<'_, '_>, tiles: Option<&Tiles>) -> Result<Self, Refusal> {
        let file = variables.file;
        let scales = || variables.dims.keys().copied().filter(|&at| is_scale(file, at));
        let path = |at: usize| file.path_of(at).to_vec();
        let mut asked = BTreeSet::new();
        for name in tiles.map_or(&[][..], Tiles::dimensions) {
            let known = asked.len();
            asked.extend(scales().map(path).filter(|path| is_named(path, name)));
            if asked.len() == known {
                let all: Vec<String> = scales().map(|at| display_path(file.path_of(at))).collect();
                let reason = format!("has no dimension {name:?} (--tiles); it has {}", all.join(", "));
                return Err(Refusal { object: "/".to_owned(), reason });
            }
        }
        if !asked.is_empty() {
            return Ok(Self { dimensions: asked, is_by_coordinates: false });
        }
        let decomposed: BTreeSet<Vec<u8>> = scales().filter(|&at| file.has(at, DECOMPOSITION)).map(path).collect();
        if !decomposed.is_empty() {
            return Ok(Self { dimensions: decomposed, is_by_coordinates: false });
        }
        let is_patch = |at: &usize| {
            patch_of(file.path_of(*at)).is_some_and(|(prefix, end)| file.has(0, &patch_attribute(prefix, "START", end)))
        };
        let patches: BTreeSet<Vec<u8>> = scales().filter(is_patch).map(path).collect();
        if !patches.is_empty() {
            return Ok(Self { dimensions: patches, is_by_coordinates: false });
        }
        let coordinates: BTreeSet<Vec<u8>> = scales().filter(|&at| is_coordinate(variables, at)).map(path).collect();
        if coordinates.is_empty() {
            return Err(Refusal {
                object: "/".to_owned(),
                reason: "has neither coordinates of its dimensions, nor attributes domain_decomposition or \
                         WEST-EAST_PATCH_START_UNSTAG, so its place in the grid is unknown (--tiles)"
                    .to_owned(),
            });
        }
        Ok(Self { dimensions: coordinates, is_by_coordinates: true })
    }
}

/// Returns the prefix of the WRF attributes of a dimension, and their ending.
fn patch_of(path: &[u8]) -> Option<(&'static str, &'static str)> {
    let name = last_name(path);
    PATCHES.iter().find_map(|(prefix, plain, staggered)| match name {
        _ if name == plain.as_bytes() => Some((*prefix, "UNSTAG")),
        _ if name == staggered.as_bytes() => Some((*prefix, "STAG")),
        _ => None,
    })
}

fn patch_attribute(prefix: &str, bound: &str, end: &str) -> String {
    format!("{prefix}_PATCH_{bound}_{end}")
}

/// Returns the names of all attributes of WRF with the place of a tile.
pub(super) fn patch_attributes() -> impl Iterator<Item = String> {
    PATCHES.iter().flat_map(|(prefix, ..)| {
        let of_end = move |end: &'static str| ["START", "END"].map(move |bound| patch_attribute(prefix, bound, end));
        ["UNSTAG", "STAG"].into_iter().flat_map(of_end)
    })
}

/// Returns the attributes of the root for a grid of these sizes.
pub(super) fn of_whole_grid(root: &[AttributeValue], sizes: &BTreeMap<Vec<u8>, u64>) -> Arc<[AttributeValue]> {
    let mut attributes: Arc<[AttributeValue]> = root.into();
    for (path, &size) in sizes {
        let Some((prefix, end)) = patch_of(path) else { continue };
        attributes = with_patch(&attributes, (prefix, end), 0..size);
    }
    attributes
}

/// Returns the attributes of the root for the selected elements of a dimension, which are a patch of the grid.
pub(crate) fn of_selection(root: &[AttributeValue], path: &[u8], elements: &Range<u64>) -> Arc<[AttributeValue]> {
    let Some((prefix, end)) = patch_of(path) else { return root.into() };
    // The file may be a patch itself.
    let first =
        number(root, &patch_attribute(prefix, "START", end)).map_or(0, |start| (start as u64).saturating_sub(1));
    with_patch(root, (prefix, end), first + elements.start..first + elements.end)
}

/// Replaces the attributes of a patch, which count from 1, if the root has them.
fn with_patch(root: &[AttributeValue], (prefix, end): (&str, &str), elements: Range<u64>) -> Arc<[AttributeValue]> {
    let mut attributes: Arc<[AttributeValue]> = root.into();
    for (bound, value) in [("START", elements.start + 1), ("END", elements.end)] {
        let known = named(&attributes, patch_attribute(prefix, bound, end));
        if let Some(changed) = known.and_then(|known| with_integers(known, &[value as i64])) {
            attributes = replaced(&attributes, changed);
        }
    }
    attributes
}

/// Places of all inputs along all tiled dimensions.
pub(super) struct Places(BTreeMap<Vec<u8>, DimensionPlaces>);

/// Places along one dimension.
struct DimensionPlaces {
    /// Length of the dimension of the grid.
    len: u64,
    /// First element and number of elements of each input; zeros for an input without the dimension.
    of_inputs: Vec<(u64, u64)>,
}

impl Places {
    /// Determines the places of all inputs.
    pub(super) fn of(completion: &Completion<'_>) -> Result<Self, Vec<Difference>> {
        let names: BTreeSet<&Vec<u8>> =
            completion.declared.iter().flat_map(|one| one.rule.tiled.iter().map(|(_, dimension)| dimension)).collect();
        let (mut places, mut differences) = (BTreeMap::new(), Vec::new());
        let mut is_by_coordinates = false;
        for name in names {
            let is_scale = |one: &&DeclaredRule| completion.schema.entries[one.entry as usize].path == *name;
            let Some(scale) = completion.declared.iter().find(is_scale) else { continue };
            let finder = Finder { completion, scale, name };
            let found = if let Some(found) = finder.by_user() {
                found
            } else if named(&scale.first, DECOMPOSITION).is_some() {
                finder.by_decomposition()
            } else if !scale.values.is_empty() {
                is_by_coordinates = true;
                finder.by_coordinate()
            } else {
                finder.by_patch()
            };
            match found {
                Ok(along) => drop(places.insert(name.clone(), along)),
                Err(difference) => differences.push(difference),
            }
        }
        if !differences.is_empty() {
            return Err(differences);
        }
        let is_one_place = |along: &DimensionPlaces| along.of_inputs.iter().all(|place| *place == along.of_inputs[0]);
        let is_whole = completion.inputs > 1 && !completion.is_partial;
        if is_by_coordinates && is_whole && places.values().all(is_one_place) {
            let names: Vec<String> = places.keys().map(|name| display_path(name)).collect();
            return Err(vec![Difference {
                path: "/".to_owned(),
                kind: DifferenceKind::Meaning,
                expected: "tiles at different places (--tiles)".to_owned(),
                found: format!("the same values of all coordinates: {}", names.join(", ")),
                inputs: (0..completion.inputs).collect(),
            }]);
        }
        Ok(Self(places))
    }

    /// Returns the length of a dimension of the grid.
    pub(super) fn len(&self, dimension: &[u8]) -> u64 {
        self.0.get(dimension).map_or(0, |along| along.len)
    }

    /// Returns the first element of an input along a dimension.
    pub(super) fn start(&self, dimension: &[u8], input: usize) -> u64 {
        self.place(dimension, input).0
    }

    /// Returns the number of elements of an input along a dimension.
    pub(super) fn count(&self, dimension: &[u8], input: usize) -> u64 {
        self.place(dimension, input).1
    }

    fn place(&self, dimension: &[u8], input: usize) -> (u64, u64) {
        self.0.get(dimension).and_then(|along| along.of_inputs.get(input)).copied().unwrap_or_default()
    }
}

/// Search for the places along one dimension.
struct Finder<'c, 's> {
    completion: &'c Completion<'s>,
    /// Rule of the dimension's scale.
    scale: &'c DeclaredRule,
    /// Path of the dimension.
    name: &'c [u8],
}

impl Finder<'_, '_> {
    /// Returns whether each input has the dimension.
    fn holders(&self) -> Vec<bool> {
        match self.completion.schema.entries[self.scale.entry as usize].role {
            Role::Column(column) => {
                let facts = self.completion.schema.columns[column as usize].facts.iter();
                facts.map(|fact| fact.template != ABSENT).collect()
            }
            _ => Vec::new(),
        }
    }

    fn refuse(&self, attribute: &str, expected: String, found: String, inputs: Vec<u32>) -> Difference {
        let path = match attribute {
            "" => display_path(self.name),
            attribute => format!("{} (attribute {attribute})", display_path(self.name)),
        };
        Difference { path, kind: DifferenceKind::Meaning, expected, found, inputs }
    }

    /// Places tiles by the index ranges of the grid and of the tile, both inclusive.
    fn by_ranges(
        &self,
        attribute: &str,
        range_of: impl Fn(u32) -> Option<[i64; 4]>,
    ) -> Result<DimensionPlaces, Difference> {
        let (mut grid, mut of_inputs) = (None, Vec::new());
        for (input, has_it) in (0..).zip(self.holders()) {
            if !has_it {
                of_inputs.push((0, 0));
                continue;
            }
            let Some([first, last, start, end]) = range_of(input) else {
                let (expected, found) = ("the place of a tile".to_owned(), "no whole numbers".to_owned());
                return Err(self.refuse(attribute, expected, found, vec![input]));
            };
            let words = |from: i64, to: i64| format!("{from} to {to}");
            let (known_first, known_last) = *grid.get_or_insert((first, last));
            if (first, last) != (known_first, known_last) {
                let expected = format!("tiles of a grid from {}", words(known_first, known_last));
                return Err(self.refuse(attribute, expected, format!("of {}", words(first, last)), vec![input]));
            }
            let len = last.checked_sub(first).and_then(|len| len.checked_add(1)).filter(|len| *len > 0);
            if len.is_none() || start < first || end > last || end < start {
                let expected = format!("a tile within {}", words(first, last));
                return Err(self.refuse(attribute, expected, format!("from {}", words(start, end)), vec![input]));
            }
            of_inputs.push(((start - first) as u64, (end - start + 1) as u64));
        }
        let len = grid.map_or(0, |(first, last)| (last - first + 1) as u64);
        Ok(DimensionPlaces { len, of_inputs })
    }

    /// Places tiles by a pattern of names or by a table; returns `None` if the user gave neither.
    fn by_user(&self) -> Option<Result<DimensionPlaces, Difference>> {
        let tiles = self.completion.tiles?;
        let at = tiles.dimensions().iter().position(|name| is_named(self.name, name))?;
        let Role::Column(column) = self.completion.schema.entries[self.scale.entry as usize].role else { return None };
        let scanned = &self.completion.schema.columns[column as usize];
        let holders: Vec<u32> =
            (0..).zip(self.holders()).filter(|(_, has_it)| *has_it).map(|(input, _)| input).collect();
        let paths: Vec<&Path> = holders.iter().map(|&input| self.completion.paths[input as usize].as_path()).collect();
        let count = |input: &u32| scanned.dims_in(*input).first().copied().unwrap_or(0);
        let counts: Vec<u64> = holders.iter().map(count).collect();
        let starts = match tiles.starts(at, &paths, &counts) {
            Ok(starts) => starts,
            Err((place, found)) => {
                let expected = "the place of a tile (--tiles)".to_owned();
                return Some(Err(self.refuse("", expected, found, vec![holders[place]])));
            }
        };
        let (mut of_inputs, mut len) = (vec![(0, 0); scanned.facts.len()], 0);
        for (&input, (start, count)) in holders.iter().zip(starts.into_iter().zip(counts)) {
            let Some(end) = start.checked_add(count) else {
                let (expected, found) = ("the place of a tile (--tiles)".to_owned(), format!("first element {start}"));
                return Some(Err(self.refuse("", expected, found, vec![input])));
            };
            (len, of_inputs[input as usize]) = (len.max(end), (start, count));
        }
        Some(Ok(DimensionPlaces { len, of_inputs }))
    }

    fn by_decomposition(&self) -> Result<DimensionPlaces, Difference> {
        self.by_ranges(DECOMPOSITION, |input| {
            let values = numbers(named(attributes(self.scale, input), DECOMPOSITION)?)?;
            values.iter().map(|&value| whole(value)).collect::<Option<Vec<i64>>>()?.try_into().ok()
        })
    }

    fn by_patch(&self) -> Result<DimensionPlaces, Difference> {
        let root = self.completion.declared.iter().find(|one| one.entry == 0);
        let (Some(root), Some((prefix, end))) = (root, patch_of(self.name)) else {
            let found = "no coordinate and no place".to_owned();
            return Err(self.refuse("", "a dimension with places".to_owned(), found, Vec::new()));
        };
        let [first, last] = ["START", "END"].map(|bound| patch_attribute(prefix, bound, end));
        let bound = |input: u32, name: &str| whole(number(attributes(root, input), name)?);
        // The size of the grid counts its staggered points.
        let size = |input: u32| {
            let staggered = whole(number(attributes(root, input), &format!("{prefix}_GRID_DIMENSION"))?)?;
            Some(if end == "STAG" { staggered } else { staggered - 1 })
        };
        let furthest = (0..self.completion.inputs).filter_map(|input| bound(input, &last)).max();
        self.by_ranges(&format!("{prefix}_PATCH_*_{end} of the root"), |input| {
            Some([1, size(input).or(furthest)?, bound(input, &first)?, bound(input, &last)?])
        })
    }

    /// Places tiles by the values of a coordinate: the sorted values of all tiles are the coordinate of the grid.
    fn by_coordinate(&self) -> Result<DimensionPlaces, Difference> {
        let Role::Column(column) = self.completion.schema.entries[self.scale.entry as usize].role else {
            return Ok(DimensionPlaces { len: 0, of_inputs: Vec::new() });
        };
        let scanned = &self.completion.schema.columns[column as usize];
        if let Some(name) = STORED_OTHERWISE.iter().find(|name| named(&self.scale.first, name).is_some()) {
            let expected = "a coordinate that is not packed".to_owned();
            let found = "a packed one; place the tiles by their names or by a table".to_owned();
            return Err(self.refuse(name, expected, found, Vec::new()));
        }
        // Equal values are decoded once.
        let mut inputs_of: HashMap<&[u8], Vec<u32>> = HashMap::new();
        for (input, values) in &self.scale.values {
            inputs_of.entry(values).or_default().push(*input);
        }
        if let (1, Some(inputs)) = (inputs_of.len(), inputs_of.values().next()) {
            // Files with the same values are not tiles along this dimension, so the order does not matter.
            let len = scanned.dims_in(inputs[0]).first().copied().unwrap_or(0);
            let mut of_inputs = vec![(0, 0); scanned.facts.len()];
            inputs.iter().for_each(|input| of_inputs[*input as usize] = (0, len));
            return Ok(DimensionPlaces { len, of_inputs });
        }
        let tiles = self.decoded(scanned, inputs_of)?;
        let descends = self.order(&tiles)?;
        self.place_in_grid(&tiles, descends, scanned.facts.len())
    }

    /// Decodes the values of the coordinate; `inputs_of` are the inputs that hold each of them.
    fn decoded(&self, scanned: &Column, inputs_of: HashMap<&[u8], Vec<u32>>) -> Result<Vec<TileValues>, Difference> {
        let mut distinct: Vec<(TileValues, &[u8])> = Vec::new();
        for (values, inputs) in inputs_of {
            let template = scanned.facts[inputs[0] as usize].template;
            let class = scanned.templates.get(template as usize).map(|template| &template.datatype.class);
            let keys = class.and_then(|class| NumberType::of(class)).and_then(|number| ordered(number, values));
            let Some(keys) = keys else {
                let found = "values that are not numbers, or too large".to_owned();
                return Err(self.refuse("", "a coordinate".to_owned(), found, inputs));
            };
            distinct.push((TileValues { inputs, keys }, values));
        }
        distinct.sort();
        Ok(distinct.into_iter().map(|(tile, _)| tile).collect())
    }

    /// Returns whether the values of all tiles descend; refuses tiles whose values are not in one order.
    fn order(&self, tiles: &[TileValues]) -> Result<bool, Difference> {
        let descends = tiles.iter().any(|tile| tile.keys.len() > 1 && tile.keys.is_sorted_by(|a, b| a > b));
        let is_sorted = |keys: &[i64]| match descends {
            true => keys.is_sorted_by(|a, b| a > b),
            false => keys.is_sorted_by(|a, b| a < b),
        };
        if let Some(tile) = tiles.iter().find(|tile| !is_sorted(&tile.keys)) {
            let order = if descends { "decreasing" } else { "increasing" };
            let found = "values in another order, or repeated".to_owned();
            return Err(self.refuse("", format!("{order} values, as in the other tiles"), found, tile.inputs.clone()));
        }
        Ok(descends)
    }

    /// Places tiles in the grid of all their values, of which each tile must hold consecutive ones.
    fn place_in_grid(
        &self,
        tiles: &[TileValues],
        descends: bool,
        inputs: usize,
    ) -> Result<DimensionPlaces, Difference> {
        let all: BTreeSet<i64> = tiles.iter().flat_map(|tile| tile.keys.iter().copied()).collect();
        let mut grid: Vec<i64> = all.into_iter().collect();
        if descends {
            grid.reverse();
        }
        let mut of_inputs = vec![(0, 0); inputs];
        for TileValues { inputs, keys } in tiles {
            let Some(first) = keys.first() else { continue };
            let start = grid.partition_point(|key| if descends { key > first } else { key < first });
            let of_tile = &grid[start..];
            if !of_tile.starts_with(keys) {
                let between = keys.iter().zip(of_tile).position(|(key, grid_key)| key != grid_key).unwrap_or(0);
                let other = tiles.iter().find(|tile| tile.keys.contains(&of_tile[between]));
                let other = other.and_then(|tile| tile.inputs.first().copied());
                let mut named = inputs.clone();
                named.extend(other);
                named.sort_unstable();
                return Err(self.refuse(
                    "",
                    "tiles with consecutive values of the grid".to_owned(),
                    format!("another tile has a value between elements {} and {between}", between.saturating_sub(1)),
                    named,
                ));
            }
            inputs.iter().for_each(|input| of_inputs[*input as usize] = (start as u64, keys.len() as u64));
        }
        Ok(DimensionPlaces { len: grid.len() as u64, of_inputs })
    }
}

/// Values of a coordinate, and the inputs that hold them.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TileValues {
    inputs: Vec<u32>,
    /// The values as integers in the same order.
    keys: Vec<i64>,
}

/// Returns the attributes of an entry in an input.
fn attributes(declared: &DeclaredRule, input: u32) -> &[AttributeValue] {
    let other = declared.attributes.binary_search_by_key(&input, |(input, _)| *input).ok();
    other.map_or(&declared.first, |at| &declared.attributes[at].1)
}

/// Returns a number as an integer; `None` if it is not one.
fn whole(value: f64) -> Option<i64> {
    let integer = value as i64;
    (integer as f64 == value && value.abs() < (1_u64 << 53) as f64).then_some(integer)
}

/// Decodes numbers to integers in the same order; returns `None` for values without an order.
fn ordered(number: NumberType, values: &[u8]) -> Option<Vec<i64>> {
    let (mut integers, mut floats) = (Vec::new(), Vec::new());
    if number.is_integer() {
        let is_exact = number.decode_integers(values, &mut integers);
        return is_exact.then_some(integers);
    }
    number.decode_floats(values, &mut integers, &mut floats);
    let key = |value: &f64| {
        // Zeros of both signs are equal.
        let bits = (value + 0.0).to_bits() as i64;
        (!value.is_nan()).then_some(if bits < 0 { !(bits & i64::MAX) } else { bits })
    };
    floats.iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_their_numbers() {
        let number = NumberType::Float { len_bytes: 8, is_big_endian: false };
        let keys =
            |values: &[f64]| ordered(number, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
        let sorted = keys(&[f64::NEG_INFINITY, -1e300, -2.0, -1.0, -1e-300, 0.0, 1e-300, 1.0, f64::INFINITY]).unwrap();
        assert!(sorted.is_sorted_by(|a, b| a < b), "{sorted:?}");
        assert_eq!(keys(&[-0.0]), keys(&[0.0]));
        assert_eq!(keys(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn dimensions_of_patches() {
        assert_eq!(patch_of(b"/west_east"), Some(("WEST-EAST", "UNSTAG")));
        assert_eq!(patch_of(b"/south_north_stag"), Some(("SOUTH-NORTH", "STAG")));
        assert_eq!(patch_of(b"/soil_layers_stag"), None);
        assert_eq!(patch_attributes().count(), 12);
        assert!(patch_attributes().any(|name| name == "SOUTH-NORTH_PATCH_END_STAG"));
    }
}
