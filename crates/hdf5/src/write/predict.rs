//! How much metadata an output takes: an upper bound of the whole before it is begun, and of single operations.
//!
//! The metadata region at the front must be reserved before the first raw byte is placed. [`MetadataPrediction`] adds
//! up what libhdf5 allocates for each object, from the file format and from how libhdf5 2.2 fills its structures
//! (measured where the format leaves a choice; tests compare the sum with real files). It stays above the truth by a
//! few per cent, so that the region ends with a small hole and not with an overflow.
//!
//! Correctness does not depend on it: `Ledger` bounds each operation before it begins, so that a region that is
//! too small is told ([`crate::Hdf5Error::MetadataRegionFull`]) before anything has happened.
//!
//! All lengths are for 8-byte addresses and lengths, which is what outputs have.

use super::{AttributeSpec, Compat, DatasetSpec, OutputLayout};
use crate::model::{CreationOrder, Dataspace, TypeClass};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Superblock (96 bytes in version 0, 48 in 2 and 3) and an empty root group: at most 800 bytes were measured.
const FILE_LEN_BYTES: u64 = 1024;

/// What the bounds of the last operations ask for beyond what they take: without it, the end of a region that was
/// predicted well would be refused.
const OPERATION_SLACK_LEN_BYTES: u64 = 4096;

/// The region is never smaller than this.
pub(super) const MIN_REGION_LEN_BYTES: u64 = 4096;

/// Groups and objects keep up to 8 links or attributes in their header, more of them go to dense storage.
const MAX_COMPACT_COUNT: u64 = 8;

/// Messages of this size and more do not fit into an object header.
const MAX_MESSAGE_LEN_BYTES: u64 = 64 * 1024;

/// Predicted length of an output's metadata: an upper bound, by a few per cent.
#[derive(Debug, Clone)]
pub struct MetadataPrediction {
    compat: Compat,
    len_bytes: u64,
    largest_attribute_len_bytes: u64,
}

impl MetadataPrediction {
    /// An empty file. The root group counts as a group: add it with its links.
    pub fn new(compat: Compat) -> Self {
        Self { compat, len_bytes: FILE_LEN_BYTES + OPERATION_SLACK_LEN_BYTES, largest_attribute_len_bytes: 0 }
    }

    /// The prediction so far.
    pub fn len_bytes(&self) -> u64 {
        // An attribute may displace another one of its object while it is added.
        self.len_bytes.saturating_add(self.largest_attribute_len_bytes)
    }

    /// Adds a group with `link_count` links, whose names, and texts of soft and external links, have
    /// `text_len_bytes` in all. `attributes` tells the length of each of its attributes
    /// ([`AttributeSpec::message_len_bytes`]), here and below.
    pub fn add_group(&mut self, link_count: u64, text_len_bytes: u64, link_order: CreationOrder, attributes: &[u64]) {
        self.add(group_len_bytes(self.compat, link_count, text_len_bytes, link_order));
        self.add_attributes(attributes, 0);
    }

    /// Adds a dataset into which `chunk_count` chunks will be inserted, in order of their origins.
    pub fn add_dataset(&mut self, spec: &DatasetSpec, chunk_count: u64, attributes: &[u64]) {
        let (header, free) = dataset_header(self.compat, spec);
        self.add(header);
        self.add(IndexModel::new(self.compat, spec).len_bytes(chunk_count));
        self.add_attributes(attributes, free);
    }

    /// Adds all values of a dataset that libhdf5 itself writes ([`super::OutputDataset::write_rows`]): small ones,
    /// and those of file-local types. `canonical_len_bytes` is their length as they will be given. The index is that
    /// of [`MetadataPrediction::add_dataset`], whose chunk count must cover the chunks of these values.
    pub fn add_values(&mut self, spec: &DatasetSpec, canonical_len_bytes: u64) {
        let rows = spec.dataspace.dims().first().copied().unwrap_or(1);
        let (class, layout) = (spec.datatype.class(), &spec.layout);
        self.add(values_len_bytes(class, layout, &spec.dataspace, 0, rows, canonical_len_bytes));
    }

