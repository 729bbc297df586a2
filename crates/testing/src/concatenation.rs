//! Expected result of merging files along axis 0, computed on contents: the oracle of merge's property tests.
//!
//! The rules: datasets of rank 1 or more are concatenated; scalars and null extents are kept once if all files agree;
//! attributes and everything else come from the first file; region references move with the rows they point to. Files
//! must have the same paths ("exact" join); anything else is a [`Difference`].

use crate::canonical::{Cursor, copy_shifted};
use crate::content::{Content, DatasetContent, Node, Path, escape_bytes};
use raddle_hdf5::model::Dataspace;
use std::collections::BTreeMap;

/// Reason why contents cannot be concatenated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Path of the object.
    pub path: Path,
    /// Index of the file that differs from the first.
    pub file: usize,
    /// Kind of difference.
    pub what: &'static str,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} in file {}: {}", escape_bytes(&self.path), self.file, self.what)
    }
}

/// Returns the content of the merged file, or the first difference that prevents merging.
///
/// # Panics
/// If `inputs` is empty.
pub fn concatenate(inputs: &[Content]) -> Result<Content, Difference> {
    let first = &inputs[0];
    let mut nodes = BTreeMap::new();
    for (file, input) in inputs.iter().enumerate() {
        let surplus = input.nodes.keys().find(|path| !first.nodes.contains_key(*path));
        if let Some(path) = surplus {
            return Err(Difference { path: path.clone(), file, what: "not in the first file" });
        }
    }
    for (path, node) in &first.nodes {
        let mut same: Vec<&Node> = Vec::with_capacity(inputs.len());
        for (file, input) in inputs.iter().enumerate() {
            let difference = |what| Difference { path: path.clone(), file, what };
            let other = input.nodes.get(path).ok_or_else(|| difference("missing"))?;
            check_alike(node, other).map_err(difference)?;
            same.push(other);
        }
        let merged = match node {
            Node::Dataset(dataset) => Node::Dataset(Box::new(concatenate_dataset(path, dataset, &same, inputs)?)),
            other => other.clone(),
        };
        nodes.insert(path.clone(), merged);
    }
    Ok(Content { nodes })
}

/// Returns the number of rows of a dataset with at least one dimension.
fn rows(dataspace: &Dataspace) -> Option<u64> {
    dataspace.dims().first().copied()
}

fn check_alike(first: &Node, other: &Node) -> Result<(), &'static str> {
    match (first, other) {
        (Node::Group { .. }, Node::Group { .. }) => Ok(()),
        (Node::Dataset(first), Node::Dataset(other)) => {
            let extents = match (&first.dataspace, &other.dataspace) {
                (Dataspace::Simple { dims: one, .. }, Dataspace::Simple { dims: two, .. }) => {
                    one.len() == two.len() && one.get(1..) == two.get(1..)
                }
                (one, two) => one == two,
            };
            match () {
                () if first.class != other.class => Err("another type"),
                () if !extents => Err("another extent beyond axis 0"),
                () if first.fill != other.fill => Err("another fill value"),
                () if rows(&first.dataspace).is_none() && first.values != other.values => Err("another scalar"),
                () => Ok(()),
            }
        }
        (Node::CommittedType { class, .. }, Node::CommittedType { class: other, .. }) => {
            if class == other {
                Ok(())
            } else {
                Err("another committed type")
            }
        }
        (first, other) if first == other => Ok(()),
        _ => Err("another kind of object or link"),
    }
}

fn concatenate_dataset(
    path: &Path,
    first: &DatasetContent,
    same: &[&Node],
    inputs: &[Content],
) -> Result<DatasetContent, Difference> {
    let mut merged = first.clone();
    let Dataspace::Simple { dims, max_dims } = &mut merged.dataspace else { return Ok(merged) };
    let Some(row_count) = dims.first_mut() else { return Ok(merged) };
    *row_count = 0;
    merged.values.clear();
    for (file, node) in same.iter().enumerate() {
        let Node::Dataset(dataset) = node else {
            return Err(Difference { path: path.clone(), file, what: "another kind of object or link" });
        };
        *row_count += rows(&dataset.dataspace).unwrap_or(0);
        let mut from = Cursor::new(&dataset.values);
        let row_offset = |target: &[u8]| rows_before(target, &inputs[..file]);
        for _ in 0..dataset.dataspace.element_count().unwrap_or(0) {
            copy_shifted(&dataset.class, &mut from, &row_offset, &mut merged.values);
        }
        assert!(from.rest().is_empty(), "{}: values are longer than the extent says", escape_bytes(path));
    }
    // The output can grow if the first file could, and its maximum is at least its extent.
    max_dims[0] = max_dims[0].max(*row_count);
    Ok(merged)
}

/// Returns the number of rows of the dataset at `path` in all of `files`.
fn rows_before(path: &[u8], files: &[Content]) -> u64 {
    files.iter().filter_map(|file| rows(&file.dataset(path)?.dataspace)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::{Selection, push_region};
    use crate::plain::numbers;
    use crate::spec::{DatasetSpec, FileSpec};
    use raddle_hdf5::model::{ReferenceKind, TypeClass};

    fn file(rows: u64, start: u8) -> Content {
        let mut values = Vec::new();
        push_region(b"/data", 1, &Selection::Points(vec![vec![rows - 1]]), &mut values);
        let region = TypeClass::Reference(ReferenceKind::Region);
        let objects = vec![
            DatasetSpec::plain(numbers::u8(), &[rows], (0..rows as u8).map(|row| start + row).collect()).at("/data"),
            DatasetSpec::plain(region, &[1], values).at("/last"),
        ];
        FileSpec { objects, ..FileSpec::default() }.content()
    }

    #[test]
    fn rows_follow_each_other_and_regions_follow_their_rows() {
        let merged = concatenate(&[file(2, 10), file(3, 20)]).unwrap();
        assert_eq!(merged.dataset(b"/data").unwrap().values, [10, 11, 20, 21, 22]);
        let mut regions = Vec::new();
        push_region(b"/data", 1, &Selection::Points(vec![vec![1]]), &mut regions);
        push_region(b"/data", 1, &Selection::Points(vec![vec![2 + 2]]), &mut regions);
        assert_eq!(merged.dataset(b"/last").unwrap().values, regions);
    }

    #[test]
    fn a_missing_dataset_and_another_type_are_differences() {
        let mut short = file(2, 0);
        short.nodes.remove(&b"/data"[..]);
        assert_eq!(concatenate(&[file(2, 0), short.clone()]).unwrap_err().what, "missing");
        assert_eq!(concatenate(&[short, file(2, 0)]).unwrap_err().what, "not in the first file");
        let mut other = file(2, 0);
        if let Some(Node::Dataset(dataset)) = other.nodes.get_mut(&b"/data"[..]) {
            dataset.class = numbers::u16();
        }
        assert_eq!(concatenate(&[file(2, 0), other]).unwrap_err().what, "another type");
    }
}
