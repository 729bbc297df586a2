//! Element types of HDF5.
//!
//! They are independent of their encoding in a file; conversion of values is not part of this module.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// Type of one element, with the committed datatype it came from, if any.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Datatype {
    /// Class of the type, with its parameters.
    pub class: Arc<TypeClass>,
    /// Header address of the committed datatype that the object refers to; `None` if it has a private type.
    pub committed: Option<u64>,
}

/// Compares the types only. The committed datatype does not count, because addresses are local to a file.
impl PartialEq for Datatype {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.class, &other.class) || self.class == other.class
    }
}
impl Eq for Datatype {}

impl Datatype {
    /// Returns whether both types have the same elements. Their files may have addresses of different sizes.
    pub fn has_same_elements(&self, other: &Self) -> bool {
        self == other || self.class.with_long_addresses() == other.class.with_long_addresses()
    }

    /// Returns the type in a file with addresses of 8 bytes, for elements that were converted to canonical bytes.
    #[must_use]
    pub fn with_long_addresses(self) -> Self {
        match self.class.with_long_addresses() {
            Cow::Borrowed(_) => self,
            Cow::Owned(class) => Self { class: Arc::new(class), ..self },
        }
    }
}

/// A datatype, independent of the message version that encoded it. Sizes are in bytes, positions in bits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self")] // see `nesting`
#[non_exhaustive]
pub enum TypeClass {
    /// Fixed-point number.
    Integer {
        /// Size of the element.
        len_bytes: u32,
        /// Byte order.
        order: ByteOrder,
        /// Whether the number is signed (two's complement).
        signed: bool,
        /// First significant bit and number of significant bits.
        bits: BitRange,
        /// Padding below and above the significant bits (`H5T_pad_t`: 0 or 1).
        padding: (u8, u8),
    },
    /// Floating-point number.
    Float {
        /// Size of the element.
        len_bytes: u32,
        /// Byte order.
        order: ByteOrder,
        /// Significant bits.
        bits: BitRange,
        /// Padding: low, high, internal (`H5T_pad_t`: 0 or 1).
        padding: (u8, u8, u8),
        /// Mantissa normalisation: 0 none, 1 most significant bit set, 2 implied.
        normalization: u8,
        /// Position of the sign bit.
        sign_bit: u32,
        /// Exponent bits.
        exponent: BitRange,
        /// Mantissa bits.
        mantissa: BitRange,
        /// Exponent bias.
        exponent_bias: u32,
    },
    /// Time (deprecated by HDF5, kept as raw bits).
    Time {
        /// Size of the element.
        len_bytes: u32,
        /// Byte order.
        order: ByteOrder,
        /// Number of significant bits.
        precision_bits: u16,
    },
    /// Fixed-length string.
    FixedString {
        /// Size of the element.
        len_bytes: u32,
        /// Padding: 0 null-terminated, 1 null-padded, 2 space-padded.
        padding: u8,
        /// Character set: 0 ASCII, 1 UTF-8.
        charset: u8,
    },
    /// Bit field.
    Bitfield {
        /// Size of the element.
        len_bytes: u32,
        /// Byte order.
        order: ByteOrder,
        /// Significant bits.
        bits: BitRange,
        /// Padding below and above the significant bits.
        padding: (u8, u8),
    },
    /// Opaque bytes.
    Opaque {
        /// Size of the element.
        len_bytes: u32,
        /// Tag, without trailing zeros.
        tag: Vec<u8>,
    },
    /// Compound type.
    Compound {
        /// Size of the element.
        len_bytes: u32,
        /// Members, in stored order.
        members: Vec<Member>,
    },
    /// Reference as stored by HDF5 before 1.12.
    Reference(ReferenceKind),
    /// Enumeration over an integer type.
    Enum {
        /// Type of the values.
        base: Arc<TypeClass>,
        /// Name and value bytes of each symbol, in stored order.
        symbols: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// Variable-length sequence.
    Sequence {
        /// Type of the items.
        base: Arc<TypeClass>,
        /// Size of the stored descriptor (4 + address length + 4).
        len_bytes: u32,
    },
    /// Variable-length string.
    VariableString {
        /// Padding: 0 null-terminated, 1 null-padded, 2 space-padded.
        padding: u8,
        /// Character set: 0 ASCII, 1 UTF-8.
        charset: u8,
        /// Size of the stored descriptor (4 + address length + 4).
        len_bytes: u32,
    },
    /// Array of fixed shape.
    Array {
        /// Type of the items.
        base: Arc<TypeClass>,
        /// Shape of the array.
        dims: Vec<u32>,
    },
    /// Complex number (HDF5 2.0).
    Complex {
        /// Type of the real and the imaginary part.
        base: Arc<TypeClass>,
        /// Size of the element.
        len_bytes: u32,
    },
}

/// Significant bits of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BitRange {
    /// Position of the lowest bit.
    pub offset: u32,
    /// Number of bits.
    pub count: u32,
}

