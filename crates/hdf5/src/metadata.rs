//! The two metadata readers behind one trait, and a reader that combines them.
//!
//! Invariant: [`Reader`] never calls libhdf5 in this process, and passes to the child only what the native reader does
//! not support. An object that the native reader finds *damaged* stays unreadable, even if libhdf5 can read it.

use crate::child::ChildReader;
use crate::error::Result;
use crate::model::{FileTree, LinkTarget, Object, ObjectIndex, ObjectKind};
use crate::native::{self, HeaderTemplateCache, ReadLimits};
use crate::source::{InputFile, MetadataView};
use std::collections::HashMap;
use std::path::Path;

/// Reader of a file's metadata.
pub trait MetadataReader {
    /// Reads the metadata of the file at `path`.
    ///
    /// # Errors
    /// If the file as a whole cannot be read; single unreadable objects are returned as [`ObjectKind::Unreadable`].
    fn read_tree(&self, path: &Path) -> Result<FileTree>;
}

/// Metadata reader that parses the bytes in safe Rust.
#[derive(Debug, Clone, Copy, Default)]
pub struct NativeReader {
    /// Limits beyond which the reader refuses a file.
    pub limits: ReadLimits,
}

impl MetadataReader for NativeReader {
    fn read_tree(&self, path: &Path) -> Result<FileTree> {
        let file = InputFile::open(path)?;
        let tree = native::read_tree(&file, &self.limits)?;
        file.check_unchanged()?;
        Ok(tree)
    }
}

impl MetadataReader for ChildReader {
    fn read_tree(&self, path: &Path) -> Result<FileTree> {
        ChildReader::read_tree(self, path)
    }
}

/// Native reader that falls back to libhdf5 in a child process for unsupported objects.
#[derive(Debug)]
pub struct Reader {
    native: NativeReader,
    child: ChildReader,
}

impl Reader {
    /// Creates a reader that falls back to `child` where `native` lacks support.
    pub fn new(native: NativeReader, child: ChildReader) -> Self {
        Self { native, child }
    }

    /// Returns the reader over libhdf5, which also reads values that only libhdf5 can locate.
    pub fn child(&self) -> &ChildReader {
        &self.child
    }

    /// Returns the reader over libhdf5 alone.
    pub fn into_child(self) -> ChildReader {
        self.child
    }
}

impl MetadataReader for Reader {
    fn read_tree(&self, path: &Path) -> Result<FileTree> {
        complete(self.native.read_tree(path), path, &self.child)
    }
}

impl Reader {
    /// Reads the metadata of the file under `view`. Datasets with a known template are returned as
    /// [`ObjectKind::Templated`].
    ///
    /// # Errors
    /// As for [`MetadataReader::read_tree`].
    pub fn read_outline(&self, view: &mut MetadataView<'_>, forms: &HeaderTemplateCache) -> Result<FileTree> {
        let path = view.file().path();
        let tree = complete(native::read_outline(view, &self.native.limits, forms), path, &self.child)?;
        view.file().check_not_replaced()?;
        Ok(tree)
    }
}

/// Completes the native reader's result for the file at `path`, using `child` for objects that the native reader does
/// not support.
///
/// # Errors
/// If `native` is an error, unless it means that the whole file is unsupported; or if the child fails.
pub fn complete(native: Result<FileTree>, path: &Path, child: &ChildReader) -> Result<FileTree> {
    let mut tree = match native {
        Err(error) if error.is_unsupported() => return child.read_tree(path),
        outcome => outcome?,
    };
    let unknown: Vec<u64> = tree.objects.iter().filter(|object| is_unknown(object)).map(|o| o.address).collect();
    if !unknown.is_empty() {
        tree = take_in(tree, child.read_objects(path, &unknown)?);
    }
    Ok(tree)
}

/// Returns the tree with its unsupported objects replaced by the objects of a fragment.
pub(crate) fn take_in(mut tree: FileTree, fragment: Vec<Object>) -> FileTree {
    graft(&mut tree, fragment);
    renumber(&mut tree);
    tree
}

/// Returns whether the native reader found an object but does not support it.
pub(crate) fn is_unknown(object: &Object) -> bool {
    matches!(object.kind, ObjectKind::Unreadable { unsupported: true, .. })
}

