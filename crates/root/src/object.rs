//! Metadata objects as named values, read according to the class descriptions that the file contains.
//!
//! This reader is general and slow: it serves for trees, branches and leaves, not for entries. Pointers are numbers of
//! objects, since objects can refer to each other in cycles. Invariants: nothing is read beyond an object's byte count;
//! depth is bounded.

use super::key::{Key, text};
use super::object_header::{BYTE_COUNT, ObjectHeader, read_tobject};
use super::streamer::{BasicType, Element, ElementKind, StreamerInfos};
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use raddle_columns::schema::Number;
use std::collections::HashMap;

/// Flag that distinguishes the tag of a class from the tag of an object.
const CLASS_TAG: u32 = 0x8000_0000;

/// Tag of a class that is named here for the first time.
const NEW_CLASS_TAG: u32 = 0xFFFF_FFFF;

/// Number added to positions in tags.
const TAG_OFFSET: u64 = 2;

/// Maximum depth of objects within objects: branches are nested, with an array between each level.
const MAX_DEPTH: usize = 128;

/// Number of an object.
pub(super) type ObjectId = usize;

/// Value of a member.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MemberValue {
    /// Integer; unsigned integers of 64 bits have the same bits.
    Integer(i64),
    Real(f64),
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Text(String),
    /// Object, by value or through a pointer.
    Object(ObjectId),
    /// Array of objects, of which some may be missing.
    Objects(Vec<Option<ObjectId>>),
    /// Basket that is embedded in the metadata: its bytes, beginning with its key.
    Basket(Vec<u8>),
    /// Null pointer.
    Null,
    /// Value that is not needed.
    Skipped,
}

/// Metadata object.
#[derive(Debug, Clone, Default)]
pub(super) struct Object {
    pub(super) class: String,
    /// Members, including members of base classes.
    pub(super) members: Vec<(String, MemberValue)>,
    /// Reason why members are missing; `None` if none are.
    pub(super) unsupported: Option<String>,
}

impl Object {
    /// Returns a member; `None` if the class lacks it.
    pub(super) fn get(&self, name: &str) -> Option<&MemberValue> {
        self.members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// Returns an integer member, also if it is a floating-point number with an integer value: older versions of ROOT
    /// stored counts that way.
    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            MemberValue::Integer(value) => Some(*value),
            MemberValue::Real(value) => Some(*value as i64),
            _ => None,
        }
    }

    /// Returns a string member.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            MemberValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a member that is an array of integers.
    pub(super) fn integers(&self, name: &str) -> &[i64] {
        match self.get(name) {
            Some(MemberValue::Integers(values)) => values,
            _ => &[],
        }
    }
}

/// All objects of one payload.
#[derive(Debug, Default)]
pub(super) struct Objects {
    objects: Vec<Object>,
}

impl Objects {
    /// Returns the object with this number.
    pub(super) fn get(&self, id: ObjectId) -> Option<&Object> {
        self.objects.get(id)
    }

    /// Returns the objects of an array member.
    pub(super) fn array<'o>(&'o self, object: &'o Object, name: &str) -> &'o [Option<ObjectId>] {
        let array = match object.get(name) {
            Some(MemberValue::Object(id)) => self.get(*id).and_then(|array| array.get("objects")),
            other => other,
        };
        match array {
            Some(MemberValue::Objects(objects)) => objects,
            _ => &[],
        }
    }
}

/// Reads the object of `class` that fills `payload`; positions count from `key_len_bytes` bytes before its start.
pub(super) fn read_object(
    payload: &[u8],
    key_len_bytes: u64,
    class: &str,
    infos: &StreamerInfos,
) -> Result<(Objects, ObjectId), UnlocatedError> {
    let bytes = Bytes::new(payload, 0, "object");
    let mut reader = ObjectReader {
        bytes,
        key_len_bytes,
        infos,
        classes: HashMap::new(),
        tagged: HashMap::new(),
        objects: Objects::default(),
        depth: 0,
    };
    let id = reader.new_object(class);
    reader.read_members_of(class, id)?;
    Ok((reader.objects, id))
}

struct ObjectReader<'b> {
    bytes: Bytes<'b>,
    key_len_bytes: u64,
    infos: &'b StreamerInfos,
    /// Names of classes, indexed by the tags that refer to them.
    classes: HashMap<u64, String>,
    /// Objects, indexed by the tags that refer to them.
    tagged: HashMap<u64, ObjectId>,
    objects: Objects,
    depth: usize,
}