/// Byte order of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
    /// VAX mixed order.
    Vax,
}

/// Kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ReferenceKind {
    /// Header address of an object (`hobj_ref_t`).
    Object,
    /// Global-heap id of an object address and a selection (`hdset_reg_ref_t`).
    Region,
    /// HDF5 1.12 and later (`H5R_ref_t`): the stored sub-kind (2 object, 3 region, 4 attribute) is kept.
    Revised {
        /// Kind of reference, as stored.
        kind: u8,
        /// Size of the element.
        len_bytes: u32,
    },
}

/// Member of a compound type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Name of the member.
    pub name: Vec<u8>,
    /// Offset of the member in the element.
    pub offset_bytes: u32,
    /// Type of the member.
    pub class: Arc<TypeClass>,
}

impl TypeClass {
    /// Returns the size of one element as stored, in bytes.
    pub fn len_bytes(&self) -> u64 {
        match self {
            Self::Integer { len_bytes, .. }
            | Self::Float { len_bytes, .. }
            | Self::Time { len_bytes, .. }
            | Self::FixedString { len_bytes, .. }
            | Self::Bitfield { len_bytes, .. }
            | Self::Opaque { len_bytes, .. }
            | Self::Compound { len_bytes, .. }
            | Self::Sequence { len_bytes, .. }
            | Self::VariableString { len_bytes, .. }
            | Self::Complex { len_bytes, .. } => u64::from(*len_bytes),
            Self::Reference(kind) => match kind {
                ReferenceKind::Object => 8,
                ReferenceKind::Region => 12,
                ReferenceKind::Revised { len_bytes, .. } => u64::from(*len_bytes),
            },
            Self::Enum { base, .. } => base.len_bytes(),
            Self::Array { base, dims } => {
                dims.iter().fold(base.len_bytes(), |size, &dim| size.saturating_mul(u64::from(dim)))
            }
        }
    }

    /// Returns the type in a file with addresses of 8 bytes, as raddle writes them. Descriptors of variable-length data
    /// are shorter in a file with short addresses, and so is everything that contains them.
    pub fn with_long_addresses(&self) -> Cow<'_, Self> {
        match self {
            Self::VariableString { padding, charset, len_bytes } if *len_bytes != LONG_DESCRIPTOR_LEN_BYTES => {
                let (padding, charset, len_bytes) = (*padding, *charset, LONG_DESCRIPTOR_LEN_BYTES);
                Cow::Owned(Self::VariableString { padding, charset, len_bytes })
            }
            Self::Sequence { base, len_bytes } => match base.with_long_addresses() {
                Cow::Borrowed(_) if *len_bytes == LONG_DESCRIPTOR_LEN_BYTES => Cow::Borrowed(self),
                long => {
                    let (base, len_bytes) = (Arc::new(long.into_owned()), LONG_DESCRIPTOR_LEN_BYTES);
                    Cow::Owned(Self::Sequence { base, len_bytes })
                }
            },
            Self::Array { base, dims } => match base.with_long_addresses() {
                Cow::Borrowed(_) => Cow::Borrowed(self),
                Cow::Owned(long) => Cow::Owned(Self::Array { base: Arc::new(long), dims: dims.clone() }),
            },
            Self::Compound { len_bytes, members } => match long_members(members) {
                None => Cow::Borrowed(self),
                Some((members, added_len_bytes)) => {
                    Cow::Owned(Self::Compound { len_bytes: len_bytes.saturating_add(added_len_bytes), members })
                }
            },
            _ => Cow::Borrowed(self),
        }
    }

    /// Returns whether the stored bytes of an element point elsewhere in the file (variable-length data, references),
    /// in which case copying them to another file would be wrong.
    pub fn is_file_local(&self) -> bool {
        match self {
            Self::Sequence { .. } | Self::VariableString { .. } | Self::Reference(_) => true,
            Self::Compound { members, .. } => members.iter().any(|member| member.class.is_file_local()),
            Self::Array { base, .. } | Self::Enum { base, .. } | Self::Complex { base, .. } => base.is_file_local(),
            _ => false,
        }
    }

    /// Returns whether an element contains a reference at any depth.
    pub fn has_reference(&self) -> bool {
        match self {
            Self::Reference(_) => true,
            Self::Compound { members, .. } => members.iter().any(|member| member.class.has_reference()),
            Self::Array { base, .. } | Self::Enum { base, .. } | Self::Sequence { base, .. } => base.has_reference(),
            _ => false,
        }
    }
}

