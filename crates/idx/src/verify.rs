//! Verification of an output: everything that is stored must decode and, if there are inputs, equal them.

use crate::compare::{Comparison, compare};
use crate::inputs::{Inputs, RowArray};
use crate::read::dataset::Readers;
use crate::targets::{TargetCheck, open};
use serde::Serialize;
use std::path::Path;

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verification {
    /// Result of checking the stored blocks or chunks.
    #[serde(flatten)]
    pub check: TargetCheck,
    /// Comparison of fields with their inputs.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Whether there were inputs to compare with.
    pub is_compared: bool,
}

impl Verification {
    /// Returns whether no error was found.
    pub fn is_good(&self) -> bool {
        self.check.is_whole() && self.comparison.is_equal()
    }
}

/// Verifies the output at `path`. `open_inputs` opens the inputs to compare with; it is called if nothing is missing or
/// damaged.
///
/// # Errors
/// If the output or an input cannot be opened, an input cannot be read, or the output has other fields, counts or time
/// steps than the inputs. Missing and damaged parts and different samples are in the result.
pub fn verify<A: RowArray>(
    path: &Path,
    open_inputs: Option<impl FnOnce() -> Result<Inputs<A>, A::Error>>,
    readers: &Readers<'_>,
) -> Result<Verification, A::Error> {
    let output = open(path)?;
    let check = output.check(readers)?;
    let is_compared = open_inputs.is_some();
    let comparison = match open_inputs {
        Some(open_inputs) if check.is_whole() => compare(path, output.as_ref(), &open_inputs()?, readers)?,
        _ => Comparison::default(),
    };
    Ok(Verification { check, comparison, is_compared })
}
