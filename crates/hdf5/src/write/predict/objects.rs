//! Predicted lengths of groups, datasets, attributes, and values written by libhdf5 itself.

use super::messages::{dataspace_len_bytes, datatype_len_bytes, header_len_bytes, padded};
use super::structures::{Fill, FractalHeap, heap_len_bytes, tree_v2_len_bytes};
use super::{Compat, DatasetSpec, MAX_COMPACT_COUNT, MAX_MESSAGE_LEN_BYTES, OutputLayout};
use crate::model::{CreationOrder, Dataspace, ReferenceKind, TypeClass};
use crate::write::{TypeRef, mappings};

pub(super) fn group_len_bytes(compat: Compat, link_count: u64, text_len_bytes: u64, order: CreationOrder) -> u64 {
    if compat == Compat::Earliest && !order.tracked {
        // Header 40, B-tree node 544, local heap header 32 and at least 88 of data: 704. Symbol-table nodes (328 bytes
        // for 8 links) are half full if names are inserted in order, as are B-tree nodes (32 children). The heap
        // doubles and leaves its former blocks free, which later objects may or may not use.
        let nodes = link_count.div_ceil(4);
        let heap = text_len_bytes.saturating_add(link_count.saturating_mul(8)).saturating_mul(4);
        let leaves = nodes.saturating_mul(328);
        let inner = nodes.div_ceil(16).saturating_mul(544);
        return 704_u64.saturating_add(heap).saturating_add(leaves).saturating_add(inner);
    }
    // Header with link info and group info messages, and space for four links.
    let header = 160;
    let links = link_messages_len_bytes(link_count, text_len_bytes, order);
    if link_count <= MAX_COMPACT_COUNT {
        // Header blocks are added as links are created.
        return links.saturating_add(header + 6 * link_count + 48 * link_count.div_ceil(4));
    }
    // The index of names has records of 11 bytes, inserted in random order; that of creation order has records of 15
    // bytes, inserted in order.
    let by_order = if order.indexed { tree_v2_len_bytes(512, 15, link_count, Fill::InOrder) } else { 0 };
    let records = tree_v2_len_bytes(512, 11, link_count, Fill::NoOrder).saturating_add(by_order);
    // The first eight links were in the header, and leave their space free.
    let header = header + 48 * 2;
    FractalHeap::new(512, links).len_bytes.saturating_add(header).saturating_add(records)
}

/// Returns the length of link messages: version, flags, type, order, character set, length of the name, name, target.
fn link_messages_len_bytes(link_count: u64, text_len_bytes: u64, order: CreationOrder) -> u64 {
    let each = 13 + if order.tracked { 8 } else { 0 };
    link_count.saturating_mul(each).saturating_add(text_len_bytes)
}

