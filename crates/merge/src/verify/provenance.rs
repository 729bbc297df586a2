//! `/_raddle`: the origin of rows and digests of every dataset, stored in the output itself.
//!
//! Layout (format 2), in plain HDF5 that any reader can show:
//!
//! | object | shape, type | content |
//! |---|---|---|
//! | attribute `format` | u64 | 2 |
//! | attribute `raddle_version` | string | version that wrote the file |
//! | attribute `digest_algorithm` | string | name of the digest |
//! | attribute `made` | string | how added datasets were computed, in JSON ([`crate::keys::DerivedSpec`]); absent if there are none |
//! | attribute `link` | string | that values are stored in the inputs and how these are named, in JSON ([`crate::options::Link`]); absent if they are not |
//! | attribute `join` | string | settings by which the inputs were joined, in JSON ([`crate::verify::remembered`]); absent if all were defaults |
//! | attribute `seal` | u64 | digest of all other attributes and tables: see [`seal`] |
//! | `inputs/path` | (n) string | paths of the inputs, as specified by the caller |
//! | `inputs/len_bytes` | (n) u64 | file sizes |
//! | `inputs/sample` | (n) u64 | digest of the first, middle and last 4 KiB; absent in files of earlier versions |
//! | `objects/path` | (o) string | paths of all objects and links that are not concatenated datasets |
//! | `objects/structure` | (o) u64 | digest of the object or link: see [`crate::verify::digests::structure`] |
//! | `datasets/path` | (m) string | paths of the concatenated datasets |
//! | `datasets/structure` | (m) u64 | digest of everything except the values |
//! | `datasets/form` | (m) u64 | form of the digested data: see [`crate::verify::digests::DigestForm`]; 0: no digest, the dataset has no elements; 4: no digest, the dataset is virtual |
//! | `datasets/digest` | (m) u64 | digest of all values in row-major order |
//! | `datasets/row_starts` | (m) u32 | row of `row_starts` that applies to the dataset; 2³² − 1: its rows belong to no input |
//! | `datasets/block_rows` | (m) u64 | rows per digest block |
//! | `datasets/first_block` | (m) u64 | first element of `block_digest` |
//! | `row_starts` | (k, n + 1) u64 | first row of each input, and the total; datasets of one table share a row |
//! | `block_digest` | (b) u64 | digests of row blocks |
//!
//! In netCDF files the tables have [`dimensions`].
//!
//! Invariant: nothing here depends on the clock, the machine or the number of threads.

pub mod dimensions;

use crate::options::Link;
use crate::plan::{MergePlan, PlannedInput};
use crate::schema::{AttributeValue, PROVENANCE_GROUP, Role};
use crate::verify::digests::StoredDigests;
use crate::verify::digests::structure::structure_digests;
use crate::verify::digests::{ColumnDigests, Digests};
use crate::verify::record::{JOIN, StoredRecord};
use dimensions::ProvenanceDimension;
use raddle_core::digest::{ALGORITHM, Digest};
use raddle_hdf5::model::{BitRange, ByteOrder, CreationOrder, TypeClass};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Version of the layout above.
pub const FORMAT: u64 = 2;
/// Name of the attribute that records how added datasets were computed.
pub(crate) const MADE: &str = "made";
/// Name of the attribute that records that the file links to its inputs.
pub const LINK: &str = "link";
/// Value in `datasets/row_starts` for a dataset whose rows belong to no input.
pub(crate) const OF_NO_INPUT: u32 = u32::MAX;
/// Name of the attribute with the digest of all other attributes and the tables.
pub(crate) const SEAL: &str = "seal";

/// A small dataset of the provenance group.
#[derive(Debug, Clone)]
pub struct ProvenanceTable {
    /// Absolute path.
    pub path: Vec<u8>,
    /// Type of one element.
    pub class: Arc<TypeClass>,
    /// Dimensions.
    pub dims: Vec<u64>,
    /// Canonical bytes of all elements.
    pub value: Vec<u8>,
    /// Attributes.
    pub attributes: Vec<AttributeValue>,
}

