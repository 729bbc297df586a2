//! Fields and columns from the header and the footer's extension, and the way in which columns represent a field's
//! values.
//!
//! Invariant: buffers are numbered in the order of [`Form::buffers`]; a field that is not fully understood is left out.

use super::envelope::{list, record, text};
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use raddle_columns::schema::{Field, Form, Number, Product};
use std::collections::HashMap;

/// Field record of the description.
#[derive(Debug, Clone)]
pub(super) struct FieldRecord {
    parent: u32,
    role: u16,
    name: String,
    type_name: String,
    /// Length of an array of fixed length.
    repetition: Option<u64>,
    /// Field whose columns this one projects.
    source: Option<u32>,
}

/// Column record of the description.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnRecord {
    pub kind: ColumnKind,
    field: u32,
    representation: u16,
    /// Number of the first stored element, for a column that was added later.
    first: Option<i64>,
}

/// Contents of a column's pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ColumnKind {
    /// Single bits, packed, least significant first.
    Bits,
    /// Numbers as they are in memory.
    Plain(Number),
    /// Numbers whose bytes are stored separately: first all lowest bytes, then the next, and so on.
    Split(Number),
    /// Like [`Self::Split`], but zigzag-encoded so that numbers of small magnitude have few bits.
    SplitZigzag(Number),
    /// Ends of collections.
    Index {
        len_bytes: usize,
    },
    /// Differences between ends of collections, with bytes stored separately.
    SplitIndex {
        len_bytes: usize,
    },
    /// Highest bits of 32-bit floats, packed.
    Truncated {
        bits: u32,
    },
    /// Integer steps between two limits, packed.
    Quantized {
        bits: u32,
        least: f64,
        greatest: f64,
    },
    Unknown(u16),
}

/// Way in which columns represent values. `buffer` is the number of the node's first buffer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Number {
        column: usize,
        buffer: usize,
    },
    /// Sizes of collections, as numbers of `len_bytes` bytes.
    Sizes {
        column: usize,
        len_bytes: usize,
        buffer: usize,
    },
    Text {
        index: usize,
        characters: usize,
        buffer: usize,
    },
    List {
        index: usize,
        buffer: usize,
        content: Box<Node>,
    },
    Regular {
        length: u64,
        content: Box<Node>,
    },
    Record(Vec<Node>),
}

impl Node {
    /// Appends the numbers of the columns that hold the values.
    pub(super) fn push_columns(&self, columns: &mut Vec<usize>) {
        match self {
            Self::Number { column, .. } | Self::Sizes { column, .. } => columns.push(*column),
            Self::Text { index, characters, .. } => columns.extend([*index, *characters]),
            Self::List { index, content, .. } => {
                columns.push(*index);
                content.push_columns(columns);
            }
            Self::Regular { content, .. } => content.push_columns(columns),
            Self::Record(nodes) => nodes.iter().for_each(|node| node.push_columns(columns)),
        }
    }
}

/// All fields and columns of an RNTuple.
#[derive(Debug, Default)]
pub(super) struct Description {
    fields: Vec<FieldRecord>,
    pub columns: Vec<ColumnRecord>,
}

/// Supported top-level field.
#[derive(Debug)]
pub(super) struct Understood {
    pub product: Product,
    pub node: Node,
    pub deferred: Vec<DeferredColumn>,
}

/// Column whose first elements are zero and not stored, because it was added when the RNTuple already had entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeferredColumn {
    pub column: usize,
    /// Number of the first stored element, counted over all clusters.
    pub first: u64,
    /// Number of elements of each entry.
    pub per_entry: u64,
}

/// Maximum depth of fields within fields.
const MAX_DEPTH: usize = 64;

impl Description {
    /// Reads the four lists of a description; aliases and extra type information are ignored.
    pub fn read(&mut self, bytes: &mut Bytes<'_>) -> Result<(), UnlocatedError> {
        let (count, mut fields) = list(bytes)?;
        for _ in 0..count {
            self.fields.push(read_field(&mut record(&mut fields)?)?);
        }
        let (count, mut columns) = list(bytes)?;
        for _ in 0..count {
            self.columns.push(read_column(&mut record(&mut columns)?)?);
        }
        list(bytes)?;
        list(bytes)?;
        Ok(())
    }

