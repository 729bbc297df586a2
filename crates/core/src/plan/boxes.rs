//! Boxes of inputs at their places in an array: a division in several axes, unlike [`Segments`](super::Segments).
//!
//! The tiles of a model's grid are such boxes. Elements in no box are fill values. Invariant of a valid list
//! ([`Plan::validate`](super::Plan::validate)): boxes are not empty, lie in the array and do not overlap, so that every
//! element comes from at most one element of one input.

use super::Piece;
use crate::error::PlanFault;
use crate::plan::extent::{Coordinates, Extent};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A box of an input's array, and its place in the array of the output.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlacedBox {
    /// Number of the input.
    pub input: u32,
    /// First element in the array of the output, per axis.
    pub start: Coordinates,
    /// Box in the input's array.
    pub source: Extent,
}

impl PlacedBox {
    /// Returns the box in the array of the output.
    pub fn target(&self) -> Extent {
        Extent { start: self.start.clone(), count: self.source.count.clone() }
    }

    fn end(&self, axis: usize) -> u64 {
        self.start[axis].saturating_add(self.source.count[axis])
    }

    /// Returns the piece of this box in `tile`, a box of the output.
    fn piece_in(&self, tile: &Extent) -> Option<Piece> {
        let both = self.target().intersection(tile)?;
        let offset = |at: &Coordinates, from: &Coordinates| -> Coordinates {
            at.iter().zip(from).map(|(at, from)| at - from).collect()
        };
        let mut source = Extent { start: offset(&both.start, &self.start), count: both.count };
        source.start.iter_mut().zip(&self.source.start).for_each(|(at, first)| *at += first);
        Some(Piece { input: self.input, source, target: offset(&both.start, &tile.start) })
    }
}

/// A list of placed boxes, sorted along the axis that separates most of them, and shared by its clones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<PlacedBox>", into = "Vec<PlacedBox>")]
pub struct Boxes(Arc<BoxOrder>);

#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct BoxOrder {
    boxes: Vec<PlacedBox>,
    /// Axis along which the boxes are sorted by their start.
    axis: usize,
    /// For each box, the largest end along that axis among it and all boxes before it.
    ends: Vec<u64>,
}

impl From<Vec<PlacedBox>> for Boxes {
    fn from(mut boxes: Vec<PlacedBox>) -> Self {
        let rank = boxes.iter().map(|one| one.start.len().min(one.source.count.len())).min().unwrap_or(0);
        let starts_along = |axis: usize| {
            let mut starts: Vec<u64> = boxes.iter().map(|one| one.start[axis]).collect();
            starts.sort_unstable();
            starts.dedup();
            starts.len()
        };
        let axis = (0..rank).max_by_key(|&axis| (starts_along(axis), std::cmp::Reverse(axis))).unwrap_or(0);
        if rank > 0 {
            boxes.sort_by(|left, right| {
                (left.start[axis], &left.start, left.input).cmp(&(right.start[axis], &right.start, right.input))
            });
        }
        let mut end = 0;
        let ends = boxes.iter().map(|one| {
            end = end.max(if rank > 0 { one.end(axis) } else { 0 });
            end
        });
        let ends = ends.collect();
        Self(Arc::new(BoxOrder { boxes, axis, ends }))
    }
}

impl From<Boxes> for Vec<PlacedBox> {
    fn from(boxes: Boxes) -> Self {
        boxes.0.boxes.clone()
    }
}

impl Boxes {
    /// Returns whether there are no boxes.
    pub fn is_empty(&self) -> bool {
        self.0.boxes.is_empty()
    }

    /// Returns the number of boxes.
    pub fn len(&self) -> usize {
        self.0.boxes.len()
    }

