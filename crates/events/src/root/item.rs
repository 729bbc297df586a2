//! The parts of an entry, as [`super::layout`] finds them and [`super::walk`] reads them.

use super::double32::Packing;
use super::front::Front;
use crate::schema::Number;

/// A part of an entry. `buffer` is the first of its buffers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    Number {
        number: Number,
        buffer: usize,
    },
    /// A number stored in fewer bytes than it has in memory.
    Packed {
        number: Number,
        packing: Packing,
        buffer: usize,
    },
    /// The bits of a `TObject`; two more bytes follow if the object is referenced.
    Bits {
        buffer: usize,
    },
    /// Pointer members: a flag byte, then the values of each array. The length is the number read last into buffer `counter`.
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
    /// A `TRef`.
    Reference {
        buffer: usize,
    },
    /// A `TRefArray`.
    References {
        buffer: usize,
    },
    Regular {
        length: u64,
        content: Box<Item>,
    },
    /// A string with its length before it.
    Text {
        buffer: usize,
    },
    /// A count followed by that many values.
    List {
        buffer: usize,
        content: Box<Item>,
    },
    /// Byte count and version, once for all that follow, and then lists or, member by member, lists of objects; or arrays of
    /// these.
    Collection {
        list: Box<Item>,
    },
    /// Byte count and version, once for all strings that follow.
    Headed {
        content: Box<Item>,
    },
    /// One after the other.
    Record {
        fields: Vec<Item>,
    },
    /// The same, each object with byte count and version before it.
    Object {
        class: Class,
        fields: Vec<Item>,
    },
    /// The members of a base class: as an object by itself, or among the members where all objects' members come together.
    Base {
        class: Class,
        fields: Vec<Item>,
    },
    /// A pair: two values in a map; an object with members where it is one of a list or of a map stored member by member.
    Pair {
        in_map: bool,
        values: Vec<Item>,
        members: Vec<Item>,
    },
    /// As many as fill the entry.
    Rest {
        buffer: usize,
        content: Box<Item>,
    },
}

/// A version of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) version: u16,
    pub(super) checksum: u32,
    /// What its objects have in front, if it has a version.
    pub(super) front: Option<Front>,
}

impl Item {
    /// The class of references that are in it, if there are any.
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

    /// Length of each, where it is always the same.
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