    /// Returns, for each column, its other representations with elements of the same kind.
    pub fn alternatives(&self) -> Vec<Vec<usize>> {
        let mut places = HashMap::<(u32, u16), Vec<usize>>::new();
        for (number, column) in self.columns.iter().enumerate() {
            places.entry((column.field, column.representation)).or_default().push(number);
        }
        let mut alternatives = vec![Vec::new(); self.columns.len()];
        for (&(field, representation), columns) in &places {
            let Some(first) = places.get(&(field, 0)).filter(|_| representation > 0) else { continue };
            for (&of_first, &column) in first.iter().zip(columns) {
                let [left, right] = [of_first, column].map(|column| self.columns[column].kind);
                if (left.number(), left.is_index()) == (right.number(), right.is_index()) && left.is_known() {
                    alternatives[of_first].push(column);
                }
            }
        }
        alternatives
    }

    /// Returns the top-level fields in their order; for an unsupported field, returns the name and the reason.
    pub fn products(&self) -> Vec<Result<Understood, (String, String)>> {
        let mut children = vec![Vec::new(); self.fields.len()];
        for (number, field) in self.fields.iter().enumerate() {
            if let Some(of_parent) = children.get_mut(field.parent as usize)
                && field.parent as usize != number
            {
                of_parent.push(number);
            }
        }
        let mut columns = vec![Vec::new(); self.fields.len()];
        for (number, column) in self.columns.iter().enumerate() {
            if let Some(of_field) = columns.get_mut(column.field as usize)
                && column.representation == 0
            {
                of_field.push(number);
            }
        }
        let top = self.fields.iter().enumerate().filter(|(number, field)| field.parent as usize == *number);
        top.map(|(number, field)| {
            let mut compiler = Compiler {
                description: self,
                children: &children,
                columns: &columns,
                buffers: 0,
                per_entry: Some(1),
                deferred: Vec::new(),
            };
            match compiler.node(number, 0) {
                Ok((node, form)) => {
                    let (name, class) = (field.name.clone(), field.type_name.clone());
                    Ok(Understood { product: Product { name, class, form }, node, deferred: compiler.deferred })
                }
                Err(why) => Err((field.name.clone(), why)),
            }
        })
        .collect()
    }
}

fn read_field(bytes: &mut Bytes<'_>) -> Result<FieldRecord, UnlocatedError> {
    let (_field_version, _type_version) = (bytes.le_u32()?, bytes.le_u32()?);
    let parent = bytes.le_u32()?;
    let (role, flags) = (bytes.le_u16()?, bytes.le_u16()?);
    let (name, type_name) = (text(bytes)?, text(bytes)?);
    let (_alias, _description) = (text(bytes)?, text(bytes)?);
    let repetition = if flags & 1 != 0 { Some(bytes.le_u64()?) } else { None };
    let source = if flags & 2 != 0 { Some(bytes.le_u32()?) } else { None };
    Ok(FieldRecord { parent, role, name, type_name, repetition, source })
}

fn read_column(bytes: &mut Bytes<'_>) -> Result<ColumnRecord, UnlocatedError> {
    let (code, bits) = (bytes.le_u16()?, bytes.le_u16()?);
    let field = bytes.le_u32()?;
    let (flags, representation) = (bytes.le_u16()?, bytes.le_u16()?);
    let first = if flags & 1 != 0 { Some(bytes.le_i64()?) } else { None };
    let mut range = (0.0, 0.0);
    if flags & 2 != 0 {
        range = (f64::from_bits(bytes.le_u64()?), f64::from_bits(bytes.le_u64()?));
    }
    Ok(ColumnRecord { kind: kind_of(code, bits, range), field, representation, first })
}

