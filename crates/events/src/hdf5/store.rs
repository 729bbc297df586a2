//! Writer of a planned file: pieces fill chunks, any thread encodes chunks, they are written in order, and finally
//! libhdf5 creates the datasets that refer to them.
//!
//! The layout's plan determines the place of each piece. Invariants: chunks are stored in the order in which they were
//! completed, which depends only on the blocks; the output's name refers to a complete file or to none.

use super::arrangement::{EventArrangement, INDEX_LEN_BYTES, PartitionBlocks, id_of};
use super::chunk_builder::{ChunkBuilder, Storage, StoredChunk};
use super::objects::{self, link_order, predicted_metadata};
use super::series::{PartitionedBlock, Series};
use super::stored::StoredEvents;
use super::{Hdf5Options, Layout, columns, event, packed, product};
use crate::error::Result;
use raddle_codec::{EncodeState, Encoder, EncoderOptions};
use raddle_columns::block::Block;
use raddle_columns::error::{ColumnsError, Location, Shape, UnlocatedError};
use raddle_columns::event_id::EventId;
use raddle_columns::output::UnpublishedFile;
use raddle_columns::schema::Schema;
use raddle_columns::sink::{Prepare, Sink};
use raddle_core::ranks::communicator::{Communicator, Rank};
use raddle_hdf5::model::CreationOrder;
use raddle_hdf5::write::{OutputFile, OutputOptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Maximum total length of all chunks that are being filled.
const FILLING_LEN_BYTES: u64 = 128 << 20;

/// Minimum and maximum length of a chunk, for any number of datasets.
const MIN_CHUNK_LEN_BYTES: u64 = 8 << 10;
const MAX_CHUNK_LEN_BYTES: u64 = 1 << 20;

/// Alignment of chunks without filters, so that a GPU or a reader that maps the file can use them in place. Chunks
/// shorter than a page are aligned to the size of a number instead, so that a page can hold several.
const PAGE_LEN_BYTES: u64 = 4096;
const MAX_NUMBER_LEN_BYTES: u64 = 8;

/// Sink that writes events to an HDF5 file.
pub struct Hdf5Sink {
    output: UnpublishedFile,
    schema: Arc<Schema>,
    arrangement: Box<dyn EventArrangement>,
    encoders: Arc<[Encoder]>,
    output_options: OutputOptions,
    chunk_len_bytes: u64,
    alignment_bytes: u64,
    pub(super) growing: Vec<ChunkBuilder>,
    pub(super) entries: u64,
    pub(super) first: Option<EventId>,
    /// Address of the next chunk.
    end_address: u64,
    stored_len_bytes: u64,
    /// Assignment of chunks to ranks, if several ranks write.
    pub(super) shares: RankChunks,
}

/// Number of the dataset in the plan, and number of the chunk in the dataset.
pub(super) type Chunk = (usize, u64);

/// State of one rank about chunks that have not been placed.
#[derive(Debug, Default)]
pub(super) struct RankChunks {
    /// Owner of the chunk that is being filled, for each dataset.
    pub(super) owners: Vec<Rank>,
    /// Incomplete chunks of this rank.
    pub(super) open: BTreeMap<Chunk, Vec<u8>>,
    /// Dataset and owner of each of the tiles handed out last.
    pub(super) handed_out: Vec<(usize, Rank)>,
}

impl std::fmt::Debug for Hdf5Sink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let datasets = self.growing.len();
        formatter
            .debug_struct("Hdf5Sink")
            .field("output", &self.output)
            .field("datasets", &datasets)
            .finish_non_exhaustive()
    }
}

/// Figures of a written file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hdf5Summary {
    /// Number of events.
    pub events: u64,
    /// Number of datasets.
    pub datasets: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Length of all elements.
    pub raw_len_bytes: u64,
    /// Length of all chunks as stored.
    pub stored_len_bytes: u64,
    /// Length of the file.
    pub len_bytes: u64,
    /// Time that libhdf5 took to create the objects.
    pub metadata_s: f64,
}

