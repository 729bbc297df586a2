//! Element types of HDF5.
//!
//! They are independent of their encoding in a file; conversion of values is not part of this module.

use serde::{Deserialize, Serialize};
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
