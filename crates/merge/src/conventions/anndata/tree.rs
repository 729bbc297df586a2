//! Inputs as trees of elements, each with its encoding.
//!
//! Nothing is read here: the scan has kept the values that planning needs. Invariant: equal values of several inputs
//! are held once.

use crate::inputs::paths::Paths;
use crate::scan::{ScannedEntry, ScannedRole};
use crate::schema::attribute;
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{AttributeValue, InputExtent, Role, display_path, last_name};
use raddle_hdf5::model::{Dataset, TypeClass};
use raddle_hdf5::number::NumberType;
use std::collections::HashMap;
use std::sync::Arc;

/// Result of combining elements, with the reason of a failure.
pub(super) type CombineResult<T> = Result<T, Box<Difference>>;

/// Trees of all inputs, with the values that they share.
#[derive(Debug, Default)]
pub(crate) struct Files {
    files: Vec<InputTree>,
    /// Values, indexed by digest.
    values: HashMap<u64, Arc<[u8]>>,
}

#[derive(Debug)]
struct InputTree {
    paths: Paths,
    entries: Vec<ScannedEntry>,
    by_path: HashMap<Vec<u8>, usize>,
    /// Numbers of the entries directly inside each entry.
    children: Vec<Vec<usize>>,
}

impl Files {
    /// Adds the next input.
    pub(crate) fn add(&mut self, paths: Paths, mut entries: Vec<ScannedEntry>) {
        let by_path: HashMap<Vec<u8>, usize> = paths.iter().enumerate().map(|(at, path)| (path.to_vec(), at)).collect();
        let mut children = vec![Vec::new(); entries.len()];
        for (at, path) in paths.iter().enumerate().skip(1) {
            if let Some(&parent) = by_path.get(crate::schema::parent_path(path)) {
                children[parent].push(at);
            }
        }
        for entry in &mut entries {
            let ScannedRole::Column { kept: Some(digest), values: Some(values), .. } = &mut entry.role else {
                continue;
            };
            let known = self.values.entry(*digest).or_insert_with(|| Arc::clone(values));
            if known == values {
                *values = Arc::clone(known);
            }
        }
        self.files.push(InputTree { paths, entries, by_path, children });
    }

    /// Returns whether there are no inputs.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the root groups, in input order.
    pub(super) fn roots(&self) -> Vec<Node<'_>> {
        (0..).zip(&self.files).map(|(input, file)| Node { input, at: 0, file }).collect()
    }
}

/// Object of an input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    /// Number of the input.
    pub input: u32,
    at: usize,
    file: &'a InputTree,
}