impl Hdf5Sink {
    /// Begins the file `path` for the products of `schema`.
    ///
    /// # Errors
    /// If the layout cannot hold a product, or the file cannot be created.
    pub fn begin(path: &Path, schema: &Schema, layout: Layout, options: &Hdf5Options) -> Result<Self> {
        let arrangement = arrangement(path, schema, layout, options)?;
        Self::on(schema, arrangement, options, || UnpublishedFile::begin(path, options.replace))
    }

    /// Collective. Begins a file that all ranks write together.
    ///
    /// # Errors
    /// As for [`Hdf5Sink::begin`].
    pub fn begin_collective(
        path: &Path,
        schema: &Schema,
        layout: Layout,
        options: &Hdf5Options,
        ranks: &dyn Communicator,
    ) -> Result<Self> {
        let arrangement = arrangement(path, schema, layout, options)?;
        Self::on(schema, arrangement, options, || UnpublishedFile::begin_collective(path, options.replace, ranks))
    }

    /// Collective. Begins the file `path` for the stored bytes of other files, which [`StoredEvents::source`] provides.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn begin_stored_collective(
        path: &Path,
        stored: &StoredEvents,
        options: &Hdf5Options,
        ranks: &dyn Communicator,
    ) -> Result<Self> {
        let begin = || UnpublishedFile::begin_collective(path, options.replace, ranks);
        Self::on(stored.source().schema(), stored.arrangement(), options, begin)
    }

    fn on(
        schema: &Schema,
        arrangement: Box<dyn EventArrangement>,
        options: &Hdf5Options,
        begin: impl FnOnce() -> Result<UnpublishedFile, ColumnsError>,
    ) -> Result<Self> {
        let plan = arrangement.plan();
        let compress = if plan.is_extensible { None } else { options.compress };
        let chunk_len_bytes = options.chunk_len_bytes.map_or_else(
            || {
                let share = FILLING_LEN_BYTES / (plan.series.len() as u64).max(1);
                let share = share.clamp(MIN_CHUNK_LEN_BYTES, MAX_CHUNK_LEN_BYTES);
                1 << share.ilog2()
            },
            std::num::NonZeroU64::get,
        );
        let encoder = |series: &Series| {
            Encoder::new(&EncoderOptions {
                compression: compress,
                shuffle: compress.is_some(),
                fletcher32: false,
                element_len_bytes: series.number.len_bytes(),
            })
        };
        let encoders: Arc<[Encoder]> = plan.series.iter().map(encoder).collect();
        let growing = |series| ChunkBuilder::new(series, chunk_len_bytes, plan.is_extensible);
        let growing: Vec<ChunkBuilder> = plan.series.iter().map(growing).collect();
        let region_len_bytes = predicted_metadata(plan, &encoders, &growing, options.expected_len_bytes);
        let order = link_order(plan);
        let output_options = OutputOptions {
            compat: plan.compat,
            metadata_region_len_bytes: region_len_bytes,
            root_link_order: order,
            root_attribute_order: CreationOrder::default(),
        };
        let output = begin()?;
        Ok(Self {
            end_address: output_options.raw_start().unwrap_or(region_len_bytes),
            output,
            schema: Arc::new(schema.clone()),
            encoders,
            output_options,
            chunk_len_bytes,
            alignment_bytes: if compress.is_none() { PAGE_LEN_BYTES } else { 1 },
            growing,
            entries: 0,
            first: None,
            stored_len_bytes: 0,
            shares: RankChunks::default(),
            arrangement,
        })
    }

    /// Fails if some entries have ids and others do not.
    pub(super) fn check_ids(&self) -> Result<(), ColumnsError> {
        let series = self.growing.iter().zip(&self.arrangement.plan().series);
        let mut ids = series.filter(|(_, series)| series.is_optional).map(|(growing, _)| growing.len);
        match ids.find(|&len| len != 0 && len != self.entries) {
            None => Ok(()),
            Some(got) => {
                let shape = Shape::Ids { got, expected: self.entries };
                Err(UnlocatedError::from(shape).at(&Location::file(self.output.path())))
            }
        }
    }

    /// Assigns an address to the next chunk.
    pub(super) fn take_place(&mut self, series: usize, len_bytes: u64, filter_mask: u32) -> u64 {
        let alignment_bytes = match len_bytes < self.alignment_bytes {
            true => self.alignment_bytes.min(MAX_NUMBER_LEN_BYTES),
            false => self.alignment_bytes,
        };
        let address = self.end_address.next_multiple_of(alignment_bytes);
        self.end_address = address + len_bytes;
        self.stored_len_bytes += len_bytes;
        self.growing[series].chunks.push(StoredChunk { address, len_bytes, filter_mask });
        address
    }

    /// Returns the output file.
    pub(super) fn output(&self) -> &UnpublishedFile {
        &self.output
    }

    /// Writes the metadata and publishes the file.
    fn close(self) -> Result<Hdf5Summary> {
        let begun = Instant::now();
        let mut file = OutputFile::create_in(self.output.file()?, self.output.path(), &self.output_options)?;
        file.set_raw_end(self.end_address);
        let plan = self.arrangement.plan();
        let last = self.arrangement.last_attributes(self.entries, self.first);
        let datasets = objects::create(&mut file, plan, (&self.growing, &self.encoders), self.entries, &last)?;
        let written = file.finish()?;
        let metadata_s = begun.elapsed().as_secs_f64();
        let summary = Hdf5Summary { metadata_s, ..self.summary(datasets, written.file_len_bytes) };
        self.output.publish()?;
        Ok(summary)
    }

    /// Summarises what has been written to a file of length `len_bytes`.
    pub(super) fn summary(&self, datasets: u64, len_bytes: u64) -> Hdf5Summary {
        let in_chunks = self.growing.iter().filter(|growing| matches!(growing.storage(), Storage::Chunks { .. }));
        Hdf5Summary {
            events: self.entries,
            datasets,
            chunks: in_chunks.map(|growing| growing.chunks.len() as u64).sum(),
            raw_len_bytes: self.growing.iter().map(|growing| growing.len * growing.element_len_bytes as u64).sum(),
            stored_len_bytes: self.stored_len_bytes,
            len_bytes,
            metadata_s: 0.0,
        }
    }
}

