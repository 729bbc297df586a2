//! The metadata of an HDF5 file as plain values: objects, links, datatypes, dataspaces, layouts.
//!
//! Both metadata readers (the native one and libhdf5 in a child process) produce these values and must agree on them;
//! merges are planned from them, and the writer creates objects from them. Nothing here reads or writes a file.
//!
//! Invariant: a [`FileTree`] holds every reachable object exactly once, however many hard links point to it.

mod datatype;
mod nesting;
mod number;
pub mod template;

pub use datatype::{BitRange, ByteOrder, Datatype, Member, ReferenceKind, TypeClass};
pub use raddle_codec::Filter;
use serde::{Deserialize, Serialize};

/// Index of an object in [`FileTree::objects`].
pub type ObjectIndex = u32;

/// Metadata of one file, complete except for chunk indexes, which are read lazily.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileTree {
    /// Version of the superblock, 0 to 3.
    pub superblock_version: u8,
    /// Length of the user block before the superblock; all addresses below are absolute file offsets.
    pub userblock_len_bytes: u64,
    /// Size of addresses in the file: 2, 4 or 8 bytes.
    pub address_len_bytes: u8,
    /// Size of lengths in the file: 2, 4 or 8 bytes.
    pub length_len_bytes: u8,
    /// Every reachable object, in the order in which a breadth-first walk finds it (objects of one group in the order
    /// of its links); the root group is object 0.
    pub objects: Vec<Object>,
}

/// A group, dataset or committed datatype, with its attributes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Absolute file offset of the object header. It identifies the object, and object references store it.
    pub address: u64,
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Attributes, in creation order if the object tracks it, otherwise by name.
    pub attributes: Vec<Attribute>,
    /// Whether the object tracks and indexes the creation order of its attributes.
    pub attribute_order: CreationOrder,
    /// Comment message, if present.
    pub comment: Option<Vec<u8>>,
}

/// Settings of creation order, as in `H5Pset_link_creation_order` and `H5Pset_attr_creation_order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CreationOrder {
    /// Whether the order is recorded.
    pub tracked: bool,
    /// Whether the order is indexed for lookups.
    pub indexed: bool,
}

/// Kind of an object, with the data of that kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ObjectKind {
    /// A group and its links.
    Group(Group),
    /// A dataset; boxed because files hold thousands and groups should stay small.
    Dataset(Box<Dataset>),
    /// A dataset recognised by its template, which also holds its attributes and comment. Occurs only in trees read
    /// with [`HeaderTemplateCache`](crate::native::HeaderTemplateCache).
    Templated(template::TemplatedDataset),
    /// A committed (named) datatype.
    CommittedDatatype(Datatype),
    /// An object that the reader found but could not read; an operation that needs it fails.
    Unreadable {
        /// Reason, in words for the user.
        reason: String,
        /// Whether the bytes may be valid: this reader does not support them, but libhdf5 may.
        unsupported: bool,
        /// File outside of the input's folder to which the object refers, if this is why the object cannot be read.
        foreign: Option<String>,
    },
}

/// A group: its links, in creation order if tracked, otherwise by the bytes of their names.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Group {
    /// Links of the group.
    pub links: Vec<Link>,
    /// Whether the group keeps the creation order of links.
    pub link_order: CreationOrder,
}

/// A named link in a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Name, without its terminating zero; any bytes but `/` and zero.
    pub name: Vec<u8>,
    /// Whether the name is marked UTF-8 (else ASCII).
    pub utf8: bool,
    /// Creation order value, if the group tracks it.
    pub creation_order: Option<i64>,
    /// Target of the link.
    pub target: LinkTarget,
}

/// Target of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LinkTarget {
    /// An object of this file.
    Hard(ObjectIndex),
    /// A path, resolved when it is used.
    Soft(Vec<u8>),
    /// A path in another file.
    External {
        /// File name as stored.
        file: Vec<u8>,
        /// Object path as stored.
        path: Vec<u8>,
    },
    /// A user-defined link class (64 to 255) and its data.
    UserDefined {
        /// Link class.
        class: u8,
        /// Data of the link class, uninterpreted.
        data: Vec<u8>,
    },
}

/// Metadata of a dataset; its values are read through [`crate::read`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// Extent of the dataset.
    pub dataspace: Dataspace,
    /// Type of one element as stored.
    pub datatype: Datatype,
    /// Storage layout of the raw data.
    pub layout: Layout,
    /// Value of elements that were never written.
    pub fill: FillValue,
    /// Filter pipeline, in the order applied on writing; empty if there are no filters.
    pub filters: Vec<Filter>,
}

/// Extent of a dataset or attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dataspace {
    /// One element.
    Scalar,
    /// No elements.
    Null,
    /// An array.
    Simple {
        /// Current size per dimension, in elements, slowest first.
        dims: Vec<u64>,
        /// Maximum size per dimension (`u64::MAX` means unlimited); equal to `dims` if the file stores none.
        max_dims: Vec<u64>,
    },
}

