//! Slots: the values of the tiles of a region, filled by several threads.
//!
//! Invariant: a slot holds the tile's part of the region, in row-major order and without padding.

use crate::error::Result;
use crate::plan::ArrayPlan;
use crate::plan::extent::{BoxSource, BoxTarget, Coordinates, Extent, copy_box};
use crate::sync::{Mutex, MutexGuard};
use std::sync::PoisonError;

/// Values of the tiles of a region.
#[derive(Debug)]
pub struct Slots {
    region: Extent,
    tile_shape: Vec<u64>,
    element_len_bytes: usize,
    /// First tile per axis.
    first: Coordinates,
    /// Number of tiles per axis.
    along: Coordinates,
    values: Vec<Mutex<Vec<u8>>>,
}

impl Slots {
    /// Creates slots of zeros for all tiles of `array` in `region`, which is not empty and lies in the array. Takes
    /// buffers from `spare`: allocators keep freed memory for a while, so without reuse, two successive regions would
    /// take the memory of both.
    pub fn new(array: &ArrayPlan, region: &Extent, spare: &mut Vec<Vec<u8>>) -> Self {
        let axes = 0..region.rank();
        let first: Coordinates = axes.clone().map(|axis| region.start[axis] / array.tile_shape[axis]).collect();
        let along = axes.map(|axis| region.end(axis).div_ceil(array.tile_shape[axis]) - first[axis]).collect();
        let mut slots = Self {
            region: region.clone(),
            tile_shape: array.tile_shape.clone(),
            element_len_bytes: array.element_len_bytes as usize,
            first,
            along,
            values: Vec::new(),
        };
        let len_bytes = |place| {
            let count = slots.part(place).count;
            count.iter().fold(slots.element_len_bytes, |len, &count| len * count as usize)
        };
        let zeros = |place| {
            let mut values = spare.pop().unwrap_or_default();
            values.clear();
            values.resize(len_bytes(place), 0);
            Mutex::new(values)
        };
        slots.values = (0..slots.along.iter().product()).map(zeros).collect();
        slots
    }

    /// Moves the buffers of all slots to `spare`.
    pub fn recycle(self, spare: &mut Vec<Vec<u8>>) {
        spare.extend(self.values.iter().map(|values| std::mem::take(&mut *lock(values))));
    }

    /// Returns the number of slots.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no slots.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the box of slot number `place`, in plan order, in the array.
    pub fn part(&self, place: u64) -> Extent {
        let mut at = Coordinates::from_elem(0, self.along.len());
        let mut rest = place;
        for axis in (0..self.along.len()).rev() {
            at[axis] = self.first[axis] + rest % self.along[axis];
            rest /= self.along[axis];
        }
        self.part_at(&at)
    }

    /// Returns the part of the region in the tile at `at`.
    fn part_at(&self, at: &[u64]) -> Extent {
        let axes = || 0..at.len();
        let start: Coordinates =
            axes().map(|axis| (at[axis] * self.tile_shape[axis]).max(self.region.start[axis])).collect();
        let end = |axis: usize| (at[axis] + 1).saturating_mul(self.tile_shape[axis]).min(self.region.end(axis));
        let count = axes().map(|axis| end(axis) - start[axis]).collect();
        Extent { start, count }
    }

    /// Locks slot number `place`.
    pub fn lock(&self, place: usize) -> MutexGuard<'_, Vec<u8>> {
        lock(&self.values[place])
    }

    /// Copies the row-major `values` of a box of the array into all slots that it overlaps.
    ///
    /// # Errors
    /// If `values` is shorter than the box.
    pub fn put(&self, extent: &Extent, values: &[u8]) -> Result<()> {
        let Some(inside) = extent.intersection(&self.region) else { return Ok(()) };
        let axes = || 0..inside.rank();
        let first: Coordinates = axes().map(|axis| inside.start[axis] / self.tile_shape[axis]).collect();
        let last: Coordinates = axes().map(|axis| (inside.end(axis) - 1) / self.tile_shape[axis]).collect();
        let mut at = first.clone();
        loop {
            let part = self.part_at(&at);
            if let Some(both) = part.intersection(&inside) {
                let place = axes().fold(0, |place, axis| place * self.along[axis] + at[axis] - self.first[axis]);
                let relative =
                    |to: &Extent| axes().map(|axis| both.start[axis] - to.start[axis]).collect::<Coordinates>();
                let (from, to) = (relative(extent), relative(&part));
                let source = BoxSource { bytes: values, shape: &extent.count, origin: &from };
                let mut slot = self.lock(place as usize);
                let target = BoxTarget { bytes: &mut slot, shape: &part.count, origin: &to };
                copy_box(source, target, &both.count, self.element_len_bytes)?;
            }
            let Some(axis) = axes().rev().find(|&axis| at[axis] < last[axis]) else { return Ok(()) };
            at[axis] += 1;
            at[axis + 1..].copy_from_slice(&first[axis + 1..]);
        }
    }
}

fn lock(values: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    values.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the number of each element of a box, in row-major order of the array.
    fn numbers(shape: &[u64], extent: &Extent) -> Vec<u8> {
        let axes = 0..extent.rank();
        let at = |rest: u64| {
            let mut rest = rest;
            let mut at = Coordinates::from_elem(0, extent.rank());
            for axis in axes.clone().rev() {
                at[axis] = extent.start[axis] + rest % extent.count[axis];
                rest /= extent.count[axis];
            }
            axes.clone().fold(0, |number, axis| number * shape[axis] + at[axis]) as u8
        };
        (0..extent.count.iter().product()).map(at).collect()
    }

    /// Draws an array with tiles, a region of it, and a position at which the region is cut in two.
    fn drawn() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Extent, (usize, u64))> {
        let axis = (1_u64..7, 1_u64..4).prop_flat_map(|(dim, tile)| {
            let region = (0..dim).prop_flat_map(move |start| (Just(start), 1..=dim - start));
            (Just(dim), Just(tile), region)
        });
        (prop::collection::vec(axis, 1..4), 0_usize..3, 0_u64..7).prop_map(|(axes, axis, at)| {
            let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let tiles = axes.iter().map(|axis| axis.1).collect();
            let (start, count): (Vec<u64>, Vec<u64>) = axes.iter().map(|axis| axis.2).unzip();
            let axis = axis % shape.len();
            (shape, tiles, Extent::new(&start, &count), (axis, at % count[axis]))
        })
    }

    proptest! {
        #[test]
        fn every_tile_gets_its_part_of_the_region((shape, tile_shape, region, (axis, at)) in drawn()) {
            let array = ArrayPlan { shape: shape.clone(), tile_shape, element_len_bytes: 1, ..ArrayPlan::default() };
            let slots = Slots::new(&array, &region, &mut vec![vec![9; 3]]);
            let (mut before, mut after) = (region.clone(), region.clone());
            before.count[axis] = at;
            (after.start[axis], after.count[axis]) = (region.start[axis] + at, region.count[axis] - at);
            for part in [after, before] {
                if !part.is_empty() {
                    slots.put(&part, &numbers(&shape, &part)).unwrap();
                }
            }
            let mut count = 0;
            for place in 0..slots.len() {
                let part = slots.part(place as u64);
                prop_assert!(region.contains(&part) && !part.is_empty());
                prop_assert_eq!(&*slots.lock(place), &numbers(&shape, &part), "slot {} of {:?}", place, part);
                count += part.element_count().unwrap();
            }
            prop_assert_eq!(Some(count), region.element_count());
        }
    }
}
