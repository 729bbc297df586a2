//! Formatting of results as text. Nothing here reads files or decides anything.

pub mod apply;
pub mod counts;
pub mod differences;
pub mod events;
pub mod histogram;
pub mod idx;
pub mod idx_plan;
pub mod inspection;
pub mod keys;
pub mod measurement;
pub mod picture;
pub mod plan;
pub mod preview;
pub mod references;
pub mod report;
pub mod simulation;
pub mod summary;
pub mod table;
pub mod zarr;

pub use raddle_report::{escape, quantity};

/// Formats `value` as indented JSON with a final newline.
pub fn json(value: &impl serde::Serialize) -> String {
    // A value that cannot be encoded is a defect, and is reported as one: an empty text would hide it.
    let mut text =
        serde_json::to_string_pretty(value).unwrap_or_else(|error| panic!("a report that is not JSON: {error}"));
    text.push('\n');
    text
}
