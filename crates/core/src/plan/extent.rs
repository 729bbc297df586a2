//! Boxes in n dimensions, and copying of boxes between row-major buffers.
//!
//! Elements are opaque bytes of one length. Invariant: nothing outside the two boxes is read or written; boxes that do
//! not fit are rejected before any byte is copied.

pub use super::axes::{Coordinates, MAX_RANK, product, values_len_bytes};
use super::lines::{Lines, Place, copy_runs};
use crate::error::{CoreError, Result};
use serde::{Deserialize, Serialize};

/// A box, given by start and number of elements per axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Extent {
    /// First element per axis.
    pub start: Coordinates,
    /// Number of elements per axis.
    pub count: Coordinates,
}

impl Extent {
    /// Creates the box of `count` elements at `start`; both must have the same number of axes.
    pub fn new(start: &[u64], count: &[u64]) -> Self {
        debug_assert_eq!(start.len(), count.len());
        Self { start: Coordinates::from_slice(start), count: Coordinates::from_slice(count) }
    }

    /// Creates the box that covers a whole array.
    pub fn whole(shape: &[u64]) -> Self {
        Self { start: smallvec::smallvec![0; shape.len()], count: Coordinates::from_slice(shape) }
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.count.len()
    }

    /// Returns whether the box holds no element.
    pub fn is_empty(&self) -> bool {
        self.count.contains(&0)
    }

    /// Returns the number of elements; `None` beyond 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        product(&self.count)
    }

    /// Returns the index after the last element of `axis`.
    pub fn end(&self, axis: usize) -> u64 {
        self.start[axis].saturating_add(self.count[axis])
    }

    /// Returns the intersection of both boxes; `None` if it is empty or the boxes have different axes.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        if self.rank() != other.rank() {
            return None;
        }
        let mut both = Self { start: Coordinates::new(), count: Coordinates::new() };
        for axis in 0..self.rank() {
            let start = self.start[axis].max(other.start[axis]);
            let end = self.end(axis).min(other.end(axis));
            if start >= end {
                return None;
            }
            both.start.push(start);
            both.count.push(end - start);
        }
        Some(both)
    }

    /// Returns whether this box contains every element of `other`.
    pub fn contains(&self, other: &Self) -> bool {
        self.rank() == other.rank()
            && (other.is_empty()
                || (0..self.rank())
                    .all(|axis| self.start[axis] <= other.start[axis] && other.end(axis) <= self.end(axis)))
    }

    /// Divides the box into parts of up to `limit_len_bytes`, or of one element. In a row-major buffer of the box, each
    /// part is one run, and the runs follow one another.
    pub fn parts_within(&self, element_len_bytes: u64, limit_len_bytes: u64) -> impl Iterator<Item = Self> + use<> {
        let mut shape = self.count.clone();
        for axis in 0..self.rank() {
            let row_len_bytes = values_len_bytes(&self.count[axis + 1..], element_len_bytes);
            shape[axis] = (limit_len_bytes / row_len_bytes.max(1)).clamp(1, self.count[axis].max(1));
            if row_len_bytes <= limit_len_bytes {
                break;
            }
        }
        let whole = self.clone();
        let along: Coordinates = shape.iter().zip(&self.count).map(|(&part, count)| count.div_ceil(part)).collect();
        let parts = along.iter().fold(1, |parts: u64, &count| parts.saturating_mul(count));
        (0..parts).map(move |number| {
            let (mut part, mut rest) = (whole.clone(), number);
            for axis in (0..whole.rank()).rev() {
                let first = rest % along[axis] * shape[axis];
                rest /= along[axis];
                part.start[axis] = whole.start[axis] + first;
                part.count[axis] = shape[axis].min(whole.count[axis] - first);
            }
            part
        })
    }
}

/// A row-major buffer to read from, and the origin of a box in it.
#[derive(Debug, Clone, Copy)]
pub struct BoxSource<'a> {
    /// Buffer that contains the box.
    pub bytes: &'a [u8],
    /// Shape of the buffer.
    pub shape: &'a [u64],
    /// First element of the box per axis.
    pub origin: &'a [u64],
}

/// A row-major buffer to write to, and the origin of a box in it.
#[derive(Debug)]
pub struct BoxTarget<'a> {
    /// Buffer that contains the box.
    pub bytes: &'a mut [u8],
    /// Shape of the buffer.
    pub shape: &'a [u64],
    /// First element of the box per axis.
    pub origin: &'a [u64],
}

