//! Dataspace messages, versions 1 and 2: the extent of a dataset or attribute.
//!
//! Selections are not covered. Invariant: an accepted extent has at most [`MAX_RANK`] dimensions, none above its
//! maximum, and fewer than 2^64 elements.

use super::cursor::{Cursor, Defect, Encoding};
use crate::model::Dataspace;

pub use raddle_core::plan::extent::MAX_RANK;

/// Decodes the body of a dataspace message.
pub(crate) fn parse(mut cursor: Cursor<'_>, encoding: &Encoding) -> Result<Dataspace, Defect> {
    let version = cursor.u8()?;
    let rank = usize::from(cursor.u8()?);
    let flags = cursor.u8()?;
    if rank > MAX_RANK {
        return Err(cursor.malformed(format!("rank {rank}")));
    }
    let class = cursor.u8()?;
    match (version, class, rank) {
        (1, _, 0) => return Ok(Dataspace::Scalar),
        (1, _, _) => cursor.skip(4)?,
        (2, 0, 0) => return Ok(Dataspace::Scalar),
        (2, 2, 0) => return Ok(Dataspace::Null),
        (2, 1, 1..) => {}
        (2, ..) => return Err(cursor.malformed(format!("class {class} with rank {rank}"))),
        _ => return Err(cursor.unsupported(format!("version {version}"))),
    }
    let dims = (0..rank).map(|_| cursor.length(encoding)).collect::<Result<Vec<_>, _>>()?;
    let max_dims = if flags & 1 == 0 {
        dims.clone()
    } else {
        (0..rank).map(|_| cursor.length_or_max(encoding)).collect::<Result<Vec<_>, _>>()?
    };
    if let Some((dim, max)) = dims.iter().zip(&max_dims).find(|(dim, max)| dim > max) {
        return Err(cursor.malformed(format!("dimension {dim} exceeds its maximum {max}")));
    }
    let space = Dataspace::Simple { dims, max_dims };
    if space.element_count().is_none() {
        return Err(cursor.malformed(format!("{:?} elements exceed 64 bits", space.dims())));
    }
    Ok(space)
}

#[cfg(test)]
mod tests {
    use super::super::damage::{ADDRESS, WIDE, check, le};
    use super::*;

    #[test]
    fn version_1_with_maxima() {
        let bytes = le(&[(1, 1), (2, 1), (1, 1), (0, 5), (3, 8), (4, 8), (u64::MAX, 8), (4, 8)]);
        let space = check(&bytes, |cursor| parse(cursor, &WIDE));
        assert_eq!(space, Dataspace::Simple { dims: vec![3, 4], max_dims: vec![u64::MAX, 4] });
    }

    #[test]
    fn version_2_without_maxima_in_short_lengths() {
        let narrow = Encoding { length_len_bytes: 4, ..WIDE };
        let bytes = le(&[(2, 1), (1, 1), (0, 1), (1, 1), (70_000, 4)]);
        let space = check(&bytes, |cursor| parse(cursor, &narrow));
        assert_eq!(space, Dataspace::Simple { dims: vec![70_000], max_dims: vec![70_000] });
        let unlimited = le(&[(2, 1), (1, 1), (1, 1), (1, 1), (7, 4), (u64::MAX, 4)]);
        let space = check(&unlimited, |cursor| parse(cursor, &narrow));
        assert_eq!(space, Dataspace::Simple { dims: vec![7], max_dims: vec![u64::MAX] });
    }

    #[test]
    fn scalar_and_null() {
        let parse = |bytes: &[u8]| parse(Cursor::new(bytes, ADDRESS, "dataspace"), &WIDE);
        assert_eq!(parse(&[1, 0, 0, 0, 0, 0, 0, 0]), Ok(Dataspace::Scalar));
        assert_eq!(parse(&[2, 0, 0, 0]), Ok(Dataspace::Scalar));
        assert_eq!(parse(&[2, 0, 0, 2]), Ok(Dataspace::Null));
        assert!(matches!(parse(&[3, 0, 0, 0]), Err(Defect::Unsupported { .. })));
    }

    #[test]
    fn contradictions_are_refused() {
        let parse = |fields: &[(u64, usize)]| parse(Cursor::new(&le(fields), ADDRESS, "dataspace"), &WIDE);
        // A dimension above its maximum; a scalar with a rank; rank 33; more than 2^64 elements.
        assert!(parse(&[(2, 1), (1, 1), (1, 1), (1, 1), (8, 8), (7, 8)]).is_err());
        assert!(parse(&[(2, 1), (1, 1), (0, 1), (0, 1), (8, 8)]).is_err());
        assert!(parse(&[(1, 1), (33, 1), (0, 6)]).is_err());
        assert!(parse(&[(2, 1), (2, 1), (0, 1), (1, 1), (1 << 32, 8), (1 << 32, 8)]).is_err());
    }
}
