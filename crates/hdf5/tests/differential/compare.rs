//! Reads a file with both readers and reports the first difference in words.

use crate::child_reader;
use crate::values::compare_values;
use raddle_hdf5::child::{ChildOptions, ChildReader};
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::metadata::{MetadataReader, NativeReader};
use raddle_hdf5::model::{
    Attribute, ChunkIndex, Dataset, FileTree, InlineData, Layout, LinkTarget, Object, ObjectKind, TypeClass,
};
use raddle_hdf5::native::{HeaderTemplateCache, ReadLimits, Superblock, read_outline};
use raddle_hdf5::source::{InputFile, MetadataView};
use std::fmt::Debug;
use std::path::Path;
use std::sync::LazyLock;

/// Checks that both readers return the same metadata, read everything in the file, and find the same values.
pub fn agree(path: &Path) {
    let native = NativeReader::default().read_tree(path).unwrap_or_else(|error| panic!("native: {error}"));
    let child = child_reader(ChildOptions::default());
    let library = child.read_tree(path).unwrap_or_else(|error| panic!("child: {error}"));
    for object in native.objects.iter().chain(&library.objects) {
        assert!(!matches!(object.kind, ObjectKind::Unreadable { .. }), "{}: {object:?}", path.display());
    }
    if let Err(difference) = compare_files(path, &native, &library, &child) {
        panic!("{}: {difference}", path.display());
    }
}

/// Returns the first difference on a file of unknown quality. It does not count as a difference if a reader refuses the
/// file or an object.
pub fn difference(path: &Path) -> Option<String> {
    let native = NativeReader::default().read_tree(path);
    let child = child_reader(ChildOptions::default());
    let library = child.read_tree(path);
    let outcome = match (native, library) {
        (Ok(native), Ok(library)) => compare_files(path, &native, &library, &child).err(),
        (Ok(_), Err(error)) => Some(format!("only the native reader reads it\n libhdf5: {error}")),
        (Err(error), Ok(_)) => Some(format!("only libhdf5 reads it\n  native: {error}")),
        (Err(_), Err(_)) => None,
    };
    outcome.map(|difference| format!("{}: {difference}", path.display()))
}

fn compare_files(path: &Path, native: &FileTree, library: &FileTree, child: &ChildReader) -> Difference {
    let file = InputFile::open(path).map_err(|error| error.to_string())?;
    let encoding = Superblock::read(&file).map_err(|error| error.to_string())?.encoding;
    compare_outline(&file, native)?;
    let mut comparison = Comparison { resolver: Resolver::new(&file, native) };
    comparison.trees(native, library)?;
    compare_values(&file, encoding, native, child, &mut comparison.resolver)
}

/// Forms of the files of all tests: forms learned from one file must not change how another is read.
static FORMS: LazyLock<HeaderTemplateCache> = LazyLock::new(HeaderTemplateCache::default);

/// Compares a file read twice with forms, the second time with its own forms known, to the file read in full.
fn compare_outline(file: &InputFile, native: &FileTree) -> Difference {
    for _ in 0..2 {
        let mut view = MetadataView::new(file, 1 << 20);
        let mut outline = read_outline(&mut view, &ReadLimits::default(), &FORMS).map_err(|error| error.to_string())?;
        for object in &mut outline.objects {
            if let ObjectKind::Templated(formed) = &object.kind {
                let form = formed.form.clone();
                object.kind = ObjectKind::Dataset(Box::new(formed.dataset()));
                object.attributes.clone_from(&form.attributes);
                object.comment.clone_from(&form.comment);
                same("attribute order of a form", &object.attribute_order, &form.attribute_order)?;
            }
        }
        same("tree by forms", &outline, native)?;
    }
    Ok(())
}

/// First difference in words.
pub type Difference = Result<(), String>;

/// Compares two parts.
pub fn same<T: PartialEq + Debug>(what: &str, native: &T, library: &T) -> Difference {
    if native == library {
        return Ok(());
    }
    Err(format!("{what} differs\n  native: {native:?}\n libhdf5: {library:?}"))
}

/// Comparison of both readers' results for one file.
struct Comparison<'a> {
    /// Resolves the native reader's stored bytes where libhdf5 returns canonical ones.
    resolver: Resolver<'a>,
}

