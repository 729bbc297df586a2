//! An opened HDF5 event file: its groups, attributes, and one-dimensional arrays of numbers.
//!
//! It is read in safe Rust, with the native reader of raddle-hdf5 alone. Invariant: no array is longer than the file
//! could fill, so that reading never allocates more memory than the file justifies.

use super::series::number_of_class;
use crate::error::{EventsError, Result};
use raddle_codec::{KnownFilter, Pipeline};
use raddle_columns::error::{ColumnsError, Location, UnlocatedError};
use raddle_columns::schema::Number;
use raddle_hdf5::logical::{CanonicalElements, Resolver};
use raddle_hdf5::model::{Attribute, Dataset, FileTree, Group, Layout, LinkTarget, Object, ObjectKind};
use raddle_hdf5::native::{Encoding, ReadLimits, read_tree, stored_attribute_names};
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits};
use raddle_hdf5::source::InputFile;
use std::ops::Range;
use std::path::Path;

/// Maximum ratio of decoded to stored bytes: with deflate, and with any other filter (Zstandard has the largest).
const DEFLATE_RATIO: u64 = 1032;
const MAX_RATIO: u64 = 32_768;

/// Additional length that an array may have, because one chunk need not be stored.
const UNSTORED_LEN_BYTES: u64 = 1 << 20;

/// Open HDF5 event file.
#[derive(Debug)]
pub(super) struct EventsFile {
    input: InputFile,
    tree: FileTree,
    limits: ReadLimits,
}

/// Group of an open file.
#[derive(Clone, Copy)]
pub(super) struct GroupIn<'f> {
    file: &'f EventsFile,
    object: &'f Object,
    group: &'f Group,
    name: &'f str,
}

/// One-dimensional dataset of numbers.
#[derive(Debug)]
pub(super) struct Array {
    pub path: String,
    pub number: Number,
    pub len: u64,
    dataset: Dataset,
    pipeline: Pipeline,
    encoding: Encoding,
    chunk_len_bytes: u64,
}

impl EventsFile {
    pub fn open(path: &Path) -> Result<Self> {
        let input = InputFile::open(path)?;
        input.check_no_writer()?;
        let limits = ReadLimits::default();
        let tree = read_tree(&input, &limits)?;
        Ok(Self { input, tree, limits })
    }

    pub fn path(&self) -> &Path {
        self.input.path()
    }

    pub fn check_unchanged(&self) -> Result<()> {
        Ok(self.input.check_unchanged()?)
    }

    pub fn place(&self) -> Location {
        Location::file(self.path())
    }

    /// Returns the group `name` of the root group.
    pub fn group<'f>(&'f self, name: &'f str) -> Option<GroupIn<'f>> {
        let ObjectKind::Group(root) = &self.tree.objects.first()?.kind else { return None };
        let object = self.linked(root, name.trim_start_matches('/'))?;
        match &object.kind {
            ObjectKind::Group(group) => Some(GroupIn { file: self, object, group, name }),
            _ => None,
        }
    }

    fn linked(&self, group: &Group, name: &str) -> Option<&Object> {
        let link = group.links.iter().find(|link| link.name == name.as_bytes())?;
        match link.target {
            LinkTarget::Hard(object) => self.tree.objects.get(object as usize),
            _ => None,
        }
    }

