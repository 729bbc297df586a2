//! States of inputs that are read several times before or during a merge.
//!
//! Invariant: facts that were determined from the values of a file are only applied to the same, unchanged file.

use super::PlannedInput;
use crate::error::Result;
use crate::options::MergeOptions;
use raddle_core::pooled_file::FileIdentity;
use raddle_hdf5::Hdf5Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Identities of inputs when they were first scanned.
#[derive(Debug, Default)]
pub struct InputStates(BTreeMap<PathBuf, FileIdentity>);

impl InputStates {
    /// Records the states of scanned inputs.
    pub fn of(inputs: &[PlannedInput]) -> Self {
        Self(inputs.iter().map(|input| (input.path.clone(), input.identity)).collect())
    }

    /// Returns the states that are known before a merge of `inputs` is planned: that of the only input if its rows were
    /// selected.
    pub(crate) fn before(inputs: &[PathBuf], options: &MergeOptions) -> Self {
        let selected = options.rows.as_ref().and_then(|rows| rows.input);
        Self(inputs.first().cloned().zip(selected).into_iter().collect())
    }

    /// Checks that newly scanned inputs are the known ones and have not changed. The first scan makes them known.
    ///
    /// # Errors
    /// [`Hdf5Error::Changed`] for the first input that differs.
    pub fn check(&mut self, inputs: &[PlannedInput]) -> Result<()> {
        let found = Self::of(inputs);
        if self.0.is_empty() {
            *self = found;
            return Ok(());
        }
        let is_same = |path: &Path| match (self.0.get(path), found.0.get(path)) {
            (Some(known), Some(now)) => known.is_unchanged(now),
            _ => false,
        };
        match self.0.keys().chain(found.0.keys()).find(|path| !is_same(path)) {
            Some(path) => {
                let what = "it is not the file that was scanned";
                Err(Hdf5Error::Changed { path: path.clone(), what }.into())
            }
            None => Ok(()),
        }
    }
}
