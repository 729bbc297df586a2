//! Text about errors and plans: tables for people, and JSON for programs.

pub mod differences;
pub mod key_faults;
pub mod keywords;
pub mod table;

pub use raddle_report::{escape, quantity};

/// Formats `value` as indented JSON with a final newline.
///
/// # Panics
/// If the value cannot be encoded, which is a defect.
pub fn json(value: &impl serde::Serialize) -> String {
    // An empty string would hide the defect.
    let mut text =
        serde_json::to_string_pretty(value).unwrap_or_else(|error| panic!("a report that is not JSON: {error}"));
    text.push('\n');
    text
}
