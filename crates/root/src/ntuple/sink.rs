//! An RNTuple as a sink: one cluster per block, one top-level field per product.
//!
//! Threads encode whole clusters, which then only need their addresses. Invariant: the file depends only on the blocks
//! and their order, not on threads, ranks, times or the file's name.

use super::encode::{ClusterEncoder, ClusterPages, EncodedCluster};
use super::fields::{ElementKind, Fields, as_stored, column_as_stored};
use super::frames::push_text;
use super::index::Index;
use super::names::{LAYOUT, id_products, named};
use super::source::{IdFields, find_ids};
use crate::compress::{Compressor, RootCodec};
use crate::container::{close, front_len_bytes};
use raddle_codec::CodecError;
use raddle_columns::block::{Block, Buffer, Column};
use raddle_columns::error::{ColumnsError, Location, Result, Shape, UnlocatedError};
use raddle_columns::event_id::EventId;
use raddle_columns::output::UnpublishedFile;
use raddle_columns::schema::{Form, Product, Schema};
use raddle_columns::sink::{NoTile, Prepare, SharedSink, Sink};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::ranks::message::{MessageReader, put_u64s};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the RNTuple in its file, which frameworks of experiments use too.
pub const NTUPLE_NAME: &str = "Events";

/// Target size of a cluster. ROOT's clusters are larger, but here each thread holds a whole one.
pub const CLUSTER_LEN_BYTES: u64 = 16 << 20;

/// Options for writing an RNTuple.
#[derive(Debug, Clone, Copy)]
pub struct NtupleOptions {
    /// Compression of pages and of the description.
    pub codec: RootCodec,
    /// Maximum length of a page before compression. Readers decode whole pages.
    pub page_len_bytes: u64,
    /// Length of a page list at which it is written; this much is kept in memory.
    pub group_len_bytes: u64,
    /// Whether to store event ids that no product holds.
    pub with_ids: bool,
    /// Whether to replace an existing output.
    pub replace: bool,
}

impl Default for NtupleOptions {
    fn default() -> Self {
        Self {
            // ROOT's default, level 5.
            codec: RootCodec::Zstd(10),
            page_len_bytes: 256 << 10,
            group_len_bytes: 4 << 20,
            with_ids: false,
            replace: false,
        }
    }
}

/// Sink that writes an RNTuple.
#[derive(Debug)]
pub struct NtupleSink {
    output: UnpublishedFile,
    index: Index,
    shared: Arc<Shared>,
}

/// State that preparers share.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    /// Schema of the blocks, without ids.
    schema: Schema,
    /// Stored forms of the products, with their stored names.
    forms: Vec<Form>,
    kinds: Vec<ElementKind>,
    options: NtupleOptions,
    /// Whether ids are stored as separate fields.
    adds_ids: bool,
    /// Products that readers interpret as the ids, if the blocks have ids.
    held_ids: Option<IdFields>,
}

/// Figures of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NtupleSummary {
    /// Number of events.
    pub events: u64,
    /// Length of the file.
    pub len_bytes: u64,
}

impl NtupleSink {
    /// Begins the file `path` with an RNTuple of these products.
    ///
    /// # Errors
    /// If two names become equal without the characters that RNTuples forbid, or the file cannot be created.
    pub fn begin(path: &Path, schema: &Schema, options: NtupleOptions) -> Result<Self> {
        let planned = plan(path, schema, options)?;
        let output = UnpublishedFile::begin(path, options.replace)?;
        Self::of(planned, output, true)
    }

    /// Collective. Begins a file that all ranks write together.
    ///
    /// # Errors
    /// As for [`NtupleSink::begin`].
    pub fn begin_collective(
        path: &Path,
        schema: &Schema,
        options: NtupleOptions,
        ranks: &dyn Communicator,
    ) -> Result<Self> {
        let planned = plan(path, schema, options)?;
        let output = UnpublishedFile::begin_collective(path, options.replace, ranks)?;
        ranks.agree("write", Self::of(planned, output, ranks.rank() == 0))
    }

    fn of((shared, header): (Shared, Vec<u8>), output: UnpublishedFile, writes: bool) -> Result<Self> {
        let Shared { options, kinds, .. } = &shared;
        let begun = Index::new(front_len_bytes(), options.codec, options.group_len_bytes, kinds.len(), &header);
        let (index, (address, bytes)) = begun.map_err(|source| shared.compress(source))?;
        if writes {
            output.write_at(&bytes, address)?;
        }
        Ok(Self { output, index, shared: Arc::new(shared) })
    }

