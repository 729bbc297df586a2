//! One-dimensional growing datasets and attributes: the building blocks of a layout's plan.
//!
//! Invariant: conversions between number types and HDF5 types are inverse to each other.

use raddle_columns::schema::Number;
use raddle_hdf5::model::{BitRange, ByteOrder, Dataspace, TypeClass};
use raddle_hdf5::write::{AttributeSpec, Compat, TypeRef};
use std::sync::Arc;

/// Dataset to be written.
#[derive(Debug, Clone)]
pub(super) struct Series {
    /// Absolute path in the file.
    pub path: String,
    /// Type of the elements.
    pub number: Number,
    /// Whether the dataset holds offsets, which begin with 0.
    pub starts_with_zero: bool,
    /// Whether the dataset is left out if no element is appended, because the source has no values for it.
    pub is_optional: bool,
    pub attributes: Vec<SeriesAttribute>,
}

impl Series {
    /// Creates a dataset of values.
    pub fn values(path: String, number: Number) -> Self {
        Self { path, number, starts_with_zero: false, is_optional: false, attributes: Vec::new() }
    }

    /// Creates a dataset of 64-bit offsets, one more than the number of ranges.
    pub fn offsets(path: String) -> Self {
        Self { starts_with_zero: true, ..Self::values(path, Number::Uint64) }
    }

    /// Marks the dataset to be left out if the source has no values for it.
    pub fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    /// Adds an attribute.
    pub fn with(mut self, name: &str, value: SeriesValue) -> Self {
        self.attributes.push(SeriesAttribute::new(name, value));
        self
    }
}

/// Elements that a block appends to a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SeriesPiece {
    /// Elements as little-endian bytes.
    Values(Vec<u8>),
    /// Ends of ranges, counted from the beginning of the block; the dataset stores them counted from its own beginning.
    Ends(Vec<u64>),
    /// Beginning of the first range, which is 0, and the ends of all.
    Offsets(Vec<u64>),
}

/// Block cut into pieces, one for each dataset of the plan.
#[derive(Debug)]
pub(super) struct PartitionedBlock {
    pub pieces: Vec<SeriesPiece>,
    pub entries: u64,
}

/// Attribute to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeriesAttribute {
    pub name: String,
    pub value: SeriesValue,
}

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SeriesValue {
    String(String),
    Strings(Vec<String>),
    Int32(i32),
    Uint64(u64),
}

impl SeriesAttribute {
    pub fn new(name: &str, value: SeriesValue) -> Self {
        Self { name: name.to_owned(), value }
    }

    pub fn text(name: &str, text: impl Into<String>) -> Self {
        Self::new(name, SeriesValue::String(text.into()))
    }

    /// Encodes the attribute for the writer of files.
    pub fn encoded(&self) -> EncodedAttribute<'_> {
        let string = || TypeClass::VariableString { padding: 0, charset: 1, len_bytes: 16 };
        let (class, dataspace) = match &self.value {
            SeriesValue::String(_) => (string(), Dataspace::Scalar),
            SeriesValue::Strings(strings) => {
                let dims = vec![strings.len() as u64];
                (string(), Dataspace::Simple { max_dims: dims.clone(), dims })
            }
            SeriesValue::Int32(_) => (integer(4, true), Dataspace::Scalar),
            SeriesValue::Uint64(_) => (integer(8, false), Dataspace::Scalar),
        };
        let mut value = Vec::new();
        let mut push_text = |text: &String| {
            value.extend_from_slice(&(text.len() as u64).to_le_bytes());
            value.extend_from_slice(text.as_bytes());
        };
        match &self.value {
            SeriesValue::String(text) => push_text(text),
            SeriesValue::Strings(strings) => strings.iter().for_each(push_text),
            SeriesValue::Int32(number) => value.extend_from_slice(&number.to_le_bytes()),
            SeriesValue::Uint64(number) => value.extend_from_slice(&number.to_le_bytes()),
        }
        EncodedAttribute { name: &self.name, datatype: TypeRef::Own(Arc::new(class)), dataspace, value }
    }

    /// Returns the maximum room that the attribute takes among the metadata.
    pub fn len_bytes(&self, compat: Compat) -> u64 {
        self.encoded().spec().message_len_bytes(compat)
    }
}

/// Parts of an encoded attribute.
pub(super) struct EncodedAttribute<'a> {
    name: &'a str,
    datatype: TypeRef,
    dataspace: Dataspace,
    value: Vec<u8>,
}

impl EncodedAttribute<'_> {
    /// Returns the description that the writer of files expects.
    pub fn spec(&self) -> AttributeSpec<'_> {
        let Self { name, datatype, dataspace, value } = self;
        AttributeSpec { name: name.as_bytes(), utf8: !name.is_ascii(), datatype, dataspace, value }
    }
}

fn integer(len_bytes: u32, signed: bool) -> TypeClass {
    let bits = BitRange { offset: 0, count: 8 * len_bytes };
    TypeClass::Integer { len_bytes, order: ByteOrder::Little, signed, bits, padding: (0, 0) }
}

fn float(len_bytes: u32, exponent_bits: u32) -> TypeClass {
    let mantissa_bits = 8 * len_bytes - 1 - exponent_bits;
    TypeClass::Float {
        len_bytes,
        order: ByteOrder::Little,
        bits: BitRange { offset: 0, count: 8 * len_bytes },
        padding: (0, 0, 0),
        // The leading bit of the mantissa is implied.
        normalization: 2,
        sign_bit: 8 * len_bytes - 1,
        exponent: BitRange { offset: mantissa_bits, count: exponent_bits },
        mantissa: BitRange { offset: 0, count: mantissa_bits },
        exponent_bias: (1 << (exponent_bits - 1)) - 1,
    }
}

/// Returns the HDF5 type of a number. Booleans have the type that h5py uses for them.
pub(super) fn class_of(number: Number) -> TypeClass {
    match number {
        Number::Bool => TypeClass::Enum {
            base: Arc::new(integer(1, true)),
            symbols: vec![(b"FALSE".to_vec(), vec![0]), (b"TRUE".to_vec(), vec![1])],
        },
        Number::Int8 => integer(1, true),
        Number::Int16 => integer(2, true),
        Number::Int32 => integer(4, true),
        Number::Int64 => integer(8, true),
        Number::Uint8 => integer(1, false),
        Number::Uint16 => integer(2, false),
        Number::Uint32 => integer(4, false),
        Number::Uint64 => integer(8, false),
        Number::Float32 => float(4, 8),
        Number::Float64 => float(8, 11),
    }
}

/// Returns the number type that an HDF5 type represents.
pub(super) fn number_of_class(class: &TypeClass) -> Option<Number> {
    Number::ALL.into_iter().find(|&number| class_of(number) == *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_lead_to_each_other() {
        for number in Number::ALL {
            let class = class_of(number);
            assert_eq!(class.len_bytes(), number.len_bytes() as u64);
            assert_eq!(number_of_class(&class), Some(number));
        }
        assert_eq!(number_of_class(&integer(3, true)), None);
    }
}
