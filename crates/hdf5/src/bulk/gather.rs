//! Reads selections with gaps or lists: the chunks that they intersect are read box by box, and the selected elements
//! are copied.
//!
//! A unit reads the smallest box around its elements into a separate buffer; only the copying takes the lock of the
//! output.

use super::axes::SortedAxis;
use super::units::{UNIT_LEN_BYTES, block_len};
use super::{Request, lock};
use crate::error::Result;
use crate::model::Layout;
use crate::read::{BoxRead, DatasetReader, DatasetSource, MAX_GAP_LEN_BYTES, MAX_RANK, ReadCounts};
use raddle_core::plan::extent::Coordinates;
use std::ops::Range;
use std::sync::Mutex;

/// A selection split into units, each of which has one group of positions per axis.
pub(super) struct GatherPlan<'a> {
    source: DatasetSource<'a>,
    axes: Vec<SortedAxis>,
    groups: Vec<Vec<Range<u64>>>,
    element_len: usize,
    out: Mutex<&'a mut [u8]>,
}

impl<'a> GatherPlan<'a> {
    pub fn new(request: Request<'a>) -> Self {
        let Request { source, axes, out } = request;
        let axes: Vec<SortedAxis> = axes.iter().map(SortedAxis::new).collect();
        let element_len_bytes = source.dataset.datatype.class.len_bytes();
        let mut groups = vec![Vec::new(); axes.len()];
        // From the last axis on, as much as fits into a unit.
        let mut inner_len_bytes = element_len_bytes.max(1);
        for (number, axis) in axes.iter().enumerate().rev() {
            let most = (UNIT_LEN_BYTES / inner_len_bytes).max(1);
            groups[number] = axis.groups(inseparable_len(&source, number, axis, inner_len_bytes), most);
            let longest = groups[number].iter().map(|group| axis.selection.bounds(group.clone()).1).max();
            inner_len_bytes = inner_len_bytes.saturating_mul(longest.unwrap_or(1));
        }
        Self { source, axes, groups, element_len: element_len_bytes as usize, out: Mutex::new(out) }
    }

    /// Returns the number of units.
    pub fn unit_count(&self) -> u64 {
        self.groups.iter().fold(1, |product, groups| product * groups.len() as u64)
    }

    /// Reads unit `number`.
    pub fn read(&self, number: u64, reader: &mut DatasetReader, scratch: &mut Vec<u8>) -> Result<ReadCounts> {
        let rank = self.axes.len();
        let (mut start, mut count) = (Coordinates::from_elem(0, rank), Coordinates::from_elem(0, rank));
        let mut positions = vec![0..0; rank];
        let mut rest = number;
        for axis in (0..rank).rev() {
            let groups = &self.groups[axis];
            positions[axis] = groups[(rest % groups.len() as u64) as usize].clone();
            rest /= groups.len() as u64;
            (start[axis], count[axis]) = self.axes[axis].selection.bounds(positions[axis].clone());
        }
        let len = count.iter().product::<u64>() as usize * self.element_len;
        scratch.resize(len, 0);
        let origin = [0; MAX_RANK];
        let target = BoxRead { start: &start, count: &count, out_shape: &count, out_origin: &origin[..rank] };
        let counts = reader.read_box(&self.source, &target, scratch)?;
        let mut out = lock(&self.out);
        let mut pick = Pick { plan: self, start: &start, count: &count, positions: &positions, out: &mut out };
        pick.axis(0, scratch, 0);
        Ok(counts)
    }
}

/// Returns the length of blocks along an axis that are read as a whole if any of their elements is selected:
/// `element_len_bytes` is the length of what is read for an element of the axis.
fn inseparable_len(source: &DatasetSource<'_>, number: usize, axis: &SortedAxis, element_len_bytes: u64) -> u64 {
    let is_chunked = matches!(source.dataset.layout, Layout::Chunked { .. });
    if is_chunked && (axis.is_run() || !source.dataset.filters.is_empty()) {
        return block_len(source, number);
    }
    (MAX_GAP_LEN_BYTES / element_len_bytes).max(1)
}

/// Copying of the selected elements of a box to their places.
struct Pick<'p, 'a> {
    plan: &'p GatherPlan<'a>,
    start: &'p [u64],
    count: &'p [u64],
    positions: &'p [Range<u64>],
    out: &'p mut [u8],
}

impl Pick<'_, '_> {
    /// Copies along `axis`. `part` is the rest of the box at fixed elements of the preceding axes; `place` is the
    /// corresponding output position, counted in units of the extent of `axis`.
    fn axis(&mut self, axis: usize, part: &[u8], place: u64) {
        let element_len = self.plan.element_len;
        let Some(selected) = self.plan.axes.get(axis) else {
            let at = place as usize * element_len;
            self.out[at..at + element_len].copy_from_slice(part);
            return;
        };
        let positions = self.positions[axis].clone();
        let place = place * selected.selection.count();
        let part_len = part.len() / self.count[axis] as usize;
        if axis + 1 == self.plan.axes.len() && selected.is_run() {
            let at = (place + positions.start) as usize * element_len;
            self.out[at..at + part.len()].copy_from_slice(part);
            return;
        }
        for position in positions {
            let (element, offset) = selected.at(position);
            let from = (element - self.start[axis]) as usize * part_len;
            self.axis(axis + 1, &part[from..from + part_len], place + offset);
        }
    }
}
