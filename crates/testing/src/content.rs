//! The content of a file as readers see it: objects by path, types, extents and values, independent of storage.
//!
//! Invariant: two files have equal contents exactly if a reader that ignores layout, filters and addresses cannot
//! distinguish them. Types are therefore kept in a [normal form](normal_form) and values in canonical bytes (see
//! [`crate::canonical`]).

use raddle_hdf5::model::{Dataspace, Member, TypeClass};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A path from the root, such as `/a/b`; the root is `/`.
pub type Path = Vec<u8>;

/// Objects and links of a file by path.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Content {
    /// Object or link at each path; the root group is `/`.
    pub nodes: BTreeMap<Path, Node>,
}

/// An object or link at a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A group.
    Group {
        /// Attributes by name.
        attributes: Attributes,
        /// Names of its links in order of creation, if the group tracks it.
        creation_order: Option<Vec<Vec<u8>>>,
    },
    /// A dataset.
    Dataset(Box<DatasetContent>),
    /// A committed datatype.
    CommittedType {
        /// Type, in normal form.
        class: TypeClass,
        /// Attributes by name.
        attributes: Attributes,
    },
    /// Additional hard link to the object at this path, which is the first of its paths (compared component by
    /// component).
    Alias(Path),
    /// A soft link with its text.
    SoftLink(Vec<u8>),
    /// An external link.
    ExternalLink {
        /// File name as written.
        file: Vec<u8>,
        /// Path in that file as written.
        path: Vec<u8>,
    },
    /// A user-defined link.
    UserLink {
        /// Link class, 64 to 255.
        class: u8,
    },
}

/// Attributes by name.
pub type Attributes = BTreeMap<Vec<u8>, AttributeContent>;

/// Type, extent, values and attributes of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetContent {
    /// Type of the elements, in normal form.
    pub class: TypeClass,
    /// First path of the committed type, if it uses one.
    pub committed: Option<Path>,
    /// Extent of the values.
    pub dataspace: Dataspace,
    /// All elements in canonical bytes, last dimension fastest.
    pub values: Vec<u8>,
    /// Fill value, if the user defined one.
    pub fill: Option<Vec<u8>>,
    /// Attributes of the dataset.
    pub attributes: Attributes,
}

/// Type, extent and values of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeContent {
    /// Type, in normal form.
    pub class: TypeClass,
    /// Extent of the values.
    pub dataspace: Dataspace,
    /// All elements in canonical bytes.
    pub values: Vec<u8>,
}

/// Stored length of a variable-length element in files with 8-byte addresses: length, heap address, heap index.
const DESCRIPTOR_LEN_BYTES: u32 = 16;

/// Removes everything from a type that only storage decides. libhdf5 reports other sizes of variable-length members in
/// memory than in the file, so compounds with such members are packed and their descriptors get the length in the file.
pub fn normal_form(class: &TypeClass) -> TypeClass {
    let inner = |base: &Arc<TypeClass>| Arc::new(normal_form(base));
    match class {
        TypeClass::Sequence { base, .. } => TypeClass::Sequence { base: inner(base), len_bytes: DESCRIPTOR_LEN_BYTES },
        TypeClass::VariableString { padding, charset, .. } => {
            TypeClass::VariableString { padding: *padding, charset: *charset, len_bytes: DESCRIPTOR_LEN_BYTES }
        }
        TypeClass::Array { base, dims } => TypeClass::Array { base: inner(base), dims: dims.clone() },
        TypeClass::Compound { members, .. } if class.is_file_local() => {
            let mut offset_bytes = 0;
            let members = members.iter().map(|member| {
                let class = inner(&member.class);
                let placed = Member { name: member.name.clone(), offset_bytes, class };
                offset_bytes += placed.class.len_bytes() as u32;
                placed
            });
            let members = members.collect();
            TypeClass::Compound { len_bytes: offset_bytes, members }
        }
        other => other.clone(),
    }
}