fn kind_of(code: u16, bits: u16, (least, greatest): (f64, f64)) -> ColumnKind {
    let bits = u32::from(bits);
    match code {
        0x00 => ColumnKind::Bits,
        0x01 | 0x04 => ColumnKind::Plain(Number::Uint8),
        0x02 | 0x03 => ColumnKind::Plain(Number::Int8),
        0x05 => ColumnKind::Plain(Number::Int16),
        0x06 => ColumnKind::Plain(Number::Uint16),
        0x07 => ColumnKind::Plain(Number::Int32),
        0x08 => ColumnKind::Plain(Number::Uint32),
        0x09 => ColumnKind::Plain(Number::Int64),
        0x0A => ColumnKind::Plain(Number::Uint64),
        0x0C => ColumnKind::Plain(Number::Float32),
        0x0D => ColumnKind::Plain(Number::Float64),
        0x0E => ColumnKind::Index { len_bytes: 4 },
        0x0F => ColumnKind::Index { len_bytes: 8 },
        0x11 => ColumnKind::SplitZigzag(Number::Int16),
        0x12 => ColumnKind::Split(Number::Uint16),
        0x13 => ColumnKind::SplitZigzag(Number::Int32),
        0x14 => ColumnKind::Split(Number::Uint32),
        0x15 => ColumnKind::SplitZigzag(Number::Int64),
        0x16 => ColumnKind::Split(Number::Uint64),
        0x18 => ColumnKind::Split(Number::Float32),
        0x19 => ColumnKind::Split(Number::Float64),
        0x1A => ColumnKind::SplitIndex { len_bytes: 4 },
        0x1B => ColumnKind::SplitIndex { len_bytes: 8 },
        0x1C if (10..=31).contains(&bits) => ColumnKind::Truncated { bits },
        0x1D if (1..=32).contains(&bits) => ColumnKind::Quantized { bits, least, greatest },
        _ => ColumnKind::Unknown(code),
    }
}

impl ColumnKind {
    /// Returns the number type of decoded elements; `None` for indexes and unknown kinds.
    pub fn number(self) -> Option<Number> {
        match self {
            Self::Bits => Some(Number::Bool),
            Self::Plain(number) | Self::Split(number) | Self::SplitZigzag(number) => Some(number),
            Self::Truncated { .. } | Self::Quantized { .. } => Some(Number::Float32),
            Self::Index { .. } | Self::SplitIndex { .. } | Self::Unknown(_) => None,
        }
    }

    fn is_known(self) -> bool {
        !matches!(self, Self::Unknown(_))
    }

    /// Returns the length of a decoded element.
    pub fn decoded_len_bytes(self) -> usize {
        self.number().map_or(size_of::<u64>(), Number::len_bytes)
    }

    fn is_index(self) -> bool {
        matches!(self, Self::Index { .. } | Self::SplitIndex { .. })
    }

    /// Returns the number of bits of an element in a page, before compression.
    pub fn bits(self) -> u64 {
        match self {
            Self::Bits => 1,
            Self::Plain(number) | Self::Split(number) | Self::SplitZigzag(number) => 8 * number.len_bytes() as u64,
            Self::Index { len_bytes } | Self::SplitIndex { len_bytes } => 8 * len_bytes as u64,
            Self::Truncated { bits } | Self::Quantized { bits, .. } => u64::from(bits),
            Self::Unknown(_) => 0,
        }
    }
}

/// Roles of fields.
const LEAF: u16 = 0;
const COLLECTION: u16 = 1;
const RECORD: u16 = 2;

struct Compiler<'d> {
    description: &'d Description,
    children: &'d [Vec<usize>],
    columns: &'d [Vec<usize>],
    buffers: usize,
    /// Number of elements per entry at the current position; `None` below a collection.
    per_entry: Option<u64>,
    deferred: Vec<DeferredColumn>,
}

impl<'d> Compiler<'d> {
    fn next_buffers(&mut self, count: usize) -> usize {
        self.buffers += count;
        self.buffers - count
    }