/// Replaces unsupported objects by the objects of a fragment with the same address, and appends the objects that the
/// tree does not have. Links in the fragment use the indices of the fragment.
fn graft(tree: &mut FileTree, fragment: Vec<Object>) {
    let mut index_of: HashMap<u64, ObjectIndex> =
        tree.objects.iter().enumerate().map(|(index, object)| (object.address, index as ObjectIndex)).collect();
    let mut added = tree.objects.len();
    let places: Vec<ObjectIndex> = fragment
        .iter()
        .map(|object| {
            *index_of.entry(object.address).or_insert_with(|| {
                added += 1;
                added as ObjectIndex - 1
            })
        })
        .collect();
    for (mut object, place) in fragment.into_iter().zip(&places) {
        if let ObjectKind::Group(group) = &mut object.kind {
            for link in &mut group.links {
                if let LinkTarget::Hard(target) = &mut link.target {
                    *target = places[*target as usize];
                }
            }
        }
        match tree.objects.get_mut(*place as usize) {
            None => tree.objects.push(object),
            Some(known) if is_unknown(known) => *known = object,
            // Both readers support it: the native one's result is kept.
            Some(_) => {}
        }
    }
}

/// Reorders the objects into breadth-first order.
fn renumber(tree: &mut FileTree) {
    let mut order: Vec<ObjectIndex> = vec![0];
    let mut new_index: HashMap<ObjectIndex, ObjectIndex> = HashMap::from([(0, 0)]);
    let mut next = 0;
    while next < order.len() {
        if let ObjectKind::Group(group) = &tree.objects[order[next] as usize].kind {
            for link in &group.links {
                if let LinkTarget::Hard(target) = link.target {
                    new_index.entry(target).or_insert_with(|| {
                        order.push(target);
                        order.len() as ObjectIndex - 1
                    });
                }
            }
        }
        next += 1;
    }
    let mut old: Vec<Option<Object>> = std::mem::take(&mut tree.objects).into_iter().map(Some).collect();
    for index in order {
        let Some(mut object) = old[index as usize].take() else { continue };
        if let ObjectKind::Group(group) = &mut object.kind {
            for link in &mut group.links {
                if let LinkTarget::Hard(target) = &mut link.target {
                    *target = new_index[target];
                }
            }
        }
        tree.objects.push(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CreationOrder, Group, Link};

    fn group(address: u64, targets: &[ObjectIndex]) -> Object {
        let link = |(number, &target): (usize, &ObjectIndex)| Link {
            name: format!("l{number}").into_bytes(),
            utf8: false,
            creation_order: None,
            target: LinkTarget::Hard(target),
        };
        let links = targets.iter().enumerate().map(link).collect();
        object(address, ObjectKind::Group(Group { links, link_order: CreationOrder::default() }))
    }

    fn unknown(address: u64) -> Object {
        object(address, ObjectKind::Unreadable { reason: "new".to_owned(), unsupported: true, foreign: None })
    }

    fn object(address: u64, kind: ObjectKind) -> Object {
        Object { address, kind, attributes: Vec::new(), attribute_order: CreationOrder::default(), comment: None }
    }

    fn tree(objects: Vec<Object>) -> FileTree {
        FileTree { superblock_version: 0, userblock_len_bytes: 0, address_len_bytes: 8, length_len_bytes: 8, objects }
    }

    #[test]
    fn an_unknown_group_brings_its_objects_and_the_walk_order_stands() {
        // The root links to an unsupported group and to a supported one. The unsupported group links to the supported
        // one, to a new object and back to the root.
        let mut tree = tree(vec![group(96, &[1, 2]), unknown(800), group(900, &[3]), group(950, &[])]);
        graft(
            &mut tree,
            vec![group(800, &[1, 2, 3]), group(900, &[4]), group(1000, &[]), group(96, &[0, 1]), group(950, &[])],
        );
        renumber(&mut tree);
        let addresses: Vec<u64> = tree.objects.iter().map(|object| object.address).collect();
        assert_eq!(addresses, [96, 800, 900, 1000, 950]);
        assert_eq!(tree.objects[1], group(800, &[2, 3, 0]));
        assert_eq!(tree.objects[2], group(900, &[4]));
    }

    #[test]
    fn an_object_that_the_child_cannot_read_either_reports_the_child_s_reason() {
        let mut tree = tree(vec![group(96, &[1]), unknown(800)]);
        let reason = ObjectKind::Unreadable { reason: "libhdf5 says no".to_owned(), unsupported: false, foreign: None };
        graft(&mut tree, vec![object(800, reason.clone())]);
        assert_eq!(tree.objects[1].kind, reason);
    }
}
