//! Reading of `/_raddle`: the digests and row ranges with which a file was written.
//!
//! Invariant: the returned data matches its seal, so a damaged digest is never mistaken for damaged data.

use super::contents::{Records, StoredColumn, StoredDigests};
use crate::error::{MergeError, Result};
use crate::inputs::reader::InputReader;
use crate::options::MergeOptions;
use crate::schema::{PROVENANCE_GROUP, child_path, display_path};
use crate::verify::digests::{ColumnDigests, DigestForm};
use crate::verify::provenance::dimensions::DIMENSION_PREFIX;
use crate::verify::provenance::{FORMAT, LINK, MADE, OF_NO_INPUT, SEAL, provenance_path, seal, string, unsigned};
use crate::verify::record::JOIN;
use raddle_hdf5::logical::{CanonicalElements, Resolver};
use raddle_hdf5::model::{Dataset, FileTree, Group, Layout, LinkTarget, Object, ObjectKind, TypeClass};
use raddle_hdf5::source::InputFile;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Reads the records of a scanned file. The seal is not checked, because that would require all of `/_raddle`.
///
/// # Errors
/// If an attribute cannot be read. Returns its name and the reason.
pub(crate) fn records(file: &InputFile, tree: &FileTree) -> std::result::Result<Records, (&'static str, String)> {
    let Some(ObjectKind::Group(root)) = tree.objects.first().map(|root| &root.kind) else {
        return Ok(Records::default());
    };
    let Some((object, _)) = linked_group(tree, root, PROVENANCE_GROUP) else { return Ok(Records::default()) };
    let mut resolver = Resolver::new(file, tree);
    Ok(Records {
        remembered: record(object, JOIN, &mut resolver).map_err(|reason| (JOIN, reason))?,
        made: record(object, MADE, &mut resolver).map_err(|reason| (MADE, reason))?,
    })
}

/// Reads an attribute that holds JSON; returns the default if it is absent.
fn record<T: DeserializeOwned + Default>(
    object: &Object,
    name: &str,
    resolver: &mut Resolver<'_>,
) -> std::result::Result<T, String> {
    let attribute = object.attribute(name.as_bytes());
    let Some(attribute) = attribute else { return Ok(T::default()) };
    let value = resolver.canonical_inline(&attribute.datatype.class, &attribute.data);
    let value = value.map_err(|error| error.to_string())?;
    serde_json::from_slice(text(&value)).map_err(|error| error.to_string())
}

/// Returns the bytes of a canonical string, which begins with its length.
fn text(value: &[u8]) -> &[u8] {
    value.get(8..).unwrap_or_default()
}

/// Reads the records of the file at `path`. The seal is not checked, because that would require all of `/_raddle`.
///
/// # Errors
/// If the file cannot be read.
pub fn records_of(path: &Path, options: &MergeOptions) -> Result<Records> {
    let tree = InputReader::new(options).read_tree(path)?;
    let found = records(&InputFile::open(path)?, &tree);
    found.map_err(|(name, reason)| MergeError::DigestsDamaged {
        path: path.to_path_buf(),
        what: format!("{name}: {reason}"),
    })
}

