//! An inspected file as text.

use super::table::{CellAlign, Columns};
use super::{escape, histogram, quantity};
use raddle_hdf5::inspect::{Bucket, DatasetStatistics, Inspection, SpaceUse, StorageKind, Sum};
use std::path::Path;

/// Level of detail of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    /// Maximum number of groups and datasets listed, largest first.
    pub longest_table: usize,
}

/// Formats the inspection of `path`.
pub fn text(path: &Path, inspection: &Inspection, detail: Detail) -> String {
    let mut text = header(path, inspection);
    text.push_str(&space(inspection));
    text.push_str(&chunks(inspection));
    text.push_str(&groups(inspection, detail));
    text.push_str(&datasets(inspection, detail));
    text.push_str(&faults(inspection));
    for advice in &inspection.advice {
        text.push_str(&format!("\nadvice: {}\n", escape::text(&advice.to_string())));
    }
    text
}

/// Formats the sum over files.
pub fn total(sum: &Sum) -> String {
    let all = sum.all();
    let per_file = |count: u64| quantity::count(count.checked_div(sum.files).unwrap_or(0));
    let mut text = format!(
        "{}: {}, from {} to {} each\n",
        quantity::counted(sum.files, "file"),
        quantity::size(sum.file_len_bytes),
        quantity::size(sum.shortest_file_len_bytes),
        quantity::size(sum.longest_file_len_bytes)
    );
    text.push_str(&format!(
        "  {} in {} per file, {} of all empty ({}); {}, {}\n\n",
        quantity::counted(all.datasets.checked_div(sum.files).unwrap_or(0), "dataset"),
        quantity::counted(sum.groups.checked_div(sum.files).unwrap_or(0), "group"),
        quantity::count(sum.empty_datasets),
        quantity::share(sum.empty_datasets, all.datasets),
        quantity::counted(sum.attributes, "attribute"),
        quantity::counted(sum.chunks, "chunk")
    ));
    let titles = [
        ("datasets", CellAlign::Left),
        ("per file", CellAlign::Right),
        ("raw", CellAlign::Right),
        ("stored", CellAlign::Right),
        ("ratio", CellAlign::Right),
    ];
    let mut columns = Columns::new(&titles);
    for (what, kind) in [("one value a row", sum.narrow), ("wider rows", sum.wide), ("all", all)] {
        columns.row(&[
            what.to_owned(),
            per_file(kind.datasets),
            quantity::size(kind.logical_len_bytes),
            quantity::size(kind.stored_len_bytes),
            quantity::ratio(kind.logical_len_bytes, kind.stored_len_bytes),
        ]);
    }
    text + &columns.render() + "\n" + &uses(&sum.space, sum.file_len_bytes)
}

fn header(path: &Path, inspection: &Inspection) -> String {
    let objects = &inspection.objects;
    let mut lines = format!(
        "{}: {}, superblock {}\n",
        escape::path(path),
        quantity::size(inspection.file_len_bytes),
        inspection.superblock_version
    );
    lines.push_str(&format!(
        "  {} in {}, {} of them empty ({})\n",
        quantity::counted(objects.datasets, "dataset"),
        quantity::counted(objects.groups, "group"),
        quantity::count(objects.empty_datasets),
        quantity::share(objects.empty_datasets, objects.datasets)
    ));
    let others = [
        (objects.attributes, "attribute"),
        (objects.committed_datatypes, "committed datatype"),
        (objects.soft_links, "soft link"),
        (objects.foreign_links, "external or user-defined link"),
        (objects.hard_link_aliases, "further hard link"),
    ];
    let others: Vec<String> =
        others.iter().filter(|(count, _)| *count > 0).map(|&(count, noun)| quantity::counted(count, noun)).collect();
    if !others.is_empty() {
        lines.push_str(&format!("  {}\n", others.join(", ")));
    }
    if objects.through_library > 0 {
        let count = quantity::counted(objects.through_library, "object");
        lines.push_str(&format!(
            "  {count} read by libhdf5: the location of its metadata is not known (below: unused)\n"
        ));
    }
    if !inspection.filters.is_empty() {
        let filters = inspection.filters.iter().map(|filter| {
            let name = if filter.name.is_empty() { "unnamed" } else { &filter.name };
            let name = escape::text(name);
            format!("{} {} ({})", name, filter.id, quantity::counted(filter.datasets, "dataset"))
        });
        lines.push_str(&format!("  filters: {}\n", filters.collect::<Vec<_>>().join(", ")));
    }
    lines
}

/// Formats the use of the bytes of files.
fn uses(space: &SpaceUse, all_len_bytes: u64) -> String {
    let mut columns = Columns::new(&[
        ("where the bytes are", CellAlign::Left),
        ("size", CellAlign::Right),
        ("share", CellAlign::Right),
    ]);
    let rows = [
        ("raw data", space.raw_len_bytes),
        ("metadata", space.metadata_len_bytes),
        ("heap (variable-length values)", space.heap_len_bytes),
        ("user block", space.userblock_len_bytes),
        ("unused", space.unused_len_bytes),
    ];
    for (what, len_bytes) in rows.into_iter().filter(|row| row.1 > 0) {
        columns.row(&[what.to_owned(), quantity::size(len_bytes), quantity::share(len_bytes, all_len_bytes)]);
    }
    columns.render()
}