    /// Adds a committed datatype.
    pub fn add_datatype(&mut self, class: &TypeClass, attributes: &[u64]) {
        self.add(header_len_bytes(self.compat, &[datatype_len_bytes(self.compat, class)]));
        self.add_attributes(attributes, 0);
    }

    fn add_attributes(&mut self, attributes: &[u64], free: u64) {
        self.add(attributes_len_bytes(self.compat, attributes, free));
        let largest = attributes.iter().copied().max().unwrap_or(0).min(MAX_MESSAGE_LEN_BYTES);
        self.largest_attribute_len_bytes = self.largest_attribute_len_bytes.max(largest);
    }

    fn add(&mut self, len_bytes: u64) {
        self.len_bytes = self.len_bytes.saturating_add(len_bytes);
    }
}

impl AttributeSpec<'_> {
    /// Length of the attribute as a message and of what it keeps in the global heap, at most.
    pub fn message_len_bytes(&self, compat: Compat) -> u64 {
        let class = self.datatype.class();
        // A committed datatype is stored as its address.
        let datatype = match self.datatype {
            super::TypeRef::Own(class) => datatype_len_bytes(compat, class),
            super::TypeRef::Committed { .. } => 16,
        };
        let count = self.dataspace.element_count().unwrap_or(u64::MAX);
        let values = count.saturating_mul(class.len_bytes());
        let heap = if class.is_file_local() { heap_len_bytes(self.value.len() as u64, count) } else { 0 };
        // Version, flags, three sizes, character set, the header of the message; in version 1, the parts are padded.
        let (name, dataspace) = (self.name.len() as u64 + 1, dataspace_len_bytes(compat, self.dataspace));
        let fixed = match compat {
            Compat::Earliest => 16 + padded(name) + padded(datatype) + padded(dataspace) + 8,
            _ => 15 + name + datatype + dataspace,
        };
        fixed.saturating_add(values).saturating_add(heap)
    }
}

fn padded(len_bytes: u64) -> u64 {
    len_bytes.saturating_add(7) / 8 * 8
}

// ---- messages ----

/// Length of a datatype message, at most.
fn datatype_len_bytes(compat: Compat, class: &TypeClass) -> u64 {
    // Version 1 (before 1.8) pads names and gives each member 32 bytes for an array that is never there; version 3
    // stores names as they are and offsets in 1 to 4 bytes.
    let old = compat == Compat::Earliest;
    let name = |len: usize| if old { padded(len as u64 + 1) } else { len as u64 + 1 };
    8 + match class {
        TypeClass::Integer { .. } | TypeClass::Bitfield { .. } => 4,
        TypeClass::Float { .. } => 12,
        TypeClass::Time { .. } => 2,
        TypeClass::FixedString { .. } | TypeClass::Reference(_) => 0,
        TypeClass::Opaque { tag, .. } => padded(tag.len() as u64 + 1),
        TypeClass::Compound { members, .. } => members
            .iter()
            .map(|member| {
                name(member.name.len()) + if old { 40 } else { 4 } + datatype_len_bytes(compat, &member.class)
            })
            .sum(),
        TypeClass::Enum { base, symbols } => {
            let symbols: u64 = symbols.iter().map(|(text, value)| name(text.len()) + value.len() as u64).sum();
            datatype_len_bytes(compat, base) + symbols
        }
        TypeClass::Sequence { base, .. } | TypeClass::Complex { base, .. } => datatype_len_bytes(compat, base),
        // A string is a sequence of bytes: the base type is an 8-bit integer.
        TypeClass::VariableString { .. } => 12,
        TypeClass::Array { base, dims } => 4 + 8 * dims.len() as u64 + datatype_len_bytes(compat, base),
    }
}

/// Length of a dataspace message: 8 bytes in version 1, 4 in version 2, and current and maximum sizes.
fn dataspace_len_bytes(compat: Compat, dataspace: &Dataspace) -> u64 {
    let head = if compat == Compat::Earliest { 8 } else { 4 };
    head + 16 * dataspace.dims().len() as u64
}

