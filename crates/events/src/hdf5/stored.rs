//! Concatenation of files in the framework's event and batch layouts without decompressing them.
//!
//! The files are presented as sources whose products are the stored values of each dataset, divided by event. The bytes
//! of a batch that is compressed as a whole are attributed to its first event. Invariant: each written dataset holds
//! the concatenated values of the input datasets.

use super::Layout;
use super::arrangement::{EventArrangement, FilePlan, PartitionBlocks};
use super::contents::Ids;
use super::event::{EVENT_IDS, OFFSETS, PRODUCTS};
use super::file::{EventsFile, cached_len_bytes};
use super::lumi::first_event;
use super::packed::PackedArrangement;
use super::packed_source::PackedSource;
use super::series::{PartitionedBlock, SeriesAttribute, SeriesPiece};
use super::source::Hdf5Source;
use crate::error::Result;
use crate::pds::PdsCodec;
use crate::sources::concat::ConcatSource;
use raddle_columns::block::{Block, Buffer, Column};
use raddle_columns::error::{ColumnsError, Location};
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{Form, Number, Product, Schema, Serialization};
use raddle_columns::source::{RangeReader, Source, check_entries, check_products};
use raddle_hdf5::read::DatasetReader;
use std::num::NonZeroU64;
use std::ops::Range;

/// Names of the datasets, in the order of the layouts' plan.
const DATASETS: [&str; 3] = [EVENT_IDS, PRODUCTS, OFFSETS];

/// Concatenation of several files, as their stored bytes.
pub struct StoredEvents {
    whole: ConcatSource,
    layout: Layout,
    plan: FilePlan,
    products: usize,
}

impl StoredEvents {
    /// Concatenates files. Returns the files themselves as the inner error if they cannot be concatenated as they are:
    /// if they differ in layout, codec, choice of compression, products or their order, or if a reader could not find
    /// the batches of the result.
    ///
    /// # Errors
    /// If the layout cannot hold a product.
    pub fn join(files: Vec<Hdf5Source>) -> Result<Result<Self, Vec<Hdf5Source>>> {
        let packed: Vec<&PackedSource> = files.iter().filter_map(Hdf5Source::packed).collect();
        let Some((first, others)) = packed.split_first() else { return Ok(Err(files)) };
        let are_alike = packed.len() == files.len()
            && others.iter().all(|other| other.is_packed_as(first))
            && files.iter().all(|file| file.schema() == files[0].schema());
        if !are_alike || !batches_are_distinguished(&packed) {
            return Ok(Err(files));
        }
        let plan = PackedArrangement::plan_of(files[0].schema(), first.options(), first.is_batched())?;
        let layout = if first.is_batched() { Layout::Batch(NonZeroU64::MIN) } else { Layout::Event };
        let products = files[0].schema().products.len();
        let parts = files.into_iter().filter_map(Hdf5Source::into_packed);
        let parts = parts.map(|(file, ids, packed)| Box::new(StoredFile::new(file, ids, packed)) as Box<dyn Source>);
        Ok(Ok(Self { whole: ConcatSource::new(parts.collect())?, layout, plan, products }))
    }

    /// Returns a source of the stored bytes of each event.
    pub fn source(&self) -> &dyn Source {
        &self.whole
    }

    /// Returns the number of products per event.
    pub(crate) fn len_products(&self) -> usize {
        self.products
    }

    /// Returns the name of the files' layout.
    pub(crate) fn layout_name(&self) -> &'static str {
        self.layout.name()
    }

    /// Returns the arrangement of the stored bytes in datasets.
    pub(super) fn arrangement(&self) -> Box<dyn EventArrangement> {
        Box::new(StoredArrangement { plan: self.plan.clone() })
    }
}

/// Returns whether a reader could find the batches of the concatenated files. LZ4 does not record where a batch ends,
/// so all batches except the last must have the same number of events.
fn batches_are_distinguished(files: &[&PackedSource]) -> bool {
    if files.iter().all(|file| file.options().codec != PdsCodec::Lz4) {
        return true;
    }
    let (mut starts, mut end) = (Vec::new(), 0);
    for file in files {
        starts.extend(file.batch_starts().map(|start| end + start));
        end += file.len_entries();
    }
    starts.push(end);
    let lengths: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let Some((last, others)) = lengths.split_last() else { return true };
    others.iter().all(|len| *len == others[0] && last <= len)
}

/// One file, as its stored bytes.
struct StoredFile {
    file: EventsFile,
    ids: Ids,
    packed: PackedSource,
    schema: Schema,
}

