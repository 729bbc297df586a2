//! Parts of an entry, as [`super::layout`] determines them and [`super::walk`] reads them.

use super::double32::Packing;
use super::front::Front;
use raddle_columns::schema::Number;

/// Part of an entry. `buffer` is the number of its first buffer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    Number {
        number: Number,
        buffer: usize,
    },
    /// Number stored in fewer bytes than it has in memory.
    Packed {
        number: Number,
        packing: Packing,
        buffer: usize,
    },
    /// Bits of a `TObject`; two more bytes follow if the object is referenced.
    Bits {
        buffer: usize,
    },
    /// Pointer members: a flag byte, then the values of each array. Their length is the number last read into the
    /// buffer `counter`.
    Pointed {
        counter: usize,
        arrays: u64,
        buffer: usize,
        content: Box<Item>,
    },
    /// Pointer members whose length is not part of the entry: the values fill the entry.
    PointedRest {
        arrays: u64,
        buffer: usize,
        content: Box<Item>,
    },
    /// `TRef`.
    Reference {
        buffer: usize,
    },
    /// `TRefArray`.
    References {
        buffer: usize,
    },
    Regular {
        length: u64,
        content: Box<Item>,
    },
    /// String, preceded by its length.
    Text {
        buffer: usize,
    },
    /// List: a count followed by that many values.
    List {
        buffer: usize,
        content: Box<Item>,
    },
    /// Collection: byte count and version, once for all values, followed by lists, lists of objects stored member by
    /// member, or arrays of either.
    Collection {
        list: Box<Item>,
    },
    /// Strings, preceded by one byte count and version for all of them.
    Headed {
        content: Box<Item>,
    },
    /// Several parts one after the other.
    Record {
        fields: Vec<Item>,
    },
    /// Object: byte count and version, followed by its members.
    Object {
        class: Class,
        fields: Vec<Item>,
    },
    /// Members of a base class: as a separate object, or among the members if a collection is stored member by member.
    Base {
        class: Class,
        fields: Vec<Item>,
    },
    /// Pair: two values in a map; an object with members in a list or in a map stored member by member.
    Pair {
        in_map: bool,
        values: Vec<Item>,
        members: Vec<Item>,
    },
    /// Values up to the end of the entry.
    Rest {
        buffer: usize,
        content: Box<Item>,
    },
}

/// Version of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) version: u16,
    pub(super) checksum: u32,
    /// Front of its objects, if the class has a version.
    pub(super) front: Option<Front>,
}

impl Item {
    /// Returns the class of the references in this part; `None` if it contains none.
    pub(super) fn reference(&self) -> Option<&'static str> {
        let among = |items: &[Self]| items.iter().find_map(Self::reference);
        match self {
            Self::Reference { .. } => Some("TRef"),
            Self::References { .. } => Some("TRefArray"),
            Self::Number { .. } | Self::Packed { .. } | Self::Bits { .. } | Self::Text { .. } => None,
            Self::Pointed { content, .. }
            | Self::PointedRest { content, .. }
            | Self::Regular { content, .. }
            | Self::List { content, .. }
            | Self::Headed { content }
            | Self::Rest { content, .. }
            | Self::Collection { list: content } => content.reference(),
            Self::Record { fields } | Self::Object { fields, .. } | Self::Base { fields, .. } => among(fields),
            Self::Pair { values, .. } => among(values),
        }
    }

    /// Returns the length of the part; `None` if the length varies.
    pub(super) fn fixed_len_bytes(&self) -> Option<usize> {
        match self {
            Self::Number { number, .. } => Some(number.len_bytes()),
            Self::Packed { packing, .. } => Some(packing.len_bytes()),
            Self::Regular { length, content } => content.fixed_len_bytes()?.checked_mul(usize::try_from(*length).ok()?),
            Self::Record { fields } => {
                fields.iter().try_fold(0usize, |sum, field| sum.checked_add(field.fixed_len_bytes()?))
            }
            _ => None,
        }
    }
}