/// Creates the arrangement of the products of a schema in a layout.
fn arrangement(
    path: &Path,
    schema: &Schema,
    layout: Layout,
    options: &Hdf5Options,
) -> Result<Box<dyn EventArrangement>> {
    Ok(match (layout, options.cce) {
        (Layout::Columns, _) => Box::new(columns::Columns::new(schema)?),
        (Layout::Product, None) => Box::new(product::Products::new(schema, options.with_ids)?),
        (Layout::Product, Some(_)) => Box::new(product::Products::as_the_framework(schema)?),
        (Layout::Event, None) => Box::new(event::Events::new(schema, None, options.with_ids)?),
        (Layout::Batch(events), None) => Box::new(event::Events::new(schema, Some(events), options.with_ids)?),
        (Layout::Event, Some(cce)) => Box::new(packed::PackedArrangement::new(path, schema, cce, None)?),
        (Layout::Batch(events), Some(cce)) => {
            Box::new(packed::PackedArrangement::new(path, schema, cce, Some(events))?)
        }
    })
}

/// Chunk to be encoded.
#[derive(Debug)]
pub struct Tile {
    pub(super) series: usize,
    pub(super) raw: Vec<u8>,
    /// Whether the chunk is the whole dataset, which then needs no chunks.
    pub(super) is_all: bool,
}

/// Encoded chunk.
#[derive(Debug)]
pub struct EncodedTile {
    pub(super) series: usize,
    pub(super) stored: Vec<u8>,
    pub(super) filter_mask: u32,
}

/// Pieces of a block.
#[derive(Debug)]
pub struct Pieces {
    pub(super) arranged: PartitionedBlock,
    pub(super) first: Option<EventId>,
}

/// Preparer that arranges blocks and encodes chunks.
pub struct Hdf5Preparer {
    path: PathBuf,
    schema: Arc<Schema>,
    arranger: Box<dyn PartitionBlocks>,
    encoders: Arc<[Encoder]>,
    state: EncodeState,
}

