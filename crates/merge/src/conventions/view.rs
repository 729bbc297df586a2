//! View of a scanned file for conventions: objects by path, attributes as strings.
//!
//! Invariant: nothing is read from the file here.

use crate::inputs::paths::Paths;
use crate::scan::{ScannedEntry, ScannedRole};
use crate::schema::attribute;
use crate::schema::{AttributeValue, InputExtent, Role};
use raddle_hdf5::model::{Dataset, Dataspace, TypeClass};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;

/// Number of links that are followed from one to the next.
const MAX_LINKS: usize = 16;

/// Scanned file.
pub struct FileView<'a> {
    /// Path of the file.
    pub path: &'a Path,
    paths: &'a Paths,
    entries: &'a [ScannedEntry],
    /// Whether objects are left out of a file with unlimited dimensions, which may be among them.
    pub may_lack_records: bool,
    /// Entries by path; built on first use.
    by_path: OnceCell<HashMap<&'a [u8], usize>>,
}

impl<'a> FileView<'a> {
    /// Creates a view of the file at `path` with these objects.
    pub(crate) fn new(path: &'a Path, paths: &'a Paths, entries: &'a [ScannedEntry], may_lack_records: bool) -> Self {
        Self { path, paths, entries, may_lack_records, by_path: OnceCell::new() }
    }

    /// Returns the number of objects and links.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the file has no objects, which is not the case for any file that was read.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the path of entry number `at`.
    pub fn path_of(&self, at: usize) -> &'a [u8] {
        self.paths.get(at)
    }

    /// Returns the number of the entry at `path`.
    pub fn find(&self, path: &[u8]) -> Option<usize> {
        let paths = self.paths;
        let by_path = self.by_path.get_or_init(|| (0..paths.len()).map(|at| (paths.get(at), at)).collect());
        by_path.get(path).copied()
    }

    /// Returns the entry to which entry number `at` leads, if it is a link to an object in the file; otherwise `at`.
    pub fn resolved(&self, at: usize) -> usize {
        let mut at = at;
        for _ in 0..MAX_LINKS {
            let ScannedRole::Other(role) = &self.entries[at].role else { break };
            let Some(next) = role.target(self.path_of(at)).and_then(|target| self.find(&target)) else { break };
            at = next;
        }
        at
    }

    /// Returns the attributes of entry number `at`.
    pub fn attributes(&self, at: usize) -> &'a [AttributeValue] {
        &self.entries[at].attributes
    }

    /// Returns the text of an attribute of entry number `at`.
    pub fn text(&self, at: usize, name: &str) -> Option<String> {
        attribute::text(self.attributes(at), name)
    }

    /// Returns the text of an attribute of the root group.
    pub(crate) fn root_text(&self, name: &str) -> Option<String> {
        if self.entries.is_empty() { None } else { self.text(0, name) }
    }

    /// Returns whether an object has an attribute.
    pub fn has(&self, at: usize, name: &str) -> bool {
        attribute::named(self.attributes(at), name).is_some()
    }

    /// Returns whether the entry is a group.
    pub fn is_group(&self, at: usize) -> bool {
        matches!(self.entries[at].role, ScannedRole::Other(Role::Group { .. }))
    }

    /// Returns the dataset of entry number `at` if it would be concatenated: its description without the size of its
    /// first axis, and that size.
    pub fn column(&self, at: usize) -> Option<(&'a Dataset, u64)> {
        match &self.entries[at].role {
            ScannedRole::Column { template, fact: InputExtent { rows, .. }, .. } => Some((template, *rows)),
            ScannedRole::Other(_) => None,
        }
    }

    /// Returns the sizes of the axes of a dataset.
    pub fn dims(&self, at: usize) -> Option<Vec<u64>> {
        let (template, rows) = self.column(at)?;
        let mut dims = template.dataspace.dims().to_vec();
        *dims.first_mut()? = rows;
        Some(dims)
    }

    /// Returns, for each axis of a dataset, whether it can grow without limit.
    pub fn unlimited(&self, at: usize) -> Vec<bool> {
        match self.column(at).map(|(template, _)| &template.dataspace) {
            Some(Dataspace::Simple { max_dims, .. }) => max_dims.iter().map(|&max| max == u64::MAX).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the type of a dataset that would be concatenated, or of a scalar.
    pub fn class(&self, at: usize) -> Option<&'a TypeClass> {
        match &self.entries[at].role {
            ScannedRole::Column { template, .. } => Some(&template.datatype.class),
            ScannedRole::Other(Role::Constant { dataset, .. }) => Some(&dataset.datatype.class),
            ScannedRole::Other(_) => None,
        }
    }

    /// Returns the canonical bytes of a scalar dataset, and its type.
    pub fn scalar(&self, at: usize) -> Option<(&'a TypeClass, &'a [u8])> {
        match &self.entries[at].role {
            ScannedRole::Other(Role::Constant { dataset, value, .. }) => Some((&dataset.datatype.class, value)),
            _ => None,
        }
    }

    /// Returns the entries below the group at `path`, at any depth.
    pub fn inside<'s>(&'s self, path: &'s [u8]) -> impl Iterator<Item = usize> + use<'s, 'a> {
        (0..self.len()).filter(move |&at| {
            let rest = self.path_of(at).strip_prefix(path);
            rest.is_some_and(|rest| path == b"/" && !rest.is_empty() || rest.starts_with(b"/"))
        })
    }
}
