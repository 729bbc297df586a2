//! Opening of files, with detection of their format.

use crate::error::{EventsError, Location, Result};
use crate::hdf5::Hdf5Source;
use crate::model::source::Source;
use crate::packed::PackedTree;
use crate::pds::PdsSource;
use crate::root::{NtupleSource, RootFile, RootOptions, TreeSource, WholeTree};
use crate::sources::input::InputFile;
use std::path::Path;

/// Options for opening a file.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Name of the tree or RNTuple of a ROOT file, optionally with a cycle (`Events;1`); without a cycle, the latest is
    /// used. If `None`, `Events` is opened, or else the only tree.
    pub tree: Option<String>,
    /// Whether to read products as their stored bytes, where there is a choice.
    pub raw: bool,
    /// Objects of trees whole, as ROOT serialises them, also where they are split into branches.
    pub whole: bool,
}

/// Open file.
pub enum OpenedSource {
    /// Tree of a ROOT file.
    Tree(TreeSource),
    /// A tree of a ROOT file as whole objects.
    Whole(Box<WholeTree>),
    /// Tree of a ROOT file whose entries are packed events.
    Packed(Box<PackedTree>),
    /// RNTuple of a ROOT file.
    Ntuple(NtupleSource),
    /// Packed data stream.
    Pds(PdsSource),
    /// HDF5 file.
    Hdf5(Box<Hdf5Source>),
}

impl OpenedSource {
    /// Converts this into a boxed source.
    pub fn into_source(self) -> Box<dyn Source> {
        match self {
            Self::Tree(tree) => Box::new(tree),
            Self::Whole(tree) => tree,
            Self::Packed(tree) => tree,
            Self::Ntuple(ntuple) => Box::new(ntuple),
            Self::Pds(stream) => Box::new(stream),
            Self::Hdf5(file) => file,
        }
    }

    /// Borrows this as a source.
    pub fn source(&self) -> &dyn Source {
        match self {
            Self::Tree(tree) => tree,
            Self::Whole(tree) => tree.as_ref(),
            Self::Packed(tree) => tree.as_ref(),
            Self::Ntuple(ntuple) => ntuple,
            Self::Pds(stream) => stream,
            Self::Hdf5(file) => file.as_ref(),
        }
    }
}

/// Signature of an HDF5 file.
const HDF5_SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Name of the tree to which the frameworks of experiments write events.
const USUAL_TREE: &str = "Events";

/// Opens `path`, whose format is detected from its first bytes.
///
/// # Errors
/// The format is unknown, or opening the file fails.
pub fn open(path: &Path, options: &OpenOptions) -> Result<OpenedSource> {
    let file = InputFile::open(path)?;
    let first = file
        .read(0, file.len_bytes().min(HDF5_SIGNATURE.len() as u64), "the first bytes")
        .map_err(|fault| fault.at(&Location::file(path)))?;
    if first.starts_with(b"root") {
        let file = RootFile::open(path)?;
        let tree = match &options.tree {
            Some(tree) => tree.clone(),
            None => usual_tree(&file, path)?,
        };
        if file.has_ntuple(&tree) {
            return NtupleSource::open(file, &tree).map(OpenedSource::Ntuple);
        }
        let source = TreeSource::open(file, &tree, RootOptions { raw: options.raw })?;
        return match PackedTree::is_one(&source) {
            true => PackedTree::open(source.into_file(), &tree).map(|tree| OpenedSource::Packed(Box::new(tree))),
            false if options.whole => {
                WholeTree::open(source.into_file(), &tree).map(|tree| OpenedSource::Whole(Box::new(tree)))
            }
            false => Ok(OpenedSource::Tree(source)),
        };
    }
    if first == HDF5_SIGNATURE {
        return Hdf5Source::open(path).map(|source| OpenedSource::Hdf5(Box::new(source)));
    }
    if crate::pds::is_pds(&first) {
        return PdsSource::open(path).map(OpenedSource::Pds);
    }
    Err(file.other_format("a ROOT file, a packed data stream or an HDF5 file"))
}

fn usual_tree(file: &RootFile, path: &Path) -> Result<String> {
    let available = file.containers();
    match available.as_slice() {
        [only] => Ok(only.clone()),
        _ if available.iter().any(|tree| tree == USUAL_TREE) => Ok(USUAL_TREE.to_owned()),
        _ => Err(EventsError::NoSuch { place: Location::file(path).tree(USUAL_TREE).into(), kind: "tree", available }),
    }
}
