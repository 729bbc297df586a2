//! Description of a file to write, as plain values: every storage option and every byte of data.
//!
//! [`crate::plain::make`] writes it; [`FileSpec::content`] returns what a reader must find in it. Types, extents and
//! creation orders are those of `raddle_hdf5::model`.

use crate::content::{AttributeContent, Attributes, Content, DatasetContent, Node, Path, normal_form};
use raddle_hdf5::model::{CreationOrder, Dataspace, TypeClass};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A file: its format and its objects in order of creation. The root group exists without being listed; list `/` to
/// give it attributes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileSpec {
    /// Format of the file.
    pub format: Format,
    /// Length of the user block: 0, 512 or a larger power of two.
    pub userblock_len_bytes: u64,
    /// Creation order of the root group's links.
    pub root_order: CreationOrder,
    /// Objects and links; parents come before children, targets of hard links and committed types before their users.
    pub objects: Vec<ObjectSpec>,
}

/// Bounds of the versions of structures in the file (`H5Pset_libver_bounds`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Format {
    /// Superblock 0, symbol tables and B-trees version 1, as most programs write them.
    #[default]
    Earliest,
    /// Superblock 2, links in object headers and dense groups, B-trees version 1 for chunks.
    V18,
    /// Superblock 3, layout 4 with its five chunk indexes.
    V110,
    /// The newest format that the linked library writes.
    Latest,
}

/// An object or link at a path.
#[derive(Clone, PartialEq)]
pub struct ObjectSpec {
    /// Absolute path.
    pub path: Path,
    /// Kind of the object or link.
    pub what: What,
    /// Attributes in order of creation; none on links.
    pub attributes: Vec<AttributeSpec>,
}

/// Kinds of objects and links.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A group, with the creation order of its links.
    Group(CreationOrder),
    /// A dataset; boxed because it is much larger than the others.
    Dataset(Box<DatasetSpec>),
    /// A committed datatype.
    CommittedType(TypeClass),
    /// Another hard link to the object at this path.
    HardLink(Path),
    /// A soft link with this text.
    SoftLink(Vec<u8>),
    /// An external link.
    ExternalLink {
        /// File name.
        file: Vec<u8>,
        /// Path in that file.
        path: Vec<u8>,
    },
}

/// Specification of a dataset.
#[derive(Clone, PartialEq)]
pub struct DatasetSpec {
    /// Type of the elements.
    pub class: Arc<TypeClass>,
    /// Path of the committed type to use (of the same class).
    pub committed: Option<Path>,
    /// Extent of the values.
    pub dataspace: Dataspace,
    /// Storage layout of the values.
    pub layout: LayoutSpec,
    /// Filters in order; only with a chunked layout.
    pub filters: Vec<FilterSpec>,
    /// Fill value, if the user defines one: one element as stored.
    pub fill: Option<Vec<u8>>,
    /// Whether to allocate all storage when the dataset is created.
    pub early_allocation: bool,
    /// Number of rows to write, from the first; the others read as the fill value. Larger numbers mean all rows.
    pub written_rows: u64,
    /// All elements in canonical bytes; rows that are not written must hold the fill value.
    pub values: Vec<u8>,
}

/// Layout of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutSpec {
    /// Compact layout, in the object header.
    Compact,
    /// Contiguous layout.
    Contiguous,
    /// Chunks of this shape.
    Chunked(Vec<u64>),
}

/// Built-in libhdf5 filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterSpec {
    /// Deflate at this level.
    Deflate(u32),
    /// Shuffle.
    Shuffle,
    /// Fletcher32.
    Fletcher32,
    /// Nbit; values must be zero outside their significant bits.
    Nbit,
    /// Lossless scale-offset for integers.
    ScaleOffset,
}

/// Specification of an attribute.
#[derive(Clone, PartialEq)]
pub struct AttributeSpec {
    /// Name of the attribute.
    pub name: Vec<u8>,
    /// Type of the elements.
    pub class: Arc<TypeClass>,
    /// Extent of the values.
    pub dataspace: Dataspace,
    /// All elements in canonical bytes.
    pub values: Vec<u8>,
}