/// Storage layout of a dataset's raw data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Layout {
    /// Values in the object header.
    Compact(InlineData),
    /// Values in one contiguous block.
    Contiguous {
        /// Absolute file offset; `None` if storage was never allocated.
        address: Option<u64>,
        /// Length stored in the layout message.
        len_bytes: u64,
    },
    /// Values in chunks.
    Chunked {
        /// Chunk shape in elements, with the rank of the dataspace.
        chunk_shape: Vec<u64>,
        /// Chunk index.
        index: ChunkIndex,
        /// Whether edge chunks that extend beyond the dataset are stored without filters (layout 4,
        /// `H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`).
        partial_chunks_unfiltered: bool,
    },
    /// Values in other files (external file list).
    External {
        /// File name, offset in the file, and length (`u64::MAX` means unlimited) of each.
        files: Vec<(Vec<u8>, u64, u64)>,
    },
    /// Virtual dataset; the mapping is resolved by libhdf5 in a child process.
    Virtual,
}

impl Layout {
    /// Returns whether only libhdf5 can locate the values.
    pub fn is_through_library(&self) -> bool {
        match self {
            Self::Virtual | Self::External { .. } => true,
            Self::Chunked { index, .. } => matches!(index, ChunkIndex::ThroughLibrary),
            _ => false,
        }
    }
}

/// Index of a dataset's chunks. An address of `None` means that no chunk was ever allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ChunkIndex {
    /// No chunk allocated.
    None,
    /// B-tree version 1 (layout 1 to 3).
    BtreeV1 {
        /// Address of the root node.
        address: u64,
    },
    /// One chunk holds the dataset.
    Single {
        /// Address of the chunk.
        address: u64,
        /// Stored size, if the chunk is filtered.
        len_bytes: Option<u64>,
        /// Mask of the filters that were skipped when the chunk was written.
        filter_mask: u32,
    },
    /// All chunks allocated consecutively, unfiltered.
    Implicit {
        /// Address of the first chunk.
        address: u64,
    },
    /// Fixed array.
    FixedArray {
        /// Address of the header.
        address: u64,
    },
    /// Extensible array.
    ExtensibleArray {
        /// Address of the header.
        address: u64,
    },
    /// B-tree version 2.
    BtreeV2 {
        /// Address of the header.
        address: u64,
    },
    /// An index known only to libhdf5 (the child reader), from which values and chunk lists must be requested.
    ThroughLibrary,
}

/// Fill value of a dataset, as stored in the fill value message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FillValue {
    /// Value of one element; `None` means zeros.
    pub value: Option<InlineData>,
    /// Whether the user defined the value (`H5D_FILL_VALUE_USER_DEFINED`), as opposed to the library default.
    pub user_defined: bool,
    /// Whether the value is marked undefined (`H5D_FILL_VALUE_UNDEFINED`).
    pub undefined: bool,
    /// Time of allocation: 1 early, 2 late, 3 incremental (`H5D_alloc_time_t`).
    pub allocation_time: u8,
    /// Time of writing the fill value: 0 on allocation, 1 never, 2 if set (`H5D_fill_time_t`).
    pub write_time: u8,
}

/// An attribute and its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// Name of the attribute.
    pub name: Vec<u8>,
    /// Whether the name is marked UTF-8.
    pub utf8: bool,
    /// Creation order value, if tracked.
    pub creation_order: Option<u32>,
    /// Type of one element.
    pub datatype: Datatype,
    /// Extent of the attribute.
    pub dataspace: Dataspace,
    /// Values of the elements.
    pub data: InlineData,
}

/// Element values stored in metadata: values of an attribute or compact dataset, or a fill value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InlineData {
    /// Bytes as stored in the file; elements of file-local types still point into it.
    Stored(Vec<u8>),
    /// Canonical bytes (module `logical`). Only for file-local types, and only from the child reader: libhdf5 does not
    /// expose the stored bytes of such types.
    Canonical(Vec<u8>),
}

/// HDF5's default: zeros, shown to readers, with storage allocated late.
impl Default for FillValue {
    fn default() -> Self {
        Self { value: None, user_defined: false, undefined: false, allocation_time: 2, write_time: 2 }
    }
}

impl InlineData {
    /// Returns the bytes as stored in the file, or `None` if only canonical bytes are known.
    pub fn stored(&self) -> Option<&[u8]> {
        match self {
            Self::Stored(bytes) => Some(bytes),
            Self::Canonical(_) => None,
        }
    }

    /// Returns the bytes in whichever form they have.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Stored(bytes) | Self::Canonical(bytes) => bytes,
        }
    }

    /// Returns the bytes in whichever form they have, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Stored(bytes) | Self::Canonical(bytes) => bytes,
        }
    }
}

impl Object {
    /// Returns the attributes, wherever they are kept.
    pub fn all_attributes(&self) -> &[Attribute] {
        match &self.kind {
            ObjectKind::Templated(templated) => &templated.form.attributes,
            _ => &self.attributes,
        }
    }

    /// Returns the attribute with this name.
    pub fn attribute(&self, name: &[u8]) -> Option<&Attribute> {
        self.all_attributes().iter().find(|attribute| attribute.name == name)
    }
}

impl Dataspace {
    /// Returns the number of elements, or `None` if it overflows 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        match self {
            Self::Scalar => Some(1),
            Self::Null => Some(0),
            Self::Simple { dims, .. } => dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim)),
        }
    }

    /// Returns the current dimensions, which are empty for scalar and null dataspaces.
    pub fn dims(&self) -> &[u64] {
        match self {
            Self::Simple { dims, .. } => dims,
            _ => &[],
        }
    }
}
