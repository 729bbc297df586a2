//! A box in two row-major buffers, as lines of runs: both buffers hold a run as one piece, and the runs of a line lie
//! at equal distances.
//!
//! Trailing axes that are complete in both buffers belong to the run. A line extends along the last axis before them
//! with more than one element.

use super::axes::MAX_RANK;
use smallvec::SmallVec;

/// Shape of a buffer, and the first element of the box in it, per axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub shape: &'a [u64],
    pub origin: &'a [u64],
}

/// Lines of a box in two buffers, in row-major order. Offsets and distances are in bytes.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Length of each run.
    pub run_len_bytes: u64,
    /// Number of runs of each line.
    pub run_count: u64,
    /// Distance of consecutive runs of a line, in each buffer.
    pub strides: [u64; 2],
    /// Offset of the first line in each buffer.
    first: [u64; 2],
    /// Axes across the lines: number of elements, and their distance in each buffer.
    across: SmallVec<[(u64, [u64; 2]); 4]>,
}

impl Lines {
    /// Divides a box of `count` elements of `element_len_bytes` each. The box must have elements and at most
    /// [`MAX_RANK`] axes, and lie in both buffers. The length of each buffer in bytes must fit 64 bits.
    pub(crate) fn new(count: &[u64], element_len_bytes: u64, places: [Place<'_>; 2]) -> Self {
        let rank = count.len();
        debug_assert!(rank <= MAX_RANK && !count.contains(&0));
        let mut run_len_bytes = element_len_bytes;
        let mut outer = rank;
        while outer > 0 {
            outer -= 1;
            run_len_bytes *= count[outer];
            if places.iter().any(|place| place.shape[outer] != count[outer]) {
                break;
            }
        }
        let mut strides = [[0; 2]; MAX_RANK];
        let mut first = [0; 2];
        for (side, place) in places.iter().enumerate() {
            let mut stride = element_len_bytes;
            for axis in (0..rank).rev() {
                strides[axis][side] = stride;
                first[side] += place.origin[axis] * stride;
                stride *= place.shape[axis];
            }
        }
        let mut across: SmallVec<[(u64, [u64; 2]); 4]> =
            (0..outer).filter(|axis| count[*axis] > 1).map(|axis| (count[axis], strides[axis])).collect();
        let (run_count, along) = across.pop().unwrap_or((1, [0; 2]));
        Self { run_len_bytes, run_count, strides: along, first, across }
    }

    /// Calls `line` with the offsets of the first run of each line in both buffers. Ends with the first error.
    pub(crate) fn try_for_each<E>(&self, mut line: impl FnMut([u64; 2]) -> Result<(), E>) -> Result<(), E> {
        let mut at = self.first;
        let mut done: SmallVec<[u64; 4]> = smallvec::smallvec![0; self.across.len()];
        loop {
            line(at)?;
            let mut axis = self.across.len();
            loop {
                if axis == 0 {
                    return Ok(());
                }
                axis -= 1;
                let (count, strides) = self.across[axis];
                done[axis] += 1;
                let is_inside = done[axis] < count;
                for (at, stride) in at.iter_mut().zip(strides) {
                    *at = if is_inside { *at + stride } else { *at - stride * (count - 1) };
                }
                if is_inside {
                    break;
                }
                done[axis] = 0;
            }
        }
    }
}

/// Copies `count` runs of `run_len_bytes` between buffers that hold them at `target_stride` and `source_stride`.
pub(crate) fn copy_runs(
    (target, target_stride): (&mut [u8], usize),
    (source, source_stride): (&[u8], usize),
    run_len_bytes: usize,
    count: usize,
) {
    match run_len_bytes {
        _ if count == 1 => target[..run_len_bytes].copy_from_slice(&source[..run_len_bytes]),
        1 => copy_short_runs::<1>(target, target_stride, source, source_stride, count),
        2 => copy_short_runs::<2>(target, target_stride, source, source_stride, count),
        4 => copy_short_runs::<4>(target, target_stride, source, source_stride, count),
        8 => copy_short_runs::<8>(target, target_stride, source, source_stride, count),
        12 => copy_short_runs::<12>(target, target_stride, source, source_stride, count),
        16 => copy_short_runs::<16>(target, target_stride, source, source_stride, count),
        _ => {
            for run in 0..count {
                let (to, from) = (run * target_stride, run * source_stride);
                target[to..to + run_len_bytes].copy_from_slice(&source[from..from + run_len_bytes]);
            }
        }
    }
}

/// Copies runs whose length the compiler knows, so that each is a load and a store instead of a call.
fn copy_short_runs<const LEN: usize>(
    target: &mut [u8],
    target_stride: usize,
    source: &[u8],
    source_stride: usize,
    count: usize,
) {
    let runs = source.chunks(source_stride).zip(target.chunks_mut(target_stride)).take(count);
    for (from, to) in runs {
        to[..LEN].copy_from_slice(&from[..LEN]);
    }
}
