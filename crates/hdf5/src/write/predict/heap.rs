//! Estimates the space of variable-length values in the global heap from a sample of them.
//!
//! For upper bounds see [`super::values_len_bytes`]. Invariant: canonical bytes are never read beyond their end.

use crate::logical::NULL_STRING;
use crate::model::{ReferenceKind, TypeClass};

/// Length of the shortest collection of the global heap, including its header and the header of its free space.
const COLLECTION_LEN_BYTES: u64 = 4096;
const COLLECTION_HEADER_LEN_BYTES: u64 = 32;
/// Length of the header of a value in a collection.
const VALUE_HEADER_LEN_BYTES: u64 = 16;

/// Estimated contents of the global heap.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HeapContent {
    /// Number of values.
    pub values: f64,
    /// Length of the values that share collections, with headers and padding.
    shared_len_bytes: f64,
    /// Number of the values that share collections.
    shared_values: f64,
    /// Length of collections that hold one long value each.
    alone_len_bytes: f64,
}

impl HeapContent {
    /// Returns the heap content of the elements of `class` in `canonical`, or `None` if the bytes end too early or the
    /// type has no canonical form.
    pub fn of(class: &TypeClass, canonical: &[u8]) -> Option<Self> {
        let (mut content, mut rest) = (Self::default(), canonical);
        while !rest.is_empty() {
            let before = rest.len();
            content.add_element(class, &mut rest)?;
            if rest.len() == before {
                return None;
            }
        }
        Some(content)
    }

    /// Returns `factor` times this content.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            values: self.values * factor,
            shared_len_bytes: self.shared_len_bytes * factor,
            shared_values: self.shared_values * factor,
            alone_len_bytes: self.alone_len_bytes * factor,
        }
    }

    /// Adds the content of another dataset of the file.
    pub fn add(&mut self, other: Self) {
        self.values += other.values;
        self.shared_len_bytes += other.shared_len_bytes;
        self.shared_values += other.shared_values;
        self.alone_len_bytes += other.alone_len_bytes;
    }

    /// Adds a value of this length.
    pub fn add_value(&mut self, len_bytes: u64) {
        if len_bytes == 0 {
            return;
        }
        let len_bytes = len_bytes.next_multiple_of(8).saturating_add(VALUE_HEADER_LEN_BYTES);
        self.values += 1.0;
        if len_bytes.saturating_add(COLLECTION_HEADER_LEN_BYTES) > COLLECTION_LEN_BYTES {
            self.alone_len_bytes += (len_bytes + COLLECTION_HEADER_LEN_BYTES) as f64;
        } else {
            self.shared_values += 1.0;
            self.shared_len_bytes += len_bytes as f64;
        }
    }

    /// Returns the length of all collections.
    pub fn len_bytes(&self) -> f64 {
        if self.shared_values == 0.0 {
            return self.alone_len_bytes;
        }
        // A collection ends with less space than the next value needs; a shorter later value may still use some of it.
        let mean_len_bytes = self.shared_len_bytes / self.shared_values;
        let used = (COLLECTION_LEN_BYTES - COLLECTION_HEADER_LEN_BYTES) as f64 - mean_len_bytes / 4.0;
        let collections = (self.shared_len_bytes / used).max(1.0);
        collections * COLLECTION_LEN_BYTES as f64 + self.alone_len_bytes
    }

    fn add_element(&mut self, class: &TypeClass, rest: &mut &[u8]) -> Option<()> {
        if !class.is_file_local() {
            return take(rest, class.len_bytes()).map(drop);
        }
        match class {
            TypeClass::VariableString { .. } => match number(rest)? {
                NULL_STRING => {}
                len_bytes => {
                    take(rest, len_bytes)?;
                    self.add_value(len_bytes);
                }
            },
            TypeClass::Sequence { base, .. } => {
                let count = number(rest)?;
                let len_bytes = count.checked_mul(base.len_bytes())?;
                self.add_value(len_bytes);
                if base.is_file_local() {
                    (0..count).try_for_each(|_| self.add_element(base, rest))?;
                } else {
                    take(rest, len_bytes)?;
                }
            }
            TypeClass::Compound { members, .. } => {
                members.iter().try_for_each(|member| self.add_element(&member.class, rest))?;
            }
            TypeClass::Array { base, dims } => {
                let count = dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim.into()))?;
                (0..count).try_for_each(|_| self.add_element(base, rest))?;
            }
            TypeClass::Reference(ReferenceKind::Object) => {
                let len_bytes = number(rest)?;
                take(rest, len_bytes)?;
            }
            _ => return None,
        }
        Some(())
    }
}

fn take<'a>(rest: &mut &'a [u8], len_bytes: u64) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(usize::try_from(len_bytes).ok()?)?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    take(rest, 8)?.first_chunk().copied().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BitRange, ByteOrder};
    use std::sync::Arc;

    fn text() -> TypeClass {
        TypeClass::VariableString { padding: 0, charset: 0, len_bytes: 16 }
    }

    fn string(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes(), text].concat()
    }

    #[test]
    fn values_are_counted_by_their_lengths() {
        let canonical =
            [string(b"muon"), string(b""), NULL_STRING.to_le_bytes().to_vec(), string(&[b'x'; 5000])].concat();
        let content = HeapContent::of(&text(), &canonical).unwrap();
        assert_eq!((content.values, content.shared_len_bytes, content.alone_len_bytes), (2.0, 24.0, 5048.0));
        assert_eq!(content.len_bytes(), 4096.0 + 5048.0);
        assert_eq!(HeapContent::of(&text(), &canonical[..canonical.len() - 1]), None);
    }

    #[test]
    fn values_within_values_are_counted_too() {
        let bits = BitRange { offset: 0, count: 8 };
        let byte = TypeClass::Integer { len_bytes: 1, order: ByteOrder::Little, signed: false, bits, padding: (0, 0) };
        let inner = Arc::new(TypeClass::Sequence { base: Arc::new(byte), len_bytes: 16 });
        let outer = TypeClass::Sequence { base: inner, len_bytes: 16 };
        let canonical = [2_u64, 3].map(u64::to_le_bytes).concat();
        let canonical = [&canonical[..], b"abc", &0_u64.to_le_bytes()].concat();
        let content = HeapContent::of(&outer, &canonical).unwrap();
        // Two descriptors of 16 bytes, and three bytes.
        assert_eq!((content.values, content.shared_len_bytes), (2.0, 48.0 + 24.0));
    }
}
