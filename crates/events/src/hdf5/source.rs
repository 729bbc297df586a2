//! HDF5 event files as a source, in any of the layouts.
//!
//! The layout is detected in `opening`, and its arrays are described in `contents`. Invariant: offsets are checked when
//! they are read.

use super::FileLayout;
use super::columns;
use super::contents::{Ids, ProductArrays, ProductStorage};
use super::file::{Array, EventsFile, cached_len_bytes};
use super::opening::OpenedLayout;
use super::packed_source::{PackedReader, PackedSource};
use crate::error::Result;
use raddle_columns::block::{Block, Buffer, Column};
use raddle_columns::error::{ColumnsError, Location};
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{Form, Schema};
use raddle_columns::source::{RangeReader, Source, check_entries, check_products};
use raddle_hdf5::read::DatasetReader;
use std::ops::Range;
use std::path::Path;

/// HDF5 event file, as a source.
#[derive(Debug)]
pub struct Hdf5Source {
    file: EventsFile,
    layout: FileLayout,
    schema: Schema,
    len_entries: u64,
    ids: Ids,
    content: ProductStorage,
    /// Average length in memory of an entry with all products.
    entry_len_bytes: u64,
}

impl Hdf5Source {
    /// Opens the file at `path` and detects its layout.
    ///
    /// # Errors
    /// If the file is not an HDF5 event file, or contradicts its layout.
    pub fn open(path: &Path) -> Result<Self> {
        let file = EventsFile::open(path)?;
        let OpenedLayout { layout, schema, len_entries, ids, content } = OpenedLayout::of(&file)?;
        let ids_len_bytes = if matches!(ids, Ids::None) { 0 } else { size_of::<EventId>() as u64 };
        let entry_len_bytes = (content.len_bytes() / len_entries.max(1)).saturating_add(ids_len_bytes + 1);
        Ok(Self { file, layout, schema, len_entries, ids, content, entry_len_bytes })
    }

    /// Returns the layout of the file.
    pub fn layout(&self) -> FileLayout {
        self.layout
    }

    /// Returns the packed events; `None` if the file is not in one of the framework's packed layouts.
    pub(super) fn packed(&self) -> Option<&PackedSource> {
        match &self.content {
            ProductStorage::Packed(packed) => Some(packed),
            _ => None,
        }
    }

    /// Returns the parts of a file with packed events.
    pub(super) fn into_packed(self) -> Option<(EventsFile, Ids, PackedSource)> {
        match self.content {
            ProductStorage::Packed(packed) => Some((self.file, self.ids, packed)),
            _ => None,
        }
    }

    fn arrays(&self, products: &[usize]) -> Vec<&Array> {
        let mut arrays = self.ids.arrays();
        match &self.content {
            ProductStorage::Columns(columns) => arrays.extend(products.iter().flat_map(|&product| &columns[product])),
            ProductStorage::Products(all) => {
                arrays.extend(products.iter().flat_map(|&product| [&all[product].bytes, &all[product].ends]));
            }
            ProductStorage::Events { products, offsets } | ProductStorage::Batches { products, offsets, .. } => {
                arrays.extend([products, offsets]);
            }
            ProductStorage::Packed(packed) => arrays.extend(packed.arrays()),
        }
        arrays
    }
}

impl Source for Hdf5Source {
    fn place(&self) -> Location {
        self.file.place()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.len_entries
    }

    fn has_ids(&self) -> bool {
        !matches!(self.ids, Ids::None)
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        let entries = (target_len_bytes / self.entry_len_bytes).max(1);
        start.saturating_add(entries).min(self.len_entries)
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        (entries.end - entries.start).saturating_mul(self.entry_len_bytes)
    }

    fn reader_len_bytes(&self, products: &[usize]) -> u64 {
        cached_len_bytes(self.arrays(products).into_iter())
    }

    fn reads_products_alone(&self) -> bool {
        matches!(self.content, ProductStorage::Columns(_) | ProductStorage::Products(_))
    }

    fn check_unchanged(&self) -> Result<(), ColumnsError> {
        Ok(self.file.check_unchanged()?)
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>, ColumnsError> {
        check_products(&self.place(), products, &self.schema)?;
        let datasets = self.file.reader(self.arrays(products).into_iter());
        let packed = self.packed().map(PackedSource::reader);
        let schema = self.schema.select(products);
        Ok(Box::new(Hdf5Reader { source: self, products: products.to_vec(), schema, datasets, packed, with_ids: true }))
    }
}

struct Hdf5Reader<'source> {
    source: &'source Hdf5Source,
    with_ids: bool,
    products: Vec<usize>,
    schema: Schema,
    datasets: DatasetReader,
    packed: Option<PackedReader<'source>>,
}

impl RangeReader for Hdf5Reader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block, ColumnsError> {
        let Hdf5Source { file, ids, content, len_entries, .. } = self.source;
        check_entries(&file.place(), &entries, *len_entries)?;
        let ids = match self.with_ids {
            true => ids.read(file, &mut self.datasets, entries.clone())?,
            false => Vec::new(),
        };
        let columns = match content {
            ProductStorage::Columns(arrays) => self.columns(arrays, entries.clone())?,
            ProductStorage::Products(arrays) => self.products(arrays, entries.clone())?,
            ProductStorage::Events { products, offsets } => self.events(products, offsets, entries.clone())?,
            ProductStorage::Batches { products, offsets, starts } => {
                self.batches(products, offsets, starts, entries.clone())?
            }
            ProductStorage::Packed(_) => match &mut self.packed {
                Some(packed) => packed.read(file, &mut self.datasets, &self.products, entries.clone())?,
                None => Vec::new(),
            },
        };
        Ok(Block { entries, ids, columns })
    }

    fn leave_out_ids(&mut self) {
        self.with_ids = false;
    }
}

