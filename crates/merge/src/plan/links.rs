//! Outputs that refer to the inputs instead of holding their values: virtual datasets or external links.
//!
//! Invariant: a name is resolved from the output's folder to the input, regardless of the current folder and of
//! symbolic links in the paths of both.

use crate::conventions::Refusal;
use crate::error::{BadInput, MergeError, Result};
use crate::inputs::linked_files::{from_folder, real_folder, target_from};
use crate::inputs::paths::Paths;
use crate::inputs::reader::InputReader;
use crate::options::LinkPaths;
use crate::options::Watch;
use crate::plan::fill_pattern::FillPattern;
use crate::plan::{MergePlan, Route};
use crate::scan::ScannedEntry;
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, Column, Role, Schema, SchemaEntry, display_path};
use raddle_core::output::folder_of;
use raddle_core::output::publish::published_path;
use raddle_hdf5::model::{CreationOrder, Layout};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Returns the names by which `output` refers to `inputs`, in their order.
///
/// # Errors
/// If a folder cannot be found.
pub fn names<'i>(output: &Path, inputs: impl Iterator<Item = &'i Path>, paths: LinkPaths) -> Result<Vec<Vec<u8>>> {
    let folder = |path: &Path| {
        real_folder(path).map_err(|source| MergeError::Input { path: folder_of(path).to_path_buf(), source })
    };
    let of_output = folder(&published_path(output))?;
    let name = |input: &Path| {
        let real = folder(input)?.join(input.file_name().unwrap_or_default());
        let name = match paths {
            LinkPaths::Relative => from_folder(&of_output, &real),
            LinkPaths::Absolute => real,
        };
        Ok(name.into_os_string().into_encoded_bytes())
    };
    inputs.map(name).collect()
}

/// Returns a schema of external links, one to the root group of each of `inputs`; `targets` are the names of the inputs
/// in the output.
pub fn external_schema(inputs: &[PathBuf], targets: &[Vec<u8>]) -> Schema {
    let links = link_names(inputs).into_iter().zip(targets).map(|(name, target)| {
        let utf8 = !name.is_ascii();
        let role = Role::ExternalLink { file: target.clone(), path: b"/".to_vec() };
        entry([b"/".to_vec(), name].concat(), utf8, role)
    });
    schema_of(links)
}

/// The objects and links in the root group of an input.
#[derive(Debug, Clone, Default)]
pub struct RootObjects {
    /// Path of each object, and whether its name is marked UTF-8.
    objects: Vec<(Vec<u8>, bool)>,
    /// Reason why the input cannot be linked to.
    refusal: Option<Refusal>,
}

impl RootObjects {
    /// Collects the objects in the root group of an input with `entries` at `paths`.
    pub fn of(paths: &Paths, entries: &[ScannedEntry], refusal: Option<Refusal>) -> Self {
        let is_in_root = |path: &[u8]| path.len() > 1 && !path[1..].contains(&b'/');
        let all = entries.iter().enumerate().map(|(at, entry)| (paths.get(at), entry.utf8));
        let in_root = all.filter(|(path, _)| is_in_root(path)).map(|(path, utf8)| (path.to_vec(), utf8));
        Self { objects: in_root.collect(), refusal }
    }
}

/// Returns a schema of external links, one to each of the `objects` of each input under its own name, and the reasons
/// against such links: inputs that are refused, and names that several inputs share. `targets` are the names of the
/// inputs in the output.
pub fn object_schema(objects: &[RootObjects], targets: &[Vec<u8>]) -> (Schema, Vec<Difference>) {
    let mut inputs_of: BTreeMap<&[u8], Vec<u32>> = BTreeMap::new();
    let mut links = Vec::new();
    for ((input, of_input), target) in (0..).zip(objects).zip(targets) {
        for (path, utf8) in &of_input.objects {
            inputs_of.entry(path).or_default().push(input);
            let role = Role::ExternalLink { file: target.clone(), path: path.clone() };
            links.push(entry(path.clone(), *utf8, role));
        }
    }
    let repeated = inputs_of.into_iter().filter(|(_, inputs)| inputs.len() > 1).map(|(path, inputs)| Difference {
        path: display_path(path),
        kind: DifferenceKind::Repetition,
        expected: "in one input".to_owned(),
        found: "in several; --link external makes a link per file".to_owned(),
        inputs,
    });
    let mut refused: BTreeMap<(&str, &str), Vec<u32>> = BTreeMap::new();
    for (input, of_input) in (0..).zip(objects) {
        if let Some(Refusal { object, reason }) = &of_input.refusal {
            refused.entry((object, reason)).or_default().push(input);
        }
    }
    let refused = refused.into_iter().map(|((object, reason), inputs)| Difference {
        path: object.to_owned(),
        kind: DifferenceKind::LeftOut,
        expected: "whole groups".to_owned(),
        found: reason.to_owned(),
        inputs,
    });
    let differences = refused.chain(repeated).collect();
    (schema_of(links.into_iter()), differences)
}

fn entry(path: Vec<u8>, utf8: bool, role: Role) -> SchemaEntry {
    let (attributes, attribute_order) = (Arc::default(), CreationOrder::default());
    SchemaEntry { path, utf8, role, attributes, attribute_order, comment: None }
}

/// Returns a schema with a root group of `links`, which tracks their order: the order of the inputs, not of the names
/// (run2 before run10).
fn schema_of(links: impl Iterator<Item = SchemaEntry>) -> Schema {
    let link_order = CreationOrder { tracked: true, indexed: true };
    let root = entry(b"/".to_vec(), false, Role::Group { link_order });
    Schema { entries: std::iter::once(root).chain(links).collect(), columns: Vec::new() }
}