/// Compact debug output with names as text, because failing property tests print whole specs.
mod debug {
    use super::{AttributeSpec, DatasetSpec, ObjectSpec};
    use crate::content::escape_bytes;
    use std::fmt::{Debug, Formatter, Result};

    /// Bytes in hexadecimal; long ones are truncated.
    struct Hex<'b>(&'b [u8]);

    impl Debug for Hex<'_> {
        fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
            const SHOWN: usize = 64;
            write!(formatter, "{} bytes ", self.0.len())?;
            self.0.iter().take(SHOWN).try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
            if self.0.len() > SHOWN { write!(formatter, "...") } else { Ok(()) }
        }
    }

    impl Debug for ObjectSpec {
        fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
            write!(formatter, "{} = {:?}", escape_bytes(&self.path), self.what)?;
            self.attributes.iter().try_for_each(|attribute| write!(formatter, "\n    {attribute:?}"))
        }
    }

    impl Debug for DatasetSpec {
        fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
            let committed = self.committed.as_deref().map(escape_bytes);
            write!(formatter, "{:?} committed {committed:?} {:?} {:?}", self.class, self.dataspace, self.layout)?;
            write!(formatter, " filters {:?} early {}", self.filters, self.early_allocation)?;
            write!(formatter, " fill {:?} rows {}", self.fill.as_deref().map(Hex), self.written_rows)?;
            write!(formatter, " values {:?}", Hex(&self.values))
        }
    }

    impl Debug for AttributeSpec {
        fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
            write!(
                formatter,
                "@{} {:?} {:?} {:?}",
                escape_bytes(&self.name),
                self.class,
                self.dataspace,
                Hex(&self.values)
            )
        }
    }
}

impl DatasetSpec {
    /// Creates a contiguous, fully written dataset without attributes.
    pub fn plain(class: TypeClass, dims: &[u64], values: Vec<u8>) -> Self {
        Self {
            class: Arc::new(class),
            committed: None,
            dataspace: Dataspace::Simple { dims: dims.to_vec(), max_dims: dims.to_vec() },
            layout: LayoutSpec::Contiguous,
            filters: Vec::new(),
            fill: None,
            early_allocation: false,
            written_rows: u64::MAX,
            values,
        }
    }

    /// Returns the dataset with a chunked layout, extendible along axis 0.
    #[must_use]
    pub fn chunked(mut self, chunk_shape: &[u64], filters: &[FilterSpec]) -> Self {
        if let Dataspace::Simple { max_dims, .. } = &mut self.dataspace
            && let Some(first) = max_dims.first_mut()
        {
            *first = u64::MAX;
        }
        self.layout = LayoutSpec::Chunked(chunk_shape.to_vec());
        self.filters = filters.to_vec();
        self
    }

    /// Returns this dataset as an object at a path, without attributes.
    pub fn at(self, path: &str) -> ObjectSpec {
        ObjectSpec { path: path.into(), what: What::Dataset(Box::new(self)), attributes: Vec::new() }
    }
}

impl ObjectSpec {
    /// Creates a group that does not track creation order.
    pub fn group(path: &str) -> Self {
        Self { path: path.into(), what: What::Group(CreationOrder::default()), attributes: Vec::new() }
    }

    /// Creates a link.
    pub fn link(path: &str, what: What) -> Self {
        Self { path: path.into(), what, attributes: Vec::new() }
    }
}

/// Returns the key that orders paths component by component: the order of a walk that visits links by name, children
/// after parents.
fn walk_order(path: &[u8]) -> Vec<&[u8]> {
    path.split(|&byte| byte == b'/').filter(|component| !component.is_empty()).collect()
}

fn parent(path: &[u8]) -> Path {
    match path.iter().rposition(|&byte| byte == b'/') {
        None | Some(0) => b"/".to_vec(),
        Some(end) => path[..end].to_vec(),
    }
}

fn base_name(path: &[u8]) -> Vec<u8> {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec()
}

