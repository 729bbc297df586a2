//! An index that is built while a file is written, from parts of its columns in any order.
//!
//! Invariant: once every row of a column has been added, the index has the statistics that it would have if it were
//! computed from the file.

use crate::distinct::MAX_DISTINCT;
use crate::index::{ColumnStatistics, Index};
use crate::statistics::{BlockStatistics, OrderedType};
use crate::strings::StringForm;
use crate::table::{ColumnKind, block_rows};
use raddle_core::pooled_file::FileIdentity;
use raddle_hdf5::model::TypeClass;
use raddle_hdf5::string_forms::StringForms;
use std::sync::{Mutex, PoisonError};

/// Dataset to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewDataset<'d> {
    /// Path of the dataset.
    pub path: &'d [u8],
    /// Type of its elements.
    pub class: &'d TypeClass,
    /// Dimensions of the dataset.
    pub dims: &'d [u64],
    /// Number of rows of a chunk; 1 if there are no chunks.
    pub chunk_rows: u64,
}

/// Statistics of columns that are being written.
#[derive(Debug)]
pub struct IndexBuilder {
    /// Columns by number; `None` for those without statistics.
    columns: Vec<Option<NewColumn>>,
}

#[derive(Debug)]
struct NewColumn {
    path: String,
    values: OrderedType,
    strings: StringForms,
    rows: u64,
    row_len_bytes: u64,
    block_rows: u64,
    blocks: Mutex<Vec<BlockStatistics>>,
}

impl NewColumn {
    fn statistics(&self, stored: &[u8]) -> BlockStatistics {
        match self.values {
            OrderedType::Number(_) | OrderedType::String(StringForm::Canonical) => {
                BlockStatistics::of(self.values, stored)
            }
            OrderedType::String(StringForm::Padded { .. }) => {
                let mut normalised = stored.to_vec();
                self.strings.apply(&mut normalised);
                BlockStatistics::of(self.values, &normalised)
            }
        }
    }

    /// Merges statistics of values into the statistics of their blocks.
    fn unite(&self, found: Vec<(u64, BlockStatistics)>) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        for (block, statistics) in found {
            if let Some(known) = blocks.get_mut(block as usize) {
                *known = statistics.union(known);
            }
        }
    }
}

/// Statistics of the blocks of a column, with its number.
pub type ColumnShare = (u32, Vec<BlockStatistics>);

impl IndexBuilder {
    /// Creates a builder for `datasets`, which are given in the order of their numbers; `None` stands for a dataset
    /// whose values are not added.
    pub fn new<'d>(datasets: impl IntoIterator<Item = Option<NewDataset<'d>>>) -> Self {
        let column = |dataset: NewDataset<'d>| {
            let (&rows, others) = dataset.dims.split_first()?;
            let elements = others.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim))?;
            let values = ColumnKind::of(dataset.class, elements).ordered()?;
            let strings = StringForms::of(dataset.class);
            let row_len_bytes = dataset.class.len_bytes();
            let block_rows = block_rows(dataset.chunk_rows, row_len_bytes);
            let blocks = Mutex::new(vec![BlockStatistics::EMPTY; usize::try_from(rows.div_ceil(block_rows)).ok()?]);
            let path = std::str::from_utf8(dataset.path).ok()?.to_owned();
            Some(NewColumn { path, values, strings, rows, row_len_bytes, block_rows, blocks })
        };
        Self { columns: datasets.into_iter().map(|dataset| dataset.and_then(column)).collect() }
    }

    /// Returns the memory that the statistics take at most.
    pub fn len_bytes(&self) -> u64 {
        let blocks = self.columns.iter().flatten().map(|column| column.rows.div_ceil(column.block_rows));
        blocks.sum::<u64>().saturating_mul((size_of::<BlockStatistics>() + MAX_DISTINCT * size_of::<u128>()) as u64)
    }

    /// Returns whether the values of a dataset are needed.
    pub fn wants(&self, column: u32) -> bool {
        self.column(column).is_some()
    }

    fn column(&self, column: u32) -> Option<&NewColumn> {
        self.columns.get(column as usize)?.as_ref()
    }

    /// Adds the values of rows from `first_row`, as stored.
    pub fn add(&self, column: u32, first_row: u64, values: &[u8]) {
        let Some(column) = self.column(column) else { return };
        let (mut row, mut values) = (first_row, values);
        let mut found = Vec::new();
        while !values.is_empty() {
            let in_block = (column.block_rows - row % column.block_rows) * column.row_len_bytes;
            let (part, rest) = values.split_at(values.len().min(in_block as usize));
            found.push((row / column.block_rows, column.statistics(part)));
            (row, values) = (row + part.len() as u64 / column.row_len_bytes, rest);
        }
        column.unite(found);
    }

    /// Adds variable-length strings of rows from `first_row`, as canonical bytes.
    pub fn add_canonical(&self, column: u32, first_row: u64, canonical: &[u8]) {
        let is_text = |column: &&NewColumn| column.values == OrderedType::String(StringForm::Canonical);
        let Some(column) = self.column(column).filter(is_text) else { return };
        let (mut row, strings) = (first_row, StringForm::Canonical.strings(canonical));
        let (mut rest, mut found) = (strings.as_slice(), Vec::new());
        while !rest.is_empty() {
            let in_block = column.block_rows - row % column.block_rows;
            let (part, behind) = rest.split_at(rest.len().min(in_block as usize));
            found.push((row / column.block_rows, BlockStatistics::of_strings(part)));
            (row, rest) = (row + part.len() as u64, behind);
        }
        column.unite(found);
    }

    /// Returns the statistics of the values that this process has added.
    pub fn share(&self) -> Vec<ColumnShare> {
        let columns = (0..).zip(&self.columns).filter_map(|(number, column)| Some((number, column.as_ref()?)));
        columns
            .map(|(number, column)| (number, column.blocks.lock().unwrap_or_else(PoisonError::into_inner).clone()))
            .collect()
    }

    /// Adds the statistics of values that another process has added.
    pub fn add_share(&self, share: &[ColumnShare]) {
        for (number, statistics) in share {
            let Some(column) = self.column(*number) else { continue };
            let mut blocks = column.blocks.lock().unwrap_or_else(PoisonError::into_inner);
            blocks.iter_mut().zip(statistics).for_each(|(known, more)| *known = more.clone().union(known));
        }
    }

    /// Returns the index of the written file.
    pub fn finish(&self, identity: &FileIdentity) -> Index {
        let columns = self.columns.iter().flatten().map(|column| {
            let blocks = column.blocks.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let NewColumn { rows, row_len_bytes, block_rows, .. } = *column;
            (column.path.clone(), ColumnStatistics { rows, row_len_bytes, block_rows, blocks })
        });
        Index::of(identity, columns.collect())
    }
}
