//! Digests that inputs hold of their own values, combined over consecutive inputs.

use super::{ColumnDigests, DigestForm};
use crate::inputs::paths::Paths;
use raddle_core::digest::Digest;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;

/// Digest of the values of one dataset of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputDigest {
    form: DigestForm,
    digest: Digest,
}

impl InputDigest {
    /// Returns the digest of a dataset of `rows` rows; `None` if the digests are those of another number of rows, or not
    /// of values.
    pub fn new(digests: &ColumnDigests, rows: u64, row_len_bytes: u64) -> Option<Self> {
        let is_of_these_rows = digests.blocks.len() as u64 == rows.div_ceil(digests.block_rows);
        let is_of_values = matches!(digests.form, DigestForm::Values | DigestForm::Canonical);
        let digest = Digest::of_crc64_nvme(digests.whole, rows.saturating_mul(row_len_bytes));
        (is_of_these_rows && is_of_values).then_some(Self { form: digests.form, digest })
    }
}

/// Digests of the values of each dataset, combined over runs of consecutive inputs.
#[derive(Debug, Clone, Default)]
pub struct InputDigests {
    inputs: usize,
    of_datasets: HashMap<Vec<u8>, Vec<CombinedInputs>>,
}

/// Consecutive inputs with digests of a dataset.
#[derive(Debug, Clone)]
pub(super) struct CombinedInputs {
    pub(super) inputs: Range<usize>,
    pub(super) form: DigestForm,
    pub(super) digest: Digest,
}

impl InputDigests {
    /// Adds the digests of the entries of the next input.
    pub fn add(&mut self, paths: &Paths, digests: &[Option<InputDigest>]) {
        let input = self.inputs;
        self.inputs += 1;
        for (at, found) in digests.iter().enumerate() {
            let Some(InputDigest { form, digest }) = *found else { continue };
            let known = self.of_datasets.entry(paths.get(at).to_vec()).or_default();
            match known.last_mut() {
                // The length of canonical bytes is not recorded, so that their digests cannot be combined.
                Some(last) if last.inputs.end == input && form == DigestForm::Values && last.form == form => {
                    (last.inputs.end, last.digest) = (input + 1, last.digest.then(digest));
                }
                _ => known.push(CombinedInputs { inputs: input..input + 1, form, digest }),
            }
        }
    }

    /// Returns the runs of inputs with digests of a dataset.
    pub(super) fn of_dataset(&self, path: &[u8]) -> &[CombinedInputs] {
        self.of_datasets.get(path).map_or(&[], Vec::as_slice)
    }
}