impl ObjectReader<'_> {
    fn new_object(&mut self, class: &str) -> ObjectId {
        self.objects.objects.push(Object { class: class.to_owned(), ..Object::default() });
        self.objects.objects.len() - 1
    }

    fn set(&mut self, id: ObjectId, name: &str, value: MemberValue) {
        self.objects.objects[id].members.push((name.to_owned(), value));
    }

    /// Reads an object behind a pointer, including the tags that identify it.
    fn read_pointer(&mut self) -> Result<MemberValue, UnlocatedError> {
        let start = self.bytes.position();
        let first = self.bytes.be_u32()?;
        let (end, tag, tag_position) = match first & BYTE_COUNT != 0 && first != NEW_CLASS_TAG {
            true => {
                let len_bytes = (first & !BYTE_COUNT) as usize;
                if len_bytes > self.bytes.remaining() {
                    return Err(self.bytes.damaged("an object longer than the remaining bytes"));
                }
                let at = self.bytes.position();
                (Some(at + len_bytes), self.bytes.be_u32()?, at)
            }
            false => (None, first, start),
        };
        let front_len_bytes = self.key_len_bytes + TAG_OFFSET;
        let tag_of = |position: usize| position as u64 + front_len_bytes;
        if tag & CLASS_TAG == 0 {
            // Objects that are not needed are not kept.
            let known = self.tagged.get(&u64::from(tag)).map_or(MemberValue::Skipped, |id| MemberValue::Object(*id));
            return Ok(if tag == 0 { MemberValue::Null } else { known });
        }
        let class = match tag {
            NEW_CLASS_TAG => {
                let name = self.c_string()?;
                self.classes.insert(tag_of(tag_position), name.clone());
                name
            }
            _ => match self.classes.get(&u64::from(tag & !CLASS_TAG)) {
                Some(name) => name.clone(),
                None => return Err(self.bytes.damaged("an object of a class that was not named")),
            },
        };
        if class == "TBasket" {
            return self.read_basket(end);
        }
        let rest = ObjectHeader { end, version: 0, checksum: None };
        if end.is_some() && !is_needed(&class) {
            rest.skip_rest(&mut self.bytes)?;
            return Ok(MemberValue::Skipped);
        }
        let id = self.new_object(&class);
        self.tagged.insert(tag_of(start), id);
        let depth = self.depth;
        match self.read_members_of(&class, id) {
            // Since its length is known, the objects after it can still be read.
            Err(fault @ UnlocatedError::Unsupported { .. }) if end.is_some() => {
                self.depth = depth;
                self.objects.objects[id].unsupported = Some(fault.to_string());
            }
            outcome => outcome?,
        }
        rest.skip_rest(&mut self.bytes)?;
        Ok(MemberValue::Object(id))
    }

    fn c_string(&mut self) -> Result<String, UnlocatedError> {
        let mut name = Vec::new();
        loop {
            match self.bytes.be_u8()? {
                0 => return Ok(String::from_utf8_lossy(&name).into_owned()),
                byte => name.push(byte),
            }
        }
    }

    /// Reads a basket, whose key is its only header; its length is the byte count of the pointer.
    fn read_basket(&mut self, end: Option<usize>) -> Result<MemberValue, UnlocatedError> {
        let mut ahead = self.bytes.clone();
        Key::read(&mut ahead)?;
        match end.and_then(|end| end.checked_sub(self.bytes.position())) {
            Some(len_bytes) => Ok(MemberValue::Basket(self.bytes.take(len_bytes)?.to_vec())),
            None => Err(self.bytes.unsupported("a basket without byte count")),
        }
    }

    /// Reads header and members of an object of `class`; the members are added to object `id`.
    fn read_members_of(&mut self, class: &str, id: ObjectId) -> Result<(), UnlocatedError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.bytes.damaged("objects are nested too deeply"));
        }
        match class {
            "TObject" => {
                read_tobject(&mut self.bytes)?;
            }
            "TString" => {
                let value = MemberValue::Text(text(&mut self.bytes)?);
                self.set(id, "string", value);
            }
            "TObjArray" => self.read_array(id)?,
            "TArrayC" | "TArrayS" | "TArrayI" | "TArrayL" | "TArrayL64" | "TArrayF" | "TArrayD" => {
                let len_bytes = match class {
                    "TArrayC" => 1,
                    "TArrayS" => 2,
                    "TArrayI" | "TArrayF" => 4,
                    _ => 8,
                };
                let count = self.bytes.be_u32()? as usize;
                self.bytes.take(count.saturating_mul(len_bytes))?;
            }
            _ => {
                let header = ObjectHeader::read(&mut self.bytes)?;
                if class == "TNamed" {
                    read_tobject(&mut self.bytes)?;
                    for name in ["fName", "fTitle"] {
                        let value = MemberValue::Text(text(&mut self.bytes)?);
                        self.set(id, name, value);
                    }
                } else {
                    self.read_described(class, &header, id)?;
                }
                header.skip_rest(&mut self.bytes)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn read_array(&mut self, id: ObjectId) -> Result<(), UnlocatedError> {
        let header = ObjectHeader::read(&mut self.bytes)?;
        if header.version > 2 {
            read_tobject(&mut self.bytes)?;
        }
        if header.version > 1 {
            text(&mut self.bytes)?;
        }
        let count = self.bytes.be_u32()?;
        let _first_index = self.bytes.be_i32()?;
        let mut objects = Vec::new();
        for _ in 0..count {
            objects.push(match self.read_pointer()? {
                MemberValue::Object(object) => Some(object),
                MemberValue::Basket(bytes) => {
                    let basket = self.new_object("TBasket");
                    self.set(basket, "bytes", MemberValue::Basket(bytes));
                    Some(basket)
                }
                _ => None,
            });
        }
        self.set(id, "objects", MemberValue::Objects(objects));
        header.skip_rest(&mut self.bytes)
    }

    /// Reads members according to the description of the class.
    fn read_described(&mut self, class: &str, header: &ObjectHeader, id: ObjectId) -> Result<(), UnlocatedError> {
        let Some(info) = self.infos.find(class, header.version, header.checksum) else {
            if header.end.is_some() && !is_needed(class) {
                return Ok(());
            }
            let version = header.version;
            return Err(self
                .bytes
                .unsupported(format!("class {class} of version {version}: the file does not describe it")));
        };
        for element in &info.elements {
            let value = self.read_element(class, element, id)?;
            if let Some(value) = value {
                self.set(id, &element.name, value);
            }
        }
        Ok(())
    }

    fn read_element(
        &mut self,
        class: &str,
        element: &Element,
        id: ObjectId,
    ) -> Result<Option<MemberValue>, UnlocatedError> {
        Ok(Some(match &element.kind {
            ElementKind::Base { .. } => {
                self.read_members_of(&element.name, id)?;
                return Ok(None);
            }
            ElementKind::Number(number) if element.array_len == 0 => self.read_number(*number)?,
            ElementKind::Number(number) => self.read_numbers(*number, element.array_len)?,
            ElementKind::CountedNumbers { number, counter } => match self.bytes.be_u8()? {
                0 => MemberValue::Null,
                _ => {
                    let count = self.objects.objects[id].integer(counter).and_then(|count| usize::try_from(count).ok());
                    let count =
                        count.ok_or_else(|| self.bytes.damaged(format!("no count {counter} of {}", element.name)))?;
                    self.read_numbers(*number, count)?
                }
            },
            ElementKind::TString => MemberValue::Text(text(&mut self.bytes)?),
            ElementKind::Object if element.array_len == 0 => {
                let inner = self.new_object(&element.type_name);
                self.read_members_of(&element.type_name, inner)?;
                MemberValue::Object(inner)
            }
            ElementKind::Pointer => self.read_pointer()?,
            _ => return Err(self.bytes.unsupported(format!("member {} of class {class}", element.name))),
        }))
    }

    fn read_number(&mut self, number: BasicType) -> Result<MemberValue, UnlocatedError> {
        let bytes = self.bytes.take(number.len_bytes())?;
        Ok(value_of(number, bytes))
    }

    fn read_numbers(&mut self, number: BasicType, count: usize) -> Result<MemberValue, UnlocatedError> {
        let len_bytes = number.len_bytes();
        let bytes = self.bytes.take(count.saturating_mul(len_bytes))?;
        let values = bytes.chunks_exact(len_bytes).map(|bytes| value_of(number, bytes));
        let (mut integers, mut reals) = (Vec::new(), Vec::new());
        for value in values {
            match value {
                MemberValue::Integer(value) => integers.push(value),
                MemberValue::Real(value) => reals.push(value),
                _ => {}
            }
        }
        Ok(if reals.is_empty() { MemberValue::Integers(integers) } else { MemberValue::Reals(reals) })
    }
}

/// Decodes the value from the bytes of one number.
fn value_of(basic: BasicType, bytes: &[u8]) -> MemberValue {
    if let Some(packing) = basic.packing {
        return MemberValue::Real(packing.value(bytes));
    }
    let mut padded = [0; 8];
    padded[8 - bytes.len().min(8)..].copy_from_slice(&bytes[..bytes.len().min(8)]);
    let bits = u64::from_be_bytes(padded);
    match basic.number {
        Number::Bool | Number::Uint8 | Number::Uint16 | Number::Uint32 | Number::Uint64 | Number::Int64 => {
            MemberValue::Integer(bits as i64)
        }
        Number::Int8 => MemberValue::Integer(i64::from(bits as i8)),
        Number::Int16 => MemberValue::Integer(i64::from(bits as i16)),
        Number::Int32 => MemberValue::Integer(i64::from(bits as i32)),
        Number::Float32 => MemberValue::Real(f64::from(f32::from_bits(bits as u32))),
        Number::Float64 => MemberValue::Real(f64::from_bits(bits)),
    }
}

/// Returns whether an object of this class contains information that is needed. Other objects are skipped if they
/// record their length.
fn is_needed(class: &str) -> bool {
    let is_tree = matches!(class, "TTree" | "TNtuple" | "TNtupleD" | "TObjArray" | "TNamed" | "TObject");
    is_tree || (class.starts_with("TBranch") && class != "TBranchRef") || class.starts_with("TLeaf")
}