    /// Writes the end of the file after all clusters are placed; returns the file's length.
    fn write_end(output: &UnpublishedFile, index: Index, shared: &Shared) -> Result<u64> {
        let finished = index.finish().map_err(|source| shared.compress(source))?;
        for (address, bytes) in finished.pieces {
            output.write_at(&bytes, address)?;
        }
        let settings = shared.options.codec.settings();
        let closing = close(finished.end, NTUPLE_NAME, &finished.anchor, settings, &finished.contents);
        output.write_at(&closing.end, finished.end)?;
        output.write_at(&closing.front, 0)?;
        Ok(finished.end + closing.end.len() as u64)
    }
}

/// Plans the fields, and encodes the contents of the header.
fn plan(path: &Path, schema: &Schema, options: NtupleOptions) -> Result<(Shared, Vec<u8>)> {
    let named = named(schema)?;
    let ids = if options.with_ids { id_products(&named)? } else { Vec::new() };
    let adds_ids = !ids.is_empty();
    let held_ids = if options.with_ids { find_ids(&named) } else { None };
    let forms = named.products.iter().map(|product| product.form.clone()).collect();
    let stored = |product: Product| Product { form: as_stored(&product.form), ..product };
    let products: Vec<Product> = named.products.into_iter().chain(ids).map(stored).collect();
    let fields = Fields::of(&products);
    // No features; then the name, an empty description, and the writer.
    let mut header = 0_u64.to_le_bytes().to_vec();
    push_text(&mut header, NTUPLE_NAME);
    push_text(&mut header, "");
    push_text(&mut header, concat!("raddle ", env!("CARGO_PKG_VERSION")));
    header.extend_from_slice(&fields.write(options.codec != RootCodec::None));
    let kinds = fields.kinds();
    let (path, schema) = (path.to_path_buf(), schema.clone());
    Ok((Shared { path, schema, forms, kinds, options, adds_ids, held_ids }, header))
}

impl Shared {
    fn compress(&self, source: CodecError) -> ColumnsError {
        ColumnsError::Compress { path: self.path.clone(), source }
    }

    /// Checks that products that readers interpret as ids hold the ids of the block.
    fn check_ids(&self, block: &Block, place: &Location) -> Result<()> {
        let Some(IdFields(columns)) = self.held_ids else { return Ok(()) };
        let parts: [fn(&EventId) -> u64; 3] = [|id| id.run.into(), |id| id.lumi.into(), |id| id.event];
        for (column, part) in columns.into_iter().zip(parts) {
            let ids = block.ids.iter().map(part);
            let mut pairs = column.values(&block.columns).zip(ids).zip(block.entries.start..);
            if let Some(((held, id), entry)) = pairs.find(|((held, id), _)| *held != i128::from(*id)) {
                let place = place.branch(&self.schema.products[column.column].name).entries(entry..entry + 1).into();
                return Err(ColumnsError::OtherIds { place, held, id, layout: LAYOUT });
            }
        }
        Ok(())
    }
}

/// Preparer that encodes clusters.
pub struct NtuplePreparer {
    shared: Arc<Shared>,
    encoder: ClusterEncoder,
}

impl Sink for NtupleSink {
    type Preparer = NtuplePreparer;
    type Prepared = EncodedCluster;
    type Tile = NoTile;
    type Encoded = NoTile;
    type Summary = NtupleSummary;

    fn preparer(&self) -> Result<NtuplePreparer> {
        let shared = Arc::clone(&self.shared);
        let options = &shared.options;
        let compressor = Compressor::new(options.codec).map_err(|source| shared.compress(source))?;
        let encoder = ClusterEncoder::new(compressor, options.codec != RootCodec::None, options.page_len_bytes);
        Ok(NtuplePreparer { shared, encoder })
    }

    fn kept_len_bytes(&self) -> u64 {
        // The page list exists three times: as it grows, assembled, and compressed.
        self.shared.options.group_len_bytes.saturating_mul(3)
    }

    fn commit(&mut self, prepared: EncodedCluster) -> Result<Vec<NoTile>> {
        let (address, list) = self.index.place(&prepared.pages).map_err(|source| self.shared.compress(source))?;
        self.output.write_at(&prepared.placed(address), address)?;
        if let Some((address, bytes)) = list {
            self.output.write_at(&bytes, address)?;
        }
        Ok(Vec::new())
    }

