//! Variables whose values refer to positions along a dimension, or count its elements.
//!
//! Positions along a dimension of records are renumbered; what cannot be renumbered is refused. Sources: CF conventions
//! 1.11 (sections 7.5, 8.2, 8.3, chapter 9), UGRID 1.0, CfRadial 1.4. Invariant: variables whose values belong together
//! are all concatenated, or none of them is.

use super::{Variables, variable};
use crate::conventions::{FileView, Refusal};
use crate::schema::{display_path, last_name};
use std::collections::BTreeSet;
use std::iter::repeat;

/// Attribute of a variable whose values are positions along the dimension that it names.
pub(crate) const INSTANCE: &str = "instance_dimension";
/// Attribute of a variable whose values are positions in the product of the dimensions that it names.
pub(crate) const GATHERED: &str = "compress";
/// Attribute of a variable whose values count elements of the dimension that it names.
pub(crate) const COUNTED: &str = "sample_dimension";
/// Attributes of a mesh that name variables along the dimensions to whose positions connectivity refers: coordinates,
/// and connectivity of nodes.
pub(crate) const OF_MESH: [&str; 8] = [
    "node_coordinates",
    "edge_coordinates",
    "face_coordinates",
    "volume_coordinates",
    "edge_node_connectivity",
    "face_node_connectivity",
    "volume_node_connectivity",
    "face_edge_connectivity",
];
/// Attribute that names dimensions and variables of positions along them, from which coordinates are interpolated.
pub(crate) const TIE_POINTS: &str = "tie_point_mapping";
/// Attributes of a container of geometries that name variables whose elements belong together.
pub(crate) const OF_GEOMETRY: [&str; 4] = ["node_coordinates", "node_count", "part_node_count", "interior_ring"];
/// Variables of CfRadial that hold positions along a dimension, and the dimension.
const OF_RADAR: [(&[u8], &str); 3] =
    [(b"sweep_start_ray_index", "time"), (b"sweep_end_ray_index", "time"), (b"ray_start_index", "n_points")];

/// Returns the name of the dimension to whose positions the values of a variable of CfRadial refer.
pub(crate) fn of_radar(path: &[u8]) -> Option<&'static str> {
    let name = last_name(path);
    OF_RADAR.iter().find(|(variable, _)| name == *variable).map(|(_, dimension)| *dimension)
}

/// Returns the path of the dimension whose positions are the values of a variable.
pub(super) fn target(variables: &Variables<'_, '_>, at: usize) -> Option<Vec<u8>> {
    let file = variables.file;
    dimension(variables, at, target_name(file, at)?.trim())
}

/// Returns the name of the dimension whose positions are the values of a variable.
fn target_name(file: &FileView<'_>, at: usize) -> Option<String> {
    file.text(at, INSTANCE).or_else(|| of_radar(file.path_of(at)).map(str::to_owned))
}

/// Checks that files can be concatenated along `records`.
///
/// # Errors
/// If values that refer to elements of a dimension would refer to others, or to none.
pub(super) fn check(variables: &Variables<'_, '_>, records: &BTreeSet<Vec<u8>>) -> Result<(), Refusal> {
    let file = variables.file;
    let references = References { variables, records };
    for at in 1..file.len() {
        if let Some(dimension) = target(variables, at).filter(|target| records.contains(target)) {
            references.require_along(at, &dimension, "refers to positions")?;
        }
        references.refuse_lost(at)?;
        for (attribute, does) in [
            (GATHERED, "refers to positions in a product of dimensions"),
            (TIE_POINTS, "refers to points between which coordinates are interpolated"),
        ] {
            references.refuse_along(at, attribute, does)?;
        }
        if let Some(counted) = file.text(at, COUNTED).and_then(|name| dimension(variables, at, name.trim())) {
            match (references.is_along(at), records.contains(&counted)) {
                (true, false) => return Err(references.refusal_of_counts(at, &counted)),
                (false, true) => references.require_along(at, &counted, "counts elements")?,
                _ => {}
            }
        }
        if file.text(at, "cf_role").is_some_and(|role| role == "mesh_topology") {
            references.refuse_mesh(at)?;
        }
        if file.has(at, "geometry_type") {
            references.check_geometry(at)?;
        }
    }
    Ok(())
}

/// Variables of a file, and the dimensions along which it is concatenated.
struct References<'v, 'f, 'a> {
    variables: &'v Variables<'f, 'a>,
    records: &'v BTreeSet<Vec<u8>>,
}

