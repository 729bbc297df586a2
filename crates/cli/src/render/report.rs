//! Short summary of a merge, rechunk or verification.

use super::plan::alignment;
use super::table::{CellAlign, Columns};
use super::{escape, quantity};
use raddle_merge::append::AppendReport;
use raddle_merge::verify::VerifyReport;
use raddle_merge::write::MergeReport;
use raddle_merge::write::parts::PartReport;
use std::path::Path;

/// Maximum number of mismatches shown; a single wrong dataset is enough to distrust a file.
const MAX_TABLE_ROWS: usize = 50;

/// Formats the report of a merge.
pub fn merged(report: &MergeReport) -> String {
    let stored = report.output_len_bytes;
    let compared = match report.input_len_bytes {
        0 => String::new(),
        inputs => format!(", {} of the inputs' {}", quantity::share(stored, inputs), quantity::size(inputs)),
    };
    let datasets = quantity::counted(report.datasets, "dataset");
    let empty = match report.empty_datasets {
        0 => String::new(),
        empty => format!(" ({} empty)", quantity::count(empty)),
    };
    let peak =
        report.memory.peak_rss_bytes.map_or(String::new(), |peak| format!(", peak memory {}", quantity::size(peak)));
    let resumed = match report.resumed_len_bytes {
        0 => String::new(),
        kept => format!("\n  {} of it kept from an interrupted run", quantity::size(kept)),
    };
    let linked = match report.linked {
        0 => String::new(),
        _ if report.datasets == 0 => "\n  leads to the inputs by external links: keep them where they are".to_owned(),
        linked => format!(
            "\n  {} virtual: their values stay in the inputs, keep these where they are",
            quantity::counted(linked, "dataset")
        ),
    };
    let aligned = match &report.alignment {
        Some(of_output) => format!(
            "\n  {}; {} unused",
            alignment(of_output),
            quantity::share(report.engine.unused_len_bytes, report.output_len_bytes)
        ),
        None => String::new(),
    };
    let through = report.shared_io.as_ref().map_or(String::new(), |io| format!("\n  written through {}", io.interface));
    format!(
        "{}: {datasets}{empty} from {}\n  {}{compared}{linked}{resumed}{aligned}{through}\n  {} uncompressed in {} ({}){peak}\n",
        escape::path(&report.output),
        quantity::counted(report.inputs, "file"),
        quantity::size(stored),
        quantity::size(report.logical_len_bytes),
        quantity::seconds(report.elapsed_s),
        quantity::rate(report.logical_len_bytes, report.elapsed_s),
    )
}

/// Formats the report of a part of a merge.
pub fn part(report: &PartReport) -> String {
    let (number, count) = (report.part.number(), report.part.count());
    let tiles = quantity::counted(report.tiles, "chunk");
    let summary = match &report.engine {
        Some(engine) => {
            let (stored, elapsed) = (quantity::size(engine.stored_len_bytes), quantity::seconds(engine.elapsed_s));
            format!("{tiles}, {stored}, made in {elapsed}")
        }
        None => format!("{tiles}, made before"),
    };
    let mut text = format!("{}: part {number} of {count}: {summary}\n", escape::path(&report.output));
    let missing: Vec<String> = report.missing.iter().map(u32::to_string).collect();
    match (&report.merged, missing.as_slice()) {
        (Some(done), _) => text.push_str(&merged(done)),
        (None, []) => text.push_str("  all parts are done; another one has published the output\n"),
        (None, [one]) => text.push_str(&format!("  not done yet: part {one}, which will publish the output\n")),
        (None, many) => {
            text.push_str(&format!("  not done yet: parts {}; the last will publish the output\n", many.join(", ")));
        }
    }
    text
}

/// Formats the report of an append to `file`, as named by the user.
pub fn appended(file: &Path, report: &AppendReport) -> String {
    let grown = quantity::counted(report.grown_datasets, "dataset");
    let peak =
        report.memory.peak_rss_bytes.map_or(String::new(), |peak| format!(", peak memory {}", quantity::size(peak)));
    format!(
        "{}: {} appended, {grown} grew by up to {} rows\n  {}, {} before\n  in {}{peak}\n",
        escape::path(file),
        quantity::counted(report.inputs, "file"),
        quantity::count(report.most_rows),
        quantity::size(report.output_len_bytes),
        quantity::size(report.old_len_bytes),
        quantity::seconds(report.elapsed_s),
    )
}

/// Formats the report of a verification against inputs.
pub fn verified(report: &VerifyReport) -> String {
    outcome(report, ["equal", "NOT EQUAL"], "compared")
}

/// Formats the report of a verification against the file's own digests.
pub fn checked(report: &VerifyReport) -> String {
    outcome(report, ["intact", "DAMAGED"], "compared with their digests")
}

fn outcome(report: &VerifyReport, [good, bad]: [&str; 2], done: &str) -> String {
    let linked = match report.linked {
        0 => String::new(),
        linked => format!(", {} found (values not compared)", quantity::counted(linked, "link")),
    };
    let compared = format!(
        "{} and {} {done}, {} of values{linked}, in {}\n",
        quantity::counted(report.datasets, "dataset"),
        quantity::counted(report.objects, "other object"),
        quantity::size(report.compared_len_bytes),
        quantity::seconds(report.elapsed_s)
    );
    if report.mismatches.is_empty() {
        return format!("{good}: {compared}");
    }
    let count = report.mismatches.len();
    let mut columns =
        Columns::new(&[("object", CellAlign::Left), ("what differs", CellAlign::Left), ("input", CellAlign::Left)]);
    columns.rows(&report.mismatches, MAX_TABLE_ROWS, |mismatch| {
        [
            escape::shorten(&escape::text(&mismatch.path)).into_owned(),
            escape::text(&mismatch.what).into_owned(),
            mismatch.input.as_deref().map(escape::path).unwrap_or_default(),
        ]
    });
    format!("{bad}: {}; {compared}{}", quantity::counted(count as u64, "difference"), columns.render())
}
