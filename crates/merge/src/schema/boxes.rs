//! Datasets whose inputs are boxes of a larger array, such as the tiles of a grid.
//!
//! Invariant: each element belongs to the first input that has it; the elements that later inputs have too are listed
//! as overlaps, so that their values can be compared.

use raddle_core::plan::boxes::{Boxes, PlacedBox, without};
use raddle_core::plan::extent::Extent;

/// Places of the inputs' boxes in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxLayout {
    /// Dimensions of the output.
    pub dims: Vec<u64>,
    /// Boxes without common elements.
    pub boxes: Boxes,
    /// Elements that more than one input has.
    pub overlaps: Vec<BoxOverlap>,
    /// Place of each input's whole box; `None` if the input has no element.
    pub places: Vec<Option<Extent>>,
}

/// Elements of an input that belong to an earlier input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxOverlap {
    /// Number of the input.
    pub input: u32,
    /// Number of the earlier input.
    pub owner: u32,
    /// Box in the output.
    pub extent: Extent,
}

impl BoxLayout {
    /// Places the boxes of inputs, which are given in input order and lie within `dims`.
    pub fn new(dims: Vec<u64>, places: Vec<Option<Extent>>) -> Self {
        let (mut known, mut overlaps): (Vec<(u32, Extent)>, Vec<BoxOverlap>) = (Vec::new(), Vec::new());
        for (input, place) in (0..).zip(&places) {
            let Some(place) = place.as_ref().filter(|place| !place.is_empty()) else { continue };
            let mut parts = vec![place.clone()];
            for (owner, of_owner) in &known {
                let Some(extent) = place.intersection(of_owner) else { continue };
                parts = parts.iter().flat_map(|part| without(part, of_owner)).collect();
                overlaps.push(BoxOverlap { input, owner: *owner, extent });
            }
            known.extend(parts.into_iter().map(|part| (input, part)));
        }
        let placed = known.into_iter().map(|(input, part)| {
            let source = within(places[input as usize].as_ref(), &part);
            PlacedBox { input, start: part.start, source }
        });
        let boxes = placed.collect::<Vec<_>>().into();
        Self { dims, boxes, overlaps, places }
    }

    /// Returns the box of an input's dataset that lies at `extent` in the output.
    pub fn source(&self, input: u32, extent: &Extent) -> Extent {
        within(self.places[input as usize].as_ref(), extent)
    }

    /// Returns the number of elements that no input has.
    pub fn hole_count(&self) -> u64 {
        let all = self.dims.iter().fold(1u64, |count, dim| count.saturating_mul(*dim));
        let counts = self.boxes.iter().map(|one| one.source.element_count().unwrap_or(u64::MAX));
        all.saturating_sub(counts.fold(0, u64::saturating_add))
    }
}

/// Returns the position of `extent` relative to the start of `place`.
fn within(place: Option<&Extent>, extent: &Extent) -> Extent {
    let mut source = extent.clone();
    if let Some(place) = place {
        source.start.iter_mut().zip(&place.start).for_each(|(at, start)| *at -= start);
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_elements_belong_to_the_first_input() {
        let places = [Some(Extent::new(&[0, 0], &[2, 4])), None, Some(Extent::new(&[0, 3], &[2, 4]))];
        let layout = BoxLayout::new(vec![3, 7], places.to_vec());
        let boxes: Vec<_> =
            layout.boxes.iter().map(|one| (one.input, one.start.to_vec(), one.source.clone())).collect();
        assert_eq!(
            boxes,
            [(0, vec![0, 0], Extent::new(&[0, 0], &[2, 4])), (2, vec![0, 4], Extent::new(&[0, 1], &[2, 3]))]
        );
        let common = Extent::new(&[0, 3], &[2, 1]);
        assert_eq!(layout.overlaps, [BoxOverlap { input: 2, owner: 0, extent: common.clone() }]);
        assert_eq!(layout.source(2, &common), Extent::new(&[0, 0], &[2, 1]));
        assert_eq!(layout.source(0, &common), Extent::new(&[0, 3], &[2, 1]));
        assert_eq!(layout.hole_count(), 7);
    }

    #[test]
    fn equal_boxes_are_overlaps() {
        let places = vec![Some(Extent::new(&[1], &[3])); 3];
        let layout = BoxLayout::new(vec![4], places);
        assert_eq!((layout.boxes.len(), layout.overlaps.len(), layout.hole_count()), (1, 2, 1));
    }
}