/// Length of an object header with messages of these lengths.
///
/// Version 1: 16 bytes and per message 8, all padded to 8; version 2: 12 bytes and per message 4. Measured, libhdf5
/// adds 24 and 20 bytes: a null message where a continuation would go. A length of zero: no message.
fn header_len_bytes(compat: Compat, messages: &[u64]) -> u64 {
    match compat {
        Compat::Earliest => 40 + messages.iter().map(|&len| if len == 0 { 0 } else { 8 + padded(len) }).sum::<u64>(),
        _ => 32 + messages.iter().map(|&len| if len == 0 { 0 } else { 4 + len }).sum::<u64>(),
    }
}

// ---- objects ----

fn group_len_bytes(compat: Compat, link_count: u64, text_len_bytes: u64, order: CreationOrder) -> u64 {
    if compat == Compat::Earliest && !order.tracked {
        // Header 40, B-tree node 544, local heap header 32 and at least 88 of data: 704. Symbol-table nodes (328 bytes for
        // 8 links) are half full when names come in order, and so are B-tree nodes (32 children). The heap doubles
        // and leaves its former blocks free, which later objects use or not.
        let nodes = link_count.div_ceil(4);
        let heap = text_len_bytes.saturating_add(link_count.saturating_mul(8)).saturating_mul(4);
        let leaves = nodes.saturating_mul(328);
        let inner = nodes.div_ceil(16).saturating_mul(544);
        return 704_u64.saturating_add(heap).saturating_add(leaves).saturating_add(inner);
    }
    // Header with link info and group info messages, and room for four links.
    let header = 160;
    let links = link_messages_len_bytes(link_count, text_len_bytes, order);
    if link_count <= MAX_COMPACT_COUNT {
        // Header blocks are added as links come.
        return links.saturating_add(header + 6 * link_count + 48 * link_count.div_ceil(4));
    }
    // The index of names has records of 11 bytes in no order, that of creation order 15 in order.
    let by_order = if order.indexed { tree_v2_len_bytes(512, 15, link_count, true) } else { 0 };
    let records = tree_v2_len_bytes(512, 11, link_count, false).saturating_add(by_order);
    // The first eight links stood in the header, and leave the room free.
    let header = header + 48 * 2;
    fractal_heap_len_bytes(512, links).saturating_add(header).saturating_add(records)
}

/// Link messages: version, flags, type, order, character set, length of the name, name, target.
fn link_messages_len_bytes(link_count: u64, text_len_bytes: u64, order: CreationOrder) -> u64 {
    let each = 13 + if order.tracked { 8 } else { 0 };
    link_count.saturating_mul(each).saturating_add(text_len_bytes)
}

/// Version 2 B-tree: header 38, nodes of `node_len_bytes`, records of `record_len_bytes`.
///
/// Measured: nodes are two thirds full when records come in no order, and libhdf5 shifts records to the left
/// neighbour before it splits a node, so that they are nine tenths full when records come in order.
fn tree_v2_len_bytes(node_len_bytes: u64, record_len_bytes: u64, count: u64, in_order: bool) -> u64 {
    let fill = |capacity: u64| (if in_order { capacity * 9 / 10 } else { capacity * 6 / 10 }).max(1);
    let leaf = (node_len_bytes - 10) / record_len_bytes;
    // Beside a record, an inner node stores an address and up to three bytes of counts.
    let inner = (node_len_bytes - 10) / (record_len_bytes + 11);
    let mut level = if count <= leaf { 1 } else { count.div_ceil(fill(leaf)) };
    let mut nodes = level;
    while level > 1 {
        level = if level <= inner { 1 } else { level.div_ceil(fill(inner)) };
        nodes = nodes.saturating_add(level);
    }
    38_u64.saturating_add(nodes.saturating_mul(node_len_bytes))
}

