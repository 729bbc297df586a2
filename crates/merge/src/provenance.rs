//! `/_raddle`: which rows came from which input, and digests of every dataset, kept in the output itself.
//!
//! Layout (format 1), all plain HDF5 that any reader shows:
//!
//! | object | shape, type | content |
//! |---|---|---|
//! | attribute `format` | u64 | 1 |
//! | attribute `raddle_version` | string | version that wrote the file |
//! | attribute `digest_algorithm` | string | name of the digest |
//! | `inputs/path` | (n) string | paths as given |
//! | `inputs/len_bytes` | (n) u64 | file sizes |
//! | `datasets/path` | (m) string | paths of the concatenated datasets |
//! | `datasets/digest` | (m) u64 | digest of all values in row-major order |
//! | `datasets/row_starts` | (m) u32 | row of `row_starts` that holds for the dataset |
//! | `datasets/block_rows` | (m) u64 | rows per digest block; 0: no digest (unknown filter moved as stored) |
//! | `datasets/first_block` | (m) u64 | first element of `block_digest` |
//! | `row_starts` | (k, n + 1) u64 | first row of each input, and the total; datasets of one table share a row |
//! | `block_digest` | (b) u64 | digests of row blocks |
//!
//! Invariant: nothing here depends on the clock, the machine or the number of threads.

use crate::plan::MergePlan;
use crate::schema::PROVENANCE_GROUP;
use crate::tiles::Digests;
use raddle_core::digest::BlockDigests;
use raddle_hdf5::model::{BitRange, ByteOrder, TypeClass};
use std::collections::HashMap;
use std::sync::Arc;

/// Version of the layout above.
pub const FORMAT: u64 = 1;
/// Name of the digest: [`raddle_core::digest`].
pub const DIGEST_ALGORITHM: &str = "CRC-64/NVME";

/// A small dataset of provenance.
#[derive(Debug, Clone)]
pub struct Table {
    /// Absolute path.
    pub path: Vec<u8>,
    /// Type of one element.
    pub class: Arc<TypeClass>,
    /// Dimensions.
    pub dims: Vec<u64>,
    /// Canonical bytes of all elements.
    pub value: Vec<u8>,
}

/// An attribute of `/_raddle`.
#[derive(Debug, Clone)]
pub struct NamedValue {
    /// Name.
    pub name: &'static str,
    /// Type.
    pub class: Arc<TypeClass>,
    /// Canonical bytes of one element.
    pub value: Vec<u8>,
}

/// Groups, attributes and tables of `/_raddle`.
#[derive(Debug, Clone)]
pub struct Provenance {
    /// Groups, parents first.
    pub groups: Vec<Vec<u8>>,
    /// Attributes of the first group.
    pub attributes: Vec<NamedValue>,
    /// Datasets.
    pub tables: Vec<Table>,
}

/// Unsigned 64-bit, little-endian.
pub fn unsigned(len_bytes: u32) -> Arc<TypeClass> {
    Arc::new(TypeClass::Integer {
        len_bytes,
        order: ByteOrder::Little,
        signed: false,
        bits: BitRange { offset: 0, count: len_bytes * 8 },
        padding: (0, 0),
    })
}

/// Variable-length UTF-8 string.
pub fn string() -> Arc<TypeClass> {
    Arc::new(TypeClass::VariableString { padding: 0, charset: 1, len_bytes: 16 })
}

fn canonical_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Where [`PROVENANCE_GROUP`] lies, with `inside` below it.
pub fn provenance_path(inside: &str) -> Vec<u8> {
    let mut path = vec![b'/'];
    path.extend_from_slice(PROVENANCE_GROUP);
    if !inside.is_empty() {
        path.push(b'/');
        path.extend_from_slice(inside.as_bytes());
    }
    path
}

/// Gathers the provenance of an executed plan.
pub fn gather(plan: &MergePlan, digests: &Digests) -> Provenance {
    use std::os::unix::ffi::OsStrExt;
    let text = |text: &str| {
        let mut value = Vec::new();
        canonical_string(text.as_bytes(), &mut value);
        value
    };
    let attributes = vec![
        NamedValue { name: "format", class: unsigned(8), value: FORMAT.to_le_bytes().to_vec() },
        NamedValue { name: "raddle_version", class: string(), value: text(env!("CARGO_PKG_VERSION")) },
        NamedValue { name: "digest_algorithm", class: string(), value: text(DIGEST_ALGORITHM) },
    ];
    let mut tables = Vec::new();
    let mut numbers = |inside: &str, dims: Vec<u64>, values: Vec<u64>| {
        let value = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        tables.push(Table { path: provenance_path(inside), class: unsigned(8), dims, value });
    };
    let (inputs, columns) = (plan.inputs.len() as u64, plan.columns.len() as u64);
    numbers("inputs/len_bytes", vec![inputs], plan.inputs.iter().map(|input| input.identity.len_bytes).collect());
    let of_columns = |value: &dyn Fn(u32, &BlockDigests) -> u64| {
        let columns = (0..).zip(&digests.columns);
        columns.map(|(column, digests)| digests.as_ref().map_or(0, |digests| value(column, digests))).collect()
    };
    numbers("datasets/digest", vec![columns], of_columns(&|_, digests| digests.whole.crc64_nvme()));
    numbers(
        "datasets/block_rows",
        vec![columns],
        of_columns(&|column, digests| digests.block_len_bytes / plan.row_len_bytes(column).max(1)),
    );
    let mut first_blocks = Vec::new();
    let mut blocks = Vec::new();
    for column in &digests.columns {
        first_blocks.push(blocks.len() as u64);
        blocks.extend(column.iter().flat_map(|column| &column.blocks).map(|block| block.crc64_nvme()));
    }
    numbers("datasets/first_block", vec![columns], first_blocks);
    let (starts, start_of_column) = row_starts(plan);
    numbers("row_starts", vec![starts.len() as u64, inputs + 1], starts.into_iter().flatten().collect());
    numbers("block_digest", vec![blocks.len() as u64], blocks);
    let value = start_of_column.iter().flat_map(|row| row.to_le_bytes()).collect();
    tables.push(Table { path: provenance_path("datasets/row_starts"), class: unsigned(4), dims: vec![columns], value });
    let mut strings = |inside: &str, values: &mut dyn Iterator<Item = &[u8]>| {
        let (mut count, mut value) = (0, Vec::new());
        for bytes in values {
            canonical_string(bytes, &mut value);
            count += 1;
        }
        tables.push(Table { path: provenance_path(inside), class: string(), dims: vec![count], value });
    };
    strings("inputs/path", &mut plan.inputs.iter().map(|input| input.path.as_os_str().as_bytes()));
    strings("datasets/path", &mut (0..plan.columns.len()).map(|column| plan.schema.column_path(column as u32)));
    Provenance { groups: ["", "inputs", "datasets"].map(provenance_path).to_vec(), attributes, tables }
}

/// Distinct vectors of first rows per input, and which one each column has.
fn row_starts(plan: &MergePlan) -> (Vec<Vec<u64>>, Vec<u32>) {
    let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
    let mut distinct = Vec::new();
    let mut of_column = Vec::new();
    for column in &plan.schema.columns {
        let mut starts = Vec::with_capacity(column.facts.len() + 1);
        starts.push(0);
        for fact in &column.facts {
            starts.push(starts.last().copied().unwrap_or(0) + fact.rows);
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
