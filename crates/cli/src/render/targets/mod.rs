//! Outputs of `raddle idx` as text, whatever their format.

mod comparison;
mod idx;
mod zarr;

pub use idx::updated;

use raddle_idx::inputs::FinishedOutput;
use raddle_idx::targets::{Description, TargetCheck, WrittenLayout};
use raddle_idx::verify::Verification;
use std::path::Path;

/// Maximum number of lines of a table.
const MAX_TABLE_ROWS: usize = 50;

/// Formats a summary of the written data.
pub fn written(written: &FinishedOutput) -> String {
    match &written.layout {
        WrittenLayout::Idx(header) => idx::written(header, &written.reports),
        WrittenLayout::Zarr(layout) => zarr::written(layout, &written.reports),
    }
}

/// Formats the description of an output.
pub fn described(description: &Description) -> String {
    match description {
        Description::Idx(info) => idx::described(info),
        Description::Zarr(info) => zarr::described(info),
    }
}

/// Formats the result of verifying the output at `path`.
pub fn verified(path: &Path, outcome: &Verification) -> String {
    match &outcome.check {
        TargetCheck::Idx(check) => idx::verified(path, check, outcome),
        TargetCheck::Zarr(check) => zarr::verified(path, check, outcome),
    }
}