fn space(inspection: &Inspection) -> String {
    let raw = format!(
        "  {} of values, {} stored: {}\n",
        quantity::size(inspection.logical_len_bytes),
        quantity::size(inspection.stored_len_bytes),
        quantity::ratio(inspection.logical_len_bytes, inspection.stored_len_bytes)
    );
    format!("\n{}{raw}", uses(&inspection.space, inspection.file_len_bytes))
}

fn chunks(inspection: &Inspection) -> String {
    let chunks = &inspection.chunks;
    if chunks.count == 0 {
        return String::new();
    }
    let bars = |buckets: &[Bucket]| {
        let bars: Vec<(String, u64)> =
            buckets.iter().map(|bucket| (quantity::size(bucket.from_len_bytes), bucket.count)).collect();
        histogram::lines(&bars)
    };
    format!(
        "\n{}, {} stored each on average\n chunks by size before compression (from)\n{} chunks by stored size (from)\n{}",
        quantity::counted(chunks.count, "chunk"),
        quantity::size(chunks.stored_len_bytes / chunks.count),
        bars(&chunks.by_logical_len),
        bars(&chunks.by_stored_len)
    )
}

fn groups(inspection: &Inspection, detail: Detail) -> String {
    if inspection.groups.is_empty() {
        return String::new();
    }
    let titles = [
        ("group", CellAlign::Left),
        ("datasets", CellAlign::Right),
        ("empty", CellAlign::Right),
        ("rows", CellAlign::Right),
        ("raw", CellAlign::Right),
        ("stored", CellAlign::Right),
        ("ratio", CellAlign::Right),
    ];
    let mut columns = Columns::new(&titles);
    let mut groups: Vec<_> = inspection.groups.iter().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.stored_len_bytes));
    for group in groups.iter().take(detail.longest_table) {
        columns.row(&[
            escape::shorten(&escape::bytes(&group.path)).into_owned(),
            quantity::count(group.datasets),
            quantity::count(group.empty_datasets),
            group.rows.map_or_else(|| "-".to_owned(), quantity::count),
            quantity::size(group.logical_len_bytes),
            quantity::size(group.stored_len_bytes),
            quantity::ratio(group.logical_len_bytes, group.stored_len_bytes),
        ]);
    }
    format!("\n{}{}", columns.render(), rest(groups.len(), detail, "group"))
}

fn datasets(inspection: &Inspection, detail: Detail) -> String {
    let mut datasets: Vec<_> = inspection.datasets.iter().filter(|dataset| dataset.logical_len_bytes > 0).collect();
    if datasets.is_empty() {
        return String::new();
    }
    let titles = [
        ("dataset", CellAlign::Left),
        ("shape", CellAlign::Left),
        ("stored as", CellAlign::Left),
        ("chunks", CellAlign::Right),
        ("raw", CellAlign::Right),
        ("stored", CellAlign::Right),
        ("ratio", CellAlign::Right),
    ];
    let mut columns = Columns::new(&titles);
    datasets.sort_by_key(|dataset| std::cmp::Reverse(dataset.stored_len_bytes));
    for dataset in datasets.iter().take(detail.longest_table) {
        columns.row(&[
            escape::shorten(&escape::bytes(&dataset.path)).into_owned(),
            dimensions(&dataset.dims),
            storage(dataset),
            quantity::count(dataset.chunks),
            quantity::size(dataset.logical_len_bytes),
            quantity::size(dataset.stored_len_bytes),
            quantity::ratio(dataset.logical_len_bytes, dataset.stored_len_bytes),
        ]);
    }
    format!("\n{}{}", columns.render(), rest(datasets.len(), detail, "dataset"))
}

fn storage(dataset: &DatasetStatistics) -> String {
    match (&dataset.storage, &dataset.chunk_shape) {
        (StorageKind::Chunked, Some(shape)) => format!("chunks of {}", quantity::shape(shape)),
        (StorageKind::Chunked, None) => "chunks".to_owned(),
        (StorageKind::Compact, _) => "compact".to_owned(),
        (StorageKind::Contiguous, _) => "contiguous".to_owned(),
        (StorageKind::External, _) => "external files".to_owned(),
        (StorageKind::Virtual, _) => "virtual".to_owned(),
        _ => "unknown".to_owned(),
    }
}

fn dimensions(dims: &[u64]) -> String {
    if dims.is_empty() { "scalar".to_owned() } else { quantity::shape(dims) }
}

fn rest(len: usize, detail: Detail, noun: &str) -> String {
    match len.checked_sub(detail.longest_table) {
        Some(more @ 1..) => format!(" … and {}\n", quantity::counted(more as u64, &format!("smaller {noun}"))),
        _ => String::new(),
    }
}

fn faults(inspection: &Inspection) -> String {
    if inspection.faults.is_empty() {
        return String::new();
    }
    let mut columns = Columns::new(&[("cannot be read", CellAlign::Left), ("why", CellAlign::Left)]);
    for fault in &inspection.faults {
        let path = escape::bytes(&fault.path);
        columns.row(&[escape::shorten(&path), escape::shorten(&escape::text(&fault.reason))]);
    }
    format!("\n{}", columns.render())
}