/// Fractal heap: header 146, free-space header and list about 100, blocks in rows of four: two rows of blocks of
/// `first_block_len_bytes`, then each row twice as large up to 64 KiB. A block loses 22 bytes and what the next
/// object does not fit into. From the second block on, an indirect block lists them: its rows double in number.
fn fractal_heap_len_bytes(first_block_len_bytes: u64, content_len_bytes: u64) -> u64 {
    let (mut left, mut blocks_len_bytes, mut count) = (content_len_bytes, 0_u64, 0_u64);
    while left > 0 {
        let row = count / 4;
        let len_bytes = (first_block_len_bytes << row.saturating_sub(1).min(16)).min(64 * 1024);
        // At 64 KiB the rest is a division.
        let blocks = if len_bytes == 64 * 1024 { left.div_ceil(len_bytes - 64) } else { 1 };
        blocks_len_bytes = blocks_len_bytes.saturating_add(blocks.saturating_mul(len_bytes));
        left = left.saturating_sub(blocks.saturating_mul(len_bytes - 64));
        count = count.saturating_add(blocks);
    }
    let rows = count.div_ceil(4).checked_next_power_of_two().unwrap_or(count);
    let list = if count > 1 { 32_u64.saturating_add(rows.saturating_mul(32)) } else { 0 };
    246_u64.saturating_add(blocks_len_bytes).saturating_add(list)
}

/// Values in global heap collections: 16 bytes and padding per value; a collection of 4 KiB is closed when the next
/// value does not fit.
fn heap_len_bytes(canonical_len_bytes: u64, value_count: u64) -> u64 {
    let content = canonical_len_bytes.saturating_add(value_count.saturating_mul(16));
    4096_u64.saturating_add(content.saturating_mul(9) / 8)
}

/// Length of a dataset's header, and how much of it is free for attributes.
fn dataset_header(compat: Compat, spec: &DatasetSpec) -> (u64, u64) {
    let rank = spec.dataspace.dims().len() as u64;
    let element_len_bytes = spec.datatype.class().len_bytes();
    let datatype = match &spec.datatype {
        super::TypeRef::Own(class) => datatype_len_bytes(compat, class),
        super::TypeRef::Committed { .. } => 16,
    };
    let fill = match (spec.fill.value.is_some() || spec.fill.user_defined, compat) {
        (true, _) => 8 + element_len_bytes,
        (false, Compat::Earliest) => 8,
        (false, _) => 2,
    };
    let (layout, compact_len_bytes) = match &spec.layout {
        OutputLayout::Compact => {
            let values = spec.dataspace.element_count().unwrap_or(u64::MAX).saturating_mul(element_len_bytes);
            (values.saturating_add(4), values)
        }
        OutputLayout::Contiguous => (18, 0),
        // Version 3: 4 bytes per size; version 4 and 5: as many as the largest needs, and the index's settings.
        OutputLayout::Chunked { .. } => (24 + 4 * (rank + 1), 0),
    };
    let filter_lens = spec.filters.iter().map(|filter| {
        let name =
            if filter.id >= 256 || compat == Compat::Earliest { padded(filter.name.len() as u64 + 1) } else { 0 };
        8 + name.max(if compat == Compat::Earliest { 8 } else { 0 }) + padded(4 * filter.parameters.len() as u64)
    });
    let filters = if spec.filters.is_empty() { 0 } else { 8 + filter_lens.sum::<u64>() };
    // Headers of datasets that will have attributes begin with room of 256 bytes.
    // Two more bytes per message where the order of attributes is kept.
    let order = if spec.attribute_order.tracked { 2 * 5 + 8 } else { 0 };
    let messages = [dataspace_len_bytes(compat, &spec.dataspace), datatype, fill, layout, filters];
    let header = header_len_bytes(compat, &messages).saturating_add(order);
    let least = if spec.has_attributes { compact_len_bytes.saturating_add(272) } else { 0 };
    // The reserve for a continuation message (24 and 20 bytes) is not free for attributes.
    (header.max(least), least.saturating_sub(header))
}

