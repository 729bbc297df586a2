//! Digests that inputs hold of their own values, and comparison of the output with them: an input that was damaged after
//! raddle wrote it is refused, instead of being copied with new digests that match the damage.
//!
//! Digests of consecutive rows combine, so the values need not be read again. Invariant: rows are compared only if they
//! are in the output in order and as they are stored in the inputs.

use super::blocks::carried;
use super::structure::structure_digests;
use super::{ColumnDigests, DigestForm, Digests, StoredDigests, stored};
use crate::error::{ChangedValues, MergeError, Result};
use crate::inputs::paths::Paths;
use crate::inputs::reader::InputReader;
use crate::inputs::selection::Selection;
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::scan::{ScannedEntry, ScannedRole};
use crate::schema::{ColumnIndex, display_path};
use crate::verify::plan_file_collective;
use raddle_core::cancel::CancelToken;
use raddle_core::digest::Digest;
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::report::progress::Silent;
use raddle_hdf5::source::InputFile;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

/// Digest of the values of one dataset of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputDigest {
    form: DigestForm,
    digest: Digest,
}

/// Returns the digest of each entry of an input, whose digests are `stored`.
pub(crate) fn of_entries(stored: &StoredDigests, paths: &Paths, entries: &[ScannedEntry]) -> Vec<Option<InputDigest>> {
    let of_entry = |(at, entry): (usize, &ScannedEntry)| {
        let ScannedRole::Column { template, fact, .. } = &entry.role else { return None };
        let digests = stored.datasets.get(paths.get(at))?.digests.as_ref()?;
        let is_of_these_rows = digests.blocks.len() as u64 == fact.rows.div_ceil(digests.block_rows);
        let is_of_values = matches!(digests.form, DigestForm::Values | DigestForm::Canonical);
        let others = template.dataspace.dims().iter().skip(1);
        let row_len_bytes = others.fold(template.datatype.class.len_bytes(), |all, dim| all.saturating_mul(*dim));
        let digest = Digest::of_crc64_nvme(digests.whole, fact.rows.saturating_mul(row_len_bytes));
        (is_of_these_rows && is_of_values).then_some(InputDigest { form: digests.form, digest })
    };
    entries.iter().enumerate().map(of_entry).collect()
}

/// Digests of the values of each dataset, combined over runs of consecutive inputs.
#[derive(Debug, Clone, Default)]
pub struct InputDigests {
    inputs: usize,
    of_datasets: HashMap<Vec<u8>, Vec<CombinedInputs>>,
}

/// Consecutive inputs with digests of a dataset.
#[derive(Debug, Clone)]
struct CombinedInputs {
    inputs: Range<usize>,
    form: DigestForm,
    digest: Digest,
}

/// Digest of a run of rows of the output.
#[derive(Debug, Clone)]
pub struct RowsDigest {
    pub(super) rows: Range<u64>,
    pub(super) digest: Digest,
}

/// Digests of runs of rows, from canonical bytes that arrive in order.
#[derive(Debug)]
pub struct CanonicalRuns {
    runs: Vec<RowsDigest>,
    /// Number of runs that are complete.
    at: usize,
}

impl CanonicalRuns {
    /// Adds rows of one input, the first of which is row `start` of the output.
    pub fn add(&mut self, start: u64, canonical: &[u8]) {
        while self.runs.get(self.at).is_some_and(|run| run.rows.end <= start) {
            self.at += 1;
        }
        if let Some(run) = self.runs.get_mut(self.at).filter(|run| run.rows.start <= start) {
            run.digest = run.digest.then(Digest::of(canonical));
        }
    }

    /// Returns the digests.
    pub fn finish(self) -> Vec<RowsDigest> {
        self.runs
    }
}

/// Rows of a column whose digest is known from inputs.
#[derive(Debug, Clone)]
struct KnownRows {
    rows: Range<u64>,
    inputs: Range<usize>,
    digest: Digest,
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