impl References<'_, '_, '_> {
    /// Returns whether a variable is concatenated.
    fn is_along(&self, at: usize) -> bool {
        self.record_of(at).is_some()
    }

    /// Returns the dimension along which a variable is concatenated.
    fn record_of(&self, at: usize) -> Option<&Vec<u8>> {
        self.variables.dims.get(&at)?.iter().find(|dim| self.records.contains(*dim))
    }

    /// Returns the variables that an attribute names.
    fn named(&self, at: usize, attribute: &str) -> Vec<usize> {
        let file = self.variables.file;
        let names = file.text(at, attribute).unwrap_or_default();
        names.split_whitespace().filter_map(|name| variable(file, at, name)).collect()
    }

    fn refusal(&self, at: usize, reason: String) -> Refusal {
        Refusal { object: display_path(self.variables.file.path_of(at)), reason }
    }

    /// Refuses a variable that is kept once although the elements to which it refers are concatenated.
    fn require_along(&self, at: usize, dimension: &[u8], does: &str) -> Result<(), Refusal> {
        if self.is_along(at) {
            return Ok(());
        }
        let remedy = match self.option_for(&[at], dimension) {
            Some(option) => format!("{option} concatenates along both dimensions"),
            None => "select another dimension with --dim".to_owned(),
        };
        let dimension = display_path(dimension);
        Err(self.refusal(
            at,
            format!(
                "{does} along {dimension}, along which files are concatenated, but is itself carried once, so that the \
                 output would describe the first file only; {remedy}"
            ),
        ))
    }

    /// Returns the option that concatenates files along `dimension`, unless it is empty, and along the first dimensions
    /// of `variables`; `None` if these have no dimensions.
    fn option_for(&self, variables: &[usize], dimension: &[u8]) -> Option<String> {
        let of_variable = |at: &usize| self.variables.dims.get(at)?.first().map(Vec::as_slice);
        let mut dimensions: BTreeSet<&[u8]> = variables.iter().filter_map(of_variable).collect();
        if dimensions.is_empty() {
            return None;
        }
        dimensions.insert(dimension);
        let names = dimensions.into_iter().filter(|dimension| !dimension.is_empty());
        let names: Vec<_> = names.map(|dimension| String::from_utf8_lossy(last_name(dimension)).into_owned()).collect();
        Some(format!("--dim {}", names.join(",")))
    }

    /// Refuses a concatenated variable of positions along a dimension that the file lacks, because the numbers of its
    /// elements are unknown.
    fn refuse_lost(&self, at: usize) -> Result<(), Refusal> {
        let file = self.variables.file;
        let Some(name) = target_name(file, at).filter(|_| file.has(at, INSTANCE) || file.may_lack_records) else {
            return Ok(());
        };
        if !self.is_along(at) || dimension(self.variables, at, name.trim()).is_some() {
            return Ok(());
        }
        Err(self.refusal(
            at,
            format!(
                "refers to positions along the dimension {:?}, which is left out, so that they cannot be renumbered; include \
                 it, or leave this variable out with --exclude",
                name.trim()
            ),
        ))
    }

    /// Returns the reason for refusing counts that are concatenated although the counted elements are not.
    fn refusal_of_counts(&self, at: usize, counted: &[u8]) -> Refusal {
        let option = self.option_for(&[at], counted).unwrap_or_default();
        let counted = display_path(counted);
        self.refusal(
            at,
            format!(
                "counts elements along {counted}, along which files are not concatenated; {option} concatenates along \
                 both dimensions"
            ),
        )
    }

    /// Refuses a variable with an attribute that names a dimension along which files are concatenated.
    fn refuse_along(&self, at: usize, attribute: &str, does: &str) -> Result<(), Refusal> {
        let names = self.variables.file.text(at, attribute).unwrap_or_default();
        let dimensions = names.split_whitespace().map(|name| name.trim_end_matches(':'));
        let found = dimensions.filter_map(|name| dimension(self.variables, at, name));
        match found.into_iter().find(|dimension| self.records.contains(dimension)) {
            None => Ok(()),
            Some(dimension) => Err(self.refusal(
                at,
                format!(
                    "{does} (attribute {attribute}), which would no longer be right after a concatenation along {}; \
                     --dim selects another dimension",
                    display_path(&dimension)
                ),
            )),
        }
    }

    /// Refuses a mesh whose nodes, edges or faces are concatenated. A mesh that moves has coordinates along a time,
    /// too.
    fn refuse_mesh(&self, at: usize) -> Result<(), Refusal> {
        let of_mesh =
            OF_MESH.iter().flat_map(|attribute| self.named(at, attribute).into_iter().zip(repeat(*attribute)));
        let elements = of_mesh.flat_map(|(other, attribute)| {
            let dims = self.variables.dims.get(&other).map_or(&[][..], Vec::as_slice);
            match attribute.ends_with("_coordinates") {
                true => &dims[dims.len().saturating_sub(1)..],
                false => &dims[dims.len().saturating_sub(2)..],
            }
        });
        match elements.into_iter().find(|dimension| self.records.contains(*dimension)) {
            None => Ok(()),
            Some(dimension) => Err(self.refusal(
                at,
                format!(
                    "describes a mesh along {}, and a merge does not join meshes; --dim selects another dimension, such \
                     as time",
                    display_path(dimension)
                ),
            )),
        }
    }

    /// Refuses geometries of which only some variables are concatenated.
    fn check_geometry(&self, at: usize) -> Result<(), Refusal> {
        let parts: Vec<usize> = OF_GEOMETRY.iter().flat_map(|attribute| self.named(at, attribute)).collect();
        let option = self.option_for(&parts, &[]).unwrap_or_default();
        let (along, apart): (Vec<usize>, Vec<usize>) = parts.into_iter().partition(|&part| self.is_along(part));
        let (Some(along), Some(apart)) = (along.first(), apart.first()) else { return Ok(()) };
        let path = |at: &usize| display_path(self.variables.file.path_of(*at));
        Err(self.refusal(
            at,
            format!(
                "describes geometries of which {} is concatenated and {} is not; {option} concatenates all of them",
                path(along),
                path(apart)
            ),
        ))
    }
}

/// Returns the path of a dimension that is named in a variable's attribute.
fn dimension(variables: &Variables<'_, '_>, at: usize, name: &str) -> Option<Vec<u8>> {
    let found = variables.file.path_of(variable(variables.file, at, name)?);
    variables.all.contains(found).then(|| found.to_vec())
}