    /// Returns the columns of a field, or of the field that it projects.
    fn columns_of(&mut self, field: usize) -> Result<&'d [usize], String> {
        let record = &self.description.fields[field];
        let source = record.source.map_or(field, |source| source as usize);
        let columns = self.columns.get(source).map_or(&[][..], Vec::as_slice);
        for &column in columns {
            let Some(first) = self.description.columns[column].first else { continue };
            let name = &record.name;
            let Ok(first) = u64::try_from(first) else {
                return Err(format!("field {name} has no values in its first representation"));
            };
            // Below a collection, earlier entries have no elements.
            let Some(per_entry) = self.per_entry else {
                return Err(format!("field {name} in a collection was added after the first elements"));
            };
            let deferred = DeferredColumn { column, first, per_entry };
            if !self.deferred.contains(&deferred) {
                self.deferred.push(deferred);
            }
        }
        Ok(columns)
    }

    fn kind(&self, column: usize) -> ColumnKind {
        self.description.columns[column].kind
    }

    fn node(&mut self, field: usize, depth: usize) -> Result<(Node, Form), String> {
        let record = &self.description.fields[field];
        if depth > MAX_DEPTH {
            return Err("its fields are nested too deeply".to_owned());
        }
        match (record.role, record.repetition) {
            (LEAF, Some(length)) => {
                let of_array = self.per_entry;
                self.per_entry = of_array.and_then(|per_entry| per_entry.checked_mul(length));
                let (content, form) = match self.children[field].as_slice() {
                    &[only] => self.node(only, depth + 1)?,
                    // The column of a bit set belongs to the field itself.
                    [] => self.leaf(field)?,
                    _ => return Err(format!("field {} is an array of several fields", record.name)),
                };
                self.per_entry = of_array;
                let regular = Form::Regular { length, content: Box::new(form) };
                Ok((Node::Regular { length, content: Box::new(content) }, regular))
            }
            (LEAF, None) => match (self.columns_of(field)?.is_empty(), self.children[field].as_slice()) {
                // An enumeration, or an atomic value.
                (true, &[only]) => self.node(only, depth + 1),
                _ => self.leaf(field),
            },
            (COLLECTION, _) => {
                let (&[index], &[only]) = (self.columns_of(field)?, self.children[field].as_slice()) else {
                    return Err(format!("field {} is not a collection of one field", record.name));
                };
                if !self.kind(index).is_index() {
                    return Err(format!("field {} has no index", record.name));
                }
                let buffer = self.next_buffers(1);
                let of_list = self.per_entry.take();
                let (content, form) = self.node(only, depth + 1)?;
                self.per_entry = of_list;
                Ok((Node::List { index, buffer, content: Box::new(content) }, Form::list(form)))
            }
            (RECORD, _) => self.record(field, depth),
            (role, _) => Err(format!("field {} ({}) has role {role}", record.name, record.type_name)),
        }
    }

    fn record(&mut self, field: usize, depth: usize) -> Result<(Node, Form), String> {
        let (mut nodes, mut fields) = (Vec::new(), Vec::<Field>::new());
        for &child in &self.children[field] {
            let name = &self.description.fields[child].name;
            let (node, form) = self.node(child, depth + 1)?;
            // Members of a base class become members of the record.
            let of_child = match form {
                Form::Record(inherited) if name.starts_with(':') => inherited,
                form => vec![Field { name: name.clone(), form }],
            };
            if of_child.iter().any(|new| fields.iter().any(|field| field.name == new.name)) {
                return Err(format!(
                    "field {} has two members with the same name",
                    self.description.fields[field].name
                ));
            }
            nodes.push(node);
            fields.extend(of_child);
        }
        Ok((Node::Record(nodes), Form::Record(fields)))
    }

    fn leaf(&mut self, field: usize) -> Result<(Node, Form), String> {
        let record = &self.description.fields[field];
        match *self.columns_of(field)? {
            [column] if self.kind(column).is_index() && record.type_name.contains("RNTupleCardinality") => {
                let is_short = ["uint32", "unsigned int"].iter().any(|name| record.type_name.contains(name));
                let number = if is_short { Number::Uint32 } else { Number::Uint64 };
                let buffer = self.next_buffers(1);
                Ok((Node::Sizes { column, len_bytes: number.len_bytes(), buffer }, Form::Number(number)))
            }
            [column] => match self.kind(column).number() {
                Some(number) => Ok((Node::Number { column, buffer: self.next_buffers(1) }, Form::Number(number))),
                None => {
                    let (name, kind) = (&record.name, self.kind(column));
                    Err(format!("field {name} ({}) has a column of kind {kind:?}", record.type_name))
                }
            },
            [index, characters]
                if self.kind(index).is_index() && self.kind(characters).number() == Some(Number::Int8) =>
            {
                Ok((Node::Text { index, characters, buffer: self.next_buffers(2) }, Form::String))
            }
            ref columns => Err(format!("field {} ({}) has {} columns", record.name, record.type_name, columns.len())),
        }
    }
}
