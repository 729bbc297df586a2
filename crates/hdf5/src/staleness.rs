//! Whether the metadata of an open file still describes it after another program has written to it.
//!
//! A file that is open may grow: its old datasets stay as they are. It may also be truncated and written anew. Then the
//! addresses that were read at opening lead to bytes of other datasets, which may be decoded without an error. Once the length
//! or the modification time has changed, the metadata is therefore read again and compared.

use crate::model::{Attribute, Dataset, FileTree, Layout, LinkTarget, Object, ObjectIndex, ObjectKind};
use raddle_core::pooled_file::FileIdentity;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// What is known about the file at one time.
#[derive(Debug)]
pub(crate) struct Staleness {
    /// Identity of the file when its metadata was last read.
    pub(crate) seen: FileIdentity,
    /// Addresses of the headers of objects that have other paths, and of datasets whose values may have moved.
    stale: HashSet<u64>,
    /// Whether values outside of datasets may have left the heaps that they refer to.
    are_heaps_stale: bool,
}

impl Staleness {
    /// Describes the file that was just opened.
    pub(crate) fn of_opened(seen: FileIdentity) -> Self {
        Self { seen, stale: HashSet::new(), are_heaps_stale: false }
    }

    /// Compares the metadata read at opening with that which the file has now. Objects that were added do not matter.
    pub(crate) fn compare(seen: FileIdentity, opened: &FileTree, now: &FileTree) -> Self {
        let later: HashMap<u64, &Object> = now.objects.iter().map(|object| (object.address, object)).collect();
        let object_now = |opened: &Object| later.get(&opened.address).copied();
        let is_same_encoding = encoding(opened) == encoding(now);
        let mut stale = HashSet::new();
        let mut are_heaps_stale = !is_same_encoding;
        for object in &opened.objects {
            let object_now = object_now(object).filter(|_| is_same_encoding);
            if let Some(dataset) = dataset(object)
                && !object_now.and_then(self::dataset).is_some_and(|now| is_continued(&dataset, &now))
            {
                stale.insert(object.address);
                are_heaps_stale |=
                    matches!(dataset.layout, Layout::Compact(_)) && dataset.datatype.class.is_file_local();
            }
            let attributes_now = object_now.map_or(&[][..], Object::all_attributes);
            are_heaps_stale |= in_heaps(object).any(|attribute| !attributes_now.contains(attribute));
        }
        let mut renamed: Vec<ObjectIndex> = Vec::new();
        for group in &opened.objects {
            let names_now: HashMap<&[u8], u64> = object_now(group)
                .map_or_else(HashMap::new, |group| targets(now, group).map(|(name, _, to)| (name, to)).collect());
            let links = targets(opened, group).filter(|(name, _, to)| names_now.get(name) != Some(to));
            renamed.extend(links.map(|(_, index, _)| index));
        }
        // What lies below a group has other paths as well.
        let mut visited = HashSet::new();
        while let Some(index) = renamed.pop() {
            let Some(object) = opened.objects.get(index as usize).filter(|_| visited.insert(index)) else { continue };
            stale.insert(object.address);
            are_heaps_stale |= in_heaps(object).next().is_some();
            renamed.extend(targets(opened, object).map(|(_, index, _)| index));
        }
        Self { seen, stale, are_heaps_stale }
    }

    /// Returns whether the dataset with its header at `address` has its paths, and its values where they were.
    pub(crate) fn has_dataset(&self, address: u64) -> bool {
        !self.stale.contains(&address)
    }

    /// Returns whether values of attributes and compact datasets are in the heaps that they refer to.
    pub(crate) fn has_heaps(&self) -> bool {
        !self.are_heaps_stale
    }
}

/// Returns what decides how numbers and addresses are stored.
fn encoding(tree: &FileTree) -> (u8, u64, u8, u8) {
    (tree.superblock_version, tree.userblock_len_bytes, tree.address_len_bytes, tree.length_len_bytes)
}

/// Returns names, numbers and addresses of the objects of this file that a group links to.
fn targets<'a>(tree: &'a FileTree, object: &'a Object) -> impl Iterator<Item = (&'a [u8], ObjectIndex, u64)> {
    let links = match &object.kind {
        ObjectKind::Group(group) => group.links.as_slice(),
        _ => &[],
    };
    links.iter().filter_map(|link| match link.target {
        LinkTarget::Hard(index) => Some((link.name.as_slice(), index, tree.objects.get(index as usize)?.address)),
        _ => None,
    })
}

/// Returns the attributes of an object whose values are in heaps.
fn in_heaps(object: &Object) -> impl Iterator<Item = &Attribute> {
    object.all_attributes().iter().filter(|attribute| attribute.datatype.class.is_file_local())
}

fn dataset(object: &Object) -> Option<Cow<'_, Dataset>> {
    match &object.kind {
        ObjectKind::Dataset(dataset) => Some(Cow::Borrowed(dataset)),
        ObjectKind::Templated(templated) => Some(Cow::Owned(templated.dataset())),
        _ => None,
    }
}

/// Returns whether the dataset is still stored as `opened` says, except that it may have grown.
fn is_continued(opened: &Dataset, now: &Dataset) -> bool {
    let has_grown = opened.dataspace != now.dataspace;
    let (old, new) = (opened.dataspace.dims(), now.dataspace.dims());
    // The sizes decide which chunks are stored without filters.
    let depends_on_sizes = matches!(opened.layout, Layout::Chunked { partial_chunks_unfiltered: true, .. });
    let is_longer = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old <= new) && !depends_on_sizes;
    (opened.layout == now.layout && opened.fill == now.fill && opened.filters == now.filters)
        && opened.datatype == now.datatype
        && (!has_grown || is_longer)
}
