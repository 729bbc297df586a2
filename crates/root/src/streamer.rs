//! Descriptions of classes (`TStreamerInfo`), which every file contains for all its objects.
//!
//! Only the layout of the descriptions themselves must be known in advance. Additions of later versions are skipped by
//! byte count.

use super::double32::{Packing, Range};
use super::key::text;
use super::object_header::{BYTE_COUNT, ObjectHeader};
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use raddle_columns::schema::Number;
use std::collections::HashMap;

/// Built-in type and its stored representation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BasicType {
    /// Type in memory.
    pub(super) number: Number,
    /// Packed representation; `None` if the number is stored unchanged, big-endian.
    pub(super) packing: Option<Packing>,
}

impl BasicType {
    /// Returns the length of a stored number.
    pub(super) fn len_bytes(self) -> usize {
        self.packing.map_or(self.number.len_bytes(), Packing::len_bytes)
    }

    /// Returns the built-in type of a streamer type (`EReadWrite`); `range` is the range of the member.
    fn from_type(number: i32, range: Range) -> Option<Self> {
        let packing = match number {
            9 => Some(range.double32()?),
            19 => Some(range.float16()?),
            _ => None,
        };
        Some(Self {
            packing,
            number: match number {
                1 => Number::Int8,
                2 => Number::Int16,
                3 | 6 => Number::Int32,
                4 | 16 => Number::Int64,
                5 | 19 => Number::Float32,
                8 | 9 => Number::Float64,
                11 => Number::Uint8,
                12 => Number::Uint16,
                13 => Number::Uint32,
                14 | 17 => Number::Uint64,
                18 => Number::Bool,
                _ => return None,
            },
        })
    }
}

/// Kind of a member.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ElementKind {
    /// Base class, whose name is the name of the element.
    Base {
        /// Version of the base class.
        version: i32,
    },
    /// Number, or array of numbers of fixed length.
    Number(BasicType),
    /// Bits of a `TObject`, followed by two bytes if the object is referenced.
    Bits,
    /// Array whose length is in another member.
    CountedNumbers {
        /// Type of the values.
        number: BasicType,
        /// Name of the member that holds the length.
        counter: String,
    },
    /// `TString`.
    TString,
    /// Object by value.
    Object,
    /// Pointer to an object.
    Pointer,
    /// Collection or string of the standard library.
    Collection,
    /// Member of any other kind.
    Other,
}

/// Member of a class.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) type_name: String,
    pub(super) kind: ElementKind,
    /// Number of values of an array of fixed length; 0 if it is not an array.
    pub(super) array_len: usize,
    /// Extents of the array.
    pub(super) extents: Vec<usize>,
}

/// Description of one version of a class.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StreamerInfo {
    pub(super) version: i32,
    pub(super) checksum: u32,
    pub(super) elements: Vec<Element>,
}

/// All descriptions of a file.
#[derive(Debug, Default)]
pub(super) struct StreamerInfos {
    by_class: HashMap<String, Vec<StreamerInfo>>,
    streamer_info_version: u16,
}

impl StreamerInfos {
    /// Returns the description of the version of a class that an object states, or of its checksum if it states no
    /// version.
    pub(super) fn find(&self, class: &str, version: u16, checksum: Option<u32>) -> Option<&StreamerInfo> {
        self.by_class.get(class)?.iter().find(|info| match checksum {
            Some(checksum) => info.checksum == checksum,
            None => info.version == i32::from(version),
        })
    }

    /// Returns the version of `TStreamerInfo` in which the descriptions are written. It is repeated at the beginning of
    /// each serialised collection.
    pub(super) fn streamer_info_version(&self) -> u16 {
        self.streamer_info_version
    }

    /// Returns all versions of a class.
    pub(super) fn versions(&self, class: &str) -> &[StreamerInfo] {
        self.by_class.get(class).map_or(&[], Vec::as_slice)
    }

    /// Reads the payload of the key to which the file's header refers; positions count from `key_len_bytes` bytes
    /// before its start.
    pub(super) fn read(payload: &[u8], key_len_bytes: u64) -> Result<Self, UnlocatedError> {
        let mut reader = InfoReader {
            bytes: Bytes::new(payload, 0, "descriptions of classes"),
            key_len_bytes,
            classes: HashMap::new(),
        };
        let mut infos = Self::default();
        let header = ObjectHeader::read(&mut reader.bytes)?;
        reader.skip_tobject()?;
        text(&mut reader.bytes)?;
        let count = reader.bytes.be_u32()?;
        for _ in 0..count {
            if let Some((class, info)) = reader.object(|reader, class| match class {
                "TStreamerInfo" => reader.info(&mut infos.streamer_info_version).map(Some),
                // A list of rules by which ROOT changes members when it reads them.
                _ => Ok(None),
            })? {
                let versions = infos.by_class.entry(class).or_default();
                // Files that were merged from several may repeat descriptions.
                if !versions.contains(&info) {
                    versions.push(info);
                }
            }
            // The option of the list's link.
            text(&mut reader.bytes)?;
        }
        header.skip_rest(&mut reader.bytes)?;
        Ok(infos)
    }
}

