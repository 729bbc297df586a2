//! CMIP7 chunk shapes: the time coordinate and its bounds are one chunk each, and chunks of the data variable have
//! at least 4 MiB.
//!
//! `check_cmip7_packing` of the package `cmip7_repack` checks these rules. It finds the variables by name: `/time`, the
//! attribute `bounds` of `/time`, and the global attribute `variable_id`. Invariant: a chunk shape that meets the rules
//! is kept.

use super::layout::Shape;
use crate::schema::Schema;
use crate::schema::attribute;

/// Minimum size of a chunk of the data variable, in bytes.
const MIN_CHUNK_LEN_BYTES: u64 = 4 << 20;

/// Role of a variable in the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cmip7Role {
    /// The time coordinate, or its bounds.
    Time,
    /// The data variable.
    Data,
    /// A variable without a rule.
    Other,
}

/// Paths of the variables of a file that have rules.
#[derive(Debug, Default)]
pub(crate) struct Cmip7Variables {
    bounds: Option<Vec<u8>>,
    data: Option<Vec<u8>>,
}

impl Cmip7Variables {
    /// Finds the variables of an output.
    pub(crate) fn of(schema: &Schema) -> Self {
        let text = |path: &[u8], name: &str| {
            let entry = schema.entries.iter().find(|entry| entry.path == path)?;
            attribute::text(&entry.attributes, name)
        };
        let path = |name: String| format!("/{}", name.trim().trim_start_matches('/')).into_bytes();
        Self { bounds: text(b"/time", "bounds").map(path), data: text(b"/", "variable_id").map(path) }
    }

    /// Returns the role of the variable at `path`.
    pub(crate) fn role(&self, path: &[u8]) -> Cmip7Role {
        match path {
            b"/time" => Cmip7Role::Time,
            path if self.bounds.as_deref() == Some(path) => Cmip7Role::Time,
            path if self.data.as_deref() == Some(path) => Cmip7Role::Data,
            _ => Cmip7Role::Other,
        }
    }
}

/// Returns the chunk shape for a variable with a rule; `None` for one without.
pub(crate) fn chunk_shape(role: Cmip7Role, shape: Shape<'_>) -> Option<Vec<u64>> {
    match role {
        // Without records, the shape of the input is kept.
        Cmip7Role::Time | Cmip7Role::Data if shape.dims.contains(&0) => None,
        Cmip7Role::Time => Some(shape.dims.to_vec()),
        Cmip7Role::Data => Some(data_chunk(shape)),
        Cmip7Role::Other => None,
    }
}

/// Grows the chunk of the input along the first axis, then along the next ones, to [`MIN_CHUNK_LEN_BYTES`]. Along the
/// first axis it grows to the last length that does not exceed this size, which the rules permit.
fn data_chunk(shape: Shape<'_>) -> Vec<u64> {
    let dims = shape.dims;
    let mut chunk: Vec<u64> = match shape.input_chunk {
        Some(chunk) => chunk.iter().zip(dims).map(|(&chunk, &dim)| chunk.clamp(1, dim)).collect(),
        None => std::iter::once(1).chain(dims.iter().skip(1).copied()).collect(),
    };
    let len_bytes =
        |chunk: &[u64]| chunk.iter().fold(shape.element_len_bytes.max(1), |product, &len| product.saturating_mul(len));
    for axis in 0..dims.len() {
        // One more element along the first axis would be enough.
        let has_rest = dims.len() > 1;
        let slack_len_bytes = if has_rest { len_bytes(&chunk) / chunk[0] } else { 0 };
        if len_bytes(&chunk).saturating_add(slack_len_bytes) >= MIN_CHUNK_LEN_BYTES {
            break;
        }
        let row_len_bytes = (len_bytes(&chunk) / chunk[axis]).max(1);
        let rows = match axis {
            0 if has_rest => MIN_CHUNK_LEN_BYTES / row_len_bytes,
            _ => MIN_CHUNK_LEN_BYTES.div_ceil(row_len_bytes),
        };
        chunk[axis] = rows.clamp(chunk[axis], dims[axis]);
    }
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(dims: &[u64], input_chunk: Option<&[u64]>) -> Vec<u64> {
        data_chunk(Shape { dims, element_len_bytes: 4, input_chunk })
    }

    /// Returns whether `check_cmip7_packing` accepts a data variable of 4-byte values with these chunks.
    fn is_accepted(dims: &[u64], chunk: &[u64]) -> bool {
        let rest = if chunk.len() > 1 { 4 * chunk[1..].iter().product::<u64>() } else { 0 };
        let has_one = chunk.iter().zip(dims).all(|(chunk, dim)| chunk >= dim);
        has_one || 4 * chunk.iter().product::<u64>() + rest >= MIN_CHUNK_LEN_BYTES
    }

    #[test]
    fn small_chunks_grow_along_the_first_axis() {
        assert_eq!(data(&[1800, 144, 192], Some(&[1, 144, 192])), [37, 144, 192]);
        assert_eq!(data(&[1800, 144, 192], None), [37, 144, 192]);
        assert_eq!(data(&[1800, 144, 192], Some(&[1, 72, 96])), [151, 72, 96]);
        assert_eq!(data(&[10_000_000], Some(&[512])), [1 << 20]);
    }

    #[test]
    fn chunks_that_are_large_enough_are_kept() {
        assert_eq!(data(&[1800, 144, 192], Some(&[75, 144, 192])), [75, 144, 192]);
        assert_eq!(data(&[1800, 144, 192], Some(&[37, 144, 192])), [37, 144, 192]);
        assert_eq!(data(&[2, 3000, 3000], Some(&[1, 3000, 3000])), [1, 3000, 3000]);
    }

    #[test]
    fn every_chunk_is_accepted() {
        for dims in
            [vec![5_u64, 400, 600], vec![24, 24, 36], vec![1, 5000, 5000], vec![100, 1, 1, 90_000], vec![3, 7, 1 << 22]]
        {
            for first in [1, 2, dims[0]] {
                for cut in [1, 2, 5] {
                    let mut from: Vec<u64> = dims.iter().map(|dim| dim.div_ceil(cut)).collect();
                    from[0] = first;
                    let chunk = data(&dims, Some(&from));
                    assert!(is_accepted(&dims, &chunk), "{dims:?} in {from:?}: {chunk:?}");
                    assert!(chunk.iter().zip(&dims).all(|(chunk, dim)| chunk <= dim), "{dims:?}: {chunk:?}");
                }
            }
        }
        assert!(!is_accepted(&[1800, 144, 192], &[1, 144, 192]));
    }

    #[test]
    fn variables_without_a_rule_have_no_shape() {
        let shape = Shape { dims: &[9, 2], element_len_bytes: 8, input_chunk: Some(&[1, 2]) };
        assert_eq!(chunk_shape(Cmip7Role::Other, shape), None);
        assert_eq!(chunk_shape(Cmip7Role::Time, shape), Some(vec![9, 2]));
        assert_eq!(chunk_shape(Cmip7Role::Time, Shape { dims: &[0, 2], ..shape }), None);
    }
}