/// Formats a path or name for messages.
pub fn escape_bytes(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

impl Content {
    /// Describes the differences from `found`, one per line; empty if there are none.
    ///
    /// Compares everything except maximum extents: a dataset that could grow only must still be able to.
    pub fn differences(&self, found: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, node) in &self.nodes {
            match found.nodes.get(path) {
                None => lines.push(format!("{}: missing", escape_bytes(path))),
                Some(other) => node.differences(other, &escape_bytes(path), &mut lines),
            }
        }
        for path in found.nodes.keys().filter(|path| !self.nodes.contains_key(*path)) {
            lines.push(format!("{}: not expected", escape_bytes(path)));
        }
        lines
    }

    /// Panics with all differences from `found`, if there are any.
    ///
    /// # Panics
    /// If there are differences.
    #[track_caller]
    pub fn assert_equals(&self, found: &Self) {
        let differences = self.differences(found);
        assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    }

    /// Returns the content without the subtree at `path`, for outputs with additional objects (provenance).
    #[must_use]
    pub fn without(mut self, path: &[u8]) -> Self {
        let below = [path, b"/"].concat();
        self.nodes.retain(|other, _| other != path && !other.starts_with(&below));
        self
    }

    /// Returns the dataset at `path`.
    pub fn dataset(&self, path: &[u8]) -> Option<&DatasetContent> {
        match self.nodes.get(path) {
            Some(Node::Dataset(dataset)) => Some(dataset),
            Some(Node::Alias(first)) => self.dataset(first),
            _ => None,
        }
    }
}

impl Node {
    fn differences(&self, found: &Self, path: &str, lines: &mut Vec<String>) {
        match (self, found) {
            (
                Self::Group { attributes, creation_order },
                Self::Group { attributes: found_attributes, creation_order: found_order },
            ) => {
                attribute_differences(attributes, found_attributes, path, lines);
                if creation_order.is_some() && creation_order != found_order {
                    lines.push(format!(
                        "{path}: creation order {}, found {}",
                        names(creation_order),
                        names(found_order)
                    ));
                }
            }
            (Self::Dataset(expected), Self::Dataset(found)) => expected.differences(found, path, lines),
            (
                Self::CommittedType { class, attributes },
                Self::CommittedType { class: found_class, attributes: found_attributes },
            ) => {
                compare("type", class, found_class, path, lines);
                attribute_differences(attributes, found_attributes, path, lines);
            }
            (expected, found) => compare("link", expected, found, path, lines),
        }
    }
}

fn names(order: &Option<Vec<Vec<u8>>>) -> String {
    order.as_ref().map_or("not kept".to_owned(), |names| {
        names.iter().map(|name| escape_bytes(name)).collect::<Vec<_>>().join(" ")
    })
}

impl DatasetContent {
    fn differences(&self, found: &Self, path: &str, lines: &mut Vec<String>) {
        compare("type", &self.class, &found.class, path, lines);
        compare("committed type", &self.committed, &found.committed, path, lines);
        compare("fill value", &self.fill, &found.fill, path, lines);
        compare_extent(&self.dataspace, &found.dataspace, path, lines);
        compare_values(&self.values, &found.values, path, lines);
        attribute_differences(&self.attributes, &found.attributes, path, lines);
    }
}

fn compare<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, found: &T, path: &str, lines: &mut Vec<String>) {
    if expected != found {
        lines.push(format!("{path}: {what} {expected:?}, found {found:?}"));
    }
}

fn compare_extent(expected: &Dataspace, found: &Dataspace, path: &str, lines: &mut Vec<String>) {
    let equal = match (expected, found) {
        (Dataspace::Simple { dims, max_dims }, Dataspace::Simple { dims: found_dims, max_dims: found_max_dims }) => {
            let grows = |(&max, &found_max): (&u64, &u64)| max != u64::MAX || found_max == u64::MAX;
            dims == found_dims && max_dims.iter().zip(found_max_dims).all(grows)
        }
        (expected, found) => expected == found,
    };
    if !equal {
        lines.push(format!("{path}: extent {expected:?}, found {found:?}"));
    }
}

fn compare_values(expected: &[u8], found: &[u8], path: &str, lines: &mut Vec<String>) {
    if expected == found {
        return;
    }
    let at = expected.iter().zip(found).position(|(one, other)| one != other);
    let at = at.unwrap_or_else(|| expected.len().min(found.len()));
    let mut line = format!("{path}: values differ from byte {at} on ({} bytes, found {})", expected.len(), found.len());
    let near = |bytes: &[u8]| format!("{:02x?}", &bytes[at..bytes.len().min(at + 16)]);
    let _ = write!(line, ": {}, found {}", near(expected), near(found));
    lines.push(line);
}

fn attribute_differences(expected: &Attributes, found: &Attributes, path: &str, lines: &mut Vec<String>) {
    for (name, attribute) in expected {
        let place = format!("{path}@{}", escape_bytes(name));
        match found.get(name) {
            None => lines.push(format!("{place}: missing")),
            Some(other) => {
                compare("type", &attribute.class, &other.class, &place, lines);
                compare("extent", &attribute.dataspace, &other.dataspace, &place, lines);
                compare_values(&attribute.values, &other.values, &place, lines);
            }
        }
    }
    for name in found.keys().filter(|name| !expected.contains_key(*name)) {
        lines.push(format!("{path}@{}: not expected", escape_bytes(name)));
    }
}
