//! The meaning of the bytes of a branch's entries, and the form of the resulting column.
//!
//! Invariants: buffers are numbered in the order of [`Form::buffers`]; anything that is not known for certain is an
//! error, and the branch is then read as bytes.

use super::double32::Packing;
use super::front::Front;
use super::item::{Class, Item};
use super::references;
use super::streamer::{BasicType, Element, ElementKind, StreamerInfo, StreamerInfos};
use super::tree::{Branch, ElementBranch, Leaf};
use super::type_name::TypeName;
use raddle_columns::schema::{Field, Form, Number};

/// Reason why a branch is read as bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Leaves of an unknown class.
    #[error("leaves of class {0} are not supported")]
    Leaf(String),
    /// Leaf with unknown metadata.
    #[error("{0}")]
    Metadata(String),
    /// Leaf with an invalid range.
    #[error("the range in {0:?} is not supported")]
    Range(String),
    /// Counted leaf among several leaves.
    #[error("several leaves with a counted one among them are not supported")]
    CountedLeaves,
    /// Branch without leaves.
    #[error("it has no leaves")]
    NoLeaf,
    /// Class that the file does not describe, or describes in several versions without naming one.
    #[error("the file does not describe class {0}, or describes several versions")]
    Class(String),
    /// Class that is stored differently than described.
    #[error("class {0} has a custom streamer, which is not supported")]
    Streamer(String),
    /// Member of an unsupported type.
    #[error("member {member} of class {class} ({type_name}) is not supported")]
    Member {
        /// Name of the class.
        class: String,
        /// Name of the member.
        member: String,
        /// Type of the member.
        type_name: String,
    },
    /// Array in each object of a split collection whose lengths are not in any readable branch.
    #[error("arrays of type {0} whose lengths are not in a branch of the same collection are not supported")]
    CountElsewhere(String),
    /// Class with two members of the same name.
    #[error("class {0} has two members with the same name")]
    TwoMembers(String),
    /// Branch of an unknown kind.
    #[error("branches of kind {0} are not supported")]
    Kind(i64),
    /// Classes nested too deep, or too many of them.
    #[error("its classes are too many or nested too deeply")]
    Depth,
}

/// Maximum depth of classes within classes.
const MAX_DEPTH: usize = 24;

/// Maximum number of classes in one branch, each counted as often as it is used: a few descriptions can refer to each
/// other endlessly.
const MAX_CLASSES: usize = 4096;

/// ROOT classes that have custom streamers and are stored differently than described.
const HAS_OTHER_STREAMER: [&str; 13] = [
    "TArray",
    "TBtree",
    "TClonesArray",
    "TCollection",
    "THashList",
    "THashTable",
    "TList",
    "TMap",
    "TObjArray",
    "TOrdCollection",
    "TRefTable",
    "TSeqCollection",
    "TSortedList",
];

/// Returns the element type of one of ROOT's array classes, which are stored as a count followed by the elements.
fn array_class(name: &str) -> Option<Number> {
    Some(match name {
        "TArrayC" => Number::Int8,
        "TArrayS" => Number::Int16,
        "TArrayI" => Number::Int32,
        "TArrayL" | "TArrayL64" => Number::Int64,
        "TArrayF" => Number::Float32,
        "TArrayD" => Number::Float64,
        _ => return None,
    })
}

/// Returns whether objects of a class are stored as the file describes them.
pub(super) fn is_as_described(class: &str) -> bool {
    let is_special = matches!(class, "TString" | "TRef" | "TRefArray" | "TDatime");
    !is_special && !HAS_OTHER_STREAMER.contains(&class) && array_class(class).is_none()
}

/// Maximum number of pointers per member. Each costs memory for every object, even if nothing is stored for it.
const MAX_POINTERS: u64 = 256;

/// Item, form and counter of a branch.
pub(super) struct Layout {
    pub(super) item: Item,
    pub(super) form: Form,
    /// Member of the same objects that counts the values of this one, in a split collection. Its values are expected
    /// after the buffers of the form.
    pub(super) counter: Option<i64>,
}

