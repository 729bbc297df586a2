//! Texts of a column, one by one, however they are stored.
//!
//! Invariant: a text is what HDF5 readers show. A text of fixed length ends before the zeros that pad it, and a text of
//! variable length before its first zero. A null text is empty.

use raddle_hdf5::logical::NULL_STRING;

/// Storage form of the texts of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// Texts of fixed length, padded with zeros.
    Padded {
        /// Length of each text.
        len_bytes: usize,
    },
    /// Texts of variable length in canonical bytes ([`raddle_hdf5::logical`]): each follows its length.
    Canonical,
}

impl TextForm {
    /// Calls `take` with each text.
    pub(crate) fn for_each<'b>(self, bytes: &'b [u8], mut take: impl FnMut(&'b [u8])) {
        match self {
            Self::Padded { len_bytes } => {
                bytes.chunks_exact(len_bytes.max(1)).for_each(|text| take(unpadded(text)));
            }
            Self::Canonical => canonical(bytes).for_each(take),
        }
    }

    /// Returns the texts in `bytes`, the values of several rows.
    pub(crate) fn texts(self, bytes: &[u8]) -> Vec<&[u8]> {
        let mut texts = Vec::new();
        self.for_each(bytes, |text| texts.push(text));
        texts
    }
}

/// Returns a text without the zeros at its end.
pub(crate) fn unpadded(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &text[..end]
}

/// Returns the texts of canonical bytes. Ends at one that is truncated.
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

/// Returns texts in canonical bytes, for tests.
#[cfg(test)]
pub(crate) fn canonical_of<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> Vec<u8> {
    let with_length = |text: &'t [u8]| [&(text.len() as u64).to_le_bytes(), text].concat();
    texts.into_iter().flat_map(with_length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split() {
        let padded = TextForm::Padded { len_bytes: 3 };
        assert_eq!(padded.texts(b"ab\0\0\0\0abc"), [b"ab".as_slice(), b"", b"abc"]);
        let mut bytes = canonical_of([b"ab".as_slice(), b""]);
        bytes.extend(NULL_STRING.to_le_bytes());
        bytes.extend(canonical_of([b"a longer one".as_slice()]));
        assert_eq!(TextForm::Canonical.texts(&bytes), [b"ab".as_slice(), b"", b"", b"a longer one"]);
        assert_eq!(TextForm::Canonical.texts(&bytes[..bytes.len() - 1]).len(), 3, "a truncated text ends the list");
    }
}
