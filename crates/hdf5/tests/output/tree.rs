//! Finds an output's objects with the native reader, from the file's bytes and without libhdf5.

use raddle_hdf5::logical::Resolver;
use raddle_hdf5::model::{Attribute, Dataset, FileTree, Group, Link, LinkTarget, Object, ObjectKind};
use raddle_hdf5::native::{ReadLimits, read_tree};
use raddle_hdf5::source::InputFile;
use std::path::Path;

pub struct Tree {
    file: InputFile,
    pub tree: FileTree,
}

impl Tree {
    pub fn read(path: &Path) -> Self {
        let file = InputFile::open(path).unwrap();
        let tree = read_tree(&file, &ReadLimits::default()).unwrap();
        for object in &tree.objects {
            assert!(!matches!(object.kind, ObjectKind::Unreadable { .. }), "{:?}", object.kind);
        }
        Self { file, tree }
    }

    /// Returns the link at an absolute path.
    pub fn link(&self, path: &[u8]) -> &Link {
        let (parent, name) = path.split_at(path.iter().rposition(|&byte| byte == b'/').unwrap());
        let links = &self.group(parent).links;
        links.iter().find(|link| link.name == name[1..]).unwrap_or_else(|| panic!("no {}", path.escape_ascii()))
    }

    /// Returns the object at an absolute path; the empty path is the root group.
    pub fn object(&self, path: &[u8]) -> &Object {
        if path.is_empty() || path == b"/" {
            return &self.tree.objects[0];
        }
        match self.link(path).target {
            LinkTarget::Hard(index) => &self.tree.objects[index as usize],
            ref other => panic!("{}: {other:?}", path.escape_ascii()),
        }
    }

    pub fn group(&self, path: &[u8]) -> &Group {
        match &self.object(path).kind {
            ObjectKind::Group(group) => group,
            other => panic!("{}: {other:?}", path.escape_ascii()),
        }
    }

    pub fn dataset(&self, path: &[u8]) -> &Dataset {
        match &self.object(path).kind {
            ObjectKind::Dataset(dataset) => dataset,
            other => panic!("{}: {other:?}", path.escape_ascii()),
        }
    }

    pub fn attribute(&self, object: &[u8], name: &[u8]) -> &Attribute {
        let found = self.object(object).attributes.iter().find(|attribute| attribute.name == name);
        found.unwrap_or_else(|| panic!("no {}@{}", object.escape_ascii(), name.escape_ascii()))
    }

    /// Returns an attribute's value, in canonical form if its type is file-local.
    pub fn attribute_value(&self, object: &[u8], name: &[u8]) -> Vec<u8> {
        let attribute = self.attribute(object, name);
        let mut resolver = Resolver::new(&self.file, &self.tree);
        resolver.canonical_inline(&attribute.datatype.class, &attribute.data).unwrap().into_owned()
    }
}
