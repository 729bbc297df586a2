//! Reads boxes of compact and contiguous datasets, and parts of blocks of the file that hold an array without filters.

use super::counts::ReadCounts;
use super::stride::{BoxOffset, Runs};
use super::{BoxRead, DatasetSource};
use crate::error::{Hdf5Error, Result};
use crate::source::InputFile;
use raddle_core::plan::extent::{BoxSource, BoxTarget, copy_box};
use std::time::Instant;

/// Maximum gap between two ranges that are read at once: copying 4 KiB in excess (0.4 µs) costs no more than another
/// pread.
pub(crate) const MAX_GAP_LEN_BYTES: u64 = 4096;

/// Minimum length of a run that is read directly to its place: the fixed cost of a pread (about 0.5 µs) is then below 5
/// %.
const DIRECT_LEN_BYTES: u64 = 64 * 1024;

/// Copies a box out of values in the object header.
pub(super) fn read_compact(
    source: &DatasetSource<'_>,
    target: &BoxRead<'_>,
    values: &[u8],
    out: &mut [u8],
) -> Result<ReadCounts> {
    let dims = source.dataset.dataspace.dims();
    let needed = source.value_len_bytes()?;
    if (values.len() as u64) < needed {
        return Err(too_short(source, 0, values.len() as u64, needed));
    }
    let element_len = source.dataset.datatype.class.len_bytes();
    let from = BoxSource { bytes: values, shape: dims, origin: target.start };
    let to = BoxTarget { bytes: out, shape: target.out_shape, origin: target.out_origin };
    copy_box(from, to, target.count, element_len as usize)
        .map_err(|_| source.outside(target.start, target.count))
        .map(|()| ReadCounts::default())
}

/// Reads a box out of a contiguous block of the file, through a buffer for reads of up to `read_len_bytes`.
pub(super) fn read_contiguous(
    source: &DatasetSource<'_>,
    target: &BoxRead<'_>,
    (address, len_bytes): (u64, u64),
    (buffer, read_len_bytes): (&mut Vec<u8>, u64),
    out: &mut [u8],
) -> Result<ReadCounts> {
    let needed = source.value_len_bytes()?;
    if len_bytes < needed {
        return Err(too_short(source, address, len_bytes, needed));
    }
    source.file.check_range(address, needed, "contiguous data")?;
    let started = Instant::now();
    let from = BoxOffset { shape: source.dataset.dataspace.dims(), origin: target.start };
    let runs = Runs::new(target.count, from, target.place(), source.dataset.datatype.class.len_bytes());
    let block = FileBlock { file: source.file, address, what: "contiguous data" };
    let stored_len_bytes = block.read_runs(runs, (buffer, read_len_bytes), out)?;
    Ok(ReadCounts { stored_len_bytes, read_s: started.elapsed().as_secs_f64(), ..ReadCounts::default() })
}

/// A block of the file that holds an array as it is in memory: a contiguous dataset, or a chunk without filters.
pub(super) struct FileBlock<'a> {
    pub file: &'a InputFile,
    pub address: u64,
    /// Name of the block in errors.
    pub what: &'a str,
}

impl FileBlock<'_> {
    /// Reads runs of the block to their places in `out`, through a buffer for reads of up to `read_len_bytes`. Returns
    /// the number of bytes read.
    pub fn read_runs(
        &self,
        mut runs: Runs<'_>,
        (buffer, read_len_bytes): (&mut Vec<u8>, u64),
        out: &mut [u8],
    ) -> Result<u64> {
        let Self { file, address, what } = *self;
        let mut stored_len_bytes = 0;
        let run_len = runs.run_len_bytes();
        let mut pending = runs.next();
        while let Some((first, to)) = pending {
            if run_len >= DIRECT_LEN_BYTES {
                let place = &mut out[to as usize..(to + run_len) as usize];
                file.read_exact_at(address + first, place, what)?;
                stored_len_bytes += run_len;
                pending = runs.next();
                continue;
            }
            // Find how many runs lie close together with a copy of the iterator, then read once and copy each run.
            let mut end = first + run_len;
            let ahead = Runs::clone(&runs);
            for (at, _) in ahead {
                if at - end > MAX_GAP_LEN_BYTES || at + run_len - first > read_len_bytes {
                    break;
                }
                end = at + run_len;
            }
            buffer.resize((end - first) as usize, 0);
            file.read_exact_at(address + first, buffer, what)?;
            stored_len_bytes += end - first;
            while let Some((at, to)) = pending
                && at < end
            {
                let run = &buffer[(at - first) as usize..(at - first + run_len) as usize];
                out[to as usize..(to + run_len) as usize].copy_from_slice(run);
                pending = runs.next();
            }
        }
        Ok(stored_len_bytes)
    }
}

fn too_short(source: &DatasetSource<'_>, address: u64, len_bytes: u64, needed: u64) -> Hdf5Error {
    Hdf5Error::Malformed {
        path: source.file.path().to_path_buf(),
        address,
        what: format!("storage of {len_bytes} bytes for values of {needed}"),
    }
}