/// Returns the length of a dataset's header, and the part of it that is free for attributes.
pub(super) fn dataset_header(compat: Compat, spec: &DatasetSpec) -> (u64, u64) {
    let rank = spec.dataspace.dims().len() as u64;
    let element_len_bytes = spec.datatype.class().len_bytes();
    let datatype = match &spec.datatype {
        TypeRef::Own(class) => datatype_len_bytes(compat, class),
        TypeRef::Committed { .. } => 16,
    };
    let fill = match (spec.fill.value.is_some() || spec.fill.user_defined, compat) {
        (true, _) => 8 + element_len_bytes,
        (false, Compat::Earliest) => 8,
        (false, _) => 2,
    };
    // Readers before 1.6 expect a user-defined fill value in a separate message.
    let old_fill = if compat == Compat::Earliest && spec.fill.value.is_some() { 4 + element_len_bytes } else { 0 };
    let (layout, compact_len_bytes) = match &spec.layout {
        OutputLayout::Compact => {
            let values = spec.dataspace.element_count().unwrap_or(u64::MAX).saturating_mul(element_len_bytes);
            (values.saturating_add(4), values)
        }
        OutputLayout::Contiguous => (18, 0),
        // Version 3: 4 bytes per size; versions 4 and 5: the width of the largest, and the index's settings.
        OutputLayout::Chunked { .. } => (24 + 4 * (rank + 1), 0),
        OutputLayout::Virtual(_) => (18, 0),
    };
    let filter_lens = spec.filters.iter().map(|filter| {
        let name =
            if filter.id >= 256 || compat == Compat::Earliest { padded(filter.name.len() as u64 + 1) } else { 0 };
        8 + name.max(if compat == Compat::Earliest { 8 } else { 0 }) + padded(4 * filter.parameters.len() as u64)
    });
    let filters = if spec.filters.is_empty() { 0 } else { 8 + filter_lens.sum::<u64>() };
    // Headers of datasets that will have attributes begin with 256 bytes of free space. Two more bytes per message if
    // the order of attributes is kept.
    let order = if spec.attribute_order.tracked { 2 * 5 + 8 } else { 0 };
    let messages = [dataspace_len_bytes(compat, &spec.dataspace), datatype, fill, old_fill, layout, filters];
    let header = header_len_bytes(compat, &messages).saturating_add(order);
    let least = if spec.has_attributes { compact_len_bytes.saturating_add(272) } else { 0 };
    if header <= least {
        // The reserve for a continuation message (24 and 20 bytes) is not free for attributes.
        return (least, least - header);
    }
    // A message that does not fit into the reserved space goes into a separate block and leaves that space empty: all
    // of it if the message holds the values of a compact dataset.
    (header.saturating_add(least), 0)
}

/// Returns the space of a virtual dataset's mappings in the global heap. Assumes that the mappings of the other
/// datasets are about as long.
pub(super) fn mappings_len_bytes(spec: &DatasetSpec) -> u64 {
    let OutputLayout::Virtual(mappings) = &spec.layout else { return 0 };
    // A header of 16 bytes and padding. A collection of 4 KiB is shared; it has a header of 16 bytes, and some space is
    // left at its end.
    let len_bytes = mappings::stored_len_bytes(spec.dataspace.dims().len() as u64, mappings).saturating_add(24);
    match 4064 / len_bytes {
        0 => len_bytes.saturating_add(32),
        sharing => 4096 / sharing,
    }
}

/// Maximum bytes that one filter may add to a chunk that does not compress, in addition to a thousandth of its length.
/// Deflate adds 12 bytes, and other filters less.
const FILTER_GROWTH_LEN_BYTES: u64 = 32;

/// Returns the space of `rows` rows from `start_row` that libhdf5 itself writes: whole chunks, and variable-length
/// values.
pub(in crate::write) fn values_len_bytes(
    class: &TypeClass,
    layout: &OutputLayout,
    filter_count: usize,
    dataspace: &Dataspace,
    start_row: u64,
    rows: u64,
    canonical_len_bytes: u64,
) -> u64 {
    let product = |dims: &[u64]| dims.iter().fold(1_u64, |product, &dim| product.saturating_mul(dim));
    let rest = dataspace.dims().get(1..).unwrap_or(&[]);
    let count = if *dataspace == Dataspace::Null { 0 } else { rows.saturating_mul(product(rest)) };
    let mut growth = 0;
    let stored = match layout {
        OutputLayout::Compact | OutputLayout::Virtual(_) => 0,
        // Allocated in full with the first value.
        OutputLayout::Contiguous => dataspace.element_count().unwrap_or(u64::MAX),
        OutputLayout::Chunked { chunk_shape } => {
            let chunk_rows = chunk_shape.first().copied().unwrap_or(1).max(1);
            let bands = start_row.saturating_add(rows).div_ceil(chunk_rows).saturating_sub(start_row / chunk_rows);
            let across = rest.iter().zip(chunk_shape.iter().skip(1));
            let chunks = across.fold(bands, |chunks, (&dim, &chunk)| chunks.saturating_mul(dim.div_ceil(chunk.max(1))));
            growth = chunks.saturating_mul(filter_count as u64 * FILTER_GROWTH_LEN_BYTES);
            chunks.saturating_mul(product(chunk_shape))
        }
    };
    let stored = stored.saturating_mul(class.len_bytes());
    let stored = stored.saturating_add(stored / 512).saturating_add(growth);
    stored.saturating_add(heap_values_len_bytes(class, canonical_len_bytes, count))
}

