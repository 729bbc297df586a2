//! Contents of a source: its products, and the form of each product's column.
//!
//! Values are in [`crate::block`]. Invariant: a form determines the number of buffers of a column, their order
//! and their contents ([`Form::buffers`]). All code that makes or reads a column follows that order.

use serde::{Deserialize, Serialize};

/// Products of a source, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Schema {
    /// Products, each with one column.
    pub products: Vec<Product>,
}

impl Schema {
    /// Returns the number of the product of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.products.iter().position(|product| product.name == name)
    }

    /// Returns the numbers of the products whose names match any of `globs`; returns all numbers if there are no globs.
    ///
    /// # Errors
    /// If a glob is not valid.
    pub fn matching(&self, globs: &[String]) -> Result<Vec<usize>, globset::Error> {
        let globs = ProductGlobs::new(globs)?;
        let products = self.products.iter().enumerate();
        Ok(products.filter(|(_, product)| globs.is_match(&product.name)).map(|(number, _)| number).collect())
    }

    /// Returns the number of the product `name`. Tries `likely` first, because similar files have their products in the
    /// same order.
    pub fn position_near(&self, name: &str, likely: usize) -> Option<usize> {
        let is_there = self.products.get(likely).is_some_and(|product| product.name == name);
        if is_there { Some(likely) } else { self.position(name) }
    }

    /// Returns a schema of the products with these numbers, in their order. Numbers beyond the schema are left out.
    pub fn select(&self, products: &[usize]) -> Self {
        Self { products: products.iter().filter_map(|&number| self.products.get(number)).cloned().collect() }
    }
}

/// Patterns for names of products.
#[derive(Debug, Clone)]
pub struct ProductGlobs(Option<globset::GlobSet>);

impl ProductGlobs {
    /// Compiles patterns; an empty list matches all names.
    ///
    /// # Errors
    /// If a glob is not valid.
    pub fn new(globs: &[String]) -> Result<Self, globset::Error> {
        if globs.is_empty() {
            return Ok(Self(None));
        }
        let mut set = globset::GlobSetBuilder::new();
        for glob in globs {
            set.add(globset::Glob::new(glob)?);
        }
        set.build().map(Some).map(Self)
    }

    /// Returns whether any of the patterns matches `name`.
    pub fn is_match(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|set| set.is_match(name))
    }
}

/// Product: a named value that every entry has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Name, unique within the schema.
    pub name: String,
    /// Name of its C++ class, as the source states it.
    pub class: String,
    /// Form of the product's column.
    pub form: Form,
}

/// Method by which an object was serialised to the bytes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Serialization {
    /// Bytes with byte count and version, as written by `TClass::WriteBuffer`.
    Root,
    /// Members one after the other, without byte counts. A collection is its number of elements, followed by the
    /// elements.
    Unrolled,
    /// Bytes of the entry of a branch; for a top-level collection, this equals [`Self::Unrolled`].
    Basket,
}

impl Serialization {
    /// Returns the lower-case name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Unrolled => "unrolled",
            Self::Basket => "basket",
        }
    }
}

impl std::fmt::Display for Serialization {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Type of a number. Columns hold numbers as little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Number {
    /// 0 or 1 in one byte.
    Bool,
    /// Signed, 8 bits.
    Int8,
    /// Signed, 16 bits.
    Int16,
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 8 bits.
    Uint8,
    /// Unsigned, 16 bits.
    Uint16,
    /// Unsigned, 32 bits.
    Uint32,
    /// Unsigned, 64 bits.
    Uint64,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
}

impl Number {
    /// All types of numbers.
    pub const ALL: [Self; 11] = [
        Self::Bool,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Float32,
        Self::Float64,
    ];

    /// Returns the length of one number.
    pub const fn len_bytes(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::Int64 | Self::Uint64 | Self::Float64 => 8,
        }
    }

    /// Returns the name used by numpy and awkward-array.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
        }
    }
}

/// Form of a column: how its buffers represent one value per entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Single number.
    Number(Number),
    /// Fixed number of values.
    Regular {
        /// Number of values.
        length: u64,
        /// Form of each value.
        content: Box<Form>,
    },
    /// Variable number of values.
    List(Box<Form>),
    /// Text of unspecified encoding.
    String,
    /// Named values.
    Record(Vec<Field>),
    /// Bytes of an object.
    Blob(Serialization),
}

/// Named part of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// Name, unique within the record.
    pub name: String,
    /// Form of the field's values.
    pub form: Form,
}

/// Contents of a buffer of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BufferKind {
    /// Beginning of each list among the values below, followed by the end of the last list: one more than the number of
    /// lists, beginning with 0.
    Offsets,
    /// Numbers.
    Values(Number),
}

/// Description of one buffer of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferForm {
    /// Path of record fields that leads to the buffer, joined by dots; empty for columns without records.
    pub path: String,
    /// Number of lists that contain the buffer's elements.
    pub depth: usize,
    /// Contents of the buffer.
    pub kind: BufferKind,
}

impl Form {
    /// Creates the form of a list of `content`.
    pub fn list(content: Self) -> Self {
        Self::List(Box::new(content))
    }

    /// Returns the buffers of a column of this form: outer buffers before inner ones, fields in their order.
    pub fn buffers(&self) -> Vec<BufferForm> {
        let mut buffers = Vec::new();
        self.add_buffers("", 0, &mut buffers);
        buffers
    }

    fn add_buffers(&self, path: &str, depth: usize, buffers: &mut Vec<BufferForm>) {
        let mut add = |depth, kind| buffers.push(BufferForm { path: path.to_owned(), depth, kind });
        match self {
            Self::Number(number) => add(depth, BufferKind::Values(*number)),
            Self::Regular { content, .. } => content.add_buffers(path, depth, buffers),
            Self::List(content) => {
                add(depth, BufferKind::Offsets);
                content.add_buffers(path, depth + 1, buffers);
            }
            Self::String | Self::Blob(_) => {
                add(depth, BufferKind::Offsets);
                add(depth + 1, BufferKind::Values(Number::Uint8));
            }
            Self::Record(fields) => {
                for field in fields {
                    let path = if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
                    field.form.add_buffers(&path, depth, buffers);
                }
            }
        }
    }
}

/// Formats as awkward-array writes types, for messages: `var * {"px": float32, "hits": var * int16}`.
impl std::fmt::Display for Form {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => formatter.write_str(number.name()),
            Self::Regular { length, content } => write!(formatter, "{length} * {content}"),
            Self::List(content) => write!(formatter, "var * {content}"),
            Self::String => formatter.write_str("string"),
            Self::Blob(serialization) => write!(formatter, "bytes[{serialization}]"),
            Self::Record(fields) => {
                formatter.write_str("{")?;
                for (number, Field { name, form }) in fields.iter().enumerate() {
                    let comma = if number == 0 { "" } else { ", " };
                    write!(formatter, "{comma}{name:?}: {form}")?;
                }
                formatter.write_str("}")
            }
        }
    }
}