/// Length of a descriptor of variable-length data in a file with addresses of 8 bytes: a length of 4 bytes, the address
/// of a heap collection, and a number of 4 bytes.
const LONG_DESCRIPTOR_LEN_BYTES: u32 = 4 + 8 + 4;

/// Returns the members of a compound type in a file with addresses of 8 bytes, and the number of bytes by which they are
/// longer; `None` if they are the same. Gaps between members remain, as in libhdf5 (`H5T_set_loc`).
fn long_members(members: &[Member]) -> Option<(Vec<Member>, u32)> {
    let classes: Vec<Cow<'_, TypeClass>> = members.iter().map(|member| member.class.with_long_addresses()).collect();
    if classes.iter().all(|class| matches!(class, Cow::Borrowed(_))) {
        return None;
    }
    let mut in_order: Vec<usize> = (0..members.len()).collect();
    in_order.sort_by_key(|&at| members[at].offset_bytes);
    let (mut long, mut added_len_bytes) = (members.to_vec(), 0_u32);
    for at in in_order {
        long[at].offset_bytes = long[at].offset_bytes.saturating_add(added_len_bytes);
        if let Cow::Owned(class) = &classes[at] {
            let added = class.len_bytes().saturating_sub(members[at].class.len_bytes());
            added_len_bytes = added_len_bytes.saturating_add(u32::try_from(added).unwrap_or(u32::MAX));
            long[at].class = Arc::new(class.clone());
        }
    }
    Some((long, added_len_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_longer_in_files_with_long_addresses() {
        let text = |len_bytes| TypeClass::VariableString { padding: 0, charset: 1, len_bytes };
        let byte = || TypeClass::FixedString { len_bytes: 1, padding: 0, charset: 0 };
        let list = |base, len_bytes| TypeClass::Sequence { base: Arc::new(base), len_bytes };
        let record = |len_bytes, members: [(u32, TypeClass); 4]| TypeClass::Compound {
            len_bytes,
            members: members
                .into_iter()
                .map(|(offset_bytes, class)| Member { name: vec![b'a'], offset_bytes, class: Arc::new(class) })
                .collect(),
        };
        // A gap of 3 bytes before the first text, and of 7 at the end; members need not be in the order of offsets.
        let short = record(40, [(32, byte()), (0, byte()), (4, text(12)), (16, list(text(12), 12))]);
        let long = record(48, [(40, byte()), (0, byte()), (4, text(16)), (20, list(text(16), 16))]);
        assert_eq!(*short.with_long_addresses(), long);
        assert!(matches!(long.with_long_addresses(), Cow::Borrowed(_)));
        let array = |base| TypeClass::Array { base: Arc::new(base), dims: vec![2] };
        assert_eq!(*array(short).with_long_addresses(), array(long));
    }
}
