//! The event and batch layouts as written by the framework (HDFEventOutputer.cc, HDFBatchEventsOutputer.cc): events,
//! batches, or both are compressed separately, and offsets within an event have 32 bits.
//!
//! Numbers above 2^31 - 1 are stored as 2^31 - 1, as HDF5 does when it converts the framework's numbers. Such event
//! numbers cannot be recovered; offsets that large are refused.

use super::arrangement::{EventArrangement, FilePlan, PartitionBlocks, bytes_of, id_of};
use super::event::{EVENT_IDS, OFFSETS, PRODUCTS};
use super::lumi::{
    COMPRESSION, COMPRESSION_CHOICE, COMPRESSION_LEVEL, blob, blobs, first_event, refused, serialization,
};
use super::series::{PartitionedBlock, Series, SeriesAttribute, SeriesPiece, SeriesValue};
use super::{CceOptions, CompressionChoice, FRAMEWORK_LEVEL, LUMI};
use crate::error::Result;
use crate::pds::PdsCodec;
use raddle_codec::RawStreamEncoder;
use raddle_columns::block::Block;
use raddle_columns::error::{ColumnsError, Location};
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{Number, Schema, Serialization};
use raddle_hdf5::write::Compat;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// Name of the layouts in messages.
const LAYOUT: &str = "the framework's layout of events";

/// Names of the attributes that the framework stores next to the products.
const RESERVED: [&str; 5] =
    [super::lumi::RUN, super::lumi::LUMISEC, COMPRESSION, COMPRESSION_LEVEL, COMPRESSION_CHOICE];

/// The framework's event or batch layout, as an arrangement.
pub(super) struct PackedArrangement {
    plan: FilePlan,
    packing: Packing,
}

/// Settings with which a thread packs events.
#[derive(Debug, Clone)]
struct Packing {
    path: PathBuf,
    codec: PdsCodec,
    choice: CompressionChoice,
    /// Number of events in a batch; `None` in the event layout.
    batch: Option<NonZeroU64>,
}

impl PackedArrangement {
    pub fn new(path: &Path, schema: &Schema, options: CceOptions, batch: Option<NonZeroU64>) -> Result<Self> {
        let plan = Self::plan_of(schema, options, batch.is_some())?;
        // Without batches, events are compressed.
        let choice = if batch.is_some() { options.choice } else { CompressionChoice::Events };
        Ok(Self { plan, packing: Packing { path: path.to_path_buf(), codec: options.codec, choice, batch } })
    }

    /// Plans a file of events or of batches.
    pub fn plan_of(schema: &Schema, options: CceOptions, is_batched: bool) -> Result<FilePlan> {
        let mut first = None;
        let mut attributes =
            vec![(LUMI, SeriesAttribute::new(COMPRESSION_LEVEL, SeriesValue::Int32(level(options.codec))))];
        if is_batched {
            let number = SeriesValue::Int32(options.choice.number());
            attributes.push((LUMI, SeriesAttribute::new(COMPRESSION_CHOICE, number)));
        }
        attributes.push((LUMI, SeriesAttribute::text(COMPRESSION, codec_name(options.codec))));
        for product in &schema.products {
            let got = serialization(product, LAYOUT)?;
            let expected = *first.get_or_insert(got);
            if got == Serialization::Basket {
                return Err(refused(product, LAYOUT, "it does not support the serialisation of branches"));
            }
            if got != expected {
                let product = product.name.clone();
                return Err(ColumnsError::MixedSerialization { product, got, expected, layout: LAYOUT }.into());
            }
            if RESERVED.contains(&product.name.as_str()) || product.name.is_empty() {
                return Err(refused(
                    product,
                    LAYOUT,
                    "names of products become names of attributes, and this one is empty or reserved",
                ));
            }
            attributes.push((LUMI, SeriesAttribute::text(&product.name, product.class.clone())));
        }
        let path_of = |name: &str| format!("{LUMI}/{name}");
        let series = vec![
            Series::values(path_of(EVENT_IDS), Number::Int32),
            Series::values(path_of(PRODUCTS), Number::Int8),
            Series::values(path_of(OFFSETS), Number::Int32),
        ];
        Ok(FilePlan { compat: Compat::Earliest, is_extensible: true, groups: vec![LUMI], attributes, series })
    }
}

fn level(codec: PdsCodec) -> i32 {
    match codec {
        PdsCodec::Zstd(level) => level,
        _ => FRAMEWORK_LEVEL,
    }
}