/// Reads the digests like [`read`]; returns `None` if the file has none.
pub fn find(path: &Path, options: &MergeOptions) -> Result<Option<StoredDigests>> {
    match read(path, options) {
        Err(MergeError::NoDigests { .. }) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Reads the digests of the file at `path`.
///
/// # Errors
/// [`MergeError::NoDigests`] if the file has none, [`MergeError::DigestsDamaged`] if they contradict their seal, and
/// any error of reading a file.
pub fn read(path: &Path, options: &MergeOptions) -> Result<StoredDigests> {
    crate::append::redo::settle(path)?;
    let reader = InputReader::new(options);
    let tree = reader.read_tree(path)?;
    of_tree(&InputFile::open(path)?, &tree, &reader)
}

/// Reads the digests of a file whose metadata is `tree`; returns `None` if it has none that this version can use.
pub(crate) fn usable(file: &InputFile, tree: &FileTree, reader: &InputReader) -> Option<StoredDigests> {
    of_tree(file, tree, reader).ok()
}

fn of_tree(file: &InputFile, tree: &FileTree, reader: &InputReader) -> Result<StoredDigests> {
    let path = file.path();
    let root = match tree.objects.first().map(|root| &root.kind) {
        Some(ObjectKind::Group(root)) => root,
        _ => return Err(MergeError::NoDigests { path: path.to_path_buf() }),
    };
    let Some((object, group)) = linked_group(tree, root, PROVENANCE_GROUP) else {
        return Err(MergeError::NoDigests { path: path.to_path_buf() });
    };
    let mut source = Source {
        path,
        reader,
        file,
        tree,
        tables: HashMap::new(),
        attributes: HashMap::new(),
        rewritten_left_bytes: MAX_REWRITTEN_LEN_BYTES,
    };
    source.read_attributes(object)?;
    match source.attributes.get(b"format".as_slice()).and_then(|value| word(value)) {
        Some(FORMAT) => {}
        Some(found) if found < FORMAT => return Err(MergeError::NoDigests { path: path.to_path_buf() }),
        Some(found) => return Err(MergeError::DigestsNewer { path: path.to_path_buf(), found, known: FORMAT }),
        None => return Err(source.damaged("the attribute format is missing")),
    }
    source.read_tables(group, &provenance_path(""))?;
    source.check_seal()?;
    source.into_stored()
}

fn linked_group<'t>(tree: &'t FileTree, group: &'t Group, name: &[u8]) -> Option<(&'t Object, &'t Group)> {
    let link = group.links.iter().find(|link| link.name == name)?;
    let LinkTarget::Hard(index) = link.target else { return None };
    let object = &tree.objects[index as usize];
    match &object.kind {
        ObjectKind::Group(group) => Some((object, group)),
        _ => None,
    }
}

fn word(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

struct DigestTable {
    dims: Vec<u64>,
    class: std::sync::Arc<TypeClass>,
    value: Vec<u8>,
}

/// Maximum length of all tables that another program has compressed: a damaged or malicious file may claim any length.
/// The digests of 8 TB of values fit.
const MAX_REWRITTEN_LEN_BYTES: u64 = 64 << 20;

struct Source<'a> {
    path: &'a Path,
    reader: &'a InputReader,
    file: &'a InputFile,
    tree: &'a FileTree,
    /// Tables, indexed by absolute path.
    tables: HashMap<Vec<u8>, DigestTable>,
    attributes: HashMap<Vec<u8>, Vec<u8>>,
    /// What is left of [`MAX_REWRITTEN_LEN_BYTES`].
    rewritten_left_bytes: u64,
}

fn damaged(path: &Path, what: impl Into<String>) -> MergeError {
    MergeError::DigestsDamaged { path: path.to_path_buf(), what: what.into() }
}

impl Source<'_> {
    fn damaged(&self, what: impl Into<String>) -> MergeError {
        damaged(self.path, what)
    }

    fn read_attributes(&mut self, object: &Object) -> Result<()> {
        let mut resolver = Resolver::new(self.file, self.tree);
        for attribute in &object.attributes {
            let value = resolver.canonical_inline(&attribute.datatype.class, &attribute.data);
            let value = value.map_err(|error| self.damaged(error.to_string()))?.into_owned();
            self.attributes.insert(attribute.name.clone(), value);
        }
        Ok(())
    }

    /// Reads all datasets of `group` and of the groups inside it.
    fn read_tables(&mut self, group: &Group, at: &[u8]) -> Result<()> {
        for link in &group.links {
            // The netCDF library adds a dimension for each table without dimensions when it opens the file for writing.
            if [DIMENSION_PREFIX, b"phony_dim_"].iter().any(|prefix| link.name.starts_with(prefix)) {
                continue;
            }
            let path = child_path(at, &link.name);
            let LinkTarget::Hard(index) = link.target else {
                return Err(self.damaged(format!("{} is a link", display_path(&path))));
            };
            match &self.tree.objects[index as usize].kind {
                // Only one level of groups is written by raddle, without deeper groups or cycles.
                ObjectKind::Group(inner) if at == provenance_path("") => self.read_tables(inner, &path)?,
                ObjectKind::Dataset(dataset) => self.read_table(dataset, path)?,
                ObjectKind::Templated(templated) => self.read_table(&templated.dataset(), path)?,
                _ => return Err(self.damaged(format!("{} was not written by raddle", display_path(&path)))),
            }
        }
        Ok(())
    }

    fn read_table(&mut self, dataset: &Dataset, path: Vec<u8>) -> Result<()> {
        let table = self.table_of(dataset, &path)?;
        self.tables.insert(path, table);
        Ok(())
    }

    fn table_of(&mut self, dataset: &Dataset, path: &[u8]) -> Result<DigestTable> {
        let file = self.path;
        let refuse = |what: &str| damaged(file, format!("{} {what}", display_path(path)));
        let dims = dataset.dataspace.dims().to_vec();
        let class = dataset.datatype.class.clone();
        let elements = dataset.dataspace.element_count();
        let len_bytes = elements.and_then(|count| count.checked_mul(class.len_bytes()));
        // raddle stores all of it: a dataset that claims to be longer than the file would require a buffer of that length.
        let limit = match dataset.layout {
            Layout::Contiguous { .. } => self.file.len_bytes(),
            _ => self.rewritten_left_bytes,
        };
        let Some(len_bytes) = len_bytes.filter(|len_bytes| *len_bytes <= limit) else {
            return Err(refuse("does not have the dimensions that raddle writes"));
        };
        let Layout::Contiguous { address, .. } = &dataset.layout else {
            let value = self.reader.read_values(self.path, path, None);
            let value = value.map_err(|error| refuse(&format!("cannot be read: {error}")))?;
            let left_bytes = limit.checked_sub(len_bytes.max(value.len() as u64));
            self.rewritten_left_bytes = left_bytes.ok_or_else(|| refuse("holds more text than raddle writes"))?;
            return Ok(DigestTable { dims, class, value });
        };
        let mut stored = vec![0; len_bytes as usize];
        if len_bytes > 0 {
            let address = address.ok_or_else(|| refuse("was never written"))?;
            let read = self.file.read_exact_at(address, &mut stored, "digests");
            read.map_err(|error| refuse(&error.to_string()))?;
        }
        if !class.is_file_local() {
            return Ok(DigestTable { dims, class, value: stored });
        }
        let (mut resolver, mut value) = (Resolver::new(self.file, self.tree), Vec::new());
        for element in stored.chunks_exact(class.len_bytes().max(1) as usize) {
            resolver.canonical(&class, element, &mut value).map_err(|error| refuse(&error.to_string()))?;
            // Each string is stored once; elements that share one string could expand to any length.
            if value.len() as u64 > self.file.len_bytes() {
                return Err(refuse("holds more text than the file"));
            }
        }
        Ok(DigestTable { dims, class, value })
    }

    fn check_seal(&self) -> Result<()> {
        let attributes = self.attributes.iter().filter(|(name, _)| *name != SEAL.as_bytes());
        let found = seal(
            attributes.map(|(name, value)| (name.as_slice(), value.as_slice())),
            self.tables.iter().map(|(path, table)| (path.as_slice(), table.dims.as_slice(), table.value.as_slice())),
        );
        match self.attributes.get(SEAL.as_bytes()).and_then(|value| word(value)) {
            Some(sealed) if sealed == found => Ok(()),
            _ => Err(self.damaged("its content differs from what was written")),
        }
    }

    fn table(&self, inside: &str, class: &TypeClass) -> Result<&DigestTable> {
        let table = self.tables.get(&provenance_path(inside)).filter(|table| *table.class == *class);
        table.ok_or_else(|| self.damaged(format!("{inside} is missing or of the wrong type")))
    }

    fn numbers(&self, inside: &str) -> Result<Vec<u64>> {
        let bytes = &self.table(inside, &unsigned(8))?.value;
        Ok(bytes.chunks_exact(8).filter_map(word).collect())
    }

    fn strings(&self, inside: &str) -> Result<Vec<Vec<u8>>> {
        let (class, table) = (string(), self.table(inside, &string())?);
        let elements = CanonicalElements::new(&class, &table.value);
        let strings = elements.map(|element| element.map(|bytes| text(bytes).to_vec()));
        let strings: Option<Vec<_>> = strings.collect();
        strings.ok_or_else(|| self.damaged(format!("{inside} is cut off")))
    }

    /// Parses the JSON in the attribute `name`; returns the default if it is absent.
    fn json<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T> {
        let Some(value) = self.attributes.get(name.as_bytes()) else { return Ok(T::default()) };
        serde_json::from_slice(text(value)).map_err(|error| self.damaged(format!("attribute {name}: {error}")))
    }

    fn into_stored(self) -> Result<StoredDigests> {
        let inputs: Vec<PathBuf> =
            self.strings("inputs/path")?.into_iter().map(|path| OsString::from_vec(path).into()).collect();
        let len_bytes = self.numbers("inputs/len_bytes")?;
        let objects = self.strings("objects/path")?;
        let structures = self.numbers("objects/structure")?;
        let paths = self.strings("datasets/path")?;
        let [structure, form, digest, block_rows, first_block] =
            ["structure", "form", "digest", "block_rows", "first_block"]
                .map(|name| self.numbers(&format!("datasets/{name}")));
        let (structure, form, digest, block_rows, first_block) =
            (structure?, form?, digest?, block_rows?, first_block?);
        let blocks = self.numbers("block_digest")?;
        let row_starts = self.numbers("row_starts")?;
        let which = &self.table("datasets/row_starts", &unsigned(4))?.value;
        let which: Vec<u32> = which.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let count = paths.len();
        let lists = [&structure, &form, &digest, &block_rows, &first_block];
        if lists.iter().any(|list| list.len() != count)
            || which.len() != count
            || objects.len() != structures.len()
            || inputs.len() != len_bytes.len()
        {
            return Err(self.damaged("its tables have different lengths"));
        }
        let width = inputs.len() + 1;
        let mut datasets = HashMap::with_capacity(count);
        for (index, path) in paths.into_iter().enumerate() {
            let starts = match which[index] {
                OF_NO_INPUT => Vec::new(),
                row => {
                    let starts = row_starts.chunks_exact(width).nth(row as usize);
                    starts.ok_or_else(|| self.damaged("row ranges are missing"))?.to_vec()
                }
            };
            let end = first_block.get(index + 1).copied().unwrap_or(blocks.len() as u64);
            let column_blocks = blocks.get(first_block[index] as usize..end as usize);
            let column_blocks =
                column_blocks.ok_or_else(|| self.damaged("digests of row blocks are missing"))?.to_vec();
            let digests = DigestForm::of_number(form[index]).map(|form| ColumnDigests {
                form,
                block_rows: block_rows[index].max(1),
                whole: digest[index],
                blocks: column_blocks,
            });
            datasets.insert(path, StoredColumn { structure: structure[index], digests, row_starts: starts });
        }
        let samples = match self.tables.contains_key(&provenance_path("inputs/sample")) {
            true => self.numbers("inputs/sample")?,
            false => Vec::new(),
        };
        if !samples.is_empty() && samples.len() != inputs.len() {
            return Err(self.damaged("its tables have different lengths"));
        }
        Ok(StoredDigests {
            samples,
            inputs: inputs.into_iter().zip(len_bytes).collect(),
            objects: objects.into_iter().zip(structures).collect(),
            datasets,
            derived: self.json(MADE)?,
            link: self.json(LINK)?,
            remembered: self.json(JOIN)?,
        })
    }
}