impl<'a> Node<'a> {
    /// Returns the path of the object in its file.
    pub fn path(self) -> &'a [u8] {
        self.file.paths.get(self.at)
    }

    /// Returns the last component of the path.
    pub fn name(self) -> &'a [u8] {
        last_name(self.path())
    }

    /// Returns the entry that the scan found.
    pub fn entry(self) -> &'a ScannedEntry {
        &self.file.entries[self.at]
    }

    /// Returns the object of this name inside the group.
    pub fn child(self, name: &[u8]) -> Option<Self> {
        let at = *self.file.by_path.get(&crate::schema::child_path(self.path(), name))?;
        Some(Self { at, ..self })
    }

    /// Returns all objects directly inside the group.
    pub fn children(self) -> impl Iterator<Item = Self> + use<'a> {
        self.file.children[self.at].iter().map(move |&at| Self { at, ..self })
    }

    /// Returns the attributes of the object.
    pub fn attributes(self) -> &'a Arc<[AttributeValue]> {
        &self.entry().attributes
    }

    /// Returns the text of an attribute.
    pub fn text(self, name: &str) -> Option<String> {
        attribute::text(self.attributes(), name)
    }

    /// Describes the encoding of the element.
    pub fn encoding(self) -> String {
        self.text("encoding-type").unwrap_or_else(|| "no encoding-type".to_owned())
    }

    /// Returns whether the object is a group.
    pub fn is_group(self) -> bool {
        matches!(self.entry().role, ScannedRole::Other(Role::Group { .. }))
    }

    /// Returns the description of a dataset with rows, and its position.
    pub fn column(self) -> Option<(&'a Arc<Dataset>, InputExtent)> {
        match &self.entry().role {
            ScannedRole::Column { template, fact, committed: None, .. } => Some((template, *fact)),
            _ => None,
        }
    }

    /// Returns the values; `None` if they were not kept.
    pub fn values(self) -> Option<&'a Arc<[u8]>> {
        match &self.entry().role {
            ScannedRole::Column { values, .. } => values.as_ref(),
            ScannedRole::Other(_) => None,
        }
    }

    /// Returns a scalar or null dataset and its value.
    pub fn constant(self) -> Option<(&'a Dataset, &'a [u8])> {
        match &self.entry().role {
            ScannedRole::Other(Role::Constant { dataset, committed: None, value }) => Some((dataset, value)),
            _ => None,
        }
    }

    /// Returns the sizes of a dataset with rows.
    pub fn dims(self) -> Option<Vec<u64>> {
        let (template, fact) = self.column()?;
        let mut dims = template.dataspace.dims().to_vec();
        dims[0] = fact.rows;
        Some(dims)
    }

    /// Returns the type of a dataset with rows.
    pub fn class(self) -> Option<&'a TypeClass> {
        Some(&self.column()?.0.datatype.class)
    }

    /// Returns the number type of a dataset with rows; `None` if it has none.
    pub fn number(self) -> Option<NumberType> {
        NumberType::of(self.class()?)
    }

    /// Creates an error about this element.
    pub fn refuse<T>(self, expected: impl Into<String>, found: impl Into<String>) -> CombineResult<T> {
        refuse(self.path(), expected, found, vec![self.input])
    }

    /// Checks that the element has one of these encodings, in a supported version.
    pub fn expect(self, kinds: &[(&str, &str)]) -> CombineResult<()> {
        let (kind, version) = (self.encoding(), self.text("encoding-version").unwrap_or_default());
        if kinds.contains(&(kind.as_str(), version.as_str())) {
            return Ok(());
        }
        let known: Vec<String> = kinds.iter().map(|(kind, version)| format!("{kind} {version}")).collect();
        self.refuse(
            known.join(", "),
            format!("{kind} {version}, which cannot be combined; leave it out with --exclude"),
        )
    }

    /// Returns the dataset of this name inside the group.
    pub fn dataset(self, name: &[u8]) -> CombineResult<Self> {
        match self.child(name).filter(|child| child.column().is_some()) {
            Some(child) => Ok(child),
            None => self.refuse(format!("a dataset {}", display_path(name)), "no such dataset"),
        }
    }

    /// Returns the values of a dataset, which were kept unless there are too many.
    pub fn kept(self) -> CombineResult<&'a Arc<[u8]>> {
        match self.values() {
            Some(values) => Ok(values),
            None => self.refuse("values that can be compared", "too many; leave them out with --exclude"),
        }
    }

    /// Returns all strings of a dataset.
    pub fn strings(self) -> CombineResult<Vec<String>> {
        let strings = self.class().zip(Some(self.kept()?));
        match strings.and_then(|(class, values)| attribute::strings_of(class, values)) {
            Some(strings) => Ok(strings),
            None => self.refuse("strings", "values of another type"),
        }
    }
}

/// Creates an error about the elements at `path`.
pub(super) fn refuse<T>(
    path: &[u8],
    expected: impl Into<String>,
    found: impl Into<String>,
    inputs: Vec<u32>,
) -> CombineResult<T> {
    let (path, kind) = (display_path(path), DifferenceKind::Meaning);
    Err(Box::new(Difference { path, kind, expected: expected.into(), found: found.into(), inputs }))
}
