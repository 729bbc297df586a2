//! Upper bounds of single operations, determined before they begin.

use super::messages::datatype_len_bytes;
use super::objects::{dataset_header, group_len_bytes, mappings_len_bytes};
use super::structures::{FractalHeap, levels};
use super::{AttributeSpec, Compat, DatasetSpec, MAX_COMPACT_COUNT, MAX_MESSAGE_LEN_BYTES};
use crate::model::{CreationOrder, TypeClass};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Reserved and not yet visible parts of an output's metadata, from which the bound of each operation is computed.
///
/// Blocks of fractal heaps (dense links and attributes) have no address until libhdf5 evicts them from its cache or
/// closes the file. They must be added to the space that an operation needs (`hidden_len_bytes`); otherwise an eviction
/// during an unrelated call could find the region full.
#[derive(Debug)]
pub(in crate::write) struct MetadataSizeEstimator {
    compat: Compat,
    /// Links and text of each group, and attributes and bytes of each object, indexed by the hash of its path: a
    /// collision only makes the bound larger.
    groups: HashMap<u64, Contents>,
    objects: HashMap<u64, Contents>,
    hidden_len_bytes: u64,
    /// The part of it that indirect blocks take, which libhdf5 allocates as parts of object headers.
    hidden_lists_len_bytes: u64,
    /// Space reserved for chunks still to be inserted into the open dataset.
    promised_len_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Contents {
    count: u64,
    len_bytes: u64,
    /// Length of the largest link or attribute.
    largest_len_bytes: u64,
    /// Whether creation order is tracked, and whether it has an index.
    tracked: bool,
    indexed: bool,
}

impl Contents {
    /// Adds an attribute whose message has this length.
    fn attach(&mut self, message_len_bytes: u64) {
        self.count += 1;
        self.largest_len_bytes = self.largest_len_bytes.max(message_len_bytes.min(MAX_MESSAGE_LEN_BYTES));
        // Values that do not fit into a heap block get their address at once.
        let in_heap = if message_len_bytes > 4096 { 32 } else { message_len_bytes };
        self.len_bytes = self.len_bytes.saturating_add(in_heap);
    }
}

fn key(path: &[u8]) -> u64 {
    // Fixed keys: equal runs must make equal decisions.
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

/// Returns the maximum growth of a header when a message is added: a new block for it and for a message that must move
/// there to make room for the continuation message. That is an attribute, which the caller adds, or the smallest of the
/// other messages.
fn message_room(len_bytes: u64) -> u64 {
    len_bytes.saturating_add(768)
}

impl MetadataSizeEstimator {
    pub fn new(compat: Compat) -> Self {
        Self {
            compat,
            groups: HashMap::new(),
            objects: HashMap::new(),
            hidden_len_bytes: 0,
            hidden_lists_len_bytes: 0,
            promised_len_bytes: 0,
        }
    }

    /// Reserves space for the chunks of the open dataset; pass 0 when it is closed.
    pub fn promise(&mut self, len_bytes: u64) {
        self.promised_len_bytes = len_bytes;
    }

    /// Returns the space that must remain in addition to an operation's own need, once heap blocks of `heap_len_bytes`
    /// have addresses.
    pub fn spoken_for_len_bytes(&self, heap_len_bytes: u64) -> u64 {
        self.hidden_len_bytes.saturating_sub(heap_len_bytes).saturating_add(self.promised_len_bytes)
    }

    /// Returns the space for a new object without its link.
    pub fn group_room(&self) -> u64 {
        group_len_bytes(self.compat, 0, 0, CreationOrder::default()) + 64
    }

    pub fn datatype_room(&self, class: &TypeClass) -> u64 {
        message_room(datatype_len_bytes(self.compat, class))
    }

    pub fn comment_room(&self, len_bytes: u64) -> u64 {
        message_room(len_bytes)
    }

    pub fn dataset_room(&self, spec: &DatasetSpec) -> u64 {
        let header = dataset_header(self.compat, spec).0.saturating_add(256);
        let mappings = mappings_len_bytes(spec);
        // A variable-length fill value lies in the global heap, as do mappings.
        let has_heap_fill = spec.fill.value.is_some() && spec.datatype.class().is_file_local();
        // In the worst case, in a separate collection.
        let collection = if mappings > 0 || has_heap_fill { 4096 } else { 0 };
        header.saturating_add(mappings).saturating_add(collection)
    }

    /// Returns the space for a new link of a group. `text_len_bytes` is the length of its name and target.
    pub fn link_room(&self, group: &[u8], text_len_bytes: u64) -> u64 {
        let Contents { count, len_bytes, indexed, .. } = self.groups.get(&key(group)).copied().unwrap_or_default();
        match self.compat {
            // A symbol-table node splits, with B-tree nodes above it; the heap doubles.
            Compat::Earliest => {
                let heap = len_bytes.saturating_add(text_len_bytes).saturating_mul(2);
                heap.saturating_add(328 + 544 * (levels(count / 4, 16) + 1) + 256)
            }
            // The ninth link adds a heap header and indexes. With later ones, leaves split, and nodes above them.
            _ if count >= MAX_COMPACT_COUNT => {
                let each = if count == MAX_COMPACT_COUNT { 38 + 512 } else { 512 * (levels(count / 18, 12) + 1) };
                256 + each * if indexed { 2 } else { 1 } + text_len_bytes
            }
            _ => message_room(text_len_bytes + 32),
        }
    }

    /// Records the creation of a group.
    pub fn grouped(&mut self, group: &[u8], link_order: CreationOrder) {
        let contents = self.groups.entry(key(group)).or_default();
        contents.tracked |= link_order.tracked;
        contents.indexed |= link_order.indexed;
    }

    /// Records the creation of a link.
    pub fn linked(&mut self, group: &[u8], text_len_bytes: u64) {
        let contents = self.groups.entry(key(group)).or_default();
        let before = hidden_of_links(*contents);
        contents.count += 1;
        contents.len_bytes = contents.len_bytes.saturating_add(text_len_bytes + if contents.tracked { 21 } else { 13 });
        let after = hidden_of_links(*contents);
        if self.compat != Compat::Earliest {
            self.hide(before, after);
        }
    }

    /// Records the creation of an object. If it keeps the order of its attributes, it uses dense storage in every
    /// format.
    pub fn created(&mut self, object: &[u8], attribute_order: CreationOrder) {
        if attribute_order.tracked {
            self.objects.entry(key(object)).or_default().tracked = true;
        }
    }

    /// Returns the space for attributes added to an object one after the other.
    pub fn attributes_room(&self, object: &[u8], attributes: &[AttributeSpec<'_>]) -> u64 {
        let mut contents = self.objects.get(&key(object)).copied().unwrap_or_default();
        let hidden_len_bytes = hidden_of_attributes(contents).len_bytes;
        let mut room = 0u64;
        for attribute in attributes {
            let message = attribute.message_len_bytes(self.compat);
            room = room.saturating_add(self.attribute_room(contents, message));
            contents.attach(message);
        }
        // The heap created with the ninth attribute holds all of them, and its blocks may get their addresses at once.
        room = room.saturating_add(hidden_of_attributes(contents).len_bytes - hidden_len_bytes);
        // Values outside of the header, in the worst case in a separate collection of the global heap.
        let is_outside = |attribute: &AttributeSpec<'_>| attribute.datatype.class().is_file_local();
        if attributes.iter().any(is_outside) { room.saturating_add(4096) } else { room }
    }

    fn attribute_room(&self, contents: Contents, message: u64) -> u64 {
        let Contents { count, largest_len_bytes, tracked, .. } = contents;
        let header = message_room(message).saturating_add(largest_len_bytes);
        if self.compat == Compat::Earliest && !tracked {
            return header;
        }
        // The ninth attribute, or a large one, adds a heap header and two indexes; a large one is a separate object.
        let dense = if count < MAX_COMPACT_COUNT { 1024 } else { 256 + 512 * 2 * (levels(count / 18, 12) + 1) };
        header.saturating_add(dense)
    }

    /// Records that attributes were added to an object.
    pub fn attached(&mut self, object: &[u8], attributes: &[AttributeSpec<'_>]) {
        let contents = self.objects.entry(key(object)).or_default();
        let before = hidden_of_attributes(*contents);
        for attribute in attributes {
            contents.attach(attribute.message_len_bytes(self.compat));
        }
        let after = hidden_of_attributes(*contents);
        if self.compat != Compat::Earliest || contents.tracked {
            self.hide(before, after);
        }
    }

    /// Reserves the space by which a heap grows.
    fn hide(&mut self, before: FractalHeap, after: FractalHeap) {
        let add = |sum: &mut u64, before, after| *sum = sum.saturating_add(after - before);
        add(&mut self.hidden_len_bytes, before.len_bytes, after.len_bytes);
        add(&mut self.hidden_lists_len_bytes, before.list_len_bytes, after.list_len_bytes);
    }

    /// Returns the maximum length of the indirect blocks of heaps that may get their addresses during any operation.
    pub fn hidden_lists_len_bytes(&self) -> u64 {
        self.hidden_lists_len_bytes
    }
}

fn hidden_of_links(contents: Contents) -> FractalHeap {
    if contents.count <= MAX_COMPACT_COUNT { FractalHeap::default() } else { FractalHeap::new(512, contents.len_bytes) }
}

fn hidden_of_attributes(contents: Contents) -> FractalHeap {
    // A large attribute moves even the first to dense storage, but then few others follow.
    if contents.count <= MAX_COMPACT_COUNT {
        FractalHeap::default()
    } else {
        FractalHeap::new(1024, contents.len_bytes)
    }
}
