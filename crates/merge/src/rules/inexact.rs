//! The error for a value that has no counterpart in the output.

use std::fmt;

/// Value that cannot be converted to one of the output.
#[derive(Debug, Clone, PartialEq)]
pub struct Inexact {
    /// Value, as stored.
    pub value: String,
    /// Reason.
    pub reason: String,
}

impl Inexact {
    pub(super) fn new(value: &dyn fmt::Display, reason: impl Into<String>) -> Self {
        Self { value: value.to_string(), reason: reason.into() }
    }
}
