//! Packed data streams as a sink, whose bytes equal those that the framework writes for the same events.
//!
//! Unlike the framework, this also writes a header if there are no events, so that the stream can be read. Invariant: a
//! record depends only on its event, so threads can compress records independently while the order of entries is kept.

use super::PdsCodec;
use super::header::StreamHeader;
use super::record::{self, MAX_PAYLOAD_LEN_BYTES};
use crate::error::NEEDS_BYTES;
use raddle_codec::RawStreamEncoder;
use raddle_columns::block::{Block, Column};
use raddle_columns::error::{ColumnsError, Location, Result};
use raddle_columns::event_id::EventId;
use raddle_columns::output::UnpublishedFile;
use raddle_columns::schema::{Form, Schema, Serialization};
use raddle_columns::sink::{NoTile, Prepare, SharedSink, Sink};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use std::path::{Path, PathBuf};

/// Name of the layout in messages.
const LAYOUT: &str = "a packed data stream";

/// Options for writing a stream.
#[derive(Debug, Clone, Copy)]
pub struct PdsOptions {
    /// Compression. The framework's default is Zstandard at level 18.
    pub codec: PdsCodec,
    /// Whether to replace an existing output.
    pub replace: bool,
}

/// Sink that writes a packed data stream.
#[derive(Debug)]
pub struct PdsSink {
    output: UnpublishedFile,
    schema: Schema,
    options: PdsOptions,
    events: u64,
}

/// Figures of a written stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PdsSummary {
    /// Number of events.
    pub events: u64,
    /// Length of the file.
    pub len_bytes: u64,
}

impl PdsSink {
    /// Begins the stream `path` for the products of `schema`.
    ///
    /// # Errors
    /// If a product is not a blob, products have different serialisations, a name contains NUL, or the file cannot be
    /// created.
    pub fn begin(path: &Path, schema: &Schema, options: PdsOptions) -> Result<Self> {
        let header = header(schema, options)?;
        let mut output = UnpublishedFile::begin(path, options.replace)?;
        output.write(&header)?;
        Ok(Self { output, schema: schema.clone(), options, events: 0 })
    }

    /// Collective. Begins a stream that all ranks write together.
    ///
    /// # Errors
    /// As for [`PdsSink::begin`].
    pub fn begin_collective(
        path: &Path,
        schema: &Schema,
        options: PdsOptions,
        ranks: &dyn Communicator,
    ) -> Result<Self> {
        let header = header(schema, options)?;
        let mut output = UnpublishedFile::begin_collective(path, options.replace, ranks)?;
        output.append_collective(if ranks.rank() == 0 { &header } else { &[] }, ranks)?;
        Ok(Self { output, schema: schema.clone(), options, events: 0 })
    }
}

/// Encodes the header.
fn header(schema: &Schema, options: PdsOptions) -> Result<Vec<u8>> {
    let serialization = check_schema(schema)?;
    Ok(StreamHeader { serialization, codec: options.codec, schema: schema.clone(), len_bytes: 0 }.write())
}

/// Returns the serialisation that all products must share.
fn check_schema(schema: &Schema) -> Result<Serialization> {
    let mut first = None;
    for product in &schema.products {
        let refused = |needed| ColumnsError::Form {
            product: product.name.clone(),
            form: product.form.to_string(),
            layout: LAYOUT,
            needed,
        };
        let Form::Blob(serialization) = product.form else {
            return Err(refused(NEEDS_BYTES));
        };
        if serialization == Serialization::Basket {
            return Err(refused("it supports two serialisations, and bytes of branches have neither"));
        }
        if product.name.contains('\0') || product.class.contains('\0') || product.class.is_empty() {
            return Err(refused("names must be without NUL, and classes not empty"));
        }
        let expected = *first.get_or_insert(serialization);
        if serialization != expected {
            let product = product.name.clone();
            return Err(ColumnsError::MixedSerialization { product, got: serialization, expected, layout: LAYOUT });
        }
    }
    Ok(first.unwrap_or(Serialization::Root))
}

/// Preparer that encodes records.
pub struct PdsPreparer {
    path: PathBuf,
    schema: Schema,
    encoder: Option<RawStreamEncoder>,
    payload: Vec<u8>,
}

/// Records of one block.
pub struct PdsRecords {
    events: u64,
    bytes: Vec<u8>,
}

impl Sink for PdsSink {
    type Preparer = PdsPreparer;
    type Prepared = PdsRecords;
    type Tile = NoTile;
    type Encoded = NoTile;
    type Summary = PdsSummary;

