//! Regular subsampling: every n-th element of an array along each axis, starting with the first.
//!
//! There is no averaging, and the caller chooses the spacing. Invariant: the points in disjoint boxes are disjoint, and
//! boxes that cover the array contain all points.

use crate::error::{CoreError, Result};
use crate::plan::extent::{BoxSource, BoxTarget, Coordinates, Extent};
use smallvec::SmallVec;

/// The points of an array whose coordinates are all multiples of a power of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lattice {
    /// Number of points per axis.
    pub shape: Coordinates,
    /// Base-2 logarithm of the distance between neighbours per axis, below 64.
    pub log2_spacing: SmallVec<[u32; 4]>,
}

impl Lattice {
    /// Creates the lattice of an array of shape `shape`.
    pub fn new(shape: &[u64], log2_spacing: &[u32]) -> Self {
        debug_assert_eq!(shape.len(), log2_spacing.len());
        let points = shape.iter().zip(log2_spacing).map(|(count, log2)| count.div_ceil(1 << log2)).collect();
        Self { shape: points, log2_spacing: SmallVec::from_slice(log2_spacing) }
    }

    /// Returns the points in a box of the array, as a box of the lattice, which may be empty.
    pub fn points_in(&self, extent: &Extent) -> Extent {
        let (mut start, mut count) = (Coordinates::new(), Coordinates::new());
        for axis in 0..extent.rank() {
            let spacing = 1u64 << self.log2_spacing[axis];
            let (first, end) = (extent.start[axis].div_ceil(spacing), extent.end(axis).div_ceil(spacing));
            start.push(first);
            count.push(end - first);
        }
        Extent { start, count }
    }