impl StoredFile {
    fn new(file: EventsFile, ids: Ids, packed: PackedSource) -> Self {
        let number = || Form::Number(Number::Int32);
        let forms = [
            number(),
            Form::Blob(Serialization::Root),
            Form::Regular { length: packed.numbers() as u64, content: Box::new(number()) },
        ];
        let product = |(name, form): (&str, Form)| Product { name: name.to_owned(), class: String::new(), form };
        let products = DATASETS.into_iter().zip(forms).map(product).collect();
        Self { file, ids, packed, schema: Schema { products } }
    }
}

impl Source for StoredFile {
    fn place(&self) -> Location {
        self.file.place()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.packed.len_entries()
    }

    fn has_ids(&self) -> bool {
        !matches!(self.ids, Ids::None)
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        // Bisects for the greatest number of events whose length does not exceed the target.
        let (mut fits, mut exceeds) = (0, self.len_entries().saturating_sub(start) + 1);
        while exceeds - fits > 1 {
            let entries = fits.midpoint(exceeds);
            match self.batch_len_bytes(start..start + entries) <= target_len_bytes {
                true => fits = entries,
                false => exceeds = entries,
            }
        }
        start.saturating_add(fits.max(1)).min(self.len_entries())
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        let address = |event| self.packed.stored_address(event);
        let header_len_bytes = size_of::<EventId>() + size_of::<u64>() + size_of::<i32>() * (1 + self.packed.numbers());
        let count = entries.end - entries.start;
        (address(entries.end) - address(entries.start)).saturating_add(count.saturating_mul(header_len_bytes as u64))
    }

    fn reader_len_bytes(&self, _products: &[usize]) -> u64 {
        cached_len_bytes(self.ids.arrays().into_iter().chain(self.packed.arrays()))
    }

    fn check_unchanged(&self) -> Result<(), ColumnsError> {
        Ok(self.file.check_unchanged()?)
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>, ColumnsError> {
        check_products(&self.place(), products, &self.schema)?;
        let datasets = self.file.reader(self.ids.arrays().into_iter().chain(self.packed.arrays()));
        Ok(Box::new(StoredReader { source: self, products: products.to_vec(), datasets }))
    }
}

struct StoredReader<'source> {
    source: &'source StoredFile,
    products: Vec<usize>,
    datasets: DatasetReader,
}

impl RangeReader for StoredReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block, ColumnsError> {
        let StoredFile { file, ids, packed, .. } = self.source;
        check_entries(&file.place(), &entries, packed.len_entries())?;
        let ids = ids.read(file, &mut self.datasets, entries.clone())?;
        let mut columns = Vec::with_capacity(self.products.len());
        for product in &self.products {
            let buffers = match DATASETS[*product] {
                // An id has no other representation than the one that was read.
                EVENT_IDS => {
                    vec![Buffer::Values(ids.iter().flat_map(|id| (id.event as u32).to_le_bytes()).collect())]
                }
                OFFSETS => vec![Buffer::Values(packed.read_numbers(file, &mut self.datasets, entries.clone())?)],
                _ => {
                    let mut offsets: Vec<u64> =
                        (entries.start..=entries.end).map(|event| packed.stored_address(event)).collect();
                    let (start, end) = (offsets[0], offsets[offsets.len() - 1]);
                    offsets.iter_mut().for_each(|offset| *offset -= start);
                    let bytes = packed.read_stored(file, &mut self.datasets, start..end)?;
                    vec![Buffer::Offsets(offsets), Buffer::Values(bytes)]
                }
            };
            columns.push(Column { buffers });
        }
        Ok(Block { entries, ids, columns })
    }
}

/// Arrangement that puts stored bytes back into the datasets that they come from.
struct StoredArrangement {
    plan: FilePlan,
}

impl EventArrangement for StoredArrangement {
    fn plan(&self) -> &FilePlan {
        &self.plan
    }

    fn arranger(&self) -> Result<Box<dyn PartitionBlocks>> {
        Ok(Box::new(StoredPartitioner))
    }

    fn last_attributes(&self, _entries: u64, first: Option<EventId>) -> Vec<(&'static str, SeriesAttribute)> {
        first_event(first)
    }
}

struct StoredPartitioner;

impl PartitionBlocks for StoredPartitioner {
    fn arrange(&mut self, block: Block, _place: &Location) -> Result<PartitionedBlock> {
        let entries = block.len_entries();
        let values = |buffer| match buffer {
            Buffer::Values(bytes) => Some(SeriesPiece::Values(bytes)),
            Buffer::Offsets(_) => None,
        };
        let pieces = block.columns.into_iter().map(|column| column.buffers.into_iter().find_map(values));
        Ok(PartitionedBlock { pieces: pieces.flatten().collect(), entries })
    }
}
