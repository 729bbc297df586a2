//! Results of `raddle split` as text.

use super::table::{CellAlign, Columns};
use super::{escape, quantity};
use raddle::split::{SplitReport, SplitSummary};

/// Maximum number of files shown in a table.
const MAX_TABLE_ROWS: usize = 100;

/// Formats the files that would be written.
pub fn planned(summary: &SplitSummary<'_>) -> String {
    let mut columns = Columns::new(&[
        ("file", CellAlign::Left),
        ("elements", CellAlign::Left),
        ("inputs", CellAlign::Right),
        ("uncompressed", CellAlign::Right),
    ]);
    columns.rows(summary.files, MAX_TABLE_ROWS, |file| {
        [
            escape::path(&file.output),
            file.range.clone().unwrap_or_else(|| "all".to_owned()),
            quantity::count(file.inputs as u64),
            quantity::size(file.logical_len_bytes),
        ]
    });
    format!(
        "{}{} would be written to {}: {} uncompressed\n",
        if summary.files.is_empty() { String::new() } else { columns.render() },
        quantity::counted(summary.files.len() as u64, "file"),
        escape::path(summary.dir),
        quantity::size(summary.logical_len_bytes),
    )
}

/// Formats the report on written files.
pub fn written(report: &SplitReport) -> String {
    let SplitReport { files, output_len_bytes, logical_len_bytes, elapsed_s, .. } = report;
    let before = match report.done_before {
        0 => String::new(),
        done => format!(", {} done before", quantity::counted(done, "file")),
    };
    let peak = report.peak_rss_bytes.map_or(String::new(), |peak| format!(", peak memory {}", quantity::size(peak)));
    format!(
        "{} written to {}{before}\n  {} of {} in the inputs\n  {} uncompressed in {} ({}){peak}\n",
        quantity::counted(files.len() as u64, "file"),
        escape::path(&report.dir),
        quantity::size(*output_len_bytes),
        quantity::size(report.input_len_bytes),
        quantity::size(*logical_len_bytes),
        quantity::seconds(*elapsed_s),
        quantity::rate(*logical_len_bytes, *elapsed_s),
    )
}