    /// Creates a reader of arrays for one thread, which caches the last chunk of each of `arrays`.
    pub fn reader<'a>(&self, arrays: impl Iterator<Item = &'a Array>) -> DatasetReader {
        DatasetReader::new(ReaderLimits {
            kept_len_bytes: cached_len_bytes(arrays) as usize,
            // A chunk may be longer than the file could fill, but not by much.
            chunk_len_bytes: self.input.len_bytes().saturating_mul(DEFLATE_RATIO).clamp(16 << 20, 1 << 30),
            ..ReaderLimits::default()
        })
    }

    /// Reads some elements of an array, as bytes.
    pub fn read(&self, reader: &mut DatasetReader, array: &Array, elements: Range<u64>) -> Result<Vec<u8>> {
        if elements.start > elements.end || elements.end > array.len {
            let what =
                format!("elements {}..{} are referenced, but it has {}", elements.start, elements.end, array.len);
            return Err(self.damaged(&array.path, what));
        }
        let count = elements.end - elements.start;
        let source = DatasetSource {
            file: &self.input,
            encoding: array.encoding,
            dataset: &array.dataset,
            pipeline: &array.pipeline,
        };
        // Not longer than the whole array, whose length has been checked.
        let mut out = vec![0; count as usize * array.number.len_bytes()];
        let target = BoxRead { start: &[elements.start], count: &[count], out_shape: &[count], out_origin: &[0] };
        reader.read_box(&source, &target, &mut out).map_err(|error| error.in_object(array.path.clone()))?;
        Ok(out)
    }

    /// Reads 64-bit numbers.
    pub fn read_u64(&self, reader: &mut DatasetReader, array: &Array, elements: Range<u64>) -> Result<Vec<u64>> {
        Ok(words(&self.read(reader, array, elements)?).map(u64::from_le_bytes).collect())
    }

    /// Reads offsets, which must not decrease or exceed `end`.
    pub fn read_rising(
        &self,
        reader: &mut DatasetReader,
        array: &Array,
        elements: Range<u64>,
        end: u64,
    ) -> Result<Vec<u64>> {
        let offsets = self.read_u64(reader, array, elements.clone())?;
        let falls = offsets.windows(2).position(|pair| pair[0] > pair[1]).map(|at| at + 1);
        let bad = falls.or_else(|| offsets.last().filter(|&&last| last > end).map(|_| offsets.len() - 1));
        match bad {
            None => Ok(offsets),
            Some(at) => {
                let element = elements.start + at as u64;
                let what =
                    format!("offset {element} is {}, less than the one before it or beyond the end {end}", offsets[at]);
                Err(self.damaged(&array.path, what))
            }
        }
    }

    /// Creates the error for an object of the file that contradicts the layout.
    #[cold]
    pub fn damaged(&self, object: &str, what: String) -> EventsError {
        UnlocatedError::Damaged { address: 0, structure: "layout of events", what }
            .at(&self.place().branch(object))
            .into()
    }

    /// Creates the error for a file without events.
    pub fn other(&self) -> EventsError {
        let found = "the HDF5 signature, but it has none of the groups and datasets of events".to_owned();
        ColumnsError::OtherFormat { path: self.path().to_path_buf(), expected: "an HDF5 event file".to_owned(), found }
            .into()
    }

    fn damaged_attribute(&self, attribute: &str, what: &str) -> EventsError {
        self.damaged(&format!("attribute {attribute}"), what.to_owned())
    }
}

/// Returns the maximum memory for the chunks that a reader of `arrays` caches.
pub(super) fn cached_len_bytes<'a>(arrays: impl Iterator<Item = &'a Array>) -> u64 {
    const MAX_CACHED_LEN_BYTES: u64 = 256 << 20;
    let cached = arrays.map(|array| array.chunk_len_bytes.saturating_mul(2)).fold(8 << 20, u64::saturating_add);
    cached.min(MAX_CACHED_LEN_BYTES)
}

/// Splits bytes into words of `LEN` bytes.
pub(super) fn words<const LEN: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; LEN]> + '_ {
    bytes.as_chunks::<LEN>().0.iter().copied()
}