/// Determines the layout of a branch.
pub(super) fn of_branch(branch: &Branch, infos: &StreamerInfos) -> Result<Layout, Unreadable> {
    let mut compiler = Compiler { infos, buffers: 0, depth: 0, classes: 0, counter: None };
    let (item, form) = match &branch.element {
        None => compiler.leaves(&branch.leaves)?,
        Some(element) => compiler.element_branch(element)?,
    };
    debug_assert_eq!(compiler.buffers, form.buffers().len());
    Ok(Layout { item, form, counter: compiler.counter })
}

/// Determines the layout of a branch of one leaf that is stored outside a tree.
pub(super) fn of_leaf(leaf: &Leaf) -> Result<Layout, Unreadable> {
    let infos = StreamerInfos::default();
    let mut compiler = Compiler { infos: &infos, buffers: 0, depth: 0, classes: 0, counter: None };
    let (item, form) = compiler.leaves(std::slice::from_ref(leaf))?;
    Ok(Layout { item, form, counter: None })
}

/// Determines the layout of a collection stored outside a tree, where no class is described.
pub(super) fn of_collection(class: &str) -> Result<Layout, Unreadable> {
    let infos = StreamerInfos::default();
    let mut compiler = Compiler { infos: &infos, buffers: 0, depth: 0, classes: 0, counter: None };
    let (item, form) = match TypeName::parse(class) {
        collection @ (TypeName::List(_) | TypeName::Map(..)) => compiler.collection(&collection)?,
        _ => return Err(Unreadable::Class(class.to_owned())),
    };
    Ok(Layout { item, form, counter: None })
}

/// Returns the C++ type of a branch's entries, as far as the tree states it. A member of each object of a split
/// collection has the form `float[]`; a branch that counts them has the type of a number. Types of other branches must
/// not look like a collection.
pub(super) fn class_of(branch: &Branch, infos: &StreamerInfos) -> String {
    let Some(element) = &branch.element else { return branch.title.clone() };
    if matches!(element.kind, 3 | 4) {
        return "int".to_owned();
    }
    let member = usize::try_from(element.id).ok().and_then(|id| info_of(element, infos)?.elements.get(id));
    let Some(member) = member else { return element.class.clone() };
    if let ElementKind::Base { .. } = member.kind {
        return member.name.clone();
    }
    let objects = if matches!(element.kind, 31 | 41) { "[]" } else { "" };
    let extents: String = array_extents(member).iter().map(|extent| format!("[{extent}]")).collect();
    format!("{}{objects}{extents}", member.type_name)
}

/// Returns the extents of an array member, outermost first.
fn array_extents(element: &Element) -> Vec<u64> {
    match (element.array_len, element.extents.is_empty()) {
        (0, _) => Vec::new(),
        (_, false) => element.extents.iter().map(|&extent| extent as u64).collect(),
        (len, true) => vec![len as u64],
    }
}

/// Returns the description of the class version that a branch states.
pub(super) fn info_of<'i>(element: &ElementBranch, infos: &'i StreamerInfos) -> Option<&'i StreamerInfo> {
    let versions = infos.versions(&element.class);
    let by_checksum = versions.iter().find(|info| element.checksum != 0 && info.checksum == element.checksum);
    by_checksum.or_else(|| versions.iter().find(|info| i64::from(info.version) == element.version))
}

pub(super) struct Compiler<'i> {
    infos: &'i StreamerInfos,
    /// Number of buffers so far.
    buffers: usize,
    depth: usize,
    /// Number of classes used so far.
    classes: usize,
    counter: Option<i64>,
}

