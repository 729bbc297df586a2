//! The interface of an output that is compared with inputs, and how much it may differ from them.

use super::outcome::StepRuns;
use crate::dataset::compression::Compression;
use crate::error::Result;
use crate::inputs::InputLayout;
use crate::read::dataset::Readers;
use raddle_codec::ZfpMode;
use std::fmt::Debug;
use std::ops::Range;

/// Allowed difference between samples and those of the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// No difference.
    Exact,
    /// Difference of at most this value.
    Within(f64),
    /// Any finite difference: finite numbers stay finite.
    Finite,
}

impl Tolerance {
    /// Returns the difference that a compression allows.
    pub(crate) fn of(compression: Option<Compression>) -> Self {
        match compression {
            Some(Compression::Zfp(ZfpMode::Accuracy(tolerance))) => Self::Within(tolerance),
            Some(Compression::Zfp(ZfpMode::Precision(_))) => Self::Finite,
            _ => Self::Exact,
        }
    }

    /// Returns whether samples may differ by `difference`.
    pub(crate) fn allows(self, difference: f64) -> bool {
        match self {
            Self::Exact => false,
            Self::Within(tolerance) => difference <= tolerance,
            Self::Finite => difference.is_finite(),
        }
    }
}

/// An output that is compared with inputs.
pub trait ComparedArrays: Debug + Sync {
    /// Returns the allowed difference of a field's samples, and its compression.
    fn tolerance(&self, field: usize, inputs: &InputLayout) -> (Tolerance, String);

    /// Checks that the output has a field with the name, type, samples and time steps of `inputs`.
    ///
    /// # Errors
    /// If the samples differ. Returns a description of the difference, as the predicate of a sentence.
    fn check_field(&self, field: usize, inputs: &InputLayout) -> Result<(), String>;

    /// Returns the fields of the output, each with its time steps.
    fn contents(&self, inputs: &InputLayout) -> Vec<(String, StepRuns)>;

    /// Reads samples of a field at a time step, x fastest. `field` is the number of the input's field, and `rows`
    /// selects rows of the input.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read_rows(
        &self,
        field: usize,
        time: Option<u64>,
        rows: &Range<u64>,
        inputs: &InputLayout,
        readers: &Readers<'_>,
    ) -> Result<Vec<u8>>;
}