/// What `rows` rows from `start_row` take when libhdf5 itself writes them: whole chunks, and variable-length values.
pub(super) fn values_len_bytes(
    class: &TypeClass,
    layout: &OutputLayout,
    dataspace: &Dataspace,
    start_row: u64,
    rows: u64,
    canonical_len_bytes: u64,
) -> u64 {
    let product = |dims: &[u64]| dims.iter().fold(1_u64, |product, &dim| product.saturating_mul(dim));
    let rest = dataspace.dims().get(1..).unwrap_or(&[]);
    let count = if *dataspace == Dataspace::Null { 0 } else { rows.saturating_mul(product(rest)) };
    let stored = match layout {
        OutputLayout::Compact => 0,
        // Allocated as a whole with the first value.
        OutputLayout::Contiguous => dataspace.element_count().unwrap_or(u64::MAX),
        OutputLayout::Chunked { chunk_shape } => {
            let chunk_rows = chunk_shape.first().copied().unwrap_or(1).max(1);
            let bands = start_row.saturating_add(rows).div_ceil(chunk_rows).saturating_sub(start_row / chunk_rows);
            let across = rest.iter().zip(chunk_shape.iter().skip(1));
            let chunks = across.fold(bands, |chunks, (&dim, &chunk)| chunks.saturating_mul(dim.div_ceil(chunk.max(1))));
            chunks.saturating_mul(product(chunk_shape))
        }
    };
    let stored = stored.saturating_mul(class.len_bytes());
    // What does not compress grows: by a thousandth and a few bytes per chunk.
    let stored = stored.saturating_add(stored / 512);
    if class.is_file_local() { stored.saturating_add(heap_len_bytes(canonical_len_bytes, count)) } else { stored }
}

/// Attributes of these lengths, `free` bytes of which fit into the object's header as it is.
fn attributes_len_bytes(compat: Compat, attributes: &[u64], free: u64) -> u64 {
    let count = attributes.len() as u64;
    let sum = |attributes: &[u64]| attributes.iter().fold(0_u64, |sum, &len| sum.saturating_add(len));
    let dense = count > MAX_COMPACT_COUNT || attributes.iter().any(|&len| len >= MAX_MESSAGE_LEN_BYTES);
    // In the header, in blocks that are added as attributes come; each block has a checksum, and the message that
    // continues the header there took the place of another, which moved along.
    let in_header = |attributes: &[u64]| {
        let beyond = sum(attributes).saturating_sub(free);
        if beyond == 0 { 0 } else { beyond.saturating_add(attributes.len() as u64 * 32) }
    };
    if compat == Compat::Earliest || !dense {
        return in_header(attributes);
    }
    // Those that stood in the header leave their room free when the ninth sends all to dense storage. Records of 17
    // bytes by name. Objects above 4 KiB get room of their own and a record of 24 bytes.
    let before = in_header(&attributes[..attributes.len().min(MAX_COMPACT_COUNT as usize)]);
    let (small, large): (Vec<u64>, Vec<u64>) = attributes.iter().partition(|&&len| len <= 4096);
    let records = tree_v2_len_bytes(512, 17, count, false);
    let tracker = if large.is_empty() { 0 } else { tree_v2_len_bytes(512, 24, large.len() as u64, true) };
    before
        .saturating_add(fractal_heap_len_bytes(1024, sum(&small)))
        .saturating_add(sum(&large))
        .saturating_add(records)
        .saturating_add(tracker)
}

// ---- chunk indexes ----

/// The index of a dataset's chunks.
#[derive(Debug, Clone)]
enum IndexModel {
    /// Nothing to index.
    None,
    /// The address stands in the layout message.
    Single,
    /// Version 1 B-tree.
    BtreeV1 { node_len_bytes: u64 },
    /// Fixed array with this many slots.
    FixedArray { slots: u64, slot_len_bytes: u64 },
    /// Extensible array.
    ExtensibleArray { slot_len_bytes: u64 },
    /// Version 2 B-tree.
    BtreeV2 { record_len_bytes: u64 },
}