impl BoxSource<'_> {
    /// Rejects a box of `count` elements that extends past the buffer.
    pub(crate) fn check(&self, count: &[u64], element_len_bytes: usize) -> Result<()> {
        match lies_in(self.bytes.len(), self.shape, self.origin, count, element_len_bytes) {
            true => Ok(()),
            false => Err(outside("source", self.bytes.len(), self.shape, self.origin, count)),
        }
    }
}

impl BoxTarget<'_> {
    /// Rejects a box of `count` elements that extends past the buffer.
    pub(crate) fn check(&self, count: &[u64], element_len_bytes: usize) -> Result<()> {
        match lies_in(self.bytes.len(), self.shape, self.origin, count, element_len_bytes) {
            true => Ok(()),
            false => Err(outside("target", self.bytes.len(), self.shape, self.origin, count)),
        }
    }
}

/// Copies a box of `count` elements of `element_len_bytes` each. Trailing axes that are complete in both buffers are
/// copied as one run.
///
/// # Errors
/// If a box extends past its buffer, or a buffer is shorter than its shape requires.
pub fn copy_box(source: BoxSource<'_>, target: BoxTarget<'_>, count: &[u64], element_len_bytes: usize) -> Result<()> {
    let rank = count.len();
    if rank > MAX_RANK {
        return Err(CoreError::RankTooLarge { rank });
    }
    source.check(count, element_len_bytes)?;
    target.check(count, element_len_bytes)?;
    if count.contains(&0) {
        return Ok(());
    }
    // From here on no product overflows: all are lengths of buffers in memory.
    let places =
        [Place { shape: target.shape, origin: target.origin }, Place { shape: source.shape, origin: source.origin }];
    let lines = Lines::new(count, element_len_bytes as u64, places);
    let [target_stride, source_stride] = lines.strides.map(|stride| stride as usize);
    let (run_len, run_count) = (lines.run_len_bytes as usize, lines.run_count as usize);
    lines.try_for_each(|offsets| {
        let [to, from] = offsets.map(|offset| offset as usize);
        let (target, source) = (&mut target.bytes[to..], &source.bytes[from..]);
        copy_runs((target, target_stride), (source, source_stride), run_len, run_count);
        Ok(())
    })
}

fn lies_in(len_bytes: usize, shape: &[u64], origin: &[u64], count: &[u64], element_len_bytes: usize) -> bool {
    let fits_axes = shape.len() == count.len()
        && origin.len() == count.len()
        && (0..count.len()).all(|axis| origin[axis].checked_add(count[axis]).is_some_and(|end| end <= shape[axis]));
    let needed = product(shape).and_then(|elements| elements.checked_mul(element_len_bytes as u64));
    fits_axes && needed.is_some_and(|needed| needed <= len_bytes as u64)
}

fn outside(side: &'static str, len_bytes: usize, shape: &[u64], origin: &[u64], count: &[u64]) -> CoreError {
    CoreError::BoxOutside { side, start: origin.to_vec(), count: count.to_vec(), shape: shape.to_vec(), len_bytes }
}

