//! Dataspace messages, versions 1 and 2: the extent of a dataset or attribute.
//!
//! Not for selections. Invariant: an accepted extent has at most [`MAX_RANK`] dimensions, none above its maximum, and
//! fewer than 2^64 elements.

use super::cursor::{Cursor, Defect, Encoding};
use crate::model::Dataspace;

/// Largest rank HDF5 allows (`H5S_MAX_RANK`).
pub const MAX_RANK: usize = 32;

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