impl Hdf5Reader<'_> {
    fn columns(&mut self, arrays: &[Vec<Array>], entries: Range<u64>) -> Result<Vec<Column>> {
        let mut columns = Vec::with_capacity(self.products.len());
        for (&product, described) in self.products.iter().zip(&self.schema.products) {
            let mut buffers = Vec::with_capacity(arrays[product].len());
            let mut arrays = arrays[product].iter();
            read_form(
                &self.source.file,
                &mut self.datasets,
                &described.form,
                entries.clone(),
                &mut arrays,
                &mut buffers,
            )?;
            columns.push(Column { buffers });
        }
        Ok(columns)
    }

    fn products(&mut self, arrays: &[ProductArrays], entries: Range<u64>) -> Result<Vec<Column>> {
        let file = &self.source.file;
        let mut columns = Vec::with_capacity(self.products.len());
        for &product in &self.products {
            let ProductArrays { bytes, ends } = &arrays[product];
            // The first entry begins at the end of the entry before it.
            let first = entries.start.saturating_sub(1);
            let mut offsets = file.read_rising(&mut self.datasets, ends, first..entries.end, bytes.len)?;
            if entries.start == 0 {
                offsets.insert(0, 0);
            }
            let range = offsets[0]..offsets[offsets.len() - 1];
            let values = file.read(&mut self.datasets, bytes, range)?;
            columns.push(Column::of_bytes(from_zero(offsets), values));
        }
        Ok(columns)
    }

    fn events(&mut self, products: &Array, offsets: &Array, entries: Range<u64>) -> Result<Vec<Column>> {
        let file = &self.source.file;
        let count = self.source.schema.products.len();
        let range = entries.start * count as u64..entries.end * count as u64 + 1;
        let offsets = file.read_rising(&mut self.datasets, offsets, range, products.len)?;
        let start = offsets[0];
        let bytes = file.read(&mut self.datasets, products, start..offsets[offsets.len() - 1])?;
        let mut columns: Vec<Column> = self.schema.products.iter().map(|product| Column::new(&product.form)).collect();
        for event in 0..(entries.end - entries.start) as usize {
            for (column, &product) in columns.iter_mut().zip(&self.products) {
                let at = event * count + product;
                let range = (offsets[at] - start) as usize..(offsets[at + 1] - start) as usize;
                column.push_bytes(&bytes[range]);
            }
        }
        Ok(columns)
    }

    fn batches(
        &mut self,
        products: &Array,
        offsets: &Array,
        starts: &[u64],
        entries: Range<u64>,
    ) -> Result<Vec<Column>> {
        let file = &self.source.file;
        let count = self.source.schema.products.len() as u64;
        let mut columns: Vec<Column> = self.schema.products.iter().map(|product| Column::new(&product.form)).collect();
        let mut batch = starts.partition_point(|&start| start <= entries.start).saturating_sub(1);
        while batch + 1 < starts.len() && starts[batch] < entries.end {
            let (start, end) = (starts[batch], starts[batch + 1]);
            let (from, to) = (start.max(entries.start), end.min(entries.end));
            batch += 1;
            if from >= to {
                continue;
            }
            for (column, &product) in columns.iter_mut().zip(&self.products) {
                let first = start * count + product as u64 * (end - start);
                let range = first + (from - start)..first + (to - start) + 1;
                let offsets = file.read_rising(&mut self.datasets, offsets, range, products.len)?;
                let bytes = file.read(&mut self.datasets, products, offsets[0]..offsets[offsets.len() - 1])?;
                // Both are columns of blobs.
                let _ = column.append(&Column::of_bytes(from_zero(offsets), bytes));
            }
        }
        Ok(columns)
    }
}

/// Appends the buffers of some values of a form.
fn read_form<'a>(
    file: &EventsFile,
    reader: &mut DatasetReader,
    form: &Form,
    values: Range<u64>,
    arrays: &mut impl Iterator<Item = &'a Array>,
    buffers: &mut Vec<Buffer>,
) -> Result<()> {
    let mut next = || arrays.next().ok_or_else(|| file.damaged(columns::EVENTS, "an array is missing".to_owned()));
    match form {
        Form::Number(_) => buffers.push(Buffer::Values(file.read(reader, next()?, values)?)),
        Form::Regular { length, content } => {
            let scale = |value: u64| value.checked_mul(*length);
            let (Some(start), Some(end)) = (scale(values.start), scale(values.end)) else {
                return Err(file.damaged(columns::EVENTS, "an array of fixed length is too long".to_owned()));
            };
            read_form(file, reader, content, start..end, arrays, buffers)?;
        }
        Form::List(_) | Form::String | Form::Blob(_) => {
            let offsets = file.read_rising(reader, next()?, values.start..values.end.saturating_add(1), u64::MAX)?;
            let below = offsets[0]..offsets[offsets.len() - 1];
            buffers.push(Buffer::Offsets(from_zero(offsets)));
            match form {
                Form::List(content) => read_form(file, reader, content, below, arrays, buffers)?,
                _ => buffers.push(Buffer::Values(file.read(reader, next()?, below)?)),
            }
        }
        Form::Record(fields) => {
            for field in fields {
                read_form(file, reader, &field.form, values.clone(), arrays, buffers)?;
            }
        }
    }
    Ok(())
}

/// Shifts offsets so that they begin with 0.
fn from_zero(mut offsets: Vec<u64>) -> Vec<u64> {
    let first = offsets.first().copied().unwrap_or(0);
    offsets.iter_mut().for_each(|offset| *offset -= first);
    offsets
}
