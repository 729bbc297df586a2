//! The event layout, which stores bytes event by event, and the batch layout, which stores them batch by batch and
//! within a batch product by product. Both are in raddle's own form.
//!
//! `Offsets` holds the beginning of each blob in `Products`, in the order in which blobs are stored, followed by the
//! end of the last. `Batches` holds the number of the first event of each batch, followed by the number of events.

use super::LUMI;
use super::arrangement::{EventArrangement, FilePlan, PartitionBlocks, id_of, id_pieces, id_series};
use super::lumi::{attributes, blob, blobs};
use super::series::{PartitionedBlock, Series, SeriesAttribute, SeriesPiece};
use crate::error::Result;
use raddle_columns::block::Block;
use raddle_columns::error::Location;
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{Number, Schema};
use raddle_hdf5::write::Compat;
use std::num::NonZeroU64;

pub(super) const EVENT_IDS: &str = "EventIDs";
pub(super) const RUNS: &str = "RunIDs";
pub(super) const LUMIS: &str = "LumiIDs";
pub(super) const OFFSETS: &str = "Offsets";
pub(super) const PRODUCTS: &str = "Products";
pub(super) const BATCHES: &str = "Batches";
/// Name of this layout in the layout attribute.
pub(super) const EVENT_NAME: &str = "event";
pub(super) const BATCH_NAME: &str = "batch";

/// The event or the batch layout, as an arrangement.
pub(super) struct Events {
    plan: FilePlan,
    batch: Option<NonZeroU64>,
}

impl Events {
    pub fn new(schema: &Schema, batch: Option<NonZeroU64>, with_ids: bool) -> Result<Self> {
        let path = |name: &str| format!("{LUMI}/{name}");
        let mut series: Vec<Series> = id_series(&path(RUNS), &path(LUMIS), &path(EVENT_IDS)).into();
        series.push(Series::values(path(PRODUCTS), Number::Uint8));
        series.push(Series::offsets(path(OFFSETS)));
        if batch.is_some() {
            series.push(Series::offsets(path(BATCHES)));
        }
        let attributes = attributes(if batch.is_some() { BATCH_NAME } else { EVENT_NAME }, schema, with_ids)?;
        let plan = FilePlan { compat: Compat::V18, is_extensible: false, groups: vec![LUMI], attributes, series };
        Ok(Self { plan, batch })
    }
}

impl EventArrangement for Events {
    fn plan(&self) -> &FilePlan {
        &self.plan
    }

    fn arranger(&self) -> Result<Box<dyn PartitionBlocks>> {
        Ok(Box::new(BlockPartitioner { batch: self.batch }))
    }

    fn last_attributes(&self, _entries: u64, _first: Option<EventId>) -> Vec<(&'static str, SeriesAttribute)> {
        Vec::new()
    }
}

struct BlockPartitioner {
    batch: Option<NonZeroU64>,
}

impl PartitionBlocks for BlockPartitioner {
    fn arrange(&mut self, block: Block, _place: &Location) -> Result<PartitionedBlock> {
        let entries = block.len_entries() as usize;
        let columns = blobs(&block);
        let total_len_bytes = columns.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut products = Vec::with_capacity(total_len_bytes);
        let mut ends = Vec::with_capacity(entries * columns.len());
        let mut batches = Vec::new();
        match self.batch {
            None => {
                for number in 0..entries {
                    for &column in &columns {
                        products.extend_from_slice(blob(column, number));
                        ends.push(products.len() as u64);
                    }
                }
            }
            Some(batch) => {
                let batch = usize::try_from(batch.get()).unwrap_or(usize::MAX);
                let mut start = 0;
                while start < entries {
                    let end = start.saturating_add(batch).min(entries);
                    for (offsets, bytes) in &columns {
                        let (first, at) = (offsets[start], products.len() as u64);
                        products.extend_from_slice(&bytes[first as usize..offsets[end] as usize]);
                        ends.extend(offsets[start + 1..=end].iter().map(|offset| at + (offset - first)));
                    }
                    batches.push(end as u64);
                    start = end;
                }
            }
        }
        let mut pieces: Vec<SeriesPiece> = id_pieces((0..entries).map(|number| id_of(&block, number))).into();
        pieces.push(SeriesPiece::Values(products));
        pieces.push(SeriesPiece::Ends(ends));
        if self.batch.is_some() {
            pieces.push(SeriesPiece::Ends(batches));
        }
        Ok(PartitionedBlock { pieces, entries: entries as u64 })
    }
}