impl Compiler<'_> {
    pub(super) fn next_buffers(&mut self, count: usize) -> usize {
        self.buffers += count;
        self.buffers - count
    }

    pub(super) fn number(&mut self, number: Number) -> (Item, Form) {
        (Item::Number { number, buffer: self.next_buffers(1) }, Form::Number(number))
    }

    /// Returns the layout of a number with its stored representation.
    pub(super) fn basic(&mut self, basic: BasicType) -> (Item, Form) {
        match basic.packing {
            None => self.number(basic.number),
            Some(packing) => {
                let buffer = self.next_buffers(1);
                (Item::Packed { number: basic.number, packing, buffer }, Form::Number(basic.number))
            }
        }
    }

    pub(super) fn text(&mut self) -> (Item, Form) {
        (Item::Text { buffer: self.next_buffers(2) }, Form::String)
    }

    fn element_branch(&mut self, element: &ElementBranch) -> Result<(Item, Form), Unreadable> {
        match element.kind {
            3 | 4 => return Ok(self.number(Number::Int32)),
            // Strings have a separate kind.
            0 | -1 if element.id < 0 => return self.whole(&element.class, element.kind == -1),
            0 | 31 | 41 => {}
            kind => return Err(Unreadable::Kind(kind)),
        }
        let info = info_of(element, self.infos).ok_or_else(|| Unreadable::Class(element.class.clone()))?;
        let member = usize::try_from(element.id).ok().and_then(|id| info.elements.get(id));
        let member = member.ok_or_else(|| Unreadable::Class(element.class.clone()))?;
        match &member.kind {
            ElementKind::CountedNumbers { number, .. } if element.kind == 0 => {
                return self.pointed(&element.class, member, *number, None);
            }
            ElementKind::CountedNumbers { number, counter } => {
                let counter = info.elements.iter().position(|element| element.name == *counter && is_count(element));
                self.counter = Some(counter.ok_or_else(|| unknown(&element.class, member))? as i64);
                // Three buffers precede it: outer offsets, inner offsets and values.
                const COUNTS: usize = 3;
                let buffer = self.next_buffers(1);
                let (item, form) = self.pointed(&element.class, member, *number, Some(COUNTS))?;
                debug_assert_eq!(self.buffers, COUNTS);
                return Ok((Item::Rest { buffer, content: Box::new(item) }, Form::list(form)));
            }
            _ if element.kind == 0 => return self.member(&element.class, member),
            _ => {}
        }
        let buffer = self.next_buffers(1);
        let (item, form) = self.member(&element.class, member)?;
        Ok((Item::Rest { buffer, content: Box::new(item) }, Form::list(form)))
    }

    /// Returns the layout of an entry that is one whole object, with a header if its class has a custom streamer.
    fn whole(&mut self, class: &str, has_front: bool) -> Result<(Item, Form), Unreadable> {
        match TypeName::parse(class) {
            TypeName::String | TypeName::TString => Ok(self.text()),
            TypeName::Number(_) | TypeName::Double32 | TypeName::Float16 | TypeName::Pair(..) => {
                Err(Unreadable::Class(class.to_owned()))
            }
            TypeName::Class(name) => {
                // Otherwise, unlike an object within an object, it has no header.
                let (item, form) = self.class(&name)?;
                match item {
                    Item::Object { fields, .. } if !has_front => Ok((Item::Record { fields }, form)),
                    other => Ok((other, form)),
                }
            }
            collection => self.collection(&collection),
        }
    }

    /// Returns the layout of a collection with its header.
    fn collection(&mut self, collection: &TypeName) -> Result<(Item, Form), Unreadable> {
        let (list, form) = self.value(collection)?;
        Ok((Item::Collection { list: Box::new(list) }, form))
    }

    /// Returns the layout of a value inside a collection; collections there have no header.
    fn value(&mut self, type_name: &TypeName) -> Result<(Item, Form), Unreadable> {
        match type_name {
            TypeName::Number(number) => Ok(self.number(*number)),
            TypeName::Double32 => {
                Ok(self.basic(BasicType { number: Number::Float64, packing: Some(Packing::DOUBLE32) }))
            }
            TypeName::Float16 => Ok(self.basic(BasicType { number: Number::Float32, packing: Some(Packing::FLOAT16) })),
            TypeName::String | TypeName::TString => Ok(self.text()),
            TypeName::Class(name) => self.class(name),
            TypeName::List(content) => self.list(|compiler| compiler.value(content)),
            TypeName::Map(key, value) => self.list(|compiler| compiler.pair(true, key, value)),
            TypeName::Pair(first, second) => self.pair(false, first, second),
        }
    }

    fn list(
        &mut self,
        content: impl FnOnce(&mut Self) -> Result<(Item, Form), Unreadable>,
    ) -> Result<(Item, Form), Unreadable> {
        let buffer = self.next_buffers(1);
        let (content, form) = content(self)?;
        Ok((Item::List { buffer, content: Box::new(content) }, Form::list(form)))
    }

    fn pair(&mut self, in_map: bool, first: &TypeName, second: &TypeName) -> Result<(Item, Form), Unreadable> {
        let start = self.buffers;
        let (first_value, first_form) = self.value(first)?;
        let (second_value, second_form) = self.value(second)?;
        // Both ways of storing a pair fill the same buffers.
        self.buffers = start;
        let members = vec![self.pair_member(first)?, self.pair_member(second)?];
        let field = |name: &str, form| Field { name: name.to_owned(), form };
        let form = Form::Record(vec![field("first", first_form), field("second", second_form)]);
        Ok((Item::Pair { in_map, values: vec![first_value, second_value], members }, form))
    }

    /// Returns the layout of an object of one number without a header.
    fn bare_record(&mut self, name: &str, number: Number) -> (Item, Form) {
        let (item, form) = self.number(number);
        (Item::Record { fields: vec![item] }, Form::Record(vec![Field { name: name.to_owned(), form }]))
    }

    /// Returns the layout of a member of a pair, which equals that of a member of any class.
    fn pair_member(&mut self, type_name: &TypeName) -> Result<Item, Unreadable> {
        let (item, _form) = self.value(type_name)?;
        Ok(match type_name {
            TypeName::String => Item::Headed { content: Box::new(item) },
            TypeName::List(_) | TypeName::Map(..) => Item::Collection { list: Box::new(item) },
            _ => item,
        })
    }

    /// Returns the layout of an object with its header, or of one of ROOT's classes that are stored differently than
    /// described.
    fn class(&mut self, name: &str) -> Result<(Item, Form), Unreadable> {
        match name {
            "TString" => return Ok(self.text()),
            "TRef" => return Ok((Item::Reference { buffer: self.next_buffers(1) }, references::form_of_one())),
            "TRefArray" => {
                let form = references::form_of_array();
                return Ok((Item::References { buffer: self.next_buffers(form.buffers().len()) }, form));
            }
            "TDatime" => return Ok(self.bare_record("fDatime", Number::Uint32)),
            _ if HAS_OTHER_STREAMER.contains(&name) => return Err(Unreadable::Streamer(name.to_owned())),
            _ => {}
        }
        if let Some(number) = array_class(name) {
            return self.list(|compiler| Ok(compiler.number(number)));
        }
        self.depth += 1;
        self.classes += 1;
        if self.depth > MAX_DEPTH || self.classes > MAX_CLASSES {
            return Err(Unreadable::Depth);
        }
        let [info] = self.infos.versions(name) else { return Err(Unreadable::Class(name.to_owned())) };
        let (mut items, mut fields, start) = (Vec::new(), Vec::<Field>::new(), self.buffers);
        for element in &info.elements {
            let of_element = match &element.kind {
                ElementKind::Base { .. } => {
                    let (base, form) = self.class(&element.name)?;
                    let (Item::Object { class, fields: inner }, Form::Record(inherited)) = (base, form) else {
                        return Err(Unreadable::Streamer(element.name.clone()));
                    };
                    items.push(Item::Base { class, fields: inner });
                    inherited
                }
                ElementKind::CountedNumbers { number, counter } => {
                    let counter = buffer_of(counter, start, &fields).ok_or_else(|| unknown(name, element))?;
                    let (item, form) = self.pointed(name, element, *number, Some(counter))?;
                    items.push(item);
                    vec![Field { name: element.name.clone(), form }]
                }
                _ => {
                    let (item, form) = self.member(name, element)?;
                    items.push(item);
                    vec![Field { name: element.name.clone(), form }]
                }
            };
            if of_element.iter().any(|new| fields.iter().any(|field| field.name == new.name)) {
                return Err(Unreadable::TwoMembers(name.to_owned()));
            }
            fields.extend(of_element);
        }
        self.depth -= 1;
        let version = u16::try_from(info.version).unwrap_or(0);
        let front = Front::of_class(name, info, self.infos);
        let class = Class { name: name.to_owned(), version, checksum: info.checksum, front };
        Ok((Item::Object { class, fields: items }, Form::Record(fields)))
    }

    /// Returns the layout of arrays behind pointers. Their length is in the buffer `counter`, or follows from the
    /// length of the entry.
    fn pointed(
        &mut self,
        class: &str,
        element: &Element,
        number: BasicType,
        counter: Option<usize>,
    ) -> Result<(Item, Form), Unreadable> {
        let extents = array_extents(element);
        let arrays = extents.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent));
        let arrays = arrays.filter(|arrays| (1..=MAX_POINTERS).contains(arrays));
        let arrays = arrays.ok_or_else(|| unknown(class, element))?;
        let buffer = self.next_buffers(1);
        let (content, form) = self.basic(number);
        let content = Box::new(content);
        let item = match counter {
            Some(counter) => Item::Pointed { counter, arrays, buffer, content },
            None => Item::PointedRest { arrays, buffer, content },
        };
        Ok((item, extents.iter().rev().fold(Form::list(form), regular_form)))
    }

    /// Returns the layout of a member of an object.
    fn member(&mut self, class: &str, element: &Element) -> Result<(Item, Form), Unreadable> {
        match &element.kind {
            ElementKind::Number(basic) => {
                let (item, form) = self.basic(*basic);
                Ok(regular(item, form, &array_extents(element)))
            }
            ElementKind::Base { .. } => self.class(&element.name),
            ElementKind::Bits => Ok((Item::Bits { buffer: self.next_buffers(1) }, Form::Number(Number::Uint32))),
            ElementKind::TString if element.array_len == 0 => Ok(self.text()),
            ElementKind::TString => {
                let (item, form) = self.text();
                Ok(headed(regular(item, form, &array_extents(element))))
            }
            ElementKind::Collection => match TypeName::parse(&element.type_name) {
                TypeName::String => {
                    let (item, form) = self.text();
                    Ok(headed(regular(item, form, &array_extents(element))))
                }
                collection @ (TypeName::List(_) | TypeName::Map(..)) => {
                    let (list, form) = self.value(&collection)?;
                    let (list, form) = regular(list, form, &array_extents(element));
                    Ok((Item::Collection { list: Box::new(list) }, form))
                }
                _ => Err(unknown(class, element)),
            },
            ElementKind::Object => {
                let (item, form) = self.class(&element.type_name)?;
                Ok(regular(item, form, &array_extents(element)))
            }
            _ => Err(unknown(class, element)),
        }
    }
}