    fn place(&mut self, encoded: NoTile) -> Result<()> {
        match encoded {}
    }

    fn finish(self) -> Result<NtupleSummary> {
        let events = self.index.len_entries();
        let len_bytes = Self::write_end(&self.output, self.index, &self.shared)?;
        self.output.publish()?;
        Ok(NtupleSummary { events, len_bytes })
    }
}

impl SharedSink for NtupleSink {
    fn commit_collective(&mut self, prepared: Vec<EncodedCluster>, ranks: &dyn Communicator) -> Result<Vec<NoTile>> {
        let mut message = Vec::new();
        put_u64s(&mut message, [prepared.len() as u64]);
        prepared.iter().for_each(|cluster| cluster.pages.put(&mut message));
        let mut local_clusters = prepared.into_iter();
        let mut written = Ok(());
        // Every rank places all clusters, so that all ranks know the addresses of the next round.
        for (rank, message) in ranks.all_gather_bytes(&message)?.iter().enumerate() {
            let mut words = MessageReader::new("clusters of ranks", message);
            for _ in 0..words.word()? {
                let pages = ClusterPages::take(&mut words, self.shared.kinds.len())?;
                let (address, list) = self.index.place(&pages).map_err(|source| self.shared.compress(source))?;
                let cluster = if rank == ranks.rank() { local_clusters.next() } else { None };
                let cluster = cluster.map(|cluster| (address, cluster.placed(address)));
                let list = list.filter(|_| ranks.rank() == 0);
                for (address, bytes) in cluster.into_iter().chain(list) {
                    written = written.and_then(|()| self.output.write_at(&bytes, address));
                }
            }
        }
        ranks.agree("write", written)?;
        Ok(Vec::new())
    }

    fn rest_collective(&mut self, _ranks: &dyn Communicator) -> Result<Vec<NoTile>> {
        Ok(Vec::new())
    }

    fn place_collective(&mut self, _encoded: Vec<NoTile>, _ranks: &dyn Communicator) -> Result<()> {
        Ok(())
    }

    fn finish_collective(self, ranks: &dyn Communicator) -> Result<NtupleSummary> {
        let events = self.index.len_entries();
        self.output.sync_collective(ranks)?;
        let ended = match ranks.rank() {
            0 => Self::write_end(&self.output, self.index, &self.shared).and_then(|len_bytes| {
                self.output.publish()?;
                Ok(len_bytes)
            }),
            _ => Ok(0),
        };
        let len_bytes = ranks.agree("publish", ended)?;
        let len_bytes = ranks.all_gather_u64(len_bytes)?.into_iter().max().unwrap_or(0);
        Ok(NtupleSummary { events, len_bytes })
    }
}

impl Prepare for NtuplePreparer {
    type Prepared = EncodedCluster;
    type Tile = NoTile;
    type Encoded = NoTile;

    fn prepare(&mut self, block: Block) -> Result<EncodedCluster> {
        let shared = &self.shared;
        let place = Location::file(&shared.path).entries(block.entries.clone());
        block.check(&shared.schema).map_err(|(product, fault)| match product {
            Some(number) => fault.at(&place.branch(&shared.schema.products[number].name)),
            None => fault.at(&place),
        })?;
        let entries = block.len_entries();
        if shared.adds_ids && block.ids.len() as u64 != entries {
            let shape = Shape::Ids { got: block.ids.len() as u64, expected: entries };
            return Err(UnlocatedError::from(shape).at(&place));
        }
        shared.check_ids(&block, &place)?;
        let mut buffers: Vec<Buffer> = Vec::with_capacity(shared.kinds.len());
        for (form, column) in shared.forms.iter().zip(block.columns) {
            let Column { buffers: stored } = column_as_stored(form, column, entries);
            buffers.extend(stored);
        }
        if shared.adds_ids {
            let ids = block.ids.iter();
            buffers.extend([
                Buffer::Values(ids.clone().flat_map(|id| id.run.to_le_bytes()).collect()),
                Buffer::Values(ids.clone().flat_map(|id| id.lumi.to_le_bytes()).collect()),
                Buffer::Values(ids.flat_map(|id| id.event.to_le_bytes()).collect()),
            ]);
        }
        let columns = shared.kinds.iter().copied().zip(&buffers);
        self.encoder.encode(entries, columns).map_err(|source| shared.compress(source))
    }

    fn encode(&mut self, tile: NoTile) -> Result<NoTile> {
        match tile {}
    }
}