    /// Returns the boxes.
    pub fn iter(&self) -> std::slice::Iter<'_, PlacedBox> {
        self.0.boxes.iter()
    }

    /// Returns the pieces of the boxes in `tile`, a box of the output.
    pub fn pieces_in(&self, tile: Extent) -> BoxPieces<'_> {
        let candidates = match tile.is_empty() {
            true => &[],
            false => self.candidates(&tile),
        };
        BoxPieces { candidates: candidates.iter(), tile }
    }

    /// Returns consecutive boxes, among them all that have elements in `tile`.
    fn candidates(&self, tile: &Extent) -> &[PlacedBox] {
        let BoxOrder { boxes, axis, ends } = &*self.0;
        let Some(&start) = tile.start.get(*axis) else { return &[] };
        let from = ends.partition_point(|end| *end <= start);
        let to = boxes.partition_point(|one| one.start[*axis] < tile.end(*axis));
        boxes.get(from..to).unwrap_or(&[])
    }

    /// Checks the boxes for an array of this shape.
    pub(super) fn check(&self, shape: &[u64]) -> Result<(), PlanFault> {
        let whole = Extent::whole(shape);
        for (number, one) in self.iter().enumerate() {
            let has_rank = one.start.len() == shape.len() && one.source.start.len() == one.source.count.len();
            if !has_rank || one.source.is_empty() || !whole.contains(&one.target()) {
                return Err(PlanFault::BoxOutside(number));
            }
            if (0..shape.len()).any(|axis| one.source.start[axis].checked_add(one.source.count[axis]).is_none()) {
                return Err(PlanFault::Overflow);
            }
        }
        for (number, one) in self.iter().enumerate() {
            let target = one.target();
            // The box itself is one of the pieces.
            if self.pieces_in(target).nth(1).is_some() {
                return Err(PlanFault::BoxesOverlap(number));
            }
        }
        Ok(())
    }
}

/// Iterator over the pieces of boxes in a tile; see [`Boxes::pieces_in`].
#[derive(Debug, Clone)]
pub struct BoxPieces<'a> {
    candidates: std::slice::Iter<'a, PlacedBox>,
    tile: Extent,
}

impl Iterator for BoxPieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        self.candidates.find_map(|one| one.piece_in(&self.tile))
    }
}