/// Fills `bytes` with repetitions of `pattern`; an empty pattern is treated as a zero byte.
pub fn fill_with(bytes: &mut [u8], pattern: &[u8]) {
    let Some(first) = pattern.first() else {
        bytes.fill(0);
        return;
    };
    if pattern.iter().all(|byte| byte == first) {
        bytes.fill(*first);
        return;
    }
    let mut filled = pattern.len().min(bytes.len());
    bytes[..filled].copy_from_slice(&pattern[..filled]);
    // Each iteration copies everything filled so far, so long buffers are filled at memcpy speed.
    while filled < bytes.len() {
        let more = filled.min(bytes.len() - filled);
        bytes.copy_within(..more, filled);
        filled += more;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn intersection_and_containment() {
        let a = Extent::new(&[0, 10], &[5, 5]);
        let b = Extent::new(&[3, 0], &[5, 11]);
        assert_eq!(a.intersection(&b), Some(Extent::new(&[3, 10], &[2, 1])));
        assert_eq!(a.intersection(&Extent::new(&[5, 10], &[1, 1])), None);
        assert_eq!(a.intersection(&Extent::new(&[0], &[1])), None);
        assert!(a.contains(&Extent::new(&[4, 14], &[1, 1])));
        assert!(!a.contains(&Extent::new(&[4, 14], &[2, 1])));
    }

    proptest! {
        #[test]
        fn parts_are_runs_that_follow_one_another(
            axes in prop::collection::vec((0_u64..5, 1_u64..6), 0..4),
            (element_len_bytes, limit_len_bytes) in (1_u64..5, 0_u64..40),
        ) {
            let (start, count): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            let whole = Extent::new(&start, &count);
            let mut position = 0;
            for part in whole.parts_within(element_len_bytes, limit_len_bytes) {
                let elements = part.element_count().unwrap();
                prop_assert!(whole.contains(&part) && elements > 0);
                prop_assert!(elements == 1 || elements * element_len_bytes <= limit_len_bytes);
                for number in 0..elements {
                    let (mut rest, mut at) = (number, part.start.clone());
                    for axis in (0..at.len()).rev() {
                        at[axis] += rest % part.count[axis];
                        rest /= part.count[axis];
                    }
                    let place = (0..at.len()).fold(0, |place, axis| place * count[axis] + at[axis] - start[axis]);
                    prop_assert_eq!(place, position);
                    position += 1;
                }
            }
            prop_assert_eq!(Some(position), whole.element_count());
        }
    }

    #[test]
    fn a_box_outside_its_buffer_is_an_error() {
        let bytes = [0u8; 12];
        let mut out = [0u8; 12];
        let copy = |origin: &[u64], count: &[u64], shape: &[u64], out: &mut [u8]| {
            copy_box(
                BoxSource { bytes: &bytes, shape, origin },
                BoxTarget { bytes: out, shape: &[3, 4], origin: &[0, 0] },
                count,
                1,
            )
        };
        assert!(copy(&[0, 0], &[3, 4], &[3, 4], &mut out).is_ok());
        assert!(copy(&[1, 0], &[3, 4], &[3, 4], &mut out).is_err());
        assert!(copy(&[0, u64::MAX], &[3, 4], &[3, 4], &mut out).is_err());
        assert!(copy(&[0, 0], &[3, 4], &[4, 4], &mut out).is_err());
        assert!(copy(&[0], &[3], &[3], &mut out).is_err());
    }

    #[test]
    fn patterns_repeat() {
        let mut bytes = [9u8; 11];
        fill_with(&mut bytes, &[1, 2, 3]);
        assert_eq!(bytes, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2]);
        fill_with(&mut bytes, &[]);
        assert_eq!(bytes, [0; 11]);
        fill_with(&mut bytes, &[7, 7]);
        assert_eq!(bytes, [7; 11]);
    }

    type Case = (Vec<(u64, u64, u64, u64, u64)>, usize);

    fn boxes() -> impl Strategy<Value = Case> {
        let axis = (0u64..5, 0u64..3, 0u64..3, 0u64..3, 0u64..3);
        (prop::collection::vec(axis, 0..5), 1usize..5)
    }

    proptest! {
        #[test]
        fn copying_equals_element_by_element((axes, element) in boxes()) {
            let pick = |f: fn(&(u64, u64, u64, u64, u64)) -> u64| axes.iter().map(f).collect::<Vec<u64>>();
            let count = pick(|a| a.0);
            let (from, to) = (pick(|a| a.1), pick(|a| a.2));
            let source_shape = pick(|a| a.0 + a.1 + a.3);
            let target_shape = pick(|a| a.0 + a.2 + a.4);
            let len = |shape: &[u64]| product(shape).unwrap() as usize * element;
            let bytes: Vec<u8> = (0..len(&source_shape)).map(|i| (i % 251) as u8 + 1).collect();
            let mut got = vec![0u8; len(&target_shape)];
            let mut want = got.clone();
            let at = |shape: &[u64], origin: &[u64], index: &[u64]| {
                (0..shape.len()).fold(0, |at, axis| at * shape[axis] + origin[axis] + index[axis]) as usize * element
            };
            for number in 0..product(&count).unwrap() {
                let mut rest = number;
                let mut index = vec![0; count.len()];
                for axis in (0..count.len()).rev() {
                    index[axis] = rest % count[axis];
                    rest /= count[axis];
                }
                let (s, t) = (at(&source_shape, &from, &index), at(&target_shape, &to, &index));
                want[t..t + element].copy_from_slice(&bytes[s..s + element]);
            }
            copy_box(
                BoxSource { bytes: &bytes, shape: &source_shape, origin: &from },
                BoxTarget { bytes: &mut got, shape: &target_shape, origin: &to },
                &count,
                element,
            ).unwrap();
            prop_assert_eq!(got, want);
        }
    }
}