impl Sink for Hdf5Sink {
    type Preparer = Hdf5Preparer;
    type Prepared = Pieces;
    type Tile = Tile;
    type Encoded = EncodedTile;
    type Summary = Hdf5Summary;

    fn preparer(&self) -> Result<Hdf5Preparer, ColumnsError> {
        Ok(Hdf5Preparer {
            path: self.output.path().to_path_buf(),
            schema: Arc::clone(&self.schema),
            arranger: self.arrangement.arranger()?,
            encoders: Arc::clone(&self.encoders),
            state: EncodeState::default(),
        })
    }

    /// Returns twice the length of a chunk of each dataset: a full chunk is kept until it is encoded, while the next one is
    /// filled. Datasets whose elements have the same length fill their chunks at the same time.
    fn kept_len_bytes(&self) -> u64 {
        self.chunk_len_bytes.saturating_mul(self.growing.len() as u64).saturating_mul(2)
    }

    fn preparer_len_bytes(&self) -> u64 {
        self.encoders.iter().map(|encoder| encoder.state_len_bytes(self.chunk_len_bytes)).max().unwrap_or(0)
    }

    fn commit(&mut self, prepared: Pieces) -> Result<Vec<Tile>, ColumnsError> {
        let Pieces { arranged, first } = prepared;
        if self.entries == 0 {
            self.first = first;
        }
        self.entries += arranged.entries;
        let (mut tiles, mut full) = (Vec::new(), Vec::new());
        for (series, (growing, piece)) in self.growing.iter_mut().zip(arranged.pieces).enumerate() {
            growing.push(piece, &mut full);
            tiles.extend(full.drain(..).map(|raw| Tile { series, raw, is_all: false }));
        }
        Ok(tiles)
    }

    fn rest(&mut self) -> Result<Vec<Tile>, ColumnsError> {
        self.check_ids()?;
        let rest = |(series, growing): (usize, &mut ChunkBuilder)| {
            growing.rest().map(|raw| Tile { series, raw, is_all: growing.is_short() })
        };
        Ok(self.growing.iter_mut().enumerate().filter_map(rest).collect())
    }

    fn place(&mut self, encoded: EncodedTile) -> Result<(), ColumnsError> {
        let EncodedTile { series, stored, filter_mask } = encoded;
        let address = self.take_place(series, stored.len() as u64, filter_mask);
        self.output.write_at(&stored, address)
    }

    fn finish(self) -> Result<Hdf5Summary, ColumnsError> {
        Ok(self.close()?)
    }
}

impl Prepare for Hdf5Preparer {
    type Prepared = Pieces;
    type Tile = Tile;
    type Encoded = EncodedTile;

    fn prepare(&mut self, block: Block) -> Result<Pieces, ColumnsError> {
        let place = Location::file(&self.path).entries(block.entries.clone());
        block.check(&self.schema).map_err(|(product, fault)| match product {
            Some(number) => fault.at(&place.branch(&self.schema.products[number].name)),
            None => fault.at(&place),
        })?;
        let first = (block.len_entries() > 0).then(|| id_of(&block, 0));
        Ok(Pieces { arranged: self.arranger.arrange(block, &place)?, first })
    }

    fn encode(&mut self, tile: Tile) -> Result<EncodedTile, ColumnsError> {
        let Tile { series, raw, is_all } = tile;
        let encoder = &self.encoders[series];
        if encoder.filters().is_empty() {
            return Ok(EncodedTile { series, stored: raw, filter_mask: 0 });
        }
        let mut stored = Vec::new();
        let filter_mask = encoder
            .encode(&mut self.state, &raw, &mut stored)
            .map_err(|source| ColumnsError::Compress { path: self.path.clone(), source })?;
        if is_all && stored.len() + INDEX_LEN_BYTES >= raw.len() {
            return Ok(EncodedTile { series, stored: raw, filter_mask: 0 });
        }
        Ok(EncodedTile { series, stored, filter_mask })
    }
}
