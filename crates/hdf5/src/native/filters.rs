//! Filter pipeline messages, versions 1 and 2.
//!
//! Filters are run by `raddle-codec`. Invariant: filters are in the order applied on writing, and at most
//! [`MAX_FILTERS`].

use super::cursor::{Cursor, Defect};
use raddle_codec::Filter;

/// Maximum length of a pipeline in HDF5 (`H5Z_MAX_NFILTERS`): a filter mask has 32 bits.
pub const MAX_FILTERS: usize = 32;

/// First filter number that is stored with a name in version 2; smaller ones belong to HDF5.
const FIRST_NAMED_FILTER: u16 = 256;

/// Returns the name under which libhdf5 registers one of its own filters. Version 1 stores it, version 2 does not.
/// Filters get the same names in both, so that pipelines of files of different age compare equal.
fn library_name(id: u16) -> Option<&'static [u8]> {
    match id {
        1 => Some(b"deflate"),
        2 => Some(b"shuffle"),
        3 => Some(b"fletcher32"),
        4 => Some(b"szip"),
        5 => Some(b"nbit"),
        6 => Some(b"scaleoffset"),
        _ => None,
    }
}

/// Decodes the body of a filter pipeline message.
pub(crate) fn parse(mut cursor: Cursor<'_>) -> Result<Vec<Filter>, Defect> {
    let version = cursor.u8()?;
    let count = usize::from(cursor.u8()?);
    match version {
        1 => cursor.skip(6)?,
        2 => {}
        _ => return Err(cursor.unsupported(format!("version {version}"))),
    }
    if count > MAX_FILTERS {
        return Err(cursor.malformed(format!("{count} filters")));
    }
    (0..count).map(|_| parse_filter(&mut cursor, version)).collect()
}

fn parse_filter(cursor: &mut Cursor<'_>, version: u8) -> Result<Filter, Defect> {
    let id = cursor.u16()?;
    let name_len = if version == 1 || id >= FIRST_NAMED_FILTER { usize::from(cursor.u16()?) } else { 0 };
    let optional = cursor.u16()? & 1 == 1;
    let parameter_count = usize::from(cursor.u16()?);
    let stored_name = match version {
        // Padded to a multiple of 8; the stored length already is one.
        1 => cursor.take(name_len.next_multiple_of(8))?,
        _ => cursor.take(name_len)?,
    };
    let stored_name = stored_name.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut parameters = cursor.part(4 * parameter_count, "filter parameters")?;
    let parameters = (0..parameter_count).map(|_| parameters.u32()).collect::<Result<_, _>>()?;
    if version == 1 && parameter_count % 2 == 1 {
        cursor.skip(4)?;
    }
    Ok(Filter { id, optional, name: library_name(id).unwrap_or(stored_name).to_vec(), parameters })
}

#[cfg(test)]
mod tests {
    use super::super::damage::{check, le};
    use super::*;

    #[test]
    fn version_1_pads_names_and_odd_parameters() {
        let mut bytes = le(&[(1, 1), (2, 1), (0, 6), (1, 2), (8, 2), (1, 2), (1, 2)]);
        bytes.extend_from_slice(b"deflate\0");
        bytes.extend(le(&[(6, 4), (0, 4), (300, 2), (8, 2), (0, 2), (2, 2)]));
        bytes.extend_from_slice(b"mine\0\0\0\0");
        bytes.extend(le(&[(7, 4), (8, 4)]));
        let filters = check(&bytes, parse);
        assert_eq!(
            filters,
            [
                Filter { id: 1, optional: true, name: b"deflate".to_vec(), parameters: vec![6] },
                Filter { id: 300, optional: false, name: b"mine".to_vec(), parameters: vec![7, 8] },
            ]
        );
    }

    #[test]
    fn version_2_names_only_foreign_filters() {
        let mut bytes = le(&[(2, 1), (2, 1), (3, 2), (0, 2), (0, 2), (32_000, 2), (4, 2), (1, 2), (1, 2)]);
        bytes.extend_from_slice(b"lzf\0");
        bytes.extend(le(&[(5, 4)]));
        let filters = check(&bytes, parse);
        assert_eq!(
            filters,
            [
                Filter { id: 3, optional: false, name: b"fletcher32".to_vec(), parameters: vec![] },
                Filter { id: 32_000, optional: true, name: b"lzf".to_vec(), parameters: vec![5] },
            ]
        );
    }
}
