//! The variables of a merge that get separate outputs, each with the datasets that describe it.
//!
//! A variable is described by the coordinates of its dimensions, and by the variables that attributes of CF and UGRID
//! name, such as `coordinates`, `bounds`, `cell_measures`, `grid_mapping`, `formula_terms`, `geometry` and `mesh`. An
//! element of a ragged array is described by the variables that assign it to its station or profile. Invariant: each
//! dataset is a variable or describes one.

use super::column_len_bytes;
use crate::conventions::cf::{paths_of_name, references};
use crate::plan::{Dimensions, MergePlan};
use crate::schema::attribute::{named, text};
use crate::schema::{ABSENT, ColumnIndex, EntryIndex, Role, SchemaEntry};
use std::collections::{BTreeMap, BTreeSet};

/// Attributes of CF and UGRID that name variables or dimensions that describe a variable, in addition to those of
/// geometries and meshes. In `cell_measures`, each name follows its measure and a colon.
const DESCRIBING: [&str; 10] = [
    "coordinates",
    "bounds",
    "climatology",
    MEASURES,
    "grid_mapping",
    "geometry",
    "nodes",
    "mesh",
    "location_index_set",
    references::GATHERED,
];
const MEASURES: &str = "cell_measures";
/// Attributes of a mesh that name connectivity of other elements than nodes.
const NEIGHBOURS: [&str; 6] = [
    "face_face_connectivity",
    "edge_face_connectivity",
    "boundary_node_connectivity",
    "volume_edge_connectivity",
    "volume_face_connectivity",
    "volume_volume_connectivity",
];
/// CF attribute of the variable that identifies the stations, profiles or trajectories along its dimension.
const ROLE: &str = "cf_role";
/// CF attribute that names terms of a formula, such as the surface pressure, which may be variables themselves.
const TERMS: &str = "formula_terms";

/// A variable with the datasets that describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputVariable {
    /// Path of the variable with `.` between its components.
    pub name: String,
    /// Entries of the variable and of the datasets that describe it, ascending.
    entries: Vec<EntryIndex>,
    /// Columns of these entries.
    pub(super) columns: Vec<ColumnIndex>,
}

impl OutputVariable {
    fn new(plan: &MergePlan, name: String, entries: impl Iterator<Item = EntryIndex>) -> Self {
        let entries: Vec<EntryIndex> = entries.collect();
        let column = |&entry: &EntryIndex| match plan.schema.entries[entry as usize].role {
            Role::Column(column) => Some(column),
            _ => None,
        };
        let columns = entries.iter().filter_map(column).collect();
        Self { name, entries, columns }
    }

    /// Returns all datasets of a plan as one variable without a name.
    pub(super) fn all(plan: &MergePlan) -> Self {
        let datasets = (0..).zip(&plan.schema.entries).filter(|(_, entry)| is_dataset(entry)).map(|(at, _)| at);
        Self::new(plan, String::new(), datasets)
    }

    /// Returns the input that has all values, if the values are kept once: the other inputs would add nothing.
    pub(super) fn only_input(&self, plan: &MergePlan) -> Option<usize> {
        let scanned = |column: &ColumnIndex| &plan.schema.columns[*column as usize];
        let is_once = plan.inputs.len() > 1 && self.columns.iter().all(|column| scanned(column).is_once);
        let has_all =
            |input: &usize| self.columns.iter().all(|column| scanned(column).facts[*input].template != ABSENT);
        (0..plan.inputs.len()).find(has_all).filter(|_| is_once)
    }

    /// Returns the paths of the datasets.
    pub(super) fn paths(&self, plan: &MergePlan) -> Vec<Vec<u8>> {
        self.entries.iter().map(|&entry| plan.schema.entries[entry as usize].path.clone()).collect()
    }

    /// Returns the dimensions of the datasets, each once. `dimensions` are those of `plan`.
    pub(super) fn dimensions(&self, plan: &MergePlan, dimensions: &Dimensions) -> Vec<Vec<u8>> {
        let names = |&entry: &EntryIndex| {
            let entry = &plan.schema.entries[entry as usize];
            dimensions.names(entry, plan.schema.rank(entry)).into_iter().flatten()
        };
        self.entries.iter().flat_map(names).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the uncompressed length of the datasets.
    pub fn len_bytes(&self, plan: &MergePlan) -> u64 {
        self.columns.iter().fold(0, |sum, &column| sum.saturating_add(column_len_bytes(plan, column)))
    }
}

/// Returns the variables of a plan that get separate outputs, in the order of their entries.
pub fn variables(plan: &MergePlan) -> Vec<OutputVariable> {
    let entries = &plan.schema.entries;
    let by_path: BTreeMap<&[u8], EntryIndex> =
        entries.iter().zip(0..).filter(|(entry, _)| is_dataset(entry)).map(|(entry, at)| (&*entry.path, at)).collect();
    let graph = Graph::new(plan, by_path);
    let mut describing: BTreeSet<EntryIndex> = BTreeSet::new();
    for (&path, &at) in &graph.by_path {
        let entry = &entries[at as usize];
        describing.extend(graph.described_by(entry).into_iter().filter(|&other| other != at));
        if graph.is_scale(path) {
            describing.insert(at);
        }
    }
    let all = || graph.by_path.values().copied().collect::<BTreeSet<EntryIndex>>();
    let is_scalar = |at: EntryIndex| matches!(entries[at as usize].role, Role::Constant { .. });
    // A scalar that nothing names, such as a constant of the model, is part of every output.
    let (common, standing): (Vec<EntryIndex>, Vec<EntryIndex>) =
        all().into_iter().filter(|at| !describing.contains(at)).partition(|&at| is_scalar(at));
    let (mut covered, mut found): (BTreeSet<EntryIndex>, _) = (BTreeSet::new(), Vec::new());
    // Datasets that describe no variable come last: coordinates of no variable, and scalars if there is nothing else.
    let rest = all();
    for (at, is_standing) in standing.into_iter().map(|at| (at, true)).chain(rest.into_iter().map(|at| (at, false))) {
        if !is_standing && covered.contains(&at) {
            continue;
        }
        let mut members = graph.closure(at);
        members.extend(&common);
        covered.extend(&members);
        let path = String::from_utf8_lossy(&entries[at as usize].path).trim_start_matches('/').replace('/', ".");
        found.push((at, OutputVariable::new(plan, path, members.into_iter())));
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, variable)| variable).collect()
}

