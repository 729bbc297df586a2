//! Partition keys as text: created keys, results of checks, problems with ids.

use super::table::{CellAlign, Columns};
use super::{escape, histogram, quantity};
use raddle_merge::keys::DerivedSpec;
use raddle_merge::keys::check::KeysReport;
use raddle_merge::keys::derived::DerivedColumns;
use raddle_merge::keys::partition::{EventShare, FoundBy};
use raddle_merge::keys::shared_chunks::SharedChunks;
use raddle_merge::keys::sizes::{EventSizes, SizeBucket};
use raddle_merge::plan::MergePlan;
use raddle_merge::write::MergeReport;
use std::path::Path;

/// Maximum number of rows of a table on the terminal.
const MAX_TABLE_ROWS: usize = 50;

/// Formats a summary of the partition keys; empty if there are none.
pub fn summary(derived: &DerivedColumns) -> String {
    let Some(index) = derived.tables.first() else { return String::new() };
    let rows: u64 = derived.tables.iter().skip(1).map(|table| table.rows).sum();
    let of = match derived.tables.len() {
        1 => String::new(),
        tables => format!(", {} in {}", quantity::counted(rows, "row"), quantity::counted(tables as u64 - 1, "table")),
    };
    format!("keys of {}{of}", quantity::counted(index.rows, "event"))
}

/// Formats the shares of readers: a line per reader and group.
pub fn shares(shares: &[EventShare]) -> String {
    let titles = [
        ("rank", CellAlign::Right),
        ("group", CellAlign::Left),
        ("first row", CellAlign::Right),
        ("rows", CellAlign::Right),
        ("found by", CellAlign::Left),
    ];
    let mut columns = Columns::new(&titles);
    for share in shares {
        for table in &share.tables {
            let found_by = match table.found_by {
                FoundBy::Index => "index",
                FoundBy::Offsets => "offsets",
                FoundBy::Seq => "search",
            };
            columns.row(&[
                share.rank.to_string(),
                escape::text(&table.group).into_owned(),
                quantity::count(table.rows.start),
                quantity::count(table.rows.end - table.rows.start),
                found_by.to_owned(),
            ]);
        }
    }
    columns.render()
}

/// Formats the columns that a file got, or would get.
pub fn added(file: &Path, plan: &MergePlan, written: Option<&MergeReport>) -> String {
    let what = plan.options.derived.iter().map(|spec| match spec {
        DerivedSpec::Keys(_) => summary(&plan.derived),
        DerivedSpec::FirstValue(spec) => escape::text(&String::from_utf8_lossy(&spec.derived_path())).into_owned(),
        _ => String::new(),
    });
    let what = what.collect::<Vec<_>>().join(", ");
    match written {
        None => format!("{}: would get {what}\n", escape::path(file)),
        Some(report) => format!(
            "{}: got {what}\n  replaced by a new file: {} in {}\n",
            escape::path(file),
            quantity::size(report.output_len_bytes),
            quantity::seconds(report.elapsed_s)
        ),
    }
}

/// Formats the result of a check.
pub fn checked(report: &KeysReport) -> String {
    let looked_at = format!(
        "{}, {} of {}, in {}\n",
        quantity::counted(report.datasets, "key dataset"),
        quantity::counted(report.rows, "row"),
        quantity::counted(report.events, "event"),
        quantity::seconds(report.elapsed_s)
    );
    if report.faults.is_empty() {
        return format!("in order: {looked_at}");
    }
    let mut columns =
        Columns::new(&[("key", CellAlign::Left), ("row", CellAlign::Right), ("what is wrong", CellAlign::Left)]);
    columns.rows(&report.faults, MAX_TABLE_ROWS, |fault| {
        [
            escape::shorten(&escape::text(&fault.path)).into_owned(),
            fault.row.map(quantity::count).unwrap_or_default(),
            escape::text(&fault.what).into_owned(),
        ]
    });
    format!("NOT IN ORDER: {} of {looked_at}{}", report.faults.len(), columns.render())
}

/// Formats the sizes of events.
pub fn sizes(sizes: &EventSizes) -> String {
    let mean = sizes.total_len_bytes.checked_div(sizes.events).unwrap_or(0);
    let mut text = format!(
        "{}, {} of them without rows in any table ({})\n  {} of rows: least {}, median {}, mean {}, greatest {}\n",
        quantity::counted(sizes.events, "event"),
        quantity::count(sizes.empty_events),
        quantity::share(sizes.empty_events, sizes.events),
        quantity::size(sizes.total_len_bytes),
        quantity::size(sizes.least_len_bytes),
        quantity::size(sizes.median_len_bytes),
        quantity::size(mean),
        quantity::size(sizes.greatest_len_bytes)
    );
    let bar = |bucket: &SizeBucket| (quantity::size(bucket.from_len_bytes), bucket.events);
    let bars: Vec<(String, u64)> = sizes.histogram.iter().map(bar).collect();
    if !bars.is_empty() {
        text.push_str(&format!("\n events by size (from)\n{}", histogram::lines(&bars)));
    }
    let titles = [
        ("group", CellAlign::Left),
        ("rows", CellAlign::Right),
        ("bytes a row", CellAlign::Right),
        ("events with rows", CellAlign::Right),
        ("most rows", CellAlign::Right),
    ];
    let mut columns = Columns::new(&titles);
    for table in &sizes.tables {
        columns.row(&[
            escape::shorten(&escape::text(&table.group)).into_owned(),
            quantity::count(table.rows),
            quantity::count(table.row_len_bytes),
            quantity::count(table.events),
            quantity::count(table.most_rows),
        ]);
    }
    text + "\n" + &columns.render()
}

/// Formats the chunk reads of a partition.
pub fn shared_chunks(tables: &[SharedChunks]) -> String {
    let titles = [
        ("group", CellAlign::Left),
        ("datasets", CellAlign::Right),
        ("chunks", CellAlign::Right),
        ("of several readers", CellAlign::Right),
        ("reads", CellAlign::Right),
        ("reads a chunk", CellAlign::Right),
    ];
    let mut columns = Columns::new(&titles);
    let mut all = SharedChunks { group: "all".to_owned(), ..SharedChunks::default() };
    for table in tables {
        all.datasets += table.datasets;
        all.chunks += table.chunks;
        all.shared += table.shared;
        all.reads += table.reads;
    }
    for table in tables.iter().chain([&all]) {
        let per_chunk = table.reads as f64 / table.chunks.max(1) as f64;
        columns.row(&[
            escape::shorten(&escape::text(&table.group)).into_owned(),
            quantity::count(table.datasets),
            quantity::count(table.chunks),
            quantity::count(table.shared),
            quantity::count(table.reads),
            format!("{per_chunk:.2}"),
        ]);
    }
    columns.render()
}
