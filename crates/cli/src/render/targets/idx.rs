//! IDX datasets as text.

use super::MAX_TABLE_ROWS;
use super::comparison::{as_rounded, not_equal};
use crate::render::table::{CellAlign, Columns};
use crate::render::{escape, quantity};
use raddle_idx::dataset::grid::Layout;
use raddle_idx::dataset::time_steps::StepList;
use raddle_idx::inputs::Update;
use raddle_idx::read::check::{DatasetCheck, FieldCheck};
use raddle_idx::read::info::DatasetInfo;
use raddle_idx::verify::Verification;
use raddle_idx::{Header, WriteReport};
use std::path::Path;

/// Maximum number of field names shown in a note.
const MAX_NAMES: usize = 5;

/// Formats sample counts, slowest axis first; `counts` begins with axis x.
fn shape(counts: &[u64]) -> String {
    quantity::shape(&counts.iter().rev().copied().collect::<Vec<_>>())
}

/// Formats a note on the fields with these names, whose samples OpenVisus cannot read; empty if there are none.
fn not_for_openvisus<'f>(names: impl Iterator<Item = &'f str>) -> String {
    let names: Vec<String> = names.map(|name| escape::shorten(&escape::text(name)).into_owned()).collect();
    let Some(listed) = names.get(..names.len().min(MAX_NAMES)).filter(|listed| !listed.is_empty()) else {
        return String::new();
    };
    let more = if names.len() > MAX_NAMES { ", ..." } else { "" };
    let field = if names.len() == 1 { "field" } else { "fields" };
    format!(
        "note: OpenVisus does not read {field} {}{more}: it takes samples of 1 to 32, 64, 128, 256, 512 or 1024 bytes\n  \
         idx write --split-vectors wide writes their components as fields, which it reads\n",
        listed.join(", ")
    )
}

/// Formats a summary of the written data, step by step.
pub fn written(header: &Header, reports: &[WriteReport]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let sum = |of: fn(&WriteReport) -> u64| reports.iter().map(of).sum::<u64>();
    let (samples, stored) = (sum(|report| report.sample_len_bytes), sum(|report| report.stored_len_bytes));
    let elapsed_s: f64 = reports.iter().map(|report| report.elapsed_s).sum();
    let fields = quantity::counted(header.fields.len() as u64, "field");
    let counts: Vec<u64> = (0..header.rank).map(|axis| header.end[axis] - header.start[axis]).collect();
    let steps = match first.time {
        Some(_) => format!(", {}", quantity::counted(reports.len() as u64, "time step")),
        None => String::new(),
    };
    let ranks = match first.ranks {
        1 => String::new(),
        ranks => format!(" by {ranks} ranks"),
    };
    let unread = header.fields.iter().filter(|field| !field.sample.is_read_by_openvisus());
    let unread = not_for_openvisus(unread.map(|field| field.name.as_str()));
    format!(
        "{}: {fields} of {} samples{steps}, resolutions 0 to {}\n  {} in {} of {}, {} of the samples' {}\n  in {} ({}){ranks}\n{unread}",
        escape::path(&first.output),
        shape(&counts),
        header.bitmask.max_level(),
        quantity::size(stored),
        quantity::counted(sum(|report| report.files), "file"),
        quantity::counted(sum(|report| report.blocks), "block"),
        quantity::share(stored, samples),
        quantity::size(samples),
        quantity::seconds(elapsed_s),
        quantity::rate(samples, elapsed_s),
    )
}

/// Formats a summary of the data written into an existing dataset, step by step.
pub fn updated(update: &Update) -> String {
    let Update { header, fields, region, reports } = update;
    let Some(first) = reports.first() else { return String::new() };
    let sum = |of: fn(&WriteReport) -> u64| reports.iter().map(of).sum::<u64>();
    let elapsed_s: f64 = reports.iter().map(|report| report.elapsed_s).sum();
    let names: Vec<String> =
        fields.iter().map(|field| escape::text(&header.fields[*field].name).into_owned()).take(MAX_NAMES).collect();
    let steps = match (first.time, reports.len()) {
        (None, _) => String::new(),
        (Some(step), 1) => format!(" of time step {step}"),
        (Some(_), count) => format!(" of {}", quantity::counted(count as u64, "time step")),
    };
    format!(
        "{}: {} samples of {} put into {}{steps}\n  {} in {} written again, in {}\n",
        escape::path(&first.output),
        shape(&region.counts()[..header.rank]),
        names.join(", "),
        shape(&(0..header.rank).map(|axis| header.end[axis] - header.start[axis]).collect::<Vec<_>>()),
        quantity::counted(sum(|report| report.blocks), "block"),
        quantity::counted(sum(|report| report.files), "file"),
        quantity::seconds(elapsed_s),
    )
}

