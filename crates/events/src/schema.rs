//! What a source holds: products, and the form of each one's column.
//!
//! Not for values ([`crate::block`]). Invariant: a form says how many buffers a column has, in which order, and what each
//! holds ([`Form::buffers`]); whoever makes or reads a column goes by that order.

use serde::{Deserialize, Serialize};

/// The products of a source, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Schema {
    /// Products, or columns.
    pub products: Vec<Product>,
}

impl Schema {
    /// Number of the product of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.products.iter().position(|product| product.name == name)
    }

    /// Numbers of the products whose names one of some globs matches; of all if there are none.
    ///
    /// # Errors
    /// A glob that is none.
    pub fn matching(&self, globs: &[String]) -> Result<Vec<usize>, globset::Error> {
        let globs = ProductGlobs::new(globs)?;
        let products = self.products.iter().enumerate();
        Ok(products.filter(|(_, product)| globs.is_match(&product.name)).map(|(number, _)| number).collect())
    }

    /// The number of the product `name`, looked for at `likely` first: files of one kind have their products in one order.
    pub(crate) fn position_near(&self, name: &str, likely: usize) -> Option<usize> {
        let is_there = self.products.get(likely).is_some_and(|product| product.name == name);
        if is_there { Some(likely) } else { self.position(name) }
    }

    /// The products with these numbers, in their order. Numbers beyond the schema are left out.
    pub fn select(&self, products: &[usize]) -> Self {
        Self { products: products.iter().filter_map(|&number| self.products.get(number)).cloned().collect() }
    }
}

/// Patterns of products' names.
#[derive(Debug, Clone)]
pub struct ProductGlobs(Option<globset::GlobSet>);

impl ProductGlobs {
    /// Patterns; none match all names.
    ///
    /// # Errors
    /// One of them is none.
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

    /// Whether one of them matches.
    pub fn is_match(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|set| set.is_match(name))
    }
}

/// One product: what every entry has one of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Name, unique in its schema.
    pub name: String,
    /// Name of its C++ class, as the source states it.
    pub class: String,
    /// Form of its column.
    pub form: Form,
}

/// How the bytes of an entry were made from an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Serialization {
    /// As `TClass::WriteBuffer` does: with byte count and version.
    Root,
    /// Members one after the other, collections as count and elements, without byte counts.
    Unrolled,
    /// As an entry of a branch: for a top-level collection the same as unrolled.
    Basket,
}

impl Serialization {
    /// Lower-case name, as in reports.
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

/// Type of numbers, which columns hold little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Number {
    /// 0 or 1 in one byte.
    Bool,
    /// Signed.
    Int8,
    /// Signed.
    Int16,
    /// Signed.
    Int32,
    /// Signed.
    Int64,
    /// Unsigned.
    Uint8,
    /// Unsigned.
    Uint16,
    /// Unsigned.
    Uint32,
    /// Unsigned.
    Uint64,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
}

impl Number {
    /// All of them.
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

    /// Length of one.
    pub const fn len_bytes(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::Int64 | Self::Uint64 | Self::Float64 => 8,
        }
    }

    /// The name that numpy and awkward give it.
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

/// Form of a column: how its buffers make one value for each entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// One number.
    Number(Number),
    /// Always as many values.
    Regular {
        /// Most items.
        length: u64,
        /// Form of each.
        content: Box<Form>,
    },
    /// Any number of values.
    List(Box<Form>),
    /// Text: bytes in no stated encoding.
    String,
    /// Named values.
    Record(Vec<Field>),
    /// The bytes of an object.
    Blob(Serialization),
}

/// A named part of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// Name, unique in its record.
    pub name: String,
    /// Form of its values.
    pub form: Form,
}

/// What a buffer of a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BufferKind {
    /// Where each list begins among the values below, and behind the last where that ends: one more than there are lists,
    /// the first 0.
    Offsets,
    /// Numbers.
    Values(Number),
}

/// One buffer of a column, as a form describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferForm {
    /// Names of the records' fields that lead to it, joined by dots; empty for columns without records.
    pub path: String,
    /// Lists above it.
    pub depth: usize,
    /// What it holds.
    pub kind: BufferKind,
}

impl Form {
    /// A list of this form.
    pub fn list(content: Self) -> Self {
        Self::List(Box::new(content))
    }

    /// The buffers of a column of this form: of what is outside before what is inside, fields in their order.
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

/// The way awkward-array writes types, for messages: `var * {"px": float32, "hits": var * int16}`.
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