/// An attribute of `/_raddle`.
#[derive(Debug, Clone)]
pub struct NamedValue {
    /// Name of the attribute.
    pub name: &'static str,
    /// Type of the value.
    pub class: Arc<TypeClass>,
    /// Canonical bytes of one element.
    pub value: Vec<u8>,
}

/// Groups, attributes and tables of `/_raddle`.
#[derive(Debug, Clone)]
pub struct Provenance {
    /// Groups, parents first.
    pub groups: Vec<Vec<u8>>,
    /// Order of links in the groups, as in the root, because the netCDF library edits only files whose groups all track
    /// it.
    pub link_order: CreationOrder,
    /// Attributes of the first group.
    pub attributes: Vec<NamedValue>,
    /// Dimensions of the datasets in a netCDF file.
    pub dimensions: Vec<ProvenanceDimension>,
    /// Datasets.
    pub tables: Vec<ProvenanceTable>,
}

/// Returns the type of unsigned little-endian integers of `len_bytes` bytes.
pub fn unsigned(len_bytes: u32) -> Arc<TypeClass> {
    Arc::new(TypeClass::Integer {
        len_bytes,
        order: ByteOrder::Little,
        signed: false,
        bits: BitRange { offset: 0, count: len_bytes * 8 },
        padding: (0, 0),
    })
}

/// Returns the type of variable-length UTF-8 strings.
pub fn string() -> Arc<TypeClass> {
    Arc::new(TypeClass::VariableString { padding: 0, charset: 1, len_bytes: 16 })
}

fn canonical_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Returns the path of [`PROVENANCE_GROUP`], or of its member `inside`.
pub(crate) fn provenance_path(inside: &str) -> Vec<u8> {
    let mut path = vec![b'/'];
    path.extend_from_slice(PROVENANCE_GROUP);
    if !inside.is_empty() {
        path.push(b'/');
        path.extend_from_slice(inside.as_bytes());
    }
    path
}

/// Returns a digest of attributes (name, canonical value) and tables (path, dimensions, canonical values) that does not
/// depend on their order.
pub fn seal<'v>(
    attributes: impl Iterator<Item = (&'v [u8], &'v [u8])>,
    tables: impl Iterator<Item = (&'v [u8], &'v [u64], &'v [u8])>,
) -> u64 {
    fn of(parts: &[&[u8]]) -> u64 {
        let framed = parts.iter().fold(Digest::default(), |all, part| {
            all.then(Digest::of(&(part.len() as u64).to_le_bytes())).then(Digest::of(part))
        });
        framed.crc64_nvme()
    }
    let dims_bytes = |dims: &[u64]| dims.iter().flat_map(|dim| dim.to_le_bytes()).collect::<Vec<u8>>();
    let mut parts: Vec<u64> = attributes.map(|(name, value)| of(&[name, value])).collect();
    parts.extend(tables.map(|(path, dims, value)| of(&[path, &dims_bytes(dims), value])));
    parts.sort_unstable();
    parts.iter().fold(Digest::default(), |all, part| all.then(Digest::of(&part.to_le_bytes()))).crc64_nvme()
}

/// Gathers the provenance of an executed plan; `samples` are the sample digests of its inputs.
pub fn gather(plan: &MergePlan, digests: &Digests, samples: &[u64]) -> Provenance {
    let earlier = earlier(plan);
    let mut attributes = attributes(plan, earlier);
    let mut tables = Tables::default();
    let input_count = tables.add_inputs(plan, earlier, samples);
    tables.add_structure(plan);
    tables.add_digests(digests);
    tables.add_row_starts(plan, input_count);
    let sealed = seal(
        attributes.iter().map(|attribute| (attribute.name.as_bytes(), attribute.value.as_slice())),
        tables.0.iter().map(|table| (table.path.as_slice(), table.dims.as_slice(), table.value.as_slice())),
    );
    attributes.push(NamedValue { name: SEAL, class: unsigned(8), value: sealed.to_le_bytes().to_vec() });
    let groups = ["", "inputs", "objects", "datasets"].map(provenance_path).to_vec();
    let link_order = match plan.schema.entries.first().map(|root| &root.role) {
        Some(Role::Group { link_order }) => *link_order,
        _ => CreationOrder::default(),
    };
    let dimensions = dimensions::attach(&plan.schema, &mut tables.0);
    Provenance { groups, link_order, attributes, dimensions, tables: tables.0 }
}