/// Returns the part of `extent` outside of `hole`, as boxes that do not overlap.
pub fn without(extent: &Extent, hole: &Extent) -> Vec<Extent> {
    let Some(both) = extent.intersection(hole) else { return vec![extent.clone()] };
    let (mut rest, mut parts) = (extent.clone(), Vec::new());
    for axis in 0..extent.rank() {
        let (start, end) = (rest.start[axis], rest.end(axis));
        for (from, to) in [(start, both.start[axis]), (both.end(axis), end)] {
            if from < to {
                let mut part = rest.clone();
                (part.start[axis], part.count[axis]) = (from, to - from);
                parts.push(part);
            }
        }
        (rest.start[axis], rest.count[axis]) = (both.start[axis], both.count[axis]);
    }
    parts
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::plan::{ArrayPlan, Plan};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn placed(input: u32, start: &[u64], count: &[u64]) -> PlacedBox {
        PlacedBox { input, start: Coordinates::from_slice(start), source: Extent::new(&vec![0; count.len()], count) }
    }

    fn array(shape: &[u64], tile_shape: &[u64], boxes: Vec<PlacedBox>) -> ArrayPlan {
        let (shape, tile_shape) = (shape.to_vec(), tile_shape.to_vec());
        ArrayPlan { shape, tile_shape, element_len_bytes: 1, boxes: boxes.into(), ..ArrayPlan::default() }
    }

    #[test]
    fn boxes_that_contradict_the_array_are_refused() {
        let fault = |boxes: Vec<PlacedBox>| match (Plan { arrays: vec![array(&[4, 6], &[2, 2], boxes)] }).validate() {
            Err(crate::CoreError::Plan { array: 0, fault }) => Some(fault),
            Ok(()) => None,
            other => panic!("{other:?}"),
        };
        let [left, right] = [placed(0, &[0, 0], &[4, 3]), placed(1, &[0, 3], &[4, 3])];
        assert_eq!(fault(vec![left.clone(), right.clone()]), None);
        assert_eq!(fault(vec![right.clone()]), None, "holes are allowed");
        assert_eq!(fault(vec![left.clone(), placed(1, &[1, 2], &[1, 2])]), Some(PlanFault::BoxesOverlap(0)));
        assert_eq!(fault(vec![left.clone(), left.clone()]), Some(PlanFault::BoxesOverlap(0)));
        assert_eq!(fault(vec![placed(0, &[1, 0], &[4, 3])]), Some(PlanFault::BoxOutside(0)));
        assert_eq!(fault(vec![placed(0, &[0, 0], &[0, 3])]), Some(PlanFault::BoxOutside(0)));
        assert_eq!(fault(vec![placed(0, &[0], &[3])]), Some(PlanFault::BoxOutside(0)));
        let mut far = left.clone();
        far.source.start[0] = u64::MAX;
        assert_eq!(fault(vec![far]), Some(PlanFault::Overflow));
        let mut both = array(&[4, 6], &[2, 2], vec![left]);
        both.segments = vec![crate::plan::Segment { input: 0, start: 0, rows: 4, source_row: 0 }].into();
        assert_eq!(both.check(), Err(PlanFault::BoxesAndSegments));
    }

    #[test]
    fn tiles_know_their_holes() {
        let array = array(&[4, 6], &[2, 3], vec![placed(0, &[0, 0], &[2, 3]), placed(1, &[2, 0], &[2, 5])]);
        assert_eq!((0..4).map(|tile| array.has_holes(tile)).collect::<Vec<_>>(), [false, true, false, true]);
        assert_eq!(array.hole_count(), 8);
    }

    /// Draws boxes that may overlap, in an array of up to three axes.
    fn drawn() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Vec<PlacedBox>)> {
        prop::collection::vec((1_u64..9, 1_u64..5), 1..4).prop_flat_map(|axes| {
            let (shape, tile_shape): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            let along = |dim: u64| (0..dim).prop_flat_map(move |start| (Just(start), 1..=dim - start, 0_u64..3));
            let one: Vec<_> = shape.iter().map(|&dim| along(dim)).collect();
            (Just(shape), Just(tile_shape), prop::collection::vec(one, 0..8)).prop_map(|(shape, tile_shape, boxes)| {
                let boxes = (0..).zip(boxes).map(|(input, axes)| PlacedBox {
                    input,
                    start: axes.iter().map(|axis| axis.0).collect(),
                    source: Extent {
                        start: axes.iter().map(|axis| axis.2).collect(),
                        count: axes.iter().map(|axis| axis.1).collect(),
                    },
                });
                (shape, tile_shape, boxes.collect())
            })
        })
    }

    /// Returns all elements of a box.
    fn elements(extent: &Extent) -> Vec<Vec<u64>> {
        let mut all = vec![Vec::new()];
        for axis in 0..extent.rank() {
            let along = extent.start[axis]..extent.end(axis);
            let longer =
                |known: &Vec<u64>| along.clone().map(|at| [known.clone(), vec![at]].concat()).collect::<Vec<_>>();
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    proptest! {
        #[test]
        fn every_element_of_a_box_is_in_one_piece((shape, tile_shape, drawn) in drawn()) {
            // An element belongs to the first box that has it.
            let mut expected: BTreeMap<Vec<u64>, (u32, Vec<u64>)> = BTreeMap::new();
            let mut disjoint: Vec<PlacedBox> = Vec::new();
            for one in &drawn {
                for at in elements(&one.target()) {
                    let source = (0..at.len()).map(|axis| at[axis] - one.start[axis] + one.source.start[axis]).collect();
                    expected.entry(at).or_insert((one.input, source));
                }
                let mut parts = vec![one.target()];
                for known in &disjoint {
                    parts = parts.iter().flat_map(|part| without(part, &known.target())).collect();
                }
                disjoint.extend(parts.into_iter().map(|part| {
                    let first = (0..part.rank()).map(|axis| part.start[axis] - one.start[axis] + one.source.start[axis]);
                    let source = Extent { start: first.collect(), count: part.count.clone() };
                    PlacedBox { input: one.input, start: part.start, source }
                }));
            }
            let array = array(&shape, &tile_shape, disjoint);
            prop_assert_eq!(array.check(), Ok(()));
            let (mut found, mut holes) = (BTreeMap::new(), 0);
            for index in 0..array.tile_count() {
                let tile = array.tile_extent(index);
                let mut count = 0;
                for piece in array.pieces(index) {
                    for at in elements(&piece.source) {
                        let target: Vec<u64> = (0..at.len())
                            .map(|axis| at[axis] - piece.source.start[axis] + piece.target[axis] + tile.start[axis])
                            .collect();
                        prop_assert!((0..at.len()).all(|axis| target[axis] < tile.end(axis)));
                        prop_assert!(found.insert(target, (piece.input, at)).is_none());
                        count += 1;
                    }
                }
                let missing = tile.element_count().unwrap() - count;
                prop_assert_eq!(array.has_holes(index), !array.boxes.is_empty() && missing > 0);
                holes += missing;
            }
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(array.hole_count(), if array.boxes.is_empty() { 0 } else { holes });
        }

        #[test]
        fn boxes_that_overlap_are_found((shape, tile_shape, drawn) in drawn()) {
            let overlap = (0..drawn.len()).any(|left| {
                (0..left).any(|right| drawn[left].target().intersection(&drawn[right].target()).is_some())
            });
            prop_assert_eq!(array(&shape, &tile_shape, drawn).check().is_err(), overlap);
        }
    }
}
