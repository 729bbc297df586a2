//! Results of `raddle rechunk` with many files as text.

use super::table::{CellAlign, Columns};
use super::{escape, quantity};
use raddle::rechunk::{FilesSummary, RechunkedFiles};

/// Maximum number of files shown in a table.
const MAX_TABLE_ROWS: usize = 100;

/// Formats the files that would be written.
pub fn planned(summary: &FilesSummary<'_>) -> String {
    let titles = [
        ("file", CellAlign::Left),
        ("datasets", CellAlign::Right),
        ("chunks", CellAlign::Right),
        ("size", CellAlign::Right),
    ];
    let mut columns = Columns::new(&[titles.as_slice(), &[("uncompressed", CellAlign::Right)]].concat());
    columns.rows(summary.files, MAX_TABLE_ROWS, |file| {
        [
            escape::path(&file.input),
            quantity::count(file.datasets),
            quantity::count(file.chunks),
            quantity::size(file.input_len_bytes),
            quantity::size(file.logical_len_bytes),
        ]
    });
    let place = place(summary.dir.as_deref());
    format!(
        "{}{} would be rewritten {place}: {}, {} uncompressed\n",
        if summary.files.is_empty() { String::new() } else { columns.render() },
        quantity::counted(summary.files.len() as u64, "file"),
        quantity::size(summary.input_len_bytes),
        quantity::size(summary.logical_len_bytes),
    )
}

/// Formats the report on written files.
pub fn written(report: &RechunkedFiles) -> String {
    let RechunkedFiles { files, input_len_bytes, output_len_bytes, logical_len_bytes, elapsed_s, .. } = report;
    let compared = match *input_len_bytes {
        0 => String::new(),
        inputs => format!(", {} of the inputs' {}", quantity::share(*output_len_bytes, inputs), quantity::size(inputs)),
    };
    let before = match report.done_before {
        0 => String::new(),
        done => format!(", {} done before", quantity::counted(done, "file")),
    };
    let skipped = match report.skipped.len() {
        0 => String::new(),
        skipped => format!(", {} left out", quantity::counted(skipped as u64, "file")),
    };
    let peak = report.peak_rss_bytes.map_or(String::new(), |peak| format!(", peak memory {}", quantity::size(peak)));
    format!(
        "{} rewritten {}{before}{skipped}\n  {}{compared}\n  {} uncompressed in {} ({}){peak}\n",
        quantity::counted(files.len() as u64, "file"),
        place(report.dir.as_deref()),
        quantity::size(*output_len_bytes),
        quantity::size(*logical_len_bytes),
        quantity::seconds(*elapsed_s),
        quantity::rate(*logical_len_bytes, *elapsed_s),
    )
}

fn place(dir: Option<&std::path::Path>) -> String {
    dir.map_or("in place".to_owned(), |dir| format!("to {}", escape::path(dir)))
}