/// Returns the space in the global heap of `count` elements of `class` whose canonical form has `canonical_len_bytes`.
pub(super) fn heap_values_len_bytes(class: &TypeClass, canonical_len_bytes: u64, count: u64) -> u64 {
    if !class.is_file_local() {
        return 0;
    }
    // Each value has a header of 16 bytes and up to 7 of padding. Its length, 8 canonical bytes, is not stored. A value
    // nested in another takes 16 bytes there.
    let (values, each_len_bytes) = match heap_values(class) {
        Some(values) => (values.saturating_mul(count), 16),
        None => (canonical_len_bytes / 8, 32),
    };
    heap_len_bytes(canonical_len_bytes.saturating_add(values.saturating_mul(each_len_bytes)), values)
}

/// Returns the number of values that one element keeps in the global heap, or `None` if values are nested in values.
fn heap_values(class: &TypeClass) -> Option<u64> {
    match class {
        TypeClass::VariableString { .. } => Some(1),
        TypeClass::Sequence { base, .. } => (heap_values(base) == Some(0)).then_some(1),
        TypeClass::Compound { members, .. } => {
            members.iter().try_fold(0_u64, |sum, member| Some(sum.saturating_add(heap_values(&member.class)?)))
        }
        TypeClass::Array { base, dims } => {
            heap_values(base).map(|values| dims.iter().fold(values, |product, &dim| product.saturating_mul(dim.into())))
        }
        // A region reference stores the address of its dataset and its selection; an object reference is just an
        // address.
        TypeClass::Reference(ReferenceKind::Object) => Some(0),
        TypeClass::Reference(_) => None,
        _ => Some(0),
    }
}

/// Returns the space that attributes of these lengths take outside an object header with `free` free bytes.
pub(super) fn attributes_len_bytes(compat: Compat, attributes: &[u64], free: u64) -> u64 {
    let count = attributes.len() as u64;
    let sum = |attributes: &[u64]| attributes.iter().fold(0_u64, |sum, &len| sum.saturating_add(len));
    let dense = count > MAX_COMPACT_COUNT || attributes.iter().any(|&len| len >= MAX_MESSAGE_LEN_BYTES);
    // In the header, in blocks added as attributes are created. Each block has a checksum, and the message in the
    // header that points to it takes the place of another message, which moves to the block.
    let in_header = |attributes: &[u64]| {
        let beyond = sum(attributes).saturating_sub(free);
        if beyond == 0 { 0 } else { beyond.saturating_add(attributes.len() as u64 * 32) }
    };
    if compat == Compat::Earliest || !dense {
        return in_header(attributes);
    }
    // Attributes that were in the header leave their space free when the ninth moves all of them to dense storage.
    // Records by name have 17 bytes. Objects above 4 KiB get separate space and a record of 24 bytes.
    let before = in_header(&attributes[..attributes.len().min(MAX_COMPACT_COUNT as usize)]);
    let (small, large): (Vec<u64>, Vec<u64>) = attributes.iter().partition(|&&len| len <= 4096);
    let records = tree_v2_len_bytes(512, 17, count, Fill::NoOrder);
    let tracker = if large.is_empty() { 0 } else { tree_v2_len_bytes(512, 24, large.len() as u64, Fill::InOrder) };
    before
        .saturating_add(FractalHeap::new(1024, sum(&small)).len_bytes)
        .saturating_add(sum(&large))
        .saturating_add(records)
        .saturating_add(tracker)
}