/// Formats the description.
pub fn described(info: &DatasetInfo) -> String {
    let mut text = format!(
        "{}: IDX version {}, {} samples of {}\n  bitmask {}, {} samples per block, {} per file, files {}\n",
        escape::text(&info.path),
        info.version,
        quantity::shape(&info.shape),
        quantity::counted(info.fields.len() as u64, "field"),
        info.bitmask,
        quantity::count(1 << info.bits_per_block),
        quantity::counted(info.blocks_per_file, "block"),
        escape::text(&info.files),
    );
    if let (Some(first), Some(last)) = (info.steps.first(), info.steps.last()) {
        let count = quantity::counted(info.steps.len() as u64, "time step");
        text.push_str(&format!("  {count}, {first} to {last}\n"));
    }
    let titles = [
        ("field", CellAlign::Left),
        ("samples", CellAlign::Left),
        ("compression", CellAlign::Left),
        ("order", CellAlign::Left),
        ("uncompressed", CellAlign::Right),
    ];
    let mut fields = Columns::new(&titles);
    fields.rows(&info.fields, MAX_TABLE_ROWS, |field| {
        let name = escape::shorten(&escape::text(&field.name)).into_owned();
        let compression = escape::shorten(&escape::text(&field.compression)).into_owned();
        let order = match field.order {
            Layout::Hz => "hz",
            Layout::RowMajor => "rows",
        };
        [name, field.sample.clone(), compression, order.to_owned(), quantity::size(field.len_bytes)]
    });
    let mut resolutions = Columns::new(&[("resolution", CellAlign::Right), ("samples", CellAlign::Left)]);
    for of in &info.resolutions {
        resolutions.row(&[of.resolution.to_string(), quantity::shape(&of.shape)]);
    }
    text.push_str(&format!("\n{}", fields.render()));
    let unread = info.fields.iter().filter(|field| !field.is_read_by_openvisus);
    text.push_str(&not_for_openvisus(unread.map(|field| field.name.as_str())));
    text.push_str(&format!("\n{}", resolutions.render()));
    text
}

/// Formats the result of a verification.
pub fn verified(path: &Path, check: &DatasetCheck, outcome: &Verification) -> String {
    let DatasetCheck { checks, missing_steps, is_stopped } = check;
    let sum = |of: fn(&FieldCheck) -> u64| checks.iter().map(of).sum::<u64>();
    let stored = sum(|check| check.stored_len_bytes);
    let bad = sum(|check| check.bad.len() as u64);
    let path = escape::path(path);
    let good = format!("{} with {}", quantity::counted(sum(|check| check.blocks), "block"), quantity::size(stored));
    if checks.is_empty() {
        return format!("EMPTY: {path}: no time step exists\n");
    }
    let missing = match missing_steps.as_slice() {
        [] => String::new(),
        [step] => format!("time step {step}, which the .idx file names, is missing;  "),
        steps => {
            format!("time steps {}, which the .idx file names, are missing;  ", StepList::of(steps.iter().copied()))
        }
    };
    if bad == 0 && !missing.is_empty() {
        return format!("DAMAGED: {path}: {missing}{good} are good\n");
    }
    if bad > 0 {
        let titles = [
            ("field", CellAlign::Left),
            ("step", CellAlign::Right),
            ("block", CellAlign::Right),
            ("what is wrong", CellAlign::Left),
        ];
        let mut columns = Columns::new(&titles);
        columns.rows(checks.iter().flat_map(|check| &check.bad), MAX_TABLE_ROWS, |block| {
            [
                escape::shorten(&escape::text(&block.field)).into_owned(),
                block.time.map_or_else(|| "-".to_owned(), |step| step.to_string()),
                quantity::count(block.block),
                format!("{}: {}", escape::path(&block.path), escape::text(&block.why)),
            ]
        });
        let count = quantity::counted(bad, "block");
        let stopped = if *is_stopped { "; stopped checking" } else { "" };
        return format!(
            "DAMAGED: {path}: {missing}{count} missing or damaged, {good} good{stopped}\n{}",
            columns.render()
        );
    }
    if !outcome.comparison.is_equal() {
        return not_equal(&path, &outcome.comparison);
    }
    let rounded = &outcome.comparison.rounded;
    match (outcome.is_compared, rounded.is_empty()) {
        (false, _) => format!("whole: {path}: {good}\n"),
        (true, true) => format!("equal: {path}: {good}\n"),
        (true, false) => format!("equal except for rounding: {path}: {good}\n{}", as_rounded(rounded)),
    }
}