    /// Copies `points` out of `source`, which holds the box `extent` of the array.
    ///
    /// # Errors
    /// If a box extends past its buffer, the buffer is shorter than its shape requires, or the points are outside the
    /// box.
    pub fn pick(
        &self,
        points: &Extent,
        (extent, source): (&Extent, BoxSource<'_>),
        target: BoxTarget<'_>,
        element_len_bytes: usize,
    ) -> Result<()> {
        source.check(&extent.count, element_len_bytes)?;
        target.check(&points.count, element_len_bytes)?;
        if !self.points_in(extent).contains(points) {
            let (start, count, shape) = (points.start.to_vec(), points.count.to_vec(), extent.count.to_vec());
            return Err(CoreError::BoxOutside { side: "source", start, count, shape, len_bytes: source.bytes.len() });
        }
        if points.is_empty() {
            return Ok(());
        }
        // From here on no product overflows: all are lengths of buffers in memory.
        let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
        let (mut from_at, mut to_at) = (0, 0);
        let (mut from_stride, mut to_stride) = (element_len_bytes, element_len_bytes);
        for axis in (0..points.rank()).rev() {
            let first = (points.start[axis] << self.log2_spacing[axis]) - extent.start[axis] + source.origin[axis];
            from_at += first as usize * from_stride;
            to_at += target.origin[axis] as usize * to_stride;
            let (from_step, count) = (from_stride << self.log2_spacing[axis], points.count[axis] as usize);
            axes.push(Axis { count, from_step, to_step: to_stride });
            from_stride *= source.shape[axis] as usize;
            to_stride *= target.shape[axis] as usize;
        }
        axes.reverse();
        copy(&axes, &source.bytes[from_at..], &mut target.bytes[to_at..], element_len_bytes);
        Ok(())
    }
}

/// Number of points along an axis and their distance in bytes.
struct Axis {
    count: usize,
    from_step: usize,
    to_step: usize,
}

/// Copies the points along `axes`, slowest axis first, between the starts of two buffers.
fn copy(axes: &[Axis], from: &[u8], to: &mut [u8], element_len_bytes: usize) {
    match axes {
        [] => to[..element_len_bytes].copy_from_slice(&from[..element_len_bytes]),
        [row] if row.from_step == element_len_bytes => {
            let len_bytes = row.count * element_len_bytes;
            to[..len_bytes].copy_from_slice(&from[..len_bytes]);
        }
        [row] => match element_len_bytes {
            1 => copy_row::<1>(row, from, to),
            2 => copy_row::<2>(row, from, to),
            4 => copy_row::<4>(row, from, to),
            8 => copy_row::<8>(row, from, to),
            len => {
                for (from, to) in from.chunks(row.from_step).zip(to.chunks_exact_mut(len)).take(row.count) {
                    to.copy_from_slice(&from[..len]);
                }
            }
        },
        [axis, inner @ ..] => {
            for index in 0..axis.count {
                copy(inner, &from[index * axis.from_step..], &mut to[index * axis.to_step..], element_len_bytes);
            }
        }
    }
}

/// Copies elements of a length known at compile time; they are contiguous in `to`.
fn copy_row<const LEN: usize>(row: &Axis, from: &[u8], to: &mut [u8]) {
    for (from, to) in from.chunks(row.from_step).zip(to.chunks_exact_mut(LEN)).take(row.count) {
        to.copy_from_slice(&from[..LEN]);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn points_of_boxes() {
        let lattice = Lattice::new(&[10, 7], &[2, 0]);
        assert_eq!(lattice.shape.as_slice(), [3, 7]);
        assert_eq!(lattice.points_in(&Extent::new(&[1, 2], &[3, 5])).count.as_slice(), [0, 5]);
        assert_eq!(lattice.points_in(&Extent::new(&[1, 2], &[8, 5])), Extent::new(&[1, 2], &[2, 5]));
    }

    #[test]
    fn points_that_the_box_does_not_hold_are_refused() {
        let lattice = Lattice::new(&[8], &[1]);
        let (bytes, mut out) = ([0; 4], [0; 4]);
        let mut pick = |start: u64| {
            let source = BoxSource { bytes: &bytes, shape: &[4], origin: &[0] };
            let target = BoxTarget { bytes: &mut out, shape: &[4], origin: &[0] };
            lattice.pick(&Extent::new(&[start], &[1]), (&Extent::new(&[2], &[4]), source), target, 1)
        };
        assert!(pick(1).is_ok() && pick(2).is_ok());
        assert!(pick(0).is_err() && pick(3).is_err());
    }

    /// Returns a strategy for number of elements, base-2 logarithm of the spacing, and length of a box.
    fn axes() -> impl Strategy<Value = Vec<(u64, u32, u64)>> {
        prop::collection::vec((1u64..9, 0u32..4, 1u64..5), 1..4)
    }

    proptest! {
        /// Picking from boxes that cover an array, in buffers with a margin, gives exactly the points of the array.
        #[test]
        fn boxes_that_cover_the_array_give_all_points(axes in axes(), len in prop::sample::select(vec![1usize, 2, 3, 4, 8])) {
            let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let spacing: Vec<u32> = axes.iter().map(|axis| axis.1).collect();
            let boxes = crate::plan::ArrayPlan {
                shape: shape.clone(),
                tile_shape: axes.iter().map(|axis| axis.2).collect(),
                element_len_bytes: len as u64,
                ..Default::default()
            };
            let value = |index: u64| (0..len as u64).map(move |byte| (index * 7 + byte) as u8);
            let index_of = |point: &[u64]| point.iter().zip(&shape).fold(0, |at, (at_axis, count)| at * count + at_axis);
            let points_of = |extent: &Extent| {
                let mut points = vec![Vec::new()];
                for axis in 0..extent.rank() {
                    points = points.iter().flat_map(|point: &Vec<u64>| {
                        (extent.start[axis]..extent.end(axis)).map(|at| [point.as_slice(), &[at]].concat())
                    }).collect();
                }
                points
            };
            let lattice = Lattice::new(&shape, &spacing);
            let all = points_of(&Extent::whole(&lattice.shape));
            let whole = |point: &Vec<u64>| point.iter().zip(&spacing).map(|(at, log2)| at << log2).collect::<Vec<_>>();
            let want: Vec<u8> = all.iter().flat_map(|point| value(index_of(&whole(point)))).collect();
            let mut got = vec![0xee; want.len()];
            let origin = vec![1; shape.len()];
            for tile in 0..boxes.tile_count() {
                let extent = boxes.tile_extent(tile);
                let padded: Vec<u64> = extent.count.iter().map(|count| count + 2).collect();
                let mut bytes = vec![0xdd; padded.iter().product::<u64>() as usize * len];
                let values: Vec<u8> = points_of(&extent).iter().flat_map(|point| value(index_of(point))).collect();
                let zero = vec![0; shape.len()];
                let from = BoxSource { bytes: &values, shape: &extent.count, origin: &zero };
                let to = BoxTarget { bytes: &mut bytes, shape: &padded, origin: &origin };
                crate::plan::extent::copy_box(from, to, &extent.count, len).unwrap();
                let points = lattice.points_in(&extent);
                let source = BoxSource { bytes: &bytes, shape: &padded, origin: &origin };
                let target = BoxTarget { bytes: &mut got, shape: &lattice.shape, origin: &points.start };
                lattice.pick(&points, (&extent, source), target, len).unwrap();
            }
            prop_assert_eq!(got, want);
        }
    }
}
