//! Differences between an output and its inputs as text.

use super::MAX_TABLE_ROWS;
use crate::render::table::{CellAlign, Columns};
use crate::render::{escape, quantity};
use raddle_idx::compare::{Comparison, RoundedField};

/// Formats the differences of rounded fields from their inputs.
pub(super) fn as_rounded(rounded: &[RoundedField]) -> String {
    let titles = [
        ("field", CellAlign::Left),
        ("step", CellAlign::Right),
        ("compression", CellAlign::Left),
        ("largest difference", CellAlign::Right),
    ];
    let mut columns = Columns::new(&titles);
    columns.rows(rounded, MAX_TABLE_ROWS, |of| {
        [
            escape::shorten(&escape::text(&of.field)).into_owned(),
            of.time.map_or_else(|| "-".to_owned(), |step| step.to_string()),
            escape::shorten(&escape::text(&of.compression)).into_owned(),
            quantity::number(of.largest_difference),
        ]
    });
    columns.render()
}

/// Formats the fields of the dataset at `path` (already escaped) that differ from their inputs, or that have none.
pub(super) fn not_equal(path: &str, comparison: &Comparison) -> String {
    let Comparison { unequal, not_compared, .. } = comparison;
    let step = |step: Option<u64>| step.map_or_else(|| "-".to_owned(), |step| step.to_string());
    let mut text = String::new();
    if !unequal.is_empty() {
        let titles = [
            ("field", CellAlign::Left),
            ("step", CellAlign::Right),
            ("samples", CellAlign::Right),
            ("input", CellAlign::Left),
        ];
        let mut columns = Columns::new(&titles);
        columns.rows(unequal, MAX_TABLE_ROWS, |unequal| {
            [
                escape::shorten(&escape::text(&unequal.field)).into_owned(),
                step(unequal.time),
                quantity::count(unequal.samples),
                escape::path(&unequal.input),
            ]
        });
        text = format!("NOT EQUAL: {path}: samples differ from those of the inputs\n{}", columns.render());
    }
    if !not_compared.is_empty() {
        let mut columns = Columns::new(&[("field", CellAlign::Left), ("steps", CellAlign::Right)]);
        columns.rows(not_compared, MAX_TABLE_ROWS, |left| {
            let steps = match left.time {
                Some((first, last)) if first != last => format!("{first} to {last}"),
                time => step(time.map(|(first, _)| first)),
            };
            [escape::shorten(&escape::text(&left.field)).into_owned(), steps]
        });
        let what = "not everything in it was compared; give inputs for these as well";
        text.push_str(&format!("NOT COMPARED: {path}: {what}\n{}", columns.render()));
    }
    text
}
