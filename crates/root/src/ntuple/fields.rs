//! Fields and columns of a written RNTuple: one top-level field per product, one column per buffer.
//!
//! RNTuples do not support fixed arrays of records without a class, or arrays of length 0. Both are stored as
//! collections; [`as_stored`] converts forms and [`column_as_stored`] converts columns accordingly. Bytes of objects
//! are stored as collections of bytes. Invariant: columns are in the order of the buffers of [`as_stored`]'s form.

use super::frames::{push_list, push_record, push_text};
use raddle_columns::block::{Buffer, Column};
use raddle_columns::schema::{Field, Form, Number, Product, Serialization};

/// Contents of a column before it is encoded, which determine the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// 0 or 1.
    Bit,
    /// Byte of a string.
    Char,
    /// Byte of an object.
    Byte,
    /// Number other than bool.
    Number(Number),
    /// End of a collection, counted from its cluster's beginning.
    Index,
}

impl ElementKind {
    /// Returns the number of bits of an element in a page before compression.
    pub(super) fn bits(self) -> u16 {
        match self {
            Self::Bit => 1,
            Self::Char | Self::Byte => 8,
            Self::Number(number) => 8 * number.len_bytes() as u16,
            Self::Index => 64,
        }
    }

    /// Returns the number of the column's type; `is_split` if the bytes of elements are stored separately.
    fn code(self, is_split: bool) -> u16 {
        let (plain, split) = match self {
            Self::Bit => (0x00, 0x00),
            Self::Byte => (0x01, 0x01),
            Self::Char => (0x02, 0x02),
            Self::Number(Number::Int8) => (0x03, 0x03),
            Self::Number(Number::Uint8 | Number::Bool) => (0x04, 0x04),
            Self::Number(Number::Int16) => (0x05, 0x11),
            Self::Number(Number::Uint16) => (0x06, 0x12),
            Self::Number(Number::Int32) => (0x07, 0x13),
            Self::Number(Number::Uint32) => (0x08, 0x14),
            Self::Number(Number::Int64) => (0x09, 0x15),
            Self::Number(Number::Uint64) => (0x0A, 0x16),
            Self::Number(Number::Float32) => (0x0C, 0x18),
            Self::Number(Number::Float64) => (0x0D, 0x19),
            Self::Index => (0x0F, 0x1B),
        };
        if is_split { split } else { plain }
    }
}

/// Returns the form that a product has in an RNTuple.
pub(super) fn as_stored(form: &Form) -> Form {
    match form {
        Form::Number(_) | Form::String | Form::Blob(_) => form.clone(),
        Form::List(content) => Form::list(as_stored(content)),
        Form::Regular { length, content } => {
            let content = Box::new(as_stored(content));
            match *length > 0 && class_of(&content).is_some() {
                true => Form::Regular { length: *length, content },
                false => Form::List(content),
            }
        }
        Form::Record(fields) => {
            let stored = |field: &Field| Field { name: field.name.clone(), form: as_stored(&field.form) };
            Form::Record(fields.iter().map(stored).collect())
        }
    }
}

/// Converts a checked column of `form` to the form that [`as_stored`] returns.
pub(super) fn column_as_stored(form: &Form, column: Column, entries: u64) -> Column {
    let mut stored = Vec::with_capacity(column.buffers.len());
    move_buffers(form, entries, &mut column.buffers.into_iter(), &mut stored);
    Column { buffers: stored }
}

fn move_buffers(form: &Form, values: u64, buffers: &mut std::vec::IntoIter<Buffer>, stored: &mut Vec<Buffer>) {
    match form {
        Form::Number(_) => stored.extend(buffers.next()),
        Form::String | Form::Blob(_) => stored.extend(buffers.by_ref().take(2)),
        Form::List(content) => {
            let offsets = buffers.next();
            let below = match &offsets {
                Some(Buffer::Offsets(offsets)) => offsets.last().copied().unwrap_or(0),
                _ => 0,
            };
            stored.extend(offsets);
            move_buffers(content, below, buffers, stored);
        }
        Form::Regular { length, content } => {
            if matches!(as_stored(form), Form::List(_)) {
                stored.push(Buffer::Offsets((0..=values).map(|number| number * length).collect()));
            }
            move_buffers(content, values * length, buffers, stored);
        }
        Form::Record(fields) => {
            fields.iter().for_each(|field| move_buffers(&field.form, values, buffers, stored));
        }
    }
}

/// Returns the C++ class of a field's values; `None` if it is a record without a class name.
fn class_of(form: &Form) -> Option<String> {
    match form {
        Form::Number(number) => Some(number_class(*number).to_owned()),
        Form::String => Some("std::string".to_owned()),
        Form::Blob(_) => Some("std::vector<std::byte>".to_owned()),
        Form::List(content) => class_of(content).map(|class| format!("std::vector<{class}>")),
        Form::Regular { length, content } => class_of(content).map(|class| format!("std::array<{class},{length}>")),
        Form::Record(fields) => {
            let is_tuple = fields.iter().enumerate().all(|(number, field)| field.name == format!("_{number}"));
            let classes = fields.iter().map(|field| class_of(&field.form)).collect::<Option<Vec<_>>>()?;
            match classes.as_slice() {
                [] => None,
                _ if !is_tuple => None,
                [first, second] => Some(format!("std::pair<{first},{second}>")),
                classes => Some(format!("std::tuple<{}>", classes.join(","))),
            }
        }
    }
}

