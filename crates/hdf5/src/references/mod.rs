//! References to the chunks of a file in terms of Zarr, so that Zarr readers can read the unchanged file.
//!
//! The entries are those of kerchunk (version 1), which fsspec, Zarr, xarray and VirtualiZarr support: a key such as
//! `group/dataset/0.3`, and the byte range of the file that contains its value. No raw data is read except for data in
//! object headers. Writing the entries to a file is left to the caller.
//!
//! Invariant: either all chunks of a dataset are in the entries, or none of them and the dataset is listed with a
//! reason.

mod values;
mod zarr;

use crate::child::{ChildReader, ObjectName};
use crate::dimensions::{Dimensions, is_without_values};
use crate::error::Result;
use crate::logical::Resolver;
use crate::metadata::complete;
use crate::model::{ChunkIndex, Dataset, Dataspace, FileTree, Layout, LinkTarget, Object, ObjectIndex, ObjectKind};
use crate::native::{self, Encoding, ReadLimits};
use crate::read::{ChunkRecord, check_chunks, check_listed, for_each_chunk};
use crate::source::{InputFile, MetadataView};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Memory for cached metadata blocks.
const MAX_VIEW_BYTES: u64 = 64 << 20;

/// Attributes for internal use by HDF5 and netCDF-4.
const HIDDEN: [&[u8]; 8] = [
    b"CLASS",
    b"NAME",
    b"DIMENSION_LIST",
    b"REFERENCE_LIST",
    b"_Netcdf4Dimid",
    b"_Netcdf4Coordinates",
    b"_nc3_strict",
    b"_NCProperties",
];

/// Value of an entry: its text or its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// The value itself: JSON, or `base64:` and bytes.
    Text(&'a str),
    /// A byte range of the file.
    Range {
        /// Absolute file offset of the first byte.
        address: u64,
        /// Length of the range.
        len_bytes: u64,
    },
}

/// An object that has no entries, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedObject {
    /// Path of the object.
    pub path: Vec<u8>,
    /// Reason why the object has no entries.
    pub reason: String,
}

/// Calls `visit` with the key and the value of every entry, groups before their contents.
///
/// # Errors
/// If the file as a whole cannot be read or changes during the call; problems with individual objects are part of the
/// result.
pub fn for_each_reference(
    file: &InputFile,
    limits: &ReadLimits,
    library: Option<&ChildReader>,
    visit: &mut dyn FnMut(&str, Reference<'_>) -> ControlFlow<()>,
) -> Result<Vec<OmittedObject>> {
    let mut view = MetadataView::new(file, MAX_VIEW_BYTES);
    let native = native::read_tree_through(&mut view, limits);
    let tree = match library {
        Some(library) => complete(native, file.path(), library)?,
        None => native?,
    };
    let dimensions = Dimensions::new(file, &tree);
    let resolver = Resolver::new(file, &tree);
    let mut walk = ReferenceWalk {
        view,
        tree: &tree,
        library,
        dimensions,
        resolver,
        unnamed: HashMap::new(),
        left_out: Vec::new(),
        visit,
    };
    let _ = walk.objects();
    let left_out = walk.left_out;
    file.check_unchanged()?;
    Ok(left_out)
}

struct ReferenceWalk<'w> {
    view: MetadataView<'w>,
    tree: &'w FileTree,
    library: Option<&'w ChildReader>,
    dimensions: Dimensions<'w>,
    resolver: Resolver<'w>,
    /// Numbers assigned to unnamed dimensions, indexed by the length of the dimension.
    unnamed: HashMap<u64, usize>,
    left_out: Vec<OmittedObject>,
    visit: &'w mut dyn FnMut(&str, Reference<'_>) -> ControlFlow<()>,
}

/// Outcome for one object.
enum ReferenceOutcome {
    Done,
    Stopped,
    LeftOut(String),
}