impl FileSpec {
    /// Returns the content that a reader must find in the file.
    ///
    /// Hard links may lead to datasets and committed types, or from inside a group to the group itself or one above it.
    /// Further paths through linked groups are not listed.
    pub fn content(&self) -> Content {
        let first_paths = self.first_paths();
        let mut nodes = BTreeMap::new();
        let root_order = self.root_order.tracked.then(|| self.children(b"/"));
        nodes.insert(b"/".to_vec(), Node::Group { attributes: Attributes::new(), creation_order: root_order });
        for object in &self.objects {
            let attributes = object.attributes.iter().map(AttributeSpec::content).collect();
            let first_path = |path: &Path| first_paths.get(path).unwrap_or(path).clone();
            let (path, node) = match &object.what {
                What::Group(order) if object.path == b"/" => {
                    let tracked = self.root_order.tracked || order.tracked;
                    let creation_order = tracked.then(|| self.children(b"/"));
                    (object.path.clone(), Node::Group { attributes, creation_order })
                }
                What::Group(order) => {
                    let creation_order = order.tracked.then(|| self.children(&object.path));
                    (object.path.clone(), Node::Group { attributes, creation_order })
                }
                What::Dataset(dataset) => {
                    let dataset = DatasetContent {
                        class: normal_form(&dataset.class),
                        committed: dataset.committed.as_ref().map(first_path),
                        dataspace: dataset.dataspace.clone(),
                        values: dataset.values.clone(),
                        fill: dataset.fill.clone(),
                        attributes,
                    };
                    (first_path(&object.path), Node::Dataset(Box::new(dataset)))
                }
                What::CommittedType(class) => {
                    (first_path(&object.path), Node::CommittedType { class: normal_form(class), attributes })
                }
                What::HardLink(_) => continue,
                What::SoftLink(text) => (object.path.clone(), Node::SoftLink(text.clone())),
                What::ExternalLink { file, path } => {
                    (object.path.clone(), Node::ExternalLink { file: file.clone(), path: path.clone() })
                }
            };
            nodes.insert(path, node);
        }
        for object in &self.objects {
            let target = match &object.what {
                What::HardLink(target) => target,
                _ => &object.path,
            };
            let first = first_paths.get(target).unwrap_or(target);
            if *first != object.path {
                nodes.insert(object.path.clone(), Node::Alias(first.clone()));
            }
        }
        Content { nodes }
    }

    /// Returns the first path, in walk order, of each object that hard links lead to.
    fn first_paths(&self) -> BTreeMap<Path, Path> {
        let mut first_paths: BTreeMap<Path, Path> = BTreeMap::new();
        for object in &self.objects {
            if let What::HardLink(target) = &object.what {
                let first = first_paths.entry(target.clone()).or_insert_with(|| target.clone());
                if walk_order(&object.path) < walk_order(first) {
                    first.clone_from(&object.path);
                }
            }
        }
        first_paths
    }

    /// Returns the names of the links in a group in order of creation.
    fn children(&self, group: &[u8]) -> Vec<Vec<u8>> {
        let inside = |object: &&ObjectSpec| object.path != b"/" && parent(&object.path) == group;
        self.objects.iter().filter(inside).map(|object| base_name(&object.path)).collect()
    }
}

impl AttributeSpec {
    fn content(&self) -> (Vec<u8>, AttributeContent) {
        let class = normal_form(&self.class);
        let content = AttributeContent { class, dataspace: self.dataspace.clone(), values: self.values.clone() };
        (self.name.clone(), content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::numbers;

    #[test]
    fn an_alias_that_comes_first_by_name_owns_the_object() {
        let dataset = DatasetSpec::plain(numbers::u8(), &[1], vec![7]);
        let file = FileSpec {
            objects: vec![
                dataset.at("/b"),
                ObjectSpec::link("/a", What::HardLink(b"/b".to_vec())),
                ObjectSpec::link("/c", What::HardLink(b"/b".to_vec())),
            ],
            ..FileSpec::default()
        };
        let content = file.content();
        assert!(matches!(content.nodes[&b"/a"[..]], Node::Dataset(_)));
        assert_eq!(content.nodes[&b"/b"[..]], Node::Alias(b"/a".to_vec()));
        assert_eq!(content.nodes[&b"/c"[..]], Node::Alias(b"/a".to_vec()));
        assert_eq!(content.dataset(b"/c").unwrap().values, [7]);
    }
}
