//! The front of an object: the bytes before its members, as they are written.
//!
//! [`ObjectHeader`] reads fronts. Invariant: a byte count equals the number of bytes that were written after it.

use super::object_header::{BYTE_COUNT, ObjectHeader};
use super::streamer::{ElementKind, StreamerInfo, StreamerInfos};
use raddle_columns::error::UnlocatedError;

/// Front of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Front {
    /// Version alone, as before the members of a `TObject`.
    Bare(u16),
    /// Byte count and version.
    Version(u16),
    /// Byte count, version 0 and checksum of the class. The checksum identifies a description where versions do not.
    Checksum(u32),
}

/// Maximum depth of base classes.
const MAX_DEPTH: usize = 24;

impl Front {
    /// Returns the front that ROOT writes for objects of a class.
    ///
    /// A class without `ClassDef` has version 1 and is written with its checksum. Unless the class derives from
    /// `TObject`, the file does not record whether a class of version 1 has a `ClassDef`. The checksum is right in both
    /// cases: ROOT finds the description by it.
    pub(super) fn of_class(name: &str, info: &StreamerInfo, infos: &StreamerInfos) -> Option<Self> {
        let version = u16::try_from(info.version).ok().filter(|&version| version > 0)?;
        Some(match name {
            "TObject" => Self::Bare(version),
            _ if version > 1 || is_tobject(info, infos, 0) => Self::Version(version),
            _ => Self::Checksum(info.checksum),
        })
    }

    /// Returns the front with the contents of a header.
    pub(super) fn of_header(header: &ObjectHeader) -> Self {
        match (header.end, header.checksum) {
            (None, _) => Self::Bare(header.version),
            (_, Some(checksum)) => Self::Checksum(checksum),
            _ => Self::Version(header.version),
        }
    }

    /// Appends an object: this front, followed by the bytes that `write` appends.
    pub(super) fn write(
        self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), UnlocatedError>,
    ) -> Result<(), UnlocatedError> {
        let start = out.len();
        match self {
            Self::Bare(version) => {
                out.extend_from_slice(&version.to_be_bytes());
                return write(out);
            }
            Self::Version(version) => {
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(&version.to_be_bytes());
            }
            Self::Checksum(checksum) => {
                out.extend_from_slice(&[0; 6]);
                out.extend_from_slice(&checksum.to_be_bytes());
            }
        }
        write(out)?;
        let len_bytes = u32::try_from(out.len() - start - size_of::<u32>()).ok().filter(|len| *len < BYTE_COUNT);
        let Some(len_bytes) = len_bytes else {
            let what = "it is too long for a byte count".to_owned();
            return Err(UnlocatedError::Unsupported { address: 0, structure: "object", what });
        };
        out[start..start + size_of::<u32>()].copy_from_slice(&(BYTE_COUNT | len_bytes).to_be_bytes());
        Ok(())
    }
}

/// Returns whether a class derives from `TObject`, and therefore has an explicit version.
fn is_tobject(info: &StreamerInfo, infos: &StreamerInfos, depth: usize) -> bool {
    depth < MAX_DEPTH
        && info.elements.iter().any(|element| {
            matches!(element.kind, ElementKind::Base { .. })
                && (element.name == "TObject"
                    || infos.versions(&element.name).iter().any(|base| is_tobject(base, infos, depth + 1)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_are_those_of_what_follows() {
        let written = |front: Front| {
            let mut out = vec![9];
            front
                .write(&mut out, |out| {
                    out.extend_from_slice(&[1, 2, 3]);
                    Ok(())
                })
                .unwrap();
            out
        };
        assert_eq!(written(Front::Bare(7)), [9, 0, 7, 1, 2, 3]);
        assert_eq!(written(Front::Version(7)), [9, 0x40, 0, 0, 5, 0, 7, 1, 2, 3]);
        assert_eq!(written(Front::Checksum(0x0a0b_0c0d)), [9, 0x40, 0, 0, 9, 0, 0, 10, 11, 12, 13, 1, 2, 3]);
    }
}