impl Comparison<'_> {
    fn trees(&mut self, native: &FileTree, library: &FileTree) -> Difference {
        same("superblock version", &native.superblock_version, &library.superblock_version)?;
        same("user block", &native.userblock_len_bytes, &library.userblock_len_bytes)?;
        same("size of addresses", &native.address_len_bytes, &library.address_len_bytes)?;
        same("size of lengths", &native.length_len_bytes, &library.length_len_bytes)?;
        let paths = paths(native);
        for ((native, library), path) in native.objects.iter().zip(&library.objects).zip(paths) {
            self.objects(native, library).map_err(|difference| format!("{path}: {difference}"))?;
        }
        same("number of objects", &native.objects.len(), &library.objects.len())
    }

    fn objects(&mut self, native: &Object, library: &Object) -> Difference {
        same("address", &native.address, &library.address)?;
        match (&native.kind, &library.kind) {
            (ObjectKind::Group(native), ObjectKind::Group(library)) => {
                same("creation order of links", &native.link_order, &library.link_order)?;
                same("number of links", &native.links.len(), &library.links.len())?;
                for (native, library) in native.links.iter().zip(&library.links) {
                    same("link", native, library)?;
                }
            }
            (ObjectKind::Dataset(native), ObjectKind::Dataset(library)) => self.datasets(native, library)?,
            (ObjectKind::CommittedDatatype(native), ObjectKind::CommittedDatatype(library)) => {
                same("committed datatype", native, library)?;
            }
            (ObjectKind::Unreadable { .. }, _) | (_, ObjectKind::Unreadable { .. }) => return Ok(()),
            (native, library) => return Err(format!("kind differs\n  native: {native:?}\n libhdf5: {library:?}")),
        }
        same("creation order of attributes", &native.attribute_order, &library.attribute_order)?;
        same("comment", &native.comment, &library.comment)?;
        same("number of attributes", &native.attributes.len(), &library.attributes.len())?;
        for (native, library) in native.attributes.iter().zip(&library.attributes) {
            self.attributes(native, library)
                .map_err(|difference| format!("attribute {}: {difference}", native.name.escape_ascii()))?;
        }
        Ok(())
    }

    fn datasets(&mut self, native: &Dataset, library: &Dataset) -> Difference {
        same("dataspace", &native.dataspace, &library.dataspace)?;
        same("datatype", &native.datatype, &library.datatype)?;
        same("committed datatype", &native.datatype.committed, &library.datatype.committed)?;
        same("filters", &native.filters, &library.filters)?;
        self.layouts(&native.layout, &library.layout, &native.datatype.class)?;
        let class = &native.datatype.class;
        let (mut native, mut library) = (native.fill.clone(), library.fill.clone());
        if let (Some(native), Some(library)) = (native.value.take(), library.value.take()) {
            self.data("fill value", class, &native, &library)?;
        }
        same("fill value", &native, &library)
    }

    /// Compares layouts. Chunk indexes are specific to the native reader; the lists of chunks are compared elsewhere.
    fn layouts(&mut self, native: &Layout, library: &Layout, class: &TypeClass) -> Difference {
        match (native, library) {
            (Layout::Compact(native), Layout::Compact(library)) => self.data("compact data", class, native, library),
            (
                Layout::Chunked { index: ChunkIndex::None, .. },
                Layout::Chunked { index: ChunkIndex::ThroughLibrary, .. },
            ) => Err(format!("chunks are known to libhdf5 alone: {native:?}")),
            (
                Layout::Chunked { chunk_shape, partial_chunks_unfiltered, .. },
                Layout::Chunked { chunk_shape: shape, partial_chunks_unfiltered: partial, .. },
            ) => {
                same("chunk shape", chunk_shape, shape)?;
                same("filtering of partial chunks", partial_chunks_unfiltered, partial)
            }
            // libhdf5 does not return the stored length of storage that was never allocated.
            (Layout::Contiguous { address: None, .. }, Layout::Contiguous { address: None, .. }) => Ok(()),
            _ => same("layout", native, library),
        }
    }

    fn attributes(&mut self, native: &Attribute, library: &Attribute) -> Difference {
        same("name", &native.name.escape_ascii().to_string(), &library.name.escape_ascii().to_string())?;
        same("character set of the name", &native.utf8, &library.utf8)?;
        same("creation order", &native.creation_order, &library.creation_order)?;
        same("datatype", &native.datatype, &library.datatype)?;
        same("committed datatype", &native.datatype.committed, &library.datatype.committed)?;
        same("dataspace", &native.dataspace, &library.dataspace)?;
        self.data("value", &native.datatype.class, &native.data, &library.data)
    }

    fn data(&mut self, what: &str, class: &TypeClass, native: &InlineData, library: &InlineData) -> Difference {
        if class.is_file_local() {
            let native = self.resolver.canonical_inline(class, native).map_err(|error| error.to_string())?;
            same(what, &&*native, &library.bytes())
        } else {
            same(what, native, library)
        }
    }
}

/// Returns the path under which a breadth-first walk first reaches each object.
pub fn paths(tree: &FileTree) -> Vec<String> {
    let mut paths = vec![String::new(); tree.objects.len()];
    paths[0] = "/".to_owned();
    for index in 0..tree.objects.len() {
        let ObjectKind::Group(group) = &tree.objects[index].kind else { continue };
        for link in &group.links {
            if let LinkTarget::Hard(target) = link.target
                && paths[target as usize].is_empty()
            {
                let parent = paths[index].trim_end_matches('/');
                paths[target as usize] = format!("{parent}/{}", link.name.escape_ascii());
            }
        }
    }
    paths
}
