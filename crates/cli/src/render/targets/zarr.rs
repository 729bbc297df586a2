//! OME-Zarr folders as text.

use super::MAX_TABLE_ROWS;
use super::comparison::not_equal;
use crate::render::table::{CellAlign, Columns};
use crate::render::{escape, quantity};
use raddle_idx::WriteReport;
use raddle_idx::verify::Verification;
use raddle_idx::zarr::{FolderCheck, FolderInfo, ImageCheck, ImageLayout};
use std::path::Path;

/// Formats a summary of the written data, step by step.
pub fn written(form: &ImageLayout, reports: &[WriteReport]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let sum = |of: fn(&WriteReport) -> u64| reports.iter().map(of).sum::<u64>();
    let (samples, stored) = (sum(|report| report.sample_len_bytes), sum(|report| report.stored_len_bytes));
    let elapsed_s: f64 = reports.iter().map(|report| report.elapsed_s).sum();
    let counts: Vec<u64> = form.levels[0].counts[..form.rank()].iter().rev().copied().collect();
    let steps = match form.steps {
        Some(steps) => format!(", {}", quantity::counted(steps, "time step")),
        None => String::new(),
    };
    let ranks = match first.ranks {
        1 => String::new(),
        ranks => format!(" by {ranks} ranks"),
    };
    format!(
        "{}: {} of {} samples{steps}, {} ({})\n  {} in {} of {}, {} of the samples' {}\n  in {} ({}){ranks}\n",
        escape::path(&first.output),
        quantity::counted(form.fields.len() as u64, "image"),
        quantity::shape(&counts),
        quantity::counted(form.levels.len() as u64, "level"),
        form.downsample.name(),
        quantity::size(stored),
        quantity::counted(sum(|report| report.files), "shard"),
        quantity::counted(sum(|report| report.blocks), "chunk"),
        quantity::share(stored, samples),
        quantity::size(samples),
        quantity::seconds(elapsed_s),
        quantity::rate(samples, elapsed_s),
    )
}

/// Formats the description.
pub fn described(info: &FolderInfo) -> String {
    let mut text =
        format!("{}: OME-Zarr, {}\n", escape::text(&info.path), quantity::counted(info.images.len() as u64, "image"));
    for image in &info.images {
        let name = escape::shorten(&escape::text(&image.name)).into_owned();
        let unit = image.unit.as_ref().map(|unit| format!(" in {}", escape::text(unit))).unwrap_or_default();
        let downsampling = image.downsample.as_ref().map(|how| format!(", {}", escape::text(how))).unwrap_or_default();
        let axes = escape::text(&image.axes);
        text.push_str(&format!("\n{name}: {}, axes {axes}{unit}{downsampling}\n", image.dtype));
        let titles = [
            ("level", CellAlign::Right),
            ("samples", CellAlign::Left),
            ("scale", CellAlign::Left),
            ("shard", CellAlign::Left),
            ("chunk", CellAlign::Left),
            ("codec", CellAlign::Left),
        ];
        let mut columns = Columns::new(&titles);
        columns.rows(image.levels.iter().enumerate(), MAX_TABLE_ROWS, |(number, level)| {
            [
                number.to_string(),
                quantity::shape(&level.shape),
                level.scale.iter().map(f64::to_string).collect::<Vec<_>>().join(", "),
                quantity::shape(&level.shard),
                quantity::shape(&level.chunk),
                level.codec.to_owned(),
            ]
        });
        text.push_str(&columns.render());
    }
    text
}

/// Formats the result of a verification.
pub fn verified(folder: &Path, check: &FolderCheck, outcome: &Verification) -> String {
    let checks = &check.checks;
    let sum = |of: fn(&ImageCheck) -> u64| checks.iter().map(of).sum::<u64>();
    let path = escape::path(folder);
    let stored = quantity::size(sum(|check| check.stored_len_bytes));
    let empty = match sum(|check| check.empty_shards) {
        0 => String::new(),
        empty => format!(", {} of zeros not stored", quantity::count(empty)),
    };
    let good = format!("{} with {stored}{empty}", quantity::counted(sum(|check| check.shards), "shard"));
    let bad = sum(|check| check.bad.len() as u64);
    if bad > 0 {
        let mut columns = Columns::new(&[("shard or level", CellAlign::Left), ("what is wrong", CellAlign::Left)]);
        columns.rows(checks.iter().flat_map(|check| &check.bad), MAX_TABLE_ROWS, |bad| {
            let place = bad.path.strip_prefix(folder).unwrap_or(&bad.path);
            [escape::path(place), escape::text(&bad.why).into_owned()]
        });
        let count = quantity::counted(bad, "fault");
        return format!("DAMAGED: {path}: {count}, good: {good}\n{}", columns.render());
    }
    if outcome.comparison.is_equal() {
        let compared = if outcome.is_compared { "equal" } else { "whole" };
        let levels = match checks.iter().all(|check| check.levels_compared) {
            true => "each level matches the one before",
            false => "levels not compared with each other",
        };
        return format!("{compared}: {path}: {good}; {levels}\n");
    }
    not_equal(&path, &outcome.comparison)
}
