//! Fill value messages: the old one (0x0004) and the new one (0x0005) in versions 1 to 3.
//!
//! Buffers are filled elsewhere. Invariant: a value, if present, has the length stated in the message; the caller
//! compares that with the datatype.

use super::cursor::{Cursor, Defect};
use crate::model::{FillValue, InlineData, Layout};

/// `H5D_ALLOC_TIME_EARLY`, `_LATE`, `_INCR`.
const EARLY: u8 = 1;
const LATE: u8 = 2;
const INCREMENTAL: u8 = 3;
/// `H5D_FILL_TIME_IFSET`.
const IF_SET: u8 = 2;

/// Decodes the body of a fill value message of type 0x0005.
pub(crate) fn parse(mut cursor: Cursor<'_>) -> Result<FillValue, Defect> {
    let version = cursor.u8()?;
    let (allocation_time, write_time, defined, stored) = match version {
        1 | 2 => {
            let (allocation_time, write_time) = (cursor.u8()?, cursor.u8()?);
            let defined = cursor.u8()? != 0;
            (allocation_time, write_time, defined, defined)
        }
        3 => {
            let flags = cursor.u8()?;
            let (undefined, stored) = (flags & 0x10 != 0, flags & 0x20 != 0);
            if flags & 0xc0 != 0 || undefined && stored {
                return Err(cursor.malformed(format!("flags {flags:#04x}")));
            }
            (flags & 3, flags >> 2 & 3, !undefined, stored)
        }
        _ => return Err(cursor.unsupported(format!("version {version}"))),
    };
    let len_bytes = if stored { cursor.u32()? } else { 0 };
    // The size is signed in versions 1 and 2: negative sizes mean no value, like 0.
    let len_bytes = if version < 3 && len_bytes > i32::MAX as u32 { 0 } else { len_bytes };
    let value = cursor.take(len_bytes as usize)?;
    let value = (!value.is_empty()).then(|| InlineData::Stored(value.to_vec()));
    let user_defined = value.is_some();
    Ok(FillValue { value, user_defined, undefined: !defined, allocation_time, write_time })
}

/// Decodes the body of an old fill value message (type 0x0004).
pub(crate) fn parse_old(mut cursor: Cursor<'_>, layout: &Layout) -> Result<FillValue, Defect> {
    let len_bytes = cursor.u32()?;
    let value = cursor.take(len_bytes as usize)?;
    if value.is_empty() {
        return Ok(absent(layout));
    }
    let value = Some(InlineData::Stored(value.to_vec()));
    Ok(FillValue { value, user_defined: true, undefined: false, allocation_time: LATE, write_time: IF_SET })
}

/// Returns the fill value of a dataset without a fill value message, which exists only in files older than HDF5 1.6.
pub(crate) fn absent(layout: &Layout) -> FillValue {
    let allocation_time = match layout {
        Layout::Compact(_) => EARLY,
        Layout::Contiguous { .. } | Layout::External { .. } => LATE,
        Layout::Chunked { .. } | Layout::Virtual => INCREMENTAL,
    };
    FillValue { value: None, user_defined: false, undefined: true, allocation_time, write_time: IF_SET }
}

#[cfg(test)]
mod tests {
    use super::super::damage::{ADDRESS, check, le};
    use super::*;

    fn seven() -> Option<InlineData> {
        Some(InlineData::Stored(vec![7, 0, 0, 0]))
    }

    #[test]
    fn version_2_with_a_value() {
        let fill = check(&le(&[(2, 1), (3, 1), (2, 1), (1, 1), (4, 4), (7, 4)]), parse);
        assert_eq!((fill.value, fill.user_defined, fill.undefined), (seven(), true, false));
        assert_eq!((fill.allocation_time, fill.write_time), (INCREMENTAL, IF_SET));
    }

    #[test]
    fn version_3_packs_its_flags() {
        let fill = check(&le(&[(3, 1), (0x2e, 1), (4, 4), (7, 4)]), parse);
        assert_eq!((fill.value, fill.user_defined, fill.undefined), (seven(), true, false));
        assert_eq!((fill.allocation_time, fill.write_time), (LATE, 3));
        let undefined = check(&le(&[(3, 1), (0x19, 1)]), parse);
        assert_eq!((undefined.value, undefined.user_defined, undefined.undefined), (None, false, true));
        let default = check(&le(&[(3, 1), (0x0a, 1)]), parse);
        assert_eq!((default.value, default.user_defined, default.undefined), (None, false, false));
        assert!(parse(Cursor::new(&[3, 0x30, 0, 0, 0, 0], ADDRESS, "fill")).is_err());
    }

    #[test]
    fn negative_size_means_none() {
        let fill = check(&le(&[(2, 1), (2, 1), (0, 1), (1, 1), (u64::MAX, 4)]), parse);
        assert_eq!((fill.value, fill.user_defined), (None, false));
    }

    #[test]
    fn old_message_takes_its_time_from_the_layout() {
        let chunked = Layout::Virtual;
        let fill = check(&le(&[(4, 4), (7, 4)]), |cursor| parse_old(cursor, &chunked));
        assert_eq!((fill.value, fill.user_defined, fill.allocation_time), (seven(), true, LATE));
        let fill = check(&le(&[(0, 4)]), |cursor| parse_old(cursor, &chunked));
        assert_eq!((fill.value, fill.undefined, fill.allocation_time), (None, true, INCREMENTAL));
    }
}