fn codec_name(codec: PdsCodec) -> &'static str {
    match codec {
        PdsCodec::None => "None",
        PdsCodec::Lz4 => "LZ4",
        PdsCodec::Zstd(_) => "ZSTD",
    }
}

impl EventArrangement for PackedArrangement {
    fn plan(&self) -> &FilePlan {
        &self.plan
    }

    fn arranger(&self) -> Result<Box<dyn PartitionBlocks>> {
        let Packing { path, codec, .. } = &self.packing;
        let compress = |source| ColumnsError::Compress { path: path.clone(), source };
        let encoder = match codec {
            PdsCodec::None => None,
            PdsCodec::Lz4 => Some(RawStreamEncoder::lz4_block()),
            PdsCodec::Zstd(level) => Some(RawStreamEncoder::zstd(*level).map_err(compress)?),
        };
        Ok(Box::new(BlockPartitioner { packing: self.packing.clone(), encoder, event: Vec::new(), batch: Vec::new() }))
    }

    fn last_attributes(&self, _entries: u64, first: Option<EventId>) -> Vec<(&'static str, SeriesAttribute)> {
        first_event(first)
    }
}

struct BlockPartitioner {
    packing: Packing,
    encoder: Option<RawStreamEncoder>,
    event: Vec<u8>,
    batch: Vec<u8>,
}

impl BlockPartitioner {
    /// Appends `data` to `out`, compressed if `compress`.
    fn push(&mut self, data: &[u8], compress: bool, out: &mut Vec<u8>) -> Result<()> {
        match self.encoder.as_mut().filter(|_| compress) {
            None => out.extend_from_slice(data),
            Some(encoder) => encoder
                .encode(data, out)
                .map_err(|source| ColumnsError::Compress { path: self.packing.path.clone(), source })?,
        }
        Ok(())
    }

    /// Appends the event's bytes to `out` and its offsets to `offsets`.
    fn push_event<'b>(
        &mut self,
        blobs: impl Iterator<Item = &'b [u8]>,
        place: &Location,
        out: &mut Vec<u8>,
        offsets: &mut Vec<i32>,
    ) -> Result<()> {
        let mut event = std::mem::take(&mut self.event);
        event.clear();
        let number = |len_bytes: usize| {
            i32::try_from(len_bytes).map_err(|_| ColumnsError::Limit {
                place: place.clone().into(),
                what: "an event",
                got: len_bytes as u64,
                limit: i32::MAX as u64,
                layout: LAYOUT,
            })
        };
        for blob in blobs {
            offsets.push(number(event.len())?);
            event.extend_from_slice(blob);
        }
        offsets.push(number(event.len())?);
        let before = out.len();
        self.push(&event, self.packing.choice.compresses_events(), out)?;
        if self.packing.batch.is_some() {
            offsets.push(number(out.len() - before)?);
        }
        self.event = event;
        Ok(())
    }
}

impl PartitionBlocks for BlockPartitioner {
    fn arrange(&mut self, block: Block, place: &Location) -> Result<PartitionedBlock> {
        let entries = block.len_entries() as usize;
        let columns = blobs(&block);
        let (mut products, mut offsets) = (Vec::new(), Vec::new());
        let batch_len = self.packing.batch.map_or(1, |events| usize::try_from(events.get()).unwrap_or(usize::MAX));
        let mut start = 0;
        while start < entries {
            let end = start.saturating_add(batch_len).min(entries);
            let mut batch = std::mem::take(&mut self.batch);
            batch.clear();
            for number in start..end {
                let entry = block.entries.start + number as u64;
                let place = place.entries(entry..entry + 1);
                let blobs = columns.iter().map(|&column| blob(column, number));
                self.push_event(blobs, &place, &mut batch, &mut offsets)?;
            }
            self.push(&batch, self.packing.choice.compresses_batches(), &mut products)?;
            self.batch = batch;
            start = end;
        }
        let ids = (0..entries).map(|number| id_of(&block, number).event);
        // As HDF5 converts the framework's 64-bit numbers: too large a number becomes the maximum.
        let ids = ids.map(|event| i32::try_from(event).unwrap_or(i32::MAX).to_le_bytes());
        let pieces =
            vec![bytes_of(ids), SeriesPiece::Values(products), bytes_of(offsets.into_iter().map(i32::to_le_bytes))];
        Ok(PartitionedBlock { pieces, entries: entries as u64 })
    }
}
