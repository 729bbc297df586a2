//! Datasets that are one record each: they get a first axis of length 1, along which inputs are concatenated.
//!
//! Invariant: only the scan's extents and the plan have this axis. Files are read with the axes that they really have.

use raddle_core::plan::extent::{BoxTarget, Extent};
use raddle_hdf5::model::{Dataset, Dataspace, Layout};

/// Adds the first axis to a dataset.
pub(crate) fn lift(dataset: &mut Dataset) {
    dataset.dataspace = match std::mem::replace(&mut dataset.dataspace, Dataspace::Scalar) {
        Dataspace::Simple { mut dims, mut max_dims } => {
            dims.insert(0, 1);
            max_dims.insert(0, 1);
            Dataspace::Simple { dims, max_dims }
        }
        _ => Dataspace::Simple { dims: vec![1], max_dims: vec![1] },
    };
    if let Layout::Chunked { chunk_shape, .. } = &mut dataset.layout {
        chunk_shape.insert(0, 1);
    }
}

/// Removes the first axis from a dataset.
pub(crate) fn lower(dataset: &mut Dataset) {
    if let Dataspace::Simple { dims, max_dims } = &mut dataset.dataspace {
        dims.remove(0);
        max_dims.remove(0);
        if dims.is_empty() {
            dataset.dataspace = Dataspace::Scalar;
        }
    }
    if let Layout::Chunked { chunk_shape, .. } = &mut dataset.layout {
        chunk_shape.remove(0);
    }
}

/// Removes the first axis from a box of the single row.
pub(crate) fn lower_extent(extent: &Extent) -> Extent {
    Extent::new(&extent.start[1..], &extent.count[1..])
}

/// Returns the part of a target that receives the single row, without its first axis.
pub(crate) fn lower_target(target: BoxTarget<'_>, element_len_bytes: usize) -> BoxTarget<'_> {
    let row_len_bytes = target.shape[1..].iter().product::<u64>() as usize * element_len_bytes;
    let start = target.origin[0] as usize * row_len_bytes;
    let bytes = &mut target.bytes[start..start + row_len_bytes];
    BoxTarget { bytes, shape: &target.shape[1..], origin: &target.origin[1..] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_goes_to_its_place() {
        let mut bytes = [0; 12];
        let target = BoxTarget { bytes: &mut bytes, shape: &[3, 2], origin: &[1, 1] };
        let lowered = lower_target(target, 2);
        assert_eq!((lowered.shape, lowered.origin, lowered.bytes.len()), (&[2][..], &[1][..], 4));
        lowered.bytes.fill(7);
        assert_eq!(bytes, [0, 0, 0, 0, 7, 7, 7, 7, 0, 0, 0, 0]);
    }
}
