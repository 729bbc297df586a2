//! Comparison of the output's digests with those of its inputs: an input that was damaged after raddle wrote it is
//! refused, instead of being copied with new digests that match the damage.

use super::known_rows::{KnownRows, known_rows};
use super::structure::structure_digests;
use super::{ColumnDigests, Digests, StoredDigests, stored};
use crate::error::{ChangedValues, MergeError, Result};
use crate::inputs::reader::InputReader;
use crate::inputs::selection::Selection;
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::{ColumnIndex, display_path};
use crate::verify::plan_file_collective;
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::report::progress::Silent;
use raddle_hdf5::source::InputFile;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

/// Refuses an output whose values have other digests than the inputs. Datasets whose structure also changed were not
/// damaged but rewritten by another program, and are accepted.
///
/// # Errors
/// [`MergeError::ChangedValues`].
pub fn compare(plan: &MergePlan, digests: &Digests) -> Result<()> {
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
        let known = known_rows(plan, column, found.form).find(|known| is_changed(known))?;
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