    /// Returns the offsets in the values of a column at which runs of rows with known digests begin and end.
    pub fn cuts(&self, plan: &MergePlan, column: ColumnIndex) -> Vec<u64> {
        let row_len_bytes = plan.row_len_bytes(column);
        let known = self.known_rows(plan, column, DigestForm::Values);
        known.flat_map(|known| [known.rows.start * row_len_bytes, known.rows.end * row_len_bytes]).collect()
    }

    /// Returns the digests of the runs of rows of which inputs have digests, too; `between` returns the digest of a run of
    /// bytes in the output.
    pub fn runs(
        &self,
        plan: &MergePlan,
        column: ColumnIndex,
        between: impl Fn(Range<u64>) -> Option<Digest>,
    ) -> Vec<RowsDigest> {
        let row_len_bytes = plan.row_len_bytes(column);
        let run = |known: KnownRows| {
            let digest = between(known.rows.start * row_len_bytes..known.rows.end * row_len_bytes)?;
            Some(RowsDigest { rows: known.rows, digest })
        };
        self.known_rows(plan, column, DigestForm::Values).filter_map(run).collect()
    }

    /// Returns empty digests of the runs of rows of which inputs have digests of canonical bytes.
    pub fn canonical_runs(&self, plan: &MergePlan, column: ColumnIndex) -> CanonicalRuns {
        let known = self.known_rows(plan, column, DigestForm::Canonical);
        let empty = known.map(|known| RowsDigest { rows: known.rows, digest: Digest::default() });
        CanonicalRuns { runs: empty.collect(), at: 0 }
    }

    /// Refuses an output whose values have other digests than the inputs. Datasets whose structure also changed were not
    /// damaged but rewritten by another program, and are accepted.
    ///
    /// # Errors
    /// [`MergeError::ChangedValues`].
    pub fn compare(&self, plan: &MergePlan, digests: &Digests) -> Result<()> {
        let mut structures = InputStructures::default();
        let mut differing = (0..).zip(&digests.columns).filter_map(|(column, found)| {
            let found = found.as_ref()?;
            let total = plan.columns[column as usize].dims.first().copied().unwrap_or_default();
            let mut is_changed = |known: &KnownRows| {
                let digest = match known.rows == (0..total) {
                    true => Some(found.whole),
                    false => digests.of_rows(column, &known.rows),
                };
                digest.is_some_and(|digest| digest != known.digest.crc64_nvme())
                    && known.inputs.clone().all(|input| structures.is_as_recorded(plan, column, input))
            };
            let known = self.known_rows(plan, column, found.form).find(|known| is_changed(known))?;
            Some((column, known, found))
        });
        let Some((column, known, found)) = differing.next() else { return Ok(()) };
        let inputs = known.inputs.clone();
        let with_rows = inputs.filter(|input| plan.schema.columns[column as usize].facts[*input].rows > 0);
        Err(MergeError::ChangedValues(ChangedValues {
            inputs: with_rows.map(|input| plan.inputs[input].path.clone()).collect(),
            object: display_path(plan.schema.column_path(column)),
            rows: differing_rows(plan, column, found),
            others: differing.count() as u64,
        }))
    }

    /// Returns the runs of rows of a column that are copied from inputs with digests of this form.
    fn known_rows<'a>(
        &'a self,
        plan: &'a MergePlan,
        column: ColumnIndex,
        form: DigestForm,
    ) -> impl Iterator<Item = KnownRows> + 'a {
        let combined = self.of_datasets.get(plan.schema.column_path(column));
        let combined = combined.filter(|_| is_copied(plan, column)).map_or(&[][..], Vec::as_slice);
        let facts = &plan.schema.columns[column as usize].facts;
        let rows_of = move |inputs: Range<usize>| inputs.map(|input| facts[input].rows).sum::<u64>();
        let (row_len_bytes, total) = (plan.row_len_bytes(column), plan.columns[column as usize].dims.first().copied());
        let is_joined = combined.is_empty() || Some(rows_of(0..facts.len())) == total;
        let (mut input, mut row) = (0, 0);
        combined.iter().filter(move |one| is_joined && one.form == form).filter_map(move |one| {
            row += rows_of(input..one.inputs.start);
            let rows = row..row + rows_of(one.inputs.clone());
            (input, row) = (one.inputs.end, rows.end);
            let len_bytes = (rows.end - rows.start).saturating_mul(row_len_bytes);
            let known = KnownRows { rows, inputs: one.inputs.clone(), digest: one.digest };
            (len_bytes > 0 && len_bytes == one.digest.len_bytes()).then_some(known)
        })
    }
}

