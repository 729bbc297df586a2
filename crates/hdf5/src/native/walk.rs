//! Walk from the root group to every reachable object.
//!
//! Invariants: an object is read once, by its address, whatever leads to it; object numbers depend on the links alone,
//! not on the location of objects; the walk does not recurse.

use super::ReadLimits;
use super::object::{self, reason};
use super::object_reader::ObjectReader;
use super::stored_link::{StoredLink, StoredTarget};
use super::superblock::Superblock;
use super::templates::HeaderTemplateCache;
use crate::error::{Hdf5Error, Result};
use crate::model::{CreationOrder, FileTree, Link, LinkTarget, Object, ObjectIndex, ObjectKind};
use crate::source::{InputFile, MetadataView};
use foldhash::HashMap;
use std::collections::hash_map::Entry;

/// Address assigned to the target of links that lead nowhere.
const NOWHERE: u64 = u64::MAX;

/// Reads the metadata of a whole file: objects in breadth-first order, with each group's links in the group's order.
///
/// Unreadable objects are in the tree as [`ObjectKind::Unreadable`].
///
/// # Errors
/// As for [`Superblock::read`]; `Limit` if the metadata exceeds `limits`; also if the file cannot be read.
pub fn read_tree(file: &InputFile, limits: &ReadLimits) -> Result<FileTree> {
    read_tree_through(&mut MetadataView::new(file, limits.cache_len_bytes), limits)
}

/// Like [`read_tree`], through a view of the caller, for example one that records the bytes read.
pub fn read_tree_through(view: &mut MetadataView<'_>, limits: &ReadLimits) -> Result<FileTree> {
    let superblock = Superblock::read(view.file())?;
    let reader = ObjectReader::new(view, &superblock, limits);
    walk(reader, limits, 0)
}

/// Like [`read_tree_through`], but returns datasets with a known template as [`ObjectKind::Templated`], which is
/// several times faster if thousands of datasets in many files are alike. New templates are added to `forms`.
pub fn read_outline(view: &mut MetadataView<'_>, limits: &ReadLimits, forms: &HeaderTemplateCache) -> Result<FileTree> {
    let superblock = Superblock::read(view.file())?;
    let reader = ObjectReader::new(view, &superblock, limits).with_forms(forms);
    // Files that are scanned together are mostly of one kind, and growing a list of thousands of objects step by step
    // would copy it several times.
    let tree = walk(reader, limits, forms.object_count_hint())?;
    forms.note_object_count(tree.objects.len());
    Ok(tree)
}

fn walk(reader: ObjectReader<'_, '_>, limits: &ReadLimits, expected_objects: usize) -> Result<FileTree> {
    let superblock = reader.superblock();
    let mut walk = TreeWalk {
        reader,
        limits,
        objects: Vec::with_capacity(expected_objects),
        addresses: Vec::with_capacity(expected_objects),
        by_address: HashMap::with_capacity_and_hasher(expected_objects, foldhash::fast::RandomState::default()),
        link_count: 0,
    };
    walk.run()?;
    let objects = walk.objects;
    Ok(FileTree {
        superblock_version: superblock.version,
        userblock_len_bytes: superblock.encoding.base,
        address_len_bytes: superblock.encoding.address_len_bytes,
        length_len_bytes: superblock.encoding.length_len_bytes,
        objects,
    })
}

/// A group whose links have to be followed.
struct Frame {
    group: ObjectIndex,
    links: Vec<StoredLink>,
}

struct TreeWalk<'w, 'v, 'f> {
    reader: ObjectReader<'v, 'f>,
    limits: &'w ReadLimits,
    /// Objects that were read: the first ones of `addresses`.
    objects: Vec<Object>,
    /// Addresses of all numbered objects.
    addresses: Vec<u64>,
    by_address: HashMap<u64, ObjectIndex>,
    link_count: u64,
}

impl TreeWalk<'_, '_, '_> {
    /// Reads level by level: the objects of a level belong to many groups, but are often consecutive in the file.
    fn run(&mut self) -> Result<()> {
        self.number(self.reader.superblock().root)?;
        for depth in 1.. {
            let groups = self.read_numbered()?;
            if groups.is_empty() {
                break;
            }
            self.check_limit("depth of groups", depth, self.limits.depth)?;
            for Frame { group, links } in groups {
                let mut resolved = Vec::with_capacity(links.len());
                for StoredLink { name, utf8, creation_order, target } in links {
                    let target = match target {
                        StoredTarget::Hard(address) => LinkTarget::Hard(self.number(address.unwrap_or(NOWHERE))?),
                        StoredTarget::Other(target) => target,
                    };
                    resolved.push(Link { name, utf8, creation_order, target });
                }
                if let ObjectKind::Group(group) = &mut self.objects[group as usize].kind {
                    group.links = resolved;
                }
            }
        }
        Ok(())
    }

    /// Returns the index of the object at `address`, numbering it if it is new.
    fn number(&mut self, address: u64) -> Result<ObjectIndex> {
        let count = self.addresses.len() as u64;
        let index = match self.by_address.entry(address) {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(new) => *new.insert(count as ObjectIndex),
        };
        // One less than the maximum of an index, whatever the caller allows.
        self.check_limit("number of objects", count + 1, self.limits.objects.min(ObjectIndex::MAX.into()))?;
        self.addresses.push(address);
        Ok(index)
    }

    /// Reads the numbered objects that were not read yet, in file order. Returns the groups among them, in numerical
    /// order, with their links.
    fn read_numbered(&mut self) -> Result<Vec<Frame>> {
        let first = self.objects.len();
        let mut in_file_order: Vec<(u64, usize)> = self.addresses[first..].iter().copied().zip(0..).collect();
        in_file_order.sort_unstable();
        let mut read: Vec<Option<Object>> = Vec::new();
        read.resize_with(in_file_order.len(), || None);
        let mut groups = Vec::new();
        for (address, at) in in_file_order {
            let (object, links) = match object::read(&mut self.reader, address) {
                Ok(read) => read,
                Err(error) => (unreadable(address, error)?, Vec::new()),
            };
            self.link_count += links.len() as u64;
            self.check_limit("number of links", self.link_count, self.limits.links)?;
            read[at] = Some(object);
            if !links.is_empty() {
                groups.push(Frame { group: (first + at) as ObjectIndex, links });
            }
        }
        self.objects.extend(read.into_iter().flatten());
        groups.sort_unstable_by_key(|frame| frame.group);
        Ok(groups)
    }

    fn check_limit(&self, what: &str, value: u64, limit: u64) -> Result<()> {
        if value <= limit {
            return Ok(());
        }
        Err(Hdf5Error::Limit { path: self.reader.path().to_path_buf(), what: what.to_owned(), limit })
    }
}

/// Creates the placeholder of an object that could not be read; passes on errors that do not concern the object itself.
fn unreadable(address: u64, error: Hdf5Error) -> Result<Object> {
    let of_the_object =
        matches!(error, Hdf5Error::Malformed { .. } | Hdf5Error::Unsupported { .. } | Hdf5Error::Truncated { .. });
    if !of_the_object {
        return Err(error);
    }
    let reason = if address == NOWHERE { "the link leads nowhere".to_owned() } else { reason(&error) };
    Ok(Object {
        address,
        kind: ObjectKind::Unreadable { reason, unsupported: error.is_unsupported(), foreign: None },
        attributes: Vec::new(),
        attribute_order: CreationOrder::default(),
        comment: None,
    })
}
