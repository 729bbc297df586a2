//! Boxes in which arrays are read to be compared or digested, if their chunks extend over many rows.
//!
//! Invariant: a pure function of the shapes and the memory.

use super::choice::{Overlaps, candidates};
use crate::plan::ArrayPlan;
use crate::plan::extent::values_len_bytes;

/// Factor by which boxes must decrease the number of decodes to be used instead of rows.
const MIN_GAIN: f64 = 1.5;

/// Returns `array` cut into boxes of up to `limit_len_bytes` in which datasets with chunks of `chunk_shapes` are read
/// with few decodes. Returns `None` if runs of `rows` rows are about as good, or no chunk fits.
pub fn reading_boxes(array: &ArrayPlan, chunk_shapes: &[&[u64]], rows: u64, limit_len_bytes: u64) -> Option<ArrayPlan> {
    let rank = array.shape.len();
    if rank == 0 || array.shape.contains(&0) || chunk_shapes.iter().any(|chunk| chunk.len() != rank) {
        return None;
    }
    let decodes =
        |shape: &[u64]| -> f64 { chunk_shapes.iter().map(|chunk| Overlaps::of(&array.shape, chunk, shape).mean).sum() };
    let mut of_rows = array.shape.clone();
    of_rows[0] = rows.clamp(1, of_rows[0]);
    let cut = |tile_shape: &[u64]| {
        let tile_shape = tile_shape.iter().zip(&array.shape).map(|(tile, len)| *tile.min(len).max(&1)).collect();
        ArrayPlan { tile_shape, ..array.clone() }
    };
    let of_chunks = |chunk: &&[u64]| {
        let cells = cut(chunk);
        let groups = candidates(&cells, chunk, limit_len_bytes);
        groups.into_iter().map(move |groups| groups.shape(&cells)).collect::<Vec<_>>()
    };
    let shapes = chunk_shapes.iter().flat_map(of_chunks);
    let best = shapes.map(|shape| (decodes(&shape), values_len_bytes(&shape, array.element_len_bytes), shape));
    let (fewest, _, shape) = best.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)))?;
    (fewest * MIN_GAIN < decodes(&of_rows)).then(|| cut(&shape))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn boxes(shape: &[u64], chunk_shapes: &[&[u64]], rows: u64, limit: u64) -> Option<Vec<u64>> {
        let array = ArrayPlan { shape: shape.to_vec(), element_len_bytes: 4, ..ArrayPlan::default() };
        Some(reading_boxes(&array, chunk_shapes, rows, limit)?.tile_shape)
    }

    #[test]
    fn rows_suffice_for_chunks_of_rows() {
        assert_eq!(boxes(&[1 << 20], &[&[1 << 16]], 1 << 20, 1 << 22), None);
        assert_eq!(boxes(&[4000, 20_000], &[&[10, 20_000]], 52, 16 << 20), None);
        assert_eq!(boxes(&[0, 4], &[&[1, 4]], 1, 1 << 20), None);
    }

    #[test]
    fn tall_chunks_are_read_in_boxes_of_chunks() {
        assert_eq!(boxes(&[4000, 20_000], &[&[4000, 100]], 52, 16 << 20), Some(vec![4000, 100]));
        // A box serves both sides: every box decodes all chunks of one of them, so it is as large as possible.
        let shape = boxes(&[4000, 20_000], &[&[10, 20_000], &[4000, 100]], 52, 16 << 20).unwrap();
        assert_eq!(shape.iter().product::<u64>(), 4_000_000);
        assert_eq!(boxes(&[4000, 20_000], &[&[4000, 100]], 52, 1000), None);
    }
}