/// Returns a distinct name for each input: its file name without extension. If several inputs would have the same name,
/// the names of parent folders are prefixed.
fn link_names(inputs: &[PathBuf]) -> Vec<Vec<u8>> {
    let name = |input: &Path, folders: usize| {
        let stem = input.with_extension("");
        let parts: Vec<&[u8]> = stem
            .components()
            .filter_map(|part| match part {
                Component::Normal(part) => Some(part.as_bytes()),
                _ => None,
            })
            .collect();
        parts[parts.len().saturating_sub(folders + 1)..].join(&b'_')
    };
    let deepest = inputs.iter().map(|input| input.components().count()).max().unwrap_or(0);
    let mut folders = vec![0; inputs.len()];
    let mut names: Vec<Vec<u8>> = inputs.iter().map(|input| name(input, 0)).collect();
    for depth in 1..=deepest {
        let counts = counted(&names);
        for (number, input) in inputs.iter().enumerate() {
            if counts[&names[number]] > 1 {
                folders[number] = depth;
            }
            if folders[number] == depth {
                names[number] = name(input, depth);
            }
        }
    }
    // Files listed twice, and names that collide once folders are added, are numbered.
    let counts = counted(&names);
    let mut taken: std::collections::HashSet<Vec<u8>> =
        names.iter().filter(|name| counts[*name] == 1).cloned().collect();
    for name in &mut names {
        // That name is taken by the provenance group.
        if counts[name] == 1 && name.as_slice() != crate::schema::PROVENANCE_GROUP && !name.is_empty() {
            continue;
        }
        let base = name.clone();
        let mut number = 1;
        while name.is_empty() || name.as_slice() == crate::schema::PROVENANCE_GROUP || !taken.insert(name.clone()) {
            number += 1;
            *name = [base.as_slice(), format!("_{number}").as_bytes()].concat();
        }
    }
    names
}

/// Returns the existing files to which external links of the output lead.
pub(crate) fn external_targets(plan: &MergePlan) -> Vec<PathBuf> {
    let target = |entry: &SchemaEntry| match &entry.role {
        Role::ExternalLink { file, .. } => target_from(&plan.options.output, Path::new(OsStr::from_bytes(file))),
        _ => None,
    };
    plan.schema.entries.iter().filter_map(target).collect()
}

/// Returns whether readers of a virtual dataset find every value of a column. References cannot be resolved in another
/// file, and rows that no input has are only visible if readers show the fill value.
pub(crate) fn can_be_virtual(column: &Column) -> bool {
    let has_absent_rows = column.facts.iter().any(|fact| fact.template == ABSENT && fact.rows > 0);
    let shows_fill = FillPattern::of(column.model()).is_returned_by_readers;
    column.is_plain() && !column.model().datatype.class.has_reference() && (shows_fill || !has_absent_rows)
}

/// Refuses inputs whose datasets refer to missing files: readers of a virtual dataset that maps them would see fill
/// values.
pub(crate) fn check_sources(plan: &MergePlan, watch: &Watch<'_>) -> Result<()> {
    let library = InputReader::new(&plan.options);
    let mut bad: Vec<BadInput> = Vec::new();
    for ((column, planned), index) in plan.schema.columns.iter().zip(&plan.columns).zip(0..) {
        if !matches!(planned.route, Route::Linked) {
            continue;
        }
        let object = plan.schema.column_path(index);
        for (input, fact) in plan.inputs.iter().zip(column.facts.iter()) {
            let layout = column.templates.get(fact.template as usize).map(|template| &template.layout);
            let leads_on = fact.rows > 0 && matches!(layout, Some(Layout::Virtual | Layout::External { .. }));
            if !leads_on || bad.iter().any(|bad| bad.path == input.path) {
                continue;
            }
            watch.cancel.check()?;
            // All sources of the dataset are looked up before a row is read.
            if let Err(error) = library.read_values(&input.path, object, Some(0..1)) {
                bad.push(BadInput { path: input.path.clone(), error: error.in_object(display_path(object)) });
            }
        }
    }
    if bad.is_empty() { Ok(()) } else { Err(MergeError::BadInputs { bad }) }
}

fn counted(names: &[Vec<u8>]) -> HashMap<Vec<u8>, usize> {
    names.iter().fold(HashMap::new(), |mut counts, name| {
        *counts.entry(name.clone()).or_default() += 1;
        counts
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_folder_does_not_mislead() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("deep/er");
        std::fs::create_dir_all(&real).unwrap();
        std::os::unix::fs::symlink(&real, folder.path().join("short")).unwrap();
        let (output, input) = (folder.path().join("short/out.h5"), folder.path().join("a.h5"));
        let names = names(&output, [input.as_path()].into_iter(), LinkPaths::Relative).unwrap();
        assert_eq!(names, [b"../../a.h5".to_vec()]);
    }

    #[test]
    fn links_have_distinct_names() {
        let names = |inputs: &[&str]| -> Vec<String> {
            let inputs: Vec<PathBuf> = inputs.iter().map(PathBuf::from).collect();
            link_names(&inputs).into_iter().map(|name| String::from_utf8(name).unwrap()).collect()
        };
        assert_eq!(names(&["a/run1.h5", "a/run2.h5"]), ["run1", "run2"]);
        assert_eq!(names(&["a/x.h5", "b/x.h5", "b/y.h5"]), ["a_x", "b_x", "y"]);
        assert_eq!(names(&["p/a/x.h5", "q/a/x.h5"]), ["p_a_x", "q_a_x"]);
        assert_eq!(names(&["x.h5", "x.h5", "x_2.h5"]), ["x", "x_3", "x_2"]);
        assert_eq!(names(&["x.h5", "x.nc", "_raddle.h5"]), ["x", "x_2", "_raddle_2"]);
    }
}