/// Returns the attributes of the provenance, except for the seal.
fn attributes(plan: &MergePlan, earlier: Option<&StoredDigests>) -> Vec<NamedValue> {
    let text = |text: &str| {
        let mut value = Vec::new();
        canonical_string(text.as_bytes(), &mut value);
        value
    };
    let mut attributes = vec![
        NamedValue { name: "format", class: unsigned(8), value: FORMAT.to_le_bytes().to_vec() },
        NamedValue { name: "raddle_version", class: string(), value: text(env!("CARGO_PKG_VERSION")) },
        NamedValue { name: "digest_algorithm", class: string(), value: text(ALGORITHM) },
    ];
    // Encoding cannot fail: plain values with string keys.
    let mut push = |name, value: Result<String, serde_json::Error>| {
        attributes.push(NamedValue { name, class: string(), value: text(&value.unwrap_or_default()) });
    };
    if !plan.derived.specs.is_empty() {
        push(MADE, serde_json::to_string(&plan.derived.specs));
    }
    if plan.options.link != Link::No {
        push(LINK, serde_json::to_string(&(plan.options.link, plan.options.link_paths)));
    }
    if let Some(remembered) = StoredRecord::of_output(plan, earlier) {
        push(JOIN, serde_json::to_string(&remembered));
    }
    attributes
}

/// Returns the provenance stored in the output before this run; `None` if there was none.
fn earlier(plan: &MergePlan) -> Option<&StoredDigests> {
    plan.carried.as_ref().or_else(|| plan.growth.as_ref()?.stored.as_ref())
}

/// Returns the inputs that are not recorded in the output yet.
fn new_inputs(plan: &MergePlan) -> impl Iterator<Item = &PlannedInput> {
    let known = match (&plan.carried, &plan.growth) {
        (Some(_), _) => plan.inputs.len(),
        (None, Some(_)) => 1,
        (None, None) => 0,
    };
    plan.inputs.iter().skip(known)
}

fn encode_u64s(words: impl Iterator<Item = u64>) -> Vec<u8> {
    words.flat_map(u64::to_le_bytes).collect()
}

/// Tables being gathered; paths are relative to `/_raddle`.
#[derive(Default)]
struct Tables(Vec<ProvenanceTable>);

impl Tables {
    fn table(&mut self, inside: &str, class: Arc<TypeClass>, dims: Vec<u64>, value: Vec<u8>) {
        self.0.push(ProvenanceTable { path: provenance_path(inside), class, dims, value, attributes: Vec::new() });
    }

    fn numbers(&mut self, inside: &str, values: impl Iterator<Item = u64>) {
        let value = encode_u64s(values);
        self.table(inside, unsigned(8), vec![value.len() as u64 / 8], value);
    }

