//! Inputs that the file to append to already contains.

use super::APPENDING;
use crate::error::Result;
use crate::verify::digests::StoredDigests;
use crate::write::ranks::share;
use crate::write::resume::{earlier_sample, sample};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_hdf5::source::InputFile;
use std::path::{Path, PathBuf};

/// Maximum number of bytes that are compared to find out whether an input is one of those in the file.
const MAX_COMPARED_BYTES: u64 = 256 << 20;
/// Number of bytes that are compared at a time.
const COMPARED_BLOCK_BYTES: usize = 1 << 20;

/// Collective. Returns the `inputs` that are already in the file, with their recorded paths. One of the `ranks` checks each.
pub(super) fn repeated(
    stored: &StoredDigests,
    inputs: &[PathBuf],
    ranks: &dyn Communicator,
) -> Result<Vec<(PathBuf, PathBuf)>> {
    let found: Result<Vec<(u64, u64)>> = share(ranks, inputs.len()).try_fold(Vec::new(), |mut found, input| {
        // Every rank has the list of inputs in the file, so its index is enough.
        let number = find(stored, &inputs[input])?;
        found.extend(number.map(|number| (input as u64, number as u64)));
        Ok(found)
    });
    let found = ranks.agree(APPENDING, found)?;
    let mut all = ranks.all_gather_values(APPENDING, &found)?.concat();
    all.sort_unstable();
    let path = |(input, number): (u64, u64)| {
        Some((inputs.get(input as usize)?.clone(), stored.inputs.get(number as usize)?.0.clone()))
    };
    Ok(all.into_iter().filter_map(path).collect())
}

/// Returns the number of the input in the file that `input` repeats; `None` if it repeats none.
fn find(stored: &StoredDigests, input: &Path) -> Result<Option<usize>> {
    let Ok(metadata) = std::fs::metadata(input) else { return Ok(None) };
    let mut input_samples = None;
    for (number, (known, len_bytes)) in stored.inputs.iter().enumerate() {
        if *len_bytes != metadata.len() {
            continue;
        }
        let is_same = match stored.samples.get(number) {
            Some(known_sample) => {
                if input_samples.is_none() {
                    let file = InputFile::open(input)?;
                    input_samples = Some([sample(&file)?, earlier_sample(&file)?].map(|digest| digest.crc64_nvme()));
                }
                input_samples.is_some_and(|samples| samples.contains(known_sample))
                    && !is_other(input, known, *known_sample)?
            }
            // The file was written by a version that took no samples.
            None => known == input,
        };
        if is_same {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Returns whether the input at `known` still exists with the sample `known_sample`, and has other bytes than `input`.
fn is_other(input: &Path, known: &Path, known_sample: u64) -> Result<bool> {
    let Ok(known) = InputFile::open(known) else { return Ok(false) };
    let input = InputFile::open(input)?;
    let is_unchanged = sample(&known).is_ok_and(|found| found.crc64_nvme() == known_sample);
    if !is_unchanged || known.len_bytes() != input.len_bytes() {
        return Ok(false);
    }
    let mut blocks = [Vec::new(), Vec::new()];
    for start in (0..input.len_bytes().min(MAX_COMPARED_BYTES)).step_by(COMPARED_BLOCK_BYTES) {
        let len = (input.len_bytes() - start).min(COMPARED_BLOCK_BYTES as u64);
        for (file, block) in [&input, &known].into_iter().zip(&mut blocks) {
            block.resize(len as usize, 0);
            file.read_exact_at(start, block, "its content")?;
        }
        if blocks[0] != blocks[1] {
            return Ok(true);
        }
    }
    Ok(false)
}