impl IndexModel {
    fn new(compat: Compat, spec: &DatasetSpec) -> Self {
        let (OutputLayout::Chunked { chunk_shape }, Dataspace::Simple { dims, max_dims }) =
            (&spec.layout, &spec.dataspace)
        else {
            return Self::None;
        };
        let rank = chunk_shape.len() as u64;
        if matches!(compat, Compat::Earliest | Compat::V18) {
            // 24 bytes, 64 children and 65 keys; a key is size, filter mask and one offset more than dimensions.
            return Self::BtreeV1 { node_len_bytes: 24 + 64 * 8 + 65 * (8 + 8 * (rank + 1)) };
        }
        // Address; where chunks are filtered also their size and the mask.
        let chunk_len_bytes =
            chunk_shape.iter().fold(spec.datatype.class().len_bytes(), |len, &dim| len.saturating_mul(dim)).max(1);
        let size_len_bytes = match compat {
            // Layout 4: as many bytes as the size needs, and one more. Layout 5: always eight.
            Compat::V110 => (1 + (u64::from(chunk_len_bytes.ilog2()) + 8) / 8).min(8),
            _ => 8,
        };
        let slot_len_bytes = if spec.filters.is_empty() { 8 } else { 8 + size_len_bytes + 4 };
        match max_dims.iter().filter(|&&max| max == u64::MAX).count() {
            0 => {
                let slots = max_dims
                    .iter()
                    .zip(chunk_shape)
                    .fold(1_u64, |slots, (&max, &chunk)| slots.saturating_mul(max.div_ceil(chunk.max(1))));
                if slots <= 1 && dims == max_dims { Self::Single } else { Self::FixedArray { slots, slot_len_bytes } }
            }
            1 => Self::ExtensibleArray { slot_len_bytes },
            _ => Self::BtreeV2 { record_len_bytes: slot_len_bytes + 8 * rank },
        }
    }

    /// Length with `count` chunks inserted in order.
    fn len_bytes(&self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        match *self {
            Self::None | Self::Single => 0,
            // libhdf5 splits the last node 9:1 when it overflows, so nodes hold 57 of 64 when all come in order.
            Self::BtreeV1 { node_len_bytes } => {
                let mut nodes = 0_u64;
                let mut level = count;
                loop {
                    level = if level <= 64 { 1 } else { (level - 64).div_ceil(57) + 1 };
                    nodes = nodes.saturating_add(level);
                    if level == 1 {
                        return nodes.saturating_mul(node_len_bytes);
                    }
                }
            }
            // Header 28, block 18; beyond 1,024 slots, pages with checksums and a bit map of them.
            Self::FixedArray { slots, slot_len_bytes } => {
                let pages = slots.div_ceil(1024);
                slots.saturating_mul(slot_len_bytes).saturating_add(64 + pages.saturating_mul(5))
            }
            Self::ExtensibleArray { slot_len_bytes } => extensible_array_len_bytes(count, slot_len_bytes),
            Self::BtreeV2 { record_len_bytes } => tree_v2_len_bytes(2048, record_len_bytes, count, true),
        }
    }

    /// What inserting one more chunk may allocate, in any order.
    fn step_len_bytes(&self, count: u64) -> u64 {
        match *self {
            Self::None | Self::Single => 0,
            // One node per level splits, and the root moves; nodes are at least half full.
            Self::BtreeV1 { node_len_bytes } => node_len_bytes * (levels(count, 32) + 1),
            Self::FixedArray { .. } => {
                if count == 0 {
                    self.len_bytes(1)
                } else {
                    0
                }
            }
            // The inserted position may lie in any block of the array; blocks grow with the position's square root.
            Self::ExtensibleArray { .. } => 4096_u64.saturating_add(self.len_bytes(count.saturating_mul(2)) / 4),
            Self::BtreeV2 { .. } => 2048 * (levels(count, 10) + 2),
        }
    }
}

/// Levels of a tree whose nodes have at least `children` children.
fn levels(count: u64, children: u64) -> u64 {
    let (mut levels, mut reach) = (1, children);
    while reach < count {
        reach = reach.saturating_mul(children);
        levels += 1;
    }
    levels
}

/// Header 72 and index block with 4 slots, 6 addresses of data blocks and 25 of super blocks; then super blocks of
/// growing numbers of data blocks: super block `k` has `2^(k / 2)` blocks of `16 * 2^((k + 1) / 2)` slots, each 22
/// bytes and its slots (in pages of 1,024 with 4 bytes of checksum beyond). The first four need no block of their own.
fn extensible_array_len_bytes(count: u64, slot_len_bytes: u64) -> u64 {
    let mut len_bytes = 72 + 18 + 4 * slot_len_bytes + 8 * (6 + 25);
    let mut reached = 4_u64;
    for k in 0..58_u32 {
        if reached >= count {
            break;
        }
        let (blocks, slots) = (1_u64 << (k / 2), 16_u64 << k.div_ceil(2));
        if k >= 4 {
            let page_bits = if slots > 1024 { blocks.saturating_mul(slots / 1024 / 8 + 1) } else { 0 };
            len_bytes = len_bytes.saturating_add(22 + blocks * 8 + page_bits);
        }
        let used = (count - reached).div_ceil(slots).min(blocks);
        let pages = if slots > 1024 { slots / 1024 } else { 0 };
        let block = slots.saturating_mul(slot_len_bytes).saturating_add(22 + pages * 4);
        len_bytes = len_bytes.saturating_add(used.saturating_mul(block));
        reached = reached.saturating_add(blocks.saturating_mul(slots));
    }
    len_bytes
}