/// Bit of an element whose title contains a range.
const HAS_RANGE: u32 = 1 << 6;

/// Streamer type of the bits of a `TObject`.
const BITS: i32 = 15;

/// Number added to the streamer type of the elements for an array of fixed length.
const ARRAY: i32 = 20;

/// Number added to the streamer type of the elements for an array behind a pointer.
const POINTER: i32 = 40;

/// Contents of a `TNamed`.
struct TNamed {
    bits: u32,
    name: String,
    title: String,
}

struct InfoReader<'b> {
    bytes: Bytes<'b>,
    key_len_bytes: u64,
    classes: HashMap<u64, String>,
}

impl InfoReader<'_> {
    fn skip_tobject(&mut self) -> Result<(), UnlocatedError> {
        self.tobject_bits().map(|_| ())
    }

    fn tobject_bits(&mut self) -> Result<u32, UnlocatedError> {
        let header = ObjectHeader::read(&mut self.bytes)?;
        let (_id, bits) = (self.bytes.be_u32()?, self.bytes.be_u32()?);
        header.skip_rest(&mut self.bytes)?;
        Ok(bits)
    }

    fn named(&mut self) -> Result<TNamed, UnlocatedError> {
        let header = ObjectHeader::read(&mut self.bytes)?;
        let bits = self.tobject_bits()?;
        let named = TNamed { bits, name: text(&mut self.bytes)?, title: text(&mut self.bytes)? };
        header.skip_rest(&mut self.bytes)?;
        Ok(named)
    }

    /// Reads an object behind a pointer by calling `read` with its class, and skips what `read` leaves. Every object
    /// here has a byte count, and none is referenced.
    fn object<T>(
        &mut self,
        read: impl FnOnce(&mut Self, &str) -> Result<Option<T>, UnlocatedError>,
    ) -> Result<Option<T>, UnlocatedError> {
        let first = self.bytes.be_u32()?;
        if first == 0 {
            return Ok(None);
        }
        if first & BYTE_COUNT == 0 {
            return Err(self.bytes.unsupported("an object without byte count"));
        }
        let len_bytes = (first & !BYTE_COUNT) as usize;
        if len_bytes > self.bytes.remaining() {
            return Err(self.bytes.damaged("an object longer than the remaining bytes"));
        }
        let rest = ObjectHeader { end: Some(self.bytes.position() + len_bytes), version: 0, checksum: None };
        let tag_position = self.bytes.position() as u64 + self.key_len_bytes + 2;
        let class = match self.bytes.be_u32()? {
            0xFFFF_FFFF => {
                let mut name = Vec::new();
                loop {
                    match self.bytes.be_u8()? {
                        0 => break,
                        byte => name.push(byte),
                    }
                }
                let name = String::from_utf8_lossy(&name).into_owned();
                self.classes.insert(tag_position, name.clone());
                name
            }
            tag => match self.classes.get(&u64::from(tag & 0x7FFF_FFFF)) {
                Some(name) => name.clone(),
                None => return Err(self.bytes.damaged("an object of a class that was not named")),
            },
        };
        let value = read(self, &class)?;
        rest.skip_rest(&mut self.bytes)?;
        Ok(value)
    }

    /// Reads a description, and sets `streamer_info_version` to the version of `TStreamerInfo` itself.
    fn info(&mut self, streamer_info_version: &mut u16) -> Result<(String, StreamerInfo), UnlocatedError> {
        let header = ObjectHeader::read(&mut self.bytes)?;
        *streamer_info_version = header.version;
        let class = self.named()?.name;
        let checksum = self.bytes.be_u32()?;
        let version = self.bytes.be_i32()?;
        let elements = self.object(|reader, _| reader.elements().map(Some))?.unwrap_or_default();
        header.skip_rest(&mut self.bytes)?;
        Ok((class, StreamerInfo { version, checksum, elements }))
    }

    fn elements(&mut self) -> Result<Vec<Element>, UnlocatedError> {
        let header = ObjectHeader::read(&mut self.bytes)?;
        self.skip_tobject()?;
        text(&mut self.bytes)?;
        let count = self.bytes.be_u32()?;
        let _first_index = self.bytes.be_i32()?;
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.extend(self.object(|reader, class| reader.element(class).map(Some))?);
        }
        header.skip_rest(&mut self.bytes)?;
        Ok(elements)
    }

    fn element(&mut self, class: &str) -> Result<Element, UnlocatedError> {
        let header = ObjectHeader::read(&mut self.bytes)?;
        let base = match class {
            // One more class lies between it and the element.
            "TStreamerSTLstring" => Some(ObjectHeader::read(&mut self.bytes)?),
            _ => None,
        };
        let inner = ObjectHeader::read(&mut self.bytes)?;
        let TNamed { bits, name, title } = self.named()?;
        let type_number = self.bytes.be_i32()?;
        let _size = self.bytes.be_i32()?;
        let array_len = usize::try_from(self.bytes.be_i32()?).unwrap_or(0);
        let _dimensions = self.bytes.be_i32()?;
        let extents = match inner.version {
            1 => {
                let count = self.bytes.be_u32()?;
                (0..count).map(|_| self.bytes.be_i32()).collect::<Result<Vec<_>, _>>()?
            }
            _ => (0..5).map(|_| self.bytes.be_i32()).collect::<Result<Vec<_>, _>>()?,
        };
        let extents = extents.into_iter().take_while(|&extent| extent > 0).map(|extent| extent as usize).collect();
        let type_name = text(&mut self.bytes)?;
        let range = match inner.version {
            ..=2 => Range::default(),
            3 => {
                let (minimum, _maximum, factor) = (self.be_f64()?, self.be_f64()?, self.be_f64()?);
                Range { minimum, factor }
            }
            _ if bits & HAS_RANGE != 0 => Range::in_title(&title),
            _ => Range::default(),
        };
        inner.skip_rest(&mut self.bytes)?;
        let kind = self.kind(class, type_number, range)?;
        if let Some(base) = base {
            base.skip_rest(&mut self.bytes)?;
        }
        header.skip_rest(&mut self.bytes)?;
        Ok(Element { name, type_name, kind, array_len, extents })
    }

    fn be_f64(&mut self) -> Result<f64, UnlocatedError> {
        self.bytes.be_u64().map(f64::from_bits)
    }

    fn kind(&mut self, class: &str, type_number: i32, range: Range) -> Result<ElementKind, UnlocatedError> {
        Ok(match class {
            "TStreamerBase" => ElementKind::Base { version: self.bytes.be_i32()? },
            "TStreamerBasicType" if type_number == BITS => ElementKind::Bits,
            "TStreamerBasicType" => BasicType::from_type(type_number, range)
                // A damaged number may be the smallest of all.
                .or_else(|| BasicType::from_type(type_number.wrapping_sub(ARRAY), range))
                .map_or(ElementKind::Other, ElementKind::Number),
            "TStreamerBasicPointer" => {
                let _version = self.bytes.be_i32()?;
                let counter = text(&mut self.bytes)?;
                match BasicType::from_type(type_number.wrapping_sub(POINTER), range) {
                    Some(number) => ElementKind::CountedNumbers { number, counter },
                    None => ElementKind::Other,
                }
            }
            "TStreamerString" => ElementKind::TString,
            "TStreamerObject" | "TStreamerObjectAny" => ElementKind::Object,
            // A pointer that is never null is written like an object by value.
            "TStreamerObjectPointer" | "TStreamerObjectAnyPointer" => match type_number {
                63 | 68 => ElementKind::Object,
                _ => ElementKind::Pointer,
            },
            "TStreamerSTL" | "TStreamerSTLstring" => ElementKind::Collection,
            _ => ElementKind::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_a_type_or_none() {
        // A version, and a counter without a name, which only pointers have.
        let bytes = [0; 16];
        for class in ["TStreamerBasicType", "TStreamerBasicPointer"] {
            for type_number in [i32::MIN, i32::MIN + 1, -1, 0, i32::MAX] {
                let bytes = Bytes::new(&bytes, 0, "descriptions of classes");
                let mut reader = InfoReader { bytes, key_len_bytes: 0, classes: HashMap::new() };
                let kind = reader.kind(class, type_number, Range::default());
                assert!(matches!(kind, Ok(ElementKind::Other)), "{class} {type_number}: {kind:?}");
            }
        }
    }
}
