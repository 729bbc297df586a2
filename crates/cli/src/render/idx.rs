//! IDX datasets as text.

use super::table::{Align, Columns};
use super::{escape, quantity};
use crate::command::idx::compare::{Comparison, NotCompared, Rounded, Unequal};
use crate::command::idx::verify::Outcome;
use raddle_idx::dataset::time_steps::StepList;
use raddle_idx::read::check::{DatasetCheck, FieldCheck};
use raddle_idx::{Dataset, Header, SampleBox, WriteReport};
use serde::Serialize;
use std::path::Path;

/// Maximum number of field names shown in a note.
const MAX_NAMES: usize = 5;

/// Maximum number of lines of a table.
const MAX_TABLE_ROWS: usize = 50;

/// Formats sample counts, slowest axis first.
fn shape(counts: &[u64]) -> String {
    counts.iter().rev().map(|count| quantity::count(*count)).collect::<Vec<_>>().join(" x ")
}

/// Formats a note on the fields with these names, whose samples OpenVisus cannot read; empty if there are none.
fn not_for_openvisus<'f>(names: impl Iterator<Item = &'f str>) -> String {
    let names: Vec<String> = names.map(|name| escape::shorten(&escape::text(name)).into_owned()).collect();
    let Some(shown) = names.get(..names.len().min(MAX_NAMES)).filter(|shown| !shown.is_empty()) else {
        return String::new();
    };
    let more = if names.len() > MAX_NAMES { ", ..." } else { "" };
    let field = if names.len() == 1 { "field" } else { "fields" };
    format!(
        "note: OpenVisus does not read {field} {}{more}: it takes samples of 1 to 32, 64, 128, 256, 512 or 1024 bytes\n  \
         idx write --split-vectors wide writes their components as fields, which it reads\n",
        shown.join(", ")
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
pub fn updated(header: &Header, fields: &[usize], region: &SampleBox, reports: &[WriteReport]) -> String {
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

/// A field, as recorded in the header.
#[derive(Debug, Serialize)]
pub struct FieldInfo {
    name: String,
    sample: String,
    compression: String,
    order: &'static str,
    len_bytes: u64,
    is_read_by_openvisus: bool,
}

/// Number of samples of all levels up to one.
#[derive(Debug, Serialize)]
pub struct ResolutionInfo {
    resolution: u32,
    /// Number of samples per axis, slowest first.
    shape: Vec<u64>,
}

/// Description of a dataset.
#[derive(Debug, Serialize)]
pub struct Info {
    path: String,
    version: u32,
    /// Number of samples per axis, slowest first.
    shape: Vec<u64>,
    start: Vec<u64>,
    bitmask: String,
    bits_per_block: u32,
    blocks_per_file: u64,
    files: String,
    steps: Vec<u64>,
    fields: Vec<FieldInfo>,
    resolutions: Vec<ResolutionInfo>,
    others: Vec<(String, String)>,
}

impl Info {
    /// Describes a dataset with these time steps.
    pub fn of(dataset: &Dataset, steps: &[Option<u64>]) -> Self {
        let header = dataset.header();
        let of_axes = |of: &[u64]| of[..header.rank].iter().rev().copied().collect::<Vec<u64>>();
        let counts: Vec<u64> = header.start.iter().zip(header.end).map(|(start, end)| end - start).collect();
        let samples = raddle_core::plan::extent::product(&counts).unwrap_or(u64::MAX);
        let first = steps.first().copied().flatten();
        let order = |number: usize| dataset.stored_order(number, first).unwrap_or(header.likely_order(number));
        let field = |(number, field): (usize, &raddle_idx::Field)| FieldInfo {
            name: field.name.clone(),
            sample: field.sample.to_string(),
            compression: field.attribute("default_compression").unwrap_or("none").to_owned(),
            order: match order(number) {
                raddle_idx::dataset::grid::Layout::Hz => "hz",
                raddle_idx::dataset::grid::Layout::RowMajor => "rows",
            },
            len_bytes: samples.saturating_mul(field.sample.len_bytes() as u64),
            is_read_by_openvisus: field.sample.is_read_by_openvisus(),
        };
        let resolution = |resolution: u32| {
            let shape = header.grid(resolution).map_or(vec![0; header.rank], |grid| of_axes(&grid.counts));
            ResolutionInfo { resolution, shape }
        };
        Self {
            path: escape::path(dataset.path()),
            version: header.version,
            shape: of_axes(&counts),
            start: of_axes(&header.start),
            bitmask: header.bitmask.to_string(),
            bits_per_block: header.bits_per_block,
            blocks_per_file: header.blocks_per_file,
            files: header.files.text().to_owned(),
            steps: steps.iter().filter_map(|step| *step).collect(),
            fields: header.fields.iter().enumerate().map(field).collect(),
            resolutions: (0..=header.bitmask.max_level()).map(resolution).collect(),
            others: header.others.clone(),
        }
    }

    /// Formats the description.
    pub fn text(&self) -> String {
        let product = |shape: &[u64]| shape.iter().map(|count| quantity::count(*count)).collect::<Vec<_>>().join(" x ");
        let mut text = format!(
            "{}: IDX version {}, {} samples of {}\n  bitmask {}, {} samples per block, {} per file, files {}\n",
            self.path,
            self.version,
            product(&self.shape),
            quantity::counted(self.fields.len() as u64, "field"),
            self.bitmask,
            quantity::count(1 << self.bits_per_block),
            quantity::counted(self.blocks_per_file, "block"),
            escape::text(&self.files),
        );
        if let (Some(first), Some(last)) = (self.steps.first(), self.steps.last()) {
            let count = quantity::counted(self.steps.len() as u64, "time step");
            text.push_str(&format!("  {count}, {first} to {last}\n"));
        }
        let titles = [
            ("field", Align::Left),
            ("samples", Align::Left),
            ("compression", Align::Left),
            ("order", Align::Left),
            ("uncompressed", Align::Right),
        ];
        let mut fields = Columns::new(&titles);
        for field in self.fields.iter().take(MAX_TABLE_ROWS) {
            let name = escape::shorten(&escape::text(&field.name)).into_owned();
            let compression = escape::shorten(&escape::text(&field.compression)).into_owned();
            fields.row(&[
                name,
                field.sample.clone(),
                compression,
                field.order.to_owned(),
                quantity::size(field.len_bytes),
            ]);
        }
        let mut resolutions = Columns::new(&[("resolution", Align::Right), ("samples", Align::Left)]);
        for of in &self.resolutions {
            resolutions.row(&[of.resolution.to_string(), product(&of.shape)]);
        }
        text.push_str(&format!("\n{}", fields.render()));
        let unread = self.fields.iter().filter(|field| !field.is_read_by_openvisus);
        text.push_str(&not_for_openvisus(unread.map(|field| field.name.as_str())));
        text.push_str(&format!("\n{}", resolutions.render()));
        text
    }
}

/// Formats the result of a verification.
pub fn verified(path: &Path, outcome: &Outcome) -> String {
    let DatasetCheck { checks, missing_steps, is_stopped } = &outcome.check;
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
        let titles =
            [("field", Align::Left), ("step", Align::Right), ("block", Align::Right), ("what is wrong", Align::Left)];
        let mut columns = Columns::new(&titles);
        for block in checks.iter().flat_map(|check| &check.bad).take(MAX_TABLE_ROWS) {
            columns.row(&[
                escape::shorten(&escape::text(&block.field)).into_owned(),
                block.time.map_or_else(|| "-".to_owned(), |step| step.to_string()),
                quantity::count(block.block),
                format!("{}: {}", escape::path(&block.path), escape::text(&block.why)),
            ]);
        }
        let rest = match bad.checked_sub(MAX_TABLE_ROWS as u64) {
            Some(more @ 1..) => format!(" … and {} more\n", quantity::count(more)),
            _ => String::new(),
        };
        let count = quantity::counted(bad, "block");
        let stopped = if *is_stopped { "; stopped checking" } else { "" };
        return format!(
            "DAMAGED: {path}: {missing}{count} missing or damaged, {good} good{stopped}\n{}{rest}",
            columns.render()
        );
    }
    let Comparison { unequal, rounded, not_compared } = &outcome.comparison;
    if !outcome.comparison.is_equal() {
        return not_equal(&path, unequal, not_compared);
    }
    match (outcome.is_compared, rounded.is_empty()) {
        (false, _) => format!("whole: {path}: {good}\n"),
        (true, true) => format!("equal: {path}: {good}\n"),
        (true, false) => format!("equal except for rounding: {path}: {good}\n{}", as_rounded(rounded)),
    }
}

/// Formats the differences of rounded fields from their inputs.
fn as_rounded(rounded: &[Rounded]) -> String {
    let titles = [
        ("field", Align::Left),
        ("step", Align::Right),
        ("compression", Align::Left),
        ("largest difference", Align::Right),
    ];
    let mut columns = Columns::new(&titles);
    for of in rounded.iter().take(MAX_TABLE_ROWS) {
        columns.row(&[
            escape::shorten(&escape::text(&of.field)).into_owned(),
            of.time.map_or_else(|| "-".to_owned(), |step| step.to_string()),
            escape::shorten(&escape::text(&of.compression)).into_owned(),
            quantity::number(of.largest_difference),
        ]);
    }
    columns.render()
}

/// Formats the fields of the dataset at `path` (already escaped) that differ from their inputs, or that have none.
pub fn not_equal(path: &str, unequal: &[Unequal], not_compared: &[NotCompared]) -> String {
    let step = |step: Option<u64>| step.map_or_else(|| "-".to_owned(), |step| step.to_string());
    let mut text = String::new();
    if !unequal.is_empty() {
        let titles =
            [("field", Align::Left), ("step", Align::Right), ("samples", Align::Right), ("input", Align::Left)];
        let mut columns = Columns::new(&titles);
        for unequal in unequal.iter().take(MAX_TABLE_ROWS) {
            columns.row(&[
                escape::shorten(&escape::text(&unequal.field)).into_owned(),
                step(unequal.time),
                quantity::count(unequal.samples),
                escape::path(&unequal.input),
            ]);
        }
        text = format!("NOT EQUAL: {path}: samples differ from those of the inputs\n{}", columns.render());
    }
    if !not_compared.is_empty() {
        let mut columns = Columns::new(&[("field", Align::Left), ("steps", Align::Right)]);
        for left in not_compared.iter().take(MAX_TABLE_ROWS) {
            let steps = match left.time {
                Some((first, last)) if first != last => format!("{first} to {last}"),
                time => step(time.map(|(first, _)| first)),
            };
            columns.row(&[escape::shorten(&escape::text(&left.field)).into_owned(), steps]);
        }
        let rest = match not_compared.len().checked_sub(MAX_TABLE_ROWS) {
            Some(more @ 1..) => format!(" … and {} more\n", quantity::count(more as u64)),
            _ => String::new(),
        };
        let what = "not everything in it was compared; give inputs for these as well";
        text.push_str(&format!("NOT COMPARED: {path}: {what}\n{}{rest}", columns.render()));
    }
    text
}
