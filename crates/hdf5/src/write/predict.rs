//! How much metadata an output takes: an upper bound of the whole before it is begun, and of single operations.
//!
//! The metadata region at the front must be reserved before the first raw byte is placed, so [`MetadataPrediction`]
//! adds up what libhdf5 will allocate. Correctness does not depend on it: an operation that might not fit any more
//! is refused before it begins ([`crate::Hdf5Error::MetadataRegionFull`]) by the bounds of the second half.

use super::{AttributeSpec, Compat, DatasetSpec, OutputLayout};
use crate::model::{Dataspace, TypeClass};
use std::collections::HashMap;

/// Superblock and an empty root group, rounded up to the page that the region has at least.
pub(super) const FILE_LEN_BYTES: u64 = 4096;

/// Predicted length of an output's metadata.
#[derive(Debug, Clone)]
pub struct MetadataPrediction {
    compat: Compat,
    len_bytes: u64,
}

impl MetadataPrediction {
    /// An empty file.
    pub fn new(compat: Compat) -> Self {
        Self { compat, len_bytes: FILE_LEN_BYTES }
    }

    /// The prediction so far.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}

/// Length of a datatype message, at most. Version 1 of the encoding is the longest: names padded to 8 bytes, 40 bytes
/// per member.
pub(super) fn datatype_len_bytes(class: &TypeClass) -> u64 {
    let padded = |len: usize| (len as u64 / 8 + 1) * 8;
    8 + match class {
        TypeClass::Integer { .. } | TypeClass::Bitfield { .. } => 4,
        TypeClass::Float { .. } => 12,
        TypeClass::Time { .. } => 2,
        TypeClass::FixedString { .. } | TypeClass::Reference(_) => 0,
        TypeClass::Opaque { tag, .. } => padded(tag.len()),
        TypeClass::Compound { members, .. } => {
            members.iter().map(|member| padded(member.name.len()) + 40 + datatype_len_bytes(&member.class)).sum()
        }
        TypeClass::Enum { base, symbols } => {
            let names: u64 = symbols.iter().map(|(name, value)| padded(name.len()) + value.len() as u64).sum();
            datatype_len_bytes(base) + names
        }
        TypeClass::Sequence { base, .. } | TypeClass::Complex { base, .. } => datatype_len_bytes(base),
        // A string is a sequence of bytes: the base type is an 8-bit integer.
        TypeClass::VariableString { .. } => 12,
        TypeClass::Array { base, dims } => 4 + 8 * dims.len() as u64 + datatype_len_bytes(base),
    }
}

fn dataspace_len_bytes(dataspace: &Dataspace) -> u64 {
    8 + 16 * dataspace.dims().len() as u64
}

/// What variable-length values take in global heap collections of 4 KiB: 16 bytes and padding per value, and what
/// the last value of a collection leaves free.
fn heap_len_bytes(canonical_len_bytes: u64) -> u64 {
    canonical_len_bytes.saturating_mul(4).saturating_add(8192)
}

// ---- bounds of single operations ----

pub(super) fn group_room(compat: Compat) -> u64 {
    match compat {
        // Header, local heap, B-tree node, symbol-table node.
        Compat::Earliest => 2048,
        _ => 1024,
    }
}

pub(super) fn datatype_room(class: &TypeClass) -> u64 {
    1024 + datatype_len_bytes(class)
}

pub(super) fn message_room(len_bytes: u64) -> u64 {
    len_bytes.saturating_add(1024)
}

pub(super) fn attribute_room(attribute: &AttributeSpec<'_>) -> u64 {
    let class = attribute.datatype.class();
    let message = 64
        + attribute.name.len() as u64
        + datatype_len_bytes(class)
        + dataspace_len_bytes(attribute.dataspace)
        + attribute.value.len() as u64;
    let heap = if class.is_file_local() { heap_len_bytes(attribute.value.len() as u64) } else { 0 };
    // Dense storage: heap and index headers, a block of up to 64 KiB when the heap grows, index nodes.
    let dense = 16 * 1024 + message.min(64 * 1024);
    message.saturating_mul(2).saturating_add(heap).saturating_add(dense)
}

pub(super) fn dataset_room(compat: Compat, spec: &DatasetSpec) -> u64 {
    let filters: u64 =
        spec.filters.iter().map(|filter| 24 + filter.name.len() as u64 + 4 * filter.parameters.len() as u64).sum();
    let values = match spec.layout {
        OutputLayout::Compact => {
            spec.dataspace.element_count().unwrap_or(u64::MAX).saturating_mul(spec.datatype.class().len_bytes())
        }
        _ => 0,
    };
    let header = 1024
        + datatype_len_bytes(spec.datatype.class())
        + dataspace_len_bytes(&spec.dataspace)
        + filters
        + 2 * spec.datatype.class().len_bytes();
    header.saturating_add(values).saturating_add(IndexRoom::new(compat, spec).for_one_more())
}

/// What the next chunk may take in a dataset's index.
#[derive(Debug, Clone)]
pub(super) struct IndexRoom {
    node_len_bytes: u64,
    chunk_count: u64,
    inserted: u64,
}

impl IndexRoom {
    pub fn new(_compat: Compat, spec: &DatasetSpec) -> Self {
        let OutputLayout::Chunked { chunk_shape } = &spec.layout else {
            return Self { node_len_bytes: 0, chunk_count: 0, inserted: 0 };
        };
        let chunk_count = spec
            .dataspace
            .dims()
            .iter()
            .zip(chunk_shape)
            .fold(1_u64, |count, (&dim, &chunk)| count.saturating_mul(dim.div_ceil(chunk.max(1))));
        // A node of the version 1 B-tree: 64 children.
        let key_len_bytes = 8 + 8 * (chunk_shape.len() as u64 + 1);
        Self { node_len_bytes: 24 + 65 * key_len_bytes + 64 * 8, chunk_count, inserted: 0 }
    }

    pub fn for_one_more(&self) -> u64 {
        if self.node_len_bytes == 0 {
            return 0;
        }
        // One node per level may split, five levels index 10^8 chunks; array indexes grow by doubling, a fixed
        // array comes at once with the first chunk.
        let first = if self.inserted == 0 { self.chunk_count.min(1 << 32).saturating_mul(20) } else { 0 };
        self.node_len_bytes * 5 + 4096 + first.saturating_add(self.inserted.saturating_mul(20))
    }

    pub fn inserted(&mut self) {
        self.inserted += 1;
    }

    pub fn for_values(&self, canonical_len_bytes: u64, element_count: u64) -> u64 {
        let stored = element_count.saturating_mul(32);
        heap_len_bytes(canonical_len_bytes).saturating_add(stored).saturating_add(self.for_one_more())
    }
}

/// What links may take in their groups.
#[derive(Debug, Default)]
pub(super) struct LinkRoom {
    /// Bytes of names and link messages, by group.
    by_group: HashMap<Vec<u8>, u64>,
}

impl LinkRoom {
    pub fn needed(&self, group: &[u8], name_len: usize) -> u64 {
        let present = self.by_group.get(group).copied().unwrap_or(0);
        // Local heaps double, fractal heaps grow by up to half; index nodes split.
        4096 + 4 * name_len as u64 + present.saturating_mul(2)
    }

    pub fn linked(&mut self, group: &[u8], name_len: usize) {
        let present = match self.by_group.get_mut(group) {
            Some(present) => present,
            None => self.by_group.entry(group.to_vec()).or_default(),
        };
        *present += name_len as u64 + 32;
    }
}
