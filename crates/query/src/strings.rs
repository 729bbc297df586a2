//! Strings of a column, one by one, however they are stored.
//!
//! Invariant: a string is what HDF5 readers show. A fixed-length string ends before the zeros that pad it, and a string
//! of variable length before its first zero. A null string is empty.

use raddle_hdf5::logical::NULL_STRING;

/// Storage form of the strings of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringForm {
    /// Fixed-length strings, padded with zeros.
    Padded {
        /// Length of each string.
        len_bytes: usize,
    },
    /// Variable-length strings in canonical bytes ([`raddle_hdf5::logical`]): each follows its length.
    Canonical,
}

impl StringForm {
    /// Calls `take` with each string.
    pub(crate) fn for_each<'b>(self, bytes: &'b [u8], mut take: impl FnMut(&'b [u8])) {
        match self {
            Self::Padded { len_bytes } => {
                bytes.chunks_exact(len_bytes.max(1)).for_each(|text| take(unpadded(text)));
            }
            Self::Canonical => canonical(bytes).for_each(take),
        }
    }

    /// Returns the strings in `bytes`, the values of several rows.
    pub(crate) fn strings(self, bytes: &[u8]) -> Vec<&[u8]> {
        let mut strings = Vec::new();
        self.for_each(bytes, |text| strings.push(text));
        strings
    }
}

/// Returns a string without the zeros at its end.
pub(crate) fn unpadded(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &text[..end]
}

/// Returns the strings of canonical bytes. Ends at one that is truncated.
fn canonical(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (len, behind) = rest.split_first_chunk::<8>()?;
        let len = Some(u64::from_le_bytes(*len)).filter(|&len| len != NULL_STRING).unwrap_or(0);
        let (text, behind) = behind.split_at_checked(usize::try_from(len).ok()?)?;
        rest = behind;
        Some(text)
    })
}

/// Returns strings in canonical bytes, for tests.
#[cfg(test)]
pub(crate) fn canonical_of<'t>(strings: impl IntoIterator<Item = &'t [u8]>) -> Vec<u8> {
    let with_length = |text: &'t [u8]| [&(text.len() as u64).to_le_bytes(), text].concat();
    strings.into_iter().flat_map(with_length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_split() {
        let padded = StringForm::Padded { len_bytes: 3 };
        assert_eq!(padded.strings(b"ab\0\0\0\0abc"), [b"ab".as_slice(), b"", b"abc"]);
        let mut bytes = canonical_of([b"ab".as_slice(), b""]);
        bytes.extend(NULL_STRING.to_le_bytes());
        bytes.extend(canonical_of([b"a longer one".as_slice()]));
        assert_eq!(StringForm::Canonical.strings(&bytes), [b"ab".as_slice(), b"", b"", b"a longer one"]);
        assert_eq!(StringForm::Canonical.strings(&bytes[..bytes.len() - 1]).len(), 3, "a truncated text ends the list");
    }
}
