//! Bounds of single operations, each told before it begins.

use super::messages::datatype_len_bytes;
use super::objects::{dataset_header, group_len_bytes, mappings_len_bytes};
use super::structures::{fractal_heap_len_bytes, levels};
use super::{AttributeSpec, Compat, DatasetSpec, MAX_COMPACT_COUNT, MAX_MESSAGE_LEN_BYTES};
use crate::model::{CreationOrder, TypeClass};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What is promised or hidden of an output's metadata, by which each operation is bounded.
///
/// Blocks of fractal heaps (dense links and attributes) have no address until libhdf5 evicts them from its cache or
/// closes the file: they must be added to what an operation needs (`hidden_len_bytes`), or an eviction in the middle
/// of an unrelated call could find the region full.
#[derive(Debug)]
pub(in crate::write) struct Ledger {
    compat: Compat,
    /// Links and text of each group, attributes and bytes of each object, by the hash of its path: two paths that
    /// meet only make the bound larger.
    groups: HashMap<u64, Contents>,
    objects: HashMap<u64, Contents>,
    hidden_len_bytes: u64,
    /// For chunks that are still to be inserted into the open dataset.
    promised_len_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Contents {
    count: u64,
    len_bytes: u64,
    /// The largest of them.
    largest_len_bytes: u64,
    /// Whether creation order is kept, and has an index of its own.
    tracked: bool,
    indexed: bool,
}

impl Contents {
    /// An attribute whose message has this length is added.
    fn attach(&mut self, message_len_bytes: u64) {
        self.count += 1;
        self.largest_len_bytes = self.largest_len_bytes.max(message_len_bytes.min(MAX_MESSAGE_LEN_BYTES));
        // Values that do not fit into a heap block get their address at once.
        let in_heap = if message_len_bytes > 4096 { 32 } else { message_len_bytes };
        self.len_bytes = self.len_bytes.saturating_add(in_heap);
    }
}

fn key(path: &[u8]) -> u64 {
    // Fixed keys: the same run must take the same decisions.
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

/// What a header may grow by when a message is added: a new block for it and for what must move there to make room
/// for the continuation message: an attribute, which the caller adds, or the smallest of the other messages.
fn message_room(len_bytes: u64) -> u64 {
    len_bytes.saturating_add(768)
}

impl Ledger {
    pub fn new(compat: Compat) -> Self {
        Self { compat, groups: HashMap::new(), objects: HashMap::new(), hidden_len_bytes: 0, promised_len_bytes: 0 }
    }

    /// Keeps room free for the chunks of the open dataset; 0 when it is closed.
    pub fn promise(&mut self, len_bytes: u64) {
        self.promised_len_bytes = len_bytes;
    }

    /// What must be left besides an operation's own need, when heap blocks of `heap_len_bytes` have got addresses.
    pub fn spoken_for_len_bytes(&self, heap_len_bytes: u64) -> u64 {
        self.hidden_len_bytes.saturating_sub(heap_len_bytes).saturating_add(self.promised_len_bytes)
    }

    /// A new object without its link.
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
        // A fill value of variable length lies in the global heap, as mappings do.
        let has_heap_fill = spec.fill.value.is_some() && spec.datatype.class().is_file_local();
        // At worst in a collection of its own.
        let collection = if mappings > 0 || has_heap_fill { 4096 } else { 0 };
        header.saturating_add(mappings).saturating_add(collection)
    }

    /// A link of a group. `text_len_bytes` is that of its name and target.
    pub fn link_room(&self, group: &[u8], text_len_bytes: u64) -> u64 {
        let Contents { count, len_bytes, indexed, .. } = self.groups.get(&key(group)).copied().unwrap_or_default();
        match self.compat {
            // A symbol-table node splits, and B-tree nodes above; the heap doubles.
            Compat::Earliest => {
                let heap = len_bytes.saturating_add(text_len_bytes).saturating_mul(2);
                heap.saturating_add(328 + 544 * (levels(count / 4, 16) + 1) + 256)
            }
            // The ninth link: heap header and indexes. Later: leaves split, and nodes above.
            _ if count >= MAX_COMPACT_COUNT => {
                let each = if count == MAX_COMPACT_COUNT { 38 + 512 } else { 512 * (levels(count / 18, 12) + 1) };
                256 + each * if indexed { 2 } else { 1 } + text_len_bytes
            }
            _ => message_room(text_len_bytes + 32),
        }
    }

    /// A group was made.
    pub fn grouped(&mut self, group: &[u8], link_order: CreationOrder) {
        let contents = self.groups.entry(key(group)).or_default();
        contents.tracked |= link_order.tracked;
        contents.indexed |= link_order.indexed;
    }

    /// A link was made.
    pub fn linked(&mut self, group: &[u8], text_len_bytes: u64) {
        let contents = self.groups.entry(key(group)).or_default();
        let before = hidden_of_links(*contents);
        contents.count += 1;
        contents.len_bytes = contents.len_bytes.saturating_add(text_len_bytes + if contents.tracked { 21 } else { 13 });
        let after = hidden_of_links(*contents);
        if self.compat != Compat::Earliest {
            self.hidden_len_bytes = self.hidden_len_bytes.saturating_add(after - before);
        }
    }

    /// An object was made that keeps the order of its attributes: it then has dense storage in every format.
    pub fn made(&mut self, object: &[u8], attribute_order: CreationOrder) {
        if attribute_order.tracked {
            self.objects.entry(key(object)).or_default().tracked = true;
        }
    }

    /// Attributes that are added to an object one after the other.
    pub fn attributes_room(&self, object: &[u8], attributes: &[AttributeSpec<'_>]) -> u64 {
        let mut contents = self.objects.get(&key(object)).copied().unwrap_or_default();
        let hidden_len_bytes = hidden_of_attributes(contents);
        let mut room = 0u64;
        for attribute in attributes {
            let message = attribute.message_len_bytes(self.compat);
            room = room.saturating_add(self.attribute_room(contents, message));
            contents.attach(message);
        }
        // The heap that the ninth brings holds all of them, and its blocks may get their addresses at once.
        room = room.saturating_add(hidden_of_attributes(contents) - hidden_len_bytes);
        // Values outside of the header: at worst in a collection of the global heap of their own.
        let is_outside = |attribute: &AttributeSpec<'_>| attribute.datatype.class().is_file_local();
        if attributes.iter().any(is_outside) { room.saturating_add(4096) } else { room }
    }

    fn attribute_room(&self, contents: Contents, message: u64) -> u64 {
        let Contents { count, largest_len_bytes, tracked, .. } = contents;
        let header = message_room(message).saturating_add(largest_len_bytes);
        if self.compat == Compat::Earliest && !tracked {
            return header;
        }
        // The ninth, or a large one: heap header, two indexes; a large one is an object of its own.
        let dense = if count < MAX_COMPACT_COUNT { 1024 } else { 256 + 512 * 2 * (levels(count / 18, 12) + 1) };
        header.saturating_add(dense)
    }

    /// Attributes were added to an object.
    pub fn attached(&mut self, object: &[u8], attributes: &[AttributeSpec<'_>]) {
        let contents = self.objects.entry(key(object)).or_default();
        let before = hidden_of_attributes(*contents);
        for attribute in attributes {
            contents.attach(attribute.message_len_bytes(self.compat));
        }
        let after = hidden_of_attributes(*contents);
        if self.compat != Compat::Earliest || contents.tracked {
            self.hidden_len_bytes = self.hidden_len_bytes.saturating_add(after - before);
        }
    }
}

fn hidden_of_links(contents: Contents) -> u64 {
    if contents.count <= MAX_COMPACT_COUNT { 0 } else { fractal_heap_len_bytes(512, contents.len_bytes) }
}

fn hidden_of_attributes(contents: Contents) -> u64 {
    // A large attribute makes even the first go to dense storage, but those after it are then few.
    if contents.count <= MAX_COMPACT_COUNT { 0 } else { fractal_heap_len_bytes(1024, contents.len_bytes) }
}