fn is_dataset(entry: &SchemaEntry) -> bool {
    matches!(entry.role, Role::Column(_) | Role::Constant { .. })
}

/// Relations between the datasets of a plan.
struct Graph<'p> {
    plan: &'p MergePlan,
    by_path: BTreeMap<&'p [u8], EntryIndex>,
    dimensions: Dimensions,
    /// Datasets that describe the elements along a dimension, by its path: they identify stations, or assign elements of
    /// ragged arrays to them.
    of_elements: BTreeMap<Vec<u8>, Vec<EntryIndex>>,
}

impl<'p> Graph<'p> {
    fn new(plan: &'p MergePlan, by_path: BTreeMap<&'p [u8], EntryIndex>) -> Self {
        let mut graph = Self { plan, by_path, dimensions: Dimensions::of(&plan.schema), of_elements: BTreeMap::new() };
        for &at in graph.by_path.values() {
            let entry = &plan.schema.entries[at as usize];
            let counted =
                text(&entry.attributes, references::COUNTED).and_then(|name| graph.find(&entry.path, name.trim()));
            let counted = counted.map(|dimension| plan.schema.entries[dimension as usize].path.clone());
            let describes_own =
                [references::INSTANCE, ROLE].iter().any(|name| named(&entry.attributes, name).is_some());
            let own = graph.names(entry).into_iter().next().filter(|_| describes_own).into_iter().flatten();
            for dimension in counted.into_iter().chain(own) {
                graph.of_elements.entry(dimension).or_default().push(at);
            }
        }
        graph
    }

    /// Returns the paths of the dimensions of each axis of a dataset.
    fn names(&self, entry: &SchemaEntry) -> Vec<Vec<Vec<u8>>> {
        self.dimensions.names(entry, self.plan.schema.rank(entry))
    }

    /// Returns whether a dataset is the scale of a dimension.
    fn is_scale(&self, path: &[u8]) -> bool {
        let entry = &self.plan.schema.entries[self.by_path[path] as usize];
        let rank = self.plan.schema.rank(entry);
        rank > 0 && self.dimensions.names(entry, rank)[0].iter().any(|name| name == path)
    }

    /// Returns the variable that an attribute of the object at `path` names.
    fn find(&self, path: &[u8], name: &str) -> Option<EntryIndex> {
        paths_of_name(path, name).find_map(|path| self.by_path.get(path.as_slice()).copied())
    }

    /// Returns the datasets that exist only to describe an entry.
    fn described_by(&self, entry: &SchemaEntry) -> Vec<EntryIndex> {
        let names = self.names(entry);
        let of_elements = names.iter().flatten().filter_map(|dimension| self.of_elements.get(dimension)).flatten();
        let mut found: Vec<EntryIndex> = of_elements.copied().collect();
        for attribute in
            DESCRIBING.iter().chain(&references::OF_GEOMETRY).chain(&references::OF_MESH).chain(&NEIGHBOURS)
        {
            let attribute = *attribute;
            let names = text(&entry.attributes, attribute).unwrap_or_default();
            let names = names.split_whitespace().filter(|word| attribute != MEASURES || !word.ends_with(':'));
            found.extend(names.filter_map(|name| self.find(&entry.path, name.trim_end_matches(':'))));
        }
        found.extend(self.terms(entry).into_iter().filter(|&term| {
            let dims = self.plan.schema.rank(&self.plan.schema.entries[term as usize]);
            dims < 2
        }));
        found
    }

    fn terms(&self, entry: &SchemaEntry) -> Vec<EntryIndex> {
        let terms = text(&entry.attributes, TERMS).unwrap_or_default();
        terms
            .split_whitespace()
            .filter(|word| !word.ends_with(':'))
            .filter_map(|name| self.find(&entry.path, name))
            .collect()
    }

    /// Returns an entry and everything that describes it.
    fn closure(&self, at: EntryIndex) -> BTreeSet<EntryIndex> {
        let (mut members, mut open) = (BTreeSet::new(), vec![at]);
        while let Some(at) = open.pop() {
            if !members.insert(at) {
                continue;
            }
            let entry = &self.plan.schema.entries[at as usize];
            let names = self.names(entry);
            open.extend(names.iter().flatten().filter_map(|name| self.by_path.get(name.as_slice())));
            open.extend(self.described_by(entry));
            open.extend(self.terms(entry));
            // Positions are renumbered by the lengths of their dimension in the inputs.
            let instances = text(&entry.attributes, references::INSTANCE);
            let dimension = instances.as_deref().or_else(|| references::of_radar(&entry.path));
            open.extend(dimension.and_then(|name| self.find(&entry.path, name.trim())));
        }
        members
    }
}