impl<'f> GroupIn<'f> {
    /// Returns the names of the group's links, in the order of the file.
    pub fn links(&self) -> impl Iterator<Item = &'f [u8]> {
        self.group.links.iter().map(|link| link.name.as_slice())
    }

    /// Returns whether an object of this name exists.
    pub fn has(&self, name: &str) -> bool {
        self.file.linked(self.group, name).is_some()
    }

    /// Opens the array `name`, whose elements must have one of the types in `numbers`.
    pub fn array(&self, name: &str, numbers: &[Number]) -> Result<Array> {
        let path = format!("{}/{name}", self.name);
        let wrong = |what: String| self.file.damaged(&path, what);
        let object = self.file.linked(self.group, name).ok_or_else(|| wrong("no such dataset".to_owned()))?;
        let dataset = match &object.kind {
            ObjectKind::Dataset(dataset) => dataset.as_ref().clone(),
            ObjectKind::Unreadable { reason, .. } => return Err(wrong(reason.clone())),
            _ => return Err(wrong("it is not a dataset".to_owned())),
        };
        let &[len] = dataset.dataspace.dims() else { return Err(wrong("it is not one-dimensional".to_owned())) };
        let number = number_of_class(&dataset.datatype.class).filter(|number| numbers.contains(number));
        let Some(number) = number else {
            let expected: Vec<&str> = numbers.iter().map(|number| number.name()).collect();
            return Err(wrong(format!("its elements are not of type {}", expected.join(" or "))));
        };
        let chunk_len_bytes = match &dataset.layout {
            Layout::Chunked { chunk_shape, .. } => chunk_shape.first().copied().unwrap_or(0),
            _ => 0,
        };
        let chunk_len_bytes = chunk_len_bytes.saturating_mul(number.len_bytes() as u64);
        let ratio = dataset.filters.iter().fold(1_u64, |ratio, filter| {
            ratio.saturating_mul(match KnownFilter::from_id(filter.id) {
                Some(KnownFilter::Shuffle | KnownFilter::Fletcher32) => 1,
                Some(KnownFilter::Deflate) => DEFLATE_RATIO,
                _ => MAX_RATIO,
            })
        });
        let most = self.file.input.len_bytes().saturating_mul(ratio).saturating_add(UNSTORED_LEN_BYTES);
        if len.saturating_mul(number.len_bytes() as u64) > most {
            return Err(wrong(format!("{len} elements are more than the file can hold")));
        }
        let pipeline = Pipeline::new(&dataset.filters, number.len_bytes())
            .map_err(|error| wrong(format!("its filters: {error}")))?;
        let encoding = Encoding::of(&self.file.tree);
        Ok(Array { path, number, len, dataset, pipeline, encoding, chunk_len_bytes })
    }

    /// Returns the names of the group's attributes in the order in which they are stored, which is the order of their
    /// creation.
    pub fn stored_attribute_names(&self) -> Result<Vec<Vec<u8>>> {
        Ok(stored_attribute_names(&self.file.input, self.object.address, &self.file.limits)?)
    }

    fn attribute(&self, name: &str) -> Option<&'f Attribute> {
        self.object.attribute(name.as_bytes())
    }

    /// Reads the strings of an attribute; returns `None` if it does not exist.
    pub fn strings(&self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(attribute) = self.attribute(name) else { return Ok(None) };
        strings_of(self.file, attribute).map(Some)
    }

    /// Reads the text of an attribute, which must hold exactly one.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        match self.strings(name)? {
            None => Ok(None),
            Some(strings) => match <[String; 1]>::try_from(strings) {
                Ok([text]) => Ok(Some(text)),
                Err(_) => Err(self.file.damaged_attribute(name, "it is not a single string")),
            },
        }
    }

    /// Reads the number of an attribute, which must hold exactly one.
    pub fn number(&self, name: &str) -> Result<Option<i64>> {
        let Some(attribute) = self.attribute(name) else { return Ok(None) };
        let wrong = || self.file.damaged_attribute(name, "it is not one number");
        let bytes = attribute.data.stored().ok_or_else(wrong)?;
        let number = match (number_of_class(&attribute.datatype.class), bytes) {
            (Some(Number::Int32), &[a, b, c, d]) => Some(i64::from(i32::from_le_bytes([a, b, c, d]))),
            (Some(Number::Int64 | Number::Uint64), bytes) => {
                <[u8; 8]>::try_from(bytes).ok().map(i64::from_le_bytes).filter(|&number| number >= 0)
            }
            _ => None,
        };
        number.map(Some).ok_or_else(wrong)
    }

    /// Reads the text of the attribute `attribute` of the object `name`; returns an empty string if it does not exist.
    pub fn text_of(&self, name: &str, attribute: &str) -> Result<String> {
        let object = self.file.linked(self.group, name);
        let found = object.and_then(|object| object.attribute(attribute.as_bytes()));
        match found {
            None => Ok(String::new()),
            Some(found) => Ok(strings_of(self.file, found)?.into_iter().next().unwrap_or_default()),
        }
    }
}

fn strings_of(file: &EventsFile, attribute: &Attribute) -> Result<Vec<String>> {
    use raddle_hdf5::model::TypeClass;
    let name = String::from_utf8_lossy(&attribute.name);
    let class = attribute.datatype.class.as_ref();
    let wrong = |what| file.damaged_attribute(&name, what);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| wrong("its value is not UTF-8"));
    match class {
        TypeClass::VariableString { .. } => {
            let mut resolver = Resolver::new(&file.input, &file.tree);
            let canonical = resolver.canonical_inline(class, &attribute.data)?;
            let elements = CanonicalElements::new(class, &canonical);
            // A length of eight bytes comes first; all its bits are set if there is no text.
            elements.map(|element| text(element.and_then(|bytes| bytes.get(8..)).unwrap_or_default())).collect()
        }
        TypeClass::FixedString { len_bytes, .. } => {
            let stored = attribute.data.stored().unwrap_or_default();
            let end = |bytes: &[u8]| bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            stored.chunks_exact((*len_bytes).max(1) as usize).map(|bytes| text(&bytes[..end(bytes)])).collect()
        }
        _ => Err(wrong("it is not a string")),
    }
}