fn number_class(number: Number) -> &'static str {
    match number {
        Number::Bool => "bool",
        Number::Int8 => "std::int8_t",
        Number::Int16 => "std::int16_t",
        Number::Int32 => "std::int32_t",
        Number::Int64 => "std::int64_t",
        Number::Uint8 => "std::uint8_t",
        Number::Uint16 => "std::uint16_t",
        Number::Uint32 => "std::uint32_t",
        Number::Uint64 => "std::uint64_t",
        Number::Float32 => "float",
        Number::Float64 => "double",
    }
}

/// Roles of fields.
const LEAF: u16 = 0;
const COLLECTION: u16 = 1;
const RECORD: u16 = 2;

/// Name of the field of the items of a collection or an array.
const ITEM: &str = "_0";

/// Fields and columns of products.
#[derive(Debug, Default)]
pub(super) struct Fields {
    fields: Vec<u8>,
    len_fields: u32,
    /// Number of the field and contents of each column.
    columns: Vec<(u32, ElementKind)>,
}

impl Fields {
    /// Describes products; their forms must be those returned by [`as_stored`].
    pub(super) fn of(products: &[Product]) -> Self {
        let mut fields = Self::default();
        for product in products {
            fields.push(&product.name, &product.form, None, &product.class);
        }
        fields
    }

    /// Returns the contents of each column.
    pub(super) fn kinds(&self) -> Vec<ElementKind> {
        self.columns.iter().map(|(_, kind)| *kind).collect()
    }

    /// Encodes the four lists of a description.
    pub(super) fn write(&self, is_split: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_list(&mut bytes, self.len_fields, &self.fields);
        let mut columns = Vec::new();
        for (field, kind) in &self.columns {
            let mut column = Vec::new();
            column.extend_from_slice(&kind.code(is_split).to_le_bytes());
            column.extend_from_slice(&kind.bits().to_le_bytes());
            column.extend_from_slice(&field.to_le_bytes());
            // No flags, and no other representation.
            column.extend_from_slice(&[0; 4]);
            push_record(&mut columns, &column);
        }
        push_list(&mut bytes, self.columns.len() as u32, &columns);
        // Aliases, and extra type information.
        push_list(&mut bytes, 0, &[]);
        push_list(&mut bytes, 0, &[]);
        bytes
    }

    /// Adds a field and its contents. `class` is the class that the source states.
    fn push(&mut self, name: &str, form: &Form, parent: Option<u32>, class: &str) {
        let (role, repetition) = match form {
            Form::Number(_) | Form::String => (LEAF, None),
            Form::Regular { length, .. } => (LEAF, Some(*length)),
            Form::List(_) | Form::Blob(_) => (COLLECTION, None),
            Form::Record(_) => (RECORD, None),
        };
        let description = match form {
            Form::Blob(serialization) => blob_description(class, *serialization),
            _ => String::new(),
        };
        let number = self.push_field(
            parent,
            role,
            repetition,
            [
                name,
                &class_of(form).unwrap_or_default(),
                // The alias of the type name is empty.
                "",
                &description,
            ],
        );
        match form {
            Form::Number(Number::Bool) => self.columns.push((number, ElementKind::Bit)),
            Form::Number(kind) => self.columns.push((number, ElementKind::Number(*kind))),
            Form::String => self.columns.extend([(number, ElementKind::Index), (number, ElementKind::Char)]),
            Form::Blob(_) => {
                self.columns.push((number, ElementKind::Index));
                let item = self.push_field(Some(number), LEAF, None, [ITEM, "std::byte", "", ""]);
                self.columns.push((item, ElementKind::Byte));
            }
            Form::List(content) => {
                self.columns.push((number, ElementKind::Index));
                self.push(ITEM, content, Some(number), "");
            }
            Form::Regular { content, .. } => self.push(ITEM, content, Some(number), ""),
            Form::Record(fields) => {
                fields.iter().for_each(|field| self.push(&field.name, &field.form, Some(number), ""));
            }
        }
    }

    /// Adds a field and returns its number; top-level fields have no parent.
    fn push_field(&mut self, parent: Option<u32>, role: u16, repetition: Option<u64>, strings: [&str; 4]) -> u32 {
        let number = self.len_fields;
        // Versions of the field and of its type.
        let mut field = vec![0; 8];
        field.extend_from_slice(&parent.unwrap_or(number).to_le_bytes());
        field.extend_from_slice(&role.to_le_bytes());
        field.extend_from_slice(&u16::from(repetition.is_some()).to_le_bytes());
        strings.iter().for_each(|text| push_text(&mut field, text));
        field.extend(repetition.into_iter().flat_map(u64::to_le_bytes));
        push_record(&mut self.fields, &field);
        self.len_fields += 1;
        number
    }
}

/// Describes the object whose bytes a field holds.
fn blob_description(class: &str, serialization: Serialization) -> String {
    format!("bytes of {}, serialised as {serialization}", if class.is_empty() { "an object" } else { class })
}