// ---- bounds of single operations ----

/// What is promised or hidden of an output's metadata, by which each operation is bounded.
///
/// Blocks of fractal heaps (dense links and attributes) have no address until libhdf5 evicts them from its cache or
/// closes the file: they must be added to what an operation needs (`hidden_len_bytes`), or an eviction in the middle
/// of an unrelated call could find the region full.
#[derive(Debug)]
pub(super) struct Ledger {
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
        dataset_header(self.compat, spec).0.saturating_add(256)
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

    pub fn attribute_room(&self, object: &[u8], attribute: &AttributeSpec<'_>) -> u64 {
        let message = attribute.message_len_bytes(self.compat);
        let contents = self.objects.get(&key(object)).copied().unwrap_or_default();
        let Contents { count, largest_len_bytes, tracked, .. } = contents;
        let header = message_room(message).saturating_add(largest_len_bytes);
        if self.compat == Compat::Earliest && !tracked {
            return header;
        }
        // The ninth, or a large one: heap header, two indexes; a large one is an object of its own.
        let dense = if count < MAX_COMPACT_COUNT { 1024 } else { 256 + 512 * 2 * (levels(count / 18, 12) + 1) };
        header.saturating_add(dense)
    }

    pub fn attached(&mut self, object: &[u8], attribute: &AttributeSpec<'_>) {
        let message = attribute.message_len_bytes(self.compat);
        let contents = self.objects.entry(key(object)).or_default();
        let before = hidden_of_attributes(*contents);
        contents.count += 1;
        contents.largest_len_bytes = contents.largest_len_bytes.max(message.min(MAX_MESSAGE_LEN_BYTES));
        // Values that do not fit into a heap block get their address at once.
        contents.len_bytes = contents.len_bytes.saturating_add(if message > 4096 { 32 } else { message });
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

/// The room that one dataset's chunks and values take as they come.
#[derive(Debug)]
pub(super) struct IndexRoom {
    model: IndexModel,
    inserted: u64,
    /// Promised to be free for chunks that come in order.
    expected: u64,
    last_origin: Vec<u64>,
}

impl IndexRoom {
    pub fn new(compat: Compat, spec: &DatasetSpec) -> Self {
        Self { model: IndexModel::new(compat, spec), inserted: 0, expected: 0, last_origin: Vec::new() }
    }

    /// What `count` chunks take in an index that is empty.
    pub fn for_first(&self, count: u64) -> u64 {
        self.model.len_bytes(count)
    }

    /// `count` chunks are promised to have room.
    pub fn expect(&mut self, count: u64) {
        self.expected = count;
    }

    /// What is still promised of it.
    pub fn promised_len_bytes(&self) -> u64 {
        self.model.len_bytes(self.expected).saturating_sub(self.model.len_bytes(self.inserted.min(self.expected)))
    }

    /// What any further chunks up to `count` in all may take.
    pub fn for_all(&self, count: u64) -> u64 {
        self.model.len_bytes(count).saturating_add(self.model.step_len_bytes(count))
    }

    /// What the chunk at `origin` may take beyond the promise: nothing for an expected one in order.
    pub fn for_chunk(&self, origin: &[u64]) -> u64 {
        let in_order = self.last_origin.is_empty() || self.last_origin.as_slice() < origin;
        if in_order && self.inserted < self.expected { 0 } else { self.model.step_len_bytes(self.inserted) }
    }

    pub fn inserted(&mut self, origin: &[u64]) {
        self.inserted += 1;
        if self.last_origin.as_slice() < origin {
            self.last_origin.clear();
            self.last_origin.extend_from_slice(origin);
        }
    }
}
