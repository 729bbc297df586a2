//! The columns layout: one flat array per leaf and one array of offsets per level of lists, as they are in memory.
//!
//! `/events` holds the arrays under the names of [`raddle_columns::awkward`]. Its attributes are awkward-array's form
//! of all products (`form`), the number of events (`length`), and raddle's schema with the array names of each product
//! (`schema`). `/ids` holds run, subrun and event of each entry, if the source knows them.

use super::LAYOUT_ATTRIBUTE;
use super::arrangement::{EventArrangement, FilePlan, PartitionBlocks, id_pieces, id_series};
use super::series::{PartitionedBlock, Series, SeriesAttribute, SeriesPiece, SeriesValue};
use crate::error::Result;
use raddle_columns::awkward::AwkwardForm;
use raddle_columns::block::{Block, Buffer};
use raddle_columns::error::Location;
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{BufferKind, Product, Schema};
use raddle_hdf5::write::Compat;
use serde::{Deserialize, Serialize};

/// Path of the group of arrays.
pub(super) const EVENTS: &str = "/events";
/// Path of the group of ids.
pub(super) const IDS: &str = "/ids";
/// Names of the attributes of the group of arrays.
pub(super) const SCHEMA_ATTRIBUTE: &str = "schema";
pub(super) const LENGTH_ATTRIBUTE: &str = "length";
/// Name of this layout in the layout attribute.
pub(super) const LAYOUT_NAME: &str = "columns";

/// Product with the names of its arrays.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredProduct {
    #[serde(flatten)]
    pub product: Product,
    pub buffers: Vec<String>,
}

/// The columns layout, as an arrangement.
pub(super) struct Columns {
    plan: FilePlan,
}

impl Columns {
    pub fn new(schema: &Schema) -> Result<Self> {
        let AwkwardForm { form, buffers } = AwkwardForm::of(schema);
        let (mut series, mut stored) = (Vec::new(), Vec::new());
        for (product, buffers) in schema.products.iter().zip(buffers) {
            for (name, buffer) in buffers.iter().zip(product.form.buffers()) {
                let path = format!("{EVENTS}/{name}");
                series.push(match buffer.kind {
                    BufferKind::Offsets => Series::offsets(path),
                    BufferKind::Values(number) => Series::values(path, number),
                });
            }
            stored.push(StoredProduct { product: product.clone(), buffers });
        }
        let ids = [format!("{IDS}/run"), format!("{IDS}/lumi"), format!("{IDS}/event")];
        series.extend(id_series(&ids[0], &ids[1], &ids[2]).map(Series::optional));
        // Serialising plain structs with text keys cannot fail.
        let schema = serde_json::to_string(&stored).unwrap_or_default();
        let attributes = vec![
            (EVENTS, SeriesAttribute::text(LAYOUT_ATTRIBUTE, LAYOUT_NAME)),
            (EVENTS, SeriesAttribute::text("form", form)),
            (EVENTS, SeriesAttribute::text(SCHEMA_ATTRIBUTE, schema)),
        ];
        let plan =
            FilePlan { compat: Compat::V18, is_extensible: false, groups: vec![EVENTS, IDS], attributes, series };
        Ok(Self { plan })
    }
}

impl EventArrangement for Columns {
    fn plan(&self) -> &FilePlan {
        &self.plan
    }

    fn arranger(&self) -> Result<Box<dyn PartitionBlocks>> {
        Ok(Box::new(BlockPartitioner))
    }

    fn last_attributes(&self, entries: u64, _first: Option<EventId>) -> Vec<(&'static str, SeriesAttribute)> {
        vec![(EVENTS, SeriesAttribute::new(LENGTH_ATTRIBUTE, SeriesValue::Uint64(entries)))]
    }
}

struct BlockPartitioner;

impl PartitionBlocks for BlockPartitioner {
    fn arrange(&mut self, block: Block, _place: &Location) -> Result<PartitionedBlock> {
        let entries = block.len_entries();
        let ids = id_pieces(block.ids.iter().copied());
        let buffers = block.columns.into_iter().flat_map(|column| column.buffers);
        let mut pieces: Vec<SeriesPiece> = buffers
            .map(|buffer| match buffer {
                Buffer::Offsets(offsets) => SeriesPiece::Offsets(offsets),
                Buffer::Values(bytes) => SeriesPiece::Values(bytes),
            })
            .collect();
        pieces.extend(ids);
        Ok(PartitionedBlock { pieces, entries })
    }
}