/// Wraps values in a common header. Arrays of fixed length have one even if a single value has none.
fn headed((content, form): (Item, Form)) -> (Item, Form) {
    (Item::Headed { content: Box::new(content) }, form)
}

/// Wraps a value in arrays of fixed extents, outermost first.
pub(super) fn regular(item: Item, form: Form, extents: &[u64]) -> (Item, Form) {
    extents.iter().rev().fold((item, form), |(item, form), length| {
        (Item::Regular { length: *length, content: Box::new(item) }, regular_form(form, length))
    })
}

fn regular_form(content: Form, &length: &u64) -> Form {
    Form::Regular { length, content: Box::new(content) }
}

/// Returns whether a member has a type that ROOT uses for counts.
fn is_count(element: &Element) -> bool {
    let number = match element.kind {
        ElementKind::Number(basic) if basic.packing.is_none() => Some(basic.number),
        _ => None,
    };
    matches!(number, Some(Number::Int32 | Number::Uint32)) && element.array_len == 0
}

pub(super) fn unknown(class: &str, element: &Element) -> Unreadable {
    Unreadable::Member { class: class.to_owned(), member: element.name.clone(), type_name: element.type_name.clone() }
}

/// Returns the buffer of a count among the members of a class, whose buffers begin with `start`. ROOT counts with
/// `Int_t`, and in its own classes with `UInt_t`.
fn buffer_of(counter: &str, start: usize, members: &[Field]) -> Option<usize> {
    let is_count = |form: &Form| matches!(form, Form::Number(Number::Int32 | Number::Uint32));
    let number = members.iter().position(|member| member.name == counter && is_count(&member.form))?;
    Some(start + members[..number].iter().map(|member| member.form.buffers().len()).sum::<usize>())
}