/// Returns whether a column consists of the rows of the inputs, one after another and as they are stored.
fn is_copied(plan: &MergePlan, column: ColumnIndex) -> bool {
    let joined = &plan.schema.columns[column as usize];
    let is_computed = plan.derived.has(column) || carried(plan, column).is_some();
    // References to rows change if the rows of other inputs precede them.
    let is_alone = plan.inputs.len() == 1;
    !is_computed
        && (is_alone || joined.axis == 0 && !joined.model().datatype.class.has_reference())
        && joined.conversion.is_none()
        && joined.trims.is_none()
        && joined.runs.is_none()
        && joined.boxes.is_none()
        && joined.templates.iter().all(|template| template.datatype == joined.model().datatype)
}

/// Structures of the datasets of inputs, computed only for inputs whose values differ from their digests.
#[derive(Default)]
struct InputStructures {
    /// Paths of the datasets whose structure is as recorded, indexed by input.
    as_recorded: HashMap<usize, HashSet<Vec<u8>>>,
}

impl InputStructures {
    /// Returns whether the type, dimensions, fill value and attributes of a dataset are those that its input recorded.
    fn is_as_recorded(&mut self, plan: &MergePlan, column: ColumnIndex, input: usize) -> bool {
        let of_input = || of_structures_as_recorded(plan, &plan.inputs[input].path).unwrap_or_default();
        self.as_recorded.entry(input).or_insert_with(of_input).contains(plan.schema.column_path(column))
    }
}

fn of_structures_as_recorded(plan: &MergePlan, input: &Path) -> Result<HashSet<Vec<u8>>> {
    let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
    let found = plan_file_collective(input, Selection::default(), &plan.options, &watch, &SingleProcess)?;
    let Some(stored) = digests_of(plan, input) else { return Ok(HashSet::new()) };
    let entries = found.schema.entries.iter().zip(structure_digests(&found));
    let as_recorded = entries.filter(|(entry, structure)| {
        stored.datasets.get(&entry.path).is_some_and(|recorded| recorded.structure == *structure)
    });
    Ok(as_recorded.map(|(entry, _)| entry.path.clone()).collect())
}

/// Returns the digests that an input holds, if they can be read.
fn digests_of(plan: &MergePlan, input: &Path) -> Option<StoredDigests> {
    let (file, reader) = (InputFile::open(input).ok()?, InputReader::new(&plan.options));
    stored::usable(&file, &reader.read_whole_tree(input).ok()?, &reader)
}

/// Returns the rows between the first and the last block that differ, if the only input has digests of the same blocks.
fn differing_rows(plan: &MergePlan, column: ColumnIndex, found: &ColumnDigests) -> Option<Range<u64>> {
    let [input] = &plan.inputs[..] else { return None };
    let stored = digests_of(plan, &input.path)?;
    let known = stored.datasets.get(plan.schema.column_path(column))?.digests.as_ref()?;
    if (known.block_rows, known.blocks.len()) != (found.block_rows, found.blocks.len()) {
        return None;
    }
    let mut pairs = known.blocks.iter().zip(&found.blocks);
    let first = pairs.clone().position(|(known, found)| known != found)? as u64;
    let last = pairs.rposition(|(known, found)| known != found)? as u64;
    let rows = *plan.columns[column as usize].dims.first()?;
    Some(first * known.block_rows..((last + 1) * known.block_rows).min(rows))
}