    fn strings<'v>(&mut self, inside: &str, values: impl Iterator<Item = &'v [u8]>) {
        let (mut count, mut value) = (0, Vec::new());
        for bytes in values {
            canonical_string(bytes, &mut value);
            count += 1;
        }
        self.table(inside, string(), vec![count], value);
    }

    /// Adds the tables of the inputs, those of earlier runs first; returns the number of all inputs.
    fn add_inputs(&mut self, plan: &MergePlan, earlier: Option<&StoredDigests>, samples: &[u64]) -> usize {
        let before = earlier.map_or(&[][..], |earlier| &earlier.inputs);
        let inputs: Vec<(&Path, u64)> = before
            .iter()
            .map(|(path, len_bytes)| (path.as_path(), *len_bytes))
            .chain(new_inputs(plan).map(|input| (input.path.as_path(), input.identity.len_bytes)))
            .collect();
        let samples: Vec<u64> = earlier
            .map_or(&[][..], |earlier| &earlier.samples)
            .iter()
            .chain(samples.iter().skip(plan.inputs.len() - new_inputs(plan).count()))
            .copied()
            .collect();
        self.numbers("inputs/len_bytes", inputs.iter().map(|(_, len_bytes)| *len_bytes));
        if samples.len() == inputs.len() {
            self.numbers("inputs/sample", samples.into_iter());
        }
        self.strings("inputs/path", inputs.iter().map(|(path, _)| path.as_os_str().as_bytes()));
        inputs.len()
    }

    /// Adds the paths and the digests of the structure of all objects.
    fn add_structure(&mut self, plan: &MergePlan) {
        let structure = structure_digests(plan);
        let others = || {
            let entries = plan.schema.entries.iter().zip(&structure);
            entries.filter(|(entry, _)| !matches!(entry.role, Role::Column(_)))
        };
        self.strings("objects/path", others().map(|(entry, _)| entry.path.as_slice()));
        self.numbers("objects/structure", others().map(|(_, digest)| *digest));
        let columns = 0..plan.columns.len() as u32;
        self.strings("datasets/path", columns.map(|column| plan.schema.column_path(column)));
        let of_columns = plan.schema.columns.iter().map(|column| structure[column.entry as usize]);
        self.numbers("datasets/structure", of_columns);
    }

    /// Adds the digests of values, of whole datasets and of their blocks.
    fn add_digests(&mut self, digests: &Digests) {
        let of_columns = |value: fn(&ColumnDigests) -> u64| {
            digests.columns.iter().map(move |digests| digests.as_ref().map_or(0, value))
        };
        self.numbers("datasets/form", of_columns(|digests| digests.form as u64));
        self.numbers("datasets/digest", of_columns(|digests| digests.whole));
        self.numbers("datasets/block_rows", of_columns(|digests| digests.block_rows));
        let first_blocks = of_columns(|digests| digests.blocks.len() as u64).scan(0, |end, count| {
            let first = *end;
            *end += count;
            Some(first)
        });
        self.numbers("datasets/first_block", first_blocks);
        let blocks = digests.columns.iter().flatten().flat_map(|digests| digests.blocks.iter().copied());
        self.numbers("block_digest", blocks);
    }

    /// Adds the first rows of the inputs in each dataset.
    fn add_row_starts(&mut self, plan: &MergePlan, input_count: usize) {
        let (starts, start_of_column) = row_starts(plan);
        let dims = vec![starts.len() as u64, input_count as u64 + 1];
        self.table("row_starts", unsigned(8), dims, encode_u64s(starts.into_iter().flatten()));
        let value = start_of_column.iter().flat_map(|row| row.to_le_bytes()).collect();
        self.table("datasets/row_starts", unsigned(4), vec![start_of_column.len() as u64], value);
    }
}

/// Returns the distinct vectors of first rows per input, and the index of the vector for each column.
fn row_starts(plan: &MergePlan) -> (Vec<Vec<u64>>, Vec<u32>) {
    let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
    let mut distinct = Vec::new();
    let mut of_column = Vec::new();
    for (index, column) in (0..).zip(&plan.schema.columns) {
        let path = plan.schema.column_path(index);
        let earlier = earlier(plan).and_then(|earlier| earlier.datasets.get(path));
        let dims = &plan.columns[index as usize].dims;
        let starts = if plan.derived.has(index) {
            plan.derived.recorded_starts(index).unwrap_or_default().to_vec()
        } else if plan.carried.as_ref().is_some_and(|carried| earlier.is_none() && carried.is_stack(path, dims)) {
            // One element per input; from now on it is an ordinary dataset.
            (0..=dims[0]).collect()
        } else if column.axis > 0 || column.boxes.is_some() {
            Vec::new()
        } else {
            let mut starts = earlier.map_or_else(|| vec![0], |earlier| earlier.row_starts.clone());
            let new = column.facts.len() - new_inputs(plan).count();
            // Rows that previously belonged to no input still belong to none.
            for fact in column.facts.iter().skip(if starts.is_empty() { column.facts.len() } else { new }) {
                starts.push(starts.last().copied().unwrap_or(0) + fact.rows);
            }
            starts
        };
        if starts.is_empty() {
            of_column.push(OF_NO_INPUT);
            continue;
        }
        let next = distinct.len() as u32;
        let row = *known.entry(starts).or_insert_with_key(|starts| {
            distinct.push(starts.clone());
            next
        });
        of_column.push(row);
    }
    (distinct, of_column)
}