impl ReferenceWalk<'_> {
    /// Visits every object once, under the first path that leads to it.
    fn objects(&mut self) -> ControlFlow<()> {
        let tree = self.tree;
        let mut seen = vec![false; tree.objects.len()];
        let mut stack: Vec<(Vec<u8>, ObjectIndex)> = vec![(Vec::new(), 0)];
        while let Some((path, index)) = stack.pop() {
            let object = &tree.objects[index as usize];
            let fate = if std::mem::replace(&mut seen[index as usize], true) {
                ReferenceOutcome::LeftOut("a second name of an object".to_owned())
            } else {
                if let ObjectKind::Group(group) = &object.kind {
                    for link in group.links.iter().rev() {
                        let path = [path.as_slice(), b"/", &link.name].concat();
                        match link.target {
                            LinkTarget::Hard(target) => stack.push((path, target)),
                            _ => self.left_out.push(OmittedObject { path, reason: "not a hard link".to_owned() }),
                        }
                    }
                }
                self.object(&path, index, object)
            };
            match fate {
                ReferenceOutcome::Done => {}
                ReferenceOutcome::Stopped => return ControlFlow::Break(()),
                ReferenceOutcome::LeftOut(reason) => self.left_out.push(OmittedObject { path, reason }),
            }
        }
        ControlFlow::Continue(())
    }

    fn object(&mut self, path: &[u8], index: ObjectIndex, object: &Object) -> ReferenceOutcome {
        let Ok(name) = std::str::from_utf8(path) else {
            return ReferenceOutcome::LeftOut("a name that is not valid UTF-8".to_owned());
        };
        let prefix = name.strip_prefix('/').map(|name| format!("{name}/")).unwrap_or_default();
        match &object.kind {
            ObjectKind::Group(_) => {
                let group = json!({"zarr_format": 2}).to_string();
                let written = self.text(&format!("{prefix}.zgroup"), &group);
                let attributes = self.attributes(object);
                if written.is_break()
                    || (!attributes.is_empty() && self.attributes_text(&prefix, attributes).is_break())
                {
                    return ReferenceOutcome::Stopped;
                }
                ReferenceOutcome::Done
            }
            ObjectKind::Dataset(_) if is_without_values(object) => ReferenceOutcome::Done,
            ObjectKind::Dataset(dataset) => self.dataset(path, &prefix, index, object, dataset),
            ObjectKind::CommittedDatatype(_) => ReferenceOutcome::LeftOut("a datatype".to_owned()),
            ObjectKind::Unreadable { reason, .. } => ReferenceOutcome::LeftOut(reason.clone()),
            // Trees read here have no templated datasets.
            ObjectKind::Templated(_) => ReferenceOutcome::LeftOut("a form".to_owned()),
        }
    }

    fn dataset(
        &mut self,
        path: &[u8],
        prefix: &str,
        index: ObjectIndex,
        object: &Object,
        dataset: &Dataset,
    ) -> ReferenceOutcome {
        let chunk_shape = match chunk_shape(dataset) {
            Ok(shape) => shape,
            Err(reason) => return ReferenceOutcome::LeftOut(reason),
        };
        // Damage is detected before the first entry is made.
        let chunks = match self.chunks(path, dataset, &chunk_shape) {
            Ok(chunks) => chunks,
            Err(reason) => return ReferenceOutcome::LeftOut(reason),
        };
        let is_whole = chunks.len() as u64 == chunk_count(dataset.dataspace.dims(), &chunk_shape);
        let array = match zarr::array(dataset, &chunk_shape, is_whole) {
            Ok(array) => array,
            Err(reason) => return ReferenceOutcome::LeftOut(reason),
        };
        let mut attributes = self.attributes(object);
        let names = match self.dimensions.names(index) {
            Ok(names) => names,
            Err(error) => return ReferenceOutcome::LeftOut(error.to_string()),
        };
        attributes.insert("_ARRAY_DIMENSIONS".to_owned(), self.named(names, dataset.dataspace.dims()));
        if self.text(&format!("{prefix}.zarray"), &array.to_string()).is_break()
            || self.attributes_text(prefix, attributes).is_break()
        {
            return ReferenceOutcome::Stopped;
        }
        for (key, place) in &chunks {
            let key = format!("{prefix}{key}");
            let visited = match place {
                ChunkLocation::InHeader(bytes) => self.text(&key, &format!("base64:{}", zarr::base64(bytes))),
                &ChunkLocation::InFile { address, len_bytes } => {
                    (self.visit)(&key, Reference::Range { address, len_bytes })
                }
            };
            if visited.is_break() {
                return ReferenceOutcome::Stopped;
            }
        }
        ReferenceOutcome::Done
    }

    /// Returns the key and location of every chunk, or the reason why one cannot be expressed in Zarr.
    fn chunks(
        &mut self,
        path: &[u8],
        dataset: &Dataset,
        chunk_shape: &[u64],
    ) -> std::result::Result<Vec<(String, ChunkLocation)>, String> {
        let first_key = || match dataset.dataspace.dims().len() {
            0 => "0".to_owned(),
            rank => vec!["0"; rank].join("."),
        };
        match &dataset.layout {
            Layout::Compact(data) => match data.stored() {
                Some([]) => Ok(Vec::new()),
                Some(bytes) => Ok(vec![(first_key(), ChunkLocation::InHeader(bytes.to_vec()))]),
                None => Err("values that only libhdf5 reads".to_owned()),
            },
            Layout::Contiguous { address, len_bytes } => match *address {
                Some(address) if *len_bytes > 0 => {
                    let checked = self.view.file().check_range(address, *len_bytes, "contiguous data");
                    checked.map_err(|error| error.to_string())?;
                    Ok(vec![(first_key(), ChunkLocation::InFile { address, len_bytes: *len_bytes })])
                }
                _ => Ok(Vec::new()),
            },
            Layout::Chunked { index, partial_chunks_unfiltered, .. } => {
                let (dims, has_filters) = (dataset.dataspace.dims(), !dataset.filters.is_empty());
                let has_edge = dims.iter().zip(chunk_shape).any(|(&dim, &chunk)| dim % chunk != 0);
                if *partial_chunks_unfiltered && has_filters && has_edge {
                    return Err("unfiltered edge chunks of a filtered dataset".to_owned());
                }
                let (mut chunks, mut masked) = (Vec::new(), false);
                let mut take = |chunk: &ChunkRecord<'_>| {
                    masked |= has_filters && chunk.filter_mask != 0;
                    let numbers =
                        chunk.origin.iter().zip(chunk_shape).map(|(origin, shape)| (origin / shape).to_string());
                    let key = numbers.collect::<Vec<_>>().join(".");
                    chunks.push((key, ChunkLocation::InFile { address: chunk.address, len_bytes: chunk.len_bytes }));
                };
                let taken = match (index, self.library) {
                    (ChunkIndex::ThroughLibrary, Some(library)) => {
                        let file = self.view.file();
                        let listed = library.read_chunks(file.path(), ObjectName::Path(path.to_vec()));
                        listed.and_then(|listed| {
                            for chunk in &listed {
                                let (origin, filter_mask) = (chunk.origin.as_slice(), chunk.filter_mask);
                                let (address, len_bytes) = (chunk.address, chunk.len_bytes);
                                take(&ChunkRecord { origin, address, len_bytes, filter_mask });
                            }
                            check_listed(file, &listed).map(drop)
                        })
                    }
                    _ => {
                        let encoding = Encoding::of(self.tree);
                        let walked = for_each_chunk(&mut self.view, encoding, dataset, None, &mut |chunk| {
                            take(chunk);
                            ControlFlow::Continue(())
                        });
                        walked.and_then(|()| check_chunks(&mut self.view, encoding, dataset).map(drop))
                    }
                };
                taken.map_err(|error| error.to_string())?;
                if masked { Err("chunks for which filters were skipped".to_owned()) } else { Ok(chunks) }
            }
            Layout::External { .. } => Err("values in other files".to_owned()),
            Layout::Virtual => Err("a virtual dataset".to_owned()),
        }
    }

    /// Returns the attributes that JSON can represent.
    fn attributes(&mut self, object: &Object) -> Map<String, Value> {
        let mut values = Map::new();
        for attribute in object.all_attributes().iter().filter(|attribute| !HIDDEN.contains(&attribute.name.as_slice()))
        {
            let class = &attribute.datatype.class;
            if class.has_reference() {
                continue;
            }
            let Ok(name) = std::str::from_utf8(&attribute.name) else { continue };
            let Ok(canonical) = self.resolver.canonical_inline(class, &attribute.data) else { continue };
            if let Some(value) = values::attribute(class, &attribute.dataspace, &canonical) {
                values.insert(name.to_owned(), value);
            }
        }
        values
    }

    /// Returns the names of all axes. Unnamed dimensions of the same length share a name, except within a dataset.
    fn named(&mut self, names: Vec<Option<Vec<u8>>>, dims: &[u64]) -> Value {
        let mut all: Vec<String> = Vec::with_capacity(dims.len());
        for (name, &dim) in names.into_iter().zip(dims) {
            let name = name.and_then(|name| String::from_utf8(name).ok()).unwrap_or_else(|| {
                let next = self.unnamed.len();
                format!("phony_dim_{}", self.unnamed.entry(dim).or_insert(next))
            });
            let mut unique = name.clone();
            for copy in 1.. {
                if !all.contains(&unique) {
                    break;
                }
                unique = format!("{name}_{copy}");
            }
            all.push(unique);
        }
        all.into()
    }

    fn attributes_text(&mut self, prefix: &str, attributes: Map<String, Value>) -> ControlFlow<()> {
        self.text(&format!("{prefix}.zattrs"), &Value::Object(attributes).to_string())
    }

    fn text(&mut self, key: &str, text: &str) -> ControlFlow<()> {
        (self.visit)(key, Reference::Text(text))
    }
}

/// Location of a chunk's bytes.
enum ChunkLocation {
    InHeader(Vec<u8>),
    InFile { address: u64, len_bytes: u64 },
}

/// Returns the number of chunks of a dataset in which none is missing.
fn chunk_count(dims: &[u64], chunk_shape: &[u64]) -> u64 {
    let along = dims.iter().zip(chunk_shape).map(|(dim, chunk)| dim.div_ceil(*chunk));
    along.fold(1, u64::saturating_mul)
}

/// Returns the chunk shape in Zarr: the whole dataset if it is not chunked.
fn chunk_shape(dataset: &Dataset) -> std::result::Result<Vec<u64>, String> {
    match (&dataset.layout, &dataset.dataspace) {
        (_, Dataspace::Null) => Err("no extent".to_owned()),
        (Layout::Chunked { chunk_shape, .. }, _) => Ok(chunk_shape.clone()),
        (_, dataspace) => Ok(dataspace.dims().iter().map(|&dim| dim.max(1)).collect()),
    }
}