    fn preparer(&self) -> Result<PdsPreparer> {
        let path = self.output.path().to_path_buf();
        let compress = |source| ColumnsError::Compress { path: path.clone(), source };
        let encoder = match self.options.codec {
            PdsCodec::None => None,
            PdsCodec::Lz4 => Some(RawStreamEncoder::lz4_block()),
            PdsCodec::Zstd(level) => Some(RawStreamEncoder::zstd(level).map_err(compress)?),
        };
        Ok(PdsPreparer { path, schema: self.schema.clone(), encoder, payload: Vec::new() })
    }

    fn commit(&mut self, prepared: PdsRecords) -> Result<Vec<NoTile>> {
        self.events += prepared.events;
        self.output.write(&prepared.bytes)?;
        Ok(Vec::new())
    }

    fn place(&mut self, encoded: NoTile) -> Result<()> {
        match encoded {}
    }

    fn finish(self) -> Result<PdsSummary> {
        let events = self.events;
        let len_bytes = self.output.publish()?;
        Ok(PdsSummary { events, len_bytes })
    }
}

impl SharedSink for PdsSink {
    fn commit_collective(&mut self, prepared: Vec<PdsRecords>, ranks: &dyn Communicator) -> Result<Vec<NoTile>> {
        let events = prepared.iter().map(|records| records.events).sum();
        self.events += ranks.all_gather_u64(events)?.iter().sum::<u64>();
        let bytes: Vec<u8> = prepared.into_iter().flat_map(|records| records.bytes).collect();
        self.output.append_collective(&bytes, ranks)?;
        Ok(Vec::new())
    }

    fn rest_collective(&mut self, _ranks: &dyn Communicator) -> Result<Vec<NoTile>> {
        Ok(Vec::new())
    }

    fn place_collective(&mut self, _encoded: Vec<NoTile>, _ranks: &dyn Communicator) -> Result<()> {
        Ok(())
    }

    fn finish_collective(self, ranks: &dyn Communicator) -> Result<PdsSummary> {
        self.output.sync_collective(ranks)?;
        let summary = PdsSummary { events: self.events, len_bytes: self.output.len_bytes() };
        let published = if ranks.rank() == 0 { self.output.publish().map(drop) } else { Ok(()) };
        ranks.agree("publish", published)?;
        Ok(summary)
    }
}

impl Prepare for PdsPreparer {
    type Prepared = PdsRecords;
    type Tile = NoTile;
    type Encoded = NoTile;

    fn prepare(&mut self, block: Block) -> Result<PdsRecords> {
        let place = Location::file(&self.path).entries(block.entries.clone());
        block.check(&self.schema).map_err(|(product, fault)| match product {
            Some(number) => fault.at(&place.branch(&self.schema.products[number].name)),
            None => fault.at(&place),
        })?;
        let columns: Vec<(&[u64], &[u8])> = block.columns.iter().filter_map(Column::as_bytes).collect();
        let events = block.len_entries();
        let mut bytes = Vec::new();
        for (number, entry) in (0..events as usize).zip(block.entries.start..) {
            let blobs = || columns.iter().map(|(offsets, bytes)| blob(offsets, bytes, number));
            let len_bytes = record::payload_len_bytes(blobs().map(<[u8]>::len));
            if len_bytes > MAX_PAYLOAD_LEN_BYTES {
                return Err(ColumnsError::Limit {
                    place: place.entries(entry..entry + 1).into(),
                    what: "an event",
                    got: len_bytes,
                    limit: MAX_PAYLOAD_LEN_BYTES,
                    layout: LAYOUT,
                });
            }
            self.payload.clear();
            record::push_products(blobs(), &mut self.payload);
            // If the source has no ids: run 1, subrun 1, and an event number counted from 1, like those of the
            // framework's own events.
            let unknown = EventId { run: 1, lumi: 1, event: entry.saturating_add(1) };
            let id = block.ids.get(number).copied().unwrap_or(unknown);
            record::push(id, &self.payload, self.encoder.as_mut(), &mut bytes)
                .map_err(|source| ColumnsError::Compress { path: self.path.clone(), source })?;
        }
        Ok(PdsRecords { events, bytes })
    }

    fn encode(&mut self, tile: NoTile) -> Result<NoTile> {
        match tile {}
    }
}

/// Returns blob `number` of a checked column.
fn blob<'b>(offsets: &[u64], bytes: &'b [u8], number: usize) -> &'b [u8] {
    &bytes[offsets[number] as usize..offsets[number + 1] as usize]
}
