//! Maps addresses of object headers to the objects' paths, which are the meaning of references.

use crate::model::{FileTree, ObjectIndex, ObjectKind};
use std::collections::{HashMap, VecDeque};

/// Paths of all objects of a file. If an object has several, the shortest is used, and among those the first in the
/// order of links: the one found first by a breadth-first walk.
#[derive(Debug, Clone, Default)]
pub struct ObjectPaths {
    by_address: HashMap<u64, ObjectIndex>,
    objects: Vec<NamedObject>,
    /// Concatenated names of all links that were followed.
    names: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default)]
struct NamedObject {
    parent: ObjectIndex,
    name_start: usize,
    name_len: usize,
    /// Rank, if the object is a dataset.
    rank: Option<u8>,
}

impl ObjectPaths {
    /// Collects the paths of `tree`'s objects.
    pub fn new(tree: &FileTree) -> Self {
        let mut paths = Self { objects: vec![NamedObject::default(); tree.objects.len()], ..Self::default() };
        let mut seen = vec![false; tree.objects.len()];
        let mut queue = VecDeque::new();
        if let Some(first) = seen.first_mut() {
            *first = true;
            queue.push_back(0);
        }
        while let Some(index) = queue.pop_front() {
            let object = &tree.objects[index as usize];
            paths.by_address.entry(object.address).or_insert(index);
            match &object.kind {
                ObjectKind::Dataset(dataset) => {
                    paths.objects[index as usize].rank = u8::try_from(dataset.dataspace.dims().len()).ok();
                }
                ObjectKind::Templated(formed) => {
                    paths.objects[index as usize].rank = u8::try_from(formed.form.dataset.dataspace.dims().len()).ok();
                }
                ObjectKind::Group(group) => {
                    for link in &group.links {
                        let crate::model::LinkTarget::Hard(child) = link.target else { continue };
                        let Some(seen) = seen.get_mut(child as usize).filter(|seen| !**seen) else { continue };
                        *seen = true;
                        let found = &mut paths.objects[child as usize];
                        (found.parent, found.name_start, found.name_len) = (index, paths.names.len(), link.name.len());
                        paths.names.extend_from_slice(&link.name);
                        queue.push_back(child);
                    }
                }
                _ => {}
            }
        }
        paths
    }

    /// Appends the absolute path of the object whose header is at `address`; returns `None` if there is no such object.
    pub(super) fn append(&self, address: u64, out: &mut Vec<u8>) -> Option<()> {
        let mut index = *self.by_address.get(&address)?;
        if index == 0 {
            out.push(b'/');
            return Some(());
        }
        let start = out.len();
        // Names are appended in reverse from the object to the root, then the whole path is reversed.
        while index != 0 {
            let found = &self.objects[index as usize];
            out.extend(self.names[found.name_start..found.name_start + found.name_len].iter().rev());
            out.push(b'/');
            index = found.parent;
        }
        out[start..].reverse();
        Some(())
    }

    /// Returns the rank of the dataset whose header is at `address`.
    pub(super) fn rank(&self, address: u64) -> Option<u8> {
        self.objects[*self.by_address.get(&address)? as usize].rank
    }

    /// Returns the absolute path of the object whose header is at `address`.
    pub fn path(&self, address: u64) -> Option<Vec<u8>> {
        let mut path = Vec::new();
        self.append(address, &mut path).map(|()| path)
    }
}
